"""Size and coverage in small simulations; docs/comparing_models.md has the large ones."""

import numpy as np
import pytest

import calibrant as cal

pytestmark = pytest.mark.slow

_N, _REPETITIONS = 250, 40


def features(rng, grouped):
    """Two features of rows, and the latent of their outcomes; rows in fives share half."""
    if not grouped:
        return rng.standard_normal((2, _N)), rng.random(_N)
    group = np.arange(_N) // 5
    shared = rng.standard_normal((2, _N // 5))[:, group]
    x = np.sqrt(0.5) * (shared + rng.standard_normal((2, _N)))
    return x, rng.random(_N // 5)[group]  # one draw a group: outcomes hang together


def test_equally_good_models_are_seldom_told_apart():
    """Two features of the same use, models overconfident alike: every difference is 0."""
    rng = np.random.default_rng(0)
    for grouped in (False, True):
        found = {}
        for _ in range(_REPETITIONS):
            (x1, x2), u = features(rng, grouped)
            y = (u < 1 / (1 + np.exp(-x1 - x2))).astype(int)
            groups = np.arange(_N) // 5 if grouped else None
            models = {name: 1 / (1 + np.exp(-1.6 * x)) for name, x in (("a", x1), ("b", x2))}
            for d in cal.compare_models(y, models, groups=groups, n_resamples=50, random_state=rng).differences:
                found.setdefault(d.measure, []).append(d.pvalue < 0.05)
        # 5 % and four standard errors.
        assert max(np.mean(v) for v in found.values()) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / _REPETITIONS), found


def test_without_groups_dependent_rows_are_told_apart_too_often():
    """What `groups` is for: rows that share an outcome, taken for independent."""
    rng = np.random.default_rng(1)
    hits = {False: 0, True: 0}
    for _ in range(_REPETITIONS):
        group = np.repeat(np.arange(60), 5)
        x = rng.standard_normal((2, 60))[:, group]
        y = (rng.random(60)[group] < 1 / (1 + np.exp(-x.sum(axis=0)))).astype(int)
        models = {name: 1 / (1 + np.exp(-one)) for name, one in zip("ab", x, strict=True)}
        for grouped in hits:
            found = cal.compare_models(y, models, groups=group if grouped else None, n_resamples=2, random_state=0)
            hits[grouped] += found.difference("log-loss", "a", "b").pvalue < 0.05
    assert hits[True] <= 0.14 * _REPETITIONS
    assert hits[False] > 0.25 * _REPETITIONS


def test_intervals_of_calibration_hold_the_true_difference():
    """A calibrated model and one that states p + 0.3 p (1 - p): gaps of known integrals."""
    rng = np.random.default_rng(2)
    held = {"squared_calibration_error": 0, "calibration_error": 0}
    truth = {"squared_calibration_error": -(0.3**2) / 30, "calibration_error": -0.3 / 6}
    for _ in range(_REPETITIONS):
        p = rng.random(800)
        y = (rng.random(800) < p).astype(int)
        models = {"right": p, "off": p + 0.3 * p * (1 - p)}
        found = cal.compare_models(y, models, scores=(), n_resamples=150, random_state=rng)
        for measure in held:
            low, high = found.difference(measure, "right", "off").interval
            held[measure] += low <= truth[measure] <= high
    assert min(held.values()) >= (0.95 - 4 * np.sqrt(0.05 * 0.95 / _REPETITIONS)) * _REPETITIONS, held
