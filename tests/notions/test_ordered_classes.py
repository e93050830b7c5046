"""Ordered classes: every cumulative probability is a two-class problem, and so is their score."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.notions import ClassSpecific
from calibrant.scores import RankedProbability, mean_score, ranked_probability_score

RNG = np.random.default_rng(0)
K = 5
P = RNG.dirichlet(np.ones(K), 700)
SHIFTED = P**1.5 / (P**1.5).sum(axis=1, keepdims=True)
Y = (RNG.random((700, 1)) > SHIFTED.cumsum(axis=1)[:, :-1]).sum(axis=1)
WEIGHTS = {"none": None, "whole": RNG.integers(0, 4, 700), "relative": RNG.random(700)}
UP_TO = [np.minimum(P[:, : k + 1].sum(axis=1), 1) for k in range(K - 1)]
ESTIMATORS = [cal.Binned(), cal.Binned(10, "quantile"), cal.EmpiricalBayes(), cal.estimators.Isotonic()]


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_each_cumulative_probability_is_a_two_class_problem(estimator, weights):
    about = {"estimator": estimator, "sample_weight": WEIGHTS[weights]}
    for norm in (1, 2):
        each = [cal.calibration_error(k >= Y, s, norm=norm, **about) for k, s in enumerate(UP_TO)]
        found = cal.calibration_error(Y, P, notion="ordinal", norm=norm, **about)
        wanted = np.mean(each) if norm == 1 else np.mean(np.array(each) ** 2) ** 0.5
        assert found == pytest.approx(wanted, abs=1e-12)
    per_class = cal.estimate(Y, P, notion="ordinal", **about).per_class
    each = [cal.calibration_error(k >= Y, s, **about) for k, s in enumerate(UP_TO)]
    assert per_class == pytest.approx(dict(enumerate(each)), abs=1e-12)


def test_sums_in_pieces_are_those_of_all_rows():
    pieces = [cal.Accumulator(notion="ordinal", labels=range(K)).update(Y[a::3], P[a::3]) for a in range(3)]
    again = cal.Accumulator.from_bytes(sum(pieces).to_bytes())
    whole = cal.estimate(Y, P, notion="ordinal", estimator=cal.Binned())
    found = again.estimate(cal.Binned())
    assert found.per_class == pytest.approx(whole.per_class, abs=1e-12)
    assert found.interval == pytest.approx(whole.interval, abs=1e-9)
    assert again.report().notion == "ordinal"
    curves = cal.reliability_curve(Y, P, notion="ordinal", estimator="binned")
    np.testing.assert_allclose(
        curves[2].observed, cal.reliability_curve(Y <= 2, UP_TO[2], estimator="binned").observed, atol=1e-12
    )


def test_two_ordered_classes_are_one_problem():
    y, p = Y > 1, UP_TO[1]
    both = np.column_stack([p, 1 - p])
    found = cal.calibration_error(y, both, notion="ordinal", estimator="binned")
    assert found == pytest.approx(cal.calibration_error(~y, p, estimator="binned"), abs=1e-12)
    sums = cal.Accumulator(notion="ordinal").update(y, both)
    assert sums.calibration_error(estimator="binned") == pytest.approx(found, abs=1e-12)
    assert ranked_probability_score(y, both) == pytest.approx(cal.brier_score(~y, p, scale="half"), abs=1e-12)


def test_three_classes_are_two_problems_that_do_not_mirror():
    p = RNG.dirichlet(np.ones(3), 400)
    y = np.zeros(400, dtype=int)
    found = cal.estimate(y, p, notion="ordinal", estimator=cal.Binned(), labels=[0, 1, 2])
    assert list(found.per_class) == [0, 1]
    assert found.value == pytest.approx(np.mean(list(found.per_class.values())), abs=1e-12)
    assert found.per_class[0] != pytest.approx(found.per_class[1])


def test_the_order_is_that_of_the_columns():
    names = ["low", "middle", "high"]
    p, y = RNG.dirichlet(np.ones(3), 300), RNG.integers(0, 3, 300)
    found = cal.calibration_error(np.array(names)[y], p, labels=names, notion="ordinal", estimator="binned")
    assert found == pytest.approx(cal.calibration_error(y, p, notion="ordinal", estimator="binned"), abs=1e-12)


def test_the_test_draws_labels_once_for_all_problems():
    calibrated = (RNG.random((700, 1)) > P.cumsum(axis=1)[:, :-1]).sum(axis=1)
    assert cal.calibration_test(calibrated, P, notion="ordinal").pvalue > 0.01
    assert cal.calibration_test(Y, P, notion="ordinal").pvalue < 0.05


def naive_score(y, p):
    total = 0.0
    for row, label in zip(p, y, strict=True):
        for k in range(len(row) - 1):
            total += (sum(row[: k + 1]) - (label <= k)) ** 2
    return total / len(y)


def test_the_score_is_the_naive_sum_and_that_of_scoringrules():
    assert ranked_probability_score(Y, P) == pytest.approx(naive_score(Y, P), abs=1e-12)
    assert ranked_probability_score(Y, P, scale="mean") == pytest.approx(naive_score(Y, P) / (K - 1), abs=1e-12)
    # scoringrules 0.10.0: rps_score([4, 1, 3, 2], these), categories from 1 on
    p = [[0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1], [0, 0.5, 0.5, 0]]
    found = cal.scores.score_samples([3, 0, 2, 1], p, RankedProbability())
    np.testing.assert_allclose(found, [0.46, 0.875, 1.14, 0.25], rtol=0, atol=1e-12)


def test_honest_forecasts_have_the_least_expected_score():
    honest = P[:50]
    expected = RankedProbability().expected
    assert (expected(SHIFTED[:50], honest) > expected(honest, honest)).all()


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("estimator", ["corp", "binned"])
def test_its_decomposition_is_the_sum_of_those_of_the_cumulative_problems(estimator, weights):
    w = WEIGHTS[weights]
    found = cal.decompose(Y, P, score=RankedProbability(), estimator=estimator, sample_weight=w)
    each = [cal.decompose(k >= Y, s, estimator=estimator, sample_weight=w) for k, s in enumerate(UP_TO)]
    for part in ("total", "calibration", "discrimination", "refinement", "uncertainty", "within"):
        assert getattr(found, part) == pytest.approx(sum(getattr(d, part) for d in each), abs=1e-12), part
    assert found.total == pytest.approx(mean_score(Y, P, RankedProbability(), sample_weight=w), abs=1e-12)
    half = cal.decompose(Y, P, score=RankedProbability("mean"), estimator=estimator, sample_weight=w)
    assert half.calibration == pytest.approx(found.calibration / (K - 1), abs=1e-12)


def test_what_is_not_there_is_refused():
    with pytest.raises(ValueError, match="n_resamples and posterior must not be given"):
        cal.decompose(Y, P, score=RankedProbability(), n_resamples=10)
    with pytest.raises(ValueError, match="scale must be"):
        RankedProbability("half")
    with pytest.raises(TypeError, match="whose problems are not one per class"):
        cal.estimate(Y, P, notion="ordinal", estimator=cal.Binned(), assume="none")
    with pytest.raises(ValueError, match="one label per row"):
        cal.calibration_error(np.tri(K), P[:K], notion="ordinal")
    assert cal.calibration_error(Y, P, notion=ClassSpecific(2)) > 0
