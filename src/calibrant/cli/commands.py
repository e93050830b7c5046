"""The commands: read, report, and an exit code. Thin: everything they do is in the library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.progress import on_terminal, progress_bar
from .endings import Output, as_text, check_option, guarded
from .judging import compare_models_command
from .repair import apply_command, compare_command, fix_command
from .source import (
    PIECE_ROWS,
    STREAM_ABOVE_BYTES,
    Columns,
    FileArgument,
    FormatOption,
    GroupsOption,
    JsonOption,
    LabelOption,
    LabelsOption,
    PosLabelOption,
    ProbOption,
    ReplaceOption,
    Source,
    WeightOption,
    numbered,
)
from .subgroup_command import subgroups_command

if TYPE_CHECKING:
    from ..measure.result import Estimate
    from ..measure.streaming import Accumulator
    from ..reporting import Report

#: What ``--fail-above`` can judge.
_JUDGED: dict[str, Callable[[Estimate], float]] = {
    "value": lambda e: e.value,
    "corrected": lambda e: e.corrected,
    "low": lambda e: e.interval.low,
}
app = typer.Typer(
    name="calibrant",
    help="Tells whether a classifier's probabilities can be trusted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        from ..data.version import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.command("report")
def report_command(
    file: FileArgument,
    label: LabelOption = "y_true",
    prob: ProbOption = None,
    weight: WeightOption = None,
    groups: GroupsOption = None,
    labels: LabelsOption = None,
    pos_label: PosLabelOption = None,
    notion: Annotated[
        str, typer.Option(help="auto, class-specific:LABEL, class-wise, confidence or top-label.")
    ] = "auto",
    estimator: Annotated[
        str,
        typer.Option(
            help="auto, binned[:N][:quantile][:linear][:debias], density[:BANDWIDTH[:KERNEL]], residual[:score], "
            "smooth, sweep, isotonic or another estimator's name."
        ),
    ] = "auto",
    level: Annotated[float, typer.Option(help="Level of intervals and bands.")] = 0.95,
    material: Annotated[
        float | None,
        typer.Option(help="Calibration error below which it does not matter; default: 0.05, less for rare outcomes."),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Score from which on you act: tells how many decisions a repair changes.")
    ] = None,
    as_json: JsonOption = False,
    html: Annotated[Path | None, typer.Option(help="Write an interactive page here; - is standard output.")] = None,
    fail_above: Annotated[
        float | None, typer.Option(help="Exit with 1 when the calibration error is above this.")
    ] = None,
    fail_on: Annotated[
        str,
        typer.Option(help="What --fail-above judges: value (noise included), corrected, or low (end of the interval)."),
    ] = "value",
    file_format: FormatOption = None,
    stream: Annotated[
        bool | None,
        typer.Option("--stream/--load", help="Read in pieces; default: above 256 MB, but never with --groups."),
    ] = None,
    sum_tolerance: Annotated[float | None, typer.Option(help="How far rows may sum from 1.")] = None,
    title: Annotated[str | None, typer.Option(help="Title of the report.")] = None,
    force: ReplaceOption = False,
) -> None:
    """Report on the predictions in FILE."""

    def run() -> tuple[Report, str, Output]:
        from ..errors import Binned
        from ..errors.named import estimator_named
        from ..measure.streaming import Accumulator
        from ..reporting import report, report_from

        if fail_above is not None and not 0 <= fail_above <= 1:
            raise ValueError(f"--fail-above must lie in [0, 1]; got {fail_above}")
        check_option("--fail-on", fail_on, _JUDGED)
        page = Output("--html", html, {"the file that is read": file}, force=force)
        if stream and groups is not None:
            raise ValueError("--stream reads in pieces, which would part groups: --groups reads all rows at once")
        source = Source(file, file_format, label, prob, weight, labels, pos_label, groups)
        chosen = estimator if estimator == "auto" else estimator_named(estimator)
        about: dict[str, Any] = {
            "estimator": chosen,
            "level": level,
            "material": material,
            "threshold": threshold,
            "title": title or f"Calibration of {source.name}",
        }
        with source.table() as table:
            columns = source.columns(table)
            asked = columns.notion(notion)
            large = table.n_bytes > STREAM_ABOVE_BYTES and groups is None
            if large if stream is None else stream:
                kept = chosen if isinstance(chosen, Binned) and chosen.fixed else Binned()
                sums = Accumulator(notion=asked, binned=kept, sum_tolerance=sum_tolerance, **columns.meaning)
                found = report_from(_streamed(columns, sums), **about)
            else:
                found = report(columns.predictions(sum_tolerance=sum_tolerance), None, notion=asked, **about)
        page.write(found.to_html)
        return found, as_text(found, as_json), page

    result, text, page = guarded(run)
    page.told(text)
    judged = _JUDGED[fail_on](result.headline)
    if fail_above is not None and not judged <= fail_above:
        typer.echo(f"calibrant: calibration error {judged:.4f} ({fail_on}) is above {fail_above:g}", err=True)
        raise typer.Exit(1)


app.command("compare")(compare_command)
app.command("compare-models")(compare_models_command)
app.command("fix")(fix_command)
app.command("apply")(apply_command)
app.command("subgroups")(subgroups_command)


@app.command("demo")
def demo_command(
    out: Annotated[Path, typer.Option(help="Folder for the HTML pages.")] = Path(),
    force: ReplaceOption = False,
) -> None:
    """Train two models on scikit-learn's data and report on them: breast cancer, and ten digits."""
    guarded(lambda: _demo(out, force))


