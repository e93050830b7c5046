"""Every test of calibration, every proper score and every display once, and what is true of all of their kind."""

import inspect
import itertools
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest

import calibrant as cal
from calibrant.measure.scoring_rules import RULES
from calibrant.plot.base import Display
from calibrant.scores import BetaFamily, CostWeighted, mean_score, score_samples

from ..surface import NAMES

FEW = {"n_resamples": 99}
#: Name, options, and whether weights are repeats to it (not where a row is one unit that draws, or is bet on).
TESTS = {
    "adaptive_test": (FEW, False),
    "calibration_test": (FEW, True),
    "cox_test": ({}, True),
    "cumulative_test": ({}, True),
    "evalue_test": ({}, False),
    "hosmer_lemeshow_test": ({}, True),
    "kernel_test": (FEW, False),
    "pearson_test": (FEW, True),
    "spiegelhalter_test": ({}, True),
}


def sample(seed, n=400, power=1.0):
    rng = np.random.default_rng(seed)
    p = rng.beta(1.2, 1.1, n)
    return (rng.random(n) < p**power).astype(int), p


def test_every_test_is_in_the_table():
    public = {n for n in NAMES if n.endswith("_test")}
    assert public == set(TESTS)


@pytest.fixture(params=list(TESTS))
def name(request):
    return request.param


def run(name, *given, **options):
    return NAMES[name](*given, **TESTS[name][0], **options)


def test_a_test_says_what_it_found(name):
    y, p = sample(0)
    found = run(name, y, p)
    assert isinstance(found, cal.significance.TestResult)
    assert 0 <= found.pvalue <= 1
    assert found.n_samples == 400
    assert found.null and found.name  # noqa: PT018
    again = run(name, y, p)
    assert (again.statistic, again.pvalue) == (found.statistic, found.pvalue)


def test_a_test_sees_what_is_plain_and_seldom_what_is_not_there(name):
    assert run(name, *sample(1, 1000, power=2.5)).pvalue <= 0.01
    small = [run(name, *sample(seed, 200)).pvalue < 0.05 for seed in range(60)]
    assert np.mean(small) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)


@pytest.mark.parametrize("n_groups", range(3, 9))
def test_few_groups_cannot_show_more_than_their_signs_can(name, n_groups):
    """All residuals point one way, in every group: of 2^G sets of signs, this one and its opposite are as extreme."""
    if name == "evalue_test":  # bets have a guarantee of their own
        return
    groups = np.repeat(np.arange(n_groups), 60)
    p = np.tile(np.linspace(0.05, 0.95, 60), n_groups)
    found = run(name, np.ones(len(p), dtype=int), p, groups=groups)
    assert found.pvalue >= 2.0 ** (1 - n_groups)
    assert found.least_pvalue >= 2.0 ** (1 - n_groups)
    assert any("too few groups to test at 5 %" in text for text in found.warnings) == (n_groups <= 5)


def test_signs_of_few_groups_are_listed(name):
    """So the p-value does not depend on chance: it is the share of all sets of signs, counted here one by one."""
    rng = np.random.default_rng(3)
    groups, p = np.repeat(np.arange(7), 40), rng.beta(2, 2, 280)
    y = (rng.random(280) < np.clip(p + rng.normal(0, 0.2, 7)[groups], 0, 1)).astype(int)
    one, two = (
        run(name, y, p, groups=groups, **seed) for seed in ({}, {} if name == "evalue_test" else {"random_state": 9})
    )
    assert one.pvalue == pytest.approx(two.pvalue, abs=1e-12)
    if name == "cumulative_test":  # a naive second implementation
        order = np.argsort(p, kind="stable")
        residual, of = (y - p)[order], groups[order]
        scale = max(1.0, np.sqrt((p * (1 - p)).sum() / ((y - p) ** 2).sum()))

        def strays(signs):
            running = np.concatenate([[0.0], np.cumsum(signs[of] * residual)])
            return running.max() - running.min()

        observed = strays(np.ones(7))
        every = [scale * strays(np.array(signs)) for signs in itertools.product([-1.0, 1.0], repeat=7)]
        assert one.pvalue == pytest.approx(np.mean(np.array(every) >= observed - 1e-9), abs=1e-12)


