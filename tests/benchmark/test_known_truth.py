"""Mixtures, models, pools and truths against independent computations."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

from calibrant.benchmark import Config, Distribution, pool
from calibrant.benchmark.mixtures import ClassMixture, train, training_set
from calibrant.benchmark.pool import TRUTH_BINS, TruthBins, draw_pool, mixture_of, truth_of

TINY = Config(
    classes=(2, 3), dimensions=(2,), mixtures=1, trainings=1, pool=9000, rows=6000, sizes=(30, 100), sets=40, seed=3
)
MODELS = {
    "logistic": lambda seed: LogisticRegression(random_state=seed),
    "bayes": lambda seed: GaussianNB(),
    "svc": lambda seed: CalibratedClassifierCV(SVC(random_state=seed), ensemble=False),
    "forest": lambda seed: RandomForestClassifier(random_state=seed),
}


@pytest.mark.parametrize(("classes", "dimensions"), [(2, 1), (2, 2), (5, 3), (7, 7)])
def test_posterior_is_bayes_rule(classes, dimensions):
    rng = np.random.default_rng(classes + dimensions)
    mixture = ClassMixture.draw(classes, dimensions, rng)
    X, _ = mixture.sample(1500, rng)
    density = np.zeros((1500, classes))
    for c in range(classes):
        for mean, factor in zip(mixture.means[c], mixture.factors[c], strict=True):
            density[:, c] += multivariate_normal(mean, factor.T @ factor).pdf(X) / 4
    wanted = density / density.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(mixture.posterior(X), wanted, rtol=0, atol=1e-7)


def test_posterior_far_from_every_mode():
    mixture = ClassMixture.draw(3, 2, np.random.default_rng(0))
    far = mixture.posterior(np.array([[300.0, -200.0], [-1e4, 1e4]]))
    assert np.isfinite(far).all()
    np.testing.assert_allclose(far.sum(axis=1), 1)


def test_labels_are_drawn_from_the_posterior():
    rng = np.random.default_rng(1)
    mixture = ClassMixture.draw(4, 2, rng)
    X, y = mixture.sample(200_000, rng)
    p = mixture.posterior(X)
    hit = y[:, None] == np.arange(4)
    for power in (0, 1, 2):  # residuals are uncorrelated with functions of the posterior
        z = ((hit - p) * p**power).sum(axis=0) / np.sqrt((p * (1 - p) * p ** (2 * power)).sum(axis=0))
        assert np.abs(z).max() < 4
    component_mean = mixture.means.mean(axis=(0, 1))
    assert np.abs(X.mean(axis=0) - component_mean).max() < 0.01


def test_means_lie_where_the_mode_says():
    low = {mode: mixture_of(Config(mode=mode), Distribution(7, 7, 0, 0, "bayes")).means for mode in
           ("corrected", "as-published")}  # fmt: skip
    assert 0 <= low["corrected"].min() < 0.02
    assert -1 <= low["as-published"].min() < -0.96
    assert all(0.96 < means.max() <= 1 for means in low.values())


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("classes", [2, 5])
def test_predictions_are_those_of_scikit_learn(model, classes):
    rng = np.random.default_rng(5)
    mixture = ClassMixture.draw(classes, 3, rng)
    X, y = training_set(mixture, 200, rng)
    some, _ = mixture.sample(3000, rng)
    wanted = MODELS[model](7).fit(X, y).predict_proba(some)
    np.testing.assert_allclose(train(model, X, y, 7)(some), wanted, rtol=0, atol=0)


def test_training_sets_hold_every_class():
    mixture = ClassMixture.draw(7, 2, np.random.default_rng(0))
    counts = [np.bincount(training_set(mixture, 45, np.random.default_rng(s))[1], minlength=7) for s in range(20)]
    assert np.min(counts) >= 5
    assert np.min([np.bincount(mixture.sample(45, np.random.default_rng(s))[1], minlength=7) for s in range(20)]) < 5


@pytest.mark.parametrize("distribution", TINY.distributions, ids=lambda d: d.name)
def test_pool_against_a_plain_computation(monkeypatch, distribution):
    """The same draws in loops over bins, with scikit-learn's own predictions."""
    monkeypatch.setattr(pool, "CHUNK", 2000)
    found = draw_pool(TINY, distribution)
    mixture = mixture_of(TINY, distribution)
    X, y = training_set(mixture, TINY.train_size, TINY.rng_of_training(distribution))
    model = MODELS[distribution.model](TINY.model_seed(distribution)).fit(X, y)
    rng = TINY.rng_of_pool(distribution)
    chunks = [mixture.sample(n, rng) for n in (2000, 2000, 2000, 2000, 1000)]
    labels = np.concatenate([y for _, y in chunks])
    scores = np.concatenate([model.predict_proba(X) for X, _ in chunks]).astype(np.float32)
    eta = np.concatenate([mixture.posterior(X) for X, _ in chunks])
    half = np.concatenate([np.full(len(y), i % 2) for i, (_, y) in enumerate(chunks)])
    np.testing.assert_array_equal(found.labels, labels[:6000])
    np.testing.assert_allclose(found.scores, scores[:6000], rtol=0, atol=6e-8)
    c = distribution.classes
    by_label, by_posterior, squares = [], [], []
    for k in range(c + 1):
        winner = scores.argmax(axis=1) if k == c else np.full(9000, k)
        s = scores[np.arange(9000), winner].astype(float)
        gap = eta[np.arange(9000), winner] - s
        hit = (labels == winner) - s
        l1 = l2 = published = 0.0
        for b in range(TRUTH_BINS):
            inside = (s * TRUTH_BINS >= b) & ((s * TRUTH_BINS < b + 1) | (b == TRUTH_BINS - 1))
            m = int(inside.sum())
            l1 += abs(gap[inside].sum()) / 9000
            published += abs(hit[inside].sum()) / 9000
            if m > 1:  # pairs of different rows
                g = gap[inside]
                l2 += (g.sum() ** 2 - (g**2).sum()) / (m - 1) / 9000
        by_posterior.append(l1)
        by_label.append(published)
        squares.append(l2)
        rows_of_halves = [np.count_nonzero(half == h) for h in (0, 1)]
        np.testing.assert_allclose(found.truth.sums[:, k, :, 0].sum(axis=1), rows_of_halves)
    for notion, take in (("confidence", slice(c, None)), ("classwise", slice(0, c))):
        first, second = truth_of(found.truth, notion, 1), truth_of(found.truth, notion, 2)
        assert first.posterior_truth == pytest.approx(np.mean(by_posterior[take]), abs=1e-6)
        assert first.label_truth == pytest.approx(np.mean(by_label[take]), abs=1e-6)
        assert second.truth == pytest.approx(np.sqrt(max(np.mean(squares[take]), 0)), abs=1e-6)
        assert first.truth <= first.posterior_truth + 1e-12


