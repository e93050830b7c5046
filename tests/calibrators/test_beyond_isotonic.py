"""Near-isotonic, Gaussian process, order-preserving, shared and composed maps, I-Max: second implementations."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression, lsq_linear, minimize
from scipy.special import expit, log_softmax, logit, softmax, xlogy
from sklearn.isotonic import IsotonicRegression

from calibrant import calibrators as c
from calibrant.calibrators import near_isotonic

from .table import several, two

SEEDS = st.integers(0, 2**31)
SCORES = np.arange(1, 1000) / 1000


def optimum(y, w, penalty):
    """By the dual: ``β = y - Dᵀu / w`` with multipliers 0 ≤ u ≤ λ of the falls ``D β``, by bounded least squares."""
    if len(y) == 1 or penalty == 0:
        return y
    down = np.eye(len(y) - 1, len(y)) - np.eye(len(y) - 1, len(y), 1)
    root = np.sqrt(w)
    u = lsq_linear(down.T / root[:, None], root * y, (0, penalty), method="bvls", tol=1e-14).x
    return y - down.T @ u / w


def outcomes(seed, n, kind):
    """Rows of n scores, a few of each, with weights: distinct scores, shares and weights as well."""
    rng = np.random.default_rng(seed)
    at = np.repeat(np.arange(n), rng.integers(1, 4, n)) if kind == "tied" else np.arange(n)
    y = rng.integers(0, 2, len(at))
    y[:2] = 0, 1
    w = rng.random(len(at)) + 0.1 if kind == "relative" else np.ones(len(at))
    total = np.bincount(at, w)
    return SCORES[at], y, w, np.bincount(at, w * y) / total, total


KINDS = st.sampled_from(["plain", "tied", "relative"])


@settings(max_examples=80, deadline=None)
@given(SEEDS, st.integers(2, 25), KINDS, st.integers(0, 3000).map(lambda thousandths: thousandths / 1000))
def test_near_isotonic_is_the_optimum(seed, n, kind, penalty):
    s, y, w, share, total = outcomes(seed, n, kind)
    fitted = c.NearIsotonic(penalty, clip=None).fit(s, y, w)
    wanted = optimum(share, total, penalty)
    np.testing.assert_allclose(fitted.predict_proba(SCORES[:n])[:, 1], wanted, atol=1e-7)
    assert fitted.n_pools_.tolist() == [1 + int((np.abs(np.diff(wanted)) > 1e-7).sum())]


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(2, 60), KINDS)
def test_ends_of_the_near_isotonic_path(seed, n, kind):
    s, y, w, share, total = outcomes(seed, n, kind)
    first, last = (c.NearIsotonic(x, clip=None).fit(s, y, w).predict_proba(SCORES[:n])[:, 1] for x in (0, 1e9))
    np.testing.assert_array_equal(first, share)
    np.testing.assert_allclose(last, isotonic_regression(share, weights=total).x, atol=1e-12)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@example(seed=9, n=9, kind="tied")
@given(SEEDS, st.integers(2, 9), KINDS)
def test_the_average_of_the_near_isotonic_path(seed, n, kind):
    """ENIR by hand: models where pieces merge, found on a fine search of the penalty, and weighed by their BIC."""
    s, y, w, share, total = outcomes(seed, n, kind)
    fitted = {name: c.NearIsotonic(name, clip=None).fit(s, y, w) for name in ("bic-average", "bic")}

    def pieces(penalty):
        return 1 + int((np.abs(np.diff(optimum(share, total, penalty))) > 1e-9).sum())

    def merges(low, high):  # penalties in (low, high] at which the number of pieces falls
        if pieces(low) == pieces(high):
            return []
        middle = (low + high) / 2
        return [high] if high - low < 1e-8 else merges(low, middle) + merges(middle, high)

    found = [0.0, *merges(0.0, float(total.sum()))]
    models = [x for x, after in zip(found, [*found[1:], np.inf], strict=True) if after - x > 1e-5]  # at one penalty
    maps = np.array([optimum(share, total, x) for x in models])
    inside = maps.clip(1e-300, 1 - 1e-16)
    fits = (total * (xlogy(share, inside) + xlogy(1 - share, 1 - inside))).sum(axis=1)
    bic = -2 * fits + np.log(max(total.sum(), 1)) * np.array(
        [pieces(x + 1e-7 * (x > 0)) for x in models]
    )  # once merged
    weight = np.exp((bic.min() - bic) / 2)
    mine = {name: one.predict_proba(SCORES[:n])[:, 1] for name, one in fitted.items()}
    np.testing.assert_allclose(mine["bic-average"], weight @ maps / weight.sum(), atol=1e-6)
    ties = np.flatnonzero(bic < bic.min() + 1e-6)
    assert min(np.abs(mine["bic"] - maps[i]).max() for i in ties) < 1e-6
    assert abs(fitted["bic-average"].weights_.sum() - 1) < 1e-12


@pytest.mark.parametrize("tile", [50, 1 << 15])
def test_models_that_cannot_matter_are_ruled_out_only_then(tile, monkeypatch):
    """Every model of a path by hand, also where pieces are worked on block by block."""
    monkeypatch.setattr(near_isotonic, "_TILE", tile)
    s, y, _ = two(1500, 3)
    y = y[np.argsort(s)]
    path = near_isotonic.PenaltyPath.of(np.ones(1500), y.astype(float))
    found = path.bic()
    models = [path.mean(path.penalties, row) for row in np.eye(len(path.penalties))]
    likelihood = np.array([(xlogy(y, p) + xlogy(1 - y, 1 - p)).sum() for p in models])
    wanted = -2 * likelihood + np.log(1500) * path.n_pools
    ruled_out = np.isinf(found)
    assert 10 < ruled_out.sum() < len(found) - 10
    np.testing.assert_allclose(found[~ruled_out], wanted[~ruled_out], rtol=1e-9)
    assert wanted[ruled_out].min() > wanted.min() + 80
    assert [1 + np.count_nonzero(np.abs(np.diff(p)) > 1e-12) for p in models] == path.n_pools.tolist()


def test_near_isotonic_keeps_a_fall_that_rows_insist_on():
    """Scores ranked wrongly in the middle: isotonic regression must pool them."""
    rng = np.random.default_rng(0)
    s = rng.random(4000)
    truth = np.where((s > 0.4) & (s < 0.6), 0.2, s)
    y = (rng.random(4000) < truth).astype(int)
    maps = c.NearIsotonic(12.0), c.IsotonicCalibrator()
    gap = [np.abs(one.fit(s, y).predict_proba(s)[:, 1] - truth).mean() for one in maps]
    assert gap[0] < 0.6 * gap[1]


def laplace(u, z, y, w, straight, bent, length):
    """Rasmussen & Williams, algorithm 3.1, with a prior mean: latent mode and log-evidence."""
    k = straight**2 * (1 + np.outer(u, u)) + bent**2 * np.exp(-0.5 * np.subtract.outer(u, u) ** 2 / length**2)
    a = np.zeros(len(u))
    for _ in range(100):
        p = expit(z + k @ a)
        h = w * p * (1 - p)
        b = h * (k @ a) + w * (y - p)
        new = b - np.sqrt(h) * np.linalg.solve(np.eye(len(u)) + np.sqrt(np.outer(h, h)) * k, np.sqrt(h) * (k @ b))
        if np.abs(k @ (new - a)).max() < 1e-12:
            break
        a = new
    f = k @ a
    h = w * expit(z + f) * expit(-z - f)
    likelihood = (w * (y * (z + f) - np.logaddexp(0, z + f))).sum()
    return (
        f,
        likelihood - 0.5 * a @ f - 0.5 * np.linalg.slogdet(np.eye(len(u)) + np.sqrt(np.outer(h, h)) * k)[1],
    )


@pytest.mark.parametrize(("n", "seed"), [(12, 0), (80, 1), (150, 2)])
def test_gaussian_process_is_laplaces_approximation(n, seed):
    """All of its points and none of the inducing ones: the same log odds, and the largest evidence of the grid."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1.5, n)
    y = (rng.random(n) < expit(z + 1.5 * np.sin(2 * z))).astype(float)
    w = rng.integers(1, 4, n).astype(float)
    fitted = c.GaussianProcessCalibrator(input="logit").fit(z, y.astype(int), w)
    u = (z - np.average(z, weights=w)) / np.sqrt(np.cov(z, fweights=w.astype(int), ddof=0))
    f, evidence = laplace(u, z, y, w, fitted.straight_sd_, fitted.bent_sd_, fitted.length_scale_)
    np.testing.assert_allclose(logit(fitted.predict_proba(z)[:, 1]), z + f, atol=2e-4)
    assert abs(fitted.log_evidence_ - evidence) < 1e-4
    every = [
        laplace(u, z, y, w, straight, bent, length)[1]
        for straight in (0.1, 0.3, 1, 3)
        for bent in (0, 0.1, 0.3, 1, 3)
        for length in (0.3, 0.6, 1.2, 2.4)
    ]
    assert abs(max(every) - evidence) < 1e-4


