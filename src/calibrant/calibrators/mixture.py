"""Several calibrators at once: their average, with weights that are given or that cross-validation earned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from ..data.types import FloatArray
from .base import Calibrator, check_calibrators, check_not_negative, checked_by, rule_of
from .crossval import FLOOR, SCORES, HeldOutEvidence
from .inputs import CalibrationSample, Scores
from .prior import share_of
from .saved_state import PROBABILITIES, Field, Fitted, Numbers, Several

#: Weights are proportional to ``exp(-n loss / 10)``, with ``log-loss + 2 Brier`` as the loss: either score has a say.
_POWER, _OF_BRIER = 0.1, 2.0
#: Calibrators of smaller weight are left out.
_LEAST = 0.01
#: Log weights before any row, of two classes: what two parameters did for real models of another half.
_LIKELIER = {"ensemble-temperature": 2.0}
#: How many squared standard errors, relative to the squared gain, are taken from what is not left alone: of the score
#: that is the goal, and of the other, which is not to suffer; and so many times more where one row makes the gain.
_OWN, _OTHER, _OF_ONE_ROW = 0.5, 0.05, 3.0
#: A gain that is none: the fourth power of more is a number.
_NOTHING = 1e-60


@dataclass(eq=False, repr=False)
class Mixture(Calibrator):
    r"""Weighted average of calibrators: :math:`\sum_j w_j\, q_j`, of the probabilities that each of them gives.

    Its log-loss and its Brier score are at most the same averages of theirs, since both scores are convex.

    Parameters
    ----------
    calibrators : sequence of Calibrator
        All are fitted to the same rows; binary ones for two classes only.
    weights : sequence of float, optional
        Not negative, relative to each other; default equal ones.
    input, labels
        As :class:`TemperatureScaling`; they replace those of the calibrators.

    Attributes
    ----------
    calibrators_ : list of M fitted calibrators
    weights_ : ndarray of shape (M,)
        With sum 1.

    Notes
    -----
    :class:`AutoCalibrator` finds weights. An average of calibrated forecasts is a little under-confident where they
    differ much. Several :class:`VennAbers` alone are averaged by their own rule. Cost the sum of theirs.

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

    calibrators: Sequence[Calibrator] = field(metadata=checked_by(check_calibrators))
    weights: Sequence[float] | None = None

    _state: ClassVar[Mapping[str, Field]] = {
        "calibrators_": Several(Fitted()),
        "weights_": Numbers(("M",), *PROBABILITIES, total=1),
    }

    @classmethod
    def _of_fitted(cls, fitted: Sequence[Calibrator], weights: Sequence[float] | None = None) -> Mixture:
        """The average of calibrators that were fitted already, to scores of one kind and the same classes."""
        first = fitted[0]
        out = cls([clone(one) for one in fitted], weights, input=first.input, labels=first.labels)
        out.classes_, out.n_features_in_, out.order_ = first.classes_, first.n_features_in_, first.order_
        out.calibrators_, out.weights_ = list(fitted), out._shares()
        return out

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.weights is None:
            return
        number = len(self.calibrators)
        if not isinstance(self.weights, (list, tuple, np.ndarray)) or len(self.weights) != number:
            raise ValueError(f"weights must be {number} numbers, one a calibrator; got {self.weights!r}")
        if sum(check_not_negative("weights", w) for w in self.weights) <= 0:
            raise ValueError("weights must not all be 0")

    def _fit(self, sample: CalibrationSample) -> None:
        told = {"input": self.input, "labels": list(sample.classes)}
        self.calibrators_ = [clone(one).set_params(**told)._fit_sample(sample) for one in self.calibrators]
        self.weights_ = self._shares()

    def _shares(self) -> FloatArray:
        """Weights with sum 1."""
        given = np.ones(len(self.calibrators)) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        return np.asarray(given / given.sum())

    def _probabilities(self, scores: Scores) -> FloatArray:
        said = [(one, scores, dict[str, Any]()) for one in self.calibrators_]
        return rule_of(self.calibrators_)._merged(said, self.weights_)


