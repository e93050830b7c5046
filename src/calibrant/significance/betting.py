"""Bets against calibration: alternatives fitted to the rows seen so far, and the wealth of betting on each next row."""

from __future__ import annotations

import numpy as np

from ..data.progress import counted
from ..data.types import AnyArray, FloatArray, IntArray
from ..data.weights import ones_or
from ..estimators.isotonic import isotonic_means
from ..sums.logistic_fit import fit

#: Cells, of equal width in log odds, in which past rows are kept: a state of fixed size, whatever the number of rows.
N_CELLS = 512
#: Log odds of the outermost cells.
END = 12.0
#: Rows before the first bet, and how much their number grows from one fit to the next.
FIRST, GROWTH = 8, 1.1
#: Rows worked on at a time.
TOGETHER = 1 << 16
#: Prior sd of intercept and slope, and of the first cosine: that of the k-th is its k-th part.
PRIORS = ((0.3, 0.0), (0.3, 0.4), (0.3, 1.0))
#: Cosines of ranks.
N_COSINES = 8
#: Rows of the stated frequency that are added to each pool of the isotonic fit, so that no bet risks everything.
SHRINKAGE = 5.0


class Wealth:
    """Bets on one score after the other: past rows in cells, alternatives, and what each has won.

    Attributes
    ----------
    log_wealth : ndarray of shape (E,)
        Logarithm of each alternative's product of likelihood ratios. ∞ once an outcome had stated probability 0.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self.largest = 0.0  # weight so far
        self.fit_at = FIRST
        self.count: FloatArray = np.zeros(N_CELLS)
        self.positive: FloatArray = np.zeros(N_CELLS)
        self.score: FloatArray = np.zeros(N_CELLS)
        self.theta: FloatArray = np.zeros((len(PRIORS), N_COSINES + 2))
        self.shifts: FloatArray = np.zeros((len(PRIORS), N_CELLS))
        self.log_wealth: FloatArray = np.zeros(len(PRIORS))

    def path(
        self,
        scores: FloatArray,
        happened: AnyArray,
        weights: FloatArray | None = None,
        group_starts: IntArray | None = None,
    ) -> FloatArray:
        """Take rows one after the other; log wealth of every alternative after each bet, (E, n).

        A row's log ratio counts by its weight over the largest so far: a power of at most 1 is at most 1 on average.
        Rows of one group are one bet, the mean of theirs, which is 1 on average however they hang together; its
        alternatives are those of the groups before. ``group_starts`` are where groups begin; None: rows by themselves.
        """
        s = scores.astype(np.float64)
        with np.errstate(divide="ignore"):
            z = np.log(s) - np.log1p(-s)
        certain = ~np.isfinite(z)
        impossible = certain & (happened != (s > 0.5))
        cell = cells_of(np.where(certain, 0.0, z))
        w = ones_or(weights, s.size)
        most = np.maximum(np.maximum.accumulate(w), self.largest) if s.size else w
        parts = []
        start = 0
        while start < s.size:
            stop = min(s.size, start + self.fit_at - self.n_rows, start + TOGETHER)
            if group_starts is not None:  # the end of the group that is reached
                ends = np.append(group_starts[1:], s.size)
                stop = int(ends[np.searchsorted(ends, stop)])
            rows = slice(start, stop)
            won = log_ratio(self.shifts[:, cell[rows]], np.where(certain[rows], 0.0, z[rows]), happened[rows])
            won *= w[rows] / most[rows]
            won[:, certain[rows]] = 0.0
            won[:, impossible[rows]] = np.inf
            if group_starts is not None:
                inner = group_starts[(group_starts >= start) & (group_starts < stop)] - start
                count = np.diff(inner, append=stop - start)
                won = np.logaddexp.reduceat(won, inner, axis=1) - np.log(count)
            parts.append(self.log_wealth[:, None] + np.cumsum(won, axis=1))
            self.log_wealth = parts[-1][:, -1]
            inside = ~certain[rows]
            self._keep(cell[rows][inside], s[rows][inside], happened[rows][inside], w[rows][inside])
            self.n_rows += stop - start
            self.largest = float(most[stop - 1])
            if self.n_rows >= self.fit_at:
                sums = (self.count / self.largest, self.positive / self.largest, self.score / self.largest)
                self.theta, self.shifts = alternatives(*sums, self.theta)
                self.fit_at = max(self.n_rows + 1, int(np.ceil(GROWTH * self.n_rows)))
            start = stop
        return np.concatenate(parts, axis=1)

    def _keep(self, cell: AnyArray, s: FloatArray, happened: AnyArray, w: FloatArray) -> None:
        self.count += np.bincount(cell, w, N_CELLS)
        self.positive += np.bincount(cell, w * happened, N_CELLS)
        self.score += np.bincount(cell, w * s, N_CELLS)


def cells_of(z: FloatArray) -> AnyArray:
    """Cell of each log odds."""
    return np.asarray(np.clip((z + END) * (N_CELLS / (2 * END)), 0, N_CELLS - 1), dtype=np.intp)


def log_ratio(shift: FloatArray, z: FloatArray, happened: AnyArray) -> FloatArray:
    """Logarithm of the likelihood ratio of ``logit q = z + shift`` to the stated ``logit p = z``."""
    growth = np.logaddexp(0, z + shift) - np.logaddexp(0, z)
    return np.asarray(np.where(happened, shift, 0.0) - growth)


def alternatives(
    count: FloatArray, positive: FloatArray, score: FloatArray, start: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Coefficients of each alternative, and what it adds to the stated log odds in each cell, (E, cells).

    Logistic maps with normal priors around the identity: a line in the log odds, and two with waves over the ranks of
    the scores besides. The search starts from ``start``, the coefficients of the fit before.
    """
    used = count > 0
    if not used.any():
        return start, np.zeros((len(PRIORS), N_CELLS))
    z = (np.arange(N_CELLS) + 0.5) * (2 * END / N_CELLS) - END
    mean = score[used] / count[used]
    with np.errstate(divide="ignore"):  # a mean that rounds to 1
        z[used] = np.clip(np.log(mean) - np.log1p(-mean), -END, END)
    total = count.sum()
    rank = (np.cumsum(count) - count / 2) / total
    centre = (count @ z) / total
    spread = np.sqrt(count @ (z - centre) ** 2 / total)
    slope = (z - centre) / spread if spread > 1e-9 else np.zeros(N_CELLS)
    order = np.arange(1, N_COSINES + 1)[:, None]
    cosines = np.cos(np.pi * order * rank) / order
    columns = np.stack(
        [np.concatenate([[line * np.ones(N_CELLS), line * slope], wave * cosines]) for line, wave in PRIORS]
    )
    at, rows, hits = (np.broadcast_to(values[used], (len(PRIORS), mean.size)) for values in (z, count, positive))
    theta = fit(columns[:, :, used], at, rows, hits, 1.0, start)
    return theta, np.asarray((theta[:, None, :] @ columns)[:, 0])


