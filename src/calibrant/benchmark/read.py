"""Stage 2: every estimator reads every evaluation set of one distribution, and its errors become rows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._types import AnyArray, FloatArray, IntArray
from ..errors import Density
from .config import Config, Distribution
from .curves import Entry
from .fast import Batch, powers
from .fast.density import bandwidths, density_powers
from .pool import Pool
from .truth import NOTIONS, truth_of

#: Rows of evaluation sets that are worked on at a time, so that what is made of them stays in the cache.
_CACHED = 1 << 17


def read_pool(config: Config, distribution: Distribution, pool: Pool, entries: Mapping[str, Entry]) -> list[Row]:
    """One row for each estimator, size and notion. Readings are paired: every estimator sees the same sets."""
    about = {
        "mode": config.mode,
        "seed": config.seed,
        "classes": distribution.classes,
        "dimensions": distribution.dimensions,
        "mixture": distribution.mixture,
        "training": distribution.training,
        "model": distribution.model,
    }
    norms = {entry.norm for entry in entries.values()}
    truths = {(notion, norm): truth_of(pool.truth, notion, norm) for notion in NOTIONS for norm in norms}
    winner = pool.scores.argmax(axis=1)
    confidence = pool.scores[np.arange(len(winner)), winner]
    correct = winner == pool.labels
    out: list[Row] = []
    for size in config.sizes:
        rows = config.rows_of(size)
        readings = {(notion, name): np.empty(len(rows)) for notion in NOTIONS for name in entries}
        seconds = dict.fromkeys(readings, 0.0)
        together = max(1, _CACHED // size)
        for a in range(0, len(rows), together):
            part = slice(a, a + together)
            batches = (
                *(_batch(pool.scores[:, k], pool.labels == k, rows[part], 0.0) for k in range(distribution.classes)),
                _batch(confidence, correct, rows[part], 1 / distribution.classes),
            )
            for notion, problems in (("classwise", batches[:-1]), ("confidence", batches[-1:])):
                for name, entry in entries.items():
                    start = time.perf_counter()
                    readings[notion, name][part] = readings_of(entry, problems)
                    seconds[notion, name] += time.perf_counter() - start
        for notion in reversed(NOTIONS):
            for name, entry in entries.items():
                truth = truths[notion, entry.norm]
                out.append(
                    {
                        **about,
                        "notion": notion,
                        "size": size,
                        "estimator": name,
                        "norm": entry.norm,
                        "truth": truth.truth,
                        "posterior_truth": truth.posterior_truth,
                        "label_truth": truth.label_truth,
                        **statistics(readings[notion, name], truth.truth, truth.label_truth),
                        "seconds": seconds[notion, name] / config.sets,
                    }
                )
    return out


Row = dict[str, Any]


def _batch(scores: FloatArray, outcomes: AnyArray, rows: IntArray, low: float) -> Batch:
    return Batch.of(scores[rows], outcomes[rows], (low, 1.0))


def readings_of(entry: Entry, problems: tuple[Batch, ...]) -> FloatArray:
    """The entry's reading of every set: ``(mean over classes of errorᵖ)^(1/p)``, classes without a number left out."""
    estimator = entry.estimator
    if entry.shared_bandwidth and isinstance(estimator, Density):
        h = bandwidths(estimator, problems[0])
        if h is None:
            raise ValueError(f"shared_bandwidth needs Silverman's rule or a number; got {estimator!r}")
        each = [density_powers(estimator, batch, entry.norm, h) for batch in problems]
    else:
        each = [powers(estimator, batch, entry.norm) for batch in problems]
    stacked = np.stack(each)
    known = ~np.isnan(stacked)
    total = np.where(known, stacked, 0.0).sum(axis=0)
    mean = np.divide(total, known.sum(axis=0), out=np.full(total.shape, np.nan), where=known.any(axis=0))
    return np.asarray(mean if entry.norm == 1 else np.maximum(mean, 0.0) ** (1 / entry.norm))


def statistics(readings: FloatArray, truth: float, label_truth: float) -> dict[str, float]:
    """What is kept of the readings of one cell; NaN where no reading, or no positive truth, gives a number."""
    known = readings[~np.isnan(readings)]
    nan = float("nan")
    out = {"nan_share": 1 - known.size / readings.size}
    if known.size == 0:
        return out | dict.fromkeys(STATISTICS, nan)
    error = known - truth
    size, by_label = np.abs(error), np.abs(known - label_truth)
    p95, middle = (float(v) for v in np.quantile(size, [0.95, 0.5]))
    label_p95 = float(np.quantile(by_label, 0.95))
    return out | {
        "mean": float(known.mean()),
        "sd": float(known.std()),
        "bias": float(error.mean()),
        "rmse": float(np.sqrt((error**2).mean())),
        "abs_p95": p95,
        "abs_median": middle,
        "rel_p95": p95 / truth if truth > 0 else nan,
        "rel_median": middle / truth if truth > 0 else nan,
        "label_abs_p95": label_p95,
        "label_rel_p95": label_p95 / label_truth if label_truth > 0 else nan,
    }


STATISTICS = (
    "mean",
    "sd",
    "bias",
    "rmse",
    "abs_p95",
    "abs_median",
    "rel_p95",
    "rel_median",
    "label_abs_p95",
    "label_rel_p95",
)
