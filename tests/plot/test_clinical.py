"""Displays of belts, decision curves and subgroups: what is drawn is what was found."""

from dataclasses import replace
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest

import calibrant as cal
from calibrant.datasets import make_scores

DATA = make_scores(800, "overconfident", random_state=0)


def texts(ax):
    return [t.get_text() for t in ax.get_legend().get_texts()]


def inside(figure):
    """Whether every text that is drawn lies within the figure."""
    figure.canvas.draw()
    box = figure.bbox
    drawn = [t for t in figure.findobj(plt.Text) if t.get_visible() and t.get_text().strip()]
    # Labels of ticks beyond the limits exist and are not drawn.
    axes = [a for ax in figure.axes for a in (ax.xaxis, ax.yaxis)]
    ticks = {id(t.label1): low <= t.get_loc() <= high for a in axes for t in a.get_major_ticks()
             for low, high in [sorted(a.get_view_interval())]}  # fmt: skip
    extents = [t.get_window_extent() for t in drawn if ticks.get(id(t), True)]
    return all(e.x0 >= box.x0 - 1 and e.x1 <= box.x1 + 1 and e.y0 >= box.y0 - 1 and e.y1 <= box.y1 + 1 for e in extents)


def test_belt_is_drawn():
    belt = cal.significance.calibration_belt(DATA.y_true, DATA.y_prob, n_points=31)
    display = cal.plot.CalibrationBeltDisplay(belt).plot()
    ax = display.ax_
    bands = [c.get_paths()[0].vertices for c in ax.collections]
    for level_at, vertices in zip((1, 0), bands, strict=True):  # the widest is drawn first
        upper = dict(zip(belt.scores, belt.upper[level_at], strict=True))
        for x, y in vertices:
            if x in upper:
                i = int(np.searchsorted(belt.scores, x))
                assert min(abs(y - belt.upper[level_at, i]), abs(y - belt.lower[level_at, i])) < 1e-12
        assert vertices[:, 1].max() == pytest.approx(belt.upper[level_at].max())
        assert vertices[:, 1].min() == pytest.approx(belt.lower[level_at].min())
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), belt.fitted)
    assert ax.lines[1].get_xydata().tolist() == [[0, 0], [1, 1]]
    assert texts(ax) == ["95 % belt", "80 % belt", "degree 1"]
    assert ax.get_title() == "800 rows, test of calibration: p < 0.001"
    joined = " ".join(display.words.split())
    for level in (0.8, 0.95):
        assert f"{100 * level:g} % belt: {belt.where(level)}" in joined
    assert inside(display.figure_)


def test_belt_of_names_and_confidence():
    names = np.where(DATA.y_true == 1, "$ill$", "well")
    given = plt.subplots()[1]
    display = cal.plot.CalibrationBeltDisplay.from_predictions(
        names, DATA.y_prob, pos_label="$ill$", levels=(0.5, 0.8, 0.95), ax=given
    )
    assert display.ax_ is given
    assert given.get_xlabel() == r"Predicted probability of \$ill\$"
    assert len(given.collections) == 3
    sure = cal.plot.CalibrationBeltDisplay.from_predictions(names, np.column_stack([DATA.y_prob, 1 - DATA.y_prob]))
    assert (sure.ax_.get_xlabel(), sure.ax_.get_ylabel()) == ("Confidence", "Accuracy")


def test_decision_curves_are_drawn():
    display = cal.plot.DecisionCurveDisplay.from_predictions(
        DATA.y_true, {"a": DATA.y_prob, "_b": DATA.y_prob**2}, sample_weight=np.arange(1, 801)
    )
    ax = display.ax_
    first = cal.decision_curve(DATA.y_true, DATA.y_prob, sample_weight=np.arange(1, 801))
    by_name = {line.get_label(): line for line in ax.lines}
    np.testing.assert_array_equal(by_name["a"].get_ydata(), first.net_benefit)
    np.testing.assert_array_equal(by_name["a"].get_xdata(), first.thresholds)
    np.testing.assert_array_equal(by_name["act always"].get_ydata(), first.treat_all)
    assert set(by_name["act never"].get_ydata()) == {0.0}
    assert texts(ax) == ["act never", "act always", "a", "b"]
    low, high = ax.get_ylim()
    assert first.net_benefit.max() < high < 1.1 * first.treat_all.max()
    assert low == pytest.approx(-0.25 * high / 1.06)
    assert ax.get_xlim() == (0, 1)
    assert ax.get_title() == "Acting on class 1"


