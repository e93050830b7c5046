"""What commands read: options for columns, and the columns of a file that they name."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from .notions import Notion
    from .reading import Table

#: Files above this size are streamed in pieces instead of being loaded.
STREAM_ABOVE_BYTES = 256 * 2**20
PIECE_ROWS = 500_000

FileArgument = Annotated[str, typer.Argument(help="CSV, Parquet, NDJSON or Arrow file; - reads standard input.")]
LabelOption = Annotated[str, typer.Option(help="Column of observed labels.")]
ProbOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Column of probabilities: one (binary), several, or a glob such as 'p_*'. Default: y_prob, else p_*."
    ),
]
WeightOption = Annotated[str | None, typer.Option(help="Column of sample weights.")]
LabelsOption = Annotated[
    str | None, typer.Option(help="Labels, a,b,c: of the columns so named, else of the columns in order.")
]
PosLabelOption = Annotated[str | None, typer.Option(help="Label that a single probability column speaks of.")]
FormatOption = Annotated[
    str | None, typer.Option("--format", help="csv, parquet, ndjson or arrow; default: told from the file.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
ReplaceOption = Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")]


@dataclass(frozen=True)
class Columns:
    """Columns of a file, and what its labels are.

    Attributes
    ----------
    label, weight : str
    probs : list of str
    seen : list
        Distinct labels in the file, sorted.
    labels : list or None
        Labels of the columns of probabilities, in order, or both labels of a single column, where they are known.
    positive : label or None
        What a single column speaks of, where that was said.
    """

    label: str
    probs: list[str]
    weight: str | None
    seen: list[Any]
    labels: list[Any] | None
    positive: Any


def probability_columns(table: Table, prob: list[str] | None, others: set[str | None]) -> list[str]:
    """Columns of probabilities that options name, without some others."""
    patterns = prob or (["y_prob"] if "y_prob" in table.columns else ["p_*"])
    found = list(dict.fromkeys(c for p in patterns for c in table.find(p, "--prob") if c not in others))
    if not found:
        raise ValueError(f"--prob {' '.join(patterns)}: names no column but the label's and the weight's")
    return found


def find_columns(
    table: Table, label: str, prob: list[str] | None, weight: str | None, labels: str | None, pos_label: str | None
) -> Columns:
    """Columns that options name; ValueError says what is missing or at odds."""
    from ._columns import named_labels, some
    from ._labels import labels_in_order

    label_column = _one(table.find(label, "--label"), "--label", label)
    weight_column = None if weight is None else _one(table.find(weight, "--weight"), "--weight", weight)
    columns = probability_columns(table, prob, {label_column, weight_column})
    seen = table.distinct(label_column)
    if not seen:
        raise ValueError(f"{table.name} has no rows")
    if len(seen) > 10_000:
        raise ValueError(f"column {label_column!r} has {len(seen)} distinct values: is it the label?")
    given = None if labels is None else [typed(v, seen) for v in labels.split(",")]
    positive = None if pos_label is None else typed(pos_label, seen)
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
    return Columns(label_column, columns, weight_column, seen, given, positive)


def in_file(message: str, row_of: Callable[[int], int]) -> str:
    """Count the row that a message names from the start of the file, not of what was read of it."""
    return re.sub(r"\brow (\d+)\b", lambda found: f"row {row_of(int(found[1]))}", message, count=1)


def typed(text: str, seen: list[Any]) -> Any:
    """A label typed on the command line, in the kind of the file's labels."""
    from ._columns import in_kind

    value = in_kind(text, seen[0])
    if value is None:
        kind = "true or false" if isinstance(seen[0], bool) else "integers"
        raise ValueError(f"label {text!r} is not among the labels of the file, which are {kind}")
    return value


def parse_notion(text: str, labels: list[Any]) -> str | Notion:
    """A notion typed on the command line; ``class-specific:LABEL`` with the label in the kind of the file's."""
    from .notions import ClassSpecific

    name, _, label = text.partition(":")
    if name == "class-specific" and label:
        return ClassSpecific(typed(label, labels))
    return text


def _one(found: list[str], role: str, pattern: str) -> str:
    if len(found) != 1:
        raise ValueError(f"{role} {pattern!r} matches {len(found)} columns: {', '.join(found[:6])}")
    return found[0]
