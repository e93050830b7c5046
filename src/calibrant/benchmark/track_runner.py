"""Evaluates all estimators on the tracks: paired evaluation sets, one row per cell, resumable, parallel."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..data.checks import check_int, check_some
from ..data.types import FloatArray
from ..estimators.base import Estimator
from .config import check_sizes, described
from .curves import OURS, Entries, Entry, as_entries, paper_curves
from .experiment import Experiment, Store, definitions_of
from .read import Row, estimates_of, statistics
from .tracks import TRACKS, TrackDistribution, distributions

if TYPE_CHECKING:
    import polars as pl

#: Version of the format: changes whenever the numbers drawn for a run, or its files, change their meaning.
FORMAT = 1
SIZES = (30, 60, 120, 250, 500, 1000, 3000)
#: Sizes of track "consistency", independent of those of the other tracks.
LARGE_SIZES = (1_000, 10_000, 100_000, 1_000_000)
#: Scores drawn at a time (the seeds depend on it), and the largest total number of rows of the sets of a size.
CHUNK, MOST_ROWS = 2_000_000, 20_000_000
#: Estimates of a calibrated model above these count as false alarms.
ALARMS = (0.01, 0.02)
#: Columns that identify a row of results.
KEYS = ("track", "distribution", "notion", "size", "estimator")


@dataclass(frozen=True)
class TrackConfig:
    """Configuration of a run of tracks; runs with equal configurations draw the same evaluation sets.

    Parameters
    ----------
    tracks : tuple of str
    sizes : tuple of int
        Numbers of rows of evaluation sets; track "consistency" has ``large_sizes``.
    n_sets : int
        Evaluation sets per size; fewer if they would have more than 2·10⁷ rows, but at least 10 (if there are 10).
    seed : int
    names : tuple of str or None
        Names of the distributions; None means all.
    large_sizes : tuple of int
    """

    tracks: tuple[str, ...] = tuple(TRACKS)
    sizes: tuple[int, ...] = SIZES
    n_sets: int = 200
    seed: int = 0
    names: tuple[str, ...] | None = None
    large_sizes: tuple[int, ...] = LARGE_SIZES

    def __post_init__(self) -> None:
        check_some("tracks", self.tracks, TRACKS)
        check_sizes("sizes", self.sizes)
        check_sizes("large_sizes", self.large_sizes)
        check_int("n_sets", self.n_sets, 1)
        check_int("seed", self.seed, 0)
        if not self.items:
            raise ValueError(f"names must be names of distributions of {', '.join(self.tracks)}; got {self.names!r}")

    @property
    def items(self) -> tuple[TrackItem, ...]:
        """Units of work: a distribution with all its sizes, or with one for the large sizes."""
        out = []
        for track in self.tracks:
            chosen = [d for d in distributions(track) if self.names is None or d.name in self.names]
            parts = [(size,) for size in self.large_sizes] if track == "consistency" else [self.sizes]
            out += [TrackItem(d, sizes) for d in chosen for sizes in parts]
        return tuple(out)

    def sets_of(self, size: int) -> int:
        """Number of evaluation sets of one size."""
        return min(self.n_sets, max(10, MOST_ROWS // size))

    def to_dict(self) -> dict[str, Any]:
        """The configuration and the versions that its numbers depend on, for JSON."""
        return described(self, "numpy", "scipy", format=FORMAT)


class TrackItem(NamedTuple):
    """One unit of work, whose results are stored in files of their own."""

    distribution: TrackDistribution
    sizes: tuple[int, ...]

    @property
    def name(self) -> str:
        """Stable identifier, used for file names."""
        d = self.distribution
        return f"{d.track}.{d.name}.{self.sizes[0]}-{self.sizes[-1]}"


def run_tracks(
    tracks: Sequence[str] = tuple(TRACKS),
    *,
    out: str | os.PathLike[str],
    sizes: Sequence[int] = SIZES,
    n_sets: int = 200,
    estimators: Mapping[str, Estimator | Entry] | None = None,
    n_jobs: int | None = 1,
    seed: int = 0,
    names: Sequence[str] | None = None,
    large_sizes: Sequence[int] = LARGE_SIZES,
    progress: bool = False,
) -> pl.DataFrame:
    """Evaluate every estimator on every distribution of some tracks.

    Parameters
    ----------
    tracks : sequence of str
        Some of ``TRACKS``.
    out : path
        Folder of the run: ``config.json``, ``estimators.json``, ``pieces/`` and ``results.parquet``. A run stopped at
        any moment resumes from its pieces and ends with the same results.
    sizes, n_sets, seed, names, large_sizes
        See :class:`TrackConfig`.
    estimators : mapping of str to Estimator or Entry, or None
        Estimators by their names in the results. None: the paper's 15 curves and ours. In a folder with results, only
        new estimators are evaluated, on the same evaluation sets as the others.
    n_jobs : int or None
        Number of processes; None is one per processor. Results do not depend on it, except ``seconds``.
    progress : bool
        Show a bar on standard error.

    Returns
    -------
    polars.DataFrame
        One row per cell (track, distribution, notion, size, estimator), with the columns of the mixtures' results where
        they apply:

        - ``n_classes``, ``norm``, ``sets``, ``definition`` (the ``repr`` of the estimator), ``seconds`` per set,
        - ``truth``, ``truth_se``, ``calibrated`` (whether the truth is 0),
        - ``mean``, ``sd``, ``bias``, ``rmse``, ``abs_p95``, ``abs_median`` over sets, and ``nan_share``, the share of
          sets without an estimate, which the other columns leave out,
        - ``rel_p95``, ``rel_median``: quantiles of ``|estimate - truth| / truth``; NaN if calibrated,
        - ``reading_p95``, ``alarm_0.01``, ``alarm_0.02``: 95th percentile of the estimates, and the shares of estimates
          above 0.01 and above 0.02, which are false alarms if the model is calibrated.

    Raises
    ------
    ValueError
        If the folder holds a run of another configuration, or uses an estimator's name for another estimator.
    """
    config = TrackConfig(
        tuple(tracks), tuple(sizes), n_sets, seed, None if names is None else tuple(names), tuple(large_sizes)
    )
    entries = as_entries({**paper_curves(), **OURS} if estimators is None else estimators)
    work = dict.fromkeys(config.items, definitions_of(entries))
    read = partial(_read, config, entries)
    return Experiment("tracks", config.to_dict(), work, read, KEYS).run(out, n_jobs, progress=progress)


def collect(folder: str | os.PathLike[str]) -> pl.DataFrame:
    """Results of a run's pieces as one sorted frame, which is also written to ``results.parquet``."""
    return Store.existing(folder).collect(KEYS)


