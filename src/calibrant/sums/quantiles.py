"""Quantile bins: edges that give every bin the same number of samples, for one or many problems side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

import numpy as np

from ..data.problem import Problem
from ..data.types import AnyArray, FloatArray, IntArray
from .bins import BinMoments
from .edges import Edges, resolve_n_bins
from .runs import DistinctScores, Runs

#: Above this number of unweighted rows only the scores are sorted, and their bins are looked up.
_MANY = 20_000


@dataclass(frozen=True)
class QuantileBins:
    """Specification of sums over bins with the same number of samples each.

    Parameters
    ----------
    n_bins : int, "sqrt" or "cbrt"
        Number of bins, or a rule for it.
    mapping : {"hard", "linear", "linear-as-printed"}, default "hard"
        Assignment of samples to bins; see :class:`calibrant.Binned`.
    leftovers : {"spread", "last"}, default "spread"
        Placement of the samples that cannot be divided evenly: over the bins, or all in the last one.

    See Also
    --------
    calibrant.estimators.Bins : Bins with known edges.
    calibrant.Binned : The estimator that uses them (``strategy="quantile"``).

    Examples
    --------
    >>> from calibrant.estimators import QuantileBins
    >>> QuantileBins(10).leftovers
    'spread'
    """

    n_bins: int | str
    mapping: str = "hard"
    leftovers: str = "spread"

    def of(self, problem: Problem) -> BinMoments:
        """Sums of the samples of one or many problems. Cost O(n log n)."""
        if problem.weights is None and problem.n_samples > _MANY * len(problem):
            each = []
            for one in problem:
                number = resolve_n_bins(self.n_bins, one.n_samples)
                edges = quantile_edges(one.scores, None, number, one.domain, leftovers=self.leftovers)
                each.append(BinMoments.of(one, edges, self.mapping))
            return joined(each) if problem.shape else each[0]
        return cast(_Placed, problem.sums(_Places(self.n_bins, self.leftovers))).moments(self.mapping)

    def residuals(self, problem: Problem) -> tuple[FloatArray, FloatArray]:
        """``Σ w a (outcome - score)`` per bin, (R, B), and ``Σ w``, (R,); see :meth:`.bins.Bins.residuals`."""
        if problem.weights is None and problem.n_samples > _MANY * len(problem):
            sums = self.of(problem if problem.shape else replace(problem, starts=problem.bounds))
            return sums.outcome - sums.score, sums.weight.sum(axis=-1)
        placed = cast(_Placed, problem.sums(_Places(self.n_bins, self.leftovers)))
        return placed.residuals(self.mapping), placed.runs.totals


@dataclass(frozen=True)
class _Places:
    """The bin of each distinct score, which is the same for all mappings."""

    n_bins: int | str
    leftovers: str

    def of(self, problem: Problem) -> _Placed:
        """Bins of a problem's samples."""
        runs = problem.sums(DistinctScores())
        return _Placed.of(runs, Cuts.of(runs, self.n_bins, self.leftovers))


@dataclass(frozen=True, eq=False)
class Cuts:
    """Inner edges, flat: the problem of each, its score, and the number of the problem's runs below it."""

    row: IntArray
    value: FloatArray
    below: IntArray

    @classmethod
    def of(cls, runs: Runs, n_bins: int | str, leftovers: str = "spread") -> Cuts:
        """Cut j lies after the ``floor(j n / B)``-th smallest score, midway to the next.

        If these two are equal the cut lies on them and the whole tie goes left, so equal scores are never split. A tie
        of the smallest or the largest score, such as an atom at 0 or 1, is separated from the others. Coinciding cuts
        are merged. With ``leftovers="last"`` cut j lies after the ``j floor(n / B)``-th score; relative
        weights have no leftovers.
        """
        bins = np.array([resolve_n_bins(n_bins, float(n)) for n in runs.sizes])
        row = np.repeat(np.arange(len(runs)), np.maximum(bins - 1, 0))
        j = np.arange(row.size) - np.repeat(np.cumsum(bins - 1) - (bins - 1), bins - 1) + 1
        total, last = runs.totals, np.maximum(runs.bounds[1:] - 1, 0)
        slack = 1e-12 * total
        target = j * (total / bins)[row]
        if runs.integral:
            target = np.floor(j * total[row] / bins[row] + slack[row])
            if leftovers == "last":
                target = j * np.floor(total / bins)[row]
        kept = target > slack[row]
        row, target = row[kept], target[kept]
        # The run in which the target falls; on its end, the cut lies between it and the next one.
        at, behind = _reached(runs, row, target, slack)
        at = np.minimum(at, last[row])
        on_end = np.abs(behind[at] - target) <= slack[row]
        first, last, s = runs.bounds[:-1][row], last[row], runs.scores
        above = np.where(on_end, np.minimum(at + 1, last), at)
        value, index = _middle(s[at], s[above]), np.where(on_end, at, above) + 1
        tied = ~on_end | (above == at)
        # A tie of the smallest or largest score is cut off: the cut moves midway to the next distinct score.
        up, down = tied & (at == first) & (last > first), tied & (at == last) & (last > first)
        value = np.where(up, _middle(s[at], s[np.minimum(first + 1, last)]), value)
        value = np.where(down, _middle(s[np.maximum(last - 1, first)], s[at]), value)
        index = np.where(down, last, index)
        low, high = runs.domain
        keep = (value > low) & (value < high)
        row, value, below = row[keep], value[keep], (index - first)[keep]
        new = np.ones(row.size, dtype=bool)
        new[1:] = (value[1:] != value[:-1]) | (row[1:] != row[:-1])
        return cls(row[new], value[new], below[new])


