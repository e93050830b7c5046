"""Calibration errors: estimators as values, each a frozen dataclass that validates itself."""

from .base import CellEstimator, Estimator
from .binned import Binned
from .density import Density
from .residual import ResidualKernel
from .simplex import SimplexBinned

__all__ = ["Binned", "CellEstimator", "Density", "Estimator", "ResidualKernel", "SimplexBinned"]
