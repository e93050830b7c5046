"""Pictures: reliability diagrams with matplotlib (extra ``plot``). The only part of calibrant that imports it."""

from __future__ import annotations

try:
    import matplotlib as _matplotlib  # noqa: F401
except ImportError as error:  # pragma: no cover - tested in a subprocess
    raise ImportError('drawing needs matplotlib, which is not installed: pip install "calibrant[plot]"') from error

from .belt_display import CalibrationBeltDisplay
from .comparison_display import ModelComparisonDisplay
from .coverage_display import RiskCoverageDisplay
from .decision_display import DecisionCurveDisplay
from .diagram import Diagram
from .map_display import CalibrationMapDisplay
from .murphy_display import BrierCurveDisplay, MurphyDisplay
from .null_display import NullDistributionDisplay
from .rank_display import CriticalDifferenceDisplay
from .reliability_display import ReliabilityDisplay
from .simplex_cells_display import SimplexDisplay
from .simplex_display import SimplexMapDisplay
from .subgroup_display import SubgroupDisplay

__all__ = [
    "BrierCurveDisplay",
    "CalibrationBeltDisplay",
    "CalibrationMapDisplay",
    "CriticalDifferenceDisplay",
    "DecisionCurveDisplay",
    "Diagram",
    "ModelComparisonDisplay",
    "MurphyDisplay",
    "NullDistributionDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "SimplexDisplay",
    "SimplexMapDisplay",
    "SubgroupDisplay",
]
