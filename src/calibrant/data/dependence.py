"""Rows that belong together: which group each is of, and how much less they say than as many independent ones."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from .convert import to_array
from .types import AnyArray, FloatArray, IntArray
from .weights import of_variances

#: What cosines of the score's rank count: gaps of all scores alike matter most, rough ones are small.
_PARTS = (1.0, 0.5, 0.25)
#: Cosines that say how much rougher sums of residuals vary.
_ROUGH = (0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0)
#: Cells in which ranks are told.
_CELLS = 1024
#: The level at which few groups are allowed for, by Student's law in place of the normal one.
_LEVEL = 0.95
#: Rows of a cell of neighbouring scores, and rows in which a serial correlation is looked for.
_NEAR, _LOOKED_AT = 50, 1 << 16


def read_groups(groups: Any, n: int, name: str = "groups") -> AnyArray | None:
    """Judge the ``groups`` argument, or another of its kind: one value a row, none missing."""
    if groups is None:
        return None
    array, _ = to_array(groups, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (n,):
        raise ValueError(f"{name} must hold one value for each of {n} rows; got shape {array.shape}")
    if array.dtype.kind in "fc" and np.isnan(array).any():
        raise ValueError(f"{name} must not be missing; row {int(np.flatnonzero(np.isnan(array))[0])} is NaN")
    if array.dtype.kind in "mM" and np.isnat(array).any():
        raise ValueError(f"{name} must not be missing; row {int(np.flatnonzero(np.isnat(array))[0])} is NaT")
    if array.dtype.kind == "O":
        for row, value in enumerate(array):
            if value is None or value != value:
                raise ValueError(f"{name} must not be missing; row {row} is {value!r}")
        # Codes in order of appearance: values of several kinds have no order of their own.
        known: dict[Any, int] = {}
        try:
            array = np.array([known.setdefault(v, len(known)) for v in array])
        except TypeError:
            raise TypeError(f"{name} must be hashable values, such as names or numbers; got {array[0]!r}") from None
    return array


def group_codes(groups: AnyArray) -> IntArray:
    """Codes 0 … G - 1 in order of appearance, so that nothing depends on what groups are called."""
    _, first, of_row = np.unique(groups, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[of_row.reshape(-1)])


def group_keys(groups: Any) -> AnyArray:
    """Hashes of the distinct values of groups, sorted: 8 bytes each, the same in every process."""
    array, _ = to_array(groups, "groups")
    values = array.reshape(-1)
    distinct = dict.fromkeys(values.tolist()) if values.dtype.kind == "O" else np.unique(values).tolist()
    # Values that compare equal are one group, whatever holds them: 1, 1.0 and True.
    plain = (int(v) if isinstance(v, bool | float) and v == v // 1 else v for v in distinct)
    hashes = [blake2b(repr(v).encode(), digest_size=8).digest() for v in plain]
    return np.unique(np.frombuffer(b"".join(hashes), np.uint64))


def joined_groups(before: AnyArray | None, now: AnyArray | None) -> AnyArray | None:
    """Hashes of the groups of two pieces; ValueError where they share one, or only one piece has groups."""
    if before is None and now is None:
        return None
    if before is None or now is None:
        some, others = ("without", "with") if before is None else ("with", "without")
        raise ValueError(f"rows {some} groups were added before, and these are {others}: give groups for all, or none")
    if shared := np.intersect1d(before, now, assume_unique=True).size:
        raise ValueError(
            f"groups must not span pieces: {shared} of {now.size} were seen in an earlier one; add the rows of a group "
            "together"
        )
    return np.union1d(before, now)


def kish(mass: FloatArray) -> float:
    """Kish's number of units of these masses: with one that holds most of all there is hardly more than one."""
    squares = float(mass @ mass)
    return float(mass.sum() ** 2 / squares) if squares > 0 else 0.0


def design_effects(problems: Any, groups: IntArray, parts: tuple[float, ...] = _PARTS) -> FloatArray:
    r"""How many rows say as much as one independent row, of each of R problems side by side, (R,).

    With residuals ``r = o - s`` and cosines ``c_k = cos(kπu)`` of the rank u of the score, k = 0, 1, 2,

    .. math:: \frac{\sum_k h_k \frac{G}{G-1} \sum_g \big(\sum_{i \in g} w_i (c_{ik} r_i - m_k)\big)^2}
                   {\sum_k h_k \frac{n}{n-1} \sum_i w_i^2 (c_{ik} r_i - m_k)^2}, \qquad h = (1, ½, ¼),

    the variance of weighted means of residuals when groups are drawn over that when rows are, m_k the mean itself:
    exactly 1 where every row is its own group. Few groups, or one among them that holds most rows, leave it
    uncertain: it is multiplied by the squared ratio of Student's quantile to the normal one, with one degree of
    freedom less than Kish's number of groups. Never below 1, nor above the number of rows.

    ``parts`` are the h: ``(1.0,)`` for the mean residual alone.

    ``problems`` have rows ``scores``, ``outcomes``, ``weights`` with problem codes ``row``, as
    :class:`calibrant.data.problem.Problem`. Cost O(n + R G).

    Source: Kish (1965), *Survey sampling*, for the design effect; Rao & Scott (1984) for dividing counts by its mean.
    """
    return _effects(problems, groups, (parts,))[:, 0]


