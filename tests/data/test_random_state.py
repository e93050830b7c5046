"""`random_state` is judged by one check, wherever it is taken, whether or not anything is drawn."""

import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from calibrant import calibrators as c

from ..surface import NAMES

RNG = np.random.default_rng(0)
P = RNG.random(200)
Y = (RNG.random(200) < P).astype(int)
X = RNG.normal(size=(200, 2))
SUMS = cal.Accumulator().update(Y, P)
DATED = pd.DataFrame({"y": Y, "p": P, "day": pd.date_range("2026-01-01", periods=200)})
FRAME = {"y": Y, "p": P, "by": np.array(["a", "b"])[np.arange(200) % 2]}


def subgroup_sums():
    import polars as pl

    return cal.from_frame(pl.DataFrame(FRAME), label="y", prob="p", by="by")


#: A call of all that take it, by name.
CALLS = {
    "Accumulator.calibration_test": lambda seed: SUMS.calibration_test(random_state=seed),
    "Accumulator.estimate": lambda seed: SUMS.estimate(random_state=seed),
    "Accumulator.plot": lambda seed: SUMS.plot(random_state=seed),
    "Accumulator.reliability_curve": lambda seed: SUMS.reliability_curve(random_state=seed),
    "Accumulator.report": lambda seed: SUMS.report(random_state=seed),
    "SegmentCalibrator": lambda seed: c.SegmentCalibrator(random_state=seed).fit(P, Y, features=X),
    "AutoCalibrator": lambda seed: c.AutoCalibrator(random_state=seed).fit(P, Y),
    "CalibratedModel": lambda seed: c.CalibratedModel(LogisticRegression(), random_state=seed).fit(X, Y),
    "CalibrationMapDisplay.from_calibrators": lambda seed: cal.plot.CalibrationMapDisplay.from_calibrators(
        {"platt": c.PlattScaling().fit(P, Y)}, random_state=seed
    ),
    "CrossFit": lambda seed: cal.estimators.CrossFit(random_state=seed),
    "ReliabilityDisplay.from_predictions": lambda seed: cal.ReliabilityDisplay.from_predictions(
        Y, P, random_state=seed
    ),
    "SubgroupSums.subgroups": lambda seed: subgroup_sums().subgroups(random_state=seed),
    "adaptive_test": lambda seed: cal.significance.adaptive_test(Y, P, random_state=seed),
    "calibration_measures": lambda seed: cal.calibration_measures(Y, P, random_state=seed),
    "calibration_test": lambda seed: cal.calibration_test(Y, P, random_state=seed),
    "compare_calibrators": lambda seed: cal.compare_calibrators(P, Y, random_state=seed),
    "compare_models": lambda seed: cal.compare_models(Y, {"a": P, "b": P**2}, random_state=seed),
    "cox_test": lambda seed: cal.significance.cox_test(Y, P, random_state=seed),
    "cumulative_test": lambda seed: cal.significance.cumulative_test(Y, P, random_state=seed),
    "decision_calibration_error": lambda seed: cal.decisions.decision_calibration_error(Y, P, random_state=seed),
    "decompose": lambda seed: cal.decompose(Y, P, random_state=seed),
    "estimate": lambda seed: cal.estimate(Y, P, random_state=seed),
    "estimate_prior": lambda seed: cal.estimate_prior(P, reference=(Y, P), random_state=seed),
    "evalue_test": lambda seed: cal.significance.evalue_test(Y, P, random_state=seed),
    "expected_performance": lambda seed: cal.expected_performance(P, reference=(Y, P), random_state=seed),
    "expected_cost": lambda seed: cal.expected_cost(Y, P, {"fp": 1, "fn": 2}, random_state=seed),
    "grouping_loss": lambda seed: cal.scores.grouping_loss(Y, P, X, random_state=seed),
    "hosmer_lemeshow_test": lambda seed: cal.significance.hosmer_lemeshow_test(Y, P, random_state=seed),
    "kernel_test": lambda seed: cal.significance.kernel_test(Y, P, random_state=seed),
    "load_breast_cancer_predictions": lambda seed: cal.datasets.load_breast_cancer_predictions(random_state=seed),
    "load_digits_predictions": lambda seed: cal.datasets.load_digits_predictions(random_state=seed),
    "make_scores": lambda seed: cal.datasets.make_scores(10, random_state=seed),
    "make_survey": lambda seed: cal.datasets.make_survey(10, random_state=seed),
    "optimism_corrected": lambda seed: cal.decisions.optimism_corrected(
        LogisticRegression(), X, Y, n_resamples=2, n_jobs=1, random_state=seed
    ),
    "pearson_test": lambda seed: cal.significance.pearson_test(Y, P, random_state=seed),
    "reliability_curve": lambda seed: cal.reliability_curve(Y, P, random_state=seed),
    "report": lambda seed: cal.report(Y, P, random_state=seed),
    "SubgroupSums.over_time": lambda seed: cal.from_frame(
        DATED, label="y", prob="p", time="day", every="month"
    ).over_time(random_state=seed),
    "calibration_over_time": lambda seed: cal.calibration_over_time(Y, P, np.arange(len(Y)), random_state=seed),
    "find_segments": lambda seed: cal.find_segments(Y, P, X, random_state=seed),
    "select_calibrator": lambda seed: c.select_calibrator(P, Y, random_state=seed),
    "spiegelhalter_test": lambda seed: cal.significance.spiegelhalter_test(Y, P, random_state=seed),
    "subgroup_calibration": lambda seed: cal.subgroup_calibration(Y, P, {"by": FRAME["by"]}, random_state=seed),
}


def takes_it(value):
    try:
        return "random_state" in inspect.signature(value).parameters
    except (TypeError, ValueError):
        return False


def test_the_table_has_all_that_take_it():
    found = {name for name, value in NAMES.items() if takes_it(value)}
    for name, value in NAMES.items():
        if inspect.isclass(value):
            methods = [m for m in dir(value) if not m.startswith("_") and m != "curve_function"]  # another's
            found |= {f"{name}.{method}" for method in methods if takes_it(getattr(value, method))}
    assert found == set(CALLS)


@pytest.mark.parametrize("seed", ["x", -1, 1.5, [1, 2], True], ids=repr)
@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_random_state(name, seed):
    with pytest.raises((ValueError, TypeError), match=r"^random_state must be (None, )?an int >= 0.*; got ") as said:
        CALLS[name](seed)
    assert repr(seed) in str(said.value)


@pytest.mark.parametrize("name", ["AutoCalibrator", "CalibratedModel", "estimate", "select_calibrator", "make_scores"])
@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState, lambda seed: 2**40 + seed])
def test_random_states_of_every_kind(name, make):
    """Of NumPy's two kinds, and seeds that scikit-learn does not take: what they draw is the same each time."""
    one, other = CALLS[name](make(3)), CALLS[name](make(3))
    for key, value in vars(one).items():
        if isinstance(value, (float, np.ndarray)):
            np.testing.assert_array_equal(value, getattr(other, key))
