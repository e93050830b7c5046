"""The weak prior of parametric calibrators: rows whose labels are what the scores expect."""

import numpy as np
import pytest
from scipy.special import expit, logit

from calibrant import calibrators as c
from calibrant.exceptions import ConvergenceWarning

from .table import several, two

BINARY = [c.PlattScaling(smoothing=False), c.BetaCalibration(), c.QuadraticLogit(), c.SplineCalibrator()]
MANY = [c.TemperatureScaling(), c.EnsembleTemperatureScaling(), c.DirichletCalibration()]
BY_RULE = [c.VectorScaling(), c.MatrixScaling()]


def with_rows(one, p, y, m):
    """The fit of rows of the prior that are really there: each row once a class, weighted by its probability."""
    k = p.shape[1] if p.ndim == 2 else 2
    likely = p if p.ndim == 2 else np.column_stack([1 - p, p])
    weights = np.concatenate([np.ones(len(y)), m / len(y) * likely.T.ravel()])
    rows = np.concatenate([p, *[p] * k])
    labels = np.concatenate([y, np.repeat(np.arange(k), len(y))])
    return one.set_params(shrinkage=0).fit(rows, labels, sample_weight=weights)


@pytest.mark.parametrize("m", [0.5, 4.0, 60.0])
@pytest.mark.parametrize("one", [c.PlattScaling(smoothing=False), c.BetaCalibration(), c.QuadraticLogit()], ids=repr)
def test_two_classes_are_fitted_as_with_rows_of_the_prior(one, m):
    s, y, _ = two(150, 3, 0.6)
    got = type(one)(**one.get_params() | {"shrinkage": m}).fit(s, y).predict_proba(s)
    np.testing.assert_allclose(got, with_rows(one, s, y, m).predict_proba(s), atol=1e-6)


@pytest.mark.parametrize("m", [0.5, 4.0, 60.0])
def test_temperature_is_fitted_as_with_rows_of_the_prior(m):
    p, y, _ = several(150, 4, 3, 0.6)
    got = c.TemperatureScaling(shrinkage=m).fit(p, y).temperature_
    assert got == pytest.approx(with_rows(c.TemperatureScaling(), p, y, m).temperature_, rel=1e-6)


def test_auto_is_eight_rows_and_half_a_row_of_margins():
    s, y, _ = two(100, 0, 0.6)
    assert c.BetaCalibration().fit(s, y).a_ == pytest.approx(c.BetaCalibration(shrinkage=8).fit(s, y).a_, rel=1e-9)
    z = logit(s)
    got = c.BetaCalibration(input="margin").fit(z, y).a_
    share, rate = 0.5 / 100.5, (y.sum() + 1) / 102
    smooth = c.BetaCalibration(shrinkage=0, input="margin").fit(
        np.tile(z, 2), np.repeat([0, 1], 100),
        np.concatenate([(1 - y) * (1 - share) + share * (1 - rate), y * (1 - share) + share * rate]),
    )  # fmt: skip
    assert got == pytest.approx(smooth.a_, rel=1e-6)


@pytest.mark.parametrize("one", [*BINARY, *MANY, *BY_RULE], ids=repr)
def test_separated_rows_leave_a_finite_map(one):
    """Classes that the scores separate, few positives, and labels of one class: no warning, moderate slopes."""
    s = np.sort(np.random.default_rng(0).uniform(0.02, 0.98, 60))
    for y in ((s > 0.5).astype(int), (np.arange(60) >= 58).astype(int), np.zeros(60, int)):
        fitted = type(one)(**one.get_params() | {"labels": [0, 1]}).fit(np.column_stack([1 - s, s]), y)
        z = logit(fitted.predict_proba(np.column_stack([1 - s, s]))[:, 1])
        assert (np.abs(np.diff(z)) <= 15 * np.diff(logit(s)) + 1e-9).all()
        assert np.abs(z).max() < 40


@pytest.mark.parametrize("one", [*BINARY[:3], c.TemperatureScaling()], ids=repr)
def test_none_is_the_maximum_likelihood_or_a_warning(one):
    s = np.array([0.1, 0.2, 0.3, 0.6, 0.7, 0.9] * 5)
    free = type(one)(**one.get_params() | {"shrinkage": 0})
    with pytest.warns(ConvergenceWarning, match="optimum lies at infinity"):
        free.fit(s, (s > 0.5).astype(int))


def test_the_prior_vanishes_as_rows_grow():
    gap = []
    for n in (100, 1000, 10_000):
        s, y, _ = two(n, 1, 0.5)
        maps = [c.BetaCalibration(shrinkage=m).fit(s, y).predict_proba(s)[:, 1] for m in ("auto", 0)]
        gap.append(np.abs(maps[0] - maps[1]).max())
    assert gap[0] > 4 * gap[1] > 16 * gap[2]


def test_of_many_rows_a_part_finds_the_start():
    rng = np.random.default_rng(0)
    z = rng.normal(size=25_000)
    y = (rng.random(25_000) < expit(0.5 * z)).astype(int)
    one = c.TemperatureScaling(shrinkage=500.0, input="logit").fit(z, y)
    want = with_rows(c.TemperatureScaling(), expit(z), y, 500.0)
    assert one.temperature_ == pytest.approx(want.temperature_, rel=1e-6)


@pytest.mark.parametrize(("value", "error"), [(-1, ValueError), ("much", ValueError), (None, TypeError)])
@pytest.mark.parametrize("one", [*BINARY, *MANY, *BY_RULE], ids=repr)
def test_bad_strengths(one, value, error):
    with pytest.raises(error, match="shrinkage must be"):
        type(one)(shrinkage=value).fit([[0.4, 0.6], [0.7, 0.3]], [0, 1])
