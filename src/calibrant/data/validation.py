"""The only place that judges user input: anything array-like in, `Predictions` or a clear error out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..exceptions import LabelWarning, ScoreWarning
from .checks import check_bool, check_choice, check_number
from .columns import check_one_column, from_columns
from .convert import to_array
from .dependence import group_codes, read_groups
from .labels import decode_one_hot, encode_binary, encode_columns
from .libraries import library_of
from .predictions import Predictions
from .types import AnyArray, FloatArray, IntArray, Label

#: How far outside [0, 1] a score may lie and still count as rounding noise, by dtype of the scores.
RANGE_TOLERANCE = {np.dtype(np.float16): 2e-3, np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-9}
#: How far a row of probabilities may sum from 1, by dtype of the scores.
SUM_TOLERANCE = {np.dtype(np.float16): 1e-2, np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-5}
#: Values worked on at a time where several passes read them: they stay in the cache.
_TILE = 1 << 15
#: The same for a single pass, which only wants to stop early.
_LONG_TILE = 1 << 17
#: Values looked at first, where most end the search.
_FIRST_TILE = 64
#: From this number of rows on, scores of 0 and 1 only are taken for predicted labels.
_ENOUGH = 8
#: Standard errors by which another order of the columns must do better, on rows that did not choose it.
_CLEARLY = 4.0
#: The bit pattern of 1.0, by dtype of the scores.
_ONE = {np.dtype(t): np.ones((), t).view(f"u{np.dtype(t).itemsize}") for t in (np.float32, np.float64)}


def as_predictions(
    y_true: Any,
    y_prob: Any = None,
    *,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    sum_tolerance: float | None = None,
    from_logits: bool = False,
    groups: Any = None,
    group_average: str = "micro",
    label: str | None = None,
    prob: Any = None,
    weight: str | None = None,
) -> Predictions:
    """Validate labels and probabilities once and return :class:`Predictions`.

    Parameters
    ----------
    y_true : array-like of shape (n,) or one-hot (n, K), or Predictions
        Observed labels: int, bool, str or categorical; one-hot rows have their 1 in the column of the label. NumPy,
        list, pandas / polars / pyarrow column, torch tensor, anything with ``__array__`` or DLPack. Predictions that
        were validated before replace all arguments and are returned unchanged.
    y_prob : array-like of shape (n,) or (n, K)
        1-D (or one column, not named after another label): probability of ``pos_label``. 2-D: one column per class in
        ``labels`` order.
    labels : sequence of K labels, optional
        Column order; a frame whose columns carry these labels as names is read by name. Default: a frame's column
        names, which must be the labels, or the labels with one prefix or suffix (``p_cat``, ``p_dog``), but for
        case and spelling of numbers (``True``, ``1.0``, ``01`` are 1). Without names, or with names that only
        count (``f0``, ``column_0``): the sorted unique labels when there are K of them, else ``0 … K-1`` when
        ``y_true`` holds such integers and 0 is among them.
    pos_label : label, optional
        The label that a 1-D ``y_prob`` is the probability of. Default 1 for labels in {0, 1}, {-1, 1} or bool.
    sample_weight : array-like of shape (n,), optional
        Non-negative, finite, not all zero. Whole numbers equal repeated rows.
    sum_tolerance : float, optional
        Largest accepted ``|row sum - 1|``. Default 1e-5 (float64), 1e-4 (float32), 1e-2 (float16).
    from_logits : bool, default False
        ``y_prob`` holds finite logits: rows of a softmax, or in 1-D the log odds of ``pos_label``. Logarithms of
        probabilities are then exact where the probabilities themselves are rounded to 0 or 1.
    groups : array-like of shape (n,), optional
        The group of each row: rows of a prompt, patients of a hospital, forecasts of one event. Rows of one group may
        depend on each other in any way, groups are independent. Intervals, bands and tests then account for the number
        of groups; without groups rows are treated as independent.
    group_average : {"micro", "macro"}, default "micro"
        ``"micro"``: rows have equal weight. ``"macro"``: groups have, however many rows they have: weights are divided
        by their sum in the group.
    label, prob, weight : str, or list of str, optional
        Names of columns of a data frame that is passed in place of ``y_true`` and ``y_prob``: ``label="y", prob="p"``,
        or ``prob=["p_cat", "p_dog"]``, as :func:`calibrant.from_frame` takes them. ``groups`` may then name a column
        too, and so may ``by`` and ``features`` of functions that have them; :func:`calibrant.compare_models` takes a
        list as a column per model, or a mapping of the names of models to columns.

    Returns
    -------
    Predictions
        The validated rows, which every function takes in place of ``y_true`` and ``y_prob``.

    Raises
    ------
    TypeError, ValueError
        The message names the argument, the allowed values, and the first offending row and value.

    See Also
    --------
    calibrant.Predictions : The result, field by field.
    calibrant.from_frame : Sums of the rows of a lazy frame, for data that do not fit in memory.
    calibrant.Accumulator : Sums of rows that arrive in pieces.

    Notes
    -----
    Scores outside [0, 1] by no more than 1e-9 (float64), 1e-6 (float32) or 2e-3 (float16) are rounding
    noise and are moved onto the end. float32 scores stay float32, float16 become float32, integers and
    booleans float64. Cost: two passes over ``y_prob``, no copy of a float array that is clean.

    Examples
    --------
    >>> from calibrant import as_predictions
    >>> as_predictions(["no", "yes"], [0.2, 0.9], pos_label="yes").classes
    ('no', 'yes')
    """
    if label is not None or prob is not None or weight is not None:
        named = {"y_true": y_true, "y_prob": y_prob, "sample_weight": sample_weight, "groups": groups}
        named = from_columns(named | {"label": label, "prob": prob, "weight": weight})
        y_true, y_prob, sample_weight, groups = (named[k] for k in ("y_true", "y_prob", "sample_weight", "groups"))
    if isinstance(y_true, Predictions):
        given = {
            "y_prob": y_prob, "labels": labels, "pos_label": pos_label, "sample_weight": sample_weight,
            "sum_tolerance": sum_tolerance, "from_logits": from_logits or None, "groups": groups,
        }  # fmt: skip
        if extra := [name for name, value in given.items() if value is not None]:
            raise TypeError(
                f"Predictions say everything about the rows: {', '.join(extra)} must not be given with them"
            )
        return y_true
    if isinstance(y_prob, Predictions):
        raise TypeError("Predictions take the place of y_true and y_prob: pass them first, and no y_prob")
    if y_prob is None:
        raise TypeError(
            "y_prob must be given: probabilities of the labels in y_true (or label= and prob=, columns of a data frame)"
        )
    _check_same_order(y_true=y_true, y_prob=y_prob, sample_weight=sample_weight, groups=groups)
    library = library_of(y_prob, y_true)
    truth, truth_columns = to_array(y_true, "y_true")
    raw, columns = to_array(y_prob, "y_prob")
    probs, eps = _scores(raw)
    if truth.ndim == 2 and truth.shape[1] > 1:
        truth, labels = decode_one_hot(truth, labels, truth_columns, columns, probs.shape[1] if probs.ndim == 2 else 2)
    logs = None
    if check_bool("from_logits", from_logits):
        probs, logs = _softmax(probs)
    truth = _one_column(truth, "y_true")
    if truth.shape[0] != probs.shape[0]:
        raise ValueError(
            f"y_true and y_prob must have the same number of rows; got {truth.shape[0]} and {probs.shape[0]}"
        )
    weights = _weights(sample_weight, truth.shape[0])
    together = groups_of_rows(groups, truth.shape[0], weights)
    check_choice("group_average", group_average, ("micro", "macro"))
    if group_average == "macro":
        if groups is None:
            raise ValueError("group_average='macro' needs groups: pass groups=")
        weights = weights if together is None else _alike(together, weights)
    if probs.ndim == 1:
        probs = _in_range(probs, eps)
        codes, classes, positive = encode_binary(truth, labels, pos_label)
        if columns is not None:
            check_one_column(columns[0], classes, classes[positive])
        if logs is not None and positive == 0:
            logs = logs[:, ::-1]
        if not from_logits:
            _warn_of_labels(probs)
        return Predictions(probs, codes, weights, classes, positive, eps, logs, together, library)
    if pos_label is not None:
        raise ValueError(
            f"pos_label is for a 1-D y_prob; y_prob has {probs.shape[1]} columns (got pos_label={pos_label!r}): "
            "use notion=ClassSpecific(label), or pass one column"
        )
    order, codes, classes = encode_columns(truth, labels, columns, probs.shape[1])
    if order is not None:
        probs = probs[:, order]
        logs = None if logs is None else logs[:, order]
    probs = _on_simplex(probs, eps, sum_tolerance)
    if not from_logits:
        _warn_of_labels(probs)
    if labels is None and columns is None:
        _warn_of_columns(probs, codes, classes, truth)
    return Predictions(probs, codes, weights, classes, None, eps, logs, together, library)


def _one_column(array: AnyArray, name: str) -> AnyArray:
    if array.ndim == 0:
        raise ValueError(f"{name} must be 1-D; got a single value ({array!r})")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must be 1-D; got shape {array.shape}")
    if array.shape[0] == 0:
        raise ValueError(f"{name} must not be empty; got 0 rows")
    return array


def _scores(array: AnyArray) -> tuple[FloatArray, float]:
    """Shape and dtype of the scores; returns floats and the epsilon of the dtype they came in."""
    if array.ndim not in (1, 2):
        raise ValueError(f"y_prob must be 1-D (n,) or 2-D (n, K); got {array.ndim}-D, shape {array.shape}")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape[0] == 0 or array.shape[-1] == 0:
        raise ValueError(f"y_prob must not be empty; got shape {array.shape}")
    if array.dtype.kind == "O":
        array = _from_objects(array, "y_prob")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind in "iub":
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        raise TypeError(f"y_prob must hold real numbers; got dtype {array.dtype}")
    eps = float(np.finfo(array.dtype).eps)
    if array.dtype == np.float16:
        return array.astype(np.float32), eps
    if array.dtype not in (np.float32, np.float64):
        return array.astype(np.float64), float(np.finfo(np.float64).eps)
    return array, eps


def _softmax(logits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Probabilities and their logarithms, float64; of one column those of the other class and of this one."""
    logits = logits.astype(np.float64)
    if not np.isfinite(logits).all():
        raise ValueError(f"y_prob must hold finite logits; {_at(logits, _first(~np.isfinite(logits)))}")
    both = logits if logits.ndim == 2 else np.column_stack([np.zeros_like(logits), logits])
    with np.errstate(over="ignore", under="ignore"):  # differences beyond what there is are certain
        shifted = both - both.max(axis=1, keepdims=True)
        logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        probs = np.exp(logs)
    return (probs, logs) if logits.ndim == 2 else (np.ascontiguousarray(probs[:, 1]), logs)