def test_few_rows_leave_scores_to_the_gaussian_process_prior():
    s, y, _ = two(6, 5)
    at = np.linspace(0.05, 0.95, 19)
    assert np.abs(c.GaussianProcessCalibrator().fit(s, y).predict_proba(at)[:, 1] - at).max() < 0.1


def test_the_gaussian_process_gathers_many_points():
    """Half of the points are nearly all; and ties are one point, however many rows they are."""
    s, y, _ = two(3000, 0, 0.5)
    at = np.linspace(0.02, 0.98, 49)
    every, some = (c.GaussianProcessCalibrator(m).fit(s, y).predict_proba(at)[:, 1] for m in (3000, 300))
    np.testing.assert_allclose(some, every, atol=0.01)
    rounded = np.round(s, 2)
    both = [c.GaussianProcessCalibrator(m).fit(rounded, y).predict_proba(at) for m in (200, 5000)]
    np.testing.assert_array_equal(*both)


def test_the_gaussian_process_follows_a_wave():
    """A map that no straight or rising family has."""
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, 20_000)
    truth = expit(z + 1.5 * np.sin(2 * z))
    p = c.GaussianProcessCalibrator(input="logit").fit(z, (rng.random(20_000) < truth).astype(int)).predict_proba(z)
    assert np.abs(p[:, 1] - truth).mean() < 0.015


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.integers(2, 8), st.sampled_from(["probability", "logit", "margin"]), st.integers(0, 8))
def test_the_order_of_classes_is_kept(seed, k, kind, n_knots):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(60, k)) * rng.choice([0.1, 1, 10], (60, 1))
    z[::9] = np.round(z[::9])  # ties
    y = np.concatenate([np.arange(k), rng.integers(0, k, 60 - k)])
    values = softmax(z, axis=1) if kind == "probability" else z
    fitted = c.OrderPreserving(n_knots, float(rng.choice([0.1, 10])), input=kind).fit(values, y)
    new = rng.normal(size=(60, k)) * 5
    for scores in (values, softmax(new, axis=1) if kind == "probability" else new):
        p = fitted.predict_proba(scores)
        logs = np.log(np.maximum(scores, 1e-12)) if kind == "probability" else scores
        apart = logs[:, :, None] - logs[:, None, :]
        gap = p[:, :, None] - p[:, None, :]
        assert (gap[apart >= 0] >= 0).all()
        assert (gap[(apart > 1e-9) & (p[:, :, None] > 1e-200)] > 0).all()
        np.testing.assert_array_equal(fitted.predict(scores), logs.argmax(axis=1))


