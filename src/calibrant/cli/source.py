"""What commands read: options that name a file and its columns (`Source`), what they are (`FileColumns`), and rows."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ..data.predictions import Predictions
    from ..data.tables import FileTable, Headed
    from ..data.types import AnyArray
    from ..frames import FrameSubgroups
    from ..measure.streaming import Accumulator
    from ..notions import Notion

#: Files above this size are streamed in pieces instead of being loaded.
STREAM_ABOVE_BYTES = 256 * 2**20
PIECE_ROWS = 500_000

EngineOption = Annotated[
    str | None,
    typer.Option(help="Engine: polars, duckdb, dask or spark. FILE may then be a pattern or a (partitioned) folder."),
]
ByOption = Annotated[str | None, typer.Option(help="Column of subgroups: one result for each value. Needs --engine.")]
SqlOption = Annotated[str | None, typer.Option(help="A query in place of FILE. Needs --engine duckdb.")]
DatabaseOption = Annotated[str | None, typer.Option(help="Database file of --sql, which is only read.")]
FileArgument = Annotated[str, typer.Argument(help="CSV, Parquet, NDJSON or Arrow file; - reads standard input.")]
LabelOption = Annotated[str, typer.Option(help="Column of observed labels.")]
ProbOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Column of probabilities: one (binary), several, or a glob such as 'p_*'. Default: y_prob, else p_*."
    ),
]
WeightOption = Annotated[str | None, typer.Option(help="Column of sample weights.")]
GroupsOption = Annotated[
    str | None, typer.Option(help="Column of the group of each row (a game, a patient): its rows are not independent.")
]
HtmlOption = Annotated[Path | None, typer.Option(help="Write a page here; - is standard output.")]
LabelsOption = Annotated[
    str | None, typer.Option(help="Labels, a,b,c: of the columns so named, else of the columns in order.")
]
PosLabelOption = Annotated[str | None, typer.Option(help="Label that a single column is the probability of.")]
FormatOption = Annotated[
    str | None, typer.Option("--format", help="csv, parquet, ndjson or arrow; default: told from the file.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
ReplaceOption = Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")]


@dataclass(frozen=True)
class Source:
    """A file of predictions and what the options of these names say of it, as they were typed."""

    path: str
    file_format: str | None = None
    label: str = "y_true"
    prob: Sequence[str] | None = None
    weight: str | None = None
    labels: str | None = None
    pos_label: str | None = None
    groups: str | None = None
    engine: str | None = None
    by: str | None = None
    sql: str | None = None
    database: str | None = None

    @property
    def name(self) -> str:
        """For titles."""
        if self.sql is not None:
            return "a query"
        if has_magic(self.path) and not Path(self.path).exists():
            return self.path
        return "standard input" if self.path == "-" else Path(self.path).name

    def check(self) -> None:
        """ValueError for options that do not go together."""
        if (self.sql is None) == (not self.path):
            raise ValueError("give FILE, or --sql with a query: one of both")
        if self.database is not None and self.sql is None:
            raise ValueError("--database is what --sql asks: give --sql")
        if self.engine is None and self.sql is not None:
            raise ValueError("--sql needs --engine duckdb")
        if self.engine is None and self.by is not None:
            raise ValueError(
                "--by needs --engine, which makes one result per subgroup in a pass; or use calibrant subgroups"
            )
        if self.by is not None and self.groups is not None:
            raise ValueError("--by makes one result per subgroup, and --groups is of all rows: leave out one of them")
        several = not Path(self.path).exists() and has_magic(self.path)
        if self.engine is None and (several or (self.path and Path(self.path).is_dir())):
            what = "a pattern" if several else "a directory"
            raise ValueError(f"{self.path} is {what}: give a file, or --engine polars for all files that it names")

    def taken(self, out: Path | None) -> dict[str, Any]:
        """Files that are read, among which an output may not be, as far as it needs to be told."""
        if self.engine is None or self.sql is not None or out is None:
            return {"the file that is read": self.path or None, "the database that is read": self.database}
        from .engines import Files

        return taken_among(out, Files.of(self.path, self.file_format).paths)

    def sums(self, settings: Mapping[str, Any]) -> Accumulator | FrameSubgroups:
        """Sums of all rows, or of each subgroup of --by, that the engine makes; settings are those of from_frame."""
        from ..data.progress import working
        from ..frames import from_frame
        from .engines import opened

        with opened(str(self.engine), self.path or None, self.file_format, self.sql, self.database) as lazy:
            label = lazy.find_one(self.label, "--label")
            named = {"weight": self.weight, "by": self.by, "groups": self.groups}
            aside = {role: lazy.find_one(c, f"--{role}") for role, c in named.items() if c is not None}
            probs = self.probability_columns(lazy, {label, *aside.values()})
            kind = [lazy.example(label)]
            options = {
                "labels": None if self.labels is None else [typed(v, kind) for v in self.labels.split(",")],
                "pos_label": None if self.pos_label is None else typed(self.pos_label, kind),
                "notion": typed_notion(settings["notion"], kind),
            }
            with working(f"reading with {self.engine}"):
                return from_frame(
                    lazy.frame,
                    label=label,
                    prob=probs[0] if len(probs) == 1 else probs,
                    **{**aside, **settings, **options},
                )

    def table(self, *, as_text: bool = False) -> FileTable:
        """The file, to be closed."""
        from ..data.tables import FileTable

        return FileTable(self.path, self.file_format, as_text=as_text)

    def probability_columns(self, table: Headed, aside: Collection[str] = ()) -> list[str]:
        """Columns of probabilities, without some others."""
        patterns = self.prob or (["y_prob"] if "y_prob" in table.columns else ["p_*"])
        found = list(dict.fromkeys(c for p in patterns for c in table.find(p, "--prob") if c not in aside))
        if not found:
            raise ValueError(f"--prob {' '.join(patterns)}: names no column but the label's and the weight's")
        return found

    def columns(self, table: FileTable, aside: Collection[str] = ()) -> FileColumns:
        """Columns of the file, where patterns leave some aside; ValueError says what is missing or at odds."""
        from ..data.columns import named_labels, some
        from ..data.labels import labels_in_order

        label = table.find_one(self.label, "--label")
        weight = None if self.weight is None else table.find_one(self.weight, "--weight")
        if weight is not None:
            table.check_numeric(weight, " to be weights")
        groups = None if self.groups is None else table.find_one(self.groups, "--groups")
        probs = self.probability_columns(table, {label, *aside, *(c for c in (weight, groups) if c is not None)})
        if groups is not None and groups in (label, weight, *probs):
            raise ValueError(f"--groups {groups}: this column is read as something else")
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
                f"{probs[0]!r}: name a column a label with --prob"
            )
        return FileColumns(table, label, probs, weight, groups, seen, given, positive)


@dataclass(frozen=True)
class FileColumns:
    """Columns of an open file, and what its labels are.

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
        The label that a single column is the probability of, where that was said.
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
        """What the library is told of the labels."""
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
        """Some rows, or all, judged."""
        from ..data.validation import as_predictions

        rows = next(self.pieces()) if rows is None else rows
        options: dict[str, Any] = {"sample_weight": rows.weight, "sum_tolerance": sum_tolerance, **self.meaning}
        return as_predictions(rows.y_true, rows.y_prob, groups=rows.groups, **options)

    def rows(self, frame: Any, numbers: Sequence[int] | AnyArray) -> FileRows:
        """Rows of a frame that holds the columns."""
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
    """A complaint about a row names its number in the file, not in what was read of it."""
    try:
        yield
    except (ValueError, TypeError) as error:
        pattern = r"\brow (\d+)\b"
        raise ValueError(re.sub(pattern, lambda row: f"row {numbers[int(row[1])]}", str(error), count=1)) from error


def taken_among(out: Path | None, files: Iterable[str | Path]) -> dict[str, Any]:
    """The one of many files that are read that an output would replace."""
    there = out is not None and out.exists()
    return {"a file that is read": next((f for f in files if there and os.path.samefile(f, str(out))), None)}


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
        raise ValueError(f"label {text!r} is not among the labels of the file, which are {kind}")
    return value
