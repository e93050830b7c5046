"""Platt scaling from means and a variance: by loops, by scikit-learn, beside the optimum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from calibrant import calibrators as c

CLOSED = {"solver": "closed-form", "input": "margin"}


def normal(n, gap=2.0, share=0.3, seed=0):
    """Normal scores of one variance in each class: mean 0.5 and 0.5 + gap, standard deviation 1.5."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return 0.5 + gap * y + 1.5 * rng.normal(size=n), y


def by_loops(z, y, w, smoothing):
    """Slope and intercept, a row at a time; with smoothing every row counts for both classes."""
    up, down = sum(w[y == 1]), sum(w[y == 0])
    size, total = [0.0, 0.0], [0.0, 0.0]
    target = [((up + 1) / (up + 2) if o else 1 / (down + 2)) if smoothing else float(o) for o in y]
    for x, t, weight in zip(z, target, w, strict=True):
        for k, part in enumerate((1 - t, t)):
            size[k] += weight * part
            total[k] += weight * part * x
    m = [total[k] / size[k] for k in range(2)]
    square = sum(
        weight * ((1 - t) * (x - m[0]) ** 2 + t * (x - m[1]) ** 2) for x, t, weight in zip(z, target, w, strict=True)
    )
    slope = (m[1] - m[0]) / (square / sum(size))
    return slope, np.log(size[1] / size[0]) - slope * (m[0] + m[1]) / 2


