"""Tests with p-values: the survey's numbers, exactness under calibration, second implementations."""

import itertools

import numpy as np
import pytest
from scipy import special, stats
from sklearn.linear_model import LogisticRegression

import calibrant as cal
from calibrant.significance import spiegelhalter_test
from calibrant.significance.cumulative_sums import range_survival, sup_survival

from ..reference.test_survey import P as TABLE_3
from ..reference.test_survey import Y as TABLE_3_LABELS

TESTS = {
    "hosmer-lemeshow": lambda y, p: cal.significance.hosmer_lemeshow_test(y, p, df="external"),
    "spiegelhalter": spiegelhalter_test,
    "cox": cal.significance.cox_test,
    "ks": lambda y, p: cal.significance.cumulative_test(y, p, statistic="ks"),
    "kuiper": cal.significance.cumulative_test,
    "resampling": lambda y, p: cal.calibration_test(y, p, estimator=cal.Binned(10), n_resamples=99, random_state=0),
    "kernel": lambda y, p: cal.significance.kernel_test(y, p, n_resamples=39, random_state=0),
    "kernel, blocks": lambda y, p: cal.significance.kernel_test(
        y, p, algorithm="asymptotic", estimator=cal.estimators.KernelCalibrationError(block=20), random_state=0
    ),
}


def several(n, k=3, power=1.0, seed=0):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(k), n)
    y = (rng.random((n, 1)) > np.cumsum(q, axis=1)).sum(axis=1)
    p = q**power
    return y, p / p.sum(axis=1, keepdims=True)


def test_table_8_of_the_survey():
    found = cal.significance.hosmer_lemeshow_test(TABLE_3_LABELS, TABLE_3, n_bins=5, df="fit")
    assert found.statistic == pytest.approx(25.300429147356006, abs=1e-9)
    assert found.df == 6
    assert found.pvalue == pytest.approx(0.00030036902600005994, rel=1e-6)
    assert any("below 5" in text for text in found.warnings)


def test_algorithm_1_of_the_survey():
    """200 000 draws elsewhere gave 0.01149 above and 0.0126 not below; 20 000 have a standard error of 0.0008."""
    found = cal.calibration_test(
        TABLE_3_LABELS, TABLE_3, notion="classwise", estimator=cal.Binned(5), n_resamples=20_000, random_state=0
    )
    assert found.statistic == pytest.approx(241 / 1350, abs=1e-12)
    assert found.details["share_of_draws_above"] == pytest.approx(0.01149, abs=0.003)
    assert found.details["share_of_draws_at_least"] == pytest.approx(0.0126, abs=0.003)
    assert found.details["mean_of_draws"] == pytest.approx(0.11153, abs=0.002)
    assert found.pvalue == (found.details["share_of_draws_at_least"] * 20_000 + 1) / 20_001


@pytest.mark.slow
@pytest.mark.parametrize("name", TESTS)
def test_size_and_power(name):
    """Calibrated: rejected at 5 % in no more than 5 % of 400 samples plus four standard errors; else nearly always."""
    rng = np.random.default_rng(1)
    rejected = 0
    for _ in range(400):
        p = rng.random(200)
        rejected += TESTS[name](rng.random(200) < p, p).pvalue <= 0.05
    assert 1 <= rejected <= 20 + 4 * np.sqrt(400 * 0.05 * 0.95)
    power = 0
    for _ in range(20):
        p = rng.random(500)
        power += TESTS[name](rng.random(500) < 0.25 + 0.5 * p, p).pvalue <= 0.05
    # KS has little power here, for gaps of both signs cancel; so have blocks, which leave most pairs out.
    assert power >= (8 if "blocks" in name else 17)


