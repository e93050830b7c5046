"""Silva Filho et al. (2023), continued: calibrators, synthetic cases, the grouping loss, and what is left to others."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import betaln, expit, log_softmax, logit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from calibrant import calibrators
from calibrant.datasets import make_survey

from . import data
from .items import agrees, holds
from .survey import PAPER


@PAPER.item("§5, empirical binning", "the frequency of each bin", "`calibrators.HistogramBinning(smoothing=0)`")
def histogram() -> str:
    y, s = data.binary()
    ours = calibrators.HistogramBinning(10, "uniform", smoothing=0).fit(s, y).predict_proba(s)[:, 1]
    cell = np.clip(np.ceil(s * 10).astype(int) - 1, 0, 9)
    return agrees(ours, np.array([y[cell == c].mean() for c in cell]), "of 400 rows, by counting")


@PAPER.item("§5, isotonic calibration", "pool adjacent violators", "`calibrators.IsotonicCalibrator(clip=None)`")
def isotonic() -> str:
    y, s = data.binary()
    ours = calibrators.IsotonicCalibrator(clip=None).fit(s, y).predict_proba(s)[:, 1]
    return agrees(ours, IsotonicRegression(y_min=0, y_max=1).fit_transform(s, y), "with scikit-learn's", within=1e-10)


@PAPER.item("§5, ROC convex hull", "its slopes are the isotonic map", "`calibrators.RocHullCalibrator(clip=None)`")
def hull() -> str:
    y, s = data.binary()
    ours, theirs = (
        kind(clip=None).fit(s, y).predict_proba(s)[:, 1]
        for kind in (calibrators.RocHullCalibrator, calibrators.IsotonicCalibrator)
    )
    return agrees(ours, theirs, "on the rows of the fit", within=1e-10)


@PAPER.item("§5, logistic calibration", "`1 / (1 + exp(-γ(s - m)))`, Platt's targets", "`calibrators.PlattScaling`")
def platt() -> str:
    y, s = data.binary()
    c = calibrators.PlattScaling(smoothing=False, shrinkage=0).fit(s, y)
    other = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(logit(s)[:, None], y)
    theirs = [other.coef_[0, 0], other.intercept_[0]]
    said = agrees([c.coef_, c.intercept_], theirs, "with scikit-learn's regression on log odds", within=1e-4)
    return said + "; Platt's targets are the default"


@PAPER.item("§5, Beta calibration", "`1 / (1 + (1 - s)^b / (e^c s^a))`", "`calibrators.BetaCalibration`")
def beta() -> str:
    y, s = data.binary()
    ours = calibrators.BetaCalibration(shrinkage=0).fit(s, y).predict_proba(s)[:, 1]
    X = np.column_stack([np.log(s), -np.log1p(-s)])
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(X, y)
    if (theirs.coef_ < 0).any():
        raise ValueError("a coefficient is at its bound: the regression is another model")
    return agrees(
        ours, theirs.predict_proba(X)[:, 1], "with scikit-learn's regression on log s, -log(1 - s)", within=1e-4
    )


@PAPER.item("§5, Bayesian binning", "BBQ: quantile binnings averaged by evidence", "`calibrators.BayesianBinning`")
def bayesian_binning() -> str:
    y, s = data.binary(200)
    root, evidence, predicted = np.cbrt(len(s)), [], []
    for size in range(max(1, int(root / 10)), int(np.ceil(10 * root)) + 1):
        inner = [np.sort(s)[[j * len(s) // size - 1, j * len(s) // size]].mean() for j in range(1, size)]
        cuts = np.array([0.0, *inner, 1.0])
        cell = np.clip(np.searchsorted(cuts, s) - 1, 0, size - 1)
        n, m = np.bincount(cell, minlength=size), np.bincount(cell, y, minlength=size)
        middle = (cuts[1:] + cuts[:-1]) / 2
        a, b = 2 / size * middle, 2 / size * (1 - middle)
        evidence.append((betaln(m + a, n - m + b) - betaln(a, b)).sum())
        predicted.append(((m + a) / (n + a + b))[cell])
    weight = np.exp(np.array(evidence) - max(evidence))
    theirs = weight @ np.array(predicted) / weight.sum()
    ours = calibrators.BayesianBinning().fit(s, y).predict_proba(s)[:, 1]
    return agrees(ours, theirs, f"with the evidence of {len(evidence)} binnings, bin by bin", within=1e-7)


def _fitted(z: np.ndarray, y: np.ndarray, free: int, of: object) -> float:
    """Least mean log-loss of a parametric map of logits, by BFGS."""
    rows = np.arange(len(y))
    found = minimize(lambda t: -log_softmax(of(t), axis=1)[rows, y].mean(), np.zeros(free), method="BFGS", tol=1e-10)
    return float(found.fun)


@PAPER.item("§5, temperature scaling", "`softmax(z / T)`", "`calibrators.TemperatureScaling`")
def temperature() -> str:
    y, q = data.vectors()
    c = calibrators.TemperatureScaling(shrinkage=0).fit(q, y)
    z = np.log(q)
    found = minimize_scalar(
        lambda t: -log_softmax(z / t, axis=1)[np.arange(len(y)), y].mean(), bounds=(0.1, 10), options={"xatol": 1e-10}
    )
    return agrees(c.temperature_, found.x, "with SciPy's search; the truth is 1.667", within=1e-5)


@PAPER.item("§5, vector scaling", "`softmax(w ∘ z + b)`", "`calibrators.VectorScaling(0)`")
def vector() -> str:
    y, q = data.vectors()
    z = np.log(q)
    ours = cal.log_loss(y, calibrators.VectorScaling(0.0).fit(q, y).predict_proba(q))
    return agrees(ours, _fitted(z, y, 6, lambda t: t[:3] * z + t[3:]), "log-loss beside BFGS", within=1e-7)


@PAPER.item("§5, matrix scaling", "`softmax(W z + b)`", "`calibrators.MatrixScaling(0)`")
def matrix() -> str:
    y, q = data.vectors()
    z = np.log(q)
    ours = cal.log_loss(y, calibrators.MatrixScaling(0.0).fit(q, y).predict_proba(q))
    return agrees(
        ours, _fitted(z, y, 12, lambda t: z @ t[:9].reshape(3, 3) + t[9:]), "log-loss beside BFGS", within=1e-7
    )


@PAPER.item(
    "§5, Dirichlet calibration",
    "`softmax(W ln s + b)`, off-diagonal and intercept penalised",
    "`calibrators.DirichletCalibration`",
)
def dirichlet() -> str:
    y, q = data.vectors()
    z, strength = np.log(q), 0.01
    rows = np.arange(len(y))

    def loss(t: np.ndarray) -> float:
        w, b = t[:9].reshape(3, 3), t[9:]
        off = w[~np.eye(3, dtype=bool)]
        penalty = strength * (np.mean(off**2) + np.mean(b**2))
        return float(-log_softmax(z @ w.T + b, axis=1)[rows, y].mean() + penalty)

    c = calibrators.DirichletCalibration("odir", strength, shrinkage=0).fit(q, y)
    found = minimize(loss, np.r_[np.eye(3).ravel(), 0, 0, 0], method="BFGS", tol=1e-10)
    ours = c.predict_proba(q)
    w, b = found.x[:9].reshape(3, 3), found.x[9:]
    return agrees(ours, np.exp(log_softmax(z @ w.T + b, axis=1)), "probabilities beside BFGS", within=1e-4)


@PAPER.item("§5, one-vs-rest", "binary maps of each class, rows divided by their sums", "`calibrators.OneVsRest`")
def one_vs_rest() -> str:
    y, q = data.vectors()
    ours = calibrators.OneVsRest(calibrators.PlattScaling()).fit(q, y).predict_proba(q)
    each = [
        calibrators.PlattScaling().fit(q[:, k], (y == k).astype(int)).predict_proba(q[:, k])[:, 1] for k in range(3)
    ]
    theirs = np.column_stack(each)
    return agrees(ours, theirs / theirs.sum(axis=1, keepdims=True), "class by class", within=1e-10)


@PAPER.item(
    "§5.5, ensemble temperature scaling",
    "`w₁ softmax(z/T) + w₂ s + w₃ / K`",
    "`calibrators.EnsembleTemperatureScaling`",
)
def ensemble() -> str:
    y, q = data.vectors()
    c = calibrators.EnsembleTemperatureScaling().fit(q, y)
    own, plain = (cal.log_loss(y, m.predict_proba(q)) for m in (c, calibrators.TemperatureScaling().fit(q, y)))
    return holds(own <= plain + 1e-9, f"log-loss of the rows of the fit {own:.5f}, of a temperature alone {plain:.5f}")


@PAPER.item(
    "§5.5, near-isotonic regression",
    "`½ Σ (y - β)² + λ Σ (β_i - β_{i+1})₊`",
    "`calibrators.NearIsotonic(λ, clip=None)`",
)
def near_isotonic() -> str:
    from scipy.optimize import lsq_linear

    y, s = data.binary(60)
    order = np.argsort(s)
    o, penalty, n = y[order].astype(float), 0.4, len(s)
    # The dual: β = y - Dᵀu with 0 ≤ u ≤ λ, D β = the falls.
    falls = np.eye(n - 1, n) - np.eye(n - 1, n, 1)
    u = lsq_linear(falls.T, o, bounds=(0, penalty), tol=1e-14, method="bvls").x
    ours = calibrators.NearIsotonic(penalty, clip=None).fit(s, y).predict_proba(s[order])[:, 1]
    return agrees(
        ours, np.clip(o - falls.T @ u, 0, 1), f"λ = {penalty}, beside SciPy's bounded least squares", within=1e-6
    )


@PAPER.item("§5.5, ENIR", "the path's models averaged by BIC", "`calibrators.NearIsotonic(clip=None)`")
def ensemble_of_near_isotonic() -> str:
    rng = np.random.default_rng(8)
    s = rng.random(300)
    y = (rng.random(300) < s).astype(int)
    new = np.linspace(0.01, 0.99, 99)
    errors = {
        name: np.abs(c.fit(s, y).predict_proba(new)[:, 1] - new).mean()
        for name, c in (
            ("ENIR", calibrators.NearIsotonic(clip=None)),
            ("isotonic", calibrators.IsotonicCalibrator(clip=None)),
        )
    }
    said = ", ".join(f"{name} {value:.4f}" for name, value in errors.items())
    return (
        f"**measured**: mean error of the map of a calibrated model: {said}; BIC counts every piece, so both are close"
    )


@PAPER.item(
    "§5.5, Gaussian-process maps", "a smooth latent function of the log odds", "`calibrators.GaussianProcessCalibrator`"
)
def gaussian_process() -> str:
    y, s = data.binary(150)
    c = calibrators.GaussianProcessCalibrator().fit(s, y)
    z = logit(s)
    u = (z - c.centre_) / c.scale_
    k = c.straight_sd_**2 * (1 + u[:, None] * u) + c.bent_sd_**2 * np.exp(
        -0.5 * ((u[:, None] - u) / c.length_scale_) ** 2
    )
    f = np.zeros(len(s))
    for _ in range(100):  # Rasmussen & Williams, algorithm 3.1
        p = expit(z + f)
        w = p * (1 - p)
        f = k @ np.linalg.solve(np.eye(len(s)) + w[:, None] * k, w * f + y - p)
    ours = logit(c.predict_proba(s)[:, 1]) - z
    return agrees(ours, f, "posterior mode of 150 rows beside the dense algorithm, same kernel", within=1e-3)


@PAPER.item("§5.5, order-preserving maps", "the classes of a row keep their order", "`calibrators.OrderPreserving`")
def order_preserving() -> str:
    y, q = data.vectors(300, 4)
    p = calibrators.OrderPreserving().fit(q, y).predict_proba(q)
    kept = float(np.mean((np.argsort(p, axis=1) == np.argsort(q, axis=1)).all(axis=1)))
    own, before = cal.log_loss(y, p), cal.log_loss(y, q)
    return holds(kept == 1 and own < before, f"all 300 orders kept; log-loss {before:.3f} → {own:.3f}")


@PAPER.item("§5.5, Mix-n-Match, composed", "ensemble temperature, then one isotonic map", "`calibrators.Composed`")
def composed() -> str:
    y, q = data.vectors()
    first = calibrators.EnsembleTemperatureScaling()
    both = calibrators.Composed([first, calibrators.OneVsRest(calibrators.IsotonicCalibrator(clip=None), shared=True)])
    middle = calibrators.EnsembleTemperatureScaling().fit(q, y).predict_proba(q)
    pooled = IsotonicRegression(y_min=0, y_max=1).fit_transform(middle.ravel(), data.onehot(y, 3).ravel())
    theirs = pooled.reshape(middle.shape)
    ours = both.fit(q, y).predict_proba(q)
    return agrees(
        ours, theirs / theirs.sum(axis=1, keepdims=True), "with scikit-learn's fit of all entries", within=1e-6
    )


@PAPER.item("§5.5, I-Max bins", "edges of the largest mutual information", '`calibrators.HistogramBinning(n, "i-max")`')
def i_max() -> str:
    from itertools import combinations

    rng = np.random.default_rng(9)
    s = np.sort(rng.random(14))
    y = np.arange(14) % 2

    def entropy(p: np.ndarray) -> np.ndarray:
        return -(p * np.log(p) + (1 - p) * np.log1p(-p))

    def known(cuts: tuple[int, ...]) -> float:
        parts = np.split(s, cuts)
        return float(entropy(s.mean()) - sum(len(v) / len(s) * entropy(v.mean()) for v in parts))

    best = max(map(known, combinations(range(1, 14), 3)))
    edges = calibrators.HistogramBinning(4, "i-max").fit(s, y).edges_[1:-1]
    return agrees(known(tuple(np.searchsorted(s, edges))), best, "mutual information beside all 286 cuts into four")


@PAPER.item("§5.5, Venn–Abers predictors", "two isotonic fits a score, one with each label", "`calibrators.VennAbers`")
def venn_abers() -> str:
    y, s = data.binary(60)
    c = calibrators.VennAbers().fit(s, y)
    at = np.array([0.2, 0.5, 0.7])
    pairs = []
    for v in at:
        one, two = (IsotonicRegression().fit(np.r_[s, v], np.r_[y, label]).predict([v])[0] for label in (0, 1))
        pairs.append(two / (1 - one + two))
    return agrees(c.predict_proba(at)[:, 1], pairs, "p₁ / (1 - p₀ + p₁) with scikit-learn's fits", within=1e-10)


@PAPER.item("Synthetic cases, two classes", "scores `1 / (1 + exp(-a x))`, a = .01 and .05", "`datasets.make_survey`")
def two_class_cases() -> str:
    from scipy.stats import norm

    from calibrant import datasets

    x = np.linspace(-600, 600, 240_001)
    means = np.array(datasets._SURVEY)[:2]
    f = [np.mean([norm.pdf(x, m, np.sqrt(v)) for m, v in law], axis=0) for law in means]
    gaps = np.abs(f[0] / (f[0] + f[1]) - expit(0.01 * x)) * (f[0] + f[1]) / 2
    truth = make_survey(10, "underconfident", random_state=0).truth
    return agrees(truth, np.trapezoid(gaps, x), "true error of a = .01, by a trapezoid over the feature", within=1e-5)


@PAPER.item(
    "§5.6, calibration while training",
    "label smoothing, mixup, a Laplace approximation",
    "`calibrators.LabelSmoothing`, `docs/examples/mixup_laplace.py`",
)
def while_training() -> str:
    found = {name: data.against_cross_entropy(name, "log-loss") for name in ("mixup", "XE, Laplace")}
    said = ", ".join(f"{name} {better} / {worse}" for name, (better, worse) in found.items())
    return f"**measured**: settings with a better / worse log-loss than cross-entropy, of 9: {said}"


@PAPER.item(
    "Grouping loss",
    "what rows of equal scores differ by; needs the posterior",
    "`scores.grouping_loss(y, p, X)`: a lower bound",
)
def grouping() -> str:
    rng = np.random.default_rng(10)
    x = rng.normal(size=(4000, 2))
    posterior = expit(2 * x[:, 0] + 2 * x[:, 1])
    s = np.mean([expit(2 * x[:, 0] + 2 * v) for v in rng.normal(size=2000)], axis=0)
    y = (rng.random(4000) < posterior).astype(int)
    found = cal.scores.grouping_loss(y, s, x)
    truth = np.mean((posterior - s) ** 2)
    return holds(
        0.5 * truth < found.value < truth + 0.01 and found.lower > 0,
        f"true {truth:.4f}, bound {found.value:.4f}, above {found.lower:.4f} with 95 % confidence",
    )


@PAPER.item("Figures 12–20", "each calibrator on each synthetic case", "`python docs/examples/survey_gallery.py OUT`")
def figures_12_to_20() -> str:
    import survey_gallery as gallery

    cases = dict.fromkeys(gallery.TWO_CLASSES, gallery.BINARY) | dict.fromkeys(gallery.THREE_CLASSES, gallery.SEVERAL)
    good = []
    for case, maps in cases.items():
        data, _ = gallery.rows(case)
        repaired = (one.predict_proba(data.y_prob) for one in gallery.fitted(maps, data).values())
        good += [bool(np.allclose(p.sum(axis=1), 1) and p.min() >= 0) for p in repaired]
    binary, several = len(gallery.BINARY), len(gallery.SEVERAL)
    two, more = len(gallery.TWO_CLASSES), len(gallery.THREE_CLASSES)
    said = holds(
        binary == 4 and several == 8 and len(good) == 24 and all(good),
        f"{binary} maps on {two} cases, {several} on {more}",
    )
    return f"{said}; the scores of the survey's network are not published, ours are of a network of our own"


@PAPER.item(
    "PyCalib, the survey's library",
    "measures, calibrators and tests, function by function",
    "[benchmarks/pycalib.md](../benchmarks/pycalib.md)",
)
def pycalib() -> str:
    from benchmarks.pycalib import EXPERIMENT, agreeing  # evidence_parts says where

    found = [agrees for _, agrees in agreeing(EXPERIMENT.kept)]
    same, all_of_them = sum(found), len(found)
    return holds(
        same + 2 >= all_of_them,
        f"{same} of {all_of_them} comparisons give the same number; the others are two functions of PyCalib that pair "
        "labels with other rows' scores where there are two classes",
    )


@PAPER.item("Prior shift", "odds are multiplied by the ratio of the base rates' odds", "`shift_prior(p, old, new)`")
def prior_shift() -> str:
    _, s = data.binary()
    odds = s / (1 - s) * (0.02 / 0.98) / (0.3 / 0.7)
    return agrees(cal.shift_prior(s, 0.3, 0.02), odds / (1 + odds), "by Bayes' rule")


@PAPER.item(
    "Costs of decisions", "the decision of least expected cost, of any K × K costs", "`decisions.expected_cost`"
)
def costs() -> str:
    y, p = data.vectors()
    table = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 1.0], [4.0, 3.0, 0.0]])
    taken = (p @ table).argmin(axis=1)
    found = cal.decisions.expected_cost(y, p, table, calibrator=None)
    return agrees(found.realised, table[y, taken].mean(), "mean cost of the decisions, row by row")


@PAPER.item(
    "Widmann et al. (2019), kernel tests",
    "the squared kernel calibration error, unbiased, and its test",
    "`significance.kernel_test`, `estimators.KernelCalibrationError`",
)
def kernel_test() -> str:
    y, p = data.vectors(120)
    gap = np.eye(p.shape[1])[y] - p
    near = np.exp(-np.abs(p[:, None] - p[None]).sum(axis=2) / 2 / 0.3)
    pairs = near * (gap @ gap.T)
    theirs = (pairs.sum() - np.trace(pairs)) / (len(y) * (len(y) - 1))
    one = cal.estimators.KernelCalibrationError(bandwidth=0.3)
    return agrees(
        cal.significance.kernel_test(y, p, notion="canonical", estimator=one).statistic, theirs, "by sums over pairs"
    )


@PAPER.item(
    "Consistency bars", "how far frequencies of a calibrated model would scatter", '`report.curves["consistency"]`'
)
def consistency() -> str:
    rng = np.random.default_rng(5)
    p = rng.random(1000)
    inside = []
    for _ in range(40):
        curve = cal.reliability_curve(
            (rng.random(1000) < p).astype(int), p, estimator=cal.Binned(10), band="consistency", level=0.95
        )
        inside.append(((curve.observed >= curve.lower) & (curve.observed <= curve.upper)).mean())
    share = float(np.mean(inside))
    return holds(
        0.9 < share < 0.99, f"{100 * share:.0f} % of the points of 40 calibrated samples lie inside of 95 % bars"
    )


@PAPER.item(
    "Kängsepp et al. (2022), fit-on-the-test",
    "the error is that of a calibration map fitted to the test rows",
    "`estimators.Parametric`, `estimators.Isotonic` and others",
)
def fit_on_the_test() -> str:
    from sklearn.isotonic import IsotonicRegression

    y, s = data.binary()
    fitted = IsotonicRegression(y_min=0, y_max=1).fit_transform(s, y)
    ours = cal.calibration_error(y, s, estimator=cal.estimators.Isotonic())
    return agrees(ours, np.abs(fitted - s).mean(), "mean gap of scikit-learn's isotonic map", within=1e-9)


PAPER.outside(
    "§5.5, conformal sets",
    "sets of labels that cover the true one with a given probability",
    "no probabilities are repaired; [MAPIE](https://pypi.org/project/MAPIE/) and "
    "[crepes](https://pypi.org/project/crepes/) do them well",
)
PAPER.outside(
    "Calibration of regression",
    "quantiles and densities in place of class probabilities",
    "[uncertainty-toolbox](https://pypi.org/project/uncertainty-toolbox/) measures and recalibrates these",
)
PAPER.outside(
    "Precision–recall–gain curves",
    "an analogue of the ROC curve with calibrated slopes",
    "ranking is not measured here; the authors' own is "
    "[precision-recall-gain](https://pypi.org/project/precision-recall-gain/)",
)
PAPER.outside(
    "Leathart et al. (2017), calibration trees",
    "a tree over features with a logistic map in each leaf",
    "the tree needs the features and is a second classifier; `calibrators.SubgroupCalibrator` has a map for each "
    "subgroup that is named, and `calibrators.SegmentCalibrator` an offset for each segment that is found",
)
PAPER.outside(
    "Wang et al. (2019), increasing polynomials",
    "a polynomial of the score whose slope is not negative",
    "`calibrators.SplineCalibrator` is increasing as well; whether the polynomial gains more was not tried",
)
PAPER.outside(
    "Allikivi & Kull (2019), Bayesian isotonic maps",
    "an average of increasing step functions, drawn by a Markov chain",
    "`calibrators.BayesianBinning` and `VennAbers` average too; the chain was not tried",
)
PAPER.outside(
    "Ma & Blaschko (2021), Meta-Cal",
    "rows that are likely to be miscalibrated are set apart and given up",
    "it does not give probabilities of those rows, which every calibrator here does",
)
PAPER.outside(
    "Kumar, Liang & Ma (2019), scaling–binning",
    "a fitted map, and its mean in each of some bins in its place",
    "the bins make an error that can be estimated; `estimate` has intervals without them, and the map by itself scored "
    "better in a small trial",
)
PAPER.outside(
    "Wen et al. (2020), ensembles with augmentation", "how ensembles are to be trained", "about training, not repair"
)
PAPER.outside(
    "Milios et al. (2018), Dirichlet-based Gaussian processes",
    "a classifier that is calibrated",
    "a classifier, not a calibrator",
)
