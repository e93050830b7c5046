"""A notion of one's own, which says its targets and nothing else, works wherever a notion is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.notions import Target, as_notion

N = 300


class Second(cal.notions.Notion):
    """One label a row: is the runner-up as likely as it says?"""

    name = "runner-up"

    def targets(self, predictions: cal.Predictions) -> Iterator[Target]:
        p = predictions.matrix
        who = np.argsort(-p, axis=1, kind="stable")[:, 1]
        yield Target(np.take_along_axis(p, who[:, None], axis=1)[:, 0], who)


class TopTwo(cal.notions.Notion):
    """A set of labels a row: is one of the two likeliest as likely as both together?"""

    name = "top two"

    def targets(self, predictions: cal.Predictions) -> Iterator[Target]:
        p = predictions.matrix
        least = p.argmin(axis=1)
        wanted = np.ones(p.shape, dtype=bool)
        wanted[np.arange(len(p)), least] = False
        yield Target(1 - p.min(axis=1), wanted)


class Halves(cal.notions.Notion):
    """Problems that split the rows: class 0, where class 2 is likely and where it is not."""

    name = "halves"
    average = "mean"

    def targets(self, predictions: cal.Predictions) -> Iterator[Target]:
        p = predictions.matrix
        for some in (p[:, 2] < 0.5, p[:, 2] >= 0.5):
            rows = np.flatnonzero(some)
            yield Target(p[rows, 0], 0, rows, share=len(rows) / len(p))


class Pairs(cal.notions.Notion):
    """Problems of the same rows: either of two classes, for each pair."""

    name = "pairs"
    dependent = True

    def targets(self, predictions: cal.Predictions) -> Iterator[Target]:
        p = predictions.matrix
        for a in range(3):
            wanted = np.ones(p.shape, dtype=bool)
            wanted[:, a] = False
            yield Target(1 - p[:, a], wanted)


class Again(cal.notions.Notion):
    """Vectors, as the canonical notion."""

    name = "vectors"
    vector = True

    def targets(self, predictions: cal.Predictions) -> Iterator[Target]:
        yield Target(predictions.matrix, None)


class Winner(cal.notions.Notion):
    """The confidence, said anew."""

    name = "confidence"

    def targets(self, predictions: cal.Predictions) -> Iterator[Target]:
        p = predictions
        yield Target(p.confidence, p.predicted, domain=(1 / p.n_classes, 1.0))


class Each(cal.notions.Notion):
    """Class by class, said anew, without the package's own shortcut for it."""

    name = "classwise"
    dependent = True

    def targets(self, predictions: cal.Predictions) -> Iterator[Target]:
        p = predictions
        return (Target(p.score(k), k, label=p.classes[k]) for k in range(p.n_classes))


#: Each verb of one problem, or of any notion.
ONE = {
    "evalue_test": lambda p, **o: cal.significance.evalue_test(p, random_state=0, **o),
    "evalue_test, split": lambda p, **o: cal.significance.evalue_test(p, algorithm="split", random_state=0, **o),
    "cumulative_test": cal.significance.cumulative_test,
    "kernel_test": lambda p, **o: cal.significance.kernel_test(p, n_resamples=49, random_state=0, **o),
    "kernel_test, asymptotic": lambda p, **o: cal.significance.kernel_test(
        p, algorithm="asymptotic", random_state=0, **o
    ),
    "calibration_belt": cal.significance.calibration_belt,
}
ANY = {
    "calibration_test": lambda p, **o: cal.calibration_test(p, n_resamples=49, random_state=0, **o),
    "adaptive_test": lambda p, **o: cal.significance.adaptive_test(p, n_resamples=49, random_state=0, **o),
}
BINS = {
    "calibration_test, bins": lambda p, **o: cal.calibration_test(
        p, n_resamples=49, estimator=cal.Binned(8), random_state=0, **o
    ),
    "squared_calibration_error": cal.squared_calibration_error,
    "expected_calibration_error": cal.expected_calibration_error,
}


def predictions(power: float = 1.0) -> cal.Predictions:
    rng = np.random.default_rng(2)
    p = rng.dirichlet([0.9, 1.0, 1.4], N)
    truth = p**power / (p**power).sum(axis=1, keepdims=True)
    return cal.as_predictions((rng.random((N, 1)) > truth.cumsum(axis=1)).sum(axis=1), p)


def number(found: Any) -> float:
    return found if isinstance(found, float) else found.pvalue


