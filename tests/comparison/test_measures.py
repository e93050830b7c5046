"""What models are compared by, against naive implementations and other libraries."""

import numpy as np
import pytest
from scipy import stats

import calibrant as cal
from calibrant import as_predictions
from calibrant.comparison.models.measures import Measures
from calibrant.comparison.models.parts import MOST_CELLS, N_DRAWS, ScoreParts, overfits
from calibrant.comparison.models.squares import Squares, squares_covariance
from calibrant.comparison.models.units import IndependentUnits
from calibrant.estimators import CrossFit
from calibrant.measure.scoring_rules import RULES, Brier
from calibrant.notions import ClassSpecific, Classwise, Confidence, TopLabel

from . import naive
from .naive import in_groups


def two(n=300, seed=0, in_group=None):
    """Outcomes, and two models' probabilities that are off; groups that share an effect."""
    rng = np.random.default_rng(seed)
    x1, x2 = rng.standard_normal((2, n))
    group = None if in_group is None else np.arange(n) // in_group
    shared = 0 if group is None else rng.standard_normal(group[-1] + 1)[group]
    y = (rng.random(n) < 1 / (1 + np.exp(-x1 - x2 - shared))).astype(int)
    return y, 1 / (1 + np.exp(-1.8 * x1)), 1 / (1 + np.exp(-x2 - 0.5)), group


def judged(y, *probs, groups=None, **options):
    models = [as_predictions(y, p, **options) for p in probs]
    return models, IndependentUnits.of(in_groups(models[0], groups))


@pytest.mark.parametrize("in_group", [None, 4])
def test_squares_are_products_of_different_units(in_group):
    y, a, _, group = two(in_group=in_group)
    (p,), units = judged(y, a, groups=group)
    found = Squares.of(p, ClassSpecific(), units)
    unit = np.arange(300) if group is None else group
    assert found.value == pytest.approx(naive.squared(y, a, unit, 17), rel=1e-10)  # floor(√300) bins
    assert found.influence.sum() == pytest.approx(0, abs=2e-3)


def test_squares_covariance_is_the_naive_sum():
    y, a, b, _ = two(n=256)
    models, units = judged(y, a, b)
    found = [Squares.of(p, ClassSpecific(), units) for p in models]
    covariance, least = squares_covariance(found, units)
    (i1, h1), (i2, h2) = (naive.influences_and_pairs(y, s, 16) for s in (a, b))
    one = np.stack([i - f.value / 256 for i, f in zip((i1, i2), found, strict=True)])
    one -= one.mean(axis=1, keepdims=True)
    pairs = np.array([[(g * h).sum() / 2 for g in (h1, h2)] for h in (h1, h2)])
    np.testing.assert_allclose(least, pairs, rtol=1e-9)
    np.testing.assert_allclose(covariance, one @ one.T * 256 / 255 - pairs, rtol=1e-9)


def test_squares_of_several_classes_are_means_of_one_vs_rest():
    rng = np.random.default_rng(1)
    probs = rng.dirichlet([1, 2, 3], 400)
    y = rng.integers(0, 3, 400)
    (p,), units = judged(y, probs)
    each = [naive.squared((y == k).astype(int), probs[:, k], np.arange(400), 20) for k in range(3)]
    assert Squares.of(p, Classwise(), units).value == pytest.approx(np.mean(each))
    top, right = probs.max(axis=1), (probs.argmax(axis=1) == y).astype(int)
    assert Squares.of(p, Confidence(), units).value == pytest.approx(naive.squared(right, top, np.arange(400), 20))
    total = 0.0
    for k in range(3):
        rows = probs.argmax(axis=1) == k
        n_bins = int(np.sqrt(rows.sum()))
        total += rows.mean() * naive.squared(right[rows], top[rows], np.arange(rows.sum()), n_bins)
    assert Squares.of(p, TopLabel(), units).value == pytest.approx(total)


def test_squares_are_unbiased_for_calibrated_models_in_groups():
    """Rows of a group share their outcome: plain debiasing takes that for miscalibration, pairs of groups do not."""
    rng = np.random.default_rng(2)
    found, plain = [], []
    for _ in range(200):
        group = np.repeat(np.arange(60), 5)
        s = np.clip(rng.random(60)[group] + 0.02 * rng.standard_normal(300), 0.01, 0.99)
        y = (rng.random(60)[group] < s).astype(int)
        (p,), units = judged(y, s, groups=group)
        found.append(Squares.of(p, ClassSpecific(), units).value)
        plain.append(cal.squared_calibration_error(y, s))
    assert abs(np.mean(found)) < 4 * np.std(found) / np.sqrt(200)
    assert np.mean(plain) > 0.01


