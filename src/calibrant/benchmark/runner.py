"""Runs the experiment: predicts and evaluates all distributions, in parallel, and resumes after a stop."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.docs import document
from ..data.types import AnyArray, FloatArray
from ..estimators import Estimator
from .config import Config, Distribution
from .curves import OURS, Entries, Entry, as_entries, paper_curves
from .experiment import Experiment, Store, check_jobs, definitions_of, need_polars, spread
from .pool import NOTIONS, draw_pool
from .read import STATISTICS, Row, read_pool

if TYPE_CHECKING:
    import polars as pl


#: Columns that identify a distribution, and its mixture.
DISTRIBUTION = ("mode", "seed", "classes", "dimensions", "mixture", "training", "model")
MIXTURE = ("seed", "classes", "dimensions", "mixture")
#: Columns of the results, in order, and by which they are sorted.
KEYS = (*DISTRIBUTION, "notion", "size", "estimator")
COLUMNS = (*KEYS, "norm", "truth", "posterior_truth", "label_truth", *STATISTICS, "nan_share", "seconds")
_TEXT = frozenset({"mode", "model", "notion", "estimator"})
_WHOLE = frozenset({"seed", "classes", "dimensions", "mixture", "training", "size"})
#: Columns of a summary.
MEASURES = ("rel_p95", "rel_median", "abs_p95", "abs_median", "bias", "rmse")
_RESAMPLES = 200


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
    """Run the known-truth benchmark, which measures the error of each estimator at each sample size.

    45 mixtures of normal distributions × 3 training draws × 4 models make 540 score distributions whose calibration
    error is known from the mixtures' posteriors. Every estimator is evaluated on the same 200 evaluation sets at each
    of 20 sizes from 30 to 5000, class-wise and for the confidence.

    Parameters
    ----------
    mode : {"corrected", "as-published"}, default "corrected"
        The paper's experiment, corrected or with its errors; see :class:`Config` and :func:`paper_curves`.
    out : path, optional
        Folder of the run; default ``calibrant-benchmark-<mode>`` (with ``-quick``) in the current directory. An
        unfinished run of the same configuration in the folder is resumed.
    quick : bool, default False
        The same structure in minutes: fewer mixtures, draws, sizes and sets (:meth:`Config.quick`).
    n_jobs : int, optional
        Number of processes; default one per processor. Results do not depend on it.
    seed : int, default 0
        Root of all seeds.
    estimators : mapping of names to Estimator or Entry, optional
        Default: the paper's 15 curves of the mode, and :data:`OURS`. Estimators may be added to a finished run: only
        the new ones are evaluated.
    keep_predictions : bool, default False
        Keep the predictions (about 20 MB per distribution), so that estimators added later need no new predictions.
        Otherwise none are written to files; those of an earlier call are still used and stay unchanged.
    progress : bool, default True
        Whether to show a progress bar with the remaining time on standard error.
    config : Config, optional
        An experiment of another size, in place of ``mode``, ``seed`` and ``quick``.

    Returns
    -------
    polars.DataFrame
        One row for each distribution, notion, size and estimator, also written to ``results.parquet``: ``truth`` (see
        :mod:`calibrant.benchmark.pool` for the three), ``mean`` and ``sd`` of the estimates, ``bias``, ``rmse``, the
        95th percentile and the median over sets of the absolute error (``abs_p95``, ``abs_median``) and of the
        relative one (``rel_p95``, ``rel_median``), the 95th percentiles against the truth by labels (``label_…``), the
        share of estimates that are NaN, and seconds per estimate (shared work is charged to the first that
        needs it). All columns but the seconds are bit-for-bit equal for any number of processes and stops.

    Raises
    ------
    ValueError
        If the folder holds a run of another configuration, or another estimator under one of the names.
    ImportError
        Without polars (extra ``cli``).

    See Also
    --------
    calibrant.benchmark.summary : Medians over distributions, with standard errors.
    calibrant.benchmark.predict : Only the predictions, for estimators that are added later.
    calibrant.benchmark.Config : Configuration of the experiment.

    References
    ----------
    Posocco & Bonnefoy (2021), *Estimating Expected Calibration Errors*, §5.

    Examples
    --------
    >>> import tempfile
    >>> from calibrant import Binned
    >>> from calibrant.benchmark import Config, run
    >>> few = {"classes": (2,), "dimensions": (2,), "models": ("bayes",), "mixtures": 1, "trainings": 1}
    >>> tiny = Config(**few, pool=1000, rows=600, sizes=(30,), sets=20)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = run(out=folder, config=tiny, estimators={"ece": Binned(10)}, n_jobs=1, progress=False)
    >>> sorted(results["notion"]), results["size"].to_list()
    (['classwise', 'confidence'], [30, 30])
    """
    config = _config(mode, seed, quick) if config is None else config
    entries = {**paper_curves(config.mode), **OURS} if estimators is None else as_entries(estimators)
    folder = _folder(out, config, quick)
    work = dict.fromkeys(config.shuffled, definitions_of(entries))
    read = partial(_read_one, folder, config, entries, keep_predictions)
    cells = len(work) * len(config.sizes) * len(NOTIONS)
    experiment = Experiment("benchmark", config.to_dict(), work, read, KEYS, cells)
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
    """Predict and keep the samples of :func:`run`, which then evaluates estimators without predicting again.

    Returns
    -------
    Path
        The folder of the run.

    See Also
    --------
    calibrant.benchmark.run : Predicts and evaluates.

    Examples
    --------
    >>> import tempfile
    >>> from calibrant.benchmark import Config, predict
    >>> few = {"classes": (2,), "dimensions": (2,), "models": ("bayes",), "mixtures": 1, "trainings": 1}
    >>> tiny = Config(**few, pool=1000, rows=600, sizes=(30,), sets=20)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     predict(out=folder, config=tiny, n_jobs=1, progress=False).name == folder.rpartition("/")[2]
    True
    """
    config = _config(mode, seed, quick) if config is None else config
    jobs, folder = check_jobs(n_jobs), _folder(out, config, quick)
    store = Store.open(folder, config.to_dict())
    missing = [d for d in config.shuffled if not store.predictions(d).exists()]
    spread(partial(_predict_one, store, config), missing, jobs, "predict", progress=progress)
    return folder


document(predict, run)


def forget(out: str | os.PathLike[str], names: list[str]) -> None:
    """Delete the results of some estimators from the folder of a run, so that the next run recomputes them.

    Parameters
    ----------
    out : path
        The folder of the run.
    names : list of str
        Names of the estimators.

    See Also
    --------
    calibrant.benchmark.run : Computes missing results.

    Examples
    --------
    >>> import tempfile
    >>> from calibrant import Binned
    >>> from calibrant.benchmark import Config, forget, load, run
    >>> few = {"classes": (2,), "dimensions": (2,), "models": ("bayes",), "mixtures": 1, "trainings": 1}
    >>> tiny = Config(**few, pool=1000, rows=600, sizes=(30,), sets=20)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = run(out=folder, config=tiny, estimators={"a": Binned(5), "b": Binned(9)}, n_jobs=1, progress=False)
    ...     forget(folder, ["a"])
    ...     load(folder)["estimator"].unique().to_list()
    ['b']
    """
    need_polars()
    Store.existing(out).forget(names)


def _read_one(
    folder: Path, config: Config, entries: Entries, keep: bool, distribution: Distribution, names: list[str]
) -> pl.DataFrame:
    """Run both stages of one distribution for the named estimators."""
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


def _config(mode: str, seed: int, quick: bool) -> Config:
    return Config.quick(mode, seed) if quick else Config(mode=mode, seed=seed)


def _folder(out: str | os.PathLike[str] | None, config: Config, quick: bool) -> Path:
    return Path(f"calibrant-benchmark-{config.mode}{'-quick' if quick else ''}" if out is None else out)


def to_frame(rows: Iterable[Row]) -> pl.DataFrame:
    """Convert rows to a frame with the columns and types of the results."""
    need_polars()
    import polars as pl

    kinds = {c: pl.String if c in _TEXT else pl.Int64 if c in _WHOLE else pl.Float64 for c in COLUMNS}
    return pl.DataFrame(list(rows), schema=kinds)


def load(out: str | Path) -> pl.DataFrame:
    """Load the results from the folder of a run, finished or not.

    Parameters
    ----------
    out : path
        The folder of the run.

    Returns
    -------
    polars.DataFrame
        The rows that :func:`run` returns, for the finished parts.

    Raises
    ------
    ValueError
        If the folder has no results yet.

    See Also
    --------
    calibrant.benchmark.run : Computes the results.
    calibrant.benchmark.summary : Medians over distributions.

    Examples
    --------
    >>> import tempfile
    >>> from calibrant import Binned
    >>> from calibrant.benchmark import Config, load, run
    >>> few = {"classes": (2,), "dimensions": (2,), "models": ("bayes",), "mixtures": 1, "trainings": 1}
    >>> tiny = Config(**few, pool=1000, rows=600, sizes=(30,), sets=20)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = run(out=folder, config=tiny, estimators={"ece": Binned(10)}, n_jobs=1, progress=False)
    ...     load(folder).equals(results)
    True
    """
    need_polars()
    return Store(Path(out)).load(KEYS)


def summary(results: pl.DataFrame | str | Path, *, resamples: int = _RESAMPLES, seed: int = 0) -> pl.DataFrame:
    """Compute medians of all measures over distributions, with standard errors, by estimator, notion and size.

    Parameters
    ----------
    results : DataFrame or path
        Results returned by :func:`calibrant.benchmark.run`, its ``results.parquet``, or the folder of a run, finished
        or not.
    resamples : int, default 200
        Number of bootstrap resamples behind a standard error.
    seed : int, default 0
        Seed of the resamples.

    Returns
    -------
    polars.DataFrame
        One row for each mode, notion, size and estimator: ``distributions`` (their number), and for ``rel_p95``,
        ``rel_median``, ``abs_p95``, ``abs_median``, ``bias`` and ``rmse`` the median and, as ``…_se``, its standard
        error. The bootstrap resamples mixtures, not distributions: the twelve of a mixture are not independent.
        Cells without a number are left out of a median.

    See Also
    --------
    calibrant.benchmark.run : Computes the results.
    calibrant.benchmark.load : Loads them from a folder.

    Examples
    --------
    >>> import tempfile
    >>> from calibrant import Binned
    >>> from calibrant.benchmark import Config, run, summary
    >>> few = {"classes": (2,), "dimensions": (2,), "models": ("bayes",), "mixtures": 1, "trainings": 1}
    >>> tiny = Config(**few, pool=1000, rows=600, sizes=(30,), sets=20)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = run(out=folder, config=tiny, estimators={"ece": Binned(10)}, n_jobs=1, progress=False)
    >>> summary(results)["distributions"].to_list()
    [1, 1]
    """
    need_polars()
    import polars as pl

    if isinstance(results, (str, Path)):
        path = Path(results)
        results = load(path) if path.is_dir() else pl.read_parquet(path)
    out: list[dict[str, Any]] = []
    for (mode, notion, size), cells in results.group_by("mode", "notion", "size"):
        names = sorted(cells["estimator"].unique())
        table = cells.select(*DISTRIBUTION, "estimator", *MEASURES).pivot(
            on="estimator", index=list(DISTRIBUTION), values=list(MEASURES)
        )
        table = table.sort(DISTRIBUTION)
        cluster = table.select(pl.struct(MIXTURE).rank("dense")).to_series().to_numpy().astype(np.int64) - 1
        columns = [f"{m}_{n}" for m in MEASURES for n in names]
        values = table.select(columns).to_numpy().astype(np.float64)
        rng = np.random.default_rng([seed, int(size)])
        middle, errors = _medians(values, cluster, resamples, rng)
        shape = (len(MEASURES), len(names))
        middle, errors = middle.reshape(shape), errors.reshape(shape)
        about = {"mode": mode, "notion": notion, "size": size, "distributions": table.height}
        for j, name in enumerate(names):
            measured = {m: float(middle[i, j]) for i, m in enumerate(MEASURES)}
            doubt = {f"{m}_se": float(errors[i, j]) for i, m in enumerate(MEASURES)}
            out.append({**about, "estimator": name, **measured, **doubt})
    return pl.DataFrame(out).sort("mode", "notion", "size", "estimator")


def _medians(
    values: FloatArray, cluster: AnyArray, resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Median of every column, and its standard error by resampling clusters of rows."""
    members = [np.flatnonzero(cluster == c) for c in range(int(cluster.max()) + 1)]
    drawn = rng.integers(len(members), size=(resamples, len(members)))
    medians = np.stack([_median(values[np.concatenate([members[c] for c in draw])]) for draw in drawn])
    return _median(values), np.asarray(medians.std(axis=0, ddof=1))


def _median(values: FloatArray) -> FloatArray:
    """Median of every column without its NaN; NaN if there are no other values."""
    if not np.isnan(values).any():
        return np.asarray(np.median(values, axis=0))
    columns = [column[~np.isnan(column)] for column in values.T]
    return np.array([np.median(c) if c.size else np.nan for c in columns])
