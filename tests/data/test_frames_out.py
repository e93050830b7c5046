"""``to_frame()`` gives the library that the rows came in."""

import pickle

import narwhals as nw
import numpy as np
import pytest

import calibrant as cal
from calibrant.calibrators import PlattScaling

from ..versions import READS_BY_PROTOCOL

LIBRARIES = ("pandas", "polars", "pyarrow")
#: What has a table, of labels and probabilities of two classes.
TABLES = {
    "report": cal.report,
    "estimate": cal.estimate,
    "reliability_curve": cal.reliability_curve,
    "subgroup_calibration": lambda y, p: cal.subgroup_calibration(y, p, np.arange(400) % 2),
    "find_segments": lambda y, p: cal.find_segments(y, p, {"half": np.arange(400) % 2}),
    "compare_models": lambda y, p: cal.compare_models(y, {"a": p, "b": p}),
    "compare_calibrators": lambda y, p: cal.compare_calibrators(y, p, candidates={"platt": PlattScaling()}, cv=2),
    "calibration_belt": cal.significance.calibration_belt,
    "decision_curve": cal.decision_curve,
    "risk_coverage": cal.decisions.risk_coverage,
    "murphy_curve": cal.scores.murphy_curve,
    "brier_curve": cal.scores.brier_curve,
    "confidence_direction": cal.significance.confidence_direction,
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
    sums = cal.Accumulator(notion="classwise").update(y.astype(str), matrix)
    for curves in (cal.reliability_curve(y.astype(str), matrix, notion="classwise"), sums.reliability_curve()):
        assert [library_of(curve.to_frame()) for curve in curves.values()] == ["pyarrow", "pyarrow"]
    assert library_of(cal.report(y.astype(str), matrix).classes_frame()) == "pyarrow"


#: What sums of rows give with a table.
OF_SUMS = {
    "sums": lambda sums: sums,
    "estimate": lambda sums: sums.estimate(),
    "curve": lambda sums: sums.reliability_curve(),
    "report": lambda sums: sums.report(),
    "decompose": lambda sums: sums.decompose(),
}


@pytest.mark.parametrize("name", OF_SUMS)
def test_sums_remember_the_first_piece_that_says(name, rows):
    y, p = rows
    nothing, first = cal.Accumulator().update(y[:100], p[:100]), column(p[100:200], "polars")
    assert library_of(OF_SUMS[name](nothing).to_frame()) == "pandas"
    known = cal.Accumulator().update(y[:100], p[:100]).update(y[100:200], first)
    known.update(y[200:], column(p[200:], "pyarrow"))
    for sums in (known, nothing + known, known + nothing, sum([nothing, known, nothing])):
        assert library_of(OF_SUMS[name](sums).to_frame()) == "polars"
    assert library_of(OF_SUMS[name](known).to_frame("pyarrow")) == "pyarrow"
    said = cal.Accumulator().update(cal.as_predictions(column(y, "pyarrow"), p))
    assert library_of(OF_SUMS[name](said).to_frame()) == "pyarrow"
    assert library_of(OF_SUMS[name](cal.Accumulator.from_bytes(known.to_bytes())).to_frame()) == "pandas"


def test_a_bad_piece_says_nothing(rows):
    y, p = rows
    sums = cal.Accumulator().update(y, p)
    with pytest.raises(ValueError):
        sums.update(y, column(p + 1, "polars"))
    assert library_of(sums.to_frame()) == "pandas"


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_of_an_engine(library, rows):
    y, p = rows
    data = {"y": y.tolist(), "p": p.tolist(), "site": (np.arange(400) % 2).tolist()}
    frame = nw.from_dict(data, backend=library).to_native()
    assert library_of(cal.from_frame(frame, label="y", prob="p").estimate().to_frame()) == library
    by_site = cal.from_frame(frame, label="y", prob="p", by="site")
    assert library_of(by_site.subgroups(n_resamples=99).to_frame()) == library
    assert library_of(by_site[1].to_frame()) == library
    if library == "polars":
        assert library_of(cal.from_frame(frame.lazy(), label="y", prob="p").report().to_frame()) == library


@READS_BY_PROTOCOL
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_model_corrected_for_optimism(library, rows):
    from sklearn.linear_model import LogisticRegression

    y, p = rows
    X = np.column_stack([p, p**2])
    frame = nw.from_dict({"a": X[:, 0].tolist(), "b": X[:, 1].tolist()}, backend=library).to_native()
    plain = cal.decisions.optimism_corrected(LogisticRegression(), X, y, n_resamples=3)
    assert library_of(plain.to_frame()) == "pandas"
    found = cal.decisions.optimism_corrected(LogisticRegression(), frame, y, n_resamples=3)
    assert library_of(found.to_frame()) == library
    # A frame's columns lie in memory in another order, so sums may differ in their last digits.
    got, want = ({c: r.to_frame()[c].to_numpy() for c in plain.to_frame().columns} for r in (found, plain))
    for column_name, values in want.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(got[column_name], values, rtol=1e-9)
        else:
            assert got[column_name].tolist() == values.tolist()
    of_labels = cal.decisions.optimism_corrected(LogisticRegression(), X, column(y, library), n_resamples=3)
    assert library_of(of_labels.to_frame()) == library