@pytest.mark.parametrize(("n", "k", "n_knots", "alpha"), [(60, 3, 2, 1.0), (800, 5, 6, 10.0), (300, 2, 4, 0.0)])
def test_order_preserving_is_the_optimum(n, k, n_knots, alpha):
    p, y, _ = several(n, k, 1, 0.5)
    w = np.random.default_rng(0).random(n)
    fitted = c.OrderPreserving(n_knots, alpha).fit(p, y, w)
    behind = np.log(p.max(axis=1, keepdims=True)) - np.log(p)
    ends = np.append(fitted.knots_[1:], np.inf)
    before = np.stack([np.clip(behind, a, b) - a for a, b in zip(fitted.knots_, ends, strict=True)], axis=2)

    def objective(b):
        own = log_softmax(-before @ b, axis=1)[np.arange(n), y]
        return -np.average(own, weights=w) + ((b[0] - 1) ** 2 + alpha * (np.diff(b) ** 2).sum()) / (2 * w.sum())

    found = minimize(objective, np.ones(len(ends)), bounds=[(1e-3, None)] * len(ends), options={"ftol": 1e-15})
    assert objective(fitted.slopes_) <= found.fun + 1e-9
    np.testing.assert_allclose(softmax(-before @ fitted.slopes_, axis=1), fitted.predict_proba(p), atol=1e-12)