def pool_with(gap, spread, n=400_000, seed=0):
    """Truth bins of a class whose posterior is score + gap(score), plus or minus something with mean 0."""
    rng = np.random.default_rng(seed)
    bins = TruthBins.empty(2)
    for half in (0, 1):
        s = rng.random(n).astype(np.float32)
        centre = s + gap(s.astype(float))
        eta = centre + spread * np.minimum(centre, 1 - centre) * rng.choice([-1, 1], n)
        labels = (rng.random(n) < eta).astype(np.uint8)
        both = np.stack([1 - s, s], axis=1)
        bins.add(half, both, np.stack([1 - eta, eta], axis=1), labels)
    return bins


def test_truth_of_a_known_map():
    bins = pool_with(lambda s: s**2 - s, 0.8)
    assert truth_of(bins, "classwise", 1).truth == pytest.approx(1 / 6, abs=1e-3)
    assert truth_of(bins, "classwise", 2).truth == pytest.approx(np.sqrt(1 / 30), abs=1e-3)
    wavy = pool_with(lambda s: 0.02 * np.sin(20 * np.pi * s) * (s > 0.05) * (s < 0.95), 0.8)
    assert truth_of(wavy, "classwise", 1).truth == pytest.approx(0.02 * 2 / np.pi * 0.9, abs=6e-4)
    assert truth_of(wavy, "classwise", 1).posterior_truth > 0.0135


