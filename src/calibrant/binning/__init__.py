"""Binning: edges, mappings of samples to bins, and the sums a bin holds."""

from .edges import Edges, fixed_edges, quantile_edges, resolve_n_bins, uniform_edges
from .moments import BinMoments

__all__ = ["BinMoments", "Edges", "fixed_edges", "quantile_edges", "resolve_n_bins", "uniform_edges"]