def split_log_ratios(
    scores: FloatArray,
    happened: AnyArray,
    n_splits: int,
    fraction: float,
    rng: np.random.Generator,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Log likelihood ratio of each split: isotonic fit to some rows, read at the others.

    Weights, over the largest, are exponents of at most 1.
    """
    stake = ones_or(weights, scores.size)
    stake = stake / stake.max()
    distinct, home = np.unique(scores.astype(np.float64), return_inverse=True)
    s: FloatArray = distinct
    inside, n = (s > 0) & (s < 1), home.size
    n_fit = min(max(1, round(fraction * n)), n - 1)
    found = np.empty(n_splits)
    for i in counted(range(n_splits), "splits"):
        order = rng.permutation(n)
        # Rows and positives of each distinct score, in the part that is fitted and in the other.
        (count, positive), (left, won) = (
            (_sums(home[rows], s.size, stake[rows]), _sums(home[rows], s.size, stake[rows] * happened[rows]))
            for rows in (order[:n_fit], order[n_fit:])
        )
        used = (count > 0) & inside
        at, q = s[used], s
        if at.size:
            fitted = shrunken_isotonic(at, count[used], positive[used])
            q = fitted[np.searchsorted((at[1:] + at[:-1]) / 2, s)]
        found[i] = likelihood_ratio(q, s, won, left)
    return found


def _sums(home: AnyArray, size: int, values: AnyArray) -> FloatArray:
    """Sums of values by place."""
    return np.asarray(np.bincount(home, values, size), dtype=np.float64)


def shrunken_isotonic(scores: FloatArray, count: FloatArray, positive: FloatArray) -> FloatArray:
    """The isotonic fit at ascending scores, each pool's frequency drawn to what it states."""
    pool = np.unique(isotonic_means(positive, count), return_inverse=True)[1]
    weight = np.bincount(pool, count)
    stated = np.bincount(pool, count * scores) / weight
    found = (np.bincount(pool, positive) + SHRINKAGE * stated) / (weight + SHRINKAGE)
    # Rounding may leave 0 or 1, which would risk everything.
    return np.asarray(np.clip(found, np.finfo(float).tiny, 1 - np.finfo(float).epsneg)[pool])


def likelihood_ratio(q: FloatArray, p: FloatArray, positive: FloatArray, count: FloatArray) -> float:
    """Logarithm of ``Π (q/p)^positive ((1-q)/(1-p))^(count-positive)``.

    No bet is made on scores of 0 and 1; against them the ratio is ∞.
    """
    certain = (p == 0) | (p == 1)
    if np.any(np.where(p == 0, positive, count - positive)[certain] > 0):
        return float("inf")
    q, p, positive, count = (values[~certain] for values in (q, p, positive, count))
    return float(positive @ (np.log(q) - np.log(p)) + (count - positive) @ (np.log1p(-q) - np.log1p(-p)))
