"""Calibrators: scikit-learn classifiers that map a classifier's scores to probabilities that can be trusted."""

from __future__ import annotations

from .base import BinaryCalibrator, Calibrator
from .gaussian_process import GaussianProcessCalibrator
from .grouped import GroupCalibrator
from .histogram import BayesianBinning, HistogramBinning, ScalingBinning
from .identity import Identity
from .linear import DirichletCalibration, MatrixScaling, VectorScaling
from .logistic import BetaCalibration, PlattScaling, QuadraticLogit
from .mixture import Mixture
from .model import CalibratedModel
from .monotone import IsotonicCalibrator, RocHullCalibrator, VennAbers
from .near_isotonic import NearIsotonic
from .ordered import OrderPreserving
from .pairs import OneVsOne
from .saving import from_dict, load_calibrator, save_calibrator, to_dict
from .select import AutoCalibrator, Selection, default_candidates, named_calibrator, select_calibrator
from .spline import CurveCalibrator, SplineCalibrator
from .temperature import EnsembleTemperatureScaling, TemperatureScaling
from .top_label import TopLabelCalibrator
from .wrappers import Composed, LabelSmoothing, OneVsRest

__all__ = [
    "AutoCalibrator",
    "BayesianBinning",
    "BetaCalibration",
    "BinaryCalibrator",
    "CalibratedModel",
    "Calibrator",
    "Composed",
    "CurveCalibrator",
    "DirichletCalibration",
    "EnsembleTemperatureScaling",
    "GaussianProcessCalibrator",
    "GroupCalibrator",
    "HistogramBinning",
    "Identity",
    "IsotonicCalibrator",
    "LabelSmoothing",
    "MatrixScaling",
    "Mixture",
    "NearIsotonic",
    "OneVsOne",
    "OneVsRest",
    "OrderPreserving",
    "PlattScaling",
    "QuadraticLogit",
    "RocHullCalibrator",
    "ScalingBinning",
    "Selection",
    "SplineCalibrator",
    "TemperatureScaling",
    "TopLabelCalibrator",
    "VectorScaling",
    "VennAbers",
    "default_candidates",
    "from_dict",
    "load_calibrator",
    "named_calibrator",
    "save_calibrator",
    "select_calibrator",
    "to_dict",
]
