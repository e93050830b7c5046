"""Ranges with a coefficient of their own: against an exhaustive search, on known truths, and where there are none."""

import re

import numpy as np
import pytest
from scipy.special import expit, logsumexp

import calibrant as cal
from calibrant.data.problem import Problem
from calibrant.estimators import laplace, maps, ranges
from calibrant.estimators.empirical_bayes import TYPICAL, WIDE, rank_cells
from calibrant.sums import GridMoments

N = 20_000


def wrong_on(s, *parts):
    """Probabilities that differ from scores on some ranges (low, high, gap)."""
    return s + sum(np.where((s >= low) & (s < high), gap, 0.0) for low, high, gap in parts)


def sample(*parts, n=N, seed=0, scores=None):
    rng = np.random.default_rng(seed)
    s = rng.random(n) if scores is None else scores(rng, n)
    q = wrong_on(s, *parts)
    return (rng.random(n) < q).astype(int), s, float(np.abs(q - s).mean())


def cells_of(y, s):
    ((_, cells),) = rank_cells(GridMoments.of(Problem(s, y.astype(float))), 1 << 14)
    return cells


def test_the_best_range_against_all_of_them():
    """The same quadratic gain, written out for every range and shape; the search on a grid of places finds its peer."""
    y, s, _ = sample((0.3, 0.42, 0.2), n=4000)
    cells = cells_of(y, s)
    search = ranges._Search.of(cells, ranges._BASE_SD)
    column, gain, total = search.best(np.zeros((*cells.count.shape, 0)))
    design, precision = search.base[0], search.precision[0]
    theta = np.zeros(design.shape[1])
    count, positive, logit = cells.count[0], cells.positive[0], cells.logit[0]
    for _ in range(50):
        chance = expit(logit + design @ theta)
        hessian = (design.T * (count * chance * (1 - chance))) @ design + np.diag(precision)
        theta = theta + np.linalg.solve(hessian, design.T @ (positive - count * chance) - precision * theta)
    weight, inverse, m = count * chance * (1 - chance), np.linalg.inv(hessian), count.size
    gains, priors = [], []
    for shape in search.shapes[0]:
        for first in range(m):
            for last in range(first + 1, m + 1):
                b = np.where((np.arange(m) >= first) & (np.arange(m) < last), shape, 0.0)
                across = design.T @ (weight * b)
                h = b @ (weight * b) - across @ inverse @ across
                g = b @ (positive - count * chance)
                gains.append(0.5 * g**2 / (1 + h) - 0.5 * np.log1p(h))
                priors.append(-np.log(3 * np.log(m) * (last - first) * (m - (last - first) + 1.0)))
    scores = np.array(gains) + priors
    assert gain[0] == pytest.approx(gains[int(scores.argmax())], abs=0.3)
    assert total[0] == pytest.approx(logsumexp(scores), abs=1.0)
    inside = np.flatnonzero(column[0])
    assert abs(cells.score[0, inside[0]] - 0.3) < 0.03
    assert abs(cells.score[0, inside[-1]] - 0.42) < 0.03


@pytest.mark.parametrize(
    "parts",
    [((0.7, 0.75, -0.3),), ((0.45, 0.5, 0.2), (0.5, 0.55, -0.2)), ((0.5, 1.0, -0.08),), ((0.2, 0.3, 0.1),)],
    ids=["dip", "change of sign", "step", "small"],
)
def test_a_gap_on_a_part_of_the_scores(parts):
    """The number is that of the part; the interval covers it and excludes 0; a smooth map alone read too high."""
    y, s, truth = sample(*parts)
    found = cal.estimate(y, s, random_state=0)
    assert found.value == pytest.approx(truth, rel=0.3)
    assert 0 < found.interval.low < truth < found.interval.high


def test_a_smooth_map_alone_reads_a_dip_too_high(monkeypatch):
    y, s, truth = sample((0.7, 0.75, -0.3))
    monkeypatch.setattr(ranges, "_ROWS", np.inf)
    assert cal.calibration_error(y, s) > 1.6 * truth


def test_a_step_that_cosines_follow_as_well():
    """A gap on half of the scores: three cosines explain as much as a step, and find gaps where there are none."""
    found = [sample((0.55, 1.0, -0.06), seed=seed, scores=lambda rng, n: rng.beta(2.5, 2.5, n)) for seed in range(4)]
    assert np.mean([cal.calibration_error(y, s) / truth for y, s, truth in found]) < 1.25


@pytest.mark.parametrize("map_of", [lambda s: s, lambda s: s**1.4, lambda s: expit(0.5 * np.log(s / (1 - s)))])
@pytest.mark.parametrize("seed", range(3))
def test_smooth_maps_have_none(map_of, seed):
    rng = np.random.default_rng(seed)
    s = rng.random(N)
    cells = cells_of((rng.random(N) < map_of(s)).astype(int), s)
    for prior in (TYPICAL, WIDE):
        fitted = maps.FittedMaps.of(cells, prior)
        if fitted.local is not None:  # it was tried, and has next to no weight
            assert fitted._weight(fitted.log_mean_evidence(), fitted.local.log_mean_evidence()).max() < 0.2