@pytest.mark.parametrize("verb", [*ONE, *ANY, *BINS])
@pytest.mark.parametrize("notion", [Second(), TopTwo()], ids=str)
def test_notions_of_one_problem(notion, verb):
    found = (ONE | ANY | BINS)[verb](predictions(), notion=notion)
    assert np.isfinite(number(found))


@pytest.mark.parametrize("verb", [*ANY, *BINS])
@pytest.mark.parametrize("notion", [Halves(), Pairs()], ids=str)
def test_notions_of_several_problems(notion, verb):
    found = (ANY | BINS)[verb](predictions(), notion=notion)
    assert np.isfinite(number(found))


@pytest.mark.parametrize("verb", [*ANY, "kernel_test", "kernel_test, asymptotic"])
def test_notions_of_vectors(verb):
    rows = predictions(2.5)
    verbs = ONE | ANY
    assert verbs[verb](rows, notion=Again()).pvalue == verbs[verb](rows, notion="canonical").pvalue


@pytest.mark.parametrize(
    ("own", "named", "verbs"), [(Winner(), "confidence", ONE | ANY | BINS), (Each(), "classwise", ANY | BINS)]
)
def test_the_same_said_anew_is_the_same(own, named, verbs):
    rows = predictions(1.5)
    for name, verb in verbs.items():
        assert number(verb(rows, notion=own)) == pytest.approx(number(verb(rows, notion=named)), rel=1e-12), name
    mean = cal.significance.evalue_test(rows, notion=Each(), random_state=0)
    assert mean.statistic == cal.significance.evalue_test(rows, notion="classwise", random_state=0).statistic


def test_tests_find_what_a_notion_asks_for():
    """Overconfident labels are found by a set of labels as by one."""
    for name, verb in (ONE | ANY).items():
        assert verb(predictions(), notion=TopTwo()).pvalue > 0.05, name
        assert verb(predictions(0.3), notion=TopTwo()).pvalue <= 0.02, name


@pytest.mark.parametrize("notion", [Second(), TopTwo(), Halves(), Again(), "confidence", "top-label"], ids=str)
def test_outcomes(notion):
    """Of one set of labels or of many at once, one after the other."""
    p = predictions()
    rng = np.random.default_rng(0)
    sets = rng.integers(0, 3, (4, N))
    for target in as_notion(notion, p).targets(p):
        many = target.outcomes(sets.T)
        rows = np.arange(N) if target.rows is None else target.rows
        for r, codes in enumerate(sets):
            one = target.outcomes(codes)
            assert one.shape == target.scores.shape
            np.testing.assert_array_equal(many[:, r], one)
            wanted = target.wanted
            for i, row in enumerate(rows[:20]):
                if wanted is None:
                    assert one[i].tolist() == [k == codes[row] for k in range(3)]
                elif np.ndim(wanted) == 2:
                    assert one[i] == wanted[i, codes[row]]
                else:
                    assert one[i] == (codes[row] == (wanted if np.ndim(wanted) == 0 else wanted[i]))


def test_labels_drawn_anew_meet_the_same_scores():
    """A reducer finds scores once; its problems are those of predictions with these labels."""
    from dataclasses import replace

    p = predictions()
    codes = np.roll(p.codes, 1)
    for name in ("class-specific", "confidence", "top-label", "classwise", "canonical"):
        notion = cal.notions.ClassSpecific(2) if name == "class-specific" else as_notion(name, p)
        reducer = notion.reducer(p)
        found, wanted, before = reducer(codes), notion.reduce(replace(p, truth=codes)), reducer(p.codes)
        if name == "canonical":
            assert found.probs is before.probs
            np.testing.assert_array_equal(found.codes, wanted.codes)
            continue
        for one, other, old in zip(found, wanted, before, strict=True):
            np.testing.assert_array_equal(one.scores, other.scores)
            np.testing.assert_array_equal(one.outcomes, other.outcomes)
            assert (one.label, one.share, one.domain) == (other.label, other.share, other.domain)
            assert name == "classwise" or np.shares_memory(one.scores, old.scores)


def test_rows_of_their_own_have_no_evalue():
    with pytest.raises(ValueError, match="'halves' has no e-value test"):
        cal.significance.evalue_test(predictions(), notion=Halves())
    with pytest.raises(ValueError, match="'vectors' has no e-value test"):
        cal.significance.evalue_test(predictions(), notion=Again())


def test_what_a_notion_must_say():
    class Silent(cal.notions.Notion):
        name = "silent"

    with pytest.raises(TypeError, match="targets"):
        Silent()
