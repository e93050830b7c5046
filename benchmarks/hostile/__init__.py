"""Hostile cases of every kind, each repeatable by its number, and how each ends: see :mod:`.__main__`."""
