"""What is on the axes: structure, words, limits; and that nothing is computed while drawing."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import PathCollection

import calibrant as cal
from calibrant.plot.axes import strip_of
from calibrant.plot.panels import n_models

Display = cal.ReliabilityDisplay


def binary(n=400, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p**1.5).astype(int), p


def multiclass(n=600, k=4, seed=0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(k) * 0.6, n)
    y = np.array([rng.choice(k, p=row) for row in P])
    sharper = P**1.5
    return y, sharper / sharper.sum(axis=1, keepdims=True)


def pairs():
    rng = np.random.default_rng(1)
    ends = rng.integers(0, 2, 100)
    return {
        "binary": binary(),
        "n=1": (np.array([1]), np.array([0.3])),
        "n=30": binary(30),
        "all at the ends": (ends ^ (rng.random(100) < 0.2), ends.astype(float)),
        "constant": (ends, np.full(100, 0.5)),
        "no positives": (np.zeros(50, int), rng.random(50)),
        "confidence": multiclass(),
        "confidence, two columns": multiclass(k=2),
        "confidence, K=100": multiclass(1500, 100),
    }


@pytest.fixture(params=list(pairs()))
def shown(request):
    """Every kind of single panel, drawn and laid out."""
    display = Display.from_predictions(*pairs()[request.param], random_state=0, n_resamples=50)
    display.figure_.canvas.draw()
    return display


def texts(ax):
    return [t.get_text() for t in ax.get_legend().get_texts()]


def dots(ax):
    return [c for c in ax.collections if isinstance(c, PathCollection)]


def test_axes_are_square_equal_and_numbered(shown):
    ax = shown.ax_
    assert ax.get_aspect() == 1.0
    box = ax.get_window_extent()
    assert box.width == pytest.approx(box.height, rel=1e-6)
    assert ax.get_xlim() == pytest.approx(ax.get_ylim())
    for axis in (ax.xaxis, ax.yaxis):
        numbers = [t.get_text() for t in axis.get_majorticklabels() if t.get_visible() and t.get_text()]
        assert len(numbers) >= 3
    assert ax.get_xlabel()
    assert ax.get_ylabel()


def test_whole_domain_is_visible_and_nothing_is_cut(shown):
    ax, (diagram,) = shown.ax_, shown.diagrams
    low, high = ax.get_xlim()
    assert low < diagram.domain[0]
    assert high > 1
    box = ax.get_window_extent()
    for line in ax.lines:
        xy = line.get_xydata()
        xy = xy[~np.isnan(xy).any(axis=1)]
        assert ((xy >= ax.get_ylim()[0]) & (xy <= ax.get_ylim()[1])).all()
    for marks in dots(ax):
        centres = ax.transData.transform(marks.get_offsets())
        radius = np.sqrt(marks.get_sizes().max()) / 2 * shown.figure_.dpi / 72
        assert (centres - radius >= [box.x0 - 1, box.y0 - 1]).all()
        assert (centres + radius <= [box.x1 + 1, box.y1 + 1]).all()
    for bars in ax.collections:
        if not isinstance(bars, PathCollection) and hasattr(bars, "get_segments"):
            ends = np.concatenate(bars.get_segments())[:, 1]
            assert (ends >= ax.get_ylim()[0]).all()
            assert (ends <= ax.get_ylim()[1]).all()


def test_everything_lies_inside_the_figure(shown):
    renderer = shown.figure_.canvas.get_renderer()
    box = shown.figure_.get_tightbbox(renderer)
    width, height = shown.figure_.get_size_inches()
    assert box.x0 > -0.02
    assert box.y0 > -0.02
    assert box.x1 < width + 0.02
    assert box.y1 < height + 0.02


def test_one_panel_holds_curve_band_bins_identity_strip_and_the_number():
    y, p = binary()
    display = Display.from_predictions(y, p, name="model", random_state=0)
    ax = display.ax_
    estimate = cal.estimate(y, p, random_state=0)
    assert display.estimate.value == estimate.value
    assert display.estimate.interval == estimate.interval
    low, high = estimate.interval
    assert f"model: ECE {estimate.value:.3f} ({low:.3f} to {high:.3f})" in texts(ax)
    assert "95 %" in ax.get_legend().get_title().get_text()
    identity, curve = ax.lines[:2]
    np.testing.assert_array_equal(identity.get_xydata(), [[0, 0], [1, 1]])
    np.testing.assert_array_equal(curve.get_ydata(), display.diagrams[0].curve.line.observed)
    (marks,) = dots(ax)
    bins = display.diagrams[0].bins
    np.testing.assert_allclose(marks.get_offsets(), np.c_[bins.scores, bins.observed][bins.count > 0])
    assert np.argmax(marks.get_sizes()) == np.argmax(bins.count[bins.count > 0])
    strip = strip_of(ax)
    assert strip is not None
    assert strip.get_ylabel() == "Samples"
    assert display.diagrams[0].histogram.count.sum() == pytest.approx(400)
    assert display.figure_ is ax.figure


def test_number_follows_the_estimator():
    y, p = binary()
    for method, estimator in (
        ("binned", cal.Binned()),
        (cal.estimators.Density(0.1), cal.estimators.Density(0.1)),
        ("density", "auto"),
    ):
        shown = Display.from_predictions(y, p, curve=method, random_state=0)
        assert shown.estimate.value == pytest.approx(cal.calibration_error(y, p, estimator=estimator), rel=1e-12)
        plt.close(shown.figure_)
    shown = Display.from_predictions(y, p, estimator=cal.Binned(7), random_state=0)
    assert shown.estimate.value == pytest.approx(cal.calibration_error(y, p, estimator=cal.Binned(7)), rel=1e-12)


def test_bins_can_be_chosen_or_left_out():
    y, p = binary()
    assert not dots(Display.from_predictions(y, p, bins=None).ax_)
    assert len(dots(Display.from_predictions(y, p, bins=4).ax_)[0].get_offsets()) == 4
    shown = Display.from_predictions(y, p, bins=cal.Binned(6, "quantile"))
    assert shown.diagrams[0].bins.scores.size == 6
    with pytest.raises(ValueError, match="bins must be"):
        Display.from_predictions(y, p, bins="many")


def test_several_models_differ_in_colour_dash_and_marker():
    first = Display.from_predictions(*binary(), name="a", random_state=0)
    for seed, name in enumerate("bcdefgh", 1):
        shown = Display.from_predictions(*binary(seed=seed), name=name, ax=first.ax_, random_state=0, n_resamples=20)
    ax = first.ax_
    assert shown.ax_ is ax
    assert n_models(ax) == 8
    curves = [line for line in ax.lines if line.get_label()[1:6] == ": ECE"]
    looks = [(c.get_color(), str(c._unscaled_dash_pattern)) for c in curves]
    assert len(set(looks)) == 8
    assert len({dash for _, dash in looks[:6]}) == 6
    assert [t[0] for t in texts(ax)[:8]] == list("abcdefgh")
    assert sum(line.get_label() == "Perfect" for line in ax.lines) == 1
    assert len(ax.child_axes) == 1
    shown.figure_.canvas.draw()
    box = shown.figure_.get_tightbbox(shown.figure_.canvas.get_renderer())
    assert box.y0 > -0.02


def test_confidence_starts_at_chance_and_shades_what_cannot_be():
    display = Display.from_predictions(*multiclass(k=10), random_state=0)
    assert display.ax_.get_ylabel() == "Accuracy"
    assert "Confidence" in display.ax_.get_xlabel()
    assert display.diagrams[0].domain == (0.1, 1.0)
    np.testing.assert_allclose(display.ax_.lines[0].get_xdata(), [0.1, 1])


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 5, 9, 20])
def test_a_panel_a_class_at_most_nine_worst_first(k):
    y, P = multiclass(400, k)
    display = Display.from_predictions(y, P, notion="classwise", random_state=0, n_resamples=20, name="model")
    display.figure_.canvas.draw()
    errors = cal.estimate(y, P, notion="classwise", n_resamples=20, random_state=0)
    assert display.estimate.value == errors.value
    assert display.estimate.interval == errors.interval
    assert len(display.axes_) == len(display.figure_.axes) == min(k, 9)
    expected = sorted(errors.per_class, key=lambda c: -errors.per_class[c])[:9]
    assert list(display.classes) == expected
    for ax, label, diagram in zip(display.axes_, expected, display.diagrams, strict=True):
        assert ax.get_title() == f"class {label}"
        assert diagram.estimate.value == pytest.approx(errors.per_class[label])
        assert f"ECE {diagram.estimate.value:.3f}"[:8] in texts(ax)[0]
        assert ax.get_aspect() == 1.0
    assert f"{errors.value:.3f}" in display.figure_.get_suptitle()
    assert ("worst first" in display.summary) == (k > 9)
    assert display.figure_.get_supxlabel() == display.summary
    box = display.figure_.get_tightbbox(display.figure_.canvas.get_renderer())
    assert box.x0 > -0.02
    assert box.y0 > -0.02


def test_second_model_meets_its_classes():
    first = Display.from_predictions(*multiclass(k=12), notion="classwise", random_state=0, n_resamples=20, name="a")
    second = Display.from_predictions(
        *multiclass(k=12, seed=5), notion="classwise", random_state=0, n_resamples=20, name="b", ax=first.ax_
    )
    assert second.classes == first.classes
    assert all(n_models(ax) == 2 for ax in first.axes_)
    assert first.figure_.get_suptitle().count("\n") == 1


def test_classes_can_be_chosen():
    y, P = multiclass(k=5)
    shown = Display.from_predictions(y, P, notion="classwise", classes=[3, 1], n_resamples=20)
    assert shown.classes == (3, 1)
    with pytest.raises(ValueError, match="classes must be some of"):
        Display.from_predictions(y, P, notion="classwise", classes=[9], n_resamples=20)


def test_panels_in_the_place_of_one_axes():
    _, (left, right) = plt.subplots(1, 2)
    y, P = multiclass(k=4)
    Display.from_predictions(y, P, ax=left, n_resamples=20)
    shown = Display.from_predictions(y, P, notion="classwise", ax=right, n_resamples=20)
    assert len(shown.axes_) == 4
    again = Display.from_predictions(y, P, notion="classwise", ax=right, n_resamples=20)
    assert list(again.axes_) == list(shown.axes_)
    loose = plt.figure().add_axes((0, 0, 1, 1))
    with pytest.raises(ValueError, match="array of axes"):
        Display.from_predictions(y, P, notion="classwise", ax=loose, n_resamples=20)


def test_labels_are_shown_as_text():
    y, p = binary()
    names = np.array(["$no$", "<b>yes & $x_1$\n" + "z" * 60])
    shown = Display.from_predictions(names[y], p, pos_label=names[1], name="_private $m$", n_resamples=20)
    assert shown.ax_.get_xlabel().startswith(r"Predicted probability of <b>yes & \$x_1\$ zzzzz…")
    assert shown.ax_.get_xlabel().endswith("…zzzzzzzzzzzzzzzzzzz")
    assert texts(shown.ax_)[0].startswith(r"private \$m\$: ECE")
    shown.figure_.canvas.draw()


@pytest.mark.slow
def test_weights_change_the_picture():
    y, p = binary()
    w = np.random.default_rng(0).random(400) + 0.01
    shown = Display.from_predictions(y, p, sample_weight=w, random_state=0)
    assert shown.estimate.value == pytest.approx(cal.calibration_error(y, p, sample_weight=w), rel=1e-12)
    assert strip_of(shown.ax_).get_ylabel() == "Weight"


def test_plot_computes_nothing(monkeypatch):
    display = Display.from_predictions(*binary(), random_state=0)

    def fail(*args, **kwargs):
        raise AssertionError("computed while drawing")

    for where in (
        "diagram.CurveSpec",
        "diagram.estimate_from_fits",
        "diagram.estimate",
        "reliability_display.diagrams_of",
    ):
        monkeypatch.setattr(f"calibrant.plot.{where}", fail)
    again = Display(display.diagrams, display.estimate, name="again").plot(histogram=None, legend=False)
    assert again.ax_ is not display.ax_
    assert again.ax_.get_legend() is None
    assert strip_of(again.ax_) is None
    assert again.plot(line_kwargs={"color": "k", "linewidth": 5}).ax_.lines[1].get_linewidth() == 5


def test_repeats_and_clear():
    y, p = binary()
    a = Display.from_predictions(y, p, random_state=3)
    b = Display.from_predictions(y, p, random_state=3)
    np.testing.assert_array_equal(a.diagrams[0].curve.lower, b.diagrams[0].curve.lower)
    a.ax_.clear()
    assert n_models(a.ax_) == 0
    Display.from_predictions(y, p, ax=a.ax_)
    assert n_models(a.ax_) == 1


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"notion": "canonical"}, "no reliability diagram"),
        ({"curve": "spline"}, "curve must be"),
        ({"level": 95}, "level must lie"),
        ({"ax": 3}, "ax must be"),
    ],
)
def test_bad_input(kwargs, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Display.from_predictions(*multiclass(), **kwargs)


def test_without_matplotlib_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import calibrant\n"
        "try: calibrant.ReliabilityDisplay\n"
        "except ImportError as e: assert 'pip install \"calibrant[plot]\"' in str(e), e\n"
        "else: raise SystemExit('no error')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
