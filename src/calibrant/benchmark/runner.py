"""Runs the experiment: every distribution is predicted and read, in any number of processes, and again after a stop."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import Estimator
from .config import Config, Distribution
from .curves import OURS, Entries, Entry, as_entries, paper_curves
from .pool import draw_pool
from .read import read_pool
from .results import need_polars, to_frame, write_results
from .storage import Store
from .work import spread

if TYPE_CHECKING:
    import polars as pl


def run(
    mode: str = "corrected",
    out: str | os.PathLike[str] | None = None,
    *,
    quick: bool = False,
    n_jobs: int | None = None,
    seed: int = 0,
    estimators: Mapping[str, Estimator | Entry] | None = None,
    keep_predictions: bool = False,
    progress: bool = True,
    config: Config | None = None,
) -> pl.DataFrame:
    """Run the known-truth benchmark: how wrong is each estimator, at which size?

    45 mixtures of normal distributions × 3 training draws × 4 models make 540 score distributions whose calibration
    error is known from the mixtures' posteriors. Every estimator reads the same 200 evaluation sets at each of 20 sizes
    from 30 to 5000, class-wise and of the confidence.

    Parameters
    ----------
    mode : {"corrected", "as-published"}
        See :class:`Config` and :func:`paper_curves`.
    out : path, optional
        Folder of the run; default ``calibrant-benchmark-<mode>`` (with ``-quick``) here. A folder that holds an
        unfinished run of the same configuration is gone on with.
    quick : bool, default False
        The same structure in minutes: fewer mixtures, draws, sizes and sets (:meth:`Config.quick`).
    n_jobs : int, optional
        Processes; default one for each processor. The results do not depend on it.
    seed : int, default 0
        Root of all seeds.
    estimators : mapping of names to Estimator or Entry, optional
        Default: the paper's 15 curves of the mode, and :data:`OURS`. Estimators may be added to a finished run: what is
        there is not read again.
    keep_predictions : bool, default False
        Keep the predictions (about 20 MB a distribution), so that estimators added later need not predict again.
        Without it nothing is predicted into a file, and those of an earlier call are used and left alone.
    progress : bool, default True
        A progress bar with the remaining time, on standard error.
    config : Config, optional
        An experiment of another size, in place of ``mode``, ``seed`` and ``quick``.

    Returns
    -------
    polars.DataFrame
        One row for each distribution, notion, size and estimator, also written to ``results.parquet``: ``truth`` (see
        :mod:`calibrant.benchmark.truth` for the three), ``mean`` and ``sd`` of the readings, ``bias``, ``rmse``, the
        95th percentile and the median over sets of the absolute error (``abs_p95``, ``abs_median``) and of the
        relative one (``rel_p95``, ``rel_median``), the 95th percentiles against the truth by labels (``label_…``), the
        share of readings that are NaN, and seconds a reading (what estimators share is charged to the first that
        needs it). All but the seconds is the same, bit for bit, whatever the number of processes and stops.

    Raises
    ------
    ValueError
        When the folder holds a run of another configuration, or another estimator under one of the names.
    ImportError
        Without polars (extra ``cli``).

    References
    ----------
    Posocco & Bonnefoy (2021), *Estimating Expected Calibration Errors*, §5.
    """
    need_polars()
    config = _config(mode, seed, quick) if config is None else config
    entries = {**paper_curves(config.mode), **OURS} if estimators is None else as_entries(estimators)
    folder = Path(f"calibrant-benchmark-{config.mode}{'-quick' if quick else ''}" if out is None else out)
    store = Store.open(folder, config)
    store.define({name: entry.definition for name, entry in entries.items()})
    jobs = check_jobs(n_jobs)
    missing = {d: lacking(store, d, entries) for d in config.shuffled}
    todo = [(d, names) for d, names in missing.items() if names]
    spread(partial(_read_one, store, entries, keep_predictions), todo, jobs, "benchmark", progress=progress)
    results = write_results(store)
    store.tidy()
    return results


def predict(
    mode: str = "corrected",
    out: str | os.PathLike[str] | None = None,
    *,
    quick: bool = False,
    n_jobs: int | None = None,
    seed: int = 0,
    progress: bool = True,
    config: Config | None = None,
) -> Path:
    """The first half of :func:`run` alone: predict and keep what every estimator will read. Returns the folder."""
    config = _config(mode, seed, quick) if config is None else config
    folder = Path(f"calibrant-benchmark-{config.mode}{'-quick' if quick else ''}" if out is None else out)
    store = Store.open(folder, config)
    missing = [d for d in config.shuffled if not store.predictions(d).exists()]
    spread(partial(_predict_one, store), missing, check_jobs(n_jobs), "predict", progress=progress)
    return folder


def forget(out: str | os.PathLike[str], names: list[str]) -> None:
    """Drop the results of some estimators from the folder of a run, so that another run reads them anew."""
    need_polars()
    import polars as pl

    store = Store.existing(Path(out))
    unknown = sorted(set(names) - set(store.definitions()))
    if unknown:
        raise ValueError(f"names: {', '.join(unknown)} not among the estimators of {out}")
    for path in sorted((store.folder / "pieces").glob("*.parquet")):
        frame = pl.read_parquet(path)
        rest = frame.filter(~pl.col("estimator").is_in(names))
        if rest.height == 0:
            path.unlink()
        elif rest.height < frame.height:
            store.write(path, rest.write_parquet)
    store.undefine(names)


def lacking(store: Store, distribution: Distribution, entries: Entries) -> list[str]:
    """Names of estimators that have no results of a distribution yet, in order."""
    need_polars()
    import polars as pl

    done: set[str] = set()
    for path in store.pieces(distribution):
        done.update(pl.read_parquet(path, columns=["estimator"])["estimator"].unique())
    return [name for name in entries if name not in done]


def _read_one(store: Store, entries: Entries, keep: bool, item: tuple[Distribution, list[str]]) -> None:
    """Both stages of one distribution, for the estimators that lack it."""
    distribution, names = item
    if store.predictions(distribution).exists():
        pool = store.load_pool(distribution)
    else:
        pool = draw_pool(store.config, distribution)
        if keep:
            store.save_pool(distribution, pool)
    rows = read_pool(store.config, distribution, pool, {name: entries[name] for name in names})
    word = hashlib.sha256("\n".join(names).encode()).hexdigest()[:10]
    path = store.folder / "pieces" / f"{distribution.name}.{word}.parquet"
    store.write(path, to_frame(rows).write_parquet)


def _predict_one(store: Store, distribution: Distribution) -> None:
    store.save_pool(distribution, draw_pool(store.config, distribution))


def _config(mode: str, seed: int, quick: bool) -> Config:
    return Config.quick(mode, seed) if quick else Config(mode=mode, seed=seed)


def check_jobs(n_jobs: int | None) -> int:
    """Judge the ``n_jobs`` argument: None is one for each processor."""
    if n_jobs is None:
        from joblib import cpu_count

        return int(cpu_count())
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs < 1:
        raise ValueError(f"n_jobs must be an int >= 1 or None; got {n_jobs!r}")
    return int(n_jobs)
