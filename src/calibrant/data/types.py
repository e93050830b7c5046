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
    """A closed interval; both ends are NaN where none can be given."""

    low: float
    high: float
