"""Calibrators made of others: one class against the rest, smoothed labels, and one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.special import softmax
from sklearn.base import clone

from ..data.checks import check_bool, check_choice, check_number
from ..data.types import FloatArray, IntArray
from .base import (
    EPS,
    BinaryCalibrator,
    Calibrator,
    Said,
    check_calibrator,
    check_calibrators,
    checked_by,
    parameter,
    rule_of,
)
from .inputs import CalibrationSample, Scores
from .saved_state import Field, Fitted, Several

#: By what equal values of a shared map differ, times the probability.
_TELLS_APART = 1e-9


@dataclass(eq=False, repr=False)
class OneVsRest(Calibrator):
    r"""A binary calibrator for each class against the others.

    Parameters
    ----------
    calibrator : binary calibrator
        Fitted once a class, to the probability of that class, to its log odds against the others, or to its margin.
    normalisation : {"sum", "none"}, default "sum"
        How the K calibrated numbers become probabilities. ``"sum"``: divided by their sum, as scikit-learn does (all 0:
        as the scores were, equal for margins). ``"none"``: left as they are, each calibrated by itself; rows do not sum
        to 1. (A softmax of their log odds is no choice: it sharpens numbers that are right.)
    shared : bool, default False
        One calibrator for all classes, fitted to the K n scores of classes with whether they were observed: K times the
        rows for its map, which is then the same for every class. A map that rises keeps the order of each row's classes
        (scores that it makes equal still differ by a billionth of their probability), and so the accuracy. With
        :class:`IsotonicCalibrator` it is the multiclass isotonic regression IRM, with ``HistogramBinning(strategy=
        "i-max")`` I-Max with shared bins.
    input, labels
        As :class:`PlattScaling`; they replace those of ``calibrator``.

    Attributes
    ----------
    calibrators_ : list of K fitted calibrators
        One for two classes, and one if shared.

    Notes
    -----
    Normalising takes back a part of each class's calibration, and can change which class is first. Cost K times that of
    the binary calibrator.

    References
    ----------
    Zadrozny & Elkan (2002), *Transforming classifier scores into accurate multiclass probability estimates*; for shared
    maps Zhang, Kailkhura & Han (2020), *Mix-n-Match*, and Patel et al. (2021).

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import IsotonicCalibrator, OneVsRest
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 1000)
    >>> y = (rng.random((1000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> OneVsRest(IsotonicCalibrator()).fit(p, y).predict_proba(p).sum(axis=1).round(6).max()
    np.float64(1.0)
    """

    calibrator: BinaryCalibrator = field(metadata=checked_by(partial(check_calibrator, binary=True)))
    normalisation: str = parameter("sum", partial(check_choice, allowed=("sum", "none")))
    _: KW_ONLY
    shared: bool = parameter(False, check_bool)

    _state: ClassVar[Mapping[str, Field]] = {"calibrators_": Several(Fitted(binary=True))}

    def _fit(self, sample: CalibrationSample) -> None:
        k = sample.n_classes
        each = range(k) if k > 2 or self.shared else [1]
        self._fit_columns(
            [self._column(sample.scores, c) for c in each],
            [(sample.codes == c).astype(np.int64) for c in each],
            [sample.weights] * len(each),
        )

    def _fit_columns(
        self, columns: Sequence[FloatArray], outcomes: Sequence[IntArray], weights: Sequence[FloatArray]
    ) -> None:
        """Fit to scores of each class, whether it came, and weights, whose rows need not be those of other classes."""
        if self.shared:
            columns, outcomes = [np.concatenate(columns)], [np.concatenate(outcomes)]
            weights = [np.concatenate(weights)]
        one = clone(self.calibrator).set_params(input=self.input, labels=[0, 1])
        self.calibrators_ = [
            copy(one)._fit_sample(CalibrationSample(Scores(s, self.input), o, w, (0, 1)))
            for s, o, w in zip(columns, outcomes, weights, strict=True)
        ]

    def _check_fitted(self) -> None:
        k = len(self.classes_)
        if len(self.calibrators_) != (1 if k == 2 or self.shared else k):
            raise ValueError(
                f"calibrators_ must be one a class, one for two or if shared; got {len(self.calibrators_)} for {k}"
            )

    def _column(self, scores: Scores, c: int) -> FloatArray:
        """Score of one class against the others."""
        v = scores.values
        if v.ndim == 1 or v.shape[1] == 2:
            s = v if v.ndim == 1 else scores.of_positive()
            return s if c == 1 else np.asarray(1 - s if scores.kind == "probability" else -s)
        if scores.kind != "logit":
            return np.asarray(v[:, c])
        z = v.astype(np.float64)
        others = np.delete(z, c, axis=1)
        top = others.max(axis=1)
        return np.asarray(z[:, c] - top - np.log(np.exp(others - top[:, None]).sum(axis=1)))

    def _said(self, one: Calibrator, scores: Scores, c: int) -> FloatArray:
        """What the calibrator of a class makes of its scores."""
        return one._probabilities_of(self._of_class(scores, c))

    def _of_class(self, scores: Scores, c: int) -> Scores:
        return Scores(self._column(scores, c), scores.kind)

    def _probabilities(self, scores: Scores) -> FloatArray:
        k = len(self.classes_)
        if k == 2 and not self.shared:
            return np.asarray(self._said(self.calibrators_[0], scores, 1))
        maps = self.calibrators_ * (k // len(self.calibrators_))
        each = np.column_stack([self._said(one, scores, c)[:, 1] for c, one in enumerate(maps)])
        return self._together(each, scores)

    @property
    def _merges(self) -> bool:
        """Class by class, where the binary ones have a rule."""
        return all(one._merges for one in self.calibrators_)

    @classmethod
    def _merged(cls, said: Said, weights: FloatArray) -> FloatArray:
        """Probabilities (n, K): each class by the rule of the binary calibrators, then divided by the sum."""
        first, scores, _ = said[0]
        k = len(first.classes_)
        alone = k == 2 and not first.shared
        columns = []
        for c in [1] if alone else range(k):
            each = [one.calibrators_[c % len(one.calibrators_)] for one, _, _ in said]
            parts: Said = [(inner, one._of_class(s, c), {}) for inner, (one, s, _) in zip(each, said, strict=True)]
            columns.append(rule_of(each)._merged(parts, weights)[:, 1])
        if alone:
            return np.column_stack([1 - columns[0], columns[0]])
        return np.asarray(first._together(np.column_stack(columns), scores))

    def _together(self, each: FloatArray, scores: Scores) -> FloatArray:
        """Probabilities of what each class's calibrator says."""
        if self.shared:
            each = each + _TELLS_APART * softmax(scores.logs(EPS).astype(np.float64), axis=1)
        if self.normalisation == "none":
            return np.asarray(np.minimum(each, 1.0))
        total = each.sum(axis=1, keepdims=True)
        nothing = total[:, 0] <= 0
        if nothing.any():
            each, total = each.copy(), total.copy()
            each[nothing] = scores.values[nothing] if scores.kind == "probability" else 1.0
            total[nothing] = each[nothing].sum(axis=1, keepdims=True)
        return np.asarray(each / total)


@dataclass(eq=False, repr=False)
class LabelSmoothing(Calibrator):
    r"""Any calibrator, fitted to smoothed labels: :math:`(1 - \varepsilon)` on the observed class, ε shared by all.

    Parameters
    ----------
    calibrator : Calibrator
    amount : float in [0, 1), default 0.05
        ε; the observed class keeps ``1 - ε + ε / K``.
    input, labels
        As :class:`TemperatureScaling`; they replace those of ``calibrator``.

    Attributes
    ----------
    calibrator_ : fitted calibrator

    Notes
    -----
    Calibrated probabilities stay away from 0 and 1, and fits exist where classes are separated; calibration at the ends
    is given up for it. Each row is fitted K times, with the weights of its labels: cost K times that of the calibrator.

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

    calibrator: Calibrator = field(metadata=checked_by(check_calibrator))
    amount: float = parameter(0.05, partial(check_number, least=0, below=1))

    _state: ClassVar[Mapping[str, Field]] = {"calibrator_": Fitted()}

    def _fit(self, sample: CalibrationSample) -> None:
        k, n = sample.n_classes, sample.scores.n_rows
        share = np.full((n, k), self.amount / k)
        share[np.arange(n), sample.codes] += 1 - self.amount
        rows, labels = np.repeat(np.arange(n), k), np.tile(np.arange(k), n)
        weights = (share * sample.weights[:, None]).ravel()
        names = np.asarray(sample.classes)
        one = clone(self.calibrator).set_params(input=self.input, labels=list(sample.classes))
        self.calibrator_ = one.fit(sample.scores.values[rows], names[labels], sample_weight=weights)

    def _probabilities(self, scores: Scores) -> FloatArray:
        return np.asarray(self.calibrator_.predict_proba(scores.values))


@dataclass(eq=False, repr=False)
class Composed(Calibrator):
    r"""Calibrators one after the other: each is fitted to what the one before makes of the same rows.

    Parameters
    ----------
    calibrators : sequence of Calibrator
        In their order; binary ones for two classes only. ``[EnsembleTemperatureScaling(),
        OneVsRest(IsotonicCalibrator(), shared=True)]`` is the composition of Mix-n-Match: few parameters first, then a
        map without a formula that has little left to repair. ``[TemperatureScaling(),
        OneVsRest(IsotonicCalibrator())]`` is its IROvA-TS.
    input, labels
        As :class:`TemperatureScaling`; they replace those of the calibrators, of which the first alone sees scores.

    Attributes
    ----------
    calibrators_ : list of M fitted calibrators

    Notes
    -----
    All are fitted to the same rows, as published: a first one that overfits hides it from the next. Cost the sum of
    theirs.

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

    calibrators: Sequence[Calibrator] = field(metadata=checked_by(check_calibrators))

    _state: ClassVar[Mapping[str, Field]] = {"calibrators_": Several(Fitted())}

    def _fit(self, sample: CalibrationSample) -> None:
        labels = np.asarray(sample.classes)[sample.codes]
        values, kind, self.calibrators_ = sample.scores.values, self.input, []
        for one in self.calibrators:
            fitted = clone(one).set_params(input=kind, labels=list(sample.classes))
            self.calibrators_.append(fitted.fit(values, labels, sample_weight=sample.weights))
            values, kind = fitted.predict_proba(values), "probability"

    def _check_fitted(self) -> None:
        given = self.calibrators
        if not isinstance(given, (list, tuple)) or len(self.calibrators_) != len(given):
            raise ValueError(
                f"calibrators_ must be one for each of calibrators; got {len(self.calibrators_)} for {given!r}"
            )

    def _probabilities(self, scores: Scores) -> FloatArray:
        values = scores.values
        for one in self.calibrators_:
            values = one.predict_proba(values)
        return np.asarray(values)
