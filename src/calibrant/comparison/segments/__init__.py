"""Segments: rows on which the model is wrong, found by their features."""
