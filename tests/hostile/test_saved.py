"""Saved calibrators and sums with every one of their places removed or replaced: read to sense, or refused."""

import copy
import json

import numpy as np
import pytest

import calibrant as cal
from calibrant import calibrators as c
from calibrant.data.problem import Problem
from calibrant.sums import BinMoments, GridMoments, uniform_edges

from ..calibrators.test_saving import ALL, fitted

JUNK = (None, True, -1, 0, 0.5, 3, 1e308, "x", "0", [], {}, {"float": "nan"}, {"float": "-inf"}, {"list": [1]})
REMOVED = object()


def places(value, path=()):
    """Paths to everything inside a JSON value; of long lists the first, a middle and the last."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for i in sorted({0, len(value) // 2, len(value) - 1} - {-1} if value else ()):
            yield (*path, i)
            yield from places(value[i], (*path, i))


def changed(data, path, junk):
    out = copy.deepcopy(data)
    inner = out
    for step in path[:-1]:
        inner = inner[step]
    if junk is REMOVED:
        del inner[path[-1]]
    else:
        inner[path[-1]] = junk
    return out


def scores_for(one, s):
    return np.vstack([s[:20], np.full(s.shape[1], 1 / s.shape[1])]) if s.ndim > 1 else np.r_[s[:20], 0, 0.5, 1]


@pytest.mark.parametrize("row", ALL, ids=str)
@pytest.mark.slow
def test_a_calibrator_that_was_tampered_with_is_refused_or_gives_probabilities(row):
    one, s = fitted(row)
    data = json.loads(json.dumps(c.to_dict(one)))
    tried = scores_for(one, s)
    read = refused = 0
    words = set()
    rng = np.random.default_rng(0)
    every = [(path, junk) for path in places(data) for junk in (*JUNK, REMOVED)]
    some = every if len(every) < 400 else [every[i] for i in rng.permutation(len(every))[:400]]
    for path, junk in some:
        try:
            found = c.from_dict(changed(data, path, junk))
        except ValueError:
            refused += 1
            continue
        try:
            p = found.predict_proba(tried)
        except ValueError as error:  # scores of another kind than the tampered one takes, which it says
            words.add(str(error))
            continue
        assert p.shape == (len(tried), len(found.classes_)), (path, junk)
        assert ((p >= 0) & (p <= 1 + 1e-9)).all(), (path, junk)
        if getattr(found, "normalisation", "sum") != "none":
            np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6, err_msg=str((path, junk)))
        read += 1
    assert refused > read / 4
    assert all("score" in said for said in words)


@pytest.mark.parametrize("change", ["classes", "one less", "nan weight", "negative weight", "descending"])
def test_what_once_was_read(change):
    """A class gone from OneVsRest gave two columns for three classes; NaN and negative weights were accepted."""
    rest, s = fitted(next(row for row in ALL if isinstance(row.calibrator, c.OneVsRest)))
    data = c.to_dict(rest)
    if change == "classes":
        data["fitted"]["classes_"]["array"].pop()
    elif change == "one less":
        data["fitted"]["calibrators_"]["list"].pop()
    elif change == "descending":
        data = c.to_dict(c.IsotonicCalibrator().fit(s[:, 0], s[:, 0] > 0.3))
        data["fitted"]["values_"]["array"].reverse()
    else:
        data = c.to_dict(c.EnsembleTemperatureScaling().fit(s, np.arange(len(s)) % 3))
        data["fitted"]["weights_"]["array"] = [{"float": "nan"} if change == "nan weight" else -0.5, 0.5, 0.5]
    with pytest.raises(ValueError, match="damaged"):
        c.from_dict(data)


def saved_sums():
    rng = np.random.default_rng(0)
    p = rng.random(50)
    problem = Problem(p, (rng.random(50) < p).astype(float))
    return BinMoments.of(problem, uniform_edges(5)), GridMoments.of(problem, 8)


@pytest.mark.parametrize("sums", saved_sums(), ids=["bins", "grid"])
def test_sums_that_were_tampered_with_are_refused_or_make_sense(sums):
    data = json.loads(json.dumps(sums.to_dict()))
    reader = cal.Binned() if isinstance(sums, BinMoments) else cal.estimators.Density()
    words = set()
    for path in places(data):
        for junk in (*JUNK, REMOVED, float("nan"), float("inf"), 10**30):
            try:
                found = type(sums).from_dict(changed(data, path, junk))
            except ValueError as error:
                words.add(str(error)[:16])
                continue
            assert found.n_samples >= 0
            number = float(reader.read(found, 1))
            assert 0 <= number <= 1, (path, junk)
    assert words == {"not a serialised"}
