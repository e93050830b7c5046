"""Sums over rows that add, merge and resample: bins, grids and distinct scores; and smoothing of counts."""

from .bandwidth import BandwidthRule, resolve_bandwidth
from .bins import BinMoments, Bins
from .edges import Edges, fixed_edges, resolve_n_bins, uniform_edges
from .grid import Grid, GridMoments
from .quantiles import QuantileBins, quantile_edges
from .rank_axis import RankMoments
from .runs import DistinctScores, Runs
from .smoothing import KERNELS, Smoother

__all__ = [
    "KERNELS",
    "BandwidthRule",
    "BinMoments",
    "Bins",
    "DistinctScores",
    "Edges",
    "Grid",
    "GridMoments",
    "QuantileBins",
    "RankMoments",
    "Runs",
    "Smoother",
    "fixed_edges",
    "quantile_edges",
    "resolve_bandwidth",
    "resolve_n_bins",
    "uniform_edges",
]
