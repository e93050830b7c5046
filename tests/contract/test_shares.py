"""A share y of weight w is two rows: the outcome with weight w·y, and no outcome with weight w·(1 - y)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import calibrant as cal
from calibrant.exceptions import DependenceWarning
from calibrant.measure.scoring_rules import RULES

from ..calibrators.table import ROWS as CALIBRATORS
from ..surface import NAMES
from .table import NOTIONS, ROWS
from .test_predictions import THREE, VERBS, call, options_of, plain
from .test_verdicts import TESTS

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.exceptions.CalibrantWarning")
N = 90
CLOSE = {"rtol": 1e-12, "atol": 1e-12}
KINDS = ("unweighted", "k of n", "relative")


def rows(kind: str, n_rows: int = N) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Shares of which some are 0 and some 1, scores, and weights."""
    rng = np.random.default_rng(5)
    p = rng.beta(0.8, 0.9, n_rows)
    n = rng.integers(1, 9, n_rows)
    y = rng.binomial(n, p**1.5) / n
    return y, p, {"unweighted": None, "k of n": n, "relative": rng.random(n_rows) + 0.05}[kind]


def split(y, p, w=None) -> tuple[list[int], list[Any], list[float], list[int]]:
    """Outcomes, scores, weights and given rows, one row after the other."""
    found: list[tuple[int, Any, float, int]] = []
    for i, (share, score) in enumerate(zip(y, p, strict=True)):
        weight = 1.0 if w is None else float(w[i])
        k = weight * share
        if w is not None and weight == int(weight) and abs(k - round(k)) < 1e-9:
            k = round(k)  # k of n
        if share > 0:
            found.append((1, score, k, i))
        if share < 1:
            found.append((0, score, weight - k if k == int(k) else weight * (1 - share), i))
    return tuple(map(list, zip(*found, strict=True)))  # type: ignore[return-value]


def both(kind: str, *, columns: bool = False, groups: bool = False) -> tuple[Any, Any]:
    """Predictions of shares, and of the rows they are split into."""
    y, p, w = rows(kind)
    scores = np.column_stack([1 - p, p]) if columns else p
    outcomes, probs, weights, given = split(y, scores, w)
    parts = cal.as_predictions(outcomes, np.array(probs), sample_weight=weights, groups=given if groups else None)
    return cal.as_predictions(y, scores, sample_weight=w, groups=np.arange(N) if groups else None), parts


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_every_estimator(row):
    for kind in KINDS[:2] if not row.slow("classwise") else KINDS[1:2]:
        for name, (notion, _) in NOTIONS.items():
            if not row.serves(name) or name == "top-label":
                continue
            soft, hard = both(kind, columns=name not in ("class-specific", "positive"))
            notion = "auto" if isinstance(notion, cal.notions.ClassSpecific) else notion
            found, wanted = (
                cal.calibration_error(one, notion=notion, estimator=row.estimator, norm=2) for one in (soft, hard)
            )
            np.testing.assert_allclose(found, wanted, **CLOSE, err_msg=f"{kind}, {name}")


#: They bet on outcomes of whole rows.
REFUSE = ("CalibrationMonitor.update", "evalue_test")
#: Rows are drawn, or dealt to folds: the parts of a row together, as those of a group.
TOGETHER = (
    "CostDisplay.curve_function",
    "CostDisplay.from_predictions",
    "adaptive_test",
    "calibration_test",
    "decompose",
    "expected_cost",
    "kernel_test",
)
#: What they say of the values that need no draws is compared below.
VALUES = ("ModelComparisonDisplay.from_predictions", "compare_models", "grouping_loss")


def answer(name: str, one: Any, given: list[int] | None = None) -> Any:
    options = options_of(name)
    if given is not None:
        options |= {role: np.asarray(options[role])[given] for role in ("by", "time", "X") if role in options}
    return plain(call(name, one, **options))


