"""The public names of this module, each listed once; ``__init__.py`` loads a name when it is first used."""

from .cost_display import CostDisplay as CostDisplay
from .diagram import Diagram as Diagram
from .line_displays import BrierCurveDisplay as BrierCurveDisplay
from .line_displays import CalibrationBeltDisplay as CalibrationBeltDisplay
from .line_displays import DecisionCurveDisplay as DecisionCurveDisplay
from .line_displays import MurphyDisplay as MurphyDisplay
from .line_displays import NullDistributionDisplay as NullDistributionDisplay
from .line_displays import RiskCoverageDisplay as RiskCoverageDisplay
from .map_display import CalibrationMapDisplay as CalibrationMapDisplay
from .model_displays import CriticalDifferenceDisplay as CriticalDifferenceDisplay
from .model_displays import ModelComparisonDisplay as ModelComparisonDisplay
from .number_displays import IntervalDisplay as IntervalDisplay
from .number_displays import MonitorDisplay as MonitorDisplay
from .over_time_display import OverTimeDisplay as OverTimeDisplay
from .performance_display import PerformanceDisplay as PerformanceDisplay
from .reliability_display import ReliabilityDisplay as ReliabilityDisplay
from .segment_display import SegmentDisplay as SegmentDisplay
from .simplex_display import SimplexDisplay as SimplexDisplay
from .simplex_display import SimplexMapDisplay as SimplexMapDisplay
from .subgroup_display import SubgroupDisplay as SubgroupDisplay
