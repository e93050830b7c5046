"""Tests of counts: Hosmer–Lemeshow over bins of scores, Pearson over distinct scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Unpack

import numpy as np

from ..data.checks import check_choice, check_int, check_random_state, check_resamples
from ..data.dependence import group_codes
from ..data.printing import number_of
from ..data.public_function import InputOptions, public_function
from ..data.types import AnyArray, FloatArray, RandomState
from ..data.validation import as_predictions
from .classical import EffectiveRows
from .null import GroupSigns, scale_of, share_at_least
from .result import TestResult

#: Expected counts below this make the chi-squared approximation doubtful.
_SMALL = 5.0
#: Numbers drawn at a time.
_BLOCK = 1 << 21
_NONE: Mapping[str, float] = MappingProxyType({})


def _percentiles(values: FloatArray, times: FloatArray, n_bins: int) -> FloatArray:
    """``n_bins + 1`` percentiles of values repeated ``times``, interpolated as in NumPy."""
    order = np.argsort(values, kind="stable")
    s, upto = values[order], np.cumsum(times[order])
    place = np.linspace(0, 1, n_bins + 1) * (upto[-1] - 1)
    below = np.floor(place)
    low, high = (s[np.minimum(np.searchsorted(upto, at, side="right"), s.size - 1)] for at in (below, below + 1))
    return np.asarray(low + (place - below) * (high - low))


@public_function(grouped=True)
def hosmer_lemeshow_test(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_bins: int = 10,
    df: str | int = "external",
    n_resamples: int = 999,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> TestResult:
    r"""Hosmer–Lemeshow test for two classes or (Fagerland, Hosmer & Bofin 2008) more.

    .. math:: C = \sum_g \sum_k \frac{(O_{gk} - E_{gk})^2}{E_{gk}}

    over bins g of rows and classes k, with observed counts O and expected counts E (sums of probabilities).

    Parameters
    ----------
    n_bins : int ≥ 3, default 10
        Number of bins, which are right-closed, with edges at percentiles of one minus the probability of the first
        class (of the probability itself if ``y_prob`` is 1-D). Equal percentiles are merged.
    df : {"external", "fit"} or int, default "external"
        Degrees of freedom: ``g (K - 1)`` for held-out rows, ``(g - 2)(K - 1)`` for the model's training rows. Not used
        with ``groups``.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights, not all 0. Whole numbers stand for repeated rows; others are scaled to the effective
        sample size.

    Returns
    -------
    TestResult
        ``warnings`` if more than a fifth of the expected counts are below 5. A cell with E = 0 contributes 0 if nothing
        was observed there, otherwise ∞.

    Raises
    ------
    ValueError
        The message names the argument, the allowed values and the value received.

    See Also
    --------
    calibrant.significance.pearson_test : The same statistic over distinct scores.
    calibrant.significance.evalue_test : A safe alternative, without bins.
    calibrant.significance.adaptive_test : Bins of all sizes at once.

    Notes
    -----
    The result depends on the bins and, with tied scores, on the convention for bin edges. On held-out rows,
    ``df="fit"`` rejects 10 to 16 % of calibrated models at the 5 % level. Cost O(n log n).

    References
    ----------
    Hosmer & Lemeshow (1980); Fagerland, Hosmer & Bofin (2008), *Multinomial goodness-of-fit tests for logistic
    regression models*; Silva Filho et al. (2023), eq. 21 (which as printed counts every term twice) and Table 8.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> result = cal.significance.hosmer_lemeshow_test(rng.random(2000) < p**1.5, p, df="external")
    >>> bool(result.pvalue < 1e-6), result.df
    (True, 10.0)
    """
    n_bins = check_int("n_bins", n_bins, 3)
    p = as_predictions(y_true, y_prob, **inputs)
    n_resamples = check_resamples(n_resamples, 1)
    rows = EffectiveRows.of(p)
    k = rows.matrix.shape[1]
    score = 1 - rows.matrix[:, 0] if k > 2 or p.positive is None else rows.matrix[:, 1]
    times = rows.weights if p.integral_weights else np.ones(len(score))
    cell = np.searchsorted(np.unique(_percentiles(score, times, n_bins))[1:-1], score, side="left")
    counts = _Counts.of(rows, cell)
    found_bins = len(counts.expected)
    freedom = _freedom(df, found_bins, k)
    warnings = []
    if found_bins < n_bins:
        warnings.append(f"percentiles of the scores coincide: {found_bins} instead of {n_bins} bins")
    null = "outcomes in each bin are as frequent as stated"
    if rows.groups is not None:
        name = f"Hosmer–Lemeshow statistic, {number_of(found_bins, 'bin')} of scores"
        return counts.by_signs(null, name, warnings, n_resamples, check_random_state(random_state))
    warnings += _few(counts.expected)
    if freedom < 1:
        warnings.append("too few bins for a p-value")
    return counts.by_degrees(null, f"Hosmer–Lemeshow test, {number_of(found_bins, 'bin')}", warnings, freedom)


@dataclass(frozen=True, eq=False)
class _Counts:
    """Rows by cell: observed and expected counts of each class, (cells, K)."""

    rows: EffectiveRows
    cell: AnyArray
    expected: AnyArray

    @classmethod
    def of(cls, rows: EffectiveRows, cell: AnyArray) -> _Counts:
        """Counts by cell; the expected counts are sums of the rows' probabilities."""
        return cls(rows, cell, np.stack([np.bincount(cell, rows.weights * v) for v in rows.matrix.T], axis=1))

    @cached_property
    def statistic(self) -> float:
        """``Σ (O - E)² / E`` of observed counts."""
        slot = self.cell * self.expected.shape[1] + self.rows.codes
        observed = np.bincount(slot, self.rows.weights, self.expected.size).reshape(self.expected.shape)
        return float(self.chi_squared(observed))

    def by_degrees(
        self, null: str, name: str, warnings: Iterable[str], df: int, details: Mapping[str, float] = _NONE
    ) -> TestResult:
        """The test by the chi-squared distribution; no p-value without degrees of freedom."""
        from scipy.stats import chi2

        pvalue = float(chi2.sf(self.statistic, df)) if df >= 1 else float("nan") if self.statistic > 0 else 1.0
        return TestResult(self.statistic, pvalue, null, name, len(self.cell), float(df), details, tuple(warnings))

    def chi_squared(self, observed: AnyArray) -> FloatArray:
        """``Σ (O - E)² / E`` over the last two axes; ∞ if an outcome with E = 0 was observed."""
        gap = (observed.astype(np.float64) - self.expected) ** 2
        with np.errstate(over="ignore"):  # what was all but impossible
            terms = np.divide(gap, self.expected, out=np.where(gap > 0, np.inf, 0.0), where=self.expected > 0)
        return np.asarray(terms.sum(axis=(-2, -1)))

    def by_signs(
        self, null: str, name: str, warnings: Iterable[str], n_draws: int, rng: np.random.Generator
    ) -> TestResult:
        """The test by draws of the signs of groups' residuals."""
        from scipy.sparse import csr_array

        matrix, w = self.rows.matrix, self.rows.weights
        n, k = matrix.shape
        cells = len(self.expected)
        residual = -matrix
        residual[np.arange(n), self.rows.codes] += 1
        signs = GroupSigns(group_codes(np.asarray(self.rows.groups)))
        # The statistic divides by what each cell states: there too single rows vary at least as stated.
        squares = (residual**2).sum(axis=1), 1 - (matrix**2).sum(axis=1)
        happened, stated = (np.bincount(self.cell, w * w * v, minlength=cells) for v in squares)
        scale = scale_of(happened, stated)
        residual *= (w * scale[self.cell])[:, None]
        slot = self.cell[:, None] * k + np.arange(k)
        place = np.repeat(signs.group, k), slot.reshape(-1)
        sums = csr_array((residual.reshape(-1), place), shape=(signs.n_groups, self.expected.size))

        def statistic(sets: FloatArray) -> FloatArray:
            return self.chi_squared(np.asarray(sets @ sums).reshape(-1, *self.expected.shape) + self.expected)

        draws = signs.draws(statistic, n_draws, rng, self.expected.size)
        pvalue, how = signs.pvalue(draws, self.statistic), f"{name}, {signs.described(n_draws)}"
        return TestResult(
            self.statistic, pvalue, null, how, n, warnings=tuple(warnings), draws=draws, n_groups=signs.n_groups
        )


