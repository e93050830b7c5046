"""`DirichletKernel` against values of the published code, and its debiased squares against known truth."""

import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import calibrant as cal
from calibrant.estimators import simplex_kernel

#: The first rows of a sample of K = 3, logits rounded to two digits, and what a plain double loop makes of them.
LOGITS = np.array(
    [
        [0.35, -1.2, 0.84],
        [1.7, 0.02, -0.66],
        [-0.43, 0.57, 0.11],
        [2.1, -2.4, 0.3],
        [-1.05, -0.31, 1.49],
        [0.0, 0.9, -1.8],
        [0.62, 0.6, 0.58],
        [-2.2, 1.3, 1.1],
    ]
)
LABELS = np.array([2, 0, 1, 0, 2, 1, 1, 2])


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def sample(k, n, rng, temperature=1.0):
    """Uniform on the simplex, labels drawn; the scores are sharpened by a temperature."""
    truth = rng.dirichlet(np.ones(k), n)
    y = (rng.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    return y, softmax(np.log(truth) / temperature), truth


def published(f, y, h, p):
    """The estimator as the paper prints it, by sums over all pairs."""
    from scipy.special import gammaln

    n, k = f.shape
    total = 0.0
    for j in range(n):
        log_k = [
            (f[i] / h) @ np.log(f[j]) - (gammaln(f[i] / h + 1).sum() - gammaln(1 / h + k)) for i in range(n) if i != j
        ]
        w = np.exp(np.array(log_k) - max(log_k))
        expected = w @ np.eye(k)[np.delete(y, j)] / w.sum()
        total += (np.abs(expected - f[j]) ** p).sum()
    return total / n


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("h", [0.02, 0.3])
def test_as_published(h, p):
    f = softmax(LOGITS)
    got = cal.calibration_error(LABELS, f, notion="canonical", estimator=cal.estimators.DirichletKernel(h), norm=p)
    assert got**p == pytest.approx(published(f, LABELS, h, p), abs=1e-12)


@pytest.mark.parametrize("h", [1e-4, 0.02, 0.3])
@pytest.mark.parametrize("debias", [None, "ratio", "square", "cross"])
@pytest.mark.parametrize("orientation", ["data", "query"])
def test_blocks_of_weights_make_no_difference(orientation, debias, h, monkeypatch):
    """Many blocks a row, with ties and repeats: sums are scaled down as larger weights come, as if seen whole."""
    rng = np.random.default_rng(5)
    y, f, _ = sample(3, 90, rng)
    y, f = np.concatenate([y, 2 - y[:20]]), np.concatenate([f, f[:20]])
    w = rng.integers(1, 4, 110)
    estimator = cal.estimators.DirichletKernel(h, orientation, debias)
    problem = {"notion": "canonical", "estimator": estimator, "norm": 2, "sample_weight": w, "labels": range(3)}
    whole = cal.calibration_error(y, f, **problem)
    if debias is None and orientation == "data":
        repeated = published(np.repeat(f, w, axis=0), np.repeat(y, w), h, 2)
        assert whole**2 == pytest.approx(repeated, rel=1e-9)
    monkeypatch.setattr("calibrant.estimators.simplex_kernel._HIGH", 5)
    monkeypatch.setattr("calibrant.estimators.simplex_kernel._WIDE", 7)
    assert cal.calibration_error(y, f, **problem) == pytest.approx(whole, rel=1e-10)


@pytest.mark.parametrize("orientation", ["data", "query"])
def test_rows_far_from_all_others(orientation, monkeypatch):
    """Their weights beside that of the row itself are nothing: they are summed relative to the largest."""
    rng = np.random.default_rng(8)
    y, f, _ = sample(4, 150, rng)
    estimator = cal.estimators.DirichletKernel(1e-4, orientation, "square")
    w = rng.integers(1, 3, 150)
    problem = {"notion": "canonical", "estimator": estimator, "norm": 2, "labels": range(4), "sample_weight": w}
    seen = []
    careful = simplex_kernel._careful_sums
    monkeypatch.setattr(simplex_kernel, "_careful_sums", lambda p, *a: seen.extend(p.rows) or careful(p, *a))
    value = cal.calibration_error(y, f, **problem)
    assert 5 < len(seen) < 150
    monkeypatch.setattr(simplex_kernel, "_LOST", np.inf)
    assert cal.calibration_error(y, f, **problem) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("orientation", ["data", "query"])
@pytest.mark.parametrize("debias", [None, "square"])
def test_no_weight_is_a_subnormal_number(orientation, debias, monkeypatch):
    """With them a processor is several times slower. Weights of nothing but for those change no digit."""
    rng = np.random.default_rng(4)
    y, f, _ = sample(6, 120, rng, temperature=0.3)
    seen = []
    for name in ("add", "add_squares"):
        for kind in (simplex_kernel._Values, simplex_kernel._Classes):
            was = getattr(kind, name)
            monkeypatch.setattr(
                kind, name, lambda self, out, w, part, was=was: seen.append(w.copy()) or was(self, out, w, part)
            )
    problem = {"notion": "canonical", "norm": 2, "labels": range(6)}
    estimator = cal.estimators.DirichletKernel(0.004, orientation, debias)
    value = cal.calibration_error(y, f, estimator=estimator, **problem)
    weights = np.concatenate([w.ravel() for w in seen])
    assert not ((weights > 0) & (weights < np.finfo(float).tiny)).any()
    monkeypatch.setattr(simplex_kernel, "_LEAST", -np.inf)
    seen.clear()
    assert cal.calibration_error(y, f, estimator=estimator, **problem) == pytest.approx(value, rel=1e-14)
    weights = np.concatenate([w.ravel() for w in seen])
    assert ((weights > 0) & (weights < np.finfo(float).tiny)).any()


def test_threads_change_nothing(monkeypatch):
    rng = np.random.default_rng(9)
    y, f, _ = sample(5, 1600, rng)
    estimator = cal.estimators.DirichletKernel(0.05, "query", "cross", residual=True)
    with threadpool_limits(1):
        assert simplex_kernel.allowed() == 1
        alone = cal.calibration_error(y, f, notion="canonical", estimator=estimator)
    monkeypatch.setattr(simplex_kernel, "allowed", lambda: 2)
    seen = set()
    simplex_kernel.in_threads(lambda start: seen.add(threading.get_ident()) or time.sleep(0.01), range(20), 1 << 30)
    assert len(seen) == 2
    assert cal.calibration_error(y, f, notion="canonical", estimator=estimator) == alone


def test_an_error_in_a_thread_is_raised(monkeypatch):
    monkeypatch.setattr(simplex_kernel, "allowed", lambda: 2)
    with pytest.raises(ZeroDivisionError):
        simplex_kernel.in_threads(lambda start: 1 // start, range(3), 1 << 30)


def test_marginal_and_confidence_are_the_binary_version():
    f = softmax(LOGITS)
    estimator = cal.estimators.DirichletKernel(0.1)
    marginal = cal.calibration_error(LABELS, f, notion="classwise", estimator=estimator)
    each = [published(np.column_stack([1 - f[:, c], f[:, c]]), (c == LABELS).astype(int), 0.1, 1) / 2 for c in range(3)]
    assert marginal == pytest.approx(np.mean(each), abs=1e-12)
    top = f.max(axis=1)
    confidence = published(np.column_stack([1 - top, top]), (f.argmax(axis=1) == LABELS).astype(int), 0.1, 1) / 2
    assert cal.calibration_error(LABELS, f, estimator=estimator) == pytest.approx(confidence, abs=1e-12)


def test_squares_are_unbiased_where_the_kernel_cannot_blur():
    """Three points of the simplex, far apart: the kernel sees one point, and the square is that of its own mean."""
    rng = np.random.default_rng(4)
    points = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]])
    chances = np.array([[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.05, 0.05, 0.9]])
    truth = ((chances - points) ** 2).sum(axis=1).mean()
    found = {name: [] for name in ("square", "cross", "plug-in")}
    for _ in range(400):
        which = np.repeat(np.arange(3), 8)
        y = (rng.random((24, 1)) > chances[which].cumsum(axis=1)).sum(axis=1)
        for name in found:
            debias = None if name == "plug-in" else name
            estimator = cal.estimators.DirichletKernel(0.001, "query", debias)
            problem = {"notion": "canonical", "estimator": estimator, "labels": [0, 1, 2]}
            if debias is None:
                value = cal.calibration_error(y, points[which], norm=2, **problem) ** 2
            else:
                value = cal.squared_calibration_error(y, points[which], **problem)
            found[name].append(value)
    for name in ("square", "cross"):
        se = np.std(found[name]) / np.sqrt(400)
        assert abs(np.mean(found[name]) - truth) < 4 * se
    assert np.mean(found["plug-in"]) > truth + 10 * np.std(found["plug-in"]) / np.sqrt(400)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "n", "bar", "repetitions"), [(4, 2000, 0.10, 24), (8, 5000, 0.15, 4)])
