"""The laws of calibrators where data say little: constant and separable scores, absent classes, exact zeros and ones.

Neither the order of rows, nor whether rows are repeated or weighted, nor what classes are called makes a difference to
the map, on all of its domain. Where an optimum lies at infinity the fit says so, and only what it says of the rows that
it was fitted to is the same.
"""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from calibrant import calibrators as c
from calibrant.calibrators import linear
from calibrant.exceptions import CalibrantWarning

from .table import ROWS

N = 60
RNG = np.random.default_rng(0)
EYE = np.eye(3)
MANY = RNG.dirichlet(np.ones(3), N)
CODES = (RNG.random((N, 1)) > MANY.cumsum(axis=1)).sum(axis=1).clip(0, 2)
TWO = RNG.random(N)
CAME = (RNG.random(N) < TWO).astype(int)
#: Some rows of no doubt, a few of them wrong.
SURE = np.where((np.arange(N) % 4 == 0)[:, None], EYE[CODES], MANY)
SURE[1::8] = EYE[(CODES[1::8] + 1) % 3]
CERTAIN = np.where(np.arange(N) % 4 == 0, CAME, TWO)
CERTAIN[1::8] = 1 - CAME[1::8]
TWIN = np.column_stack([MANY[:, 0] / 2, MANY[:, 0] / 2, 1 - MANY[:, 0]])
NOTHING = np.zeros(N, dtype=int)
#: Scores and labels by what is wrong with them: of two classes, and of three.
CASES = {
    "constant": ((np.full(N, 0.3), CAME), (np.tile([0.2, 0.3, 0.5], (N, 1)), CODES)),
    "constant and even": ((np.full(N, 0.5), CAME), (np.full((N, 3), 1 / 3), CODES)),
    "constant and certain": ((np.ones(N), CAME), (np.tile(EYE[2], (N, 1)), CODES)),
    "constant, one class": ((np.full(N, 0.3), NOTHING), (np.tile([0.2, 0.3, 0.5], (N, 1)), NOTHING)),
    "one class": ((TWO, NOTHING), (MANY, NOTHING)),
    "separable": ((np.where(CAME == 1, 0.8, 0.2), CAME), (np.where(EYE[CODES] == 1, 0.8, 0.1), CODES)),
    "separable, spread": ((TWO / 2 + CAME / 2, CAME), (0.6 * EYE[CODES] + 0.4 * MANY, CODES)),
    "columns doubled": ((np.round(TWO * 3) / 4 + 0.1, CAME), (TWIN, CODES)),
    "exactly 0 and 1": ((CAME.astype(float), CAME), (EYE[CODES], CODES)),
    "some exactly 0 and 1": ((CERTAIN, CAME), (SURE, CODES)),
    "six rows": ((TWO[:6], CAME[:6]), (MANY[:6], CODES[:6])),
}
#: Where maps are compared.
POINTS = (np.linspace(0, 1, 201), np.vstack([np.random.default_rng(5).dirichlet(np.ones(3), 200), EYE]))
#: Laws that cannot hold, and why.
EXCEPT = {
    # The first of equal classes is the predicted one, whatever it is called.
    ("names", "constant and even", c.TopLabelCalibrator),
    # log(1 - p) of p = 1 - 1e-12 is rounded in the fourth digit, and log p of p = 1e-12 is not.
    ("names", "constant and certain", c.OneVsOne),
}


