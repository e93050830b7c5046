"""Which label is which column: label arrays to codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._types import AnyArray, IntArray, Label

_TILE = 1 << 17


def encode_binary(
    truth: AnyArray, labels: Sequence[Any] | None, pos_label: Any
) -> tuple[IntArray, tuple[Label, ...], int]:
    """Codes, classes and the positive class's index for a 1-D ``y_prob``."""
    truth = check_labels(truth)
    if labels is None and pos_label in (None, 1) and _is_zero_one(truth):
        return _codes_of_zero_one(truth), (0, 1) if truth.dtype.kind != "b" else (False, True), 1
    if labels is not None:
        classes = check_label_list(labels, 2)
    else:
        seen = _unique(truth)
        if len(seen) > 2:
            raise ValueError(
                f"y_true has {len(seen)} labels ({_some(seen)}) but y_prob is 1-D (the probability of one label): "
                "pass a 2-D y_prob with a column a class, or y_true == label"
            )
        classes = _two_classes(seen, pos_label)
    if pos_label is None:
        if set(classes) not in ({0, 1}, {-1, 1}):
            raise ValueError(
                f"pos_label must be given when the labels are {list(classes)!r}: pos_label={classes[-1]!r}?"
            )
        pos_label = 1
    if pos_label not in classes:
        raise ValueError(f"pos_label must be one of the labels {list(classes)!r}; got {pos_label!r}")
    return _codes(truth, classes), classes, classes.index(pos_label)


def _two_classes(seen: tuple[Label, ...], pos_label: Any) -> tuple[Label, ...]:
    """Complete the labels seen to two classes where that is possible without guessing."""
    if len(seen) == 2:
        return seen
    (only,) = seen
    if pos_label is not None and pos_label != only:
        return tuple(sorted((only, pos_label), key=_sort_key))
    if only in (0, 1) and pos_label in (None, 0, 1):
        return (0, 1)
    if only == -1:
        return (-1, 1)
    raise ValueError(f"two classes are needed, but y_true has only one label ({only!r}): pass labels=[...] with both")


def encode_columns(
    truth: AnyArray, labels: Sequence[Any] | None, columns: tuple[str, ...] | None, k: int
) -> tuple[list[int] | None, IntArray, tuple[Label, ...]]:
    """Column order (None = as it is), codes and classes for a 2-D ``y_prob`` of ``k`` columns."""
    truth = check_labels(truth)
    if labels is not None:
        classes = check_label_list(labels, k)
        order = _order_by_name(classes, columns)
        return order, _codes(truth, classes), classes
    if columns is None and truth.dtype.kind in "iu" and _spans(truth, k):
        # The whole range is there, so sorted unique labels and 0 … K-1 agree: no need to sort.
        return None, truth, tuple(range(k))
    seen = _unique(truth)
    if columns is not None:
        texts = [str(label) for label in seen]
        names = _column_labels(texts, columns)
        if names is not None:
            by_text = dict(zip(texts, seen, strict=True))
            classes = tuple(by_text[c] if c in by_text else _like(c, seen) for c in names)
            return None, _codes(truth, classes), classes
        if not set(texts).isdisjoint(columns):
            row = next(i for i, label in enumerate(truth.tolist()) if str(label) not in columns)
            raise ValueError(
                f"y_true has a label that matches no column: row {row} is {truth[row].item()!r}, "
                f"columns of y_prob are {_some(columns)}"
            )
    if len(seen) == k:
        return None, _codes(truth, seen), seen
    if truth.dtype.kind == "b" and k == 2:
        return None, _codes(truth, (False, True)), (False, True)
    if truth.dtype.kind in "iuf" and all(0 <= s < k for s in seen):
        classes = tuple(range(k))
        return None, _codes(truth, classes), classes
    extra = f" (the frame's columns are {list(columns)!r})" if columns is not None else ""
    raise ValueError(
        f"y_true has {len(seen)} labels ({_some(seen)}) but y_prob has {k} columns{extra}: "
        "say which column is which with labels=[...], one label a column in column order"
    )


def check_labels(truth: AnyArray) -> AnyArray:
    """Labels of one kind: int, bool, str, or floats that are whole numbers."""
    kind = truth.dtype.kind
    if kind in "iub" or kind in "US":
        return truth
    if kind == "f":
        bad = ~(np.isfinite(truth) & (truth == np.floor(truth)))
        if bad.any():
            row = int(np.argmax(bad))
            hint = " (are y_true and y_prob swapped?)" if np.isfinite(truth[row]) else ""
            raise ValueError(f"y_true must hold class labels; row {row} is {truth[row]!s}{hint}")
        return truth.astype(np.int64)
    if kind in "OT":
        return _check_objects(truth)
    raise TypeError(f"y_true must hold class labels (int, bool or str); got dtype {truth.dtype}")


