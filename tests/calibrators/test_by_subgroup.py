"""`SubgroupCalibrator`: against written-out likelihoods, what it repairs, and how groups reach it."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.linalg import block_diag
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logit
from scipy.stats import multivariate_normal
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

import calibrant as cal
from calibrant import calibrators as c
from calibrant.calibrators import by_subgroup

from .table import several, two


def sites(n, seed, k=2, spread=1.0, n_groups=4):
    """Rows of sites whose logits are shifted, each in its own way."""
    rng = np.random.default_rng(seed)
    by = rng.choice(n_groups, n, p=np.arange(1, n_groups + 1) / np.arange(1, n_groups + 1).sum())
    shift = spread * np.random.default_rng(99).normal(size=(n_groups, k))
    p = several(n, k, seed)[0]
    q = np.exp(np.log(p) + shift[by])
    q /= q.sum(axis=1, keepdims=True)
    return p, (rng.random((n, 1)) > q.cumsum(axis=1)).sum(axis=1).clip(0, k - 1), by, q


@pytest.mark.parametrize("k", [2, 3])
def test_the_mode_of_the_likelihood_that_is_written_out(k):
    """With the standard deviations that were found: another optimiser, another parametrisation."""
    p, y, by, _ = sites(300, 0, k)
    w = np.random.default_rng(1).integers(1, 4, 300)
    fitted = c.SubgroupCalibrator().fit(p, y, w, by=by)
    assert fitted.slope_sd_ > 0
    assert fitted.shift_sd_ > 0.1
    q = fitted.common_.predict_proba(p)
    z = np.log(q) - np.log(q).mean(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.centre_, w @ z / w.sum())
    target = (w.sum() * np.eye(k)[y] + 8 * q) / (w.sum() + 8)

    def loss(x):
        """Mean slope, mean shifts, and every group's; all K shifts, whose sum nothing but the prior holds."""
        x = x.reshape(5, 1 + k)
        logits = z + x[1 + by, :1] * (z - fitted.centre_) + x[1 + by, 1:]
        off = np.vstack([x[:1], x[1:] - x[0]])
        prior = (off[:, 0] / fitted.slope_sd_) ** 2 + ((off[:, 1:] / fitted.shift_sd_) ** 2).sum(axis=1)
        return (-(w[:, None] * target * log_softmax(logits, axis=1)).sum() + prior.sum() / 2) / w.sum()

    found = minimize(loss, np.zeros(5 * (1 + k)), method="BFGS", options={"gtol": 1e-8, "maxiter": 2000})
    x = found.x.reshape(5, 1 + k)
    shifts = x[:, 1:] - x[:, 1:].mean(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.slopes_, x[1:, 0], atol=2e-4)
    np.testing.assert_allclose(fitted.shifts_, shifts[1:], atol=2e-4)
    np.testing.assert_allclose(fitted.mean_slope_, x[0, 0], atol=2e-4)
    np.testing.assert_allclose(fitted.mean_shift_, shifts[0], atol=2e-4)
    assert fitted.gradient_norm_ < 1e-7


@pytest.mark.parametrize("k", [2, 3])
def test_evidence_is_the_density_of_normal_estimates(k):
    """Estimates of known precision, with all effects drawn: one normal vector whose covariance is written out."""
    rng = np.random.default_rng(k)
    roots = rng.normal(size=(6, k, k + 2))
    curvature = roots @ roots.swapaxes(1, 2)
    estimate = rng.normal(size=(6, k))
    pull = np.einsum("gij,gj->gi", curvature, estimate)
    tried = [np.array([a, *[b] * (k - 1)]) for a in (0.0, 0.1, 1.0) for b in (0.0, 0.3, 2.0)]
    ours = np.array([by_subgroup._evidence(curvature, pull, t) for t in tried])
    noise = block_diag(*np.linalg.inv(curvature))
    naive = np.array(
        [multivariate_normal(cov=np.kron(np.eye(6) + 1, np.diag(t**2)) + noise).logpdf(estimate.ravel()) for t in tried]
    )
    np.testing.assert_allclose(ours - ours[0], naive - naive[0], atol=1e-8)