def _reached(runs: Runs, row: IntArray, target: FloatArray, slack: FloatArray) -> tuple[IntArray, FloatArray]:
    """Run of its problem in which each target weight falls, and the cumulative weight of each problem per run.

    Whole numbers are summed over all problems at once, which is exact; others one problem at a time.
    """
    if runs.integral:
        sums = runs.weight_sums
        before = sums[runs.bounds[:-1]]
        return np.searchsorted(sums[1:], before[row] + target, side="left"), sums[1:] - before[runs.row]
    behind = np.concatenate([np.cumsum(w) for w in np.split(runs.weight, runs.bounds[1:-1])])
    at = np.empty(row.size, dtype=np.intp)
    for i, (a, b) in enumerate(pairwise(runs.bounds.tolist())):
        some = slice(*np.searchsorted(row, [i, i + 1]))
        at[some] = a + np.searchsorted(behind[a:b], target[some] - slack[i], side="left")
    return at, behind


def _middle(below: FloatArray, above: FloatArray) -> FloatArray:
    """Midpoint between scores; the lower one if there is no float between them.

    All cuts are computed here: two between the same scores are the same number, to the last digit.
    """
    middle = below + (above - below) / 2
    return np.where(middle < above, middle, below)


@dataclass(frozen=True, eq=False)
class _Placed:
    """Runs in their bins: the edges of every problem (R, B + 1), its number of bins, and the bin of each run."""

    runs: Runs
    values: FloatArray
    number: IntArray
    home: IntArray

    @classmethod
    def of(cls, runs: Runs, cuts: Cuts) -> _Placed:
        """Bins between cuts."""
        number = np.bincount(cuts.row, minlength=len(runs)) + 1
        most = int(number.max(initial=1))
        place = np.arange(cuts.row.size) - (np.cumsum(number - 1) - (number - 1))[cuts.row]
        values = np.full((len(runs), most + 1), np.nan)
        values[:, 0] = runs.domain[0]
        values[cuts.row, place + 1] = cuts.value
        values[np.arange(len(runs)), number] = runs.domain[1]
        # The bin of each run: how many cuts of its problem lie below. (One behind the last run counts for the next
        # problem, whose count leaves out all cuts of problems before.)
        steps = np.cumsum(np.bincount(runs.bounds[:-1][cuts.row] + cuts.below, minlength=runs.size + 1))
        home = steps[: runs.size] - np.repeat(np.cumsum(np.append(0, number - 1))[:-1], runs.counts)
        return cls(runs, values, number, home)

    def moments(self, mapping: str) -> BinMoments:
        """Sums of the bins."""
        runs = self.runs
        if mapping == "hard":
            fields = (runs.weight, runs.weight * runs.scores, runs.outcome, runs.square)
            weight, score, outcome, square = (self._table(self.home, v) for v in fields)
            repeat = weight
        else:
            lower, up = self._shares(mapping)

            def both(values: FloatArray, *, twice: bool = False) -> FloatArray:
                below, above = values * (1 - up), values * up
                if twice:
                    below, above = below * (1 - up), above * up
                table = self._table(lower, below, 1)
                table[:, 1:] += self._table(lower, above, 1)[:, :-1]
                return table[:, :-1]

            weight, score, outcome = both(runs.weight), both(runs.weight * runs.scores), both(runs.outcome)
            square, repeat = both(runs.square, twice=True), both(runs.weight, twice=True)
        edges = Edges(self.values, exact=True)
        counted, parts = runs.integral and not runs.grouped, None if runs.parts is None else np.atleast_2d(runs.parts)
        found = BinMoments(edges, mapping, weight, score, outcome, square, repeat, runs.n_rows, counted, parts)
        return found if runs.shape else found[0]

    def residuals(self, mapping: str) -> FloatArray:
        """``Σ w a (outcome - score)`` of each bin."""
        residual = self.runs.outcome - self.runs.weight * self.runs.scores
        if mapping == "hard":
            return self._table(self.home, residual)
        lower, up = self._shares(mapping)
        above = residual * up
        table = self._table(lower, residual - above, 1)
        table[:, 1:] += self._table(lower, above, 1)[:, :-1]
        return table[:, :-1]

    def _table(self, place: IntArray, values: FloatArray, more: int = 0) -> FloatArray:
        """Sums by problem and bin, with some more columns."""
        rows, width = len(self.runs), self.values.shape[1] - 1 + more
        slot = place + np.repeat(np.arange(rows) * width, self.runs.counts)
        sums = np.bincount(slot, values, minlength=rows * width)
        return np.asarray(sums.reshape(rows, width), dtype=np.float64)

    def _shares(self, mapping: str) -> tuple[IntArray, FloatArray]:
        """Lower bin of each run and the share of the bin above; see :func:`.bins.linear_shares`.

        Above a problem's last centre the last bin is the lower one, and the share of the bin above is 0.
        """
        s, counts = self.runs.scores, self.runs.counts
        rows, width = len(self.runs), self.values.shape[1] - 1
        centres = (self.values[:, :-1] + self.values[:, 1:]) / 2
        apart = np.full((rows, width), np.inf)
        np.subtract(centres[:, 1:], centres[:, :-1], out=apart[:, :-1])
        apart[np.arange(rows), self.number - 1] = np.inf
        first = np.repeat(np.arange(rows) * width, counts)
        at = self.home + first
        at -= s < centres.reshape(-1)[at]
        np.maximum(at, first, out=at)
        share = np.maximum((s - centres.reshape(-1)[at]) / apart.reshape(-1)[at], 0.0)
        if mapping == "linear-as-printed":
            inside = s > np.repeat(centres[:, 0], counts)
            inside &= s < np.repeat(centres[np.arange(rows), self.number - 1], counts)
            share = np.where(inside, 1 - share, share)
        at -= first
        return at, share


