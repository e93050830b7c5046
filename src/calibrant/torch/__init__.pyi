"""The public names of this module, each listed once; ``__init__.py`` loads a name when it is first used."""

from . import functional as functional
from .losses import BrierLoss as BrierLoss
from .losses import BrierSharpnessLoss as BrierSharpnessLoss
from .losses import ConfidencePenaltyLoss as ConfidencePenaltyLoss
from .losses import DCALoss as DCALoss
from .losses import DirichletKernelLoss as DirichletKernelLoss
from .losses import FocalLoss as FocalLoss
from .losses import MMCELoss as MMCELoss
from .losses import SoftBinnedECELoss as SoftBinnedECELoss
from .metrics import CalibrationError as CalibrationError
from .refinement import Refinement as Refinement
from .scaling import DirichletScaler as DirichletScaler
from .scaling import MatrixScaler as MatrixScaler
from .scaling import TemperatureScaler as TemperatureScaler
from .scaling import VectorScaler as VectorScaler
