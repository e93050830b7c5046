"""`calibration_belt`: a confidence region for the whole calibration curve, with its test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np

from ..data.checks import check_choice, check_fraction, check_int, check_level, check_number, received
from ..data.printing import equals, number_of
from ..data.problem import Problem
from ..data.public_function import InputOptions, public_function
from ..data.result import Curve, jsonable
from ..data.types import FloatArray, Interval, Label
from ..data.validation import as_predictions
from ..data.weights import ones_or
from ..notions import Notion, as_notion, only_problem
from ..sums.logistic_fit import expit, logits_of
from .logit_polynomial import LogitSums

#: Largest degree allowed.
MOST_DEGREES = 4
#: Degree at which the selection starts.
FIRST_DEGREE = {"external": 1, "internal": 2}
#: Scores of a maximum-likelihood fit to the rows have a smaller likelihood-ratio statistic, line against diagonal.
_REFITTED = 0.01
#: Advice if there is no belt.
_INSTEAD = "use more rows, or reliability_curve and calibration_test, which do not need such a curve"
#: Fields of the JSON other than the curve and the belts.
_NUMBERS = ("degree", "coefficients", "statistic", "pvalue", "label", "notion", "n_samples", "devel", "warnings")
#: Gauss–Legendre nodes between -1 and 1 as angles, denser towards the ends: with one variable the inner distribution
#: increases like a root at its end, and is smooth in the angle. Places from 0 to 2, and their weights.
_ANGLES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
_PLACES, _WEIGHTS = 1 + np.sin(np.pi / 2 * _ANGLES), np.pi / 2 * np.cos(np.pi / 2 * _ANGLES) * _WEIGHTS
Ranges = tuple[Interval, ...]


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationBelt(Curve):
    """Calibration belt of one class, or of the confidence.

    Attributes
    ----------
    scores : ndarray of shape (m,)
        Scores from the smallest to the largest: half evenly spaced, half at evenly spaced logits.
    fitted : ndarray of shape (m,)
        The polynomial logistic curve.
    lower, upper : ndarray of shape (L, m)
        The belt at each level.
    levels : tuple of L float
        Levels of the belt.
    above, below : mapping of level to tuple of Interval
        Scores at which the belt lies above the diagonal (outcomes are more frequent than stated), and below it.
    degree : int
        Degree of the polynomial.
    coefficients : tuple of float
        Coefficients of 1, z, z², … in the logit z of the score; (0, 1, 0, …) is calibrated.
    statistic, pvalue : float
        Statistic and p-value of the test of calibration.
    devel : {"external", "internal"}
        Whether the model was fitted to other rows or to these.
    label : object
        The class whose probability the scores are; None for a confidence.

    See Also
    --------
    calibrant.significance.calibration_belt : Computes it.
    calibrant.plot.CalibrationBeltDisplay : Draws it.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> belt = cal.significance.calibration_belt(rng.random(1000) < p**2, p)
    >>> bool(belt.pvalue < 1e-6), belt.levels
    (True, (0.8, 0.95))
    """

    display: ClassVar[str] = "CalibrationBeltDisplay"

    scores: FloatArray
    fitted: FloatArray
    lower: FloatArray
    upper: FloatArray
    levels: tuple[float, ...]
    above: Mapping[float, Ranges]
    below: Mapping[float, Ranges]
    degree: int
    coefficients: tuple[float, ...]
    statistic: float
    pvalue: float
    label: Label
    notion: str
    n_samples: int
    warnings: tuple[str, ...] = ()
    devel: str = "external"

    def _columns(self) -> dict[str, Any]:
        columns = {"score": self.scores, "fitted": self.fitted}
        for level, lower, upper in zip(self.levels, self.lower, self.upper, strict=True):
            columns |= {f"lower_{100 * level:g}": lower, f"upper_{100 * level:g}": upper}
        return columns

    def _shown(self) -> Iterable[tuple[str, Any]]:
        names = ("statistic", "pvalue", "degree", "levels", "label", "notion", "n_samples", "devel", "above", "below")
        return ((name, getattr(self, name)) for name in names)

    @property
    def summary(self) -> str:
        """The scores at which the widest belt excludes the diagonal, as a sentence."""
        level = max(self.levels)
        where = self.where(level)
        verb = "" if where.startswith("covers") else "lies "
        return f"The {100 * level:g} % calibration belt {verb}{where} (p {equals(self.pvalue)})."

    def _text(self) -> str:
        lines = [
            f"Calibration belt of {self.n_samples:,} rows{' of the fit' if self.devel == 'internal' else ''}: "
            f"polynomial of degree {self.degree}, "
            f"statistic {self.statistic:.4g}, p {equals(self.pvalue)}"
        ]
        lines += [f"{100 * level:g} % belt: {self.where(level)}" for level in self.levels]
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])

    def where(self, level: float) -> str:
        """Describe where the belt at a level excludes the diagonal.

        Parameters
        ----------
        level : float
            One of the belt's levels.
        """
        parts = [
            f"{way} the diagonal at scores of " + ", ".join(f"{r.low:.3g} to {r.high:.3g}" for r in found[level])
            for way, found in (("above", self.above), ("below", self.below))
            if found[level]
        ]
        return "; ".join(parts) if parts else "covers the diagonal"

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON (NaN as None)."""
        belts = [
            {"level": level, "lower": low, "upper": high, "above": self.above[level], "below": self.below[level]}
            for level, low, high in zip(self.levels, self.lower, self.upper, strict=True)
        ]
        curve = {"scores": self.scores, "fitted": self.fitted, "belts": belts}
        return {name: jsonable(value) for name, value in (curve | {n: getattr(self, n) for n in _NUMBERS}).items()}


