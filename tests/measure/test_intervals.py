"""Intervals of the number: exactly 0 at the low end for calibrated data, and simulated coverage."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant import Binned
from calibrant.estimators import Density, ResidualKernel, SimplexBinned

LEVEL = 0.9


def simulate(rng, n, sharpness):
    """Scores whose logit is ``sharpness`` times too large."""
    p = rng.beta(0.8, 0.8, n)
    q = 1 / (1 + (1 / p - 1) ** (1 / sharpness))
    return (rng.random(n) < q).astype(int), p, float(np.abs(p - q).mean())


def truth(sharpness):
    return 0.0 if sharpness == 1 else simulate(np.random.default_rng(0), 1_000_000, sharpness)[2]


#: Estimator, repetitions; the smooth ones cost about 30 times as much.
COSTS = [
    (Binned(10), 200),
    (Binned(10, "quantile"), 200),
    (Binned("cbrt", mapping="linear"), 100),
    (Binned(10, debias=True), 200),
    (Density(0.05), 50),
    (Density(), 40),
    (ResidualKernel(), 40),
]


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "repetitions"), COSTS, ids=lambda v: repr(v))
@pytest.mark.parametrize("sharpness", [1, 2])
def test_coverage(estimator, repetitions, sharpness):
    """Calibrated, and over-confident by a factor of two (a true error of about 0.1)."""
    target = truth(sharpness)
    hits, lows, corrected = 0, 0, []
    for r in range(repetitions):
        y, p, _ = simulate(np.random.default_rng(1000 + r), 1000, sharpness)
        got = cal.estimate(y, p, estimator=estimator, level=LEVEL, n_resamples=60, random_state=r)
        hits += got.interval.low <= target <= got.interval.high
        lows += got.interval.low == 0
        corrected.append(got.corrected)
    # Three standard errors of a simulated share, and 0.03 for what the method approximates.
    slack = 3 * np.sqrt(LEVEL * (1 - LEVEL) / repetitions) + 0.03
    assert hits / repetitions >= LEVEL - slack
    if sharpness == 1:
        assert lows == hits
        assert np.median(corrected) <= 0.012
    else:
        assert hits / repetitions <= min(1.0, LEVEL + slack)
        assert lows == 0
        # Standard deviation of a single estimate about 0.013.
        assert np.median(corrected) == pytest.approx(target, abs=3 * 1.25 * 0.013 / np.sqrt(repetitions) + 0.004)


def three_classes(seed, strength, n=1500):
    """Labels from the scores, or with probability ``strength`` from a fair die; see the contract for the truths."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet([1, 1, 1], n)
    y = (rng.random(n)[:, None] > P.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    return np.where(rng.random(n) < strength, rng.integers(0, 3, n), y), P


SEVERAL = [
    (notion, truth, estimator, repetitions)
    for notion, truth in (("confidence", 5 / 18), ("classwise", 16 / 81), ("top-label", 5 / 18))
    for estimator, repetitions in ((Binned(), 80), (Density(), 25), (ResidualKernel(), 25))
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("notion", "truth", "estimator", "repetitions"), [*SEVERAL, ("canonical", 16 / 27, SimplexBinned(), 60)]
)
@pytest.mark.parametrize("strength", [0, 0.6])
def test_coverage_of_every_notion(notion, truth, estimator, repetitions, strength):
    hits = 0
    for r in range(repetitions):
        y, P = three_classes(r, strength)
        kwargs = {"notion": notion, "estimator": estimator, "level": LEVEL, "n_resamples": 60, "random_state": r}
        got = cal.estimate(y, P, **kwargs)
        hits += got.interval.low <= strength * truth <= got.interval.high
        assert strength == 0 or got.interval.low > 0.05
        assert got.interval.high - got.interval.low < 0.15
    # One-vs-rest problems are drawn independently, which is an approximation: 0.06 for it.
    assert hits / repetitions >= LEVEL - 3 * np.sqrt(LEVEL * (1 - LEVEL) / repetitions) - 0.06


def test_parts_of_an_estimate():
    y, P = three_classes(0, 0.6)
    for notion, labels in (("confidence", []), ("classwise", [0, 1, 2]), ("top-label", [0, 1, 2]), ("canonical", [])):
        got = cal.estimate(y, P, notion=notion, n_resamples=10, random_state=0)
        assert list(got.per_class) == labels
        assert (got.curve is not None) == (notion == "confidence")
        assert (got.notion, got.level, got.norm, got.n_samples) == (notion, 0.95, 1.0, 1500)
        alone = [cal.calibration_error(y, P, notion=cal.notions.ClassSpecific(k)) for k in labels]
        if notion == "classwise":
            assert list(got.per_class.values()) == pytest.approx(alone, abs=1e-12)


def test_reproducible():
    y, p, _ = simulate(np.random.default_rng(0), 300, 2)
    for estimator in (Binned(), Density()):
        one, same, other = (
            cal.estimate(y, p, estimator=estimator, n_resamples=40, random_state=seed) for seed in (7, 7, 8)
        )
        assert one.interval == same.interval
        assert one.interval != other.interval
        assert one.value == other.value
    np.random.seed(0)  # noqa: NPY002 (global state is neither read nor changed)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    cal.estimate(y, p, n_resamples=10)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_wider_at_higher_levels_and_narrower_with_data():
    y, p, _ = simulate(np.random.default_rng(0), 4000, 2)
    width = {}
    for n in (400, 4000):
        for level in (0.5, 0.95):
            low, high = cal.estimate(y[:n], p[:n], estimator=Binned(), level=level, random_state=0).interval
            width[n, level] = high - low
    assert width[400, 0.5] < width[400, 0.95]
    assert width[4000, 0.5] < width[4000, 0.95]
    assert width[4000, 0.95] < 0.6 * width[400, 0.95]


def test_the_interval_may_lie_below_the_value():
    """Noise adds to an average of absolute gaps: with few samples the number is far too large, and is told so."""
    y, p, _ = simulate(np.random.default_rng(2), 100, 1)
    got = cal.estimate(y, p, estimator=Binned(50), random_state=0)
    assert got.value > 0.15
    assert got.corrected < got.value / 2


@pytest.mark.parametrize("notion", ["auto", "classwise"])
def test_weights_count(notion):
    """Whole-number weights narrow the interval as repeats do; a relative scale changes nothing."""
    y, p, _ = simulate(np.random.default_rng(0), 300, 2)
    kwargs = {"estimator": Binned(), "notion": notion, "n_resamples": 50, "random_state": 0}
    repeated = cal.estimate(np.repeat(y, 9), np.repeat(p, 9), **kwargs)
    weighted = cal.estimate(y, p, sample_weight=np.full(300, 9), **kwargs)
    assert weighted.interval == pytest.approx(repeated.interval, abs=1e-9)
    relative = cal.estimate(y, p, sample_weight=np.full(300, 0.1), **kwargs)
    plain = cal.estimate(y, p, **kwargs)
    assert relative.interval == pytest.approx(plain.interval, abs=1e-9)


def test_both_classes_of_a_binary_problem_say_the_same():
    y, p, _ = simulate(np.random.default_rng(0), 500, 2)
    kwargs = {"estimator": Binned(7), "n_resamples": 50, "random_state": 0}
    classwise = cal.estimate(y, p, notion="classwise", **kwargs)
    assert classwise.per_class[0] == pytest.approx(classwise.per_class[1], abs=1e-12)
    one = cal.estimate(y, p, **kwargs)
    assert classwise.interval == pytest.approx(one.interval, abs=0.01)


def test_other_norms():
    y, p, _ = simulate(np.random.default_rng(0), 1000, 2)
    values = {}
    for norm in (1, 2, float("inf")):
        for estimator in (Binned(10), Density(), SimplexBinned(4)):
            kwargs = {"notion": "canonical"} if isinstance(estimator, SimplexBinned) else {}
            got = cal.estimate(y, p, estimator=estimator, norm=norm, n_resamples=40, random_state=0, **kwargs)
            assert 0 < got.interval.low <= got.corrected <= got.interval.high <= 1
            assert got.to_dict()["norm"] == ("inf" if norm == float("inf") else norm)
            values[norm, type(estimator)] = got.value
    assert values[1, Binned] < values[2, Binned] < values[float("inf"), Binned]


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [cal.estimators.Isotonic(), cal.estimators.Cumulative()])
def test_classes_of_different_numbers_of_distinct_scores(estimator):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), 20_000)
    p[:9000, 0] = 0  # few draws of the classes with more distinct scores, more of this one
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random((20_000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    found = cal.estimate(y, p, notion="classwise", estimator=estimator)
    assert found.interval.low <= found.value <= found.interval.high < 0.05
