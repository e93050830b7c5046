"""calibrant: tells whether a classifier's probabilities can be trusted, shows it, tests it and repairs it.

Names are loaded when they are first used, so ``import calibrant`` costs little more than ``import numpy``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ._types import BandwidthWarning as BandwidthWarning
    from ._types import CalibrantWarning as CalibrantWarning
    from ._types import ConvergenceWarning as ConvergenceWarning
    from ._types import Interval as Interval
    from ._types import LabelWarning as LabelWarning
    from ._validation import as_predictions as as_predictions
    from .belt import CalibrationBelt as CalibrationBelt
    from .belt import calibration_belt as calibration_belt
    from .binning import BinMoments as BinMoments
    from .clinical import CalibrationMeasures as CalibrationMeasures
    from .clinical import DecisionCurve as DecisionCurve
    from .clinical import calibration_measures as calibration_measures
    from .clinical import decision_curve as decision_curve
    from .comparing import ModelComparison as ModelComparison
    from .comparing import ModelRanks as ModelRanks
    from .comparing import compare_models as compare_models
    from .comparing import rank_models as rank_models
    from .cost import ExpectedCost as ExpectedCost
    from .cost import MeanCost as MeanCost
    from .cost import expected_cost as expected_cost
    from .curves import reliability_curve as reliability_curve
    from .curves import reliability_curves as reliability_curves
    from .decision_error import DecisionCalibrationError as DecisionCalibrationError
    from .decision_error import decision_calibration_error as decision_calibration_error
    from .decomposition import Decomposition as Decomposition
    from .decomposition import decompose as decompose
    from .density import GridMoments as GridMoments
    from .ece import expected_calibration_error as expected_calibration_error
    from .ece import maximum_calibration_error as maximum_calibration_error
    from .errors import AdaptiveKernel as AdaptiveKernel
    from .errors import BetaKernel as BetaKernel
    from .errors import Binned as Binned
    from .errors import CrossFit as CrossFit
    from .errors import Cumulative as Cumulative
    from .errors import Density as Density
    from .errors import DirichletKernel as DirichletKernel
    from .errors import EmpiricalBayes as EmpiricalBayes
    from .errors import Estimator as Estimator
    from .errors import Isotonic as Isotonic
    from .errors import KernelCalibrationError as KernelCalibrationError
    from .errors import Parametric as Parametric
    from .errors import ResidualKernel as ResidualKernel
    from .errors import SimplexBinned as SimplexBinned
    from .errors import Smooth as Smooth
    from .errors import Sweep as Sweep
    from .estimation import calibration_error as calibration_error
    from .estimation import estimate as estimate
    from .murphy import MurphyCurve as MurphyCurve
    from .murphy import murphy_curve as murphy_curve
    from .notions import Canonical as Canonical
    from .notions import ClassSpecific as ClassSpecific
    from .notions import Classwise as Classwise
    from .notions import Confidence as Confidence
    from .notions import Notion as Notion
    from .notions import TopLabel as TopLabel
    from .plot import CalibrationBeltDisplay as CalibrationBeltDisplay
    from .plot import CalibrationMapDisplay as CalibrationMapDisplay
    from .plot import CriticalDifferenceDisplay as CriticalDifferenceDisplay
    from .plot import DecisionCurveDisplay as DecisionCurveDisplay
    from .plot import ModelComparisonDisplay as ModelComparisonDisplay
    from .plot import MurphyDisplay as MurphyDisplay
    from .plot import ReliabilityDisplay as ReliabilityDisplay
    from .plot import SimplexMapDisplay as SimplexMapDisplay
    from .plot import SubgroupDisplay as SubgroupDisplay
    from .predictions import Predictions as Predictions
    from .reporting import CalibratorComparison as CalibratorComparison
    from .reporting import Report as Report
    from .reporting import report as report
    from .reporting.compare import compare_calibrators as compare_calibrators
    from .results import CurvePoint as CurvePoint
    from .results import Estimate as Estimate
    from .results import ReliabilityCurve as ReliabilityCurve
    from .scores import brier_score as brier_score
    from .scores import log_loss as log_loss
    from .significance import CalibrationMonitor as CalibrationMonitor
    from .significance import TestResult as TestResult
    from .significance import adaptive_test as adaptive_test
    from .significance import calibration_test as calibration_test
    from .significance import cox_test as cox_test
    from .significance import cumulative_test as cumulative_test
    from .significance import evalue_test as evalue_test
    from .significance import hosmer_lemeshow as hosmer_lemeshow
    from .significance import kernel_test as kernel_test
    from .significance import spiegelhalter_test as spiegelhalter_test
    from .squared import squared_calibration_error as squared_calibration_error
    from .streaming import Accumulator as Accumulator
    from .subgroups import Subgroup as Subgroup
    from .subgroups import SubgroupColumn as SubgroupColumn
    from .subgroups import SubgroupReport as SubgroupReport
    from .subgroups import subgroup_calibration as subgroup_calibration

_NAMES = {
    "Accumulator": "streaming",
    "AdaptiveKernel": "errors",
    "BandwidthWarning": "_types",
    "BetaKernel": "errors",
    "BinMoments": "binning",
    "Binned": "errors",
    "CalibrantWarning": "_types",
    "CalibrationBelt": "belt",
    "CalibrationBeltDisplay": "plot",
    "CalibrationMapDisplay": "plot",
    "CalibrationMeasures": "clinical",
    "CalibrationMonitor": "significance",
    "CalibratorComparison": "reporting",
    "Canonical": "notions",
    "ClassSpecific": "notions",
    "Classwise": "notions",
    "Confidence": "notions",
    "ConvergenceWarning": "_types",
    "CriticalDifferenceDisplay": "plot",
    "CrossFit": "errors",
    "Cumulative": "errors",
    "CurvePoint": "results",
    "DecisionCalibrationError": "decision_error",
    "DecisionCurve": "clinical",
    "DecisionCurveDisplay": "plot",
    "Decomposition": "decomposition",
    "Density": "errors",
    "DirichletKernel": "errors",
    "EmpiricalBayes": "errors",
    "Estimate": "results",
    "Estimator": "errors",
    "ExpectedCost": "cost",
    "GridMoments": "density",
    "Interval": "_types",
    "Isotonic": "errors",
    "KernelCalibrationError": "errors",
    "LabelWarning": "_types",
    "MeanCost": "cost",
    "ModelComparison": "comparing",
    "ModelComparisonDisplay": "plot",
    "ModelRanks": "comparing",
    "MurphyCurve": "murphy",
    "MurphyDisplay": "plot",
    "Notion": "notions",
    "Parametric": "errors",
    "Predictions": "predictions",
    "ReliabilityCurve": "results",
    "ReliabilityDisplay": "plot",
    "Report": "reporting",
    "ResidualKernel": "errors",
    "SimplexBinned": "errors",
    "SimplexMapDisplay": "plot",
    "Smooth": "errors",
    "Subgroup": "subgroups",
    "SubgroupColumn": "subgroups",
    "SubgroupDisplay": "plot",
    "SubgroupReport": "subgroups",
    "Sweep": "errors",
    "TestResult": "significance",
    "TopLabel": "notions",
    "adaptive_test": "significance",
    "as_predictions": "_validation",
    "brier_score": "scores",
    "calibration_belt": "belt",
    "calibration_error": "estimation",
    "calibration_measures": "clinical",
    "calibration_test": "significance",
    "compare_calibrators": "reporting.compare",
    "compare_models": "comparing",
    "cox_test": "significance",
    "cumulative_test": "significance",
    "decision_calibration_error": "decision_error",
    "decision_curve": "clinical",
    "decompose": "decomposition",
    "estimate": "estimation",
    "evalue_test": "significance",
    "expected_calibration_error": "ece",
    "expected_cost": "cost",
    "hosmer_lemeshow": "significance",
    "kernel_test": "significance",
    "log_loss": "scores",
    "maximum_calibration_error": "ece",
    "murphy_curve": "murphy",
    "rank_models": "comparing",
    "reliability_curve": "curves",
    "reliability_curves": "curves",
    "report": "reporting",
    "spiegelhalter_test": "significance",
    "squared_calibration_error": "squared",
    "subgroup_calibration": "subgroups",
}
_SUBMODULES = (
    "benchmark",
    "binning",
    "calibrators",
    "curves",
    "datasets",
    "density",
    "errors",
    "notions",
    "plot",
    "scores",
)

__all__ = ["__version__", *sorted(_NAMES)]


def __getattr__(name: str) -> Any:
    """Load a public name, or a public submodule, on first use."""
    if name in _NAMES:
        value = getattr(import_module(f".{_NAMES[name]}", __name__), name)
        globals()[name] = value
        return value
    if name in _SUBMODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module 'calibrant' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, *_SUBMODULES})
