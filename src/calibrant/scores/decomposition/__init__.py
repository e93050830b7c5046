"""What of a mean score is miscalibration, what discrimination, and what a better model could gain."""

from .decompose import decompose
from .result import Decomposition

__all__ = ["Decomposition", "decompose"]
