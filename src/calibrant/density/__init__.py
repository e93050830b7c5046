"""Reflected kernel smoothing on a grid: linear-binned counts, kernels, bandwidth rules, the DCT."""

from .bandwidth import BandwidthRule, resolve_bandwidth
from .grid import GridMoments
from .kernels import KERNELS
from .smooth import Smoother

__all__ = ["KERNELS", "BandwidthRule", "GridMoments", "Smoother", "resolve_bandwidth"]
