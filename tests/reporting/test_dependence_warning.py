"""A report warns where rows that follow each other hang together, and says what was assumed."""

import warnings

import numpy as np
import pytest

import calibrant as cal
from calibrant.data.dependence import serial_correlation
from calibrant.exceptions import WeightWarning


def repeats(seed=0, prompts=250, times=8, own=0.6):
    """Repeats of prompts at one score each, whose outcomes hang together."""
    from scipy.stats import norm

    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(prompts), times)
    score = rng.uniform(0.05, 0.95, prompts)[group]
    latent = own * rng.standard_normal(prompts)[group] + np.sqrt(1 - own**2) * rng.standard_normal(group.size)
    return (latent < norm.ppf(score)).astype(int), score, group


def naive(scores, outcomes):
    """Cells by a loop, residuals centred in each, products of neighbours."""
    order = np.argsort(scores, kind="stable")
    cell, last = np.empty(len(scores), int), 0
    for rank, i in enumerate(order):
        if rank == 0 or scores[i] != scores[order[rank - 1]]:
            last = max(last, rank // 50)
        cell[i] = last
    products, squares = [], []
    for c in np.unique(cell):
        r = (outcomes - scores)[cell == c]
        r = r - r.mean()
        squares += list(r**2)
        products += list(r[1:] * r[:-1])
    products = np.array(products)
    return products.mean() / np.mean(squares), products.sum() / np.sqrt((products**2).sum())


@pytest.mark.parametrize("rounded", [False, True])
def test_it_is_the_correlation_of_neighbours_in_cells(rounded):
    rng = np.random.default_rng(1)
    scores = rng.random(700)
    scores = np.round(scores, 1) if rounded else scores
    outcomes = (rng.random(700) < scores**2).astype(int)
    assert serial_correlation(scores, outcomes) == pytest.approx(naive(scores, outcomes))


@pytest.mark.slow
def test_repeats_are_warned_of_and_groups_settle_it():
    y, p, group = repeats()
    with pytest.warns(cal.exceptions.DependenceWarning, match="pass groups="):
        said = cal.report(y, p)
    assert "treated as independent" in str(said)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said = cal.report(y, p, groups=group)
        assert "of 250 groups" in " ".join(str(said).split())
        assert said.to_dict()["n_groups"] == 250
        shuffled = np.random.default_rng(0).permutation(len(y))
        cal.report(y[shuffled], p[shuffled])


@pytest.mark.parametrize("order", ["as drawn", "by score", "by outcome"])
def test_independent_rows_are_not_warned_of(order):
    rng = np.random.default_rng(3)
    p = rng.random((2000, 3)) ** 2
    p /= p.sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) > rng.random((2000, 1))).argmax(axis=1)
    right = y == p.argmax(axis=1)
    at = {"as drawn": np.arange(2000), "by score": np.argsort(p.max(axis=1)), "by outcome": np.argsort(right)}[order]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cal.report(y[at], p[at])


def test_false_alarms_are_rare():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(300):
        s = rng.random(500)
        found.append(serial_correlation(s, (rng.random(500) < s**2).astype(int))[1])
    assert max(found) < 3.5
    assert np.std(found) == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("scale", [1, 1.371])
def test_class_weights_are_no_weights_of_rows(scale):
    """Calibrated in the weighted population; as 20 repeats of each positive, the rows reject that for certain."""
    rng = np.random.default_rng(0)
    g = rng.beta(1, 30, 4000)
    y = rng.random(4000) < g
    weights = np.where(y, 20, 1) * scale
    s = 20 * g / (20 * g + 1 - g)
    for call in (cal.report, cal.estimate, cal.calibration_test):
        with pytest.warns(WeightWarning, match="sample_weight depends only on the label"):
            call(y, s, sample_weight=weights)
    for fine in (rng.integers(1, 4, 4000), np.full(4000, 2.0), np.where(y, 20, 1) + (np.arange(4000) == 5)):
        cal.calibration_test(y, s, sample_weight=fine, n_resamples=9)
    cal.calibration_test([0, 1, 1], [0.2, 0.5, 0.9], sample_weight=[1, 2, 2], n_resamples=9)  # too few to tell
