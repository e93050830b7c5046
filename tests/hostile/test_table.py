"""One table of hostile values by one table of public functions: a finite result, or an error that names an argument."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import calibrant as cal

from .values import FUNCTIONS, GROUPED, GROUPS, MANY, SCORES, TRUTHS, WEIGHTS, P, Y, outcome


def judged(name, y, p, w, about=None):
    options = {**(about or {}), **({} if WEIGHTS[w] is None else {"sample_weight": WEIGHTS[w]})}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", cal.exceptions.CalibrantWarning)
        return outcome(FUNCTIONS[name], TRUTHS[y], SCORES[p], options)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.slow
def test_one_thing_wrong_at_a_time(name):
    cases = [(y, "as they are", "none") for y in TRUTHS]
    cases += [("as they are", p, "none") for p in SCORES]
    cases += [("as they are", "as they are", w) for w in WEIGHTS]
    cases += [("three labels", "three columns", w) for w in WEIGHTS]
    wrong = {case: said for case in cases if (said := judged(name, *case))}
    assert not wrong, "\n".join(f"{case}: {said[:200]}" for case, said in wrong.items())


@pytest.mark.parametrize("name", GROUPED)
@pytest.mark.slow
def test_groups_of_every_kind(name):
    wrong = {}
    for group in GROUPS:
        for average in ("micro", "macro"):
            for w in ("none", "zero but one", "one tiny", "uneven", "whole"):
                about = {"groups": GROUPS[group], "group_average": average}
                if said := judged(name, "as they are", "as they are", w, about):
                    wrong[group, average, w] = said
    assert not wrong, "\n".join(f"{case}: {said[:200]}" for case, said in wrong.items())


@pytest.mark.slow
@settings(max_examples=4_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from([f for f in FUNCTIONS if f not in ("report", "compare_models", "subgroup_calibration")]),
    st.sampled_from(list(TRUTHS)),
    st.sampled_from(list(SCORES)),
    st.sampled_from(list(WEIGHTS)),
)
def test_several_things_wrong_at_once(name, y, p, w):
    assert judged(name, y, p, w) is None


def test_the_table_can_fail():
    assert "not finite" in outcome(lambda y, p: float("nan"), Y, P, {})
    assert "names no argument" in outcome(lambda y, p: cal.Binned("bad"), Y, P, {})
    assert "ZeroDivisionError" in outcome(lambda y, p: 1 / 0, Y, P, {})
    assert outcome(cal.calibration_error, np.array([1, 0, 2] * 10), MANY, {}) is None
