"""One choice for the folds of a model, the goal of least calibration error, and rows that were judged already."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB

import calibrant as cal
from calibrant import calibrators as c
from calibrant.calibrators import choosing
from calibrant.calibrators.choosing import earned_weights
from calibrant.calibrators.crossval import HeldOutEvidence, folds_of
from calibrant.calibrators.select import as_sample
from calibrant.calibrators.temperature import mixture_weights

from .table import several, two


class Counted(c.PlattScaling):
    """Says how many fits there were, and of how many rows."""

    fits: list[int] = []

    def _fit(self, sample):
        Counted.fits.append(len(sample.codes))
        super()._fit(sample)


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_folds_share_a_choice_by_hand(load):
    """Each candidate is fitted to a fold's scores and judged by the next one's; weights are of all rows together."""
    X, y = load(return_X_y=True)
    k = len(np.unique(y))
    model = c.CalibratedModel(GaussianNB(), cv=4).fit(X, y)
    scored = []
    for train, test in StratifiedKFold(4).split(X, y):
        scored.append((GaussianNB().fit(X[train], y[train]).predict_proba(X[test]), y[test]))
    labels = list(range(k))
    first = scored[0][0]
    base = "end-smoothing" if first.min() < 1e-12 else "identity"
    tried = [*c.default_candidates(k), *([base] if base != "identity" else [])]
    fitted = [
        {name: c.named_calibrator(name, k).set_params(labels=labels).fit(p, o) for name in tried} for p, o in scored
    ]
    held = {
        name: np.concatenate([fitted[i - 1][name].predict_proba(p) for i, (p, _) in enumerate(scored)])
        for name in tried
    }
    together = np.concatenate([o for _, o in scored])
    means = {
        name: float(np.mean(-np.log(np.maximum(p[np.arange(len(y)), together], 1e-6)))) for name, p in held.items()
    }
    sample = as_sample(np.concatenate([p for p, _ in scored]), together, None, "probability", labels)
    found = {name: HeldOutEvidence.of(p, sample) for name, p in held.items()}
    weighed = {name: p for name, p in held.items() if base == "identity" or name != "identity"}
    weights = earned_weights(weighed, found, sample, base=base, goal="log-loss")
    for (_, got), maps, (p, _) in zip(model.pairs_, fitted, scored, strict=True):
        want = sum(w * maps[name].predict_proba(p) for name, w in weights.items())
        np.testing.assert_allclose(got.predict_proba(p), want, atol=1e-12)
        assert got.chosen_ == max(weights, key=weights.get)
        assert {row["name"]: row["weight"] for row in got.table_ if row["weight"]} == pytest.approx(weights)
        assert {row["name"]: row["loss"] for row in got.table_} == pytest.approx(means)


def test_nothing_is_fitted_twice():
    X, y = load_breast_cancer(return_X_y=True)
    Counted.fits = []
    candidates = {"identity": c.Identity(), "counted": Counted()}
    model = c.CalibratedModel(GaussianNB(), c.AutoCalibrator(candidates)).fit(X, y)
    assert sorted(Counted.fits) == sorted(len(test) for _, test in StratifiedKFold(5).split(X, y))
    assert all(one.table_ is model.pairs_[0][1].table_ for _, one in model.pairs_)
    one = c.CalibratedModel(GaussianNB()).fit(X, y).pairs_[1][1]
    p = np.linspace(0.01, 0.99, 9)
    both = np.column_stack([1 - p, p])
    np.testing.assert_allclose(c.from_dict(c.to_dict(one)).predict_proba(both), one.predict_proba(both), atol=1e-15)
    Counted.fits = []
    q, o = two(500, 0, 1.5)[:2]
    cal.compare_calibrators(o, q, candidates=candidates).calibrator("counted").fit(q, o)
    assert Counted.fits == [400] * 5 + [500]


def test_folds_that_share_rows_choose_by_themselves():
    X, y = load_breast_cancer(return_X_y=True)
    folds = RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0)
    model = c.CalibratedModel(GaussianNB(), cv=folds).fit(X, y)
    for (train, test), (_, got) in zip(folds.split(X, y), model.pairs_, strict=True):
        p = GaussianNB().fit(X[train], y[train]).predict_proba(X[test])
        np.testing.assert_allclose(
            got.predict_proba(p), c.AutoCalibrator().fit(p, y[test]).predict_proba(p), atol=1e-12
        )


def test_many_rows_are_fitted_whole_and_weighed_by_a_part(monkeypatch):
    p, y = two(900, 0, 1.5)[:2]
    monkeypatch.setattr(choosing, "MOST", 200)
    Counted.fits = []
    c.AutoCalibrator({"counted": Counted(), "isotonic": c.IsotonicCalibrator()}).fit(p, y)
    assert Counted.fits[:5] == [320] * 5
    assert Counted.fits[5:] == [900]
    Counted.fits = []
    c.AutoCalibrator({"counted": Counted(), "isotonic": c.IsotonicCalibrator()}, rule="best").fit(p, y)
    assert Counted.fits[:5] == [720] * 5


@pytest.mark.parametrize("seed", range(6))
def test_mixture_weights_reach_the_optimum(seed):
    """Against SciPy's SLSQP, also where some rows have one column alone."""
    rng = np.random.default_rng(seed)
    seen, w = rng.random((200, 3)) * [1, 1.4, 1], rng.random(200)
    seen[:, 2] = 0.1
    if seed > 2:
        seen[rng.random(200) < 0.2, :2] = 0
    got, violation, _ = mixture_weights(seen, w)
    assert violation < 1e-9
    assert got.min() >= 0
    assert got.sum() == pytest.approx(1)

    def loss(u):
        return -float(w @ np.log(np.maximum(seen @ u, 1e-300))) / w.sum()

    sums = {"type": "eq", "fun": lambda u: u.sum() - 1}
    want = minimize(loss, np.full(3, 1 / 3), bounds=[(0, 1)] * 3, constraints=sums, method="SLSQP", tol=1e-12)
    assert loss(got) <= want.fun + 1e-9


