"""The label that a column's name stands for: the only place that interprets names, for frames and files."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from .lazy_rows import drawn_rows
from .printing import without_middle
from .types import Label

#: Names that only count, as frames, readers and tables give to unnamed columns.
_COUNTING = re.compile(r"(|_?c|f|v|x|col|column|feature|field|var)_?(\d+)", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?\d+(\.0*)?")
_TRUTHS = {"true": "1", "false": "0"}
#: Arguments that name columns of a frame that is passed first, and others that may then name one too.
FRAME_OPTIONS = frozenset({"label", "prob", "weight"})
_OF_ROWS = ("sample_weight", "groups", "by", "time")
_FEATURES = ("features", "X")
_ALL_ROWS = (*_OF_ROWS, *_FEATURES)
_PROBABILITY = "(?:p|prob|proba|probability|class|score)"


def check_roles(named: Mapping[str, Sequence[Any]], columns: Collection[str]) -> None:
    """Check names of columns by argument: each is in the frame, and none is used twice."""
    taken: dict[str, str] = {}
    for argument, names in named.items():
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"{argument} must be the name of a column; got {name!r}")
            if name not in columns:
                got = without_middle(repr(name), 80)
                raise ValueError(f"{argument} must be a column of the frame ({some(list(columns))}); got {got}")
            if name in taken:
                raise ValueError(f"{argument}={name!r}: this column is already used as {taken[name]}")
            taken[name] = argument


def check_distinct(name: str, columns: Sequence[str]) -> None:
    """ValueError if two columns have the same name."""
    if len(set(columns)) < len(columns):
        twice = next(c for i, c in enumerate(columns) if c in columns[:i])
        raise ValueError(f"{name} has two columns called {twice!r}: rename one of them")


def from_columns(
    given: Mapping[str, Any], truth: str = "y_true", scores: str = "y_prob", place: str = "y_true"
) -> dict[str, Any]:
    """Arguments with columns in place of their names: ``label`` becomes ``truth``, ``prob`` ``scores``.

    ``place`` is the argument, one of these two, that holds the data frame.
    """
    out = {k: v for k, v in given.items() if k not in {*FRAME_OPTIONS, place}}
    frame, label, prob, weight = (given.get(name) for name in (place, "label", "prob", "weight"))
    import narwhals as nw

    if given.get("max_rows") is not None:
        named = (label, weight, *(prob.values() if isinstance(prob, Mapping) else (prob,)), *map(out.get, _ALL_ROWS))
        wanted = [name for value in named for name in _names(value) or ()]
        frame = drawn_rows(frame, wanted, given["max_rows"], given.get("random_state", 0))
    try:
        held: Any = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise TypeError(
            f"label, prob and weight name columns of a data frame in memory, passed first; got {type(frame).__name__} "
            "(calibrant.from_frame reads lazy frames; functions with max_rows= draw rows from them)"
        ) from error
    for name, value, other in (("label", label, truth), ("prob", prob, scores), ("weight", weight, "sample_weight")):
        if value is None and name != "weight":
            raise TypeError(f"{name} must be given: pass label= and prob=, names of columns of the frame")
        if value is not None and out.get(other) is not None:
            raise TypeError(f"{name} names columns of the frame: {other} must not be given with it")
    if weight is not None:
        out["sample_weight"] = weight
    aside = {"label": [label]} | {k: v for k in _OF_ROWS if (v := _names(out.get(k))) is not None}
    models = {name: _names(one) or [one] for name, one in (prob if isinstance(prob, Mapping) else {"": prob}).items()}
    for names in models.values():
        check_roles(aside | {"prob": names}, held.columns)
    for name in _FEATURES:
        if (features := _names(out.get(name))) is not None:
            check_roles({name: features}, held.columns)  # which may be scores, too
            out[name] = held.select(features).to_native()
    columns = {name: held.select(names).to_native() for name, names in models.items()}
    out[truth], out[scores] = held[label].to_native(), columns if isinstance(prob, Mapping) else columns[""]
    for name in aside.keys() - {"label"}:
        several = name == "by"
        out[name] = (held.select(aside[name]) if several else held[aside[name][0]]).to_native()
    return out


def _names(value: Any) -> list[Any] | None:
    """Names of columns; None unless the value is a name or a list of names."""
    if isinstance(value, str):
        return [value]
    return list(value) if isinstance(value, (list, tuple)) and value and isinstance(value[0], str) else None


def named_labels(
    names: Sequence[str], seen: Sequence[Label], row_of: Callable[[Label], int] | None
) -> tuple[Label, ...] | None:
    """The label of each column, from its name.

    A name is the label, or the label between a prefix and a suffix common to all names (``p_cat, p_dog``). Texts match
    exactly, else up to case, else also as whole numbers and truth values (``01``, ``1.0``, ``True`` are 1).

    Parameters
    ----------
    names : sequence of str
        Column names.
    seen : sequence of labels
        Distinct labels of one type. Columns may stand for labels that were not seen.
    row_of : callable or None
        First row of a label, for the error; None if rows have no numbers.

    Returns
    -------
    tuple of labels or None
        Labels in column order; None if the names only count (``f0, f1``, ``column_0``).

    Raises
    ------
    ValueError
        If the names have a meaning and no interpretation of them covers the labels.
    """
    if only_count(names):
        return None
    found = _match(names, seen)
    if found is not None:
        return found
    hits = max((known & set(keys) for known, keys in _attempts(names, seen)), key=len, default=set())
    missing = [s for s in seen if not {form(text_of(s)) for form in _FORMS} & hits]
    columns = f"columns of y_prob are {some(names)}"
    if missing:
        where = "it is" if row_of is None else f"row {row_of(missing[0])} is"
        what = f"y_true has a label that matches no column: {where} {some(missing[:1])}, {columns}"
    else:
        what = f"y_prob has a column whose name is not a label of y_true: {columns}"
    # scikit-learn's cross_val_predict passes the positions of labels in their place.
    coded = all(type(s) is int and 0 <= s < len(names) for s in seen)
    or_array = ", or values without names if scikit-learn has encoded the labels" if coded else ""
    raise ValueError(
        f"{what}, labels are {some(seen)}: pass labels=[...], one label per column, in column order{or_array}"
    )


def named_order(names: Sequence[str], labels: Sequence[Label]) -> list[int] | None:
    """Positions of the columns that have ``labels`` as names; None if the names are not labels."""
    if only_count(names):
        return None
    found = _match(names, labels)
    if found is not None:
        return [found.index(label) for label in labels]
    for known, keys in _attempts(names, labels):
        if known & set(keys):
            missing = [x for x in labels if not {form(text_of(x)) for form in _FORMS} & set(keys)]
            raise ValueError(
                f"labels {missing or list(labels)!r} do not match the columns of y_prob ({list(names)!r}): "
                "name all columns after the labels, or pass an array to match them by position"
            )
    return None


def check_one_column(name: str, classes: Sequence[Label], positive: Label) -> None:
    """ValueError for a single column that is named after a label other than the positive one."""
    if only_count([name]):
        return
    length, label = max(((_told(name, c), c) for c in classes), key=lambda pair: pair[0])
    if length and label != positive:
        raise ValueError(
            f"y_prob must hold the probability of pos_label={positive!r}, but its only column {name!r} is named after "
            f"{label!r}: pass pos_label={label!r}, or the values without the name"
        )


def in_kind(text: str, example: Label) -> Label | None:
    """The label given by a text, in the type of ``example``; None if that is not possible."""
    if isinstance(example, bytes):
        return text.encode()
    if not isinstance(example, int):
        return text
    plain = _plain(text)
    if isinstance(example, bool):
        return {"1": True, "0": False}.get(plain)
    return int(plain) if _WHOLE.fullmatch(plain) else None


def text_of(label: Label) -> str:
    """A label as text; bytes are decoded."""
    return label.decode(errors="backslashreplace") if isinstance(label, bytes) else str(label)


def some(values: Sequence[Any], most: int = 6) -> str:
    """The first few values for a message, each shortened."""
    shown = ", ".join(repr(v) if len(repr(v)) <= 40 else f"{repr(v)[:39]}…" for v in list(values)[:most])
    return shown + (", …" if len(values) > most else "")


def only_count(names: Sequence[str]) -> bool:
    """Whether the names are a meaningless stem followed by 0, 1, … or 1, 2, … in order."""
    found = [m for m in map(_COUNTING.fullmatch, names) if m]
    if len(found) < len(names) or len({m[1] for m in found}) > 1:
        return False
    first = int(found[0][2])
    if not found[0][1] and (first or len(names) == 1):  # "1", "2", … and a lone "0" are labels
        return False
    return first in (0, 1) and [int(m[2]) for m in found] == list(range(first, first + len(names)))


def _plain(text: str) -> str:
    """Normalise whole numbers, truth values and case."""
    text = text.casefold()
    return str(int(text.split(".")[0])) if _WHOLE.fullmatch(text) else _TRUTHS.get(text, text)


#: Ways to compare texts, the strictest first.
_FORMS: tuple[Callable[[str], str], ...] = (str, str.casefold, _plain)


def _match(names: Sequence[str], labels: Sequence[Label]) -> tuple[Label, ...] | None:
    """The label of each column by the first interpretation with a column for each of ``labels``."""
    for form in _FORMS:
        known = {form(text_of(label)): label for label in labels}
        if len(known) < len(labels):
            continue
        for texts in _readings(names):
            keys = [form(t) for t in texts]
            if known.keys() <= set(keys):
                found = [known[k] if k in known else in_kind(t, labels[0]) for k, t in zip(keys, texts, strict=True)]
                if None not in found and len(set(found)) == len(found):
                    return tuple(f for f in found if f is not None)
    return None


def _attempts(names: Sequence[str], labels: Sequence[Label]) -> Iterator[tuple[set[str], list[str]]]:
    """Compared pairs: texts of the labels and texts of the columns."""
    for form in _FORMS:
        known = {form(text_of(label)) for label in labels}
        yield from ((known, [form(t) for t in texts]) for texts in _readings(names))


def _readings(names: Sequence[str]) -> Iterator[list[str]]:
    """The full names, then without common prefixes and suffixes, never cut within a number."""
    yield list(names)
    front, back = _shared(names), _shared([n[::-1] for n in names])
    for i in range(front, -1, -1):
        for j in range(back, -1, -1):
            if (i or j) and all(len(n) > i + j and _may_cut(n, i) and _may_cut(n, len(n) - j) for n in names):
                yield [n[i : len(n) - j] for n in names]


def _may_cut(name: str, at: int) -> bool:
    return at in (0, len(name)) or not (name[at - 1].isdigit() and name[at].isdigit())


def _shared(names: Sequence[str]) -> int:
    """Length of the common prefix of all names, up to case."""
    for i, letters in enumerate(zip(*names, strict=False)):
        if len({c.casefold() for c in letters}) > 1:
            return i
    return min(map(len, names))


def _told(name: str, label: Label) -> int:
    """Length of the label's text in a name such as ``no``, ``p_no`` or ``no_prob``; 0 if it is not in the name."""
    texts = {text_of(label), _plain(text_of(label))}
    if isinstance(label, int):
        texts |= {word for word, digit in _TRUTHS.items() if digit in texts}
    longest = 0
    for text in texts:
        word = re.escape(text)
        gap = "[\\W_]*" if text[:1].isdigit() else "[\\W_]+"
        pattern = rf"{word}|(?:.*[\W_])?{_PROBABILITY}{gap}{word}|{word}[\W_]+{_PROBABILITY}"
        if text and re.fullmatch(pattern, name, re.IGNORECASE | re.DOTALL):
            longest = max(longest, len(text))
    return longest
