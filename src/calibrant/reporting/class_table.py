"""The class-wise table of a report: error, interval and test of each class against the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..data.printing import capital, equals, nouns, with_ends
from ..data.result import Result
from ..data.types import FloatArray, Interval, Label
from ..estimators.base import SCALES
from ..measure.intervals import accepted
from ..measure.streaming import Accumulator
from ..significance.report_test import beyond, range_tests
from ..significance.result import holm, least_pvalue
from ..sums import BinMoments

#: Maximum number of classes named.
NAMED = 5
#: Number of problems computed at a time.
_TOGETHER = 128
_HALF_NORMAL = np.sqrt(2 / np.pi)
_NO_INTERVAL = Interval(float("nan"), float("nan"))


@dataclass(frozen=True, repr=False)
class ClassRow(Result):
    """One class of the per-class table, against the rest, or one of several labels.

    Attributes
    ----------
    label : label
        The class.
    count : float
        Weight of the rows of this class.
    base_rate, mean_prob : float
        Its share of the rows, and its mean predicted probability.
    ece : float
        Its expected calibration error, over 15 bins of equal width (or those of the :class:`Accumulator`).
    interval : Interval
        Interval of that error, widened to include ``ece``, at the report's level for each class separately. For a
        significant class, which the data selected, it is adjusted for all classes (Bonferroni), and starts above 0
        where the test rejects with this correction.
    pvalue : float
        The p-value (null: the class is calibrated, occurring as often as predicted, overall and in ranges of scores);
        see :func:`calibrant.significance.report_test.range_tests`. NaN if the rows carry no information.
    adjusted : float
        P-value corrected for the number of classes by Holm's method, and divided by the share of ``1 - level`` for
        classes, the rest being for the test of all rows (:class:`.Evidence`): for a calibrated model, any class is
        significant in at most this share of samples, however the classes depend on each other. Two complementary
        classes have the p-value of the report.
    significant : bool
        Whether the class is miscalibrated: ``adjusted`` is at most ``1 - level``.
    several : bool
        Whether it is one of several labels that a row may have, rather than a class.

    See Also
    --------
    calibrant.report : Computes it, in ``per_class``.
    calibrant.results.Report : The whole report.

    Examples
    --------
    >>> import calibrant as cal
    >>> sample = cal.datasets.load_digits_predictions()
    >>> worst = cal.report(sample.y_true, sample.y_prob, notion="classwise").per_class[0]
    >>> worst.significant, worst.adjusted <= 0.05
    (True, True)
    """

    _unpictured: ClassVar[str] = "No picture: plot() of the report draws it."

    label: Label
    count: float
    base_rate: float
    mean_prob: float
    ece: float
    interval: Interval = _NO_INTERVAL
    pvalue: float = float("nan")
    adjusted: float = float("nan")
    significant: bool = False
    several: bool = False

    @property
    def summary(self) -> str:
        """Whether the class is miscalibrated."""
        found = "significantly" if self.significant else "not significantly"
        error = f"ECE {with_ends(self.ece, self.interval)}, adjusted p {equals(self.adjusted)}"
        return f"{capital(self.name)} is {found} miscalibrated: {error}."

    @property
    def name(self) -> str:
        """``class 3``, or ``label 3`` for rows that may have several."""
        return nouns(several=self.several).of(self.label)

    @property
    def direction(self) -> str:
        """Whether probabilities are "too high" or "too low", if the gap of the mean is half the error, else "both"."""
        gap = self.mean_prob - self.base_rate
        return "both" if 2 * abs(gap) < self.ece or not gap else "too high" if gap > 0 else "too low"


def class_rows(sums: Accumulator, level: float, share: float = 1.0, n_groups: int | None = None) -> list[ClassRow]:
    """Per-class table, worst first, of all classes at once; empty for two classes and one column.

    The tests of classes have a ``share`` of ``1 - level``; with ``n_groups`` groups, no p-value is below their bound.
    """
    totals, problem_sums = sums.required_totals(), sums.by_class
    if problem_sums is None or not totals.weight > 0:
        return []
    bins: BinMoments = BinMoments.together(list(problem_sums.sums(sums.binned._needs(problem_sums.domain))))
    errors = sums.binned.read(bins, 1)  # p-th powers of p = 1
    low, high = binned_intervals(bins, level)
    pvalues, shifts = range_tests(bins)
    if n_groups is not None:
        pvalues = np.maximum(pvalues, least_pvalue(n_groups))
    # Holm's: a calibrated model has any class marked in at most 1 - level of all samples, however tests depend. The
    # columns of a row add up to 1, so what is needed for Benjamini and Hochberg's need not hold.
    adjusted = np.minimum(holm(pvalues) / share, 1.0)
    marked = adjusted <= 1 - level
    # Whichever of the classes marked is told of, its interval covers; two are one question.
    tail = (1 - level) / (len(marked) if len(marked) > 2 or sums.several else 1)
    low[marked], high[marked] = binned_intervals(bins[marked], 1 - tail)
    low = np.where(marked & ~(low > 0), shifts * beyond(pvalues, share * tail), low)
    rates, stated = totals.class_weight / totals.weight, totals.prob_sum / totals.weight
    shown = np.maximum(errors, 0.0)
    ends = np.fmin(low, shown), np.fmax(high, shown)
    order = np.argsort(-errors, kind="stable")
    columns = (totals.class_weight, rates, stated, errors, *ends, pvalues, adjusted)
    numbers = np.stack(columns)[:, order].T.tolist()
    return [
        ClassRow(
            sums.classes[k],
            count,
            rate,
            mean,
            error,
            Interval(bottom, top),
            p,
            corrected,
            bool(marked[k]),
            sums.several,
        )
        for k, (count, rate, mean, error, bottom, top, p, corrected) in zip(order, numbers, strict=True)
    ]


def class_sentence(rows: Sequence[ClassRow], unit: float = 1.0) -> str:
    """Sentence on the miscalibrated classes, worst first, or that none is; "" for two complementary classes.

    ``unit``: number of rows per unit of weight, the effective sample size divided by the total weight. Two of several
    labels are not complementary.
    """
    several = any(row.several for row in rows)
    what_of = nouns(several=several).many
    if len(rows) <= (0 if several else 2) or all(np.isnan(row.pvalue) for row in rows):
        return ""
    marked = [row for row in rows if row.significant]
    if not marked:
        return f"None of the {len(rows):,} {what_of} is significantly miscalibrated."
    named = [f"{row.label} ({round(row.count * unit):,} rows)" for row in marked[:NAMED]]
    last = f"{len(marked) - NAMED:,} more" if len(marked) > NAMED else named.pop() if len(named) > 1 else ""
    what = ", ".join(named) + f" and {last}" * bool(last)
    of_all = f"All {len(rows):,}" if len(marked) == len(rows) else f"{len(marked):,} of the {len(rows):,}"
    return f"{of_all} {what_of} {'is' if len(marked) == 1 else 'are'} miscalibrated: {what}."


def binned_intervals(sums: BinMoments, level: float) -> tuple[FloatArray, FloatArray]:
    r"""Ends of the interval for ``Σ_b w_b |gap_b|`` of each problem, (R,) each, without draws.

    The truths are those of the path of :mod:`calibrant.measure.intervals`, from calibration to three times the gaps
    found, and are accepted by the same rule. Instead of draws, quantiles come from the first three cumulants of the
    estimate, a sum over bins of absolute values of normal variables, by the Cornish–Fisher expansion.

    Parameters
    ----------
    sums : BinMoments of shape (R, B)
    level : float

    Returns
    -------
    low, high : ndarray of shape (R,)
        In [0, 1], ``low`` exactly 0 where the data are compatible with calibration; NaN without data.

    Notes
    -----
    As with all intervals of bins, the error is that resolved by bins: gaps that cancel within a bin are not included.
    Each interval has its level separately, not all together. Cost: 11 scales × R × B numbers, independent of n.

    References
    ----------
    Cornish & Fisher (1938), *Moments and cumulants in the specification of distributions*; Leone, Nelson & Nottingham
    (1961), *The folded normal distribution*.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.data.problem import Problem
    >>> from calibrant.sums import BinMoments, uniform_edges
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(3000)
    >>> sums = BinMoments.of(Problem(s, rng.random(3000) < s**2, None, True), uniform_edges(15))
    >>> low, high = binned_intervals(sums, 0.95)
    >>> bool(0.1 < low[0] < 1 / 6 < high[0] < 0.2)
    True
    """
    scores, count, positive = (np.atleast_2d(v) for v in sums.atoms)
    scores = np.nan_to_num(scores)
    ends = [
        _ends(scores[a : a + _TOGETHER], count[a : a + _TOGETHER], positive[a : a + _TOGETHER], level)
        for a in range(0, len(scores), _TOGETHER)
    ]
    low, high = np.concatenate([np.empty((2, 0)), *ends], axis=-1)
    return low, high


def _ends(scores: FloatArray, count: FloatArray, positive: FloatArray, level: float) -> FloatArray:
    """Lower and upper ends, (2, r), from mean scores, samples and positives of bins, (r, B)."""
    total = count.sum(axis=-1)
    size = np.where(total > 0, total, np.nan)
    gap = np.divide(positive, count, out=scores.copy(), where=count > 0) - scores
    observed = (count * np.abs(gap)).sum(axis=-1) / size
    chances = np.clip(scores + SCALES[:, None, None] * gap, 0, 1)  # (S, r, B)
    moved = chances - scores
    truths = (count * np.abs(moved)).sum(axis=-1) / size  # (S, r)
    # Outcomes vary, and so do the samples of a bin, which the estimate divides by those of all.
    variance = count * (chances * (1 - chances) + (np.abs(moved) - np.nan_to_num(truths)[..., None]) ** 2)
    table = _quantiles(count * moved, np.sqrt(variance), (1 - level) / 2) / size
    low, high, _ = accepted(observed, np.moveaxis(table, 1, -1), truths.T, np.maximum(observed, 1.0), level)
    # Not one deviation in n samples: the exact binomial bound.
    none = truths[-1] == 0
    unseen = 1 - ((1 - level) / 2) ** (1 / np.maximum(np.nan_to_num(size), 1.0))
    ends = np.stack(
        [np.where(none, 0.0, np.minimum(low, observed)), np.where(none, unseen, np.maximum(high, observed))]
    )
    return np.where(np.isnan(observed), np.nan, ends)


def _quantiles(mean: FloatArray, sd: FloatArray, tail: float) -> FloatArray:
    """Lower, median and upper quantiles of ``Σ_b |mean_b + sd_b Z_b|``, (3, …), from its first three cumulants."""
    from scipy.special import ndtr, ndtri

    m = np.abs(mean)
    z = np.divide(m, sd, out=np.full(m.shape, np.inf), where=sd > 0)
    density = _HALF_NORMAL * np.exp(-(np.minimum(z, 40.0) ** 2) / 2)
    first = np.where(sd > 0, sd * density + m * (2 * ndtr(np.minimum(z, 40.0)) - 1), m)
    second = m**2 + sd**2
    third = sd * density * (m**2 + 2 * sd**2) + m * (2 * ndtr(np.minimum(z, 40.0)) - 1) * (m**2 + 3 * sd**2)
    third = np.where(sd > 0, third, m**3)
    k1 = first.sum(axis=-1)
    k2 = np.maximum(second - first**2, 0.0).sum(axis=-1)
    k3 = (third - 3 * first * second + 2 * first**3).sum(axis=-1)
    spread = np.sqrt(k2)
    skew = np.divide(k3, spread**3, out=np.zeros_like(k3), where=spread**3 > 0).clip(0.0, 1.0)
    at = ndtri(np.array([tail, 0.5, 1 - tail])).reshape(-1, *[1] * k1.ndim)
    # The third cumulant moves quantiles by (z² - 1) / 6 of the skewness; a sum of sizes is not below 0.
    return np.asarray(np.maximum(k1 + spread * (at + (at**2 - 1) * skew / 6), 0.0))
