# ruff: noqa: E501 (tables of messages)
"""Which label is which column."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calibrant
from calibrant import as_predictions

P = [0.1, 0.9, 0.8, 0.2]
P3 = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
PETS = ["cat", "cow", "dog"]


def refused(kind, text, y, p=P, **kwargs):
    with pytest.raises(kind, match=re.escape(text)):
        as_predictions(y, p, **kwargs)


# ---- one score -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "options", "classes", "positive", "codes"),
    [
        ([0, 1, 1, 0], {}, (0, 1), 1, [0, 1, 1, 0]),
        ([0, 1, 1, 0], {"pos_label": 0}, (0, 1), 0, [0, 1, 1, 0]),
        ([0, 1, 1, 0], {"labels": [1, 0]}, (1, 0), 0, [1, 0, 0, 1]),
        ([0.0, 1.0, 1.0, 0.0], {}, (0, 1), 1, [0, 1, 1, 0]),
        ([-1, 1, 1, -1], {}, (-1, 1), 1, [0, 1, 1, 0]),
        ([True, False, False, True], {}, (False, True), 1, [1, 0, 0, 1]),
        ([True, False, False, True], {"pos_label": False}, (False, True), 0, [1, 0, 0, 1]),
        (["no", "yes", "yes", "no"], {"pos_label": "yes"}, ("no", "yes"), 1, [0, 1, 1, 0]),
        (["no", "yes", "yes", "no"], {"pos_label": "no"}, ("no", "yes"), 0, [0, 1, 1, 0]),
        ([1, 2, 2, 1], {"pos_label": 2}, (1, 2), 1, [0, 1, 1, 0]),
        # only one label seen, and no doubt about the other
        ([0, 0, 0, 0], {}, (0, 1), 1, [0, 0, 0, 0]),
        ([1, 1, 1, 1], {}, (0, 1), 1, [1, 1, 1, 1]),
        ([-1, -1, -1, -1], {}, (-1, 1), 1, [0, 0, 0, 0]),
        ([False] * 4, {}, (False, True), 1, [0, 0, 0, 0]),
        (["no"] * 4, {"pos_label": "yes"}, ("no", "yes"), 1, [0, 0, 0, 0]),
        (["no"] * 4, {"pos_label": "yes", "labels": ["no", "yes"]}, ("no", "yes"), 1, [0, 0, 0, 0]),
    ],
)
def test_binary_labels(y, options, classes, positive, codes):
    p = as_predictions(y, P, **options)
    assert p.classes == classes
    assert p.positive == positive
    assert p.codes.astype(int).tolist() == codes
    assert p.outcome(p.positive).astype(int).tolist() == [int(v == classes[positive]) for v in y]
    assert p.score(p.positive).tolist() == P
    np.testing.assert_allclose(p.matrix.sum(axis=1), 1)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint64, ">i2", ">i8", bool, np.float32])
def test_label_dtypes(dtype):
    p = as_predictions(np.array([0, 1, 1, 0], dtype=dtype), P)
    assert p.codes.astype(int).tolist() == [0, 1, 1, 0]
    if np.dtype(dtype).kind != "b":
        assert as_predictions(np.array([0, 2, 1], dtype=dtype), P3).codes.astype(int).tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("y", "options", "kind", "text"),
    [
        (["no", "yes", "no", "no"], {}, ValueError, "pos_label must be given when the labels are ['no', 'yes']: the one that"),
        (["0", "1", "1", "0"], {}, ValueError, "pos_label must be given when the labels are ['0', '1']"),
        ([1, 2, 2, 1], {}, ValueError, "pos_label must be given when the labels are [1, 2]"),
        (["no", "yes", "no", "no"], {"pos_label": "maybe"}, ValueError, "pos_label must be one of the labels ['no', 'yes']; got 'maybe'"),
        ([0, 1, 1, 0], {"pos_label": 2}, ValueError, "pos_label must be one of the labels [0, 1]; got 2"),
        ([0, 1, 2, 0], {}, ValueError, "y_true has 3 labels (0, 1, 2) but y_prob is 1-D (the probability of one label)"),
        (["no"] * 4, {}, ValueError, "two classes are needed, but y_true has only one label ('no'): pass labels=[...]"),
        ([5] * 4, {}, ValueError, "two classes are needed, but y_true has only one label (5)"),
        ([0, 1, 2, 0], {"labels": [0, 1]}, ValueError, "matches no column: row 2 is 2, labels are 0, 1"),
        ([0, 1, 1, 0], {"labels": [0, 1, 2]}, ValueError, "labels must name one label per column: y_prob has 2, labels has 3"),
    ],
)  # fmt: skip
def test_binary_labels_refused(y, options, kind, text):
    refused(kind, text, y, **options)


# ---- one column a class ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "labels", "classes", "codes"),
    [
        ([0, 1, 2], None, (0, 1, 2), [0, 1, 2]),
        ([2, 0, 0], None, (0, 1, 2), [2, 0, 0]),  # not every label need be seen
        ([1, 2, 3], None, (1, 2, 3), [0, 1, 2]),
        ([-5, 10, 3], None, (-5, 3, 10), [0, 2, 1]),
        ([0.0, 2.0, 1.0], None, (0, 1, 2), [0, 2, 1]),
        (["b", "a", "c"], None, ("a", "b", "c"), [1, 0, 2]),
        (["b", "a", "c"], ["c", "b", "a"], ("c", "b", "a"), [1, 2, 0]),
        (["b", "b", "b"], ["c", "b", "a"], ("c", "b", "a"), [1, 1, 1]),
        (["b", "b", "b"], np.array(["c", "b", "a"]), ("c", "b", "a"), [1, 1, 1]),
        ([7, 7, 9], (9, 8, 7), (9, 8, 7), [2, 2, 0]),
        (np.array([b"a", b"c", b"b"]), None, (b"a", b"b", b"c"), [0, 2, 1]),
    ],
)
def test_multiclass_labels(y, labels, classes, codes):
    p = as_predictions(y, P3, labels=labels)
    assert p.classes == classes
    assert p.positive is None
    assert p.codes.tolist() == codes


@pytest.mark.parametrize("kind", [int, float, bool])
def test_one_hot_rows_are_labels_of_the_columns(kind):
    rows = np.eye(3, dtype=kind)[[2, 0, 0]]
    assert as_predictions(rows, P3).classes == (0, 1, 2)
    assert as_predictions(rows.tolist(), P3).codes.tolist() == [2, 0, 0]
    named = as_predictions(rows, P3, labels=["a", "b", "c"])
    assert (named.classes, named.codes.tolist()) == (("a", "b", "c"), [2, 0, 0])
    two = as_predictions(np.eye(2, dtype=kind)[[1, 0, 0, 1]], P)
    assert (two.classes, two.positive, two.codes.tolist()) == ((0, 1), 1, [1, 0, 0, 1])


def test_one_hot_columns_have_names():
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame(np.eye(3, dtype=int)[[2, 0, 0]], columns=["a", "b", "c"])
    scores = pd.DataFrame(np.array(P3), columns=["p_c", "p_a", "p_b"])
    assert as_predictions(rows, P3).classes == ("a", "b", "c")
    by_name = as_predictions(rows, scores)
    np.testing.assert_array_equal(by_name.probs[:, by_name.classes.index("c")], scores["p_c"])
    assert [by_name.classes[c] for c in by_name.codes] == ["c", "a", "a"]
    assert as_predictions(rows.to_numpy(), scores).codes.tolist() == [2, 0, 0]  # columns of one order


def test_two_columns():
    rows = np.column_stack([P, 1 - np.array(P)])
    for y, classes in (([-1, 1, 1, -1], (-1, 1)), ([True] * 4, (False, True)), ([0] * 4, (0, 1))):
        assert as_predictions(y, rows).classes == classes


@pytest.mark.parametrize(
    ("y", "options", "kind", "text"),
    [
        (["a", "b", "b"], {}, ValueError, "y_true has 2 labels ('a', 'b') but y_prob has 3 columns: pass labels=[...], one label per column"),
        ([-1, 2, 2], {}, ValueError, "y_true has 2 labels (-1, 2) but y_prob has 3 columns"),
        ([1, 2, 9], {"labels": [0, 1, 2]}, ValueError, "y_true has a label that matches no column: row 2 is 9, labels are 0, 1, 2"),
        (["a", "z", "b"], {"labels": ["a", "b", "c"]}, ValueError, "row 1 is 'z', labels are 'a', 'b', 'c'"),
        ([0, 1, 2], {"labels": ["0", "1", "2"]}, ValueError, "row 0 is 0, labels are '0', '1', '2', of another kind"),
        (["0", "1", "2"], {"labels": [0, 1, 2]}, ValueError, "row 0 is '0', labels are 0, 1, 2, of another kind"),
        ([0, 1, 2], {"labels": [0, 1]}, ValueError, "labels must name one label per column: y_prob has 3, labels has 2 (0, 1)"),
        ([0, 1, 2], {"labels": [0, 1, 1]}, ValueError, "labels must be distinct; got [0, 1, 1]"),
        ([0, 1, 2], {"labels": "abc"}, TypeError, "labels must be a sequence of 3 labels; got 'abc'"),
        ([0, 1, 2], {"labels": 3}, TypeError, "labels must be a sequence of 3 labels; got 3"),
        ([0, 1, 2], {"labels": [[0], [1], [2]]}, TypeError, "labels must be of one kind (int, bool or str); got [[0], [1], [2]]"),
        ([0, 1, 2], {"labels": [0, "a", 2]}, TypeError, "labels must be of one kind (int, bool or str); got [0, 'a', 2]"),
        ([0, 1, 2], {"labels": [0, None, 2]}, TypeError, "labels must be of one kind"),
        ([0, 1, 2], {"pos_label": 1}, ValueError, "pos_label is for a 1-D y_prob; y_prob has 3 columns (got pos_label=1)"),
        (np.tri(3, dtype=int), {"multilabel": False}, ValueError, "y_true has rows with several labels, or none (row 1 has 2 ones), so each label is a two-class problem: use notion='multilabel', where supported, or pass y_true[:, k] and y_prob[:, k]"),
        (np.zeros((3, 3)), {"multilabel": False}, ValueError, "(row 0 has 0 ones), so each label is a two-class problem"),
        (np.eye(3, 4), {}, ValueError, "y_true has 4 columns, but y_prob gives probabilities of 3 labels"),
        (np.eye(3), {"labels": ["a", "b"]}, ValueError, "labels must name one label per column: y_prob has 3, labels has 2"),
        (np.eye(3) / 2, {}, ValueError, "y_true must be 1-D; got shape (3, 3)"),
        ([[5.2, 1], [3.1, 0], [2.0, 1]], {}, ValueError, "(time, event) pairs? Probabilities are those of an event by some time t"),
        (np.array([(True, 5.2)] * 3, [("event", bool), ("time", float)]), {}, TypeError, "(time, event) pairs? Probabilities are those of an event by some time t"),
    ],
)  # fmt: skip
def test_multiclass_labels_refused(y, options, kind, text):
    refused(kind, text, y, P3, **options)


@pytest.mark.parametrize(
    ("y", "kind", "text"),
    [
        ([0, None, 1, 1], ValueError, "y_true must have no missing labels; row 1 is None"),
        ([0, 1, pd.NA, 1], ValueError, "y_true must have no missing labels; row 2 is <NA>"),
        (["a", "b", float("nan"), "a"], ValueError, "y_true must have no missing labels; row 2 is nan"),
        (np.array(["a", "b", np.nan, "a"], dtype=object), ValueError, "y_true must have no missing labels; row 2 is nan"),
        ([0, 1, np.nan, 1], ValueError, "y_true must hold class labels; row 2 is nan"),
        ([1.1, 0.9, 0.8, 0.2], ValueError, "row 0 is 1.1, and row 1 is 0.9 (continuous numbers: are y_true and y_prob swapped?)"),
        ([1.5, 2.5, 0, 1], ValueError, "row 0 is 1.5 (continuous numbers: are y_true and y_prob swapped?)"),
        ([0, "a", 1, 1], TypeError, "labels of one kind (int, bool or str); row 1 is 'a' (str)"),
        (["a", 0, 1, 1], TypeError, "labels of one kind (int, bool or str); row 1 is 0 (int)"),
        (np.array(["2020-01-01"] * 4, dtype="M8[D]"), TypeError, "got dtype datetime64[D]"),
        (np.array([0, 1, 1, 0]) * 1j, ValueError, "got dtype complex128"),
        (1, ValueError, "y_true must be 1-D; got a single value"),
        ([], ValueError, "y_true must not be empty; got 0 rows"),
        (None, TypeError, "y_true must be an array, a list, a data-frame column or frame, or a tensor; got NoneType"),
    ],
)  # fmt: skip
def test_labels_that_are_none(y, kind, text):
    refused(kind, text, y)


def test_predictions_are_not_labels():
    refused(TypeError, "y_prob must not be given with Predictions", as_predictions([0, 1, 1, 0], P))


# ---- frames: columns have names --------------------------------------------------------------------------------


def frame(names, order=(0, 1, 2)):
    return pd.DataFrame({names[i]: P3[:, i] for i in order})


@pytest.mark.parametrize(
    ("y", "names", "classes"),
    [
        (PETS, PETS, PETS),
        ([0, 1, 2], ["0", "1", "2"], [0, 1, 2]),
        (PETS, ["p_cat", "p_cow", "p_dog"], PETS),
        (PETS, ["cat_prob", "cow_prob", "dog_prob"], PETS),
        ([0, 1, 2], ["class_0", "class_1", "class_2"], [0, 1, 2]),
        (["a", "b", "c"], ["class_a", "class_b", "class_c"], ["a", "b", "c"]),
        (["cow", "cow", "cow"], PETS, PETS),  # labels without a row
        ([2, 0, 0], ["p2", "p0", "p1"], [2, 0, 1]),
    ],
)
def test_columns_named_like_labels_are_followed_in_any_order(y, names, classes):
    for order in ((0, 1, 2), (2, 0, 1), (1, 0, 2)):
        p = as_predictions(y, frame(names, order))
        assert p.classes == tuple(classes[i] for i in order)
        assert [p.classes[c] for c in p.codes] == list(y)
        np.testing.assert_array_equal(p.probs, P3[:, order])


def test_given_labels_pick_their_columns_by_name():
    for names in (PETS, ["p_cat", "p_cow", "p_dog"]):
        p = as_predictions(PETS, frame(names, (2, 0, 1)), labels=PETS)
        assert p.classes == tuple(PETS)
        np.testing.assert_array_equal(p.probs, P3)
    assert as_predictions([True, False, True], pd.DataFrame({"True": P[:3], "False": 1 - np.array(P[:3])})).classes == (
        True,
        False,
    )


def test_columns_without_names_count_by_position():
    for y, classes in ((PETS, tuple(PETS)), ([1, 2, 3], (1, 2, 3)), ([0, 2, 2], (0, 1, 2))):
        assert as_predictions(y, pd.DataFrame(P3)).classes == classes
    for names in (["f0", "f1", "f2"], ["V1", "V2", "V3"], ["column_0", "column_1", "column_2"], ["0", "1", "2"]):
        for y in (PETS, [1, 2, 3]):
            assert as_predictions(y, pd.DataFrame(P3, columns=names)).classes == tuple(y)
    p = as_predictions([2, 0, 1], pd.DataFrame(P3), labels=[2, 0, 1])
    assert p.classes == (2, 0, 1)
    np.testing.assert_array_equal(p.probs, P3)


def test_names_that_contradict_the_labels():
    refused(ValueError, "row 2 is 'pig', columns of y_prob are 'cat', 'cow', 'dog'", ["cat", "cow", "pig"], frame(PETS))
    refused(ValueError, "labels ['pig'] do not match the columns", PETS, frame(PETS), labels=["cat", "cow", "pig"])
    for y in (PETS, ["cat", "cow", "cow"]):
        message = "row 0 is 'cat', columns of y_prob are 'x', 'y', 'z', labels are 'cat', 'cow'"
        refused(ValueError, message, y, frame(["x", "y", "z"]))
    assert as_predictions(PETS, frame(["x", "y", "z"]), labels=["dog", "cow", "cat"]).codes.tolist() == [2, 1, 0]
    refused(ValueError, "labels ['z'] do not match the columns", PETS, frame(PETS), labels=["cat", "z", "dog"])


BOOLS, WHOLE = [True, False, True], [1, 0, 1]


@pytest.mark.parametrize(
    ("y", "names", "classes"),
    [
        (BOOLS, ["true", "false"], (True, False)),
        (BOOLS, ["1", "0"], (True, False)),
        (BOOLS, [1, 0], (True, False)),
        (BOOLS, ["p_true", "p_false"], (True, False)),
        ([True] * 3, [True, False], (True, False)),  # one class seen
        (WHOLE, [True, False], (1, 0)),
        ([1.0, 0.0, 1.0], ["p_[1]", "p_[0]"], (1, 0)),
        (["1.0", "0.0", "1.0"], [1, 0], ("1.0", "0.0")),
        (np.array([b"b", b"a", b"b"]), ["b", "a"], (b"b", b"a")),
        (["Yes", "No", "No"], ["P_YES", "p_no"], ("Yes", "No")),
        (["a", "A", "A"], ["A", "a"], ("A", "a")),  # case matters where it tells labels apart
        ([1, 2, 2], ["p_2", "p_1"], (2, 1)),
        ([10, 12, 12], ["p_12", "p_10"], (12, 10)),  # never cut within a number
    ],
)
def test_columns_named_like_labels_but_for_spelling(y, names, classes):
    rows = np.column_stack([P[:3], 1 - np.array(P[:3])])
    for value in (pd.DataFrame(rows, columns=names), pl.DataFrame(rows, schema=[str(n) for n in names])):
        p = as_predictions(y, value)
        assert p.classes == classes
        assert [type(c) for c in p.classes] == [type(c) for c in classes]
        assert as_predictions(y, value, labels=classes[::-1]).probs.tolist() == rows[:, ::-1].tolist()


def test_columns_of_three_labels_but_for_spelling():
    p = as_predictions(["01", "02", "03"], frame(["3", "2", "1"]))
    assert p.classes == ("03", "02", "01")
    assert as_predictions(["cat", "dog", "fox"], frame(["Fox", "Dog", "Cat"])).classes == ("fox", "dog", "cat")


@pytest.mark.parametrize(
    ("y", "names"),
    [
        ([0, 1, 1], ["pos", "neg"]),
        (["no", "yes", "yes"], ["p_0", "p_1"]),
        (["cat", "dog", "fox"], ["fox_p", "p_dog", "p-cat"]),
        ([1, 2, 3], ["p_0", "p_1", "p_2"]),
        ([0, 1, 1], ["p_0", "p_1", "p_other"]),
        ([True, False, True], ["true", "false", "maybe"]),
    ],
)
def test_names_that_do_not_cover_the_labels(y, names):
    rows = np.full((3, len(names)), 1 / len(names))
    refused(ValueError, "pass labels=[...], one label per column", y, pd.DataFrame(rows, columns=names))


@pytest.mark.parametrize(("y", "k"), [([1, 2, 2], 3), ([1, 1, 1], 2), ([1.0, 1.0, 2.0], 3), ([1, 2, 2], "f")])
def test_integers_without_zero_may_count_from_one(y, k):
    rows = P3 if k != 2 else np.column_stack([P[:3], 1 - np.array(P[:3])])
    rows, k = (frame(["f0", "f1", "f2"]), 3) if k == "f" else (rows, k)
    with pytest.warns(calibrant.exceptions.LabelWarning, match=rf"assumed to be 0 … {k - 1}; pass labels=range\({k}\)"):
        assert as_predictions(y, rows).classes == tuple(range(k))
    assert as_predictions(y, rows, labels=range(k)).codes.tolist() == [int(v) for v in y]
    assert as_predictions(y, rows, labels=range(1, k + 1)).codes.tolist() == [int(v) - 1 for v in y]


def test_integers_that_count_from_one_for_sure():
    refused(ValueError, "such as labels=range(1, 4)", [1, 3, 3], P3)
    assert as_predictions([1, 2, 3], P3).classes == (1, 2, 3)


@pytest.mark.parametrize(
    ("y", "name", "options"),
    [
        (["no", "yes", "no", "no"], "no", {"pos_label": "yes"}),
        (["no", "yes", "no", "no"], "P_No", {"pos_label": "yes"}),
        (["no", "yes", "no", "no"], "no_prob", {"pos_label": "yes"}),
        ([0, 1, 1, 0], "0", {}),
        ([0, 1, 1, 0], "p_0", {}),
        ([0, 1, 1, 0], "p1", {"pos_label": 0}),
        ([-1, 1, 1, -1], "p_-1", {}),
        ([True, False, True, True], "p_false", {}),
        ([1, 2, 2, 1], "class 1", {"pos_label": 2}),
    ],
)
def test_one_column_named_after_the_other_label(y, name, options):
    refused(ValueError, f"but its only column {name!r} is named after", y, pd.DataFrame({name: P}), **options)


@pytest.mark.parametrize("name", [0, 1, "1", "p_1", "y_prob", "f0", "column_0", "True", "score", "top10"])
def test_one_column_of_any_other_name(name):
    assert as_predictions([0, 1, 1, 0], pd.DataFrame({name: P})).probs.tolist() == P


@pytest.mark.parametrize("labels", [{0, 1, 2}, frozenset({0, 1, 2}), {0: "a", 1: "b", 2: "c"}])
def test_labels_have_an_order(labels):
    refused(TypeError, f"in column order; got a {type(labels).__name__}", [0, 1, 2], P3, labels=labels)


@pytest.mark.parametrize(("bad", "kind"), [(float("nan"), ValueError), (0.5, ValueError), ([1], TypeError)])
def test_pos_label_is_a_label(bad, kind):
    refused(kind, "pos_label must be a label (int, bool or str); got", [0, 0, 0, 0], pos_label=bad)
    assert as_predictions([0, 0, 0, 0], P, pos_label=1.0).classes == (0, 1)


def test_labels_as_objects_and_as_floats():
    objects = np.array([0.0, 1, 1.0, 0], dtype=object)
    assert as_predictions(objects, P).codes.tolist() == [0, 1, 1, 0]
    assert as_predictions([1.0, 2.0, 2.0], P3, labels=[1.0, 2.0, 3.0]).classes == (1, 2, 3)
    refused(ValueError, "row 1 is 1e+30, which a float cannot represent exactly", [0.0, 1e30, 1.0, 0.0])
    assert as_predictions(np.array([b"b", b"a", b"c"], dtype=object), P3).classes == (b"a", b"b", b"c")
    refused(ValueError, "row 1 is 1.5", np.array([0, 1.5, 1, 0], dtype=object))


def test_one_bool_seen_keeps_its_kind():
    for y in ([True] * 4, [False] * 4):
        assert as_predictions(y, P, pos_label=False).classes == (False, True)
