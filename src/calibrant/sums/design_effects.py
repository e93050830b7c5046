"""What groups of rows have in common: how much more smooth sums of residuals vary than rough ones.

``parts`` of sums are, of each problem, five sums of weights (of squares of relative ones) times the design effects of
:func:`calibrant.data.dependence.design_parts`: the mean, those of the constant and of two cosines, and of rougher ones.
They add as the weights do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..data.types import FloatArray
from .field_checks import CheckedFields, need, need_shape


class Shared(NamedTuple):
    """Variances of sums of residuals of rows in groups, in units of what the effective sample size says.

    Attributes
    ----------
    rough : ndarray of shape (R,)
        Of sums in which what groups share cancels.
    smooth : ndarray of shape (R, 3)
        What is added to that in sums of the constant, ``cos πu`` and ``cos 2πu`` of the rank u.
    """

    rough: FloatArray
    smooth: FloatArray

    @classmethod
    def of(cls, sums: Any) -> Shared | None:
        """Of the problems of sums; None where rows are independent, or their sums do not know."""
        parts = getattr(sums, "parts", None)
        if parts is None:
            return None
        known = np.atleast_2d(parts)
        effects = known[:, 1:] / np.where(known[:, :1] > 0, known[:, :1], 1.0)
        rough = np.where(known[:, 0] > 0, effects[:, -1], 1.0)
        return cls(rough, np.maximum(effects[:, :-1] - rough[:, None], 0.0))


def added_parts(one: FloatArray | None, two: FloatArray | None) -> FloatArray | None:
    """Parts of the rows of both, of which either may have none."""
    return two if one is None else one if two is None else one + two


def written(parts: FloatArray | None) -> dict[str, Any]:
    """What is serialised of rows in groups."""
    return {} if parts is None else {"parts": parts.tolist()}


def held_parts(held: CheckedFields) -> FloatArray | None:
    """Inverse of :func:`written`."""
    return None if held.data.get("parts") is None else held.numbers("parts")


def check_parts(parts: FloatArray | None, shape: tuple[int, ...]) -> None:
    """ValueError unless parts can be those of sums of this many problems."""
    if parts is not None:
        need_shape((*shape, 5), parts=parts)
        need(parts >= 0, "parts must not be negative")
