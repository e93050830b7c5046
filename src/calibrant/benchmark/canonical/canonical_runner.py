"""Reads probability vectors of known canonical error with every estimator: the paper's Figure 2a, and the trials."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...data.checks import check_int
from ...data.problem import VectorProblem
from ...data.types import FloatArray
from ...data.validation import as_predictions
from ...estimators.base import Estimator
from ...notions import as_notion
from ..config import check_sizes, described
from ..experiment import Experiment, definitions_of
from ..read import Row, statistics
from ..tracks import ExactTruth
from .entries import (
    CURVES,
    PUBLISHED,
    TRIALS,
    CanonicalEntry,
    Entries,
    VectorDistribution,
    as_entries,
    others,
    read,
)

if TYPE_CHECKING:
    import polars as pl

#: Changes whenever the numbers drawn for a run, or its files, change their meaning.
FORMAT = 1
SIZES = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)
#: Sizes of the distributions that are not the paper's, and the largest that the trials read.
OTHER_SIZES = (200, 1000, 3000)
TRIAL_SIZES = (200, 1000, 3000, 5000)
#: Rows that all sets of a size have together, as far as that leaves 6 sets; and where the default is read by itself.
ROWS, MANY_ROWS = 48_000, 400_000


@dataclass(frozen=True)
class CanonicalConfig:
    """What a run is; two runs with equal ones draw the same evaluation sets.

    Parameters
    ----------
    sizes : tuple of int
        Rows of an evaluation set of the paper's distributions.
    other_sizes : tuple of int
        Those of the other distributions.
    most_sets : int
        Evaluation sets a size; fewer where they would have more than ``rows`` rows, but 6 at least (if there are 6).
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
        """Units of work, the longest first: they take nearly all of the time, and should not be waited for alone."""
        of_paper = [CanonicalItem(d, size) for d in PUBLISHED for size in self.sizes]
        rest = [CanonicalItem(d, size) for d in others() for size in self.other_sizes]
        return tuple(sorted(of_paper + rest, key=lambda item: -item.size))

    def sets_of(self, size: int) -> int:
        """Evaluation sets of one size."""
        return min(self.most_sets, max(6, self.rows // size))

    def to_dict(self) -> dict[str, Any]:
        """The configuration and the versions that its numbers depend on, as JSON holds them."""
        return described(self, "numpy", "scipy", track="canonical", format=FORMAT)


class CanonicalItem(NamedTuple):
    """One unit of work: a distribution at a size; a piece of results is one file."""

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
    """Run the canonical track: how wrong are estimators of the canonical calibration error?

    The paper's experiment (Figure 2a) with 4 and 8 classes, sharpened and calibrated, and twelve other distributions of
    3 and 10 classes.

    Parameters
    ----------
    out : path
        Folder of the run: ``config.json``, ``estimators.json``, ``pieces/`` and ``results.parquet``. A run that was
        stopped, at whatever moment, goes on from its pieces and ends with the same results.
    sizes, other_sizes, most_sets, seed, rows
        See :class:`CanonicalConfig`.
    estimators : mapping of str to Estimator or Entry, or None
        By the name that results carry; None means the curves of the figure everywhere on the paper's distributions, and
        the trials for the default at 200 to 5000 rows. In a folder with results, only those that are not there yet are
        read, on the same evaluation sets as the others.
    n_jobs : int or None
        Processes, None for one a processor; results do not depend on them (``seconds`` apart).
    progress : bool
        Show a bar on standard error.

    Returns
    -------
    polars.DataFrame
        One row a cell (distribution, size, estimator, measure): ``measure`` is ``"l1"``, ``E ‖gap‖₁``, or
        ``"squared"``, ``E ‖gap‖₂²``; ``truth``, ``truth_se``, ``calibrated``; ``sets``, ``mean``, ``sd``, ``bias``,
        ``rmse``, ``abs_p95``, ``abs_median``, ``rel_p95``, ``rel_median`` (NaN where calibrated) and ``nan_share`` of
        the estimates; ``definition``; ``seconds`` a set (a bandwidth's search is charged to the first that needs it).

    Raises
    ------
    ValueError
        When the folder holds a run of another configuration, or an estimator's name stands for another one there.

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
    """The default by itself, on the paper's distributions at 2000 rows and more, and on more sets than the others."""
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
    """Estimators that read an item where none are named."""
    entries = dict(CURVES) if item.distribution in PUBLISHED else {"default": CURVES["default"]}
    return entries | (TRIALS if item.size in TRIAL_SIZES or item.distribution not in PUBLISHED else {})


def evaluation_set(item: CanonicalItem, number: int, seed: int) -> VectorProblem:
    """One evaluation set: a function of the cell, its number and the seed only."""
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
    """What entries give for every set of an item, and seconds a set, by (name, measure)."""
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
    """Truths, once a process: a distribution serves several items."""
    return distribution.canonical_truths


def _read(config: CanonicalConfig, chosen: Entries | None, item: CanonicalItem, names: list[str]) -> pl.DataFrame:
    """Rows of one item and the named estimators."""
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
