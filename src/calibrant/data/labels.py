"""Convert label arrays to codes: valid labels, and the column of each."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from ..exceptions import LabelWarning
from .checks import received
from .columns import named_labels, named_order, only_count, some
from .printing import number_of
from .types import AnyArray, IntArray, Label

_TILE = 1 << 17
#: Message for outcomes with their times.
_OF_TIMES = (
    ": (time, event) pairs? Probabilities are those of an event by some time t: pass event & (time <= t) for the rows "
    "observed until t"
)
#: Whole numbers up to this are exact as floats.
_EXACT = 2.0**53


def encode_binary(
    truth: AnyArray, labels: Sequence[Any] | None, pos_label: Any
) -> tuple[IntArray, tuple[Label, ...], int]:
    """Codes, classes and the positive class's index for a 1-D ``y_prob``."""
    truth, pos_label = check_labels(truth), check_pos_label(pos_label)
    if labels is None and pos_label in (None, 1) and _is_zero_one(truth):
        return _codes_of_zero_one(truth), (0, 1) if truth.dtype.kind != "b" else (False, True), 1
    if labels is not None:
        classes = check_label_list(labels, 2)
    else:
        seen = _unique(truth)
        if len(seen) > 2:
            raise ValueError(
                f"y_true has {len(seen)} labels ({some(seen)}) but y_prob is 1-D (the probability of one label): "
                "pass a 2-D y_prob with one column per class, or y_true == label"
            )
        classes = _two_classes(seen, pos_label)
    if pos_label is None:
        if set(classes) not in ({0, 1}, {-1, 1}):
            raise ValueError(
                f"pos_label must be given when the labels are [{some(classes)}]: the one that the probabilities are for"
            )
        pos_label = 1
    return _codes(truth, classes), classes, check_label("pos_label", pos_label, classes)


def _two_classes(seen: tuple[Label, ...], pos_label: Any) -> tuple[Label, ...]:
    """Complete the observed labels to two classes if that is possible without guessing."""
    if len(seen) == 2:
        return seen
    (only,) = seen
    if isinstance(only, bool) and pos_label in (None, False, True):
        return (False, True)
    if pos_label is not None and _kind(pos_label) == _kind(only):
        other = _another(only) if pos_label == only and only not in (-1, 0, 1) else pos_label
        if other != only:
            return tuple(sorted((only, other), key=_sort_key))
    if only in (0, 1) and pos_label in (None, 0, 1):
        return (0, 1)
    if only == -1:
        return (-1, 1)
    raise ValueError(
        f"two classes are needed, but y_true has only one label ({received(only)}): pass labels=[...] with both, and "
        "pos_label="
    )


def _another(label: Any) -> Label:
    """Label for the other class if all rows have one label, whose probabilities are given."""
    if isinstance(label, str):
        return f"not {label}"
    return b"not " + label if isinstance(label, bytes) else 0


def encode_columns(
    truth: AnyArray, labels: Sequence[Any] | None, columns: tuple[str, ...] | None, k: int
) -> tuple[list[int] | None, IntArray, tuple[Label, ...]]:
    """Column order (None = unchanged), codes and classes for a 2-D ``y_prob`` with ``k`` columns."""
    truth = check_labels(truth)
    if labels is not None:
        classes = check_label_list(labels, k)
        order = None if columns is None else named_order(columns, classes)
        return None if order == list(range(k)) else order, _codes(truth, classes), classes
    if columns is None and truth.dtype.kind in "iu" and _spans(truth, k):
        # The whole range is there, so sorted unique labels and 0 … K-1 agree: no need to sort.
        return None, truth, tuple(range(k))
    seen = _unique(truth)
    named = None if columns is None else named_labels(columns, seen, lambda label: int(np.argmax(truth == label)))
    classes = labels_in_order(seen, k) if named is None else named
    return None, _codes(truth, classes), classes


def labels_in_order(seen: Sequence[Label], k: int) -> tuple[Label, ...]:
    """Labels of ``k`` unnamed columns: the sorted observed ones, or 0 … K-1, with a warning if in doubt."""
    if len(seen) == k:
        return tuple(seen)
    if k == 2 and all(isinstance(s, bool) for s in seen):
        return (False, True)
    whole = all(_kind(s) == "whole" for s in seen)
    if whole and all(isinstance(s, int) and 0 <= s < k for s in seen):
        if 0 not in seen:
            warnings.warn(
                f"y_true contains neither 0 nor all of {k} labels ({some(seen)}): labels are assumed to be "
                f"0 … {k - 1}; pass labels=range({k}) to confirm this, or labels=range(1, {k + 1}) if they start at 1",
                LabelWarning,
                stacklevel=2,
            )
        return tuple(range(k))
    from_one = whole and all(isinstance(s, int) and 0 < s <= k for s in seen)
    hint = f", such as labels=range(1, {k + 1})" if from_one else ""
    raise ValueError(
        f"y_true has {number_of(len(seen), 'label')} ({some(seen)}) but y_prob has {k} columns: "
        f"pass labels=[...], one label per column, in column order{hint}"
    )