def fit(calibrator, s, y, w=None, labels=None):
    """A fitted clone, and whether it warned that there is no optimum."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fitted = clone(calibrator).set_params(labels=labels).fit(s, y, sample_weight=w)
    assert all(issubclass(one.category, CalibrantWarning) for one in said), said
    return fitted, bool(said)


def variants(row, s, y, labels):
    """Other ways to say the same, and in which order the columns of the answer then are."""
    order = np.random.default_rng(1).permutation(len(y))
    yield "order", fit(row.calibrator, s[order], y[order], None, labels), None
    if row.many:
        columns = np.array([2, 0, 1])
        yield "names", fit(row.calibrator, s[:, columns], np.argsort(columns)[y], None, labels), columns
    else:
        yield "names", fit(row.calibrator, s, np.array(["ant", "bee"])[y], None, ["ant", "bee"]), None


def apart(one, other, points, columns):
    """Largest difference of two maps at some points."""
    p = one.predict_proba(points)
    assert np.isfinite(p).all()
    if columns is None:
        return np.abs(other.predict_proba(points) - p).max()
    return np.abs(other.predict_proba(points[:, columns]) - p[:, columns]).max()


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_laws_of_data_that_say_little(row):
    wrong, fitted_to = {}, 0
    for case, of in CASES.items():
        s, y = of[row.many]
        points, labels = POINTS[row.many], [0, 1, 2][: 2 + row.many]
        try:
            one, endless = fit(row.calibrator, s, y, None, labels)
        except ValueError as error:
            if "closed-form" not in str(error):
                raise
            continue
        fitted_to += 1
        laws = [(law, one, *found, columns) for law, found, columns in variants(row, s, y, labels)]
        if row.repeats:
            w = np.random.default_rng(2).integers(1, 4, len(y))
            weighted, known = fit(row.calibrator, s, y, w, labels)
            again, told = fit(row.calibrator, np.repeat(s, w, axis=0), np.repeat(y, w), None, labels)
            laws.append(("repeats", weighted, again, known or told, None))
        for law, first, second, warned, columns in laws:
            if (law, case, type(row.calibrator)) in EXCEPT:
                continue
            places = s if endless or warned else np.concatenate([points, s])
            if (gap := apart(first, second, places, columns)) > 1e-6:
                wrong[case, law] = gap
    assert not wrong
    assert fitted_to >= 8


def test_of_equal_optima_the_one_nearest_to_the_start_is_found():
    """Constant scores say nothing of slopes: those of the start stay, and only the level is fitted."""
    y = CODES
    for scores in (np.full((N, 3), 1 / 3), np.tile([0.2, 0.3, 0.5], (N, 1))):
        fitted = c.VectorScaling(0).fit(scores, y)
        np.testing.assert_allclose(fitted.predict_proba(scores)[0], np.bincount(y) / N, atol=1e-9)
    even = c.VectorScaling(0).fit(np.full((N, 3), 1 / 3), y)
    np.testing.assert_allclose(even.coef_, even.coef_[0], atol=0.2)


@pytest.mark.parametrize("seed", range(3))
def test_many_classes_of_constant_scores(seed):
    """Beyond Newton's method, by conjugate gradients: the same map in any order of rows."""
    k, n = 30, 300
    rng = np.random.default_rng(seed)
    s, y, order = np.tile(rng.dirichlet(np.ones(k)), (n, 1)), np.arange(n) % k, rng.permutation(n)
    points = rng.dirichlet(np.ones(k), 50)
    for one in (
        c.MatrixScaling(),
        c.MatrixScaling(0),
        c.DirichletCalibration(),
        c.DirichletCalibration("l2"),
        c.DirichletCalibration(strength=1e-2, intercept_strength=0.0),
    ):
        first, second = clone(one).fit(s, y), clone(one).fit(s[order], y[order])
        np.testing.assert_allclose(second.predict_proba(points), first.predict_proba(points), rtol=0, atol=1e-6)


def test_the_preconditioner_is_the_inverse_but_along_flat_directions(monkeypatch):
    """Of constant scores it is exact: a step takes a product or two, and has no part in slopes that undo each other."""
    k, n = 30, 300
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(k))
    kept = []

    def caught(objective, start):
        kept.append(objective)
        return minimise(objective, start)

    minimise = linear.minimise_large
    monkeypatch.setattr(linear, "minimise_large", caught)
    c.DirichletCalibration().fit(np.tile(p, (n, 1)), np.arange(n) % k)
    times, near_inverse = kept[0].product(rng.normal(size=k * (k + 1)) / 10)
    flat = np.zeros((k, k + 1))
    flat[np.arange(k), np.arange(k)] = 1 / np.log(p)
    flat = flat.ravel() / np.linalg.norm(flat)
    for _ in range(3):
        v = times(rng.normal(size=k * (k + 1)))
        step = near_inverse(v)
        assert abs(step @ flat) < 1e-8 * np.linalg.norm(step)
        np.testing.assert_allclose(times(step), v, atol=1e-6 * np.abs(v).max())