@pytest.mark.parametrize("wrong", [0, 1])
@pytest.mark.parametrize("grouped", [False, True])
def test_scores_without_variance(name, wrong, grouped):
    """All scores are 0 or 1: all right is statistic 0 (of an e-value, 1) and p = 1; one wrong is impossible."""
    y = np.tile([0, 1], 40)
    p = y.astype(float)
    p[:wrong] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run(name, y, p, **({"groups": np.repeat(np.arange(10), 8)} if grouped else {}))
    assert not np.isnan(found.statistic)
    assert not np.isnan(found.pvalue)
    if not wrong:
        assert found.statistic == pytest.approx(1.0 if name == "evalue_test" else 0.0, abs=1e-6)
        assert found.pvalue == pytest.approx(1.0, abs=1e-6)


def test_a_test_asks_rows_and_not_their_order_or_names(name):
    y, p = sample(2)
    found = run(name, y, p)
    named = run(name, np.where(y == 1, "yes", "no"), p, pos_label="yes")
    assert (named.statistic, named.pvalue) == (found.statistic, found.pvalue)
    order = np.random.default_rng(0).permutation(400)
    if name != "evalue_test":  # it bets row by row
        assert run(name, y[order], p[order]).statistic == pytest.approx(found.statistic, rel=1e-9)
    if TESTS[name][1]:
        w = np.random.default_rng(1).integers(0, 4, 400)
        one, two = run(name, y, p, sample_weight=w), run(name, np.repeat(y, w), np.repeat(p, w))
        assert one.statistic == pytest.approx(two.statistic, rel=1e-8)


@pytest.mark.parametrize("rule", [*RULES, BetaFamily(0.5, 2.0), CostWeighted(0.3)], ids=str)
def test_scores_are_proper_means_of_rows(rule):
    y, p = sample(3, 4000)
    each = score_samples(y, p, rule)
    w = np.random.default_rng(0).integers(0, 3, 4000)
    assert mean_score(y, p, rule) == pytest.approx(each.mean(), rel=1e-12)
    assert mean_score(y, p, rule, sample_weight=w) == pytest.approx(np.repeat(each, w).mean(), rel=1e-12)
    # What is said of calibrated outcomes beats any distortion, up to noise, and the truth beats noise.
    for other in (p**2, np.sqrt(p), np.clip(p + 0.2, 0, 0.999)):
        difference = score_samples(y, other, rule) - each
        assert difference.mean() > -3 * difference.std() / np.sqrt(4000)


def displays():
    y, p = sample(4, 300)
    q = np.clip(p + 0.05, 0.001, 0.999)
    monitor = cal.CalibrationMonitor()
    monitor.update(y, p)
    return {
        "BrierCurveDisplay": cal.scores.brier_curve(y, p),
        "CalibrationBeltDisplay": cal.significance.calibration_belt(y, p),
        "CriticalDifferenceDisplay": cal.scores.rank_models({"a": [1, 2, 1], "b": [2, 3, 3], "c": [3, 1, 2]}),
        "DecisionCurveDisplay": cal.decision_curve(y, p),
        "ModelComparisonDisplay": cal.compare_models(y, {"a": p, "b": q}, n_resamples=50),
        "MurphyDisplay": cal.scores.murphy_curve(y, p),
        "CostDisplay": cal.decisions.expected_cost(y, p, costs={"fp": 1, "fn": 4}),
        "IntervalDisplay": cal.decompose(y, p),
        "MonitorDisplay": monitor,
        "NullDistributionDisplay": cal.calibration_test(y, p, n_resamples=50),
        "OverTimeDisplay": cal.calibration_over_time(y, p, np.arange(len(y))),
        "PerformanceDisplay": cal.expected_performance(p, reference=(y, p), time=np.arange(len(y)), n_resamples=50),
        "ReliabilityDisplay": cal.report(y, p),
        "RiskCoverageDisplay": cal.decisions.risk_coverage(y, p),
        "SegmentDisplay": cal.find_segments(y, p, {"$a_{b$": np.where(p > 0.5, "<i>", "b")}),
        "SubgroupDisplay": cal.subgroup_calibration(y, p, by=np.where(p > 0.5, "$a_{b$", "<i>"), min_size=10),
    }


DISPLAYS = displays()
#: Made of calibrators, or of predictions alone, which are no results.
OF_CALIBRATORS = {"CalibrationMapDisplay", "SimplexDisplay", "SimplexMapDisplay"}


def test_every_display_is_in_the_table():
    public = {n for n in NAMES if n.endswith("Display")}
    assert public == set(DISPLAYS) | OF_CALIBRATORS
    assert {n for n in public if issubclass(NAMES[n], Display)} == set(DISPLAYS) | {"CalibrationMapDisplay"}


