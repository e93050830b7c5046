"""What an `Accumulator` says of rows that are gone: exactly, or as of rows moved within a cell."""

from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal

mpl.use("Agg")
CELLS = 65536


def binary(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 3, n)
    return (rng.random(n) < p**1.3).astype(int), p


def multiclass(n=2000, k=4, seed=0):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(k), n)
    y = (rng.random((n, 1)) > np.cumsum(q, axis=1)).sum(axis=1)
    return np.minimum(y, k - 1), q


def in_pieces(y, p, w=None, cuts=(0, 7, 500, None), **options):
    parts = [
        cal.Accumulator(**options).update(y[a:b], p[a:b], None if w is None else w[a:b]) for a, b in pairwise(cuts)
    ]
    return sum(parts)


def moved(p, w=None):
    """Each score at the mean of its cell (lo, hi] of 1/65536."""
    cell = np.maximum(np.ceil(p * CELLS).astype(int) - 1, 0)
    w = np.ones(len(p)) if w is None else w
    mass = np.bincount(cell, w, minlength=CELLS)
    return (np.bincount(cell, w * p, minlength=CELLS) / np.where(mass > 0, mass, 1))[cell]


@st.composite
def crowded(draw):
    """Rows of which many share a cell, away from its edges; outcomes; weights that count, or none."""
    n = draw(st.integers(20, 200))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    cells = rng.integers(0, CELLS, draw(st.integers(1, 30)))
    p = (rng.choice(cells, n) + rng.uniform(0.05, 0.95, n)) / CELLS
    y = (rng.random(n) < p ** draw(st.floats(0.3, 3))).astype(int)
    y[:2] = 0, 1
    weights = draw(st.sampled_from([None, "whole"]))
    return y, p, None if weights is None else rng.integers(1, 4, n).astype(float)


OF_CELLS = [
    cal.estimators.Isotonic(),
    cal.estimators.Cumulative(),
    cal.estimators.Cumulative("kuiper"),
    cal.Binned(5, "quantile"),
    cal.Binned("sqrt"),
    cal.estimators.Parametric(),
    cal.estimators.Sweep(),
    cal.estimators.BetaKernel(),
]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(crowded(), st.sampled_from(OF_CELLS), st.sampled_from([1, 2]))
def test_what_was_not_kept_is_that_of_rows_moved_within_a_cell(rows, estimator, norm):
    """The bound of the docstring: the row version's number, of scores at most a cell's width away."""
    y, p, w = rows
    near = moved(p, w)
    assert np.abs(near - p).max() <= 1 / CELLS
    sums = in_pieces(y, p, w, cuts=(0, 3, 11, None), labels=[0, 1])
    want = cal.calibration_error(y, near, estimator=estimator, norm=norm, sample_weight=w)
    assert sums.calibration_error(estimator, norm=norm) == pytest.approx(want, rel=1e-6, abs=1e-9)


KEPT = ["auto", "binned", "density", "residual", "adaptive", "smooth", cal.Binned(debias=True)]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(crowded(), st.sampled_from(KEPT), st.sampled_from([1, 2, np.inf]))
def test_what_was_kept_is_exact(rows, estimator, norm):
    y, p, w = rows
    norm = min(norm, 2) if isinstance(estimator, cal.Binned) else norm
    sums = in_pieces(y, p, w, cuts=(0, 3, 11, None), labels=[0, 1])
    want = cal.calibration_error(y, p, estimator=estimator, norm=norm, sample_weight=w)
    assert sums.calibration_error(estimator, norm=norm) == pytest.approx(want, rel=1e-8, abs=1e-10)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(crowded(), st.sampled_from(["brier", "log-loss", "spherical"]))