@pytest.mark.parametrize("k", [2, 3])
def test_repairs_what_groups_differ_by(k):
    p, y, by, _ = sites(6000, 1, k)
    new, labels, at, q = sites(6000, 2, k)
    fitted = c.SubgroupCalibrator().fit(p, y, by=by)
    repaired = fitted.predict_proba(new, by=at)
    rows = np.arange(len(labels))

    def loss(given):
        return -np.log(given[rows, labels]).mean()

    assert loss(repaired) < loss(q) + 0.01
    assert loss(repaired) < loss(fitted.common_.predict_proba(new)) - 0.05
    if k == 2:
        gaps = [cal.subgroup_calibration(labels, s, at, n_resamples=99).rejected for s in (new[:, 1], repaired[:, 1])]
        assert len(gaps[0]) >= 3
        assert len(gaps[1]) <= 1


def test_small_groups_stay_near_the_others():
    """A group of one row, one of rows of one class, and one that was not seen."""
    s, y, _ = two(2000, 3)
    by = np.arange(2000) % 5
    by[0], by[1:11] = 77, 88
    s[1:11], y[1:11] = np.linspace(0.4, 0.8, 10), 1
    fitted = c.SubgroupCalibrator().fit(s, y, by=by)
    assert fitted.weights_[fitted.subgroups_.tolist().index("77")] == 1
    at = np.linspace(0.01, 0.99, 50)
    unseen = fitted.predict_proba(at, by=["nobody"] * 50)[:, 1]
    for group, most in ((77, 0.1), (88, 0.3)):
        assert np.abs(fitted.predict_proba(at, by=[group] * 50)[:, 1] - unseen).max() < most
    np.testing.assert_allclose(unseen, fitted.common_.predict_proba(at)[:, 1], atol=0.03)


def test_groups_that_do_not_differ_have_one_map():
    spreads = []
    for seed in range(8):
        s, y, _ = two(4000, seed)
        fitted = c.SubgroupCalibrator().fit(s, y, by=np.random.default_rng(seed).integers(0, 20, 4000))
        spreads.append((fitted.slope_sd_, fitted.shift_sd_))
    assert np.mean(spreads, axis=0).max() < 0.06


def test_separated_classes_have_a_finite_map():
    s = np.concatenate([np.linspace(0.05, 0.4, 60), np.linspace(0.6, 0.95, 60)])
    fitted = c.SubgroupCalibrator().fit(s, (s > 0.5).astype(int), by=np.arange(120) % 3)
    assert np.abs(fitted.slopes_).max() < 10
    assert np.isfinite(fitted.predict_proba(s, by=np.arange(120) % 3)).all()


@pytest.mark.parametrize("k", [2, 3])
def test_weights_rows_and_names(k):
    p, y, by, _ = sites(240, 4, k)
    w = np.random.default_rng(0).integers(0, 3, 240)
    one = c.SubgroupCalibrator().fit(p, y, w, by=by)
    want = one.predict_proba(p, by=by)
    repeated = c.SubgroupCalibrator().fit(np.repeat(p, w, axis=0), np.repeat(y, w), by=np.repeat(by, w))
    np.testing.assert_allclose(repeated.predict_proba(p, by=by), want, atol=2e-6)
    order = np.random.default_rng(1).permutation(240)
    shuffled = c.SubgroupCalibrator().fit(p[order], y[order], w[order], by=by[order])
    np.testing.assert_allclose(shuffled.predict_proba(p, by=by), want, atol=2e-6)
    names = np.array(["zoo", "ant", "mid", "bee"])
    renamed = c.SubgroupCalibrator().fit(p, y, w, by=names[by])
    np.testing.assert_allclose(renamed.predict_proba(p, by=names[by]), want, atol=2e-6)
    turned = c.SubgroupCalibrator().fit(p[:, ::-1], k - 1 - y, w, by=by)
    np.testing.assert_allclose(turned.predict_proba(p[:, ::-1], by=by)[:, ::-1], want, atol=2e-6)
    again = c.from_dict(c.to_dict(renamed))
    np.testing.assert_array_equal(again.predict_proba(p, by=names[by]), renamed.predict_proba(p, by=names[by]))


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ([1, 2, 1, 2] * 20, ["1", "2"]),
        ([1.0, 2.5, 1.0, np.nan] * 20, ["(missing)", "1", "2.5"]),
        (["a", None, "a", float("nan")] * 20, ["(missing)", "a"]),
        (pd.Series(["a", "b", "a", "b"] * 20, dtype="category", index=range(80, 0, -1)), ["a", "b"]),
        ([True, 1, 1.0, "1"] * 20, ["1"]),
    ],
)
def test_values_of_any_kind_name_groups(by, names):
    s, y, _ = two(80)
    fitted = c.SubgroupCalibrator().fit(s, y, by=by)
    assert fitted.subgroups_.tolist() == names
    assert np.isfinite(fitted.predict_proba(s, by=by)).all()


