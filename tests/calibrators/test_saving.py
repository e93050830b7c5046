"""Saved calibrators: the same numbers again, and files that are damaged, foreign or of another version."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB

import calibrant as cal
from calibrant import calibrators as c

from .table import ROWS, Row, several, two

ALL = [
    *ROWS,
    Row(c.AutoCalibrator(cv=2), many=True),
    Row(c.CurveCalibrator(cal.estimators.AdaptiveKernel(30))),
    Row(c.AutoCalibrator({"none": c.Identity(), "platt": c.PlattScaling()}, cv=2)),
]


def fitted(row, names=None):
    s, y, _ = several(300, 3, 0, 0.6) if row.many else two(300, 0, 0.6)
    one = clone(row.calibrator)
    if not row.many and names is not None:
        one.set_params(labels=names[:2])
    return one.fit(s, y if names is None else np.asarray(names)[y]), s


@pytest.mark.parametrize("names", [None, ["ant", "bee", "cat"], [False, True]], ids=["numbers", "words", "bool"])
@pytest.mark.parametrize("row", ALL, ids=str)
def test_the_same_probabilities_again(row, names, tmp_path):
    if names == [False, True] and row.many:
        names = [10, 20, 30]
    one, s = fitted(row, names)
    path = c.save_calibrator(one, tmp_path / "one.json")
    again = c.load_calibrator(path)
    np.testing.assert_array_equal(again.predict_proba(s), one.predict_proba(s))
    np.testing.assert_array_equal(again.predict(s), one.predict(s))
    assert again.classes_.dtype == one.classes_.dtype
    assert repr(again) == repr(one)
    assert c.to_dict(again) == c.to_dict(one)
    assert list(tmp_path.iterdir()) == [path]
    json.loads(path.read_text(), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


@pytest.mark.parametrize("row", ALL, ids=str)
def test_state_names_every_fitted_attribute(row):
    one, _ = fitted(row)
    found = {name for name in vars(one) if name.endswith("_")}
    assert found == set(one._state) | {"classes_", "n_features_in_", "order_", "prior_"}


def test_numbers_that_json_lacks(tmp_path):
    p, y, _ = several(300, 3, 0, -0.5)
    one = c.TemperatureScaling().fit(p, y)
    assert one.temperature_ == np.inf
    text = c.save_calibrator(one, tmp_path / "t.json").read_text()
    assert '"float": "inf"' in text
    assert c.load_calibrator(tmp_path / "t.json").temperature_ == np.inf


def test_files_are_not_replaced_by_accident(tmp_path):
    one, s = fitted(Row(c.PlattScaling()))
    path = c.save_calibrator(one, tmp_path / "one.json")
    before = path.read_text()
    with pytest.raises(FileExistsError, match="force=True"):
        c.save_calibrator(c.BetaCalibration().fit(s, (s > 0.5).astype(int) ^ (s > 0.9)), path)
    assert path.read_text() == before
    c.save_calibrator(c.IsotonicCalibrator(clip=None).fit(s, (s > 0.5).astype(int)), path, force=True)
    assert c.load_calibrator(path).values_.tolist() == [0, 0, 1, 1]


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    one, _ = fitted(Row(c.PlattScaling()))
    path = c.save_calibrator(one, tmp_path / "one.json")
    before = path.read_text()

    def broken(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        c.save_calibrator(one, path, force=True)
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["one.json"]


def saved(**changes):
    data = c.to_dict(fitted(Row(c.PlattScaling()))[0])
    for key, value in changes.items():
        part, _, inner = key.partition("__")
        if inner:
            data[part] = data[part] | {inner: value}
        else:
            data[part] = value
    return data


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "not a saved calibrator"),
        ({"format": "pickle"}, "'format' must be"),
        (saved(version=2), "upgrade it"),
        (saved(version="1"), "version must be a whole number"),
        (saved(name="os.system"), "name must be one of"),
        (saved(name="Calibrator"), "name must be one of"),
        (saved(parameters=3), "'parameters' must be a mapping"),
        (saved(parameters__colour="red"), "no parameter 'colour'"),
        (saved(fitted={}), "needs the attribute"),
        (saved(fitted__colour_=1), "no attribute 'colour_'"),
        (saved(fitted__coef_={"python": "print()"}), "coef_ is damaged"),
        (saved(fitted__coef_="steep"), "coef_ must be a number"),
        (saved(fitted__coef_={"float": "nan"}), "coef_ must be finite.*; got nan"),
        (saved(fitted__classes_={"array": [0, 1, 2], "dtype": "int64"}), "n_features_in_ must match 3 classes"),
        (saved(fitted__classes_={"array": [0, "one"], "dtype": "int64"}), "classes_ is damaged"),
        (saved(fitted__classes_={"array": [[0, 1], [1]], "dtype": "int64"}), "classes_ is damaged"),
        (saved(fitted__n_features_in_=-3), "n_features_in_ must be finite, and at least 1; got -3"),
        (saved(parameters__labels={"estimator": {"name": "Binned", "fields": {"colour": 1}}}), "labels is damaged"),
        (saved(parameters__labels={"calibrator": {"name": "eval", "parameters": {}}}), "labels is damaged"),
    ],
)
def test_damaged_and_foreign_files(data, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        c.from_dict(data)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ValueError, match=r"bad\.json: .*"):
        c.load_calibrator(path)


@pytest.mark.parametrize("content", [b"", b"\x80\x04\x95", b"{", b"[" * 100_000, b"\xff\xfe"])
def test_what_is_no_json(content, tmp_path):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"bad\.json"):
        c.load_calibrator(path)
    with pytest.raises(FileNotFoundError):
        c.load_calibrator(tmp_path / "nowhere.json")


@pytest.mark.parametrize("settings", [{"cv": 3}, {"cv": 3, "ensemble": False}, {"cv": "holdout"}], ids=str)
@pytest.mark.parametrize("margins", [False, True], ids=["probabilities", "margins"])
def test_of_a_calibrated_model_the_calibrator(settings, margins, tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    names, response = np.array(["bad", "good"])[y], "predict_proba"
    one, inside = GaussianNB(), c.BetaCalibration()
    if margins:
        one, inside, response = RidgeClassifier(), c.PlattScaling(), "decision_function"
    model = c.CalibratedModel(one, inside, **settings).fit(X, names)
    with pytest.warns(cal.exceptions.CalibrantWarning, match=f"the calibrator only.*{type(one).__name__}.*joblib"):
        path = c.save_calibrator(model, tmp_path / "one.json")
    loaded = c.load_calibrator(path)
    scores = [getattr(classifier, response)(X) for classifier, _ in model.pairs_]
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    # Each on the scores of its own classifier: the model's own numbers.
    each = getattr(loaded, "calibrators_", [loaded])
    by_pairs = np.mean([fold.predict_proba(s) for fold, s in zip(each, scores, strict=True)], axis=0)
    np.testing.assert_allclose(by_pairs, model.predict_proba(X), atol=1e-14)
    # And as a whole on those of one.
    whole = np.mean([fold.predict_proba(scores[0]) for _, fold in model.pairs_], axis=0)
    np.testing.assert_allclose(loaded.predict_proba(scores[0]), whole, atol=1e-15)
    assert c.to_dict(loaded) == c.to_dict(model.calibrator_)
    with pytest.raises(TypeError, match="pass its calibrator_"):
        c.to_dict(model)


def test_what_cannot_be_saved():
    one, s = fitted(Row(c.PlattScaling()))
    with pytest.raises(TypeError, match="must be a calibrator"):
        c.to_dict("platt")

    class Mine(c.PlattScaling):
        pass

    with pytest.raises(TypeError, match="only calibrators of this package"):
        c.to_dict(Mine().fit(s, (s > 0.4).astype(int)))
    one.labels = print
    with pytest.raises(TypeError, match=r"labels=.*cannot be saved"):
        c.to_dict(one)


@given(st.data())
@settings(max_examples=150, deadline=None)
@pytest.mark.slow
def test_a_file_with_one_place_changed_is_read_or_refused(data):
    """Whatever one value is changed to, there is a calibrator or a ValueError, and nothing else."""
    content = saved()
    part = data.draw(st.sampled_from(["parameters", "fitted", None]))
    place = content if part is None else content[part]
    key = data.draw(st.sampled_from(sorted(place)))
    junk = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=2),
        max_leaves=5,
    )
    place[key] = data.draw(junk)
    try:
        found = c.from_dict(content)
    except ValueError:
        return
    assert isinstance(found, c.PlattScaling)


def _rows_of(data):
    return data["fitted"]["table_"]["list"]


#: What is changed in the table of a saved choice.
TABLES = {
    "no choice": lambda data: _rows_of(data)[0]["mapping"].pop("chosen"),
    "a name that is none": lambda data: _rows_of(data)[0]["mapping"].update(name=5),
    "names alike": lambda data: _rows_of(data)[0]["mapping"].update(name=_rows_of(data)[1]["mapping"]["name"]),
    "a loss that is text": lambda data: _rows_of(data)[-1]["mapping"].update(loss="<b>0</b>"),
    "a loss that is true": lambda data: _rows_of(data)[-1]["mapping"].update(loss=True),
    "more": lambda data: _rows_of(data)[0]["mapping"].update(more=1),
    "two choices": lambda data: [row["mapping"].update(chosen=True) for row in _rows_of(data)],
    "another choice": lambda data: data["fitted"].update(chosen_="isotonic"),
    "an accuracy above 1": lambda data: _rows_of(data)[0]["mapping"].update(accuracy=2.0),
    "another weight": lambda data: _rows_of(data)[-1]["mapping"].update(weight=0.9),
    "nothing": lambda data: _rows_of(data).clear(),
    "a row twice": lambda data: _rows_of(data).append(_rows_of(data)[0]),
}


@pytest.mark.parametrize("rule", ["average", "best"])
@pytest.mark.parametrize("change", TABLES)
def test_a_table_of_another_choice_is_refused(change, rule):
    s, y, _ = two(300, 0, 0.6)
    data = c.to_dict(c.AutoCalibrator(["identity", "temperature", "platt"], cv=2, rule=rule).fit(s, y))
    assert str(c.from_dict(json.loads(json.dumps(data))))
    TABLES[change](data)
    with pytest.raises(ValueError, match=r"AutoCalibrator is damaged: (names in )?(weights in )?table_"):
        c.from_dict(data)


@pytest.mark.parametrize("name", ["platt", "isotonic", "spline", "temperature", "dirichlet", "rest"])
def test_files_of_version_1_stay_readable(name):
    """Written once, by calibrant 0.1.0, and never again: what they say must not change."""
    written = json.loads((Path(__file__).parent / "saved_by_version_1.json").read_text(encoding="utf-8"))[name]
    assert written["saved"]["version"] == 1
    found = c.from_dict(written["saved"])
    np.testing.assert_allclose(found.predict_proba(np.array(written["at"])), written["says"], atol=1e-9)


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.update(name="GroupCalibrator"),
        lambda d: d["parameters"].update(method="density"),
        lambda d: d["parameters"].update(estimator={"estimator": {"name": "Gone", "fields": {}}}),
        lambda d: d["parameters"].update(estimator={"estimator": {"name": "Binned", "fields": {"method": 3}}}),
        lambda d: d["fitted"].update(old_=1.0),
        lambda d: d["fitted"].pop("values_"),
    ],
)
def test_names_of_another_version_say_what_to_do(damage):
    saved = c.to_dict(fitted(Row(c.CurveCalibrator()))[0])
    damage(saved)
    with pytest.raises(ValueError, match=r"; if another version of calibrant saved it, create it again$") as caught:
        c.from_dict(saved)
    assert str(caught.value).count("create it again") == 1


def test_a_file_that_was_changed_is_refused(tmp_path):
    """One digit changed makes sense by itself, and would give other probabilities."""
    path = c.save_calibrator(c.PlattScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]), tmp_path / "platt.json")
    data = json.loads(path.read_text())
    data["fitted"]["coef_"] += 0.001
    path.write_text(json.dumps(data))
    with pytest.raises(ValueError, match="the digest does not match"):
        c.load_calibrator(path)
    assert c.from_dict(data).coef_ == data["fitted"]["coef_"]  # what is changed on purpose
