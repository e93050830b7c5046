"""Convergence rates of canonical estimators at a fixed bandwidth: the paper's setting h = 0.5, many repeats."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from ..data.checks import check_int, check_positive
from ..data.problem import VectorProblem
from ..data.types import AnyArray, FloatArray
from ..estimators import DirichletKernel, SimplexBinned
from ..estimators.dirichlet import SampleRows
from ..estimators.norm import vector_power
from ..estimators.simplex_kernel import Simplex, around
from .canonical import PUBLISHED, CanonicalItem, VectorDistribution, evaluation_set
from .config import check_sizes
from .experiment import Experiment

if TYPE_CHECKING:
    import polars as pl

FORMAT = 1
SIZES = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
BANDWIDTH = 0.5
KERNELS = {name: DirichletKernel(BANDWIDTH, debias=debias) for name, debias in (
    ("plug-in", None), ("ratio", "ratio"), ("square", "square"), ("cross", "cross"),
)}  # fmt: skip
BINNED = {
    "binned-2-row": SimplexBinned(2, center="row"),
    "binned-5-row": SimplexBinned(5, center="row"),
    "binned-2": SimplexBinned(2),
}
_NORM = {"l1": 1.0, "squared": 2.0}
#: Binary logarithm of the number of vectors behind a limit, a Sobol sequence.
_LIMIT_BITS = 16


def run_convergence(
    out: str | os.PathLike[str],
    *,
    sizes: Sequence[int] = SIZES,
    repetitions: int = 10_000,
    weights: float = 1e10,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: bool = False,
) -> pl.DataFrame:
    """Compare repeated estimates on the paper's distributions at bandwidth h = 0.5 with their limit for n → ∞.

    Parameters
    ----------
    out : path
        Folder of the run; a stopped run resumes from the distributions and sizes that it has.
    sizes : sequence of int
        Numbers n of rows.
    repetitions : int, default 10000
        Samples of each size; fewer if they would need more than ``weights`` kernel weights, n² per sample.
    weights : float, default 1e10
    seed, n_jobs, progress
        See :func:`run_canonical`.

    Returns
    -------
    polars.DataFrame
        One row for each distribution, size, estimator and measure (``"l1"`` or ``"squared"``): the ``mean`` of
        ``repetitions`` estimates and its standard error ``se``; ``truth``; ``limit``, the estimator's limit for
        infinitely many rows, which its smoothing biases; ``bias`` = mean - limit; the mean squared errors of estimates
        against either, ``limit_mse`` and ``truth_mse``, and their standard errors ``…_se``; ``nan_share``.

    References
    ----------
    Popordanoska, Sayer & Blaschko (2022), §4.1 and the rates of §3.
    """
    check_sizes("sizes", tuple(sizes), 2)
    check_int("repetitions", repetitions, 2)
    check_int("seed", seed, 0)
    weights = check_positive("weights", weights)
    config = {
        "track": "convergence", "format": FORMAT, "sizes": list(sizes), "repetitions": repetitions,
        "weights": weights, "seed": seed, "bandwidth": BANDWIDTH, "versions": {"numpy": np.__version__},
    }  # fmt: skip
    items = [CanonicalItem(distribution, size) for size in sorted(sizes) for distribution in PUBLISHED]
    estimators = {name: repr(estimator) for name, estimator in (KERNELS | BINNED).items()}
    read = partial(_read, repetitions, weights, seed)
    keys = ("distribution", "size", "estimator", "measure")
    work = dict.fromkeys(items, estimators)
    return Experiment("convergence", config, work, read, keys).run(out, n_jobs, progress=progress)


def repeats(size: int, repetitions: int, weights: float) -> int:
    """Number of samples of a size."""
    return int(min(repetitions, max(2, weights // size**2)))


def estimates(problem: VectorProblem) -> dict[tuple[str, str], float]:
    """Estimates by all estimators, by (name, measure); kernels share one search for neighbours."""
    sample = Simplex.of(problem, KERNELS["plug-in"].eps)
    outcome = sample.one_hot()
    near = around(sample, outcome, BANDWIDTH, "data", outcome)
    out = {}
    for measure, norm in _NORM.items():
        for name, kernel in KERNELS.items():
            if name == "square" and norm == 1:
                continue
            seen = replace(near, second=None) if kernel.debias is None else near
            out[name, measure] = float(kernel._reduced(seen, SampleRows.of(sample), norm).power)
        for name, binned in BINNED.items():
            out[name, measure] = float(binned.power(problem, norm))
    return out


@cache
def limits(distribution: VectorDistribution, bits: int) -> dict[tuple[str, str], float]:
    """Limits of estimators for infinitely many rows: the true map smoothed over a Sobol sequence of vectors.

    Debiasing removes the bias of n rows, so all kernels share a limit except ``"cross"``: for squares it is
    ``E 2 d·(μ - f) - |d|²``, for L1 ``E sign(d)·(μ - f)``, with the smoothed gap d and the map μ.
    """
    probs = spread_out(distribution, bits)
    mean = distribution.curve(probs)
    rows = np.ones(len(probs))
    codes = np.zeros(len(probs), dtype=np.intp)
    sample = Simplex(probs, np.log(np.maximum(probs, KERNELS["plug-in"].eps)), codes, rows, True, float(len(probs)))
    gap = around(sample, mean, BANDWIDTH, "data").mean - probs
    out: dict[tuple[str, str], float] = {}
    for measure, norm in _NORM.items():
        seen = float(vector_power(gap, rows, norm))
        out |= {(name, measure): seen for name in KERNELS}
        for name, binned in BINNED.items():
            out[name, measure] = _binned_limit(binned, probs, mean, norm)
    real = mean - probs
    out["cross", "l1"] = float((np.sign(gap) * real).sum(axis=1).mean())
    out["cross", "squared"] = float((2 * gap * real - gap**2).sum(axis=1).mean())
    return out


def _binned_limit(binned: SimplexBinned, probs: FloatArray, mean: FloatArray, norm: float) -> float:
    """Limit of a binned estimator."""
    from ..estimators.simplex import simplex_cells

    if not isinstance(binned.n_bins, int):
        raise TypeError(f"only a fixed number of cuts has a limit; got {binned!r}")
    home = simplex_cells(probs, binned.n_bins, np.finfo(float).eps)
    size = np.bincount(home)

    def of_cells(values: FloatArray) -> FloatArray:
        return np.stack([np.bincount(home, column) for column in values.T], axis=1)[home] / size[home, None]

    centre = probs if binned.center == "row" else of_cells(probs)
    return float(vector_power(of_cells(mean) - centre, np.ones(len(probs)), norm))


def spread_out(distribution: VectorDistribution, bits: int) -> FloatArray:
    """Quasi-random vectors, ``2**bits`` of them, of one of the paper's distributions."""
    from scipy.stats import qmc

    k = distribution.n_classes
    cuts = np.sort(qmc.Sobol(k - 1, rng=np.random.default_rng(7)).random_base2(bits), axis=1)
    ends = np.zeros((len(cuts), 1))
    uniform = np.diff(np.hstack([ends, cuts, ends + 1]), axis=1)
    return distribution.sharpened(np.maximum(uniform, np.finfo(float).tiny))


