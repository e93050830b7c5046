"""Probability paper: the same diagram on logit and probit axes, where nothing at 0 or 1 is lost."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import PathCollection
from scipy.special import expit, logit, ndtri

import calibrant as cal
from calibrant.plot.axes import strip_of
from calibrant.plot.scale import SCALES, Frame, tick_text, ticks_of

from .test_display import binary, dots, multiclass, pairs, texts

Display = cal.ReliabilityDisplay
PAPERS = ["logit", "probit"]
WHERE = {"logit": logit, "probit": ndtri}


def rare(n=5000, seed=0):
    """Scores from 1e-5 to .1, and calibrated outcomes."""
    rng = np.random.default_rng(seed)
    p = expit(rng.normal(-6, 1.5, n))
    return (rng.random(n) < p).astype(int), p


@pytest.fixture(params=[(name, scale) for name in pairs() for scale in PAPERS], ids=lambda v: f"{v[0]}, {v[1]}")
def shown(request):
    name, scale = request.param
    display = Display.from_predictions(*pairs()[name], scale=scale, random_state=0, n_resamples=50)
    display.figure_.canvas.draw()
    return display


def test_axes_are_square_and_equal_and_everything_is_on_them(shown):
    ax, (diagram,) = shown.ax_, shown.diagrams
    box = ax.get_window_extent()
    assert box.width == pytest.approx(box.height, rel=1e-6)
    low, high = ax.get_xlim()
    assert ax.get_ylim() == (low, high)
    assert 0 < low < high < 1
    for line in ax.lines:
        xy = line.get_xydata()
        xy = xy[~np.isnan(xy).any(axis=1)]
        assert ((xy >= low) & (xy <= high)).all()
    known = (diagram.bins.count > 0) & ~np.isnan(diagram.bins.observed)
    marks = np.concatenate([m.get_offsets() for m in dots(ax)])
    assert len(marks) == known.sum() + diagram.curve.values.scores.size  # none is dropped
    places = ax.transData.transform(marks)
    assert np.isfinite(places).all()
    assert (places >= [box.x0 - 1, box.y0 - 1]).all()
    assert (places <= [box.x1 + 1, box.y1 + 1]).all()
    numbers = [t.get_text() for t in ax.xaxis.get_majorticklabels()]
    assert len(numbers) >= 3
    assert "0.5" in numbers


def test_everything_lies_inside_the_figure(shown):
    box = shown.figure_.get_tightbbox(shown.figure_.canvas.get_renderer())
    width, height = shown.figure_.get_size_inches()
    assert box.x0 > -0.02
    assert box.y0 > -0.02
    assert box.x1 < width + 0.02
    assert box.y1 < height + 0.02


def test_numbers_on_the_axes_do_not_touch(shown):
    shown.figure_.canvas.draw()
    for axis, side in ((shown.ax_.xaxis, "x"), (shown.ax_.yaxis, "y")):
        ends = sorted(
            (getattr(box, f"{side}0"), getattr(box, f"{side}1"))
            for box in (t.get_window_extent() for t in axis.get_majorticklabels() if t.get_text())
        )
        assert all(a[1] < b[0] for a, b in pairwise(ends))


@pytest.mark.parametrize("scale", PAPERS)
def test_places_are_those_of_the_scale(scale):
    ax = Display.from_predictions(*binary(2000), scale=scale).ax_
    p = np.array([0.01, 0.1, 0.5, 0.8, 0.99])
    pixels = ax.transData.transform(np.column_stack([p, p]))[:, 0]
    slope, at = np.polyfit(WHERE[scale](p), pixels, 1)
    np.testing.assert_allclose(slope * WHERE[scale](p) + at, pixels, atol=1e-6)
    assert slope > 0


@pytest.mark.parametrize("scale", PAPERS)
def test_bins_at_0_and_1_are_arrowheads_on_the_edge_and_said(scale):
    s = np.repeat([0.0, 0.2, 0.6, 1.0], 50)
    y = np.concatenate([np.zeros(50), np.zeros(50), np.tile([0, 1], 25), np.ones(50)]).astype(int)
    display = Display.from_predictions(y, s, scale=scale, bins=cal.Binned([0, 0.1, 0.3, 0.7, 1]), n_resamples=20)
    ax = display.ax_
    low, high = ax.get_xlim()
    plain, down, up = dots(ax)
    np.testing.assert_allclose(plain.get_offsets(), [[0.6, 0.5]])
    np.testing.assert_allclose(down.get_offsets(), [[low, low], [0.2, low]])
    np.testing.assert_allclose(up.get_offsets(), [[high, high]])
    for marks in (down, up):
        assert not marks.get_clip_on()
    assert "0, 1 or beyond the scale" in texts(ax)
    linear = Display.from_predictions(y, s, bins=cal.Binned([0, 0.1, 0.3, 0.7, 1]), n_resamples=20).ax_
    assert len(dots(linear)) == 1
    assert "0, 1 or beyond the scale" not in texts(linear)


def test_scores_beyond_an_end_are_arrowheads_to_the_side():
    s = np.repeat([1e-9, 0.5, 1 - 1e-9], 40)
    y = np.tile([0, 1], 60)
    ax = Display.from_predictions(y, s, scale="logit", bins=cal.Binned([0, 0.1, 0.9, 1]), n_resamples=20).ax_
    low, high = ax.get_xlim()
    _, left, right = dots(ax)
    np.testing.assert_allclose([*left.get_offsets(), *right.get_offsets()], [[low, 0.5], [high, 0.5]])


def test_no_arrowheads_where_nothing_is_beyond():
    y, p = binary(2000)
    ax = Display.from_predictions(y, p, scale="logit", bins=cal.Binned(4)).ax_
    assert len(dots(ax)) == 1
    assert "0, 1 or beyond the scale" not in texts(ax)


@pytest.mark.parametrize("scale", PAPERS)
def test_lines_are_those_of_the_curve(scale):
    """Between its nodes a curve is straight in probabilities, so bent on paper."""
    display = Display.from_predictions(*binary(2000), scale=scale)
    curve = display.diagrams[0].curve
    x, y = display.ax_.lines[1].get_data()
    low, high = display.ax_.get_xlim()
    inside = (x > low) & (x < high)
    np.testing.assert_allclose(y[inside], np.interp(x[inside], curve.scores, curve.observed).clip(low, high), atol=1e-9)
    steps = np.diff(WHERE[scale](x[inside]))
    assert (steps >= 0).all()
    assert steps.max() < 0.2 * np.ptp(WHERE[scale](x[inside]))


@pytest.mark.parametrize("scale", PAPERS)
@pytest.mark.parametrize("data", ["binary", "confidence", "all at the ends"])
def test_histograms_count_every_row(scale, data):
    y, p = pairs()[data]
    display = Display.from_predictions(y, p, scale=scale, n_resamples=20)
    (diagram,) = display.diagrams
    paper, linear = diagram.papers[scale], diagram.histogram
    scores = p if p.ndim == 1 else p.max(axis=1)
    for bars in (paper, linear):
        by_hand = [((scores > a) & (scores <= b)).sum() for a, b in pairwise(bars.edges)]
        by_hand[0] += (scores == bars.edges[0]).sum()
        np.testing.assert_array_equal(bars.count, by_hand)
    inner = WHERE[scale](paper.edges[1:-1])
    np.testing.assert_allclose(np.diff(inner), SCALES[scale].step, rtol=1e-6)
    assert len(linear.count) == 40
    outline = strip_of(display.ax_).patches[0].get_data()
    assert outline.edges[[0, -1]].tolist() == pytest.approx(
        [max(display.ax_.get_xlim()[0], diagram.domain[0]), display.ax_.get_xlim()[1]]
    )
    if strip_of(display.ax_).get_yscale() == "linear":
        assert np.sum(outline.values) == pytest.approx(len(y))


def test_bars_at_the_ends_hold_what_lies_beyond():
    frame = Frame(SCALES["logit"], 0.01, 0.9)
    counts, edges = frame.bars(np.array([3.0, 4, 5, 6, 7]), np.array([0, 0.001, 0.1, 0.5, 0.95, 1]))
    assert counts.tolist() == [7, 5, 13]
    assert edges.tolist() == [0.01, 0.1, 0.5, 0.9]


def test_paper_reaches_as_far_as_scores_do():
    usual = Display.from_predictions(*binary(3000), scale="logit").ax_.get_xlim()
    wide = Display.from_predictions(*rare(), scale="logit").ax_.get_xlim()
    assert 1e-4 < usual[0] < 1e-3
    assert wide[0] < 1e-4
    assert 0.999 < wide[1] < 0.9999
    sure = Display.from_predictions(*multiclass(k=5), scale="logit").ax_.get_xlim()
    assert 0.001 < sure[0] < 0.2  # a confidence has no place below 1/K


def test_bins_are_of_equal_mass_on_paper():
    y, p = rare()
    bins = Display.from_predictions(y, p, scale="probit").diagrams[0].bins
    assert (bins.count == 500).all()
    assert Display.from_predictions(y, p).diagrams[0].bins.count.max() > 4000


@pytest.mark.slow
def test_results_at_hand_are_drawn_on_paper():
    y, p = binary()
    for result in (
        cal.reliability_curve(y, p, level=0.95, n_resamples=50),
        cal.reliability_curve(y, p, estimator="isotonic"),
        cal.reliability_curve(y, p, estimator="binned", level=0.95),
        cal.estimate(y, p),
        cal.report(y, p),
    ):
        ax = result.plot(scale="logit").ax_
        assert ax.get_xscale() == ax.get_yscale() == "function"
        ax.figure.canvas.draw()
        heights = strip_of(ax).patches[0].get_data().values
        assert np.nansum(heights) == pytest.approx(400, rel=0.01)


def test_another_model_joins_on_the_scale_that_is_there():
    y, p = binary()
    first = Display.from_predictions(y, p, scale="logit", n_resamples=20)
    limits = first.ax_.get_xlim()
    second = Display.from_predictions(y, p**2, ax=first.ax_, n_resamples=20)
    assert second.ax_ is first.ax_
    assert first.ax_.get_xlim() == limits
    assert (second.diagrams[0].bins.count == 40).all()
    with pytest.raises(ValueError, match="same axes must be one of 'logit'; got 'linear'"):
        Display.from_predictions(y, p, ax=first.ax_, scale="linear", n_resamples=20)
    first.ax_.clear()
    again = Display.from_predictions(y, p, ax=first.ax_, n_resamples=20)
    assert again.ax_.get_xscale() == "linear"


@pytest.mark.slow
def test_panels_of_classes():
    y, P = multiclass()
    P[:50] = np.eye(4)[y[:50]]
    display = Display.from_predictions(y, P, notion="classwise", scale="logit", n_resamples=20)
    assert {ax.get_xscale() for ax in display.axes_} == {"function"}
    (key,) = display.figure_.legends
    assert "0, 1 or beyond the scale" in [t.get_text() for t in key.get_texts()]
    marks = [m for ax in display.axes_ for m in ax.collections if isinstance(m, PathCollection)]
    assert sum(len(m.get_offsets()) for m in marks) == sum(
        (d.bins.count > 0).sum() + d.curve.values.scores.size for d in display.diagrams
    )


def test_ticks():
    assert [tick_text(p) for p in (1e-6, 1e-4, 0.001, 0.05, 0.5, 0.99, 0.999, 1 - 1e-5)] == [
        "10⁻⁶", "10⁻⁴", "0.001", "0.05", "0.5", "0.99", "0.999", "1-10⁻⁵",
    ]  # fmt: skip
    frame = Frame(SCALES["logit"], 0.0008, 0.9992)
    np.testing.assert_allclose(ticks_of(frame, 9), [0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999])
    np.testing.assert_allclose(ticks_of(frame, 4), [0.01, 0.5, 0.99])


def test_bad_scale():
    y, p = binary(50)
    with pytest.raises(ValueError, match="scale must be one of 'linear', 'logit', 'probit'; got 'log'"):
        Display.from_predictions(y, p, scale="log")
    with pytest.raises(ValueError, match="scale must be one of"):
        cal.reliability_curve(y, p).plot(scale=2)
    assert not plt.get_fignums()
