"""Several calibrators at once: their average, with weights that are given or that cross-validation earned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from ..data.types import FloatArray
from .base import Calibrator, not_below, rule_of
from .crossval import FLOOR, SCORES
from .fields import PROBABILITIES, Field, Fitted, Numbers, Several
from .inputs import Sample, Scores
from .prior import share_of

#: Weights are proportional to ``exp(-n loss / 4)``: the likelihood of held-out rows, to the power of a quarter.
_POWER = 0.25
#: Calibrators of smaller weight are left out.
_LEAST = 0.01
#: How many squared standard errors, relative to the squared gain, are taken from what is not left alone: of the score
#: that is the goal, and of the other, which is not to suffer.
_OWN, _OTHER = 1.0, 0.5


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

    state: ClassVar[Mapping[str, Field]] = {
        "calibrators_": Several(Fitted()),
        "weights_": Numbers(("M",), *PROBABILITIES, total=1),
    }

    def __init__(
        self,
        calibrators: Sequence[Calibrator],
        weights: Sequence[float] | None = None,
        *,
        input: str = "probability",
        labels: Any = None,
    ) -> None:
        self.calibrators = calibrators
        self.weights = weights
        self.input = input
        self.labels = labels

    @classmethod
    def of_fitted(cls, fitted: Sequence[Calibrator], weights: Sequence[float] | None = None) -> Mixture:
        """The average of calibrators that were fitted already, to scores of one kind and the same classes."""
        first = fitted[0]
        out = cls([clone(one) for one in fitted], weights, input=first.input, labels=first.labels)
        out.classes_, out.n_features_in_, out.order_ = first.classes_, first.n_features_in_, first.order_
        out.calibrators_, out.weights_ = list(fitted), out._shares()
        return out

    def _check(self, sample: Sample) -> None:
        given = self.calibrators
        if not isinstance(given, (list, tuple)) or not given or not all(isinstance(c, Calibrator) for c in given):
            raise TypeError(f"calibrators must be a list of one or more calibrators; got {given!r}")
        if self.weights is None:
            return
        if not isinstance(self.weights, (list, tuple, np.ndarray)) or len(self.weights) != len(given):
            raise ValueError(f"weights must be {len(given)} numbers, one a calibrator; got {self.weights!r}")
        if sum(not_below("weights", w, 0.0) for w in self.weights) <= 0:
            raise ValueError("weights must not all be 0")

    def _fit(self, sample: Sample) -> None:
        told = {"input": self.input, "labels": list(sample.classes)}
        self.calibrators_ = [clone(one).set_params(**told).fit_sample(sample) for one in self.calibrators]
        self.weights_ = self._shares()

    def _shares(self) -> FloatArray:
        """Weights with sum 1."""
        given = np.ones(len(self.calibrators)) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        return np.asarray(given / given.sum())

    def _probabilities(self, scores: Scores) -> FloatArray:
        said = [(one, scores, dict[str, Any]()) for one in self.calibrators_]
        return rule_of(self.calibrators_).merged(said, self.weights_)


def earned_weights(
    held: Mapping[str, FloatArray], means: Mapping[str, float], sample: Sample, *, alone: str | None, goal: str
) -> dict[str, float]:
    r"""Weights of calibrators by the probabilities (n, K) that they gave for rows held out, and their mean losses.

    Those that change something share :math:`e^{-n\,\text{loss}/4}`; their average then gets the part

    .. math:: \min_{\text{scores}} \left(1 - c\, \frac{\text{se}^2}{\text{gain}^2}\right)_+

    of the whole, with its gain over leaving scores alone and the standard error of that, and c = 1 for the score that
    is the goal, ½ for the other: James and Stein's shrinkage. The rest is left alone. The prior's rows count among
    those held out, with labels as likely as the scores say: what is sure of itself must earn that.

    Cost O(n K) a calibrator.
    """
    changing = [name for name in held if name != alone]
    least = min(means[name] for name in changing)
    each = np.exp(-_POWER * sample.total * (np.array([means[name] for name in changing]) - least))
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


def _part(alone: FloatArray, mixed: FloatArray, sample: Sample, score: str, factor: float) -> float:
    """What the gain of a score grants, from 0 to 1."""
    gain = _each_loss(alone, score) - _each_loss(mixed, score)
    rows, share = sample.weights / sample.total, share_of("auto", sample)
    own = gain[np.arange(len(gain)), sample.codes]
    mean = (1 - share) * float(rows @ own) + share * float(rows @ (alone * gain).sum(axis=1))
    square = (1 - share) * float(rows @ own**2) + share * float(rows @ (alone * gain**2).sum(axis=1))
    variance = max(square - mean**2, 0.0) * float(rows @ rows) * (1 - share)
    return max(0.0, 1 - factor * variance / mean**2) if mean > 1e-100 else 0.0  # its square is not 0


def _each_loss(p: FloatArray, score: str) -> FloatArray:
    """The loss of each row by each label that might be its own, (n, K)."""
    if score == "log-loss":
        return np.asarray(-np.log(np.maximum(p, FLOOR)))
    return np.asarray(np.einsum("ij,ij->i", p, p)[:, None] - 2 * p + 1)


def of_weights(tried: Mapping[str, Calibrator], weights: Mapping[str, float], sample: Sample) -> Calibrator:
    """An unfitted mixture of candidates; of one alone, that one."""
    if len(weights) == 1:
        return tried[next(iter(weights))]
    parts = [tried[name] for name in weights]
    return Mixture(parts, list(weights.values()), input=sample.scores.kind, labels=list(sample.classes))
