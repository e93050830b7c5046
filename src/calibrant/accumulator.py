"""`Accumulator` and `from_frame`; functions that accept sums in place of rows are also methods of `Accumulator`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .data.docs import SharedParameters, document
from .data.progress import working
from .data.types import Label, RandomState
from .estimators import CellEstimator, Estimator, Isotonic
from .frames.frame_sums import from_frame as from_frame
from .measure import estimation, reliability
from .measure.assumptions import Assumption
from .measure.result import Estimate, ReliabilityCurve
from .measure.streaming import Accumulator as Accumulator

if TYPE_CHECKING:
    from .calibrators import Calibrator
    from .reporting import Report
    from .scores.score_parts import Decomposition
    from .significance.result import TestResult


def calibration_error(self: Accumulator, estimator: str | Estimator = "auto", *, norm: float = 1) -> float:
    """Calibration error of all added rows; see :func:`calibrant.calibration_error`.

    Exact if the estimator's sums were kept; otherwise rows are moved within a cell (see :class:`Accumulator`). Cost:
    that of estimates from the sums, for any number of rows. Raises TypeError for an estimator that needs the rows, such
    as ``CrossFit()``, and ValueError without rows, or if the sums that it uses were not kept.
    """
    return estimation.calibration_error(self, estimator=estimator, norm=norm)


def estimate(
    self: Accumulator,
    estimator: str | Estimator | None = None,
    *,
    norm: float = 1,
    level: float = 0.95,
    assume: str | Assumption = "smooth",
    n_resamples: int = 400,
    random_state: RandomState = 0,
) -> Estimate:
    """Calibration error with its interval, by default by ``EmpiricalBayes()``; see :func:`calibrant.estimate`.

    Exact if the estimator's sums were kept; the interval then equals that of the rows with the same ``random_state``.
    Intervals under assumptions other than ``"smooth"`` need the rows (TypeError). Cost: that of
    :func:`calibrant.estimate`, which does not depend on the number of rows.

    Parameters
    ----------
    estimator : str or Estimator, optional
        The estimator of the calibration error; by default ``EmpiricalBayes()``.
    assume : {"smooth"}, default "smooth"
        Assumption about the true calibration map; all others need the rows.
    """
    chosen = "auto" if estimator is None else estimator
    how: dict[str, Any] = {"n_resamples": n_resamples, "random_state": random_state}
    return estimation.estimate(self, estimator=chosen, norm=norm, level=level, assume=assume, **how)


def reliability_curve(
    self: Accumulator,
    estimator: str | CellEstimator | Isotonic = "auto",
    *,
    level: float | None = None,
    band: str = "confidence",
    n_resamples: int = 1000,
    random_state: RandomState = 0,
) -> ReliabilityCurve | dict[Label, ReliabilityCurve]:
    """Observed frequency at every score: one curve, or one per class; see :func:`calibrant.reliability_curve`.

    Exact for bins that were kept and for smooth curves. The isotonic curve and bins with other edges use rows moved
    within a cell; simultaneous bands treat the rows of a cell as tied, and allow for the position of scores within it.
    For a notion with a problem per class, isotonic curves and simultaneous bands of smooth curves need the rows. Cost:
    the same, without the pass over the rows.
    """
    options: Any = {"n_resamples": n_resamples, "random_state": random_state, "band": band}
    found: ReliabilityCurve | dict[Label, ReliabilityCurve]
    found = reliability.reliability_curve(self, estimator=estimator, level=level, **options)
    return found


def report(
    self: Accumulator,
    *,
    estimator: str | Estimator = "auto",
    level: float = 0.95,
    tolerance: float | None = None,
    threshold: float | None = None,
    random_state: RandomState = 0,
    title: str = "Calibration report",
) -> Report:
    """Calibration report of all added rows; see :func:`calibrant.report`.

    Exact except for the bins of equal mass and the isotonic curve, which use rows moved within a cell.
    Cost: the same, without the pass over the rows.

    Parameters
    ----------
    estimator : "auto" or an estimator with cells, default "auto"
        Estimator of the headline and the verdict.
    level : float in (0, 1), default 0.95
        Level of intervals and bands; p-values up to ``1 - level`` count as evidence.
    tolerance : float in (0, 1), optional
        Calibration error below which it is considered irrelevant; see :func:`calibrant.report` for the default.
    threshold : float in (0, 1), optional
        Decision threshold; the verdict then gives the share of decisions that recalibration would change.
    title : str, default "Calibration report"
        Title of the text and of the page.
    """
    from .reporting import report as of_rows

    how: dict[str, Any] = {"random_state": random_state, "title": title}
    return of_rows(self, estimator=estimator, level=level, tolerance=tolerance, threshold=threshold, **how)


def calibration_test(
    self: Accumulator,
    estimator: str | Estimator = "auto",
    *,
    norm: float = 1,
    n_resamples: int = 999,
    random_state: RandomState = 0,
) -> TestResult:
    """Test whether the calibration error is larger than that of a calibrated model with these scores.

    As :func:`calibrant.calibration_test`, but outcomes are drawn ``n_resamples`` times in cells of the sums, not row by
    row. Cost: ``n_resamples`` estimates from the sums, for any number of rows.

    Parameters
    ----------
    estimator : "auto" or Estimator, default "auto"
        Estimator of the statistic, which must accept sums; ``"auto"``: smoothed residuals over ranks.
    n_resamples : int, default 999
        Number of sets of labels to draw in the cells of the sums.
    """
    from .significance import calibration_test as of_rows

    return of_rows(self, estimator=estimator, norm=norm, n_resamples=n_resamples, random_state=random_state)


def decompose(self: Accumulator, score: Any = "brier", *, estimator: str = "corp") -> Decomposition:
    """Decompose a mean proper score into parts; see :func:`calibrant.decompose`.

    ``estimator="corp"``: isotonic regression of the cells, for two classes. Predicted and observed probabilities are
    those of rows moved within a cell, which can only increase ``refinement``. ``"binned"``: frequencies of the bins
    that were kept; exact, and for more than two classes only with the Brier score. ``total`` is exact for the Brier
    score and the log-loss; ``within`` is the contribution of the spread of scores within bins (or cells) to it.

    Raises ValueError for ``estimator="exact"``, which needs the rows, for other combinations of score and classes, and
    if no fine histogram was kept.

    Parameters
    ----------
    score : {"brier", "log-loss", "spherical"} or a scoring rule of :mod:`calibrant.scores`, default "brier"
        The score whose mean is decomposed.
    estimator : {"corp", "binned"}, default "corp"
        How observed frequencies are estimated; see above.
    """
    from .scores import decompose as of_rows

    return of_rows(self, score=score, estimator=estimator)


def fit(self: Accumulator, calibrator: str | Calibrator) -> Calibrator:
    """Fit a copy of a calibrator to all added rows.

    Parameters
    ----------
    calibrator : calibrator of :mod:`calibrant.calibrators`, or a name of one
        For two classes, or one class of ``ClassSpecific``: any binary calibrator, fitted to rows moved within a cell,
        with their weights. For more classes: ``OneVsRest`` of one (implied by a name), fitted class by class to scores
        on a grid with steps of 1/4096.

    Returns
    -------
    Calibrator
        The fitted copy, which takes probabilities in the shape of the added ones.

    Raises
    ------
    TypeError
        If the calibrator needs the rows: one of whole vectors (temperature, vector, matrix and Dirichlet scaling for
        three classes or more), or one that splits rows into folds or halves.

    Notes
    -----
    Cost: that of the fit to at most 131072 weighted rows, for any number of rows.
    """
    from .calibrators.from_sums import fit_sums

    with working("Accumulator.fit"):
        return fit_sums(self, calibrator=calibrator)


def plot(
    self: Accumulator, ax: Any = None, *, level: float = 0.95, random_state: RandomState = 0, **options: Any
) -> Any:
    """Plot the reliability diagram of :meth:`report`; requires matplotlib (extra ``plot``).

    Curve and bins of the notion's problem with bands at ``level``, or one panel per class, worst first. Options
    are those of :meth:`calibrant.ReliabilityDisplay.plot`. Cost: that of :meth:`report`.

    Parameters
    ----------
    level : float in (0, 1), default 0.95
        Level of the bands.
    **options
        Options of :meth:`calibrant.ReliabilityDisplay.plot`.
    """
    return report(self, level=level, random_state=random_state).plot(ax, **options)


document(reliability_curve, reliability.reliability_curve)
for _method in (calibration_error, estimate, reliability_curve, report, calibration_test, decompose, fit, plot):
    setattr(Accumulator, _method.__name__, document(_method, estimation.estimate, SharedParameters))
