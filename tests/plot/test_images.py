"""Every kind of display, and how diagrams lie on axes that are given, against pictures that were looked at.

After a change that is meant, look at what changes and keep it: ``pytest tests/plot/test_images.py
--mpl-generate-path=tests/plot/baseline``. Other versions of fonts pass; a legend that moves does not.
"""

from functools import partial, wraps
from io import BytesIO

import matplotlib.pyplot as plt
import numpy as np
import pytest

import calibrant as cal
from calibrant.calibrators import PlattScaling, SplineCalibrator, TemperatureScaling
from calibrant.datasets import make_survey, survey_restored

from ..versions import MATPLOTLIB

compared = partial(
    pytest.mark.mpl_image_compare, baseline_dir="baseline", savefig_kwargs={"dpi": 42}, style="default", tolerance=4
)
if MATPLOTLIB < (3, 11):  # whose text has other widths: only drawn

    def compared():
        def decorate(test):
            return wraps(test)(lambda *args, **rows: test(*args, **rows).savefig(BytesIO()))

        return decorate


#: Estimators with a formula: pictures change with drawing, not with defaults.
PLAIN = {"estimator": "binned", "curve": "binned", "bins": 8}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    p = rng.beta(0.8, 1.2, 800)
    return (rng.random(800) < p**1.3).astype(int), p


@pytest.fixture(scope="module")
def models(rows):
    y, p = rows
    return y, {"raw": p, "sharper": p**1.4 / (p**1.4 + (1 - p) ** 1.4)}


def diagram(rows, **options):
    return cal.ReliabilityDisplay.from_predictions(*rows, **{**PLAIN, "n_resamples": 20, **options})


@compared()
def test_reliability(rows):
    return diagram(rows, name="forest", curve="adaptive", title="A diagram").figure_


@compared()
def test_reliability_by_default(rows):
    """The posterior's curve; a fifth of the rows share .5, which has an interval of its own."""
    y, p = rows
    p = np.where(np.arange(p.size) % 5 == 0, 0.5, p)
    return diagram((y, p), curve="auto", n_resamples=400).figure_


@compared()
def test_reliability_isotonic_on_paper(rows):
    return diagram(rows, curve="isotonic", scale="logit").figure_


@compared()
def test_overlay(models):
    y, scores = models
    figure, ax = plt.subplots(figsize=(5, 5), layout="constrained")
    for name, p in scores.items():
        diagram((y, p), ax=ax, name=name)
    return figure


@compared()
def test_overlay_on_its_own_figure(models):
    y, scores = models
    first = diagram((y, scores["raw"]), name="raw")
    return diagram((y, scores["sharper"]), name="sharper", ax=first.ax_).figure_


@pytest.mark.parametrize("layout", ["none", "tight", "constrained"])
@compared()
def test_one_by_two(models, layout):
    y, scores = models
    figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout=layout)
    for ax, (name, p) in zip(axes, scores.items(), strict=True):
        diagram((y, p), ax=ax)
        ax.set_title(name)
    return figure


@pytest.mark.parametrize("layout", ["none", "tight", "constrained"])
@compared()
def test_two_by_two(rows, layout):
    figure, axes = plt.subplots(2, 2, figsize=(7, 7), layout=layout)
    for ax, histogram in zip(axes.flat, ("inside", "below", "inside", None), strict=True):
        diagram(rows, ax=ax, name="forest", histogram=histogram)
        ax.set_title(f"histogram={histogram}")
    return figure


@compared()
def test_twelve_classes():
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.full(12, 0.3), 1500)
    y = (rng.random((1500, 1)) > q.cumsum(axis=1)).sum(axis=1)
    sharp = q**1.5 / (q**1.5).sum(axis=1, keepdims=True)
    first = diagram((y, sharp), notion="classwise", name="sharp")
    return diagram((y, q), notion="classwise", name="true", ax=first.ax_).figure_


@compared()
def test_calibration_map(rows):
    y, p = rows
    fitted = {"Platt": PlattScaling().fit(p, y), "spline": SplineCalibrator().fit(p, y)}
    return cal.plot.CalibrationMapDisplay.from_calibrators(fitted, y, p).figure_


@pytest.mark.parametrize("kind", ["arrows", "heat"])
@compared()
def test_simplex_map(kind):
    data = make_survey(600, "three-class", random_state=0)
    fitted = TemperatureScaling().fit(data.y_prob, data.y_true)
    truth = survey_restored if kind == "arrows" else None
    return cal.plot.SimplexMapDisplay.from_calibrator(fitted, kind=kind, scores=data.y_prob, truth=truth).figure_


@pytest.mark.parametrize("show", ["density", "frequency", "error"])
@compared()
def test_simplex_cells(show):
    data = make_survey(600, "three-class", random_state=0)
    return cal.plot.SimplexDisplay.from_predictions(data.y_true, data.y_prob, show=show).figure_


@pytest.mark.parametrize(
    "display",
    [
        cal.plot.BrierCurveDisplay,
        cal.plot.MurphyDisplay,
        cal.plot.DecisionCurveDisplay,
        cal.plot.RiskCoverageDisplay,
    ],
    ids=lambda display: display.__name__,
)
@compared()
def test_curves(models, display):
    return display.from_predictions(*models).figure_


@compared()
def test_belt(rows):
    return cal.plot.CalibrationBeltDisplay.from_predictions(*rows).figure_


@compared()
def test_null_distribution(rows):
    return cal.calibration_test(*rows, random_state=0).plot().figure_


@compared()
def test_model_comparison(models):
    return cal.plot.ModelComparisonDisplay.from_predictions(*models, n_resamples=30, random_state=0).figure_


@compared()
def test_critical_difference():
    rng = np.random.default_rng(0)
    scores = {name: rng.random(12) + shift for name, shift in (("one", 0.0), ("two", 0.3), ("three", 0.35))}
    return cal.plot.CriticalDifferenceDisplay.from_scores(scores).figure_


@compared()
def test_subgroups(rows):
    y, p = rows
    names = np.random.default_rng(1).choice(["north", "south", "a place with a long name"], len(y))
    return cal.plot.SubgroupDisplay(cal.subgroup_calibration(y, p, names)).plot().figure_
