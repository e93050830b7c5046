"""Probability vectors whose canonical calibration error is known: ``E ‖P(label | p) - p‖`` by Monte-Carlo."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...data.types import AnyArray, FloatArray
from ..tracks import DirichletDistribution, ExactTruth, distributions
from ..tracks.dirichlet_track import dirichlet
from ..tracks.vector_maps import Softened, VectorMap

#: Vectors of a truth, and how many at a time.
_DRAWS, _BLOCK = 1 << 21, 1 << 18


@dataclass(frozen=True)
class VectorDistribution:
    r"""``P ∝ Q^power``, ``Q ~ Σ_m w_m Dirichlet(α_m)``, and labels drawn from a known map of P.

    Attributes
    ----------
    name : str
    alphas : tuple of tuple of float
        Parameters α_m, (M, K).
    weights : tuple of float
    curve : VectorMap
        ``P(label = k | P)``.
    power : float, default 1
        One over a temperature.
    """

    name: str
    alphas: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]
    curve: VectorMap
    power: float = 1.0

    @property
    def n_classes(self) -> int:
        """Classes K."""
        return len(self.alphas[0])

    @property
    def calibrated(self) -> bool:
        """Whether the map is the identity."""
        return self.curve.calibrated

    def vectors(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Probability vectors, (n, K)."""
        kind = np.searchsorted(np.cumsum(self.weights)[:-1], rng.random(n), side="right")
        return self.sharpened(dirichlet(np.asarray(self.alphas)[kind], rng))

    def sharpened(self, q: FloatArray) -> FloatArray:
        """``P ∝ Q^power`` of vectors Q, (n, K)."""
        return np.asarray(Softened(self.power, (0.0,) * self.n_classes)(q))

    def sample(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, AnyArray]:
        """Vectors (n, K) and labels (n,)."""
        p = self.vectors(n, rng)
        above = rng.random(n)[:, None] > np.cumsum(self.curve(p), axis=1)
        return p, np.minimum(above.sum(axis=1), self.n_classes - 1)

    @cached_property
    def truths(self) -> dict[str, ExactTruth]:
        """``E ‖gap‖₁`` as ``"l1"`` and ``E ‖gap‖₂²`` as ``"squared"``, from 2²¹ vectors; 0 where calibrated."""
        if self.calibrated:
            return {"l1": ExactTruth(0.0), "squared": ExactTruth(0.0)}
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        sums = np.zeros((2, 2))
        for _ in range(_DRAWS // _BLOCK):
            p = self.vectors(_BLOCK, rng)
            gap = self.curve(p) - p
            each = np.stack([np.abs(gap).sum(axis=1), (gap**2).sum(axis=1)])
            sums += np.stack([each.sum(axis=1), (each**2).sum(axis=1)], axis=1)
        mean, square = sums.T / _DRAWS
        se = np.sqrt((square - mean**2) / _DRAWS)
        return {key: ExactTruth(float(mean[i]), float(se[i])) for i, key in enumerate(("l1", "squared"))}


def published(k: int, *, calibrated: bool = False) -> VectorDistribution:
    """The paper's experiment: uniform on the simplex, temperature 0.6, labels drawn, and temperature 0.6 once more.

    The calibrated model is the one before the second temperature.
    """
    zero = (0.0,) * k
    distribution = ((1.0,) * k,)
    if calibrated:
        return VectorDistribution(f"k{k}-calibrated", distribution, (1.0,), Softened(1.0, zero), 1 / 0.6)
    return VectorDistribution(f"k{k}-sharpened", distribution, (1.0,), Softened(0.6, zero), 1 / 0.6**2)


#: The paper's, with 4 and 8 classes.
PUBLISHED: tuple[VectorDistribution, ...] = tuple(
    published(k, calibrated=calibrated) for k in (4, 8) for calibrated in (False, True)
)


def others() -> tuple[VectorDistribution, ...]:
    """Distributions of "dirichlet" that no rule of bandwidths was chosen on: 3 and 10 classes, peaked or unequal."""
    out = []
    for d in distributions("dirichlet"):
        k, shape, kind = d.name.split("-")
        wanted = k in ("k3", "k10") and shape in ("sharp", "unequal") and kind in ("calibrated", "tilted", "confused")
        if wanted and isinstance(d, DirichletDistribution):
            out.append(VectorDistribution(d.name, d.alphas, d.weights, d.curve))
    return tuple(out)