def test_none_in_few_rows():
    y, s, _ = sample((0.5, 0.9, -0.4), n=499)
    cells = cells_of(y, s)
    assert not ranges.local_ranges(cells, np.array([1e9])).at.size


def test_problems_side_by_side_are_as_one_by_one():
    """Some with ranges, some without, and one in few rows."""
    each = [sample(*parts, seed=k) for k, parts in enumerate([((0.7, 0.75, -0.3),), (), ((0.1, 0.3, 0.2),), ()])]
    problem = Problem.samples(np.stack([s for _, s, _ in each]), np.stack([y for y, _, _ in each]))
    estimator = cal.EmpiricalBayes()
    together = estimator.read(estimator.summarize(problem), 1)
    assert together == pytest.approx([cal.calibration_error(y, s) for y, s, _ in each], rel=1e-9)
    drawn = estimator._draws(estimator.summarize(problem), 1, 400, np.random.default_rng(0)).powers
    for row, (y, s, _) in zip(drawn, each, strict=True):
        one = cal.estimate(y, s, random_state=0).interval
        assert np.quantile(row, [0.025, 0.975]) == pytest.approx(tuple(one), abs=0.004)


def test_rows_in_another_order_and_rows_that_count_twice():
    y, s, _ = sample((0.7, 0.75, -0.3), n=4000)
    order = np.random.default_rng(5).permutation(len(s))
    value = cal.calibration_error(y, s)
    assert cal.calibration_error(y[order], s[order]) == pytest.approx(value, rel=1e-9)
    twice = cal.calibration_error(np.repeat(y, 2), np.repeat(s, 2))
    assert cal.calibration_error(y, s, sample_weight=np.full(len(s), 2.0)) == pytest.approx(twice, rel=1e-9)


@pytest.mark.parametrize("norm", [1, 2, 3, np.inf])
def test_every_norm(norm):
    y, s, _ = sample((0.7, 0.75, -0.3))
    truth = 0.3 if np.isinf(norm) else 0.3 * 0.05 ** (1 / norm)
    assert cal.calibration_error(y, s, norm=norm) == pytest.approx(truth, rel=0.25)


def test_rows_in_groups():
    """What groups have in common is no range; a dip is, from fewer rows than there are."""
    rng = np.random.default_rng(2)
    group = np.repeat(np.arange(2000), 10)
    s = rng.random(N)
    y = (rng.random(N) < expit(np.log(s / (1 - s)) + 0.5 * rng.standard_normal(2000)[group])).astype(int)
    assert cal.estimate(y, s, groups=group, random_state=0).interval.low == 0
    dip = (rng.random(N) < wrong_on(s, (0.7, 0.75, -0.3))).astype(int)
    assert cal.calibration_error(dip, s, groups=group) == pytest.approx(0.015, rel=0.3)


def test_a_heavy_score_beside_a_calibrated_rest():
    rng = np.random.default_rng(1)
    s = np.where(rng.random(N) < 0.15, 0.5, rng.random(N))
    y = (rng.random(N) < np.where(s == 0.5, 0.62, s)).astype(int)
    found = cal.estimate(y, s, random_state=0)
    assert found.value == pytest.approx(0.018, rel=0.25)
    assert found.interval.low < 0.018 < found.interval.high


def test_the_curve_and_the_verdict_name_the_range():
    y, s, _ = sample((0.7, 0.75, -0.3))
    curve = cal.reliability_curve(y, s)
    gap = curve.observed - curve.scores
    inside, outside = (curve.scores > 0.71) & (curve.scores < 0.74), (curve.scores < 0.68) | (curve.scores > 0.77)
    assert gap[inside] == pytest.approx(-0.3, abs=0.06)
    assert np.abs(gap[outside]).max() < 0.04
    low, high = map(float, re.search(r"cores from (\S+) to (\S+) \(", cal.report(y, s).verdict).groups())
    overlap = min(high, 0.75) - max(low, 0.7)
    assert overlap / (max(high, 0.75) - min(low, 0.7)) >= 0.8


def test_laplace_counts_ranges_in_its_prior():
    component = TYPICAL.components[0]
    spread = TYPICAL.spread(component, 10)
    assert spread.size == 10 + 1 + laplace.APART + laplace.RANGES
    assert (spread[-laplace.RANGES :] == laplace.RANGE_SD).all()


def test_no_draw_is_taken_from_a_model_that_was_not_drawn():
    """Draws are maps of all rows, whatever the weight of a model: next to 0, next to 1, or between."""
    each = [sample(*parts, seed=k, n=5000) for k, parts in enumerate([((0.7, 0.75, -0.3),), ((0.3, 0.4, 0.1),)] * 4)]
    problem = Problem.samples(np.stack([s for _, s, _ in each]), np.stack([y for y, _, _ in each]))
    estimator = cal.EmpiricalBayes()
    for _, cells in rank_cells(estimator.summarize(problem), 1 << 14):
        drawn = maps.FittedMaps.of(cells, WIDE).draw_gaps(200, np.random.default_rng(0))
        assert drawn.share.sum(axis=-1) == pytest.approx(1)
