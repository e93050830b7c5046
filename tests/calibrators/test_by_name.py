"""Calibrators by name, wherever one is taken."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

from calibrant.calibrators import (
    AutoCalibrator,
    CalibratedModel,
    Composed,
    IsotonicCalibrator,
    LabelSmoothing,
    Mixture,
    OneVsRest,
    PlattScaling,
    SubgroupCalibrator,
    load_calibrator,
    save_calibrator,
    select_calibrator,
)

RNG = np.random.default_rng(0)
P = RNG.random(300)
Y = (RNG.random(300) < P**2).astype(int)
P3 = RNG.dirichlet(np.ones(3), 300)
Y3 = RNG.integers(0, 3, 300)


@pytest.mark.parametrize(
    ("named", "plain", "p", "y"),
    [
        (OneVsRest("isotonic"), OneVsRest(IsotonicCalibrator()), P3, Y3),
        (Mixture(["platt", "isotonic"]), Mixture([PlattScaling(), IsotonicCalibrator()]), P, Y),
        (Composed(["platt", "isotonic"]), Composed([PlattScaling(), IsotonicCalibrator()]), P, Y),
        (Mixture(["isotonic"]), Mixture([OneVsRest(IsotonicCalibrator())]), P3, Y3),
        (LabelSmoothing("platt"), LabelSmoothing(PlattScaling()), P, Y),
        (
            AutoCalibrator(["platt", "isotonic"]),
            AutoCalibrator({"platt": PlattScaling(), "isotonic": "isotonic"}),
            P,
            Y,
        ),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_name_is_the_calibrator(named, plain, p, y, tmp_path):
    fitted = clone(named).fit(p, y)
    np.testing.assert_array_equal(fitted.predict_proba(p), plain.fit(p, y).predict_proba(p))
    save_calibrator(fitted, tmp_path / "one.json")
    np.testing.assert_array_equal(load_calibrator(tmp_path / "one.json").predict_proba(p), fitted.predict_proba(p))


def test_of_a_model_and_of_subgroups():
    X = np.column_stack([P, RNG.random(300)])
    model = CalibratedModel(GaussianNB(), "isotonic", cv=3).fit(X, Y)
    plain = CalibratedModel(GaussianNB(), IsotonicCalibrator(), cv=3).fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    assert isinstance(CalibratedModel(GaussianNB(), "platt", cv=3).fit(X, Y3).pairs_[0][1], OneVsRest)
    subgroups = SubgroupCalibrator(calibrator="platt").fit(P, Y, by=Y * 0)
    assert isinstance(subgroups.common_, PlattScaling)
    assert select_calibrator(P, Y, candidates=["platt"]).name == "platt"


@pytest.mark.parametrize(
    ("one", "kind", "text"),
    [
        (OneVsRest("temperature"), TypeError, "must be a binary calibrator"),
        (OneVsRest("plat"), ValueError, "the name of a calibrator must be one of 'identity', "),
        (Mixture("platt"), TypeError, "must be a list of one or more calibrators"),
        (Mixture([3]), TypeError, "or the name of one; got 3"),
        (AutoCalibrator(["plat"]), ValueError, "the name of a calibrator must be one of 'identity', "),
        (AutoCalibrator("platt"), TypeError, "candidates must be a mapping"),
    ],
)
def test_names_that_are_none(one, kind, text):
    with pytest.raises(kind, match=text):
        one.fit(P, Y)
    with pytest.raises(ValueError, match="the name of a calibrator must be one of"):
        CalibratedModel(GaussianNB(), "plat").fit(P[:, None], Y)
