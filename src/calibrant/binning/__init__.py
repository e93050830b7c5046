"""Binning: edges, mappings of samples to bins, and the sums a bin, or a distinct score, holds."""

from .edges import Edges, fixed_edges, resolve_n_bins, uniform_edges
from .moments import BinMoments, Bins
from .quantile import QuantileBins, quantile_edges
from .runs import DistinctScores, Runs

__all__ = [
    "BinMoments",
    "Bins",
    "DistinctScores",
    "Edges",
    "QuantileBins",
    "Runs",
    "fixed_edges",
    "quantile_edges",
    "resolve_n_bins",
    "uniform_edges",
]