@pytest.mark.parametrize("name", sorted(VERBS.keys() - THREE - {"as_predictions", "score_samples", *VALUES}))
def test_every_function(name):
    if "Display" in name:
        pytest.importorskip("matplotlib").use("Agg")
    for kind in KINDS[:2]:
        soft, hard = both(kind)
        if name in REFUSE:
            with pytest.raises(ValueError, match="bets on one outcome per row, but y_true holds shares"):
                answer(name, soft)
            continue
        given = split(*rows(kind))[3]
        if name in TOGETHER:
            hard = replace(hard, groups=np.asarray(given))
        assert repr(answer(name, soft)) == repr(answer(name, hard, given))


def test_values_of_models_and_features():
    soft, hard = both("k of n")
    one, other = (cal.compare_models(None, {"a": p, "b": replace(p, probs=p.probs**2)}) for p in (soft, hard))
    for a, b in zip(one.models, other.models, strict=True):
        np.testing.assert_allclose(list(a.measures.values()), list(b.measures.values()), **CLOSE)
    # As many groups as given rows: the parts of one are one draw.
    assert one.n_groups == N
    features = np.arange(N) % 3
    given = split(*rows("k of n"))[3]
    grouped = replace(hard, groups=np.asarray(given))
    found, wanted = (cal.scores.grouping_loss(p, None, f) for p, f in ((soft, features), (grouped, features[given])))
    assert found.value == pytest.approx(wanted.value, abs=0.01)


@pytest.mark.parametrize("row", CALIBRATORS, ids=str)
def test_every_calibrator(row):
    y, p, w = rows("k of n")
    outcomes, scores, weights, _ = split(y, p, w)
    at = np.linspace(0.01, 0.99, 21)
    soft = clone(row.calibrator).fit(p, y, sample_weight=w).predict_proba(at)
    hard = clone(row.calibrator).fit(np.array(scores), outcomes, sample_weight=weights).predict_proba(at)
    np.testing.assert_allclose(soft, hard, **CLOSE)


def test_the_choice_of_a_calibrator_keeps_the_parts_of_a_row_in_one_fold():
    from calibrant.calibrators import SegmentCalibrator, SubgroupCalibrator, select_calibrator

    y, p, w = rows("k of n")
    outcomes, scores, weights, given = split(y, p, w)
    soft = select_calibrator(p, y, sample_weight=w)
    hard = select_calibrator(np.array(scores), outcomes, sample_weight=weights, groups=given)
    np.testing.assert_allclose(soft.calibrator.predict_proba(p), hard.calibrator.predict_proba(p), **CLOSE)
    by = np.array(["north", "south"])[np.arange(N) % 2]
    one = SubgroupCalibrator().fit(p, y, sample_weight=w * (by == "north"), by=by)
    other = SubgroupCalibrator().fit(
        np.array(scores), outcomes, sample_weight=weights * (by[given] == "north"), by=by[given]
    )
    np.testing.assert_allclose(one.predict_proba(p, by=by), other.predict_proba(p, by=by), **CLOSE)
    x, kept = {"half": np.arange(N) % 2, "third": np.arange(N) % 3}, np.arange(N) % 5 > 0
    fitted = SegmentCalibrator("platt", cv=2).fit(p, y, sample_weight=w * kept, features=x)
    parts = {name: column[given] for name, column in x.items()}
    again = SegmentCalibrator("platt", cv=2).fit(
        np.array(scores), outcomes, sample_weight=weights * kept[given], features=parts, groups=given
    )
    np.testing.assert_allclose(fitted.predict_proba(p, features=x), again.predict_proba(p, features=x), **CLOSE)


@pytest.mark.parametrize("name", list(TESTS))
def test_every_statistic(name):
    for kind in KINDS[:2]:
        soft, hard = both(kind)
        options = TESTS[name][0]
        if name == "evalue_test":
            continue
        found, wanted = (NAMES[name](one, None, **options) for one in (soft, hard))
        if name not in ("adaptive_test", "kernel_test"):  # parts are no pair, and vary together
            np.testing.assert_allclose(found.statistic, wanted.statistic, **CLOSE)
        assert 0 <= found.pvalue <= 1


