"""What could have been the default: priors and numbers of cosines that `prior.py` compares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibrant.errors import Component, Prior, laplace
from calibrant.errors.empirical_bayes import TYPICAL, TYPICAL_CONFIDENCE

SHIPPED = "shipped"


@dataclass(frozen=True)
class Candidate:
    """A prior of classes and one of confidences, and the number of cosines for a sample of size n."""

    about: str
    of_classes: Prior
    of_confidences: Prior
    terms: Callable[[float], int] = laplace.n_terms

    def prior(self, notion: str) -> Prior:
        """The prior of a notion."""
        return self.of_confidences if notion == "confidence" else self.of_classes


def former_terms(n: float) -> int:
    """``⌈2 n^(1/4)⌉ + 2``."""
    return int(np.ceil(2 * min(max(n, 1.0), 1e7) ** 0.25)) + 2


def roots(factor: float, most: int) -> Callable[[float], int]:
    """``⌈factor · n^(1/3)⌉``, at most so many, and no fewer than before beyond."""
    return lambda n: max(min(most, int(np.ceil(factor * np.cbrt(max(n, 1.0))))), former_terms(n))


#: The priors before these trials.
FORMER = Prior(
    (
        Component(0.08, 1.0, 0.02),
        Component(0.35, 0.4, 0.33),
        Component(0.65, 1.0, 0.35),
        Component(1.2, 1.5, 0.22),
        Component(2.5, 1.5, 0.06),
        Component(8.0, 1.5, 0.02),
    ),
    intercept=0.25,
    slope=0.3,
)
FORMER_CONFIDENCE = Prior(
    (
        Component(0.6, 1.0, 0.30),
        Component(0.65, 2.5, 0.31),
        Component(1.2, 2.5, 0.29),
        Component(2.5, 1.5, 0.08),
        Component(8.0, 1.5, 0.02),
    ),
    intercept=0.25,
    slope=0.3,
)
#: Eleven components by hand.
ELEVEN = Prior(
    (
        Component(0.08, 1.0, 0.03),
        Component(0.3, 0.5, 0.275),
        Component(0.3, 1.5, 0.04),
        Component(0.65, 1.0, 0.285),
        Component(0.65, 0.5, 0.03),
        Component(0.65, 2.5, 0.05),
        Component(1.2, 1.5, 0.16),
        Component(1.2, 1.0, 0.03),
        Component(1.2, 2.5, 0.02),
        Component(2.5, 1.5, 0.06),
        Component(8.0, 1.5, 0.02),
    ),
    intercept=0.3,
    slope=0.4,
)

CANDIDATES = {
    "before": Candidate("before", FORMER, FORMER_CONFIDENCE, former_terms),
    "eleven": Candidate("eleven components by hand, 3 n^⅓ cosines", ELEVEN, ELEVEN, roots(3, 64)),
    "former cosines": Candidate("learnt, as many cosines as before", TYPICAL, TYPICAL_CONFIDENCE, former_terms),
    "two roots": Candidate("learnt, 2 n^⅓ cosines", TYPICAL, TYPICAL_CONFIDENCE, roots(2, 48)),
    "three roots": Candidate("learnt, 3 n^⅓ cosines", TYPICAL, TYPICAL_CONFIDENCE, roots(3, 64)),
}