@app.command("benchmark")
def benchmark_command(
    quick: Annotated[bool, typer.Option("--quick", help="The same structure in minutes.")] = False,
    mode: Annotated[str, typer.Option(help="corrected or as-published.")] = "corrected",
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; one that was stopped goes on. Default: named by the mode.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes; default: one for each processor.")] = None,
    seed: Annotated[int, typer.Option(help="Root of all seeds.")] = 0,
    sets: Annotated[int | None, typer.Option(help="Evaluation sets a size; default 200, or 60 with --quick.")] = None,
    keep_predictions: Annotated[
        bool, typer.Option("--keep-predictions", help="Keep predictions (11 GB), to add estimators later.")
    ] = False,
    show: Annotated[
        str | None,
        typer.Option(help="Table to print: rel (default), abs or bias; of canonical: mean (default), bias or rmse."),
    ] = None,
    track: Annotated[
        list[str] | None,
        typer.Option(
            help="Instead of the mixtures: beta, networks, dirichlet, imbalance, consistency, repeatable; or canonical"
        ),
    ] = None,
) -> None:
    """Measure how wrong each estimator is where the true calibration error is known."""
    from .benchmark_command import BenchmarkOptions, canonical, mixtures, tracks

    options = BenchmarkOptions(out, quick, jobs, seed, show)

    def run() -> None:
        if not track:
            mixtures(options, mode, sets=sets, keep_predictions=keep_predictions)
        elif mode != "corrected" or keep_predictions or sets is not None:
            raise ValueError("--mode, --sets and --keep-predictions are for the mixtures: tracks have none of them")
        elif "canonical" not in track:
            tracks(options, track)
        elif len(set(track)) > 1:
            raise ValueError("--track canonical runs by itself: its problems are vectors, and its estimators others")
        else:
            canonical(options)

    guarded(run)


def _streamed(columns: Columns, sums: Accumulator) -> Accumulator:
    """Add all rows, piece by piece."""
    with progress_bar("reading rows", columns.table.n_rows(), shown=on_terminal()) as advance:
        for rows in columns.pieces(PIECE_ROWS):
            with numbered(rows.numbers):
                sums.update(rows.y_true, rows.y_prob, rows.weight)
            advance(len(rows.y_true))
    return sums


def _demo(out: Path, force: bool) -> None:
    from ..data.datasets import load_breast_cancer_predictions, load_digits_predictions
    from ..reporting import report

    out.mkdir(parents=True, exist_ok=True)
    pages = {
        name: Output("the page", out / f"calibrant-demo-{name}.html", {}, force=force)
        for name in ("breast-cancer", "digits")
    }
    cancer, digits = load_breast_cancer_predictions(), load_digits_predictions()
    for page, data, options in (
        (pages["breast-cancer"], cancer, {"pos_label": "malignant"}),
        (pages["digits"], digits, {"labels": digits.labels}),
    ):
        result = report(data.y_true, data.y_prob, title=data.description, **options)
        page.write(result.to_html)
        typer.echo(f"{result}\n\nopen {page.path} in a browser for the interactive page\n")
