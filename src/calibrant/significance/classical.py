"""Classical tests of calibration: Hosmer-Lemeshow, Pearson, Spiegelhalter's z, Cox's intercept and slope."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np

from ..data.checks import check_choice, check_int, check_resamples
from ..data.dependence import few_units, group_codes
from ..data.predictions import Predictions, rows_with_weight
from ..data.public_function import InputOptions, verb
from ..data.types import AnyArray, FloatArray, RandomState
from ..data.validation import as_predictions
from ..data.weights import of_variances, ones_or
from ..measure.scoring_rules import matrix_of
from ..sums.logistic_fit import DECREMENT, Counts, Point, logits_of, maximum
from .null import GroupSigns, share_at_least
from .result import TestResult

#: Expected counts below this make a chi-squared distribution doubtful.
_SMALL = 5.0
#: Numbers drawn at a time.
_BLOCK = 1 << 21
#: Where probabilities are clipped before a logarithm is taken.
EPS = 1e-12


def _rows(p: Predictions) -> tuple[FloatArray, AnyArray, FloatArray, FloatArray]:
    """Probabilities (n, K), codes, and weights for sums and for their variances, in units of the sample size.

    Whole-number weights count repeats, whose variances add up; with others the variance of a sum goes with their
    squares. Both are scaled so that the weights sum to the effective sample size.
    """
    matrix, codes = matrix_of(p), p.codes.astype(np.intp)
    if p.positive == 0:
        matrix, codes = matrix[:, ::-1], 1 - codes
    w = ones_or(p.weights, len(codes))
    if p.weights is not None:
        used = w > 0
        matrix, codes, w = matrix[used], codes[used], w[used]
    if not p.integral_weights:
        w = w * (w.sum() / (w @ w))
    return matrix, codes, w, of_variances(w, integral=p.integral_weights)


def _percentiles(values: FloatArray, times: FloatArray, n_bins: int) -> FloatArray:
    """``n_bins + 1`` percentiles of values as often as each occurs, as NumPy interpolates them between two."""
    order = np.argsort(values, kind="stable")
    s, upto = values[order], np.cumsum(times[order])
    place = np.linspace(0, 1, n_bins + 1) * (upto[-1] - 1)
    below = np.floor(place)
    low, high = (s[np.minimum(np.searchsorted(upto, at, side="right"), s.size - 1)] for at in (below, below + 1))
    return np.asarray(low + (place - below) * (high - low))


@verb(grouped=True)
def hosmer_lemeshow_test(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_bins: int = 10,
    df: str | int = "fit",
    n_resamples: int = 999,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> TestResult:
    r"""Hosmer–Lemeshow test, of two classes or (Fagerland, Hosmer & Bofin 2008) of more.

    .. math:: C = \sum_g \sum_k \frac{(O_{gk} - E_{gk})^2}{E_{gk}}

    over bins g of rows and classes k, with observed counts O and sums of probabilities E.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sample_weight
        See :func:`calibrant.as_predictions`. Weights that are no whole numbers are scaled to the effective sample size.
    n_bins : int ≥ 3, default 10
        Bins, by percentiles of one minus the probability of the first class (of the probability itself where
        ``y_prob`` is 1-D), right-closed. Percentiles that coincide merge.
    df : {"fit", "external"} or int, default "fit"
        Degrees of freedom: ``(g - 2)(K - 1)`` for rows that the model was fitted to, ``g (K - 1)`` for others; of no
        meaning with ``groups``.
    n_resamples : int, default 999
    random_state : int, Generator or None
        Of rows in ``groups``: signs of whole groups' residuals are drawn, and the p-value is that among these draws.

    Returns
    -------
    TestResult
        ``warnings`` where a fifth of the expected counts are below 5. A cell of E = 0 counts 0 where nothing was
        observed, else ∞.

    Raises
    ------
    ValueError

    Notes
    -----
    The result depends on the bins; with ties it can change with their convention. For rows that the model was not
    fitted to, ``df="fit"`` rejects calibrated models too often: use ``"external"``. Cost O(n log n).

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
    from scipy.stats import chi2

    n_bins = check_int("n_bins", n_bins, 3)
    p = as_predictions(y_true, y_prob, **inputs)
    n_resamples = check_resamples(n_resamples, 1)
    matrix, codes, w, _ = _rows(p)
    k = matrix.shape[1]
    score = 1 - matrix[:, 0] if k > 2 or p.positive is None else matrix[:, 1]
    edges = np.unique(_percentiles(score, w if p.integral_weights else np.ones(len(score)), n_bins))
    inner = edges[1:-1] if edges.size > 1 else edges[:0]
    cell = np.searchsorted(inner, score, side="left")
    found_bins = int(cell.max()) + 1
    counts = _Counts.of(matrix, codes, w, cell)
    freedom = _freedom(df, found_bins, k)
    warnings = []
    if found_bins < n_bins:
        warnings.append(f"percentiles of the scores coincide: {found_bins} bins in place of {n_bins}")
    about: dict[str, Any] = {"null": "outcomes in each bin are as frequent as stated", "n_samples": len(codes)}
    if p.groups is not None:
        draws, how = counts.with_signs(_grouped(p), n_resamples, np.random.default_rng(random_state))
        return TestResult(
            counts.statistic,
            share_at_least(draws, counts.statistic),
            name=f"Hosmer–Lemeshow statistic, {found_bins} bins of scores, {how}",
            warnings=tuple(warnings),
            draws=draws,
            **about,
        )
    warnings += _few(counts.expected)
    if freedom < 1:
        warnings.append("too few bins for a p-value")
    return TestResult(
        counts.statistic,
        float(chi2.sf(counts.statistic, freedom)) if freedom >= 1 else float("nan"),
        name=f"Hosmer–Lemeshow test, {found_bins} bins",
        df=float(freedom),
        warnings=tuple(warnings),
        **about,
    )


