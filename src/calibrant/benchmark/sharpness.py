"""The paper's Figure 2b: bias of estimates of sharpness, the square of a frequency, at one point of the simplex."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln, softmax

from ..data.checks import check_int, check_positive
from ..data.types import FloatArray
from .canonical import CanonicalItem, published
from .config import check_sizes
from .convergence import spread_out
from .experiment import Experiment

if TYPE_CHECKING:
    import polars as pl

FORMAT = 2
SIZES = (10, 30, 100, 300, 1000, 3000)
#: The point at which frequencies are estimated, and the default bandwidth; the paper states 0.5.
POINT, BANDWIDTH = (0.55, 0.25, 0.15, 0.05), 0.05
ESTIMATORS = ("plug-in", "as printed", "square")
#: Samples drawn at a time (seeds depend on it); binary logarithm of the number of vectors for the kernel's limit.
_BLOCK, _LIMIT_BITS = 400_000, 20
#: Smallest share of weight on neighbours other than the nearest for which an unbiased square is computed.
_LEAST = 1e-6


def run_sharpness(
    out: str | os.PathLike[str],
    *,
    sizes: Sequence[int] = SIZES,
    repetitions: int = 10_000,
    bandwidth: float = BANDWIDTH,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
) -> pl.DataFrame:
    r"""Measure the bias of three estimators of ``‖E[y | f]‖²`` at one point, on the paper's distribution of 4 classes.

    With the published kernel's weights w of n samples around the point, ``Ê = Σ w y`` and ``s = Σ w²``:

    ``"plug-in"``
        ``Σ_c Ê_c²``.
    ``"as printed"``
        ``Σ_c (Ê_c² - Σ w² y_c) / (1 - Σ w² y_c)``, eq. 7 with y in the denominator as well.
    ``"square"``
        ``Σ_c (Ê_c² - Σ w² y_c) / (1 - s)``, which uses only pairs of different samples.

    Parameters
    ----------
    out : path
        Folder of the run; a stopped run resumes.
    sizes : sequence of int
        Numbers n of samples.
    repetitions : int, default 10000
    bandwidth : float, default 0.05
    seed, n_jobs, progress
        See :func:`run_canonical`.

    Returns
    -------
    polars.DataFrame
        One row for each size and estimator: ``mean`` over repetitions and its standard error ``se``; ``limit``, the
        kernel's limit for infinitely many samples; ``bias`` = mean - limit, free of the kernel's smoothing bias;
        ``truth``, ``‖E[y | f]‖²`` at the point; ``nan_share``.
    """
    check_sizes("sizes", tuple(sizes), 2)
    check_int("repetitions", repetitions, 2)
    check_int("seed", seed, 0)
    bandwidth = check_positive("bandwidth", bandwidth)
    config = {
        "track": "sharpness", "format": FORMAT, "sizes": list(sizes), "repetitions": repetitions, "seed": seed,
        "point": list(POINT), "bandwidth": bandwidth, "versions": {"numpy": np.__version__},
    }  # fmt: skip
    items = [CanonicalItem(published(len(POINT)), size) for size in sorted(sizes, reverse=True)]
    estimators = {name: name for name in ESTIMATORS}
    work = dict.fromkeys(items, estimators)
    read = partial(_read, repetitions, bandwidth, seed)
    return Experiment("sharpness", config, work, read, ("size", "estimator")).run(out, n_jobs, progress=progress)


def _read(repetitions: int, bandwidth: float, seed: int, item: CanonicalItem, names: list[str]) -> pl.DataFrame:
    """Rows of results of one size for the named estimators."""
    import polars as pl

    size = item.size
    values = simulate(size, repetitions, seed, bandwidth)
    limit = seen_at_most(bandwidth)
    truth = float((item.distribution.curve(np.asarray(POINT)) ** 2).sum())
    rows = []
    for name in names:
        each = values[:, ESTIMATORS.index(name)]
        known = each[~np.isnan(each)]
        mean, sd = (float(known.mean()), float(known.std())) if known.size else (float("nan"), float("nan"))
        rows.append(
            {
                "size": size,
                "estimator": name,
                "mean": mean,
                "se": sd / np.sqrt(max(known.size, 1)),
                "bias": mean - limit,
                "limit": limit,
                "truth": truth,
                "nan_share": 1 - known.size / each.size,
            }
        )
    return pl.DataFrame(rows)


def simulate(size: int, repetitions: int, seed: int, bandwidth: float = BANDWIDTH) -> FloatArray:
    """Simulate the estimates of all repetitions, (repetitions, 3)."""
    distribution = published(len(POINT))
    most = max(1, _BLOCK // size)
    out = np.empty((repetitions, len(ESTIMATORS)))
    for start in range(0, repetitions, most):
        count = min(most, repetitions - start)
        rng = np.random.default_rng(np.random.SeedSequence([seed, size, start]))
        f, y = distribution.draw(count * size, rng)
        out[start : start + count] = squares(
            _log_kernel(f, bandwidth).reshape(count, size), np.eye(len(POINT))[y].reshape(count, size, -1)
        )
    return out


def squares(log_kernel: FloatArray, outcome: FloatArray) -> FloatArray:
    """Compute the three estimates from log kernels (R, n) and outcomes (R, n, K); NaN without a second sample."""
    weight = softmax(log_kernel, axis=1)
    mean = np.einsum("rn,rnk->rk", weight, outcome)
    second = np.einsum("rn,rnk->rk", weight**2, outcome)
    plug_in = (mean**2).sum(axis=1)
    pairs = mean**2 - second
    free = 1 - second.sum(axis=1)
    printed = np.divide(pairs, 1 - second, out=np.full(pairs.shape, np.nan), where=1 - second > _LEAST)
    square = np.divide(pairs.sum(axis=1), free, out=np.full(len(free), np.nan), where=free > _LEAST)
    return np.column_stack([plug_in, printed.sum(axis=1), square])


@cache
def seen_at_most(bandwidth: float = BANDWIDTH) -> float:
    """``‖E[k y] / E[k]‖²``, the square of the kernel's limit for infinitely many samples, by a Sobol sequence."""
    distribution = published(len(POINT))
    f = spread_out(distribution, _LIMIT_BITS)
    weight = np.exp(_log_kernel(f, bandwidth))
    return float(((weight @ distribution.curve(f) / weight.sum()) ** 2).sum())


def _log_kernel(f: FloatArray, bandwidth: float) -> FloatArray:
    """Log density of Dirichlet(f / h + 1) at the point, for vectors (m, K)."""
    alpha = f / bandwidth
    return np.asarray(alpha @ np.log(POINT) - gammaln(alpha + 1).sum(axis=1) + gammaln(1 / bandwidth + f.shape[1]))
