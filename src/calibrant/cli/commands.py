"""The commands: read, report, and an exit code. Thin: everything they do is in the library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .judging import compare_models_command
from .output import Output, guarded, of_command
from .repair import apply_command, compare_command, fix_command
from .reports import merge_command, report_command
from .source import ReplaceOption
from .subgroup_command import subgroups_command

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


app.command("report")(report_command)
app.command("merge")(merge_command)
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
    """Train two models on scikit-learn's handwritten digits (even or odd; which of ten) and report on them."""
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


def _demo(out: Path, force: bool) -> None:
    from ..datasets import load_digits_predictions, load_even_digits_predictions
    from ..reporting import report

    out.mkdir(parents=True, exist_ok=True)
    pages = {
        name: Output("the page", out / f"calibrant-demo-{name}.html", {}, force=force)
        for name in ("even-digits", "digits")
    }
    even, digits = load_even_digits_predictions(), load_digits_predictions()
    for page, data, options in (
        (pages["even-digits"], even, {"pos_label": "even"}),
        (pages["digits"], digits, {"labels": digits.labels}),
    ):
        result = of_command(report(data.y_true, data.y_prob, title=data.description, **options))
        page.write(result.to_html)
        typer.echo(f"{result}\n\nopen {page.path} in a browser for the interactive page\n")
