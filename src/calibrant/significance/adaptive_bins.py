"""`adaptive_test`: the largest debiased squared error over bins of every dyadic size (T-Cal)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from ..data.checks import check_int, check_random_state, check_resamples
from ..data.predictions import rows_with_weight
from ..data.public_function import InputOptions, public_function
from ..data.types import AnyArray, FloatArray, RandomState
from ..data.validation import as_predictions
from ..data.weights import ones_or
from ..notions import Notion, Target, as_notion
from .null import DrawnLabels, GroupSigns, Null, impossible
from .result import IMPOSSIBLE, TestResult

#: Finest scale: bins this many rounding units of the scores wide.
_UNITS = 8
#: Scales with fewer rows per occupied bin, on average, are left out: a few chance pairs carry little information, and
#: their distribution has a tail that would drown the other scales.
ROWS_A_BIN = 2
#: With more rows than this, no scale has more than 2 ** MOST_CELLS bins per side.
MANY_ROWS, MOST_CELLS = 1 << 18, 15
#: Numbers kept in memory at a time.
_BLOCK = 1 << 20
#: Share of a sum of squares that rounding may leave.
_ROUNDING = 1e-12
#: For rows in groups, scales have at most one bin per this many groups.
GROUPS_A_BIN = 4


@public_function(grouped=True)
def adaptive_test(
    y_true: Any,
    y_prob: Any = None,
    *,
    notion: str | Notion = "auto",
    n_resamples: int = 999,
    n_scales: int | str = "auto",
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> TestResult:
    r"""Adaptive test of calibration by the squared error over bins of all sizes (T-Cal, Lee et al. 2023).

    Scores are divided into :math:`m = 1, 2, 4, 8, \dots` bins of equal volume. At each scale the squared calibration
    error is estimated from pairs of rows that share a bin, so that its mean is 0 for a calibrated model,

    .. math:: T_m = \frac1n \sum_{b} \frac{1}{n_b} \sum_{i \ne j \in b} (o_i - s_i)(o_j - s_j),

    and transformed to be approximately standard normal (see Notes). The statistic is the maximum over scales. Its
    p-value compares it with the maxima for sets of labels drawn from the stated probabilities, and is exact for any n.
    Neither the number of bins nor the smoothness of the gap has to be specified.

    Parameters
    ----------
    notion : str or Notion, default "auto"
        ``"classwise"`` and ``"top-label"``: the maximum is also over their problems. ``"canonical"``: the simplex is
        divided into :math:`m^{K-1}` cells of equal volume and residuals are vectors; cells contain pairs of rows only
        with few classes, and depend on the order of the classes.
    n_resamples : int, default 999
        Number of sets of labels drawn or, with ``groups``, of sets of signs of whole groups' residuals. Pairs of rows
        of one group then carry no information; scales are standardised by the mean and standard deviation of their
        draws, and have at most one bin per four groups.
    n_scales : int or "auto", default "auto"
        Scales 1, 2, …, 2^(n_scales - 1). ``"auto"``: up to :math:`2^B,\ B = \lceil \frac{2}{d} \log_2(n / \sqrt{\ln n})
        \rceil`, d = 1 (canonical K - 1), as in the paper. Scales that divide the rows as a coarser scale does are left
        out, as are scales whose occupied bins contain fewer than two rows on average.
    sample_weight : array-like of shape (n,), optional
        Weights of the residuals. Each row draws one label, whatever its weight, so that the cost does not grow with
        the weights; whole numbers do not stand for repeated rows here.

    Returns
    -------
    TestResult
        ``statistic``: the largest standardised error; ∞ if an outcome had stated probability 0. ``details``:
        ``squared_error``, T at the scale of the maximum; ``bins`` (occupied ones) and ``bins_a_side`` (m) of that
        scale; ``n_scales``, the number of scales tested; ``class_index``, if there are problems of several classes.

    Raises
    ------
    ValueError, TypeError
        The message names the argument, the allowed values and the value received.

    See Also
    --------
    calibrant.calibration_test : The same draws with an estimator of your choice.
    calibrant.significance.cumulative_test : A test without bins and without draws.
    calibrant.significance.TestResult : The result, field by field.

    Notes
    -----
    Differences from the paper: (a) its test rejects if some scale exceeds its own threshold, with a Bonferroni
    correction for the number of scales; here the same draws calibrate all scales jointly, so that nothing is lost to
    their dependence. (b) m = 1 is tested too, and scales with only a few chance pairs are not. (c) Given the scores,
    :math:`T_m` has mean 0 and a known variance under calibration. It is standardised by these and by the cube root of
    Wilson & Hilferty, since its distribution is nearly a shifted :math:`\chi^2`, more skewed the fewer the bins; so no
    scale drowns the others. (d) With more than 2¹⁸ rows, scales have at most 2¹⁵ bins per side; if rows have no weights
    and one outcome each, the rows of a bin at the finest scale are drawn together, as a binomial count at their mean
    probability. By Ehm's inequality this changes no p-value by more than 2·10⁻⁴. The cost is then O(n), plus O(2¹⁵) per
    draw; otherwise O(n log n), plus O(n K) per draw (10⁴ rows, 999 draws: ``benchmarks/speed/judging.md``).

    References
    ----------
    Ehm (1991), *Binomial approximation to the Poisson binomial distribution*, Statistics & Probability Letters 11;
    Lee, Huang, Hassani & Dobriban (2023), *T-Cal: An optimal test for the calibration of predictive models*, JMLR 24;
    Wilson & Hilferty (1931); Ingster (2000), *Adaptive chi-square tests*.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> waves = np.clip(p + 0.15 * np.sin(20 * np.pi * p), 0, 1)
    >>> found = cal.significance.adaptive_test(rng.random(1000) < waves, p, random_state=0)
    >>> bool(found.pvalue < 0.01), found.details["bins_a_side"] >= 16
    (True, True)
    """
    n_resamples = check_resamples(n_resamples, 1)
    automatic = isinstance(n_scales, str) and n_scales == "auto"
    wanted = None if automatic else check_int("n_scales", n_scales, 1, instead="'auto' or ")
    p = as_predictions(y_true, y_prob, **inputs)
    chosen, n_rows = as_notion(notion, p), p.n_samples
    p = rows_with_weight(p)
    codes, targets = p.codes.astype(np.int64), list(chosen.targets(p))
    in_cells = n_rows > MANY_ROWS and p.weights is None and p.together is None and _apart(targets, n_rows)
    problems = [
        Scales.of_cells(t, codes, p.eps, wanted)
        if in_cells and len(t.scores) > MANY_ROWS
        else Scales.of(t, codes, p.eps, p.weights, wanted)
        for t in targets
    ]
    known = [one for one in problems if one.levels]
    lost = sum(impossible(t, codes) for t in targets)
    observed = float(max((one.largest(one.happened)[0] for one in known), default=0.0))
    rng = check_random_state(random_state)
    null: Null = DrawnLabels(p)
    draws: FloatArray = np.zeros(n_resamples)
    if known and p.together is not None:
        null = signs = GroupSigns.of_targets(p, [one.target for one in known])
        observed, draws = _standardised(signs, known, n_resamples, rng)
    elif known and in_cells:
        draws = np.max(
            [np.concatenate([one.largest(sets) for sets in one.drawn(n_resamples, rng)]) for one in known], axis=0
        )
    elif known:
        draws = null.draws(
            lambda sets: np.max([one.largest(one.outcomes(sets)) for one in known], axis=0), n_resamples, rng
        )
    observed = np.inf if lost else observed
    warnings = [f"{IMPOSSIBLE}: {lost}"] if lost else []
    if not known:
        warnings.append("no bin contains two rows whose outcomes are uncertain: there is nothing to test")
    return TestResult(
        statistic=observed,
        pvalue=null.pvalue(draws, observed),
        null=f"the probabilities are calibrated ({chosen.name})",
        name=f"adaptive test of the squared calibration error, {null.described(n_resamples)}",
        n_samples=n_rows,
        details=_details(known, several=len(problems) > 1),
        warnings=tuple(warnings),
        draws=draws,
        n_groups=null.n_groups,
    )


def _standardised(
    signs: GroupSigns, known: Sequence[Scales], n_draws: int, rng: np.random.Generator
) -> tuple[float, FloatArray]:
    """Largest standardised error over scales and problems: observed, and for drawn signs of groups, (R,)."""
    largest, observed = [], []
    residuals = [[k - q[:, None] for k, q in zip(one.happened, one.probs.T, strict=True)] for one in known]
    groups = [signs.group if one.target.rows is None else signs.group[one.target.rows] for one in known]
    problems = list(zip(known, groups, residuals, strict=True))

    def errors(sets: FloatArray) -> FloatArray:
        """Errors at every scale of every problem, (r, scales)."""
        turned = ([sets.T[group] * r for r in columns] for _, group, columns in problems)
        return np.concatenate([one.errors_of(r) for one, r in zip(known, turned, strict=True)]).T

    drawn = signs.draws(errors, n_draws, rng, len(signs.group) * len(residuals[0])).T
    of_problems = np.cumsum([len(one.levels) for one in known])[:-1]
    for one, every, columns in zip(known, np.split(drawn, of_problems), residuals, strict=True):
        mean, sd = every.mean(axis=1), every.std(axis=1)
        bins = np.array([level.weight.size for level in one.levels])
        # Where every bin holds one group, signs change nothing; with few groups a bin, residuals are not symmetric.
        seen = (sd > 1e-9 * mean) & (bins <= max(1, signs.n_groups // GROUPS_A_BIN))
        if seen.any():
            mean, sd = mean[seen, None], sd[seen, None]
            largest.append(((every[seen] - mean) / sd).max(axis=0))
            observed.append(float(((one.errors_of(columns)[seen] - mean) / sd).max()))
    return max(observed, default=0.0), np.max(largest, axis=0) if largest else np.zeros(drawn.shape[1])


def _apart(targets: Sequence[Target], n_rows: int) -> bool:
    """Whether no row belongs to two outcomes, so that they can be drawn independently."""
    if any(t.scores.ndim == 2 for t in targets):
        return False
    if len(targets) == 1:
        return True
    rows = np.concatenate([np.arange(n_rows) if t.rows is None else t.rows for t in targets])
    return int(np.bincount(rows, minlength=n_rows).max()) <= 1


def _details(known: list[Scales], *, several: bool) -> dict[str, float]:
    """Where the largest standardised error of the observed labels was found."""
    if not known:
        return {"n_scales": 0.0}
    errors = [one.squared_errors(one.happened)[:, 0] for one in known]
    z = [one.standardised(e[:, None])[:, 0] for one, e in zip(known, errors, strict=True)]
    which = int(np.argmax([values.max() for values in z]))
    scale = int(z[which].argmax())
    level = known[which].levels[scale]
    found = {
        "squared_error": float(errors[which][scale]),
        "bins": float(level.weight.size),
        "bins_a_side": float(level.a_side),
        "n_scales": float(max(len(one.levels) for one in known)),
    }
    wanted = known[which].target.wanted
    if several and isinstance(wanted, int):
        found["class_index"] = float(wanted)
    return found


@dataclass(frozen=True, eq=False)
class Level:
    """One scale.

    Attributes
    ----------
    a_side : int
        Bins along each axis, including empty ones.
    adds : sparse matrix
        Adds up bins of the next finer level, or units, into the occupied bins of this one.
    weight : ndarray of shape (B,)
        Weight of each bin.
    mean, sd : float
        Under calibration, mean of the part of T from pairs of a row with itself, and standard deviation of T.
    """

    a_side: int
    adds: Any
    weight: FloatArray
    mean: float
    sd: float


@dataclass(frozen=True, eq=False)
class Scales:
    """A problem binned at all scales; its units are rows, or cells of many rows each.

    Attributes
    ----------
    target : Target
    count : ndarray of shape (u,)
        Rows of each unit.
    weights : ndarray of shape (u,)
        Weight of each of these rows.
    probs, squares : ndarray of shape (u, d)
        Mean of the rows' stated probabilities, of one outcome or of all classes, and sum of their squares.
    happened : list of ndarray of shape (u, 1)
        Rows of each unit whose outcome happened.
    levels : tuple of Level
        Finest first; only those that add information.
    """

    target: Target
    count: FloatArray
    weights: FloatArray
    probs: FloatArray
    squares: FloatArray
    happened: list[FloatArray]
    levels: tuple[Level, ...]

    @classmethod
    def of(
        cls, target: Target, codes: AnyArray, eps: float, weights: FloatArray | None = None, n_scales: int | None = None
    ) -> Scales:
        """Bin a target's rows by their scores, given labels, the rounding unit of scores and weights of all rows."""
        s = target.scores.astype(np.float64)
        if weights is not None and target.rows is not None:
            weights = weights[target.rows]
        w, n = ones_or(weights, len(s)), len(s)
        probs, place = (s, _simplex_place(s)) if s.ndim == 2 else (s[:, None], _place(target, s)[:, None])
        most = _most(n, place.shape[1], eps, n_scales)
        cells = _cells(place, eps, most)
        # Entries of the rows' covariance matrices, diag(p) - p pᵀ, those off the diagonal once for both sides.
        variances, (a, b) = probs * (1 - probs), np.tril_indices(probs.shape[1], -1)
        entries = np.concatenate([variances, np.sqrt(2) * probs[:, a] * probs[:, b]], axis=1).T
        cells = cells[:, 0] if cells.shape[1] == 1 else cells
        units = _Units(np.ones(n), w, variances.sum(axis=1), np.stack([entries, entries**2], axis=1))
        levels = _levels(cells, most, units)
        happened = _split(target.outcomes(codes[:, None]))
        return cls(target, np.ones(n), w, probs, probs**2, happened, levels)

    @classmethod
    def of_cells(cls, target: Target, codes: AnyArray, eps: float, n_scales: int | None = None) -> Scales:
        """Like :meth:`of`, for many rows without weights and one outcome each: units are the finest cells."""
        n, most = len(target.scores), _most(len(target.scores), 1, eps, n_scales)
        sums = np.zeros((6, 2**most))
        hits = target.outcomes(codes)
        for a in range(0, n, _BLOCK):
            s = target.scores[a : a + _BLOCK].astype(np.float64)
            home, v = _cells(_place(target, s), eps, most), s * (1 - s)
            for total, each in zip(sums, (None, hits[a : a + _BLOCK], s, s * s, v, v * v), strict=True):
                total += np.bincount(home, each, 2**most)
        used = np.flatnonzero(sums[0])
        count, happened, total, squares, variance, squared = sums[:, used]
        w = np.ones(used.size)
        levels = _levels(used, most, _Units(count, w, variance, np.stack([[variance, squared]])))
        return cls(target, count, w, (total / count)[:, None], squares[:, None], [happened[:, None]], levels)

    def outcomes(self, sets: AnyArray) -> list[FloatArray]:
        """Whether each row's outcome happened, (n, r) each, from labels (r, n of the sample)."""
        return _split(self.target.outcomes(np.ascontiguousarray(sets.T)))

    def drawn(self, n: int, rng: np.random.Generator) -> Iterator[list[FloatArray]]:
        """Rows of each unit whose outcome happened, drawn from the stated probabilities in blocks of the n sets."""
        together = max(1, _BLOCK // max(self.count.size, 1))
        count, chance = self.count.astype(np.int64)[:, None], self.probs.clip(0, 1)
        for a in range(0, n, together):
            yield [rng.binomial(count, chance, (count.size, min(together, n - a))).astype(np.float64)]

    def squared_errors(self, happened: list[FloatArray]) -> FloatArray:
        """T at each scale, (levels, r), of outcomes that happened in the units, (u, r) each."""
        w, count = self.weights[:, None], self.count[:, None]
        columns = [(k, self.probs[:, [i]], self.squares[:, [i]]) for i, k in enumerate(happened)]
        alone = np.add.reduce([w * w * (k * (1 - 2 * p) + q) for k, p, q in columns])
        return self._over_scales([w * (k - count * p) for k, p, _ in columns], alone)

    def errors_of(self, residuals: list[FloatArray]) -> FloatArray:
        """``Σ_b (Σ_i w_i r_i)² / w_b`` at each scale, (levels, r), of residuals of the units, (u, r) each."""
        return self._over_scales([self.weights[:, None] * one for one in residuals], np.zeros((len(self.count), 1)))

    def _over_scales(self, sums: list[FloatArray], alone: FloatArray) -> FloatArray:
        """Squared sums of each bin minus the rows' own squares, over the bins' weights."""
        found = []
        for level in self.levels:
            sums, alone = [level.adds @ one for one in sums], level.adds @ alone
            found.append((1 / level.weight) @ (np.add.reduce([one * one for one in sums]) - alone))
        return np.asarray(np.stack(found) / (self.weights @ self.count))

    def standardised(self, errors: FloatArray) -> FloatArray:
        """T of each level, transformed to be approximately standard normal."""
        mean, sd = (np.array([[getattr(level, name)] for level in self.levels]) for name in ("mean", "sd"))
        spread = (sd / mean) ** 2 / 9  # 2 / (9 ν), with ν = 2 (mean / sd)² degrees of freedom
        return np.asarray((np.cbrt(1 + errors / mean) - (1 - spread)) / np.sqrt(spread))

    def largest(self, happened: list[FloatArray]) -> FloatArray:
        """Largest standardised error over scales, (r,)."""
        return np.asarray(self.standardised(self.squared_errors(happened)).max(axis=0))


def _split(hits: AnyArray) -> list[FloatArray]:
    return [one.astype(np.float64) for one in (np.moveaxis(hits, -1, 0) if hits.ndim == 3 else (hits,))]


def finest(n: int, axes: int, eps: float) -> int:
    """Base-2 logarithm of the paper's largest number of bins per side, as far as the scores' rounding allows."""
    most = int(np.ceil(2 / axes * np.log2(n / np.sqrt(np.log(n))))) if n > 2 else 1
    return max(1, min(most, int(-np.log2(_UNITS * eps))))


def _simplex_place(q: FloatArray) -> FloatArray:
    """Places of vectors in the unit cube, uniform there if the vectors are uniform on the simplex."""
    k = q.shape[1]
    rest = np.maximum(1 - np.cumsum(q, axis=1) + q, 0)[:, :-1]
    broken = np.divide(q[:, :-1], rest, out=np.zeros_like(rest), where=rest > 0).clip(0, 1)
    return np.asarray(1 - (1 - broken) ** np.arange(k - 1, 0, -1))


def _place(target: Target, scores: FloatArray) -> FloatArray:
    low, high = target.domain
    return np.asarray((scores - low) / (high - low))


def _most(n: int, axes: int, eps: float, n_scales: int | None) -> int:
    """Base-2 logarithm of the bins per side at the finest scale."""
    most = finest(n, axes, eps) if n_scales is None else min(n_scales - 1, int(-np.log2(_UNITS * eps)))
    return min(most, MOST_CELLS) if n > MANY_ROWS else most


def _cells(place: FloatArray, eps: float, most: int) -> AnyArray:
    """Right-closed bins at the finest scale, of places in the unit cube."""
    # A place that exceeds an edge by its rounding error lies on the edge.
    return np.asarray(np.clip(np.ceil((place - 4 * eps) * 2.0**most).astype(np.int64) - 1, 0, 2**most - 1))


@dataclass(frozen=True)
class _Units:
    """Binned values: rows, or cells of rows without weights. ``terms``: sums over a unit's rows, of v and of v²."""

    count: FloatArray  # rows, (u,)
    weight: FloatArray  # of one row
    variance: FloatArray  # summed over the rows
    terms: FloatArray  # (T, 2, u), v the entries of the rows' covariance matrices


def _levels(cells: AnyArray, most: int, units: _Units) -> tuple[Level, ...]:
    """Bins at every scale, from those of the units at the finest."""
    n, count = units.count.sum(), units.count
    homes: list[tuple[int, int, AnyArray]] = []
    home = np.arange(len(count))
    for b in range(most, -1, -1):
        cells, parent = np.unique(cells, axis=0, return_inverse=True)
        home = parent.reshape(-1)[home]
        # Bins are nested: as many bins as at the finer scale are the same bins.
        if homes and len(cells) == homes[-1][0]:
            homes.pop()
        if len(cells) * ROWS_A_BIN <= n:
            homes.append((len(cells), 2**b, home))
        cells = cells >> 1
    levels: list[Level] = []
    below = np.arange(len(count))
    for _, a_side, home in homes:
        level = _level(a_side, below, home, units)
        if level.sd > 0:
            levels.append(level)
            below = home
    return tuple(levels)


def _level(a_side: int, below: AnyArray, home: AnyArray, units: _Units) -> Level:
    """Bins' weights, and mean and standard deviation under calibration, given the scores.

    ``below`` and ``home`` are the units' bins at the finer level and at this one.
    """
    from scipy.sparse import csr_array

    w, mass = units.weight, units.count * units.weight

    bins = int(home.max()) + 1
    parent = np.empty(int(below.max()) + 1, dtype=np.intp)
    parent[below] = home
    adds = csr_array((np.ones(parent.size), (parent, np.arange(parent.size))), shape=(bins, parent.size))
    weight = np.bincount(home, mass, bins).astype(np.float64)
    own = w**2 / weight[home]
    # Over pairs of rows of a bin: product of w² v, over the square of the bin's weight.
    total = sum(float((np.bincount(home, own * v, bins) ** 2).sum() - own**2 @ squares) for v, squares in units.terms)
    alone = float(own @ units.variance)
    real = total > _ROUNDING * alone**2
    scale = mass.sum()
    return Level(a_side, adds, weight, alone / scale, float(np.sqrt(2 * total)) / scale if real else 0.0)
