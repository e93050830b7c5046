"""`Accumulator`: pieces, merges, and the same numbers as at once."""

from itertools import pairwise

import numpy as np
import pytest

import calibrant as cal
from tests.contract import naive


def binary(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 3, n)
    return (rng.random(n) < p**1.3).astype(int), p


def multiclass(n=2000, k=4, seed=0):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(k), n)
    y = (rng.random((n, 1)) > np.cumsum(q, axis=1)).sum(axis=1)
    return np.minimum(y, k - 1), q


def pieces(y, p, *, weights=None, notion="auto", cuts=(0, 7, 500, 501, None), **options):
    acc = cal.Accumulator(notion=notion, **options)
    for a, b in pairwise(cuts):
        acc.update(y[a:b], p[a:b], None if weights is None else weights[a:b])
    return acc


ESTIMATORS = [
    cal.Binned(),
    cal.Binned(debias=True),
    cal.estimators.Density(),
    cal.estimators.Density("scott", "triweight"),
    cal.estimators.ResidualKernel(),
    cal.estimators.ResidualKernel(space="score"),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("notion", ["class-specific", "classwise", "confidence", "top-label"])
@pytest.mark.parametrize("weighted", [False, True])
def test_pieces_equal_batch(estimator, notion, weighted):
    y, p = binary() if notion == "class-specific" else multiclass()
    w = np.random.default_rng(1).random(len(y)) if weighted else None
    got = pieces(y, p, weights=w, notion=notion).estimate(estimator, n_resamples=10, random_state=0).value
    want = cal.calibration_error(y, p, notion=notion, estimator=estimator, sample_weight=w)
    assert got == pytest.approx(want, rel=1e-10, abs=1e-12)


def test_merge_is_symmetric_and_equals_one():
    y, p = multiclass()
    whole = cal.Accumulator().update(y, p)
    a, b = cal.Accumulator().update(y[:900], p[:900]), cal.Accumulator().update(y[900:], p[900:])
    for merged in (a + b, b + a, a.merge(b)):
        assert merged.n_samples == whole.n_samples
        for e in ESTIMATORS:
            assert merged.estimate(e, n_resamples=10, random_state=0).value == pytest.approx(
                whole.estimate(e, n_resamples=10, random_state=0).value, rel=1e-10
            )
    assert a.n_samples == 900  # merging leaves the parts alone


@pytest.mark.slow
def test_report_of_pieces_equals_report_of_rows():
    y, p = multiclass()
    one = cal.report(y, p).to_dict()
    two = cal.report(pieces(y, p)).to_dict()
    assert one["brier"] == pytest.approx(two["brier"], rel=1e-12)
    assert one["log_loss"] == pytest.approx(two["log_loss"], rel=1e-12)
    assert one["accuracy"] == two["accuracy"]
    for name, row in one["estimates"].items():
        tolerance = 2e-3 if "equal mass" in name else 1e-10  # quantile edges are rounded when rows are streamed
        assert row["value"] == pytest.approx(two["estimates"][name]["value"], abs=tolerance)
    for a, b in zip(one["per_class"], two["per_class"], strict=True):
        assert a["label"] == b["label"]
        assert a["ece"] == pytest.approx(b["ece"], rel=1e-10)


def test_quantile_bins_from_the_fine_histogram_hold_equal_mass():
    y, p = binary(20_000)
    acc = pieces(y, p)
    (sums,) = acc.sums(cal.Binned(15, "quantile"))
    moments = sums[0]
    assert moments.weight.sum() == len(y)
    assert moments.outcome.sum() == y.sum()
    # 65536 cells and 20 000 smooth scores: a cell holds a few rows at most.
    assert np.abs(moments.weight - len(y) / 15).max() < 10
    exact = cal.calibration_error(y, p, estimator=cal.Binned(15, "quantile"))
    assert acc.estimate(cal.Binned(15, "quantile"), n_resamples=10).value == pytest.approx(exact, abs=2e-3)


def test_quantile_bins_of_tied_scores_never_part_them():
    p = np.repeat([0.1, 0.5, 0.9], [10, 80, 10])
    y = np.tile([0, 1], 50)
    acc = cal.Accumulator().update(y, p)
    (sums,) = acc.sums(cal.Binned(10, "quantile"))
    moments = sums[0]
    assert sorted(moments.weight[moments.weight > 0]) == [10, 10, 80]


def test_bad_piece_leaves_the_sums_alone():
    y, p = binary()
    acc = cal.Accumulator().update(y, p)
    before = acc.estimate(cal.Binned(), n_resamples=10, random_state=0).value
    with pytest.raises(ValueError, match="row 1 is nan"):
        acc.update([0, 1], [0.3, np.nan])
    assert acc.n_samples == len(y)
    assert acc.estimate(cal.Binned(), n_resamples=10, random_state=0).value == before


def test_pieces_of_other_labels_are_refused():
    acc = cal.Accumulator().update(["a", "b"], [[0.6, 0.4], [0.3, 0.7]])
    with pytest.raises(ValueError, match=r"matches no column: row 1 is .c."):
        acc.update(["a", "c"], [[0.6, 0.4], [0.3, 0.7]])
    other = cal.Accumulator().update(["a", "c"], [[0.6, 0.4], [0.3, 0.7]])
    with pytest.raises(ValueError, match="merged accumulators must have equal"):
        _ = acc + other


def test_piece_that_lacks_a_label():
    P = [[0.6, 0.3, 0.1], [0.3, 0.5, 0.2]]
    acc = cal.Accumulator(labels=["a", "b", "c"]).update(["a", "b"], P).update(["c", "c"], P)
    assert acc.required_totals().class_weight.tolist() == [1, 1, 2]


@pytest.mark.parametrize(("label", "other"), [("yes", "no"), ("good", "bad"), ("a", "b")])
def test_pieces_of_one_label_only_merge_with_any_other(label, other):
    """Whatever the order of labels: the one that stands for the other has no rows, and takes its name."""
    y, p = binary(300)
    y, p = np.array([other, label])[np.sort(y)], p.astype(np.float32)
    first = np.flatnonzero(y == label)[0]
    whole = cal.Accumulator(pos_label=label).update(y, p)
    rest, some, alone = (
        cal.Accumulator(pos_label=label).update(y[part], p[part])
        for part in (slice(first + 9), slice(first + 9, first + 50), slice(first + 50, None))
    )
    assert f"not {label}" in alone.classes
    for merged in (some + alone + rest, rest + some + alone, sum([alone, rest, some])):
        assert (merged.classes, merged.positive) == (whole.classes, whole.positive)
        for name in ("class_weight", "prob_sum"):
            np.testing.assert_allclose(getattr(merged.totals, name), getattr(whole.totals, name), rtol=1e-12)
        assert merged.estimate().value == pytest.approx(whole.estimate().value, rel=1e-12)
    third = cal.Accumulator(pos_label=label, labels=["z", label]).update(np.array(["z", label]), [0.2, 0.7])
    with pytest.raises(ValueError, match=r"must have equal labels; got .*: pass labels=\[...\] to each"):
        rest + third
    # A label that was given is not replaced.
    given = cal.Accumulator(pos_label=label, labels=[f"not {label}", label]).update(y[first:], p[first:])
    with pytest.raises(ValueError, match="must have equal labels"):
        rest + given


def test_empty_and_wrong_use():
    with pytest.raises(ValueError, match="no rows"):
        cal.Accumulator().estimate()
    with pytest.raises(ValueError, match="fixed edges"):
        cal.Accumulator(binned=cal.Binned("sqrt"))
    with pytest.raises(ValueError, match="canonical"):
        cal.Accumulator(notion="canonical").update([0, 1], [[0.6, 0.4], [0.3, 0.7]])
    acc = cal.Accumulator().update([0, 1], [0.2, 0.8])
    assert acc.estimate(cal.Binned("sqrt")).value == pytest.approx(0)
    classes = cal.Accumulator(notion="classwise").update([0, 1], [0.2, 0.8])
    with pytest.raises(ValueError, match=r"not kept, or the rows: pass estimators="):
        classes.estimate(cal.Binned("sqrt"))
    with pytest.raises(TypeError, match="estimators must be estimators that read sums"):
        cal.Accumulator(estimators=[cal.estimators.CrossFit()])
    with pytest.raises(TypeError, match="SimplexBinned"):
        acc.estimate(cal.estimators.SimplexBinned())
    assert cal.Accumulator().update([0, 1], [0.2, 0.8]) + cal.Accumulator() is not None


def test_zero_weight_on_an_impossible_outcome_keeps_the_log_loss_finite():
    acc = cal.Accumulator().update([1, 1], [0.0, 0.5], [0.0, 1.0])
    assert acc.required_totals().log_loss == pytest.approx(np.log(2))


def test_merge_with_an_empty_one_is_a_copy():
    y, p = binary()
    one = cal.Accumulator().update(y, p)
    for merged in (cal.Accumulator() + one, one + cal.Accumulator()):
        assert merged.n_samples == len(y)
        merged.update(y, p)
        assert one.n_samples == len(y)


def test_merge_needs_the_same_notion_and_bins():
    y, q = multiclass()
    mean = cal.Accumulator(notion=cal.notions.Classwise("mean")).update(y, q)
    with pytest.raises(ValueError, match="must have equal notions"):
        _ = mean + cal.Accumulator(notion=cal.notions.Classwise("max")).update(y, q)
    with pytest.raises(ValueError, match="must have equal bins"):
        _ = mean + cal.Accumulator(notion=cal.notions.Classwise("mean"), binned=cal.Binned(10))


def test_streamed_sqrt_bins_use_the_effective_size():
    y, p = binary(2000)
    w = np.random.default_rng(3).random(2000) * 0.01
    e = cal.Binned("sqrt", "quantile")
    got = cal.Accumulator().update(y, p, w).estimate(e, n_resamples=10, random_state=0).value
    assert got == pytest.approx(cal.calibration_error(y, p, estimator=e, sample_weight=w), abs=3e-3)


@pytest.mark.parametrize("bins", [2, 15])
def test_streamed_quantile_bins_with_an_atom_at_one(bins):
    rng = np.random.default_rng(0)
    p = np.where(rng.random(5000) < 0.6, 1.0, rng.random(5000))
    y = (rng.random(5000) < p**2 * 0.9).astype(int)
    e = cal.Binned(bins, "quantile")
    got = cal.Accumulator().update(y, p).estimate(e, n_resamples=10, random_state=0).value
    assert got == pytest.approx(cal.calibration_error(y, p, estimator=e), abs=1e-3)


SETTINGS = {
    "notion": ("confidence", "classwise"),
    "labels": (["a", "b", "c"], ["c", "b", "a"]),
    "sum_tolerance": (0.1, 0.2),
    "binned": (cal.Binned(10), cal.Binned(20)),
    "estimators": ([cal.estimators.Isotonic()], [cal.estimators.Parametric()]),
}
P3 = [[0.6, 0.3, 0.1], [0.3, 0.5, 0.2], [0.1, 0.1, 0.8]]


@pytest.mark.parametrize("name", list(SETTINGS))
def test_merging_with_an_empty_one_keeps_what_was_given(name):
    one, other = SETTINGS[name]
    plain = cal.Accumulator(labels=["a", "b", "c"]) if name != "labels" else cal.Accumulator()
    given = cal.Accumulator(**({"labels": ["a", "b", "c"]} | {name: one}))
    full = cal.Accumulator(**({"labels": ["a", "b", "c"]} | {name: one})).update(["a", "b", "b"], P3)
    # A linear algebra library may round by where arrays lie in memory.
    value = pytest.approx(full.estimate(random_state=0).value, rel=1e-12)
    for merged in (plain + given, given + plain):
        again = merged.update(["a", "b", "b"], P3)
        assert again.estimate(random_state=0).value == value
        assert again.binned == full.binned
        assert again.estimators == full.estimators
        assert str(again.notion) == str(full.notion)
    assert (full + plain).estimate(random_state=0).value == value
    differs = cal.Accumulator(**{name: other})
    for a, b in ((given, differs), (differs, given), (full, differs), (differs, full)):
        if name == "estimators" and a.totals is None and b.totals is None:
            assert set((a + b).estimators) == {cal.estimators.Isotonic(), cal.estimators.Parametric()}
            continue
        with pytest.raises(ValueError, match="merged accumulators must have equal") as error:
            _ = a + b
        shown = other[0] if name == "estimators" else other
        assert repr(tuple(shown) if name == "labels" else shown).strip("'") in str(error.value).replace(
            "Classwise", "classwise"
        )


@pytest.mark.parametrize(
    "estimator",
    [
        cal.estimators.Isotonic(),
        cal.estimators.Cumulative(),
        cal.estimators.Sweep(),
        cal.estimators.Parametric(),
        cal.estimators.BetaKernel(),
    ],
)
def test_sums_that_were_asked_for_give_the_numbers_of_the_rows(estimator):
    y, p = binary(3000)
    acc = pieces(y, p, estimators=[estimator])
    expected = cal.calibration_error(y, p, estimator=estimator)
    assert acc.estimate(estimator, n_resamples=10).value == pytest.approx(expected, abs=1e-12)
    # Not asked for, they come from the cells of a fine histogram.
    assert pieces(y, p).estimate(estimator, n_resamples=10).value == pytest.approx(expected, abs=2e-3)


def test_top_labels_of_pieces_that_lack_some():
    y, q = multiclass()
    order = np.argsort(q.argmax(axis=1), kind="stable")  # pieces in which one class is predicted
    acc = pieces(y[order], q[order], notion="top-label", cuts=(0, 100, 900, 1500, None))
    one = cal.estimate(y, q, notion="top-label", random_state=0)
    both = acc.estimate(random_state=0)
    assert both.value == pytest.approx(one.value, abs=1e-12)
    assert list(both.per_class) == list(one.per_class)


def clustered(classes=2, n_groups=60, seed=0):
    """Groups of several sizes, whose rows share a latent value that the scores know nothing of."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), rng.integers(2, 12, n_groups))
    z = rng.standard_normal((group.size, classes))
    q = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    shared = rng.gumbel(size=(n_groups, classes))[group]
    mine = rng.random(group.size) < 0.5
    y = np.argmax(np.log(q) + np.where(mine[:, None], shared, rng.gumbel(size=q.shape)), axis=1)
    return (y, q[:, 1] if classes == 2 else q, group)


@pytest.mark.parametrize("notion", ["class-specific", "classwise", "confidence", "top-label"])
@pytest.mark.parametrize("weights", [None, "whole", "relative"])
def test_one_piece_of_groups_is_what_is_found_at_once(notion, weights):
    y, p, group = clustered(2 if notion == "class-specific" else 3)
    rng = np.random.default_rng(3)
    w = {None: None, "whole": rng.integers(0, 3, y.size), "relative": rng.random(y.size)}[weights]
    acc = cal.Accumulator(notion=notion).update(y, p, w, groups=group)
    for estimator in (cal.EmpiricalBayes(), cal.Binned(), cal.estimators.Density()):
        got = acc.estimate(estimator, n_resamples=50)
        want = cal.estimate(
            y, p, notion=notion, estimator=estimator, sample_weight=w, groups=group, n_resamples=50, random_state=0
        )
        assert got.value == pytest.approx(want.value, rel=1e-12)
        assert tuple(got.interval) == pytest.approx(tuple(want.interval), rel=1e-12)
    alone = cal.Accumulator(notion=notion).update(y, p, w)
    assert acc.question().size < 0.9 * alone.question().size


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weights", [None, "whole", "relative"])
def test_what_the_cells_hold_exactly_is_that_of_the_rows(weights, grouped):
    """One score per cell: nothing is rounded, not even what the sizes of bins and the parts of design effects are."""
    y, p, group = clustered()
    rng = np.random.default_rng(3)
    p = np.round(p * 4096) / 4096
    w = {None: None, "whole": rng.integers(0, 3, y.size), "relative": rng.random(y.size)}[weights]
    group = group if grouped else None
    acc = cal.Accumulator().update(y, p, w, groups=group)
    sample = naive.Sample.of(p.tolist(), y.tolist(), w)
    about = {"sample_weight": w, "groups": group, "random_state": 0, "n_resamples": 50}
    for estimator in (cal.Binned(15, "quantile"), cal.Binned(8, "quantile", "linear"), cal.estimators.Sweep()):
        got, want = acc.estimate(estimator, n_resamples=50), cal.estimate(y, p, estimator=estimator, **about)
        if isinstance(estimator, cal.Binned):
            by_hand = naive.binned(estimator.n_bins, "quantile", estimator.mapping)(sample, 1)
            assert got.value == pytest.approx(by_hand, rel=1e-9), estimator
        for name in ("value", "corrected", "interval"):
            assert getattr(got, name) == pytest.approx(getattr(want, name), rel=1e-9), (estimator, name)


@pytest.mark.parametrize("weighted", [False, True])
def test_squares_of_pieces_with_groups_add(weighted):
    y, p, group = clustered(n_groups=200)
    w = np.random.default_rng(1).random(y.size) if weighted else np.ones(y.size)
    cuts = np.searchsorted(group, [0, 70, 120, 200])
    acc, squares = cal.Accumulator(), 0.0
    for a, b in pairwise(cuts):
        given = cal.as_predictions(y[a:b], p[a:b], sample_weight=w[a:b] if weighted else None, groups=group[a:b])
        acc.update(y[a:b], p[a:b], None if given.weights is None else w[a:b], groups=group[a:b])
        (effect,) = cal.notions.as_notion("auto", given).reduce(given).designs
        assert effect > 1.5
        squares += effect * float((w[a:b] ** 2).sum())
    assert acc.totals.effective_size == pytest.approx(w.sum() ** 2 / squares, rel=1e-12)
    bins = next(iter(acc.problems.values())).bins
    assert bins.square.sum() == pytest.approx(squares, rel=1e-12)
    whole = cal.estimate(y, p, groups=group, sample_weight=w if weighted else None, random_state=0)
    found = acc.estimate()
    assert found.interval.high - found.interval.low == pytest.approx(whole.interval.high - whole.interval.low, rel=0.25)


def test_top_labels_that_a_piece_lacks_leave_design_effects_in_place():
    y, p, group = clustered(3)
    p = p[:, [0, 2, 1]]
    p[group >= 30] = [0.5, 0.3, 0.2]  # never the last one, in the later piece
    acc = cal.Accumulator(notion="top-label")
    for part in (group < 30, group >= 30):
        acc.update(y[part], p[part], groups=group[part])
    for i, (label, one) in enumerate(acc.problems.items()):
        squares = 0.0
        for part in (group < 30, group >= 30):
            given = cal.as_predictions(y[part], p[part], groups=group[part], labels=[0, 1, 2])
            found = acc.notion.reduce(given)
            at = dict(zip(found.labels, zip(found.designs, found.counts, strict=True), strict=True))
            squares += np.prod(at.get(label, (0, 0)))
        assert one.bins.square.sum() == pytest.approx(squares, rel=1e-12), i


GIVEN_TWICE = {
    "integers": (np.array([1, 1, 2, 2]), np.array([3.0, 3.0, 2.0, 2.0])),
    "names": (np.array(["a", "a", "b", "b"]), ["c", "c", "b", "b"]),
    "both": (np.array(["a", 1, 1, "a"], dtype=object), [1, 1, 5, 5]),
    "days": (np.array(["2024-01-01", "2024-01-02"] * 2, "M8[D]"), np.array(["2024-01-01", "2024-01-03"] * 2, "M8[D]")),
}


@pytest.mark.parametrize("kind", GIVEN_TWICE)
def test_groups_must_not_span_pieces(kind):
    first, second = GIVEN_TWICE[kind]
    y, p = np.array([0, 1, 0, 1]), np.array([0.2, 0.7, 0.4, 0.9])
    acc = cal.Accumulator().update(y, p, groups=first)
    before = acc.estimate().to_dict()
    with pytest.raises(ValueError, match="groups must not span pieces; already in an earlier one: 1 of 2"):
        acc.update(y, p, groups=second)
    assert acc.estimate().to_dict() == before
    other = cal.Accumulator().update(y, p, groups=second)
    with pytest.raises(ValueError, match="groups must not span pieces"):
        acc + other
    acc.update(y, p, groups=[70, 70, 71, 71])
    with pytest.raises(ValueError, match="groups must not span pieces"):
        (cal.Accumulator() + acc).update(y, p, groups=[71, 71, 72, 72])


def test_pieces_with_and_without_groups_do_not_mix():
    y, p, group = clustered()
    some = cal.Accumulator().update(y, p, groups=group)
    none = cal.Accumulator().update(y, p)
    with pytest.raises(ValueError, match="earlier rows were added with groups, and these are without"):
        some.update(y, p)
    with pytest.raises(ValueError, match="earlier rows were added without groups, and these are with"):
        none.update(cal.as_predictions(y, p, groups=group))
    with pytest.raises(ValueError, match="pass groups for all, or none"):
        some + none
    with pytest.raises(ValueError, match="groups must have one value per row"):
        some.update(y, p, groups=group[:-1])
    alone = np.arange(y.size) + 1000  # every row by itself, and still a piece with groups
    assert some.update(y, p, groups=alone).n_samples == 2 * y.size


def test_groups_are_counted_with_and_without_names():
    y, p, group = clustered()
    half = group < 30
    given = [cal.as_predictions(y[some], p[some], groups=group[some]) for some in (half, ~half)]
    named = [cal.Accumulator().update(y[some], p[some], groups=group[some]) for some in (half, ~half)]
    codes = [cal.Accumulator().update(one) for one in given]
    for sums in (sum(named), sum(codes), named[0] + codes[1], cal.Accumulator().update(given[0]).update(given[1])):
        assert sums.question().n_groups == cal.Accumulator.from_bytes(sums.to_bytes()).question().n_groups == 60
    # The same rows twice, in one accumulator, are two pieces like any others.
    assert cal.Accumulator().update(given[0]).update(given[0]).question().n_groups == 60
    alone = np.arange(y.size)
    assert cal.Accumulator().update(y, p, groups=alone).question().n_groups is None
    assert cal.Accumulator().update(y, p, np.full(y.size, 2), groups=alone).question().n_groups == y.size


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::calibrant.exceptions.DependenceWarning")
def test_report_of_rows_in_groups_from_pieces():
    rng = np.random.default_rng(0)
    p = np.repeat(rng.random(200), 10)
    y, group = np.repeat(rng.random(200) < p[::10] ** 3, 10).astype(int), np.arange(2000) // 10
    sums = cal.Accumulator().update(y[:1000], p[:1000], groups=group[:1000])
    sums += cal.Accumulator().update(y[1000:], p[1000:], groups=group[1000:])
    found, want, rows = cal.report(sums), cal.report(y, p, groups=group), cal.report(y, p)
    # The last is read from the cells of the fine histogram, whose rows hang together as the sums say.
    for name in ("empirical Bayes", "15 bins of equal width", "15 bins of equal mass"):
        pieces, whole, alone = (r.estimates[name].interval for r in (found, want, rows))
        assert pieces.high - pieces.low == pytest.approx(whole.high - whole.low, rel=0.25), name
        assert whole.high - whole.low > 2 * (alone.high - alone.low), name


def test_unnamed_groups_of_other_rows_are_others():
    """Pieces with the same probabilities, as of a base rate, and the same codes are different rows."""
    rng = np.random.default_rng(0)
    p, group = np.full(100, 0.5), np.repeat(np.arange(10), 10)
    one, two = (
        cal.Accumulator().update(cal.as_predictions(rng.integers(0, 2, 100), p, groups=group)) for _ in range(2)
    )
    assert (one + two).n_samples == 200
    with pytest.raises(ValueError, match="groups must not span pieces"):
        one + one
