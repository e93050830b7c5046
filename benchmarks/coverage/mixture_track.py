"""The distributions of a run of `calibrant benchmark` as a track: evaluation sets from its kept predictions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from calibrant.benchmark.config import Distribution
from calibrant.benchmark.experiment import Store
from calibrant.benchmark.pool import NOTIONS, Pool, truth_of
from calibrant.benchmark.tracks import ExactTruth
from calibrant.data.problem import Problem


@lru_cache(maxsize=1)
def _pool(folder: Path, distribution: Distribution) -> Pool:
    return Store.existing(folder).load_pool(distribution)


@dataclass(frozen=True)
class MixtureDistribution:
    """One score distribution; sets are rows drawn from the hold-out pool that its truth was computed from."""

    folder: Path
    distribution: Distribution
    track: str = "mixtures"
    notions: tuple[str, ...] = NOTIONS
    calibrated: bool = False

    @property
    def name(self) -> str:
        """The distribution's."""
        return self.distribution.name

    @property
    def pool(self) -> Pool:
        """Predictions and sums."""
        return _pool(self.folder, self.distribution)

    def truth(self, notion: str, norm: float) -> ExactTruth:
        """The truth without the noise of bins."""
        return ExactTruth(truth_of(self.pool.truth, notion, norm).truth)

    def sample(self, n_sets: int, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities (sets, n, C) and labels (sets, n)."""
        rows = rng.integers(len(self.pool.labels), size=(n_sets, n))
        return self.pool.scores[rows], self.pool.labels[rows]

    def problems(self, scores: np.ndarray, labels: np.ndarray, notion: str) -> tuple[Problem, ...]:
        """One problem a class, or that of the predicted class."""
        n_classes = scores.shape[-1]
        if notion == "classwise":
            return tuple(Problem.samples(scores[..., k], labels == k) for k in range(n_classes))
        right = scores.argmax(axis=-1) == labels
        return (Problem.samples(scores.max(axis=-1), right, domain=(1 / n_classes, 1.0)),)


def mixtures(folder: str, most: int) -> tuple[MixtureDistribution, ...]:
    """The first distributions of a run, in its random order of work, whose predictions were kept."""
    store = Store.existing(Path(folder))
    kept = [d for d in store.config.shuffled if store.predictions(d).exists()]
    return tuple(MixtureDistribution(store.folder, d) for d in kept[:most])