@pytest.mark.parametrize("rule", list(RULES))
def test_every_scoring_rule(rule):
    y, p, w = rows("relative")
    outcomes, probs, weights, _ = split(y, p, w)
    wanted = cal.scores.mean_score(outcomes, probs, rule, sample_weight=weights)
    np.testing.assert_allclose(cal.scores.mean_score(y, p, rule, sample_weight=w), wanted, **CLOSE)
    each = cal.scores.score_samples(y, p, rule)
    one, none = (cal.scores.score_samples(np.full(N, o), p, rule, labels=(0, 1)) for o in (1, 0))
    np.testing.assert_allclose(each, y * one + (1 - y) * none, **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_add(kind):
    y, p, w = rows(kind)
    outcomes, probs, weights, _ = split(y, p, w)
    whole = cal.Accumulator().update(outcomes, probs, weights)
    pieces = cal.Accumulator()
    for some in np.array_split(np.arange(N), 30):  # some have no share within (0, 1)
        pieces.update(y[some], p[some], None if w is None else w[some])
    for estimator in ("auto", "binned"):
        found, wanted = (one.estimate(estimator, n_resamples=20, random_state=0) for one in (pieces, whole))
        np.testing.assert_allclose((found.value, *found.interval), (wanted.value, *wanted.interval), rtol=1e-9)
        np.testing.assert_allclose(found.value, wanted.value, **CLOSE)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 100)), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=12),
)
def test_any_shares(relative, counted):
    y, p, w = map(np.array, zip(*relative, strict=True))
    y[0], p[0] = 0.25, 0.5
    found = cal.as_predictions(y, p, sample_weight=w)
    np.testing.assert_allclose(np.bincount(found.given, found.weights), w, **CLOSE)
    np.testing.assert_allclose(np.bincount(found.given, found.weights * found.codes), w * y, **CLOSE)
    outcomes, probs, weights, rows_of = split(y, p, w)
    assert found.codes.tolist() == outcomes
    assert found.probs.tolist() == probs
    assert found.given.tolist() == rows_of
    wanted = cal.calibration_error(outcomes, probs, sample_weight=weights, estimator="binned")
    np.testing.assert_allclose(cal.calibration_error(y, p, sample_weight=w, estimator="binned"), wanted, **CLOSE)
    k, n = map(np.array, zip(*[(min(k, n), n) for k, n in counted], strict=True))
    k[0], n[0] = 1, 3
    for kind in (np.float64, np.float32):  # k of n are whole numbers, whatever k / n is rounded to
        counts = cal.as_predictions((k / n).astype(kind), np.full(len(k), 0.5), sample_weight=n)
        assert counts.integral_weights
        assert counts.weights[counts.codes == 1].tolist() == k[k > 0].tolist()


def test_labels_of_shares():
    y, p = [0.25, 1.0, 0.5], [0.1, 0.9, 0.4]

    def of(**options: Any) -> dict[Any, float]:
        found = cal.as_predictions(y, p, **options)
        return dict(zip(found.classes, np.bincount(found.codes, found.weights).tolist(), strict=True))

    assert of() == of(pos_label=1) == of(pos_label=0) == {0: 1.25, 1: 1.75}
    assert of(labels=(1, 0)) == {1: 1.75, 0: 1.25}
    assert of(labels=(-1, 1)) == {-1: 1.25, 1: 1.75}
    assert of(labels=("no", "yes"), pos_label="yes") == {"no": 1.25, "yes": 1.75}
    assert of(labels=("no", "yes"), pos_label="no") == {"no": 1.75, "yes": 1.25}
    assert of(pos_label="yes") == {"not yes": 1.25, "yes": 1.75}
    two = cal.as_predictions(y, np.column_stack([p, p]) * 0 + 0.5, labels=("no", "yes"))
    assert np.bincount(two.codes, two.weights).tolist() == [1.25, 1.75]
    # 0 and 1 alone are labels
    assert cal.as_predictions([0.0, 1.0], [0.2, 0.7]).given is None
    # objects and masks of pixels
    assert cal.as_predictions(np.array([0.5, 1, True], dtype=object), p).given.tolist() == [0, 0, 1, 2]
    pixels = cal.as_predictions(np.full((2, 3, 4), 0.25), np.linspace(0.1, 0.9, 24).reshape(2, 3, 4))
    assert (pixels.n_samples, pixels.n_given) == (48, 24)
    left = cal.as_predictions([0.5, 255.0, 1.0], p, ignore_index=255)
    assert left.given.tolist() == [0, 0, 1]


