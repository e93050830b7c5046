"""Stage 2: evaluates all estimators on all evaluation sets of one distribution; their errors become rows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..data.checks import check_norm
from ..data.problem import TILE, Problem
from ..data.types import AnyArray, FloatArray
from ..estimators import Density, EmpiricalBayes, Estimator
from ..estimators.names import as_estimator
from ..estimators.norm import is_linear
from .config import Config, Distribution
from .curves import Entry
from .pool import NOTIONS, Pool, truth_of

Row: TypeAlias = dict[str, Any]


def read_pool(config: Config, distribution: Distribution, pool: Pool, entries: Mapping[str, Entry]) -> list[Row]:
    """One row for each estimator, size and notion; estimates are paired, as all estimators get the same sets."""
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
    n_classes = distribution.classes
    for size in config.sizes:
        rows = config.rows_of(size)
        estimates = {(notion, name): np.empty(len(rows)) for notion in NOTIONS for name in entries}
        seconds = dict.fromkeys(estimates, 0.0)
        together = max(1, TILE // size)
        for a in range(0, len(rows), together):
            part = slice(a, a + together)
            sets = rows[part]
            problems = [samples(pool.scores[sets, k], pool.labels[sets] == k, (0.0, 1.0)) for k in range(n_classes)]
            problems.append(samples(confidence[sets], correct[sets], (1 / n_classes, 1.0)))
            for notion, some in (("classwise", problems[:-1]), ("confidence", problems[-1:])):
                for name, entry in entries.items():
                    start = time.process_time()
                    estimates[notion, name][part] = estimates_of(entry, some)
                    seconds[notion, name] += time.process_time() - start
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
                        **statistics(estimates[notion, name], truth.truth, truth.label_truth),
                        "seconds": seconds[notion, name] / config.sets,
                    }
                )
    return out


def samples(scores: FloatArray, outcomes: AnyArray, domain: tuple[float, float]) -> Problem:
    """Samples (R, n) side by side, so that estimators share sums."""
    return Problem.samples(scores, outcomes, domain=domain, eps=float(np.finfo(scores.dtype).eps))


def read_samples(
    estimator: str | Estimator,
    scores: Any,
    outcomes: Any,
    *,
    weights: Any = None,
    domain: tuple[float, float] = (0.0, 1.0),
    norm: float = 1,
) -> FloatArray:
    """Estimate the calibration errors of many samples at once, as :func:`calibrant.calibration_error` does for one.

    Parameters
    ----------
    estimator : str or Estimator
        Any estimator for one score per row.
    scores : array-like of shape (R, n)
        R samples of n scores in [0, 1].
    outcomes : array-like of shape (R, n)
        Outcomes, 0 or 1.
    weights : array-like of shape (R, n) or (n,), optional
        Non-negative weights; those of a sample count repeats if all of them are whole numbers.
    domain : (float, float), default (0, 1)
        Range of the scores: (1/K, 1) for confidences of K classes.
    norm : float, default 1
        The power p ≥ 1 of the error, or inf for the maximum.

    Returns
    -------
    ndarray of shape (R,)
        ``calibration_error(outcomes[i], scores[i], estimator=estimator, norm=norm)`` for every sample.

    Raises
    ------
    ValueError, TypeError
        For ragged input, values outside [0, 1], outcomes other than 0 and 1, or shapes that differ.

    See Also
    --------
    calibrant.calibration_error : The same for one sample.
    calibrant.benchmark.run : The benchmark of estimators.

    Notes
    -----
    Cost: that of the sums and of one estimate from all of them; a few microseconds per sample of thirty rows.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> from calibrant.benchmark import read_samples
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random((200, 30))
    >>> y = rng.random((200, 30)) < p
    >>> errors = read_samples(cal.EmpiricalBayes(), p, y)
    >>> bool(abs(errors[7] - cal.calibration_error(y[7], p[7])) < 1e-12)
    True
    """
    estimator = as_estimator(estimator, EmpiricalBayes()) if isinstance(estimator, str) else estimator
    if not isinstance(estimator, Estimator) or "scalar" not in estimator._serves:
        raise TypeError(f"estimator must support single scores, such as Binned(15); got {estimator!r}")
    s, o = _table("scores", scores), _table("outcomes", outcomes)
    eps = float(np.finfo(s.dtype if s.dtype.kind == "f" else np.float64).eps)
    if s.dtype not in (np.float32, np.float64):
        s = s.astype(np.float32 if s.dtype == np.float16 else np.float64)
    if o.shape != s.shape:
        raise ValueError(f"outcomes must have the shape of scores, {s.shape}; got {o.shape}")
    low, high = (float(v) for v in domain)
    if not 0 <= low < high <= 1:
        raise ValueError(f"domain must be two numbers with 0 <= low < high <= 1; got {domain!r}")
    if s.size and not (np.isfinite(s).all() and s.min() >= 0 and s.max() <= 1):
        raise ValueError(f"scores must lie in [0, 1]; got {s.min()!s} to {s.max()!s}")
    if not ((o == 0) | (o == 1)).all():
        raise ValueError("outcomes must be 0 or 1; got other values")
    p = check_norm(norm)
    about: dict[str, Any] = {"domain": (low, high), "eps": eps}
    if weights is None:
        return _roots(estimator._powers(Problem.samples(s, o, **about), p), p)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape not in (s.shape, s.shape[1:]):
        raise ValueError(f"weights must have the shape of scores, {s.shape}, or {s.shape[1:]}; got {w.shape}")
    if not (np.isfinite(w).all() and (w >= 0).all()):
        raise ValueError("weights must be finite and not negative")
    w = np.broadcast_to(w, s.shape)
    out: FloatArray = np.empty(len(s))
    whole = (w == np.floor(w)).all(axis=1)
    for some, integral in ((whole, True), (~whole, False)):
        if some.any():
            problems = Problem.samples(s[some], o[some], w[some], integral=integral, **about)
            out[some] = _roots(estimator._powers(problems, p), p)
    return out


def _table(name: str, values: Any) -> AnyArray:
    """Check a table (R, n) of numbers."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must have shape (R, n); got samples of unequal length") from error
    if array.ndim != 2:
        raise ValueError(f"{name} must be 2-D, R samples of n rows; got shape {array.shape}")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold numbers; got dtype {array.dtype}")
    return array


