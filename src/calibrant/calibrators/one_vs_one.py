"""Many classes from two at a time: a binary calibrator for each pair, and how their answers are coupled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np
from sklearn.base import clone

from ..data.checks import check_choice
from ..data.types import FloatArray, IntArray
from .base import EPS, BinaryCalibrator, Calibrator, check_calibrator, checked_by, parameter
from .inputs import CalibrationSample, Scores
from .saved_state import Field, Fitted, Numbers, Several
from .temperature import softmax

#: How near to 0 and 1 probabilities of pairs may be: beyond, systems of equations are singular.
_LEAST = 1e-7
#: Numbers worked on at a time.
_TILE = 1 << 20
_STEPS, _SMALL, _LONGEST = 100, 1e-12, 2.0


@dataclass(eq=False, repr=False)
class OneVsOne(Calibrator):
    r"""A binary calibrator for each pair of classes, on the rows of the two, coupled to probabilities of all.

    Parameters
    ----------
    calibrator : binary calibrator
        Fitted to each pair's share :math:`p_i / (p_i + p_j)`, or the difference of two logits or margins.
    coupling : {"quadratic", "likelihood"}, default "quadratic"
        How the pairs' answers :math:`r_{ij}` (of i against j) become probabilities. ``"quadratic"``: the least
        :math:`\sum_{i \ne j} (r_{ji} p_i - r_{ij} p_j)^2`, a system of equations (Wu, Lin & Weng's second method).
        ``"likelihood"``: the least Kullback-Leibler divergence of :math:`p_i / (p_i + p_j)` from :math:`r_{ij}`,
        weighted by the rows of each pair (Hastie & Tibshirani).
    input, labels
        As :class:`TemperatureScaling`; they replace those of ``calibrator``.

    Attributes
    ----------
    calibrators_ : list of M fitted calibrators
        Of the M = K (K - 1) / 2 pairs, in the order (0, 1), (0, 2), …, (1, 2), …
    weights_ : ndarray of shape (M,)
        Weight of the rows of each pair.

    Notes
    -----
    Other than :class:`OneVsRest` it keeps apart what a class is mistaken for, and needs no division by a sum; each map
    has the rows of two classes only (two without rows: the rows of all pairs). A pair answers for rows of third classes
    too, of which it saw none. Answers count as 1e-7 at least. Where they agree with some probabilities both couplings
    give these exactly. Cost that of K - 1 binary calibrators for all rows, and O(n K³) for the coupling.

    References
    ----------
    Hastie & Tibshirani (1998), *Classification by pairwise coupling*; Wu, Lin & Weng (2004), *Probability estimates for
    multi-class classification by pairwise coupling*.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import OneVsOne, PlattScaling
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 1000)
    >>> y = (rng.random((1000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> bool(np.abs(OneVsOne(PlattScaling()).fit(p, y).predict_proba(p) - p).mean() < 0.03)
    True
    """

    calibrator: BinaryCalibrator = field(metadata=checked_by(partial(check_calibrator, binary=True)))
    coupling: str = parameter("quadratic", partial(check_choice, allowed=("quadratic", "likelihood")))

    _state: ClassVar[Mapping[str, Field]] = {
        "calibrators_": Several(Fitted(binary=True)),
        "weights_": Numbers(("M",), 0),
    }

    def _fit(self, sample: CalibrationSample) -> None:
        parts = []
        for i, j in _pairs(sample.n_classes):
            rows = (sample.codes == i) | (sample.codes == j)
            outcomes = (sample.codes[rows] == i).astype(np.int64)
            parts.append((_share(sample.scores, i, j)[rows], outcomes, sample.weights[rows]))
        self.weights_ = np.array([float(mass.sum()) for _, _, mass in parts])
        # Where neither of two classes was seen, what all pairs have in common.
        every = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
        self.calibrators_ = [self._map_of(*(part if len(part[0]) else every)) for part in parts]

    def _map_of(self, scores: FloatArray, outcomes: IntArray, weights: FloatArray) -> BinaryCalibrator:
        one: BinaryCalibrator = clone(self.calibrator).set_params(input=self.input, labels=[0, 1])
        return one.fit(scores, outcomes, sample_weight=weights)

    def _check_fitted(self) -> None:
        k = len(self.classes_)
        if len(self.calibrators_) != k * (k - 1) // 2:
            raise ValueError(f"calibrators_ must be one a pair of {k} classes; got {len(self.calibrators_)}")

    def _probabilities(self, scores: Scores) -> FloatArray:
        k = len(self.classes_)
        answers = np.full((scores.n_rows, k, k), 0.5)
        weights = np.zeros((k, k))
        for (i, j), one, weight in zip(_pairs(k), self.calibrators_, self.weights_, strict=True):
            r = np.clip(one.predict_proba(_share(scores, i, j))[:, 1], _LEAST, 1 - _LEAST)
            answers[:, i, j], answers[:, j, i] = r, 1 - r
            weights[i, j] = weights[j, i] = weight
        step = max(1, _TILE // k**2)
        out = np.empty((scores.n_rows, k))
        for a in range(0, scores.n_rows, step):
            out[a : a + step] = coupled(answers[a : a + step])
            if self.coupling == "likelihood":
                out[a : a + step] = likeliest(answers[a : a + step], weights / weights.max(), out[a : a + step])
        return out


def coupled(answers: FloatArray) -> FloatArray:
    r"""Probabilities (n, K) of the least :math:`\sum (r_{ji} p_i - r_{ij} p_j)^2`; answers r (n, K, K) above 0."""
    k = answers.shape[1]
    turned = answers.swapaxes(1, 2)
    system = np.zeros((len(answers), k + 1, k + 1))
    system[:, :k, :k] = -answers * turned
    each = np.arange(k)
    system[:, each, each] = (turned**2).sum(axis=2) - 0.25  # of a class with itself there is none
    system[:, :k, k] = system[:, k, :k] = 1
    wanted = np.zeros((k + 1, 1))
    wanted[k] = 1
    p = np.maximum(np.linalg.solve(system, np.broadcast_to(wanted, (len(answers), k + 1, 1)))[:, :k, 0], 0)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def likeliest(answers: FloatArray, weights: FloatArray, start: FloatArray) -> FloatArray:
    r"""Probabilities (n, K) of the largest :math:`\sum_{i<j} n_{ij} (r_{ij} \log μ_{ij} + r_{ji} \log μ_{ji})`.

    By Newton's method for ``log p``, with :math:`μ_{ij} = p_i / (p_i + p_j)`; steps are no longer than 2.
    """
    k = answers.shape[1]
    off = 1 - np.eye(k)
    u = np.log(np.maximum(start, EPS))
    for _ in range(_STEPS):
        mu = 1 / (1 + np.exp(np.clip(u[:, None, :] - u[:, :, None], -700, 700)))
        gradient = (weights * off * (answers - mu)).sum(axis=2)
        curved = weights * off * mu * (1 - mu)
        hessian = -curved
        each = np.arange(k)
        hessian[:, each, each] = curved.sum(axis=2)
        # A common shift changes nothing: it is held at 0.
        hessian += hessian[:, each, each].max(axis=1)[:, None, None] / k + _SMALL * np.eye(k)
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        step *= np.minimum(1, _LONGEST / np.maximum(np.abs(step).max(axis=1, keepdims=True), _SMALL))
        u = u + step
        if np.abs(step).max(initial=0.0) < 1e-9:
            break
    return softmax(u)


def _pairs(k: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(k) for j in range(i + 1, k)]


def _share(scores: Scores, i: int, j: int) -> FloatArray:
    """Score of class i against class j: a probability between the two, or a difference."""
    v = scores.values if scores.values.ndim == 2 else _both(scores)
    if scores.kind != "probability":
        return np.asarray(v[:, i].astype(np.float64) - v[:, j])
    total = v[:, i] + v[:, j]
    return np.asarray(np.divide(v[:, i], total, out=np.full(len(v), 0.5, v.dtype), where=total > 0))


def _both(scores: Scores) -> FloatArray:
    v = scores.values
    return np.column_stack([1 - v if scores.kind == "probability" else np.zeros_like(v), v])
