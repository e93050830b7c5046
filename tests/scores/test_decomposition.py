"""Decompositions: the survey's numbers, identities, known truth, intervals."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import calibrant as cal
from calibrant.comparison.models.units import IndependentUnits
from calibrant.scores import BetaFamily, Brier, CostWeighted
from calibrant.scores.score_parts import ScoredRows, isotonic

# Table 2 of Silva Filho et al.: ten rows with true posterior Q and stated S.
Y = [0, 0, 0, 1, 0, 1, 1, 1, 2, 2]
Q = [[0.75, 0.25, 0]] * 4 + [[0.5, 0.5, 0]] + [[0.5, 0.5, 0]] + [[0, 0.5, 0.5]] * 4
S = [[0.9, 0.1, 0]] * 4 + [[0.6, 0.2, 0.2]] * 6
TABLE_2 = {
    "brier": (0.712, 0.195333333333, 0.516666666667, 0.262, 0.45, 0.066666666667),
    "log-loss": (1.1176681825904016, 0.2858915659184673, 0.8317766166719343, 0.4768458164069112, 0.6408223661834904,
            0.1909542504884439),
}  # fmt: skip
PARTS = ("total", "calibration", "refinement", "epistemic", "irreducible", "grouping")


@pytest.mark.parametrize("score", TABLE_2)
def test_table_2_of_the_survey(score):
    d = cal.decompose(Y, S, score=score, estimator="exact", posterior=Q)
    assert [getattr(d, part) for part in PARTS] == pytest.approx(TABLE_2[score], abs=1e-9)


def binary(n=600, seed=0, power=1.5, digits=None):
    rng = np.random.default_rng(seed)
    p = rng.random(n) if digits is None else rng.integers(0, 10**digits + 1, n) / 10**digits
    return (rng.random(n) < p**power).astype(int), p


def several(n=600, k=4, seed=0):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(k), n)
    y = (rng.random((n, 1)) > np.cumsum(q, axis=1)).sum(axis=1)
    p = q**2
    return y, p / p.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("estimator", ["corp", "binned", "exact"])
@pytest.mark.parametrize("score", ["brier", "log-loss", "spherical", BetaFamily(0.5, 2.0), CostWeighted(0.4)], ids=str)
def test_identities(estimator, score):
    y, p = binary(digits=1)
    inside = np.clip(p, 0.05, 0.95)
    d = cal.decompose(y, inside, score=score, estimator=estimator, posterior=inside**1.5, n_bins=7)
    assert d.total == pytest.approx(d.calibration + d.refinement + d.within, abs=1e-12)
    assert d.total == pytest.approx(d.miscalibration - d.discrimination + d.uncertainty + d.within, abs=1e-12)
    assert d.refinement == pytest.approx(d.grouping + d.irreducible, abs=1e-12)
    assert d.epistemic == pytest.approx(d.calibration + d.grouping + d.within, abs=1e-12)
    assert d.skill == pytest.approx(1 - d.total / d.uncertainty)
    assert d.calibration >= -1e-12
    assert d.discrimination >= -1e-12
    name = score if isinstance(score, str) else None
    from calibrant.scores import mean_score

    assert d.total == pytest.approx(mean_score(y, inside, name or score), abs=1e-12)
    if estimator != "binned":
        assert d.within == 0


def test_corp_is_isotonic_regression():
    y, p = binary(digits=2)
    w = np.random.default_rng(1).random(len(y))
    fitted = IsotonicRegression(y_min=0, y_max=1).fit(p, y, sample_weight=w).predict(p)
    base = np.average(y, weights=w)
    d = cal.decompose(y, p, sample_weight=w)
    own = [np.average((q - y) ** 2, weights=w) for q in (p, fitted, base)]
    assert [d.total, d.refinement, d.uncertainty] == pytest.approx(own, abs=1e-12)
    flipped = cal.decompose(y, 1 - p, sample_weight=w, pos_label=0)
    assert flipped.calibration == pytest.approx(d.calibration, abs=1e-12)
    matrix = cal.decompose(y, np.column_stack([1 - p, p]), sample_weight=w)
    assert matrix.calibration == pytest.approx(d.calibration, abs=1e-12)
    assert "(p-o)²" in str(matrix)
    assert "(p-o)²" in str(d)
    summed = cal.decompose(y, np.column_stack([1 - p, p]), sample_weight=w, score=cal.scores.Brier("sum"))
    assert summed.calibration == pytest.approx(2 * d.calibration, abs=1e-12)


def test_one_brier_score_whoever_shows_it():
    """Two classes in one column or two: report, parts, sums and comparison of models print one number."""
    y, p = binary(digits=2)
    shown = cal.report(y, p).brier
    assert shown == pytest.approx(np.mean((p - y) ** 2))
    for scores in (p, np.column_stack([1 - p, p])):
        assert cal.report(y, scores).brier == pytest.approx(shown, abs=1e-12)
        assert cal.decompose(y, scores).total == pytest.approx(shown, abs=1e-12)
        assert cal.Accumulator().update(y, scores).decompose(estimator="binned").total == pytest.approx(
            shown, abs=1e-12
        )
        models = cal.compare_models(y, {"one": scores, "other": scores}, n_resamples=20)
        assert models.models[0].measures["brier"] == pytest.approx(shown, abs=1e-12)
        assert "Brier scores are (p-o)²" in " ".join(str(models).split())


def test_classes_of_brier_add_up():
    y, p = several()
    whole = {m: cal.decompose(y, p, estimator=m) for m in ("corp", "binned")}
    for estimator, d in whole.items():
        each = [cal.decompose(y == k, p[:, k], estimator=estimator) for k in range(4)]
        for part in ("total", "calibration", "refinement", "discrimination", "uncertainty", "within"):
            assert getattr(d, part) == pytest.approx(sum(getattr(e, part) for e in each), abs=1e-12)
    half = cal.decompose(y, p, score=Brier("half"))
    assert half.calibration == pytest.approx(whole["corp"].calibration / 2)


def test_murphys_bins_by_hand():
    y = np.array([0, 1, 1, 0, 1, 1])
    p = np.array([0.1, 0.3, 0.4, 0.7, 0.8, 0.9])
    d = cal.decompose(y, p, estimator="binned", n_bins=2)
    means, rates = np.array([0.8 / 3, 0.8]), np.array([2 / 3, 2 / 3])
    assert d.calibration == pytest.approx(((means - rates) ** 2).mean())
    assert d.refinement == pytest.approx((rates * (1 - rates)).mean())
    assert d.uncertainty == pytest.approx(2 / 3 * 1 / 3)
    ends = cal.decompose(
        [0, 1, 1, 0], [0.0, 0.3, 0.8, 1.0], estimator="binned", n_bins=2
    )  # 0 and 1 lie in the end bins
    assert ends.calibration == pytest.approx(((0.15 - 0.5) ** 2 + (0.9 - 0.5) ** 2) / 2)
    equal_mass = cal.decompose(y, p, estimator="binned", n_bins=2, strategy="quantile")
    assert equal_mass.calibration == pytest.approx(d.calibration)


@pytest.mark.parametrize("estimator", ["corp", "binned", "exact"])
def test_weights_are_repeats_and_order_is_no_matter(estimator):
    y, p = binary(200, digits=1)
    w = np.random.default_rng(2).integers(0, 4, 200)
    rows = np.repeat(np.arange(200), w)
    shuffled = np.random.default_rng(3).permutation(rows)
    one, other = (
        cal.decompose(y, p, estimator=estimator, sample_weight=w),
        cal.decompose(y[shuffled], p[shuffled], estimator=estimator),
    )
    for part in ("total", "calibration", "refinement", "uncertainty", "within"):
        assert getattr(one, part) == pytest.approx(getattr(other, part), abs=1e-12)


def test_a_posterior_goes_by_the_names_of_its_columns():
    pandas = pytest.importorskip("pandas")
    y, p = several(300, k=3)
    frame = pandas.DataFrame(p, columns=list("abc"))
    names = np.array(list("abc"))[y]
    for stated, true in ((frame, frame[["c", "a", "b"]]), (frame[["b", "c", "a"]], frame)):
        assert cal.decompose(names, stated, posterior=true).epistemic == pytest.approx(0, abs=1e-12)


def test_quantile_bins_of_repeats():
    y, p = binary(200)
    w = np.random.default_rng(2).integers(0, 4, 200)
    rows = np.repeat(np.arange(200), w)
    for n_bins in (7, "sqrt"):
        options = {"estimator": "binned", "strategy": "quantile", "n_bins": n_bins}
        one, other = cal.decompose(y, p, sample_weight=w, **options), cal.decompose(y[rows], p[rows], **options)
        assert one.calibration == pytest.approx(other.calibration, abs=1e-12)


def test_known_truth():
    y, p = binary(200_000)
    d = cal.decompose(y, p, posterior=p**1.5)
    # ∫(p^1.5 - p)² dp = 1/84, ∫p^1.5 (1 - p^1.5) dp = 3/20; five standard errors.
    assert d.calibration == pytest.approx(1 / 84, abs=1.5e-3)
    assert d.irreducible == pytest.approx(0.15, abs=2.5e-3)
    assert d.grouping == pytest.approx(0, abs=1.5e-3)


def test_certain_and_wrong_is_infinitely_miscalibrated():
    d = cal.decompose([0, 1, 1, 0], [0.0, 0.0, 0.9, 0.4], score="log-loss")
    assert d.total == np.inf
    assert d.calibration == np.inf
    assert np.isfinite(d.refinement)
    assert d.to_dict()["total"] is None
    assert np.isnan(cal.decompose([1, 1], [0.3, 0.9]).skill)


@pytest.mark.slow
def test_intervals():
    y, p = binary(1000)
    d = cal.decompose(y, p, n_resamples=300, random_state=0)
    again = cal.decompose(y, p, n_resamples=300, random_state=0)
    assert d.intervals == again.intervals
    for part in ("total", "calibration", "refinement", "discrimination", "uncertainty", "skill"):
        low, high = d.intervals[part]
        assert low < high
    assert d.intervals["total"].low < d.total < d.intervals["total"].high
    assert d.intervals["calibration"].low > 0  # far from calibrated
    wide = cal.decompose(y, p, n_resamples=300, level=0.99, random_state=0).intervals["total"]
    assert wide.high - wide.low > d.intervals["total"].high - d.intervals["total"].low
    text = str(d)
    assert "calibration" in text
    assert f"{d.intervals['total'].low:.4f}" in text


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["corp", "binned", "exact"])
def test_intervals_of_calibrated_forecasts_start_at_zero(estimator):
    """In about one of twenty not: 80 samples, so at most 4 + 3 · 1.95 of them."""
    rng = np.random.default_rng(5)
    off = 0
    for _ in range(80):
        # Of many distinct scores, the isotonic fit's noise would reach above 0 in a quarter of the samples.
        p = rng.random(500) if estimator == "corp" else rng.integers(0, 11, 200) / 10
        d = cal.decompose(rng.random(p.size) < p, p, estimator=estimator, n_resamples=99, random_state=rng)
        off += d.intervals["calibration"].low > 0
    assert off <= 9


def test_intervals_of_several_classes():
    y, p = several(300)
    d = cal.decompose(y, p, n_resamples=60, random_state=0)
    assert d.intervals["calibration"].low > 0
    assert set(d.to_dict()["intervals"]) == set(d.intervals)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"estimator": "bins"}, "estimator must be one of"),
        ({"score": "hinge"}, "score must be a scoring rule or one of"),
        ({"n_resamples": -1}, "n_resamples must be"),
        ({"n_resamples": 5, "level": 1.0}, "level must lie"),
        ({"n_bins": 0}, "n_bins"),
        ({"strategy": "kmeans"}, "strategy"),
        ({"posterior": [[0.2, 0.8]] * 3}, "posterior must have the shape"),
    ],
)
def test_bad_arguments(change, words):
    with pytest.raises(ValueError, match=words):
        cal.decompose([0, 1, 1], [0.2, 0.4, 0.8], **change)


def test_scores_that_are_no_sum_over_classes():
    y, p = several()
    with pytest.raises(ValueError, match="estimator='exact'"):
        cal.decompose(y, p, score="log-loss")
    with pytest.raises(ValueError, match="two classes; got 4"):
        cal.decompose(y, p, score=CostWeighted(0.5), estimator="exact")


def test_murphy_curve_is_the_elementary_score():
    y, p = binary(300, digits=2)
    w = np.random.default_rng(1).random(300)
    at = np.array([0.05, 0.3, 0.5, 0.77])
    curve = cal.scores.murphy_curve(y, p, at, sample_weight=w)
    from calibrant.scores import mean_score

    assert curve.scores == pytest.approx([mean_score(y, p, CostWeighted(float(c)), sample_weight=w) for c in at])
    base = np.average(y, weights=w)
    assert curve.base_rate == pytest.approx(np.minimum((1 - at) * base, at * (1 - base)))
    fine = cal.scores.murphy_curve(y, p, (np.arange(20_000) + 0.5) / 20_000)
    assert 2 * fine.scores.mean() == pytest.approx(((p - y) ** 2).mean(), abs=1e-6)
    flipped = cal.scores.murphy_curve(y, 1 - p, 1 - at, sample_weight=w, pos_label=0)
    assert flipped.scores == pytest.approx(curve.scores)


@pytest.mark.parametrize("thresholds", [[0.0], [1.0], [], [[0.5]], [np.nan]])
def test_bad_thresholds(thresholds):
    with pytest.raises(ValueError, match="thresholds must be"):
        cal.scores.murphy_curve([0, 1], [0.2, 0.8], thresholds)


def test_murphy_of_several_classes():
    with pytest.raises(ValueError, match="two classes; got 4"):
        cal.scores.murphy_curve(*several(50))


def test_murphy_display():
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    y, p = binary(300)
    display = cal.plot.MurphyDisplay.from_predictions(y, {"as it is": p, "sharper": p**1.5})
    drawn = {line.get_label(): line.get_ydata() for line in display.ax_.lines}
    assert drawn["sharper"] == pytest.approx(cal.scores.murphy_curve(y, p**1.5).scores)
    assert set(drawn) == {"base rate", "as it is", "sharper"}
    assert display.ax_.get_ylim()[0] == 0
    plt.close("all")


# Rows in groups --------------------------------------------------------------------------------------------


def repeated(n_groups=200, in_group=8, seed=0, power=1.0):
    """Groups of rows that are all alike, calibrated or not."""
    rng = np.random.default_rng(seed)
    p = rng.random(n_groups)
    rows = np.repeat(np.arange(n_groups), in_group)
    return (rng.random(n_groups) < p**power).astype(int)[rows], p[rows], rows


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["corp", "binned", "exact"])
def test_whole_groups_are_resampled(estimator):
    y, p, group = repeated(power=2)
    options = {"estimator": estimator, "n_resamples": 300}
    rows, groups = (cal.decompose(y, p, groups=g, **options) for g in (None, group))
    for part in PARTS[:3]:
        assert getattr(rows, part) == getattr(groups, part)
    # Percentiles of the mean loss of groups drawn, by hand.
    rng = np.random.default_rng(1)
    loss = ((y - p) ** 2)[::8]
    means = loss[rng.integers(200, size=(4000, 200))].mean(axis=1)
    got = groups.intervals["total"]
    assert tuple(got) == pytest.approx(np.quantile(means, [0.025, 0.975]), rel=0.05)
    assert np.ptp(got) > 2.2 * np.ptp(rows.intervals["total"])  # some sqrt(8) times
    once = cal.decompose(y[::8], p[::8], **options)
    for part in ("calibration", "refinement", "discrimination"):
        assert np.ptp(groups.intervals[part]) == pytest.approx(np.ptp(once.intervals[part]), rel=0.25), part


def test_groups_of_weighted_rows():
    y, p, group = repeated()
    w = np.random.default_rng(3).integers(0, 3, y.size)
    w[group < 5] = 0
    used = np.repeat(np.arange(y.size), w)
    one = cal.decompose(y, p, sample_weight=w, groups=group, n_resamples=50)
    other = cal.decompose(y[used], p[used], groups=group[used], n_resamples=50)
    assert one.total == pytest.approx(other.total, rel=1e-12)
    for part in ("total", "uncertainty", "refinement"):
        assert tuple(one.intervals[part]) == pytest.approx(tuple(other.intervals[part]), rel=1e-9)


@pytest.mark.parametrize("k", [2, 4])
def test_labels_drawn_for_groups_hang_together_as_residuals_do(k):
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(80), 10)
    q = rng.dirichlet(np.ones(k), 80)[group]

    def shared():
        return (rng.random((80, 1)) > np.cumsum(q[::10], axis=1)[:, :-1]).sum(axis=1)[group]

    def rows(codes, units):
        return ScoredRows(Brier("sum"), q, codes, np.ones(800), isotonic(q), None, units)

    y = shared()
    units = IndependentUnits.of(cal.as_predictions(y, q, groups=group, labels=list(range(k))))
    want = np.mean([rows(shared(), None).parts()["calibration"] for _ in range(60)])
    together = rows(y, units).calibrations_of_calibrated(60, rng).mean()
    alone = rows(y, None).calibrations_of_calibrated(60, rng).mean()
    assert together == pytest.approx(want, rel=0.2)
    assert alone < 0.4 * want


@pytest.mark.slow
def test_calibration_of_calibrated_rows_in_groups_starts_at_zero():
    above, held = [], []
    for seed in range(100):
        y, p, group = repeated(n_groups=60, in_group=6, seed=seed)
        found = cal.decompose(y, p, groups=group, n_resamples=99)
        above.append(found.intervals["calibration"].low > 0)
        held.append(found.intervals["total"].low <= np.mean(p * (1 - p)) <= found.intervals["total"].high)
    assert np.mean(above) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)
    assert np.mean(held) >= 0.92 - 3 * np.sqrt(0.05 * 0.95 / 100)
