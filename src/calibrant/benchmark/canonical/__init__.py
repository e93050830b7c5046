"""Track "canonical": the experiments of Popordanoska, Sayer & Blaschko (2022), and trials for the default."""

from __future__ import annotations

from .canonical_runner import CanonicalConfig, run_canonical, run_default
from .convergence import rate, run_convergence
from .entries import (
    CURVES,
    MEASURES,
    PUBLISHED,
    TRIALS,
    CanonicalEntry,
    VectorDistribution,
    others,
    published,
)
from .sharpness import run_sharpness

__all__ = [
    "CURVES",
    "MEASURES",
    "PUBLISHED",
    "TRIALS",
    "CanonicalConfig",
    "CanonicalEntry",
    "VectorDistribution",
    "others",
    "published",
    "rate",
    "run_canonical",
    "run_convergence",
    "run_default",
    "run_sharpness",
]
