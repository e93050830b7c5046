"""Segments: rows on which the model is miscalibrated, found by their features."""
