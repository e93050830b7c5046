"""Statistics of subgroups side by side: gaps in the large with intervals, and tests of calibration."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...data.types import AnyArray, FloatArray, IntArray
from ...significance.cumulative_sums import range_survival, strays
from ...significance.null import LISTED, listed_signs, scale_of
from ...significance.result import least_pvalue
from ...significance.saddlepoint import upper_tails
from ...sums.logistic_fit import expit
from .cells import CellTable, SubgroupCells, binomials

#: Rows up to which the distribution of a sum of outcomes is computed exactly, in intervals and in p-values.
_EXACT_INTERVAL, _EXACT_TEST = 200, 2000
#: Numbers drawn at most for one subgroup's first draws: beyond, the limiting distribution is used.
_MOST_DRAWN = 10_000_000
#: Factor by which p-values of draws should reach below ``(1 - level) / subgroups``, the most numbers drawn for that,
#: and the factor reached whatever the cost.
_FINE, _MORE_DRAWN, _COARSE = 20, 20_000_000, 2
#: Share of the requested draws that must reach the observed statistic for drawing to end; and the smallest number.
_ENOUGH, _LEAST = 0.05, 10
#: How far zeros are searched for, their tolerance, and standard errors within which nearly all ends of intervals lie.
_FAR, _NEAR, _STANDARD_ERRORS = 60.0, 1e-11, 5.0
#: Sums of groups in cells are used where there are at most this many times as many as rows.
_DENSE = 4
#: Numbers drawn at a time, those of them that are processed at a time, in the cache, and draws of the first round.
_TOGETHER, _IN_CACHE, _FIRST = 1 << 19, 1 << 16, 32


def gap_intervals(cells: SubgroupCells, level: float, *, dependent: bool = False) -> FloatArray:
    r"""Intervals (G, 2) for gaps in the large, from the multiples :math:`e^a` of the odds that outcomes do not reject.

    Those a under which the sum of outcomes is not extreme, as mean gaps: by the exact distribution of the sum up to 200
    rows, which makes the interval conservative, else by the score test, with the variance at a, not at the estimate.
    For ``dependent`` rows, in groups, by the latter, with the design effect of the mean residual.
    """
    out = np.full((cells.n_subgroups, 2), np.nan)
    for table in cells.tables():
        counted = table.integral and not dependent
        exact: AnyArray = np.asarray(table.total <= (_EXACT_INTERVAL if counted else 0))
        for some, found in ((exact, _exact_excess), (~exact, _normal_excess)):
            if some.any():
                part = table.where(some)
                out[part.at] = _interval(part, found(part, (1 - level) / 2))
    return out


#: A function of a (R,) and a side, positive where a is too low (side 1) or too high (side -1) for the outcomes.
_Excess = Callable[[FloatArray, int], FloatArray]


def _interval(table: CellTable, excess: _Excess) -> FloatArray:
    z = _logits(table.scores)
    known = np.asarray((np.isfinite(z) & (table.weights > 0)).any(axis=-1))
    gap = table.residual.sum(axis=-1) / table.total
    information = (table.weights * table.scores * (1 - table.scores)).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.fmin(_STANDARD_ERRORS * np.sqrt(table.variance * table.design) / information, 1.0)
    ends = []
    for side in (1, -1):
        a = _zeros(lambda a, side=side: excess(a, side), reach, side)  # type: ignore[misc]  # bound now
        ends.append((table.weights * (expit(z + a[:, None]) - table.scores)).sum(axis=-1) / table.total)
    found = np.stack([np.minimum(ends[0], gap), np.maximum(ends[1], gap)], axis=-1)
    return np.where(known[:, None], found, np.nan)


def _logits(scores: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(scores) - np.log1p(-scores))


def _exact_excess(table: CellTable, tail: float) -> _Excess:
    chances = single_outcomes(table)
    z, observed = _logits(chances), np.rint((table.weights * table.outcomes).sum(axis=-1)).astype(np.intp)[:, None]
    k = np.arange(z.shape[-1] + 1)

    def excess(a: FloatArray, side: int) -> FloatArray:
        pmf = outcomes_pmf(expit(z + a[:, None]))
        extreme = k >= observed if side == 1 else k <= observed
        return np.asarray(tail - np.where(extreme, pmf, 0.0).sum(axis=-1))

    return excess


def _normal_excess(table: CellTable, tail: float) -> _Excess:
    from scipy.special import ndtri

    z, observed = _logits(table.scores), (table.weights * table.outcomes).sum(axis=-1)

    def excess(a: FloatArray, side: int) -> FloatArray:
        p = expit(z + a[:, None])
        spread = np.sqrt((table.times * (p * (1 - p))).sum(axis=-1) * table.design)
        off = side * (observed - (table.weights * p).sum(axis=-1))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(spread > 0, off / spread + ndtri(tail), np.sign(off)))

    return excess


def _zeros(function: Callable[[FloatArray], FloatArray], reach: FloatArray, side: int) -> FloatArray:
    """Where functions (n,) that decrease with side · a cross 0, within ± reach; ± 60 for one that does not.

    Source: Chandrupatla (1997), *A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear
    function without using derivatives*.
    """
    a, b = -reach, reach
    fa, fb = function(a), function(b)
    crosses = np.sign(fa) * np.sign(fb) < 0
    if not crosses.all():
        b = np.where(crosses, reach, _FAR)
        a = -b
        fa, fb = function(a), function(b)
        crosses = np.sign(fa) * np.sign(fb) < 0
    end = np.where(side * (fa + fb) > 0, _FAR, -_FAR)
    share = np.full(len(reach), 0.5)
    for _ in range(100):
        x = a + share * (b - a)
        fx = function(x)
        same = np.sign(fx) == np.sign(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        width = np.abs(b - a)
        if not (crosses & (width > _NEAR) & (fa != 0)).any():
            break
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
            step = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
            smooth = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi) & np.isfinite(step)
            least = np.minimum(0.5, _NEAR / width)
        share = np.clip(np.where(smooth, step, 0.5), least, 1 - least)
    return np.where(crosses, np.where(np.abs(fa) < np.abs(fb), a, b), end)


def single_outcomes(table: CellTable) -> FloatArray:
    """Probabilities of the outcomes of each subgroup, repeats one by one, (R, N); 0 after the last."""
    repeats = np.rint(table.weights).astype(np.intp)
    total = repeats.sum(axis=-1)
    out = np.zeros((len(total), int(total.max(initial=0))))
    out[np.arange(out.shape[1]) < total[:, None]] = np.repeat(table.scores.reshape(-1), repeats.reshape(-1))
    return out


def outcomes_pmf(chances: FloatArray) -> FloatArray:
    """``P(Σ o = k)``, k = 0 … n, of independent outcomes (…, n): the product of their generating functions, in pairs.

    All terms are positive, so tails too are accurate to all digits.
    """
    shape, n = chances.shape[:-1], chances.shape[-1]
    size = 1 << max(n - 1, 0).bit_length()
    padded = np.concatenate([chances, np.zeros((*shape, size - n))], axis=-1)
    parts = np.stack([1 - padded, padded], axis=-1)
    while parts.shape[-2] > 1:
        one, other = parts[..., ::2, :], parts[..., 1::2, :]
        degree = one.shape[-1]
        parts = np.zeros((*one.shape[:-1], 2 * degree - 1))
        for i in range(degree):
            parts[..., i : i + degree] += one[..., i : i + 1] * other
    return np.asarray(parts[..., 0, : n + 1])


def subgroup_pvalues(
    cells: SubgroupCells,
    test: str,
    n_resamples: int,
    rng: np.random.Generator,
    smallest: float = 1.0,
    *,
    many: bool = False,
) -> FloatArray:
    """p-values (G,) of subgroups by one of the tests that :func:`subgroup_calibration` offers; 1 without any spread.

    ``smallest``: the bound that they are compared with, 1 - level over the number of subgroups; they can be below it,
    with ``many`` subgroups by the tail of a distribution.
    """
    out = np.full(cells.n_subgroups, np.nan)
    drawn = partial(_drawn_pvalues, test=test, n_resamples=n_resamples, rng=rng, smallest=smallest, many=many)
    for table in cells.tables():
        if table.groups is not None or test == "kuiper":
            listed = np.zeros(len(table.at), dtype=bool) if table.groups is None else _groups_of(table) <= LISTED
            for some, way in ((listed, partial(_listed_pvalues, test=test)), (~listed, drawn)):
                if some.any():
                    part = table.where(some)
                    out[part.at] = way(part)
            continue
        exact: AnyArray = table.total <= (_EXACT_TEST if table.integral else 0)
        for some, found in ((exact, _exact_pvalues), (~exact, _normal_pvalues)):
            if some.any():
                part = table.where(some)
                out[part.at] = found(part)
    return out


def _exact_pvalues(table: CellTable) -> FloatArray:
    chances = single_outcomes(table)
    k, step = np.rint((table.weights * table.outcomes).sum(axis=-1)).astype(np.intp), max(1, _TOGETHER // chances.size)
    out = np.empty(len(k))
    for first in range(0, len(k), step):
        some = slice(first, first + step)
        pmf, number = outcomes_pmf(chances[some]), np.arange(chances.shape[-1] + 1)
        below, above = number <= k[some, None], number >= k[some, None]
        out[some] = 2 * np.minimum((pmf * below).sum(axis=-1), (pmf * above).sum(axis=-1))
    return np.minimum(out, 1.0)


def _normal_pvalues(table: CellTable) -> FloatArray:
    from scipy.special import ndtr

    spread, off = np.sqrt(table.variance), np.abs(table.residual.sum(axis=-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(spread > 0, 2 * ndtr(-off / spread), np.where(off > 0, 0.0, 1.0))


#: Statistics (r, R) under calibration: r draws for some subgroups of a table.
_Draw = Callable[[int, IntArray, np.random.Generator], FloatArray]


def _drawn_pvalues(
    table: CellTable, test: str, n_resamples: int, rng: np.random.Generator, smallest: float, *, many: bool
) -> FloatArray:
    """p-values by draws of labels, or of signs of whole groups; for very many rows by the limiting distribution.

    Drawing ends for a subgroup with the h-th draw that reaches the observed statistic: ``p = h / draws``, else
    ``(1 + draws that reach it) / (1 + draws)`` (Besag & Clifford 1991, *Sequential Monte Carlo p-values*). With many
    subgroups, one that no draw reaches gets the tail of the limiting distribution instead of more draws.
    """
    draw, widths = _labels(table, test) if table.groups is None else _flipped(table, table.groups, test)
    spread, size = np.sqrt(table.variance), table.scores.shape[-1]
    observed = _statistic(table.residual[None], table.last, test)[0]
    out = np.where(observed > 0, 0.0, 1.0)
    some = np.flatnonzero(spread > 0)
    labels = table.groups is None
    if labels and size * n_resamples > _MOST_DRAWN:
        out[some] = [range_survival(x) for x in (observed[some] / spread[some]).tolist()]
        return out
    many = many and labels
    more = max(min(_FINE / smallest, _MORE_DRAWN / size), _COARSE / smallest if labels else 0)
    most = n_resamples if many else max(n_resamples, int(np.ceil(more)))
    enough = _LEAST if many else max(_LEAST, round(_ENOUGH * n_resamples))
    near = observed - 1e-9 * spread  # the same sum in another order
    done, reached, first = 0, np.zeros(len(out), dtype=np.intp), _FIRST
    while some.size and done < most:
        number = max(1, min(first, most - done, _TOGETHER // int(widths[some].sum())))
        drawn = draw(number, some, rng) >= near[some]
        counts = reached[some] + np.cumsum(drawn, axis=0)
        ended = counts[-1] >= enough
        out[some[ended]] = enough / (done + 1 + np.argmax(counts[:, ended] >= enough, axis=0))
        reached[some], done, first = counts[-1], done + number, 2 * first
        some = some[~ended]
    out[some] = (1 + reached[some]) / (1 + done)
    far = some[reached[some] == 0]
    if many and far.size:
        out[far] = np.minimum(range_tail(table.where(far), observed[far]), out[far])
    return out if labels else np.maximum(out, least_pvalue(_groups_of(table)))


def _listed_pvalues(table: CellTable, test: str) -> FloatArray:
    """p-values by all signs of the few groups of each subgroup; half of them, as the statistics have no direction."""
    residual, numbers = _scaled(table), _groups_of(table)
    reach = _statistic(table.residual[None], table.last, test)[0] - 1e-9 * np.sqrt(table.variance)
    # Groups of each subgroup by their rank among its own; residuals of rows without weight are 0.
    of_rows = np.where(table.weights > 0, np.asarray(table.groups), np.iinfo(np.intp).max)
    order = np.argsort(of_rows, axis=-1, kind="stable")
    ordered = np.take_along_axis(of_rows, order, axis=-1)
    rank = np.zeros(of_rows.shape, dtype=np.intp)
    np.put_along_axis(rank, order[:, 1:], np.cumsum(ordered[:, 1:] != ordered[:, :-1], axis=-1), axis=-1)
    out = np.empty(len(residual))
    for n_groups in np.unique(numbers).tolist():
        some = np.flatnonzero(numbers == n_groups)
        signs = listed_signs(n_groups)[: max(1, 2 ** (n_groups - 1))]
        code, left = np.minimum(rank[some], n_groups - 1), residual[some]
        step = max(1, _TOGETHER // left.size)
        reached = np.zeros(some.size)
        for a in range(0, len(signs), step):
            flipped = signs[a : a + step][:, code] * left
            reached += (_statistic(flipped, table.last[some], test) >= reach[some]).sum(axis=0)
        out[some] = reached / len(signs)
    return out


def _groups_of(table: CellTable) -> IntArray:
    """Number of groups with weight in each subgroup, (R,)."""
    groups = np.where(table.weights > 0, np.asarray(table.groups), -1)
    ordered = np.sort(groups, axis=-1)
    return np.asarray(((ordered[:, 1:] != ordered[:, :-1]) & (ordered[:, 1:] >= 0)).sum(axis=-1) + (ordered[:, 0] >= 0))


def _statistic(residual: FloatArray, last: AnyArray, test: str) -> FloatArray:
    """Statistic of residuals (r, R, m): range of their running sum, or absolute value of their sum."""
    if test == "kuiper":
        return strays(residual, last)
    return np.asarray(np.abs(residual.sum(axis=-1)))


def _labels(table: CellTable, test: str) -> tuple[_Draw, IntArray]:
    """Draws of labels from the scores; and the numbers that one draw of each subgroup needs."""
    trials, unit = binomials(table.weights, table.times, integral=table.integral)

    def draw(number: int, some: IntArray, rng: np.random.Generator) -> FloatArray:
        repeated, chances = trials[some], table.scores[some]
        drawn = (rng.random((number, *chances.shape)) < chances).astype(np.float64)
        at = np.nonzero(repeated > 1)
        if at[0].size:
            drawn[:, at[0], at[1]] = rng.binomial(repeated[at], chances[at], size=(number, at[0].size))
        drawn -= repeated * chances
        drawn[:, repeated == 0] = 0.0
        return _statistic(drawn * unit[some], table.last[some], test)

    return draw, np.full(*table.scores.shape)


def _scaled(table: CellTable) -> FloatArray:
    """Residuals (R, m), scaled up to have at least the variance that the scores imply: see :class:`.GroupSigns`."""
    squares = table.weights**2
    happened = (squares * (table.outcomes - table.scores) ** 2).sum(axis=-1)
    stated = (squares * table.scores * (1 - table.scores)).sum(axis=-1)
    scale = scale_of(happened, stated) if table.scale is None else table.scale
    return table.residual * scale[:, None]


def _flipped(table: CellTable, groups: IntArray, test: str) -> tuple[_Draw, IntArray]:
    """Draws of the signs of whole groups; and the numbers that one draw of each subgroup needs."""
    residual, last = _scaled(table), table.last
    pairs = groups + np.arange(len(groups))[:, None] * (int(groups.max(initial=0)) + 1)
    place = np.unique(pairs, return_inverse=True)[1].reshape(pairs.shape)
    first = place.min(axis=1)
    numbers = place.max(axis=1) + 1 - first
    place -= first[:, None]
    # Where many rows of few groups share a cell, sums of groups are made first: a product of matrices is quicker.
    cell = np.cumsum(last, axis=1) - last
    cells = cell.max(axis=1) + 1
    dense = numbers * cells <= _DENSE * (table.weights > 0).sum(axis=1)
    sums = {
        i: np.bincount(place[i] * cells[i] + cell[i], residual[i], numbers[i] * cells[i]).reshape(-1, cells[i])
        for i in np.flatnonzero(dense).tolist()
    }

    def draw(number: int, some: IntArray, rng: np.random.Generator) -> FloatArray:
        ends = np.cumsum(numbers[some])
        signs = 2.0 * rng.integers(2, size=(number, int(ends[-1]))) - 1
        begins, out = ends - numbers[some], np.empty((number, some.size))
        for k in np.flatnonzero(dense[some]).tolist():
            of_cells = sums[some[k]]
            step, every = max(1, _TOGETHER // of_cells.shape[1]), np.ones(of_cells.shape[1], dtype=bool)
            for start in range(0, number, step):
                tile = slice(start, start + step)
                out[tile, k] = _statistic(signs[tile, begins[k] : ends[k]] @ of_cells, every, test)
        rest = np.flatnonzero(~dense[some])
        if rest.size:
            at, left, of_rest = place[some[rest]] + begins[rest, None], residual[some[rest]], last[some[rest]]
            step = max(1, _IN_CACHE // at.size)
            for start in range(0, number, step):
                flipped = signs[start : start + step].take(at, axis=1)
                flipped *= left
                out[start : start + step, rest] = _statistic(flipped, of_rest, test)
        return out

    return draw, np.where(dense, np.maximum(cells, numbers), table.scores.shape[1])


def range_tail(table: CellTable, observed: FloatArray) -> FloatArray:
    r"""Far tail of the range of running sums of residuals under calibration, (R,): four times that of the whole sum S.

    The range of a Brownian motion with end B has the tail :math:`4 P(|B| > x) - 8 P(|B| > 2x) + …`: reflection doubles
    it twice. Only the first term is used, with ``P(S ≥ x) + P(S ≤ -x)`` by the saddlepoint of the labels' own
    distribution, which is far from normal for rare outcomes.

    Source: Lugannani & Rice (1980), *Saddle point approximation for the distribution of the sum of independent random
    variables*; Feller (1951), *The asymptotic distribution of the range of sums of independent random variables*.
    """
    trials, unit = binomials(table.weights, table.times, integral=table.integral)
    each = trials * unit
    sides = (
        upper_tails(trials, chances, observed + (each * chances).sum(axis=-1), unit)
        for chances in (table.scores, 1 - table.scores)
    )
    return np.asarray(np.minimum(4 * sum(sides), 1.0))