def earned_weights(
    held: Mapping[str, FloatArray],
    found: Mapping[str, HeldOutEvidence],
    sample: CalibrationSample,
    *,
    alone: str | None,
    goal: str,
) -> dict[str, float]:
    r"""Weights of calibrators by the probabilities (n, K) that they gave for rows held out, and what these are worth.

    Those that change something share :math:`e^{-n (\text{log-loss} + 2\,\text{Brier}) / 10}`, ensemble temperature of
    two classes times :math:`e^2`; their average then gets the part

    .. math:: \min_{\text{scores}} \left(1 - c \left(1 + \frac{3}{m}\right) \frac{\text{se}^2}{\text{gain}^2}\right)_+,
              \qquad m = \frac{(\sum_i g_i^2)^2}{\sum_i g_i^4}

    of the whole, with its gain over leaving scores alone, the mean of the rows' :math:`g_i`, and the standard error of
    that; m is the number of rows that the gain rests on, and c = ½ for the score that is the goal, 1/20 for the other:
    James and Stein's shrinkage. The rest is left alone. The prior's rows count among those held out, with labels as
    likely as the scores say: what is sure of itself must earn that.

    Cost O(n K) a calibrator.
    """
    changing = [name for name in held if name != alone]
    logs = np.array([_log_weight(name, found[name], sample) for name in changing])
    each = np.exp(logs - logs.max())
    each = np.where(each < _LEAST * each.sum(), 0.0, each)
    each /= each.sum()
    weights = {name: float(w) for name, w in zip(changing, each, strict=True) if w > 0}
    if alone is None:
        return weights
    mixed = np.zeros_like(held[alone])
    for name, w in weights.items():
        mixed += w * held[name]
    part = min(_part(held[alone], mixed, sample, score, _OWN if score == goal else _OTHER) for score in SCORES)
    return ({alone: 1 - part} if part < 1 else {}) | (
        {name: part * w for name, w in weights.items()} if part > 0 else {}
    )


def _log_weight(name: str, found: HeldOutEvidence, sample: CalibrationSample) -> float:
    """What a calibrator's weight is before it is shared."""
    before = _LIKELIER.get(name, 0.0) if sample.n_classes == 2 else 0.0
    return before - _POWER * float(sample.weights @ (found.losses["log-loss"] + _OF_BRIER * found.losses["brier"]))


def _part(alone: FloatArray, mixed: FloatArray, sample: CalibrationSample, score: str, factor: float) -> float:
    """What the gain of a score grants, from 0 to 1."""
    gain = _each_loss(alone, score) - _each_loss(mixed, score)
    rows, share = sample.weights / sample.total, share_of("auto", sample)
    own = gain[np.arange(len(gain)), sample.codes]

    def moment(power: int) -> float:
        return (1 - share) * float(rows @ own**power) + share * float(rows @ (alone * gain**power).sum(axis=1))

    mean, square, fourth = (moment(power) for power in (1, 2, 4))
    if not mean > _NOTHING:
        return 0.0
    of_one = (1 - share) * float(rows @ rows)  # one row's part of all, the prior's among them
    variance = max(square - mean**2, 0.0) * of_one
    return max(0.0, 1 - factor * (1 + _OF_ONE_ROW * of_one * fourth / square**2) * variance / mean**2)


def _each_loss(p: FloatArray, score: str) -> FloatArray:
    """The loss of each row by each label that might be its own, (n, K)."""
    if score == "log-loss":
        return np.asarray(-np.log(np.maximum(p, FLOOR)))
    return np.asarray(np.einsum("ij,ij->i", p, p)[:, None] - 2 * p + 1)


def of_weights(tried: Mapping[str, Calibrator], weights: Mapping[str, float], sample: CalibrationSample) -> Calibrator:
    """An unfitted mixture of candidates; of one alone, that one."""
    if len(weights) == 1:
        return tried[next(iter(weights))]
    parts = [tried[name] for name in weights]
    return Mixture(parts, list(weights.values()), input=sample.scores.kind, labels=list(sample.classes))
