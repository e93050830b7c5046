"""The only place that validates user input: anything array-like in, `Predictions` or a clear error out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .checks import check_bool, check_choice, check_number, received
from .columns import check_one_column, from_columns, named_order, only_count
from .convert import check_same_order, to_array
from .dense import rows_of_places, without_ignored
from .dependence import groups_of_rows, read_groups
from .input_warnings import LONG_TILE, range_hint, warn_of_columns, warn_of_labels
from .labels import (
    check_label_list,
    check_labels,
    check_zero_one,
    decode_one_hot,
    encode_binary,
    encode_columns,
    labels_of_columns,
)
from .libraries import library_of
from .logits import sigmoid, softmax
from .predictions import Predictions
from .shares import SplitRows, check_shares, read_shares
from .types import AnyArray, FloatArray, IntArray, Label
from .weights import ones_or

#: How far outside [0, 1] a score may lie and still count as rounding noise, by dtype of the scores.
RANGE_TOLERANCE = {np.dtype(np.float16): 2e-3, np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-9}
#: How far from 1 a row of probabilities may sum, by dtype of the scores.
SUM_TOLERANCE = {np.dtype(np.float16): 1e-2, np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-5}
_BFLOAT16 = 2.0**-9  # its unit of rounding below 1; edges of bins allow twice that
#: Values processed at a time by several passes: they stay in the cache.
_TILE = 1 << 15
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
    multilabel: bool | None = None,
    ignore_index: int | None = None,
) -> Predictions:
    """Validate labels and probabilities once, and return :class:`Predictions`.

    Parameters
    ----------
    y_true : array-like of shape (n,), one-hot (n, K), of several labels (n, L), or (N, d1, …), or Predictions
        Observed labels: int, bool, str or categorical; one-hot rows have their 1 in the column of the label; rows of
        several labels, or of none, have a 1 in the column of each label. For two classes also shares in [0, 1]: the
        fraction of the draws of each row with label 1 (see Notes). NumPy, list, pandas / polars / pyarrow column, torch
        tensor, anything with ``__array__`` or DLPack. Validated predictions replace all arguments and are returned
        unchanged.
    y_prob : array-like of shape (n,), (n, K) or (N, K, d1, …)
        1-D (or one column, not named after another label): probability of ``pos_label``. 2-D: one column per class in
        ``labels`` order. More axes: pixels of images or tokens of texts, each of which is a row, with classes in axis
        1; or, in the shape of ``y_true``, the probability of ``pos_label`` for each.
    labels : sequence of K labels, optional
        Column order; the columns of a frame that have these labels as names are matched by name. Default: a frame's
        column names, which must be the labels, or the labels with one prefix or suffix (``p_cat``, ``p_dog``), up to
        case and spelling of numbers (``True``, ``1.0``, ``01`` are 1). Without names, or if names only count
        (``f0``, ``column_0``): the sorted unique labels if there are K of them, else ``0 … K-1`` if ``y_true``
        holds such integers including 0.
    pos_label : label, optional
        The label that a 1-D ``y_prob`` is the probability of. Default 1 for labels in {0, 1}, {-1, 1} or bool.
    sample_weight : array-like of shape (n,), optional
        Non-negative, finite, not all zero. Whole numbers equal repeated rows. With shares k / n: the number n.
    sum_tolerance : float, optional
        Largest accepted ``|row sum - 1|``. Default 1e-5 (float64), 1e-4 (float32), 1e-2 (float16), 8e-2
        (bfloat16).
    from_logits : bool, default False
        ``y_prob`` holds finite logits: rows of a softmax, or in 1-D the log odds of ``pos_label``. Logarithms of
        probabilities are then exact where the probabilities themselves are rounded to 0 or 1.
    groups : array-like of shape (n,), optional
        The group of each row: rows of a prompt, patients of a hospital, forecasts of one event. Rows of one group may
        depend on each other in any way; groups are independent. Intervals, bands and tests then account for the number
        of groups; without groups, rows are treated as independent. For pixels or tokens: one value per image or text,
        (N,), or per pixel or token; ``"first-axis"``: each image or text is a group.
    group_average : {"micro", "macro"}, default "micro"
        ``"micro"``: rows have equal weight. ``"macro"``: groups have equal weight, whatever their size: weights are
        divided by their sum in the group.
    label, prob, weight : str, or list of str, optional
        Names of columns of a data frame that is passed in place of ``y_true`` and ``y_prob``: ``label="y", prob="p"``,
        or ``prob=["p_cat", "p_dog"]``, as in :func:`calibrant.from_frame`. ``groups`` may then name a column too, as
        may ``by`` and ``features`` in functions that have them; :func:`calibrant.compare_models` takes a list with one
        column per model, or a mapping of the names of models to columns.
    multilabel : bool, optional
        Whether a row may have any number of the labels, so that each column of ``y_true`` and ``y_prob`` (n, L) is a
        two-class problem (:class:`calibrant.notions.Multilabel`). Default: True if some row of ``y_true`` (n, L) has
        none, or several.
    ignore_index : int, optional
        Rows (pixels, tokens) with this label are left out, whatever their scores: unlabelled pixels, padding.

    Returns
    -------
    Predictions
        The validated rows, which all functions take in place of ``y_true`` and ``y_prob``.

    Raises
    ------
    TypeError, ValueError
        The message names the argument, the allowed values, and the first offending row and value.

    See Also
    --------
    calibrant.Predictions : The result, field by field.
    calibrant.from_frame : Sums the rows of a lazy frame, for data that do not fit in memory.
    calibrant.Accumulator : Sums rows that arrive in pieces.

    Notes
    -----
    Scores outside [0, 1] by no more than 1e-9 (float64), 1e-6 (float32), 2e-3 (float16) or 1.6e-2 (bfloat16) are
    rounding noise and are clipped. float32 scores stay float32; float16 and bfloat16 become float32; integers and
    booleans become float64. Cost: two passes over ``y_prob``; a clean float array is not copied.

    **Shares.** Floats ``y_true`` in [0, 1], at least one strictly between, are shares of the label 1 (of ``pos_label``,
    or the second of ``labels``, if 1 is not a label): k of n draws, or votes of annotators. Floats that are all 0 or 1
    stay labels. A row with share y and weight w becomes two rows with the same score: the outcome 1 with weight w·y,
    and the outcome 0 with weight w·(1 - y); a share of 0 or 1 gives one row. All functions use these rows and count
    them in ``n_samples``; :attr:`Predictions.given` maps each to its given row. Arguments with a value per row
    (``groups``, ``by``, ``features``) have one per given row. If w = n is a whole number and w·y differs from one only
    by rounding, weights are counts: n independent draws. Draws of one row that depend on each other need
    ``groups=range(len(y_true))``. Other weights are relative: the parts then count as independent rows (Kish's size),
    whose variance is never less than that of a share. Resampling and splits into folds keep the parts of a row
    together. :func:`calibrant.estimate` and :func:`calibrant.report` warn if counts of neighbouring scores vary more
    than independent draws do.

    Examples
    --------
    >>> from calibrant import as_predictions
    >>> as_predictions(["no", "yes"], [0.2, 0.9], pos_label="yes").classes
    ('no', 'yes')

    Two images of 2 × 2 pixels and three classes, with an unlabelled pixel; each image is a group:

    >>> import numpy as np
    >>> logits, label = np.zeros((2, 3, 2, 2)), np.array([[[0, 1], [2, 255]], [[0, 0], [1, 2]]])
    >>> pixels = as_predictions(label, logits, from_logits=True, ignore_index=255, groups="first-axis")
    >>> pixels.n_samples, pixels.groups.tolist()
    (7, [0, 0, 0, 1, 1, 1, 1])

    Rain on 3 of 4, 0 of 2 and 1 of 5 days with forecasts of 0.8, 0.1 and 0.3:

    >>> days = as_predictions([3 / 4, 0 / 2, 1 / 5], [0.8, 0.1, 0.3], sample_weight=[4, 2, 5])
    >>> days.codes.tolist(), days.weights.tolist(), days.given.tolist()
    ([1, 0, 0, 1, 0], [3.0, 1.0, 2.0, 1.0, 4.0], [0, 0, 1, 2, 2])
    """
    if label is not None or prob is not None or weight is not None:
        named = {"y_true": y_true, "y_prob": y_prob, "sample_weight": sample_weight, "groups": groups}
        named = from_columns(named | {"label": label, "prob": prob, "weight": weight})
        y_true, y_prob, sample_weight, groups = (named[k] for k in ("y_true", "y_prob", "sample_weight", "groups"))
    if isinstance(y_true, Predictions):
        beside = {
            "y_prob": y_prob, "labels": labels, "pos_label": pos_label, "sample_weight": sample_weight,
            "sum_tolerance": sum_tolerance, "from_logits": from_logits or None, "groups": groups,
            "multilabel": multilabel,
            "ignore_index": ignore_index,
        }  # fmt: skip
        if extra := [name for name, value in beside.items() if value is not None]:
            raise TypeError(f"{', '.join(extra)} must not be given with Predictions: as_predictions() takes them")
        return y_true
    if isinstance(y_prob, Predictions):
        raise TypeError("Predictions take the place of y_true and y_prob: pass them first, without y_prob")
    if y_prob is None:
        raise TypeError(
            "y_prob must be given: probabilities of the labels in y_true (or label= and prob=, columns of a data frame)"
        )
    places = rows_of_places(y_true, y_prob, sample_weight, groups, multilabel)
    rows = GivenRows.of(
        *places[:2], labels=labels, sample_weight=places[2], groups=places[3],
        multilabel=multilabel, ignore_index=ignore_index, pos_label=pos_label,
    )  # fmt: skip
    truth, probs, eps, columns, labels, weights, together, given = rows
    library, logs = library_of(y_prob, y_true), None
    if check_bool("from_logits", from_logits):
        check_finite(probs, "hold finite logits")
        probs, logs = softmax(probs) if truth.ndim == 1 else (sigmoid(probs), None)
    check_choice("group_average", group_average, ("micro", "macro"))
    if group_average == "macro":
        if groups is None:
            raise ValueError("group_average='macro' needs groups: pass groups=")
        weights = weights if together is None else _alike(together, weights)
    if truth.ndim == 2:
        return _several(rows._replace(scores=probs, weights=weights), pos_label, library, soft=not from_logits)
    if probs.ndim == 1:
        probs = check_probabilities(probs, eps)
        codes, classes, positive = encode_binary(truth, labels, pos_label)
        if columns is not None:
            check_one_column(columns[0], classes, classes[positive])
        if logs is not None and positive == 0:
            logs = logs[:, ::-1]
        if not from_logits:
            warn_of_labels(probs)
        return Predictions(probs, codes, weights, classes, positive, eps, logs, together, library, given)
    if pos_label is not None:
        raise ValueError(
            f"pos_label is for a 1-D y_prob; y_prob has {probs.shape[1]} columns (got pos_label={pos_label!r}): "
            "use notion=ClassSpecific(label), or pass one column"
        )
    order, codes, classes = encode_columns(truth, labels, columns, probs.shape[1])
    if order is not None:
        probs = probs[:, order]
        logs = None if logs is None else logs[:, order]
    probs = check_probabilities(probs, eps, sum_tolerance)
    if not from_logits:
        warn_of_labels(probs)
    if labels is None and columns is None:
        warn_of_columns(probs, codes, classes, truth)
    return Predictions(probs, codes, weights, classes, None, eps, logs, together, library, given)


def _several(rows: GivenRows, pos_label: Any, library: str | None, *, soft: bool) -> Predictions:
    """Predictions with several labels per row."""
    if pos_label is not None:
        raise ValueError(f"pos_label is for one label per row; y_true has {rows.truth.shape[1]} (got {pos_label!r})")
    order, classes = rows.columns_of_labels()
    probs = _in_range(rows.scores if order is None else rows.scores[:, order], rows.eps)
    if soft:
        warn_of_labels(probs)
    return Predictions(probs, rows.truth, rows.weights, classes, None, rows.eps, None, rows.groups, library)


class GivenRows(NamedTuple):
    """Arguments with a value for each row, read and of equal length; scores and labels not yet checked together.

    Attributes
    ----------
    truth : ndarray of shape (n,), or bool (n, L) of several labels
    scores : ndarray of shape (n,) or (n, K)
        float32 or float64.
    eps : float
        Machine epsilon of the dtype in which the scores came.
    columns : tuple of str or None
        Names of the columns of scores.
    labels : sequence or None
        As given, or those of one-hot rows.
    weights, groups : ndarray of shape (n,) or None
    given : ndarray of shape (n,) or None
        Where labels were shares, the given row that each row is a part of.
    """

    truth: AnyArray
    scores: FloatArray
    eps: float
    columns: tuple[str, ...] | None
    labels: Sequence[Any] | None
    weights: FloatArray | None
    groups: IntArray | None
    given: IntArray | None = None

    @property
    def together(self) -> IntArray | None:
        """See :attr:`Predictions.together`."""
        return self.given if self.groups is None else self.groups

    def columns_of_labels(self) -> tuple[list[int] | None, tuple[Label, ...]]:
        """Order of the columns of scores (None = unchanged) and the labels, if rows have several labels."""
        k = self.truth.shape[1]
        classes = check_label_list(range(k) if self.labels is None else self.labels, k)
        unnamed = self.columns is None or only_count(self.columns)
        return None if unnamed else named_order(self.columns or (), classes), classes

    @classmethod
    def of(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        labels: Any,
        sample_weight: Any,
        groups: Any,
        multilabel: bool | None = None,
        ignore_index: int | None = None,
        pos_label: Any = None,
    ) -> GivenRows:
        """Read all arguments that have a value for each row: the one entry point of measures and calibrators."""
        check_same_order(y_true=y_true, y_prob=y_prob, sample_weight=sample_weight, groups=groups)
        truth, truth_columns = to_array(y_true, "y_true")
        scores, eps, columns = read_scores(y_prob)
        several = multilabel is not None and check_bool("multilabel", multilabel)
        if truth.ndim == 2 and truth.shape[1] > 1:
            k = scores.shape[1] if scores.ndim == 2 else 2
            labels = labels_of_columns(check_zero_one(truth), labels, truth_columns, columns, k)
            ones = truth.sum(axis=1, dtype=np.int64) == 1
            several = several or (multilabel is None and scores.ndim == 2 and not ones.all())
            if not several:
                truth = decode_one_hot(truth, ones, labels)
        if several and (truth.shape[1:] in ((), (1,)) or scores.ndim == 1):
            raise ValueError(
                "y_true and y_prob must be 2-D (n, L) for several labels, one column per label; got shapes "
                f"{truth.shape} and {scores.shape}"
            )
        truth = truth.astype(bool, copy=False) if several else _one_column(truth, "y_true")
        if truth.shape[0] != scores.shape[0]:
            raise ValueError(
                f"y_true and y_prob must have the same number of rows; got {truth.shape[0]} and {scores.shape[0]}"
            )
        weights = read_weights(sample_weight, truth.shape[0])
        if ignore_index is not None:
            groups = read_groups(groups, truth.shape[0])
            truth, scores, weights, groups = without_ignored(ignore_index, truth, scores, weights, groups)
            weights = read_weights(weights, truth.shape[0])
        shares = None if several else read_shares(truth)
        if shares is None:
            together = groups_of_rows(groups, truth.shape[0], weights)
            return cls(truth, scores, eps, columns, labels, weights, together)
        check_shares(shares[0], scores)
        weights = ones_or(weights, truth.shape[0])
        together = groups_of_rows(groups, truth.shape[0], weights)
        truth, weights, given = SplitRows.of(*shares, weights, labels, pos_label)
        together = None if together is None else together[given]
        return cls(truth, scores[given], eps, columns, labels, weights, together, given)


def read_labels(y_true: Any) -> AnyArray:
    """Labels of one kind, (n,)."""
    return check_labels(_one_column(to_array(y_true, "y_true")[0], "y_true"))


def read_truth(y_true: Any) -> tuple[AnyArray, tuple[str, ...] | None]:
    """Labels of one kind, (n,), or indicators of several labels per row, (n, L); and the names of columns."""
    truth, names = to_array(y_true, "y_true")
    if truth.ndim == 2 and truth.shape[1] > 1:
        return check_zero_one(truth).astype(np.int64), names
    return read_labels(truth), None


def read_scores(scores: Any) -> tuple[FloatArray, float, tuple[str, ...] | None]:
    """Scores as floats of one or two dimensions, the epsilon of the dtype they came in, and names of their columns."""
    array, columns = to_array(scores, "y_prob")
    array, eps = _scores(array)
    # NumPy has no bfloat16: its numbers came as float32, rounded to 8 bits.
    return array, _BFLOAT16 if str(getattr(scores, "dtype", "")) == "torch.bfloat16" else eps, columns


def check_probabilities(values: FloatArray, eps: float, sum_tolerance: float | None = None) -> FloatArray:
    """Check that probabilities lie in [0, 1], and that the rows of a matrix sum to 1."""
    return _in_range(values, eps) if values.ndim == 1 else _on_simplex(values, eps, sum_tolerance)


def read_probabilities(y_prob: Any) -> FloatArray:
    """Probabilities of rows without labels, (n,) or (n, K), float64."""
    values, eps, _ = read_scores(y_prob)
    return check_probabilities(values, eps).astype(np.float64)


def check_sum_tolerance(tolerance: Any) -> float | None:
    """Check how far from 1 rows of probabilities may sum; None depends on their dtype."""
    return None if tolerance is None else check_number("sum_tolerance", tolerance, least=0, instead="None or ")


def check_finite(values: FloatArray, what: str = "be finite", most: float = np.inf) -> None:
    """Check scores that may be any finite numbers, or numbers up to a size."""
    finite = np.isfinite(values) & (np.abs(values) <= min(most, float(np.finfo(values.dtype).max)))
    if not finite.all():
        raise ValueError(f"y_prob must {what}; {_at(values, _first(~finite))}")


def _one_column(array: AnyArray, name: str) -> AnyArray:
    if array.ndim == 0:
        raise ValueError(f"{name} must be 1-D; got a single value ({received(array)})")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must be 1-D; got shape {array.shape}")
    if array.shape[0] == 0:
        raise ValueError(f"{name} must not be empty; got 0 rows")
    return array


def _scores(array: AnyArray) -> tuple[FloatArray, float]:
    """Check shape and dtype of the scores; return floats and the epsilon of the dtype they came in."""
    if array.ndim not in (1, 2):
        raise ValueError(f"y_prob must be 1-D (n,) or 2-D (n, K); got {array.ndim}-D, shape {array.shape}")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape[-1] == 0 < array.shape[0]:  # in words that scikit-learn's checks of estimators ask for
        raise ValueError(
            f"y_prob must not be empty; got shape {array.shape}: 0 feature(s) (shape={array.shape}) while a minimum of "
            "1 is required."
        )
    if array.shape[0] == 0:
        raise ValueError(f"y_prob must not be empty; got shape {array.shape}")
    if array.dtype.kind == "O":
        array = _from_objects(array, "y_prob")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind in "iub":
        array = array.astype(np.float64)
    if array.dtype.kind == "c":
        raise ValueError(f"y_prob must hold real numbers; got dtype {array.dtype}. Complex data not supported")
    if array.dtype.kind != "f":
        raise TypeError(f"y_prob must hold real numbers; got dtype {array.dtype}")
    eps = float(np.finfo(array.dtype).eps)
    if array.dtype == np.float16:
        return array.astype(np.float32), eps
    if array.dtype not in (np.float32, np.float64):
        return array.astype(np.float64), float(np.finfo(np.float64).eps)
    return array, eps


def _from_objects(array: AnyArray, name: str) -> AnyArray:
    """Convert an object array of real numbers; anything else is an error that names its row."""
    for position, item in np.ndenumerate(array):
        if (
            item is None
            or item is np.ma.masked
            or isinstance(item, (complex, np.complexfloating))
            or not hasattr(item, "__float__")
        ):
            raise TypeError(
                f"{name} must hold real numbers; row {position[0]} is {received(item)} ({type(item).__name__}): the "
                "argument must be free of strings and of other values that are not numbers"
            )
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:  # such as a null of pyarrow
        raise TypeError(f"{name} must hold real numbers: {error}") from error


def _tolerance(table: dict[Any, float], eps: float) -> float:
    """That of the dtype with this epsilon; of bfloat16, which has three bits less, eight times that of float16."""
    dtype = np.dtype(np.float16 if eps > 1e-4 else np.float32 if eps > 1e-8 else np.float64)
    return table[dtype] * (8 if eps == _BFLOAT16 else 1)


def _clean(values: FloatArray) -> bool:
    """Whether every value lies in [0, 1], in one pass.

    Read as unsigned integers, the floats 0 … 1 are exactly the patterns up to that of 1.0: negative
    numbers carry the sign bit, and infinities and NaN lie above. -0.0 is caught too and checked slowly.
    """
    limit = _ONE[values.dtype]
    bits = values.reshape(-1).view(limit.dtype)
    return all(bits[a : a + LONG_TILE].max() <= limit for a in range(0, bits.size, LONG_TILE))


def _in_range(values: FloatArray, eps: float) -> FloatArray:
    """Values in [0, 1] with rounding noise clipped; otherwise an error with the first offender."""
    if _clean(values):
        return values
    check_finite(values)
    tolerance = _tolerance(RANGE_TOLERANCE, eps)
    outside = (values < -tolerance) | (values > 1 + tolerance)
    if outside.any():
        hint = range_hint(values, RANGE_TOLERANCE[values.dtype])
        raise ValueError(f"y_prob must lie in [0, 1]; {_at(values, _first(outside))}{hint}")
    return np.clip(values, 0, 1)


def _first(mask: AnyArray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


def _at(values: AnyArray, where: tuple[int, ...]) -> str:
    column = f", column {where[1]}" if len(where) > 1 else ""
    return f"row {where[0]}{column} is {values[where]!s}"


def _on_simplex(probs: FloatArray, eps: float, tolerance: float | None) -> FloatArray:
    """Check rows of probabilities: each value lies in [0, 1], each row sums to 1 within the tolerance."""
    if tolerance is None:
        tolerance = _tolerance(SUM_TOLERANCE, eps)
    else:
        check_sum_tolerance(tolerance)
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
                f" (failing rows: {int(wrong.sum())} of {len(totals)}): normalise rows, or pass a larger sum_tolerance"
            )
    return probs


def read_numbers(name: str, values: Any, n: int | None = None) -> AnyArray:
    """Check one number per row, in its own dtype: finite, and not negative."""
    array = _one_column(to_array(values, name)[0], name)
    if array.dtype.kind == "O":
        array = _from_objects(array, name)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers; got dtype {array.dtype}")
    if n is not None and array.shape[0] != n:
        raise ValueError(f"{name} must have one value per row ({n}); got {array.shape[0]}")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    for wrong, wanted in ((~np.isfinite(array), "be finite"), (array < 0, "not be negative")):
        if wrong.any():
            raise ValueError(f"{name} must {wanted}; {_at(array, _first(wrong))}")
    return array


def read_weights(sample_weight: Any, n: int) -> FloatArray | None:
    """Check the ``sample_weight`` argument."""
    if sample_weight is None:
        return None
    weights = read_numbers("sample_weight", sample_weight, n).astype(np.float64)
    check_weight_range(weights)
    return weights


def _alike(groups: IntArray, weights: FloatArray | None) -> FloatArray:
    """Weights that sum to 1 in every group with weight."""
    weight = np.ones(groups.size) if weights is None else weights
    mass = np.bincount(groups, weight)[groups]
    return np.divide(weight, mass, out=np.zeros(groups.size), where=mass > 0)


def check_weight_range(weights: FloatArray) -> None:
    """ValueError for weights that are all zero, or whose squares overflow or underflow."""
    if not weights.any():
        raise ValueError("sample_weight must not be all zero")
    with np.errstate(over="ignore", under="ignore"):
        squares = float(weights @ weights)
    if not 0 < squares < np.inf:
        raise ValueError(
            f"sample_weight must have squares within range; the largest is {weights.max():g}: rescale them"
        )
