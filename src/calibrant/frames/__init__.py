"""Lazy frames of any engine to the sums of an :class:`calibrant.Accumulator`."""

from .frame_sums import from_frame as from_frame
from .subgroup_sums import SubgroupSums as SubgroupSums
