"""How each peer is called: one table a kind of work, ``name -> (library, callable, remark)``.

Every callable takes ``(y, p)`` and returns a number, or a curve. Where a library bins by another convention, the
call asks for what comes to the same bins, and the remark says so. Libraries are imported when they are called.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

BINS = 15

#: Distribution on PyPI and the module it installs.
LIBRARIES = {
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


@dataclass(frozen=True)
class Peer:
    """A peer's way to do a work; ``same`` says whether it is the same quantity as ours."""

    package: str
    call: Callable[[np.ndarray, np.ndarray], Any]
    remark: str = ""
    same: bool = True
    counts: bool = True  # whether it competes for "fastest peer": not when it is a loop of ours around the peer
    tolerance: float | None = None  # where the peer computes in float32


def version(library: str) -> str | None:
    """Installed version, or None when the library is missing or does not import."""
    try:
        importlib.import_module(LIBRARIES[library])
        return importlib.metadata.version(library)
    except Exception:  # a library that breaks on import is as good as none, whatever it raises
        return None


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _tensors(y: np.ndarray, p: np.ndarray) -> tuple[Any, Any]:
    torch = _module("torch")
    return torch.from_numpy(p), torch.from_numpy(y)


def _from_curve(true: np.ndarray, predicted: np.ndarray, counts: np.ndarray) -> float:
    return float((counts * np.abs(true - predicted)).sum() / counts.sum())


def _netcal(equal: bool) -> Callable[[np.ndarray, np.ndarray], float]:
    return lambda y, p: _module("netcal.metrics").ECE(BINS, equal_intervals=equal).measure(p, y)


def _torch_binary(y: np.ndarray, p: np.ndarray) -> float:
    f = _module("torchmetrics.functional.classification").binary_calibration_error
    return float(f(*_tensors(y, p), n_bins=BINS, norm="l1"))


def _torch_multiclass(y: np.ndarray, p: np.ndarray) -> float:
    f = _module("torchmetrics.functional.classification").multiclass_calibration_error
    return float(f(*_tensors(y, p), num_classes=p.shape[1], n_bins=BINS, norm="l1"))


def _mapie(strategy: str) -> Callable[[np.ndarray, np.ndarray], float]:
    def call(y: np.ndarray, p: np.ndarray) -> float:
        f = _module("mapie.metrics.calibration").expected_calibration_error
        return float(f(y, p, num_bins=BINS + 1, split_strategy=strategy))

    return call


def _sklearn_largest_gap(strategy: str) -> Callable[[np.ndarray, np.ndarray], float]:
    def call(y: np.ndarray, p: np.ndarray) -> float:
        true, predicted = _module("sklearn.calibration").calibration_curve(y, p, n_bins=BINS, strategy=strategy)
        return float(np.abs(true - predicted).max())

    return call


_SKLEARN = "bin means only, no ECE: its largest gap against our norm=inf"
_MAPIE = "num_bins=16: its num_bins counts edges"

UNIFORM = (
    Peer("relplot", lambda y, p: _module("relplot.metrics").binnedECE(p, y, nbins=BINS), "validates nothing"),
    Peer("calibre", lambda y, p: _module("calibre.metrics").expected_calibration_error(y, p, n_bins=BINS)),
    Peer("probcal", lambda y, p: _module("probcal.metrics").ece(y, p, n_bins=BINS, strategy="width")),
    Peer("calibstats", lambda y, p: _module("calibstats").ece(p, y, n_bins=BINS)),
    Peer("netcal", _netcal(True)),
    Peer("torchmetrics", _torch_binary),
    Peer("uncertainty-calibration", lambda y, p: _module("calibration").get_ece(p, y, num_bins=BINS)),
    Peer("pycalib", lambda y, p: _module("pycalib.metrics").binary_ECE(y, p, bins=BINS)),
    Peer("MAPIE", _mapie("uniform"), _MAPIE),
    Peer("scikit-learn", _sklearn_largest_gap("uniform"), _SKLEARN),
)

