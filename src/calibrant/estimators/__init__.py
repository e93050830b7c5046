"""Calibration errors: estimators as values, each a frozen dataclass that validates itself."""

from .adaptive import AdaptiveKernel
from .base import CellEstimator, Estimator
from .beta import BetaKernel
from .binned import Binned
from .crossfit import CrossFit
from .cumulative import Cumulative
from .density import Density
from .dirichlet import DirichletKernel
from .empirical_bayes import EmpiricalBayes
from .isotonic import Isotonic
from .kernel_error import KernelCalibrationError
from .laplace import Component, Prior
from .parametric import Parametric
from .residual import ResidualKernel
from .simplex import SimplexBinned
from .smooth import Smooth
from .sweep import Sweep

__all__ = [
    "AdaptiveKernel",
    "BetaKernel",
    "Binned",
    "CellEstimator",
    "Component",
    "CrossFit",
    "Cumulative",
    "Density",
    "DirichletKernel",
    "EmpiricalBayes",
    "Estimator",
    "Isotonic",
    "KernelCalibrationError",
    "Parametric",
    "Prior",
    "ResidualKernel",
    "SimplexBinned",
    "Smooth",
    "Sweep",
]
