"""The public names of this module, each listed once; ``__init__.py`` loads a name when it is first used."""

from .belt_display import CalibrationBeltDisplay as CalibrationBeltDisplay
from .comparison_display import ModelComparisonDisplay as ModelComparisonDisplay
from .coverage_display import RiskCoverageDisplay as RiskCoverageDisplay
from .decision_display import DecisionCurveDisplay as DecisionCurveDisplay
from .diagram import Diagram as Diagram
from .map_display import CalibrationMapDisplay as CalibrationMapDisplay
from .murphy_display import BrierCurveDisplay as BrierCurveDisplay
from .murphy_display import MurphyDisplay as MurphyDisplay
from .null_display import NullDistributionDisplay as NullDistributionDisplay
from .rank_display import CriticalDifferenceDisplay as CriticalDifferenceDisplay
from .reliability_display import ReliabilityDisplay as ReliabilityDisplay
from .simplex_cells_display import SimplexDisplay as SimplexDisplay
from .simplex_display import SimplexMapDisplay as SimplexMapDisplay
from .subgroup_display import SubgroupDisplay as SubgroupDisplay
