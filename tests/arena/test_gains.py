"""What is said of a choice is read on rows that played no part in it."""

import numpy as np
import pytest

from calibrant.calibrators.crossval import SCORES


@pytest.fixture
def gains(arena, monkeypatch):
    import benchmarks.arena.gains as gains

    rng = np.random.default_rng(0)
    p = rng.random(2600)
    y = (rng.random(2600) < 1 / (1 + (1 / p - 1) ** 0.5)).astype(int)  # log odds twice what they should be
    both = np.column_stack([1 - p, p]).astype(np.float32)
    one = arena.Experiment("iris", "toy", "tabular", "choosing", "iris", both, y, {}, {})
    monkeypatch.setattr(gains, "every", lambda half, where: {one.name: one})
    monkeypatch.setattr(gains, "TIMES", 2)
    return gains


@pytest.mark.slow
def test_a_sample_and_the_page(gains, tmp_path):
    found = gains.found(tmp_path, "choosing", "iris.toy", 1000, 0)
    assert found["changes"]
    assert found["again"]["part"] in (0, 1, 2)
    for score in SCORES:
        gain, _, low, high, before, new, error = found[score]
        assert low < gain < high
        assert 0 < new < before
        assert gain - new == pytest.approx(0, abs=5 * error + high - low)
    read = {("iris.toy", 1000, 0): found}
    page = "\n".join(gains.page(read, "choosing"))
    assert f"| `calibrant fix` | log-loss | 0.0 | 0.0 | {-100 * new_share(found):.1f} |" in page
    worse = {**found, "log-loss": [0.1, 0.01, -0.01, 0.2, 1.0, -0.05, 0.001]}
    safe, plain = ("\n".join(gains.harm({("iris.toy", 1000, 0): worse}, safe=flag)) for flag in (True, False))
    assert "| log-loss | 100.0 | 100.0 | 5.0 | -5.0 |" in plain
    assert "| log-loss | 0.0 | 0.0 | -0.0 | 0.0 |" in safe  # within noise nothing is saved


def new_share(found):
    """Of the loss before, what the choice gains on other rows."""
    return found["log-loss"][5] / found["log-loss"][4]


def test_coverage_allows_for_the_noise_of_the_rows_that_gains_are_read_on(gains):
    assert gains.covered([0.1, 0.01, 0.08, 0.12, 1.0, 0.115, 0.0])
    assert not gains.covered([0.1, 0.01, 0.08, 0.12, 1.0, 0.13, 0.0])
    assert gains.covered([0.1, 0.01, 0.08, 0.12, 1.0, 0.13, 0.02])