def check_zero_one(truth: AnyArray) -> AnyArray:
    """Check that labels (n, K) are 0 or 1."""
    numbers = truth.dtype.kind in "iubf"
    zero_one = ((truth == 0) | (truth == 1)) if numbers else np.zeros(truth.shape, dtype=bool)
    if not zero_one.all():
        pairs = numbers and truth.shape[1] == 2 and zero_one.all(axis=0).any()
        raise ValueError(f"y_true must be 1-D; got shape {truth.shape}{_OF_TIMES if pairs else ''}")
    return truth


def labels_of_columns(
    truth: AnyArray,
    labels: Sequence[Any] | None,
    own_names: tuple[str, ...] | None,
    names: tuple[str, ...] | None,
    k: int,
) -> Sequence[Any]:
    """Label of each column of ``truth`` (n, K): the given one, else its name or number."""
    if truth.shape[1] != k:
        raise ValueError(f"y_true has {truth.shape[1]} columns, but y_prob gives probabilities of {k} labels")
    if labels is None:
        labels = next((n for n in (own_names, names) if n and len(n) == k and not only_count(n)), None) or range(k)
    return check_label_list(labels, k)


def decode_one_hot(truth: AnyArray, ones: AnyArray, labels: Sequence[Any]) -> AnyArray:
    """Labels of rows (n, K) with one 1 each; ``ones`` says which rows have."""
    if not ones.all():
        row = int(np.argmax(~ones))
        raise ValueError(
            f"y_true has rows with several labels, or none (row {row} has {int(truth[row].sum())} ones), so each "
            "label is a two-class problem: use notion='multilabel', where supported, or pass y_true[:, k] and "
            "y_prob[:, k], one label k at a time"
        )
    return np.asarray(np.asarray(labels)[truth.argmax(axis=1)])


def check_labels(truth: AnyArray) -> AnyArray:
    """Labels of one kind: int, bool, str, or floats that are whole numbers."""
    kind = truth.dtype.kind
    if kind in "iub" or kind in "US":
        return truth
    if kind == "f":
        truth = truth.astype(np.float64, copy=False)
        bad = ~(np.isfinite(truth) & (truth == np.floor(truth)))
        if bad.any():
            row = int(np.argmax(bad))
            halves = bool(np.isin(truth, (0, 0.5, 1)).all()) and bool((truth != 0.5).any())
            hint = ": a tie? A row may be given twice, once with each label, with half its weight" if halves else ""
            if np.isfinite(truth[row]) and not halves:
                hint = " (continuous numbers: are y_true and y_prob swapped?)"
            raise ValueError(f"y_true must hold class labels; row {row} is {truth[row]!s}{hint}")
        large = np.abs(truth) > _EXACT
        if large.any():
            row = int(np.argmax(large))
            raise ValueError(
                f"y_true must hold class labels; row {row} is {truth[row]!s}, which a float cannot represent exactly "
                "(above 2**53): pass integers"
            )
        return truth.astype(np.int64)
    if kind in "OT":
        return _check_objects(truth)
    hint = _OF_TIMES if truth.dtype.names is not None and len(truth.dtype.names) == 2 else ""
    if kind == "c":
        raise ValueError(f"y_true must hold class labels; got dtype {truth.dtype}. Complex data not supported")
    raise TypeError(f"y_true must hold class labels (int, bool or str); got dtype {truth.dtype}{hint}")


def _check_objects(truth: AnyArray) -> AnyArray:
    first = truth[0]
    text = next((t for t in (str, bytes) if isinstance(first, t)), None)
    kinds: tuple[type, ...] = (bool, int, float, np.number, np.bool_) if text is None else (text,)
    for row, item in enumerate(truth.tolist()):
        if is_missing(item):
            raise ValueError(f"y_true must have no missing labels; row {row} is {received(item)}")
        if not isinstance(item, kinds):
            raise TypeError(
                f"y_true must hold labels of one kind (int, bool or str); row {row} is {received(item)} "
                f"({type(item).__name__})"
            )
    array = np.asarray(truth.tolist())
    return array if array.dtype.kind in "OT" else check_labels(array)


