"""Track "canonical": vectors whose canonical error ``E ‖P(label | p) - p‖`` is known, and estimators of it.

The paper's Figure 2a and the trials for the default; estimators are the paper's, ours, binned ones, and trials for L1.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..data.checks import check_int, check_some
from ..data.problem import VectorProblem
from ..data.types import FloatArray
from ..data.validation import as_predictions
from ..estimators import DirichletKernel, Estimator, SimplexBinned
from ..estimators.dirichlet import auto
from ..estimators.simplex_kernel import Simplex
from ..measure.question import canonical_default as default
from ..notions import as_notion
from .config import check_sizes, described
from .curves import named_entries
from .experiment import Experiment, definitions_of
from .read import Row, statistics
from .tracks import DirichletDistribution, ExactTruth, distributions
from .tracks.true_maps import Softened

if TYPE_CHECKING:
    import polars as pl

#: Version of the format: changes whenever the numbers drawn for a run, or its files, change their meaning.
FORMAT = 1
SIZES = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)
#: Sizes for the distributions that are not the paper's, and for the trials.
OTHER_SIZES = (200, 1000, 3000)
TRIAL_SIZES = (200, 1000, 3000, 5000)
#: Total rows of the sets of one size, with at least 6 sets; and the same if only the default is evaluated.
ROWS, MANY_ROWS = 48_000, 400_000
#: Number of vectors behind a truth, and how many are drawn at a time.
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
        The estimator; None is that of ``estimator="auto"``.
    measures : tuple of {"l1", "squared"}
        Quantities that it estimates.
    factor : float, default 1
        Factor of the bandwidth of the rule "auto".
    """

    estimator: Estimator | None
    measures: tuple[str, ...] = MEASURES
    factor: float = 1.0

    def __post_init__(self) -> None:
        if self.estimator is not None and "vector" not in getattr(self.estimator, "_serves", ()):
            raise ValueError(
                f"estimators must support the canonical notion, such as DirichletKernel(); got {self.estimator!r}"
            )
        check_some("measures", self.measures, MEASURES)
        by_rule = isinstance(self.estimator, DirichletKernel) and self.estimator.bandwidth == "auto"
        if self.factor != 1 and not (by_rule and self.factor > 0):
            raise ValueError(
                f"factor must be a number above 0, and 1 unless the bandwidth is 'auto'; got {self.factor!r}"
            )

    @property
    def definition(self) -> str:
        """Description of the entry, which changes whenever the entry does."""
        named = f"auto: {default(1)!r}, {default(2)!r}" if self.estimator is None else repr(self.estimator)
        return f"{named}, {'+'.join(self.measures)}" + (f", bandwidth × {self.factor:g}" if self.factor != 1 else "")


Entries = dict[str, CanonicalEntry]
#: The curves of the paper's Figure 2a. Simplex bins: about √n equal cells, and 2 or 5 cuts per edge.
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
    """Candidates for the default, for L1 and for squared errors."""
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
    """Check the ``estimators`` argument: a mapping of names to estimators or entries."""
    return named_entries(estimators, CanonicalEntry)


def read(entry: CanonicalEntry, problem: VectorProblem, measure: str, searched: dict[Any, Any]) -> float:
    """Estimate ``E ‖gap‖₁`` or ``E ‖gap‖₂²`` by an entry, signed if debiased.

    ``searched`` keeps bandwidths found for this problem, which do not depend on the estimated quantity.
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
    # Likelihoods depend on the probability vectors only, not on the smoothed values.
    key = (estimator.bandwidth, estimator.orientation, estimator.bandwidth == "cv" and estimator.residual)
    if key not in searched:
        searched[key] = estimator._h(sample, norm)
    return float(searched[key])


@dataclass(frozen=True)
class VectorDistribution(DirichletDistribution):
    r"""Distribution ``P ∝ Q^power``, ``Q ~ Σ_m w_m Dirichlet(α_m)``, with labels drawn from a known map of P.

    Attributes
    ----------
    name, track, alphas, weights, curve
        See :class:`DirichletDistribution`.
    power : float, default 1
        Inverse of a temperature.
    """

    power: float = 1.0

    def vectors(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw probability vectors, (n, K)."""
        return self.sharpened(super().vectors(n, rng))

    def sharpened(self, q: FloatArray) -> FloatArray:
        """Vectors ``P ∝ Q^power`` from vectors Q, (n, K)."""
        return np.asarray(Softened(self.power, (0.0,) * self.n_classes)(q))

    @cached_property
    def canonical_truths(self) -> dict[str, ExactTruth]:
        """``E ‖gap‖₁`` as ``"l1"`` and ``E ‖gap‖₂²`` as ``"squared"``, from 2²¹ vectors; 0 if calibrated."""
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
    """The paper's experiment: uniform on the simplex, temperature 0.6, labels drawn, then temperature 0.6 again.

    The calibrated model is that before the second temperature.
    """
    zero = (0.0,) * k
    distribution = ((1.0,) * k,)
    if calibrated:
        return VectorDistribution(f"k{k}-calibrated", "canonical", distribution, (1.0,), Softened(1.0, zero), 1 / 0.6)
    return VectorDistribution(f"k{k}-sharpened", "canonical", distribution, (1.0,), Softened(0.6, zero), 1 / 0.6**2)