def test_squared_error_of_the_default(k, n, bar, repetitions):
    """Uniform on the simplex, temperature 0.6 twice: the mean of the default's squares lies near the truth."""
    rng = np.random.default_rng(k)
    big_y, big_f, big_truth = sample(k, 400_000, rng)
    del big_y, big_f
    once = softmax(np.log(big_truth) / 0.6)
    truth = ((softmax(np.log(once) / 0.6) - once) ** 2).sum(axis=1).mean()
    found, calibrated = [], []
    for _ in range(repetitions):
        p = softmax(np.log(rng.dirichlet(np.ones(k), n)) / 0.6)
        y = (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
        wrong = softmax(np.log(p) / 0.6)
        found.append(cal.squared_calibration_error(y, wrong, notion="canonical"))
        calibrated.append(cal.squared_calibration_error(y, p, notion="canonical"))
    se = np.std(found) / np.sqrt(repetitions)
    assert abs(np.mean(found) - truth) < bar * truth + 2 * se
    assert abs(np.mean(calibrated)) < 0.05 * truth + 2 * np.std(calibrated) / np.sqrt(repetitions)


def vectors(y, f):
    """What the estimator reads."""
    from calibrant.notions import as_notion

    predictions = cal.as_predictions(y, f, labels=[0, 1, 2])
    return simplex_kernel.Simplex.of(as_notion("canonical", predictions).reduce(predictions), 1e-300)


@pytest.mark.slow
def test_leave_one_out_bandwidths():
    """Uniform on the simplex: the likelihood wants a bandwidth of some thousandths, the published rule far less."""
    rng = np.random.default_rng(0)
    y, f, _ = sample(3, 2000, rng)
    one = vectors(y, f)
    right, wrong = (cal.estimators.DirichletKernel(rule)._h(one, 1) for rule in ("loo", "loo-as-published"))
    assert 1e-3 < right < 0.1
    assert wrong < right / 4


#: The authors' list (``get_bandwidth`` of their ece_kde.py): logspace(-5, -1, 15) and linspace(0.2, 1, 5).
THEIRS = [10 ** (-5 + 4 * i / 14) for i in range(15)] + [0.2, 0.4, 0.6, 0.8, 1.0]


@pytest.mark.parametrize("case", ["uniform", "peaked", "twice", "near a corner"])
def test_the_published_bandwidth(case):
    """Their search: the largest sum of ``logsumexp - log((n - 1) h)`` over their list, which reaches 1e-5."""
    from scipy.special import gammaln, logsumexp

    rng = np.random.default_rng(4)
    f = rng.dirichlet([1, 1, 1] if case != "peaked" else [0.3, 0.6, 2], 150)
    y = rng.integers(3, size=150)
    if case == "twice":
        f[75:] = f[:75]
    elif case == "near a corner":
        f = softmax(np.log(f) * 0.05 + np.array([9.0, 0, 0]))
    best = (-np.inf, 0.0)
    for h in THEIRS:
        log_k = np.log(f) @ (f / h).T - (gammaln(f / h + 1).sum(axis=1) - gammaln(1 / h + 3))
        np.fill_diagonal(log_k, -np.inf)
        best = max(best, ((logsumexp(log_k, axis=1) - np.log(149 * h)).sum(), h))
    found = cal.estimators.DirichletKernel("loo-as-published", eps=1e-300)
    at_best = cal.estimators.DirichletKernel(best[1], eps=1e-300)
    given = {"notion": "canonical", "labels": [0, 1, 2]}
    assert found._h(vectors(y, f), 1) == pytest.approx(best[1], rel=1e-12)
    got, wanted = (cal.calibration_error(y, f, estimator=e, **given) for e in (found, at_best))
    assert got == pytest.approx(wanted, rel=1e-9)
    assert (best[1] < 1.1e-5) == (case in ("twice", "near a corner"))


def test_details():
    rng = np.random.default_rng(1)
    y, f, _ = sample(3, 1500, rng)
    result = cal.estimate(y, f, notion="canonical")
    found = result.details
    assert result.to_dict()["details"]["bandwidth"] == found["bandwidth"]
    assert found["degenerate"] == 0
    assert 20 < found["neighbours"] < 1500
    # Calibrated: E[y | f] = f, of which the variance and the refinement are known (Dirichlet(1, 1, 1)).
    assert found["sharpness"] == pytest.approx(3 * (1 / 18), abs=0.06)
    assert found["sharpness"] + found["refinement"] == pytest.approx(
        1 - (np.bincount(y) / 1500) @ (np.bincount(y) / 1500)
    )


def test_duplicates_single_samples_and_one_class():
    f = np.array([[0.2, 0.5, 0.3]])
    estimator = cal.estimators.DirichletKernel(0.1)
    assert np.isnan(cal.calibration_error([1], f, notion="canonical", estimator=estimator, labels=[0, 1, 2]))
    twice = np.repeat(f, 2, axis=0)
    # Each sees the other only: the gap of the first is that of the other's outcome.
    got = cal.calibration_error([1, 1], twice, notion="canonical", estimator=estimator, labels=[0, 1, 2])
    assert got == pytest.approx(1.0)
    rng = np.random.default_rng(2)
    many = rng.dirichlet([1, 1, 1], 50)
    same = cal.calibration_error(np.zeros(50), many, notion="canonical", estimator=estimator, labels=[0, 1, 2])
    assert same == pytest.approx(np.abs(np.eye(3)[0] - many).sum(axis=1).mean())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"bandwidth": 0.0}, "bandwidth must be 'auto', 'cv', 'loo', 'loo-as-published' or a number in"),
        ({"bandwidth": "silverman"}, "bandwidth must be 'auto'"),
        ({"orientation": "row"}, "orientation must be one of 'data', 'query'"),
        ({"debias": "yes"}, "debias must be one of None, 'ratio', 'square', 'cross'"),
        ({"eps": 0.7}, "eps"),
    ],
)
def test_bad_parts(arguments, words):
    with pytest.raises(ValueError, match=words):
        cal.estimators.DirichletKernel(**arguments)
    with pytest.raises(TypeError, match="bandwidth"):
        cal.estimators.DirichletKernel(True)
    with pytest.raises(TypeError, match="residual"):
        cal.estimators.DirichletKernel(residual="no")


