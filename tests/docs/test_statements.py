"""Statements of pages that a small computation confirms."""

import csv
import itertools
import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal

DOCS = Path(__file__).parents[2] / "docs"


def test_choices_quote_their_figures_from_data():
    """A figure in a table of which.md is between marks, which `benchmarks.quotes --check` compares with the data."""
    page = re.sub(r"<!-- figure .*?<!-- end -->", "", (DOCS / "which.md").read_text("utf-8"))
    rows = [line.replace("95 % interval", "") for line in page.splitlines() if line.startswith("|")]
    assert len(rows) > 30
    assert [row for row in rows if re.search(r"\d\.\d|\d %|\d and \d", row)] == []


def test_the_default_has_the_least_error_with_few_rows_and_nearly_with_many():
    about = json.loads((DOCS / "benchmark" / "config.json").read_text("utf-8"))["estimators"]
    lines = [v for v in (DOCS / "benchmark" / "estimators.csv").read_text("utf-8").splitlines() if v[0] != "#"]
    errors = defaultdict(dict)
    for row in csv.DictReader(lines):
        # Errors of norm 2 are shares of another, larger truth.
        if row["notion"] == "confidence" and about[row["estimator"]].endswith("norm 1"):
            errors[int(row["size"])][row["estimator"]] = float(row["rel_p95"])
    least = {size: min(found, key=found.get) for size, found in errors.items()}
    assert {least[size] for size in errors if size < 1000} == {"empirical-bayes"}
    assert least[5000] == "residual-rank"
    assert max(found["empirical-bayes"] / min(found.values()) for found in errors.values()) < 1.05


def test_spiegelhalters_z_misses_a_shift_where_the_mean_score_is_a_half():
    rng = np.random.default_rng(0)
    z = {}
    scores = {
        "uniform": rng.uniform(0.05, 0.95, 5000),
        "skewed": np.repeat([0.3, 0.3, 0.9], 2000),
        "small": rng.beta(2, 18, 5000),
    }
    for name, p in scores.items():
        y = (rng.random(len(p)) < np.minimum(p + 0.05, 1)).astype(int)
        z[name] = cal.significance.spiegelhalter_test(y, p).statistic
        naive = ((1 - 2 * p) * (y - p)).sum() / np.sqrt(((1 - 2 * p) ** 2 * p * (1 - p)).sum())
        assert z[name] == pytest.approx(naive)
    assert abs(z["uniform"]) < 3
    assert abs(z["skewed"]) < 3
    assert z["small"] > 8


@pytest.mark.parametrize("s", [[0.1, 0.1, 0.1, 0.7, 0.7, 0.7], [0.1, 0.2, 0.4, 0.5, 0.8, 0.9]])
def test_the_debiased_square_of_a_calibrated_model_averages_0_or_what_the_spread_of_scores_takes(s):
    """Over all outcomes, by their probabilities."""
    s, mean = np.array(s), 0.0
    for outcomes in itertools.product([0, 1], repeat=6):
        o = np.array(outcomes)
        found = cal.squared_calibration_error(o, s, estimator=cal.Binned(2, "quantile", debias=True))
        mean += np.where(o == 1, s, 1 - s).prod() * found
    spread = np.mean([np.var(s[:3], ddof=1) / 3, np.var(s[3:], ddof=1) / 3])
    assert mean == pytest.approx(-spread, abs=1e-12)


def test_the_code_of_scores_gives_the_formula_beside_it():
    page = (DOCS / "guide" / "scores.md").read_text("utf-8")
    p = np.array([0.2, 0.9, 0.4])
    y = np.array([0, 1, 1])
    given = eval(re.search(r"cal\.brier_score\(.*?\)", page)[0], {"cal": cal, "y": y, "p": p})
    assert given == pytest.approx(np.mean((p - y) ** 2))
