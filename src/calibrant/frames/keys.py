"""One aggregation for one column of probabilities: its key, its sums, and the conditions for bad rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, NoReturn

import narwhals.stable.v2 as nw
import numpy as np

from ..data.predictions import COUNTED
from ..data.printing import number_of, printable
from ..data.types import AnyArray, FloatArray
from ..sums import Bins, Edges
from .frame_columns import FrameColumns, collected

#: Codes of outcomes: not the label, the label, a bad row, and the label -1.
OTHER, HIT, BAD, MINUS = range(4)
_OUTCOMES = 4
_PREFIX = "_calibrant_"
_REASON = _PREFIX + "reason"
#: Whole numbers up to these are exact, by type.
_HELD = {nw.Float32: 2.0**24, nw.Float64: 2.0**53}


@dataclass(frozen=True, eq=False)
class KeyTable:
    """Sums of a frame's rows by key, decoded: one entry per key in each column.

    Attributes
    ----------
    parts : tuple of array
        Values of the columns of subgroups and of periods.
    outcome : ndarray of int
    step : ndarray of int
        Twice the number of the cell for scores on its lower node; one more for scores within it.
    bins : tuple of ndarray of int
        Slot of each key in each requested set of bins.
    sums : mapping of name to ndarray
        ``n`` counts rows; ``w, w2, parts`` are sums of weights, of their squares, and rows whose weight is not a whole
        number; ``offset`` sums positions within cells, ``square`` squared scores, and ``loss`` the logarithms of the
        probabilities of the observed classes; all weighted.
    """

    parts: tuple[Any, ...]
    outcome: AnyArray
    step: AnyArray
    bins: tuple[AnyArray, ...]
    sums: dict[str, FloatArray]

    def where(self, some: Any) -> KeyTable:
        """Some of the keys."""
        kept = {name: values[some] for name, values in self.sums.items()}
        return KeyTable((), self.outcome[some], self.step[some], tuple(b[some] for b in self.bins), kept)

    @property
    def good(self) -> AnyArray:
        """Which keys belong to valid rows."""
        return np.asarray(self.outcome != BAD)

    @property
    def weight(self) -> FloatArray:
        """Sum of weights."""
        return self.sums["w" if "w" in self.sums else "n"]

    @property
    def squares(self) -> FloatArray:
        """Sum of squared weights."""
        return self.sums["w2" if "w" in self.sums else "n"]

    @property
    def integral(self) -> bool:
        """Whether weights count repeats."""
        with np.errstate(over="ignore"):  # weights whose squares are out of range are refused later
            total = float(self.weight.sum())
        return "w" not in self.sums or (not self.sums["parts"].any() and total <= COUNTED)

    def score(self, cells: int) -> FloatArray:
        """Sum of weighted scores."""
        with np.errstate(over="ignore"):
            return (self.sums["offset"] + self.step // 2 * self.weight) / cells


def bad_conditions(c: FrameColumns) -> list[tuple[str, Any]]:
    """Possible faults of a row and their conditions, in order, for the second query, which finds the fault."""
    found: list[tuple[str, Any]] = []
    possible = (0, 1) if c.truths else c.possible
    alone = not c.truths and set(possible) <= {-1, 0, 1}
    hint = ": pass pos_label=, the label whose probabilities are given" if alone else ""
    for name in c.truths or (c.label,):
        label = nw.col(name)
        found.append((f"{name!r} is missing", label.is_null()))
        found.append((f"{name!r} is not one of the labels {list(possible)!r}{hint}", ~_is_any(label, possible)))
    for name in c.probs:
        p = nw.col(name)
        found.append((f"{name!r} is missing", p.is_null()))
        found.append((f"{name!r} is not a number in [0, 1]", ~_between(p, -c.range_tolerance, 1 + c.range_tolerance)))
    if len(c.probs) > 1 and not c.truths:
        parts = [nw.col(p).cast(nw.Float64) for p in c.probs]
        # Dask does not see that a sum over columns has their rows; others would nest a thousand sums.
        total = reduce(add, parts) if c.frame.implementation.is_dask() else nw.sum_horizontal(*parts)
        found.append((f"probabilities do not sum to 1 within {c.sum_tolerance:g}", (total - 1).abs() > c.sum_tolerance))
    if c.weight is not None:
        w = nw.col(c.weight)
        found.append((f"{c.weight!r} is missing", w.is_null()))
        found.append((f"{c.weight!r} is not a finite number >= 0", ~weight_fits(w)))
    if c.groups is not None:
        found.append((f"{c.groups!r} is missing", no_group(c)))
    return found


def refuse(c: FrameColumns, n_bad: int, n: int) -> NoReturn:
    """ValueError with the number of bad rows, their fault, and one of them."""
    conditions = bad_conditions(c)
    reason: Any = nw.lit(len(conditions))
    for i, (_, wrong) in reversed(list(enumerate(conditions))):
        reason = nw.when(wrong).then(nw.lit(i)).otherwise(reason)
    marked = c.frame.with_columns(**{_REASON: reason})
    marked = marked.filter(nw.col(_REASON) < len(conditions))
    example = collected(marked.select(_REASON, *c.names).head(1))
    (row,) = example.rows(named=True)
    found = conditions[int(row.pop(_REASON))][0]
    shown = ", ".join(f"{printable(name)}={value!r}" for name, value in row.items())
    raise ValueError(
        f"frame has {number_of(n_bad, 'bad row')} of {n:,}; in one of them {found}: {shown}. "
        "Correct them, or drop them with on_invalid='drop'"
    )


def no_group(c: FrameColumns) -> Any:
    """Whether a row's group is missing."""
    group = nw.col(str(c.groups))
    missing = group.is_null()
    return missing | group.is_nan() if c.frame.collect_schema()[c.groups].is_float() else missing