@public_function()
def calibration_belt(
    y_true: Any,
    y_prob: Any = None,
    *,
    levels: Sequence[float] = (0.8, 0.95),
    max_degree: int = 4,
    selection: float = 0.95,
    n_points: int = 201,
    clip: float = 1e-6,
    devel: str = "external",
    notion: str | Notion = "auto",
    **inputs: Unpack[InputOptions],
) -> CalibrationBelt:
    r"""GiViTI calibration belt of a model, on held-out rows or on its training rows.

    .. math:: \operatorname{logit} P(o = 1 \mid s) = \beta_0 + \beta_1 z + \dots + \beta_m z^m, \qquad
              z = \operatorname{logit} s

    The degree m increases from 1 (``devel="internal"``: from 2) while the likelihood-ratio test of the next degree
    rejects at ``selection``. The test of calibration compares the chosen polynomial with :math:`\beta = (0, 1, 0,
    \dots)`, by the distribution of this statistic given m (see :func:`.belt.survival`). The belt at a level contains,
    at each score, every value that a curve of the likelihood region

    .. math:: \{\beta : 2(\hat\ell - \ell(\beta)) \le k_m(level)\}

    takes there, k_m being that distribution's quantile: no bins, no bootstrap, no normal approximation of the
    coefficients.

    Parameters
    ----------
    levels : sequence of float in (0, 1), default (0.8, 0.95)
        Levels of the belt.
    max_degree : int, 1 to 4, default 4
        Largest degree m; at least 2 with ``devel="internal"``.
    selection : float in (0, 1), default 0.95
        Level of the tests that increase the degree.
    n_points : int ≥ 2, default 201
        Approximate number of scores at which the belt is computed, including both ends.
    clip : float, default 1e-6
        Scores are clipped to [clip, 1 - clip], since the logits of 0 and 1 are infinite. A few scores nearer to 0 and 1
        than all others have a strong influence on polynomials, stronger for a smaller ``clip``.
    devel : {"external", "internal"}, default "external"
        ``"internal"``: the model is a logistic regression fitted to these rows by unpenalised maximum likelihood; the
        test is then one of goodness of fit. The intercept and slope of its logits are 0 and 1 on these rows, so degree
        1 carries no information, and the statistic has another distribution.
    notion : str or Notion, default "auto"
        A notion of one problem: the positive class, the confidence, or ``ClassSpecific``.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights, not all 0. Whole numbers stand for repeated rows; others are scaled to the effective
        sample size.

    Returns
    -------
    CalibrationBelt
        ``.pvalue``, the belt's limits at each level, and where it excludes the diagonal; ``.plot()`` draws it.

    Raises
    ------
    ValueError
        For invalid input; if all scores are equal; if the scores separate the outcomes, so that no finite curve
        maximises the likelihood.

    See Also
    --------
    calibrant.reliability_curve : A smooth curve with a band, without a polynomial.
    calibrant.significance.cox_test : The test of a line.
    calibrant.results.CalibrationBelt : The result, field by field.

    Notes
    -----
    If the test does not reject at ``1 - level``, that level's belt contains the diagonal; if it does
    reject, the belt nearly always excludes it at some score (the test is about the whole curve, the belt about each
    score). The belt covers the whole true curve in about ``level`` of all samples if it is a polynomial of the chosen
    degree. It covers other curves far less often, such as a parabola in samples too small to show it (sizes and
    coverages: benchmarks/coverage/belt_coverage.md).

    With ``devel="internal"`` the test keeps its size for logistic regressions of one to ten features
    (benchmarks/coverage/belt_internal.md); a warning is given if the scores do not look like such a fit to these rows.
    The belt then only shows whether it excludes the diagonal.

    Cost O(n log n); beyond 1024 distinct scores the belt is computed from 512 cells with two nodes each, which preserve
    their moments up to the third (statistics of 200,000 rows agree to 1e-4), so its cost does not depend on n.

    References
    ----------
    Nattino, Finazzi & Bertolini (2014), *A new calibration test and a reappraisal of the calibration belt for the
    assessment of prediction models based on dichotomous outcomes*, Stat. Med. 33:2390; Nattino, Finazzi & Bertolini
    (2016), *A new test and graphical tool to assess the goodness of fit of logistic regression models*, Stat. Med.
    35:709 (``devel="internal"``); Nattino, Lemeshow, Phillips, Finazzi & Bertolini (2017), *Assessing the calibration
    of dichotomous outcome models with the calibration belt*, Stata J. 17:1003; Venzon & Moolgavkar (1988), *A method
    for computing profile-likelihood-based confidence intervals*.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> belt = cal.significance.calibration_belt(rng.random(4000) < 1 / (1 + (1 / p - 1) ** 0.5), p)  # log odds halved
    >>> bool(belt.pvalue < 1e-6), belt.degree
    (True, 1)
    >>> bool(belt.above[0.95][0].high < 0.5 < belt.below[0.95][0].low)  # more often below one half, less often above
    True
    """
    checked = _check_levels(levels)
    first = FIRST_DEGREE[check_choice("devel", devel, FIRST_DEGREE)]
    most = check_int("max_degree", max_degree, first, MOST_DEGREES)
    wanted = check_int("n_points", n_points, 2)
    chosen_level = check_fraction("selection", selection)
    clip = check_number("clip", clip, above=0, below=0.5)
    p = as_predictions(y_true, y_prob, **inputs)
    chosen = as_notion(notion, p)
    problem = only_problem(chosen, p)
    warnings = []
    sums, clipped = logit_sums(problem, clip, most)
    if clipped:
        warnings.append(f"{number_of(clipped, 'score')} clipped to [{clip:g}, 1 - {clip:g}]")
    theta, peak, ended = fit_polynomial(sums, most, chosen_level, first)
    if ended:
        warnings.append(ended)
    degree = theta.size - 1
    if first > 1 and 2 * (fit_polynomial(sums, 1, chosen_level)[1] - sums.at_identity) > _REFITTED:
        warnings.append(
            "a line through the logits fits these rows better than the scores do: they do not come from a "
            "logistic regression fitted to these rows by maximum likelihood, so devel='internal' does not apply"
        )
    statistic = max(2 * (peak - sums.at_identity), 0.0)
    z = _grid(sums, wanted)
    columns = sums.columns(z, degree)
    model = sums.model(degree)
    edges = [model.extremes(columns, theta, peak, quantile(level, degree, chosen_level, first)) for level in checked]
    if any(np.isnan(side).any() for pair in edges for side in pair):
        warnings.append(f"the edge of the likelihood region was not found at some scores (NaN): {_INSTEAD}")
    return CalibrationBelt(
        scores=expit(z),
        fitted=expit(columns @ theta),
        lower=expit(np.stack([low for low, _ in edges])),
        upper=expit(np.stack([high for _, high in edges])),
        levels=checked,
        above={level: _ranges(z, low - z) for level, (low, _) in zip(checked, edges, strict=True)},
        below={level: _ranges(z, z - high) for level, (_, high) in zip(checked, edges, strict=True)},
        degree=degree,
        coefficients=tuple(float(v) for v in sums.powers(theta)),
        statistic=statistic,
        pvalue=survival(statistic, degree, chosen_level, first),
        label=problem.label,
        notion=chosen.name,
        n_samples=problem.n_samples,
        warnings=tuple(warnings),
        devel=devel,
    )


