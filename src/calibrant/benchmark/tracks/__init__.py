"""Tracks: families of predictions with known calibration error, beyond the paper's mixtures.

======================  ==========================================================================================
``"beta"``              Beta scores × true maps, with and without atoms at 0 and 1
``"networks"``          distributions fitted to real image classifiers, raw and after temperature scaling
``"dirichlet"``         probability vectors of 3, 5 and 10 classes
``"imbalance"``         one positive in a hundred
``"local"``             miscalibrated only on some scores: dips, steps, changes of sign, heaps, grids
``"consistency"``       four distributions for samples of 10³ to 10⁶
======================  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable

from ...data.checks import check_choice
from .dirichlet_track import DirichletDistribution, dirichlets
from .distribution import (
    BinaryDistribution,
    ConfidenceDistribution,
    ExactTruth,
    ScalarDistribution,
    TrackDistribution,
)
from .synthetic import beta, consistency, imbalance, local, networks

#: Builders of the tracks, by name.
TRACKS: dict[str, Callable[[], tuple[TrackDistribution, ...]]] = {
    "beta": beta,
    "networks": networks,
    "dirichlet": dirichlets,
    "imbalance": imbalance,
    "local": local,
    "consistency": consistency,
}


def distributions(track: str) -> tuple[TrackDistribution, ...]:
    """Return the distributions of a track.

    Raises
    ------
    ValueError
        For an unknown track.

    Examples
    --------
    >>> import numpy as np
    >>> d = distributions("beta")[1]
    >>> d.name, round(d.truth("class-specific").value, 6)
    ('uniform-overconfident', 0.096574)
    >>> scores, outcomes = d.sample(3, 50, np.random.default_rng(0))
    >>> scores.shape, outcomes.shape, d.problems(scores, outcomes, "confidence")[0].domain
    ((3, 50), (3, 50), (0.5, 1.0))
    """
    return TRACKS[check_choice("track", track, TRACKS)]()


__all__ = [
    "TRACKS",
    "BinaryDistribution",
    "ConfidenceDistribution",
    "DirichletDistribution",
    "TrackDistribution",
    "ScalarDistribution",
    "ExactTruth",
    "distributions",
]
