"""Calibrators made of others: one class against the rest, and smoothed labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from ..data.checks import check_choice
from ..data.types import FloatArray
from .base import BinaryCalibrator, Calibrator
from .fields import Field, Fitted, Several
from .inputs import Sample, Scores

NORMALISATIONS = ("sum", "none")


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
    input, labels
        As :class:`PlattScaling`; they replace those of ``calibrator``.

    Attributes
    ----------
    calibrators_ : list of K fitted calibrators
        One for two classes.

    Notes
    -----
    Normalising takes back a part of each class's calibration, and can change which class is first. Cost K times that of
    the binary calibrator.

    References
    ----------
    Zadrozny & Elkan (2002), *Transforming classifier scores into accurate multiclass probability estimates*.

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

    state: ClassVar[Mapping[str, Field]] = {"calibrators_": Several(Fitted(binary=True))}

    def __init__(
        self,
        calibrator: BinaryCalibrator,
        normalisation: str = "sum",
        *,
        input: str = "probability",
        labels: Any = None,
    ) -> None:
        self.calibrator = calibrator
        self.normalisation = normalisation
        self.input = input
        self.labels = labels

    def _check(self, sample: Sample) -> None:
        check_choice("normalisation", self.normalisation, NORMALISATIONS)
        if not isinstance(self.calibrator, BinaryCalibrator):
            raise TypeError(f"calibrator must be a binary calibrator such as PlattScaling(); got {self.calibrator!r}")

    def _fit(self, sample: Sample) -> None:
        k = sample.n_classes
        self.calibrators_ = []
        for c in [1] if k == 2 else range(k):
            one = clone(self.calibrator).set_params(input=self.input, labels=[0, 1])
            outcome = (sample.codes == c).astype(np.int64)
            self.calibrators_.append(one.fit(self._column(sample.scores, c), outcome, sample_weight=sample.weights))

    def _check_fitted(self) -> None:
        k = len(self.classes_)
        if len(self.calibrators_) != (1 if k == 2 else k):
            raise ValueError(f"calibrators_ must be one a class, one for two; got {len(self.calibrators_)} for {k}")

    def _column(self, scores: Scores, c: int) -> FloatArray:
        """Score of one class against the others."""
        v = scores.values
        if v.ndim == 1:
            return v
        if v.shape[1] == 2:
            return scores.of_positive()
        if scores.kind != "logit":
            return np.asarray(v[:, c])
        z = v.astype(np.float64)
        others = np.delete(z, c, axis=1)
        top = others.max(axis=1)
        return np.asarray(z[:, c] - top - np.log(np.exp(others - top[:, None]).sum(axis=1)))

    def _probabilities(self, scores: Scores) -> FloatArray:
        if len(self.classes_) == 2:
            return np.asarray(self.calibrators_[0].predict_proba(self._column(scores, 1)))
        each = np.column_stack(
            [one.predict_proba(self._column(scores, c))[:, 1] for c, one in enumerate(self.calibrators_)]
        )
        if self.normalisation == "none":
            return each
        total = each.sum(axis=1, keepdims=True)
        nothing = total[:, 0] <= 0
        if nothing.any():
            each, total = each.copy(), total.copy()
            each[nothing] = scores.values[nothing] if scores.kind == "probability" else 1.0
            total[nothing] = each[nothing].sum(axis=1, keepdims=True)
        return np.asarray(each / total)


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

    state: ClassVar[Mapping[str, Field]] = {"calibrator_": Fitted()}

    def __init__(
        self,
        calibrator: Calibrator,
        amount: float = 0.05,
        *,
        input: str = "probability",
        labels: Any = None,
    ) -> None:
        self.calibrator = calibrator
        self.amount = amount
        self.input = input
        self.labels = labels

    def _check(self, sample: Sample) -> None:
        if not isinstance(self.calibrator, Calibrator):
            raise TypeError(f"calibrator must be a calibrator such as TemperatureScaling(); got {self.calibrator!r}")
        if isinstance(self.amount, bool) or not isinstance(self.amount, (int, float)) or not 0 <= self.amount < 1:
            raise ValueError(f"amount must be a number >= 0 and < 1; got {self.amount!r}")

    def _fit(self, sample: Sample) -> None:
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
