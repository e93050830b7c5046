"""Pictures of compared models, and of ranks."""

import numpy as np
import pytest

import calibrant as cal


def models(k, n=400, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((k, n))
    y = (rng.random(n) < 1 / (1 + np.exp(-x.sum(axis=0)))).astype(int)
    return y, {f"model {i}": 1 / (1 + np.exp(-(1 + i) * x[i])) for i in range(k)}


def compared(k, **options):
    return cal.compare_models(*models(k), n_resamples=40, random_state=0, **options)


def texts_of(ax):
    """Texts that an axes shows: of ticks those within its limits."""
    yield from ax.texts
    if ax.axison:
        yield from (ax.title, ax.xaxis.label)
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            yield from (t.label1 for t in axis.get_major_ticks() if low <= t.get_loc() <= high)


def inside(figure):
    """Every text that is drawn lies within the figure."""
    figure.canvas.draw()
    box = figure.bbox
    for ax in (ax for ax in figure.axes if ax.get_visible()):
        for text in texts_of(ax):
            if text.get_text() and text.get_visible():
                e = text.get_window_extent()
                assert box.x0 - 1 <= e.x0 <= e.x1 <= box.x1 + 1, text
                assert box.y0 - 1 <= e.y0 <= e.y1 <= box.y1 + 1, text


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 4, 7])
def test_panels_hold_the_differences(k):
    found = compared(k)
    display = cal.plot.ModelComparisonDisplay(found).plot()
    assert len(display.axes_) == len(found.measures)
    for ax, measure in zip(display.axes_, found.measures, strict=True):
        intervals = [line.get_xdata() for line in ax.lines if line.get_linewidth() > 1.5 and line.get_marker() != "o"]
        drawn = {tuple(np.round(i, 12)) for i in intervals}
        for d in found.of(measure):
            assert tuple(np.round(d.interval, 12)) in drawn
            low, high = ax.get_xlim()
            assert low < min(d.interval.low, 0)
            assert high > max(d.interval.high, 0)
        dots = [line for line in ax.lines if line.get_marker() == "o"]
        filled = [line.get_markerfacecolor() != "white" for line in dots]
        assert filled == [d.better is not None for d in found.of(measure)]
    inside(display.figure_)


def test_sides_say_who_is_better():
    display = cal.plot.ModelComparisonDisplay(compared(2)).plot(measures=["brier", "accuracy"])
    assert display.axes_[0].get_xlabel() == "◀ model 0 better    |    model 1 better ▶"
    assert display.axes_[1].get_xlabel() == "◀ model 1 better    |    model 0 better ▶"
    display = cal.plot.ModelComparisonDisplay(compared(3, reference="model 1")).plot(
        measures=["log-loss", "log-loss_discrimination"]
    )
    assert display.axes_[0].get_xlabel().startswith("◀ better than reference")
    assert display.axes_[1].get_xlabel().endswith("better than reference ▶")
    assert [t.get_text() for t in display.axes_[0].get_yticklabels()] == ["model 0 − model 1", "model 2 − model 1"]


def test_infinite_scores_long_names_and_formulas():
    y, two = models(2)
    a, b = two.values()
    names = ("a model $x_1$ of which the name does not end for quite a while", "_b")
    given = dict(zip(names, (np.where(np.arange(len(y)) == 3, 1 - y[3], a), b), strict=True))
    display = cal.plot.ModelComparisonDisplay.from_predictions(
        y, given, n_resamples=40, random_state=0, measures=["log-loss"]
    )
    assert [t.get_text() for t in display.axes_[0].texts] == ["no interval (∞)"]
    inside(display.figure_)


def test_bad_arguments():
    with pytest.raises(TypeError, match="must be a ModelComparison"):
        cal.plot.ModelComparisonDisplay({})
    for measures in ([], "brier"):
        with pytest.raises(ValueError, match="measures must be some of"):
            cal.plot.ModelComparisonDisplay(compared(2)).plot(measures=measures)
    with pytest.raises(ValueError, match="measure must be one of"):
        cal.plot.ModelComparisonDisplay(compared(2)).plot(measures=["auc"])
    with pytest.raises(TypeError, match="must be a ModelRanks"):
        cal.plot.CriticalDifferenceDisplay([1, 2])


