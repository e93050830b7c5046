"""Input of calibrators: scores of any kind and labels, checked once and kept on their original scale."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import sklearn
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator
from sklearn.utils.fixes import parse_version
from sklearn.utils.validation import _check_feature_names, _check_n_features, column_or_1d

from ..data import validation
from ..data.checks import called, check_choice, received
from ..data.columns import check_one_column, some
from ..data.dependence import group_codes
from ..data.labels import check_label_list, check_labels, encode_binary, encode_columns
from ..data.predictions import Predictions
from ..data.types import AnyArray, FloatArray, IntArray, Label
from ..data.validation import GivenRows, check_finite, check_probabilities
from ..data.weights import ones_or
from ..exceptions import LabelWarning
from ..sums.logistic_fit import BELOW_ONE

#: Whether scikit-learn gets column names by narwhals, or by the interchange protocol, as earlier versions do.
_BY_NARWHALS = parse_version(sklearn.__version__) >= parse_version("1.9.dev0")
#: The largest logit: squares of differences of logits, and their sums, are finite.
LARGEST = 1e100
INPUTS = ("probability", "logit", "margin")
#: Rows of the prior for ``shrinkage="auto"``, and for margins: class shares are less informative than probabilities.
ROWS, OF_MARGINS = 8.0, 0.5
#: Rows of probabilities that sum to 1 up to this error are left unchanged.
_EXACT = 1e-6
#: Value of ``pos_label`` where there is no such argument, as in ``fit``: 1-D scores are for the second class.
SECOND = object()
#: Names in calibrators of the arguments of measures.
NAMES = {"y_true": "y", "y_prob": "scores", "pos_label": "labels[1]"}


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores on their original scale.

    Attributes
    ----------
    values : ndarray of shape (n,) or (n, K)
        float32 or float64; 1-D scores are for the second class.
    kind : {"probability", "logit", "margin"}
    """

    values: FloatArray
    kind: str

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of classes: 2 for 1-D scores."""
        return 2 if self.values.ndim == 1 else int(self.values.shape[1])

    def part(self, rows: AnyArray | slice) -> Scores:
        """Some of the rows."""
        return Scores(self.values[rows], self.kind)

    def of_positive(self) -> FloatArray:
        """One score per row for the second class: its probability, or the difference of two scores."""
        v = self.values
        if v.ndim == 1:
            return v.astype(np.float64)
        if v.shape[1] != 2:
            raise ValueError(f"scores must have one column or two for a binary calibrator; got {v.shape[1]} columns")
        return np.asarray(v[:, 1] if self.kind == "probability" else v[:, 1] - v[:, 0], dtype=np.float64)

    def probabilities(self) -> FloatArray:
        """Probabilities of all classes, (n, K), float64: the given ones, or the softmax of logits."""
        if self.kind == "logit":
            return np.asarray(softmax(self.logs(0).astype(np.float64), axis=1))
        v = self.values.astype(np.float64)
        if v.ndim == 1:
            return np.column_stack([1 - v, v])
        total = v.sum(axis=1)
        off = abs(total - 1) > _EXACT  # by the rounding of float16
        if off.any():
            v[off] /= total[off, None]
        return v

    def at_ends(self, eps: float) -> bool:
        """Whether some probabilities are 0 or 1, up to rounding."""
        v = self.values
        return self.kind == "probability" and bool(v.min() <= eps or (v.ndim == 1 and v.max() >= 1 - eps))

    def log_odds(self, eps: float) -> FloatArray:
        """``log p/(1-p)`` of the second class, (n,); probabilities are clipped to [eps, 1 - eps]."""
        if self.kind != "probability":
            return self.of_positive()
        p = np.clip(self.values.astype(np.float64), eps, min(1 - eps, BELOW_ONE))
        if p.ndim == 1:
            return np.asarray(np.log(p) - np.log1p(-p))
        self.of_positive()
        return np.asarray(np.log(p[:, 1]) - np.log(p[:, 0]))

    def logs(self, eps: float) -> FloatArray:
        """Logarithms of class probabilities, up to a constant per row, (n, K); probabilities are clipped to eps."""
        v = self.values
        if self.kind != "probability":
            return v if v.ndim == 2 else np.column_stack([np.zeros_like(v), v])
        both = v if v.ndim == 2 else np.column_stack([1 - v, v])
        least = max(eps, float(np.finfo(both.dtype).tiny))  # float32 has none of 1e-50
        return np.asarray(np.log(np.maximum(both, both.dtype.type(least))))

    def kept_inside(self, p: FloatArray, eps: float) -> FloatArray:
        """Keep calibrated probabilities away from 0 and 1: the map cannot distinguish these from eps and 1 - eps."""
        if self.kind != "probability":
            return p
        if p.ndim == 1:
            return np.clip(p, eps, 1 - eps)
        rows = p.min(axis=1) < eps
        p[rows] = np.maximum(p[rows], eps)
        p[rows] /= p[rows].sum(axis=1, keepdims=True)
        return p

    def log_probabilities(self, eps: float) -> FloatArray:
        """Logarithms of class probabilities, (n, K), float64; given probabilities are clipped to eps."""
        z = self.logs(eps).astype(np.float64)
        if self.kind == "probability":
            return z
        z = z - z.max(axis=1, keepdims=True)
        return np.asarray(z - np.log(np.exp(z).sum(axis=1, keepdims=True)))


@dataclass(frozen=True, eq=False)
class CalibrationSample:
    r"""Scores with labels and weights; rows of weight 0 are left out.

    Attributes
    ----------
    scores : Scores
    codes : ndarray of shape (n,)
        Index of the observed class in ``classes``; with several labels per row, bool (n, K): whether a row has each.
    weights : ndarray of shape (n,)
    classes : tuple
    groups : ndarray of shape (n,) or None
        Codes of groups of dependent rows; folds keep them together.
    n_rows : float or None
        Effective number of rows, if these represent more.
    given : ndarray of shape (n,) or None
        Position of each row among those given, if these differ.
    found : dict
        Cached results of fits to these rows that other fits need.

    Notes
    -----
    Parametric calibrators have a weak prior (``shrinkage``): a few additional rows, whose labels are those expected
    from the scores. With m such rows, spread over the n that were given, each row's label o becomes the target
    :math:`(n o + m p) / (n + m)`, where p are the probabilities that the scores represent. The fit is pulled towards
    unchanged scores, by m rows for any n: it is finite if scores separate the classes or a class has no rows, and the
    effect vanishes as m / n. For margins, which do not represent probabilities, the additional rows have the shares of
    the classes.

    References
    ----------
    Huang, Stein, Rubin & Kou (2020), *Catalytic prior distributions with application to generalized linear models*.
    """

    scores: Scores
    codes: AnyArray
    weights: FloatArray
    classes: tuple[Label, ...]
    groups: IntArray | None = None
    n_rows: float | None = None
    given: IntArray | None = None
    found: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, p: Predictions) -> CalibrationSample:
        """Make a sample of predictions (1-D: for the second class); relative weights are scaled to effective rows."""
        if p.weights is not None and not p.weights.all():
            p = p.subset(p.weights > 0)
        codes, classes = p.codes.astype(np.intp), p.classes
        if p.positive == 0:
            codes, classes = 1 - codes, classes[::-1]
        weights = ones_or(p.weights, p.n_samples)
        if not p.integral_weights:
            weights = weights * (p.effective_size / weights.sum())
        groups = None if p.together is None else group_codes(p.together)  # names of groups make no difference to folds
        return cls(Scores(p.probs, "probability"), codes, weights, classes, groups)

    @property
    def n_classes(self) -> int:
        """Number of classes K."""
        return len(self.classes)

    @property
    def total(self) -> float:
        """Sum of weights."""
        return float(self.weights.sum())

    def effective_rows(self, shrinkage: float | str = 0.0) -> float:
        """Effective number of rows: the sum of integer weights, or Kish's number for others; plus the prior's rows."""
        share = self.weights / self.total
        own = self.total if (self.weights == np.round(self.weights)).all() else 1 / float(share @ share)
        return (own if self.n_rows is None else self.n_rows) + self._prior_rows(shrinkage)

    def prior_share(self, shrinkage: float | str) -> float:
        """The prior's share of all rows, ``m / (n + m)``."""
        rows = self._prior_rows(shrinkage)
        return rows / (self.total + rows)

    def _prior_rows(self, shrinkage: float | str) -> float:
        rule = OF_MARGINS if self.scores.kind == "margin" else ROWS
        return float(rule if isinstance(shrinkage, str) else shrinkage)

    def class_shares(self) -> FloatArray:
        """Labels of the prior's rows for margins: smoothed shares of the classes, (K,), all above 0."""
        count = np.bincount(self.codes, weights=self.weights, minlength=self.n_classes)
        return np.asarray((count + 1) / (count.sum() + self.n_classes))

    def shrunk(self, targets: FloatArray, shrinkage: float | str, eps: float) -> FloatArray:
        """Targets for the second of two classes, including the prior's rows."""
        share = self.prior_share(shrinkage)
        if share == 0:
            return targets
        likely = self.class_shares()[1] if self.scores.kind == "margin" else expit(self.scores.log_odds(eps))
        return np.asarray(targets + share * (likely - targets))

    @classmethod
    def together(cls, parts: Sequence[CalibrationSample]) -> CalibrationSample:
        """Concatenate samples with the same classes and kind of scores."""
        scores = Scores(np.concatenate([one.scores.values for one in parts]), parts[0].scores.kind)
        codes, weights = (np.concatenate([getattr(one, name) for one in parts]) for name in ("codes", "weights"))
        known = [one.groups for one in parts if one.groups is not None]
        groups = np.concatenate(known) if len(known) == len(parts) else None
        return cls(scores, codes, weights, parts[0].classes, groups)

    def part(self, rows: AnyArray | slice) -> CalibrationSample:
        """Some of the rows."""
        groups, given = (None if each is None else each[rows] for each in (self.groups, self.given))
        kept = self.scores.part(rows), self.codes[rows], self.weights[rows]
        return CalibrationSample(*kept, self.classes, groups, given=given)

    @property
    def several(self) -> bool:
        """Whether rows may have several labels."""
        return self.codes.ndim == 2

    def happened(self, c: int) -> AnyArray:
        """Whether each row is of class c, or has label c."""
        return np.asarray(self.codes[:, c] if self.several else self.codes == c)

    def outcomes(self) -> FloatArray:
        """1.0 where the second class was observed, else 0.0."""
        return np.asarray(self.codes == 1, dtype=np.float64)


