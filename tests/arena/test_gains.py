"""What is said of a choice is read on rows that played no part in it."""

import importlib

import numpy as np
import pytest

from calibrant.calibrators.crossval import SCORES


@pytest.fixture
def gains(arena):
    return importlib.import_module("benchmarks.arena.gains")


def kept(gains, *rows):
    """What is kept of rows (source, data, changes, gain, half, new); the loss before is 1, read without noise."""
    names = ("source", "data", "changes", "gain", "half", "new")
    columns = {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    size = len(rows)
    gain, half, new = (np.array(columns.pop(name)) for name in ("gain", "half", "new"))
    numbers = {"gain": gain.tolist(), "low": (gain - half).tolist(), "high": (gain + 2 * half).tolist()}
    numbers |= {"new": new.tolist(), "before": [1.0] * size, "error": [0.0] * size}
    return gains.Kept(
        {},
        columns
        | {"model": ["bayes"] * size, "rows": ["100"] * size}
        | {f"{score}: {name}": column for score in SCORES for name, column in numbers.items()},
    )


@pytest.mark.slow
def test_a_sample(gains, monkeypatch):
    monkeypatch.setattr(gains, "TIMES", 2)
    rng = np.random.default_rng(0)
    p = rng.random(2600)
    y = (rng.random(2600) < 1 / (1 + (1 / p - 1) ** 0.5)).astype(int)  # log odds twice what they should be
    found = gains.found(np.column_stack([1 - p, p]), y, 1000, 0)
    assert found["changes"] == 1
    assert found["part"] in (0, 1, 2)
    for score in SCORES:
        gain, low, high, before, new, error = (
            found[f"{score}: {name}"] for name in ("gain", "low", "high", "before", "new", "error")
        )
        assert 0 < low < gain < high
        assert 0 < new < before
        assert gain - new == pytest.approx(0, abs=5 * error + high - low)
    assert not gains.found(np.column_stack([1 - p, p]), y, 1000, 1).keys() & {"part", "leads"}


def test_what_is_within_noise_is_left_alone(gains):
    # Two samples of banana are one experiment; phoneme's gain is within noise, and none on other rows.
    some = kept(gains, ("reporting", "banana", "1", 0.2, 0.1, 0.3), ("reporting", "banana", "1", 0.2, 0.1, 0.1),
                ("reporting", "phoneme", "1", 0.1, 0.2, -0.05))  # fmt: skip
    every, families = gains.gains(some, "auto", "log-loss")
    assert every.tolist() == pytest.approx([0.2, -0.05])
    assert families == ["banana", "speech"]
    assert gains.gains(some, "fix", "log-loss")[0].tolist() == pytest.approx([0.2, 0.0])
    assert gains.harm(some, "auto")[0] == 50.0
    assert gains.harm(some, "fix")[0] == 0.0
    assert gains.worst(some, "auto") == pytest.approx(5.0)
    assert gains.worst(some, "fix") == 0.0


def test_coverage_allows_for_the_noise_of_the_rows_that_gains_are_read_on(gains):
    # The upper end is twice as far from the gain as the lower one.
    rows = [("rare", "yeast1", "1", 0.1, 0.02, new) for new in (0.085, 0.07, 0.07, 0.13, 0.15)]
    some = kept(gains, *rows)
    some.columns["log-loss: error"][2] = 0.02
    assert gains.covers_by("log-loss")(some).tolist() == [True, False, True, True, False]
    assert gains.of_changed(some, gains.covers_by("log-loss"))[0] == pytest.approx(60)


def test_standard_errors_are_those_of_families(gains):
    reported = importlib.import_module("benchmarks.arena.reported")
    values, each = np.array([0.0, 100.0, 100.0]), ["a", "b", "c"]
    assert reported.over_families(values, each)[1] == pytest.approx(values.std(ddof=1) / np.sqrt(3))
    # Copies of a family say nothing more.
    assert reported.over_families(np.repeat(values, 4), np.repeat(each, 4))[1] == pytest.approx(
        values.std(ddof=1) / np.sqrt(3)
    )
    assert np.isnan(reported.over_families(values, ["a", "a", "a"])[1])
    value, error = gains.rate(np.zeros(100, dtype=bool), ["a"] * 100)
    assert value == 0
    assert error > 0


def test_the_quick_run_needs_no_data_of_others(gains):
    cases = gains.EXPERIMENT.every()
    assert cases[0] == {"source": "reporting", "data": "breast-cancer-sklearn", "model": "bayes"}
    assert {case["model"] for case in cases if case["source"] == "rare"} == {"logistic", "bayes", "boosting"}
    assert not any(case["data"] == "wine" for case in cases)
