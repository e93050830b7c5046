"""Lazy frames of any engine to the sums of an :class:`calibrant.Accumulator`."""

from .build import from_frame as from_frame
from .subgroups import FrameGroups as FrameGroups
from .subgroups import GroupEstimate as GroupEstimate
from .subgroups import GroupEstimates as GroupEstimates