def read_sample(
    owner: Any, scores: Any, y: Any, sample_weight: Any = None, groups: Any = None, pos_label: Any = SECOND
) -> CalibrationSample:
    """Check the arguments of ``fit`` as measures check theirs, and set scikit-learn's attributes of features.

    The owner, a calibrator, gives the kind of scores (``input``) and their classes (``labels``). The label
    ``pos_label``, which 1-D scores are for, becomes the second class.
    """
    kind, labels = check_choice("input", owner.input, INPUTS), owner.labels
    check_target(owner, y)
    with called(**{ours: theirs for ours, theirs in NAMES.items() if ours != "pos_label" or pos_label is SECOND}):
        several = owner._takes_labels and np.ndim(y) == 2 and np.shape(y)[1] > 1
        given = GivenRows.of(y, scores, labels=labels, sample_weight=sample_weight, groups=groups, multilabel=several)
        values, truth = given.scores, given.truth if several else check_labels(given.truth)
        if several:
            (order, classes), codes = given.columns_of_labels(), truth
        elif values.ndim == 1:
            order, (codes, classes) = None, _of_two(truth, given, pos_label)
            if given.columns is not None:
                check_one_column(given.columns[0], classes, classes[1])
        else:
            if pos_label is not None and pos_label is not SECOND:
                raise ValueError(f"pos_label is for 1-D scores; these have {values.shape[1]} columns")
            order, codes, classes = encode_columns(truth, given.labels, given.columns, values.shape[1])
    _remember_features(owner, scores, given.columns, values, reset=True)
    owner.order_ = order
    values = _of_kind(values, given.eps, kind, several=several)
    values = values if order is None else values[:, order]
    codes = codes if several else codes.astype(np.intp, copy=False)
    weights = ones_or(given.weights, len(codes))
    whole = bool(weights.all())
    place = np.arange(len(codes)) if given.given is None and not whole else given.given
    sample = CalibrationSample(Scores(values, kind), codes, weights, classes, given.together, given=place)
    return sample if whole else sample.part(weights > 0)


