"""`KernelCalibrationError` against plain sums over pairs, and its laws."""

import itertools
import math

import numpy as np
import pytest

import calibrant as cal

KCE = cal.estimators.KernelCalibrationError
DISTANCE = {
    "total-variation": lambda a, b: 0.5 * sum(abs(u - v) for u, v in zip(a, b, strict=True)),
    "euclidean": math.dist,
}
KERNEL = {"laplace": lambda d, w: math.exp(-d / w), "gaussian": lambda d, w: math.exp(-((d / w) ** 2) / 2)}


def sample(n, seed=0, k=3):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet([0.8, 1.2, 1.0, 0.7][:k], n)
    y = (rng.random((n, 1)) > (0.6 * P + 0.4 / k).cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    return y, P


def naive(points, residuals, kce, width, weights=None):
    """SKCE by a double loop; whole weights are spelled out, relative ones multiply."""
    n = len(points)
    w = np.ones(n) if weights is None else weights
    if weights is not None and np.all(w == np.floor(w)):
        rows = np.repeat(np.arange(n), w.astype(int))
        points, residuals, w, n = points[rows], residuals[rows], np.ones(len(rows)), len(rows)
    distance = DISTANCE[kce.distance] if points.shape[1] > 1 else math.dist
    total, pairs = 0.0, 0.0
    for i, j in itertools.product(range(n), range(n)):
        if i == j and kce.statistic == "unbiased":
            continue
        h = KERNEL[kce.kernel](distance(points[i], points[j]), width) * (residuals[i] @ residuals[j])
        total, pairs = total + w[i] * w[j] * h, pairs + w[i] * w[j]
    return total / pairs


def square(y, P, kce, **about):
    return cal.squared_calibration_error(y, P, notion="canonical", estimator=kce, labels=[0, 1, 2], **about)


@pytest.mark.parametrize("kernel", ["laplace", "gaussian"])
@pytest.mark.parametrize("distance", ["total-variation", "euclidean"])
@pytest.mark.parametrize("statistic", ["unbiased", "biased"])
@pytest.mark.parametrize("kind", ["unweighted", "whole", "relative"])
def test_agrees_with_a_double_loop(kernel, distance, statistic, kind):
    y, P = sample(40)
    rng = np.random.default_rng(1)
    w = {"unweighted": None, "whole": rng.integers(0, 3, 40).astype(float), "relative": rng.random(40)}[kind]
    kce = KCE(kernel, 0.3, distance, statistic)
    expected = naive(P, np.eye(3)[y] - P, kce, 0.3, w)
    assert square(y, P, kce, sample_weight=w) == pytest.approx(expected, abs=1e-12)
    s = P[:, 0]
    expected = naive(s[:, None], ((y == 0) - s)[:, None], kce, 0.3, w)
    got = cal.squared_calibration_error(y, P, notion=cal.notions.ClassSpecific(0), estimator=kce, sample_weight=w)
    assert got == pytest.approx(expected, abs=1e-12)


def test_linear_is_a_mean_over_consecutive_pairs():
    y, P = sample(31)
    r = np.eye(3)[y] - P
    for block in (2, 5):
        kce = KCE("laplace", 0.3, statistic="linear", block=block)
        total, pairs = 0.0, 0
        for start in range(0, 31 - block + 1, block):
            for i, j in itertools.combinations(range(start, start + block), 2):
                total += math.exp(-0.5 * np.abs(P[i] - P[j]).sum() / 0.3) * (r[i] @ r[j])
                pairs += 1
        assert square(y, P, kce) == pytest.approx(total / pairs, abs=1e-12)


def test_mmce_is_the_biased_version_for_confidences():
    """Kumar et al. (2018), equation 4, with the Laplacian kernel of width 0.4."""
    y, P = sample(60)
    confidence, right = P.max(axis=1), (P.argmax(axis=1) == y).astype(float)
    r = right - confidence
    mmce = math.sqrt(r @ np.exp(-np.abs(confidence[:, None] - confidence) / 0.4) @ r) / 60
    got = cal.calibration_error(y, P, estimator=KCE(bandwidth=0.4, statistic="biased"))
    assert got == pytest.approx(mmce, abs=1e-12)
    assert cal.calibration_error(y, P, estimator=KCE(bandwidth=0.4, statistic="biased"), norm=3) == pytest.approx(mmce)


def test_median_distance():
    y, P = sample(25)
    distances = sorted(0.5 * np.abs(P[i] - P[j]).sum() for i, j in itertools.combinations(range(25), 2))
    found = cal.estimate(y, P, notion="canonical", estimator=KCE()).details["bandwidth"]
    assert found == pytest.approx(distances[149])  # of 300: the lower middle one
    w = np.arange(25) % 3
    repeated = np.repeat(np.arange(25), w)
    one, other = (
        square(y[r], P[r], KCE(), sample_weight=v) for r, v in ((slice(None), w.astype(float)), (repeated, None))
    )
    assert one == pytest.approx(other, abs=1e-12)


@pytest.mark.parametrize("notion", ["canonical", "classwise", "confidence", "top-label"])
@pytest.mark.parametrize("statistic", ["unbiased", "biased"])
def test_order_is_nothing(notion, statistic):
    y, P = sample(80)
    kce = KCE(statistic=statistic)
    one = cal.calibration_error(y, P, notion=notion, estimator=kce)
    shuffled = np.random.default_rng(0).permutation(80)
    assert cal.calibration_error(y[shuffled], P[shuffled], notion=notion, estimator=kce) == pytest.approx(
        one, abs=1e-11
    )
    order = [2, 0, 1]
    turned = cal.calibration_error(y, P[:, order], notion=notion, estimator=kce, labels=order)
    assert turned == pytest.approx(one, abs=1e-11)
    assert cal.estimate(y, P, notion=notion, estimator=kce).value == pytest.approx(one, abs=1e-13)


def test_perfect_certainty_reads_zero_and_the_worst_reads_most():
    y = np.repeat([0, 1, 2], 10)
    for statistic in ("unbiased", "biased"):
        assert square(y, np.eye(3)[y], KCE(statistic=statistic)) == 0
    # One class is said and another comes, always: every residual is (1, -1, 0), of square 2, at one point.
    worst = square(np.ones(10), np.tile([1.0, 0.0, 0.0], (10, 1)), KCE(bandwidth=1.0))
    assert worst == pytest.approx(2.0)


@pytest.mark.slow
def test_unbiased_and_the_standard_error():
    """Over many samples the mean of squares is that of a huge sample, and their spread is the reported one."""
    kce = KCE("laplace", 0.25)
    truth = square(*sample(4000, seed=99), kce)
    found, errors, covered = [], [], 0
    for seed in range(150):
        y, P = sample(150, seed=seed)
        found.append(square(y, P, kce))
        result = cal.estimate(y, P, notion="canonical", estimator=kce)
        low, high = result.interval
        covered += low**2 <= truth <= high**2
        errors.append((high**2 - max(found[-1], 0)) / 1.96)
    spread = np.std(found)
    assert abs(np.mean(found) - truth) < 4 * spread / math.sqrt(150) + 0.001
    assert 0.8 < np.mean(errors) / spread < 1.25
    assert covered >= 134  # 0.95 of 150 less four standard errors


def test_calibrated_squares_lie_around_zero():
    rng = np.random.default_rng(5)
    found = []
    for _ in range(100):
        P = rng.dirichlet([1, 1, 1], 80)
        y = (rng.random((80, 1)) > P.cumsum(axis=1)).sum(axis=1).clip(0, 2)
        found.append(square(y, P, KCE()))
    assert abs(np.mean(found)) < 4 * np.std(found) / 10
    assert min(found) < 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"kernel": "box"}, "kernel must be one of 'laplace', 'gaussian'; got 'box'"),
        ({"distance": "cosine"}, "distance must be one of"),
        ({"statistic": "quadratic"}, "statistic must be one of 'unbiased', 'biased', 'linear'"),
        ({"bandwidth": "mean"}, "bandwidth must be 'median' or a number in"),
        ({"bandwidth": -1.0}, "bandwidth must be 'median'"),
        ({"block": 1}, "block must be an int >= 2; got 1"),
    ],
)
def test_bad_parts(arguments, words):
    with pytest.raises(ValueError, match=words):
        KCE(**arguments)


def test_too_few_samples():
    kce = KCE(bandwidth=0.3)
    assert np.isnan(square([1], [[0.2, 0.5, 0.3]], kce))
    assert square([1, 1], [[0.2, 0.5, 0.3]] * 2, kce) == pytest.approx(0.2**2 + 0.5**2 + 0.3**2)
    assert np.isnan(square([1], [[0.2, 0.5, 0.3]], KCE(bandwidth=0.3, statistic="linear")))
