"""Classical tests of calibration: Spiegelhalter's z, and Cox's intercept and slope."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Unpack

import numpy as np

from ..data.checks import check_random_state, check_resamples
from ..data.predictions import Predictions, rows_with_weight
from ..data.public_function import InputOptions, public_function
from ..data.types import AnyArray, FloatArray, RandomState
from ..data.validation import as_predictions
from ..data.weights import of_variances, ones_or
from ..measure.scoring_rules import matrix_of
from ..sums.logistic_fit import DECREMENT, Counts, Point, logits_of, maximum
from .null import GroupSigns
from .result import TestResult

#: Where probabilities are clipped before a logarithm is taken.
EPS = 1e-12
SEPARATED = "outcomes are separated by the scores: intercept and slope have no finite estimate"


class EffectiveRows(NamedTuple):
    """Rows with weight: probabilities (n, K), codes, and weights for sums and for variances, in units of sample size.

    Whole-number weights count repeats, whose variances add up; with other weights the variance of a sum grows with
    their squares. Both are scaled so that the weights sum to the effective sample size.
    """

    matrix: FloatArray
    codes: AnyArray
    weights: FloatArray
    times: FloatArray
    groups: AnyArray | None

    @classmethod
    def of(cls, p: Predictions) -> EffectiveRows:
        """Rows of predictions; a single column is that of the second class."""
        p = rows_with_weight(p)
        matrix, codes, w = matrix_of(p), p.codes.astype(np.intp), ones_or(p.weights, p.n_samples)
        if p.positive == 0:
            matrix, codes = matrix[:, ::-1], 1 - codes
        if not p.integral_weights:
            w = w * (w.sum() / (w @ w))
        return cls(matrix, codes, w, of_variances(w, integral=p.integral_weights), p.groups)


@public_function(grouped=True)
def spiegelhalter_test(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_resamples: int = 999,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> TestResult:
    r"""Spiegelhalter's z-test of whether the Brier score equals its expectation under the probabilities.

    .. math:: & z = \frac{\sum_i (B_i - E B_i)}{\sqrt{\sum_i V_i}}, \qquad B_i = \sum_k (p_{ik} - o_{ik})^2, \\
              & E B_i = 1 - \sum_k p_{ik}^2, \quad V_i = 4 \Big(\sum_k p_{ik}^3 - \big(\sum_k p_{ik}^2\big)^2\Big)

    The test is two-sided, by the normal distribution. It cannot detect errors that leave the Brier score as expected.

    Returns
    -------
    TestResult
        ``z > 0``: a worse Brier score than the probabilities predict (overconfident). If all probabilities are 0 or 1,
        or equal within each row, the score has no variance: z is 0 if the score is as predicted, else infinite.

    See Also
    --------
    calibrant.significance.cox_test : Intercept and slope of the log odds.
    calibrant.calibration_test : The Brier score by resampling (``estimator="brier"``), one-sided.

    Notes
    -----
    Cost O(n K).

    References
    ----------
    Spiegelhalter (1986), *Probabilistic prediction in patient management and clinical trials*.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> bool(cal.significance.spiegelhalter_test(rng.random(2000) < 0.25 + 0.5 * p, p).statistic > 5)
    True
    """
    from scipy.stats import norm

    p = as_predictions(y_true, y_prob, **inputs)
    matrix, codes, w, times, groups = EffectiveRows.of(p)
    if matrix.shape[1] == 2:  # the same, by one of two columns
        score, side = matrix[:, 1], 1 - 2 * matrix[:, 1]
        excess = 2 * side * (codes - score)  # B - E B
        variance = 4 * score * (1 - score) * side**2
    else:
        squared = matrix * matrix
        squares = squared.sum(axis=1)
        own = np.take_along_axis(matrix, codes[:, None], axis=1)[:, 0]
        excess = 2 * (squares - own)
        variance = 4 * np.maximum(np.einsum("ij,ij->i", squared, matrix) - squares**2, 0)
    total = float(times @ variance)
    known = total > 1e-20 * len(codes)
    off = float(w @ excess)
    z = off / np.sqrt(total) if known else math.copysign(math.inf, off) if abs(off) > 1e-9 * float(w.sum()) else 0.0
    name, pvalue, draws, n_groups = "Spiegelhalter's z-test", float(2 * norm.sf(abs(z))), None, None
    if groups is not None and known:
        n_resamples = check_resamples(n_resamples, 1)
        signs = GroupSigns.of(groups, excess**2, variance, w)
        each = signs.sums(w * excess)
        spread = signs.scale * float(np.sqrt((each**2).sum()))
        draws = signs.draws(lambda sets: sets @ each / spread, n_resamples, check_random_state(random_state))
        z, name = off / spread, f"Spiegelhalter's z, {signs.described(n_resamples)}"
        pvalue, n_groups = signs.pvalue(np.abs(draws), abs(z)), signs.n_groups
    return TestResult(
        statistic=float(z),
        pvalue=pvalue,
        null="the Brier score equals its expectation under the probabilities",
        name=name,
        n_samples=len(codes),
        draws=draws,
        n_groups=n_groups,
        warnings=() if known else ("the Brier score has no variance under the null hypothesis",),
    )


@public_function(grouped=True)
def cox_test(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_resamples: int = 999,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> TestResult:
    r"""Joint test of intercept 0 and slope 1 of the log odds (Cox's recalibration test).

    .. math:: \operatorname{logit} P(o = 1) = a + b \operatorname{logit} p, \qquad H_0: a = 0,\ b = 1

    Likelihood-ratio test with two degrees of freedom. With ``groups``, the score test, which is equivalent for small
    gaps, with draws of the signs of whole groups' residuals, and cluster-robust standard errors.

    Parameters
    ----------
    y_prob : array-like of shape (n,) or (n, 2)
        Predicted probability of ``pos_label``, or one column for each of the two classes; clipped to [1e-12, 1 -
        1e-12].

    Returns
    -------
    TestResult
        ``details``: ``intercept``, ``slope`` (below 1: overconfident) and their standard errors; ``in_the_large``, the
        intercept at slope 1, and its p-value.

    Raises
    ------
    ValueError
        For more than two classes.

    See Also
    --------
    calibrant.calibration_measures : Intercept and slope with intervals.
    calibrant.significance.calibration_belt : Polynomials instead of the line.

    Notes
    -----
    Cost O(n) per Newton step, about ten steps.

    References
    ----------
    Cox (1958), *Two further applications of a model for binary regression*; Miller, Hui & Tierney (1991).

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> result = cal.significance.cox_test(rng.random(4000) < 1 / (1 + (1 / p - 1) ** 0.5), p)  # log odds halved
    >>> bool(abs(result.details["slope"] - 0.5) < 0.05 and result.pvalue < 1e-10)
    True
    """
    from scipy.stats import chi2

    p = as_predictions(y_true, y_prob, **inputs)
    if p.n_classes != 2:
        raise ValueError(f"Cox's test needs two classes; got {p.n_classes}: test each against the rest")
    matrix, codes, w, _, groups = EffectiveRows.of(p)
    clipped, z, o = np.clip(matrix[:, 1], EPS, 1 - EPS), logits_of(matrix[:, 1], EPS), codes.astype(np.float64)
    warnings = []
    if (matrix[:, 1] != clipped).any():
        warnings.append("probabilities of 0 or 1 are moved inwards by 1e-12 and strongly influence slope and intercept")
    varied = bool(np.ptp(z) > 0)
    x = np.column_stack([np.ones_like(z), z])[:, : 1 + varied]
    large, large_se, at_large, ended = _logistic(x[:, :1], z, o, w, np.zeros(1))
    if varied:
        free, se, likelihood, both_ended = _logistic(x, np.zeros_like(z), o, w, np.array([0.0, 1.0]))
        ended = ended and both_ended
    else:  # one score says nothing of a slope
        free, se, likelihood = np.append(large, np.nan), np.append(large_se, np.nan), at_large
        warnings.append("all scores are equal: the slope is not identified, and only the intercept is tested")
    if not ended:
        warnings.append(SEPARATED)
    plain = float(w @ (o * z - np.logaddexp(0, z)))
    statistic = max(2 * (likelihood - plain), 0.0)
    pvalue, large_pvalue = float(chi2.sf(statistic, 1 + varied)), float(chi2.sf(max(2 * (at_large - plain), 0.0), 1))
    name, draws, n_groups = "Cox's recalibration test (likelihood ratio)", None, None
    df: float | None = 1.0 + varied
    if groups is not None:
        n_resamples = check_resamples(n_resamples, 1)
        residual = o - matrix[:, 1]
        signs = GroupSigns.of(groups, residual**2, clipped * (1 - clipped), w)
        each = signs.sums((w * residual)[:, None] * x)
        information = (x * (w * clipped * (1 - clipped))[:, None]).T @ x
        drawn = signs.draws(lambda sets: sets @ each, n_resamples, check_random_state(random_state))
        observed = each.sum(axis=0)
        inverse = np.linalg.pinv(information, hermitian=True)  # weights may leave no information on the slope
        statistic = float(observed @ inverse @ observed)
        draws = np.einsum("ri,ij,rj->r", drawn, inverse, drawn)
        pvalue, df, n_groups = signs.pvalue(draws, statistic), None, signs.n_groups
        large_pvalue = signs.pvalue(np.abs(drawn[:, 0]), abs(float(observed[0])))
        name = f"Cox's recalibration test (score), {signs.described(n_resamples)}"
        if varied:
            se = _sandwich(signs, x, o, w, free)
    return TestResult(
        statistic=statistic,
        pvalue=pvalue,
        null="the log odds have intercept 0 and slope 1",
        name=name,
        n_samples=len(codes),
        df=df,
        draws=draws,
        n_groups=n_groups,
        details={
            "intercept": float(free[0]),
            "slope": float(free[1]),
            "intercept_se": float(se[0]),
            "slope_se": float(se[1]),
            "in_the_large": float(large[0]),
            "in_the_large_pvalue": large_pvalue,
        },
        warnings=tuple(warnings),
    )


def _sandwich(signs: GroupSigns, x: FloatArray, o: FloatArray, w: FloatArray, theta: FloatArray) -> FloatArray:
    """Standard errors of logistic coefficients that allow for any dependence within groups."""
    from scipy.special import expit

    fitted = expit(x @ theta)
    bread = np.linalg.pinv((x * (w * fitted * (1 - fitted))[:, None]).T @ x)
    return errors_of_groups(signs, (w * (o - fitted))[:, None] * x @ bread)


def errors_of_groups(signs: GroupSigns, influence: FloatArray) -> FloatArray:
    """Standard errors of sums over rows (n, …) that allow for any dependence within groups."""
    each = signs.sums(influence)  # its squares, which no rounding makes negative where groups cancel
    return np.asarray(np.sqrt((each**2).sum(axis=0) * (len(each) / (len(each) - 1))))


def _logistic(
    x: FloatArray, offset: FloatArray, o: FloatArray, w: FloatArray, start: FloatArray
) -> tuple[FloatArray, FloatArray, float, bool]:
    """Maximum-likelihood coefficients, standard errors, log-likelihood, and whether a maximum was found."""
    counts = Counts(x.T[None], w[None], (w * o)[None])
    point, decrement = maximum(counts, 0.0, Point.at(start[None], offset[None], counts))
    information = point.information[0] + 1e-12 * np.eye(x.shape[1])
    se = np.sqrt(np.diag(np.linalg.inv(information)))
    ended = decrement[0] <= DECREMENT and np.abs(point.logit).min() < 30 and se.max() < 1e3
    return point.theta[0], se, float(point.likelihood[0]), bool(ended)
