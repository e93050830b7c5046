"""Tests of rows in groups, beside flips of signs one at a time."""

import itertools

import numpy as np
import pytest

import calibrant as cal
from calibrant.data.dependence import group_codes

from ..grouped import clustered, several

FLIPPED = {
    "calibration_test": lambda y, p, **o: cal.calibration_test(y, p, n_resamples=49, **o),
    "binned": lambda y, p, **o: cal.calibration_test(y, p, estimator=cal.Binned(10), n_resamples=199, **o),
    "confidence": lambda y, p, **o: cal.calibration_test(y, p, estimator=cal.Binned(5), notion="confidence", **o),
    "brier": lambda y, p, **o: cal.calibration_test(y, p, estimator="brier", n_resamples=199, **o),
    "log-loss": lambda y, p, **o: cal.calibration_test(y, p, estimator="log-loss", n_resamples=199, **o),
    "adaptive": lambda y, p, **o: cal.significance.adaptive_test(y, p, n_resamples=199, **o),
    "ks": lambda y, p, **o: cal.significance.cumulative_test(y, p, statistic="ks", n_resamples=199, **o),
    "kuiper": lambda y, p, **o: cal.significance.cumulative_test(y, p, statistic="kuiper", n_resamples=199, **o),
    "hosmer": lambda y, p, **o: cal.significance.hosmer_lemeshow_test(y, p, n_resamples=199, df="external", **o),
    "pearson": lambda y, p, **o: cal.significance.pearson_test(y, np.round(p, 1), n_resamples=199, **o),
    "spiegelhalter": lambda y, p, **o: cal.significance.spiegelhalter_test(y, p, n_resamples=199, **o),
    "cox": lambda y, p, **o: cal.significance.cox_test(y, p, n_resamples=199, **o),
}


def scale_of(w, s, y):
    """The factor that makes single rows vary at least as their scores say."""
    return max(1.0, np.sqrt(sum(w**2 * s * (1 - s)) / sum(w**2 * (y - s) ** 2)))


def drawn_signs(rng, shape):
    """Signs of groups; of twelve or fewer all there are."""
    if shape[1] <= 12:
        return np.array(list(itertools.product([-1.0, 1.0], repeat=shape[1])))
    return 2.0 * rng.integers(2, size=shape) - 1


def in_cells(total, w, s, cell):
    """Pearson's sum over cells, of sums of residuals and of expected counts of both outcomes."""
    value = 0.0
    for j in np.unique(cell):
        one = cell == j
        value += total[one].sum() ** 2 * (1 / (w * s)[one].sum() + 1 / (w * (1 - s))[one].sum())
    return value


def naive_statistic(name, w, s, residual):
    """The statistic of these residuals."""
    if name == "binned":
        cell = np.ceil(s * 10)
        return sum(abs((w * residual)[cell == j].sum()) for j in np.unique(cell)) / w.sum()
    if name == "brier":
        return (w * (2 * s * (1 - s) + 2 * (1 - 2 * s) * residual)).sum() / w.sum() / 2
    if name in ("ks", "kuiper"):
        order = np.argsort(s)
        run = np.append(0, np.cumsum((w * residual)[order]))
        size = max(abs(run)) if name == "ks" else run.max() - run.min()
        return size / np.sqrt((w**2 * s * (1 - s)).sum())
    if name == "pearson":
        return in_cells(w * residual, w, s, s)
    if name == "spiegelhalter":
        return abs((w * (1 - 2 * s) * residual).sum())
    x = np.column_stack([np.ones_like(s), np.log(s / (1 - s))])  # Cox's score test
    score, information = x.T @ (w * residual), (x.T * (w * s * (1 - s))) @ x
    return score @ np.linalg.solve(information, score)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["binned", "brier", "ks", "kuiper", "pearson", "spiegelhalter", "cox"])
def test_flips_one_at_a_time(name, weighted):
    for seed in range(3):
        group, s, y = clustered(15, 6, seed, tau=0.3)
        order = np.argsort(s) if name in ("ks", "kuiper") else np.arange(len(s))
        group, s, y = group[order], s[order], y[order]
        w = np.random.default_rng(seed).uniform(0.5, 3, len(s)) if weighted else np.ones(len(s))
        found = FLIPPED[name](y, s, groups=group, sample_weight=w if weighted else None, random_state=seed)
        s = np.round(s, 1) if name == "pearson" else s
        if name == "pearson" and (s.min() == 0 or s.max() == 1):
            continue
        if name == "cox" and weighted:
            w *= w.sum() / (w @ w)  # as many rows as the weights are worth
        codes, rng = group_codes(group), np.random.default_rng(seed)
        factor = scale_of(w * (1 - 2 * s) if name in ("brier", "spiegelhalter") else w, s, y)
        if name == "pearson":  # in each cell apart
            factor = np.zeros(len(s))
            for one in np.unique(s):
                factor[s == one] = scale_of(w[s == one], s[s == one], y[s == one])
        signs = drawn_signs(rng, (199, 15))
        draws = [naive_statistic(name, w, s, factor * one[codes] * (y - s)) for one in signs]
        observed = naive_statistic(name, w, s, y - s)
        wanted = (1 + sum(d >= observed * (1 - 1e-9) for d in draws)) / 200
        assert found.pvalue == pytest.approx(wanted), (name, seed)
        if name == "spiegelhalter":  # in units of the draws' standard deviation
            unit = factor * np.sqrt((np.bincount(codes, w * (1 - 2 * s) * (y - s)) ** 2).sum())
            assert abs(found.statistic) == pytest.approx(observed / unit)
            np.testing.assert_allclose(np.abs(found.draws), np.array(draws) / unit, rtol=1e-7)
        elif name != "brier":
            assert found.statistic == pytest.approx(observed)
            np.testing.assert_allclose(found.draws, draws, rtol=1e-7)