def _from_objects(array: AnyArray, name: str) -> AnyArray:
    """Object arrays of real numbers are accepted, anything else is named with its row."""
    for position, item in np.ndenumerate(array):
        if item is None or (not isinstance(item, (int, float, np.number, np.bool_)) and not hasattr(item, "__float__")):
            raise TypeError(f"{name} must hold real numbers; row {position[0]} is {item!r} ({type(item).__name__})")
    return array.astype(np.float64)


def _dtype_of(eps: float) -> np.dtype[Any]:
    return np.dtype(np.float16 if eps > 1e-4 else np.float32 if eps > 1e-8 else np.float64)


def _clean(values: FloatArray) -> bool:
    """Whether every value lies in [0, 1], in one pass.

    Read as unsigned integers, the floats 0 … 1 are exactly the patterns up to that of 1.0: negative
    numbers carry the sign bit, and infinities and NaN lie above. -0.0 is caught too and judged slowly.
    """
    limit = _ONE[values.dtype]
    bits = values.reshape(-1).view(limit.dtype)
    return all(bits[a : a + _LONG_TILE].max() <= limit for a in range(0, bits.size, _LONG_TILE))


def _in_range(values: FloatArray, eps: float) -> FloatArray:
    """Values in [0, 1], rounding noise moved onto the ends; an error with the first offender otherwise."""
    if _clean(values):
        return values
    finite = np.isfinite(values)
    if not finite.all():
        where = _first(~finite)
        raise ValueError(f"y_prob must be finite; {_at(values, where)}")
    tolerance = RANGE_TOLERANCE[_dtype_of(eps)]
    outside = (values < -tolerance) | (values > 1 + tolerance)
    if outside.any():
        raise ValueError(f"y_prob must lie in [0, 1]; {_at(values, _first(outside))}{_range_hint(values)}")
    return np.clip(values, 0, 1)


