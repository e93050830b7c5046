"""Sums of an :class:`calibrant.Accumulator` from lazy frames of any engine."""

from .frame_sums import from_frame as from_frame
from .subgroup_sums import SubgroupSums as SubgroupSums
