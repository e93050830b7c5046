"""What could have been the default: priors and numbers of cosines that `prior.py` compares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest import mock

import numpy as np

from calibrant.estimators import Component, Prior, empirical_bayes, laplace
from calibrant.estimators.empirical_bayes import TYPICAL, TYPICAL_CONFIDENCE


@dataclass(frozen=True)
class Candidate:
    """A prior of classes and one of confidences, and the number of cosines for a sample of size n."""

    about: str
    of_classes: Prior
    of_confidences: Prior
    terms: Callable[[float], int] = laplace.n_terms
    fewest: float = empirical_bayes._FEWEST

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Its number of cosines, and rows of a score that has a term of its own."""
        with (
            mock.patch.object(laplace, "n_terms", self.terms),
            mock.patch.object(empirical_bayes, "_FEWEST", self.fewest),
        ):
            yield

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

#: The largest evidence of all samples: weights by expectation and maximisation over thirty components, its largest ten.
EVIDENCE = Prior(
    (
        Component(2.5, 2.5, 0.084),
        Component(6.0, 2.5, 0.101),
        Component(0.65, 1.5, 0.040),
        Component(1.2, 1.5, 0.101),
        Component(6.0, 1.5, 0.111),
        Component(0.65, 1.0, 0.197),
        Component(1.2, 1.0, 0.110),
        Component(0.1, 0.5, 0.141),
        Component(0.3, 0.5, 0.022),
        Component(0.65, 0.5, 0.035),
    ),
    intercept=0.3,
    slope=0.4,
)
EVIDENCE_CONFIDENCE = Prior(
    (
        Component(6.0, 4.0, 0.160),
        Component(1.2, 2.5, 0.216),
        Component(2.5, 2.5, 0.064),
        Component(6.0, 2.5, 0.121),
        Component(0.65, 1.5, 0.063),
        Component(2.5, 1.5, 0.032),
        Component(0.1, 1.0, 0.040),
        Component(0.3, 1.0, 0.083),
        Component(0.1, 0.5, 0.083),
        Component(0.3, 0.5, 0.047),
    ),
    intercept=0.3,
    slope=0.4,
)
#: The smallest mean log relative error with a price on bias, from half of the sources (learn.py).
LEARNT = Prior(
    (
        Component(0.08, 1.0, 0.020),
        Component(0.65, 1.5, 0.425),
        Component(2.5, 2.5, 0.123),
        Component(6.0, 1.0, 0.022),
        Component(1.6, 1.0, 0.018, 0.8, 1.0),
        Component(0.65, 0.5, 0.135, 0.1, 0.2),
        Component(0.3, 0.5, 0.257),
    ),
    intercept=0.3,
    slope=0.4,
)
LEARNT_CONFIDENCE = Prior(
    (
        Component(0.05, 1.0, 0.020),
        Component(0.15, 1.0, 0.642, 0.8, 1.0),
        Component(1.2, 2.5, 0.190),
        Component(6.0, 2.5, 0.095),
        Component(6.0, 1.5, 0.043),
        Component(0.3, 0.5, 0.010, 0.1, 0.2),
    ),
    intercept=0.3,
    slope=0.4,
)

#: The smallest relative error (its cubes) with no price on bias, seven components of thirty.
UNPRICED = Prior(
    (
        Component(0.65, 1.5, 0.126),
        Component(2.5, 1.5, 0.007),
        Component(0.3, 1.0, 0.273),
        Component(0.65, 1.0, 0.027),
        Component(0.3, 0.5, 0.358),
        Component(0.65, 0.5, 0.172),
        Component(1.2, 0.5, 0.038),
    ),
    intercept=0.3,
    slope=0.4,
)
UNPRICED_CONFIDENCE = Prior(
    (
        Component(1.2, 2.5, 0.013),
        Component(2.5, 2.5, 0.012),
        Component(6.0, 2.5, 0.003),
        Component(0.3, 1.0, 0.910),
        Component(0.3, 0.5, 0.049),
        Component(1.2, 0.5, 0.008),
        Component(2.5, 0.5, 0.004),
    ),
    intercept=0.3,
    slope=0.4,
)

CANDIDATES = {
    "former default": Candidate("before", FORMER, FORMER_CONFIDENCE, former_terms, np.inf),
    "before, scores apart": Candidate("before, scores apart", FORMER, FORMER_CONFIDENCE, former_terms),
    "shipped": Candidate("**shipped**", TYPICAL, TYPICAL_CONFIDENCE),
    "shipped, former cosines": Candidate("with as few cosines as before", TYPICAL, TYPICAL_CONFIDENCE, former_terms),
    "shipped, three roots": Candidate("with 3 n^⅓ cosines, up to 64", TYPICAL, TYPICAL_CONFIDENCE, roots(3, 64)),
    "eleven": Candidate("eleven components by hand, 3 n^⅓", ELEVEN, ELEVEN, roots(3, 64)),
    "learnt": Candidate("the least relative error, bias priced", LEARNT, LEARNT_CONFIDENCE),
    "unpriced": Candidate("the least relative error", UNPRICED, UNPRICED_CONFIDENCE),
    "evidence": Candidate("the largest evidence", EVIDENCE, EVIDENCE_CONFIDENCE),
}
