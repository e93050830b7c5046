"""Pictures: reliability diagrams with matplotlib (extra ``plot``). The only part of calibrant that imports it."""

from __future__ import annotations

try:
    import matplotlib as _matplotlib  # noqa: F401
except ImportError as error:  # pragma: no cover - tested in a subprocess
    raise ImportError('drawing needs matplotlib, which is not installed: pip install "calibrant[plot]"') from error

from .belt import CalibrationBeltDisplay
from .comparison import ModelComparisonDisplay
from .decisions import DecisionCurveDisplay
from .diagram import Diagram
from .display import ReliabilityDisplay
from .maps import CalibrationMapDisplay
from .murphy import MurphyDisplay
from .ranks import CriticalDifferenceDisplay
from .simplex import SimplexMapDisplay
from .subgroups import SubgroupDisplay

__all__ = [
    "CalibrationBeltDisplay",
    "CalibrationMapDisplay",
    "CriticalDifferenceDisplay",
    "DecisionCurveDisplay",
    "Diagram",
    "ModelComparisonDisplay",
    "MurphyDisplay",
    "ReliabilityDisplay",
    "SimplexMapDisplay",
    "SubgroupDisplay",
]
