"""Lazy frames of any engine to the sums of an :class:`calibrant.Accumulator`."""

from .frame_subgroups import FrameSubgroups as FrameSubgroups
from .frame_subgroups import SubgroupEstimate as SubgroupEstimate
from .frame_subgroups import SubgroupEstimates as SubgroupEstimates
from .frame_sums import from_frame as from_frame
