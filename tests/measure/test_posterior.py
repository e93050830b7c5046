"""Credible intervals of the default estimator."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.datasets import make_scores
from calibrant.estimators.base import ErrorDraws
from calibrant.estimators.laplace_draws import DrawnMaps
from calibrant.measure.posterior import SPIKE, credible, threshold, widening
from calibrant.measure.question import Question


def sample(n: int, kind: str, seed: int = 0):
    return make_scores(n, kind, random_state=seed)


def one(powers, log_odds: float, **about):
    return credible(ErrorDraws(np.asarray(powers, dtype=float)[None], np.array([log_odds])), asked(1, **about))


def asked(problems: int, **about) -> Question:
    given = {"notion": "classwise", "norm": 1, "average": "power", "dependent": False, "level": 0.9, "size": 500}
    shares = (1 / problems,) * problems
    return Question(labels=tuple(range(problems)), shares=shares, n_samples=500, exclusive=True, **given | about)


def test_calibrated_starts_at_exactly_zero_and_says_how_probable_that_is():
    data = sample(2000, "calibrated")
    e = cal.estimate(data.y_true, data.y_prob, random_state=0)
    assert e.interval.low == 0.0
    assert 0.0 < e.interval.high < 0.06
    assert e.calibrated > 2 * SPIKE  # the data speak for it
    assert e.to_dict()["calibrated"] == e.calibrated


def test_miscalibrated_excludes_zero_and_holds_the_truth():
    data = sample(3000, "overconfident")
    e = cal.estimate(data.y_true, data.y_prob, random_state=0)
    assert e.interval.low > 0
    assert e.interval.low < data.truth < e.interval.high
    assert e.calibrated < 1e-6
    assert e.interval.low < e.corrected < e.interval.high


def test_other_estimators_have_no_posterior():
    data = sample(300, "overconfident")
    e = cal.estimate(data.y_true, data.y_prob, estimator=cal.Binned(), random_state=0)
    assert e.calibrated is None
    assert e.to_dict()["calibrated"] is None


def test_repeats_with_a_seed_and_not_without():
    data = sample(300, "overconfident")
    a, b, c = (cal.estimate(data.y_true, data.y_prob, random_state=s).interval for s in (1, 1, 2))
    assert a == b
    assert a != c


def test_more_data_make_it_shorter_and_a_higher_level_longer():
    lengths = []
    for n in (300, 3000, 30_000):
        data = sample(n, "overconfident")
        low, high = cal.estimate(data.y_true, data.y_prob, random_state=0).interval
        lengths.append(high - low)
    assert lengths[0] > 2 * lengths[1] > 4 * lengths[2]
    narrow = cal.estimate(data.y_true, data.y_prob, level=0.5, random_state=0).interval
    assert narrow.high - narrow.low < 0.6 * lengths[2]


def test_two_classes_are_one_problem():
    data = sample(400, "shifted")
    P = np.column_stack([1 - data.y_prob, data.y_prob])
    single = cal.estimate(data.y_true, data.y_prob, random_state=0)
    both = cal.estimate(data.y_true, P, notion="classwise", random_state=0)
    assert both.calibrated == pytest.approx(single.calibrated, rel=0.3)
    assert both.interval.high == pytest.approx(single.interval.high, rel=0.15)


@pytest.mark.parametrize("norm", [1, 2, 3.5, 40, float("inf")])
def test_every_norm(norm):
    data = sample(500, "overconfident")
    e = cal.estimate(data.y_true, data.y_prob, norm=norm, random_state=0)
    assert 0 <= e.interval.low < e.interval.high <= 1
    assert e.interval.low < e.value < e.interval.high


def test_norms_are_ordered():
    data = sample(500, "overconfident")
    values = [cal.calibration_error(data.y_true, data.y_prob, norm=p) for p in (1, 1.5, 2, 4, 40, float("inf"))]
    assert values == sorted(values)


def test_spike_and_draws_mix():
    """With even odds against a prior of 0.1, one tenth of the mass is exactly 0."""
    draws = np.linspace(0.1, 0.3, 2001)
    found = one(draws, 0.0)
    assert found.calibrated == pytest.approx(SPIKE)
    assert SPIKE < threshold(500, 0.9) < 0.2
    # The draws without the spike, spread a little about 0.2: 10 % lie below, 5 % above.
    wide = widening(500)
    assert 1.05 < wide < widening(1000)
    assert found.interval == pytest.approx((0.2 - wide * 0.08, 0.2 + wide * 0.09), abs=1e-4)
    assert one(draws, -1.0).interval.low == 0.0  # the spike holds a quarter
    assert one(draws, 0.0, level=0.99).interval.low == 0.0  # a higher level asks for more evidence
    assert one(draws, -0.6, size=100).interval.low == 0.0  # and so does a smaller sample
    assert one(draws, -0.6, size=10_000).interval.low > 0
    assert one(draws, -3.0).median == 0.0
    assert one(draws, 3.0).median == pytest.approx(0.2, abs=0.01)


def test_corrected_draws_are_taken_as_they_are():
    draws = np.linspace(-0.1, 0.3, 4001)
    found = credible(ErrorDraws(draws[None], np.array([9.0]), corrected=True), asked(1))
    assert found.interval == pytest.approx((0.0, 0.28), abs=1e-3)  # 5 % lie above, and 5 % below -0.08: no error is
    found = credible(ErrorDraws(0.2 + draws[None], np.array([9.0]), corrected=True), asked(1))
    assert found.interval == pytest.approx((0.12, 0.48), abs=1e-3)
    assert found.median == pytest.approx(0.3, abs=1e-3)


def test_the_worst_of_several_errors_is_not_the_largest_draw():
    rng = np.random.default_rng(0)
    draws = ErrorDraws(0.1 + 0.01 * rng.standard_normal((50, 4000)), np.full(50, 9.0), corrected=True)
    low, high = credible(draws, asked(50, average="max", dependent=True)).interval
    assert low < 0.1 < high
    assert low > 0.06
    one_above = ErrorDraws(draws.powers + np.where(np.arange(50) == 7, 0.1, 0.0)[:, None], draws.log_odds, True)
    assert credible(one_above, asked(50, average="max", dependent=True)).interval.low > 0.15


@pytest.mark.slow
@pytest.mark.parametrize("average", ["max", "power"])
def test_classes_that_are_all_as_wrong_are_covered(average):
    """Ten classes, logits 1.6 times too sharp, each off by .032: the interval of the worst once missed every time."""
    rng = np.random.default_rng(0)
    logits = 1.5 * rng.normal(size=(200_000, 10))
    stated, right = (np.exp(v) / np.exp(v).sum(axis=1, keepdims=True) for v in (logits, logits / 1.6))
    order = np.argsort(stated[:, 0])
    truth = np.abs((right - stated)[order, 0].reshape(400, -1).mean(axis=1)).mean()
    held = []
    for seed in range(30):
        rows = rng.integers(len(stated), size=1000)
        y = (rng.random((1000, 1)) > right[rows].cumsum(axis=1)).sum(axis=1).clip(0, 9)
        asked_of = cal.notions.Classwise(average=average)
        low, high = cal.estimate(y, stated[rows], notion=asked_of, labels=range(10), random_state=seed).interval
        held.append(low <= truth <= high)
    assert np.mean(held) >= 0.85


@pytest.mark.parametrize("norm", [1.0, 2.0, 3.5])
def test_what_a_map_misses_is_added(norm):
    """Against a sum over draws, rows and what each row's outcome is beside the map; no prior is needed to see it."""
    rng = np.random.default_rng(0)
    gap, share = rng.normal(size=(1, 5, 3)), np.array([0.2, 0.3, 0.5])
    missed = 0.1 * rng.normal(size=(1, 5, 3))
    found = DrawnMaps(gap, np.broadcast_to(share, gap.shape), missed, np.zeros(1)).mean_power(norm)
    for d in range(5):
        moved = sum(
            w * (abs(g) ** norm + (abs(g + 1e-7) ** norm - abs(g - 1e-7) ** norm) / 2e-7 * m / w)
            for g, w, m in zip(gap[0, d], share, missed[0, d], strict=True)
        )
        assert found[0, d] == pytest.approx(moved, rel=1e-5)