def logit_sums(problem: Problem, clip: float, degree: int) -> tuple[LogitSums, int]:
    """Sums of a problem's rows in units of its effective size, and the number of clipped scores."""
    scores: FloatArray = problem.scores.astype(np.float64)
    outcomes = np.asarray(problem.outcomes, dtype=np.float64)
    weights = ones_or(problem.weights, scores.size)
    if problem.weights is not None:
        used = weights > 0
        scores, outcomes, weights = scores[used], outcomes[used], weights[used]
        weights = weights * (problem.effective_size / weights.sum())
    clipped = int(((scores < clip) | (scores > 1 - clip)).sum())
    return LogitSums.of(logits_of(scores, clip), outcomes, weights, degree), clipped


def fit_polynomial(sums: LogitSums, max_degree: int, selection: float, first: int = 1) -> tuple[FloatArray, float, str]:
    """Coefficients of the orthonormal columns, log-likelihood, and why the selection ended early, if it did.

    Degrees up to ``first`` are included without a test.
    """
    if sums.most < 1:
        raise ValueError("y_prob must hold at least two different scores for a curve through them; all are equal")
    if sums.most < first:
        raise ValueError("devel='internal' needs three different scores in y_prob, for a parabola; got two")
    needed = threshold(selection)
    found = sums.model(1).maximum(np.zeros(2))
    if found is None:
        raise ValueError(
            f"outcomes are all the same or separated by the scores ({sums.positive[0]:,.6g} of {sums.mass.sum():,.6g} "
            f"are positive), so the likelihood of a logistic curve has no maximum: {_INSTEAD}"
        )
    theta, peak = found
    for degree in range(2, min(max_degree, sums.most) + 1):
        found = sums.model(degree).maximum(np.append(theta, 0.0))
        if found is None and degree <= first:
            raise ValueError(
                f"outcomes are separated by polynomials of degree {degree}, which devel='internal' needs: {_INSTEAD}"
            )
        if found is None:
            return theta, peak, f"polynomials of degree {degree} separate the outcomes and were not fitted"
        if degree > first and 2 * (found[1] - peak) <= needed:
            break
        theta, peak = found
    return theta, peak, ""