def _few(expected: FloatArray) -> list[str]:
    """A warning if more than a fifth of the expected counts are small."""
    small = int((expected < _SMALL).sum())
    return [f"expected counts below {_SMALL:g}: {small} of {expected.size}"] if small > 0.2 * expected.size else []


def _freedom(df: Any, found_bins: int, k: int) -> int:
    if isinstance(df, str) and df in ("fit", "external"):
        return (found_bins - 2 if df == "fit" else found_bins) * (k - 1)
    return check_int("df", df, 1, instead="'fit', 'external' or ")


@public_function(grouped=True)
def pearson_test(
    y_true: Any,
    y_prob: Any = None,
    *,
    algorithm: str = "auto",
    n_resamples: int = 999,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> TestResult:
    r"""Pearson's chi-squared test of whether classes are as frequent as each distinct score states.

    .. math:: X^2 = \sum_m \sum_k \frac{(O_{mk} - n_m v_{mk})^2}{n_m v_{mk}}

    over the distinct probability vectors v_m, each stated for n_m rows, of which O_mk are of class k. For two or more
    classes.

    Parameters
    ----------
    algorithm : {"auto", "chi-squared", "resampling"}, default "auto"
        How the p-value is computed. ``"chi-squared"``: from the distribution for many rows per score. ``"resampling"``:
        from counts drawn from the scores, exact for any n; needs whole-number weights. ``"auto"``: by resampling if it
        is possible and more than a fifth of the expected counts are below 5, as for scores that rarely repeat.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights, not all 0. Whole numbers stand for repeated rows; others are scaled to the effective
        sample size.

    Returns
    -------
    TestResult
        ``df``: ``Σ_m (classes of positive probability - 1)``, if the p-value is from the chi-squared distribution.
        ``details``: ``distinct_scores``. An outcome of stated probability 0 makes the statistic ∞.

    Raises
    ------
    ValueError
        The message names the argument, the allowed values and the value received.

    See Also
    --------
    calibrant.significance.hosmer_lemeshow_test : The same statistic over bins.
    calibrant.calibration_test : A test for scores that rarely repeat.

    Notes
    -----
    The test is sensitive to gaps of any shape, and so not very powerful against any one: with few rows per score prefer
    :func:`calibration_test`. With ``groups``, signs are drawn for the residuals of whole groups, which needs several
    rows per score: if expected counts are small, a warning is given and the p-value is too often small. Cost O(n K log
    n), plus a multinomial count per score and draw.

    References
    ----------
    Pearson (1900); Silva Filho et al. (2023), §6.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.integers(1, 10, 2000) / 10
    >>> result = cal.significance.pearson_test(rng.random(2000) < p**1.5, p)
    >>> bool(result.pvalue < 1e-6), result.df
    (True, 9.0)
    """
    check_choice("algorithm", algorithm, ("auto", "chi-squared", "resampling"))
    n_resamples = check_resamples(n_resamples, 1)
    p = as_predictions(y_true, y_prob, **inputs)
    if algorithm == "resampling" and not p.integral_weights:
        raise ValueError("algorithm='resampling' draws repeated rows: sample_weight must hold whole numbers")
    rows = EffectiveRows.of(p)
    rows = rows._replace(matrix=rows.matrix / rows.matrix.sum(axis=1, keepdims=True))
    scores, cell = np.unique(rows.matrix, axis=0, return_inverse=True)
    cell = cell.reshape(-1)
    size = np.bincount(cell, rows.weights)
    counts = _Counts(rows, cell, size[:, None] * scores)
    freedom, few = int((scores > 0).sum() - len(scores)), _few(counts.expected[scores > 0])
    null, details = "classes are as frequent as each score states", {"distinct_scores": float(len(scores))}
    rng = check_random_state(random_state)
    if freedom < 1:
        pvalue, why = 0.0 if np.isinf(counts.statistic) else 1.0, ("all scores are certain: 0 or 1",)
        return TestResult(counts.statistic, pvalue, null, "Pearson's test", len(cell), details=details, warnings=why)
    if rows.groups is not None:
        return counts.by_signs(null, "Pearson's statistic", few, n_resamples, rng)
    if algorithm == "resampling" or (algorithm == "auto" and few and p.integral_weights):
        block, repeats = max(1, _BLOCK // scores.size), size.astype(np.int64)
        numbers = [min(block, n_resamples - a) for a in range(0, n_resamples, block)]
        draws = np.concatenate([counts.chi_squared(rng.multinomial(repeats, scores, (n, len(size)))) for n in numbers])
        name = f"Pearson's test, resampling under calibration, {number_of(n_resamples, 'draw')}"
        pvalue = share_at_least(draws, counts.statistic)
        return TestResult(counts.statistic, pvalue, null, name, len(cell), details=details, draws=draws)
    return counts.by_degrees(null, "Pearson's test", few, freedom, details)
