"""What is compared on canonical calibration: the paper's estimator, ours, binned ones, and the trials for L1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...data.checks import check_some
from ...data.problem import VectorProblem
from ...estimators import DirichletKernel, Estimator, SimplexBinned
from ...estimators.dirichlet import auto
from ...estimators.simplex_kernel import Simplex
from ...measure.estimation import canonical_default as default

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
    if not isinstance(estimators, Mapping) or not estimators:
        raise TypeError(f"estimators must be a mapping of names to estimators, not empty; got {estimators!r}")
    out: Entries = {}
    for name, given in estimators.items():
        if not isinstance(name, str) or not name:
            raise TypeError(f"names of estimators must be strings; got {name!r}")
        if not isinstance(given, (CanonicalEntry, Estimator)):
            raise TypeError(f"estimators must be estimators such as DirichletKernel(), or entries; got {given!r}")
        out[name] = given if isinstance(given, CanonicalEntry) else CanonicalEntry(given)
    return out


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
