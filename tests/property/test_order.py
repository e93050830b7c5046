"""Laws of the estimators that read the order of scores, and of smECE, on samples with many ties."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Binned, calibration_error
from calibrant.estimators import Cumulative, Isotonic, Smooth, Sweep
from calibrant.estimators import sweep as sweep_module

from ..contract.naive import Sample
from ..contract.naive_order import cumulative, isotonic, sweep

quick = settings(deadline=None, derandomize=True, max_examples=80)
TWINS = [
    (Sweep(), sweep()),
    (Sweep("uniform"), sweep("uniform")),
    (Isotonic(), isotonic()),
    (Cumulative(), cumulative()),
    (Cumulative("kuiper"), cumulative("kuiper")),
]


@st.composite
def samples(draw):
    n = draw(st.integers(1, 50))
    steps = draw(st.sampled_from([3, 10, 64, 1000]))
    p = np.array(draw(st.lists(st.integers(0, steps), min_size=n, max_size=n))) / steps
    ordered = draw(st.booleans())  # nearly separated samples have few drops
    if ordered:
        y = (p > 0.5).astype(int)
        for i in draw(st.lists(st.integers(0, n - 1), max_size=3)):
            y[i] = 1 - y[i]
    else:
        y = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    kind = draw(st.sampled_from(["none", "whole", "relative"]))
    if kind == "none":
        return y, p, None
    w = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), dtype=float)
    w[0] += 1
    return y, p, w if kind == "whole" else w * 0.37


def read(y, p, w, estimator, norm=1.0):
    return calibration_error(y, p, estimator=estimator, norm=norm, labels=[0, 1], sample_weight=w)


@quick
@given(samples(), st.sampled_from(TWINS), st.sampled_from([1, 2, float("inf")]))
def test_agrees_with_plain_loops(sample, pair, norm):
    y, p, w = sample
    estimator, twin = pair
    power = twin(Sample.of(p.tolist(), y.tolist(), w), norm)
    expected = power if norm in (1, float("inf")) else power ** (1 / norm)
    assert read(y, p, w, estimator, norm) == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
@settings(quick, max_examples=400)
@given(samples(), st.sampled_from(["quantile", "uniform"]))
def test_bins_around_drops_tell_as_much_as_all_bins(sample, strategy):
    y, p, w = sample
    values = []
    for few in (-(10**9), 10**9):  # from the first number of bins on, or never
        with patch.object(sweep_module, "FEW", few):
            values.append(read(y, p, w, Sweep(strategy)))
    assert values[0] == values[1]


@quick
@given(samples())
def test_bounds(sample):
    """|mean residual| ≤ ks ≤ kuiper ≤ the plug-in error with a bin for each score; kuiper ≤ 2 ks; smECE between too."""
    y, p, w = sample
    mean = abs(np.average(y, weights=w) - np.average(p, weights=w))
    ks, kuiper = (read(y, p, w, Cumulative(s)) for s in ("ks", "kuiper"))
    each = np.unique(p[slice(None) if w is None else w > 0])
    cells = [0.0, *((each[1:] + each[:-1]) / 2), 1.0]
    finest = read(y, p, w, Binned(cells))
    assert mean <= ks + 1e-12
    assert ks <= kuiper + 1e-12
    assert kuiper <= min(finest, 2 * ks) + 1e-12
    smooth = read(y, p, w, Smooth())
    assert mean - 1e-9 <= smooth <= finest + 1e-3  # linear binning shares a sample by two nodes
    assert read(y, p, w, Isotonic()) <= finest + 1e-12
    assert read(y, p, w, Sweep()) <= finest + 1e-12


@quick
@given(samples())
def test_the_mirror_image(sample):
    """Outcome and score exchanged with their complements: the same gaps, read from the other side."""
    y, p, w = sample
    for estimator in (Smooth(), Isotonic(), Cumulative("kuiper")):
        one, other = read(y, p, w, estimator), read(1 - y, 1 - p, w, estimator)
        assert other == pytest.approx(one, abs=1e-7)


@quick
@given(samples(), st.floats(1e-3, 1))
def test_smooth_is_continuous(sample, share):
    """Scores that move by at most δ move smECE by less than 3 √δ (it is between ½ d and 2 √d of a distance d)."""
    y, p, w = sample
    delta = 1e-4 * share
    moved = np.clip(p + delta * np.where(np.arange(p.size) % 2, 1, -1), 0, 1)
    assert abs(read(y, moved, w, Smooth()) - read(y, p, w, Smooth())) < 3 * np.sqrt(delta)