@pytest.mark.slow
def test_jumps_are_covered():
    """Steps of .1, which no smooth map follows, from 5000 rows: 74 of 100 before maps were held against outcomes."""
    hits = []
    for seed in range(60):
        rng = np.random.default_rng([seed, 5])
        p = rng.random(5000)
        y = rng.random(5000) < np.clip(p + np.where(np.floor(4 * p) % 2 == 0, 0.1, -0.1), 0, 1)
        low, high = cal.estimate(y, p, n_resamples=100, random_state=seed).interval
        hits.append(low <= 0.1 <= high)
    assert np.mean(hits) >= 0.85


def test_threshold():
    assert threshold(500, 0.95) == pytest.approx(0.1)
    assert threshold(500 * 2**10, 0.95) == pytest.approx(0.1 * 2**1.5)
    assert threshold(500, 0.8) == pytest.approx(0.2)
    assert threshold(1e12, 0.95) == 0.3


@pytest.mark.slow
def test_calibrated_models_are_covered_at_the_level():
    """As many samples of a calibrated model as one in twenty, and not nearly none, exclude 0."""
    misses = 0
    for seed in range(300):
        data = sample(400, "calibrated", seed)
        misses += cal.estimate(data.y_true, data.y_prob, n_resamples=20, random_state=seed).interval.low > 0
    assert 0.01 < misses / 300 < 0.1


def test_upper_end_leaves_the_spike_out():
    draws = np.linspace(0.1, 0.3, 2001)
    assert one(draws, -20.0).interval.high == pytest.approx(one(draws, 20.0).interval.high)


def test_extreme_odds_do_not_overflow():
    assert one([0.1, 0.2], 1e6).calibrated == pytest.approx(0.0, abs=1e-200)
    assert one([0.1, 0.2], -1e6).calibrated == 1.0


def test_nothing_known():
    found = one([np.nan, np.nan], float("nan"))
    assert np.isnan(found.interval).all()
    assert np.isnan(found.median)


def test_evidence_of_classes_adds_up():
    draws = ErrorDraws(np.tile(np.linspace(0.1, 0.2, 100), (4, 1)), np.ones(4))
    free, dependent = (credible(draws, asked(4, dependent=shared)) for shared in (False, True))
    odds = [(1 - c.calibrated) / c.calibrated * SPIKE / (1 - SPIKE) for c in (free, dependent)]
    assert np.log(odds) == pytest.approx([4.0, 3.0])


@pytest.mark.slow
def test_coverage():
    """About 95 % of intervals cover the truth, as in benchmarks/coverage/coverage_tracks.md; two errors are 3.1 %."""
    hits = []
    for seed in range(200):
        data = sample(1000, ("overconfident", "underconfident")[seed % 2], seed + 500)
        low, high = cal.estimate(data.y_true, data.y_prob, n_resamples=80, random_state=seed).interval
        hits.append(low <= data.truth <= high)
    assert 0.90 <= np.mean(hits) <= 0.99