@pytest.mark.parametrize("name", [name for name in TESTS if "kernel" not in name])
def test_weights_are_repeats(name):
    rng = np.random.default_rng(2)
    p = rng.random(200)
    y = rng.random(200) < p**1.4
    w = rng.integers(0, 4, 200)
    rows = np.repeat(np.arange(200), w)
    functions = {
        "hosmer-lemeshow": lambda *a, **k: cal.significance.hosmer_lemeshow_test(*a, df="external", **k),
        "spiegelhalter": spiegelhalter_test,
        "cox": cal.significance.cox_test,
        "ks": lambda *a, **k: cal.significance.cumulative_test(*a, statistic="ks", **k),
        "kuiper": cal.significance.cumulative_test,
        "resampling": lambda *a, **k: cal.calibration_test(*a, n_resamples=9, random_state=0, **k),
    }
    one = functions[name](y, p, sample_weight=w)
    other = functions[name](y[rows], p[rows])
    assert one.statistic == pytest.approx(other.statistic, rel=1e-6)
    if name != "resampling":  # a row of weight 3 draws one label, three rows draw three
        assert one.pvalue == pytest.approx(other.pvalue, rel=1e-5)
        scaled = functions[name](y, p, sample_weight=0.37 * w)
        assert 0 <= scaled.pvalue <= 1


@pytest.mark.parametrize(
    ("notion", "estimator"),
    [
        *itertools.product(
            ["class-specific", "confidence", "classwise"], [cal.Binned(7), cal.Binned("sqrt", "quantile")]
        ),
        (cal.notions.Classwise(average="max"), cal.Binned(5)),
    ],
    ids=str,
)
@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_bins_of_all_draws_at_once_are_the_estimator(notion, estimator, norm):
    y, p = several(150, power=1.5)
    p[:5] = np.eye(3)[y[:5]]
    if notion == "class-specific":
        notion = cal.notions.ClassSpecific(2)
    w = np.random.default_rng(0).random(150)
    options = {"notion": notion, "norm": norm, "sample_weight": w, "n_resamples": 40, "random_state": 3}
    fast = cal.calibration_test(y, p, estimator=estimator, **options)
    slow = cal.calibration_test(y, p, estimator=Slow(estimator), **options)
    assert fast.statistic == pytest.approx(slow.statistic, abs=1e-12)
    assert fast.pvalue == slow.pvalue
    assert fast.details["mean_of_draws"] == pytest.approx(slow.details["mean_of_draws"], abs=1e-12)
    want = cal.calibration_error(y, p, notion=notion, estimator=estimator, norm=norm, sample_weight=w)
    assert fast.statistic == pytest.approx(want, abs=1e-12)


class Slow(cal.estimators.Estimator):
    """Another estimator's readings, under a name that no shortcut knows."""

    def __init__(self, inner):
        self.inner = inner

    def power(self, problem, norm):
        return self.inner.power(problem, norm)


@pytest.mark.parametrize(
    ("notion", "estimator"),
    [
        ("auto", "auto"),
        ("top-label", "auto"),
        ("canonical", "auto"),
        ("classwise", cal.EmpiricalBayes()),
        ("confidence", cal.estimators.Cumulative("kuiper")),
        ("confidence", cal.Binned(10, debias=True)),
        ("confidence", cal.Binned(10, mapping="linear")),
    ],
)
def test_any_notion_and_estimator(notion, estimator):
    y, p = several(200, power=2.5)
    options = {"notion": notion, "estimator": estimator, "n_resamples": 39, "random_state": 0}
    wrong = cal.calibration_test(y, p, **options)
    assert wrong.pvalue == 1 / 40
    assert wrong.statistic > wrong.details["mean_of_draws"]
    assert cal.calibration_test(*several(200, seed=4), **options).pvalue > 0.025
    assert cal.calibration_test(y, p, **options) == wrong


@pytest.mark.parametrize("notion", ["canonical", "confidence", cal.notions.ClassSpecific(1)], ids=str)
def test_kernels_of_all_draws_at_once_are_the_estimator(notion):
    y, p = several(60, power=1.5)
    kce = cal.estimators.KernelCalibrationError()
    found = cal.significance.kernel_test(y, p, notion=notion, n_resamples=30, random_state=7)
    assert found.statistic == pytest.approx(cal.squared_calibration_error(y, p, notion=notion, estimator=kce), rel=1e-9)
    rng = np.random.default_rng(7)
    draws = (rng.random((30, 60))[:, :, None] > np.cumsum(p, axis=1)[None, :, :-1]).sum(axis=2)
    each = [cal.squared_calibration_error(z, p, notion=notion, estimator=kce, labels=[0, 1, 2]) for z in draws]
    assert found.pvalue == (np.sum(np.array(each) >= found.statistic * (1 - 1e-9)) + 1) / 31


