"""Lazy frames of any engine to the sums of an :class:`calibrant.Accumulator`."""

from .frame_groups import FrameGroups as FrameGroups
from .frame_groups import GroupEstimate as GroupEstimate
from .frame_groups import GroupEstimates as GroupEstimates
from .frame_sums import from_frame as from_frame