def test_decision_curves_many_few_and_rare():
    many = cal.plot.DecisionCurveDisplay.from_predictions(
        DATA.y_true,
        {f"model {i}": DATA.y_prob ** (1 + i / 10) for i in range(12)},
        thresholds=np.linspace(0.05, 0.3, 20),
    )
    assert len(texts(many.ax_)) == 14
    assert many.ax_.get_xlim() == pytest.approx((0.0425, 0.3075))
    assert inside(many.figure_)
    one = cal.plot.DecisionCurveDisplay.from_predictions(DATA.y_true, DATA.y_prob, thresholds=[0.3])
    assert one.ax_.lines[-1].get_marker() == "o"
    never = cal.plot.DecisionCurveDisplay.from_predictions(np.zeros(50, int), np.linspace(0.1, 0.9, 50))
    assert never.ax_.get_ylim()[0] < 0 < never.ax_.get_ylim()[1]
    with pytest.raises(ValueError, match="at least one"):
        cal.plot.DecisionCurveDisplay({})


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(0)
    group = rng.choice(["north", "south, a region with a rather long name", None], 800, p=[0.6, 0.38, 0.02])
    columns = {"region": group, "age": rng.integers(0, 3, 800)}
    return cal.subgroup_calibration(DATA.y_true, DATA.y_prob, columns, estimator=cal.Binned(5), n_resamples=199)


def test_forest_is_the_report(report):
    display = cal.plot.SubgroupDisplay(report).plot()
    left, right = display.axes_
    names = [t.get_text() for t in left.get_yticklabels()]
    assert names == ["north", "south, a regi…er long name", "(missing)", "0", "1", "2"]
    ticks = left.get_yticks().tolist()
    assert ticks == [1, 2, 3, 5, 6, 7]  # a heading before each column
    for ax, value, interval in ((left, "gap", "gap_interval"), (right, "error", "error_interval")):
        lines = [line for line in ax.lines if len(set(line.get_ydata())) == 1 and line.get_ydata()[0] in ticks]
        for y, group in zip(ticks, report.subgroups, strict=True):
            span, point = [line for line in lines if line.get_ydata()[0] == y]
            assert tuple(span.get_xdata()) == tuple(getattr(group, interval))
            assert point.get_xdata()[0] == getattr(group, value)
            assert (point.get_markerfacecolor() == "white") == (group.adjusted > 0.05)
        low, high = ax.get_xlim()
        assert all(low <= v <= high for g in report.subgroups for v in getattr(g, interval))
    shown = {t.get_text() for t in [*left.texts, *right.texts]}
    assert {"region", "age", "rows", *(f"{g.n_samples:,}" for g in report.subgroups)} <= shown
    assert inside(display.figure_)
    assert left.get_ylim()[0] > left.get_ylim()[1]  # the first group is on top


def test_adjusted_pvalues_fill(report):
    column = report.columns[1]
    groups = tuple(
        replace(g, pvalue=0.01, adjusted=q) for g, q in zip(column.subgroups, (0.04, 0.06, float("nan")), strict=True)
    )
    display = cal.plot.SubgroupDisplay(replace(report, columns=(replace(column, subgroups=groups),))).plot()
    points = [line.get_markerfacecolor() for line in display.axes_[0].lines if line.get_marker() == "o"]
    assert [color == "white" for color in points] == [False, True, True]


def test_forest_of_two_and_of_twenty():
    options = {"estimator": cal.Binned(5), "n_resamples": 49}
    rng = np.random.default_rng(1)
    two = cal.plot.SubgroupDisplay.from_predictions(DATA.y_true, DATA.y_prob, rng.integers(0, 2, 800), **options)
    assert two.axes_[0].get_yticks().tolist() == [0, 1]
    twenty = cal.plot.SubgroupDisplay.from_predictions(DATA.y_true, DATA.y_prob, rng.integers(0, 20, 800), **options)
    assert twenty.figure_.get_figheight() > two.figure_.get_figheight() + 3
    twenty.figure_.canvas.draw()
    heights = sorted((t.get_window_extent() for t in twenty.axes_[0].get_yticklabels()), key=lambda e: e.y0)
    assert all(a.y1 <= b.y0 + 0.5 for a, b in pairwise(heights))
    axes = plt.subplots(1, 2, sharey=True)[1]
    given = cal.plot.SubgroupDisplay.from_predictions(
        DATA.y_true, DATA.y_prob, rng.integers(0, 3, 800), axes=axes, **options
    )
    assert given.axes_[1] is axes[1]


def test_displays_of_something_else():
    with pytest.raises(TypeError, match="report must be SubgroupReport; got 5"):
        cal.plot.SubgroupDisplay(5)
    with pytest.raises(TypeError, match="belt must be a CalibrationBelt; got 5"):
        cal.plot.CalibrationBeltDisplay(5)
