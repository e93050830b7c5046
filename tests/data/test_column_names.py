"""Names of columns with a data frame, in place of arrays: alike in every function of labels and probabilities."""

import inspect

import numpy as np
import pytest

import calibrant as cal
from calibrant import decisions, significance
from calibrant.calibrators import select_calibrator

N = 400
RNG = np.random.default_rng(0)
P = RNG.random(N)
COLUMNS = {
    "y": (RNG.random(N) < P).astype(int),
    "p": P,
    "q": P**1.5,
    "r": 1 - P,
    "w": RNG.integers(1, 4, N),
    "site": np.arange(N) // 4,
    "region": np.where(np.arange(N) % 2, "north", "south"),
}
Y = COLUMNS["y"]


@pytest.fixture(params=["pandas", "polars", "pyarrow"])
def frame(request):
    library = pytest.importorskip(request.param)
    return library.table(COLUMNS) if request.param == "pyarrow" else library.DataFrame(COLUMNS)


@pytest.mark.parametrize(
    "function",
    [
        cal.calibration_error,
        cal.estimate,
        cal.report,
        cal.reliability_curve,
        cal.calibration_test,
        significance.spiegelhalter_test,
        decisions.calibration_measures,
        cal.as_predictions,
    ],
    ids=lambda f: f.__name__,
)
def test_the_same_as_of_arrays(frame, function):
    named = function(frame, label="y", prob="p", weight="w")
    plain = function(Y, P, sample_weight=COLUMNS["w"])
    assert repr(named) == repr(plain)
    assert {"label", "prob", "weight"} <= set(inspect.signature(function).parameters)


def test_columns_of_several_labels_go_by_name(frame):
    named = cal.as_predictions(frame, label="y", prob=["r", "p"], labels=[0, 1], groups="site")
    plain = cal.as_predictions(Y, np.column_stack([1 - P, P]), groups=COLUMNS["site"])
    np.testing.assert_array_equal(named.probs, plain.probs)
    np.testing.assert_array_equal(named.groups, plain.groups)


def test_subgroups_and_groups_are_columns(frame):
    few = {"n_resamples": 99}
    named = cal.subgroup_calibration(frame, label="y", prob="p", by="region", groups="site", **few)
    plain = cal.subgroup_calibration(Y, P, {"region": COLUMNS["region"]}, groups=COLUMNS["site"], **few)
    assert named.to_dict() == plain.to_dict()
    both = cal.subgroup_calibration(frame, label="y", prob="p", by=["region", "w"], **few)
    assert [column.name for column in both.columns] == ["region", "w"]


def test_models_are_columns(frame):
    few = {"n_resamples": 20}
    plain = cal.compare_models(Y, {"p": P, "q": COLUMNS["q"]}, **few).to_dict()
    assert cal.compare_models(frame, label="y", prob=["p", "q"], **few).to_dict() == plain
    models = frame.select(["p", "q"]) if hasattr(frame, "select") else frame[["p", "q"]]
    assert cal.compare_models(Y, models, **few).to_dict() == plain
    named = cal.compare_models(frame, label="y", prob={"old": "p", "new": ["r", "q"][1:]}, **few)
    assert [model.name for model in named.models] == ["old", "new"]


@pytest.mark.parametrize("prob", ["p", ["r", "p"]])
def test_calibrators_are_chosen_by_columns(frame, prob):
    few = {"candidates": ["identity", "platt"]}
    named = {"label": "y", "prob": prob, "weight": "w", "groups": "site"} | few
    of_rows = {"sample_weight": COLUMNS["w"], "groups": COLUMNS["site"]} | few
    scores = P if prob == "p" else np.column_stack([1 - P, P])
    if prob != "p":
        named["labels"] = [0, 1]
    found, plain = cal.compare_calibrators(frame, **named), cal.compare_calibrators(Y, scores, **of_rows)
    assert (found.digest, found.verdict) == (plain.digest, plain.verdict)
    found, plain = select_calibrator(frame, **named), select_calibrator(scores, Y, **of_rows)
    for one, other in zip(found.table, plain.table, strict=True):
        assert one | {"seconds": 0} == other | {"seconds": 0}
    with pytest.raises(TypeError, match="label names columns of the frame: y must not be given with it"):
        select_calibrator(frame, Y, label="y", prob="p")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"label": "y"}, "prob must be given"),
        ({"prob": "p"}, "label must be given"),
        ({"label": "y", "prob": "p", "y_prob": P}, "y_prob must not be given"),
        ({"label": "y", "prob": "p", "weight": "w", "sample_weight": P}, "sample_weight must not be given"),
        ({"label": "y", "prob": "y"}, "already used as label"),
        ({"label": "y", "prob": "z"}, "prob must be a column of the frame ('y', 'p', "),
        ({"label": "y", "prob": 1}, "prob must be the name of a column; got 1"),
        ({"label": "y", "prob": "p", "groups": "z"}, "groups must be a column of the frame"),
    ],
)
def test_names_that_cannot_be_read(frame, options, text):
    for function in (cal.report, cal.as_predictions, cal.compare_calibrators):
        with pytest.raises((TypeError, ValueError)) as error:
            function(frame, **options)
        assert text in str(error.value)


def test_names_need_a_frame_in_memory():
    for given in (Y, cal.as_predictions(Y, P)):
        with pytest.raises(TypeError, match="name columns of a data frame in memory"):
            cal.report(given, label="y", prob="p")
    with pytest.raises(TypeError, match="does not take 'label'"):
        cal.report(cal.Accumulator().update(Y, P), label="y")
    with pytest.raises(TypeError, match="from_frame reads lazy frames"):
        cal.report(pytest.importorskip("polars").LazyFrame(COLUMNS), label="y", prob="p")
