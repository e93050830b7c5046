"""Problems side by side are read as each is read alone: samples of a benchmark, classes, groups of any sizes."""

import math

import numpy as np
import pytest

import calibrant as cal
from calibrant.benchmark import read_samples
from calibrant.data.problem import Problem

from .table import ROWS

SCALAR = [row for row in ROWS if "scalar" in row.estimator._serves]
SIZES = (1, 2, 7, 8, 30, 257, 1200)
pytestmark = pytest.mark.filterwarnings("ignore::calibrant.exceptions.BandwidthWarning")


def samples(kind: str, n: int, n_samples: int = 4):
    rng = np.random.default_rng([n, len(kind)])
    s = rng.random((n_samples, n))
    if kind == "tied":
        s = rng.integers(0, 11, s.shape) / 10
    if kind == "constant":  # the last score of a sample is the first of the next
        s = np.full(s.shape, 0.5)
    if kind == "skewed":
        s = rng.beta(0.2, 0.6, s.shape)
    if kind == "float32":
        s = s.astype(np.float32)
    o = (rng.random(s.shape) < s**1.4).astype(int)
    w = {"whole": rng.integers(0, 4, s.shape), "relative": rng.random(s.shape) + 0.05}.get(kind)
    if w is not None:
        w[:, 0] += 1
    return s, o, w


@pytest.mark.parametrize("row", SCALAR, ids=str)
@pytest.mark.parametrize("kind", ["uniform", "tied", "constant", "skewed", "float32", "whole", "relative"])
def test_many_samples_are_read_as_one(row, kind):
    slow = "loo" in repr(row.estimator) or "isj" in repr(row.estimator)
    for n in SIZES[: 5 if slow else None]:
        s, o, w = samples(kind, n, 2 if slow else 4)
        for norm in (row.norms[0], row.norms[-1]):
            together = read_samples(row.estimator, s, o, weights=w, norm=norm)
            alone = [
                cal.calibration_error(
                    o[i], s[i], estimator=row.estimator, norm=norm, sample_weight=None if w is None else w[i]
                )
                for i in range(len(s))
            ]
            assert together == pytest.approx(alone, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("row", SCALAR, ids=str)
def test_groups_of_unequal_sizes_are_read_as_one_each(row):
    counts = (3, 900, 1, 30, 0, 400, 2)
    rng = np.random.default_rng(5)
    s = rng.random(sum(counts))
    o = (rng.random(s.size) < s).astype(int)
    problems = Problem(s, o, starts=np.concatenate([[0], np.cumsum(counts)]))
    if "loo" in repr(row.estimator):
        problems = problems[2:5]
    together = row.estimator._powers(problems, row.norms[0])
    alone = [row.estimator.power(one, row.norms[0]) for one in problems]
    assert together == pytest.approx(alone, abs=1e-12, nan_ok=True)
    assert [math.isnan(v) for v in alone] == [
        n == 0 or math.isnan(v) for n, v in zip(problems.counts, alone, strict=True)
    ]


def test_confidences_are_read_on_their_domain():
    rng = np.random.default_rng(0)
    q = rng.dirichlet([1, 1, 1], (5, 200))
    y = rng.integers(0, 3, (5, 200))
    for estimator in (cal.EmpiricalBayes(), cal.Binned(10, span="domain"), cal.estimators.Density()):
        read = read_samples(estimator, q.max(axis=-1), y == q.argmax(axis=-1), domain=(1 / 3, 1))
        alone = [cal.calibration_error(y[i], q[i], notion="confidence", estimator=estimator) for i in range(5)]
        assert read == pytest.approx(alone, abs=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": [[0.1, 0.2], [0.3]]}, r"scores must have shape \(R, n\); got samples of unequal length"),
        ({"scores": [0.1, 0.2]}, r"scores must be 2-D"),
        ({"outcomes": [[0, 2], [1, 0]]}, "outcomes must be 0 or 1"),
        ({"outcomes": [[0, 1]]}, r"outcomes must have the shape of scores, \(2, 2\)"),
        ({"scores": [[0.1, 1.2], [0.3, 0.4]]}, r"scores must lie in \[0, 1\]"),
        ({"weights": [1.0, -1.0]}, "weights must be finite and not negative"),
        ({"weights": [1.0, 1.0, 1.0]}, "weights must have the shape of scores"),
        ({"domain": (0.5, 0.2)}, "domain must be two numbers"),
        ({"norm": 0.5}, "norm must be a number >= 1"),
    ],
)
def test_bad_samples_are_named(change, message):
    given = {"scores": [[0.1, 0.2], [0.3, 0.4]], "outcomes": [[0, 1], [1, 0]]} | change
    scores, outcomes = given.pop("scores"), given.pop("outcomes")
    with pytest.raises(ValueError, match=message):
        read_samples(cal.Binned(5), scores, outcomes, **given)


def test_canonical_estimators_do_not_read_single_scores():
    with pytest.raises(TypeError, match="estimator must support single scores"):
        read_samples(cal.estimators.SimplexBinned(), [[0.1]], [[0]])
