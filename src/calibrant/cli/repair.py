"""The commands that repair: compare calibrators, fit one and save it, apply a saved one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
import typer

from ..data.printable import printable, printable_lines
from ..data.progress import progress_bar
from .output import Output, as_text, check_option, guarded, of_command, tell_written
from .saved_comparison import SavedComparison, read_comparison
from .source import (
    PIECE_ROWS,
    FileArgument,
    FileColumns,
    FileRows,
    FormatOption,
    HtmlOption,
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

if TYPE_CHECKING:
    from ..calibrators import Calibrator
    from ..data.tables import FileTable
    from ..data.types import AnyArray
    from ..reporting import CalibratorComparison

#: Numbers that a fit is given at most by default: beyond, more rows change little.
_MOST_NUMBERS = 20_000_000
_MOST_ROWS = 1_000_000

InputOption = Annotated[
    str, typer.Option("--input", help="What the columns hold: probability, logit or margin (any real score).")
]
CvOption = Annotated[int, typer.Option(help="Folds of the cross-validation.")]
GoalOption = Annotated[str, typer.Option("--goal", help="What decides: log-loss, brier, or calibration (its error).")]
MaxRowsOption = Annotated[
    int | None,
    typer.Option(help="Use at most so many rows, drawn at random. Default: a million, fewer with many classes.", min=2),
]
TitleOption = Annotated[str | None, typer.Option(help="Title of the comparison.")]


def compare_command(
    file: FileArgument,
    calibrators: Annotated[
        str | None, typer.Option(help="Calibrators, from the simplest: a,b,c. Default: all that suit the classes.")
    ] = None,
    label: LabelOption = "y_true",
    prob: ProbOption = None,
    weight: WeightOption = None,
    labels: LabelsOption = None,
    pos_label: PosLabelOption = None,
    kind: InputOption = "probability",
    cv: CvOption = 5,
    goal: GoalOption = "log-loss",
    level: Annotated[float, typer.Option(help="Level of intervals and bands.")] = 0.95,
    max_rows: MaxRowsOption = None,
    as_json: JsonOption = False,
    html: HtmlOption = None,
    save: Annotated[
        Path | None, typer.Option(help="File (JSON) for what was found: `calibrant fix --from` uses it.")
    ] = None,
    file_format: FormatOption = None,
    title: TitleOption = None,
    force: ReplaceOption = False,
) -> None:
    """Cross-validate calibrators on the predictions in FILE: what would repair them, and by how much?"""

    def run() -> tuple[str, Output, Output]:
        read = {"the file that is read": file}
        saved = Output("--save", save, {**read, "the page of --html": html}, force=force)
        page = Output("--html", html, read, force=force)
        if saved.standard and page.standard:
            raise ValueError("--save and --html cannot both be standard output")
        source = Source(file, file_format, label, prob, weight, labels, pos_label)
        options = {"input": kind, "cv": cv, "goal": goal, "level": level}
        columns, rows = _sample(source, max_rows)
        found = _compare(columns, rows, calibrators, title=title or f"Calibrators of {source.name}", **options)
        page.write(found.to_html)
        saved.write(lambda: json.dumps(found.to_dict(), allow_nan=False) + "\n")
        return as_text(found, as_json), page, saved

    text, page, saved = guarded(run)
    page.told(text, saved)


def fix_command(
    file: FileArgument,
    save: Annotated[Path, typer.Option(help="File (JSON) for the fitted calibrator.")],
    calibrator: Annotated[
        str,
        typer.Option(help="auto (chosen by cross-validation), or the name of a calibrator: see compare --calibrators."),
    ] = "auto",
    comparison: Annotated[
        Path | None,
        typer.Option("--from", help="What `calibrant compare --save` (or --json) wrote: its choice is fitted, once."),
    ] = None,
    label: LabelOption = "y_true",
    prob: ProbOption = None,
    weight: WeightOption = None,
    labels: LabelsOption = None,
    pos_label: PosLabelOption = None,
    kind: InputOption = "probability",
    cv: CvOption = 5,
    goal: GoalOption = "log-loss",
    max_rows: MaxRowsOption = None,
    as_json: JsonOption = False,
    html: HtmlOption = None,
    file_format: FormatOption = None,
    title: TitleOption = None,
    force: ReplaceOption = False,
) -> None:
    """Fit a calibrator to the predictions in FILE and save it; `calibrant apply` uses it.

    What it achieves is cross-validated, as `calibrant compare` does; what is saved is fitted to all rows.
    """

    def run() -> tuple[str, str, str, Output, Output]:
        from ..calibrators import to_dict

        read = {"the file that is read": file, "the comparison": comparison}
        saved = Output("--save", save, {**read, "the page of --html": html}, force=force)
        page = Output("--html", html, read, force=force)
        if saved.standard and page.standard:
            raise ValueError("--save and --html cannot both be standard output")
        if comparison is not None and html is not None:
            raise ValueError("--html is a page of the comparison: pass it to calibrant compare, and not with --from")
        source = Source(file, file_format, label, prob, weight, labels, pos_label)
        told = None if comparison is None else read_comparison(comparison)
        columns, rows = _sample(source, max_rows)
        if told is None:
            alone = calibrator in ("auto", "identity") or kind == "margin"
            calibrators = None if calibrator == "auto" else calibrator if alone else f"identity,{calibrator}"
            options = {"input": kind, "cv": cv, "goal": goal}
            found = _compare(columns, rows, calibrators, title=title or f"Calibrators of {source.name}", **options)
            page.write(found.to_html)
            told = SavedComparison(found.chosen, found.to_dict(), str(found))
        name = told.chosen if calibrator == "auto" else calibrator
        with numbered(rows.numbers):
            one = _fitted(name, columns, rows, kind, told)
        saved.write(lambda: json.dumps(to_dict(one), allow_nan=False, indent=1) + "\n")
        about = {"saved": str(save), "calibrator": name, "comparison": told.found} if as_json else None
        text = json.dumps(about, allow_nan=False) if as_json else printable_lines(told.text)
        return text, name, told.chosen, saved, page

    text, used, chosen, saved, page = guarded(run)
    typer.echo(text, err=saved.standard or page.standard)
    if used != chosen:
        typer.echo(f"calibrant: {used} is saved, as asked for; cross-validation chose {chosen}", err=True)
    tell_written(*(output.path for output in (saved, page) if not output.standard))


def apply_command(
    model: Annotated[Path, typer.Argument(help="Calibrator saved by calibrant fix.")],
    file: FileArgument,
    out: Annotated[Path, typer.Option(help="File for the rows with calibrated probabilities; - is standard output.")],
    prob: ProbOption = None,
    suffix: Annotated[
        str, typer.Option(help="Add columns named with this ending, instead of replacing those of the scores.")
    ] = "",
    file_format: FormatOption = None,
    out_format: Annotated[
        str | None, typer.Option(help="csv, parquet, ndjson or arrow; default: told from the name, else as FILE.")
    ] = None,
    force: ReplaceOption = False,
) -> None:
    """Write the rows of FILE with calibrated probabilities, by pieces: FILE may be larger than memory."""

    def run() -> int:
        from ..calibrators import load_calibrator

        output = Output("--out", out, {"the file that is read": file, "the calibrator": model}, force=force)
        calibrator = load_calibrator(model)
        source = Source(file, file_format, prob=prob)
        with source.table(as_text=True) as table:
            columns = _fitted_columns(calibrator, source, table)
            return _apply(calibrator, table, {name: name + suffix for name in columns}, output, out_format)

    rows = guarded(run)
    where = "standard output" if str(out) == "-" else printable(str(out))
    typer.echo(f"wrote {where}: {rows:,} rows", err=True)


def _sample(source: Source, max_rows: int | None) -> tuple[FileColumns, FileRows]:
    """Rows to compare or fit with."""
    with source.table() as table:
        columns = source.columns(table)
        most = max_rows or min(_MOST_ROWS, max(_MOST_NUMBERS // len(columns.probs), 1000))
        rows = columns.rows(*table.sample(columns.names, most, 0, PIECE_ROWS))
        total = table.n_rows()
    if total > len(rows.numbers):
        typer.echo(f"calibrant: a random {len(rows.numbers):,} of {total:,} rows are used (--max-rows)", err=True)
    return columns, rows


def _fitted(name: str, columns: FileColumns, rows: FileRows, kind: str, told: SavedComparison) -> Calibrator:
    """A calibrator of that name, fitted to all rows; they must be of the classes that were compared."""
    from ..calibrators import named_calibrator
    from ..calibrators.select import judged_sample
    from ..reporting.comparing_calibrators import digest_of

    sample = judged_sample(rows.y_prob, rows.y_true.to_numpy(), rows.weight, kind, _labels(columns))
    told.judge(sample.classes, kind, digest_of(sample))
    one = named_calibrator(name, len(sample.classes))
    one.set_params(input=kind, labels=list(sample.classes))
    return one.fit(rows.y_prob, rows.y_true.to_numpy(), rows.weight)


def _compare(columns: FileColumns, rows: FileRows, calibrators: str | None, **options: Any) -> CalibratorComparison:
    from ..calibrators import named_calibrator
    from ..reporting.comparing_calibrators import compare_calibrators

    n_classes = max(len(columns.probs), 2)
    candidates = None if calibrators is None else {m: named_calibrator(m, n_classes) for m in calibrators.split(",")}
    options |= {"candidates": candidates, "labels": _labels(columns)}
    with numbered(rows.numbers):
        # Probabilities with names, which labels may go by.
        found = compare_calibrators(rows.y_true.to_numpy(), rows.y_prob, sample_weight=rows.weight, **options)
    return of_command(found)


def _labels(columns: FileColumns) -> list[Any] | None:
    """Labels of the columns; of a single one both, the one that it is the probability of last."""
    if len(columns.probs) > 1:
        return columns.labels
    both = columns.labels or columns.seen
    if columns.positive is None:
        if set(both) <= {0, 1}:
            return [False, True] if isinstance(both[0], bool) else [0, 1]
        raise ValueError(
            f"--pos-label must say which label column {columns.probs[0]!r} is the probability of: "
            f"{' or '.join(map(str, both))}"
        )
    if columns.positive not in both:
        raise ValueError(f"--pos-label {columns.positive} is not among the labels {', '.join(map(str, both))}")
    return [v for v in both if v != columns.positive] + [columns.positive]


def _fitted_columns(calibrator: Calibrator, source: Source, table: FileTable) -> list[str]:
    """Columns that the calibrator is applied to: those it was fitted to, if they are there and none are named."""
    names = [str(name) for name in getattr(calibrator, "feature_names_in_", ())]
    known = bool(names) and set(names) <= set(table.columns)
    columns = names if source.prob is None and known else source.probability_columns(table)
    if set(columns) == set(names):
        columns = names  # whatever their order in the file
    expected = int(calibrator.n_features_in_)
    if len(columns) != expected:
        raise ValueError(
            f"the calibrator was fitted to {expected} column{'s' * (expected > 1)}, and --prob names {len(columns)}: "
            f"{', '.join(columns[:6])}"
        )
    return columns


def _apply(
    calibrator: Calibrator, table: FileTable, written: dict[str, str], output: Output, out_format: str | None
) -> int:
    """Write calibrated rows; returns how many. ``written``: what each column is called in the new file."""
    from ..data.tables import FORMATS, format_of

    out = Path(str(output.path))
    chosen = check_option("--out-format", out_format or format_of(out) or table.file_format, FORMATS)
    for old, new in written.items():
        if new != old and new in table.columns:
            raise ValueError(f"--suffix {new.removeprefix(old)!r}: there is a column {new!r} already")
    separator = table.separator if output.standard else "\t" if out.suffix.lower() == ".tsv" else ","
    bar = progress_bar("calibrating rows", table.n_rows())
    with bar as advance, output.temporary() as temporary:
        same = chosen == table.file_format and (chosen == "ndjson" or separator == table.separator)
        if same and chosen in ("csv", "ndjson"):
            return _rewritten(calibrator, table, written, temporary, advance)
        return _converted(calibrator, table, written, temporary, chosen, separator, advance)


def _rewritten(
    calibrator: Calibrator, table: FileTable, written: dict[str, str], path: Path, advance: Callable[[int], None]
) -> int:
    """CSV to CSV or NDJSON to NDJSON: what is not calibrated stays as it is, byte for byte."""
    from ..data.rewriting import csv_records, json_records, rewrite

    def values(texts: list[list[str | None]], start: int) -> list[list[str]]:
        batch = pl.DataFrame(dict(zip(written, texts, strict=True)), schema=dict.fromkeys(written, pl.String))
        with numbered(range(start, start + batch.height)):
            p = _probabilities(calibrator, batch, list(written))
        advance(batch.height)
        return [list(map(repr, column)) for column in p.T.tolist()]

    of_csv = partial(csv_records, separator=table.separator, columns=table.columns)
    return rewrite(table.path, path, of_csv if table.file_format == "csv" else json_records, written, values)


def _converted(
    calibrator: Calibrator,
    table: FileTable,
    written: dict[str, str],
    path: Path,
    file_format: str,
    separator: str,
    advance: Callable[[int], None],
) -> int:
    """From any format to any other."""
    schema = table.schema
    kinds = {new: schema[old] if schema[old].is_float() else pl.Float64() for old, new in written.items()}
    failed: list[ValueError] = []
    rows = 0

    def calibrated() -> Iterator[pl.DataFrame]:
        nonlocal rows
        for batch in table.batches(None, PIECE_ROWS):
            try:
                with numbered(range(rows, rows + batch.height)):
                    p = _probabilities(calibrator, batch, list(written))
            except ValueError as error:
                failed.append(error)
                raise
            rows += batch.height
            advance(batch.height)
            yield batch.with_columns([pl.Series(n, p[:, i], dtype=t) for i, (n, t) in enumerate(kinds.items())])

    try:
        _write(calibrated, schema | kinds, path, file_format, separator)
    except (ValueError, TypeError, pl.exceptions.PolarsError) as error:
        if failed:  # the complaint about a row comes back as it was or wrapped
            raise failed[0] from error
        raise
    return rows


def _probabilities(calibrator: Calibrator, batch: Any, columns: list[str]) -> AnyArray:
    """Calibrated probabilities in the order of the columns, (n, columns)."""
    from ..calibrators.base import in_column_order, predict_unnamed
    from ..data.tables import as_numbers, score_columns

    scores = score_columns(as_numbers(batch, columns), columns)
    named = columns == list(getattr(calibrator, "feature_names_in_", ()))
    p = calibrator.predict_proba(scores) if named else predict_unnamed(calibrator, scores.to_numpy())
    if len(columns) == 1:
        return p[:, 1:]
    return in_column_order(calibrator, p)


def _write(
    batches: Callable[[], Iterator[pl.DataFrame]], schema: dict[str, Any], path: Path, file_format: str, separator: str
) -> None:
    """Write frames to a file as they come."""
    from polars.io.plugins import register_io_source

    def source(*_: object) -> Iterator[pl.DataFrame]:
        return batches()

    frame = register_io_source(source, schema=schema)
    if file_format == "csv":
        frame.sink_csv(path, separator=separator)
    elif file_format == "parquet":
        frame.sink_parquet(path)
    elif file_format == "ndjson":
        frame.sink_ndjson(path)
    else:
        frame.sink_ipc(path)
