"""Distributions of `calibrant benchmark` as a track: sets from the pool that their truth is computed from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from calibrant.benchmark.config import Config, Distribution
from calibrant.benchmark.pool import NOTIONS, Pool, draw_pool, truth_of
from calibrant.benchmark.tracks import ExactTruth
from calibrant.data.problem import Problem

_CONFIG = Config(pool=500_000, rows=500_000, sets=10)


@cache
def _pool(distribution: Distribution) -> Pool:
    return draw_pool(_CONFIG, distribution)


@dataclass(frozen=True)
class MixtureDistribution:
    """One score distribution; sets are rows drawn from the pool."""

    distribution: Distribution
    track: str = "mixtures"
    notions: tuple[str, ...] = NOTIONS

    @property
    def name(self) -> str:
        """The distribution's."""
        return self.distribution.name

    def truth(self, notion: str, norm: float) -> ExactTruth:
        """The truth without the noise of bins."""
        return ExactTruth(truth_of(_pool(self.distribution).truth, notion, norm).truth)

    def sample(self, n_sets: int, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities (sets, n, C) and labels (sets, n)."""
        pool = _pool(self.distribution)
        rows = rng.integers(len(pool.labels), size=(n_sets, n))
        return pool.scores[rows], pool.labels[rows]

    def problems(self, scores: np.ndarray, labels: np.ndarray, notion: str) -> tuple[Problem, ...]:
        """One problem a class, or that of the predicted class."""
        n_classes = scores.shape[-1]
        if notion == "classwise":
            return tuple(Problem.samples(scores[..., k], labels == k) for k in range(n_classes))
        right = scores.argmax(axis=-1) == labels
        return (Problem.samples(scores.max(axis=-1), right, domain=(1 / n_classes, 1.0)),)


def mixtures(most: int) -> tuple[MixtureDistribution, ...]:
    """The first distributions in the benchmark's random order of work."""
    return tuple(map(MixtureDistribution, _CONFIG.shuffled[:most]))
