"""The commands: read, report, and an exit code. Thin: everything they do is in the library."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer

from ._types import CalibrantWarning

if TYPE_CHECKING:
    from .errors import CellEstimator
    from .notions import Notion
    from .reading import Table
    from .reporting import Report
    from .results import Estimate

#: Files above this size are streamed in pieces instead of being loaded.
STREAM_ABOVE_BYTES = 256 * 2**20
PIECE_ROWS = 500_000
#: What ``--fail-above`` can judge.
_JUDGED: dict[str, Callable[[Estimate], float]] = {
    "value": lambda e: e.value,
    "corrected": lambda e: e.corrected,
    "low": lambda e: e.interval.low,
}
#: What the library calls things, and what the command calls them.
_OPTIONS = (
    (r"pass another `binned` to the Accumulator", "read the file whole with --load"),
    (r"pass labels=\[\.\.\.\] to the Accumulator", "pass --labels a,b,c"),
    (
        r"pass labels=range\(\d+\) to say so, or labels=range\(1, \d+\)",
        "pass --labels 0,1,… to say so, or --labels 1,2,…",
    ),
    (r", such as labels=range\(1, \d+\)", " (they count from 1?)"),
    (r"labels=\[\.\.\.\]", "--labels a,b,c"),
    (r"\bpos_label=", "--pos-label "),
    (r", or pass an array to go by position", ""),
)

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
    file: Annotated[str, typer.Argument(help="CSV, Parquet, NDJSON or Arrow file; - reads standard input.")],
    label: Annotated[str, typer.Option(help="Column of observed labels.")] = "y_true",
    prob: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of probabilities: one (binary), several, or a glob such as 'p_*'. Default: y_prob, else p_*."
        ),
    ] = None,
    weight: Annotated[str | None, typer.Option(help="Column of sample weights.")] = None,
    labels: Annotated[
        str | None, typer.Option(help="Labels, a,b,c: of the columns so named, else of the columns in order.")
    ] = None,
    pos_label: Annotated[str | None, typer.Option(help="Label that a single probability column speaks of.")] = None,
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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write an interactive page here.")] = None,
    fail_above: Annotated[
        float | None, typer.Option(help="Exit with 1 when the calibration error is above this.")
    ] = None,
    fail_on: Annotated[
        str,
        typer.Option(help="What --fail-above judges: value (noise included), corrected, or low (end of the interval)."),
    ] = "value",
    file_format: Annotated[
        str | None, typer.Option("--format", help="csv, parquet, ndjson or arrow; default: told from the file.")
    ] = None,
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
                label,
                prob,
                weight,
                labels,
                pos_label,
                notion,
                _parse_estimator(estimator),
                level,
                stream,
                sum_tolerance,
                title or f"Calibration of {Path(table.name).name}",
            )

    result = _guarded(run)
    _guarded(lambda: _deliver(result, as_json, html))
    judged = _JUDGED[fail_on](result.headline)
    if fail_above is not None and not judged <= fail_above:
        typer.echo(f"calibrant: calibration error {judged:.4f} ({fail_on}) is above {fail_above:g}", err=True)
        raise typer.Exit(1)


@app.command("demo")
def demo_command(
    out: Annotated[Path, typer.Option(help="Folder for the HTML pages.")] = Path(),
) -> None:
    """Train two models on scikit-learn's data and report on them: breast cancer, and ten digits."""
    _guarded(lambda: _demo(out))


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
    _guarded(action)


def _refusal(complaint: str) -> Callable[[], None]:
    """An action that complains."""

    def action() -> None:
        raise ValueError(complaint)

    return action


def _guarded(action: Callable[[], Any]) -> Any:
    """Run; a warning or a complaint about input becomes one line on standard error, the latter with exit code 2."""

    def tell(
        message: Warning | str, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None
    ) -> None:
        typer.echo(f"calibrant: warning: {_in_options(str(message))}", err=True)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", CalibrantWarning)
            warnings.showwarning = tell
            return action()
    except (ValueError, TypeError, OSError, ImportError, pl.exceptions.PolarsError) as error:
        message = _in_options(" ".join(str(error).split()))
        if isinstance(error, pl.exceptions.PolarsError):
            # Its first sentence: the rest is advice on options of polars.
            message = f"the file cannot be read: {message.split(' The current offset')[0].split(' You might want')[0]}"
        typer.echo(f"calibrant: {message}", err=True)
        raise typer.Exit(2) from None


