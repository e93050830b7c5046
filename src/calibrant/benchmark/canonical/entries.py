"""Track "canonical": vectors whose canonical error ``E ‖P(label | p) - p‖`` is known, and what reads them.

Estimators are the paper's, ours, binned ones, and the trials for L1.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...data.checks import check_some
from ...data.problem import VectorProblem
from ...data.types import FloatArray
from ...estimators import DirichletKernel, Estimator, SimplexBinned
from ...estimators.dirichlet import auto
from ...estimators.simplex_kernel import Simplex
from ...measure.estimation import canonical_default as default
from ..curves import named_entries
from ..tracks import DirichletDistribution, ExactTruth, distributions
from ..tracks.true_maps import Softened

#: Vectors of a truth, and how many at a time.
_DRAWS, _BLOCK = 1 << 21, 1 << 18
#: ``E ‖gap‖₁`` and ``E ‖gap‖₂²``.
MEASURES = ("l1", "squared")
_NORMS = {"l1": 1.0, "squared": 2.0}


@dataclass(frozen=True)
class CanonicalEntry:
    """One estimator of a run.

    Parameters
    ----------
    estimator : Estimator, or None
        None: what ``estimator="auto"`` takes.
    measures : tuple of {"l1", "squared"}
        What it estimates.
    factor : float, default 1
        Multiplies the bandwidth of the rule "auto".
    """

    estimator: Estimator | None
    measures: tuple[str, ...] = MEASURES
    factor: float = 1.0

    def __post_init__(self) -> None:
        if self.estimator is not None and "vector" not in getattr(self.estimator, "_serves", ()):
            raise ValueError(f"estimators must serve the canonical notion, as DirichletKernel; got {self.estimator!r}")
        check_some("measures", self.measures, MEASURES)
        by_rule = isinstance(self.estimator, DirichletKernel) and self.estimator.bandwidth == "auto"
        if self.factor != 1 and not (by_rule and self.factor > 0):
            raise ValueError(f"factor, a number above 0, is for the bandwidth 'auto'; got {self.factor!r}")

    @property
    def definition(self) -> str:
        """What the entry is, in words that change whenever it does."""
        named = f"auto: {default(1)!r}, {default(2)!r}" if self.estimator is None else repr(self.estimator)
        return f"{named}, {'+'.join(self.measures)}" + (f", bandwidth × {self.factor:g}" if self.factor != 1 else "")


Entries = dict[str, CanonicalEntry]
#: The curves of the paper's Figure 2a. Simplex bins: about √n equal cells, and 2 or 5 cuts an edge.
CURVES: Entries = {
    "published": CanonicalEntry(DirichletKernel("loo-as-published")),
    "plug-in": CanonicalEntry(DirichletKernel("loo")),
    "ratio": CanonicalEntry(DirichletKernel("loo", debias="ratio")),
    "square": CanonicalEntry(DirichletKernel("auto", "query", "square"), ("squared",)),
    "default": CanonicalEntry(None),
    "simplex-sqrt": CanonicalEntry(SimplexBinned("sqrt")),
    "simplex-2": CanonicalEntry(SimplexBinned(2)),
    "simplex-5": CanonicalEntry(SimplexBinned(5)),
}


def _trials() -> Entries:
    """Candidates for the default, for L1 and for squares."""
    out: Entries = {}
    forms: tuple[tuple[str | None, bool], ...] = tuple((d, r) for d in (None, "ratio", "cross") for r in (False, True))
    for debias, residual in forms:
        name = f"{debias or 'plug-in'}{'-residual' if residual else ''}"
        for factor in (0.25, 1.0, 4.0):
            estimator = DirichletKernel("auto", "query", debias, residual)
            measures = MEASURES if debias == "cross" else ("l1",)
            out[f"query-{name}-{factor:g}"] = CanonicalEntry(estimator, measures, factor)
        out[f"data-{name}-1"] = CanonicalEntry(DirichletKernel("auto", "data", debias, residual), ("l1",))
    for debias, residual in ((None, True), ("ratio", True), ("cross", True)):
        out[f"query-{debias or 'plug-in'}-residual-cv"] = CanonicalEntry(
            DirichletKernel("cv", "query", debias, residual), ("l1",)
        )
    out["query-square-1"] = CanonicalEntry(DirichletKernel("auto", "query", "square"), ("squared",))
    out["query-square-residual-1"] = CanonicalEntry(DirichletKernel("auto", "query", "square", True), ("squared",))
    return out


TRIALS: Entries = _trials()


def as_entries(estimators: Mapping[str, Estimator | CanonicalEntry]) -> Entries:
    """Judge the ``estimators`` argument: a mapping of names to estimators or entries."""
    return named_entries(estimators, CanonicalEntry)


def read(entry: CanonicalEntry, problem: VectorProblem, measure: str, searched: dict[Any, Any]) -> float:
    """``E ‖gap‖₁`` or ``E ‖gap‖₂²`` as an entry estimates it, signed where it is debiased.

    ``searched`` keeps what was found in searches for this problem's bandwidths: they do not depend on what is read.
    """
    norm = _NORMS[measure]
    estimator = entry.estimator
    if estimator is None:
        estimator = default(norm)
    elif isinstance(estimator, DirichletKernel) and isinstance(estimator.bandwidth, str):
        estimator = replace(estimator, bandwidth=_bandwidth(entry, estimator, problem, norm, searched))
    has_square = isinstance(estimator, DirichletKernel) and estimator.debias in ("square", "cross")
    if measure == "squared" and has_square:
        return float(estimator._square(problem))
    return float(estimator.power(problem, norm))


def _bandwidth(
    entry: CanonicalEntry, estimator: DirichletKernel, problem: VectorProblem, norm: float, searched: dict[Any, Any]
) -> float:
    if estimator.bandwidth == "auto":
        squares = norm == 2 and estimator.debias in ("square", "cross")
        return entry.factor * auto(problem.effective_size, problem.probs.shape[1], squares=squares)
    sample = Simplex.of(problem, estimator.eps)
    # Likelihoods are of probability vectors alone: what is smoothed does not matter to them.
    key = (estimator.bandwidth, estimator.orientation, estimator.bandwidth == "cv" and estimator.residual)
    if key not in searched:
        searched[key] = estimator._h(sample, norm)
    return float(searched[key])


@dataclass(frozen=True)
class VectorDistribution(DirichletDistribution):
    r"""``P ∝ Q^power``, ``Q ~ Σ_m w_m Dirichlet(α_m)``, and labels drawn from a known map of P.

    Attributes
    ----------
    name, track, alphas, weights, curve
        As of :class:`DirichletDistribution`.
    power : float, default 1
        One over a temperature.
    """

    power: float = 1.0

    def vectors(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Probability vectors, (n, K)."""
        return self.sharpened(super().vectors(n, rng))

    def sharpened(self, q: FloatArray) -> FloatArray:
        """``P ∝ Q^power`` of vectors Q, (n, K)."""
        return np.asarray(Softened(self.power, (0.0,) * self.n_classes)(q))

    @cached_property
    def canonical_truths(self) -> dict[str, ExactTruth]:
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
        return VectorDistribution(f"k{k}-calibrated", "canonical", distribution, (1.0,), Softened(1.0, zero), 1 / 0.6)
    return VectorDistribution(f"k{k}-sharpened", "canonical", distribution, (1.0,), Softened(0.6, zero), 1 / 0.6**2)


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
            out.append(VectorDistribution(d.name, "canonical", d.alphas, d.weights, d.curve))
    return tuple(out)
