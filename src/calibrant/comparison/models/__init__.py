"""Comparing models on the same rows: `compare_models`."""
