"""`Accumulator` and `from_frame`, with the methods that rooms below the sums make of them: a line each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .data.progress import working
from .data.types import RandomState
from .estimators import Estimator
from .frames.frame_sums import from_frame as from_frame
from .measure.streaming import Accumulator as Accumulator

if TYPE_CHECKING:
    from .calibrators import Calibrator
    from .reporting import Report
    from .scores.parts import Decomposition
    from .significance.result import TestResult


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
    """Everything a first look needs, as :func:`calibrant.report`; parameters as there.

    Exact but for the bins of equal mass and the isotonic curve, which are those of rows moved within a cell.
    Cost as there, without the pass over the rows.
    """
    from .reporting.assemble import report as of_rows

    return of_rows(
        self,
        estimator=estimator,
        level=level,
        tolerance=tolerance,
        threshold=threshold,
        random_state=random_state,
        title=title,
    )


def calibration_test(
    self: Accumulator,
    estimator: str | Estimator = "auto",
    *,
    norm: float = 1,
    n_resamples: int = 999,
    random_state: RandomState = 0,
) -> TestResult:
    r"""Is the calibration error larger than those of a calibrated model with these scores?

    Outcomes are drawn in cells of the sums, ``n_resamples`` times, and not row by row as
    :func:`calibrant.calibration_test` does; the p-value is again

    .. math:: p = \frac{1 + \#\{r : T_r \ge T\}}{1 + R}.

    Parameters
    ----------
    estimator : "auto" or one that reads sums, default "auto"
        Of the statistic. ``"auto"``: smoothed residuals over ranks, the test of :meth:`report`.
    norm : float ≥ 1, default 1
    n_resamples : int, default 999
        With more than ten classes ``"auto"`` draws fewer of each; of 64 or more, whose sum is normal, a few.
    random_state : int, Generator or None

    Returns
    -------
    TestResult
        ``details``: the ``expected`` error of a calibrated model.

    Notes
    -----
    Approximate: a cell's outcomes share one probability, and classes against the rest are drawn independently, the
    spread of what they make together widened, which loses some power. ``benchmarks/coverage/sums_tests.md`` has
    false alarms and power beside those of the test of rows. The same sums give the same p-value, in whatever
    pieces they came. Cost ``n_resamples`` estimates from the sums, whatever the number of rows.

    References
    ----------
    Vaicenavicius et al. (2019), *Evaluating model calibration in classification*.
    """
    from .significance import calibration_test as of_rows

    return of_rows(self, estimator=estimator, norm=norm, n_resamples=n_resamples, random_state=random_state)


def decompose(self: Accumulator, score: Any = "brier", *, estimator: str = "corp") -> Decomposition:
    """Parts of a mean proper score, as :func:`calibrant.decompose`.

    Parameters
    ----------
    score : {"brier", "log-loss", "spherical"} or a scoring rule, default "brier"
    estimator : {"corp", "binned"}, default "corp"
        ``"corp"``: by isotonic regression of the cells, for two classes. Stated and observed probabilities are
        those of rows moved within a cell, which can only make ``refinement`` larger.
        ``"binned"``: frequencies of the bins that were kept. Exact; of more than two classes for Brier's score.

    Returns
    -------
    Decomposition
        ``total`` is exact for Brier's score and the log-loss, and ``within`` what the spread of scores within bins
        (or cells) adds to it.

    Raises
    ------
    ValueError
        For ``estimator="exact"``, which needs the rows; for a score and classes as above; where no fine histogram
        was kept.
    """
    from .scores import decompose as of_rows

    return of_rows(self, score=score, estimator=estimator)


def fit(self: Accumulator, calibrator: str | Calibrator) -> Calibrator:
    """A calibrator fitted to all rows added; the one given stays as it is.

    Parameters
    ----------
    calibrator : calibrator of :mod:`calibrant.calibrators`, or a name of one
        Of two classes, or of one class of ``ClassSpecific``: any binary calibrator, fitted to rows moved within a
        cell, which weigh as much as they did. Of more classes: ``OneVsRest`` of one (which a name
        stands for), fitted class by class to scores on the grid, 1/4096 apart.

    Returns
    -------
    Calibrator
        It takes probabilities in the shape that was added.

    Raises
    ------
    TypeError
        Naming the calibrator, for one that needs the rows: of whole vectors (temperature, vector, matrix and
        Dirichlet scaling of three classes or more), or one that parts rows into folds or halves.

    Notes
    -----
    Cost that of the fit to at most 131072 weighted rows, whatever the number of rows.
    """
    from .calibrators.fit_sums import fit_sums

    with working("Accumulator.fit"):
        return fit_sums(self, calibrator=calibrator)


def plot(
    self: Accumulator, ax: Any = None, *, level: float = 0.95, random_state: RandomState = 0, **options: Any
) -> Any:
    """Reliability diagram, as :meth:`report` draws it; needs matplotlib (extra ``plot``).

    Curve and bins of the notion's problem with bands at ``level``, or a panel a class, worst first. Options are
    those of :meth:`calibrant.ReliabilityDisplay.plot`. Cost that of :meth:`report`.
    """
    return report(self, level=level, random_state=random_state).plot(ax, **options)


for _method in (report, calibration_test, decompose, fit, plot):
    setattr(Accumulator, _method.__name__, _method)
