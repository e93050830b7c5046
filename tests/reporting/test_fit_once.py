"""A report fits each posterior once, and computes when first read what takes long."""

import copy
import json
import pickle
from collections import Counter

import numpy as np
import pytest

import calibrant as cal
from calibrant.estimators import laplace
from calibrant.estimators.empirical_bayes import WIDE
from calibrant.notions import as_notion
from calibrant.significance.report_test import SumsTest


def rows(n, k, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.5), n)
    return (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1), p


@pytest.fixture
def fits(monkeypatch):
    """Problems whose posterior of a smooth map was fitted, by the prior; one with ranges may come beside it."""
    fitted, found = laplace.fit, Counter()

    def counting(cells, prior):
        if cells.apart.shape[-1] == laplace.APART:
            found["wide" if prior is WIDE else "typical"] += int(np.prod(cells.count.shape[:-1]))
        return fitted(cells, prior)

    monkeypatch.setattr(laplace, "fit", counting)
    return found


@pytest.mark.parametrize(
    ("notion", "k", "problems"), [("confidence", 3, 1 + 3), ("classwise", 3, 3), ("classwise", 70, 70)]
)
@pytest.mark.parametrize("estimator", ["auto", "binned"])
def test_the_posterior_of_a_problem_is_fitted_once(fits, notion, k, problems, estimator):
    """Those of the notion, and of the classes, by which the gain of the whole vector is found."""
    report = cal.report(*rows(2000, k), notion=notion, estimator=estimator, threshold=0.3)
    of_notion = problems - k if notion == "confidence" else problems
    assert fits == {"wide": of_notion, "typical": of_notion}
    assert str(report)
    assert fits == {"wide": problems, "typical": of_notion}
    report.to_dict()
    # The curve has more cosines: it is fitted when it is read, for the report and for its headline.
    assert report.curve is (None if notion != "confidence" else report.estimates["empirical Bayes"].curve)
    assert fits == {"wide": problems + (notion == "confidence"), "typical": of_notion}


def test_intervals_that_are_read_later_do_not_depend_on_what_was_read_before():
    y, p = rows(500, 3)
    forward, backward = cal.report(y, p).estimates, cal.report(y, p).estimates
    early = {name: forward[name] for name in forward}
    late = {name: backward[name] for name in reversed(list(backward))}
    for name in early:
        assert early[name].to_dict() == late[name].to_dict()


@pytest.mark.parametrize("estimator", ["auto", "binned", "residual"])
def test_values_are_those_of_the_estimates(estimator):
    report = cal.report(*rows(500, 3), estimator=estimator)
    assert report.values == {name: e.value for name, e in report.estimates.items()}
    assert next(iter(report.estimates.values())) is report.headline


def test_the_power_is_that_of_the_very_test(monkeypatch):
    """Read later, its draws are drawn again: the same ones."""
    drawn, of = [], SumsTest.of

    def keeping(*args):
        drawn.append(of(*args))
        return drawn[-1]

    monkeypatch.setattr(SumsTest, "of", keeping)
    score = np.random.default_rng(0).random(2000)
    evidence = cal.report(np.random.default_rng(1).random(2000) < score**2, score).evidence
    assert evidence.status == "miscalibrated"
    assert len(drawn) == 1
    assert evidence.detectable == drawn[0].power.detectable
    assert evidence.rows_needed > 0
    assert len(drawn) == 2


@pytest.mark.parametrize("again", [copy.deepcopy, lambda report: pickle.loads(pickle.dumps(report))])
def test_a_report_is_copied_with_what_was_not_read_yet(again):
    report = cal.report(*rows(300, 3))
    other = again(report)
    assert other.to_dict() == report.to_dict()
    assert str(other) == str(report)


def test_of_many_classes_text_and_page_come_without_secondary_intervals():
    report = cal.report(*rows(1500, 64), notion="classwise")
    text, page = str(report), report.to_html()
    line = next(line for line in text.splitlines() if line.startswith("15 bins of equal width "))
    assert len(line.split()) == 6
    assert "only the first estimator has an interval here" in " ".join(text.split())
    assert "density ratio (Silverman)" in page
    data = json.loads(json.dumps(report.to_dict()))["estimates"]
    assert all(row["interval"][1] > 0 for row in data.values())


def test_a_fitted_state_reads_its_sums_once(fits):
    y, p = rows(500, 2)
    estimator = cal.EmpiricalBayes()
    sums = estimator.summarize(as_notion("auto", cal.as_predictions(y, p)).reduce(cal.as_predictions(y, p)))
    state = estimator.fit(sums)
    assert state.powers(1) is state.powers(1)
    assert fits == {"typical": 1}
    assert state.powers(1) == estimator.read(sums, 1)
    assert state.first(1).powers(1) == state.powers(1)
    one, two = (state.draws(1, 50, np.random.default_rng(0), f) for f in ([], [lambda cells, maps: maps.mean_power(1)]))
    assert np.array_equal(one.powers, two.powers)
    assert np.array_equal(two.powers, two.functionals[0])