def test_kernel_test_of_weights_and_vectors():
    y, p = several(400, power=2.0)
    w = np.random.default_rng(0).random(400)
    assert cal.significance.kernel_test(y, p, sample_weight=w, n_resamples=99, random_state=0).pvalue <= 0.03
    y, p = several(1000, power=3.0)
    blocks = cal.significance.kernel_test(
        y, p, algorithm="asymptotic", estimator=cal.estimators.KernelCalibrationError(block=40), random_state=0
    )
    assert blocks.pvalue < 0.01
    assert blocks.df == 24
    assert blocks.pvalue == pytest.approx(stats.t.sf(blocks.statistic, 24))
    assert blocks.details["bandwidth"] > 0
    few = cal.significance.kernel_test(y[:50], p[:50], algorithm="asymptotic", random_state=0)
    assert few.warnings
    assert few.df == 4  # blocks of ten
    assert cal.significance.kernel_test(y, p, algorithm="asymptotic").df == 1000 // 31 - 1
    assert (
        cal.significance.kernel_test(y, p, algorithm="asymptotic", sample_weight=np.arange(1000) % 2).df
        == 500 // 31 - 1
    )


def test_blocks_of_a_file_sorted_by_label_are_dealt_at_random():
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    y = (rng.random(1000) < p).astype(int)
    order = np.argsort(y, kind="stable")
    found = cal.significance.kernel_test(y[order], p[order], algorithm="asymptotic", random_state=0)
    assert found.pvalue > 0.02
    assert cal.significance.kernel_test(y[order], p[order], algorithm="asymptotic", random_state=0) == found
    with pytest.raises(ValueError, match="needs two blocks of 10 rows; got 15 rows: use 'resampling'"):
        cal.significance.kernel_test(y[:15], p[:15], algorithm="asymptotic")


def test_kernels_of_repeats():
    y, p = several(80, power=1.5)
    w = np.random.default_rng(0).integers(0, 4, 80)
    for weights in (w, w + 0.5):
        found = cal.significance.kernel_test(y, p, sample_weight=weights, n_resamples=19, random_state=0)
        want = cal.squared_calibration_error(
            y, p, notion="canonical", estimator=cal.estimators.KernelCalibrationError(), sample_weight=weights
        )
        assert found.statistic == pytest.approx(want, rel=1e-9)


def test_cumulative_by_hand():
    rng = np.random.default_rng(0)
    p, w = rng.random(100), rng.random(100)
    y = (rng.random(100) < p).astype(int)
    order = np.argsort(p)
    walk = np.concatenate([[0], np.cumsum((w * (y - p))[order])])
    sigma = np.sqrt((w**2 * p * (1 - p)).sum())  # of relative weights: variances go with their squares
    kuiper, ks = (
        cal.significance.cumulative_test(y, p, sample_weight=w),
        cal.significance.cumulative_test(y, p, sample_weight=w, statistic="ks"),
    )
    assert kuiper.statistic == pytest.approx((walk.max() - walk.min()) / sigma)
    assert ks.statistic == pytest.approx(np.abs(walk).max() / sigma)
    assert ks.pvalue == pytest.approx(sup_survival(ks.statistic))


def test_cox_of_a_single_score():
    found = cal.significance.cox_test([0, 1, 1, 1, 0, 1], np.full(6, 0.3))
    assert found.df == 1
    assert found.pvalue == found.details["in_the_large_pvalue"]
    assert np.isnan(found.details["slope"])
    assert any("all scores are equal" in text for text in found.warnings)


@pytest.mark.slow
def test_p_values_are_uniform_under_calibration():
    rng = np.random.default_rng(0)
    values = []
    for i in range(200):
        p = rng.random(60)
        values.append(cal.calibration_test(rng.random(60) < p, p, n_resamples=99, random_state=i).pvalue)
    assert stats.kstest(values, "uniform").pvalue > 0.01


