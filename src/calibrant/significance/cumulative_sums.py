"""`cumulative_test`: does the cumulative sum of residuals deviate more than noise explains?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import numpy as np

from ..data.checks import check_random_state, check_resamples
from ..data.problem import Problem
from ..data.public_function import InputOptions, public_function
from ..data.types import AnyArray, FloatArray, IntArray, RandomState
from ..data.validation import as_predictions
from ..data.weights import of_variances, ones_or
from ..estimators import Cumulative
from ..notions import Notion, as_notion, only_problem
from .null import DrawnOutcomes, GroupSigns
from .result import TestResult

#: Below this range of a Brownian motion the probability of a larger one is 1 to 12 digits.
_SURELY = 0.5
#: Numbers drawn at a time.
_IN_CACHE = 1 << 16


@public_function(grouped=True)
def cumulative_test(
    y_true: Any,
    y_prob: Any = None,
    *,
    statistic: str = "kuiper",
    notion: str | Notion = "auto",
    n_resamples: int = 999,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> TestResult:
    r"""Kolmogorov–Smirnov or Kuiper test of the cumulative sum of residuals, without bins or bandwidth.

    .. math:: C(t) = \sum_{i: s_i \le t} w_i (o_i - s_i), \qquad \sigma^2 = \sum_i w_i^2 s_i (1 - s_i)

    Under calibration C/σ is close to a Brownian motion: ``sup |C| / σ`` (``"ks"``) or ``(sup C - inf C) / σ``
    (``"kuiper"``) is compared with its distribution for Brownian motion.

    Parameters
    ----------
    statistic : {"kuiper", "ks"}, default "kuiper"
        Kuiper's statistic is as sensitive to gaps that change sign as to those that do not.
    notion : str or Notion, default "auto"
        The notion of calibration, of one problem: the positive class, the confidence, or ``ClassSpecific``.

    Returns
    -------
    TestResult
        ``statistic`` in units of σ. The test is conservative for few rows and for tied scores (a cumulative sum
        evaluated at fewer places deviates less).

    See Also
    --------
    calibrant.subgroup_calibration : The same test for every subgroup.
    calibrant.significance.adaptive_test : A test for gaps at any scale.

    Notes
    -----
    Cost O(n log n), to sort the scores.

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert & Xu (2022); Feller (1951), *The asymptotic distribution of the range of
    sums of independent random variables*; Tygert (2023).

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> bool(cal.significance.cumulative_test(rng.random(1000) < p**1.5, p).pvalue < 1e-4)
    True
    """
    reader = Cumulative(statistic)
    p = as_predictions(y_true, y_prob, **inputs)
    chosen = as_notion(notion, p)
    problem = only_problem(chosen, p)
    spread, n = _spread(problem)
    found = reader.power(problem, 1.0)
    value = found / spread if spread > 0 else (float("inf") if found > 0 else 0.0)
    survival = range_survival if statistic == "kuiper" else sup_survival
    pvalue = float("nan") if np.isnan(value) else survival(float(value))
    name, draws = f"{'Kuiper' if statistic == 'kuiper' else 'Kolmogorov–Smirnov'} test of cumulative residuals", None
    n_groups = None
    if p.groups is not None and spread > 0:
        rng = check_random_state(random_state)
        signs, stray = _signs(problem, p.groups, statistic)
        draws = signs.draws(stray, check_resamples(n_resamples, 1), rng, n) / spread
        pvalue, n_groups = signs.pvalue(draws, float(value)), signs.n_groups
        name += f", {signs.described(n_resamples)}"
    return TestResult(
        statistic=float(value),
        pvalue=pvalue,
        null="residuals have mean 0 at every score",
        name=name,
        n_samples=n,
        draws=draws,
        n_groups=n_groups,
        warnings=() if spread > 0 else ("all scores are 0 or 1: outcomes have no variance under the null hypothesis",),
    )


def _spread(problem: Problem) -> tuple[float, int]:
    """Standard deviation of the mean residual under calibration, and rows."""
    s: FloatArray = problem.scores.astype(np.float64)
    w = ones_or(problem.weights, s.size)
    times = of_variances(w, integral=problem.integral)
    return float(np.sqrt(times @ (s * (1 - s))) / w.sum()), int(s.size)


def _signs(problem: Problem, groups: IntArray, statistic: str) -> tuple[GroupSigns, Callable[[FloatArray], FloatArray]]:
    """Signs of groups, and the statistic of the cumulative sum of residuals with these signs, (r,)."""
    s: FloatArray = problem.scores.astype(np.float64)
    w = ones_or(problem.weights, s.size)
    order = np.argsort(s, kind="stable")
    s, w, residual = s[order], w[order], (problem.outcomes.astype(np.float64) - problem.scores)[order]
    signs = GroupSigns.of(groups[order], residual**2, s * (1 - s), w)
    last, weighted, total = last_of_runs(s), w * residual, w.sum()
    return signs, lambda sets: strays(sets[:, signs.group] * weighted, last, statistic) / total


def last_of_runs(scores: AnyArray) -> AnyArray:
    """Whether each ascending score is the last of its ties: only sums over whole runs of ties count."""
    return np.append(scores[1:] != scores[:-1], True)


def strays(residuals: FloatArray, last: AnyArray, statistic: str = "kuiper") -> FloatArray:
    """Statistic of cumulative sums over the last axis, at the ``last`` of runs; residuals are overwritten.

    Kuiper's maximum minus minimum, including 0 at the start, or the largest absolute value (``"ks"``).
    """
    running = np.cumsum(residuals, axis=-1, out=residuals)
    if not last.all():
        running *= last
    high, low = np.maximum(running.max(axis=-1), 0.0), np.minimum(running.min(axis=-1), 0.0)
    return np.asarray(high - low if statistic == "kuiper" else np.maximum(high, -low))


def kuiper_pvalue(
    scores: FloatArray,
    outcomes: AnyArray,
    weights: FloatArray,
    n_draws: int,
    rng: np.random.Generator,
    *,
    repeats: bool = False,
) -> float:
    r"""``P(sup C - inf C ≥ observed)`` under calibration, C the cumulative sum of ``w (o - s)`` by score.

    Outcomes are drawn for every row ``n_draws`` times; the p-value is ``(1 + #{draws ≥ observed}) / (1 + n_draws)``.
    With ``n_draws = 0`` it is that of a Brownian motion, for many rows. ``repeats``: weights count rows with separate
    outcomes, whose variances add up. The p-value is 1 if all scores are 0 or 1 and outcomes agree with them.
    """
    order = np.argsort(scores, kind="stable")
    s, o, w = scores[order], np.asarray(outcomes, dtype=np.float64)[order], weights[order]
    last = last_of_runs(s)
    observed = float(strays(w * (o - s), last))
    spread = float(np.sqrt(of_variances(w, integral=repeats) @ (s * (1 - s))))
    if not spread > 0:
        return 0.0 if observed > 0 else 1.0
    if n_draws == 0:
        return range_survival(observed / spread)
    trials, unit = (w, np.ones(w.size)) if repeats else (np.ones(w.size), w)
    null = DrawnOutcomes(s, trials.astype(np.int64), unit)
    return null.pvalue(null.draws(lambda residuals: strays(residuals, last), n_draws, rng), observed)


def sup_survival(x: float) -> float:
    """``P(sup |B| > x)`` of a Brownian motion on [0, 1]."""
    if x <= 0:
        return 1.0
    if not np.isfinite(x):
        return 0.0
    from scipy.stats import norm

    if x > 1:  # reflections: converges fast for large x
        k = np.arange(0, 40)
        return float(np.clip(4 * ((-1.0) ** k * norm.sf((2 * k + 1) * x)).sum(), 0, 1))
    odd = 2 * np.arange(0, 40) + 1
    below = 4 / np.pi * ((-1.0) ** ((odd - 1) // 2) / odd * np.exp(-((odd * np.pi / x) ** 2) / 8)).sum()
    return float(np.clip(1 - below, 0, 1))


def range_survival(x: float) -> float:
    """``P(sup B - inf B > x)`` of a Brownian motion on [0, 1] (Feller 1951)."""
    if x < _SURELY:
        return 1.0
    if not np.isfinite(x):
        return 0.0
    from scipy.stats import norm

    k = np.arange(1, 60)
    return float(np.clip(8 * ((-1.0) ** (k - 1) * k * norm.sf(k * x)).sum(), 0, 1))