@pytest.mark.parametrize("in_group", [None, 3])
def test_means_are_paired_and_clustered(in_group):
    y, a, b, group = two(in_group=in_group)
    w = np.random.default_rng(3).random(300) + 0.1
    models, units = judged(y, a, b, groups=group, sample_weight=w)
    found = Measures(models, units).score(RULES["log-loss"])
    loss = [-np.log(np.where(y == 1, s, 1 - s)) for s in (a, b)]
    unit = np.arange(300) if group is None else group
    mean, se = naive.cluster_mean(loss[0] - loss[1], w, unit)
    assert found.values[0] - found.values[1] == pytest.approx(mean)
    # An earlier NumPy's sums of the same numbers can differ in the last digit.
    assert [found.se[0, 1], found.se[1, 0]] == pytest.approx([se, se])
    assert found.se[0, 1] == pytest.approx(found.se[1, 0], rel=1e-14)
    mass = np.bincount(unit, w)
    assert found.df == pytest.approx(mass.sum() ** 2 / (mass**2).sum() - 1)


def test_independent_rows_give_the_paired_t_test():
    y, a, b, _ = two()
    d = cal.compare_models(y, {"a": a, "b": b}, n_resamples=2, random_state=0).difference("brier", "a", "b")
    want = stats.ttest_rel((a - y) ** 2, (b - y) ** 2)
    assert d.pvalue == pytest.approx(want.pvalue)
    interval = want.confidence_interval()
    assert (d.interval.low, d.interval.high) == pytest.approx((interval.low, interval.high))


@pytest.mark.parametrize("groups", [False, True])
def test_whole_weights_repeat_rows(groups):
    y, a, b, group = two(n=120, in_group=4)
    w = np.random.default_rng(4).integers(1, 4, 120)
    rows = np.repeat(np.arange(120), w)
    models, units = judged(y, a, b, groups=group if groups else None, sample_weight=w)
    again, more = judged(y[rows], a[rows], b[rows], groups=group[rows] if groups else None)
    weighted, repeated = Measures(models, units), Measures(again, more)
    for of in (lambda m: m.score(RULES["brier"]), lambda m: m.accuracy(), lambda m: m.squared_error(ClassSpecific())):
        one, other = of(weighted), of(repeated)
        np.testing.assert_allclose(one.values, other.values, rtol=1e-12)
        np.testing.assert_allclose(one.centres, other.centres, rtol=1e-9)
        np.testing.assert_allclose(one.se, other.se, rtol=1e-8)
        assert one.df == other.df


@pytest.mark.parametrize("n_classes", [2, 3])
def test_parts_of_resamples_are_decompositions_of_repeated_rows(n_classes):
    rng = np.random.default_rng(5)
    probs = rng.dirichlet(np.arange(1, n_classes + 1), 80).round(2).clip(0.01)
    probs /= probs.sum(axis=1, keepdims=True)
    y = rng.integers(0, n_classes, 80)
    given = probs if n_classes == 3 else probs[:, 1]
    rules = {"brier": Brier("half") if n_classes == 2 else Brier()}
    if n_classes == 2:
        rules |= {"log-loss": RULES["log-loss"], "spherical": RULES["spherical"]}
    (p,), units = judged(y, given)
    times = np.concatenate(list(units.draws(5, rng)), axis=1)
    assert (times.sum(axis=0) == 80).all()
    read = ScoreParts.of([p], rules, units).read(times)
    for i, name in enumerate(rules):
        for r in range(5):
            rows = np.repeat(np.arange(80), times[:, r].astype(int))
            want = cal.decompose(y[rows], given[rows], score=name, labels=range(n_classes) if n_classes == 3 else None)
            np.testing.assert_allclose(read[i, :, 0, r], [want.calibration, want.discrimination], atol=1e-12)


def test_pooled_cells_change_little():
    y, a, _, _ = two(n=5000)
    (p,), units = judged(y, a)
    once = np.ones((5000, 1))
    exact = ScoreParts.of([p], {"log-loss": RULES["log-loss"]}, units, None).read(once)
    pooled = ScoreParts.of([p], {"log-loss": RULES["log-loss"]}, units).read(once)
    assert len(np.unique(a)) > MOST_CELLS
    assert not np.array_equal(exact, pooled)
    np.testing.assert_allclose(pooled, exact, atol=5e-4)


def test_draws_repeat_units_as_the_multinomial_law_does():
    y, a, _, _ = two(n=50)
    w = np.r_[np.full(25, 1.0), np.full(25, 3.0)]
    for weights, mean in ((None, np.ones(50)), (w, w)):
        _, units = judged(y, a, sample_weight=weights)
        times = np.concatenate(list(units.draws(20_000, np.random.default_rng(0))), axis=1)
        assert (times.sum(axis=0) == mean.sum()).all()
        np.testing.assert_allclose(times.mean(axis=1), mean, rtol=0.06)
        np.testing.assert_allclose(times.var(axis=1), mean * (1 - mean / mean.sum()), rtol=0.08)