@settings(max_examples=100, deadline=None)
@given(
    st.integers(4, 60), st.booleans(), st.booleans(), st.sampled_from([1e-6, 1.0, 1e6]),
    st.sampled_from([0.0, 1e3]), st.integers(0, 2**31),
)  # fmt: skip
def test_by_loops(n, smoothing, weighted, scale, shift, seed):
    z, y = normal(n, 1.0, 0.5, seed)
    y[:4] = 0, 1, 0, 1
    z = scale * (z + shift)
    w = np.random.default_rng(seed).random(n) + 0.1 if weighted else np.ones(n)
    fitted = c.PlattScaling(smoothing=smoothing, **CLOSED).fit(z, y, w if weighted else None)
    slope, intercept = by_loops(z, y, w, smoothing)
    assert fitted.coef_ == pytest.approx(slope, rel=1e-6)
    assert fitted.intercept_ == pytest.approx(intercept, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_is_linear_discriminant_analysis(share):
    """scikit-learn's solver "lsqr" divides the covariance by n, as we do; "svd" and "eigen" do not."""
    z, y = normal(500, share=share)
    peer = LinearDiscriminantAnalysis(solver="lsqr").fit(z[:, None], y)
    fitted = c.PlattScaling(smoothing=False, **CLOSED).fit(z, y)
    assert fitted.coef_ == pytest.approx(peer.coef_[0, 0], rel=1e-10)
    assert fitted.intercept_ == pytest.approx(peer.intercept_[0], rel=1e-10)
    np.testing.assert_allclose(fitted.predict_proba(z), peer.predict_proba(z[:, None]), atol=1e-12)


def test_probabilities_enter_as_log_odds():
    z, y = normal(400)
    p = 1 / (1 + np.exp(-z))
    one, other = c.PlattScaling(solver="closed-form").fit(p, y), c.PlattScaling(**CLOSED).fit(logit(p), y)
    assert (one.coef_, one.intercept_) == pytest.approx((other.coef_, other.intercept_))


@pytest.mark.parametrize("smoothing", [True, False])
def test_solvers_agree_on_normal_scores(smoothing):
    """True slope 2/2.25, intercept log(3/7) less the slope times the midpoint 1.5."""
    z, y = normal(200_000)
    slope = 2 / 1.5**2
    fits = [
        c.PlattScaling(smoothing=smoothing, solver=solver, input="margin").fit(z, y)
        for solver in ("maximum-likelihood", "closed-form")
    ]
    for fitted in fits:
        # Standard errors are near 0.006 and 0.01.
        assert fitted.coef_ == pytest.approx(slope, abs=0.025)
        assert fitted.intercept_ == pytest.approx(np.log(3 / 7) - 1.5 * slope, abs=0.04)
    np.testing.assert_allclose(*(f.predict_proba(z) for f in fits), atol=0.01)
    assert fits[1].gradient_norm_ < 0.001
    assert fits[1].n_iter_ == 0


def test_the_closed_form_is_less_noisy_on_normal_scores():
    """Efron (1975): with classes two standard deviations apart the optimum's slope has the larger variance."""
    slopes = np.array(
        [
            [c.PlattScaling(solver=s, input="margin").fit(*normal(300, 3.0, 0.5, seed)).coef_ for seed in range(200)]
            for s in ("maximum-likelihood", "closed-form")
        ]
    )
    assert slopes[1].var() < 0.9 * slopes[0].var()


def test_other_scores_leave_a_bias():
    """Calibrated uniform scores: the optimum is the identity, the closed form is not, and says how far it is."""
    rng = np.random.default_rng(0)
    p = rng.random(100_000)
    y = (rng.random(100_000) < p).astype(int)
    optimum, closed = (c.PlattScaling(solver=s).fit(p, y) for s in ("maximum-likelihood", "closed-form"))
    assert optimum.coef_ == pytest.approx(1, abs=0.02)
    assert closed.coef_ < 0.95
    assert closed.gradient_norm_ > 0.005


@pytest.mark.parametrize("smoothing", [True, False])
@pytest.mark.parametrize("value", [0.1, -3.7e8, 0.0])
def test_equal_scores_give_the_base_rate(value, smoothing):
    fitted = c.PlattScaling(smoothing=smoothing, **CLOSED).fit(np.full(30, value), [0, 0, 1] * 10)
    assert fitted.coef_ == 0
    assert fitted.predict_proba([value])[0, 1] == pytest.approx(1 / 3, abs=0.02 if smoothing else 1e-12)


def test_separated_scores_are_finite():
    z, y = np.array([-3.0, -2, -1, 1, 2, 3]), np.array([0, 0, 0, 1, 1, 1])
    fitted = c.PlattScaling(smoothing=False, **CLOSED).fit(z, y)
    assert fitted.coef_ == pytest.approx(4 / (2 / 3))  # means -2 and 2, variance 2/3
    assert fitted.intercept_ == pytest.approx(0, abs=1e-12)


def test_scores_without_spread_in_a_class():
    z, y = np.array([0.1 + 0.2, 0.3, 0.3, 0.8, 0.8]), np.array([0, 0, 0, 1, 1])
    with pytest.raises(ValueError, match="needs scores that differ within a class, or smoothing=True"):
        c.PlattScaling(smoothing=False, **CLOSED).fit(z, y)
    fitted = c.PlattScaling(**CLOSED).fit(z, y)
    low, high = fitted.predict_proba([0.3, 0.8])[:, 1]
    assert 0 < low < 0.2 < 0.8 < high < 1


def test_a_class_without_rows():
    p, y = np.array([0.2, 0.4, 0.7]), ["no", "no", "no"]
    with pytest.raises(ValueError, match="needs rows of both classes, or smoothing=True"):
        c.PlattScaling(smoothing=False, solver="closed-form", labels=["no", "yes"]).fit(p, y)
    fitted = c.PlattScaling(solver="closed-form", labels=["no", "yes"]).fit(p, y)
    np.testing.assert_allclose(fitted.predict_proba(p)[:, 1], 1 / 5)  # Platt's target of three rows


def test_files_of_before_have_no_solver():
    z, y = normal(50)
    data = c.to_dict(c.PlattScaling(input="margin").fit(z, y))
    del data["parameters"]["solver"]
    assert c.from_dict(data).solver == "maximum-likelihood"


def test_bad_solver():
    with pytest.raises(ValueError, match="solver must be one of 'maximum-likelihood', 'closed-form'; got 'newton'"):
        c.PlattScaling(solver="newton").fit([0.1, 0.9], [0, 1])