@pytest.mark.parametrize(("debias", "norm"), [("square", 1), ("cross", 3)])
def test_norms_that_have_no_such_debias(debias, norm):
    y, f, _ = sample(3, 20, np.random.default_rng(0))
    with pytest.raises(ValueError, match=f"debias='{debias}' is defined for norm"):
        cal.calibration_error(
            y, f, notion="canonical", estimator=cal.estimators.DirichletKernel(0.1, debias=debias), norm=norm
        )


def test_a_plug_in_has_no_interval():
    y, f, _ = sample(3, 50, np.random.default_rng(0))
    with pytest.raises(TypeError, match="use debias='cross'"):
        cal.estimate(y, f, notion="canonical", estimator=cal.estimators.DirichletKernel(0.1))


@pytest.mark.parametrize("orientation", ["data", "query"])
@pytest.mark.parametrize(("debias", "residual", "norm"), [(None, False, 1), ("ratio", False, 1), ("cross", True, 2)])
def test_the_grid_of_one_score_is_the_exact_sum(orientation, debias, residual, norm, monkeypatch):
    """Beyond 2048 samples scores lie on a grid; without it the same numbers come, up to the grid's error."""
    rng = np.random.default_rng(6)
    p = rng.beta(0.7, 0.5, 3000)
    y = rng.random(3000) < p**1.3
    estimator = cal.estimators.DirichletKernel(0.003, orientation, debias, residual)
    on_grid = cal.calibration_error(y, p, estimator=estimator, norm=norm)
    monkeypatch.setattr("calibrant.estimators.axis_counts.Angles.cells", 4000)
    assert on_grid == pytest.approx(cal.calibration_error(y, p, estimator=estimator, norm=norm), abs=2e-5)


def test_logits_are_exact_where_probabilities_are_saturated():
    """Logits × 200: the softmax says 0 and 1, and clipping takes the order of what is far away."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 40)
    z = 200 * (np.eye(3)[y] + rng.normal(size=(40, 3)))
    estimator = cal.estimators.DirichletKernel(0.05, "query")
    problem = {"notion": "canonical", "estimator": estimator, "norm": 2}
    logs = z - z.max(axis=1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    f = np.exp(logs)
    total = 0.0
    for j in range(40):
        log_k = np.delete((f[j] / 0.05) @ logs.T, j)
        w = np.exp(log_k - log_k.max())
        total += ((w @ np.eye(3)[np.delete(y, j)] / w.sum() - f[j]) ** 2).sum() / 40
    assert cal.calibration_error(y, z, from_logits=True, **problem) ** 2 == pytest.approx(total, rel=1e-9)
    assert cal.estimate(y, z, from_logits=True, notion="canonical", norm=2).value >= 0
    assert np.isfinite(cal.squared_calibration_error(y, z, from_logits=True, notion="canonical"))
