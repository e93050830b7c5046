"""Groups of dependent rows, and design effects: how much less information they carry than independent rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from ..exceptions import DependenceWarning, WeightWarning
from .checks import received
from .convert import to_array
from .labels import is_missing
from .predictions import Predictions
from .types import AnyArray, FloatArray, IntArray
from .weights import of_variances

#: Weights of cosines of the score's rank: gaps common to all scores matter most, rough ones are small.
_PARTS = (1.0, 0.5, 0.25)
#: Weights of cosines for the variance of rougher sums of residuals.
_ROUGH = (0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0)
#: Number of cosines, and how they are combined: see :func:`design_parts`.
WAVES = len(_ROUGH)
MIXTURES = (_PARTS, *np.eye(len(_PARTS)).tolist(), _ROUGH)
#: Number of cells in which ranks are determined.
RANK_TABLE = 1024
#: Level at which Student's distribution replaces the normal one to account for few groups.
_LEVEL = 0.95
#: Rows per cell of neighbouring scores, and rows that are searched for a serial correlation.
_NEAR, _LOOKED_AT = 50, 1 << 16
#: Standard errors, and correlation, from which neighbouring rows are reported as dependent.
_ALIKE, _MUCH = 3.5, 0.05
#: Fewest triples of rows to evaluate, and variance ratio to independent draws from which a warning is given.
_ENOUGH, _VARIES = 5, 1.2


def read_groups(groups: Any, n: int, name: str = "groups") -> AnyArray | None:
    """Check the ``groups`` argument, or another of its kind: one value per row, none missing."""
    if groups is None:
        return None
    array, _ = to_array(groups, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (n,):
        raise ValueError(f"{name} must have one value per row ({n}); got shape {array.shape}")
    if array.dtype.kind in "fc" and np.isnan(array).any():
        raise ValueError(f"{name} must have no missing values; row {int(np.flatnonzero(np.isnan(array))[0])} is NaN")
    if array.dtype.kind in "mM" and np.isnat(array).any():
        raise ValueError(f"{name} must have no missing values; row {int(np.flatnonzero(np.isnat(array))[0])} is NaT")
    if array.dtype.kind == "O":
        for row, value in enumerate(array):
            if is_missing(value):
                raise ValueError(f"{name} must have no missing values; row {row} is {received(value)}")
        # Codes in order of appearance: values of several kinds have no order of their own.
        known: dict[Any, int] = {}
        try:
            array = np.array([known.setdefault(v, len(known)) for v in array])
        except TypeError:
            raise TypeError(
                f"{name} must hold hashable values, such as names or numbers; got {received(array[0])}"
            ) from None
    return array


def group_codes(groups: AnyArray) -> IntArray:
    """Codes 0 … G - 1 in order of appearance, so that nothing depends on the names of groups."""
    _, first, of_row = np.unique(groups, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[of_row.reshape(-1)])


def groups_of_rows(groups: Any, n: int, weights: FloatArray | None) -> IntArray | None:
    """Codes of groups; None if rows are independent, ValueError if there is only one group."""
    read = read_groups(groups, n)
    if read is None:
        return None
    codes = group_codes(read)
    used = codes if weights is None else codes[weights > 0]
    if used.size and (used == used[0]).all():
        raise ValueError(
            "groups must name at least 2 groups with weight; all rows belong to one, and one group does not show how "
            "results vary between groups"
        )
    # Rows that are groups by themselves are independent; repeats of one row would belong together.
    return None if weights is None and int(codes.max(initial=0)) + 1 == n else codes


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
    """Hashes of the groups of two pieces; ValueError if they share one, or only one piece has groups."""
    if before is None and now is None:
        return None
    if before is None or now is None:
        some, others = ("without", "with") if before is None else ("with", "without")
        raise ValueError(f"earlier rows were added {some} groups, and these are {others}: pass groups for all, or none")
    if shared := np.intersect1d(before, now, assume_unique=True).size:
        raise ValueError(
            f"groups must not span pieces; already in an earlier one: {shared} of {now.size}. Add all rows of a group "
            "together"
        )
    return np.union1d(before, now)


def design_effects(problems: Any, groups: IntArray, parts: tuple[float, ...] = _PARTS) -> FloatArray:
    r"""Number of rows with as much information as one independent row, for each of R problems side by side, (R,).

    With residuals ``r = o - s`` and cosines ``c_k = cos(kπu)`` of the rank u of the score, k = 0, 1, 2,

    .. math:: \frac{\sum_k h_k \frac{G}{G-1} \sum_g \big(\sum_{i \in g} w_i (c_{ik} r_i - m_k)\big)^2}
                   {\sum_k h_k \frac{n}{n-1} \sum_i w_i^2 (c_{ik} r_i - m_k)^2}, \qquad h = (1, ½, ¼),

    is the variance of weighted means of residuals under sampling of groups, divided by that under sampling of rows; m_k
    is the mean itself. It is exactly 1 if every row is its own group. It is uncertain with few groups, or if one group
    holds most rows: it is multiplied by the squared ratio of Student's quantile to the normal one, with one degree of
    freedom less than Kish's number of groups. It is never below 1 or above the number of rows.

    ``parts`` are the h: ``(1.0,)`` for the mean residual only.

    ``problems`` have rows ``scores``, ``outcomes``, ``weights`` with problem codes ``row``, as
    :class:`calibrant.data.problem.Problem`. Cost: O(n + R G).

    Source: Kish (1965), *Survey sampling*, for the design effect; Rao & Scott (1984) for dividing counts by its mean.
    """
    return effects_of(_grouped(problems, groups, len(parts)), (parts,))[:, 0]


def design_parts(problems: Any, groups: IntArray) -> FloatArray:
    """Design effects of parts of the residuals of each of R problems, (R, 5).

    The columns are the mean of :func:`design_effects`, the effects of the constant and of each of the two cosines, and
    that of four rougher cosines together, k = 3 … 6.

    A common effect of a group shifts all its rows, so a shift varies like a few groups, while rough gaps vary almost
    like independent rows: a single number would be too small for the one and too large for the other.
    """
    return effects_of(_grouped(problems, groups, WAVES))


class GroupedResiduals(NamedTuple):
    """Sums of residuals of R problems times each of some cosines, from which design effects are computed.

    Attributes
    ----------
    between, within : ndarray of shape (R, cosines)
        ``Σ_g (Σ_i w_i (c_ik r_i - m_k))²`` over groups, ``Σ_i w_i² (c_ik r_i - m_k)²`` over rows (``w_i`` for repeats).
    total, squares : ndarray of shape (R,)
        Total weight, and sum of squares of the groups' weights.
    present, rows : ndarray of shape (R,)
        Numbers of groups and of rows with weight; repeats count as rows.
    """

    between: FloatArray
    within: FloatArray
    total: FloatArray
    squares: FloatArray
    present: AnyArray
    rows: AnyArray


def _grouped(problems: Any, groups: IntArray, waves: int) -> GroupedResiduals:
    p, n_groups = problems, int(groups.max(initial=-1)) + 1
    count, row = len(p), p.row
    residual = p.outcomes.astype(np.float64) - p.scores
    cell = rank_cells_of(p.scores, p.domain) + row * RANK_TABLE
    number = np.bincount(cell, minlength=count * RANK_TABLE).reshape(count, RANK_TABLE)
    rank = mid_ranks(number).reshape(-1)[cell]
    weight = np.ones(p.n_samples) if p.weights is None else p.weights
    alone = of_variances(weight, integral=p.integral)
    slot = row * n_groups + groups

    def by_problem(values: FloatArray) -> FloatArray:
        return np.bincount(row, values, minlength=count).astype(np.float64)

    mass = np.bincount(slot, weight, minlength=count * n_groups).reshape(count, n_groups).astype(np.float64)
    total = mass.sum(axis=1)
    rows = np.where(p.integral, total, by_problem((weight > 0).astype(np.float64)))
    between, within = np.zeros((2, count, waves))
    for k in range(waves):
        value = np.cos(k * np.pi * rank) * residual
        mean = np.divide(by_problem(weight * value), total, out=np.zeros(count), where=total > 0)
        value -= mean[row]
        sums = np.bincount(slot, weight * value, minlength=count * n_groups).reshape(count, n_groups)
        between[:, k] = (sums**2).sum(axis=1)
        within[:, k] = by_problem(alone * value**2)
    return GroupedResiduals(between, within, total, (mass**2).sum(axis=1), (mass > 0).sum(axis=1), rows)


def effects_of(found: GroupedResiduals, mixtures: Sequence[Sequence[float]] = MIXTURES) -> FloatArray:
    """Design effects for weighted combinations of cosines, (R, mixtures)."""
    share = np.zeros((found.between.shape[1], len(mixtures)))
    for i, mixture in enumerate(mixtures):
        share[: len(mixture), i] = mixture
    between, within = found.between @ share, found.within @ share
    present, rows = found.present[:, None], np.maximum(found.rows, 1.0)[:, None]
    between *= np.where(present > 1, present / np.maximum(present - 1, 1), 1.0)
    within *= np.where(rows > 1, rows / np.maximum(rows - 1, 1), 1.0)
    effect = np.divide(between, within, out=np.ones(within.shape), where=within > 0)
    units = np.divide(found.total**2, found.squares, out=np.ones(len(effect)), where=found.squares > 0)
    effect = np.where(present > 1, effect * few_units(units)[:, None], rows)
    return np.asarray(np.clip(effect, 1.0, rows))


def rank_cells_of(scores: AnyArray, domain: tuple[float, float]) -> IntArray:
    """Cells of the scores in which ranks are determined."""
    low, high = domain
    place = np.clip((scores.astype(np.float64) - low) / (high - low), 0, 1)
    return np.asarray(np.minimum((place * RANK_TABLE).astype(np.intp), RANK_TABLE - 1))


def mid_ranks(number: AnyArray) -> FloatArray:
    """Mean rank in (0, 1) of the rows of each cell, from numbers of rows (R, cells)."""
    return np.asarray((np.cumsum(number, axis=1) - number / 2) / np.maximum(number.sum(axis=1, keepdims=True), 1.0))


def serial_correlation(scores: FloatArray, outcomes: AnyArray) -> tuple[float, float]:
    """Correlation of residuals of consecutive rows with similar scores, and its ratio to the standard error.

    Rows are put into cells of equal scores, or of some fifty neighbouring ones, and keep their order within a cell; the
    mean residual of each cell is subtracted, so that miscalibration does not count as correlation. Consecutive repeats
    of a prompt or forecasts of one event are detected; shuffled rows are not. Uses the first 2¹⁶ rows. Cost: O(n
    log n).
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