def test_truth_of_a_calibrated_score_has_no_noise_floor():
    """The posterior spreads around the score: plain bins read that spread, and so did the published truth."""
    bins = pool_with(lambda s: 0 * s, 0.9)
    for norm, plain in ((1, 0.008), (2, 0.009)):
        truth = truth_of(bins, "classwise", norm)
        assert truth.truth < 1.5e-3
        assert truth.posterior_truth > plain
        assert truth.label_truth > plain


def test_truth_rejects_other_norms():
    with pytest.raises(ValueError, match="norm must be 1 or 2"):
        truth_of(pool_with(lambda s: 0 * s, 0, n=100), "confidence", 3)


def test_truth_needs_both_halves():
    bins = pool_with(lambda s: 0 * s, 0, n=100)
    bins.sums[1] = 0
    with pytest.raises(ValueError, match="both halves"):
        truth_of(bins, "confidence", 1)


def test_a_pool_of_less_than_a_chunk_has_two_halves():
    drawn = draw_pool(TINY, TINY.distributions[0])
    assert drawn.truth.sums[:, :, :, 0].sum(axis=2).tolist() == [[4500.0] * 3] * 2


@pytest.mark.slow
def test_evaluation_sets_of_a_size_share_no_row():
    for config in (Config(), Config.quick(), TINY):
        for size in config.sizes:
            rows = config.rows_of(size)
            assert rows.shape == (config.sets, size)
            assert len(np.unique(rows)) == rows.size
            assert 0 <= rows.min() <= rows.max() < config.rows
    starts = [int(Config().rows_of(size)[0, 0]) for size in Config().sizes]
    assert len(set(starts)) == 20


def test_seeds_are_of_a_cell():
    config = Config()
    d = Distribution(5, 2, 3, 1, "svc")
    first = config.rng_of_pool(d).integers(2**62)
    assert first == Config(mixtures=4, sizes=(30,)).rng_of_pool(d).integers(2**62)
    others = [
        Config(seed=1).rng_of_pool(d),
        Config(mode="as-published").rng_of_pool(d),
        config.rng_of_pool(Distribution(5, 2, 3, 1, "forest")),
        config.rng_of_pool(Distribution(5, 2, 3, 2, "svc")),
        config.rng_of_pool(Distribution(5, 2, 2, 1, "svc")),
        config.rng_of_training(d),
        config.rng_of_mixture(d),
    ]
    assert len({first, *(int(rng.integers(2**62)) for rng in others)}) == 8
    assert config.model_seed(d) != config.model_seed(Distribution(5, 2, 3, 1, "forest"))
    same = [Distribution(5, 2, 3, t, m) for t in range(3) for m in ("svc", "bayes")]
    assert len({int(config.rng_of_mixture(x).integers(2**62)) for x in same}) == 1


def test_the_experiment_is_the_paper_s():
    config = Config()
    assert len(config.distributions) == len(set(config.shuffled)) == 540
    assert config.sizes[0] == 30
    assert config.sizes[-1] == 5000
    assert len(config.sizes) == 20
    assert list(config.shuffled) != list(config.distributions)
    assert config.shuffled == Config().shuffled


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": "wrong"}, "mode must be one of 'corrected', 'as-published'"),
        ({"seed": -1}, "seed must be an int >= 0"),
        ({"models": ("tree",)}, "models must be some of"),
        ({"classes": (1,)}, "classes must be numbers >= 2"),
        ({"sets": 0}, "sets must be an int >= 1"),
        ({"sizes": (30, 30)}, "sizes must be different numbers"),
        ({"train_size": 60}, "train_size must be at least ten times"),
        ({"rows": 10_000}, "rows must hold 200 sets of 5000 rows"),
        ({"pool": 900_000}, "lie within the pool"),
    ],
)
def test_bad_configurations(options, words):
    with pytest.raises(ValueError, match=words):
        Config(**options)
