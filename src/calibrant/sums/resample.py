"""Samples drawn anew of many problems: what they share with the problem that each is drawn from."""

from __future__ import annotations

import numpy as np

from ..data.types import AnyArray


def as_often(values: AnyArray, rows: AnyArray) -> AnyArray:
    """What is known of one problem (m,), or of each of many (r, m), for all their ``rows``, one problem after another.

    ``rows`` (R, …) are r equal runs, and the result is (R, m).
    """
    each = values.reshape(-1, values.shape[-1])
    return np.repeat(each, len(rows) // len(each), axis=0)


def number_as_often(values: AnyArray | float, rows: AnyArray) -> AnyArray:
    """:func:`as_often` for a number of each problem, (R,)."""
    each = np.reshape(values, -1)
    return np.repeat(each, len(rows) // len(each))