@pytest.mark.parametrize("notion", ["classwise", "top-label"])
def test_flips_of_many_problems_share_their_signs(notion):
    group, p, y = several(15, 6)
    found = cal.calibration_test(y, p, notion=notion, estimator=cal.Binned(10), groups=group, n_resamples=99)
    tops = p.argmax(axis=1)
    problems = [(np.ones(90, dtype=bool) if notion == "classwise" else tops == k, k) for k in range(3)]
    happened = sum((((y == k) - p[:, k])[rows] ** 2).sum() for rows, k in problems)
    stated = sum((p[rows, k] * (1 - p[rows, k])).sum() for rows, k in problems)

    def error(signs):
        total = 0.0
        for rows, k in problems:
            share = 1 / 3 if notion == "classwise" else rows.mean()
            gap = signs[group] * ((y == k) - p[:, k])
            total += share * naive_statistic("binned", np.ones(rows.sum()), p[rows, k], gap[rows])
        return total

    signs = drawn_signs(np.random.default_rng(0), (99, 15))
    np.testing.assert_allclose(
        found.draws, [error(max(1.0, np.sqrt(stated / happened)) * one) for one in signs], rtol=1e-9
    )
    assert found.statistic == pytest.approx(error(np.ones(15)))


def binary(name):
    return clustered(24, 6, seed=1) if name != "confidence" else several(24, 6, seed=1)


@pytest.mark.parametrize("name", FLIPPED)
def test_flipped_tests(name):
    group, p, y = binary(name)
    test = FLIPPED[name]
    found = test(y, p, groups=group)
    assert np.isfinite(found.statistic)
    assert np.isfinite(found.draws).all()
    assert 0 < found.pvalue <= 1
    assert "signs of" in found.name
    assert "24 groups" in found.name
    assert test(y, p, groups=[f"group {g}" for g in 100 - group]).pvalue == found.pvalue
    # Rows of every group in another order.
    order = np.concatenate([np.random.default_rng(g).permutation(6) + 6 * g for g in range(24)])
    moved = test(y[order], p[order], groups=group[order])
    assert moved.statistic == pytest.approx(found.statistic)
    assert moved.pvalue == pytest.approx(found.pvalue, abs=0.011)
    order = np.random.default_rng(0).permutation(len(y))  # and groups, which then have other draws
    moved = test(y[order], p[order], groups=group[order])
    # the adaptive statistic is in units of its draws
    assert moved.statistic == pytest.approx(found.statistic, abs=0.5 if name == "adaptive" else 1e-9)
    assert moved.pvalue == pytest.approx(found.pvalue, abs=0.2)
    plain = test(y, p)
    assert test(y, p, groups=np.arange(len(y))).pvalue == plain.pvalue
    assert plain.n_samples == found.n_samples


@pytest.mark.parametrize("name", FLIPPED)
def test_rows_without_weight_are_not_there(name):
    group, p, y = binary(name)
    w = np.random.default_rng(0).integers(0, 2, len(y)).astype(float)
    w[::6] = 1  # every group keeps its first row, and so its place
    found, without = (
        FLIPPED[name](y, p, groups=group, sample_weight=w),
        FLIPPED[name](y[w > 0], p[w > 0], groups=group[w > 0], sample_weight=w[w > 0]),
    )
    assert found.statistic == pytest.approx(without.statistic)
    assert found.pvalue == pytest.approx(without.pvalue, abs=0.06 if name in ("ks", "kuiper") else 1e-9)