def test_order_preserving_maps_bend():
    """Over-confident in what is near the first class and right about the rest: no temperature says both."""
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, (6000, 6))
    behind = z.max(axis=1, keepdims=True) - z
    truth = softmax(-np.where(behind < 2, 0.3 * behind, behind - 1.4), axis=1)
    y = (rng.random((6000, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(0, 5)
    gap = [np.abs(kind(input="logit").fit(z, y).predict_proba(z) - truth).mean() for kind in TEMPERATURES]
    assert gap[0] < 0.3 * gap[1]


TEMPERATURES = (c.OrderPreserving, c.TemperatureScaling)


def test_scores_that_say_nothing_keep_their_order():
    same = np.full((40, 4), 0.25)
    np.testing.assert_allclose(c.OrderPreserving().fit(same, np.arange(40) % 4).predict_proba(same), same)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("kind", ["probability", "logit"])
def test_a_shared_map_is_one_of_all_entries(k, kind):
    """IRM of Mix-n-Match, with scikit-learn's isotonic regression."""
    p, y, _ = several(500, k, 2, 0.5)
    w = np.random.default_rng(0).integers(1, 4, 500)
    pooled = IsotonicRegression(out_of_bounds="clip").fit(p.ravel(), np.eye(k)[y].ravel(), np.repeat(w, k))
    wanted = pooled.predict(p.ravel()).reshape(p.shape) + 1e-9 * p
    one = c.OneVsRest(c.IsotonicCalibrator(clip=None), shared=True, input=kind)
    fitted = one.fit(p if kind == "probability" else np.log(p), y, w)
    found = fitted.predict_proba(p if kind == "probability" else np.log(p))
    np.testing.assert_allclose(found, wanted / wanted.sum(axis=1, keepdims=True), atol=1e-8)
    assert len(fitted.calibrators_) == 1
    np.testing.assert_array_equal(found.argmax(axis=1), p.argmax(axis=1))


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(2, 6))
def test_shared_rising_maps_keep_the_order(seed, k):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.5), 50).clip(1e-6)
    p /= p.sum(axis=1, keepdims=True)
    y = np.concatenate([np.arange(k), rng.integers(0, k, 50 - k)])
    shared = c.OneVsRest(c.IsotonicCalibrator(), shared=True)
    apart = p[:, :, None] - p[:, None, :] > 1e-4
    for one, least in ((shared, 0), (c.Composed([c.TemperatureScaling(), shared]), -1e-12)):
        q = one.fit(p, y).predict_proba(p)  # a temperature may be infinite, and make all classes equal
        assert (q[:, :, None] - q[:, None, :])[apart].min() > least


def test_composed_is_one_after_the_other():
    p, y, _ = several(600, 4, 0, 0.4)
    w = np.random.default_rng(1).random(600)
    both = c.Composed([c.TemperatureScaling(), c.OneVsRest(c.IsotonicCalibrator())], input="logit").fit(np.log(p), y, w)
    first = c.TemperatureScaling(input="logit").fit(np.log(p), y, w)
    between = first.predict_proba(np.log(p))
    second = c.OneVsRest(c.IsotonicCalibrator()).fit(between, y, w)
    np.testing.assert_array_equal(both.predict_proba(np.log(p)), second.predict_proba(between))


def information(edges, s, w):
    """Mutual information of bin and outcome, where outcomes happen with the scores as probabilities."""
    b = np.searchsorted(edges[1:-1], s, side="left")
    mass, up = np.bincount(b, w), np.bincount(b, w * s)
    mass, up = mass[mass > 0] / w.sum(), up[mass > 0] / w.sum()
    share = up.sum()
    joint = xlogy(up, up) + xlogy(mass - up, mass - up) - xlogy(mass, mass)
    return joint.sum() - xlogy(share, share) - xlogy(1 - share, 1 - share)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(2, 11), st.integers(1, 5), st.booleans())
