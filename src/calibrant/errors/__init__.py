"""Calibration errors: estimators as values, each a frozen dataclass that validates itself."""

from .adaptive import AdaptiveKernel
from .base import CellEstimator, Estimator
from .binned import Binned
from .density import Density
from .residual import ResidualKernel
from .simplex import SimplexBinned

__all__ = ["AdaptiveKernel", "Binned", "CellEstimator", "Density", "Estimator", "ResidualKernel", "SimplexBinned"]