@pytest.mark.parametrize("name", FLIPPED)
def test_flipped_tests_find_what_is_wrong(name):
    rng = np.random.default_rng(0)
    if name == "confidence":
        q = rng.dirichlet(np.ones(3), 1200)
        y, p = (q.cumsum(axis=1) < rng.random((1200, 1))).sum(axis=1), q**3 / (q**3).sum(axis=1, keepdims=True)
    else:
        q = rng.random(1200)
        y, p = (rng.random(1200) < q).astype(int), q**3 / (q**3 + (1 - q) ** 3)
        p = p.clip(0.06, 0.94) if name == "pearson" else p
    assert FLIPPED[name](y, p, groups=np.arange(1200) // 10).pvalue <= 0.05


def test_cox_standard_errors_allow_for_groups():
    group, s, y = clustered(40, 6, tau=1.0)
    found = cal.significance.cox_test(y, s, groups=group, n_resamples=9)
    z = np.log(s / (1 - s))
    theta = [found.details["intercept"], found.details["slope"]]
    fitted = 1 / (1 + np.exp(-theta[0] - theta[1] * z))
    bread, meat = np.zeros((2, 2)), np.zeros((2, 2))
    for g in range(40):
        own = np.zeros(2)
        for i in np.flatnonzero(group == g):
            x = np.array([1.0, z[i]])
            bread += fitted[i] * (1 - fitted[i]) * np.outer(x, x)
            own += (y[i] - fitted[i]) * x
        meat += np.outer(own, own)
    wanted = np.sqrt(np.diag(np.linalg.inv(bread) @ meat @ np.linalg.inv(bread)) * 40 / 39)
    np.testing.assert_allclose([found.details["intercept_se"], found.details["slope_se"]], wanted, rtol=1e-5)


def test_groups_whose_residuals_cancel():
    """Both teams of a game: what one states too much the other states too little, and no standard error is NaN."""
    _, s, y = clustered(50, 1)
    both = cal.as_predictions(np.append(y, 1 - y), np.append(s, 1 - s), groups=np.tile(np.arange(50), 2))
    found = cal.significance.cox_test(both, n_resamples=99)
    assert np.isfinite([v for v in found.details.values() if isinstance(v, float)]).all()
    assert 0 < found.pvalue <= 1


@pytest.mark.parametrize("n_groups", [3, 4, 9, 20])
def test_the_adaptive_test_has_a_bin_for_every_four_groups(n_groups):
    group, s, y = clustered(n_groups, 120 // n_groups)
    found = cal.significance.adaptive_test(y, s, groups=group, n_resamples=99)
    signs = scale_of(np.ones(len(s)), s, y) * drawn_signs(np.random.default_rng(0), (99, n_groups))
    levels = []
    for bins in (1, 2, 4, 8):
        cell = np.ceil(s * bins)
        if bins <= max(1, n_groups // 4):
            turned = np.vstack([np.ones(n_groups), signs])[:, group] * (y - s)
            errors = sum(turned[:, cell == b].sum(axis=1) ** 2 / (cell == b).sum() for b in np.unique(cell))
            levels.append((errors - errors[1:].mean()) / errors[1:].std())
    largest = np.max(levels, axis=0)
    assert found.statistic == pytest.approx(largest[0])
    reached = (largest[1:] >= largest[0] - 1e-9).sum()
    wanted = reached / 2**n_groups if n_groups <= 12 else (1 + reached) / 100
    assert found.pvalue == pytest.approx(max(wanted, 2.0 ** (1 - n_groups)))


def test_what_cannot_be_tested_with_groups():
    group, p, y = several()
    with pytest.raises(ValueError, match="'canonical' cannot be tested with groups"):
        cal.calibration_test(y, p, groups=group, notion="canonical")
    with pytest.raises(TypeError, match=r"single rows.*use an estimator of bins"):
        cal.calibration_test(y, p, groups=group, notion="confidence", estimator=cal.estimators.CrossFit())


@pytest.mark.parametrize("classes", [1, 3])
def test_kernel_tests_flip_pairs_of_different_groups(classes):
    rng = np.random.default_rng(4)
    group = rng.permutation(np.repeat(np.arange(15), 4))
    p = rng.random(60) if classes == 1 else rng.dirichlet(np.ones(classes), 60)
    y = (rng.random(60) < p).astype(int) if classes == 1 else rng.integers(0, classes, 60)
    found = cal.significance.kernel_test(y, p, groups=group, n_resamples=19, random_state=5)
    points = p[:, None] if classes == 1 else p
    hits = y[:, None].astype(float) if classes == 1 else np.eye(classes)[y]
    width = found.details["bandwidth"]
    reader = cal.estimators.KernelCalibrationError()
    kernel = reader._kernel(reader._distances(points, points), width)
    residual = hits - points
    scale = max(1.0, np.sqrt((points * (1 - points)).sum() / (residual**2).sum()))
    code = np.array([list(dict.fromkeys(group.tolist())).index(g) for g in group])
    signs = 2.0 * np.random.default_rng(5).integers(2, size=(19, 15)) - 1

    def skce(r):
        apart = group[:, None] != group
        return float((kernel * apart * (r @ r.T)).sum()) / (60 * 59)

    assert found.statistic == pytest.approx(skce(residual))
    want = [skce(scale * xi[code][:, None] * residual) for xi in signs]
    np.testing.assert_allclose(found.draws, want, rtol=1e-9, atol=1e-15)
    assert found.pvalue == (1 + sum(w >= skce(residual) - 1e-12 for w in want)) / 20


def test_kernel_tests_by_blocks_take_no_groups():
    with pytest.raises(ValueError, match="use 'resampling' for rows in groups"):
        cal.significance.kernel_test(
            np.arange(40) % 2, np.linspace(0, 1, 40), groups=np.arange(40) // 2, algorithm="asymptotic"
        )
