"""No calibrator is certain by finite rows unless its published form is asked for; published forms by one call each."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from calibrant import calibrators as c

from .table import ROWS

PAGE = Path(__file__).parents[2] / "docs" / "calibrators.md"


@pytest.mark.parametrize(
    "row", [r for r in ROWS if not isinstance(r.calibrator, c.Identity)], ids=lambda r: repr(r.calibrator)
)
@settings(max_examples=15, deadline=None)
@given(n=st.integers(6, 60), seed=st.integers(0, 2**31), grid=st.sampled_from([1, 4, 50]))
@pytest.mark.filterwarnings("ignore::calibrant.exceptions.CalibrantWarning", "ignore::RuntimeWarning")
def test_no_probability_is_0_or_1(row, n, seed, grid):
    """Scores on a grid, with 0 and 1, that separate the classes or nearly so; new scores of all kinds."""
    rng = np.random.default_rng(seed)
    s = rng.integers(0, grid + 1, n) / grid
    y = ((s > 0.5) ^ (rng.random(n) < 0.02)).astype(int)
    y[:2] = 0, 1
    new = np.linspace(0, 1, 23)
    if row.many:
        s, new = (np.column_stack([1 - v, v]) for v in (s, new))
    p = clone(row.calibrator).fit(s, y).predict_proba(new)
    assert p.min() > 0
    assert p.max() < 1


@pytest.mark.parametrize("weights", [None, 0.001, 1000])
def test_ends_are_one_row_away(weights):
    s, y = np.arange(1.0, 21) / 21, np.repeat([0, 1], 10)
    w = None if weights is None else np.linspace(1, 2, 20) * weights  # relative: Kish's effective rows
    n = 20 if w is None else w.sum() ** 2 / (w @ w)
    for one in (c.IsotonicCalibrator(), c.RocHullCalibrator(), c.NearIsotonic(1e-9), c.HistogramBinning(4)):
        p = one.fit(s, y, w).predict_proba(s)[:, 1]
        assert p.min() == pytest.approx(1 / (n + 2))
        assert p.max() == pytest.approx(1 - 1 / (n + 2))


@pytest.mark.parametrize("alpha", [1, 0.5, 3.0])
def test_smoothing_is_pycalibs(alpha):
    """``(sum(y) + alpha) / (n + 2 alpha)`` of each bin; a bin without rows has one half."""
    rng = np.random.default_rng(0)
    s = rng.beta(3, 1, 60)
    y = (rng.random(60) < s).astype(int)
    fitted = c.HistogramBinning(10, "uniform", smoothing=alpha).fit(s, y)
    bins = np.minimum(np.ceil(s * 10).astype(int) - 1, 9)
    want = [(y[bins == b].sum() + alpha) / ((bins == b).sum() + 2 * alpha) for b in range(10)]
    np.testing.assert_allclose(fitted.values_, want)
    assert fitted.values_[0] == 0.5


def test_published_forms_are_certain():
    s, y = np.arange(1.0, 21) / 21, np.repeat([0, 1], 10)
    for one in (c.IsotonicCalibrator(clip=None), c.NearIsotonic(0, clip=None), c.HistogramBinning(4, smoothing=0)):
        assert set(one.fit(s, y).predict_proba(s)[:, 1]) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (c.HistogramBinning(smoothing=-1), "smoothing must be"),
        (c.HistogramBinning(smoothing="laplace"), "smoothing must be"),
        (c.IsotonicCalibrator(clip="least"), "clip must be"),
    ],
)
def test_bad_settings(one, words):
    with pytest.raises(ValueError, match=words):
        one.fit([0.1, 0.9], [0, 1])


def test_the_table_of_published_forms_is_calls():
    table = PAGE.read_text(encoding="utf-8").split("## Published fits")[1].split("\n## ")[0]
    calls = re.findall(r"\| `([^`]+)` \|[^|]*\|$", table, re.MULTILINE)
    assert len(calls) >= 12
    rng = np.random.default_rng(0)
    for call in calls:
        one = eval(call, vars(c) | {name: getattr(c, name) for name in dir(c)})
        if isinstance(one, c.BinaryCalibrator):
            one.fit(rng.random(300), rng.integers(0, 2, 300))
        else:
            p = rng.dirichlet([1, 1, 1], 300)
            one.fit(p, (rng.random((300, 1)) > p.cumsum(axis=1)).sum(axis=1))
        assert np.isfinite(one.predict_proba(one_row(one))).all()


def one_row(one):
    return [0.3] if isinstance(one, c.BinaryCalibrator) else [[0.2, 0.3, 0.5]]
