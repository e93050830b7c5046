"""Base classes of estimators: immutable objects that compute an error from a problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..data.checks import is_real, is_whole, received
from ..data.docs import Documented
from ..data.problem import OneVsRestProblems, Problem, Reduction, VectorProblem
from ..data.types import AnyArray, FloatArray, IntArray
from ..sums import BinMoments as BinMoments
from ..sums import Bins as Bins
from ..sums import DistinctScores as DistinctScores
from ..sums import Grid as Grid
from ..sums import GridMoments as GridMoments
from ..sums import QuantileBins as QuantileBins
from ..sums import Runs as Runs
from ..sums.smoothing import Smoother

#: Multiples of the estimated gaps at which truths are simulated; quantiles are interpolated between them.
SCALES = np.array([0.0, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0])


@dataclass(frozen=True, eq=False)
class TruthPath:
    """Estimates and truths along :data:`SCALES`.

    Attributes
    ----------
    powers : ndarray of shape (S, R)
        ``errorᵖ`` estimated from R samples drawn at each scale, with common random numbers.
    truths : ndarray of shape (S,)
        True ``errorᵖ`` at each scale.
    observed : float
        ``errorᵖ`` estimated from the data, computed as for the draws.
    """

    powers: FloatArray
    truths: FloatArray
    observed: float


#: A smooth curve is drawn, and its largest gap sought, where the effective kernel sample size is at least this.
MIN_LOCAL_SIZE = 0.5


def supported(density: FloatArray, peak: float | FloatArray, norm: float) -> AnyArray:
    """Mask of the points where a smooth estimate counts: positive density; half a sample in the kernel for p = inf.

    An integral gives the far tails of a kernel no weight, but a maximum could be attained there.
    """
    if np.isinf(norm):
        return np.asarray(density >= MIN_LOCAL_SIZE * peak)
    # The transform's rounding noise is about 1e-16 of the peak: below that there is no density.
    return np.asarray(density > 1e-12 * density.max(axis=-1, keepdims=True, initial=0.0))


def check_eps(eps: Any) -> float:
    """Check the ``eps`` argument: how near to 0 and 1 a probability may come."""
    if not is_real(eps):
        raise TypeError(f"eps must be a number in (0, 0.1]; got {received(eps)}")
    if not 0 < eps <= 0.1:
        raise ValueError(f"eps must lie in (0, 0.1]; got {received(eps)}")
    return float(eps)


def check_bandwidth(bandwidth: Any, rules: tuple[str, ...], *, function: bool = False) -> Any:
    """Check a ``bandwidth`` argument: the name of a rule, a number (converted to float), or a callable."""
    names = ", ".join(map(repr, rules))
    allowed = f"bandwidth must be {names} or a number in [1e-12, 1e3]"
    if function:
        allowed = f"bandwidth must be one of {names}, a number in [1e-12, 1e3] or a callable"
    if (function and callable(bandwidth)) or (isinstance(bandwidth, str) and bandwidth in rules):
        return bandwidth
    if not isinstance(bandwidth, str) and not is_real(bandwidth):
        raise TypeError(f"{allowed}; got {received(bandwidth)}")
    # Not np.isfinite, which a traced training loss could not follow.
    if isinstance(bandwidth, str) or not 1e-12 <= bandwidth <= 1e3:
        raise ValueError(f"{allowed}; got {received(bandwidth)}")
    return float(bandwidth)


def check_n_bins(n_bins: Any, allowed: str) -> int | str:
    """Check a number of bins, or a rule that derives it from the sample size; ``allowed`` is for the error message."""
    if isinstance(n_bins, str) and n_bins in ("sqrt", "cbrt"):
        return n_bins
    if not isinstance(n_bins, str) and not is_whole(n_bins):
        raise TypeError(f"n_bins must be {allowed}; got {received(n_bins)}")
    if isinstance(n_bins, str) or n_bins < 1:
        raise ValueError(f"n_bins must be {allowed}; got {received(n_bins)}")
    return int(n_bins)


class PowerAndSE(NamedTuple):
    """Estimated ``errorᵖ``, signed if debiased, and its standard error (NaN if there is none)."""

    power: float
    se: float

    @classmethod
    def nothing(cls) -> PowerAndSE:
        """Result for a problem without a number."""
        return cls(float("nan"), float("nan"))

    @classmethod
    def of_terms(cls, terms: FloatArray, influence: FloatArray, mass: FloatArray, size: float) -> PowerAndSE:
        """Mean of terms with weights ``mass``; its standard error is that of the mean of ``influence``."""
        total = float(mass.sum())
        if not total > 0:
            return cls.nothing()
        centred = influence - (mass * influence).sum() / total
        variance = float((mass * centred**2).sum()) / total
        return cls(float((mass * terms).sum()) / total, float(np.sqrt(variance / max(size, 1.0))))


class Estimator(Documented):
    """Base class of estimators: immutable objects that compute an error from rows.

    Most estimators read sums and derive from :class:`CellEstimator`. An estimator that needs the rows derives from this
    class and defines :meth:`power`, or ``_powers``, which takes all problems side by side. The other names with an
    underscore are for the estimators of this package; their defaults suit any other.

    See Also
    --------
    calibrant.estimators.CellEstimator : Base class of estimators that read sums.
    calibrant.calibration_error : Takes an estimator of your own.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> class InTheLarge(cal.estimators.Estimator):
    ...     def power(self, problem, norm):
    ...         gap = np.average(problem.outcomes - problem.scores, weights=problem.weights)
    ...         return cal.estimators.to_power(abs(gap), norm)
    >>> round(cal.calibration_error([0, 1, 1, 0], [0.3, 0.8, 0.8, 0.3], estimator=InTheLarge()), 3)
    0.05
    """

    #: "scalar" problems (one score per sample), "vector" ones (a probability vector per sample), or both.
    _serves: ClassVar[frozenset[str]] = frozenset({"scalar"})

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.power is Estimator.power and cls._powers is Estimator._powers:
            raise TypeError(f"{cls.__name__} must define power(problem, norm) or _powers(problems, norm)")

    def power(self, problem: Any, norm: float) -> float:
        """Return ``errorᵖ`` of one problem (see :func:`.norm.to_power`), signed if debiased.

        Parameters
        ----------
        problem : Problem or VectorProblem
            Scores, outcomes and weights.
        norm : float
            The power p ≥ 1 of the error, or inf for the maximum.
        """
        return float(self._powers(problem, norm).reshape(-1)[0])

    def _powers(self, problems: Problem | OneVsRestProblems, norm: float) -> FloatArray:
        """``errorᵖ`` of every problem, (R,)."""
        return np.array([self.power(problem, norm) for problem in problems])

    def _square(self, problem: Any) -> float:
        """Signed, untruncated estimate of ``error²``; ValueError for estimators without one."""
        raise ValueError(
            f"estimator {self!r} has no unbiased estimate of the squared error: use Binned(..., debias=True), or "
            "debias='kumar', 'brocker' or 'ferro-fricker', or CrossFit(...)"
        )

    def _check(self, reduction: Reduction, notion: str) -> None:
        """Raise ValueError if this estimator does not support the notion, naming estimators that do."""
        vector = isinstance(reduction, VectorProblem)
        kind = ("drawn" if reduction.drawn else "vector") if isinstance(reduction, VectorProblem) else "scalar"
        if kind in self._serves:
            return
        others = "DirichletKernel or SimplexBinned" if vector else "Binned, Density, ResidualKernel or AdaptiveKernel"
        raise ValueError(f"estimator {type(self).__name__} does not support the notion {notion!r}: use {others}")


class EstimatorWithSE(Estimator, ABC):
    """Base class of estimators that also compute the standard error of their power."""

    @abstractmethod
    def _power_and_se(self, problem: Any, norm: float) -> PowerAndSE:
        """``errorᵖ`` and its standard error, NaN if there is none."""

    def power(self, problem: Any, norm: float) -> float:
        """``errorᵖ`` of one problem."""
        return self._power_and_se(problem, norm).power

    def _inner(self, norm: float) -> float:
        """Norm of the power that is estimated, which may differ from the requested one."""
        return norm

    def _details(self, problem: Any, norm: float) -> dict[str, float]:
        """Additional results for a problem."""
        return {}


@dataclass(frozen=True, eq=False)
class Cells:
    """Components of a plug-in estimate: counts at scores, an optional smoother, and quadrature weights.

    Bins and kernels are treated alike: gap = positives / counts - score after both have been smoothed by
    ``smoother`` (None for bins); or, with ``residual``, (positives - score · counts) / counts after smoothing.
    Curves, bands and intervals are computed from cells, so their cost does not depend on the number of rows.

    Attributes
    ----------
    scores : ndarray of shape (m,)
        Score of each cell (NaN for an empty bin).
    count, positive : ndarray of shape (m,)
        Samples and positives per cell, in units of the effective sample size.
    smoother : Smoother or None
        Smoother of the counts; None for bins.
    quadrature : ndarray of shape (m,)
        Weight of each cell in sums.
    residual : bool
        Whether residuals are smoothed instead of positives.
    """

    scores: FloatArray
    count: FloatArray
    positive: FloatArray
    smoother: Smoother | None
    quadrature: FloatArray
    residual: bool = False

    def apply(self, counts: FloatArray) -> FloatArray:
        """Smooth counts (last axis), or return them unchanged for bins."""
        return counts if self.smoother is None else self.smoother(counts)

    @cached_property
    def density(self) -> FloatArray:
        """Smoothed counts per cell; rounding noise of the transform is clipped at 0."""
        return np.maximum(self.apply(self.count), 0.0)

    @cached_property
    def local_size(self) -> FloatArray:
        """Effective number of samples at a cell: those in the bin, or ``Σ K((s - s_i) / h) / K(0)``."""
        return self.density if self.smoother is None else self.density / self.smoother.peak

    @cached_property
    def gap(self) -> FloatArray:
        """Observed minus predicted; NaN where there is no data."""
        out: FloatArray = np.full(self.count.shape, np.nan)
        present = self.density > 1e-12 * self.density.max(axis=-1, keepdims=True, initial=0.0)
        np.divide(self.apply(self.outcome(self.positive, self.count)), self.density, out=out, where=present)
        return out if self.residual else np.clip(out, 0, 1) - self.scores

    @cached_property
    def residual_gap(self) -> FloatArray:
        """Smoothed residuals over smoothed counts, whatever the estimator smooths; 0 where there is no data."""
        return self.blur(self.positive - self.count * np.nan_to_num(self.scores))

    def blur(self, residual: FloatArray) -> FloatArray:
        """Convert residual sums per cell (…, m) to gaps."""
        present = self.density > 1e-12 * self.density.max(axis=-1, keepdims=True, initial=0.0)
        out: FloatArray = np.zeros(residual.shape)
        np.divide(self.apply(residual), self.density, out=out, where=present)
        return out

    def outcome(self, positive: FloatArray, count: FloatArray) -> FloatArray:
        """Sums to be smoothed: positives, or residuals ``positives - score · count``."""
        return positive - count * np.nan_to_num(self.scores) if self.residual else positive


@dataclass(frozen=True, eq=False)
class FittedCells(Cells):
    """Cells without a smoother, whose gaps come from a fit to all of them.

    Attributes
    ----------
    fitted : ndarray of shape (m,)
        Gap of each cell.
    """

    fitted: FloatArray = field(kw_only=True)

    @cached_property
    def gap(self) -> FloatArray:
        """Fitted minus predicted."""
        return self.fitted

    @cached_property
    def residual_gap(self) -> FloatArray:
        """Fitted minus predicted."""
        return self.fitted


class ResampleInputs(NamedTuple):
    """Problems whose samples are resampled together.

    Attributes
    ----------
    at : ndarray of shape (r,)
        Indices of the problems.
    reader : has ``read(sums, norm)``
        The estimator, with all parameters found in the data fixed.
    sums : sums of one problem, or of the r problems with a leading axis
    """

    at: IntArray
    reader: Any
    sums: Any


class CellEstimator(Estimator, ABC):
    """Base class of estimators that read sums: they stream and resample, at a cost independent of n.

    A subclass is a frozen dataclass and defines two methods:

    ``_needs(domain)``
        Returns a specification of the sums to compute for scores in ``domain``: ``Grid()``, ``Bins(edges)``,
        ``DistinctScores()``, or a custom value with ``of(problem)``. An estimator whose sums depend on the data
        (quantile edges) defines ``summarize(problem)`` instead, which returns the sums.
    ``read(sums, norm)``
        Converts sums with leading axes (…) to ``errorᵖ``, (…), by :func:`.to_power`. It is called for the data,
        resamples, batches and benchmark samples alike.

    Everything else follows, including intervals and support in reports. The other names with an underscore are for the
    estimators of this package; their defaults suit any other.

    See Also
    --------
    calibrant.estimators.Estimator : Base class of estimators that need the rows.
    calibrant.estimators.Grid : Specification of counts on a grid.
    calibrant.estimators.Bins : Specification of sums per bin.

    Examples
    --------
    The difference between the base rate and the mean score, with an interval:

    >>> from dataclasses import dataclass
    >>> import numpy as np, calibrant as cal
    >>> from calibrant.estimators import CellEstimator, Grid, to_power
    >>> @dataclass(frozen=True)
    ... class InTheLarge(CellEstimator):
    ...     def _needs(self, domain):
    ...         return Grid()
    ...
    ...     def read(self, sums, norm):
    ...         gap = (sums.positive - sums.count * sums.nodes).sum(axis=-1)
    ...         return to_power(np.abs(gap / sums.count.sum(axis=-1)), norm)
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = cal.estimate(rng.random(2000) < 0.8 * p, p, estimator=InTheLarge())
    >>> round(found.value, 2), bool(found.interval.low < 0.1 < found.interval.high)
    (0.1, True)
    """

    def _needs(self, domain: tuple[float, float]) -> Any:
        """Specification (hashable) of the sums to compute for scores in a domain; None if they depend on the data.

        In that case :meth:`summarize` computes them.
        """
        return None

    def summarize(self, problem: Problem) -> Any:
        """Sums of one or many problems.

        Parameters
        ----------
        problem : Problem or OneVsRestProblems
            Scores, outcomes and weights of one problem or of many.
        """
        needs = self._needs(problem.domain)
        if needs is None:
            raise TypeError(
                f"{type(self).__name__} must return from _needs(domain) the sums it needs, or define summarize(problem)"
            )
        return problem.sums(needs)

    @abstractmethod
    def read(self, sums: Any, norm: float) -> FloatArray:
        """``errorᵖ`` of shape (…) from sums with leading axes (…); see :func:`.norm.mean_power`.

        Parameters
        ----------
        sums : BinMoments, GridMoments, Runs, or sums of your own
            Sums returned by :meth:`summarize`.
        norm : float
            The power p ≥ 1 of the error, or inf for the maximum.
        """

    def fit(self, sums: Any) -> FittedSums:
        """The fit to sums, from which value, curve and interval are computed.

        Parameters
        ----------
        sums : BinMoments, GridMoments, Runs, or sums of your own
            Sums returned by :meth:`summarize`.
        """
        return FittedSums(self, sums)

    def _powers(self, problems: Problem | OneVsRestProblems, norm: float) -> FloatArray:
        """``errorᵖ`` of every problem, (R,), computed in tiles."""
        parts = [np.reshape(self.read(self.summarize(tile), norm), -1) for tile in problems.tiles()]
        return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts])

    def _cells(self, sums: Any) -> Cells:
        """Components of the estimate of one problem, for its curve, bands and interval."""
        drawn = self._drawn_as
        if drawn is None or drawn is self:
            raise TypeError(f"{self!r} has no cells of its own")
        return drawn._cells(sums)

    @property
    def _drawn_as(self) -> CellEstimator | None:
        """Estimator whose cells are drawn as the reliability curve: this one, if its cells lie on scores.

        None stands for residuals smoothed adaptively over the scores of its sums.
        """
        return self if self._cells_on_scores else None

    def _shown(self, sums: Any) -> Any:
        """Sums of one problem as shown by its curve: unchanged, or as transformed by this estimator."""
        return sums

    #: Whether ``_cells`` lie on scores, so that they are the reliability curve.
    _cells_on_scores: ClassVar[bool] = False
    #: Whether ``_cells`` lie where sums are resampled (``sums.atoms``), so that their gaps are those it resolves.
    _cells_are_atoms: ClassVar[bool] = False

    def _held(self, sums: Any) -> tuple[CellEstimator, Any]:
        """The estimator for resamples, with all parameters found in the data fixed, and the sums to resample.

        ``sums.atoms`` are scores, counts and positives of one problem; ``sums.resampled(count, positive)`` makes many.
        """
        return self, sums

    def _held_together(self, sums: Any, problems: int, most: int) -> Iterator[ResampleInputs]:
        """``_held`` for many problems, grouped into those that are read together: about ``most`` cells at a time."""
        return (ResampleInputs(np.array([i]), *self._held(sums[i])) for i in range(problems))


class GridEstimator(CellEstimator):
    """Base class of estimators that read counts on a grid of scores."""

    def _needs(self, domain: tuple[float, float]) -> Grid:
        """Linear-binned counts."""
        return Grid()


@dataclass(frozen=True, eq=False)
class FittedSums:
    """Sums with their estimator; each number is computed once and cached.

    Attributes
    ----------
    estimator : CellEstimator
    sums : sums of problems, with a leading axis
    """

    estimator: CellEstimator
    sums: Any
    _known: dict[float, FloatArray] = field(default_factory=dict, init=False, repr=False)

    def powers(self, norm: float) -> FloatArray:
        """``errorᵖ`` of every problem."""
        if norm not in self._known:
            self._known[norm] = self.estimator.read(self.sums, norm)
        return self._known[norm]

    def first(self, problems: int) -> FittedSums:
        """The fit to the first problems."""
        return self.estimator.fit(self.sums[:problems])


#: Draws (…, n) of a functional of recalibration maps, from the cells of problems and their drawn maps.
Functional = Callable[[Any, Any], FloatArray]


@dataclass(frozen=True, eq=False)
class ErrorDraws:
    """Posterior draws of the errors of problems, with leading axes (…).

    Attributes
    ----------
    powers : ndarray of shape (…, n_draws)
        Draws of ``errorᵖ`` (see :func:`.norm.to_power`) under a model that is not exactly calibrated.
    log_odds : ndarray of shape (…)
        Log Bayes factor of miscalibration against exact calibration.
    corrected : bool
        Whether errors include a correction for the misfit of each drawn map to the outcomes; they may then be negative.
    functionals : tuple of ndarray
        Other functionals of the same maps, also with leading axes (…).

    See Also
    --------
    calibrant.estimators.PosteriorEstimator : The estimators that produce them.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.estimators import ErrorDraws
    >>> draws = ErrorDraws(powers=np.array([[0.02, 0.03, 0.04]]), log_odds=np.array([2.0]))
    >>> draws.powers.mean(axis=-1).round(2).tolist()
    [0.03]
    """

    powers: FloatArray
    log_odds: FloatArray
    corrected: bool = False
    functionals: tuple[FloatArray, ...] = ()

    @classmethod
    def joined(cls, parts: Sequence[ErrorDraws]) -> ErrorDraws:
        """Concatenate the draws of several parts of the problems."""
        powers, log_odds = (np.concatenate(each) for each in zip(*((d.powers, d.log_odds) for d in parts), strict=True))
        functionals = tuple(np.concatenate(each) for each in zip(*(d.functionals for d in parts), strict=True))
        return cls(powers, log_odds, parts[0].corrected, functionals)


class PosteriorEstimator(CellEstimator):
    """Base class of estimators whose intervals come from posterior draws instead of a bootstrap.

    See Also
    --------
    calibrant.estimators.EmpiricalBayes : The posterior estimator of this package.
    calibrant.estimators.ErrorDraws : The draws.

    Examples
    --------
    >>> from calibrant.estimators import Binned, EmpiricalBayes, PosteriorEstimator
    >>> [isinstance(one, PosteriorEstimator) for one in (EmpiricalBayes(), Binned())]
    [True, False]
    """

    def fit(self, sums: Any) -> FittedPosterior:
        """The fit to sums, from which value, curve, draws and interval are computed."""
        return FittedPosterior(self, sums)

    @abstractmethod
    def _draws(
        self,
        sums: Any,
        norm: float,
        n_draws: int,
        rng: np.random.Generator,
        functionals: Sequence[Functional] = (),
        of: int = 1,
    ) -> ErrorDraws:
        """Draw the errors of all problems from their posteriors, with independent noise, and functionals of the maps.

        A posterior takes much memory: it is fitted for some problems at a time, everything is computed from the same
        draws, and it is discarded. With importance resampling, each draw is one of ``of`` candidates.
        """


@dataclass(frozen=True, eq=False)
class FittedPosterior(FittedSums):
    """Sums with their estimator, which has a posterior."""

    estimator: PosteriorEstimator

    def draws(
        self,
        norm: float,
        n_draws: int,
        rng: np.random.Generator,
        functionals: Sequence[Functional] = (),
        of: int = 1,
    ) -> ErrorDraws:
        """Draw the errors of all problems, and functionals of the same maps."""
        return self.estimator._draws(self.sums, norm, n_draws, rng, functionals, of)
