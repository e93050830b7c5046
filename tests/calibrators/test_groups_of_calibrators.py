"""Calibrators are compared, and costs told, of rows in groups: folds keep them together, errors are those of groups."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant import calibrators as c
from calibrant.calibrators.crossval import folds_of, paired
from calibrant.calibrators.select import as_sample

from ..commands import run
from ..grouped import clustered, several

TRIED = {"identity": c.Identity(), "platt": c.PlattScaling(), "isotonic": c.IsotonicCalibrator()}


def sharper(p):
    """Log odds doubled."""
    return p**2 / (p**2 + (1 - p) ** 2)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 12), st.integers(2, 5))
def test_folds_part_no_group(seed, n_groups, cv):
    rng = np.random.default_rng(seed)
    groups = np.concatenate([np.arange(n_groups), rng.integers(0, n_groups, 40)])
    codes = rng.integers(0, 2, groups.size)
    codes[:2] = 0, 1
    folds = folds_of(codes, cv, 0, groups)
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(groups.size))
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 8), st.booleans())
def test_errors_of_differences_are_those_of_sums_of_groups(seed, n_groups, weighted):
    rng = np.random.default_rng(seed)
    groups = np.concatenate([np.arange(n_groups), rng.integers(0, n_groups, 30)])
    n = groups.size
    p, y, w = rng.random(n), rng.integers(0, 2, n), rng.uniform(0.2, 2, n) if weighted else np.ones(n)
    y[:2] = 0, 1
    sample = as_sample(p, y, w, "probability", None, groups=groups)
    loss, other = rng.random((2, n))
    mean, se, *_ = paired(loss, other, sample)
    assert mean == pytest.approx(np.average(loss - other, weights=w))
    share = w / w.sum() * (loss - other - mean)
    by_group = [share[groups == g].sum() ** 2 / (1 - w[groups == g].sum() / w.sum()) for g in range(n_groups)]
    assert se == pytest.approx(np.sqrt(np.sum(by_group)))


@pytest.mark.parametrize("rule", ["one-standard-error", "average"])
def test_copies_of_rows_in_one_group_add_no_evidence(rule):
    """Without groups twenty copies of each row are twenty times the evidence; with them, what one row tells."""
    rng = np.random.default_rng(3)
    p = rng.random(60)
    y = (rng.random(60) < 0.5 + 0.8 * (p - 0.5)).astype(int)
    again = np.repeat(np.arange(60), 20)
    options = {"candidates": TRIED, "rule": rule}
    alone, together, apart = (
        c.select_calibrator(p[i], y[i], groups=g, **options)
        for i, g in ((np.arange(60), None), (again, again), (again, None))
    )
    own, grouped, copied = ({row["name"]: row for row in found.table} for found in (alone, together, apart))
    assert copied["isotonic"]["loss"] < 0.8 * grouped["isotonic"]["loss"]  # held-out rows were fitted to, as copies
    for name, row in grouped.items():
        if row["difference"] > 0:
            assert row["se"] > 0.7 * own[name]["se"]
    if rule == "average":
        assert copied["isotonic"]["weight"] > 0.9
        assert grouped["isotonic"]["weight"] < 0.2
    else:
        assert (apart.name, together.name) == ("isotonic", alone.name)


def test_groups_in_predictions_are_groups_beside_arrays():
    group, s, y = clustered(20, 10)
    p = sharper(s)
    judged = cal.as_predictions(y, p, groups=group)
    one = cal.compare_calibrators(judged, candidates=TRIED)
    other = cal.compare_calibrators(y, p, groups=[f"ward {g}" for g in group], candidates=TRIED)
    plain = cal.compare_calibrators(y, p, candidates=TRIED)
    assert (one.n_groups, other.n_groups, plain.n_groups) == (20, 20, None)
    assert one.digest == other.digest != plain.digest
    without = {row.name: row for row in plain.rows}  # which may have an average, by scikit-learn's folds
    for a, b in zip(one.rows, other.rows, strict=True):
        assert (a.log_loss, a.se, a.gain_se, a.error.interval) == (b.log_loss, b.se, b.gain_se, b.error.interval)
        if a.name == "platt":
            assert a.gain_se > 1.2 * without[a.name].gain_se
    assert "200 in 20 groups" in str(one)
    # What is reported is that of groups, too.
    assert one.after.n_groups == 20
    chosen = c.select_calibrator(judged, candidates=TRIED)
    assert chosen.name == max(one.weights, key=one.weights.get)
    assert [row["loss"] for row in chosen.table] == [row.log_loss for row in one.rows[:3]]


def test_an_average_of_rows_in_groups():
    """Folds and evidence are those of the choice by the same rule; rows of weight 0 are in no group."""
    group, s, y = clustered(20, 10)
    p = sharper(s)
    found = c.AutoCalibrator(TRIED).fit(p, y, groups=[f"ward {g}" for g in group])
    want = c.select_calibrator(p, y, groups=group, candidates=TRIED, rule="average")
    for row, other in zip(found.table_, want.table, strict=True):
        assert row | {"seconds": 0} == other | {"seconds": 0}
    plain = c.AutoCalibrator(TRIED).fit(p, y)
    assert found.table_[0]["weight"] > plain.table_[0]["weight"]
    weights = np.repeat([1.0, 0.0], [150, 50])
    some = c.AutoCalibrator(TRIED).fit(p, y, weights, groups=group)
    few = c.AutoCalibrator(TRIED).fit(p[:150], y[:150], groups=group[:150])
    np.testing.assert_allclose(some.predict_proba(p), few.predict_proba(p))
    with pytest.raises(ValueError, match="groups must name at least 2 groups"):
        c.AutoCalibrator(TRIED).fit(p, y, groups=np.zeros(len(y)))


def test_groups_of_several_classes_and_what_is_refused():
    group, p, y = several()
    found = cal.compare_calibrators(y, p, groups=group, candidates={"temperature": c.TemperatureScaling()})
    assert found.n_groups == 30
    with pytest.raises(ValueError, match="groups must have one value per row"):
        cal.compare_calibrators(y, p, groups=group[:5])
    with pytest.raises(ValueError, match="groups must name at least 2 groups"):
        c.select_calibrator(p, y, groups=np.zeros(len(y)))
    with pytest.raises(TypeError, match="groups must not be given"):
        cal.compare_calibrators(cal.as_predictions(y, p), groups=group)


def test_commands_take_groups(tmp_path, capsys):
    group, s, y = clustered(20, 10)
    path, out = tmp_path / "wards.csv", tmp_path / "c.json"
    pl.DataFrame({"y_true": y, "y_prob": sharper(s), "ward": [f"w{g}" for g in group]}).write_csv(path)
    options = ("--calibrators", "identity,platt", "--json")
    code, text, err = run(capsys, "compare", path, "--groups", "ward", "--save", out, *options)
    assert code == 0, err
    got, plain = json.loads(text), json.loads(run(capsys, "compare", path, *options)[1])
    want = cal.compare_calibrators(y, sharper(s), groups=group, candidates={k: TRIED[k] for k in ("identity", "platt")})
    assert got["n_groups"] == 20
    assert got["calibrators"][1]["gain_se"] == want.row("platt").gain_se > plain["calibrators"][1]["gain_se"]
    fixed = tmp_path / "fixed.json"
    code, _, err = run(capsys, "fix", path, "--groups", "ward", "--from", out, "--save", fixed)
    assert code == 0
    assert "rows that differ" not in err
    assert "rows that differ" in run(capsys, "fix", path, "--from", out, "--save", fixed, "--force")[2]
