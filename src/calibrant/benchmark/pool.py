"""Stage 1: the hold-out pool of one score distribution, kept as evaluation rows and as sums that hold its truths.

A score is the model's probability rounded to float32: that rounding is part of the definition of the score, for the
truths as for the evaluation sets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.types import AnyArray, FloatArray, IntArray
from .config import Config, Distribution
from .mixtures import ClassMixture
from .models import train, training_set

#: Bins over [0, 1] behind a truth, as published.
TRUTH_BINS = 2000
#: Rows of a pool drawn at a time. The draws depend on it: it is part of the experiment.
CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class TruthBins:
    """Sums over the pool in 2000 bins, for the C classes and, last, the confidence.

    Attributes
    ----------
    sums : ndarray of shape (2, C + 1, 2000, 4)
        For either half of the pool (every other chunk): rows, ``Σ (η - s)``, ``Σ (η - s)²`` and ``Σ (o - s)`` of each
        bin, with η the posterior probability of the outcome, s the score and o the outcome.
    """

    sums: FloatArray

    @classmethod
    def empty(cls, n_classes: int) -> TruthBins:
        """Sums of no row."""
        return cls(np.zeros((2, n_classes + 1, TRUTH_BINS, 4)))

    def add(self, half: int, scores: FloatArray, posterior: FloatArray, labels: IntArray) -> None:
        """Add rows to one half: scores (n, C) float32, posterior (n, C), labels (n,)."""
        n, n_classes = scores.shape
        rows = np.arange(n)
        winner = scores.argmax(axis=1)
        for k in range(n_classes + 1):
            column: AnyArray = np.full(n, k) if k < n_classes else winner
            s = scores[rows, column].astype(np.float64)
            gap = posterior[rows, column] - s
            cell = np.minimum((s * TRUTH_BINS).astype(np.intp), TRUTH_BINS - 1)
            target = self.sums[half, k]
            target[:, 0] += np.bincount(cell, minlength=TRUTH_BINS)
            for i, values in enumerate((gap, gap * gap, (labels == column) - s), start=1):
                target[:, i] += np.bincount(cell, values, minlength=TRUTH_BINS)


@dataclass(frozen=True, eq=False)
class Pool:
    """What later stages need of a distribution's pool.

    Attributes
    ----------
    scores : ndarray of shape (rows, C)
        float32.
    labels : ndarray of shape (rows,)
        uint8.
    truth : TruthBins
    """

    scores: FloatArray
    labels: IntArray
    truth: TruthBins


def mixture_of(config: Config, distribution: Distribution) -> ClassMixture:
    """The distribution's mixture."""
    low = 0.0 if config.mode == "corrected" else -1.0
    return ClassMixture.draw(
        distribution.classes, distribution.dimensions, config.rng_of_mixture(distribution), low=low
    )


def draw_pool(config: Config, distribution: Distribution) -> Pool:
    """Train the model, draw the pool and predict it, in chunks."""
    mixture = mixture_of(config, distribution)
    X, y = training_set(mixture, config.train_size, config.rng_of_training(distribution))
    predict = train(distribution.model, X, y, config.model_seed(distribution))
    rng = config.rng_of_pool(distribution)
    truth = TruthBins.empty(mixture.n_classes)
    scores = np.empty((config.rows, mixture.n_classes), dtype=np.float32)
    labels = np.empty(config.rows, dtype=np.uint8)
    chunk = min(CHUNK, -(-config.pool // 2))  # both halves of the pool must hold rows
    for number, a in enumerate(range(0, config.pool, chunk)):
        X, y = mixture.sample(min(chunk, config.pool - a), rng)
        p = predict(X).astype(np.float32)
        truth.add(number % 2, p, mixture.posterior(X), y)
        kept = max(0, min(len(p), config.rows - a))
        scores[a : a + kept], labels[a : a + kept] = p[:kept], y[:kept]
    return Pool(scores, labels, truth)
