"""Every result shows itself: one line, text, HTML, a dictionary, and a table or a picture where it is one."""

import importlib
import json
import pkgutil
import re
from datetime import date
from html import escape
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from calibrant.calibrators import (
    AutoCalibrator,
    BetaCalibration,
    Identity,
    PlattScaling,
    TemperatureScaling,
    select_calibrator,
)
from calibrant.data import notebook
from calibrant.data.result import (
    WIDEST,
    Curve,
    Drawn,
    MeasuresDrawn,
    Paged,
    Picture,
    Printable,
    Result,
    Table,
    Tabular,
    short,
)

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
    groups = cal.subgroup_calibration(y, p, by=group)
    day = np.datetime64("2026-01-01") + (np.arange(N) // 4).astype("m8[D]")
    over_time = cal.calibration_over_time(np.where(np.arange(N) < 250, y, 1 - y), p, day, every="month")
    followed = cal.calibration_over_time(y, p, day, by={HOSTILE: group}, every="month")
    segments = cal.find_segments(np.where(np.arange(N) % 2, 1 - y, y), p, {HOSTILE: np.arange(N) % 2})
    cost = cal.expected_cost(y, p, [[0, 1], [5, 0]])
    compared = cal.compare_calibrators(y, p, candidates={"platt": PlattScaling(), HOSTILE: Identity()})
    monitor = cal.CalibrationMonitor()
    monitor.update(y, p)
    few = {"n_resamples": 20}
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
        "test of a known law": cal.significance.hosmer_lemeshow_test(y, p),
        "test without either": cal.significance.spiegelhalter_test(y, p),
        "belt": cal.significance.calibration_belt(y, p),
        "decomposition": cal.decompose(y, p, level=0.95, random_state=0),
        "grouping loss": cal.scores.grouping_loss(y, p, p[:, None] > 0.5),
        "murphy": cal.scores.murphy_curve(y, p),
        "brier curve": cal.scores.brier_curve(y, p),
        "models": models,
        "model": models.models[0],
        "difference": models.differences[0],
        "ranks": cal.scores.rank_models({"a": [1, 2, 1, 3], "b": [2, 3, 2, 4], HOSTILE: [3, 1, 3, 5]}),
        "groups": groups,
        "column": groups.columns[0],
        "subgroup": groups.subgroups[0],
        "difference of groups": groups.columns[0].largest_difference,
        "over time": over_time,
        "over time of subgroups": followed,
        "over time of classes": cal.calibration_over_time(k, q, day, notion="classwise", every="month"),
        "course": followed.courses[0],
        "period": over_time.periods[0],
        "change": over_time.changes[0],
        "segments": segments,
        "segment": segments.segments[0],
        "measures": cal.calibration_measures(y, p),
        "decisions": cal.decision_curve(y, p),
        "coverage": cal.decisions.risk_coverage(k, q),
        "direction": cal.significance.confidence_direction(k, q, notion="classwise"),
        "optimism": cal.decisions.optimism_corrected(LogisticRegression(), rng.normal(size=(N, 3)), y, n_resamples=5),
        "cost": cost,
        "mean cost": cost.realised,
        "decision error": cal.decisions.decision_calibration_error(y, p, thresholds=(0.1, 0.3)),
        "calibrators": compared,
        "calibrator": compared.rows[0],
        "selection": select_calibrator(p, y, candidates={"platt": PlattScaling(), HOSTILE: Identity()}),
        "accumulator": cal.Accumulator().update(y, p),
        "groups of a frame": of_frame,
        "report on groups of a frame": of_frame.subgroups(),
        "monitor": monitor,
        "censoring": cal.censoring_weights(p, y, 0.5),
        "predictions": cal.as_predictions(y, p),
        "expected performance": (expected := cal.expected_performance(p, reference=(y, p), time=day, **few)),
        "expected metric": expected.metrics[0],
        "expected period": expected.periods[0],
        "shift of a column": expected.shifts[0],
        "expected performance of all": cal.expected_performance(q, reference=(k, q), prior="estimate", **few),
        "base rate": cal.estimate_prior(p, reference=(y, p), n_resamples=20),
        "base rates": cal.estimate_prior(q, reference=(k, q), n_resamples=20),
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
    concrete = {c for c in subclasses(Printable) if c.__module__.startswith("calibrant.")} - {
        Printable,
        Result,
        Table,
        Picture,
        Curve,
        Drawn,
        MeasuresDrawn,
        Paged,
        cal.llm.Answers,  # Predictions that were read from a log: tests/llm
    }
    assert {c.__name__ for c in concrete} == {type(r).__name__ for r in RESULTS.values()}


def test_repr_is_one_short_line(result):
    assert len(repr(result)) <= WIDEST
    assert "\n" not in repr(result)
    assert repr(result).startswith(type(result).__name__ + "(")
    assert repr(result).endswith(")")


def test_str_is_text(result):
    assert len(str(result)) > 10
    assert str(result) != repr(result)


@pytest.mark.parametrize("width", [80, 100, 140])
def test_text_fits_into_the_terminal(result, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    assert max(map(len, str(result).split("\n"))) <= width


#: Titles of reports come first; these two are read within sentences of others.
TITLED, WITHIN = ("Report", "CalibratorComparison"), ("Estimate", "MeanCost")


def test_a_sentence_comes_first_then_a_picture_then_numbers(result):
    name, said, html = type(result).__name__, result.summary, result._repr_html_()
    assert re.fullmatch(r"\S.*[.!]", said, re.DOTALL)
    if name not in (*TITLED, *WITHIN):
        assert " ".join(str(result).split()).startswith(" ".join(said.split()))
    assert hasattr(result, "plot") or name == "CalibratorComparison" or result._unpictured
    if name == "Report":
        said = said.replace(" %", "\u00a0%")
    at = html.index(escape(said))
    drawn = html.find("<svg", at)
    if not hasattr(result, "plot") and name != "CalibratorComparison":
        assert result._unpictured[-1] == "."
        drawn = html.index(escape(result._unpictured), at)
    elif drawn < 0:
        drawn = html.index("No picture: ", at)
    assert drawn > at
    if name not in ("Report", *WITHIN):
        assert html.find("<table", at) in (-1, html.find("<table", drawn))
    numbers = re.sub(r"<svg.*?</svg>|<style>.*?</style>", "", html, flags=re.DOTALL)
    for text in (numbers, str(result)):
        assert not re.search(r"\d[.\d]*e[+-]\d", text.replace("1e-6", ""))
        assert "<td></td>" not in text


class Elements(HTMLParser):
    """Tags that are open, and texts."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.seen, self.texts = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in ("br", "meta", "link", "rect", "line", "circle", "polygon", "polyline"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("rect", "line", "circle", "polygon", "polyline"):
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_a_notebook_shows_a_fragment_without_scripts_whose_rules_hold_inside_of_it(result):
    html = result._repr_html_()
    found = Elements()
    found.feed(html)
    assert found.open == []
    assert not {"script", "iframe", "link", "meta", "body"} & set(found.seen)
    assert len(html) <= 300_000
    for style in re.findall(r"<style>(.*?)</style>", html, re.DOTALL):
        outside = style
        while (fewer := re.sub(r"[{][^{}]*[}]", "", outside)) != outside:
            outside = fewer
        assert outside.strip() in (".calibrant-shown", ".calibrant-report")


def test_numbers_and_names_of_a_notebook_are_those_of_the_result():
    rng = np.random.default_rng(0)
    p = rng.random(900)
    names = np.array(["<b>", "a & b", "c"])[rng.integers(0, 3, 900)]
    found = cal.subgroup_calibration(rng.random(900) < p**2, p, {"<i>": names})
    html = found._repr_html_()
    assert "<b>" not in html
    assert html.count("&lt;b&gt;") >= 1
    assert html.count("<tr class=on>") == sum(g.adjusted <= 0.05 for g in found.subgroups) == 3
    one = cal.estimate(rng.random(900) < p**2, p)
    html = one._repr_html_()
    assert str(one) in html
    assert html.count("<svg") == 1
    assert "<table" not in html
    many = notebook.table({"name": [f"g{i}" for i in range(700)], "low": [0.1] * 700, "high": [np.nan] * 700})
    assert many.count("<tr>") == 500 + 2
    assert "Rows not shown: 200" in many
    assert '<th scope="col">interval</th>' in many
    assert notebook.table({}).endswith("<thead><tr></tr></thead><tbody></tbody></table>")


def test_pages_of_results_say_their_summary_first(result, tmp_path):
    if not isinstance(result, Paged):
        assert not hasattr(result, "to_html") or type(result).__name__ in ("Report", "CalibratorComparison")
        return
    page = result.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    found = Elements()
    found.feed(page)
    assert found.seen.count("script") == 1
    assert HOSTILE not in page
    words = [text.strip() for text in found.texts if text.strip()]
    said = words.index(result.summary)
    assert (
        words.index(result.title) < said < min(i for i, text in enumerate(words) if text == result._sections()[0].name)
    )
    for section in result._sections():
        assert section.name in words
        assert all(len(values) == len(section.marked or values) for values in section.columns.values())


@pytest.mark.slow
def test_a_summary_of_models_names_the_better_ones():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    y = rng.random(4000) < p
    models = {"good": p, "as good": np.clip(p + rng.normal(0, 1e-3, 4000), 0, 1), "bad": p**2, "worse": p**3}
    said = cal.compare_models(y, models).summary
    assert re.match(r"(good|as good) is better calibrated than bad and worse; no significant difference between", said)
    against = cal.compare_models(y, models, reference="bad").summary
    assert cal.compare_models(y, {"one": p, "same": p}).summary.startswith("There is no significant difference between")
    assert against.startswith("good and as good are better calibrated than bad; bad is better calibrated than worse (")


def test_a_summary_of_groups_names_those_that_are_off():
    rng = np.random.default_rng(0)
    p, group = rng.random(6000), rng.integers(0, 3, 6000)
    y = rng.random(6000) < np.where(group == 1, p**2, p)
    found = cal.subgroup_calibration(y, p, {"site": group})
    assert found.summary.startswith("1 of the 3 subgroups is miscalibrated: 1 (less frequent than predicted, error 0.1")
    assert found.summary.endswith("Subgroups of site differ at equal scores.")
    assert cal.subgroup_calibration(y, p, group).summary.endswith(" Subgroups differ at equal scores.")
    fine = cal.subgroup_calibration(rng.random(6000) < p, p, {"site": group})
    assert fine.summary == "No subgroup (of 3) is significantly miscalibrated at 0.05."
    # As many outcomes as stated, but too steep: which way a group is off is not said where its gap may be 0.
    steep = cal.subgroup_calibration(rng.random(6000) < 0.25 + 0.5 * p, p, {"site": group}).summary
    assert steep.startswith("All 3 subgroups are miscalibrated: ")
    assert "often" not in steep


def test_a_notebook_shows_the_picture_that_plot_draws_and_what_it_is_of(result):
    """The same display, narrow; below it the date and the version, and the name of scores that came in a column."""
    html = result._repr_html_()
    assert re.search(rf"{date.today()} \d\d:\d\d \w+, calibrant {cal.__version__}</p>", html)
    if 'class="picture"' in html and hasattr(result, "plot"):
        with notebook.for_page():
            assert result.plot().to_svg() in html


def test_a_page_names_the_data():
    frame = pd.DataFrame({"y": [0, 1, 1, 0] * 9, "risk of a fall": [0.1, 0.7, 0.9, 0.4] * 9})
    by_column = cal.subgroup_calibration(frame["y"], frame["risk of a fall"], np.arange(36) % 2)
    by_name = cal.report(frame, label="y", prob="risk of a fall")
    by_array = cal.report(frame["y"].to_numpy(), frame["risk of a fall"].to_numpy())
    for found in (by_column, by_name):
        for html in (found._repr_html_(), found.to_html()):
            assert "Data: risk of a fall." in html
    assert "Data: " not in by_array.to_html()
    assert "Data: falls of 2024." in by_array.to_html(name="falls of 2024")


def test_a_calibrator_shows_its_map(monkeypatch):
    made, display = [], cal.plot.CalibrationMapDisplay
    draw = display.plot
    monkeypatch.setattr(display, "plot", lambda self: made.append(self) or draw(self))
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = rng.random(500) < p**2
    for one in (BetaCalibration(), PlattScaling(input="logit"), TemperatureScaling()):
        scores = {"logit": np.log(p / (1 - p))}.get(one.input, p)
        assert 'class="picture"' not in one._repr_mimebundle_()["text/html"]
        scores = np.column_stack([1 - p, p]) if isinstance(one, TemperatureScaling) else scores
        shown = one.fit(scores, y)._repr_mimebundle_()["text/html"]
        assert 'class="picture"' in shown
        (mapped,) = made.pop().maps.values()
        said = one.predict_proba(scores[:50])[:, 1]
        np.testing.assert_allclose(np.interp(p[:50], np.linspace(0, 1, mapped.size), mapped), said, atol=0.02)
    assert "temperature_" in shown
    several = (
        TemperatureScaling().fit(rng.dirichlet(np.ones(3), 90), np.arange(90) % 3)._repr_mimebundle_()["text/html"]
    )
    assert 'class="picture"' not in several
    assert "temperature_" in several


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
    if not isinstance(result, (Drawn, cal.Accumulator)):
        assert not hasattr(result, "plot")
        return
    if result is RESULTS["estimate of classes"]:
        with pytest.raises(ValueError, match="has no curve of its own"):
            result.plot()
        return
    if result is RESULTS["test without either"]:
        with pytest.raises(ValueError, match="neither draws nor a chi-squared distribution"):
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
    assert short(cal.results.Interval(0.0, 0.25)) == "(0, 0.25)"
    assert short((0.1, "a", None)) == "(0.1, 'a', None)"
    assert short(np.zeros(3)) == "<array of 3>"
    assert short({"a": 1}) == "<dict of 1>"
    assert len(short("x" * 1000)) == 60


@pytest.mark.slow
def test_auto_calibrator_shows_what_it_chose():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    auto = AutoCalibrator()
    assert repr(auto) == "AutoCalibrator()"
    auto.fit(p, rng.random(300) < p)
    assert "choice=" in repr(auto)
    assert len(repr(auto)) <= WIDEST
    assert auto._summary() in str(auto)
    shown = auto._repr_mimebundle_()
    assert shown["text/plain"] == repr(auto)
    assert auto._summary() in shown["text/html"]
    assert shown["text/html"].count("<tr class=on>") == 1
    assert 'class="picture"' in shown["text/html"]
    for rule, words in (
        ("best", "its cross-validated log-loss is the lowest"),
        ("one-standard-error", "cross-validated log-loss"),
    ):
        one = AutoCalibrator(rule=rule).fit(p, rng.random(300) < p)
        assert words in one._repr_mimebundle_()["text/html"]
    assert "text/html" in AutoCalibrator()._repr_mimebundle_()