def _roots(powers: FloatArray, norm: float) -> FloatArray:
    """Errors from their p-th powers; negative powers give 0 unless they are errors already."""
    return powers if is_linear(norm) else np.asarray(np.maximum(powers, 0.0) ** (1 / norm))


def estimates_of(entry: Entry, problems: Sequence[Problem]) -> FloatArray:
    """The entry's estimate for every set: ``(mean of errorᵖ)^(1/p)`` over the classes that have a number."""
    estimator = entry.estimator
    if entry.shared_bandwidth and isinstance(estimator, Density):
        h = estimator._widths(estimator.summarize(problems[0]))
        each = [estimator._read_with(estimator.summarize(one), h, entry.norm) for one in problems]
    else:
        each = [estimator._powers(one, entry.norm) for one in problems]
    stacked = np.stack(each)
    known = ~np.isnan(stacked)
    total = np.where(known, stacked, 0.0).sum(axis=0)
    mean = np.divide(total, known.sum(axis=0), out=np.full(total.shape, np.nan), where=known.any(axis=0))
    return _roots(np.asarray(mean), entry.norm)


def statistics(estimates: FloatArray, truth: float, label_truth: float) -> dict[str, float]:
    """Summary of the estimates of one cell; NaN without estimates, relative errors also without a positive truth."""
    known = estimates[~np.isnan(estimates)]
    nan = float("nan")
    out = {"nan_share": 1 - known.size / estimates.size}
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