def without_group(c: FrameColumns) -> tuple[int, int]:
    """Numbers of rows whose group is missing, and of all rows."""
    lost = c.frame.select(_calibrant_g=no_group(c).cast(nw.Int64), _calibrant_n=nw.lit(1, nw.Int64))
    table = collected(lost.select(nw.col("_calibrant_g").sum(), nw.col("_calibrant_n").sum()))
    return int(table["_calibrant_g"].to_list()[0] or 0), int(table["_calibrant_n"].to_list()[0] or 0)


def aggregate(c: FrameColumns, needs: Sequence[Bins], cells: int) -> KeyTable:
    """Sums by key of the rows of a frame with one column of probabilities, from one aggregation.

    Rows are assumed valid at first. If some are not, or have labels other than 0 and 1, a second aggregation checks
    each row.
    """
    # Spark's floor overflows where a score is not a number.
    if c.plain and not _is_spark(c.frame):
        found = _aggregated(c.frame, _as_they_are(c), c, needs, cells)
        if not (found.outcome == BAD).any():
            return found
    first = _looked_at(c)
    frame = c.frame.with_columns(**{_PREFIX + name: value for name, value in first.items()})
    return _aggregated(frame, {name: nw.col(_PREFIX + name) for name in first}, c, needs, cells)


def _is_spark(frame: Any) -> bool:
    return bool(frame.implementation.is_pyspark() or frame.implementation.is_pyspark_connect())


def _as_they_are(c: FrameColumns) -> dict[str, Any]:
    """Score, outcome and weight of a row, and whether they are valid."""
    s, o = nw.col(c.probs[0]), nw.col(c.label)
    found = {"s": s, "o": o, "good": _between(s, 0, 1)}
    if c.kind == nw.Boolean:
        found["o"] = o.cast(nw.Int8)
    else:
        found["good"] &= _between(o, 0, 1)
    if c.weight is not None:
        found["w"] = nw.col(c.weight).cast(nw.Float64)
        found["good"] &= weight_fits(nw.col(c.weight))
    return found


def _looked_at(c: FrameColumns) -> dict[str, Any]:
    """Score, outcome and weight; 0 in bad rows, whose outcome is BAD. Rounding noise beyond [0, 1] is clipped."""
    probability, label, positive = nw.col(c.probs[0]).cast(c.scores), nw.col(c.label), c.positive or 0
    good = _between(probability, -c.range_tolerance, 1 + c.range_tolerance)
    if c.weight is not None:
        good &= weight_fits(nw.col(c.weight))
    order = [HIT if label == c.classes[positive] else OTHER for label in c.classes]
    codes = zip(c.possible, order if c.told else [MINUS, *order], strict=True)
    outcome: Any = nw.lit(BAD)
    for value, code in codes:
        outcome = nw.when(good & (label == value)).then(nw.lit(code)).otherwise(outcome)
    found = {"s": nw.when(good).then(probability.clip(0, 1)).otherwise(nw.lit(0.0, c.scores)), "o": outcome}
    if c.weight is not None:
        found["w"] = nw.when(good).then(nw.col(c.weight).cast(nw.Float64)).otherwise(nw.lit(0.0))
    return found


