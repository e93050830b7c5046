"""Worked numbers of Silva Filho et al., *Classifier calibration: a survey*, in exact arithmetic.

The printed 0.1873, 0.147, 0.2017, 0.1787, 0.2117 and 0.48 come from bin means that were rounded first; the
fractions here are what the tables give.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import calibrant as cal
from calibrant import Binned, calibration_error

F = Fraction
INF = float("inf")
THIRD = F(1, 3)


def tenths(*row: int) -> tuple[F, ...]:
    return tuple(F(v, 10) for v in row)


# Table 3: predictions for 30 instances, the first ten of class 1, then ten of class 2, then ten of class 3.
TABLE_3 = [
    tenths(10, 0, 0), tenths(9, 1, 0), tenths(8, 1, 1), tenths(7, 1, 2), tenths(6, 3, 1),
    tenths(4, 1, 5), (THIRD, THIRD, THIRD), (THIRD, THIRD, THIRD), tenths(2, 4, 4), tenths(1, 5, 4),
    tenths(8, 2, 0), tenths(7, 0, 3), tenths(5, 2, 3), tenths(4, 4, 2), tenths(4, 2, 4),
    tenths(3, 4, 3), tenths(2, 3, 5), tenths(1, 6, 3), tenths(1, 3, 6), tenths(0, 2, 8),
    tenths(8, 2, 0), tenths(8, 1, 1), tenths(8, 0, 2), tenths(6, 0, 4), tenths(3, 0, 7),
    tenths(2, 6, 2), tenths(2, 4, 4), tenths(0, 4, 6), tenths(0, 3, 7), tenths(0, 3, 7),
]  # fmt: skip
P = np.array([[float(v) for v in row] for row in TABLE_3])
Y = np.repeat([1, 2, 3], 10)
BINS = Binned(5)


def exact_bins(scores: list[F], outcomes: list[int], n_bins: int = 5) -> tuple[F, F]:
    """ECE and MCE in rational arithmetic, right-closed bins."""
    ece, mce = F(0), F(0)
    for j in range(n_bins):
        low, high = F(j, n_bins), F(j + 1, n_bins)
        rows = [(s, o) for s, o in zip(scores, outcomes, strict=True) if low < s <= high or (j == 0 and s == 0)]
        if rows:
            gap = abs(sum(o - s for s, o in rows)) / len(rows)
            ece += gap * len(rows) / len(scores)
            mce = max(mce, gap)
    return ece, mce


@pytest.mark.parametrize(
    ("k", "ece", "mce"),
    [(1, F(169, 900), F(17, 35)), (2, F(131, 900), F(7, 30)), (3, F(91, 450), F(3, 10))],
)
def test_class_specific(k, ece, mce):
    scores, outcomes = [row[k - 1] for row in TABLE_3], [int(y == k) for y in Y]
    assert exact_bins(scores, outcomes) == (ece, mce)
    for dtype, close in ((np.float64, 1e-12), (np.float32, 1e-6)):
        rows = P.astype(dtype)
        kwargs = {"notion": cal.notions.ClassSpecific(k), "estimator": BINS}
        assert calibration_error(Y, rows, **kwargs) == pytest.approx(float(ece), abs=close)
        assert calibration_error(Y, rows, norm=INF, **kwargs) == pytest.approx(float(mce), abs=close)
        one = calibration_error(np.array(outcomes), rows[:, k - 1], estimator=BINS)
        assert one == pytest.approx(float(ece), abs=close)


def test_classwise():
    assert (F(169, 900) + F(131, 900) + F(91, 450)) / 3 == F(241, 1350)
    value = calibration_error(Y, P, notion="classwise", estimator=BINS)
    assert value == pytest.approx(float(F(241, 1350)), abs=1e-12)


def test_variants_of_the_classwise_maximum():
    """The maximum over classes, the mean of the class MCEs, and the worst class's ECE."""
    worst = calibration_error(Y, P, notion="classwise", estimator=BINS, norm=INF)
    assert worst == pytest.approx(float(F(17, 35)), abs=1e-12)
    mean = calibration_error(Y, P, notion=cal.notions.Classwise("mean"), estimator=BINS, norm=INF)
    assert mean == pytest.approx(float((F(17, 35) + F(7, 30) + F(3, 10)) / 3), abs=1e-12)
    assert mean == pytest.approx(0.339683, abs=1e-6)
    worst_ece = calibration_error(Y, P, notion=cal.notions.Classwise("max"), estimator=BINS)
    assert worst_ece == pytest.approx(float(F(91, 450)), abs=1e-12)


def test_confidence():
    top = [row.index(max(row)) for row in TABLE_3]  # the first label wins a tie
    exact = exact_bins([max(row) for row in TABLE_3], [int(t + 1 == y) for t, y in zip(top, Y, strict=True)])
    assert exact == (F(19, 90), F(3, 10))
    assert calibration_error(Y, P, notion="confidence", estimator=BINS) == pytest.approx(float(F(19, 90)), abs=1e-12)
    value = calibration_error(Y, P, notion="confidence", estimator=BINS, norm=INF)
    assert value == pytest.approx(0.3, abs=1e-12)
    assert cal.expected_calibration_error(Y, P, n_bins=5) == pytest.approx(float(F(19, 90)), abs=1e-12)
    assert cal.expected_calibration_error(Y, P, n_bins=5, norm=np.inf) == pytest.approx(0.3, abs=1e-12)