def test_hosmer_lemeshow_by_hand():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = (rng.random(500) < p).astype(int)
    found = cal.significance.hosmer_lemeshow_test(y, p, n_bins=5, df="fit")
    edges = np.percentile(p, [20, 40, 60, 80])
    group = (p[:, None] > edges).sum(axis=1)
    total = 0.0
    for g in range(5):
        e, o, n = p[group == g].sum(), y[group == g].sum(), (group == g).sum()
        total += (o - e) ** 2 / e + (o - e) ** 2 / (n - e)
    assert found.statistic == pytest.approx(total)
    assert found.pvalue == pytest.approx(stats.chi2.sf(total, 3))
    assert cal.significance.hosmer_lemeshow_test(y, p, n_bins=5).df == 5  # for rows that no model was fitted to
    assert cal.significance.hosmer_lemeshow_test(y, p, n_bins=5, df=4).pvalue == pytest.approx(stats.chi2.sf(total, 4))


def test_hosmer_lemeshow_of_hard_cases():
    impossible = cal.significance.hosmer_lemeshow_test(
        [1, 0, 1, 0, 1, 1], [0.0, 0.2, 0.4, 0.5, 0.6, 0.9], n_bins=6, df="external"
    )
    assert impossible.statistic == np.inf
    assert impossible.pvalue == 0
    constant = cal.significance.hosmer_lemeshow_test([1, 1, 1, 0], [0.5] * 4, df="fit")
    assert np.isnan(constant.pvalue)
    assert any("coincide" in text for text in constant.warnings)


def test_spiegelhalter_by_hand():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    z = ((y - p) * (1 - 2 * p)).sum() / np.sqrt(((1 - 2 * p) ** 2 * p * (1 - p)).sum())
    found = spiegelhalter_test(y, p)
    assert found.statistic == pytest.approx(z)
    assert found.pvalue == pytest.approx(2 * stats.norm.sf(abs(z)))
    matrix = spiegelhalter_test(y, np.column_stack([1 - p, p]))
    assert matrix.statistic == pytest.approx(z)
    assert spiegelhalter_test([0, 1], [0.5, 0.5]).pvalue == 1
    y, q = several(3000)
    draws = [spiegelhalter_test((np.random.default_rng(i).random((3000, 1)) > q.cumsum(1)).sum(1), q).statistic
             for i in range(200)]  # fmt: skip
    assert np.std(draws) == pytest.approx(1, abs=0.2)


def test_cox_is_logistic_regression():
    rng = np.random.default_rng(0)
    p = rng.random(800)
    y = (rng.random(800) < p**1.5).astype(int)
    z = np.log(p / (1 - p))
    peer = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(z[:, None], y)
    found = cal.significance.cox_test(y, p)
    assert found.details["slope"] == pytest.approx(peer.coef_[0, 0], abs=1e-5)
    assert found.details["intercept"] == pytest.approx(peer.intercept_[0], abs=1e-5)
    g = peer.predict_proba(z[:, None])[:, 1]
    gain = 2 * (np.log(np.where(y == 1, g, 1 - g)).sum() - np.log(np.where(y == 1, p, 1 - p)).sum())
    assert found.statistic == pytest.approx(gain, rel=1e-6)
    x = np.column_stack([np.ones(800), z])
    se = np.sqrt(np.diag(np.linalg.inv((x * (g * (1 - g))[:, None]).T @ x)))
    assert [found.details["intercept_se"], found.details["slope_se"]] == pytest.approx(se, rel=1e-4)
    shifted = 1 / (1 + np.exp(-(z + found.details["in_the_large"])))
    assert shifted.sum() == pytest.approx(y.sum(), rel=1e-6)
    assert any("separated" in text for text in cal.significance.cox_test([0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9]).warnings)
    assert any("1e-12" in text for text in cal.significance.cox_test([0, 1, 1, 0], [0.0, 0.2, 0.7, 0.9]).warnings)


