"""The commands: read, report, and an exit code. Thin: everything they do is in the library."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ._command_end import guarded
from ._command_input import (
    PIECE_ROWS,
    STREAM_ABOVE_BYTES,
    Columns,
    FileArgument,
    FormatOption,
    JsonOption,
    LabelOption,
    LabelsOption,
    PosLabelOption,
    ProbOption,
    WeightOption,
    find_columns,
    in_file,
    parse_notion,
)
from ._judging_commands import compare_models_command
from ._progress import on_terminal, progress_bar
from ._repair_commands import apply_command, compare_command, fix_command
from ._subgroup_command import subgroups_command

if TYPE_CHECKING:
    from .errors import CellEstimator
    from .reading import Table
    from .reporting import Report
    from .results import Estimate

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
        from . import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.command("report")
def report_command(
    file: FileArgument,
    label: LabelOption = "y_true",
    prob: ProbOption = None,
    weight: WeightOption = None,
    labels: LabelsOption = None,
    pos_label: PosLabelOption = None,
    notion: Annotated[
        str, typer.Option(help="auto, class-specific:LABEL, classwise, confidence or top-label.")
    ] = "auto",
    estimator: Annotated[
        str,
        typer.Option(
            help="auto, residual[:score], density[:BANDWIDTH[:KERNEL]] or binned[:N][:quantile][:linear][:debias]."
        ),
    ] = "auto",
    level: Annotated[float, typer.Option(help="Level of intervals and bands.")] = 0.95,
    as_json: JsonOption = False,
    html: Annotated[Path | None, typer.Option(help="Write an interactive page here.")] = None,
    fail_above: Annotated[
        float | None, typer.Option(help="Exit with 1 when the calibration error is above this.")
    ] = None,
    fail_on: Annotated[
        str,
        typer.Option(help="What --fail-above judges: value (noise included), corrected, or low (end of the interval)."),
    ] = "value",
    file_format: FormatOption = None,
    stream: Annotated[
        bool | None, typer.Option("--stream/--load", help="Read in pieces; default: above 256 MB.")
    ] = None,
    sum_tolerance: Annotated[float | None, typer.Option(help="How far rows may sum from 1.")] = None,
    title: Annotated[str | None, typer.Option(help="Title of the report.")] = None,
) -> None:
    """Report on the predictions in FILE."""

    def run() -> Report:
        from .reading import Table

        if fail_above is not None and not 0 <= fail_above <= 1:
            raise ValueError(f"--fail-above must lie in [0, 1]; got {fail_above}")
        if fail_on not in _JUDGED:
            raise ValueError(f"--fail-on must be one of {', '.join(_JUDGED)}; got {fail_on!r}")
        with Table(file, file_format) as table:
            return _report(
                table,
                find_columns(table, label, prob, weight, labels, pos_label),
                notion,
                _parse_estimator(estimator),
                level,
                stream,
                sum_tolerance,
                title or f"Calibration of {Path(table.name).name}",
            )

    result = guarded(run)
    guarded(lambda: _deliver(result, as_json, html))
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
) -> None:
    """Train two models on scikit-learn's data and report on them: breast cancer, and ten digits."""
    guarded(lambda: _demo(out))


