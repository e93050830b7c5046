"""A diagram lives inside the axes that it is given, whatever the figure's layout engine."""

from io import BytesIO

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.transforms import Bbox

import calibrant as cal
from calibrant.plot.axes import strip_of

TITLES = ("Model one", "Model two")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    p = rng.beta(0.8, 1.2, 2000)
    return (rng.random(2000) < p**1.3).astype(int), p


def box_of(ax, figure):
    """What an axes and its strip take of the figure, with all labels."""
    strip = strip_of(ax)
    return Bbox.union([a.get_tightbbox(figure.canvas.get_renderer()) for a in (ax, strip) if a is not None])


@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
@pytest.mark.parametrize("histogram", ["auto", "inside", "below", None])
def test_neighbours_and_titles_stay_as_they_are(rows, layout, histogram):
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout=layout)
    displays = []
    for ax, title in zip(axes, TITLES, strict=True):
        options = {"n_resamples": 20, "ax": ax, "name": "logistic", "histogram": histogram}
        displays.append(cal.ReliabilityDisplay.from_predictions(*rows, **options))
        ax.set_title(title)
    figure.canvas.draw()
    one, other = (box_of(ax, figure) for ax in axes)
    assert one.x1 < other.x0
    width, height = figure.canvas.get_width_height()
    for ax, display, title, box in zip(axes, displays, TITLES, (one, other), strict=True):
        assert ax.get_title() == title
        assert box.x0 >= 0
        assert box.x1 <= width
        assert box.y0 >= 0
        assert box.y1 <= height
        legend = ax.get_legend().get_window_extent()
        line = ax.transData.transform(
            np.column_stack([display.diagrams[0].curve.scores, display.diagrams[0].curve.observed])
        )
        assert not any(legend.contains(*point) for point in line)
        if (strip := strip_of(ax)) is not None:
            panel, own = ax.get_window_extent(), strip.get_window_extent()
            assert abs(own.x0 - panel.x0) < 1.5
            assert abs(own.x1 - panel.x1) < 1.5
            if histogram == "below":
                assert own.y1 < panel.y0
            else:
                assert own.y0 >= panel.y0 - 1
                assert own.y1 < panel.y0 + 0.2 * panel.height
        assert (strip is None) == (histogram is None)
    plt.close(figure)


def test_without_an_engine_it_takes_no_more_than_a_plain_plot(rows):
    """Titles, labels and ticks of a plain square plot with the same words."""
    taken = {}
    for drawn in (True, False):
        figure, axes = plt.subplots(2, 2, figsize=(7, 7))
        for ax in axes.flat:
            if drawn:
                cal.ReliabilityDisplay.from_predictions(*rows, n_resamples=20, ax=ax)
            else:
                ax.plot([0, 1], [0, 1])
                ax.set(
                    aspect="equal", xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), xlabel="Predicted probability of class 1"
                )
                ax.set_ylabel("Observed frequency")
            ax.set_title("Title")
        figure.canvas.draw()
        taken[drawn] = [box_of(ax, figure) for ax in axes.flat]
        plt.close(figure)
    for ours, plain in zip(taken[True], taken[False], strict=True):
        assert ours.x0 >= plain.x0 - 2
        assert ours.y0 >= plain.y0 - 3
        assert ours.x1 <= plain.x1 + 2
        assert ours.y1 <= plain.y1 + 2


@pytest.mark.parametrize("place", ["inside", "below"])
def test_models_on_one_axes_share_the_strip(rows, place):
    y, p = rows
    figure, ax = plt.subplots(figsize=(5, 5))
    for name, scores in (("raw", p), ("sharper", p**1.3)):
        cal.ReliabilityDisplay.from_predictions(y, scores, n_resamples=20, ax=ax, name=name, histogram=place)
    strips = [a for a in [*ax.child_axes, *figure.axes] if a.get_label() == strip_of(ax).get_label()]
    assert strips == [strip_of(ax)]
    assert len(strips[0].patches) == 3  # a filled one, and two outlines
    carrier = strips[0] if place == "below" else ax
    assert carrier.get_xlabel() == "Predicted probability of class 1"
    assert [t.get_text().partition(":")[0].partition("\n")[0] for t in ax.get_legend().get_texts()[:2]] == [
        "raw",
        "sharper",
    ]
    plt.close(figure)


def test_axes_of_no_grid_and_colours_and_titles(rows):
    figure = plt.figure(figsize=(4, 4))
    ax = figure.add_axes((0.15, 0.15, 0.8, 0.75))
    display = cal.ReliabilityDisplay.from_predictions(
        *rows, n_resamples=20, ax=ax, histogram="below", color="tab:red", title="A $title$"
    )
    assert ax.get_title() == r"A \$title\$"
    assert {line.get_color() for line in ax.lines} >= {"tab:red"}
    figure.canvas.draw()
    assert box_of(ax, figure).y0 >= 0
    with pytest.raises(ValueError, match="histogram must be one of"):
        display.plot(histogram="left")
    assert strip_of(display.plot(histogram=None).ax_) is None
    plt.close("all")


@pytest.mark.parametrize("layout", ["constrained", "compressed", "tight"])
def test_a_saved_figure_has_axes_of_one_size(rows, layout):
    figure, axes = plt.subplots(1, 3, figsize=(11, 4.2), layout=layout)
    for ax in axes:
        cal.ReliabilityDisplay.from_predictions(*rows, n_resamples=20, ax=ax, histogram=None, legend=False)
    figure.savefig(BytesIO(), dpi=150)
    sizes = np.array([ax.get_position().size for ax in axes])
    np.testing.assert_allclose(sizes, sizes[[0]].repeat(3, axis=0), rtol=1e-6)