@pytest.mark.slow
def test_brownian_probabilities():
    """Against random walks of 4000 steps, whose extremes are a little smaller; published 5 % points of sup |B|."""
    rng = np.random.default_rng(0)
    walks = np.cumsum(rng.choice([-1.0, 1.0], (4000, 4000)), axis=1) / np.sqrt(4000)
    top, bottom = np.maximum(walks.max(axis=1), 0), np.minimum(walks.min(axis=1), 0)
    for x in (0.6, 1.0, 1.5, 2.2, 3.0):
        assert (np.maximum(top, -bottom) > x).mean() == pytest.approx(sup_survival(x), abs=0.04)
        assert (top - bottom > x).mean() == pytest.approx(range_survival(x), abs=0.04)
    assert sup_survival(2.2414) == pytest.approx(0.05, abs=1e-4)
    assert sup_survival(0.99999) == pytest.approx(sup_survival(1.00001), abs=1e-4)
    assert (sup_survival(0), range_survival(0), sup_survival(np.inf), range_survival(np.inf)) == (1, 1, 0, 0)
    assert range_survival(0.5) == pytest.approx(1, abs=1e-6)


def test_results_read_well():
    y, p = several(100)
    found = spiegelhalter_test(y, p)
    assert "Spiegelhalter" in str(found)
    assert found.to_dict()["pvalue"] == found.pvalue
    assert "df 2" in str(cal.significance.cox_test([0, 1, 1, 0, 1], [0.2, 0.3, 0.7, 0.6, 0.4]))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cal.significance.hosmer_lemeshow_test([0, 1], [0.2, 0.3], n_bins=2), "n_bins must be an int >= 3"),
        (lambda: cal.significance.hosmer_lemeshow_test([0, 1], [0.2, 0.3], df="many"), "df must be"),
        (lambda: cal.significance.cox_test(*several(20)), "two classes; got 3"),
        (lambda: cal.significance.cumulative_test(*several(20), notion="classwise"), "several problems"),
        (lambda: cal.significance.cumulative_test(*several(20), notion="canonical"), "several problems"),
        (lambda: cal.significance.cumulative_test([0, 1], [0.2, 0.3], statistic="ad"), "statistic"),
        (lambda: cal.significance.kernel_test([0, 1], [0.2, 0.3], algorithm="exact"), "algorithm must be"),
        (lambda: cal.significance.kernel_test([0, 1], [0.2, 0.3], n_resamples=0), "n_resamples must be"),
        (lambda: cal.significance.kernel_test(*several(20), notion="classwise"), "several problems"),
        (lambda: cal.calibration_test([0, 1], [0.2, 0.3], n_resamples=0), "n_resamples must be"),
        (lambda: cal.calibration_test([0, 1], [0.2, 0.3], norm=0.5), "norm must be"),
        (lambda: cal.calibration_test([0, 1], [0.2, 0.3], estimator="ece"), "estimator must be"),
    ],
)
def test_bad_arguments(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_cox_solves_its_equations_for_any_weights():
    """Residuals are orthogonal to 1 and to the log odds; a sample with relative weights is not called separated."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.7, 0.9, 700)
    y = rng.random(700) < p**1.4
    z = np.log(p) - np.log1p(-p)
    for w in (np.ones(700), rng.integers(0, 4, 700), rng.random(700), 1e-4 * rng.random(700)):
        found = cal.significance.cox_test(y, p, sample_weight=w)
        assert found.warnings == ()
        residual = w * (y - special.expit(found.details["intercept"] + found.details["slope"] * z))
        assert np.array([residual.sum(), residual @ z]) == pytest.approx(0, abs=1e-9 * w.sum())
        large = w * (y - special.expit(found.details["in_the_large"] + z))
        assert large.sum() == pytest.approx(0, abs=1e-9 * w.sum())


@pytest.mark.parametrize("score", ["brier", "log-loss", cal.scores.Spherical()])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_proper_score_as_the_statistic(score, classes):
    """Algorithm 1 of the survey by hand: scores of labels drawn from the probabilities, one by one."""
    rng = np.random.default_rng(5)
    q = rng.dirichlet(np.ones(classes), 40)
    y = (rng.random((40, 1)) > q.cumsum(axis=1)).sum(axis=1)
    w = rng.integers(0, 3, 40) + 0.5
    found = cal.calibration_test(y, q, estimator=score, n_resamples=30, random_state=9, sample_weight=w)
    rule = {"brier": cal.scores.Brier(), "log-loss": cal.scores.Log()}.get(score, score)

    def mean(codes):
        return sum(v * rule.table(q[[i]])[0, k] for i, (v, k) in enumerate(zip(w, codes, strict=True))) / w.sum()

    uniform = np.random.default_rng(9).random((30, 40))
    draws = [mean([int((u > c).sum()) for u, c in zip(row, q.cumsum(axis=1)[:, :-1], strict=True)]) for row in uniform]
    assert found.statistic == pytest.approx(mean(y))
    assert found.draws == pytest.approx(draws)
    assert found.pvalue == pytest.approx((sum(d >= mean(y) - 1e-12 for d in draws) + 1) / 31)


def test_scores_see_overconfidence_and_what_cannot_be():
    rng = np.random.default_rng(1)
    p = rng.random(400)
    wild = np.clip(0.5 + 1.8 * (p - 0.5), 0.01, 0.99)
    y = (rng.random(400) < p).astype(int)
    for score in ("brier", "log-loss"):
        assert cal.calibration_test(y, wild, estimator=score, n_resamples=99, random_state=3).pvalue == 0.01
        assert cal.calibration_test(y, p, estimator=score, n_resamples=99, random_state=3).pvalue > 0.05
    never = cal.calibration_test([0, 1, 1], [0.2, 0.0, 0.7], estimator="log-loss", n_resamples=9, random_state=0)
    assert never.statistic == np.inf
    assert never.pvalue == 0.1
    with pytest.raises(ValueError, match="nothing to compare"):
        never.plot()


def test_pearson_over_distinct_scores():
    """By hand, and against SciPy's chi-squared statistic of the counts of every score."""
    rng = np.random.default_rng(0)
    vectors = np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0], [0.1, 0.1, 0.8]])
    at = rng.integers(0, 3, 600)
    y = (rng.random((600, 1)) > vectors[at].cumsum(axis=1)).sum(axis=1)
    found = cal.significance.pearson_test(y, vectors[at])
    parts = []
    for m, v in enumerate(vectors):
        counts = np.bincount(y[at == m], minlength=3)
        parts.append(stats.chisquare(counts[v > 0], counts.sum() * v[v > 0]).statistic)
    assert found.statistic == pytest.approx(sum(parts))
    assert found.df == 2 + 1 + 2
    assert found.pvalue == pytest.approx(stats.chi2.sf(sum(parts), 5))
    assert found.details["distinct_scores"] == 3
    drawn = cal.significance.pearson_test(y, vectors[at], algorithm="resampling", n_resamples=4999)
    assert drawn.pvalue == pytest.approx(found.pvalue, abs=0.03)
    assert drawn.draws.mean() == pytest.approx(5, abs=0.2)


def test_pearson_of_scores_that_do_not_repeat_is_exact():
    rejected = [
        cal.significance.pearson_test(rng.random(60) < p, p, n_resamples=99, random_state=1000 + i).pvalue <= 0.05
        for i, rng in enumerate(map(np.random.default_rng, range(200)))
        for p in [rng.beta(0.5, 3, 60)]
    ]
    assert np.mean(rejected) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    with pytest.raises(ValueError, match="whole numbers"):
        cal.significance.pearson_test([0, 1], [0.2, 0.5], sample_weight=[0.5, 1.2], algorithm="resampling")
    certain = cal.significance.pearson_test([0, 1, 1], [0.0, 1.0, 1.0])
    assert certain.pvalue == 1
    assert "certain" in certain.warnings[0]
    assert cal.significance.pearson_test([1, 1, 0], [0.0, 0.5, 0.4], n_resamples=9).pvalue == 0.1