@app.command("benchmark")
def benchmark_command(
    quick: Annotated[bool, typer.Option("--quick", help="The same structure in minutes.")] = False,
    mode: Annotated[str, typer.Option(help="corrected or as-published.")] = "corrected",
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run; one that was stopped goes on. Default: named by the mode.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes; default: one for each processor.")] = None,
    seed: Annotated[int, typer.Option(help="Root of all seeds.")] = 0,
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
    from ._benchmark_command import benchmark, canonical, tracks

    if not track:
        action = benchmark(mode, out, quick, jobs, seed, keep_predictions, show or "rel")
    elif mode != "corrected" or keep_predictions:
        action = _refusal("--mode and --keep-predictions are for the mixtures: tracks have neither")
    elif "canonical" not in track:
        action = tracks(track, out, quick, jobs, seed, show or "rel")
    elif len(set(track)) > 1:
        action = _refusal("--track canonical runs by itself: its problems are vectors, and its estimators others")
    else:
        action = canonical(out, quick, jobs, seed, show or "mean")
    guarded(action)


def _refusal(complaint: str) -> Callable[[], None]:
    """An action that complains."""

    def action() -> None:
        raise ValueError(complaint)

    return action


def _report(
    table: Table,
    columns: Columns,
    notion: str,
    estimator: CellEstimator | None,
    level: float,
    stream: bool | None,
    sum_tolerance: float | None,
    title: str,
) -> Report:
    from .reporting import report, report_from
    from .streaming import Accumulator

    size = PIECE_ROWS if (table.n_bytes > STREAM_ABOVE_BYTES if stream is None else stream) else None
    chosen = parse_notion(notion, columns.seen if columns.labels is None else columns.labels)
    options: dict[str, Any] = {"labels": columns.labels, "pos_label": columns.positive, "sum_tolerance": sum_tolerance}
    if size is None:
        piece = next(table.pieces(columns.label, columns.probs, columns.weight))
        return report(
            piece.y_true,
            piece.y_prob,
            notion=chosen,
            estimator=estimator or "auto",
            level=level,
            sample_weight=piece.weight,
            title=title,
            **options,
        )
    from .errors import Binned

    kept = estimator if isinstance(estimator, Binned) and estimator.fixed else Binned()
    sums = Accumulator(notion=chosen, binned=kept, **options)
    with progress_bar("reading rows", table.n_rows(), shown=on_terminal()) as advance:
        for piece in table.pieces(columns.label, columns.probs, columns.weight, size):
            try:
                sums.add(piece.y_true, piece.y_prob, piece.weight)
            except (ValueError, TypeError) as error:
                raise ValueError(in_file(str(error), partial(add, piece.start))) from error
            advance(len(piece.y_true))
    return report_from(sums, estimator=estimator or "auto", level=level, title=title)


def _parse_estimator(text: str) -> CellEstimator | None:
    """``density:scott:triweight`` and ``binned:sqrt:quantile:linear:debias`` to estimators; None for auto."""
    from .binning.mapping import MAPPINGS
    from .errors import Binned, Density, ResidualKernel
    from .errors.binned import STRATEGIES

    name, *parts = text.split(":")
    if name == "auto" and not parts:
        return None
    if name == "residual" and len(parts) <= 1:
        return ResidualKernel(space=parts[0] if parts else "rank")
    if name == "density" and len(parts) <= 2:
        options: dict[str, Any] = dict(zip(("bandwidth", "kernel"), parts, strict=False))
        if parts and _is_number(parts[0]):
            options["bandwidth"] = float(parts[0])
        return Density(**options)
    if name == "binned":
        options = {}
        for part in parts:
            if part in STRATEGIES:
                options["strategy"] = part
            elif part in MAPPINGS:
                options["mapping"] = part
            elif part == "debias":
                options["debias"] = True
            else:
                options["n_bins"] = int(part) if part.isdigit() else part
        return Binned(**options)
    raise ValueError(
        "--estimator must be auto, residual[:score], density[:BANDWIDTH[:KERNEL]] or "
        f"binned[:N][:quantile][:linear][:debias]; got {text!r}"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _deliver(result: Report, as_json: bool, html: Path | None) -> None:
    if html is not None:
        result.to_html(html)
    typer.echo(json.dumps(result.to_dict(), allow_nan=False) if as_json else str(result))
    if html is not None:
        typer.echo(f"wrote {html}", err=True)


def _demo(out: Path) -> None:
    from .datasets import load_breast_cancer_predictions, load_digits_predictions
    from .reporting import report

    out.mkdir(parents=True, exist_ok=True)
    cancer, digits = load_breast_cancer_predictions(), load_digits_predictions()
    for name, data, options in (
        ("breast-cancer", cancer, {"pos_label": "malignant"}),
        ("digits", digits, {"labels": digits.labels}),
    ):
        result = report(data.y_true, data.y_prob, title=data.description, **options)
        page = out / f"calibrant-demo-{name}.html"
        result.to_html(page)
        typer.echo(f"{result}\n\nopen {page} in a browser for the interactive page\n")
