"""The commands that repair: compare calibrators, fit one and save it, apply a saved one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import polars as pl
import typer

from ._command_end import guarded
from ._command_input import (
    PIECE_ROWS,
    Columns,
    FileArgument,
    FormatOption,
    JsonOption,
    LabelOption,
    LabelsOption,
    PosLabelOption,
    ProbOption,
    ReplaceOption,
    WeightOption,
    find_columns,
    in_file,
    probability_columns,
)
from ._files import check_free, replacing
from ._progress import on_terminal, progress_bar

if TYPE_CHECKING:
    from ._types import AnyArray
    from .calibrators import Calibrator
    from .reading import Piece, Table
    from .reporting import CalibratorComparison

Done = TypeVar("Done")
#: Numbers that a fit is given at most by default: beyond, more rows change little.
_MOST_NUMBERS = 20_000_000
_MOST_ROWS = 1_000_000

InputOption = Annotated[
    str, typer.Option("--input", help="What the columns hold: probability, logit or margin (any real score).")
]
CvOption = Annotated[int, typer.Option(help="Folds of the cross-validation.")]
ScoringOption = Annotated[str, typer.Option(help="Proper score that decides: log_loss or brier.")]
MaxRowsOption = Annotated[
    int | None,
    typer.Option(help="Use at most so many rows, drawn at random. Default: a million, fewer with many classes.", min=2),
]
HtmlOption = Annotated[Path | None, typer.Option(help="Write a page with diagrams before and after here.")]
TitleOption = Annotated[str | None, typer.Option(help="Title of the comparison.")]


def compare_command(
    file: FileArgument,
    methods: Annotated[
        str | None, typer.Option(help="Calibrators, from the simplest: a,b,c. Default: all that suit the classes.")
    ] = None,
    label: LabelOption = "y_true",
    prob: ProbOption = None,
    weight: WeightOption = None,
    labels: LabelsOption = None,
    pos_label: PosLabelOption = None,
    kind: InputOption = "probability",
    cv: CvOption = 5,
    scoring: ScoringOption = "log_loss",
    level: Annotated[float, typer.Option(help="Level of intervals and bands.")] = 0.95,
    max_rows: MaxRowsOption = None,
    as_json: JsonOption = False,
    html: HtmlOption = None,
    file_format: FormatOption = None,
    title: TitleOption = None,
    force: ReplaceOption = False,
) -> None:
    """Cross-validate calibrators on the predictions in FILE: what would repair them, and by how much?"""

    def run() -> CalibratorComparison:
        _apart(("--html", html), ("the file that is read", file))
        if html is not None:
            check_free(html, force=force, advice="pass --force")
        rows = _read(file, file_format, label, prob, weight, labels, pos_label, max_rows)
        found = _compare(rows, methods, kind, cv, scoring, level, title)
        if html is not None:
            found.to_html(html)
        return found

    result = guarded(run)
    typer.echo(json.dumps(result.to_dict(), allow_nan=False) if as_json else str(result))
    if html is not None:
        typer.echo(f"wrote {html}", err=True)


def fix_command(
    file: FileArgument,
    save: Annotated[Path, typer.Option(help="File (JSON) for the fitted calibrator.")],
    method: Annotated[
        str, typer.Option(help="auto (chosen by cross-validation), or the name of a calibrator: see compare --methods.")
    ] = "auto",
    label: LabelOption = "y_true",
    prob: ProbOption = None,
    weight: WeightOption = None,
    labels: LabelsOption = None,
    pos_label: PosLabelOption = None,
    kind: InputOption = "probability",
    cv: CvOption = 5,
    scoring: ScoringOption = "log_loss",
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

    def run() -> tuple[CalibratorComparison, str]:
        from sklearn.base import clone

        from .calibrators import named_calibrator, save_calibrator

        _apart(("--save", save), ("the file that is read", file), ("the page of --html", html))
        _apart(("--html", html), ("the file that is read", file))
        for path in (save, html):
            if path is not None:
                check_free(path, force=force, advice="pass --force")
        rows = _read(file, file_format, label, prob, weight, labels, pos_label, max_rows)
        methods = (
            None if method == "auto" else method if method == "identity" or kind == "margin" else f"identity,{method}"
        )
        found = _compare(rows, methods, kind, cv, scoring, 0.95, title)
        name = found.chosen if method == "auto" else method
        one = clone(named_calibrator(name, len(found.classes))).set_params(input=kind, labels=list(found.classes))
        fitted = rows.told(lambda: one.fit(rows.piece.y_prob, rows.piece.y_true.to_numpy(), rows.piece.weight))
        save_calibrator(fitted, save, force=force)
        if html is not None:
            found.to_html(html)
        return found, name

    result, used = guarded(run)
    if as_json:
        saved = {"saved": str(save), "method": used, "comparison": result.to_dict()}
        typer.echo(json.dumps(saved, allow_nan=False))
    else:
        typer.echo(str(result))
    if used != result.chosen:
        typer.echo(f"calibrant: {used} is saved, as asked for; cross-validation chose {result.chosen}", err=True)
    typer.echo(f"wrote {save}", err=True)
    if html is not None:
        typer.echo(f"wrote {html}", err=True)


def apply_command(
    model: Annotated[Path, typer.Argument(help="Calibrator saved by calibrant fix.")],
    file: FileArgument,
    out: Annotated[Path, typer.Option(help="File for the rows with calibrated probabilities.")],
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
        from .calibrators import load_calibrator
        from .reading import Table

        if str(out) == "-":
            raise ValueError("--out must name a file; standard output is not written to")
        _apart(("--out", out), ("the calibrator", model))
        check_free(out, force=force, advice="pass --force")
        calibrator = load_calibrator(model)
        with Table(file, file_format, as_text=True) as table:
            return _apply(calibrator, table, prob, suffix, out, out_format)

    rows = guarded(run)
    typer.echo(f"wrote {out}: {rows:,} rows", err=True)


@dataclass(frozen=True)
class _Rows:
    """Rows to compare or fit with, and where in the file they are."""

    name: str
    columns: Columns
    piece: Piece
    numbers: AnyArray

    def told(self, action: Callable[[], Done]) -> Done:
        """Do something; a complaint about a row names its number in the file."""
        try:
            return action()
        except (ValueError, TypeError) as error:
            raise type(error)(in_file(str(error), lambda row: int(self.numbers[row]))) from error


def _read(
    file: str,
    file_format: str | None,
    label: str,
    prob: list[str] | None,
    weight: str | None,
    labels: str | None,
    pos_label: str | None,
    max_rows: int | None,
) -> _Rows:
    from .reading import Table

    with Table(file, file_format) as table:
        columns = find_columns(table, label, prob, weight, labels, pos_label)
        most = max_rows or min(_MOST_ROWS, max(_MOST_NUMBERS // len(columns.probs), 1000))
        piece, numbers = table.sample(columns.label, columns.probs, columns.weight, most, 0, PIECE_ROWS)
        total = table.n_rows()
        if total > len(numbers):
            typer.echo(f"calibrant: a random {len(numbers):,} of {total:,} rows are used (--max-rows)", err=True)
        return _Rows(Path(table.name).name, columns, piece, numbers)


def _compare(
    rows: _Rows, methods: str | None, kind: str, cv: int, scoring: str, level: float, title: str | None
) -> CalibratorComparison:
    from .calibrators import named_calibrator
    from .reporting.compare import compare_calibrators

    columns, piece = rows.columns, rows.piece
    one = len(columns.probs) == 1
    n_classes = 2 if one else len(columns.probs)
    candidates = None if methods is None else {m: named_calibrator(m, n_classes) for m in methods.split(",")}
    labels = _labels(columns)
    return rows.told(
        lambda: compare_calibrators(
            piece.y_prob,  # with names, which labels may go by
            piece.y_true.to_numpy(),
            candidates=candidates,
            cv=cv,
            scoring=scoring,
            level=level,
            sample_weight=piece.weight,
            input=kind,
            labels=labels,
            progress=on_terminal(),
            title=title or f"Calibrators of {rows.name}",
        )
    )


def _labels(columns: Columns) -> list[Any] | None:
    """Labels of the columns; of a single one both, the one that it speaks of last."""
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


def _apart(output: tuple[str, Path | None], *others: tuple[str, Any]) -> None:
    """ValueError where an output would replace something else that the command reads or writes."""
    name, path = output
    for what, other in others:
        if path is not None and other is not None and Path(other).resolve() == path.resolve():
            raise ValueError(f"{name} {path} is {what}: choose another name")


def _apply(
    calibrator: Calibrator, table: Table, prob: list[str] | None, suffix: str, out: Path, out_format: str | None
) -> int:
    """Write calibrated rows; returns how many."""
    from .reading import FORMATS, format_of

    chosen = out_format or format_of(out) or table.file_format
    if chosen not in FORMATS:
        raise ValueError(f"--out-format must be one of {', '.join(FORMATS)}; got {chosen!r}")
    names = [str(name) for name in getattr(calibrator, "feature_names_in_", ())]
    known = bool(names) and set(names) <= set(table.columns)
    columns = names if prob is None and known else probability_columns(table, prob, set())
    if set(columns) == set(names):
        columns = names  # whatever their order in the file
    expected = int(calibrator.n_features_in_)
    if len(columns) != expected:
        raise ValueError(
            f"the calibrator was fitted to {expected} column{'s' * (expected > 1)}, and --prob names {len(columns)}: "
            f"{', '.join(columns[:6])}"
        )
    written = [name + suffix for name in columns]
    there = [name for name in written if suffix and name in table.columns]
    if there:
        raise ValueError(f"--suffix {suffix!r}: there is a column {there[0]!r} already")
    schema = table.schema
    kinds = {
        new: schema[old] if schema[old].is_float() else pl.Float64() for new, old in zip(written, columns, strict=True)
    }
    failed: list[Exception] = []
    with progress_bar("calibrating rows", table.n_rows(), shown=on_terminal()) as advance:
        rows = 0

        def calibrated() -> Iterator[pl.DataFrame]:
            nonlocal rows
            for batch in table.batches(None, PIECE_ROWS):
                try:
                    p = _probabilities(calibrator, batch, columns, named=columns == names)
                except (ValueError, TypeError) as error:
                    failed.append(ValueError(in_file(str(error), partial(add, rows))))
                    raise
                rows += batch.height
                advance(batch.height)
                new = [pl.Series(n, p[:, i], dtype=kinds[n]) for i, n in enumerate(written)]
                yield batch.with_columns(new)

        with replacing(out) as temporary:
            try:
                _write(calibrated, schema | kinds, temporary, chosen, "\t" if out.suffix.lower() == ".tsv" else ",")
            except (ValueError, TypeError, pl.exceptions.PolarsError) as error:
                if failed:  # the complaint about a row comes back as it was or wrapped, without the rows before
                    raise failed[0] from error
                raise
    return rows


def _probabilities(calibrator: Calibrator, batch: Any, columns: list[str], *, named: bool) -> AnyArray:
    """Calibrated probabilities in the order of the columns, (n, columns)."""
    from .calibrators.base import in_column_order, predict_unnamed
    from .reading import as_numbers, score_columns

    scores = score_columns(as_numbers(batch, columns), columns)
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
