"""The public names, each listed once: ``__init__.py`` reads this file and loads a name when it is first used."""

from . import benchmark as benchmark
from . import calibrators as calibrators
from . import datasets as datasets
from . import decisions as decisions
from . import estimators as estimators
from . import exceptions as exceptions
from . import notions as notions
from . import plot as plot
from . import results as results
from . import scores as scores
from . import significance as significance
from . import torch as torch
from .accumulator import Accumulator as Accumulator
from .accumulator import from_frame as from_frame
from .calibrators import AutoCalibrator as AutoCalibrator
from .calibrators import CalibratedModel as CalibratedModel
from .calibrators import TemperatureScaling as TemperatureScaling
from .calibrators import load_calibrator as load_calibrator
from .calibrators import save_calibrator as save_calibrator
from .comparison.models.compare import compare_models as compare_models
from .comparison.subgroups.build import subgroup_calibration as subgroup_calibration
from .data.predictions import Predictions as Predictions
from .data.validation import as_predictions as as_predictions
from .decisions import calibration_measures as calibration_measures
from .decisions import decision_curve as decision_curve
from .decisions import expected_cost as expected_cost
from .decisions import optimal_threshold as optimal_threshold
from .decisions import shift_prior as shift_prior
from .estimators import Binned as Binned
from .estimators import EmpiricalBayes as EmpiricalBayes
from .measure.ece import expected_calibration_error as expected_calibration_error
from .measure.ece import squared_calibration_error as squared_calibration_error
from .measure.estimation import calibration_error as calibration_error
from .measure.estimation import estimate as estimate
from .measure.reliability import reliability_curve as reliability_curve
from .monitoring.monitor import CalibrationMonitor as CalibrationMonitor
from .plot import ReliabilityDisplay as ReliabilityDisplay
from .reporting.assemble import report as report
from .reporting.comparing_calibrators import compare_calibrators as compare_calibrators
from .scores import brier_score as brier_score
from .scores import decompose as decompose
from .scores import log_loss as log_loss
from .significance import calibration_test as calibration_test

__version__: str