def test_decomposition_by_cells(rows, score):
    y, p, w = rows
    found = in_pieces(y, p, w, cuts=(0, 3, 11, None), labels=[0, 1]).decompose(score)
    near = cal.decompose(y, moved(p, w), score=score, sample_weight=w)
    exact = cal.decompose(y, p, score=score, sample_weight=w)
    for part in ("calibration", "refinement", "uncertainty", "discrimination"):
        assert getattr(found, part) == pytest.approx(getattr(near, part), rel=1e-6, abs=1e-9), part
    assert found.refinement >= exact.refinement - 1e-9  # merging scores can only lose
    if score != "spherical":
        assert found.total == pytest.approx(exact.total, rel=1e-9)
    assert found.total == pytest.approx(found.calibration + found.refinement + found.within, rel=1e-9)
    if score == "brier":
        assert abs(found.within) <= 2 / CELLS


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 4, "two columns"])
@pytest.mark.parametrize("score", ["brier", "log-loss", "spherical", cal.scores.Brier("half")], ids=repr)
def test_decomposition_by_bins_is_that_of_the_rows(k, score, weighted):
    y, p = multiclass() if k == 4 else binary()
    p = np.column_stack([1 - p, p]) if k == "two columns" else p
    w = np.random.default_rng(1).random(len(y)) if weighted else None
    sums = in_pieces(y, p, w)
    if k == 4 and score in ("log-loss", "spherical"):
        with pytest.raises(ValueError, match="is not a sum over classes"):
            sums.decompose(score, estimator="binned")
        return
    found = sums.decompose(score, estimator="binned")
    want = cal.decompose(y, p, score=score, estimator="binned", n_bins=15, sample_weight=w)
    for part in ("calibration", "refinement", "uncertainty", *(["total", "within"] if score != "spherical" else [])):
        assert getattr(found, part) == pytest.approx(getattr(want, part), rel=1e-9, abs=1e-12), part
    assert (found.score, found.estimator, found.n_samples) == (want.score, want.estimator, want.n_samples)


def test_decompositions_that_sums_cannot_give():
    many, two = in_pieces(*multiclass()), in_pieces(*multiclass(k=2))
    with pytest.raises(ValueError, match="estimator='exact' needs the rows"):
        many.decompose(estimator="exact")
    with pytest.raises(ValueError, match="estimator='corp' for 4 classes needs the rows"):
        many.decompose()
    with pytest.raises(ValueError, match="kept with the notion 'class-specific', or the rows"):
        two.decompose()
    with pytest.raises(ValueError, match="estimator must be one of"):
        two.decompose(estimator="guess")


def test_an_infinite_score():
    found = cal.Accumulator().update([1, 0, 1, 0], [0.0, 0.0, 0.9, 0.2]).decompose("log-loss")
    assert np.isinf(found.total)
    assert np.isinf(found.calibration)
    assert found.within == 0


# --- tests


@pytest.mark.parametrize("estimator", ["auto", "binned", "empirical-bayes", "isotonic"])
@pytest.mark.parametrize("notion", ["auto", "classwise", "top-label"])
def test_the_same_pvalue_in_whatever_pieces_rows_came(estimator, notion):
    if estimator == "isotonic" and notion != "auto":
        pytest.skip("classes have no fine histogram")
    y, p = binary(1000) if notion == "auto" else multiclass(1000, 3)
    whole, pieces = cal.Accumulator(notion=notion).update(y, p), in_pieces(y, p, notion=notion)
    a, b = (one.calibration_test(estimator, n_resamples=100, random_state=3) for one in (whole, pieces))
    assert a.pvalue == b.pvalue
    assert a.statistic == pytest.approx(b.statistic, rel=1e-9)
    assert a.pvalue == whole.calibration_test(estimator, n_resamples=100, random_state=3).pvalue
    assert "mean_of_draws" in a.details
    assert a.draws is not None


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["auto", "classwise", "confidence"])
@pytest.mark.parametrize("power", [1.0, 1.08])
def test_pvalues_are_near_those_of_rows(notion, power):
    """Draws of cells and draws of rows: the same statistic's law, up to their numbers."""
    rng = np.random.default_rng(5)
    if notion == "auto":
        p = rng.random(2000)
        y = (rng.random(2000) < p**power).astype(int)
    else:
        p = rng.dirichlet(np.ones(3), 1500)
        truth = p**power / (p**power).sum(axis=1, keepdims=True)
        y = np.minimum((rng.random((1500, 1)) > truth.cumsum(axis=1)).sum(axis=1), 2)
    sums = cal.Accumulator(notion=notion).update(y, p)
    # Draws of classes by themselves are widened by what is usual of classes, not by what these have in common.
    slack = 0.1 if notion == "classwise" else 0.06
    for estimator in ("auto", cal.Binned(), cal.estimators.Density()):
        rows = cal.calibration_test(y, p, notion=notion, estimator=estimator, n_resamples=600, random_state=0)
        found = sums.calibration_test(estimator, n_resamples=600, random_state=0)
        assert found.pvalue == pytest.approx(rows.pvalue, abs=slack)
        assert found.details["mean_of_draws"] == pytest.approx(rows.details["mean_of_draws"], rel=0.07)


