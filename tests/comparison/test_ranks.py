"""Ranks over data sets: definitions, SciPy, Demšar's worked example, and tables of quantiles."""

import itertools
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import calibrant as cal

#: Ranks of Demšar (2006), Table 6: C4.5 with m, cf, both or neither tuned, on 14 data sets.
DEMSAR = np.array(
    [
        [4, 3, 2, 1],
        [1, 2, 3, 4],
        [4, 1, 2, 3],
        [4, 1, 3, 2],
        [4, 2, 3, 1],
        [1, 2.5, 4, 2.5],
        [3, 2, 4, 1],
        [2.5, 2.5, 4, 1],
        [4, 3, 2, 1],
        [2.5, 2.5, 2.5, 2.5],
        [4, 2.5, 1, 2.5],
        [3, 2, 4, 1],
        [4, 1, 2, 3],
        [3, 1, 4, 2],
    ]
)
#: Demšar (2006), Table 5a: critical values of the Nemenyi test for 2 to 10 models.
Q = {
    0.05: [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164],
    0.10: [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920],
}


def table(n, k, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, k)) + np.linspace(0, 1.5, k)


def test_demsar_worked_example():
    names = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]
    found = cal.scores.rank_models(DEMSAR, models=names, level=0.9)
    np.testing.assert_allclose(found.average_ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    # The paper's chi-squared takes no account of ties: 9.28, and F 3.69.
    plain = 12 * 14 / 20 * ((found.average_ranks**2).sum() - 25)
    assert plain == pytest.approx(9.28, abs=0.005)
    assert 13 * plain / (14 * 3 - plain) == pytest.approx(3.69, abs=0.005)
    counted = sum(t**3 - t for row in DEMSAR for t in np.unique(row, return_counts=True)[1])
    assert found.friedman == pytest.approx(plain / (1 - counted / (14 * 4 * 15)))
    assert found.critical_difference == pytest.approx(1.12, abs=0.005)  # "2.291 √(4·5 / 6·14) = 1.12"
    assert cal.scores.rank_models(DEMSAR, models=names).critical_difference == pytest.approx(1.25, abs=0.005)
    # At 10 % "C4.5 is significantly worse than C4.5+m and C4.5+m+cf, the rest cannot be told apart".
    assert found.indistinguishable == (("C4.5+m+cf", "C4.5+m", "C4.5+cf"), ("C4.5+cf", "C4.5"))


@pytest.mark.parametrize("alpha", list(Q))
def test_critical_differences_are_the_published_table(alpha):
    for k, q in zip(range(2, 11), Q[alpha], strict=True):
        found = cal.scores.rank_models(table(20, k), level=1 - alpha)
        assert found.critical_difference == pytest.approx(q * np.sqrt(k * (k + 1) / 120), abs=0.0012)


@pytest.mark.parametrize(("n", "k"), [(5, 3), (12, 6), (40, 15)])
def test_friedman_is_scipys_with_and_without_ties(n, k):
    for scores in (table(n, k), np.round(table(n, k), 0)):
        found = cal.scores.rank_models(scores)
        want = stats.friedmanchisquare(*scores.T)
        assert found.friedman == pytest.approx(want.statistic)
        assert found.friedman_pvalue == pytest.approx(want.pvalue)
        f = (n - 1) * want.statistic / (n * (k - 1) - want.statistic)
        assert found.iman_davenport == pytest.approx(f)
        assert found.iman_davenport_pvalue == pytest.approx(stats.f.sf(f, k - 1, (k - 1) * (n - 1)))


def test_without_ties_iman_davenport_is_the_anova_of_ranks():
    scores = table(9, 4, seed=3)
    ranks = stats.rankdata(scores, axis=1)
    between = 9 * ((ranks.mean(axis=0) - 2.5) ** 2).sum()
    within = ((ranks - 2.5) ** 2).sum() - between
    assert cal.scores.rank_models(scores).iman_davenport == pytest.approx((between / 3) / (within / (3 * 8)))


def test_pvalues_and_critical_difference_agree():
    found = cal.scores.rank_models(table(25, 7))
    apart = np.abs(found.average_ranks[:, None] - found.average_ranks)
    assert ((found.pvalues < 0.05) == (apart > found.critical_difference)).all()
    np.testing.assert_allclose(np.diag(found.pvalues), 1)
    np.testing.assert_allclose(found.pvalues, found.pvalues.T)
    # Of two models Nemenyi's test is the normal one of the mean rank: ranks are 1 and 2, variance 1/4 each.
    two = cal.scores.rank_models(table(25, 2))
    z = (two.average_ranks[0] - 1.5) * np.sqrt(25) / 0.5
    assert two.pvalues[0, 1] == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-6)


