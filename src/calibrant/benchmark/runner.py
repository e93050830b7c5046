"""Runs the experiment: every distribution is predicted and read, in any number of processes, and again after a stop."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..estimators import Estimator
from .config import Config, Distribution
from .curves import OURS, Entries, Entry, as_entries, paper_curves
from .experiment import Experiment, definitions_of
from .pool import draw_pool
from .read import read_pool
from .saved_results import KEYS, to_frame
from .storage import Store, need_polars
from .truth import NOTIONS
from .work import check_jobs, spread

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
        :mod:`calibrant.benchmark.truth` for the three), ``mean`` and ``sd`` of the estimates, ``bias``, ``rmse``, the
        95th percentile and the median over sets of the absolute error (``abs_p95``, ``abs_median``) and of the
        relative one (``rel_p95``, ``rel_median``), the 95th percentiles against the truth by labels (``label_…``), the
        share of estimates that are NaN, and seconds an estimate (what estimators share is charged to the first that
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
    config = _config(mode, seed, quick) if config is None else config
    entries = {**paper_curves(config.mode), **OURS} if estimators is None else as_entries(estimators)
    folder = _folder(out, config, quick)
    work = dict.fromkeys(config.shuffled, definitions_of(entries))
    read = partial(_read_one, folder, config, entries, keep_predictions)
    cells = len(work) * len(config.sizes) * len(NOTIONS)
    experiment = Experiment("benchmark", _content(config), work, read, KEYS, cells)
    return experiment.run(folder, n_jobs, progress=progress)


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
    """The first half of :func:`run` alone: predict and keep the sets for every estimator. Returns the folder."""
    config = _config(mode, seed, quick) if config is None else config
    jobs, folder = check_jobs(n_jobs), _folder(out, config, quick)
    store = Store.open(folder, _content(config))
    missing = [d for d in config.shuffled if not store.predictions(d).exists()]
    spread(partial(_predict_one, store, config), missing, jobs, "predict", progress=progress)
    return folder


def forget(out: str | os.PathLike[str], names: list[str]) -> None:
    """Drop the results of some estimators from the folder of a run, so that another run computes them anew."""
    need_polars()
    Store.existing(out).forget(names)


def _read_one(
    folder: Path, config: Config, entries: Entries, keep: bool, distribution: Distribution, names: list[str]
) -> pl.DataFrame:
    """Both stages of one distribution, for the named estimators."""
    store = Store(folder)
    if store.predictions(distribution).exists():
        pool = store.load_pool(distribution)
    else:
        pool = draw_pool(config, distribution)
        if keep:
            store.save_pool(distribution, pool)
    return to_frame(read_pool(config, distribution, pool, {name: entries[name] for name in names}))


def _predict_one(store: Store, config: Config, distribution: Distribution) -> None:
    store.save_pool(distribution, draw_pool(config, distribution))


def _content(config: Config) -> dict[str, Any]:
    """What ``config.json`` holds."""
    return {"config": config.to_dict()}


def _config(mode: str, seed: int, quick: bool) -> Config:
    return Config.quick(mode, seed) if quick else Config(mode=mode, seed=seed)


def _folder(out: str | os.PathLike[str] | None, config: Config, quick: bool) -> Path:
    return Path(f"calibrant-benchmark-{config.mode}{'-quick' if quick else ''}" if out is None else out)