def _aggregated(frame: Any, row: dict[str, Any], c: FrameColumns, needs: Sequence[Bins], cells: int) -> KeyTable:
    """Run one GROUP BY. Keys are whole numbers, computed in the scores' own type if exact there, and cast once."""
    sizes, steps = [need.edges.n_bins + 2 for need in needs], 2 * cells + 1
    largest = _OUTCOMES * float(np.prod(sizes)) * steps
    kind = c.scores if largest < _HELD[c.scores] else nw.Float64
    s, o, x = row["s"], row["o"], row["s"].cast(nw.Float64)
    # Powers of two scale without rounding. Twice the cell, and one more within it: nodes are distinct.
    place = s * nw.lit(float(cells), c.scores)
    cell = place.floor()
    key, unit = (cell + place.ceil()).cast(kind), float(steps)
    for need, size in zip(needs, sizes, strict=True):
        key += _slot(need.edges, s, x, c).cast(kind) * nw.lit(unit, kind)
        unit *= size
    key += o.cast(kind) * nw.lit(unit, kind)
    if "good" in row:
        key = nw.when(row["good"]).then(key).otherwise(nw.lit(unit * BAD, kind))
    chance = nw.when(o == HIT).then(x).otherwise(1.0 - x)
    if frame.implementation.is_pandas_like() or frame.implementation.is_dask():
        chance = chance.clip(5e-324)  # NumPy warns of the logarithm of 0, which the key shows
    added = {"offset": (place - cell).cast(nw.Float64), "square": x * x, "loss": chance.log()}
    if "w" in row:
        w = row["w"]
        added = {name: nw.when(w > 0).then(value * w).otherwise(nw.lit(0.0)) for name, value in added.items()}
        # Spark's floor overflows where a weight is beyond 64 bits.
        parts = w % 1 != 0 if _is_spark(frame) else w != w.floor()
        added |= {"w": w, "w2": w * w, "parts": parts.cast(nw.Float64)}
    names = {name: _PREFIX + name + "_of_row" for name in added}
    keys = [*c.parts, _PREFIX + "k"]
    of_rows = {names[name]: value for name, value in added.items()}
    of_rows[_PREFIX + "k"] = key.cast(nw.Int32 if largest < 2**31 else nw.Int64)
    sums = [nw.col(v).sum().alias(_PREFIX + name) for name, v in names.items()]
    table = collected(frame.with_columns(**of_rows).group_by(*keys).agg(nw.len().alias(_PREFIX + "n"), *sums))
    code: Any = np.asarray(table[_PREFIX + "k"].to_numpy()).astype(np.int64)
    places = []
    for size in (steps, *sizes):
        code, place = np.divmod(code, size)
        places.append(place)
    found: dict[str, FloatArray] = {}
    for name in ("n", *added):
        found[name] = np.asarray(table[_PREFIX + name].to_numpy()).astype(np.float64)
    return KeyTable(tuple(_values(table[name]) for name in c.parts), code, places[0], tuple(places[1:]), found)


def _values(column: Any) -> Any:
    """Values of a column: an array where they are whole numbers, else a list, with None for missing values."""
    return column.to_numpy() if column.dtype.is_integer() and not column.null_count() else column.to_list()


def _between(value: Any, low: float, high: float) -> Any:
    return (value >= low) & (value <= high)


def weight_fits(weight: Any) -> Any:
    """Whether a weight (an expression or an array) is finite and not negative."""
    return (weight >= 0) & (weight < float("inf"))


def _is_any(value: Any, allowed: Sequence[Any]) -> Any:
    found = value == allowed[0]
    for other in allowed[1:]:
        found = found | (value == other)
    return found


def _slot(edges: Edges, s: Any, x: Any, c: FrameColumns) -> Any:
    """As :meth:`Edges.slots`, with the rounding of the scores' dtype."""
    if not edges.uniform:
        return reduce(add, ((x > float(v)).cast(nw.Float64) for v in edges.limits(c.eps)), x * 0.0 + 1.0)
    low, factor, shift = (nw.lit(v, c.scores) for v in edges.steps(c.eps))
    position = s * factor if edges.values[0] == 0 else ((s - low) * factor).clip(0, edges.n_bins)
    return (position + shift).floor()