def design_parts(problems: Any, groups: IntArray) -> FloatArray:
    """Design effects of parts of the residuals of each of R problems, (R, 5).

    The mean that :func:`design_effects` takes, those of the constant and of the two cosines alone, and that of four
    rougher cosines together, k = 3 … 6.

    What a group has in common moves all its rows alike, so a shift varies as a few groups do while rough gaps vary
    nearly as independent rows do: one number for both is too small for the one and too large for the other.
    """
    return _effects(problems, groups, (_PARTS, *np.eye(len(_PARTS)).tolist(), _ROUGH))


def _effects(problems: Any, groups: IntArray, mixtures: Sequence[Sequence[float]]) -> FloatArray:
    """Design effects of cosines taken together in some ways, (R, mixtures)."""
    p, n_groups = problems, int(groups.max(initial=-1)) + 1
    count, row = len(p), p.row
    if p.n_samples == 0:
        return np.ones((count, len(mixtures)))
    scores = p.scores.astype(np.float64)
    low, high = p.domain
    residual = p.outcomes.astype(np.float64) - scores
    rank = _ranks(np.clip((scores - low) / (high - low), 0, 1), row, count)
    weight = np.ones(p.n_samples) if p.weights is None else p.weights
    alone = of_variances(weight, integral=p.integral)
    slot = row * n_groups + groups

    def by_problem(values: FloatArray) -> FloatArray:
        return np.bincount(row, values, minlength=count).astype(np.float64)

    mass = np.bincount(slot, weight, minlength=count * n_groups).reshape(count, n_groups).astype(np.float64)
    total = mass.sum(axis=1)
    present = (mass > 0).sum(axis=1)
    rows = np.maximum(np.where(p.integral, total, by_problem((weight > 0).astype(np.float64))), 1.0)
    share = np.zeros((len(mixtures), max(map(len, mixtures))))
    for row_of, mixture in zip(share, mixtures, strict=True):
        row_of[: len(mixture)] = mixture
    between, within = np.zeros((2, count, len(mixtures)))
    for k, part in enumerate(share.T):
        value = np.cos(k * np.pi * rank) * residual
        mean = np.divide(by_problem(weight * value), total, out=np.zeros(count), where=total > 0)
        value -= mean[row]
        sums = np.bincount(slot, weight * value, minlength=count * n_groups).reshape(count, n_groups)
        between += np.outer((sums**2).sum(axis=1), part)
        within += np.outer(by_problem(alone * value**2), part)
    many, rows = (present > 1)[:, None], rows[:, None]
    between *= np.where(many, (present / np.maximum(present - 1, 1))[:, None], 1.0)
    within *= np.where(rows > 1, rows / np.maximum(rows - 1, 1), 1.0)
    effect = np.divide(between, within, out=np.ones(within.shape), where=within > 0)
    squares = (mass**2).sum(axis=1)
    units = np.divide(total**2, squares, out=np.ones(count), where=squares > 0)
    effect = np.where(many, effect * few_units(units)[:, None], rows)
    return np.asarray(np.clip(effect, 1.0, rows))


def serial_correlation(scores: FloatArray, outcomes: AnyArray) -> tuple[float, float]:
    """Correlation of residuals of rows that follow each other among similar scores, and its size in standard errors.

    Rows are put into cells of equal scores, or of some fifty neighbouring ones, and kept in their order within; the
    residuals' mean in each cell is taken off, so that miscalibration is no correlation. Repeats of a prompt or
    forecasts of one event, one after the other, show here; shuffled rows do not. Of the first 2¹⁶ rows.
    Cost O(n log n).
    """
    s = scores[:_LOOKED_AT].astype(np.float64)
    r = outcomes[:_LOOKED_AT].astype(np.float64) - s
    n = s.size
    if n < 2:
        return 0.0, 0.0
    order = np.argsort(s, kind="stable")
    ranked = s[order]
    new = np.concatenate([[True], ranked[1:] != ranked[:-1]])
    # A cell begins with the first distinct score behind every fiftieth row: equal scores never part.
    block = np.maximum.accumulate(np.where(new, np.arange(n) // _NEAR, 0))
    cell = np.empty(n, dtype=np.intp)
    cell[order] = block
    within = np.lexsort((np.arange(n), cell))
    cell, r = cell[within], r[within]
    number = np.bincount(cell)
    r = r - (np.bincount(cell, r) / np.maximum(number, 1))[cell]
    products = (r[1:] * r[:-1])[cell[1:] == cell[:-1]]
    spread = float(np.sqrt((products**2).sum()))
    variance = float((r**2).mean())
    if not spread > 0 or not variance > 0:
        return 0.0, 0.0
    return float(products.mean()) / variance, float(products.sum()) / spread


def few_units(units: FloatArray) -> FloatArray:
    """Squared ratio of Student's quantile to the normal one, for so many units."""
    from scipy.special import ndtri, stdtrit

    upper = (1 + _LEVEL) / 2
    return np.asarray((stdtrit(np.maximum(units - 1, 1.0), upper) / ndtri(upper)) ** 2)


def _ranks(place: FloatArray, row: IntArray, count: int) -> FloatArray:
    """Mean rank in (0, 1) of the rows of each problem in cells of the score."""
    cell = np.minimum((place * _CELLS).astype(np.intp), _CELLS - 1) + row * _CELLS
    number = np.bincount(cell, minlength=count * _CELLS).reshape(count, _CELLS).astype(np.float64)
    rank = (np.cumsum(number, axis=1) - number / 2) / np.maximum(number.sum(axis=1, keepdims=True), 1.0)
    return np.asarray(rank.reshape(-1)[cell])
