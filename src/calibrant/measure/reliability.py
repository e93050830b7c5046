"""`reliability_curve`: the public function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, Unpack, overload

from ..data.checks import check_level, check_random_state, check_resamples, received
from ..data.problem import VectorProblem
from ..data.progress import counted
from ..data.public_function import InputOptions, SumsOfRows, public_function
from ..data.types import Label, RandomState
from ..data.validation import as_predictions
from ..estimators import AdaptiveKernel, Binned, CellEstimator, Density, EmpiricalBayes, Isotonic, ResidualKernel
from ..estimators.names import NAMES, estimator_named
from ..notions import Classwise, Notion, TopLabel, as_notion
from .bands import check_band
from .curve_from_sums import CurveSpec
from .result import ReliabilityCurve
from .sums_by_class import ProblemSums
from .tied_scores import MOST, TiedScores

_OF_CURVES: dict[str, CellEstimator] = {
    "auto": EmpiricalBayes(),
    "density": Density(),
    "adaptive": AdaptiveKernel(),
    "residual": ResidualKernel(space="score"),
    "binned": Binned(),
}


@overload
def reliability_curve(
    y_true: Any,
    y_prob: Any = None,
    *,
    notion: Literal["classwise", "class-wise", "top-label"] | Classwise | TopLabel,
    estimator: str | CellEstimator | Isotonic = "auto",
    level: float | None = None,
    band: str = "confidence",
    n_resamples: int = 1000,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> dict[Label, ReliabilityCurve]: ...
@overload
def reliability_curve(
    y_true: Any,
    y_prob: Any = None,
    *,
    notion: str | Notion = "auto",
    estimator: str | CellEstimator | Isotonic = "auto",
    level: float | None = None,
    band: str = "confidence",
    n_resamples: int = 1000,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> ReliabilityCurve: ...
@public_function(grouped=True, sums=True)
def reliability_curve(
    y_true: Any,
    y_prob: Any = None,
    *,
    notion: str | Notion = "auto",
    estimator: str | CellEstimator | Isotonic = "auto",
    level: float | None = None,
    band: str = "confidence",
    n_resamples: int = 1000,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> ReliabilityCurve | dict[Label, ReliabilityCurve]:
    r"""Observed frequency of the outcome at every score, with a band.

    .. math:: rel(s) = P(o = 1 \mid s), \qquad LCE(s) = rel(s) - s

    Parameters
    ----------
    notion : str or Notion, default "auto"
        The positive class, ``ClassSpecific(label)`` or ``"confidence"``: one curve. ``"classwise"`` or
        ``"top-label"``: one curve per class.
    estimator : {"adaptive", "residual", "density", "binned", "isotonic"}, other name or estimator, default "auto"
        ``"auto"``: ``EmpiricalBayes()``, the posterior mean. The others: ``AdaptiveKernel()``,
        ``ResidualKernel(space="score")``, ``Density()``, ``Binned()``, ``Isotonic()`` (also ``"corp"``: one value per
        distinct score), or an estimator object.
    level : float in (0, 1), optional
        Level of the band.
    band : str, default "confidence"
        ``"confidence"``: covers the true frequency pointwise. Default curve: percentiles over ``n_resamples``
        maps drawn from the posterior, and Wilson's interval at each isolated score that many rows share.
        Kernel curves: percentiles over resamples of the grid counts. Isotonic: the pointwise likelihood ratio
        (Banerjee & Wellner 2001), exact intervals at both ends. Bins: Wilson's interval (also ``"wilson"``), or
        ``"clopper-pearson"``.
        ``"consistency"``: where the curve of a calibrated model would lie, pointwise (Bröcker & Smith
        2007): around the diagonal, by labels drawn from the scores; for bins by the binomial distribution.
        ``"simultaneous"``: covers the true frequency at all scores at once, with a guarantee for every n. Bins: exact
        intervals with a Bonferroni correction. Other curves: the band of Dimitriadis et al. (2023), valid
        for every non-decreasing true map; it need not contain the curve.
    n_resamples : int, default 1000
        Number of resamples for bands computed by resampling.

    Returns
    -------
    ReliabilityCurve, or dict of label to ReliabilityCurve
        ``.scores``, ``.observed``, ``.lower``, ``.upper``, ``.median``, ``.density``, ``.lce``, ``.at(scores)``.
        NaN where there are no rows: the default curve bridges gaps between rows of up to a quarter of the domain, and
        extends an eighth beyond the last rows; a kernel curve needs an effective half sample within the kernel.
        A notion with one problem per class returns a dictionary in class order; classes that are never predicted have
        no top-label curve.

    Raises
    ------
    ValueError, TypeError
        For invalid input; for the canonical notion, whose score is a vector.

    See Also
    --------
    calibrant.ReliabilityDisplay : Plot of the curve.
    calibrant.estimate : The calibration error with the underlying curve.
    calibrant.results.ReliabilityCurve : The result, field by field.

    Notes
    -----
    From 500 rows on, the 95 % band of the default covers the truth at 93 % or more of the rows for calibrated models,
    and at 90 % or more for others, including steps and non-monotone maps; values that are alternately too high and too
    low need 1000 rows (simulated in docs/development/default_band.md). The percentile band of kernel curves
    describes sampling noise only, not the smoothing bias, and collapses where all nearby outcomes agree
    (benchmarks/coverage/bands.md).

    Cost: O(n), plus 10 to 50 ms on at most 240 cells, regardless of n; O(n + R · G log G) for kernels on a grid of G
    cells (128 to 1024, six per bandwidth). Isotonic curves and simultaneous bands sort the rows; beyond 20 000 distinct
    scores, bands are computed from some 2000 runs of scores.

    References
    ----------
    Posocco & Bonnefoy (2021), §4.5; Bröcker & Smith (2007), *Increasing the reliability of reliability diagrams*;
    Dimitriadis, Gneiting & Jordan (2021), *Stable reliability diagrams for probabilistic classifiers*; Dimitriadis,
    Dümbgen, Henzi, Puke & Ziegel (2023), *Honest calibration assessment for binary outcome predictions*.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> y = rng.random(5000) < p**2
    >>> curve = cal.reliability_curve(y, p, level=0.9, random_state=0)
    >>> bool(curve.at(0.5).lower[0] < 0.25 < curve.at(0.5).upper[0])
    True
    >>> P = [[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]]
    >>> sorted(cal.reliability_curve([0, 1, 2], P, notion="classwise"))
    [0, 1, 2]
    """
    reader = None if is_isotonic(estimator) else curve_estimator(estimator)
    check_band(band, binned=isinstance(reader, Binned))
    level = None if level is None else check_level(level)
    options = (level, check_random_state(random_state), check_resamples(n_resamples), band)
    if isinstance(y_true, SumsOfRows):
        return _curves_of_sums(y_true, reader, *options)
    predictions = as_predictions(y_true, y_prob, **inputs)
    chosen = as_notion(notion, predictions)
    reduction = chosen.reduce(predictions)
    if isinstance(reduction, VectorProblem):
        raise ValueError(f"notion {chosen.name!r} has no curve: its score is a vector; use 'confidence' or 'classwise'")
    spec = CurveSpec(reader, chosen.name, *options)
    if len(reduction) == 1 and not chosen.per_class:
        return spec.of_rows(reduction[0])
    return {one.label: spec.of_rows(one) for one in counted(reduction, "classes")}


def _curves_of_sums(
    sums: Any, reader: CellEstimator | None, *options: Any
) -> ReliabilityCurve | dict[Label, ReliabilityCurve]:
    """Curve of an Accumulator: exact for kept bins and smooth curves, otherwise from rows moved within a cell."""
    sums.required()
    spec, problems = CurveSpec(reader, sums.notion.name, *options), sums.problems
    curves = {}
    each: Iterator[Any] = (
        iter([]) if reader is None else (part[i] for part in sums.sums(reader) for i in range(len(part)))
    )
    for one in counted(problems.values(), "classes", len(problems)):
        if reader is None:
            curve = spec.isotonic(_ties(one, None), one.label, one.domain, one.grid.n_samples)
        else:
            curve = spec.of_sums(next(each), one.label, _ties(one, MOST) if spec.reads_ties else None)
        curves[one.label] = curve
    several = sums.notion.per_class or len(curves) > 1
    return curves if several else next(iter(curves.values()))


def _ties(one: ProblemSums, most: int | None) -> TiedScores:
    """Runs of neighbouring scores; ValueError without a fine histogram."""
    if one.fine is None:
        raise ValueError(
            "isotonic curves and simultaneous bands of one of several problems need the rows: add them with the notion "
            f"'class-specific:{one.label}', or use bins"
        )
    return TiedScores.of_moments(one.fine, most)


def is_isotonic(estimator: Any) -> bool:
    """Whether an ``estimator`` argument selects the isotonic curve."""
    return isinstance(estimator, Isotonic) or (isinstance(estimator, str) and estimator in ("isotonic", "corp"))


def curve_estimator(estimator: str | CellEstimator | Isotonic, name: str = "estimator") -> CellEstimator:
    """Validate the estimator of a curve."""
    chosen: Any = estimator
    if isinstance(estimator, str) and estimator in _OF_CURVES:  # where "residual" is over scores, an axis of a diagram
        chosen = _OF_CURVES[estimator]
    elif isinstance(estimator, str) and estimator.partition(":")[0] in NAMES:
        chosen = estimator_named(estimator)
    if isinstance(chosen, CellEstimator):
        return chosen
    raise ValueError(
        f"{name} must be one of {', '.join(map(repr, _OF_CURVES))}, another name of an estimator with a curve such as "
        f"'binned:20', or Binned(...), Density(...); got {received(estimator)}"
    )
