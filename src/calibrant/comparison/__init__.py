"""Comparisons: models on the same rows, and subgroups of rows."""
