"""Input of commands: options that name a file and its columns (`Source`), the columns (`FileColumns`), and rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..data.predictions import Predictions
    from ..data.tables import FileTable, Headed
    from ..data.types import AnyArray
    from ..notions import Notion

#: Files above this size are streamed in pieces instead of being loaded.
STREAM_ABOVE_BYTES = 256 * 2**20
PIECE_ROWS = 500_000


class Without(frozenset[str]):
    """Options of a dataclass that a command lacks."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file of predictions and its columns: the options of these names, as typed."""

    file: Annotated[str, typer.Argument(help="CSV, Parquet, NDJSON or Arrow file; - reads standard input.")]
    label: Annotated[str, typer.Option(help="Column of observed labels.")] = "y_true"
    prob: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of probabilities: one (binary), several, or a pattern like 'p_*'. Default: y_prob, else p_*."
        ),
    ] = None
    weight: Annotated[str | None, typer.Option(help="Column of sample weights.")] = None
    groups: Annotated[
        str | None,
        typer.Option(
            help="Column that names groups of dependent rows (games, patients); intervals and tests allow for them."
        ),
    ] = None
    labels: Annotated[
        str | None, typer.Option(help="Labels a,b,c, matched to columns by name, else in column order.")
    ] = None
    pos_label: Annotated[str | None, typer.Option(help="Label whose probability a single column contains.")] = None
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format", help="csv, parquet, ndjson or arrow; default: inferred from the file name or contents."
        ),
    ] = None

    @property
    def name(self) -> str:
        """For titles."""
        return "standard input" if self.file == "-" else Path(self.file).name

    def table(self, *, as_text: bool = False) -> FileTable:
        """The file, to be closed."""
        from ..data.tables import FileTable

        return FileTable(self.file, self.file_format, as_text=as_text)

    def probability_columns(self, table: Headed, aside: Collection[str] = ()) -> list[str]:
        """Columns of probabilities, without some others."""
        patterns = self.prob or (["y_prob"] if "y_prob" in table.columns else ["p_*"])
        found = list(dict.fromkeys(c for p in patterns for c in table.find(p, "--prob") if c not in aside))
        if not found:
            raise ValueError(f"--prob {' '.join(patterns)}: no column left besides labels and weights")
        return found

    def with_subgroups(self, table: FileTable, patterns: Sequence[str]) -> tuple[FileColumns, list[str]]:
        """Columns of the file, and those of subgroups, which have no other role."""
        by = list(dict.fromkeys(c for pattern in patterns for c in table.find(pattern, "--by")))
        columns = self.columns(table, aside=by)
        if clash := [c for c in by if c in columns.names]:
            raise ValueError(f"--by {clash[0]}: this column is already used for labels, weights or --groups")
        return columns, by

    def columns(self, table: FileTable, aside: Collection[str] = ()) -> FileColumns:
        """Columns of the file; patterns leave out those ``aside``. ValueError for missing or conflicting columns."""
        from ..data.columns import named_labels, some
        from ..data.labels import labels_in_order

        label = table.find_one(self.label, "--label")
        weight = None if self.weight is None else table.find_one(self.weight, "--weight")
        if weight is not None:
            table.check_numeric(weight, " to be weights")
        groups = None if self.groups is None else table.find_one(self.groups, "--groups")
        probs = self.probability_columns(table, {label, *aside, *(c for c in (weight, groups) if c is not None)})
        if groups is not None and groups in (label, weight, *probs):
            raise ValueError(f"--groups {groups}: this column is already used for labels, weights or probabilities")
        seen = table.distinct(label)
        if not seen:
            raise ValueError(f"{table.name} has no rows")
        if len(seen) > 10_000:
            raise ValueError(f"column {label!r} has {len(seen)} distinct values: is it the label?")
        given = None if self.labels is None else [typed(v, seen) for v in self.labels.split(",")]
        positive = None if self.pos_label is None else typed(self.pos_label, seen)
        if given is None and len(probs) > 1:
            named = named_labels(probs, seen, lambda value: table.first_row(label, value))
            given = list(labels_in_order(seen, len(probs)) if named is None else named)
        elif given is None and len(seen) == 2 and set(seen) != {0, 1}:
            given = seen  # a piece may hold one of them only
        elif given is None and len(seen) > 2:
            raise ValueError(
                f"column {label!r} has {len(seen)} labels ({some(seen)}) but there is one column of probabilities, "
                f"{probs[0]!r}: name one column per label with --prob"
            )
        return FileColumns(table, label, probs, weight, groups, seen, given, positive)


