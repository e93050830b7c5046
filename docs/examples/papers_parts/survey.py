"""Silva Filho et al. (2023): worked numbers, tests, decompositions and calibrators."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy.stats import chi2

import calibrant as cal
from calibrant import calibrators

from . import data
from .items import Paper, agrees, differs, holds, number

PAPER = Paper(
    "Classifier calibration: a survey",
    "T. Silva Filho, H. Song, M. Perello-Nieto, R. Santos-Rodriguez, M. Kull and P. Flach, Machine Learning 2023, "
    "arXiv:2112.10327; worked numbers in exact arithmetic, right-closed bins",
)
INF = float("inf")


@PAPER.item("Notions, two classes", "`P(Y = 1 | s) = s`", '`notion="class-specific"`, the default of 1-D scores')
def binary() -> str:
    y, s = data.binary(300)
    s = np.round(s, 1)
    gaps = [abs(y[s == v].mean() - v) for v in s]
    return agrees(cal.calibration_error(y, s, estimator=cal.Binned(1000)), np.mean(gaps), "by counting equal scores")


@PAPER.item("Table 1", "123 forecasts of rain in bins", "`expected_calibration_error`, also with `norm=inf`")
def table_1() -> str:
    s = np.concatenate([[c] * n for c, n, _ in data.RAIN])
    y = np.concatenate([[1] * r + [0] * (n - r) for _, n, r in data.RAIN])
    ours = [cal.expected_calibration_error(y, s, n_bins=b) for b in (10, 5, 2)]
    ours += [cal.expected_calibration_error(y, s, n_bins=b, norm=np.inf) for b in (10, 5, 2)]
    exact = [Fraction(121, 2460)] * 2 + [Fraction(79, 2460), Fraction(15, 100), Fraction(1, 10), Fraction(61, 740)]
    return agrees(
        ours, [float(v) for v in exact], "ECE and MCE with 10, 5 and 2 bins: .0492, .0492, .0321; .15, .1, .0824"
    )


@PAPER.item(
    "Table 2",
    "Brier score .71 = .19 + .52 = .26 + .45, log-loss 1.12 = .29 + .83 = .48 + .64",
    "`decompose(…, posterior=Q)`",
)
def table_2() -> str:
    s = np.array([(0.9, 0.1, 0.0)] * 4 + [(0.6, 0.2, 0.2)] * 6)
    q = np.array([(0.75, 0.25, 0.0)] * 4 + [(0.5, 0.5, 0.0)] * 2 + [(0.0, 0.5, 0.5)] * 4)
    y = [0, 0, 0, 1, 0, 1, 1, 1, 2, 2]
    said = []
    for score, printed in (
        ("brier", (0.712, 0.195333, 0.516667, 0.262, 0.45, 0.066667)),
        ("log-loss", (1.117668, 0.285892, 0.831777, 0.476846, 0.640822, 0.190954)),
    ):
        d = cal.decompose(y, s, score=score, estimator="exact", posterior=q)
        ours = [d.total, d.calibration, d.refinement, d.epistemic, d.irreducible, d.grouping]
        agrees(ours, printed, score, within=1e-6)
        said.append(f"{score} {number(d.total)} = {number(d.calibration)} + {number(d.refinement)}")
    return "**agrees**: " + "; ".join(said) + "; grouping loss .0667 and .1910, not printed there"


@PAPER.item("Second footnote", "a model can be class-wise and not confidence calibrated", "both notions")
def footnote() -> str:
    rows = np.array([(3, 3, 4), (4, 3, 3), (4, 6, 0), (3, 6, 1)]) / 10
    y = np.repeat([0, 1, 2] * 4, [4, 2, 4, 3, 4, 3, 5, 5, 0, 2, 7, 1])
    ours = [
        cal.calibration_error(y, np.repeat(rows, 10, axis=0), notion=n, estimator=cal.Binned(10))
        for n in ("class-wise", "confidence")
    ]
    return agrees(ours, [0, 0.025], "errors 0 and .025 (of confidence .4, half of all, 35 % are right)")


def _table_3(notion: str | cal.notions.Notion, norm: float = 1) -> float:
    return cal.calibration_error(data.LABELS_3, data.TABLE_3, notion=notion, estimator=cal.Binned(5), norm=norm)


@PAPER.item(
    "Bins of Table 3, class ECE", "five bins of Table 3: printed .1873, .147, .2017", "`notion=ClassSpecific(k)`"
)
def class_errors() -> str:
    ours = [_table_3(cal.notions.ClassSpecific(k)) for k in (1, 2, 3)]
    agrees(ours, [169 / 900, 131 / 900, 91 / 450], "in exact arithmetic")
    return differs(
        ours[0], 0.1873, "exact 169/900, 131/900, 91/450; the print comes from bin means rounded first", by=1e-4
    )


@PAPER.item("Bins of Table 3, class-wise ECE", "mean over classes, printed .1787", '`notion="class-wise"`')
def classwise() -> str:
    agrees(_table_3("class-wise"), 241 / 1350, "241/1350")
    return differs(_table_3("class-wise"), 0.1787, "exact 241/1350; rounded first in print", by=1e-4)


@PAPER.item("Bins of Table 3, confidence ECE", "printed .2117", '`notion="confidence"`; the first label wins a tie')
def confidence() -> str:
    agrees(_table_3("confidence"), 19 / 90, "19/90")
    return differs(_table_3("confidence"), 0.2117, "exact 19/90; rounded first in print", by=1e-4)


@PAPER.item("Bins of Table 3, maximum errors", "printed .48, mean over classes .34, confidence .3", "`norm=inf`")
def maxima() -> str:
    ours = [_table_3("class-wise", INF), _table_3(cal.notions.Classwise("mean"), INF), _table_3("confidence", INF)]
    said = agrees(ours, [17 / 35, (17 / 35 + 7 / 30 + 3 / 10) / 3, 0.3], "17/35, their mean, 3/10")
    return said + "; .4857 where .48 is printed"


@PAPER.item(
    "Reliability diagrams", "frequency and mean score of each bin", "`reliability_curve(…, estimator=Binned(5))`"
)
def diagrams() -> str:
    curve = cal.reliability_curve(
        data.LABELS_3, data.TABLE_3, notion=cal.notions.ClassSpecific(1), estimator=cal.Binned(5)
    )
    agrees(curve.scores, [1 / 10, 37 / 105, 17 / 30, 27 / 35, 19 / 20], "mean scores")
    return agrees(curve.observed, [2 / 11, 3 / 7, 1 / 3, 2 / 7, 1], "frequencies 2/11, 3/7, 1/3, 2/7, 1 of class 1")


@PAPER.item("Table 8, Hosmer–Lemeshow", "C = 25.3, p = .0003", "`hosmer_lemeshow_test(…, n_bins=5, df='fit')`")
def hosmer_lemeshow_test() -> str:
    found = cal.significance.hosmer_lemeshow_test(data.LABELS_3, data.TABLE_3, n_bins=5, df="fit")
    agrees(found.pvalue, chi2.sf(found.statistic, 6), "p of 6 degrees of freedom")
    return agrees([found.statistic, found.pvalue], [25.300429, 0.000300369], "C = 25.3004, p = .000300", within=1e-6)


@PAPER.item("Equation 21", "Hosmer–Lemeshow's statistic", "`hosmer_lemeshow_test`")
def equation_21() -> str:
    found = cal.significance.hosmer_lemeshow_test(data.LABELS_3, data.TABLE_3, n_bins=5, df="fit")
    score = 1 - data.TABLE_3[:, 0]
    group = np.clip(np.searchsorted(np.percentile(score, range(0, 101, 20)), score - 1e-12) - 1, 0, 4)
    printed = 0.0
    for g in range(5):
        for k in range(3):
            o = (data.LABELS_3[group == g] == k + 1).sum()
            e = data.TABLE_3[group == g, k].sum()
            printed += 2 * (o - e) ** 2 / e if e > 0 else 0.0
    agrees(found.statistic, printed / 2, "half of what is printed", within=1e-9)
    return differs(found.statistic, printed, "as printed it counts every term twice; Table 8 has it once")


@PAPER.item("Algorithm 1", "labels drawn from the scores; printed p = .016 for class-wise ECE", "`calibration_test`")
def algorithm_1() -> str:
    found = cal.calibration_test(
        data.LABELS_3, data.TABLE_3, notion="class-wise", estimator=cal.Binned(5), n_resamples=20_000
    )
    said = agrees(
        found.pvalue, 0.0126, "200,000 draws give .0126 (≥) and .0115 (>)", within=3 * np.sqrt(0.0126 / 20_000)
    )
    return said + "; the printed .016 is of 1000 draws, standard error .004"


@PAPER.item("Algorithm 1, any statistic", "proper scores in place of the ECE", '`calibration_test(estimator="brier")`')
def algorithm_1_scores() -> str:
    y, q = data.vectors(200)
    found = cal.calibration_test(y, q, estimator="brier", n_resamples=4000)
    rng = np.random.default_rng(5)
    drawn = (rng.random((4000, len(q), 1)) > q.cumsum(axis=1)).sum(axis=2).clip(0, 2)
    scores = ((data.onehot(drawn, 3) - q) ** 2).sum(axis=2).mean(axis=1)
    own = ((data.onehot(y, 3) - q) ** 2).sum(axis=1).mean()
    return agrees(found.pvalue, np.mean(scores >= own), "4000 draws beside 4000 drawn row by row", within=0.03)


@PAPER.item("Figure 21", "histogram of the statistic under calibration", "`TestResult.draws`, `.plot()`")
def figure_21() -> str:
    import matplotlib.pyplot as plt

    found = cal.calibration_test(data.LABELS_3, data.TABLE_3, notion="class-wise", estimator=cal.Binned(5))
    axes = found.plot().ax_
    bars = sum(p.get_height() * p.get_width() for p in axes.patches if hasattr(p, "get_width"))
    plt.close(axes.figure)
    if found.draws is None or len(found.draws) != 999:
        raise ValueError(f"999 draws are kept; got {found.draws!r}")
    return holds(
        bars > 0, f"999 draws kept and drawn, {np.mean(found.draws >= found.statistic):.3f} of them as large as ours"
    )


@PAPER.item("Pearson's χ² over distinct scores", "`Σ (O - E)² / Var` over scores that are equal", "`pearson_test`")
def pearson() -> str:
    y, s = data.binary(400)
    s = np.clip(np.round(s, 1), 0.1, 0.9)
    values = np.unique(s)
    terms = [(y[s == v].sum() - v * (s == v).sum()) ** 2 / ((s == v).sum() * v * (1 - v)) for v in values]
    found = cal.significance.pearson_test(y, s, algorithm="chi-squared")
    agrees(found.pvalue, chi2.sf(sum(terms), len(values)), "p", within=1e-10)
    return agrees(found.statistic, sum(terms), f"over {len(values)} scores", within=1e-9)


@PAPER.item("Proper scores", "Brier score and log-loss", "`brier_score`, `log_loss`")
def scores() -> str:
    y, q = data.vectors()
    ours = [cal.brier_score(y, q), cal.log_loss(y, q)]
    theirs = [((data.onehot(y, 3) - q) ** 2).sum(axis=1).mean(), -np.log(q[np.arange(len(y)), y]).mean()]
    return agrees(ours, theirs, f"{number(ours[0])} (0 to 2) and {number(ours[1])}, by their formulas")


@PAPER.item(
    "§2.2, logistic map of normal scores",
    "class means and one variance give slope and place in closed form",
    '`calibrators.PlattScaling(solver="closed-form")`',
)
def closed_form() -> str:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    rng = np.random.default_rng(6)
    y = rng.integers(2, size=2000)
    z = rng.normal(1.5 * y - 0.7, 1.2)
    c = calibrators.PlattScaling(solver="closed-form", smoothing=False, shrinkage=0, input="logit").fit(z, y)
    lda = LinearDiscriminantAnalysis(solver="lsqr").fit(z[:, None], y)
    other = calibrators.PlattScaling(smoothing=False, shrinkage=0, input="logit").fit(z, y)
    said = agrees([c.coef_, c.intercept_], [lda.coef_[0, 0], lda.intercept_[0]], "with scikit-learn's LDA", within=1e-8)
    return f"{said}; slope {c.coef_:.3f}, by likelihood {other.coef_:.3f}, true {1.5 / 1.44:.3f}"


@PAPER.item("Figure 5d, probability paper", "axes on a probit scale", '`reliability_curve(…).plot(scale="probit")`')
def probability_paper() -> str:
    import matplotlib.pyplot as plt
    from scipy.stats import norm

    y, s = data.binary()
    axes = cal.reliability_curve(y, s, estimator=cal.Binned(10)).plot(scale="probit").ax_
    axes.figure.canvas.draw()
    p = np.array([0.1, 0.3, 0.5, 0.8])
    x = axes.transData.transform(np.column_stack([p, p]))[:, 0]
    plt.close(axes.figure)
    share = (x - x[0]) / (x[-1] - x[0])
    theirs = (norm.ppf(p) - norm.ppf(p[0])) / (norm.ppf(p[-1]) - norm.ppf(p[0]))
    return agrees(share, theirs, "places of .1, .3, .5 and .8 beside normal quantiles", within=1e-6)


@PAPER.item("Brier curves", "expected loss over costs; the area is the Brier score", "`brier_curve`")
def brier_curve() -> str:
    y, s = data.binary()
    curve = cal.scores.brier_curve(y, s)
    c = np.array([0.13, 0.42, 0.77])
    loss = [2 * np.mean(np.where(y == 1, (1 - v) * (s <= v), v * (s > v))) for v in c]
    agrees([np.interp(v, curve.thresholds, curve.scores) for v in c], loss, "loss at three costs", within=1e-9)
    return agrees(curve.brier_score, np.mean((s - y) ** 2), "area and mean of (s - o)²", within=1e-10)
