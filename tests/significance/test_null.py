"""What a calibrated model would show: labels drawn, signs of groups, and p-values of draws."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.notions import as_notion
from calibrant.significance.null import DrawnLabels, GroupSigns, share_at_least


def test_what_was_observed_is_one_of_the_draws():
    draws = np.array([0.0, 1.0, 2.0, 2.0 - 1e-12, 3.0])
    assert share_at_least(draws, 2.0) == pytest.approx((1 + 3) / 6)
    assert share_at_least(draws, 9.0) == pytest.approx(1 / 6)
    assert share_at_least(draws, np.inf) == pytest.approx(1 / 6)
    assert np.isnan(share_at_least(draws, np.nan))


@pytest.mark.parametrize("positive", [0, 1])
def test_labels_are_drawn_with_their_probabilities(positive):
    p = np.array([0.0, 0.1, 0.5, 1.0])
    rows = cal.as_predictions([0, 0, 1, 1], p, labels=[0, 1], pos_label=positive)
    codes = np.concatenate(list(DrawnLabels(rows).sets(20_000, np.random.default_rng(0))))
    assert codes.shape == (20_000, 4)
    assert (codes == positive).mean(axis=0) == pytest.approx(p, abs=0.015)


def test_classes_are_drawn_with_their_probabilities():
    p = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    codes = next(DrawnLabels(cal.as_predictions([0, 0], p, labels=[0, 1, 2])).sets(20_000, np.random.default_rng(0)))
    shares = (codes[..., None] == np.arange(3)).mean(axis=0)
    assert shares == pytest.approx(p, abs=0.015)


@pytest.mark.parametrize("rare", [False, True])
def test_single_rows_vary_at_least_as_the_probabilities_say(rare):
    rng = np.random.default_rng(1)
    p, group = rng.random(60) * (0.2 if rare else 1), rng.integers(0, 12, 60)
    y, w = rng.random(60) < (0.05 if rare else 0.5), rng.random(60) + 0.1
    rows = cal.as_predictions(y, p, groups=group, sample_weight=w)
    signs = GroupSigns.of_targets(rows, as_notion("auto", rows).targets(rows))
    happened, stated = w**2 @ (y - p) ** 2, w**2 @ (p * (1 - p))
    assert (happened < stated) == rare
    assert signs.scale**2 * happened == pytest.approx(max(happened, stated))
    residual = w * (y - p)
    assert signs.sums(residual).sum() == pytest.approx(residual.sum())
    draws = signs.draws(lambda sets: sets @ signs.sums(residual), 5000, np.random.default_rng(2))
    by_group = np.array([residual[group == g].sum() for g in range(12)])
    assert len(draws) == 2**12
    assert draws.var() == pytest.approx(signs.scale**2 * (by_group**2).sum())
    assert np.unique(np.abs(np.concatenate(list(signs.sets(7, rng))))) == pytest.approx(signs.scale)


def test_blocks_of_signs_are_the_same_draws():
    signs = GroupSigns(np.arange(19))
    one, many = (np.concatenate(list(signs.sets(40, np.random.default_rng(3), size))) for size in (1, 1 << 18))
    np.testing.assert_array_equal(one, many)


def test_kernel_test_of_groups_takes_whole_number_weights_for_repeats():
    """Pairs of repeats are pairs of one group, which say nothing."""
    rng = np.random.default_rng(0)
    p, group, w = rng.random(80), rng.integers(0, 20, 80), rng.integers(1, 4, 80)
    y, again = (rng.random(80) < p).astype(int), np.repeat(np.arange(80), w)
    options = {"n_resamples": 19, "estimator": cal.estimators.KernelCalibrationError(bandwidth=0.2)}
    weighted = cal.significance.kernel_test(y, p, groups=group, sample_weight=w, **options)
    repeated = cal.significance.kernel_test(y[again], p[again], groups=group[again], **options)
    assert weighted.statistic == pytest.approx(repeated.statistic, rel=1e-10)
    by_hand = [
        w[i] * w[j] * np.exp(-abs(p[i] - p[j]) / 0.2) * (y[i] - p[i]) * (y[j] - p[j])
        for i in range(80)
        for j in range(80)
        if group[i] != group[j]
    ]
    assert weighted.statistic == pytest.approx(sum(by_hand) / (w.sum() * (w.sum() - 1)), rel=1e-10)