def check_target(owner: Any, y: Any) -> None:
    """Raise an error if y is missing, and warn if it has one column, as scikit-learn's checks require."""
    if y is None:
        raise ValueError(f"y must be given: {type(owner).__name__} requires y to be passed, but the target y is None")
    if isinstance(y, np.ndarray) and not isinstance(y, np.matrix) and y.ndim == 2 and y.shape[1] == 1:
        column_or_1d(y, warn=True)


def read_scores(owner: BaseEstimator, scores: Any, kind: str) -> Scores:
    """Check the scores that a fitted calibrator is applied to."""
    with called(**NAMES):
        values, eps, columns = validation.read_scores(scores)
    if values.ndim == 1 and owner.n_features_in_ > 1:
        name, k = type(owner).__name__, owner.n_features_in_
        raise ValueError(
            f"scores must have {k} columns, as in fit: X has 1 features, but {name} is expecting {k} features as "
            "input. Reshape your data: scores.reshape(1, -1) if it is one row"
        )
    if kind != "probability":
        values = _of_kind(values, eps, kind)
    _remember_features(owner, scores, columns, values, reset=False)
    if kind == "probability":
        values = _of_kind(values, eps, kind, several=owner._several)
    order = owner.order_
    return Scores(values if order is None else values[:, order], kind)