def _check_objects(truth: AnyArray) -> AnyArray:
    first = truth[0]
    kinds: tuple[type, ...] = (str,) if isinstance(first, str) else (bool, int, np.integer, np.bool_)
    for row, item in enumerate(truth.tolist()):
        if _missing(item):
            raise ValueError(f"y_true must have no missing labels; row {row} is {item!r}")
        if not isinstance(item, kinds):
            raise TypeError(
                f"y_true must hold labels of one kind (int, bool or str); row {row} is {item!r} ({type(item).__name__})"
            )
    return np.asarray(truth.tolist())


def _missing(item: Any) -> bool:
    try:
        return item is None or bool(item != item)
    except (TypeError, ValueError):  # pandas.NA compares to itself as NA, which is neither true nor false
        return True


def _kind(label: Any) -> str | None:
    if isinstance(label, (str, bytes)):
        return "text"
    return "whole" if isinstance(label, int) or (isinstance(label, float) and label.is_integer()) else None


def check_label_list(labels: Sequence[Any], k: int) -> tuple[Label, ...]:
    """Judge the ``labels`` argument: one distinct label a column."""
    if isinstance(labels, str) or not hasattr(labels, "__iter__"):
        raise TypeError(f"labels must be a sequence of {k} labels; got {labels!r}")
    classes = tuple(v.item() if isinstance(v, np.generic) else v for v in labels)
    if len(classes) != k:
        raise ValueError(
            f"labels must name one label a column: y_prob has {k}, labels has {len(classes)} ({_some(classes)})"
        )
    kinds = {_kind(c) for c in classes}
    if len(kinds) != 1 or None in kinds:
        raise TypeError(f"labels must be of one kind (int, bool or str); got {list(classes)!r}")
    if len(set(classes)) != k:
        raise ValueError(f"labels must be distinct; got {list(classes)!r}")
    return classes


def _order_by_name(classes: tuple[Label, ...], columns: tuple[str, ...] | None) -> list[int] | None:
    """Where a frame's columns carry the labels as names, follow the names and not the position."""
    if columns is None:
        return None
    wanted = [str(c) for c in classes]
    names = _column_labels(wanted, columns) or list(columns)
    named = {c: i for i, c in enumerate(names)}
    known = [w for w in wanted if w in named]
    if not known:
        return None
    if len(known) < len(wanted):
        missing = [w for w in wanted if w not in named]
        raise ValueError(f"labels {missing!r} match no column of y_prob (columns: {list(columns)!r})")
    order = [named[w] for w in wanted]
    return None if order == list(range(len(order))) else order


def _column_labels(texts: list[str], columns: tuple[str, ...]) -> list[str] | None:
    """The label that each column speaks of: its name, or its name without what all columns begin and end with.

    None where no such reading has a column for every label in ``texts``.
    """
    if set(texts) <= set(columns):
        return list(columns)
    splits = [cut(texts[0]) for c in columns if texts[0] in c for cut in (c.partition, c.rpartition)]
    for prefix, _, suffix in splits:
        if {prefix + t + suffix for t in texts} <= set(columns) and all(
            c.startswith(prefix) and c.endswith(suffix) and len(c) > len(prefix + suffix) for c in columns
        ):
            return [c[len(prefix) : len(c) - len(suffix)] for c in columns]
    return None


def _like(column: str, seen: tuple[Label, ...]) -> Label:
    """A label that no row has, in the kind of the labels seen."""
    if isinstance(seen[0], (int, np.integer)) and not isinstance(seen[0], bool):
        try:
            return int(column)
        except ValueError:
            return column
    return column


def _unique(truth: AnyArray) -> tuple[Label, ...]:
    return tuple(np.unique(truth).tolist())


def _codes(truth: AnyArray, classes: tuple[Label, ...]) -> IntArray:
    """Index of each label in ``classes``; an error names the first label that is not there."""
    try:
        table = np.asarray(classes)
        order = np.argsort(table, kind="stable")
        position = np.minimum(np.searchsorted(table[order], truth), len(classes) - 1)
        codes: IntArray = order[position]
        unknown = table[codes] != truth
    except TypeError as error:
        raise TypeError(f"labels {list(classes)!r} and y_true ({truth.dtype}) are of different kinds") from error
    if (table.dtype.kind in "US") != (truth.dtype.kind in "US"):
        raise ValueError(
            f"y_true has a label that matches no column: row 0 is {truth[0].item()!r}, labels are {_some(classes)}, "
            "of another kind"
        )
    if np.any(unknown):
        row = int(np.argmax(unknown))
        raise ValueError(
            f"y_true has a label that matches no column: row {row} is {truth[row].item()!r}, "
            f"labels are {_some(classes)}"
        )
    return codes


def _is_zero_one(truth: AnyArray) -> bool:
    """Whether an int or bool array holds nothing but 0 and 1, in one pass: no other bit may be set."""
    if truth.dtype.kind == "b":
        return True
    if truth.dtype.kind not in "iu":
        return False
    one = truth.dtype.type(1)
    return all(np.bitwise_or.reduce(truth[a : a + _TILE]) | one == one for a in range(0, truth.size, _TILE))


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


def _some(values: Sequence[Any]) -> str:
    shown = ", ".join(repr(v) for v in list(values)[:6])
    return shown + (", …" if len(values) > 6 else "")
