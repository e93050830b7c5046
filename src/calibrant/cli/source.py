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

    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="CSV, Parquet, NDJSON or Arrow file, or the log of an LLM evaluation; - is standard input.",
        ),
    ]
    label: Annotated[
        str, typer.Option(help="Column of observed labels; for several labels per row (report only), columns a,b,c.")
    ] = "y_true"
    prob: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns of probabilities: one (binary), a,b,c or a pattern like 'p_*'. Default: y_prob, else p_*."
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
            "--format", help="Format of FILE: csv, parquet, ndjson or arrow. Default: from its name or contents."
        ),
    ] = None
    score: Annotated[
        str | None,
        typer.Option(
            help="Score of an LLM log that marks right answers, such as acc_norm, 'exact_match,strict-match', a scorer."
        ),
    ] = None

    @property
    def name(self) -> str:
        """For titles."""
        return "standard input" if self.file == "-" else Path(self.file).name

    def table(self) -> FileTable:
        """The file, to be closed; a log of an LLM evaluation as a table of its answers."""
        from ..data.tables import FileTable
        from .log_table import of_answers, opened_log

        named = self.label != "y_true" or self.prob is not None
        log = opened_log(self.file, self.score)
        return log or of_answers(FileTable(self.file, self.file_format), named, self.score)

    def label_columns(self, table: Headed) -> list[str]:
        """Columns of several labels, of a list that was typed; else none."""
        if "," not in self.label or self.label in table.columns:
            return []
        return [table.find_one(name.strip(), "--label") for name in self.label.split(",")]

    def probability_columns(self, table: Headed, aside: Collection[str] = ()) -> list[str]:
        """Columns of probabilities, without some others."""
        given = [one for p in self.prob or [] for one in ([p] if p in table.columns else p.split(","))]
        patterns = given or (["y_prob"] if "y_prob" in table.columns else ["p_*"])
        found = list(dict.fromkeys(c for p in patterns for c in table.find(p, "--prob") if c not in aside))
        if not found:
            raise ValueError(f"--prob {' '.join(patterns)}: already used for labels, weights, groups or another option")
        return found

    def with_subgroups(
        self, table: FileTable, patterns: Sequence[str], option: str = "--by", *, several: bool = False
    ) -> tuple[FileColumns, list[str]]:
        """Columns of the file, and those of subgroups (or of another option), which have no other role."""
        by = list(dict.fromkeys(c for pattern in patterns for c in table.find(pattern, option)))
        columns = self.columns(table, aside=by, several=several)
        if clash := [c for c in by if c in columns.names]:
            raise ValueError(f"{option} {clash[0]}: this column is already used for labels, weights or --groups")
        table.read_as(labels=by)
        return columns, by

    def columns(self, table: FileTable, aside: Collection[str] = (), *, several: bool = False) -> FileColumns:
        """Columns of the file; patterns leave out those ``aside``. ValueError for missing or conflicting columns.

        ``several``: whether the command takes rows that have several labels.
        """
        from ..data.columns import named_labels, some
        from ..data.labels import labels_in_order

        truths = self.label_columns(table)
        if truths and not several:
            raise ValueError(
                f"--label {self.label}: only calibrant report takes several labels; name one label's column, and its "
                "probabilities with --prob"
            )
        label = "" if truths else table.find_one(self.label, "--label")
        weight = None if self.weight is None else table.find_one(self.weight, "--weight")
        groups = table.groups if self.groups is None else table.find_one(self.groups, "--groups")
        probs = self.probability_columns(
            table, {label, *truths, *aside, *(c for c in (weight, groups) if c is not None)}
        )
        if groups is not None and groups in (label, weight, *truths, *probs):
            raise ValueError(f"--groups {groups}: this column is already used for labels, weights or probabilities")
        table.read_as([groups] if truths else [label, groups], [*truths, *probs, weight])
        if weight is not None:
            table.check_numeric(weight, " to be weights")
        if truths:
            return self._several(table, truths, probs, weight, groups)
        seen = table.distinct(label, shares=len(probs) <= 2)
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

    def _several(
        self, table: FileTable, truths: list[str], probs: list[str], weight: str | None, groups: str | None
    ) -> FileColumns:
        """Columns of several labels, which are named after them."""
        if len(truths) != len(probs):
            raise ValueError(f"--label names {len(truths)} columns and --prob {len(probs)}: the numbers must be equal")
        if self.pos_label is not None:
            raise ValueError(f"--pos-label is for one label per row; --label names {len(truths)} columns")
        labels: list[Any] = truths if self.labels is None else self.labels.split(",")
        return FileColumns(table, "", probs, weight, groups, labels, labels, None, truths)


@dataclass(frozen=True)
class FileColumns:
    """Columns of an open file, and its labels.

    Attributes
    ----------
    table : FileTable
    label, weight, groups : str
    probs : list of str
    seen : list
        Distinct labels in the file, sorted.
    labels : list or None
        Labels of the columns of probabilities, in order, or both labels of a single column, where they are known.
    positive : label or None
        Label whose probability a single column contains, if given.
    truths : list of str
        Columns of several labels; then ``label`` is empty.
    """

    table: FileTable
    label: str
    probs: list[str]
    weight: str | None
    groups: str | None
    seen: list[Any]
    labels: list[Any] | None
    positive: Any
    truths: Sequence[str] = ()

    @property
    def names(self) -> list[str]:
        """All columns that are read."""
        return [*(self.truths or [self.label]), *self.probs, *(c for c in (self.weight, self.groups) if c is not None)]

    @property
    def meaning(self) -> dict[str, Any]:
        """Labels, as arguments of the library."""
        return {"labels": self.labels, "pos_label": self.positive}

    def notion(self, text: str) -> str | Notion:
        """The notion that was typed; for several labels "auto" is "multilabel"."""
        if self.truths and text == "auto":
            return "multilabel"
        return typed_notion(text, self.seen if self.labels is None else self.labels)

    def pieces(self, size: int | None = None) -> Iterator[FileRows]:
        """Rows by pieces of ``size`` (None: all at once)."""
        start = 0
        for batch in self.table.batches(self.names, size):
            if batch.height:
                yield self.rows(batch, range(start, start + batch.height))
                start += batch.height

    def predictions(self, rows: FileRows | None = None, sum_tolerance: float | None = None) -> Predictions:
        """Some or all rows, validated."""
        from ..data.validation import as_predictions

        rows = next(self.pieces()) if rows is None else rows
        options: dict[str, Any] = {"sample_weight": rows.weight, "sum_tolerance": sum_tolerance, **self.meaning}
        options["multilabel"] = True if self.truths else None
        return as_predictions(rows.y_true, rows.y_prob, groups=rows.groups, **options)

    def rows(self, frame: Any, numbers: Sequence[int] | AnyArray) -> FileRows:
        """Rows of a frame with these columns."""
        from ..data.tables import score_columns

        weight = None if self.weight is None else frame[self.weight].to_numpy()
        groups = None if self.groups is None else frame[self.groups]
        truth = frame.select(self.truths) if self.truths else frame[self.label]
        return FileRows(truth, score_columns(frame, self.probs), weight, numbers, groups)


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