def _report(
    table: Table,
    label: str,
    prob: list[str] | None,
    weight: str | None,
    labels: str | None,
    pos_label: str | None,
    notion: str,
    estimator: CellEstimator | None,
    level: float,
    stream: bool | None,
    sum_tolerance: float | None,
    title: str,
) -> Report:
    from ._columns import named_labels, some
    from ._labels import labels_in_order
    from .reporting import report, report_from
    from .streaming import Accumulator

    (label_column,) = _one(table.find(label, "--label"), "--label", label)
    patterns = prob or (["y_prob"] if "y_prob" in table.columns else ["p_*"])
    columns = list(dict.fromkeys(c for p in patterns for c in table.find(p, "--prob") if c != label_column))
    weight_column = None if weight is None else _one(table.find(weight, "--weight"), "--weight", weight)[0]
    columns = [c for c in columns if c != weight_column]
    if not columns:
        raise ValueError(f"--prob {' '.join(patterns)}: names no column but the label's and the weight's")
    seen = table.distinct(label_column)
    if not seen:
        raise ValueError(f"{table.name} has no rows")
    if len(seen) > 10_000:
        raise ValueError(f"column {label_column!r} has {len(seen)} distinct values: is it the label?")
    given = None if labels is None else [_typed(v, seen) for v in labels.split(",")]
    positive = None if pos_label is None else _typed(pos_label, seen)
    if given is None and len(columns) > 1:
        named = named_labels(columns, seen, lambda value: table.first_row(label_column, value))
        given = list(labels_in_order(seen, len(columns)) if named is None else named)
    elif given is None and len(seen) == 2 and set(seen) != {0, 1}:
        given = seen  # a piece may hold one of them only
    elif given is None and len(seen) > 2:
        raise ValueError(
            f"column {label_column!r} has {len(seen)} labels ({some(seen)}) but there is one column of probabilities, "
            f"{columns[0]!r}: name a column a label with --prob"
        )
    size = PIECE_ROWS if (table.n_bytes > STREAM_ABOVE_BYTES if stream is None else stream) else None
    chosen = _parse_notion(notion, seen if given is None else given)
    options: dict[str, Any] = {"labels": given, "pos_label": positive, "sum_tolerance": sum_tolerance}
    if size is None:
        piece = next(table.pieces(label_column, columns, weight_column))
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
    with _progress(table.n_rows()) as advance:
        for piece in table.pieces(label_column, columns, weight_column, size):
            try:
                sums.add(piece.y_true, piece.y_prob, piece.weight)
            except (ValueError, TypeError) as error:
                raise ValueError(_in_file(str(error), piece.start)) from error
            advance(len(piece.y_true))
    return report_from(sums, estimator=estimator or "auto", level=level, title=title)


class _progress:  # noqa: N801 (used as a context manager only)
    """Progress bar on standard error; silent where that is no terminal."""

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        columns = (TextColumn("reading rows"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=console, transient=True) if console.is_terminal else None
        self._task = None if self._bar is None else self._bar.add_task("rows", total=total)

    def __enter__(self) -> Callable[[int], None]:
        if self._bar is None or self._task is None:
            return lambda rows: None
        bar, task = self._bar, self._task
        bar.start()
        return lambda rows: bar.update(task, advance=rows)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def _in_file(message: str, start: int) -> str:
    """Count the row that a message names from the start of the file, not of the piece."""
    return re.sub(r"\brow (\d+)\b", lambda found: f"row {int(found[1]) + start}", message, count=1)


def _one(found: list[str], role: str, pattern: str) -> list[str]:
    if len(found) != 1:
        raise ValueError(f"{role} {pattern!r} matches {len(found)} columns: {', '.join(found[:6])}")
    return found


def _in_options(message: str) -> str:
    """A refusal of the library in the words of the command."""
    for said, meant in _OPTIONS:
        message = re.sub(said, meant, message)
    return message


def _typed(text: str, seen: list[Any]) -> Any:
    """A label typed on the command line, in the kind of the file's labels."""
    from ._columns import in_kind

    value = in_kind(text, seen[0])
    if value is None:
        kind = "true or false" if isinstance(seen[0], bool) else "integers"
        raise ValueError(f"label {text!r} is not among the labels of the file, which are {kind}")
    return value


def _parse_notion(text: str, labels: list[Any]) -> str | Notion:
    from .notions import ClassSpecific

    name, _, label = text.partition(":")
    if name == "class-specific" and label:
        return ClassSpecific(_typed(label, labels))
    return text


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