QUANTILE = (
    Peer(
        "calibre",
        lambda y, p: _from_curve(*_module("calibre.metrics").calibration_curve(y, p, BINS, "quantile")),
        "calibration_curve, its bins summed by us",
    ),
    Peer("probcal", lambda y, p: _module("probcal.metrics").ece(y, p, n_bins=BINS, strategy="mass")),
    Peer("calibstats", lambda y, p: _module("calibstats").ace(p, y, n_bins=BINS)),
    Peer("netcal", _netcal(False)),
    Peer("uncertainty-calibration", lambda y, p: _module("calibration").utils.get_ece_em(p, y, num_bins=BINS)),
    Peer("MAPIE", _mapie("quantile"), _MAPIE),
    Peer("scikit-learn", _sklearn_largest_gap("quantile"), _SKLEARN),
)


def _relplot_confidence(y: np.ndarray, p: np.ndarray) -> float:
    m = _module("relplot.metrics")
    return float(m.binnedECE(*m.multiclass_logits_to_confidences(p, y, probs=True), nbins=BINS))


def _mapie_confidence(y: np.ndarray, p: np.ndarray) -> float:
    return _mapie("uniform")((p.argmax(axis=1) == y).astype(int), p)


CONFIDENCE = (
    Peer("calibstats", lambda y, p: _module("calibstats").ece(p, y, n_bins=BINS)),
    Peer("relplot", _relplot_confidence),
    Peer("netcal", _netcal(True)),
    Peer("torchmetrics", _torch_multiclass, "sums in float32", tolerance=1e-6),
    Peer("uncertainty-calibration", lambda y, p: _module("calibration").get_ece(p, y, num_bins=BINS)),
    Peer("pycalib", lambda y, p: _module("pycalib.metrics").conf_ECE(y, p, bins=BINS)),
    Peer("MAPIE", _mapie_confidence, _MAPIE + "; correctness computed by us"),
)


def _mapie_classwise(y: np.ndarray, p: np.ndarray) -> float:
    f = _module("mapie.metrics.calibration").expected_calibration_error
    return float(f(y, p, num_bins=BINS + 1, split_strategy="uniform", classwise=True, class_labels=y))


def _marginal(y: np.ndarray, p: np.ndarray) -> float:
    return float(_module("calibration").get_ece(p, y, num_bins=BINS, mode="marginal"))


def _relplot_loop(y: np.ndarray, p: np.ndarray) -> float:
    f = _module("relplot.metrics").binnedECE
    return float(np.mean([f(p[:, k], y == k, nbins=BINS) for k in range(p.shape[1])]))


CLASSWISE = (
    Peer("MAPIE", _mapie_classwise, _MAPIE),
    Peer("pycalib", lambda y, p: _module("pycalib.metrics").classwise_ECE(y, p, bins=BINS)),
    Peer("uncertainty-calibration", _marginal),
    Peer("relplot", _relplot_loop, "not in the library: our loop over its binary function", counts=False),
)

_SMOOTH = "another definition: residuals smoothed with a bandwidth found as a fixed point"
DENSITY = (
    Peer("probcal", lambda y, p: _module("probcal.metrics").smooth_ece(y, p), _SMOOTH + ", on logits", same=False),
    Peer("relplot", lambda y, p: _module("relplot.metrics").smECE(p, y), _SMOOTH, same=False),
)


def _probcal_band(y: np.ndarray, p: np.ndarray) -> Any:
    curve = _module("probcal").reliability_smooth(y, p, n_boot=1000, confidence=0.95)
    return curve.grid_p, curve.event_rate


def _relplot_band(y: np.ndarray, p: np.ndarray) -> Any:
    found = _module("relplot").prepare_rel_diagram(p, y, num_bootstrap=1000, report_CE_std=False)
    return found["mesh"], found["mu"]


_CURVE = "another bandwidth; resamples rows"
BAND = (
    Peer("probcal", _probcal_band, _CURVE + ", on logits", same=False),
    Peer("relplot", _relplot_band, _CURVE, same=False),
)
