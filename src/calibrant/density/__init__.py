"""Reflected kernel smoothing on a grid: linear-binned counts, kernels, bandwidth rules, the DCT."""

from .bandwidth import BandwidthRule, resolve_bandwidth
from .grid import Grid, GridMoments, RankMoments
from .kernels import KERNELS
from .smooth import Smoother

__all__ = ["KERNELS", "BandwidthRule", "Grid", "GridMoments", "RankMoments", "Smoother", "resolve_bandwidth"]
