"""Calibration of subgroups: the same probability should mean the same in each."""

from .build import subgroup_calibration
from .result import Difference, Subgroup, SubgroupColumn, SubgroupReport

__all__ = ["Difference", "Subgroup", "SubgroupColumn", "SubgroupReport", "subgroup_calibration"]