def summarize(results: pl.DataFrame) -> pl.DataFrame:
    """Medians over distributions by track, notion, size and estimator, with false alarms of calibrated ones.

    ``distributions`` and ``calibrated`` count the two kinds. For the miscalibrated: medians of ``rel_p95``,
    ``rel_median``, ``abs_p95``, ``rmse``, ``bias`` and ``truth``. For the calibrated: mean ``false_alarm`` (estimate),
    median ``false_alarm_p95``, and mean shares ``alarm_0.01`` and ``alarm_0.02``. ``seconds`` is a mean.
    """
    import polars as pl

    wrong, right = pl.col("calibrated").not_(), pl.col("calibrated")
    medians = ("rel_p95", "rel_median", "abs_p95", "rmse", "bias", "truth")
    alarms = [f"alarm_{level:g}" for level in ALARMS]
    return (
        results.group_by("track", "notion", "size", "estimator")
        .agg(
            wrong.sum().alias("distributions"),
            right.sum().alias("calibrated"),
            *(pl.col(name).filter(wrong).median() for name in medians),
            pl.col("mean").filter(right).mean().alias("false_alarm"),
            pl.col("reading_p95").filter(right).median().alias("false_alarm_p95"),
            *(pl.col(name).filter(right).mean() for name in alarms),
            pl.col("seconds").mean(),
        )
        .sort("track", "notion", "size", "estimator")
    )


def evaluation_sets(
    distribution: TrackDistribution, size: int, config: TrackConfig
) -> Sequence[tuple[int, np.random.Generator]]:
    """Numbers of sets, and their generators, chunk by chunk, which depend only on the cell and the seed."""
    count = config.sets_of(size)
    width = distribution.n_classes if "classwise" in distribution.notions else 1
    most = max(1, CHUNK // (size * width))
    cell = zlib.crc32(str(distribution).encode())
    return [
        (min(most, count - start), np.random.default_rng(np.random.SeedSequence([config.seed, cell, size, start])))
        for start in range(0, count, most)
    ]


def estimates(
    distribution: TrackDistribution, size: int, config: TrackConfig, entries: Entries
) -> dict[tuple[str, str], tuple[FloatArray, float]]:
    """Estimated errors for the sets of one size, and seconds, by (notion, name)."""
    keys = [(notion, name) for notion in distribution.notions for name in entries]
    values: dict[tuple[str, str], list[FloatArray]] = {key: [] for key in keys}
    seconds = dict.fromkeys(keys, 0.0)
    for n_sets, rng in evaluation_sets(distribution, size, config):
        scores, labels = distribution.sample(n_sets, size, rng)
        for notion in distribution.notions:
            problems = distribution.problems(scores, labels, notion)
            for name, entry in entries.items():
                start = perf_counter()
                values[notion, name].append(estimates_of(entry, problems))
                seconds[notion, name] += perf_counter() - start
    return {key: (np.concatenate(values[key]), seconds[key]) for key in keys}


def _alarms(values: FloatArray) -> dict[str, float]:
    """95th percentile of estimates, and the shares above each level; NaN without estimates."""
    known = values[~np.isnan(values)]
    some = known.size > 0
    shares = {f"alarm_{level:g}": float((known > level).mean()) if some else float("nan") for level in ALARMS}
    return {"reading_p95": float(np.quantile(known, 0.95)) if some else float("nan"), **shares}


def _read(config: TrackConfig, entries: Entries, item: TrackItem, names: list[str]) -> pl.DataFrame:
    """Rows of results of one item for the named estimators."""
    import polars as pl

    d = item.distribution
    chosen = {name: entries[name] for name in names}
    rows: list[Row] = []
    for size in item.sizes:
        for (notion, name), (values, seconds) in estimates(d, size, config, chosen).items():
            entry = chosen[name]
            truth = d.truth(notion, entry.norm)
            measured = statistics(values, truth.value, truth.value)
            rows.append(
                {
                    "track": d.track,
                    "distribution": d.name,
                    "n_classes": d.n_classes,
                    "notion": notion,
                    "size": size,
                    "estimator": name,
                    "definition": entry.definition,
                    "norm": entry.norm,
                    "sets": len(values),
                    "truth": truth.value,
                    "truth_se": truth.standard_error,
                    "calibrated": truth.value == 0,
                    # True errors here do not come from labels.
                    **{key: value for key, value in measured.items() if not key.startswith("label_")},
                    **_alarms(values),
                    "seconds": seconds / len(values),
                }
            )
    return pl.DataFrame(rows)
