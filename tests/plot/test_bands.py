"""Bands and CORP curves as drawn."""

import matplotlib as mpl
import numpy as np
import pytest

import calibrant as cal
from calibrant.reporting.html import view_of
from calibrant.reporting.report_curves import Curves

mpl.use("Agg")
RNG = np.random.default_rng(0)
P = RNG.random(400)
Y = (RNG.random(400) < P**2).astype(int)


def texts(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.parametrize("method", ["adaptive", "isotonic"])
@pytest.mark.parametrize(
    ("band", "word"),
    [("confidence", "confidence band"), ("consistency", "band if calibrated"), ("simultaneous", "simultaneous band")],
)
def test_the_legend_says_which_band_it_is(method, band, word):
    display = cal.ReliabilityDisplay.from_predictions(Y, P, curve=method, band=band, random_state=0)
    assert f"95 % {word}" in texts(display)
    (diagram,) = display.diagrams
    assert diagram.curve.band == diagram.bins.band == band
    (fill,) = display.ax_.collections[:1]
    assert np.nanmax(fill.get_paths()[0].vertices[:, 1]) == pytest.approx(np.nanmax(diagram.curve.upper), abs=1e-9)


def test_a_corp_curve_is_drawn_as_steps():
    display = cal.ReliabilityDisplay.from_predictions(Y, P, curve="corp", random_state=0)
    (diagram,) = display.diagrams
    line = next(line for line in display.ax_.lines if str(line.get_label()).startswith("ECE"))
    x, y = line.get_xdata(), line.get_ydata()
    assert ((np.diff(x) == 0) | (np.diff(y) == 0)).all()  # level or upright
    assert sorted(set(y)) == sorted(set(diagram.curve.observed))
    assert (x[0], x[-1]) == (P.min(), P.max())
    ordered = np.sort(P)
    assert set(x[1:-1]) <= set((ordered[1:] + ordered[:-1]) / 2)  # steps midway between neighbouring scores
    for score in (0.2, 0.5, 0.7):
        assert y[np.searchsorted(x, score)] == diagram.curve.at(score).observed[0]


def test_bars_of_a_consistency_band_stand_on_the_diagonal():
    display = cal.ReliabilityDisplay.from_predictions(Y, P, band="consistency", random_state=0)
    (diagram,) = display.diagrams
    bars = [seg for c in display.ax_.collections for seg in getattr(c, "get_segments", list)() if len(seg) == 2]
    assert len(bars) == (diagram.bins.count > 0).sum()
    for (x, low), (_, high) in bars:
        assert low <= x <= high


def test_exact_intervals_go_with_a_confidence_band():
    display = cal.ReliabilityDisplay.from_predictions(Y, P, band="clopper-pearson", random_state=0)
    (diagram,) = display.diagrams
    assert (diagram.curve.band, diagram.bins.band) == ("confidence", "clopper-pearson")


def test_an_unknown_band_is_refused():
    with pytest.raises(ValueError, match="band must be one of"):
        cal.ReliabilityDisplay.from_predictions(Y, P, band="credible")


def test_a_line_has_no_spikes_and_ends_with_the_rows():
    """Values of many rows are points by themselves, and nothing is drawn beyond the last rows."""
    rng = np.random.default_rng(0)
    p = np.where(rng.random(3000) < 0.3, rng.choice([0.5, 0.7], 3000), rng.beta(1, 2, 3000) * 0.8)
    y = (rng.random(3000) < np.where(p == 0.5, 0.2, p)).astype(int)
    display = cal.ReliabilityDisplay.from_predictions(y, p, random_state=0)
    (diagram,) = display.diagrams
    values = diagram.curve.values
    assert values.scores == pytest.approx([0.5, 0.7], abs=1 / 4096)
    assert values.observed == pytest.approx([y[p == 0.5].mean(), y[p == 0.7].mean()], abs=2e-3)
    line = next(line for line in display.ax_.lines if str(line.get_label()).startswith("ECE"))
    x, drawn = line.get_xdata(), line.get_ydata()
    assert p.min() - 0.01 < x[0] < x[-1] < p.max() + 0.01
    assert np.abs(np.diff(drawn) / np.diff(x)).max() < 20  # 0.2 at 0.5 within a 4096th would be a slope of 1000
    assert "single score with many rows" in texts(display)
    view = view_of("rows", Curves({"confidence": diagram.curve}, {"confidence": diagram.bins}), "x", "y")
    assert view["values"]["s"] == pytest.approx([5000, 7000], abs=3)
    assert not {4999, 5000, 5001} & set(view["smooth"]["s"])
    single = cal.reliability_curve(y, p, estimator="binned")
    assert single.line is single
    assert single.values.scores.size == 0
