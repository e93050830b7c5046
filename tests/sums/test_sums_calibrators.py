"""Calibrators are fitted to an Accumulator's sums as to rows moved within a cell; those that need rows say so."""

import numpy as np
import pytest
from sklearn.base import clone

import calibrant as cal
from calibrant import calibrators as c

from ..calibrators.table import BINARY
from .test_sums_answers import CELLS, binary, in_pieces, moved, multiclass


def of_cells(row):
    return not row.calibrator._parts_rows


@pytest.mark.parametrize("row", BINARY, ids=str)
def test_binary_calibrators_are_fitted_to_rows_moved_within_a_cell(row):
    rng = np.random.default_rng(0)
    p = (rng.choice(rng.integers(0, CELLS, 100), 600) + rng.uniform(0.05, 0.95, 600)) / CELLS
    y = (rng.random(600) < p**1.5).astype(int)
    sums = in_pieces(y, p)
    if not of_cells(row):
        with pytest.raises(TypeError, match=f"{type(row.calibrator).__name__}.* splits the rows into folds or halves"):
            sums.fit(row.calibrator)
        return
    given_to = clone(row.calibrator)
    found = sums.fit(given_to)
    assert not hasattr(given_to, "classes_")
    at = np.linspace(0.01, 0.99, 50)
    want = clone(row.calibrator).fit(moved(p), y).predict_proba(at)
    np.testing.assert_allclose(found.predict_proba(at), want, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("calibrator", [c.PlattScaling(), c.BetaCalibration(), c.IsotonicCalibrator()], ids=repr)
@pytest.mark.parametrize("notion", ["auto", "classwise", "top-label"])
def test_one_against_the_rest_from_the_grid(calibrator, notion):
    y, q = multiclass(8000)
    found = in_pieces(y, q, notion=notion).fit(c.OneVsRest(calibrator))
    want = c.OneVsRest(calibrator).fit(q, y)
    assert found.classes_.tolist() == want.classes_.tolist()
    error = np.abs(found.predict_proba(q) - want.predict_proba(q))
    assert error.mean() < 1e-3
    assert c.from_dict(c.to_dict(found)).predict_proba(q[:5]).tolist() == found.predict_proba(q[:5]).tolist()


@pytest.mark.parametrize("shared", [False, True])
def test_one_against_the_rest_is_a_fit_to_shares_of_rows(shared):
    """A second way to the same: each row is shared by the nodes around its score, and these are rows."""
    y, q = multiclass(800, 3)
    one = c.OneVsRest(c.PlattScaling(smoothing=False), shared=shared)
    found = in_pieces(y, q).fit(one)
    columns, outcomes, weights = [], [], []
    for k in range(3):
        place = q[:, k] * 4096
        low = np.floor(place)
        columns.append(np.concatenate([low, low + 1]) / 4096)
        outcomes.append(np.tile(y == k, 2).astype(int))
        weights.append(np.concatenate([1 - (place - low), place - low]))
    if shared:
        columns, outcomes, weights = ([np.concatenate(v)] for v in (columns, outcomes, weights))
    for k, fitted in enumerate(found.calibrators_):
        naive = c.PlattScaling(smoothing=False).fit(columns[k], outcomes[k], sample_weight=weights[k])
        assert fitted.coef_ == pytest.approx(naive.coef_, rel=1e-6)
        assert fitted.intercept_ == pytest.approx(naive.intercept_, rel=1e-6, abs=1e-8)


NAMES = [
    ((0, 1), {}),
    ((0, 1), {"pos_label": 0}),
    (("sick", "well"), {"pos_label": "sick"}),
    (("sick", "well"), {"pos_label": "well"}),
    (("b", "a"), {"pos_label": "b", "labels": ["b", "a"]}),
    ((False, True), {}),
]


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("notion", ["class-specific", "classwise"])
@pytest.mark.parametrize(("names", "options"), NAMES, ids=str)
def test_labels_and_shapes_of_two_classes(names, options, notion, columns):
    y, p = binary()
    y, labels = np.asarray(names)[y], list(names)
    if columns == 2:
        options, p = {"labels": labels}, np.column_stack([1 - p, p])
    elif options.get("pos_label", names[1]) == names[0]:
        p = 1 - p
    sums = in_pieces(y, p, notion=notion, **options)
    found = sums.fit("platt")
    if columns == 1 and options.get("pos_label", names[1]) == names[0]:
        labels = labels[::-1]
    want = c.PlattScaling(labels=labels).fit(p, y)
    got = found.predict_proba(p[:5])[:, [found.classes_.tolist().index(k) for k in names]]
    np.testing.assert_allclose(
        got, want.predict_proba(p[:5])[:, [want.classes_.tolist().index(k) for k in names]], atol=1e-4
    )
    assert found.predict(p[:5]).tolist() == want.predict(p[:5]).tolist()


def test_one_class_of_many():
    y, q = multiclass()
    found = in_pieces(y, q, notion="class-specific:2").fit("beta")
    want = c.BetaCalibration().fit(q[:, 2], (y == 2).astype(int))
    np.testing.assert_allclose(found.predict_proba(q[:9, 2]), want.predict_proba(q[:9, 2]), atol=1e-5)
    every = in_pieces(y, q, notion="class-specific:2").fit(c.OneVsRest(c.BetaCalibration()))
    assert every.predict_proba(q[:9]).shape == (9, 4)


REFUSED = [
    (c.TemperatureScaling(), TypeError, r"TemperatureScaling\(\) for 4 classes needs the rows"),
    ("dirichlet", TypeError, r"DirichletCalibration.* needs the rows: .* OneVsRest"),
    (c.PlattScaling(), ValueError, r"PlattScaling\(\) is for two classes.*OneVsRest\(PlattScaling\(\)\)"),
    (c.OneVsRest(c.CurveCalibrator()), TypeError, "splits the rows"),
    (c.AutoCalibrator(), TypeError, "AutoCalibrator.* splits the rows"),
    (c.Composed([c.TemperatureScaling(), c.OneVsRest(c.CurveCalibrator())]), TypeError, "splits the rows"),
    (c.OneVsRest(c.PlattScaling(), input="logit"), ValueError, "must take probabilities.*'logit'"),
    ("nonsense", ValueError, "name of a calibrator must be one of"),
    (3, TypeError, "calibrator must be a calibrator"),
]


@pytest.mark.parametrize(("calibrator", "error", "words"), REFUSED, ids=[str(r[0]) for r in REFUSED])
def test_calibrators_that_need_the_rows_say_so_by_name(calibrator, error, words):
    with pytest.raises(error, match=words):
        in_pieces(*multiclass()).fit(calibrator)


def test_the_whole_model_is_better_for_it():
    y, p = binary(20_000)
    fitted = in_pieces(y, p).fit("isotonic")
    y, p = binary(20_000, seed=1)
    assert cal.calibration_error(y, fitted.predict_proba(p)[:, 1]) < 0.3 * cal.calibration_error(y, p)
