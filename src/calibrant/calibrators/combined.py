"""Calibrators that combine others: weighted averages, sequences, and fits to smoothed labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri
from sklearn.base import clone

from ..data.checks import check_level, check_number, received
from ..data.fields import Field, Numbers, Several
from ..data.types import FloatArray
from .base import (
    PROBABILITIES,
    Calibrator,
    Fitted,
    average,
    check_calibrator,
    check_calibrators,
    check_not_negative,
    checked_by,
    fitted_to,
    parameter,
)
from .inputs import CalibrationSample, Scores
from .logistic import LaplaceMap
from .monotone import IsotonicCalibrator


@dataclass(eq=False, repr=False)
class Mixture(Calibrator):
    r"""Weighted average :math:`\sum_j w_j\, q_j` of the probabilities of several calibrators.

    Its log-loss and its Brier score are at most the weighted averages of theirs, since both scores are convex.

    Parameters
    ----------
    calibrators : sequence of Calibrator
        All are fitted to the same rows. Binary ones need two classes. Their ``input`` and ``labels`` are replaced
        by those given here.
    weights : sequence of float, optional
        Non-negative relative weights; by default equal.

    Attributes
    ----------
    calibrators_ : list of M fitted calibrators
        The calibrators, fitted.
    weights_ : ndarray of shape (M,)
        The weights, with sum 1.

    See Also
    --------
    calibrant.AutoCalibrator : A mixture whose weights are cross-validated.
    calibrant.calibrators.Composed : Applies calibrators in sequence.

    Notes
    -----
    :class:`AutoCalibrator` finds weights. An average of calibrated forecasts is slightly under-confident where they
    differ much. A mixture of only :class:`VennAbers` is averaged by their own rule. Cost: the sum of all fits.

    References
    ----------
    Gneiting & Ranjan (2013), *Combining predictive distributions*.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import Identity, Mixture, PlattScaling
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> half = Mixture([Identity(), PlattScaling()]).fit(p, rng.random(1000) < p**2)
    >>> half.weights_.tolist()
    [0.5, 0.5]
    """

    calibrators: Sequence[str | Calibrator] = field(metadata=checked_by(check_calibrators))
    weights: Sequence[float] | None = None

    _state: ClassVar[Mapping[str, Field]] = {
        "calibrators_": Several(Fitted()),
        "weights_": Numbers(("M",), *PROBABILITIES, total=1),
    }

    @classmethod
    def _from_fitted(cls, fitted: Sequence[Calibrator], weights: Sequence[float] | None = None) -> Mixture:
        """The average of fitted calibrators, for scores of one kind and the same classes."""
        first = fitted[0]
        out = cls([clone(one) for one in fitted], weights, input=first.input, labels=first.labels)
        out.classes_, out.n_features_in_, out.order_ = first.classes_, first.n_features_in_, first.order_
        if first._several:
            out.several_ = True
        if hasattr(first, "prior_"):
            out.prior_ = first.prior_
        out.calibrators_, out.weights_ = list(fitted), out._shares()
        return out

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.weights is None:
            return
        number = len(self.calibrators)
        if not isinstance(self.weights, (list, tuple, np.ndarray)) or np.shape(self.weights)[:1] != (number,):
            raise ValueError(f"weights must be {number} numbers, one per calibrator; got {received(self.weights)}")
        if sum(check_not_negative("weights", w) for w in self.weights) <= 0:
            raise ValueError("weights must not all be 0")

    def _fit(self, sample: CalibrationSample) -> None:
        self.calibrators_ = [fitted_to(one, sample) for one in self.calibrators]
        self.weights_ = self._shares()

    def _shares(self) -> FloatArray:
        """Weights with sum 1."""
        given = np.ones(len(self.calibrators)) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        return np.asarray(given / given.sum())

    def _probabilities(self, scores: Scores) -> FloatArray:
        return average([(one, scores, {}) for one in self.calibrators_], self.weights_)


def averaged_interval(of: Calibrator, flexible: Any, values: FloatArray, level: float) -> FloatArray:
    r"""Interval of a binary average at scores, (n, 2), from the intervals of its members and their differences.

    .. math:: \bar q \pm \sum_j w_j \sqrt{h_j^2 + z^2 (q_j - \bar q)^2}

    with the half-width h of each member's interval, and z that of a standard normal interval. Members without an
    interval of this level are replaced by ``flexible``.
    """
    members, weights = (of.calibrators_, of.weights_) if isinstance(of, Mixture) else ([of], np.ones(1))
    middle, z = of.predict_proba(values)[:, 1], float(ndtri(0.5 + check_level(level) / 2))
    reach = np.zeros((len(middle), 2))
    for one, weight in zip(members, weights, strict=True):
        held = one if isinstance(one, (LaplaceMap, IsotonicCalibrator)) else flexible
        q = held.predict_proba(values)[:, 1]
        reach += weight * np.hypot(held.predict_interval(values, level) - q[:, None], z * (q - middle)[:, None])
    return np.asarray(np.clip(middle[:, None] + [-1, 1] * reach, 0.0, 1.0))


@dataclass(eq=False, repr=False)
class Composed(Calibrator):
    r"""Calibrators in sequence: each is fitted to the output of the previous one on the same rows.

    Parameters
    ----------
    calibrators : sequence of Calibrator
        The calibrators in order; binary ones for two classes only. ``[EnsembleTemperatureScaling(),
        OneVsRest(IsotonicCalibrator(), shared=True)]`` is the composition of Mix-n-Match: few parameters first, then a
        nonparametric map for the remaining error. ``[TemperatureScaling(), OneVsRest(IsotonicCalibrator())]``
        is its IROvA-TS. Their ``input`` and ``labels`` are replaced by those given here; only the first gets the
        scores.

    Attributes
    ----------
    calibrators_ : list of M fitted calibrators
        The calibrators, fitted.

    See Also
    --------
    calibrant.calibrators.Mixture : Averages calibrators.

    Notes
    -----
    All are fitted to the same rows, as published, so overfitting by the first is hidden from the next. Cost: the sum of
    all fits.

    References
    ----------
    Zhang, Kailkhura & Han (2020), *Mix-n-Match: ensemble and compositional methods for uncertainty calibration*.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import Composed, IsotonicCalibrator, OneVsRest, TemperatureScaling
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 1000)
    >>> y = (rng.random((1000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> both = Composed([TemperatureScaling(), OneVsRest(IsotonicCalibrator(), shared=True)]).fit(p, y)
    >>> bool((both.predict(p) == p.argmax(axis=1)).all())
    True
    """

    calibrators: Sequence[str | Calibrator] = field(metadata=checked_by(check_calibrators))

    _state: ClassVar[Mapping[str, Field]] = {"calibrators_": Several(Fitted())}

    def _fit(self, sample: CalibrationSample) -> None:
        self.calibrators_ = []
        for one in self.calibrators:
            fitted = fitted_to(one, sample)
            self.calibrators_.append(fitted)
            scores = Scores(_to_45_bits(fitted._probabilities_of(sample.scores)), "probability")
            sample = replace(sample, scores=scores, found={})

    def _check_fitted(self) -> None:
        given = self.calibrators
        if not isinstance(given, (list, tuple)) or len(self.calibrators_) != len(given):
            raise ValueError(
                f"calibrators_ must have one entry per calibrator; got {len(self.calibrators_)} for {given!r}"
            )

    def _probabilities(self, scores: Scores) -> FloatArray:
        values = self.calibrators_[0].predict_proba(scores.values)
        for one in self.calibrators_[1:]:
            values = one.predict_proba(_to_45_bits(values))
        return np.asarray(values)


def _to_45_bits(p: FloatArray) -> FloatArray:
    """Probabilities as scores of a map: rounded, so that steps do not separate those that differ by rounding errors."""
    large = 257 * p
    return np.asarray(large - (large - p))


@dataclass(eq=False, repr=False)
class LabelSmoothing(Calibrator):
    r"""Fit a calibrator to smoothed labels: :math:`1 - \varepsilon` for the observed class, ε shared by all classes.

    Parameters
    ----------
    calibrator : Calibrator
        The calibrator, whose ``input`` and ``labels`` are replaced by those given here.
    amount : float in [0, 1), default 0.05
        The share ε; the observed class keeps ``1 - ε + ε / K``.

    Attributes
    ----------
    calibrator_ : fitted calibrator
        The calibrator, fitted.

    See Also
    --------
    calibrant.calibrators.PlattScaling : Smooths labels by its own rule.

    Notes
    -----
    Calibrated probabilities stay away from 0 and 1, and fits exist for separated classes, at the expense of calibration
    near 0 and 1. Each row is fitted K times, weighted by its labels. Cost: K times that of the calibrator.

    References
    ----------
    Szegedy et al. (2016), *Rethinking the inception architecture*; Platt (1999) for the binary idea.

    Examples
    --------
    >>> from calibrant.calibrators import LabelSmoothing, PlattScaling
    >>> smooth = LabelSmoothing(PlattScaling(smoothing=False), 0.1).fit([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    >>> bool(smooth.predict_proba([0.9])[0, 1] < 0.99)
    True
    """

    calibrator: str | Calibrator = field(metadata=checked_by(check_calibrator))
    amount: float = parameter(0.05, partial(check_number, least=0, below=1))

    _state: ClassVar[Mapping[str, Field]] = {"calibrator_": Fitted()}

    def _fit(self, sample: CalibrationSample) -> None:
        k, n = sample.n_classes, sample.scores.n_rows
        share = np.full((n, k), self.amount / k)
        share[np.arange(n), sample.codes] += 1 - self.amount
        rows, codes = np.repeat(np.arange(n), k), np.tile(np.arange(k), n)
        weights = (share * sample.weights[:, None]).ravel()
        smoothed = replace(sample.part(rows), codes=codes, weights=weights)
        self.calibrator_ = fitted_to(self.calibrator, smoothed.part(weights > 0))

    def _probabilities(self, scores: Scores) -> FloatArray:
        return self.calibrator_._probabilities_of(scores)
