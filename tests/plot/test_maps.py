"""Calibration maps and the simplex: what is drawn is what the calibrator says."""

import subprocess
import sys
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.quiver import Quiver

import calibrant as cal
from calibrant.calibrators import (
    BetaCalibration,
    DirichletCalibration,
    IsotonicCalibrator,
    PlattScaling,
    TemperatureScaling,
    VennAbers,
)
from calibrant.datasets import make_survey, survey_restored, survey_true_map
from calibrant.plot.simplex_display import CORNERS, simplex_grid, to_page

DATA = make_survey(400, "overconfident", random_state=0)
THREE = make_survey(500, "three-class", random_state=0)


def fitted(one, data=DATA):
    return one.fit(data.y_prob, data.y_true)


def line(ax, name):
    (found,) = [a for a in ax.lines if a.get_label() == name]
    return found.get_xydata().T


@pytest.mark.parametrize("one", [PlattScaling(), IsotonicCalibrator(), VennAbers()], ids=repr)
def test_lines_are_the_map(one):
    truth = partial(survey_true_map, case="overconfident")
    display = cal.plot.CalibrationMapDisplay.from_calibrators(
        {"map": fitted(one)}, DATA.y_true, DATA.y_prob, truth=truth
    )
    x, y = line(display.ax_, "map")
    np.testing.assert_array_equal(y, one.predict_proba(x)[:, 1])
    x, y = line(display.ax_, "true map")
    np.testing.assert_array_equal(y, truth(x))
    assert (x[0], x[-1]) == (0, 1)
    texts = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert texts[-1] == "map"
    assert "true map" in texts
    assert texts[0].startswith("scores: ECE")
    assert ("map" in display.intervals) == isinstance(one, VennAbers)


def test_two_columns_names_and_axes():
    both = np.column_stack([1 - DATA.y_prob, DATA.y_prob])
    one, two = BetaCalibration().fit(both, DATA.y_true), fitted(BetaCalibration())
    ax = plt.subplots()[1]
    display = cal.plot.CalibrationMapDisplay.from_calibrators([one, two], ax=ax)
    assert display.ax_ is ax
    assert list(display.maps) == ["BetaCalibration", "BetaCalibration 2"]
    np.testing.assert_allclose(*display.maps.values(), atol=1e-6)
    assert display.diagram is None


def test_columns_that_labels_put_in_another_order():
    pandas = pytest.importorskip("pandas")
    names = np.array(["no", "yes"])[DATA.y_true]
    frame = pandas.DataFrame({"p_yes": DATA.y_prob, "p_no": 1 - DATA.y_prob})
    one = PlattScaling(labels=["no", "yes"]).fit(frame, names)
    assert one.order_ is not None
    display = cal.plot.CalibrationMapDisplay.from_calibrators({"map": one})
    assert (np.diff(display.maps["map"]) > 0).all()
    np.testing.assert_allclose(
        display.maps["map"], fitted(PlattScaling()).predict_proba(display.scores)[:, 1], atol=1e-6
    )


