"""The works that are compared: data, our call, the peers, and how the answers are checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import calibrant as cal

from . import data, naive, peers

#: Agreement of the binned numbers: the same bins, so only the order of the sums differs.
EXACT = 1e-9
#: Quantile edges of the libraries may part the samples one rank apart.
BY_ONE_RANK = 1e-4
#: Our grid against a kernel matrix; our resampled counts against resampled rows.
GRID = 2e-4
BAND = 2e-2


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    arrays: Callable[[], tuple[np.ndarray, np.ndarray]]
    ours: Callable[[np.ndarray, np.ndarray], Any]
    peers: tuple[peers.Peer, ...]
    wanted: float
    tolerance: float = EXACT
    #: What a peer's number is compared with; by default our own.
    reference: dict[str, Callable[[np.ndarray, np.ndarray], Any]] = field(default_factory=dict)
    #: Our number against an obvious implementation, for the works that no peer defines as we do.
    twin: Callable[[], tuple[float, float, str]] | None = None
    memory: float | None = None
    quick: bool = True


def _binned(strategy: str, notion: str = "auto", norm: float = 1) -> Callable[[np.ndarray, np.ndarray], float]:
    estimator = cal.Binned(peers.BINS, strategy)
    return lambda y, p: cal.calibration_error(y, p, notion=notion, estimator=estimator, norm=norm)


def _density(y: np.ndarray, p: np.ndarray) -> float:
    return cal.calibration_error(y, p, estimator=cal.estimators.Density())


def band(y: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    curve = cal.reliability_curve(y, p, level=0.95, n_resamples=1000, random_state=0)
    return curve.scores, curve.observed


def _density_twin() -> tuple[float, float, str]:
    y, p = data.binary(2000)
    return abs(_density(y, p) - naive.density_ece(y, p)), GRID, "kernel matrix, N = 2000"


def _band_twin() -> tuple[float, float, str]:
    y, p = data.binary(2000)
    at = np.linspace(0.02, 0.98, 25)
    ours = cal.reliability_curve(y, p, level=0.95, n_resamples=1000, random_state=0).at(at)
    theirs = naive.curve_band(y, p, at, 0.95, 1000)
    gap = max(float(np.abs(a - b).max()) for a, b in zip(ours, theirs, strict=True))
    return gap, BAND, "row resampling with a kernel matrix, N = 2000"


def rows() -> list[Row]:
    """Every row of the comparison, small sizes first."""
    largest_gap = {"scikit-learn": _binned("uniform", norm=float("inf"))}
    largest_quantile_gap = {"scikit-learn": _binned("quantile", norm=float("inf"))}

    def uniform(n: int, **more: Any) -> Row:
        name = f"binary ECE, 15 uniform bins, N = {n:.0e}".replace("e+0", "e")
        return Row(name, lambda: data.binary(n), _binned("uniform"), peers.UNIFORM, 1.0, reference=largest_gap, **more)

    def curve(n: int, wanted: float, **more: Any) -> Row:
        name = f"curve with a band of 1000 resamples, N = {n:.0e}".replace("e+0", "e")
        return Row(name, lambda: data.binary(n), band, peers.BAND, wanted, BAND, twin=_band_twin, **more)

    return [
        uniform(10**5),
        uniform(10**6),
        uniform(10**7, memory=64.0, quick=False),
        Row(
            "binary ECE, 15 quantile bins, N = 1e6",
            lambda: data.binary(10**6),
            _binned("quantile"),
            peers.QUANTILE,
            0.6,
            BY_ONE_RANK,
            reference=largest_quantile_gap,
        ),
        Row(
            "confidence ECE, 15 bins, 1e5 x 100",
            lambda: data.multiclass(10**5, 100),
            _binned("uniform", "confidence"),
            peers.CONFIDENCE,
            1.0,
        ),
        Row(
            "classwise ECE, 15 bins, 1e5 x 100",
            lambda: data.multiclass(10**5, 100),
            _binned("uniform", "classwise"),
            peers.CLASSWISE,
            0.2,
        ),
        Row(
            "density ECE / smooth ECE, N = 1e6",
            lambda: data.binary(10**6),
            _density,
            peers.DENSITY,
            1.0,
            twin=_density_twin,
        ),
        curve(10**4, 0.5),
        curve(10**5, 0.05, quick=False),
    ]
