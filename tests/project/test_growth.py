"""The cost of every function, counted and not timed: memory a row, and how often Python is called.

Four times the rows may take four times the numbers, but no more steps of Python: a loop over rows would. Where there is
one, or a cost beyond the rows, the table below says so, as the docstring does.
"""

import inspect
import re
import sys
import tracemalloc

import numpy as np
import pytest

import calibrant as cal
from calibrant import calibrators as c

from ..hostile.test_weights import CALIBRATORS, ESTIMATORS
from ..hostile.values import FUNCTIONS
from ..surface import NAMES

FEW = {"n_resamples": 20}
USES = {
    **FUNCTIONS,
    "subgroup_calibration": lambda y, p: cal.subgroup_calibration(y, p, {"half": np.arange(len(y)) % 2}, **FEW),
    "calibration_over_time": lambda y, p: cal.calibration_over_time(y, p, np.arange(len(y)), every=len(y) // 2),
    "expected_performance": lambda y, p: cal.expected_performance(p, reference=(y, p), **FEW),
    "find_segments": lambda y, p: cal.find_segments(y, p, {"x": p**2, "half": np.arange(len(y)) % 2}),
    "grouping_loss": lambda y, p: cal.scores.grouping_loss(y, p, np.arange(len(y))[:, None] % 4),
    "SubgroupCalibrator": lambda y, p: (
        c.SubgroupCalibrator().fit(p, y, by=(p * 9).astype(int)).predict_proba(p, by=p > 2)
    ),
    "SegmentCalibrator": lambda y, p: c.SegmentCalibrator("platt", cv=2).fit(
        p, y, features={"x": p**2, "half": np.arange(len(y)) % 2}
    ),
    "calibration_measures": cal.calibration_measures,
    "decision_curve": cal.decision_curve,
    "calibration_belt": cal.significance.calibration_belt,
    "cumulative_test": cal.significance.cumulative_test,
    "kernel_test": lambda y, p: cal.significance.kernel_test(y, p, **FEW),
    "kernel_test by blocks": lambda y, p: cal.significance.kernel_test(y, p, algorithm="asymptotic"),
    **{
        f"value: {e}": (lambda y, p, e=e: cal.calibration_error(y, p, estimator=getattr(cal.estimators, e)()))
        for e in ESTIMATORS
    },
    **{f"fit: {k}": (lambda y, p, k=k: getattr(c, k)().fit(p, y).predict_proba(p)) for k in CALIBRATORS},
}
#: A step of Python for every distinct score.
A_LOOP = {"VennAbers", "fit: VennAbers", "fit: RocHullCalibrator", "fit: NearIsotonic"}
#: Memory of n²: counted at fewer rows, as numbers a pair of rows.
SQUARED = {"kernel_test"}
#: Steps of Python for every block of rows or draws.
STEPS = {"calibration_test", "adaptive_test", "compare_models"}
#: What is held at a time whatever n: from so many rows on it is no more.
BLOCKS = {*STEPS, "report", "expected_performance"}


def rows(n):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return (rng.random(n) < p).astype(int), p


def calls(use, *data):
    """Calls of functions, of Python and of C."""
    n = 0

    def count(frame, event, what):
        nonlocal n
        n += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        use(*data)
    finally:
        sys.setprofile(before)
    return n


def peak(use, *data):
    """Bytes held at most."""
    tracemalloc.start()
    try:
        use(*data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("name", USES)
def test_four_times_the_rows(name):
    use, n = USES[name], 300 if name in SQUARED else 5000
    few, many = rows(n), rows(4 * n)
    use(*few)  # what is loaded or kept on first use is not counted
    growth = calls(use, *many) / calls(use, *few)
    held = peak(use, *few), peak(use, *many)
    if name in A_LOOP:
        assert 3.5 < growth < 4.5
    else:
        assert growth < (4.5 if name in STEPS else 2)
    if name in SQUARED:
        assert held[1] < 8 * 8 * (4 * n) ** 2
    elif name in BLOCKS:
        assert max(held) < (400e6 if name in STEPS else 60e6)
    else:
        assert (held[1] - held[0]) / (3 * n) < 640  # bytes a row: eighty numbers


@pytest.mark.slow
@pytest.mark.parametrize("use", ["calibration_error", "estimate classwise", "report", "reliability_curve classwise"])
def test_four_times_the_classes(use):
    """Steps of Python and memory grow with the classes at most; bins and cells of a class are bounded."""
    curves = {"reliability_curve classwise": lambda y, p: cal.reliability_curve(y, p, notion="classwise", **FEW)}
    chosen = (FUNCTIONS | curves)[use]
    counted = []
    for k in (20, 80):
        rng = np.random.default_rng(0)
        q = rng.dirichlet(np.ones(k), 2000)
        y = (rng.random((2000, 1)) > q.cumsum(axis=1)).sum(axis=1)
        chosen(y, q)
        counted.append((calls(chosen, y, q), peak(chosen, y, q)))
    assert counted[1][0] / counted[0][0] < 4.5
    assert (counted[1][1] - counted[0][1]) / 60 < 600e3  # bytes a class: two thousand rows and a few draws of its cells


@pytest.mark.slow
@pytest.mark.parametrize(
    "use",
    [
        cal.estimate,
        cal.reliability_curve,
        cal.calibration_test,
        cal.significance.adaptive_test,
        cal.subgroup_calibration,
    ],
)
def test_more_draws_hold_no_more(use):
    """Draws are made some at a time, or hold five thousand numbers each."""
    y, p = rows(20_000)
    more = ({"half": np.arange(len(y)) % 2},) if use is cal.subgroup_calibration else ()
    held = [peak(lambda n=n: use(y, p, *more, n_resamples=n)) for n in (2000, 8000)]
    assert held[1] - held[0] < max(6000 * 5000 * 8, 0.1 * held[0])


def test_costs_are_stated():
    without = [
        name
        for name, use in NAMES.items()
        if name not in (*cal.benchmark.__all__, *cal.datasets.__all__)
        and (inspect.isfunction(use) or _is_part(use))
        and not re.search(r"\b[Cc]osts?\b", use.__doc__ or "")
    ]
    assert sorted(without) == [
        "default_candidates",
        "from_dict",
        "load_calibrator",
        "named_calibrator",
        "save_calibrator",
        "to_dict",
    ]


def _is_part(use):
    bases = (cal.estimators.Estimator, c.Calibrator, c.BinaryCalibrator)
    return isinstance(use, type) and issubclass(use, bases) and not inspect.isabstract(use) and use not in bases