def test_nothing_is_cut_off_and_no_two_maps_look_alike():
    several = {f"map {i}": fitted(PlattScaling()) for i in range(9)}
    display = cal.plot.CalibrationMapDisplay.from_calibrators(several, DATA.y_true, DATA.y_prob)
    display.figure_.canvas.draw()
    width, height = display.figure_.canvas.get_width_height()
    box = display.ax_.get_legend().get_window_extent()
    assert box.x0 >= 0
    assert box.y0 >= 0
    assert box.x1 <= width
    assert box.y1 <= height
    drawn = [a for a in display.ax_.lines if str(a.get_label()).startswith("map")]
    looks = {(a.get_color(), str(a.get_linestyle()), str(a._unscaled_dash_pattern)) for a in drawn}
    assert len(looks) == 9


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: cal.plot.CalibrationMapDisplay.from_calibrators([]), ValueError, "at least one"),
        (lambda: cal.plot.CalibrationMapDisplay.from_calibrators([3]), TypeError, "fitted calibrators"),
        (
            lambda: cal.plot.CalibrationMapDisplay.from_calibrators(fitted(TemperatureScaling(), THREE)),
            ValueError,
            "two classes",
        ),
        (
            lambda: cal.plot.CalibrationMapDisplay.from_calibrators(
                PlattScaling(input="margin").fit([-1.0, 2.0, 0.5, -2], [0, 1, 0, 1])
            ),
            ValueError,
            "input='margin'",
        ),
        (
            lambda: cal.plot.CalibrationMapDisplay.from_calibrators(fitted(PlattScaling()), [0, 1]),
            ValueError,
            "together",
        ),
        (lambda: cal.plot.SimplexMapDisplay.from_calibrator(fitted(PlattScaling())), ValueError, "three classes"),
        (lambda: cal.plot.SimplexMapDisplay.from_calibrator(3), TypeError, "fitted calibrator"),
        (
            lambda: cal.plot.SimplexMapDisplay.from_calibrator(fitted(TemperatureScaling(), THREE), kind="map"),
            ValueError,
            "kind must be one of",
        ),
        (
            lambda: cal.plot.SimplexMapDisplay.from_calibrator(fitted(TemperatureScaling(), THREE), n_steps=1),
            ValueError,
            "n_steps",
        ),
        (
            lambda: cal.plot.SimplexMapDisplay.from_calibrator(
                fitted(TemperatureScaling(), THREE), scores=[[0.2, 0.8]]
            ),
            ValueError,
            r"shape \(n, 3\)",
        ),
    ],
)
def test_bad_arguments(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_arrows_run_from_stated_to_calibrated():
    one = fitted(DirichletCalibration(), THREE)
    display = cal.plot.SimplexMapDisplay.from_calibrator(one, scores=THREE.y_prob, truth=survey_restored)
    children = display.axes_[0].get_children()
    (arrows,) = [a for a in children if isinstance(a, Quiver)]
    (misses,) = [a for a in children if isinstance(a, LineCollection)]
    start = arrows.XY
    np.testing.assert_allclose(start, to_page(display.stated))
    np.testing.assert_allclose(start + np.c_[arrows.U, arrows.V], to_page(one.predict_proba(display.stated)))
    ends = np.stack([to_page(one.predict_proba(display.stated)), to_page(survey_restored(display.stated))], axis=1)
    np.testing.assert_allclose(np.stack(misses.get_segments()), ends)
    # Faint where the nearest score lies further away than the next arrow does.
    gaps = np.linalg.norm(start[:, None] - to_page(THREE.y_prob[:4000])[None], axis=2).min(axis=1)
    apart = np.sort(np.linalg.norm(start[:, None] - start[None], axis=2), axis=1)[:, 1].min()
    assert 0 < (gaps > apart).sum() < len(start)
    np.testing.assert_array_equal(arrows.get_facecolors()[:, 3] == 1, gaps <= apart)
    np.testing.assert_allclose(display.stated.sum(axis=1), 1)
    assert display.stated.min() > 0
    assert len(display.stated) == 45  # 9 · 10 / 2 cells


@pytest.mark.parametrize("labels", [None, ["b", "a", "c"]])
def test_columns_in_another_order_than_classes(labels):
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1, 1, 1], 400)
    names = np.array(["c", "a", "b"])
    y = names[(rng.random((400, 1)) > np.cumsum(P**2 / (P**2).sum(axis=1, keepdims=True), axis=1)).sum(axis=1)]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(P, columns=names)
    one = DirichletCalibration(labels=labels).fit(frame, y)
    assert (one.order_ is None) == (labels is None)
    display = cal.plot.SimplexMapDisplay.from_calibrator(one)  # without a warning that an array has no names
    stated = dict(zip(display.classes, display.stated.T, strict=True))
    want = one.predict_proba(pandas.DataFrame({n: stated[n] for n in names.tolist()}))
    np.testing.assert_allclose(display.calibrated, want, rtol=1e-12)


def test_heat_shows_the_change():
    one = fitted(DirichletCalibration(), THREE)
    display = cal.plot.SimplexMapDisplay.from_calibrator(one, kind="heat", scores=THREE.y_prob)
    assert len(display.axes_) == 3
    change = one.predict_proba(display.stated) - display.stated
    for k, ax in enumerate(display.axes_):
        drawn = next(c for c in ax.collections if type(c).__name__ == "TriMesh")
        np.testing.assert_allclose(drawn.get_array(), change[:, k])
        assert drawn.norm.vmin == -drawn.norm.vmax  # white is no change


def test_the_simplex_on_the_page():
    np.testing.assert_allclose(to_page(np.eye(3)), CORNERS)
    sides = np.linalg.norm(CORNERS - np.roll(CORNERS, 1, axis=0), axis=1)
    np.testing.assert_allclose(sides, 1)
    grid = simplex_grid(4)
    assert len(grid) == 15
    assert len(np.unique(grid.round(9), axis=0)) == 15
    ax = cal.plot.SimplexMapDisplay.from_calibrator(fitted(TemperatureScaling(), THREE)).axes_[0]
    ax.figure.canvas.draw()
    words = [t.get_text() for t in ax.texts]
    assert words.count("0.2") == 3
    assert {"class 0", "class 1", "class 2"} <= set(words)
    frame = ax.figure.bbox
    assert all(frame.contains(*corner) for t in ax.texts for corner in t.get_window_extent().corners())


@pytest.mark.slow
def test_drawing_reliability_needs_no_scikit_learn():
    code = "import sys, calibrant.plot; assert 'sklearn' not in sys.modules, 'loaded'"
    subprocess.run([sys.executable, "-c", code], check=True)