@dataclass(frozen=True, eq=False)
class _Counts:
    """Rows by cell: what was observed of each class, and what is expected, (cells, K)."""

    matrix: FloatArray
    codes: AnyArray
    weights: FloatArray
    cell: AnyArray
    expected: AnyArray

    @classmethod
    def of(cls, matrix: FloatArray, codes: AnyArray, weights: FloatArray, cell: AnyArray) -> _Counts:
        expected = np.stack([np.bincount(cell, weights * column) for column in matrix.T], axis=1)
        return cls(matrix, codes, weights, cell, expected)

    @property
    def size(self) -> FloatArray:
        """Weight of each cell."""
        return np.bincount(self.cell, self.weights).astype(np.float64)

    @cached_property
    def statistic(self) -> float:
        """``Σ (O - E)² / E`` of what was observed."""
        shape = self.expected.shape
        slot = self.cell * shape[1] + self.codes
        return float(self.chi_squared(np.bincount(slot, self.weights, self.expected.size).reshape(shape)))

    def chi_squared(self, observed: AnyArray) -> FloatArray:
        """``Σ (O - E)² / E`` over the last two axes; ∞ where something was observed that cannot be."""
        gap = (observed.astype(np.float64) - self.expected) ** 2
        with np.errstate(over="ignore"):  # what was all but impossible
            terms = np.divide(gap, self.expected, out=np.where(gap > 0, np.inf, 0.0), where=self.expected > 0)
        return np.asarray(terms.sum(axis=(-2, -1)))

    def with_signs(self, groups: AnyArray, n_draws: int, rng: np.random.Generator) -> tuple[FloatArray, str]:
        """Statistics with the signs of groups' residuals drawn, (R,), and how they were found."""
        from scipy.sparse import csr_array

        n, k = self.matrix.shape
        cells = len(self.expected)
        residual = -self.matrix
        residual[np.arange(n), self.codes] += 1
        signs = GroupSigns(group_codes(groups))
        # The statistic divides by what each cell states: there too single rows are to vary as stated, as wrong extreme
        # scores vary by more. That takes factors of as many cells from the data, for which few groups are allowed for.
        squares = (residual**2).sum(axis=1), 1 - (self.matrix**2).sum(axis=1)
        happened, stated = (np.bincount(self.cell, self.weights**2 * v, minlength=cells) for v in squares)
        scale = np.sqrt(np.divide(stated, happened, out=np.ones(cells), where=happened > 0))
        residual *= (self.weights * scale[self.cell])[:, None] * np.sqrt(few_units(np.array(signs.n_groups)))
        slot = self.cell[:, None] * k + np.arange(k)
        shape = (signs.n_groups, self.expected.size)
        sums = csr_array((residual.reshape(-1), (np.repeat(signs.group, k), slot.reshape(-1))), shape=shape)

        def statistic(sets: FloatArray) -> FloatArray:
            return self.chi_squared(np.asarray(sets @ sums).reshape(-1, *self.expected.shape) + self.expected)

        return signs.draws(statistic, n_draws, rng, self.expected.size), f"{n_draws} draws of the {signs.how}"