def test_resampled_parts_are_a_bootstrap_by_hand():
    """Overfit taken off, covariance of pairs."""
    y, a, b, _ = two(n=64)
    models, units = judged(y, a, b)
    rules = {"brier": Brier("half")}
    got = Measures(models, units).parts(rules, 30, np.random.default_rng(7))["brier_miscalibration"]
    times = np.concatenate(list(units.draws(30, np.random.default_rng(7))), axis=1).astype(int)
    drawn = np.empty((30, 2))
    for r in range(30):
        rows = np.repeat(np.arange(64), times[:, r])
        drawn[r] = [cal.decompose(y[rows], p[rows]).miscalibration for p in (a, b)]
    values = np.array([cal.decompose(y, p).miscalibration for p in (a, b)])
    np.testing.assert_allclose(got.values, values)
    state = np.random.default_rng(7)
    list(units.draws(30, state))
    seed = int(state.integers(2**63))
    gained, flat = (overfits(models, rules, units, seed, steps=steps)[0] for steps in (False, True))
    np.testing.assert_allclose(got.centres, values - gained.mean(axis=1))
    far = (gained - flat).mean(axis=1)  # what steps would take off the bias
    spread = (drawn[:, 0] - drawn[:, 1]).var(ddof=1) * 64 / 63 + (gained[0] - gained[1]).var(ddof=1) / N_DRAWS
    assert got.se[0, 1] == pytest.approx(np.sqrt(spread + (far[0] - far[1]) ** 2))


@pytest.mark.parametrize(
    ("estimator", "in_group"),
    [(cal.EmpiricalBayes(), None), (cal.EmpiricalBayes(), 4), (cal.Binned(8), 4), (CrossFit(), None)],
)
def test_errors_have_the_intervals_of_their_estimator(estimator, in_group):
    """Ends by hand from those of `estimate`; a negative correlation of the noise counts, an end at 0 is the worst."""
    y, a, b, group = two(n=400, in_group=in_group)
    models, units = judged(y, a, b, groups=group)
    models = [in_groups(p, group) for p in models]
    found = Measures(models, units).calibration_error(ClassSpecific(), estimator, 30, np.random.default_rng(7))
    seed = int(np.random.default_rng(7).integers(2**63))
    options = {"estimator": estimator, "groups": group}
    np.testing.assert_allclose(found.values, [cal.calibration_error(y, s, **options) for s in (a, b)], rtol=1e-12)
    each = [cal.estimate(y, s, n_resamples=6, random_state=seed, **options) for s in (a, b)]
    np.testing.assert_allclose(found.centres, [one.corrected for one in each], rtol=1e-12)
    noise = []
    for s in (a, b):
        observed = cal.reliability_curve(y, s, estimator="adaptive", groups=group).at(s).observed
        noise.append(units.sums(np.sign(observed - s) * (y - observed)))
    r, z = min(np.corrcoef(noise)[0, 1], 0), stats.norm.ppf(0.975)
    for i, j in ((0, 1), (1, 0)):
        down, up = found.centres[i] - each[i].interval.low, each[j].interval.high - found.centres[j]
        shared = r if each[i].interval.low > 0 else -1
        assert found.se[i, j] == pytest.approx(np.sqrt(down**2 + up**2 - 2 * shared * down * up) / z)


def test_estimators_without_an_interval_have_that_of_the_default():
    y, a, b, group = two(n=200, in_group=4)
    found = [cal.compare_models(y, {"a": a, "b": b}, groups=group, estimator=e, n_resamples=9, scores=())
             for e in ("auto", CrossFit())]  # fmt: skip
    one, other = (f.difference("calibration_error", "a", "b") for f in found)
    assert one.interval == other.interval
    assert one.value != other.value


def test_errors_that_move_against_each_other():
    """Outcomes that happen more often by chance make the one error larger and the other smaller: their ends add up."""
    rng = np.random.default_rng(0)
    s = rng.random(1000)
    y = (rng.random(1000) < s).astype(int)
    models, units = judged(y, 0.8 * s, 0.8 * s + 0.2)
    found = Measures(models, units).calibration_error(
        ClassSpecific(), cal.EmpiricalBayes(), 2000, np.random.default_rng(0)
    )
    width = sum(np.ptp(cal.estimate(y, p).interval) for p in (0.8 * s, 0.8 * s + 0.2))
    assert (found.se[0, 1] + found.se[1, 0]) * stats.norm.ppf(0.975) == pytest.approx(width, rel=0.05)