def _read(repetitions: int, weights: float, seed: int, item: CanonicalItem, names: list[str]) -> pl.DataFrame:
    """Rows of results of one item for the named estimators."""
    import polars as pl

    count = repeats(item.size, repetitions, weights)
    found = [estimates(evaluation_set(item, number, seed)) for number in range(count)]
    seen, truths = limits(item.distribution, _LIMIT_BITS), item.distribution.canonical_truths
    rows = []
    for (name, measure), limit in seen.items():
        if name not in names or (name, measure) not in found[0]:
            continue
        values = np.array([one[name, measure] for one in found])
        known = values[~np.isnan(values)]
        rows.append(
            {
                "distribution": item.distribution.name,
                "n_classes": item.distribution.n_classes,
                "size": item.size,
                "estimator": name,
                "measure": measure,
                "repetitions": count,
                **_described(known, limit, truths[measure].value),
                "nan_share": 1 - known.size / values.size,
            }
        )
    return pl.DataFrame(rows)


def _described(values: FloatArray, limit: float, truth: float) -> dict[str, float]:
    """Mean and mean squared errors with their standard errors; NaN without values."""
    n = max(values.size, 1)

    def mean_of(each: AnyArray) -> tuple[float, float]:
        return (float(each.mean()), float(each.std() / np.sqrt(n))) if each.size else (float("nan"), float("nan"))

    mean, se = mean_of(values)
    out = {"mean": mean, "se": se, "limit": limit, "truth": truth, "bias": mean - limit}
    for name, to in (("limit", limit), ("truth", truth)):
        out[f"{name}_mse"], out[f"{name}_mse_se"] = mean_of((values - to) ** 2)
    return out


def rate(sizes: AnyArray, errors: FloatArray, se: FloatArray) -> tuple[float, float]:
    """Exponent a of ``errors ≈ c · n^a``, by weighted least squares on the errors, and its standard error.

    Errors may have any sign, so means that are 0 up to noise are treated correctly; NaN for fewer than three.
    """
    from scipy.optimize import curve_fit

    sizes, errors, se = (np.asarray(v, dtype=np.float64) for v in (sizes, errors, se))
    used = np.isfinite(errors) & (se > 0)
    if used.sum() < 3:
        return float("nan"), float("nan")
    sizes, errors, se = sizes[used], errors[used], se[used]
    scale = sizes[0]

    def power(n: AnyArray, c: float, a: float) -> AnyArray:
        return np.asarray(c * (n / scale) ** a)

    fitted, covariance = curve_fit(power, sizes, errors, p0=(errors[0], -1.0), sigma=se, absolute_sigma=True)
    # Where a power law does not fit, its slope is less certain than the noise says.
    excess = (((errors - power(sizes, *fitted)) / se) ** 2).sum() / (len(sizes) - 2)
    return float(fitted[1]), float(np.sqrt(covariance[1, 1] * max(excess, 1.0)))
