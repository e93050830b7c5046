"""Type aliases of the whole library."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.integer[Any]]
AnyArray: TypeAlias = NDArray[Any]
Label: TypeAlias = Any
RandomState: TypeAlias = int | np.random.Generator | None


class Interval(NamedTuple):
    """A closed interval; both ends are NaN if there is none.

    Attributes
    ----------
    low : float
        The lower end.
    high : float
        The upper end.

    See Also
    --------
    calibrant.results.Estimate : A result with an interval.

    Examples
    --------
    >>> from calibrant.results import Interval
    >>> low, high = Interval(0.1, 0.3)
    >>> low, high
    (0.1, 0.3)
    """

    low: float
    high: float
