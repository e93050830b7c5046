"""The Brier curve: by loops over costs, by its area, and against the parts of CORP."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal


def rows(n=200, values=None, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n) if values is None else rng.integers(0, values + 1, n) / values  # with exact 0 and 1
    return (rng.random(n) < p**1.5).astype(int), p, rng.random(n) + 0.05


def by_loops(c, y, p, w):
    """Hernández-Orallo et al.: a miss costs 2 (1 - c), a false alarm 2 c; acted upon is what lies above c."""
    loss = 0.0
    for outcome, score, weight in zip(y, p, w, strict=True):
        act = score > c
        loss += weight * (2 * (1 - c) * (outcome == 1 and not act) + 2 * c * (outcome == 0 and act))
    return loss / sum(w)


def at(curve, costs, column="scores"):
    """The curve between its breakpoints, where nothing jumps."""
    return np.interp(costs, curve.thresholds, getattr(curve, column))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 60), st.sampled_from([None, 1, 4, 10]), st.sampled_from(["none", "whole", "any"]),
    st.integers(0, 2**31),
)  # fmt: skip
def test_by_loops_and_by_area(n, values, weighting, seed):
    y, p, w = rows(n, values, seed)
    w = {"none": np.ones(n), "whole": np.random.default_rng(seed).integers(0, 3, n), "any": w}[weighting]
    w[0] = 1
    curve = cal.scores.brier_curve(y, p, labels=[0, 1], sample_weight=None if weighting == "none" else w)
    costs = np.random.default_rng(seed).random(7)
    found = at(curve, costs)
    np.testing.assert_allclose(found, [by_loops(c, y, p, w) for c in costs], atol=1e-12)
    area = sum(
        (b - a) * (f + g) / 2
        for a, b, f, g in zip(
            curve.thresholds[:-1], curve.thresholds[1:], curve.scores[:-1], curve.scores[1:], strict=True
        )
    )
    assert area == pytest.approx(np.average((p - y) ** 2, weights=w), abs=1e-12)
    assert curve.brier_score == pytest.approx(area, abs=1e-12)
    # No threshold on these scores costs less than the recalibrated curve, and at each cost one attains it.
    least = [min(by_cut(c, cut, y, p, w) for cut in [-1.0, *np.unique(p[w > 0])]) for c in costs]
    np.testing.assert_allclose(at(curve, costs, "recalibrated"), least, atol=1e-12)
    rate = np.average(y, weights=w)
    np.testing.assert_allclose(at(curve, costs, "base_rate"), 2 * np.minimum((1 - costs) * rate, costs * (1 - rate)))
    assert ((curve.scores >= 0) & (curve.scores <= 2)).all()


def by_cut(c, cut, y, p, w):
    """Loss at cost c where what lies above a cut is acted upon."""
    miss, alarm = (w * (y == 1) * (p <= cut)).sum(), (w * (y == 0) * (p > cut)).sum()
    return 2 * ((1 - c) * miss + c * alarm) / w.sum()


def test_the_curve_of_recalibrated_scores_has_no_jumps():
    curve = cal.scores.brier_curve(*rows(300, 10)[:2])
    jumps = curve.recalibrated[2:-1:2] - curve.recalibrated[1:-1:2]
    assert np.abs(jumps).max() < 1e-12
    assert np.abs(curve.scores[2:-1:2] - curve.scores[1:-1:2]).max() > 0.01


def test_is_twice_the_murphy_curve():
    y, p, w = rows()
    murphy = cal.scores.murphy_curve(y, p, sample_weight=w)
    curve = cal.scores.brier_curve(y, p, sample_weight=w)
    np.testing.assert_allclose(at(curve, murphy.thresholds), 2 * murphy.scores, atol=1e-12)
    assert isinstance(curve, cal.results.MurphyCurve)


def test_areas_are_the_parts_of_corp():
    y, p, w = rows(values=20)
    curve = cal.scores.brier_curve(y, p, sample_weight=w)
    parts = cal.decompose(y, p, score=cal.scores.Brier("half"), sample_weight=w)
    assert curve.brier_score == pytest.approx(parts.total, abs=1e-12)
    assert curve.refinement == pytest.approx(parts.refinement, abs=1e-12)
    assert curve.calibration == pytest.approx(parts.calibration, abs=1e-12)


def test_the_other_class_is_the_mirror_image():
    y, p, _ = rows(values=9)
    one, other = cal.scores.brier_curve(y, p), cal.scores.brier_curve(y, 1 - p, pos_label=0)
    costs = np.array([0.05, 0.3, 0.62, 0.9])
    np.testing.assert_allclose(at(one, costs), at(other, 1 - costs), atol=1e-12)
    assert other.label == 0


def test_curves_over_skews_are_those_of_weights_that_balance():
    y, p, _ = rows()
    share = y.mean()
    w = np.where(y == 1, 0.5 / share, 0.5 / (1 - share))
    balanced = ((1 - p[y == 1]) ** 2).mean() / 2 + (p[y == 0] ** 2).mean() / 2
    assert cal.scores.brier_curve(y, p, sample_weight=w).brier_score == pytest.approx(balanced)


@pytest.mark.parametrize(
    ("y", "p", "score"), [([0, 1], [0.0, 1.0], 0), ([1, 0], [0.0, 1.0], 1), ([1, 1], [0.5] * 2, 0.25)]
)
def test_ends(y, p, score):
    curve = cal.scores.brier_curve(y, p, labels=[0, 1])
    assert curve.brier_score == pytest.approx(score)
    assert curve.thresholds[[0, -1]].tolist() == [0, 1]


def test_table_and_text():
    y, p, _ = rows(values=4)
    curve = cal.scores.brier_curve(y, p)
    frame = curve.to_frame("pandas")
    assert list(frame) == ["threshold", "score", "base_rate", "recalibrated"]
    assert len(frame) == len(curve.thresholds)
    assert curve.to_dict()["brier_score"] == curve.brier_score
    assert repr(curve).startswith(f"BrierCurve(brier_score={curve.brier_score:.4g}, ")


def test_several_classes():
    with pytest.raises(ValueError, match="two classes; got 3"):
        cal.scores.brier_curve([0, 1, 2], np.full((3, 3), 1 / 3))


def test_display():
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    y, p, _ = rows()
    display = cal.plot.BrierCurveDisplay.from_predictions(y, {"as it is": p, "sharper": p**1.5})
    curve = cal.scores.brier_curve(y, p**1.5)
    drawn = {line.get_label(): line for line in display.ax_.lines}
    np.testing.assert_array_equal(drawn[f"sharper: area {curve.brier_score:.3f}"].get_ydata(), curve.scores)
    np.testing.assert_array_equal(drawn[f"recalibrated: area {curve.refinement:.3f}"].get_ydata(), curve.recalibrated)
    assert max(drawn["base rate"].get_ydata()) == pytest.approx(2 * y.mean() * (1 - y.mean()))  # the whole triangle
    assert len(display.ax_.lines) == 5
    assert len(curve.plot(recalibrated=False).ax_.lines) == 2
    with pytest.raises(TypeError, match=r"BrierCurveDisplay draws the result of brier_curve\(\); got MurphyCurve"):
        cal.plot.BrierCurveDisplay.from_result(cal.scores.murphy_curve(y, p))
    plt.close("all")