def _few(expected: FloatArray) -> list[str]:
    """A warning where a fifth of the expected counts are small."""
    small = int((expected < _SMALL).sum())
    return [f"{small} of {expected.size} expected counts are below {_SMALL:g}"] if small > 0.2 * expected.size else []


def _freedom(df: Any, found_bins: int, k: int) -> int:
    if isinstance(df, str) and df in ("fit", "external"):
        return (found_bins - 2 if df == "fit" else found_bins) * (k - 1)
    return check_int("df", df, 1, instead="'fit', 'external' or ")


@verb(grouped=True)
def pearson_test(
    y_true: Any,
    y_prob: Any = None,
    *,
    algorithm: str = "auto",
    n_resamples: int = 999,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> TestResult:
    r"""Pearson's test over the distinct scores, of two classes or more: are classes as frequent as each score says?

    .. math:: X^2 = \sum_m \sum_k \frac{(O_{mk} - n_m v_{mk})^2}{n_m v_{mk}}

    over the distinct probability vectors v_m, each said of n_m rows of which O_mk are of class k.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sample_weight
        See :func:`calibrant.as_predictions`. Weights that are no whole numbers are scaled to the effective sample size.
    algorithm : {"auto", "chi-squared", "resampling"}, default "auto"
        Of the p-value. ``"chi-squared"``: the distribution for many rows of each score. ``"resampling"``: counts drawn
        from the scores, exact for any n; for whole-number weights. ``"auto"``: by resampling where it is possible and
        more than a fifth of the expected counts are below 5, as for scores that hardly repeat.
    n_resamples : int, default 999
    random_state : int, Generator or None

    Returns
    -------
    TestResult
        ``df``: ``Σ_m (classes of positive probability - 1)``, of the chi-squared distribution.
        ``details``: ``distinct_scores``.
        An outcome of stated probability 0 makes the statistic ∞.

    Raises
    ------
    ValueError

    Notes
    -----
    Sensitive to gaps of any shape, and so not very sensitive to any: with few rows a score prefer
    :func:`calibration_test`. Of rows in ``groups`` signs of whole groups' residuals are drawn, which needs several
    rows of each score: where expected counts are small, ``warnings`` say so and the p-value is too often small. Cost
    O(n K log n), and a multinomial count a score and draw.

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
    from scipy.stats import chi2

    check_choice("algorithm", algorithm, ("auto", "chi-squared", "resampling"))
    n_resamples = check_resamples(n_resamples, 1)
    p = as_predictions(y_true, y_prob, **inputs)
    if algorithm == "resampling" and not p.integral_weights:
        raise ValueError("algorithm='resampling' draws repeats: sample_weight must hold whole numbers")
    matrix, codes, w, _ = _rows(p)
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    scores, cell = np.unique(matrix, axis=0, return_inverse=True)
    cell = cell.reshape(-1)
    counts = replace(_Counts.of(matrix, codes, w, cell), expected=np.bincount(cell, w)[:, None] * scores)
    statistic, freedom = counts.statistic, int((scores > 0).sum() - len(scores))
    few = _few(counts.expected[scores > 0])
    about: dict[str, Any] = {"null": "classes are as frequent as each score says", "n_samples": len(codes)}
    details = {"distinct_scores": float(len(scores))}
    rng, draws, df, warnings = np.random.default_rng(random_state), None, None, tuple(few)
    name = "Pearson's test"
    if p.groups is not None and freedom >= 1:
        draws, how = counts.with_signs(_grouped(p), n_resamples, rng)
        name, details = f"Pearson's statistic, {how}", {}
    elif freedom < 1:
        pvalue, warnings = 0.0 if np.isinf(statistic) else float("nan"), ("all scores are certain: 0 or 1",)
    elif algorithm == "resampling" or (algorithm == "auto" and few and p.integral_weights):
        size, block = np.bincount(cell, w).astype(np.int64), max(1, _BLOCK // scores.size)
        parts = [min(block, n_resamples - a) for a in range(0, n_resamples, block)]
        draws = np.concatenate([counts.chi_squared(rng.multinomial(size, scores, (n, len(scores)))) for n in parts])
        name, warnings = f"Pearson's test, resampling under calibration, {n_resamples} draws", ()
    else:
        pvalue, df = float(chi2.sf(statistic, freedom)), float(freedom)
    if draws is not None:
        pvalue = share_at_least(draws, statistic)
    return TestResult(statistic, pvalue, name=name, df=df, draws=draws, details=details, warnings=warnings, **about)


@verb(grouped=True)
def spiegelhalter_test(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_resamples: int = 999,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> TestResult:
    r"""Spiegelhalter's z: is the Brier score what it would be if the probabilities were true?

    .. math:: z = \frac{\sum_i (B_i - E B_i)}{\sqrt{\sum_i V_i}}, \qquad B_i = \sum_k (p_{ik} - o_{ik})^2,
              \quad E B_i = 1 - \sum_k p_{ik}^2, \quad V_i = 4 \Big(\sum_k p_{ik}^3 - \big(\sum_k p_{ik}^2\big)^2\Big)

    Two-sided, by the normal distribution. Blind to errors that leave the Brier score as expected.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sample_weight
        See :func:`calibrant.as_predictions`.
    n_resamples : int, default 999
    random_state : int, Generator or None
        Of rows in ``groups``: signs of whole groups' residuals are drawn, and the p-value is that among these draws.

    Returns
    -------
    TestResult
        ``z > 0``: a worse Brier score than the probabilities predict (overconfident). NaN where all probabilities are 0
        or 1, or equal to each other within rows, as the score then has no variance.

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
    matrix, codes, w, w_variance = _rows(p)
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
    total = float(w_variance @ variance)
    known = total > 1e-20 * len(codes)
    z = float(w @ excess) / np.sqrt(total) if known else float("nan")
    name, pvalue, draws = "Spiegelhalter's z-test", float(2 * norm.sf(abs(z))), None
    if p.groups is not None and known:
        n_resamples = check_resamples(n_resamples, 1)
        signs = GroupSigns.of(_grouped(p), excess**2, variance, w)
        each = signs.sums(w * excess)
        spread = signs.scale * float(np.sqrt((each**2).sum()))
        draws = signs.draws(lambda sets: sets @ each / spread, n_resamples, np.random.default_rng(random_state))
        z, name = float(w @ excess) / spread, f"Spiegelhalter's z, {n_resamples} draws of the {signs.how}"
        pvalue = signs.pvalue(np.abs(draws), abs(z))
    return TestResult(
        statistic=float(z),
        pvalue=pvalue,
        null="the Brier score is what the probabilities predict",
        name=name,
        n_samples=len(codes),
        draws=draws,
        warnings=() if known else ("the Brier score has no variance under the null hypothesis",),
    )


@verb(grouped=True)
def cox_test(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_resamples: int = 999,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> TestResult:
    r"""Cox's recalibration test: intercept 0 and slope 1 of the log odds, jointly.

    .. math:: \operatorname{logit} P(o = 1) = a + b \operatorname{logit} p, \qquad H_0: a = 0,\ b = 1

    Likelihood-ratio test with two degrees of freedom; of rows in ``groups`` the score test, whose statistic is that of
    small gaps, among draws of the signs of whole groups' residuals, and standard errors that allow for groups.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sample_weight
        See :func:`calibrant.as_predictions`; two classes. Probabilities are clipped to [1e-12, 1 - 1e-12].
    n_resamples : int, default 999
    random_state : int, Generator or None
        Of rows in ``groups``: signs of whole groups' residuals are drawn, and the p-value is that among these draws.

    Returns
    -------
    TestResult
        ``details``: ``intercept``, ``slope`` (below 1: overconfident) and their standard errors; ``in_the_large``, the
        intercept at slope 1, and its p-value.

    Raises
    ------
    ValueError
        For more than two classes.

    Notes
    -----
    Cost O(n) a Newton step, of which there are some ten.

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
        raise ValueError(f"Cox's test is of two classes; got {p.n_classes}: test them one against the rest")
    matrix, codes, w, _ = _rows(p)
    clipped = np.clip(matrix[:, 1], EPS, 1 - EPS)
    z = logits_of(matrix[:, 1], EPS)
    o = codes.astype(np.float64)
    warnings = []
    if (matrix[:, 1] != clipped).any():
        warnings.append("probabilities of 0 or 1 are taken as 1e-12 from there, and weigh much in slope and intercept")
    large, large_se, at_large, ended_too = _logistic(np.ones((len(z), 1)), z, o, w, np.zeros(1))
    varied = bool(np.ptp(z) > 0)
    if varied:
        with_slope = np.column_stack([np.ones_like(z), z])
        free, se, likelihood, ended = _logistic(with_slope, np.zeros_like(z), o, w, np.array([0.0, 1.0]))
    else:  # one score says nothing of a slope
        nan = float("nan")
        free, se, likelihood, ended = np.array([large[0], nan]), np.array([large_se[0], nan]), at_large, True
        warnings.append("all scores are equal: the slope is unknown, and the intercept alone is tested")
    if not (ended and ended_too):
        warnings.append("outcomes are separated by the scores: intercept and slope have no finite estimate")
    plain = float(w @ (o * z - np.logaddexp(0, z)))
    statistic = max(2 * (likelihood - plain), 0.0)
    pvalue, large_pvalue = float(chi2.sf(statistic, 1 + varied)), float(chi2.sf(max(2 * (at_large - plain), 0.0), 1))
    name, draws = "Cox's recalibration test (likelihood ratio)", None
    df: float | None = 1.0 + varied
    if p.groups is not None:
        x = np.column_stack([np.ones_like(z), z])[:, : 1 + varied]
        n_resamples = check_resamples(n_resamples, 1)
        signs = GroupSigns.of(_grouped(p), (o - clipped) ** 2, clipped * (1 - clipped), w)
        each = signs.sums((w * (o - clipped))[:, None] * x)
        information = (x * (w * clipped * (1 - clipped))[:, None]).T @ x
        drawn = signs.draws(lambda sets: sets @ each, n_resamples, np.random.default_rng(random_state))
        observed = each.sum(axis=0)
        statistic = float(observed @ np.linalg.solve(information, observed))
        draws = np.einsum("ri,ri->r", drawn, np.linalg.solve(information, drawn.T).T)
        pvalue, df = signs.pvalue(draws, statistic), None
        large_pvalue = signs.pvalue(np.abs(drawn[:, 0]), abs(float(observed[0])))
        name = f"Cox's recalibration test (score), {n_resamples} draws of the {signs.how}"
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


def _grouped(p: Predictions) -> AnyArray:
    """Groups of the rows with weight."""
    return np.asarray(rows_with_weight(p).groups)


def _sandwich(signs: GroupSigns, x: FloatArray, o: FloatArray, w: FloatArray, theta: FloatArray) -> FloatArray:
    """Standard errors of logistic coefficients that allow for any dependence within groups."""
    from scipy.special import expit

    fitted = expit(x @ theta)
    bread = np.linalg.pinv((x * (w * fitted * (1 - fitted))[:, None]).T @ x)
    each = signs.sums((w * (o - fitted))[:, None] * x)
    half = each @ bread  # its squares, which no rounding makes negative where groups cancel
    return np.asarray(np.sqrt((half**2).sum(axis=0) * (len(each) / (len(each) - 1))))


def _logistic(
    x: FloatArray, offset: FloatArray, o: FloatArray, w: FloatArray, start: FloatArray
) -> tuple[FloatArray, FloatArray, float, bool]:
    """Maximum-likelihood coefficients, standard errors, log-likelihood, and whether there was a maximum."""
    counts = Counts(x.T[None], w[None], (w * o)[None])
    point, decrement = maximum(counts, 0.0, Point.at(start[None], offset[None], counts))
    information = point.information[0] + 1e-12 * np.eye(x.shape[1])
    se = np.sqrt(np.diag(np.linalg.inv(information)))
    ended = decrement[0] <= DECREMENT and np.abs(point.logit).min() < 30 and se.max() < 1e3
    return point.theta[0], se, float(point.likelihood[0]), bool(ended)