def is_missing(item: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas.NA."""
    try:
        return item is None or bool(item != item)
    except (TypeError, ValueError, RuntimeError):  # pandas.NA is neither true nor false; a tensor may have no data
        return True


def _kind(label: Any) -> str | None:
    if isinstance(label, (str, bytes)):
        return "text"
    return "whole" if isinstance(label, int) else None


def _plain(label: Any) -> Any:
    """Convert a NumPy scalar to Python's, and a whole float to an int."""
    label = label.item() if isinstance(label, np.generic) else label
    return int(label) if isinstance(label, float) and label.is_integer() and abs(label) <= _EXACT else label


def check_pos_label(pos_label: Any) -> Any:
    """A label, or None."""
    plain = _plain(pos_label)
    if plain is None or _kind(plain) is not None:
        return plain
    kind = ValueError if isinstance(plain, float) else TypeError
    raise kind(f"pos_label must be a label (int, bool or str); got {received(pos_label)}")


def check_label(name: str, label: Any, labels: Sequence[Any]) -> int:
    """Check an argument that must equal one of the labels, in any type, and return its position."""
    if label not in labels:
        raise ValueError(f"{name} must be one of the labels [{some(labels)}]; got {received(label)}")
    return labels.index(label)


def check_label_list(labels: Sequence[Any], k: int) -> tuple[Label, ...]:
    """Check the ``labels`` argument: one distinct label per column."""
    if isinstance(labels, (str, bytes)) or not hasattr(labels, "__iter__"):
        raise TypeError(f"labels must be a sequence of {k} labels; got {received(labels)}")
    if isinstance(labels, (AbstractSet, Mapping)):
        raise TypeError(f"labels must be a sequence of {k} labels in column order; got a {type(labels).__name__}")
    classes = tuple(_plain(v) for v in labels)
    if len(classes) != k:
        raise ValueError(
            f"labels must name one label per column: y_prob has {k}, labels has {len(classes)} ({some(classes)})"
        )
    kinds = {_kind(c) for c in classes}
    if len(kinds) != 1 or None in kinds:
        raise TypeError(f"labels must be of one kind (int, bool or str); got [{some(classes)}]")
    if len(set(classes)) != k:
        raise ValueError(f"labels must be distinct; got [{some(classes)}]")
    return classes


def _unique(truth: AnyArray) -> tuple[Label, ...]:
    return tuple(np.unique(truth).tolist())


def _codes(truth: AnyArray, classes: tuple[Label, ...]) -> IntArray:
    """Index of each label in ``classes``; ValueError names the first unknown label."""
    if classes == (0, 1) and truth.size and _is_zero_one(truth):
        return _codes_of_zero_one(truth)
    for label in classes:
        if isinstance(label, str) and any("\ud800" <= c <= "\udfff" for c in label):
            raise ValueError(f"y_true must hold text encodable in UTF-8; label {received(label)} has a lone surrogate")
    try:
        table = np.asarray(classes)
        order = np.argsort(table, kind="stable")
        position = np.minimum(np.searchsorted(table[order], truth), len(classes) - 1)
        codes: IntArray = order[position]
        unknown = table[codes] != truth
    except (TypeError, UnicodeError) as error:
        raise TypeError(f"labels [{some(classes)}] and y_true ({truth.dtype}) are of different kinds") from error
    if (table.dtype.kind in "US") != (truth.dtype.kind in "US"):
        raise ValueError(
            f"y_true has a label that matches no column: row 0 is {received(_plain(truth[0]))}, labels are "
            f"{some(classes)}, of another kind"
        )
    if np.any(unknown):
        row = int(np.argmax(unknown))
        raise ValueError(
            f"y_true has a label that matches no column: row {row} is {received(_plain(truth[row]))}, labels are "
            f"{some(classes)}"
        )
    return codes


def _is_zero_one(truth: AnyArray) -> bool:
    """Whether an int or bool array holds only 0 and 1, in one pass: as unsigned, negative numbers are large."""
    if truth.dtype.kind == "b":
        return True
    if truth.dtype.kind not in "iu":
        return False
    bits = truth.view(f"u{truth.dtype.itemsize}")
    return all(bits[a : a + _TILE].max() <= 1 for a in range(0, bits.size, _TILE))


def _codes_of_zero_one(truth: AnyArray) -> IntArray:
    return (
        truth.view(np.uint8)
        if truth.dtype.kind == "b" and truth.flags.c_contiguous
        else truth.astype(np.uint8)
        if truth.dtype.kind == "b"
        else truth
    )


def _spans(truth: AnyArray, k: int) -> bool:
    if int(truth.min()) < 0 or int(truth.max()) >= k:
        return False
    return bool(np.bincount(truth.astype(np.intp), minlength=k).all())


def _sort_key(value: Any) -> tuple[str, Any]:
    return (type(value).__name__, value)