def warn_of_class_weights(p: Predictions) -> None:
    """Warn if all rows of a label have one weight, and labels differ in it."""
    if p.weights is None or p.given is not None or p.several:
        return
    used = p.weights > 0
    codes, weights = p.codes[used], p.weights[used]
    table = np.full(p.n_classes, np.nan)
    table[codes[::-1]] = weights[::-1]
    common = np.bincount(codes, minlength=p.n_classes) >= _ENOUGH
    if common.sum() < 2 or not np.ptp(table[common]) > 0 or (weights != table[codes]).any():
        return
    warnings.warn(
        "sample_weight depends only on the label, as class weights do, but intervals and tests take weights as "
        "unrelated to the outcome (whole numbers as repeated rows), so that they may be far too certain: leave such "
        "weights out; for other base rates than those of these rows use shift_prior",
        WeightWarning,
        stacklevel=4,
    )


def warn_of_draws(p: Predictions) -> None:
    """Warn if counts k of n vary more among rows of neighbouring scores than those of independent draws.

    Rows are taken in triples along the score, and the middle one is compared with the line through the others. Given
    the total count of a triple, counts of equal probabilities are hypergeometric (Fisher 1935), and the mean squared
    difference over its variance is exactly 1; maps nearly linear over three rows do not matter. Cost: O(n log n).
    """
    if p.given is None or p.groups is not None or not p.integral_weights or p.weights is None:
        return
    one = 1 if p.positive is None else p.positive
    k, n = (np.bincount(p.given, values) for values in (p.weights * p.outcome(one), p.weights))
    score = np.zeros(n.size)
    score[p.given] = p.score(one)
    order = np.flatnonzero(n > 0)[np.argsort(score[n > 0], kind="stable")]
    threes = order[: order.size // 3 * 3].reshape(-1, 3).T
    k, n, s = k[threes], n[threes], score[threes]
    apart = s[2] - s[0]
    first = np.divide(s[2] - s[1], apart, out=np.full(apart.size, 0.5), where=apart > 0)
    contrast = np.stack([-first, np.ones(apart.size), first - 1])
    happened, rows = k.sum(axis=0), n.sum(axis=0)
    unit, few = (contrast**2 / n).sum(axis=0), np.minimum(happened, rows - happened)
    told = few > 0
    if told.sum() < _ENOUGH:
        return
    variance = happened / rows * (1 - happened / rows) * rows / np.maximum(rows - 1, 1) * unit
    ratio = (contrast * k / n).sum(axis=0)[told] ** 2 / variance[told]
    # The ratio has a variance of about 2, and of a single outcome exactly this.
    spread = 2 + ((rows * (contrast**4 / n**3).sum(axis=0) / unit**2 - 3) / np.maximum(few, 1))[told]
    mean, se = float(ratio.mean()), float(np.sqrt(spread.sum())) / ratio.size
    if mean < _VARIES or mean - 1 < _ALIKE * se:
        return
    warnings.warn(
        f"shares k / n are treated as n independent draws each, but those of neighbouring scores vary {mean:.1f} times "
        "as much: if the draws of a row depend on each other, pass groups=range(len(y_true)); without it, intervals "
        "are too short and p-values too small",
        DependenceWarning,
        stacklevel=4,
    )


def few_units(units: FloatArray) -> FloatArray:
    """Squared ratio of Student's quantile to the normal one for numbers of units."""
    from scipy.special import ndtri, stdtrit

    upper = (1 + _LEVEL) / 2
    return np.asarray((stdtrit(np.maximum(units - 1, 1.0), upper) / ndtri(upper)) ** 2)


def warn_of_order(scores: FloatArray, outcomes: AnyArray) -> None:
    """Warn if residuals of consecutive rows are correlated, as in groups that are treated as independent rows."""
    correlation, errors = serial_correlation(scores, outcomes)
    if errors < _ALIKE or correlation < _MUCH or np.count_nonzero(np.diff(outcomes)) <= 1:  # sorted by outcome
        return
    warnings.warn(
        f"rows are treated as independent, but neighbouring rows with similar scores have correlated residuals "
        f"(correlation {correlation:.2f}, {errors:.0f} standard errors): if rows belong together (repeats of a prompt, "
        "forecasts of one event, patients of a hospital), pass groups=; without it, intervals are too short and "
        "p-values too small",
        DependenceWarning,
        stacklevel=4,
    )
