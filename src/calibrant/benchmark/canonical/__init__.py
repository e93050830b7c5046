"""Track "canonical": the experiments of Popordanoska, Sayer & Blaschko (2022), and trials for the default."""

from __future__ import annotations

from .entries import CURVES, MEASURES, TRIALS, Entry
from .laws import PUBLISHED, VectorDistribution, others, published
from .runner import CanonicalConfig, run_canonical, run_default
from .sharpness import run_sharpness

__all__ = [
    "CURVES",
    "MEASURES",
    "PUBLISHED",
    "TRIALS",
    "CanonicalConfig",
    "Entry",
    "VectorDistribution",
    "others",
    "published",
    "run_canonical",
    "run_default",
    "run_sharpness",
]