@pytest.mark.parametrize("apart", [0, 1e-3, 1e-5, 1e-6, 1e-7, 1e-9, 1e-12])
def test_mixture_weights_reach_the_optimum_where_columns_are_nearly_multiples(apart):
    """As of scores that are nearly always right: 1 after sharpening, nearly 1 before, and ½."""
    rng = np.random.default_rng(0)
    seen = np.column_stack([np.ones(100), 1 - apart * rng.random(100), np.full(100, 0.5)])
    got, violation, steps = mixture_weights(seen, np.ones(100))
    assert violation < 1e-6
    assert steps < 60
    assert -np.log(seen @ got).mean() < 1e-6


def wrong_and_right(n=4000):
    """Scores that one candidate repairs, and another leaves too sure but of less log-loss for one class."""
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return p, (rng.random(n) < np.where(p > 0.5, 0.5 + (p - 0.5) ** 2, p)).astype(int)


@pytest.mark.parametrize("rule", ["best", "one-standard-error"])
def test_the_goal_of_calibration_by_hand(rule):
    p, y = wrong_and_right()
    tried = {"identity": c.Identity(), "temperature": c.TemperatureScaling(), "isotonic": c.IsotonicCalibrator()}
    found = c.select_calibrator(p, y, candidates=tried, goal="calibration", rule=rule)
    errors, losses, se = {}, {}, {}
    for name, one in tried.items():
        out = np.empty((len(p), 2))
        for train, test in folds_of(y, 5, 0):
            out[test] = one.fit(p[train], y[train]).predict_proba(p[test])
        told = cal.estimate(y, out[:, 1])
        errors[name], se[name] = told.value, (told.interval.high - told.interval.low) / (2 * 1.959963985)
        losses[name] = -np.log(np.maximum(out[np.arange(len(y)), y], 1e-6))
    assert {row["name"]: row["loss"] for row in found.table} == pytest.approx(errors)
    assert {row["name"]: row["se"] for row in found.table} == pytest.approx(se)
    assert found.name == "isotonic" == min(errors, key=errors.get)
    assert errors["temperature"] > 3 * errors["isotonic"]
    assert c.AutoCalibrator(tried, goal="calibration").fit(p, y).chosen_ == "isotonic"
    compared = cal.compare_calibrators(y, p, candidates=tried, goal="calibration", rule=rule)
    assert compared.chosen == found.name


