"""Every result shows itself: one line, text, HTML, a dictionary, and a table or a picture where it is one."""

import importlib
import json
import pkgutil

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from calibrant.calibrators import AutoCalibrator, Identity, PlattScaling, select_calibrator
from calibrant.data.result import WIDEST, Picture, Result, Shown, Table, Tabular, short
from calibrant.measure.answers import Answers

N = 400
HOSTILE = "<script>alert(1)</script>"


def everything():
    rng = np.random.default_rng(0)
    p = rng.random(N)
    y = (rng.random(N) < p**1.4).astype(int)
    q = rng.dirichlet(np.ones(3), N)
    k = (q.cumsum(axis=1) > rng.random((N, 1))).argmax(axis=1)
    group = np.where(rng.random(N) < 0.5, HOSTILE, "b")
    estimate = cal.estimate(y, p, random_state=0)
    report, several = cal.report(y, p), cal.report(k, q, notion="classwise")
    models = cal.compare_models(y, {HOSTILE: p, "other": np.clip(p + 0.05, 0, 1)})
    rows = pd.DataFrame({"y": y, "p": p, HOSTILE: group})
    of_frame = cal.from_frame(rows, label="y", prob="p", by=HOSTILE)
    estimates = of_frame.estimate()
    groups = cal.subgroup_calibration(y, p, by=group)
    cost = cal.expected_cost(y, p, [[0, 1], [5, 0]])
    compared = cal.compare_calibrators(y, p, candidates={"platt": PlattScaling(), HOSTILE: Identity()})
    monitor = cal.CalibrationMonitor()
    monitor.update(y, p)
    return {
        "estimate": estimate,
        "estimate of classes": cal.estimate(k, q, notion="classwise", random_state=0),
        "curve": cal.reliability_curve(y, p, level=0.95, random_state=0),
        "bins": cal.reliability_curve(y, p, estimator="binned", level=0.95),
        "isotonic": cal.reliability_curve(y, p, estimator="isotonic"),
        "report": report,
        "report of classes": several,
        "evidence": report.evidence,
        "gain of a repair": report.gain,
        "row of a class": several.per_class[0],
        "curves": report.curves,
        "test": cal.calibration_test(y, p, n_resamples=50),
        "test of a known law": cal.hosmer_lemeshow(y, p),
        "test without either": cal.spiegelhalter_test(y, p),
        "belt": cal.calibration_belt(y, p),
        "decomposition": cal.decompose(y, p, level=0.95, random_state=0),
        "murphy": cal.murphy_curve(y, p),
        "brier curve": cal.brier_curve(y, p),
        "models": models,
        "model": models.models[0],
        "difference": models.differences[0],
        "ranks": cal.rank_models({"a": [1, 2, 1, 3], "b": [2, 3, 2, 4], HOSTILE: [3, 1, 3, 5]}),
        "groups": groups,
        "column": groups.columns[0],
        "group": groups.groups[0],
        "difference of groups": groups.columns[0].largest_difference,
        "measures": cal.calibration_measures(y, p),
        "decisions": cal.decision_curve(y, p),
        "coverage": cal.risk_coverage(k, q),
        "direction": cal.confidence_direction(k, q, notion="classwise"),
        "optimism": cal.optimism_corrected(LogisticRegression(), rng.normal(size=(N, 3)), y, n_resamples=5),
        "cost": cost,
        "mean cost": cost.realised,
        "decision error": cal.decision_calibration_error(y, p, thresholds=(0.1, 0.3)),
        "calibrators": compared,
        "calibrator": compared.rows[0],
        "selection": select_calibrator(p, y, candidates={"platt": PlattScaling(), HOSTILE: Identity()}),
        "accumulator": cal.Accumulator().add(y, p),
        "groups of a frame": of_frame,
        "estimates of a frame": estimates,
        "estimate of a frame": estimates.groups[0],
        "monitor": monitor,
        "predictions": cal.as_predictions(y, p),
    }


RESULTS = everything()


@pytest.fixture(params=list(RESULTS))
def result(request):
    return RESULTS[request.param]


def subclasses(cls):
    return {cls}.union(*(subclasses(c) for c in cls.__subclasses__()))


def test_every_result_of_the_package_is_in_the_table():
    for module in pkgutil.walk_packages(cal.__path__, "calibrant."):
        if "torch" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    concrete = {c for c in subclasses(Shown) if c.__module__.startswith("calibrant.")} - {Shown, Result, Table, Picture}
    assert {c.__name__ for c in concrete} == {type(r).__name__ for r in RESULTS.values()}


def test_repr_is_one_short_line(result):
    assert len(repr(result)) <= WIDEST
    assert "\n" not in repr(result)
    assert repr(result).startswith(type(result).__name__ + "(")
    assert repr(result).endswith(")")


def test_str_is_text_and_html_is_that_text_escaped(result):
    assert len(str(result)) > 10
    assert str(result) != repr(result)
    html = result._repr_html_()
    assert html.startswith("<pre")
    assert html.endswith("</pre>")
    assert "<script" not in html


def test_to_dict_is_json_and_complete(result):
    if not isinstance(result, Result):  # what has state shows it, and is saved otherwise
        assert not hasattr(result, "to_dict")
        return
    held = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert len(held) >= 2


def test_a_table_has_rows_of_named_columns(result):
    if not isinstance(result, Tabular):
        assert not hasattr(result, "to_frame")
        return
    frame = result.to_frame("pandas")
    assert len(frame) >= 1
    assert len(set(frame.columns)) == frame.shape[1] >= 3
    assert result.to_frame("polars").shape == result.to_frame("pyarrow").shape == frame.shape
    with pytest.raises(ValueError, match="backend must be one of"):
        result.to_frame("excel")


def test_a_picture_draws_itself(result):
    if not isinstance(result, (Picture, Answers)):
        assert not hasattr(result, "plot")
        return
    if result is RESULTS["estimate of classes"]:
        with pytest.raises(ValueError, match="has no curve of its own"):
            result.plot()
        return
    if result is RESULTS["test without either"]:
        with pytest.raises(ValueError, match="neither draws nor a chi-squared law"):
            result.plot()
        return
    display = result.plot()
    assert type(display).__name__ == result.display
    assert display.figure_.axes
    plt.close(display.figure_)
    if display.sizes_its_figure:
        with pytest.raises(TypeError, match="omit ax"):
            result.plot(plt.subplots()[1])
    elif result.display != "SubgroupDisplay":
        ax = plt.subplots()[1]
        assert ax in np.ravel(result.plot(ax).ax_) or len(result.plot().figure_.axes) > 2
    plt.close("all")


def test_values_in_few_characters():
    assert short(np.float64(0.123456)) == "0.1235"
    assert short(cal.Interval(0.0, 0.25)) == "(0, 0.25)"
    assert short((0.1, "a", None)) == "(0.1, 'a', None)"
    assert short(np.zeros(3)) == "<array of 3>"
    assert short({"a": 1}) == "<dict of 1>"
    assert len(short("x" * 1000)) == 60


def test_auto_calibrator_shows_what_it_chose():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    auto = AutoCalibrator()
    assert repr(auto) == "AutoCalibrator()"
    auto.fit(p, rng.random(300) < p)
    assert f"chosen={auto.chosen_!r}" in repr(auto)
    assert len(repr(auto)) <= WIDEST
    assert f"chosen: {auto.chosen_}" in str(auto)
    assert auto.chosen_ in auto._repr_mimebundle_()["text/html"]
    assert "text/html" in AutoCalibrator()._repr_mimebundle_()
