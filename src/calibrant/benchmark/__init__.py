"""The known-truth benchmark: how wrong is each estimator, on score distributions whose calibration error is known."""

from .config import Config, Distribution
from .curves import OURS, PAPER_CURVES, Entry, paper_curves
from .read import read_samples
from .results import load, summary
from .runner import forget, predict, run

__all__ = [
    "OURS",
    "PAPER_CURVES",
    "Config",
    "Distribution",
    "Entry",
    "forget",
    "load",
    "paper_curves",
    "predict",
    "read_samples",
    "run",
    "summary",
]