def stacked(edges: Sequence[Edges]) -> Edges:
    """Combine the edges of many problems, with NaN after a problem's last."""
    most = max(e.n_bins for e in edges)
    values = np.full((len(edges), most + 1), np.nan)
    for row, e in zip(values, edges, strict=True):
        row[: e.n_bins + 1] = e.values
    return Edges(values, exact=all(e.exact for e in edges))


def joined(moments: Sequence[BinMoments]) -> BinMoments:
    """Sums of single problems side by side."""
    edges = stacked([m.edges for m in moments])

    def table(name: str) -> FloatArray:
        out = np.zeros((len(moments), edges.n_bins))
        for row, m in zip(out, moments, strict=True):
            row[: m.edges.n_bins] = getattr(m, name)
        return out

    weight, score, outcome, square, repeat = map(table, ("weight", "score", "outcome", "square", "repeat"))
    n, integral = np.array([m.n_samples for m in moments]), all(m.integral for m in moments)
    parts = None if moments[0].parts is None else np.array([m.parts for m in moments])
    return BinMoments(edges, moments[0].mapping, weight, score, outcome, square, repeat, n, integral, parts)


def quantile_edges(
    scores: FloatArray,
    weights: FloatArray | None,
    n_bins: int,
    domain: tuple[float, float] = (0.0, 1.0),
    *,
    integral: bool = True,
    leftovers: str = "spread",
) -> Edges:
    """Edges of the quantile bins of one sample; see :class:`Cuts`. There are at most ``n_bins``.

    Cost: that of sorting the scores.
    """
    if weights is not None or scores.size <= _MANY:
        return (
            QuantileBins(n_bins, leftovers=leftovers)
            .of(Problem(scores, np.zeros(scores.size), weights, integral, domain))
            .edges
        )
    n, ordered = scores.size, np.sort(scores).astype(np.float64, copy=False)
    steps = np.arange(1, n_bins)
    ranks = np.unique(steps * n // n_bins if leftovers == "spread" else steps * (n // n_bins))
    ranks = ranks[ranks > 0]  # samples left of the cuts
    if not ranks.size:
        return Edges(np.array(domain), exact=True)
    below, above = ordered[ranks - 1], ordered[ranks]
    cuts = _off_the_ends(_middle(below, above), below == above, ordered)
    low, high = domain
    inner = np.unique(cuts[(cuts > low) & (cuts < high)])
    return Edges(np.concatenate([[low], inner, [high]]), exact=True)


def _off_the_ends(cuts: FloatArray, tied: AnyArray, ordered: FloatArray) -> FloatArray:
    """Move cuts on the smallest score up, and on the largest down, to the midpoint to the next distinct score."""
    least, most = ordered[[0, -1]]
    if least == most:
        return cuts
    second = ordered[np.searchsorted(ordered, least, side="right")]
    last_but_one = ordered[np.searchsorted(ordered, most, side="left") - 1]
    cuts = np.where(tied & (cuts == least), _middle(least, second), cuts)
    return np.where(tied & (cuts == most), _middle(last_but_one, most), cuts)
