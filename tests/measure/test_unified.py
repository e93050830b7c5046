"""Where readings of truths near a boundary are extreme: the numbers of Feldman & Cousins, and coverage by a sum."""

import numpy as np
import pytest
from scipy.stats import norm

from calibrant.measure.intervals import reach


@pytest.mark.parametrize("level", [0.3, 0.68, 0.9, 0.95, 0.99])
def test_every_truth_is_covered_as_the_level_says(level):
    t = np.linspace(0, 6, 400)
    below, above = reach(t, level)
    np.testing.assert_allclose(norm.cdf(above) - norm.cdf(-below), level, atol=2e-4)
    assert below[0] == np.inf
    assert above[0] == pytest.approx(norm.ppf(level), abs=1e-9)
    far = norm.ppf((1 + level) / 2)
    np.testing.assert_allclose([below[-1], above[-1]], far, atol=1e-9)


def test_readings_at_both_ends_are_equally_likely_against_the_best_truth():
    t = np.array([0.3, 0.8, 1.4])
    below, above = reach(t, 0.95)

    def ratio(x):
        return norm.pdf(x - t) / norm.pdf(x - np.maximum(x, 0))

    np.testing.assert_allclose(ratio(t - below), ratio(t + above), rtol=2e-3)


def test_published_table():
    """Feldman & Cousins (1998), table X: 90 % intervals of a unit normal with mean >= 0, at x = -1, 0, 1 and 2."""
    t = np.linspace(0, 6, 60_001)
    below, above = reach(t, 0.9)
    for x, low, high in ((-1.0, 0.0, 0.81), (0.0, 0.0, 1.64), (1.0, 0.0, 2.64), (2.0, 0.58, 3.64)):
        inside = t[(t - below <= x) & (x <= t + above)]
        assert inside.min() == pytest.approx(low, abs=0.015)
        assert inside.max() == pytest.approx(high, abs=0.015)
