"""Frozen results: data only, without drawing or computation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..data import notebook
from ..data.printing import nouns_of, number_of
from ..data.result import Picture, Table, jsonable
from ..data.types import AnyArray, FloatArray, Interval, Label
from ..sums.edges import Edges

#: Slope below which a curve is treated as flat.
_FLAT = 2e-3


class CurvePoint(NamedTuple):
    """A curve evaluated at given scores; NaN where the curve has no data.

    Attributes
    ----------
    observed : ndarray of shape (m,)
        Value of the curve at each score.
    lower, upper : ndarray of shape (m,)
        Lower and upper ends of its band.

    See Also
    --------
    calibrant.results.ReliabilityCurve : Its method ``at`` returns this class.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> point = cal.reliability_curve(rng.random(2000) < p, p, level=0.95).at([0.5])
    >>> bool(point.lower[0] < 0.5 < point.upper[0])
    True
    """

    observed: FloatArray
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class ReliabilityCurve(Picture, Table):
    """Observed frequency as a function of the score.

    Attributes
    ----------
    scores : ndarray of shape (m,)
        Scores at which the curve is given: grid nodes (for the default, nodes of occupied cells and of scores shared
        by many rows), or the mean score of each bin.
    observed : ndarray of shape (m,)
        Estimated ``P(outcome | score)``; NaN where there is no data.
    lower, upper : ndarray of shape (m,)
        Band at ``level``, of the type ``band``; NaN everywhere without a level.
    median : ndarray of shape (m,)
        Median over the resamples; NaN everywhere without a level or resamples.
    density : ndarray of shape (m,)
        Density of the scores; it integrates to 1 over the domain.
    count : ndarray of shape (m,)
        Effective number of samples at each score: those in the bin, those within the kernel (weighted by it), or those
        at a score shared by many rows.
    edges : ndarray of shape (m + 1,) or None
        Bin edges; None for a smooth curve.
    level : float or None
        Level of the band; None without one.
    label : object
        The class of the curve; None for a confidence.
    estimator : str
        Estimator of the curve.
    band : str or None
        ``"confidence"`` (around the curve; covers the true frequency at each score), ``"consistency"`` (around the
        diagonal: where the curve of a calibrated model would lie), ``"simultaneous"`` (covers the true frequency at all
        scores at once), or the name of an interval per bin; None without a level.
    isotonic : bool
        Whether the curve is isotonic: one value per distinct score, with steps midway between scores.
    shared : ndarray of bool, shape (m,), or None
        For the default curve: whether many rows share the score, which then has its own frequency and interval.

    See Also
    --------
    calibrant.reliability_curve : Computes it.
    calibrant.ReliabilityDisplay : Draws it.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> curve = cal.reliability_curve(rng.random(2000) < p, p, estimator=cal.Binned(2))
    >>> curve.scores.round(1).tolist(), curve.edges.tolist()
    ([0.2, 0.8], [0.0, 0.5, 1.0])
    """

    display: ClassVar[str] = "ReliabilityDisplay"

    scores: FloatArray
    observed: FloatArray
    lower: FloatArray
    upper: FloatArray
    median: FloatArray
    density: FloatArray
    count: FloatArray
    edges: FloatArray | None
    level: float | None
    label: Label
    notion: str
    estimator: str
    n_samples: int
    band: str | None = None
    isotonic: bool = False
    shared: AnyArray | None = field(default=None, repr=False)

    def _columns(self) -> dict[str, Any]:
        return {
            "score": self.scores,
            "observed": self.observed,
            "lower": self.lower,
            "upper": self.upper,
            "density": self.density,
            "count": self.count,
        }

    def _words_html(self) -> str:
        return notebook.folded("table", super()._words_html())

    def _shown(self) -> Iterable[tuple[str, Any]]:
        names = ("label", "notion", "estimator", "band", "level", "n_samples", "scores", "observed", "lower", "upper")
        return ((name, getattr(self, name)) for name in names)

    @property
    def lce(self) -> FloatArray:
        """Local calibration error ``observed - score``: positive where the model under-predicts."""
        return self.observed - self.scores

    @property
    def line(self) -> ReliabilityCurve:
        """The curve as a line, from the first rows to the last, without scores that many rows share."""
        if self.edges is not None:
            return self
        rows = np.flatnonzero((self.density > 0) & ~np.isnan(self.observed))
        first, last = (rows[0], rows[-1]) if rows.size else (0, -1)
        if self.shared is not None:  # beyond the mean of the rows at an end the curve only repeats what it is there
            rise, across = (np.diff(v[first : last + 1]) for v in (self.observed, self.scores))
            turns = np.flatnonzero(np.abs(rise) > _FLAT * across)
            first, last = (first + turns[0], first + turns[-1] + 1) if turns.size else (first, last)
        inside = np.zeros(self.scores.size, dtype=bool)
        inside[first : last + 1] = True
        return self._at(inside if self.shared is None else inside & ~self.shared)

    @property
    def values(self) -> ReliabilityCurve:
        """Points of the curve at scores that many rows share."""
        shared = np.zeros(self.scores.size, dtype=bool) if self.shared is None else self.shared
        # A value lies on a node or between two, of which the nearer one has more of its rows.
        pair = shared & np.append(shared[1:], False)
        less = self.density < np.append(self.density[1:], 0.0)
        return self._at(shared & ~(pair & less) & ~np.append(False, (pair & ~less)[:-1]))

    def _at(self, some: AnyArray) -> ReliabilityCurve:
        names = ("scores", "observed", "lower", "upper", "median", "density", "count")
        found: dict[str, Any] = {name: getattr(self, name)[some] for name in names}
        return replace(self, shared=None, **found)

    def corners(self) -> tuple[FloatArray, FloatArray]:
        """Corners of a step function (bins, isotonic) in order of the score; the points of a smooth curve."""
        if self.edges is None:
            return self.scores, self.observed
        turns = self.observed[1:] != self.observed[:-1]
        x = np.concatenate([self.scores[:1], np.repeat(self.edges[1:-1][turns], 2), self.scores[-1:]])
        y = np.concatenate([self.observed[:1], self.observed[1:][turns]])
        return x, np.repeat(y, 2)

    def band_corners(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores, lower and upper ends of the band as drawn: straight lines between scores, or steps.

        The simultaneous band of an isotonic curve has steps, since nothing else is known between two scores.
        """
        if not (self.isotonic and self.band == "simultaneous"):
            return self.scores, self.lower, self.upper
        # At each score its own ends, then those that hold up to the next one.
        x = np.repeat(self.scores[:-1], 3)
        x[2::3] = self.scores[1:]
        lower = np.repeat(self.lower[:-1], 3)
        upper = np.repeat(self.upper[1:], 3)
        upper[::3] = self.upper[:-1]
        return (
            np.append(x, self.scores[-1]),
            np.append(lower, self.lower[-1]),
            np.append(upper, self.upper[-1]),
        )

    @property
    def summary(self) -> str:
        """The largest gap of the curve, in one sentence."""
        what = nouns_of(self.notion).of(self.label)
        rows = f"({number_of(self.n_samples, 'row')})"
        gaps = np.where(self.count > 0, np.abs(self.lce), -1.0)
        worst = int(np.argmax(gaps)) if gaps.size else 0
        if not gaps.size or not gaps[worst] >= 0:
            return f"No frequency of {what} could be estimated {rows}."
        way = "more" if self.lce[worst] > 0 else "less"
        said = f"At a score of {self.scores[worst]:.3f}, {what} is observed {way} often than stated, "
        return f"{said}by {gaps[worst]:.3f}: the largest gap of the curve {rows}."

    def _text(self) -> str:
        what = nouns_of(self.notion).of(self.label)
        head = f"Observed frequency of {what}, {number_of(self.n_samples, 'row')}, {self.estimator}"
        ends = self.scores if self.edges is None else self.edges
        at = np.linspace(ends[0], ends[-1], 11)
        found = self.at(np.clip(at, 0, 1))
        lines = [
            f"{'score':>7}{'observed':>10}" + ("" if self.level is None else f"   {100 * self.level:g} % {self.band}")
        ]
        for score, observed, low, high in zip(at, *found, strict=True):
            band = "" if np.isnan(low) else f"   {low:.3f} to {high:.3f}"
            lines.append(f"{score:>7.3f}{'-' if np.isnan(observed) else f'{observed:.3f}':>10}{band}")
        return "\n".join([head, *lines])

    def at(self, scores: Any) -> CurvePoint:
        """Recalibrated probability, with its interval, at given scores.

        Smooth curves are interpolated linearly; binned curves return the values of the bin. Between the scores of an
        isotonic curve, the simultaneous band is the one that both neighbours imply for any non-decreasing curve. NaN
        where there is no data. Raises ValueError for scores outside [0, 1] or not finite.

        Parameters
        ----------
        scores : array-like of shape (m,)
            Scores in [0, 1].

        Examples
        --------
        >>> import numpy as np, calibrant as cal
        >>> p = np.linspace(0, 1, 1000); y = np.arange(1000) % 2
        >>> curve = cal.reliability_curve(y, p, level=0.95, random_state=0)
        >>> bool(abs(curve.at([0.83]).observed[0] - 0.5) < 0.05)
        True
        """
        given = np.atleast_1d(np.asarray(scores))
        eps = float(np.finfo(given.dtype if given.dtype.kind == "f" else np.float64).eps)
        x = given.astype(np.float64)
        bad = ~((x >= 0) & (x <= 1))
        if bad.any():
            raise ValueError(f"scores must lie in [0, 1]; got {x[bad][0]!s}")
        if self.edges is None:
            return CurvePoint(*(_interpolate(x, self.scores, v) for v in (self.observed, self.lower, self.upper)))
        bins = np.clip(Edges(self.edges).slots(x, eps) - 1, 0, len(self.observed) - 1)
        inside = (x >= self.edges[0]) & (x <= self.edges[-1])
        observed, lower, upper = (v[bins] for v in (self.observed, self.lower, self.upper))
        if self.isotonic and self.band == "simultaneous":
            lower = np.append(0.0, self.lower)[np.searchsorted(self.scores, x, side="right")]
            upper = np.append(self.upper, 1.0)[np.searchsorted(self.scores, x, side="left")]
        return CurvePoint(*(np.where(inside, v, np.nan) for v in (observed, lower, upper)))

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON (NaN as None)."""
        arrays = ("scores", "observed", "lower", "upper", "median", "density", "count", "edges")
        names = (*arrays, "level", "band", "label", "notion", "estimator", "n_samples")
        return {name: jsonable(getattr(self, name)) for name in names}


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(Picture, Table):
    """A calibration error with its uncertainty.

    Attributes
    ----------
    value : float
        The estimate: the result of :func:`calibration_error`, up to float64 rounding; clipped to the interval if
        ``assume`` is not ``"smooth"``.
    interval : Interval
        ``(low, high)`` at ``level``: a credible interval for the default estimator, else by test inversion. It accounts
        for the bias of ``value``, and is widened to include it (0 for a negative signed value).
    corrected : float
        The posterior median; without a posterior a median-unbiased estimate: the true error for which half of all
        samples would give more than ``value``.
    per_class : mapping of label to float
        Error of each problem (class); empty for a single problem.
    curve : ReliabilityCurve or None
        The underlying curve, for a single problem of an estimator that has one; computed on first access.
    calibrated : float or None
        Posterior probability that the model is exactly calibrated (all classes together); None without a posterior.
    details : mapping of str to float
        Further results of the estimator, such as the bandwidth of :class:`DirichletKernel`; empty for most.
    assume, unseen : str
        Assumption of the interval (``"smooth"``, ``"none"``, ``"bins:15"``, ``"variation:0.5"``), and the errors that
        it therefore cannot show. With any other than ``"smooth"`` the interval is valid for every n, and ``calibrated``
        is None.
    drawn : callable or None
        Computes the curve on first access.

    See Also
    --------
    calibrant.estimate : Computes it.
    calibrant.results.ReliabilityCurve : The underlying curve.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = cal.estimate(rng.random(2000) < p**2, p)  # the truth: 1/6
    >>> bool(found.interval.low < 1 / 6 < found.interval.high), float(found) == found.value
    (True, True)
    """

    display: ClassVar[str] = "ReliabilityDisplay"

    value: float
    interval: Interval
    corrected: float
    level: float
    notion: str
    estimator: str
    norm: float
    n_samples: int
    per_class: Mapping[Label, float] = field(default_factory=dict)
    drawn: Callable[[], ReliabilityCurve] | None = field(default=None, repr=False, compare=False)
    calibrated: float | None = None
    details: Mapping[str, float] = field(default_factory=dict)
    assume: str = "smooth"
    unseen: str = field(default="", repr=False)

    def _columns(self) -> dict[str, Any]:
        none = [float("nan")] * len(self.per_class)
        return {
            "label": ["all", *map(str, self.per_class)],
            "value": [self.value, *self.per_class.values()],
            "low": [self.interval.low, *none],
            "high": [self.interval.high, *none],
        }

    @property
    def summary(self) -> str:
        """The error with its interval, notion and number of rows."""
        what = "Calibration error" if self.norm == 1 else f"Calibration error, norm {self.norm:g}"
        return f"{what} {self}, {self.notion}, {number_of(self.n_samples, 'row')}, {self.estimator}."

    def _words_html(self) -> str:
        return super()._words_html() if self.per_class else ""

    @cached_property
    def curve(self) -> ReliabilityCurve | None:
        """The underlying curve with its band; None for several problems."""
        return None if self.drawn is None else self.drawn()

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        low, high = self.interval
        interval = f"{self.value:.4f} ({100 * self.level:g} % interval {low:.4f} to {high:.4f}"
        if self.assume == "smooth":
            return f"{interval})"
        return f"{interval}, assume='{self.assume}')\nNot seen: {self.unseen}."

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON (NaN as None)."""
        numbers = ("value", "interval", "corrected", "calibrated", "level")
        about = ("notion", "estimator", "norm", "n_samples", "per_class", "curve", "details", "assume", "unseen")
        out = {name: jsonable(getattr(self, name)) for name in (*numbers, *about)}
        return out | {"norm": "inf" if np.isinf(self.norm) else self.norm}


def _interpolate(x: FloatArray, nodes: FloatArray, values: FloatArray) -> FloatArray:
    """Linear interpolation; NaN outside the nodes and next to nodes without data."""
    left = np.clip(np.searchsorted(nodes, x, side="right") - 1, 0, len(nodes) - 2)
    share: FloatArray = (x - nodes[left]) / (nodes[left + 1] - nodes[left])
    inside = (share >= -1e-9) & (share <= 1 + 1e-9)
    share = np.round(np.clip(share, 0, 1), 9)
    low, high = values[left], values[left + 1]
    # A weight of zero must not spread a neighbour's NaN.
    mixed = np.where(share == 0, low, np.where(share == 1, high, low * (1 - share) + high * share))
    return np.where(inside, mixed, np.nan)
