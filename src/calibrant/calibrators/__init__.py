"""Calibrators: scikit-learn classifiers that map a classifier's scores to probabilities that can be trusted."""

from __future__ import annotations

from .base import BinaryCalibrator, Calibrator
from .histogram import BayesianBinning, HistogramBinning, ScalingBinning
from .isotonic import IsotonicCalibrator, VennAbers
from .linear import DirichletCalibration, MatrixScaling, VectorScaling
from .logistic import BetaCalibration, PlattScaling, QuadraticLogit
from .smooth import CurveCalibrator, SplineCalibrator
from .temperature import EnsembleTemperatureScaling, TemperatureScaling
from .wrappers import LabelSmoothing, OneVsRest

__all__ = [
    "BayesianBinning",
    "BetaCalibration",
    "BinaryCalibrator",
    "Calibrator",
    "CurveCalibrator",
    "DirichletCalibration",
    "EnsembleTemperatureScaling",
    "HistogramBinning",
    "IsotonicCalibrator",
    "LabelSmoothing",
    "MatrixScaling",
    "OneVsRest",
    "PlattScaling",
    "QuadraticLogit",
    "ScalingBinning",
    "SplineCalibrator",
    "TemperatureScaling",
    "VectorScaling",
    "VennAbers",
]
