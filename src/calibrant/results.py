"""Classes of results: what functions of this package return. (That of a test is `significance.TestResult`.)"""

from __future__ import annotations

from .calibrators.select import Selection
from .comparison.models.result import ComparedModel, Difference, ModelComparison
from .comparison.segments.segment_report import Segment, SegmentReport
from .comparison.subgroups.result import Subgroup, SubgroupColumn, SubgroupDifference, SubgroupReport
from .data.censoring import CensoringWeights
from .data.types import Interval
from .decisions.clinical import CalibrationMeasures, DecisionCurve
from .decisions.cost import ExpectedCost, MeanCost
from .decisions.decision_error import DecisionCalibrationError
from .decisions.optimism import OptimismCorrected
from .decisions.priors import PriorEstimate
from .decisions.selective import RiskCoverage
from .frames.subgroup_sums import SubgroupSums
from .measure.result import CurvePoint, Estimate, ReliabilityCurve
from .monitoring.over_time_result import CalibrationOverTime, Change, Period
from .monitoring.performance_result import ExpectedMetric, ExpectedPerformance, ExpectedPeriod
from .monitoring.periods import TimeInterval
from .monitoring.sample_shift import ColumnShift
from .reporting.class_table import ClassRow
from .reporting.comparison import CalibratorComparison, ComparedCalibrator
from .reporting.evidence import Evidence, RepairGain
from .reporting.report import Report
from .reporting.report_curves import Curves
from .scores.grouping import GroupingLoss
from .scores.murphy import BrierCurve, MurphyCurve
from .scores.ranks import ModelRanks
from .scores.score_parts import Decomposition
from .significance.belt import CalibrationBelt
from .significance.direction import ConfidenceDirection

__all__ = [
    "BrierCurve",
    "CalibrationBelt",
    "CalibrationMeasures",
    "CalibrationOverTime",
    "CalibratorComparison",
    "CensoringWeights",
    "Change",
    "ClassRow",
    "ColumnShift",
    "ComparedCalibrator",
    "ComparedModel",
    "ConfidenceDirection",
    "CurvePoint",
    "Curves",
    "DecisionCalibrationError",
    "DecisionCurve",
    "Decomposition",
    "Difference",
    "Estimate",
    "Evidence",
    "ExpectedCost",
    "ExpectedMetric",
    "ExpectedPerformance",
    "ExpectedPeriod",
    "GroupingLoss",
    "Interval",
    "MeanCost",
    "ModelComparison",
    "ModelRanks",
    "MurphyCurve",
    "OptimismCorrected",
    "Period",
    "PriorEstimate",
    "ReliabilityCurve",
    "RepairGain",
    "Report",
    "RiskCoverage",
    "Segment",
    "SegmentReport",
    "Selection",
    "Subgroup",
    "SubgroupColumn",
    "SubgroupDifference",
    "SubgroupReport",
    "SubgroupSums",
    "TimeInterval",
]


def __dir__() -> list[str]:
    return list(__all__)
