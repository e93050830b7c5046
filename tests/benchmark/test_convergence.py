"""Convergence at a fixed bandwidth: limits, estimates and rates, each in another way."""

import numpy as np
import pytest
from scipy.stats import dirichlet

import calibrant as cal
from calibrant.benchmark import convergence
from calibrant.benchmark.canonical import PUBLISHED, CanonicalItem, evaluation_set
from calibrant.benchmark.convergence import (
    BANDWIDTH,
    BINNED,
    KERNELS,
    estimates,
    limits,
    rate,
    repeats,
    run_convergence,
    spread_out,
)

SHARPENED, CALIBRATED = PUBLISHED[:2]


def test_readings_are_those_of_the_library():
    problem = evaluation_set(CanonicalItem(SHARPENED, 60), 0, 3)
    found = estimates(problem)
    for (name, measure), value in found.items():
        estimator = (KERNELS | BINNED)[name]
        norm = 1 if measure == "l1" else 2
        given = {"notion": "canonical", "estimator": estimator, "labels": range(4)}
        if name in ("square", "cross") and norm == 2:
            expected = cal.squared_calibration_error(problem.codes, problem.probs, **given)
        else:
            expected = cal.calibration_error(problem.codes, problem.probs, norm=norm, **given) ** norm
        assert value == pytest.approx(expected, abs=1e-12), name
    assert ("square", "l1") not in found


@pytest.mark.parametrize("law", PUBLISHED, ids=lambda law: law.name)
def test_spread_out_vectors_follow_the_law(law):
    even, drawn = spread_out(law, 14), law.vectors(200_000, np.random.default_rng(0))
    np.testing.assert_allclose(even.sum(axis=1), 1, atol=1e-12)
    for power in (1, 2, 3):
        np.testing.assert_allclose((even**power).mean(axis=0), (drawn**power).mean(axis=0), atol=3e-3)


@pytest.mark.slow
def test_limit_is_the_blurred_gap():
    """By Monte-Carlo with SciPy's density."""
    rng = np.random.default_rng(1)
    f, at = SHARPENED.vectors(4000, rng), SHARPENED.vectors(1500, rng)
    kernel = np.stack([dirichlet.pdf(at.T, each / BANDWIDTH + 1) for each in f], axis=1)
    gap = kernel @ SHARPENED.curve(f) / kernel.sum(axis=1, keepdims=True) - at
    seen = limits(SHARPENED, 12)
    assert seen["plug-in", "l1"] == pytest.approx(np.abs(gap).sum(axis=1).mean(), abs=0.012)
    assert seen["plug-in", "squared"] == pytest.approx((gap**2).sum(axis=1).mean(), abs=0.003)
    real = SHARPENED.curve(at) - at
    assert seen["cross", "l1"] == pytest.approx((np.sign(gap) * real).sum(axis=1).mean(), abs=0.012)
    assert limits(CALIBRATED, 12)["binned-2", "l1"] == pytest.approx(0, abs=1e-12)
    assert limits(CALIBRATED, 12)["binned-2-row", "l1"] > 0.3


def test_rate_finds_powers():
    rng = np.random.default_rng(0)
    n = np.array([10, 30, 100, 300, 1000])
    se = 1e-4 * np.ones(5)
    for power in (-0.5, -1.0, -2.0):
        slopes = np.array([rate(n, -0.3 * (n / 10.0) ** power + se * rng.normal(size=5), se) for _ in range(200)])
        assert slopes[:, 0].mean() == pytest.approx(power, abs=5e-3)
        # The standard error is what it says, or more where the fit left more than noise.
        assert 0.8 < slopes[:, 1].mean() / slopes[:, 0].std() < 1.6
    assert np.isnan(rate(n[:2], n[:2], se[:2])).all()


@pytest.mark.slow
def test_run_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr(convergence, "_LIMIT_BITS", 10)
    given = {"sizes": (10, 40), "repetitions": 30, "weights": 32_000, "n_jobs": 1}
    frame = run_convergence(tmp_path, **given)
    assert frame.height == 4 * 2 * (2 * 7 - 1)
    assert set(frame["repetitions"]) == {30, repeats(40, 30, 32_000)} == {30, 20}
    one = frame.row(0, named=True)
    assert one["bias"] == pytest.approx(one["mean"] - one["limit"])
    assert one["limit_mse"] == pytest.approx(one["bias"] ** 2 + one["se"] ** 2 * one["repetitions"], rel=1e-9)
    kept = {p: p.stat().st_mtime_ns for p in (tmp_path / "pieces").iterdir()}
    gone = next(iter(kept))
    gone.unlink()
    assert run_convergence(tmp_path, **given).equals(frame)
    assert all(p.stat().st_mtime_ns == time for p, time in kept.items() if p != gone)


@pytest.mark.parametrize(
    ("given", "name"), [({"sizes": (1,)}, "sizes"), ({"repetitions": 1}, "repetitions"), ({"weights": 0}, "weights")]
)
def test_bad_arguments(tmp_path, given, name):
    with pytest.raises(ValueError, match=name):
        run_convergence(tmp_path, **given)
