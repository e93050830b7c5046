"""Many samples at once: the same numbers as the public estimators, hundreds of times cheaper a sample.

The experiment evaluates some ten million small samples with every estimator. A call costs more than its arithmetic
there, so readings of R samples of one size are computed together, from scores that are sorted once for all estimators.
Each function below is a second implementation of a public estimator; a test holds the two together. An estimator
without one is read sample by sample.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..._types import FloatArray
from ...errors.base import Estimator
from ...errors.norm import root
from .batch import Batch

Reader = Callable[[Any, Batch, float], FloatArray]
_READERS: dict[type[Estimator], Reader] = {}
F = TypeVar("F", bound=Reader)


def reads(kind: type[Estimator]) -> Callable[[F], F]:
    """Register a function ``(estimator, batch, norm) -> errorᵖ of shape (R,)`` (see :func:`.norm.to_power`)."""

    def register(function: F) -> F:
        _READERS[kind] = function
        return function

    return register


def powers(estimator: Estimator, batch: Batch, norm: float = 1) -> FloatArray:
    """``errorᵖ`` of every sample of the batch, shape (R,)."""
    reader = _READERS.get(type(estimator))
    if reader is not None:
        return reader(estimator, batch, norm)
    return np.array([estimator.power(problem, norm) for problem in batch.problems()])


def is_fast(estimator: Estimator) -> bool:
    """Whether the estimator has a batched form."""
    return type(estimator) in _READERS


__all__ = ["Batch", "is_fast", "powers", "reads", "root"]

# Each module registers its readers; they need `reads`, so they come last.
from . import adaptive as adaptive  # noqa: E402
from . import bayes as bayes  # noqa: E402
from . import binned as binned  # noqa: E402
from . import density as density  # noqa: E402
from . import models as models  # noqa: E402
from . import order as order  # noqa: E402
from . import residual as residual  # noqa: E402