def _grid(sums: LogitSums, n_points: int) -> FloatArray:
    """Logits from the smallest to the largest, half of them evenly spaced, half at evenly spaced scores."""
    low, high = float(sums.centre - sums.half), float(sums.centre + sums.half)
    logits = np.linspace(low, high, n_points // 2 + 1)
    first, last = (float(v) for v in expit(np.array([low, high])))
    scores = np.linspace(first, last, n_points - logits.size + 2)[1:-1]
    return np.sort(np.concatenate([logits, np.log(scores) - np.log1p(-scores)]))


def _ranges(z: FloatArray, off: FloatArray) -> Ranges:
    """Ranges of scores where ``off`` is above 0, its zeros interpolated between logits."""

    def end(inner: int, outer: int) -> float:
        """Logit where a range ends, between its last point and the next one, if there is one."""
        if not 0 <= outer < z.size or np.isnan(off[outer]):
            return float(z[inner])
        return float(z[inner] + off[inner] / (off[inner] - off[outer]) * (z[outer] - z[inner]))

    inside = np.concatenate([[False], off > 0, [False]])
    bounds = np.flatnonzero(inside[1:] != inside[:-1]).reshape(-1, 2).tolist()
    pairs = [(end(first, first - 1), end(after - 1, after)) for first, after in bounds]
    return tuple(Interval(*(float(v) for v in expit(np.array(pair)))) for pair in pairs)


def _check_levels(levels: Any) -> tuple[float, ...]:
    message = f"levels must be one or several different numbers between 0 and 1; got {received(levels)}"
    if isinstance(levels, (str, bytes)) or not (np.iterable(levels) or hasattr(levels, "__float__")):
        raise TypeError(message)
    single = [levels.item()] if isinstance(levels, np.ndarray) and levels.ndim == 0 else [levels]
    given = list(levels) if np.iterable(levels) else single
    try:
        checked = [check_level(level) for level in given]
    except ValueError as error:
        raise ValueError(f"levels: {error}") from None
    if not checked or len(set(checked)) < len(checked):
        raise ValueError(message)
    return tuple(sorted(checked))


def survival(t: float, degree: int, selection: float, first: int = 1) -> float:
    r"""``P(T > t)`` of the belt's statistic under calibration, given the degree that forward selection stopped at.

    Each likelihood-ratio statistic of the selection is chi-squared with one degree of freedom and independent of the
    others; if the degree increased from 1 to m, then m - 1 of them exceeded a threshold k. So the statistic of degree
    m against "intercept 0, slope 1, all else 0" is

    .. math:: T_m = \chi^2_2 + \sum_{j=2}^m X_j, \qquad X_j \sim \chi^2_1 \mid \chi^2_1 > k

    (Nattino, Finazzi & Bertolini 2014). With q = P(χ²₁ > k), φ the normal density and Φ its distribution function,

    .. math:: P(T_1 > t) &= e^{-t/2} \\
              P(T_m > t) &= \frac1q \Big( 2\Phi(-r) + \int_{\sqrt k}^{r} 2 \varphi(y)\, P(T_{m-1} > t - y^2)\, dy \Big),
              \quad r^2 = t - (m - 2) k

    and 1 below ``(m - 1) k``. The integrand is smooth, so Gauss–Legendre nodes give it to about 13 digits.

    If the model is a logistic regression fitted to the same rows, the intercept and slope of its logits are 0 and 1
    there. The selection starts at degree 2, whose statistic is one chi-squared variable not selected by a threshold,

    .. math:: T_m = \chi^2_1 + \sum_{j=3}^m X_j, \qquad P(T_2 > t) = 2\Phi(-\sqrt t)

    (Nattino, Finazzi & Bertolini 2016), and the same integral leads from m - 1 to m.

    ``selection`` is the level of the selection's tests; ``first`` the degree at which it starts: 1, or 2 for
    the training rows of a logistic model.
    """
    found = _survival(np.array([float(t)]), degree - first, first, threshold(selection), 1 - selection)
    return float(found[0])


def quantile(level: float, degree: int, selection: float, first: int = 1) -> float:
    """Quantile at ``level`` of the belt's statistic under calibration, given the degree."""
    from scipy.optimize import brentq

    wanted = np.log1p(-level)
    low = (degree - first) * threshold(selection)
    high = low + 10.0
    while np.log(survival(high, degree, selection, first)) > wanted:
        high += 20.0
    return float(brentq(lambda t: np.log(survival(t, degree, selection, first)) - wanted, low, high, xtol=1e-12))


def threshold(selection: float) -> float:
    """Quantile at ``selection`` of the chi-squared distribution with one degree of freedom."""
    from scipy.special import ndtri

    return float(ndtri((1 + selection) / 2) ** 2)


def _survival(t: FloatArray, steps: int, first: int, k: float, q: float) -> FloatArray:
    """``P(T > t)`` after some steps of the selection, whose statistics exceed k with probability q."""
    from scipy.special import ndtr

    out = np.ones(t.shape)
    above = t > steps * k
    s = t[above]
    if steps == 0:
        out[above] = np.exp(-s / 2) if first == 1 else 2 * ndtr(-np.sqrt(s))
    else:
        start, end = np.sqrt(k), np.sqrt(s - (steps - 1) * k)
        half = (end - start)[..., None] / 2
        y = start + half * _PLACES
        density = 2 * np.exp(-(y**2) / 2) / np.sqrt(2 * np.pi)
        inner = _survival(s[..., None] - y**2, steps - 1, first, k, q)
        out[above] = (2 * ndtr(-end) + (half * _WEIGHTS * density * inner).sum(axis=-1)) / q
    return np.minimum(out, 1.0)