def _range_hint(values: FloatArray) -> str:
    low, high = float(values.min()), float(values.max())
    if low == 0 and np.array_equal(np.unique(values), np.arange(high + 1)):
        return ": these look like class indices, pass probabilities (predict_proba) instead"
    if low >= 0 and high <= 1.5:
        tolerance = RANGE_TOLERANCE[values.dtype]
        return (
            f" by more than rounding ({tolerance:g} for {values.dtype}): if it is noise, pass numpy.clip(y_prob, 0, 1)"
        )
    if low >= 0 and high <= 100:
        return ": these look like percentages, divide by 100"
    function = "scipy.special.softmax(z, axis=1)" if values.ndim == 2 else "scipy.special.expit(z)"
    return f": these look like logits or margins (they range from {low:.4g} to {high:.4g}), pass {function}"


def _first(mask: AnyArray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


def _at(values: AnyArray, where: tuple[int, ...]) -> str:
    column = f", column {where[1]}" if len(where) > 1 else ""
    return f"row {where[0]}{column} is {values[where]!s}"


def _on_simplex(probs: FloatArray, eps: float, tolerance: float | None) -> FloatArray:
    """Rows of probabilities: each value in [0, 1] and each row sums to 1 within the tolerance."""
    if tolerance is None:
        tolerance = SUM_TOLERANCE[_dtype_of(eps)]
    else:
        check_number("sum_tolerance", tolerance, least=0, instead="None or ")
    ones = np.ones(probs.shape[1], dtype=probs.dtype)
    rows = max(1, _TILE // probs.shape[1])
    clean, summed = True, True
    for a in range(0, probs.shape[0], rows):
        tile = probs[a : a + rows]
        clean = clean and _clean(tile)
        if not clean:
            break
        summed = summed and float(np.abs(tile @ ones - 1).max()) <= tolerance
    if not clean:
        probs = _in_range(probs, eps)
    if not (clean and summed):
        totals = probs.sum(axis=1, dtype=np.float64)
        wrong = ~(np.abs(totals - 1) <= tolerance)
        if wrong.any():
            row = _first(wrong)[0]
            raise ValueError(
                f"rows of y_prob must sum to 1 within sum_tolerance={tolerance:g}; row {row} sums to {totals[row]:.9g}"
                f" ({int(wrong.sum())} of {len(totals)} rows do): normalise the rows, or pass a larger sum_tolerance"
            )
    return probs


def _weights(sample_weight: Any, n: int) -> FloatArray | None:
    if sample_weight is None:
        return None
    array, _ = to_array(sample_weight, "sample_weight")
    array = _one_column(array, "sample_weight")
    if array.dtype.kind == "O":
        array = _from_objects(array, "sample_weight")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"sample_weight must hold real numbers; got dtype {array.dtype}")
    if array.shape[0] != n:
        raise ValueError(f"sample_weight must have one value per row ({n}); got {array.shape[0]}")
    weights = array.astype(np.float64)
    if not np.isfinite(weights).all():
        raise ValueError(f"sample_weight must be finite; {_at(weights, _first(~np.isfinite(weights)))}")
    if (weights < 0).any():
        raise ValueError(f"sample_weight must not be negative; {_at(weights, _first(weights < 0))}")
    check_weight_range(weights)
    return weights


def groups_of_rows(groups: Any, n: int, weights: FloatArray | None) -> IntArray | None:
    """Codes of groups, of which there are several."""
    read = read_groups(groups, n)
    if read is None:
        return None
    codes = group_codes(read)
    used = codes if weights is None else codes[weights > 0]
    if used.size and (used == used[0]).all():
        raise ValueError(
            "groups must name at least 2 groups with weight; all rows belong to one, and one group does not show how "
            "results vary between groups"
        )
    # Rows that are groups by themselves are independent; repeats of one row would belong together.
    return None if weights is None and int(codes.max(initial=0)) + 1 == n else codes


def _alike(groups: IntArray, weights: FloatArray | None) -> FloatArray:
    """Weights that sum to 1 in every group with weight."""
    weight = np.ones(groups.size) if weights is None else weights
    mass = np.bincount(groups, weight)[groups]
    return np.divide(weight, mass, out=np.zeros(groups.size), where=mass > 0)


def check_weight_range(weights: FloatArray) -> None:
    """ValueError for weights that are all zero, or whose squares floats do not hold."""
    if not weights.any():
        raise ValueError("sample_weight must not be all zero")
    with np.errstate(over="ignore", under="ignore"):
        squares = float(weights @ weights)
    if not 0 < squares < np.inf:
        raise ValueError(
            f"sample_weight must have squares within range; the largest is {weights.max():g}: rescale them"
        )


def _check_same_order(**columns: Any) -> None:
    """Raise ValueError where pandas columns have the same index in different orders: rows are matched by position."""
    indexed = [(name, v.index) for name, v in columns.items() if hasattr(getattr(v, "index", None), "equals")]
    for name, index in indexed[1:]:
        first, other = indexed[0]
        if len(index) != len(other) or index.equals(other):
            continue
        if _same_labels(index, other):
            raise ValueError(
                f"{first} and {name} have the same index in different orders, and rows are matched by position: pass "
                f"{name}.loc[{first}.index] if they belong together by index, or both with .to_numpy() if by position"
            )


def _same_labels(one: Any, two: Any) -> bool:
    try:
        return bool(one.is_unique and set(one) == set(two))
    except TypeError:  # labels that cannot be hashed
        return False


def _warn_of_labels(probs: FloatArray) -> None:
    """Warn where all scores are 0 or 1, as predicted labels are."""
    flat = probs.reshape(-1)
    if len(probs) < _ENOUGH:
        return
    end, size = 0, _FIRST_TILE
    while end < flat.size:  # ends in the first tile where scores are soft, mostly a small one
        tile = flat[end : end + size]
        if ((tile != 0) & (tile != 1)).any():
            return
        end, size = end + size, _LONG_TILE
    warnings.warn(
        "every score in y_prob is 0 or 1: if these are predicted labels, pass probabilities (predict_proba) instead; a "
        "model that is always certain is calibrated only if it is always right",
        ScoreWarning,
        stacklevel=3,
    )


def _warn_of_columns(probs: FloatArray, codes: IntArray, classes: tuple[Label, ...], truth: AnyArray) -> None:
    """Warn where columns without names, taken in the order of sorted strings, clearly fit in another order.

    The other order is chosen on every second row and judged on the rest.
    """
    if truth.dtype.kind not in "USO" or not isinstance(classes[0], (str, bytes)) or len(probs) < _ENOUGH:
        return
    from scipy.optimize import linear_sum_assignment

    best = probs.argmax(axis=1)
    k = len(classes)
    together = np.bincount(codes[::2] * k + best[::2], minlength=k * k).reshape(k, k)
    column = linear_sum_assignment(together, maximize=True)[1]
    own, other = best[1::2] == codes[1::2], best[1::2] == column[codes[1::2]]
    gained, lost = int((other & ~own).sum()), int((own & ~other).sum())
    if gained - lost <= _CLEARLY * np.sqrt(gained + lost):
        return
    order = [str(classes[c]) for c in np.argsort(column)]
    shown = f"[{', '.join(map(repr, order[:6]))}{', …' if k > 6 else ''}]"
    warnings.warn(
        f"the columns of y_prob are read as the sorted labels, with which the most probable label is right in "
        f"{100 * own.mean():.0f} % of rows; with labels={shown} it would be in {100 * other.mean():.0f} %: pass labels "
        "in column order (model.classes_) to settle it",
        LabelWarning,
        stacklevel=3,
    )
