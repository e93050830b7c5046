"""Resampling, bands and intervals. Everything works on cells (bins, grid nodes), never on rows."""