def test_calibration_at_the_price_of_a_proper_score_is_no_choice():
    """What says the base rate every time is calibrated, and useless: it worsens the log-loss."""

    class BaseRate(c.PlattScaling):
        def _fit(self, sample):
            super()._fit(sample)
            self.coef_, self.intercept_ = 0.0, float(np.log(sample.codes.mean() / (1 - sample.codes.mean())))

    rng = np.random.default_rng(1)
    p = rng.random(2000)
    y = (rng.random(2000) < 1 / (1 + (1 / p - 1) ** 1.4)).astype(int)
    tried = {"identity": c.Identity(), "base": BaseRate(), "beta": c.BetaCalibration()}
    found = c.select_calibrator(p, y, candidates=tried, goal="calibration", rule="best")
    by_name = {row["name"]: row for row in found.table}
    assert by_name["base"]["loss"] < by_name["identity"]["loss"]
    assert found.name != "base"


def test_one_scale_of_the_brier_score():
    """Of the same two classes: a report, a comparison, the table of a choice, one column and two."""
    p, y = two(800, 0, 1.5)[:2]
    both = np.column_stack([1 - p, p])
    want = np.mean((p - y) ** 2)
    for scores in (p, both):
        report = cal.report(y, scores)
        compared = cal.compare_calibrators(y, scores, candidates={"identity": c.Identity()}, goal="brier")
        assert report.brier == pytest.approx(want)
        assert compared.rows[0].brier == pytest.approx(want)
        chosen = c.select_calibrator(scores, y, candidates={"identity": c.Identity()}, goal="brier")
        assert chosen.table[0]["loss"] == pytest.approx(want)
        for text in (str(report), str(compared)):
            assert f"{want:.4f}" in text
            assert "half the sum over both classes" in " ".join(text.split())
        assert "half the sum over both classes" in compared.to_html()
    q, o, _ = several(500, 3, 0, 0.6)
    assert "the sum over classes" in str(cal.report(o, q))
    assert cal.brier_score(y, p) == pytest.approx(2 * want)  # its default stays


NAMED = np.array(["churned", "stayed"])


def churn(n=800):
    """Labels, and the over-confident probability of the label that comes first in the alphabet."""
    rng = np.random.default_rng(0)
    z = 1.2 * rng.normal(size=n)
    return NAMED[(rng.random(n) > 1 / (1 + np.exp(-z))).astype(int)], 1 / (1 + np.exp(-1.6 * z))


def test_the_label_of_one_column_is_not_guessed():
    y, p = churn()
    plain = (y == "churned").astype(int)
    only = {"candidates": ["identity", "temperature"]}
    for call in (
        lambda **o: cal.compare_calibrators(y, p, **only, **o),
        lambda **o: c.select_calibrator(p, y, **only, **o),
    ):
        with pytest.raises(ValueError, match=r"pos_label must be given when the labels are \['churned', 'stayed'\]"):
            call()
        with pytest.raises(ValueError, match="pos_label must be one of the labels"):
            call(pos_label="left")
    found = cal.compare_calibrators(y, p, pos_label="churned", **only)
    want = cal.compare_calibrators(plain, p, **only)
    assert [row.log_loss for row in found.rows] == [row.log_loss for row in want.rows]
    assert found.before.headline.value == cal.report(y, p, pos_label="churned").headline.value
    chosen = c.select_calibrator(p, y, pos_label="churned", **only)
    assert chosen.calibrator.classes_.tolist() == ["stayed", "churned"]
    same = c.select_calibrator(p, y, labels=["stayed", "churned"], **only)
    np.testing.assert_array_equal(chosen.calibrator.predict_proba(p), same.calibrator.predict_proba(p))
    both = np.column_stack([p, 1 - p])
    with pytest.raises(ValueError, match="pos_label is for 1-D scores; these have 2 columns"):
        cal.compare_calibrators(y, both, pos_label="churned", **only)
    assert len(c.select_calibrator(both, y, **only).table) == 2


@pytest.mark.parametrize("kind", ["probability", "logit", "margin"])
def test_fit_says_which_label_it_takes(kind):
    y, p = churn()
    scores = p if kind == "probability" else np.log(p / (1 - p))
    with pytest.warns(
        cal.exceptions.LabelWarning,
        match=r"labels=\['churned', 'stayed'\] to confirm this, or labels=\['stayed', 'churned'\]",
    ):
        c.PlattScaling(input=kind).fit(scores, y)
    fitted = c.PlattScaling(input=kind, labels=["stayed", "churned"]).fit(scores, y)
    plain = c.PlattScaling(input=kind).fit(scores, y == "churned")
    np.testing.assert_allclose(fitted.predict_proba(scores), plain.predict_proba(scores))
    assert fitted.classes_[1] == "churned"
