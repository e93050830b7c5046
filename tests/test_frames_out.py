"""``to_frame()`` gives the library that the rows came in."""

import pickle

import narwhals as nw
import numpy as np
import pytest

import calibrant as cal
from calibrant.calibrators import PlattScaling

LIBRARIES = ("pandas", "polars", "pyarrow")
#: What has a table, of labels and probabilities of two classes.
TABLES = {
    "report": cal.report,
    "estimate": cal.estimate,
    "reliability_curve": cal.reliability_curve,
    "subgroup_calibration": lambda y, p: cal.subgroup_calibration(y, p, np.arange(400) % 2),
    "compare_models": lambda y, p: cal.compare_models(y, {"a": p, "b": p}),
    "compare_calibrators": lambda y, p: cal.compare_calibrators(y, p, candidates={"platt": PlattScaling()}, cv=2),
    "calibration_belt": cal.calibration_belt,
    "decision_curve": cal.decision_curve,
    "risk_coverage": cal.risk_coverage,
    "murphy_curve": cal.murphy_curve,
    "brier_curve": cal.brier_curve,
    "confidence_direction": cal.confidence_direction,
    "decompose": cal.decompose,
}


def column(values, library):
    return nw.new_series("c", values.tolist(), backend=library).to_native()


def library_of(frame):
    return type(frame).__module__.partition(".")[0]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(7)
    p = rng.random(400)
    return (rng.random(400) < p).astype(int), p


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", TABLES)
def test_the_library_that_came_in(name, library, rows):
    y, p = rows
    plain, found = TABLES[name](y, p), TABLES[name](y, column(p, library))
    frame = found.to_frame()
    assert library_of(frame) == library
    assert library_of(plain.to_frame()) == "pandas"
    assert library_of(found.to_frame("polars")) == "polars"
    assert library_of(pickle.loads(pickle.dumps(found)).to_frame()) == library
    assert str(found.to_dict()) == str(plain.to_dict()) or name == "compare_calibrators"  # which has seconds
    assert nw.from_native(frame).columns == list(plain.to_frame().columns)


def test_scores_win_and_predictions_remember(rows):
    y, p = rows
    assert library_of(cal.estimate(column(y, "pandas"), column(p, "polars")).to_frame()) == "polars"
    assert library_of(cal.estimate(y_true=column(y, "pandas"), y_prob=column(p, "polars")).to_frame()) == "polars"
    assert library_of(cal.estimate(column(y, "polars"), p).to_frame()) == "polars"
    judged = cal.as_predictions(column(y, "polars"), p)
    assert library_of(cal.estimate(judged).to_frame()) == "polars"
    assert library_of(cal.report(judged.subset(slice(0, 100))).classes_frame()) == "polars"
    matrix = nw.from_dict({"0": (1 - p).tolist(), "1": p.tolist()}, backend="pyarrow").to_native()
    assert library_of(cal.report(y.astype(str), matrix).classes_frame()) == "pyarrow"
