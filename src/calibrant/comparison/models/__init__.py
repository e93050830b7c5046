"""Comparing models: on the same rows (`compare_models`), and over several data sets (`rank_models`)."""

from .compare import compare_models
from .result import ComparedModel, Difference, ModelComparison

__all__ = ["ComparedModel", "Difference", "ModelComparison", "compare_models"]
