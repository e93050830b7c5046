"""Second implementations, written to be read: loops over units and bins."""

from dataclasses import replace

import numpy as np

from calibrant.data.dependence import group_codes
from calibrant.sums import quantile_edges


def squared(y, s, unit, n_bins):
    """Mean over bins of equal counts of products of residuals of rows of different units."""
    total = 0.0
    inner = quantile_edges(s, None, n_bins, integral=True).values[1:-1]
    bins = np.searchsorted(inner, s, side="left")  # right-closed
    for rows in (np.flatnonzero(bins == j) for j in range(n_bins)):
        r, u = y[rows] - s[rows], unit[rows]
        apart = u[:, None] != u
        if apart.any():
            total += len(rows) / len(y) * (r[:, None] * r)[apart].sum() / apart.sum()
    return total


def influences_and_pairs(y, s, n_bins):
    """Of rows that are units: what each owes to its pairs, and the matrix of what each pair owes without gaps."""
    n = len(y)
    order = np.argsort(s, kind="stable")
    influence, pairs = np.zeros(n), np.zeros((n, n))
    for rows in np.array_split(order, n_bins):
        r, m = y[rows] - s[rows], len(rows)
        square = (r.sum() ** 2 - (r**2).sum()) / (m * (m - 1))
        for i, row in enumerate(rows):
            influence[row] = (2 * r[i] * (r.sum() - r[i]) / (m - 1) - square) / n
        centred = r - r.mean()
        pairs[np.ix_(rows, rows)] = 2 * np.outer(centred, centred) / (n * (m - 1))
    np.fill_diagonal(pairs, 0)
    return influence, pairs


def cluster_mean(d, w, unit):
    """Weighted mean and its standard error by sums over units, each over what the others weigh."""
    mean = (w * d).sum() / w.sum()
    e, share = (np.array([v[unit == u].sum() for u in np.unique(unit)]) / w.sum() for v in (w * (d - mean), w))
    return mean, np.sqrt((e**2 / (1 - share)).sum())


def in_groups(p, groups):
    """Predictions whose rows belong together."""
    return p if groups is None else replace(p, groups=group_codes(np.asarray(groups)))
