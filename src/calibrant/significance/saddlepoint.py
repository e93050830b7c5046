"""Far tails of sums of outcomes, by saddlepoint approximation: with rare outcomes they are far from normal."""

from __future__ import annotations

import numpy as np

from ..data.types import AnyArray, FloatArray

#: Where the tilt ends, in logits of the heaviest cell; and steps at most.
_STEEPEST, _STEPS = 60.0, 60
_LEAST = 1e-300


def upper_tails(trials: AnyArray, chance: FloatArray, total: FloatArray, unit: FloatArray | None = None) -> FloatArray:
    r"""``P(Σ_b u_b X_b ≥ total)``, (r,), of independent binomial X_b, (r, B), for totals above their means.

    With the cumulant function :math:`K(t) = \sum_b n_b \log(1 - p_b + p_b e^{u_b t})` and :math:`K'(t) = k`

    .. math:: P = \Phi(-w) + \varphi(w) \Big(\frac1v - \frac1w\Big), \qquad
              w = \sqrt{2 (t k - K(t))}, \quad v = t \sqrt{K''(t)},

    for counts (no ``unit``) by Daniels' second form for lattices, :math:`v = (1 - e^{-t}) \sqrt{K''(t)}`; never above
    Chernoff's bound :math:`e^{-w^2 / 2}`.

    Source: Lugannani & Rice (1980), *Saddle point approximation for the distribution of the sum of independent random
    variables*; Daniels (1987), *Tail probability approximations*.
    """
    from scipy.special import expit, logit, ndtr

    n = np.where(chance > 0, trials, 0.0)
    u = np.ones(n.shape) if unit is None else unit / np.maximum(unit.max(axis=-1, keepdims=True), _LEAST)
    k = total if unit is None else total / np.maximum(unit.max(axis=-1), _LEAST)
    most = (n * u).sum(axis=-1)
    sure = np.exp((n * np.log(np.where(chance > 0, chance, 1.0))).sum(axis=-1))
    out = np.where(k > most * (1 + 1e-9), 0.0, sure)
    inner = np.flatnonzero(k < most * (1 - 1e-9))
    if not inner.size:
        return np.asarray(out)
    n, u, k = n[inner], u[inner], k[inner]
    z = np.clip(logit(chance[inner]), -700.0, 700.0)
    low, high, t = np.zeros(len(k)), np.full(len(k), np.inf), np.zeros(len(k))
    for _ in range(_STEPS):
        tilted = expit(z + u * t[:, None])
        mean, slope = np.einsum("ij,ij,ij->i", n, u, tilted), np.einsum("ij,ij,ij,ij->i", n, u * u, tilted, 1 - tilted)
        short = mean < k
        low, high = np.where(short, t, low), np.where(short, high, t)
        step = np.divide(k - mean, slope, out=np.full(len(k), np.inf), where=slope > 0)
        t, before = t + step, t
        between = np.where(np.isfinite(high), (low + high) / 2, 2 * low + _STEEPEST)
        t = np.where((t > low) & (t < np.minimum(high, 2 * low + _STEEPEST)), t, between)
        if (np.abs(t - before) <= 1e-9 * (1 + t)).all():
            break
    tilted = expit(z + u * t[:, None])
    slope = np.einsum("ij,ij,ij,ij->i", n, u * u, tilted, 1 - tilted)
    # log(1 - p + p e^t) from log odds, which hold where a probability rounds to 1.
    cumulant = (n * (np.logaddexp(0.0, z + u * t[:, None]) - np.logaddexp(0.0, z))).sum(axis=-1)
    w = np.sqrt(2 * np.maximum(t * k - cumulant, _LEAST))
    v = (t if unit is not None else -np.expm1(-t)) * np.sqrt(slope)
    bound = np.exp(-(w**2) / 2)
    out[inner] = np.clip(ndtr(-w) + bound / np.sqrt(2 * np.pi) * (1 / np.maximum(v, _LEAST) - 1 / w), 0.0, bound)
    return np.asarray(out)