def test_groups_are_the_largest_sets_without_a_difference():
    found = cal.scores.rank_models(table(30, 9, seed=1))
    ranks = dict(zip(found.models, found.average_ranks, strict=True))
    ordered = sorted(ranks, key=ranks.get)
    sets = []
    for i in range(9):
        for j in range(i + 1, 9):
            names = ordered[i : j + 1]
            if ranks[names[-1]] - ranks[names[0]] < found.critical_difference:
                sets.append(tuple(names))
    largest = [s for s in sets if not any(set(s) < set(t) for t in sets)]
    assert list(found.indistinguishable) == largest
    assert len(largest) > 1


def test_higher_is_better_and_containers_give_the_same():
    scores = table(8, 3)
    names = ["a", "b", "c"]
    want = cal.scores.rank_models(scores, models=names)
    for given in (
        dict(zip(names, scores.T, strict=True)),
        pd.DataFrame(scores, columns=names),
        pl.DataFrame(dict(zip(names, scores.T, strict=True))),
    ):
        got = cal.scores.rank_models(given)
        assert got.models == want.models
        np.testing.assert_array_equal(got.ranks, want.ranks)
    other = cal.scores.rank_models(-scores, models=names, lower_is_better=False)
    assert other.to_dict() | {"lower_is_better": True} == want.to_dict()
    assert cal.scores.rank_models(scores.tolist()).models == ("model 1", "model 2", "model 3")


def test_certain_order_and_complete_ties():
    certain = cal.scores.rank_models([[1, 2, 3]] * 6)
    assert certain.iman_davenport == np.inf
    assert certain.iman_davenport_pvalue == pytest.approx(1 / 6**5)
    assert certain.friedman == pytest.approx(12)
    assert certain.to_dict()["iman_davenport"] is None
    tied = cal.scores.rank_models([[1, 1, 1]] * 6)
    assert np.isnan(tied.friedman)
    assert tied.indistinguishable == (("model 1", "model 2", "model 3"),)


@pytest.mark.parametrize("row", [[1, 2], [1, 2, 3], [1, 1, 2], [3, 1, 2, 2], [1, 2, 2, 2]])
@pytest.mark.parametrize("n", [2, 3])
def test_full_agreement_has_the_probability_of_its_permutations(row, n):
    """Every order of the row on every data set: how many agree."""
    orders = list(itertools.permutations(row))
    alike = [len(set(rows)) == 1 for rows in itertools.product(orders, repeat=n)]
    found = cal.scores.rank_models([row] * n)
    assert found.iman_davenport == np.inf
    assert found.iman_davenport_pvalue == pytest.approx(np.mean(alike))


def test_dict_is_json():
    found = cal.scores.rank_models(table(5, 3), level=0.9)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["level"] == 0.9


def test_text_and_frame():
    found = cal.scores.rank_models(table(25, 4), models=["w", "x", "y", "z"])
    text = str(found)
    assert text.splitlines()[:2] == [found.summary, "4 models on 25 data sets; rank 1 is the lowest score"]
    assert f"critical difference of average ranks {found.critical_difference:.3f} (Nemenyi, 5 %)" in text
    frame = found.to_frame("polars")
    assert frame["average_rank"].is_sorted()
    assert frame["model"].to_list() == [found.models[i] for i in found.order]
    assert frame["pvalue_against_best"][0] == 1
    assert "every pair of models differs" in str(cal.scores.rank_models([[1, 2]] * 9))


@pytest.mark.parametrize(
    ("scores", "options", "error", "message"),
    [
        ([[1, 2]], {}, ValueError, "at least 2 models on 2 data sets; got 2 on 1"),
        ([[1], [2]], {}, ValueError, "at least 2 models"),
        ([1, 2, 3], {}, ValueError, "must be a table"),
        ([[1, np.nan], [1, 2]], {}, ValueError, "row 0, column 1 is nan"),
        ({"a": [1, 2], "b": [1]}, {}, ValueError, "same number of values for every model"),
        ([[1, 2], [2, 1]], {"level": 1}, ValueError, "level must lie strictly between 0 and 1; got 1"),
        ([[1, 2], [2, 1]], {"models": ["a"]}, ValueError, "models must be 2 names"),
        ([[1, 2], [2, 1]], {"models": 5}, TypeError, "models must be 2 names, one per column of scores; got 5"),
        ([[1, 2], [2, 1]], {"models": ["a", "a"]}, ValueError, "names of models must differ"),
        ([[1, 2], [2, 1]], {"lower_is_better": 1}, TypeError, "lower_is_better must be True or False"),
        (pd.DataFrame({"set": ["x", "y"], "a": [1, 2], "b": [2, 1]}), {}, TypeError, "column 'set' is not"),
    ],
)
def test_bad_input_is_refused(scores, options, error, message):
    with pytest.raises(error, match=message):
        cal.scores.rank_models(scores, **options)
