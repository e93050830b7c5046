"""One grouped aggregation for one column of probabilities: its key, what is added, and what makes a row bad."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from ..data.types import AnyArray, FloatArray, Label
from ..sums import Bins, Edges
from .columns import Columns, collected, known

#: Codes of outcomes: not the label, the label, a bad row, and the label -1.
OTHER, HIT, BAD, MINUS = range(4)
_OUTCOMES = 4
_PREFIX = "_calibrant_"


@dataclass(frozen=True, eq=False)
class KeyTable:
    """Sums of a frame's rows by key, decoded: one entry a key in each column.

    Attributes
    ----------
    by : list or None
        Value of the column of subgroups.
    outcome, cell : ndarray of int
    bins : tuple of ndarray of int
        Slot of each of the bins that were asked for.
    sums : mapping of name to ndarray
        ``n`` rows; ``w, w2, parts`` sums of weights, of their squares, and rows whose weight is no whole number;
        ``offset`` of positions within cells, ``square`` of scores and ``loss`` in nats; weighted all.
    """

    by: list[Any] | None
    outcome: AnyArray
    cell: AnyArray
    bins: tuple[AnyArray, ...]
    sums: dict[str, FloatArray]

    def where(self, some: AnyArray) -> KeyTable:
        """Some of the keys."""
        kept = {name: values[some] for name, values in self.sums.items()}
        return KeyTable(None, self.outcome[some], self.cell[some], tuple(b[some] for b in self.bins), kept)

    def split(self) -> dict[Label, KeyTable]:
        """The keys of each subgroup; those of all rows under None, where there are no subgroups."""
        if self.by is None:
            return {None: self}
        number: dict[Label, list[int]] = {}
        for place, value in enumerate(self.by):
            number.setdefault(known(value), []).append(place)
        return {value: self.where(np.array(places)) for value, places in number.items()}


def bad_conditions(c: Columns) -> list[tuple[str, Any]]:
    """What may be wrong with a row, and when, in order: for the second query that says what is."""
    label = nw.col(c.label)
    found: list[tuple[str, Any]] = [(f"{c.label!r} is missing", label.is_null())]
    known = _is_any(label, _possible(c))
    found.append((f"{c.label!r} is none of the labels {list(_possible(c))!r}", ~known))
    for name in c.probs:
        p = nw.col(name)
        found.append((f"{name!r} is missing", p.is_null()))
        found.append((f"{name!r} is no number in [0, 1]", ~_between(p, -c.range_tolerance, 1 + c.range_tolerance)))
    if len(c.probs) > 1:
        total = nw.sum_horizontal(*(nw.col(p).cast(nw.Float64) for p in c.probs))
        found.append((f"probabilities do not sum to 1 within {c.sum_tolerance:g}", (total - 1).abs() > c.sum_tolerance))
    if c.weight is not None:
        w = nw.col(c.weight)
        found.append((f"{c.weight!r} is missing", w.is_null()))
        found.append((f"{c.weight!r} is no finite number >= 0", ~weight_fits(w)))
    return found


def aggregate(c: Columns, needs: Sequence[Bins], cells: int) -> KeyTable:
    """Sums by key of the rows of a frame with one column of probabilities, by one grouped aggregation."""
    kind = nw.Float32 if c.dtype == np.float32 else nw.Float64
    probability, label = nw.col(c.probs[0]).cast(kind), nw.col(c.label)
    good = _between(probability, -c.range_tolerance, 1 + c.range_tolerance)
    if c.weight is not None:
        good = good & weight_fits(nw.col(c.weight))
    positive = c.positive or 0
    codes = {c.classes[1 - positive]: OTHER, c.classes[positive]: HIT} | ({} if c.told else {-1: MINUS})
    outcome: Any = nw.lit(BAD)
    for value, code in codes.items():
        outcome = nw.when(good & (label == value)).then(nw.lit(code)).otherwise(outcome)
    first: dict[str, Any] = {
        "s": nw.when(good).then(probability.clip(0, 1)).otherwise(nw.lit(0.0, kind)),
        "o": outcome.cast(nw.Float64),
    }
    if c.weight is not None:
        first["w"] = nw.when(good).then(nw.col(c.weight).cast(nw.Float64)).otherwise(nw.lit(0.0))
    s, o, w = nw.col(_PREFIX + "s"), nw.col(_PREFIX + "o"), nw.col(_PREFIX + "w")
    x = s.cast(nw.Float64)
    # Cells are closed where a tie of both labels goes to the class that the columns are not of.
    ceiled = positive == 1
    place = x * float(cells)
    cell = place.ceil() if ceiled else place.floor()
    sizes = [need.edges.n_bins + 2 for need in needs]
    key = o
    for need, size in zip(needs, sizes, strict=True):
        key = key * float(size) + _slot(need.edges, s, x, c.eps, kind)
    key = key * float(cells + 1) + cell
    large = _OUTCOMES * int(np.prod(sizes)) * (cells + 1) >= 2**31
    chance = nw.when(o == nw.lit(float(HIT))).then(x).otherwise(1.0 - x)
    loss = nw.when(chance > 0).then(-chance.log()).otherwise(nw.lit(float("inf")))
    added = {"offset": place - cell, "square": x * x, "loss": loss}
    if c.weight is not None:
        added = {n: nw.when(w > 0).then(v * w).otherwise(nw.lit(0.0)) for n, v in added.items()}
        added |= {"w": w, "w2": w * w, "parts": (w != w.floor()).cast(nw.Float64)}
    names = [_PREFIX + n for n in added]
    keys = [_PREFIX + "k"] if c.by is None else [c.by, _PREFIX + "k"]
    frame = c.frame.with_columns(**{_PREFIX + n: v for n, v in first.items()})
    second = {_PREFIX + n: v for n, v in added.items() if n != "w"}
    frame = frame.with_columns(**second, **{_PREFIX + "k": key.cast(nw.Int64 if large else nw.Int32)})
    table = collected(frame.group_by(*keys).agg(nw.len().alias(_PREFIX + "n"), *(nw.col(n).sum() for n in names)))
    code: Any = np.asarray(table[_PREFIX + "k"].to_numpy()).astype(np.int64)
    code, at = np.divmod(code, cells + 1)
    slots = []
    for size in reversed(sizes):
        code, slot = np.divmod(code, size)
        slots.append(slot)
    sums: dict[str, FloatArray] = {
        n: np.asarray(table[_PREFIX + n].to_numpy()).astype(np.float64) for n in ("n", *added)
    }
    by = None if c.by is None else table[c.by].to_list()
    return KeyTable(by, code, at, tuple(reversed(slots)), sums)


def _between(value: Any, low: float, high: float) -> Any:
    return (value >= low) & (value <= high)


def weight_fits(weight: Any) -> Any:
    """Whether a weight, of an expression or an array, is finite and not negative."""
    return (weight >= 0) & (weight < float("inf"))


def _possible(c: Columns) -> tuple[Any, ...]:
    return c.classes if c.told else (-1, *c.classes)


def _is_any(value: Any, allowed: Sequence[Any]) -> Any:
    found = value == allowed[0]
    for other in allowed[1:]:
        found = found | (value == other)
    return found


def _slot(edges: Edges, s: Any, x: Any, eps: float, kind: Any) -> Any:
    """What :meth:`Edges.slots` says, with the roundings of the scores' dtype."""
    if not edges.uniform:
        return nw.sum_horizontal(*((x > float(v)).cast(nw.Float64) for v in edges.limits(eps))) + 1.0
    low, factor, shift = edges.steps(eps)
    if low == 0:
        position = s * nw.lit(factor, kind)
    else:
        position = ((s - nw.lit(low, kind)) * nw.lit(factor, kind)).clip(0, edges.n_bins)
    return (position + nw.lit(shift, kind)).floor().cast(nw.Float64)