def test_within_a_model_groups_are_a_column_of_its_features():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=3000), "b": rng.normal(size=3000), "site": rng.choice(["n", "s"], 3000)})
    y = (rng.random(3000) < expit(X.a + np.where(X.site == "s", 2, 0))).astype(int)
    classifier = make_pipeline(make_column_transformer(("passthrough", ["a", "b"])), LogisticRegression())
    model = c.CalibratedModel(classifier, c.SubgroupCalibrator(by="site"), cv=3, ensemble=False).fit(X, y)
    assert model.calibrator_.subgroups_.tolist() == ["n", "s"]
    p = model.predict_proba(X)
    inner, one = model.pairs_[0]
    np.testing.assert_array_equal(p, one.predict_proba(inner.predict_proba(X), by=X.site))
    gap = [abs(p[X.site == s, 1].mean() - y[X.site == s].mean()) for s in ("n", "s")]
    assert max(gap) < 0.02
    folds = c.CalibratedModel(classifier, c.SubgroupCalibrator(by="site"), cv=3).fit(X, y)
    each = [one.predict_proba(inner.predict_proba(X), by=X.site) for inner, one in folds.pairs_]
    np.testing.assert_allclose(folds.predict_proba(X), np.mean(each, axis=0))
    numbers = c.CalibratedModel(LogisticRegression(), c.SubgroupCalibrator(by=1), cv=3)
    coded = np.column_stack([X.a, X.site == "s"])
    assert numbers.fit(coded, y).pairs_[0][1].subgroups_.tolist() == ["0", "1"]


def test_groups_are_routed_through_pipelines():
    p, y, by, _ = sites(200, 5)
    with sklearn.config_context(enable_metadata_routing=True):
        one = c.SubgroupCalibrator().set_fit_request(by=True).set_predict_proba_request(by=True)
        pipeline = Pipeline([("repair", one)]).fit(p, y, by=by)
        through = pipeline.predict_proba(p, by=by)
    np.testing.assert_array_equal(through, c.SubgroupCalibrator().fit(p, y, by=by).predict_proba(p, by=by))


def test_without_groups_it_is_the_common_map():
    s, y, _ = two(300)
    plain = c.PlattScaling().fit(s, y).predict_proba(s)
    fitted = c.SubgroupCalibrator().fit(s, y)
    np.testing.assert_allclose(fitted.predict_proba(s), plain, atol=1e-12)
    np.testing.assert_allclose(fitted.predict_proba(s, by=["x"] * 300), plain, atol=1e-12)
    grouped = c.SubgroupCalibrator().fit(s, y, by=np.arange(300) % 3)
    with pytest.warns(cal.exceptions.CalibrantWarning, match="pass by="):
        p = grouped.predict_proba(s)
    np.testing.assert_array_equal(p, grouped.predict_proba(s, by=["unseen"] * 300))
    assert "svg" in grouped._repr_mimebundle_()["text/html"]  # without a warning
    np.testing.assert_allclose(logit(plain[:, 1]), fitted.common_.coef_ * logit(s) + fitted.common_.intercept_)


@pytest.mark.parametrize(
    ("calibrator", "by", "error", "words"),
    [
        (c.SubgroupCalibrator(3), None, TypeError, "calibrator must be None or a calibrator"),
        (c.SubgroupCalibrator(by=True), None, TypeError, "by must be the name or the number of a column"),
        (c.SubgroupCalibrator(), [1, 2, 3], ValueError, r"by must have one value per row \(50\)"),
        (
            c.SubgroupCalibrator(),
            np.array([{}] * 50, dtype=object),
            TypeError,
            "by must hold values that can name",
        ),
    ],
)
def test_bad_groups(calibrator, by, error, words):
    s, y, _ = two(50)
    with pytest.raises(error, match=words):
        calibrator.fit(s, y, by=by)


def test_damaged_files_are_refused():
    p, y, by, _ = sites(100, 6)
    saved = c.to_dict(c.SubgroupCalibrator().fit(p, y, by=by))
    for name, value, words in (
        ("subgroups_", {"array": ["b", "a", "c", "d"], "dtype": "str"}, "distinct strings in ascending order"),
        ("subgroups_", {"array": [1, 2], "dtype": "int64"}, "array of strings"),
        ("weights_", {"array": [1.0], "dtype": "float64"}, "does not fit"),
    ):
        with pytest.raises(ValueError, match=words):
            c.from_dict(saved | {"fitted": saved["fitted"] | {name: value}})