@pytest.mark.parametrize("name", DISPLAYS)
def test_a_display_draws_what_it_holds(name):
    kind, result = NAMES[name], DISPLAYS[name]
    held = kind.of(result)
    assert not plt.get_fignums()  # nothing is drawn before it is asked for
    drawn = held.plot()
    assert drawn is held
    assert drawn.figure_.axes
    drawn.figure_.canvas.draw()  # formulas and names are text that can be drawn
    assert "ax" in inspect.signature(kind.from_result).parameters
    plt.close("all")


@pytest.mark.parametrize("name", [n for n in DISPLAYS if not NAMES[n].sizes_its_figure])
def test_a_display_draws_where_it_is_told(name):
    figure, axes = plt.subplots(1, 2, sharey=True)
    given = axes if name == "SubgroupDisplay" else axes[0]
    drawn = NAMES[name].from_result(DISPLAYS[name], given)
    assert drawn.figure_ is figure
    assert plt.get_fignums() == [figure.number]
    plt.close("all")


@pytest.mark.parametrize("n_groups", [3, 4, 8])
def test_no_other_pvalue_of_few_groups_is_below_its_bound(n_groups):
    """Of subgroups, models, a report and its classes, where every row says the same of every group."""
    groups = np.repeat(np.arange(n_groups), 40)
    p = np.tile(np.linspace(0.05, 0.6, 40), n_groups)
    y = np.ones(len(p), dtype=int)
    y[::40] = 0
    least = 2.0 ** (1 - n_groups)
    for test in ("kuiper", "in-the-large"):
        found = cal.subgroup_calibration(y, p, by=np.arange(len(p)) % 2, groups=groups, test=test)
        again = cal.subgroup_calibration(y, p, by=np.arange(len(p)) % 2, groups=groups, test=test, random_state=9)
        assert all(one.pvalue >= least for one in found.subgroups)
        assert [one.pvalue for one in again.subgroups] == [one.pvalue for one in found.subgroups]  # signs are listed
        assert ("too few groups to test at 5 %" in str(found)) == (n_groups <= 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.exceptions.CalibrantWarning)
        models = cal.compare_models(y, {"low": p, "high": 1 - p / 4}, groups=groups, n_resamples=50)
    assert all(not d.pvalue < least for d in models.differences)
    assert any("too few groups to test at 5 %" in text for text in models.warnings) == (n_groups <= 5)
    three = np.column_stack([p / 2, p / 2, 1 - p])
    report = cal.report(y, three, groups=groups)
    assert report.evidence.test.pvalue >= least
    assert all(not row.pvalue < least for row in report.per_class)
    assert ("oo few groups to test at 5 %" in " ".join(str(report).split())) == (n_groups <= 5)
    if n_groups <= 5:
        assert report.evidence.status != "miscalibrated"


@pytest.mark.parametrize("test", ["kuiper", "in-the-large"])
@pytest.mark.parametrize("grouped", [False, True])
def test_subgroups_of_scores_without_variance(test, grouped):
    y = np.tile([0, 1], 80)
    groups = {"groups": np.repeat(np.arange(20), 8)} if grouped else {}
    found = cal.subgroup_calibration(y, y.astype(float), by=np.repeat([0, 1], 80), test=test, **groups)
    assert [one.pvalue for one in found.subgroups] == [1, 1]
    assert all("nothing to test" in one.warnings[-1] for one in found.subgroups)


def test_signs_of_a_subgroups_few_groups_by_hand():
    rng = np.random.default_rng(8)
    groups, by = np.repeat(np.arange(14), 12), np.repeat([0, 1], 84)
    p = rng.uniform(0.1, 0.9, 168)
    y = (rng.random(168) < p**1.3).astype(int)
    w = rng.uniform(0.5, 2, 168)
    found = cal.subgroup_calibration(y, p, by=by, groups=groups, sample_weight=w, test="in-the-large")
    for k, one in enumerate(found.subgroups):
        rows = by == k
        residual = np.bincount(groups[rows] - 7 * k, (w * (y - p))[rows])
        scale = max(1.0, np.sqrt((w**2 * p * (1 - p))[rows].sum() / ((w * (y - p))[rows] ** 2).sum()))
        every = [abs(np.dot(signs, residual)) * scale for signs in itertools.product([-1, 1], repeat=7)]
        assert one.pvalue == pytest.approx(np.mean(np.array(every) >= abs(residual.sum()) - 1e-9))
