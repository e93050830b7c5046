"""Samples of rows in groups."""

import numpy as np
from scipy.stats import norm


def clustered(n_groups=30, size=8, seed=0, tau=1.0):
    """Groups, calibrated scores and outcomes that hang together within groups."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), size)
    seen, unseen = rng.normal(size=group.size), tau * rng.normal(size=n_groups)
    y = seen + unseen[group] + rng.normal(size=group.size) > 0
    return group, norm.cdf(seen / np.sqrt(1 + tau**2)), y.astype(int)


def several(n_groups=30, size=6, k=3, seed=0):
    """Groups, probabilities of K classes and labels, alike within groups."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), size)
    p = rng.dirichlet(np.ones(k), n_groups)[group] * 0.7 + 0.3 * rng.dirichlet(np.ones(k), group.size)
    u = np.where(rng.random(group.size) < 0.5, rng.random(n_groups)[group], rng.random(group.size))
    return group, p, (p.cumsum(axis=1) < u[:, None]).sum(axis=1).clip(0, k - 1)