def test_what_a_test_from_sums_refuses():
    sums = in_pieces(*binary())
    with pytest.raises(TypeError, match=r"one that reads sums, .*: no rows are kept; got CrossFit"):
        sums.calibration_test(cal.estimators.CrossFit())
    with pytest.raises(ValueError, match="n_resamples"):
        sums.calibration_test(n_resamples=0)
    with pytest.raises(ValueError, match="no rows were added yet"):
        cal.Accumulator().calibration_test()


def test_a_test_from_sums_is_drawn():
    display = in_pieces(*binary()).calibration_test(n_resamples=50).plot()
    assert display.ax_.get_xlabel()


# --- curves, pictures, tables


@pytest.mark.parametrize("estimator", ["density", "adaptive", "residual", "binned"])
@pytest.mark.parametrize("band", ["confidence", "consistency"])
def test_curves_are_those_of_the_rows(estimator, band):
    y, p = binary()
    found = in_pieces(y, p).reliability_curve(estimator, level=0.9, band=band, n_resamples=50, random_state=1)
    want = cal.reliability_curve(y, p, estimator=estimator, level=0.9, band=band, n_resamples=50, random_state=1)
    for name in ("scores", "observed", "lower", "upper", "count"):
        np.testing.assert_allclose(getattr(found, name), getattr(want, name), rtol=1e-6, atol=1e-9, equal_nan=True)
    assert (found.label, found.notion, found.estimator, found.n_samples) == (
        want.label,
        want.notion,
        want.estimator,
        3000,
    )


@pytest.mark.parametrize("band", ["confidence", "consistency"])
def test_isotonic_curves_are_those_of_rows_moved_within_a_cell(band):
    y, p = binary(800)
    found = in_pieces(y, p).reliability_curve("isotonic", level=0.9, band=band, n_resamples=50, random_state=1)
    near = moved(p)
    want = cal.reliability_curve(y, near, estimator="isotonic", level=0.9, band=band, n_resamples=50, random_state=1)
    for name in ("scores", "observed", "lower", "upper"):
        np.testing.assert_allclose(getattr(found, name), getattr(want, name), rtol=1e-6, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("estimator", ["isotonic", "density"])
def test_simultaneous_bands_are_those_of_cells(estimator):
    """Rows of a cell are one group, so that there are fewer intervals to share the level among."""
    y, p = binary(4000)
    found = in_pieces(y, p).reliability_curve(estimator, level=0.9, band="simultaneous")
    want = cal.reliability_curve(y, p, estimator=estimator, level=0.9, band="simultaneous")
    at = np.linspace(0.05, 0.9, 40)
    for name in ("lower", "upper"):
        a, b = (getattr(one.at(at), name) for one in (found, want))
        assert np.abs(a - b).mean() < 0.01


def test_curves_of_classes():
    y, q = multiclass()
    found = in_pieces(y, q, notion="classwise").reliability_curve("density", level=0.9, n_resamples=20)
    want = cal.reliability_curve(y, q, estimator="density", level=0.9, n_resamples=20, notion="classwise")
    assert list(found) == list(want)
    for label in want:
        np.testing.assert_allclose(found[label].observed, want[label].observed, rtol=1e-6, equal_nan=True)
    sums = in_pieces(y, q, notion="top-label")
    assert list(sums.reliability_curve("binned")) == list(cal.reliability_curve(y, q, notion="top-label"))
    with pytest.raises(ValueError, match="need the rows"):
        sums.reliability_curve("isotonic")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "panels"), [(binary(), 1), (multiclass(), 1), (multiclass(k=3), 3)], ids=["2", "4", "3"]
)
def test_diagrams(rows, panels):
    notion = "classwise" if panels > 1 else "auto"
    sums = in_pieces(*rows, notion=notion)
    display = sums.plot(name="model", scale="logit")
    assert len(np.atleast_1d(display.ax_)) == panels
    want = sums.report().headline.value
    assert display.estimate.value == want


@pytest.mark.slow
def test_the_report_is_that_of_the_sums():

    sums = in_pieces(*multiclass())
    found = sums.report(level=0.9, tolerance=0.1, threshold=0.6, title="Shards")
    assert found.to_dict() == cal.report(sums, level=0.9, tolerance=0.1, threshold=0.6, title="Shards").to_dict()
    assert found.title == "Shards"


