"""Results as one frame: pieces put together, and their summary over distributions. Needs polars (extra ``cli``)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.types import AnyArray, FloatArray
from .read import STATISTICS, Row
from .storage import Store, need_polars

if TYPE_CHECKING:
    import polars as pl

#: What identifies a distribution, and the mixture it comes from.
DISTRIBUTION = ("mode", "seed", "classes", "dimensions", "mixture", "training", "model")
MIXTURE = ("seed", "classes", "dimensions", "mixture")
#: Columns of the results, in order, and by which they are sorted.
KEYS = (*DISTRIBUTION, "notion", "size", "estimator")
COLUMNS = (*KEYS, "norm", "truth", "posterior_truth", "label_truth", *STATISTICS, "nan_share", "seconds")
_TEXT = frozenset({"mode", "model", "notion", "estimator"})
_WHOLE = frozenset({"seed", "classes", "dimensions", "mixture", "training", "size"})
#: What a summary is made of.
MEASURES = ("rel_p95", "rel_median", "abs_p95", "abs_median", "bias", "rmse")
_RESAMPLES = 200


def to_frame(rows: Iterable[Row]) -> pl.DataFrame:
    """Rows as a frame with the columns and types of the results."""
    need_polars()
    import polars as pl

    kinds = {c: pl.String if c in _TEXT else pl.Int64 if c in _WHOLE else pl.Float64 for c in COLUMNS}
    return pl.DataFrame(list(rows), schema=kinds)


def load(out: str | Path) -> pl.DataFrame:
    """Results found in the folder of a run, finished or not, sorted."""
    need_polars()
    return Store(Path(out)).load(KEYS)


def summary(results: pl.DataFrame | str | Path, *, resamples: int = _RESAMPLES, seed: int = 0) -> pl.DataFrame:
    """Medians over distributions of every measure, with standard errors, for each estimator, notion and size.

    Parameters
    ----------
    results : DataFrame or path
        What :func:`calibrant.benchmark.run` returns, its ``results.parquet``, or the folder of a run, finished or not.
    resamples : int, default 200
        Bootstrap resamples behind a standard error.
    seed : int, default 0

    Returns
    -------
    polars.DataFrame
        One row for each mode, notion, size and estimator: ``distributions`` (how many), and for ``rel_p95``,
        ``rel_median``, ``abs_p95``, ``abs_median``, ``bias`` and ``rmse`` the median and, as ``…_se``, its standard
        error. It resamples mixtures, not distributions: the twelve of a mixture are not independent. Cells
        without a number are left out of a median.
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
    """Median of every column, NaN left out; NaN where there is nothing else."""
    if not np.isnan(values).any():
        return np.asarray(np.median(values, axis=0))
    columns = [column[~np.isnan(column)] for column in values.T]
    return np.array([np.median(c) if c.size else np.nan for c in columns])
