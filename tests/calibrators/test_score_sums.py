"""Maps of sums: piece by piece, in parts that are added, and with older rows fading."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from calibrant import calibrators as c
from calibrant.calibrators.score_sums import MOST

from .table import several, two

MAPS = [
    c.PlattScaling(),
    c.PlattScaling(shrinkage=0),
    c.PlattScaling(solver="closed-form"),
    c.BetaCalibration(),
    c.BetaCalibration("ab"),
    c.QuadraticLogit(),
    c.SplineCalibrator(),
    c.TemperatureScaling(),
    c.HistogramBinning(),
    c.HistogramBinning(15, "uniform", smoothing=1),
    c.IsotonicCalibrator(),
    c.IsotonicCalibrator(centred=True, interpolation="linear"),
    c.RocHullCalibrator(),
]
NEW = np.linspace(0, 1, 301)


def of(kind, s):
    return s if kind == "probability" else np.log(s / (1 - s))


def streamed(one, s, y, w=None, pieces=5, **options):
    out = clone(one)
    for rows in np.array_split(np.arange(len(y)), pieces):
        out.partial_fit(s[rows], y[rows], classes=[0, 1], sample_weight=None if w is None else w[rows], **options)
    return out


@pytest.mark.parametrize("weights", ["none", "whole", "relative"])
@pytest.mark.parametrize("kind", ["probability", "logit", "margin"])
@pytest.mark.parametrize("one", MAPS, ids=repr)
def test_streamed_is_batch(one, kind, weights):
    rng = np.random.default_rng(0)
    s, y, _ = two(700, 1, 0.6)
    s, new = of(kind, s), of(kind, NEW.clip(1e-6, 1 - 1e-6))
    w = {"none": None, "whole": rng.integers(0, 4, 700).astype(float), "relative": rng.random(700) + 0.1}[weights]
    batch = clone(one).set_params(input=kind).fit(s, y, w)
    found = streamed(batch, s, y, w)
    np.testing.assert_allclose(found.predict_proba(new), batch.predict_proba(new), atol=1e-10)
    if hasattr(batch, "predict_interval"):
        np.testing.assert_allclose(found.predict_interval(new), batch.predict_interval(new), atol=1e-9)


@pytest.mark.parametrize("one", MAPS, ids=repr)
def test_of_many_scores_cells_are_kept(one):
    """More than 10,000 distinct scores: pieces and their order make no difference, and cells next to none."""
    n = 3 * MOST
    s, y, _ = two(n, 1, 0.6)
    batch, found = clone(one).fit(s, y), streamed(one, s, y, pieces=3)
    assert len(found._sums.scores) < MOST
    shuffled = np.random.default_rng(0).permutation(n)
    parts = [clone(one).partial_fit(s[rows], y[rows]) for rows in np.array_split(shuffled, 4)]
    added = parts[0] + parts[1] + (parts[2] + parts[3])
    np.testing.assert_allclose(added.predict_proba(NEW), found.predict_proba(NEW), atol=1e-9)
    gap = np.abs(found.predict_proba(NEW) - batch.predict_proba(NEW))[:, 1]
    tolerance = 2e-5 if isinstance(one, (c.TemperatureScaling, c.SplineCalibrator)) or hasattr(one, "eps") else 0.005
    assert gap.mean() < tolerance


@settings(max_examples=20, deadline=None)
@given(decay=st.floats(0.05, 1), seed=st.integers(0, 2**31))
def test_decay_is_weights_by_age(decay, seed):
    rng = np.random.default_rng(seed)
    s, y = rng.random((4, 60)), rng.integers(0, 2, (4, 60))
    age = np.repeat(decay ** np.arange(3, -1, -1.0), 60)
    for one in (c.PlattScaling(), c.BetaCalibration(), c.IsotonicCalibrator(), c.HistogramBinning(5, "uniform")):
        found = clone(one)
        for t in range(4):
            found.partial_fit(s[t], y[t], classes=[0, 1], decay=decay)
        batch = clone(one).fit(s.ravel(), y.ravel(), age)
        np.testing.assert_allclose(found.predict_proba(NEW), batch.predict_proba(NEW), atol=1e-8)


@pytest.mark.parametrize("kind", ["probability", "logit", "margin"])
@pytest.mark.parametrize("power", [0.3, 1, 2.5])
@pytest.mark.parametrize("shrinkage", ["auto", 0])
def test_temperature_of_many_classes(kind, power, shrinkage):
    p, y, _ = several(900, 5, 1, power)
    s = p if kind == "probability" else np.log(p)
    w = np.random.default_rng(0).random(900) + 0.5
    batch = c.TemperatureScaling(input=kind, shrinkage=shrinkage, labels=range(5)).fit(s, y, w)
    found = clone(batch)
    parts = []
    for rows in np.array_split(np.arange(900), 3):
        found.partial_fit(s[rows], y[rows], sample_weight=w[rows])
        parts.append(clone(batch).partial_fit(s[rows], y[rows], sample_weight=w[rows]))
    for one in (found, parts[0] + parts[1] + parts[2]):
        assert one.temperature_ == pytest.approx(batch.temperature_, rel=2e-5)
        assert one.predict(s).tolist() == batch.predict(s).tolist()


def test_temperature_of_many_classes_fades():
    p, y, _ = several(900, 4, 1, 0.5)
    old, new = slice(0, 450), slice(450, 900)
    found = c.TemperatureScaling().partial_fit(p[old], y[old]).partial_fit(p[new], y[new], decay=0.1)
    batch = c.TemperatureScaling().fit(p, y, np.repeat([0.1, 1.0], 450))
    assert found.temperature_ == pytest.approx(batch.temperature_, rel=2e-5)
    useless = c.TemperatureScaling(shrinkage=0).partial_fit(
        p, np.random.default_rng(0).permutation(3 - p.argmax(axis=1))
    )
    assert useless.temperature_ > 3


def test_it_goes_on_after_pickling_and_ends_with_fit():
    s, y, _ = two(200, 1)
    first = pickle.loads(pickle.dumps(c.PlattScaling().partial_fit(s[:100], y[:100])))
    assert first.partial_fit(s[100:], y[100:]).coef_ == pytest.approx(c.PlattScaling().fit(s, y).coef_)
    assert c.from_dict(c.to_dict(first)).coef_ == first.coef_
    with pytest.raises(ValueError, match="fit kept no sums to add to"):
        c.PlattScaling().fit(s, y).partial_fit(s, y)
    with pytest.raises(ValueError, match="fit keeps no sums"):
        first + c.PlattScaling().fit(s, y)
    with pytest.raises(ValueError, match="same parameters, classes and number of columns"):
        first + c.PlattScaling(shrinkage=0).partial_fit(s, y)
    with pytest.raises(TypeError, match="unsupported operand"):
        first + c.BetaCalibration().partial_fit(s, y)
    with pytest.raises(ValueError, match="decay must be"):
        first.partial_fit(s, y, decay=0)
    with pytest.raises(ValueError, match="expecting 1 features"):
        first.partial_fit(np.column_stack([1 - s, s]), y)