@pytest.mark.parametrize(("k", "n"), [(2, 5), (3, 8), (9, 20), (15, 40)])
def test_critical_difference_diagram(k, n):
    rng = np.random.default_rng(k)
    scores = rng.standard_normal((n, k)) + np.linspace(0, 2, k)
    names = [f"a rather long name of calibrator {i}" if i % 3 == 0 else f"m{i}" for i in range(k)]
    display = cal.plot.CriticalDifferenceDisplay.from_scores(scores, models=names)
    ranks, ax = display.ranks, display.ax_
    assert tuple(ax.get_xlim()) == (k, 1)  # the best on the right
    bars = [line for line in ax.lines if line.get_linewidth() > 3]
    assert len(bars) == len(ranks.indistinguishable)
    for line, group in zip(bars, ranks.indistinguishable, strict=True):
        ends = sorted(ranks.average_ranks[ranks.models.index(m)] for m in (group[0], group[-1]))
        drawn = sorted(line.get_xdata())
        assert drawn[0] < ends[0] < ends[1] < drawn[1] or ends[0] == pytest.approx(ends[1])
    # Bars on one level do not touch.
    for one in bars:
        for other in bars:
            if one is not other and one.get_ydata()[0] == other.get_ydata()[0]:
                assert max(min(one.get_xdata()), min(other.get_xdata())) > min(
                    max(one.get_xdata()), max(other.get_xdata())
                )
    texts = {t.get_text() for t in ax.texts}
    for name, rank in zip(names, ranks.average_ranks, strict=True):
        assert f"{name}  {rank:.2f}" in texts
    assert any(t.startswith(f"CD = {ranks.critical_difference:.2f}") for t in texts)
    inside(display.figure_)


def test_a_critical_difference_beyond_the_axis_is_said():
    display = cal.plot.CriticalDifferenceDisplay.from_scores([[1, 2], [2, 1]])
    assert any("longer than the axis" in t.get_text() for t in display.ax_.texts)
    inside(display.figure_)


def test_calibrators_before_and_after():
    rng = np.random.default_rng(0)
    z = rng.normal(size=1500)
    y, p = rng.random(1500) < 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-2 * z))
    found = cal.compare_calibrators(y, p, candidates=["identity", "temperature"])
    display = found.plot()
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts[0].startswith(f"before: ECE {found.before.headline.value:.2f}"[:16])
    assert texts[1].startswith("after ")
    inside(display.figure_)
    margins = cal.compare_calibrators(y, z, input="margin", candidates=["platt"]).plot()
    assert margins.ax_.get_legend().get_texts()[0].get_text().startswith("after platt")


def test_a_second_model_with_fewer_classes_keeps_the_grid():
    """Panels stay where they are, whichever of them the second model is drawn on."""
    rng = np.random.default_rng(0)
    true = rng.dirichlet(np.ones(6), 3000)
    stated = true**2 / (true**2).sum(axis=1, keepdims=True)
    y = (true.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
    first = cal.ReliabilityDisplay.from_predictions(y, stated, notion="classwise", name="a")
    places = {ax.get_title(): ax.get_position().bounds for ax in first.axes_}
    few = cal.ReliabilityDisplay.from_predictions(y, true, notion="classwise", classes=[1, 4])
    again = few.__class__(few.diagrams, few.estimate).plot(first.axes_, name="b")
    assert len(again.axes_) == 2
    now = {ax.get_title(): ax.get_position().bounds for ax in first.axes_}
    for title, (x, _, width, _) in places.items():
        assert now[title][0] == pytest.approx(x, abs=0.02)
        assert now[title][2] == pytest.approx(width, abs=0.02)
    tops = sorted({round(ax.get_position().y0, 3) for ax in first.axes_})
    assert len(tops) == 2
    found = cal.compare_calibrators(y, stated, notion="classwise", candidates=["identity", "temperature"])
    display = found.plot()
    assert all(len(ax.get_legend().get_texts()) == 2 for ax in display.axes_)
    inside(display.figure_)