def test_per_class_errors_of_an_estimate():
    per_class = cal.estimate(Y, P, notion="classwise", estimator=BINS, n_resamples=10, random_state=0).per_class
    expected = {1: 169 / 900, 2: 131 / 900, 3: 91 / 450}
    assert per_class == pytest.approx(expected, abs=1e-12)


def test_bins_of_class_1():
    """The survey's table of bins: instances, mean score and frequency."""
    curve = cal.reliability_curve(Y, P, notion=cal.notions.ClassSpecific(1), estimator=BINS)
    assert curve.count.tolist() == [11, 7, 3, 7, 2]
    np.testing.assert_allclose(curve.scores, [1 / 10, 37 / 105, 17 / 30, 27 / 35, 19 / 20], atol=1e-12)
    np.testing.assert_allclose(curve.observed, [2 / 11, 3 / 7, 1 / 3, 2 / 7, 1], atol=1e-12)


# Table 1: forecasts of rain in nine bins of width 1/10 (none below 10 %): the centre of each, days, days of rain.
RAIN = [
    (0.15, 22, 4), (0.25, 31, 7), (0.35, 18, 6), (0.45, 15, 8), (0.55, 13, 8),
    (0.65, 15, 11), (0.75, 7, 6), (0.85, 1, 1), (0.95, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("n_bins", "counts", "ece", "mce"),
    [
        (10, [0, 22, 31, 18, 15, 13, 15, 7, 1, 1], F(121, 2460), F(15, 100)),
        (5, [22, 49, 28, 22, 2], F(121, 2460), F(1, 10)),
        (2, [86, 37], F(79, 2460), F(61, 740)),
    ],
)
def test_rain(n_bins, counts, ece, mce):
    scores = np.concatenate([[s] * n for s, n, _ in RAIN])
    outcomes = np.concatenate([[1] * r + [0] * (n - r) for _, n, r in RAIN])
    assert (len(scores), outcomes.sum()) == (123, 52)
    assert cal.expected_calibration_error(outcomes, scores, n_bins=n_bins) == pytest.approx(float(ece), abs=1e-12)
    assert cal.expected_calibration_error(outcomes, scores, n_bins=n_bins, norm=np.inf) == pytest.approx(
        float(mce), abs=1e-12
    )
    curve = cal.reliability_curve(outcomes, scores, estimator=Binned(n_bins))
    assert curve.count.tolist() == counts
    if n_bins == 10:
        assert np.isnan(curve.observed[0])  # no forecast below 10 %: no number, and not the diagonal
        np.testing.assert_allclose(curve.observed[1:], [r / n for _, n, r in RAIN], atol=1e-12)
    weighted = cal.calibration_error(
        [0, 1] * len(RAIN),
        np.repeat([s for s, _, _ in RAIN], 2),
        estimator=Binned(n_bins),
        sample_weight=np.array([[n - r, r] for _, n, r in RAIN]).ravel(),
    )
    assert weighted == pytest.approx(float(ece), abs=1e-12)


def test_a_model_that_is_classwise_but_not_confidence_calibrated():
    """The survey's second footnote: 40 instances, four vectors of scores."""
    rows = [tenths(3, 3, 4), tenths(4, 3, 3), tenths(4, 6, 0), tenths(3, 6, 1)]
    P = np.repeat([[float(v) for v in row] for row in rows], 10, axis=0)
    y = np.repeat([0, 1, 2] * 4, [4, 2, 4, 3, 4, 3, 5, 5, 0, 2, 7, 1])
    edges = Binned((0.0, 0.05, 0.15, 0.35, 0.5, 1.0))
    for estimator in (edges, Binned(10)):
        assert calibration_error(y, P, notion="classwise", estimator=estimator) == pytest.approx(0, abs=1e-15)
        # Of those predicted with confidence 0.4, half of all, 35 % are right.
        assert calibration_error(y, P, notion="confidence", estimator=estimator) == pytest.approx(0.025, abs=1e-15)
    assert calibration_error(y, P, notion="canonical", estimator=cal.estimators.SimplexBinned(10)) > 0.1


def test_brier_and_log_loss_of_table_2():
    from calibrant.measure.scoring_rules import brier_per_sample, log_loss_per_sample

    scores = [tenths(9, 1, 0)] * 4 + [tenths(6, 2, 2)] * 6
    y = [0, 0, 0, 1, 0, 1, 1, 1, 2, 2]
    p = cal.as_predictions(y, np.array([[float(v) for v in row] for row in scores]))
    assert brier_per_sample(p).mean() == pytest.approx(0.712, abs=1e-12)
    assert log_loss_per_sample(p).mean() == pytest.approx(1.1176681825904016, abs=1e-12)
