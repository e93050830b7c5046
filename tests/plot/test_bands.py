"""Bands and CORP curves as drawn."""

import matplotlib as mpl
import numpy as np
import pytest

import calibrant as cal

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