@dataclass(frozen=True)
class FileColumns:
    """Columns of an open file, and its labels.

    Attributes
    ----------
    table : Table
    label, weight, groups : str
    probs : list of str
    seen : list
        Distinct labels in the file, sorted.
    labels : list or None
        Labels of the columns of probabilities, in order, or both labels of a single column, where they are known.
    positive : label or None
        Label whose probability a single column contains, if given.
    """

    table: FileTable
    label: str
    probs: list[str]
    weight: str | None
    groups: str | None
    seen: list[Any]
    labels: list[Any] | None
    positive: Any

    @property
    def names(self) -> list[str]:
        """All that are read."""
        return [self.label, *self.probs, *(c for c in (self.weight, self.groups) if c is not None)]

    @property
    def meaning(self) -> dict[str, Any]:
        """Labels, as arguments of the library."""
        return {"labels": self.labels, "pos_label": self.positive}

    def notion(self, text: str) -> str | Notion:
        """A notion that was typed."""
        return typed_notion(text, self.seen if self.labels is None else self.labels)

    def pieces(self, size: int | None = None) -> Iterator[FileRows]:
        """Rows by pieces of ``size`` (None: all at once)."""
        start = 0
        for batch in self.table.batches(self.names, size):
            if batch.height:
                yield self.rows(batch, range(start, start + batch.height))
                start += batch.height

    def predictions(self, rows: FileRows | None = None, sum_tolerance: float | None = None) -> Predictions:
        """Some rows, or all, validated."""
        from ..data.validation import as_predictions

        rows = next(self.pieces()) if rows is None else rows
        options: dict[str, Any] = {"sample_weight": rows.weight, "sum_tolerance": sum_tolerance, **self.meaning}
        return as_predictions(rows.y_true, rows.y_prob, groups=rows.groups, **options)

    def rows(self, frame: Any, numbers: Sequence[int] | AnyArray) -> FileRows:
        """Rows of a frame with these columns."""
        from ..data.tables import score_columns

        weight = None if self.weight is None else frame[self.weight].to_numpy()
        groups = None if self.groups is None else frame[self.groups]
        return FileRows(frame[self.label], score_columns(frame, self.probs), weight, numbers, groups)


@dataclass(frozen=True)
class FileRows:
    """Rows of a file: labels, probabilities (a frame), weights, and their numbers in the file."""

    y_true: Any
    y_prob: Any
    weight: AnyArray | None
    numbers: Sequence[int] | AnyArray
    groups: Any = None


@contextmanager
def numbered(numbers: Sequence[int] | AnyArray) -> Iterator[None]:
    """Errors about a row give its number in the file, not in the piece that was read."""
    try:
        yield
    except (ValueError, TypeError) as error:
        pattern = r"\brow (\d+)\b"
        raise ValueError(re.sub(pattern, lambda row: f"row {numbers[int(row[1])]}", str(error), count=1)) from error


def typed_notion(text: str, seen: list[Any]) -> str | Notion:
    """A notion that was typed; ``class-specific:LABEL`` with the label in the kind of the file's."""
    from ..notions import ClassSpecific

    name, _, label = text.partition(":")
    return ClassSpecific(typed(label, seen)) if name == "class-specific" and label else text


def typed(text: str, seen: list[Any]) -> Any:
    """A label typed on the command line, in the kind of the file's labels."""
    from ..data.columns import in_kind

    value = in_kind(text, seen[0])
    if value is None:
        kind = "true or false" if isinstance(seen[0], bool) else "integers"
        raise ValueError(f"label {text!r} is not a label of the file, whose labels are {kind}")
    return value
