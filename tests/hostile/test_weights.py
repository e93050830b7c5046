"""The cost of weights follows the number of rows, never the size of what is in them: counted, not timed."""

import tracemalloc

import numpy as np
import pytest

import calibrant as cal
from calibrant import calibrators as c
from calibrant.estimators import laplace
from calibrant.sums.edges import resolve_n_bins

RNG = np.random.default_rng(0)
P = RNG.random(40)
Y = (RNG.random(40) < P).astype(int)
MANY = RNG.dirichlet(np.ones(3), 40)
CODES = RNG.integers(0, 3, 40)
ESTIMATORS = ("Binned", "Density", "ResidualKernel", "AdaptiveKernel", "EmpiricalBayes", "Smooth", "Sweep", "Isotonic")
ESTIMATORS += ("Cumulative", "BetaKernel", "Parametric", "CrossFit")
CALIBRATORS = sorted(
    name
    for name in c.__all__
    if isinstance(getattr(c, name), type)
    and issubclass(getattr(c, name), c.Calibrator)
    and name
    not in (
        "Calibrator",
        "BinaryCalibrator",
        "OneVsOne",
        "OneVsRest",
        "LabelSmoothing",
        "Composed",
        "Mixture",
        "CurveCalibrator",
    )
)
USES = {
    **{
        f"value: {e}": (
            lambda w, e=e: cal.calibration_error(Y, P, estimator=getattr(cal.estimators, e)(), sample_weight=w)
        )
        for e in ESTIMATORS
    },
    "value: √n bins": lambda w: cal.calibration_error(Y, P, estimator=cal.Binned("sqrt", "quantile"), sample_weight=w),
    "value: canonical": lambda w: cal.calibration_error(CODES, MANY, notion="canonical", sample_weight=w),
    "estimate": lambda w: cal.estimate(Y, P, sample_weight=w, n_resamples=50),
    "estimate: classwise": lambda w: cal.estimate(CODES, MANY, notion="classwise", sample_weight=w, n_resamples=50),
    "estimate: sweep": lambda w: cal.estimate(Y, P, estimator="sweep", sample_weight=w, n_resamples=50),
    "report": lambda w: cal.report(Y, P, sample_weight=w),
    "decompose": lambda w: cal.decompose(Y, P, sample_weight=w),
    "curve": lambda w: cal.reliability_curve(Y, P, sample_weight=w, n_resamples=50),
    "subgroups": lambda w: cal.subgroup_calibration(Y, P, {"half": np.arange(40) % 2}, sample_weight=w, n_resamples=50),
    "compare": lambda w: cal.compare_models(Y, {"a": P, "b": P**2}, sample_weight=w, n_resamples=50),
    "decision": lambda w: cal.decisions.decision_calibration_error(
        Y, P, thresholds=(0.2, 0.6), sample_weight=w, n_resamples=50
    ),
    **{
        name: (lambda w, name=name: getattr(cal, name)(Y, P, sample_weight=w))
        for name in sorted(n for n in cal.__all__ if n.endswith("_test") or n == "hosmer_lemeshow_test")
    },
    **{f"fit: {k}": (lambda w, k=k: getattr(c, k)().fit(P, Y, sample_weight=w)) for k in CALIBRATORS},
}


def peak(use, weights):
    """Bytes held at most."""
    tracemalloc.start()
    try:
        use(weights)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::calibrant.exceptions.CalibrantWarning")
@pytest.mark.parametrize("name", USES)
def test_memory_does_not_grow_with_weights(name):
    """`sample_weight=np.full(40, 1e8)` once took 34 s and 2.5 GB, and 1e9 did not end.

    Narrower kernels take finer grids, of which a matrix has 130 MB at most.
    """
    use = USES[name]
    peak(use, np.full(40, 250_000.0))  # what the first call imports and keeps
    usual, heavy = peak(use, np.full(40, 250_000.0)), peak(use, np.full(40, 1e9))
    assert heavy < max(3 * usual, 2e8)
    for uneven in (np.where(np.arange(40) % 2, 1e15, 1e-15), np.full(40, 1e15)):
        peak(use, uneven)


def test_sizes_beyond_some_change_nothing():
    for beyond in (1e7, 1e9, 1e18):
        assert laplace.n_terms(beyond) == laplace.n_terms(1e7) == 115
    for beyond in (1e10, 1e13, 1e18):
        assert resolve_n_bins("sqrt", beyond) == 100_000
        assert resolve_n_bins("cbrt", beyond) == 2154


def test_percentiles_of_repeated_scores_are_those_of_numpy():
    from calibrant.significance.chi_squared import _percentiles

    rng = np.random.default_rng(1)
    for _ in range(50):
        values, times = rng.integers(0, 20, 30) / 20, rng.integers(0, 5, 30).astype(float)
        if times.sum() > 0:
            wanted = np.percentile(np.repeat(values, times.astype(int)), np.linspace(0, 100, 11))
            np.testing.assert_allclose(_percentiles(values, times, 10), wanted, rtol=0, atol=1e-12)