def test_no_bins_tell_more_than_i_max(seed, n, n_bins, tied):
    """Every way to cut a few scores."""
    rng = np.random.default_rng(seed)
    s = rng.beta(0.5, 0.5, n)
    s = np.round(s, 1) if tied else s
    w = rng.random(n) + 0.1
    y = np.arange(n) % 2
    edges = c.HistogramBinning(n_bins, "i-max").fit(s, y, w).edges_
    distinct = np.unique(s)
    cuts = (distinct[1:] + distinct[:-1]) / 2
    most = max(information(np.array([0, *some, 1]), s, w) for some in combinations(cuts, len(edges) - 2))
    assert len(edges) - 1 == min(n_bins, len(distinct))
    assert information(edges, s, w) >= most - 1e-12


@pytest.mark.parametrize("n", [300, 5000])
@pytest.mark.parametrize("shape", [(0.5, 0.5), (1, 1), (0.4, 3)])
def test_i_max_tells_more_than_usual_bins_and_is_at_rest(n, shape):
    """At an optimum of the published alternation: each edge between the two means as it puts it."""
    rng = np.random.default_rng(n)
    s = rng.beta(*shape, n).clip(1e-9, 1 - 1e-9)
    y = (rng.random(n) < s).astype(int)
    ones = np.ones(n)
    found = {k: c.HistogramBinning(8, k).fit(s, y) for k in ("i-max", "quantile", "uniform")}
    told = {k: information(one.edges_, s, ones) for k, one in found.items()}
    assert told["i-max"] > max(told["quantile"], told["uniform"])
    edges = found["i-max"].edges_
    b = np.searchsorted(edges[1:-1], s, side="left")
    phi = logit(np.bincount(b, s) / np.bincount(b))
    # Patel et al. (2021), eq. 8, in logits.
    g = np.log(np.diff(np.logaddexp(0, phi))) - np.log(-np.diff(np.logaddexp(0, -phi)))
    np.testing.assert_allclose(logit(edges[1:-1]), g, atol=1e-6 if n <= 1024 else 0.05)


def test_i_max_bins_are_shared_by_classes():
    p, y, _ = several(3000, 5, 0, 0.5)
    one = c.OneVsRest(c.HistogramBinning(15, "i-max"), "none", shared=True).fit(p, y).calibrators_[0]
    alone = c.HistogramBinning(15, "i-max").fit(p.ravel(), np.eye(5, dtype=int)[y].ravel())
    np.testing.assert_array_equal(one.edges_, alone.edges_)
    np.testing.assert_array_equal(one.values_, alone.values_)


@pytest.mark.parametrize(
    ("calibrator", "error", "words"),
    [
        (c.NearIsotonic("aic"), ValueError, "select must be 'bic-average', 'bic' or a number >= 0; got 'aic'"),
        (c.NearIsotonic(-1), ValueError, "select must be"),
        (c.NearIsotonic(np.nan), ValueError, "select must be"),
        (c.NearIsotonic(True), ValueError, "select must be"),
        (c.NearIsotonic(interpolation="cubic"), ValueError, "interpolation must be one of"),
        (c.NearIsotonic(clip=0.5), ValueError, "clip must be"),
        (c.GaussianProcessCalibrator(5), ValueError, "max_points must be an int >= 10"),
        (c.GaussianProcessCalibrator(eps=0), ValueError, "eps must be"),
        (c.OrderPreserving(-1), ValueError, "n_knots must be an int >= 0"),
        (c.OrderPreserving(alpha=-1), ValueError, "alpha must be"),
        (c.OneVsRest(c.PlattScaling(), shared=1), TypeError, "shared must be True or False"),
        (c.Composed([]), TypeError, "calibrators must be a list of one or more"),
        (c.Composed([c.PlattScaling(), 3]), TypeError, "calibrators must be a calibrator"),
        (c.Composed(c.PlattScaling()), TypeError, "calibrators must be a list of one or more"),
    ],
)
def test_what_parameters_are_allowed(calibrator, error, words):
    s, y, _ = two(50)
    with pytest.raises(error, match=words):
        calibrator.fit(s, y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_names(n_classes):
    s, y, _ = several(120, n_classes, 0, 0.5)
    for name in ("near-isotonic", "gaussian-process", "order-preserving", "i-max", "pooled-isotonic", "composed"):
        assert c.named_calibrator(name, n_classes).fit(s, y).predict_proba(s).shape == (120, n_classes)
