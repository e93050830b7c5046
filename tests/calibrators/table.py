"""Every calibrator once, and what is true of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import calibrant.calibrators as c


@dataclass(frozen=True)
class Row:
    """A calibrator: whether it serves many classes, and whether its map rises."""

    calibrator: c.Calibrator
    many: bool = False
    rises: bool = True
    #: Largest error of the map on 20 000 calibrated rows, where the truth is the identity.
    error: float = 0.03
    #: Whether weights equal repeats exactly (a random part of the rows is drawn by row).
    repeats: bool = True
    #: Whether it cannot follow a map: its bins are too few, or it leaves scores alone.
    coarse: bool = False

    def __str__(self) -> str:
        return repr(self.calibrator)


ROWS = [
    Row(c.PlattScaling()),
    Row(c.PlattScaling(smoothing=False)),
    Row(c.PlattScaling(solver="closed-form"), error=0.06),  # the table's log odds are not normal: its bias
    Row(c.BetaCalibration()),
    Row(c.BetaCalibration("am")),
    Row(c.BetaCalibration("ab")),
    Row(c.BetaCalibration("a")),
    Row(c.QuadraticLogit(), rises=False),
    Row(c.HistogramBinning(), rises=False, error=0.08),
    Row(c.HistogramBinning("sqrt", "uniform"), rises=False, error=0.12),
    Row(c.HistogramBinning([0, 0.2, 0.5, 1]), rises=False, error=0.3, coarse=True),
    Row(c.HistogramBinning(15, "i-max"), rises=False, error=0.08),
    Row(c.BayesianBinning(), rises=False, error=0.08),
    Row(c.IsotonicCalibrator(), error=0.06),
    Row(c.IsotonicCalibrator(interpolation="step"), error=0.06),
    Row(c.IsotonicCalibrator(centred=True), error=0.06),
    Row(c.RocHullCalibrator(), error=0.06),
    Row(c.RocHullCalibrator(centred=True), error=0.06),
    Row(c.NearIsotonic(), rises=False, error=0.06),
    Row(c.NearIsotonic("bic"), rises=False, error=0.06),
    Row(c.NearIsotonic(20.0, interpolation="step"), rises=False, error=0.08),
    Row(c.VennAbers(), error=0.06),
    Row(c.SplineCalibrator()),
    Row(c.GaussianProcessCalibrator(), rises=False),
    Row(c.CurveCalibrator(), error=0.05, repeats=False),
    Row(c.CurveCalibrator("residual", cv=1), error=0.05),
    Row(c.Identity(), many=True, coarse=True),
    Row(c.EndSmoothing(), many=True, coarse=True),
    Row(c.TemperatureScaling(), many=True),
    Row(c.EnsembleTemperatureScaling(), many=True),
    Row(c.VectorScaling(), many=True),
    Row(c.VectorScaling(0), many=True),
    Row(c.VectorScaling(0.1), many=True),
    Row(c.VectorScaling(0, intercept=False), many=True),
    Row(c.MatrixScaling(), many=True),
    Row(c.MatrixScaling(0), many=True),
    Row(c.MatrixScaling(0.1), many=True),
    Row(c.DirichletCalibration(), many=True),
    Row(c.DirichletCalibration("l2", 1e-4), many=True),
    Row(c.OneVsRest(c.IsotonicCalibrator()), many=True, error=0.08, rises=False),
    Row(c.OneVsRest(c.BetaCalibration()), many=True, error=0.08, rises=False),
    Row(c.OneVsRest(c.IsotonicCalibrator(), shared=True), many=True, error=0.06),
    Row(c.OneVsRest(c.HistogramBinning(15, "i-max"), shared=True), many=True, error=0.12, rises=False),
    Row(c.OneVsOne(c.PlattScaling()), many=True, rises=False),
    Row(c.OneVsOne(c.BetaCalibration(), "likelihood"), many=True, error=0.06, rises=False),
    Row(c.OrderPreserving(), many=True),
    Row(c.OrderPreserving(2, 0.0), many=True),
    Row(
        c.Composed([c.EnsembleTemperatureScaling(), c.OneVsRest(c.IsotonicCalibrator(), shared=True)]),
        many=True,
        error=0.06,
    ),
    Row(c.Mixture([c.TemperatureScaling(), c.MatrixScaling()], [1, 2]), many=True),
    Row(c.TopLabelCalibrator(), many=True, error=0.06, rises=False),
    Row(c.TopLabelCalibrator(c.BetaCalibration(), 20), many=True, error=0.06, rises=False),
    Row(c.SubgroupCalibrator(), many=True),
    Row(c.SubgroupCalibrator(c.OneVsRest(c.IsotonicCalibrator(), shared=True)), many=True, error=0.06),
    Row(c.SegmentCalibrator(c.TemperatureScaling()), many=True),
    Row(c.SegmentCalibrator(c.OneVsRest(c.BetaCalibration()), cv=3), many=True, error=0.08, rises=False),
    Row(c.LabelSmoothing(c.TemperatureScaling(), 0.01), many=True),
]
BINARY = [row for row in ROWS if not row.many]
MANY = [row for row in ROWS if row.many]


def two(n, seed=0, power=1.0):
    """Scores and outcomes of two classes; ``logit P(1) = power · logit s``."""
    rng = np.random.default_rng(seed)
    s = rng.beta(0.8, 0.7, n).clip(1e-9, 1 - 1e-9)
    truth = 1 / (1 + (1 / s - 1) ** power)
    return s, (rng.random(n) < truth).astype(int), truth


def several(n, k, seed=0, power=1.0):
    """Probability vectors and labels; labels come from ``softmax(power · log p)``."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.7), n).clip(1e-9)
    p /= p.sum(axis=1, keepdims=True)
    q = p**power
    q /= q.sum(axis=1, keepdims=True)
    return p, (rng.random((n, 1)) > q.cumsum(axis=1)).sum(axis=1).clip(0, k - 1), q
