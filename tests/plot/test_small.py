"""Every display in small axes: no two texts overlap, and nothing lies outside the figure."""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.text import Text
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from calibrant.calibrators import PlattScaling, TemperatureScaling
from calibrant.data import notebook
from calibrant.datasets import make_survey
from calibrant.decisions import optimism_corrected
from calibrant.plot import fitting

RNG = np.random.default_rng(0)
P = RNG.beta(0.8, 1.2, 1200)
Y = (RNG.random(1200) < P**1.3).astype(int)
Q = RNG.dirichlet(np.ones(4), 1200)
K = (Q.cumsum(axis=1) > RNG.random((1200, 1))).argmax(axis=1)
MODELS = {"logistic regression": P, "random forest": P**1.4}
SURVEY = make_survey(400, "three-class", random_state=0)
FITTED = TemperatureScaling().fit(SURVEY.y_prob, SURVEY.y_true)
MONITOR = cal.CalibrationMonitor()
MONITOR.update(Y, P)
PLACES = RNG.choice(["north", "south", "a place with a long name"], 1200)
GROUPS = cal.subgroup_calibration(Y, P, PLACES, estimator=cal.Binned(5), n_resamples=49)
plot = cal.plot

#: Name, number of axes, and what draws on them.
DRAWN = {
    "reliability": (1, lambda ax: cal.ReliabilityDisplay.from_predictions(Y, P, name="forest", n_resamples=50, ax=ax)),
    "paper": (1, lambda ax: cal.ReliabilityDisplay.from_predictions(Y, P, scale="logit", n_resamples=50, ax=ax)),
    "isotonic": (1, lambda ax: cal.ReliabilityDisplay.from_predictions(Y, P, curve="isotonic", n_resamples=50, ax=ax)),
    "confidence": (1, lambda ax: cal.ReliabilityDisplay.from_predictions(K, Q, n_resamples=50, ax=ax)),
    "two models": (1, lambda ax: [overlay(ax, name, p) for name, p in MODELS.items()]),
    "map": (1, lambda ax: plot.CalibrationMapDisplay.from_calibrators(PlattScaling().fit(P, Y), Y, P, ax=ax)),
    "risk": (1, lambda ax: plot.RiskCoverageDisplay.from_predictions(Y, MODELS, ax=ax)),
    "decisions": (1, lambda ax: plot.DecisionCurveDisplay.from_predictions(Y, MODELS, ax=ax)),
    "Murphy": (1, lambda ax: plot.MurphyDisplay.from_predictions(Y, MODELS, ax=ax)),
    "Brier": (1, lambda ax: plot.BrierCurveDisplay.from_predictions(Y, MODELS, ax=ax)),
    "many": (1, lambda ax: plot.MurphyDisplay.from_predictions(Y, {f"model {i}": P for i in range(9)}, ax=ax)),
    "costs": (1, lambda ax: plot.CostDisplay.from_predictions(Y, P, costs={"fp": 1, "fn": 4}, ax=ax)),
    "rare": (1, lambda ax: plot.CostDisplay.from_predictions(Y, P, costs={"fp": 1, "fn": 400}, ax=ax)),
    "belt": (1, lambda ax: plot.CalibrationBeltDisplay.from_predictions(Y, P, ax=ax)),
    "null": (1, lambda ax: cal.calibration_test(Y, P, random_state=0).plot(ax)),
    "monitor": (1, MONITOR.plot),
    "simplex": (1, lambda ax: plot.SimplexDisplay.from_predictions(SURVEY.y_true, SURVEY.y_prob, ax=ax)),
    "arrows": (1, lambda ax: plot.SimplexMapDisplay.from_calibrator(FITTED, ax=ax)),
    "subgroups": (2, lambda axes: plot.SubgroupDisplay(GROUPS).plot(axes)),
    "classes": (4, lambda ax: cal.ReliabilityDisplay.from_predictions(K, Q, notion="classwise", n_resamples=50, ax=ax)),
}
#: What draws on a figure of its own, as wide as a page.
OWN = {
    "models": lambda: cal.compare_models(Y, MODELS | {"a third model": np.sqrt(P)}, n_resamples=30),
    "ranks": lambda: cal.scores.rank_models({"a model": [1, 2, 1, 3], "another one": [2, 3, 2, 4], "c": [3, 1, 3, 5]}),
    "measures": lambda: cal.calibration_measures(Y, P),
    "parts": lambda: cal.decompose(Y, P, level=0.95),
    "optimism": lambda: optimism_corrected(LogisticRegression(), RNG.normal(size=(200, 2)), Y[:200], n_resamples=20),
    "subgroups": lambda: GROUPS,
    "report": lambda: cal.report(Y, P),
    "classes": lambda: cal.report(K, Q, notion="classwise"),
    "costs": lambda: cal.expected_cost(Y, P, {"fp": 1, "fn": 4}),
}