class _Names:
    """Column names by the interchange protocol, which Polars deprecates in its own frames."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def __dataframe__(self) -> Self:
        return self

    def column_names(self) -> tuple[str, ...]:
        return self.names


def _remember_features(
    owner: BaseEstimator, scores: Any, columns: tuple[str, ...] | None, values: FloatArray, *, reset: bool
) -> None:
    """Set or compare the names and the number of columns, as scikit-learn requires."""
    named = scores if _BY_NARWHALS or columns is None or hasattr(scores, "iloc") else _Names(columns)
    _check_feature_names(owner, None if columns is None else named, reset=reset)
    _check_n_features(owner, values[:, None] if values.ndim == 1 else values, reset=reset)


def _of_two(truth: AnyArray, given: GivenRows, pos_label: Any) -> tuple[IntArray, tuple[Label, ...]]:
    """Codes and classes of 1-D scores, which are for the second class."""
    if pos_label is SECOND:
        _, codes, classes = encode_columns(truth, _two(truth, given), None, 2)
        return codes, classes
    if pos_label is None and given.labels is not None:
        pos_label = check_label_list(given.labels, 2)[1]
    codes, classes, positive = encode_binary(truth, given.labels, pos_label)
    return (codes, classes) if positive == 1 else (1 - codes.astype(np.intp), classes[::-1])


def _two(truth: AnyArray, given: GivenRows) -> tuple[Label, ...]:
    """Classes of 1-D scores: the labels, or the sorted observed ones; scores are for the second."""
    if given.labels is not None:
        return check_label_list(given.labels, 2)
    seen = tuple(np.unique(truth).tolist())
    if len(seen) == 2:
        if set(seen) not in ({0, 1}, {-1, 1}) and given.columns is None:
            warnings.warn(
                f"1-D scores are taken as those of label {received(seen[1])}, the last of the sorted labels: pass "
                f"labels=[{some(seen)}] to confirm this, or labels=[{some(seen[::-1])}]",
                LabelWarning,
                stacklevel=2,
            )
        return seen
    if len(seen) == 1 and (isinstance(seen[0], bool) or seen[0] in (0, 1)):
        return (False, True) if isinstance(seen[0], bool) else (0, 1)
    if len(seen) == 1:
        raise ValueError(f"y has one class only ({received(seen[0])}), but two are needed: pass labels=[...] with both")
    raise ValueError(
        f"Only binary classification is possible with 1-D scores, which are of two classes; y has {len(seen)} "
        "classes: pass scores with one column per class"
    )


def _of_kind(values: FloatArray, eps: float, kind: str, *, several: bool = False) -> FloatArray:
    """Check scores: probabilities in [0, 1], with rows of sum 1 unless of several labels, or any real numbers."""
    with called(**NAMES):
        if kind != "probability":
            check_finite(values, f"be finite numbers within ± {LARGEST:g}, without NaN or inf", LARGEST)
            return values
        try:
            return check_probabilities(values, eps, float(values.shape[1]) if several else None)
        except ValueError as error:
            raise ValueError(f"{error}; for scores of another kind pass input='logit' or input='margin'") from None
