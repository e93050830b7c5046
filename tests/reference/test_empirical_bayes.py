"""`EmpiricalBayes`: the model's parts against their definitions."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import foldnorm

import calibrant as cal
from calibrant.data.problem import Problem
from calibrant.estimators import empirical_bayes, laplace, ranges
from calibrant.estimators.empirical_bayes import TYPICAL, rank_cells
from calibrant.estimators.laplace import Prior
from calibrant.sums import GridMoments, logistic_fit


def cells_of(s, o, weights=None):
    grid = GridMoments.of(Problem(np.asarray(s, float), np.asarray(o, float), weights))
    ((_, cells),) = rank_cells(grid, 1 << 14)
    parts = (cells.count, cells.positive, cells.score, cells.rank, cells.apart, cells.size)
    return laplace.RankCells(*(values[0] for values in parts))


def drawn(n: int, seed: int = 0, power: float = 1.7):
    rng = np.random.default_rng(seed)
    s = rng.random(n)
    return s, (rng.random(n) < s**power).astype(float)


@pytest.mark.parametrize("n", [1, 2, 30, 1000])
def test_mode_is_the_mode(n):
    """The gradient of the penalised likelihood vanishes there."""
    cells = cells_of(*drawn(n))
    for component, posterior in zip(TYPICAL.components, laplace.fit(cells, TYPICAL), strict=True):
        sd = TYPICAL.spread(component, laplace.n_terms(cells.size))[cells.terms_used]
        chance = expit(cells.logit + cells.design @ posterior.mode)
        gradient = cells.design.T @ (cells.positive - cells.count * chance) - posterior.mode / sd**2
        assert np.abs(gradient * np.diag(posterior.root() @ posterior.root().T) ** 0.5).max() < 1e-4


@pytest.mark.parametrize(("n", "ends"), [(25, 0), (300, 0), (300, 1), (4000, 2)])
def test_the_whole_against_a_plain_newton_iteration(n, ends, monkeypatch):
    """Every column of the formula, plain matrix products, and Newton's method until nothing moves."""
    monkeypatch.setattr(ranges, "_ROWS", np.inf)  # the smooth map alone
    rng = np.random.default_rng(n)
    s = rng.beta(2, 2, n)
    s[: ends * (n // 10)] = np.arange(ends * (n // 10)) % ends
    o = (rng.random(n) < 0.1 + 0.8 * s**2).astype(float)
    cells = cells_of(s, o)
    assert cells.terms_used.size == laplace.n_terms(n) + 1 + ends
    cosines = np.cos(np.pi * np.outer(cells.rank, np.arange(laplace.n_terms(n))))
    share = cells.count / cells.count.sum()
    z = cells.logit - share @ cells.logit
    design = np.column_stack([cosines, z / np.sqrt(share @ z**2), cells.apart])
    means, evidences = [], []
    for component in TYPICAL.components:
        precision = TYPICAL.spread(component, laplace.n_terms(n))[: design.shape[1]] ** -2.0
        theta = np.zeros(precision.size)
        for _ in range(200):
            g = expit(cells.logit + design @ theta)
            hessian = (design.T * (cells.count * g * (1 - g))) @ design + np.diag(precision)
            step = np.linalg.solve(hessian, design.T @ (cells.positive - cells.count * g) - precision * theta)
            theta = theta + step * min(1, 0.5 / max(np.abs(design @ step).max(), 1e-300))
        eta = cells.logit + design @ theta
        gain = cells.positive * (eta - cells.logit) - cells.count * (
            np.logaddexp(0, eta) - np.logaddexp(0, cells.logit)
        )
        log_det = np.linalg.slogdet(hessian)[1] - np.log(precision).sum()
        evidences.append(np.log(component.weight) + gain.sum() - 0.5 * precision @ theta**2 - 0.5 * log_det)
        sd = np.sqrt(np.einsum("ij,jk,ik->i", design, np.linalg.inv(hessian), design)) * expit(eta) * expit(-eta)
        means.append(share @ foldnorm.mean(np.abs(expit(eta) - expit(cells.logit)) / sd, scale=sd))
    weight = np.exp(np.array(evidences) - max(evidences))
    wanted = float(weight @ means / weight.sum())
    assert cal.EmpiricalBayes().power(Problem(s, o), 1) == pytest.approx(wanted, rel=1e-4)


def test_parts_of_the_curvature():
    """Sums of cosines in place of products, and the variance of the logit as a sum of cosines."""
    cells = cells_of(*drawn(700))
    terms = laplace.n_terms(700)
    assert cells.waves == pytest.approx(np.cos(np.pi * np.outer(cells.rank, np.arange(2 * terms - 1))), abs=1e-13)
    rng = np.random.default_rng(1)
    chance, mass = rng.random(cells.count.size), 4 * np.ones(cells.count.size)
    counts = laplace.CosineCounts(*(a[None] for a in (cells.design.T, mass, mass, cells.waves, cells.others)))
    plain = (cells.design.T * (mass * chance * (1 - chance))) @ cells.design
    assert counts.information(chance[None])[0] == pytest.approx(plain, abs=1e-12)
    precision = plain + np.eye(len(plain))
    posterior = laplace.Posterior(np.zeros(len(plain)), precision, np.linalg.cholesky(precision), *np.zeros((2, 1)))
    wanted = np.einsum("ij,jk,ik->i", cells.design, np.linalg.inv(precision), cells.design)
    assert laplace._variance(cells, posterior) == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("n", [150, 300, 1200])
def test_the_slope_turns_the_map_of_few_rows_about_the_mean_logit_and_of_many_about_zero(n):
    rng = np.random.default_rng(n)
    cells = cells_of(expit(3 + rng.standard_normal(n)), np.arange(n) % 20 > 0)
    mean = np.average(cells.logit, weights=cells.count)
    sd = np.sqrt(np.average((cells.logit - mean) ** 2, weights=cells.count))
    assert cells.others[:, 0] == pytest.approx((cells.logit - mean * min(1, 300 / n)) / sd, abs=1e-10)


def test_a_temperature_of_scores_near_one_is_found():
    """A slope about the mean logit makes an offset of it, which is rare under the prior: half of it was read."""
    values, right = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        s = expit(7 + 1.5 * rng.standard_normal(1000))
        q = expit(0.72 * np.log(s / (1 - s)))
        y = (rng.random(1000) < q).astype(int)
        values.append(cal.calibration_error(y, s, labels=[0, 1], pos_label=1))
        right.append(np.mean(s - q))
    assert np.mean(values) > 0.65 * np.mean(right)


def test_root_is_a_root_of_the_covariance():
    cells = cells_of(*drawn(200))
    component, posterior = TYPICAL.components[2], laplace.fit(cells, TYPICAL)[2]
    chance = expit(cells.logit + cells.design @ posterior.mode)
    curvature = (cells.design.T * (cells.count * chance * (1 - chance))) @ cells.design
    curvature += np.diag(TYPICAL.spread(component, laplace.n_terms(200))[cells.terms_used] ** -2.0)
    assert posterior.root() @ posterior.root().T == pytest.approx(np.linalg.inv(curvature), rel=1e-2, abs=1e-4)


def test_evidence_of_a_single_direction():
    """Constant scores leave one direction, whose evidence is an integral over a line."""
    n, k, s = 400, 150, 0.3
    cells = cells_of(np.full(n, s), np.arange(n) < k)
    prior = Prior(((1.0, 1.2, 1.0),))
    (posterior,) = laplace.fit(cells, prior)
    sd = prior.spread(prior.components[0], laplace.n_terms(n))[cells.terms_used]
    row = cells.design[cells.count > 0][0]
    spread = float(np.sqrt(((row * sd) ** 2).sum()))
    base = float(cells.logit[cells.count > 0][0])

    def relative_likelihood(shift: float) -> float:
        gain = k * shift - n * (np.logaddexp(0, base + shift) - np.logaddexp(0, base))
        return float(np.exp(gain - shift**2 / (2 * spread**2)) / (spread * np.sqrt(2 * np.pi)))

    exact = quad(relative_likelihood, -3, 3, points=[0.3], limit=200)[0]
    assert float(posterior.log_evidence) == pytest.approx(np.log(exact), abs=0.02)


def test_posterior_matches_a_long_run_of_importance_sampling():
    """The mean of |gap| by the delta method, against the exact posterior of a one-component prior."""
    s, o = drawn(150, 3)
    prior = Prior(((0.7, 1.2, 1.0),))
    cells = cells_of(s, o)
    (posterior,) = laplace.fit(cells, prior)
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((40_000, posterior.mode.size))
    theta = posterior.mode + noise @ posterior.root().T
    sd = prior.spread(prior.components[0], laplace.n_terms(cells.size))[cells.terms_used]
    eta = cells.logit + theta @ cells.design.T
    log_target = (cells.positive * eta - cells.count * np.logaddexp(0, eta)).sum(1) - 0.5 * ((theta / sd) ** 2).sum(1)
    log_weight = log_target + 0.5 * (noise**2).sum(1)
    weight = np.exp(log_weight - log_weight.max())
    sizes = (np.abs(expit(eta) - expit(cells.logit)) * cells.count).sum(1) / cells.count.sum()
    exact = float(weight @ sizes / weight.sum())
    assert cal.EmpiricalBayes(prior).power(Problem(s, o), 1) == pytest.approx(exact, rel=0.06)


def test_many_at_once_is_each_alone():
    both = [cells_of(*drawn(100, seed, power=0.3 + 0.3 * seed)) for seed in range(12)]
    stacked = laplace.RankCells(
        *(np.stack([getattr(c, f) for c in both]) for f in ("count", "positive", "score", "rank", "apart")), 100.0
    )
    together = laplace.fit(stacked, TYPICAL)
    for i, cells in enumerate(both):
        for a, b in zip(together, laplace.fit(cells, TYPICAL), strict=True):
            assert a.mode[i] == pytest.approx(b.mode, abs=1e-11)
            assert float(a.log_evidence[i]) == pytest.approx(float(b.log_evidence), abs=1e-10)


def test_consistent():
    errors = {}
    for n in (300, 1_000_000):
        squares = []
        for seed in range(10 if n < 1000 else 1):
            rng = np.random.default_rng([n, seed])
            s = rng.random(n)
            wavy = np.clip(s + 0.1 * np.sin(6 * np.pi * s), 0, 1)
            got = cal.calibration_error(rng.random(n) < wavy, s, estimator=cal.EmpiricalBayes())
            squares.append((got - np.abs(wavy - s).mean()) ** 2)
        errors[n] = float(np.sqrt(np.mean(squares)))
    assert errors[1_000_000] < 0.001 < 0.01 < errors[300]
    calibrated = np.random.default_rng(0).random(1_000_000)
    y = np.random.default_rng(1).random(1_000_000) < calibrated
    assert cal.calibration_error(y, calibrated) < 0.003


def test_atoms_at_the_ends_say_nothing_of_their_neighbours():
    """Scores of exactly 0 and 1 that are wrong now and then, beside a calibrated model."""
    rng = np.random.default_rng(3)
    s = np.where(rng.random(20_000) < 0.3, rng.integers(0, 2, 20_000), rng.beta(2, 2, 20_000))
    chance = np.where(s == 0, 0.04, np.where(s == 1, 0.93, s))
    truth = float(np.abs(chance - s).mean())
    y = rng.random(20_000) < chance
    assert cal.calibration_error(y, s) == pytest.approx(truth, abs=0.006)
    blind = Prior(TYPICAL.components, ends=1e-6)
    assert cal.calibration_error(y, s, estimator=cal.EmpiricalBayes(blind)) > truth + 0.006


def piled(n, seed=0, share=0.03, at=0.99, right=0.4):
    """Calibrated confidences but for a score that many rows have."""
    rng = np.random.default_rng(seed)
    s = 0.5 + 0.5 * rng.beta(3, 1.2, n)
    y = rng.random(n) < s
    pile = rng.random(n) < share
    s[pile] = at
    y[pile] = rng.random(pile.sum()) < right
    return s, y


def test_a_score_that_stands_apart_says_nothing_of_its_neighbours(monkeypatch):
    samples = [piled(5000, seed) for seed in range(4)]

    def mean() -> float:
        return float(np.mean([cal.calibration_error(y, s) for s, y in samples]))

    assert mean() == pytest.approx(0.03 * 0.59, abs=0.006)
    monkeypatch.setattr(ranges, "_ROWS", np.inf)  # without a map that is calibrated elsewhere
    got = mean()
    assert got == pytest.approx(0.03 * 0.59, abs=0.011)
    monkeypatch.setattr(empirical_bayes, "_FEWEST", np.inf)
    assert mean() > got + 0.008


@pytest.mark.parametrize(
    ("share", "at", "many"),
    [(0.03, 0.99, 1), (0.03, 0.9901, 1), (0.005, 0.99, 0), (0.5, 0.99, 0), (0.03, 1.0, 1)],
)
def test_which_scores_stand_apart(share, at, many):
    """One with 1 to 20 % of the rows; an end counts once, as an end."""
    cells = cells_of(*piled(5000, share=share, at=at))
    assert cells.apart_used.size == many
    if many:
        assert (cells.count * cells.apart[:, cells.apart_used[0]]).sum() == pytest.approx(share * 5000, rel=0.25)


def test_no_score_stands_apart_where_all_are_heavy():
    rng = np.random.default_rng(0)
    s = rng.integers(1, 20, 3000) / 20
    assert cells_of(s, rng.random(3000) < s).apart_used.size == 0


def test_the_two_heaviest_stand_apart_whatever_the_order_of_rows():
    rng = np.random.default_rng(1)
    s = np.concatenate([rng.random(4000), np.repeat([0.3, 0.6, 0.8001], [90, 200, 150])])
    o = (rng.random(len(s)) < s).astype(float)
    order = rng.permutation(len(s))
    one, other = cells_of(s, o), cells_of(s[order], o[order])
    assert (one.count[:, None] * one.apart).sum(axis=0)[2:] == pytest.approx([200, 150], rel=0.05)
    assert np.array_equal(one.apart, other.apart)


def test_a_component_may_say_its_own_intercept_and_slope():
    prior = Prior(((0.5, 1.0, 1.0), (0.5, 1.0, 1.0, 0.8, 2.0)), intercept=0.3, slope=0.4)
    plain, own = (prior.spread(c, 4) for c in prior.components)
    assert plain[[0, 4]] == pytest.approx([0.15, 0.2])
    assert own[[0, 4]] == pytest.approx([0.4, 1.0])
    assert np.array_equal(plain[1:4], own[1:4])


@pytest.mark.parametrize("n", [0.5, 1, 2, 3])
def test_tiny_samples_read_about_the_prior(n):
    got = cal.EmpiricalBayes().power(Problem(np.array([0.4]), np.array([1.0]), np.array([n]), integral=False), 1)
    assert 0.01 < got < 0.2


def test_hopeless_models_read_high():
    s, o = np.repeat([0.01, 0.99], 500), np.repeat([1, 0], 500)
    assert cal.calibration_error(o, s, estimator=cal.EmpiricalBayes()) == pytest.approx(0.98, abs=0.02)


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: cal.EmpiricalBayes("narrow"), ValueError, "a Prior or one of 'typical', 'wide'; got 'narrow'"),
        (lambda: cal.EmpiricalBayes(0.5), ValueError, "got 0.5"),
        (lambda: Prior(()), ValueError, "components"),
        (lambda: Prior(((0.0, 1.0, 1.0),)), ValueError, "between 1e-06 and 100"),
        (lambda: Prior(((1.0, 1.0, -1.0),)), ValueError, "between 1e-06 and 100"),
        (lambda: Prior(((1.0, float("nan"), 1.0),)), ValueError, "at most 100"),
        (lambda: Prior(((1.0, 1.0, 1.0, 0.0),)), ValueError, "between 1e-06 and 100"),
        (lambda: Prior(((1.0, 1.0),)), TypeError, "amplitude, decay, weight"),
        (
            lambda: Prior(((1.0, 1.0, 1.0),), intercept=0.0),
            ValueError,
            "intercept must be a number >= 1e-06 and <= 100; got 0.0",
        ),
        (lambda: Prior(((1.0, 1.0, 1.0),), slope=-1.0), ValueError, "slope"),
        (lambda: Prior(((1.0, 1.0, 1.0),), ends=0.0), ValueError, "ends"),
    ],
)
def test_bad_input(make, error, says):
    with pytest.raises(error, match=says):
        make()


def test_weights_of_a_prior_are_scaled():
    assert [c.weight for c in Prior(((1, 1, 1), (2, 1, 3))).components] == [0.25, 0.75]


def test_warns_when_it_does_not_converge(monkeypatch):
    monkeypatch.setattr(logistic_fit, "_ITERATIONS", 1)
    s, o = drawn(200)
    with pytest.warns(cal.exceptions.ConvergenceWarning, match="did not converge in 1 steps"):
        cal.calibration_error(o.astype(int), s, pos_label=1)