@pytest.mark.parametrize("backend", ["polars", "pandas", "pyarrow"])
def test_the_table_of_bins(backend):
    import narwhals as nw

    y, q = multiclass(300, 3)
    w = np.random.default_rng(0).integers(1, 4, 300)
    frame = nw.from_native(in_pieces(y, q, w, cuts=(0, 40, None), binned=cal.Binned(5)).to_frame(backend))
    table = {name: frame[name].to_list() for name in frame.columns}
    assert list(table) == ["notion", "label", "low", "high", "weight", "size", "score", "observed", "gap"]
    assert table["label"] == ["all"] * 5 + ["0"] * 5 + ["1"] * 5 + ["2"] * 5
    assert table["notion"] == ["confidence"] * 5 + ["classwise"] * 15
    top, right = q.max(axis=1), q.argmax(axis=1) == y
    columns = [(top, right)] + [(q[:, k], y == k) for k in range(3)]
    for i in range(20):
        s, o = columns[i // 5]
        inside = (s > table["low"][i]) & (s <= table["high"][i])
        assert table["weight"][i] == w[inside].sum()
        if inside.any():
            score, observed = np.average(s[inside], weights=w[inside]), np.average(o[inside], weights=w[inside])
            assert table["score"][i] == pytest.approx(score)
            assert table["observed"][i] == pytest.approx(observed)
            assert table["gap"][i] == pytest.approx(observed - score)
    assert len(nw.from_native(in_pieces(*binary()).to_frame(backend))) == 15
    assert len(nw.from_native(in_pieces(y, q, notion="classwise", cuts=(0, 40, None)).to_frame(backend))) == 45


# --- names and merging


def test_sum_of_a_list():
    y, p = binary()
    parts = [cal.Accumulator().update(y[a : a + 300], p[a : a + 300]) for a in range(0, 3000, 300)]
    assert sum(parts).n_samples == 3000
    alone = sum(parts[:1])
    alone.update(y, p)
    assert parts[0].n_samples == 300
    with pytest.raises(TypeError):
        _ = 1 + parts[0]


def test_add_is_update():
    y, p = binary()
    one = cal.Accumulator()
    assert one.update(y, p) is one
    assert cal.Accumulator().update(y, p).to_bytes() == one.to_bytes()


def test_estimates_take_names():
    sums = in_pieces(*binary())
    assert sums.estimate("auto").value == sums.estimate().value == sums.calibration_error()
    with pytest.raises(TypeError, match=r"no rows are kept; got CrossFit"):
        sums.calibration_error(cal.estimators.CrossFit())
    for ask in (
        "calibration_error",
        "estimate",
        "reliability_curve",
        "report",
        "decompose",
        "plot",
    ):
        with pytest.raises(ValueError, match="no rows were added yet"):
            getattr(cal.Accumulator(), ask)()
    with pytest.raises(ValueError, match="no rows were added yet"):
        cal.Accumulator().fit("platt")


OF_SUMS = {
    "calibration_error": {"estimator": "binned", "norm": 2},
    "estimate": {"level": 0.9},
    "reliability_curve": {"estimator": "binned"},
    "report": {"level": 0.9, "title": "Shards"},
    "calibration_test": {"n_resamples": 99},
    "decompose": {"score": "brier", "estimator": "binned"},
}


def plain(found):
    return found if isinstance(found, float) else found.to_dict()


@pytest.mark.parametrize("name", OF_SUMS)
def test_functions_take_sums_where_they_take_rows(name):
    """A function of an Accumulator is the Accumulator's method, from Python's own point of view and in its numbers."""
    sums, function = in_pieces(*binary()), getattr(cal, name)
    found = plain(function(sums, **OF_SUMS[name]))
    assert found == plain(getattr(sums, name)(**OF_SUMS[name])) == plain(function(y_true=sums, **OF_SUMS[name]))


@pytest.mark.parametrize("name", OF_SUMS)
def test_what_rows_have_settled_is_refused_beside_sums(name):
    sums, function = in_pieces(*binary()), getattr(cal, name)
    for settled in ({"y_prob": [0.1]}, {"labels": [0, 1]}, {"sample_weight": [1.0]}, {"groups": [1]}):
        word = next(iter(settled))
        with pytest.raises(
            TypeError, match=rf"{name}\(\) of an Accumulator does not take '{word}': its rows determine it"
        ):
            function(sums, **settled)
    with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected keyword argument 'estimater'"):
        function(sums, estimater="binned")


def test_what_needs_rows_says_so():
    sums = in_pieces(*binary())
    with pytest.raises(TypeError, match=r"decompose\(\) of an Accumulator does not take 'n_bins': that needs the rows"):
        cal.decompose(sums, n_bins=5)
    for function in (cal.significance.cox_test, cal.calibration_measures, cal.brier_score, cal.subgroup_calibration):
        with pytest.raises(TypeError, match=r"\(\) needs the rows; an Accumulator keeps only their sums"):
            function(sums)