#: The paper's distributions, with 4 and 8 classes.
PUBLISHED: tuple[VectorDistribution, ...] = tuple(
    published(k, calibrated=calibrated) for k in (4, 8) for calibrated in (False, True)
)


def others() -> tuple[VectorDistribution, ...]:
    """Distributions of "dirichlet" on which no bandwidth rule was chosen: 3 and 10 classes, peaked or unequal."""
    out = []
    for d in distributions("dirichlet"):
        k, shape, kind = d.name.split("-")
        wanted = k in ("k3", "k10") and shape in ("sharp", "unequal") and kind in ("calibrated", "tilted", "confused")
        if wanted and isinstance(d, DirichletDistribution):
            out.append(VectorDistribution(d.name, "canonical", d.alphas, d.weights, d.curve))
    return tuple(out)


@dataclass(frozen=True)
class CanonicalConfig:
    """Configuration of a run; runs with equal configurations draw the same evaluation sets.

    Parameters
    ----------
    sizes : tuple of int
        Numbers of rows of evaluation sets of the paper's distributions.
    other_sizes : tuple of int
        Numbers of rows for the other distributions.
    most_sets : int
        Evaluation sets per size; fewer if they would have more than ``rows`` rows, but at least 6 (if there are 6).
    seed : int
    rows : int
    """

    sizes: tuple[int, ...] = SIZES
    other_sizes: tuple[int, ...] = OTHER_SIZES
    most_sets: int = 50
    seed: int = 0
    rows: int = ROWS

    def __post_init__(self) -> None:
        check_sizes("sizes", self.sizes)
        check_sizes("other_sizes", self.other_sizes)
        for field, least in (("most_sets", 1), ("rows", 1), ("seed", 0)):
            check_int(field, getattr(self, field), least)

    @property
    def items(self) -> tuple[CanonicalItem, ...]:
        """Units of work, the longest first: they take nearly all of the time, and should not run alone at the end."""
        of_paper = [CanonicalItem(d, size) for d in PUBLISHED for size in self.sizes]
        rest = [CanonicalItem(d, size) for d in others() for size in self.other_sizes]
        return tuple(sorted(of_paper + rest, key=lambda item: -item.size))

    def sets_of(self, size: int) -> int:
        """Number of evaluation sets of one size."""
        return min(self.most_sets, max(6, self.rows // size))

    def to_dict(self) -> dict[str, Any]:
        """The configuration and the versions that its numbers depend on, for JSON."""
        return described(self, "numpy", "scipy", track="canonical", format=FORMAT)


class CanonicalItem(NamedTuple):
    """One unit of work: a distribution at one size. Its results are stored in files of their own."""

    distribution: VectorDistribution
    size: int

    @property
    def name(self) -> str:
        """Stable identifier, used for file names."""
        return f"{self.distribution.name}.{self.size}"


def run_canonical(
    out: str | os.PathLike[str],
    *,
    sizes: Sequence[int] = SIZES,
    other_sizes: Sequence[int] = OTHER_SIZES,
    most_sets: int = 50,
    seed: int = 0,
    rows: int = ROWS,
    estimators: Mapping[str, Estimator | CanonicalEntry] | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> pl.DataFrame:
    """Run the canonical track, which measures the errors of estimators of the canonical calibration error.

    It has the paper's experiment (Figure 2a) with 4 and 8 classes, sharpened and calibrated, and twelve other
    distributions with 3 and 10 classes.

    Parameters
    ----------
    out : path
        Folder of the run: ``config.json``, ``estimators.json``, ``pieces/`` and ``results.parquet``. A run stopped at
        any moment resumes from its pieces and ends with the same results.
    sizes, other_sizes, most_sets, seed, rows
        See :class:`CanonicalConfig`.
    estimators : mapping of str to Estimator or Entry, or None
        Estimators by their names in the results. None: the curves of the figure on all of the paper's distributions,
        and the trials for the default at 200 to 5000 rows. In a folder with results, only new estimators are evaluated,
        on the same evaluation sets as the others.
    n_jobs : int or None
        Number of processes; None is one per processor. Results do not depend on it, except ``seconds``.
    progress : bool
        Show a bar on standard error.

    Returns
    -------
    polars.DataFrame
        One row per cell (distribution, size, estimator, measure): ``measure`` is ``"l1"`` (``E ‖gap‖₁``) or
        ``"squared"`` (``E ‖gap‖₂²``); ``truth``, ``truth_se``, ``calibrated``; ``sets``, ``mean``, ``sd``, ``bias``,
        ``rmse``, ``abs_p95``, ``abs_median``, ``rel_p95``, ``rel_median`` (NaN if calibrated) and ``nan_share`` of the
        estimates; ``definition``; ``seconds`` per set (the first estimator that needs a bandwidth is charged for it).

    Raises
    ------
    ValueError
        If the folder holds a run of another configuration, or uses an estimator's name for another estimator.

    References
    ----------
    Popordanoska, Sayer & Blaschko (2022), §4.1.
    """
    config = CanonicalConfig(tuple(sizes), tuple(other_sizes), most_sets, seed, rows)
    chosen = None if estimators is None else as_entries(estimators)
    work = {item: definitions_of(entries_of(item) if chosen is None else chosen) for item in config.items}
    task = partial(_read, config, chosen)
    keys = ("distribution", "size", "estimator", "measure")
    return Experiment("canonical", config.to_dict(), work, task, keys).run(out, n_jobs, progress=progress)


def run_default(
    out: str | os.PathLike[str], *, seed: int = 0, n_jobs: int | None = None, progress: bool = False
) -> pl.DataFrame:
    """Run only the default, on more evaluation sets; the paper's distributions have 2000 rows and more."""
    return run_canonical(
        out,
        sizes=(2000, 5000, 10_000, 20_000),
        other_sizes=(200,),
        most_sets=100,
        seed=seed + 1,
        rows=MANY_ROWS,
        estimators={"default": CURVES["default"]},
        n_jobs=n_jobs,
        progress=progress,
    )


def entries_of(item: CanonicalItem) -> Entries:
    """Estimators that are evaluated on an item by default."""
    entries = dict(CURVES) if item.distribution in PUBLISHED else {"default": CURVES["default"]}
    return entries | (TRIALS if item.size in TRIAL_SIZES or item.distribution not in PUBLISHED else {})


def evaluation_set(item: CanonicalItem, number: int, seed: int) -> VectorProblem:
    """One evaluation set, which depends only on the cell, its number and the seed."""
    cell = zlib.crc32(item.name.encode())
    rng = np.random.default_rng(np.random.SeedSequence([seed, cell, number]))
    p, y = item.distribution.draw(item.size, rng)
    predictions = as_predictions(y, p, labels=list(range(item.distribution.n_classes)))
    reduction = as_notion("canonical", predictions).reduce(predictions)
    if not isinstance(reduction, VectorProblem):
        raise TypeError(f"the canonical notion makes a vector problem; got {reduction!r}")
    return reduction


def estimates(
    item: CanonicalItem, config: CanonicalConfig, entries: Entries
) -> dict[tuple[str, str], tuple[FloatArray, float]]:
    """Estimates by all entries for every set of an item, and seconds per set, by (name, measure)."""
    count = config.sets_of(item.size)
    keys = [(name, measure) for name, entry in entries.items() for measure in entry.measures]
    values = {key: np.empty(count) for key in keys}
    seconds = dict.fromkeys(keys, 0.0)
    for number in range(count):
        problem = evaluation_set(item, number, config.seed)
        searched: dict[Any, Any] = {}
        for name, measure in keys:
            start = perf_counter()
            values[name, measure][number] = read(entries[name], problem, measure, searched)
            seconds[name, measure] += perf_counter() - start
    return {key: (values[key], seconds[key] / count) for key in keys}


@cache
def _truths(distribution: VectorDistribution) -> dict[str, ExactTruth]:
    """Truths, computed once per process: several items share a distribution."""
    return distribution.canonical_truths


def _read(config: CanonicalConfig, chosen: Entries | None, item: CanonicalItem, names: list[str]) -> pl.DataFrame:
    """Rows of results of one item for the named estimators."""
    import polars as pl

    known = entries_of(item) if chosen is None else chosen
    entries = {name: known[name] for name in names}
    d = item.distribution
    rows: list[Row] = []
    for (name, measure), (values, seconds) in estimates(item, config, entries).items():
        truth, se = _truths(d)[measure]
        measured = statistics(values, truth, truth)
        rows.append(
            {
                "distribution": d.name,
                "n_classes": d.n_classes,
                "calibrated": d.calibrated,
                "size": item.size,
                "estimator": name,
                "definition": entries[name].definition,
                "measure": measure,
                "truth": truth,
                "truth_se": se,
                "sets": len(values),
                **{key: value for key, value in measured.items() if not key.startswith("label_")},
                "seconds": seconds,
            }
        )
    return pl.DataFrame(rows)
