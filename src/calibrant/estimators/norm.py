"""The p-norm of gaps, and the combination of the errors of several problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np

from ..data.checks import check_norm, check_number
from ..data.types import FloatArray

#: Above this p, powers of small errors underflow: norms are then computed directly, not through powers.
LARGE_NORM = 32.0


def is_linear(norm: float) -> bool:
    """Whether errors are used in place of their p-th powers: for p = 1, and for p > 32 where powers would underflow."""
    return norm == 1 or norm > LARGE_NORM


@overload
def to_power(error: float, norm: float) -> float: ...
@overload
def to_power(error: FloatArray, norm: float) -> FloatArray: ...
def to_power(error: float | FloatArray, norm: float) -> float | FloatArray:
    """Raise an error to the power p, as returned by :meth:`Estimator.power` and ``read``.

    The result is ``errorᵖ``, or the error itself for p > 32, including ∞.

    Parameters
    ----------
    error : float or ndarray
        Errors.
    norm : float ≥ 1
        The power p.

    Returns
    -------
    float or ndarray
        Powers, of the shape of ``error``.

    See Also
    --------
    calibrant.estimators.CellEstimator : Base class of estimators that read sums.

    Notes
    -----
    Cost O(1) per number.

    Examples
    --------
    >>> from calibrant.estimators import to_power
    >>> to_power(0.5, 2), to_power(0.5, float("inf"))
    (0.25, 0.5)
    """
    check_norm(norm)
    if not isinstance(error, (float, np.ndarray)):
        error = check_number("error", error, least=0)
    if is_linear(norm):
        return error
    with np.errstate(over="ignore"):
        powered = np.asarray(error) ** norm
    return float(powered) if isinstance(error, float) else powered


def large_norm(size: FloatArray, weight: FloatArray, norm: float) -> FloatArray:
    """``(Σ w size^p / Σ w)^(1/p)`` over the last axis for p > 32, with the largest size factored out; inf: maximum."""
    largest = np.where(weight > 0, size, 0.0).max(axis=-1, initial=0.0)
    total = weight.sum(axis=-1)
    if np.isinf(norm):
        return np.where(total > 0, largest, np.nan)
    ratio = size / np.where(largest > 0, largest, 1.0)[..., None]
    with np.errstate(invalid="ignore", under="ignore"):
        mean = (weight * ratio**norm).sum(axis=-1) / np.where(total > 0, total, np.nan)
    return np.asarray(largest * mean ** (1 / norm))


def mean_power(gap: FloatArray, weight: FloatArray, norm: float) -> FloatArray:
    """``Σ w |gap|^p / Σ w`` over the last axis where w > 0 (its root for p > 32); NaN without weight."""
    used = weight > 0
    if not used.all():  # masking costs as much as all the rest
        gap, weight = np.where(used, gap, 0.0), np.where(used, weight, 0.0)
    size = np.abs(gap)
    if norm > LARGE_NORM:
        return large_norm(size, weight, norm)
    if norm != 1:
        size = size**norm
    total = weight.sum(axis=-1)
    with np.errstate(invalid="ignore"):
        return np.asarray((weight * size).sum(axis=-1) / np.where(total > 0, total, np.nan))


def vector_power(gap: FloatArray, mass: FloatArray, norm: float, share: FloatArray | None = None) -> FloatArray:
    """``Σ_j m_j ‖gap_j‖_p^p / Σ m`` over the last two axes; its root for p > 32.

    With ``share``, whose vectors sum to 1: ``Σ_j m_j Σ_c share_jc |gap_jc|^p / Σ m``.
    """
    size = np.abs(gap)
    if norm > LARGE_NORM:
        # Σ_j m_j ‖gap_j‖_p^p / Σ m is K times the mean over all components.
        k = 1.0 if np.isinf(norm) or share is not None else gap.shape[-1]
        flat = size.reshape(*size.shape[:-2], -1)
        weight = mass[..., None] * (np.ones(gap.shape[-1]) if share is None else share)
        return np.asarray(large_norm(flat, weight.reshape(*weight.shape[:-2], -1), norm) * k ** (1 / norm))
    total = mass.sum(axis=-1)
    with np.errstate(invalid="ignore"):
        each = size**norm if share is None else share * size**norm
        return np.asarray((mass * each.sum(axis=-1)).sum(axis=-1) / np.where(total > 0, total, np.nan))


def root(power: float, norm: float) -> float:
    """Convert a p-th power to an error; the root of a negative (debiased) power is 0."""
    if is_linear(norm):
        return power
    return float(np.maximum(power, 0.0) ** (1 / norm))


def largest_error(n_classes: int, norm: float, average: str) -> float:
    """Largest possible combined error of the K classes of a matrix: ``(2 / K)^(1/p)``, 1 for their maximum.

    ``|P(o_k = 1 | s_k) - s_k|`` is at most 1, and its mean at most that of ``|o_k - s_k|``, which sums to
    ``2 (1 - s_y) ≤ 2`` over the classes of a row.
    """
    together = average != "max" and not np.isinf(norm)
    return float((2 / n_classes) ** (1 / norm)) if together and n_classes > 2 else 1.0


def combine(
    powers: Sequence[float] | FloatArray,
    shares: Sequence[float],
    norm: float,
    average: str,
    exclusive: bool = False,
) -> float:
    """One error from the p-th powers of several problems; see :class:`calibrant.notions.Classwise` for ``average``.

    Problems without a number (no data) are omitted and the shares of the others are rescaled. ``exclusive`` problems
    are the classes of a matrix; their error is limited to the largest possible one.
    """
    if len(powers) == 1:
        return root(float(powers[0]), norm)
    values = np.asarray(powers, dtype=np.float64)[:, None]
    return float(combine_draws(values, shares, norm, average, exclusive)[0])


def combine_draws(
    samples: Sequence[FloatArray] | FloatArray,
    shares: Sequence[float],
    norm: float,
    average: str,
    exclusive: bool = False,
) -> FloatArray:
    """:func:`combine` for each draw of samples (R, n_draws)."""
    values = np.stack(list(samples), axis=-1)
    known = ~np.isnan(values)
    if values.shape[-1] == 1:
        return roots(values[..., 0], norm)
    weight, values = np.asarray(shares) * known, np.nan_to_num(values)
    total = weight.sum(axis=-1, keepdims=True)
    weight = weight / np.where(total > 0, total, np.nan)  # NaN where no problem has a number
    if average == "max":
        error = np.where(known.any(axis=-1), roots(values, norm).max(axis=-1), np.nan)
    elif average != "power":
        error = (weight * roots(values, norm)).sum(axis=-1)
    elif norm > LARGE_NORM:
        error = large_norm(values, weight, norm)
    else:
        error = roots((weight * values).sum(axis=-1), norm)
    return np.minimum(error, largest_error(values.shape[-1], norm, average)) if exclusive else error


def roots(powers: FloatArray, norm: float) -> FloatArray:
    """:func:`root` of an array."""
    return np.asarray(powers if is_linear(norm) else np.maximum(powers, 0) ** (1 / norm))
