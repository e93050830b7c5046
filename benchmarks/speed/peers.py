"""How each peer is called, by the name of its distribution: a table a kind of work.

Every call takes labels and scores, and returns a number, or a curve. Where a library bins by another convention, the
call asks for what comes to the same bins. Libraries are imported when they are called.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

import calibrant as cal

from .race import Peer

BINS = 15
#: The same bins: only the order of sums differs.
EXACT = 1e-12
#: Quantile edges of the libraries may part the samples one rank apart.
BY_ONE_RANK = 1e-4
#: A peer that sums in float32.
SINGLE = 1e-6
#: Another definition.
AKIN = float("inf")

#: Distribution on PyPI and the module it installs.
LIBRARIES = {
    "numpy": "numpy",
    "relplot": "relplot",
    "netcal": "netcal",
    "torchmetrics": "torchmetrics",
    "probcal": "probcal",
    "calibre": "calibre",
    "uncertainty-calibration": "calibration",
    "pycalib": "pycalib",
    "MAPIE": "mapie",
    "scikit-learn": "sklearn",
    "calibstats": "calibstats",
}

Call = Callable[[np.ndarray, np.ndarray], Any]
_module = lru_cache(importlib.import_module)


def _peers(apart: float, calls: Mapping[str, Call]) -> dict[str, Peer]:
    return {name: Peer(call, LIBRARIES[name], apart) for name, call in calls.items()}


def _tensors(y: np.ndarray, p: np.ndarray) -> tuple[Any, Any]:
    torch: Any = _module("torch")
    return torch.from_numpy(p), torch.from_numpy(y)


def _by_hand(y: np.ndarray, p: np.ndarray) -> float:
    """What a person writes."""
    place = np.minimum((p * BINS).astype(np.intp), BINS - 1)
    return float(np.abs(np.bincount(place, y - p, BINS)).sum() / len(p))


def _from_curve(true: np.ndarray, predicted: np.ndarray, counts: np.ndarray) -> float:
    return float((counts * np.abs(true - predicted)).sum() / counts.sum())


def _netcal(equal: bool) -> Call:
    return lambda y, p: _module("netcal.metrics").ECE(BINS, equal_intervals=equal).measure(p, y)


def _torch_binary(y: np.ndarray, p: np.ndarray) -> float:
    f = _module("torchmetrics.functional.classification").binary_calibration_error
    return float(f(*_tensors(y, p), n_bins=BINS, norm="l1"))


def _torch_multiclass(y: np.ndarray, p: np.ndarray) -> float:
    f = _module("torchmetrics.functional.classification").multiclass_calibration_error
    return float(f(*_tensors(y, p), num_classes=p.shape[1], n_bins=BINS, norm="l1"))


def _mapie(strategy: str, **more: Any) -> Call:
    """Its ``num_bins`` counts edges."""

    def call(y: np.ndarray, p: np.ndarray) -> float:
        f = _module("mapie.metrics.calibration").expected_calibration_error
        return float(f(y, p, num_bins=BINS + 1, split_strategy=strategy, **more))

    return call


def _sklearn(strategy: str, apart: float) -> Peer:
    """The largest gap of its curve: it has no ECE."""

    def call(y: np.ndarray, p: np.ndarray) -> float:
        true, predicted = _module("sklearn.calibration").calibration_curve(y, p, n_bins=BINS, strategy=strategy)
        return float(np.abs(true - predicted).max())

    def ours(y: np.ndarray, p: np.ndarray) -> float:
        return cal.calibration_error(y, p, estimator=cal.Binned(BINS, strategy), norm=float("inf"))

    return Peer(call, "sklearn", apart, ours)


UNIFORM = _peers(EXACT, {
    "numpy": _by_hand,
    "relplot": lambda y, p: _module("relplot.metrics").binnedECE(p, y, nbins=BINS),
    "calibre": lambda y, p: _module("calibre.metrics").expected_calibration_error(y, p, n_bins=BINS),
    "probcal": lambda y, p: _module("probcal.metrics").ece(y, p, n_bins=BINS, strategy="width"),
    "calibstats": lambda y, p: _module("calibstats").ece(p, y, n_bins=BINS),
    "netcal": _netcal(True),
    "torchmetrics": _torch_binary,
    "uncertainty-calibration": lambda y, p: _module("calibration").get_ece(p, y, num_bins=BINS),
    "pycalib": lambda y, p: _module("pycalib.metrics").binary_ECE(y, p, bins=BINS),
    "MAPIE": _mapie("uniform"),
}) | {"scikit-learn": _sklearn("uniform", EXACT)}  # fmt: skip

QUANTILE = _peers(BY_ONE_RANK, {
    "calibre": lambda y, p: _from_curve(*_module("calibre.metrics").calibration_curve(y, p, BINS, "quantile")),
    "probcal": lambda y, p: _module("probcal.metrics").ece(y, p, n_bins=BINS, strategy="mass"),
    "calibstats": lambda y, p: _module("calibstats").ace(p, y, n_bins=BINS),
    "netcal": _netcal(False),
    "uncertainty-calibration": lambda y, p: _module("calibration").utils.get_ece_em(p, y, num_bins=BINS),
    "MAPIE": _mapie("quantile"),
}) | {"scikit-learn": _sklearn("quantile", BY_ONE_RANK)}  # fmt: skip


def _relplot_confidence(y: np.ndarray, p: np.ndarray) -> float:
    m = _module("relplot.metrics")
    return float(m.binnedECE(*m.multiclass_logits_to_confidences(p, y, probs=True), nbins=BINS))


def _mapie_confidence(y: np.ndarray, p: np.ndarray) -> float:
    return _mapie("uniform")((p.argmax(axis=1) == y).astype(int), p)


CONFIDENCE = _peers(EXACT, {
    "calibstats": lambda y, p: _module("calibstats").ece(p, y, n_bins=BINS),
    "relplot": _relplot_confidence,
    "netcal": _netcal(True),
    "uncertainty-calibration": lambda y, p: _module("calibration").get_ece(p, y, num_bins=BINS),
    "pycalib": lambda y, p: _module("pycalib.metrics").conf_ECE(y, p, bins=BINS),
    "MAPIE": _mapie_confidence,
}) | _peers(SINGLE, {"torchmetrics": _torch_multiclass})  # fmt: skip


def _mapie_classwise(y: np.ndarray, p: np.ndarray) -> float:
    return _mapie("uniform", classwise=True, class_labels=y)(y, p)


def _relplot_loop(y: np.ndarray, p: np.ndarray) -> float:
    f = _module("relplot.metrics").binnedECE
    return float(np.mean([f(p[:, k], y == k, nbins=BINS) for k in range(p.shape[1])]))


CLASSWISE = _peers(EXACT, {
    "MAPIE": _mapie_classwise,
    "pycalib": lambda y, p: _module("pycalib.metrics").classwise_ECE(y, p, bins=BINS),
    "uncertainty-calibration": lambda y, p: _module("calibration").get_ece(p, y, num_bins=BINS, mode="marginal"),
}) | {"relplot": Peer(_relplot_loop, "relplot", EXACT, competes=False)}  # fmt: skip

#: Residuals smoothed with a bandwidth that is found as a fixed point; of probcal on logits.
DENSITY = _peers(AKIN, {
    "probcal": lambda y, p: _module("probcal.metrics").smooth_ece(y, p),
    "relplot": lambda y, p: _module("relplot.metrics").smECE(p, y),
})  # fmt: skip


def _probcal_band(y: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    curve = _module("probcal").reliability_smooth(y, p, n_boot=1000, confidence=0.95)
    return curve.grid_p, curve.event_rate


def _relplot_band(y: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found = _module("relplot").prepare_rel_diagram(p, y, num_bootstrap=1000, report_CE_std=False)
    return found["mesh"], found["mu"]


#: Kernel curves with another bandwidth, of rows that are drawn again; of probcal on logits.
BAND = _peers(AKIN, {"probcal": _probcal_band, "relplot": _relplot_band})
