"""`Predictions`: validated probabilities and labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .result import Printable
from .types import AnyArray, FloatArray, IntArray, Label

#: Probabilities processed at a time: they stay in the cache.
_TILE = 1 << 15


def effective_size(weights: FloatArray | None, n_rows: int, *, integral: bool) -> float:
    """Sample size: the number of rows or repeats, or Kish's effective size.

    Whole-number weights equal repeated rows: the sample size is their sum. Any other weights are relative, and the
    sample size is Kish's ``(Σw)² / Σw²``, which does not change with their scale.
    """
    if weights is None:
        return float(n_rows)
    total = float(weights.sum())
    squares = float(weights @ weights)
    return total if integral else total**2 / squares if squares > 0 else 0.0


#: Whole numbers are exact as floats up to here.
COUNTED = 2.0**53


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Printable):
    """Validated predictions: probabilities, label codes, weights and classes.

    Build one with :func:`as_predictions`; the constructor checks nothing.

    Parameters
    ----------
    probs : ndarray of shape (n,) or (n, K)
        1-D: probability of ``classes[positive]`` in a binary problem. 2-D: one column per class.
        Dtype float32 or float64.
    truth : ndarray of shape (n,) or (n, L)
        Index of the observed class in ``classes``, any integer or bool dtype: :attr:`codes`. With several
        labels per row, indicators of the L labels, bool.
    weights : ndarray of shape (n,) or None
        Sample weights, float64; None means that all are 1.
    classes : tuple
        The labels, in column order.
    positive : int or None
        Index of the positive class when ``probs`` is 1-D, else None.
    eps : float
        Machine epsilon of the dtype the scores arrived in: at bin edges, scores that differ by less than their
        rounding error are treated as equal.
    logs : ndarray of shape (n, K) or None
        Logarithms of the probabilities, exact if logits were given: a saturated softmax is 1, but its logarithm still
        differs from 0.
    groups : ndarray of shape (n,) or None
        Codes 0 … G - 1 of rows that belong together (prompts, patients, events); None: all rows are independent.
    library : str or None
        "pandas", "polars" or "pyarrow" if scores or labels came in one: the library of ``to_frame()`` of results.
    given : ndarray of shape (n,) or None
        If ``y_true`` held shares: the given row that each row is a part of, ascending. A share y of weight w gives two
        rows, the outcome with weight w·y and no outcome with weight w·(1 - y). None: the rows are the given ones.

    See Also
    --------
    calibrant.as_predictions : Validates labels and probabilities, and returns them.

    Examples
    --------
    >>> import calibrant as cal
    >>> rows = cal.as_predictions(["no", "yes", "yes"], [0.2, 0.9, 0.6], pos_label="yes")
    >>> rows.n_samples, rows.classes, rows.codes.tolist()
    (3, ('no', 'yes'), [0, 1, 1])
    >>> cal.brier_score(rows) == cal.brier_score(["no", "yes", "yes"], [0.2, 0.9, 0.6], pos_label="yes")
    True
    """

    _unpictured: ClassVar[str] = "No picture: calibrant.report() draws one."

    probs: FloatArray
    truth: AnyArray
    weights: FloatArray | None
    classes: tuple[Label, ...]
    positive: int | None
    eps: float
    logs: FloatArray | None = None
    groups: IntArray | None = None
    library: str | None = None
    given: IntArray | None = None

    @property
    def summary(self) -> str:
        """Numbers of rows and classes."""
        what = "labels each" if self.several else "classes"
        return f"Predictions (n={self.n_samples:,}) of {len(self.classes):,} {what}; calibrant.report() evaluates them."

    def _shown(self) -> Iterable[tuple[str, Any]]:
        yield from {"n_samples": self.n_samples, "classes": self.classes, "probs": self.probs}.items()
        if self.positive is not None:
            yield "pos_label", self.classes[self.positive]
        yield "weights", self.weights
        if self.groups is not None:
            yield "n_groups", self.n_groups

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.truth.shape[0])

    @property
    def several(self) -> bool:
        """Whether a row may have any number of labels, rather than one class."""
        return self.truth.ndim == 2

    @property
    def left_out(self) -> str:
        """Sentence on rows of the source that are not among these; "" if there are none."""
        return ""

    @property
    def together(self) -> IntArray | None:
        """Codes of rows that are resampled or put into folds together: groups, or the parts of a row with a share."""
        return self.given if self.groups is None else self.groups

    @property
    def units(self) -> IntArray | None:
        """Codes of groups, of parts of rows, or of rows with several labels; None if rows are independent."""
        return np.arange(self.n_samples) if self.groups is None and self.several else self.together

    @property
    def n_given(self) -> int:
        """Number of given rows."""
        return self.n_samples if self.given is None else int(self.given.max(initial=-1)) + 1

    def of_given(self, values: AnyArray) -> AnyArray:
        """Expand values of the given rows to the rows that they were split into.

        Parameters
        ----------
        values : ndarray of shape (n_given, …)
            A value for each given row.
        """
        return values if self.given is None else values[self.given]

    @property
    def codes(self) -> IntArray:
        """Index of the observed class of each row, (n,); ValueError if rows have several labels."""
        if self.several:
            raise ValueError(
                "one label per row is needed, but y_true has a column for each of several labels: pass "
                "y_true[:, k] and y_prob[:, k], one label k at a time"
            )
        return self.truth

    def one_label(self, k: int) -> Predictions:
        """Return the binary predictions of one of several labels: whether rows have it, and its probability.

        Parameters
        ----------
        k : int
            Index of the label.
        """
        scores = np.ascontiguousarray(self.probs[:, k])
        return replace(self, probs=scores, truth=self.truth[:, k], classes=(False, True), positive=1, logs=None)

    @cached_property
    def n_groups(self) -> int:
        """Number of groups of rows; number of rows if they are independent."""
        return self.n_samples if self.groups is None else int(np.unique(self.groups).size)

    @property
    def n_classes(self) -> int:
        """Number of classes K (2 for a 1-D ``y_prob``)."""
        return len(self.classes)

    @cached_property
    def integral_weights(self) -> bool:
        """Whether the weights are whole numbers with an exact sum, and so count repeats."""
        w = self.weights
        return w is None or (bool(np.all(w == np.floor(w))) and float(w.sum()) <= COUNTED)

    @cached_property
    def effective_size(self) -> float:
        """Sample size n used by all rules; see :func:`effective_size`."""
        return effective_size(self.weights, self.n_samples, integral=self.integral_weights)

    @cached_property
    def matrix(self) -> FloatArray:
        """Probabilities as an (n, K) matrix; for 1-D input the other column is the complement."""
        if self.positive is None:
            return self.probs
        columns = np.empty((self.n_samples, 2), dtype=self.probs.dtype)
        columns[:, self.positive] = self.probs
        np.subtract(1, self.probs, out=columns[:, 1 - self.positive])
        return columns

    def outcome(self, k: int) -> AnyArray:
        """Return whether each row is of class ``k``, as a 0/1 array (a view if possible).

        Parameters
        ----------
        k : int
            Index of the class.
        """
        if self.several:
            return self.truth[:, k]
        if self.n_classes == 2 and k == 1:
            return self.codes
        hit: AnyArray = self.codes == k
        return hit

    def score(self, k: int) -> FloatArray:
        """Return the probability of class ``k`` as a contiguous array.

        Parameters
        ----------
        k : int
            Index of the class.
        """
        if self.positive is None:
            return np.ascontiguousarray(self.probs[:, k])
        return self.probs if k == self.positive else 1 - self.probs

    @cached_property
    def _top(self) -> tuple[IntArray, FloatArray]:
        """Index and value of the largest probability of each row of a matrix.

        Computed in tiles of rows, so that the value is taken while its row is still in the cache.
        """
        n, k = len(self.codes), self.n_classes  # where rows have one label
        index = np.empty(n, dtype=np.intp)
        value = np.empty(n, dtype=self.probs.dtype)
        rows = max(1, _TILE // k)
        number = np.arange(rows)
        for a in range(0, n, rows):
            tile = self.probs[a : a + rows]
            best = tile.argmax(axis=1, out=index[a : a + rows])
            value[a : a + rows] = tile[number[: len(best)], best]
        return index, value

    @cached_property
    def predicted(self) -> IntArray:
        """Index of the most probable class of each row; the first of tied ones."""
        if self.positive is None:
            return self._top[0]
        # Column order decides ties, so the comparison is strict for the second class only.
        second = self.probs > 0.5 if self.positive == 1 else self.probs < 0.5
        return second.astype(np.intp)

    @cached_property
    def confidence(self) -> FloatArray:
        """Largest probability of each row."""
        if self.positive is None:
            return self._top[1]
        return np.maximum(self.probs, 1 - self.probs)

    def subset(self, rows: Any) -> Predictions:
        """Return the predictions for the rows selected by a mask or an index array.

        Parameters
        ----------
        rows : array-like of bool or int
            A mask, or indices of rows.
        """
        w = None if self.weights is None else self.weights[rows]
        logs = None if self.logs is None else self.logs[rows]
        groups = None if self.groups is None else self.groups[rows]
        given = None if self.given is None else np.unique(self.given[rows], return_inverse=True)[1]
        some = {"probs": self.probs[rows], "truth": self.truth[rows], "weights": w, "logs": logs}
        return replace(self, **some, groups=groups, given=given)


def rows_with_weight(predictions: Predictions) -> Predictions:
    """The predictions without rows of weight 0."""
    w = predictions.weights
    return predictions if w is None or w.all() else predictions.subset(w > 0)