def overlay(ax, name, p):
    return cal.ReliabilityDisplay.from_predictions(Y, p, name=name, n_resamples=50, ax=ax)


def texts_of(figure):
    """What is written and seen: of ticks, those within the limits."""
    found = [text for text in figure.texts if text.get_text()]
    for ax in figure.findobj(plt.Axes):
        if not ax.get_visible():
            continue
        legend = ax.get_legend()
        found += [text for text in ax.get_children() if isinstance(text, Text)]
        found += [] if legend is None else legend.get_texts()
        if ax.axison:
            for axis in (ax.xaxis, ax.yaxis):
                found += [axis.label, *(label for tick in axis._update_ticks() for label in (tick.label1, tick.label2))]
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def faults(figure):
    """Texts that overlap by more than a pixel, and those outside the figure."""
    figure.canvas.draw()
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts_of(figure)]
    whole = figure.bbox.padded(1)
    out = [
        f"{name!r} is outside"
        for name, box in boxes
        if not (box.x0 >= whole.x0 and box.x1 <= whole.x1 and box.y0 >= whole.y0 and box.y1 <= whole.y1)
    ]
    for (one, a), (other, b) in combinations(boxes, 2):
        across, up = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        if across > 1 and up > 1:
            out.append(f"{one!r} overlaps {other!r} by {across:.0f} × {up:.0f}")
    return out


@pytest.mark.parametrize("layout", ["none", "constrained", "tight"])
@pytest.mark.parametrize("name", DRAWN)
def test_four_of_them_fit_into_a_figure_of_two_columns(name, layout):
    if (name, layout) == ("simplex", "tight"):
        pytest.skip("matplotlib: a colour bar beside given axes is not compatible with a tight layout")
    n, draw = DRAWN[name]
    figure, axes = plt.subplots(2, 2, figsize=(6.6, 6.6), layout=layout)
    for places in [axes] if n == 4 else axes if n == 2 else axes.flat:
        draw(places)
    assert faults(figure) == []
    assert min(fitting.side_of(ax) for ax in axes.flat) > 60


@pytest.mark.parametrize("layout", ["none", "constrained"])
@pytest.mark.parametrize("name", [name for name, (n, _) in DRAWN.items() if n == 1])
def test_one_of_them_fits_into_a_figure_of_one_column(name, layout):
    figure, ax = plt.subplots(figsize=(3.3, 3.3), layout=layout)
    DRAWN[name][1](ax)
    assert faults(figure) == []
    assert fitting.side_of(ax) > 90


@pytest.mark.parametrize("name", OWN)
def test_a_picture_on_a_page_is_narrow(name):
    with notebook.for_page():
        figure = OWN[name]().plot().figure_
    assert figure.get_figwidth() <= fitting.PAGE_WIDTH + 0.01 or name == "ranks"
    assert faults(figure) == []
    assert min(text.get_fontsize() for text in texts_of(figure)) >= 5.9


def test_large_axes_are_as_they_were():
    _, ax = plt.subplots(figsize=(6, 5))
    display = plot.MurphyDisplay.from_predictions(Y, MODELS, ax=ax)
    assert ax.get_axes_locator() is None
    assert display.ax_.get_legend().get_frame_on()
    assert ax.xaxis.label.get_fontsize() == 10
