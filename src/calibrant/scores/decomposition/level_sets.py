"""Cells of rows that were told alike: small, and never parting rows that were told the same."""

from __future__ import annotations

import numpy as np

from ...data.types import FloatArray, IntArray

#: Rows of a cell: from so many to less than twice as many, where rows are told different things.
LEAST = 10


def level_sets(told: FloatArray, least: int = LEAST) -> IntArray:
    """Cell of each row, (n,), by halving the widest column, (n, K), again and again.

    All cells are halved side by side, each between the two different values that are nearest its middle row, until it
    has fewer than ``2 least`` rows or they are all equal. Cost O(n (K + log n)) a halving, of some ``log2(n / least)``.
    """
    cell = np.zeros(len(told), dtype=np.intp)
    rows, number = np.arange(len(told)), 1
    while rows.size:
        rows = rows[np.argsort(cell[rows], kind="stable")]
        start = np.flatnonzero(np.diff(cell[rows], prepend=-1))
        size = np.diff(start, append=rows.size)
        inside = told[rows]
        width = np.maximum.reduceat(inside, start) - np.minimum.reduceat(inside, start)
        halved = (size >= 2 * least) & (width.max(axis=1) > 0)
        value = inside[np.arange(rows.size), np.repeat(width.argmax(axis=1), size)]
        kept = np.repeat(halved, size)
        rows, value = rows[kept], value[kept]
        size = size[halved]
        if not rows.size:
            break
        start = np.cumsum(size) - size
        which = np.repeat(np.arange(size.size), size)
        order = np.lexsort((value, which))
        rows, value = rows[order], value[order]
        place = np.arange(rows.size) - start[which]
        between = (place > 0) & (np.diff(value, prepend=np.nan) != 0)
        off = np.where(between, np.abs(2 * place - size[which]), 2 * rows.size)
        best = np.flatnonzero(off == np.minimum.reduceat(off, start)[which])
        first = best[np.unique(which[best], return_index=True)[1]]
        upper = np.arange(rows.size) >= first[which]
        cell[rows[upper]] = number + which[upper]
        number += size.size
    return cell