P = np.linspace(0.05, 0.95, 10)
P3 = np.full((10, 3), 1 / 3)


@pytest.mark.parametrize(
    ("y", "p", "options", "said"),
    [
        ([0.5, 1.5, *[0] * 8], P, {}, "shares in [0, 1] of two classes; row 1 is 1.5, and row 0 is 0.5"),
        ([0.5, -0.1, *[0] * 8], P, {}, "row 1 is -0.1"),
        ([0.5, np.nan, *[0] * 8], P, {}, "row 1 is nan"),
        ([0.5, None, *[0] * 8], P, {}, "row 1 is nan"),
        ([0.5, np.inf, *[0] * 8], P, {}, "row 1 is inf"),
        ([0.5, *[0] * 9], P3, {}, "row 0 is 0.5, and shares need two classes (y_prob has 3 columns)"),
        ([0.5, *[0] * 9], P > 0.5, {}, "are y_true and y_prob swapped?"),
        (np.full((10, 2), 0.5), np.column_stack([P, 1 - P]), {"multilabel": True}, "y_true must be 1-D"),
        ([0.5, *[0] * 9], P, {"labels": (0, 1, 2)}, "labels must name one label per column"),
        ([0.5, *[0] * 9], P, {"pos_label": 0.5}, "pos_label must be a label"),
        ([0.5, *[0] * 9], P, {"labels": ("a", "b")}, "pos_label must be given"),
        ([0.5, *[0] * 9], P, {"labels": ("a", "b"), "pos_label": "c"}, "pos_label must be one of the labels"),
        ([0.5, *[0] * 9], P, {"sample_weight": [-1, *[1] * 9]}, "sample_weight must not be negative; row 0"),
        ([0.5, *[0] * 9], P, {"groups": [1] * 10}, "groups must name at least 2 groups"),
        ([0.5, *[0] * 9], P, {"groups": range(20)}, "groups must have one value per row (10)"),
    ],
)
def test_what_is_no_share(y, p, options, said):
    with pytest.raises(ValueError) as error:
        cal.as_predictions(y, p, **options)
    assert said in str(error.value)


def test_draws_that_depend_on_each_other_are_told():
    rng = np.random.default_rng(0)
    p, n = rng.random(300), rng.integers(2, 20, 300)
    alike, apart = rng.binomial(n, rng.beta(3 * p, 3 * (1 - p))) / n, rng.binomial(n, p**2) / n
    for verb in (cal.estimate, cal.report):
        with pytest.warns(DependenceWarning, match="vary .* times as much.*pass groups=range"):
            verb(alike, p, sample_weight=n)
        with warnings.catch_warnings():
            warnings.simplefilter("error", DependenceWarning)
            verb(alike, p, sample_weight=n, groups=range(300))
            verb(alike, p)  # without n nothing says how much shares should vary
            verb(apart, p, sample_weight=n)  # miscalibrated draws that are independent


def test_arguments_with_a_value_per_row_are_of_given_rows():
    y, p, w = rows("k of n")
    with pytest.raises(ValueError, match="by must have one value per row"):
        cal.subgroup_calibration(y, p, np.arange(N + 1) % 2)
    with pytest.raises(ValueError, match="each of 90 rows"):
        cal.decisions.risk_coverage(y, p, confidence=np.ones(N + 1))
    found = cal.decisions.risk_coverage(y, p, confidence=np.maximum(p, 1 - p), sample_weight=w)
    assert found.aurc == pytest.approx(cal.decisions.risk_coverage(y, p, sample_weight=w).aurc, rel=1e-12)
    with pytest.raises(ValueError, match="class labels; row 0"):
        cal.CalibratedModel().fit(p[:, None], np.maximum(y, 0.01))
