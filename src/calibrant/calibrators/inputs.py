"""Input of calibrators: scores of any kind and labels, judged once and kept in their original scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names, _check_n_features, _check_sample_weight, validate_data

from ..data.checks import check_choice
from ..data.convert import to_array
from ..data.dependence import group_codes
from ..data.labels import check_label_list, encode_columns
from ..data.predictions import Predictions
from ..data.types import AnyArray, FloatArray, IntArray, Label
from ..data.validation import SUM_TOLERANCE, check_weight_range, groups_of_rows
from ..data.weights import ones_or

INPUTS = ("probability", "logit", "margin")
#: Rows of the prior by ``shrinkage="auto"``, and of margins: shares of classes tell less than probabilities.
ROWS, OF_MARGINS = 8.0, 0.5


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores in their original scale.

    Attributes
    ----------
    values : ndarray of shape (n,) or (n, K)
        1-D: of the second class. float32 or float64.
    kind : {"probability", "logit", "margin"}
    """

    values: FloatArray
    kind: str

    @property
    def n_rows(self) -> int:
        """Rows."""
        return int(self.values.shape[0])

    @property
    def n_columns(self) -> int:
        """Number of classes: 2 for 1-D scores."""
        return 2 if self.values.ndim == 1 else int(self.values.shape[1])

    def part(self, rows: AnyArray | slice) -> Scores:
        """Some of the rows."""
        return Scores(self.values[rows], self.kind)

    def of_positive(self) -> FloatArray:
        """One score per row, which grows with the second class: its probability, or the difference of two scores."""
        v = self.values
        if v.ndim == 1:
            return v.astype(np.float64)
        if v.shape[1] != 2:
            raise ValueError(f"scores must have one column or two for a binary calibrator; got {v.shape[1]} columns")
        return np.asarray(v[:, 1] if self.kind == "probability" else v[:, 1] - v[:, 0], dtype=np.float64)

    def log_odds(self, eps: float) -> FloatArray:
        """``log p/(1-p)`` of the second class, (n,); probabilities are clipped to [eps, 1 - eps]."""
        if self.kind != "probability":
            return self.of_positive()
        p = np.clip(self.values.astype(np.float64), eps, 1 - eps)
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
        return np.asarray(np.log(np.maximum(both, both.dtype.type(eps))))

    def kept_inside(self, p: FloatArray, eps: float) -> FloatArray:
        """Calibrated probabilities that are not exactly 0 or 1: the map cannot tell these from eps and 1 - eps."""
        if self.kind != "probability":
            return p
        if p.ndim == 1:
            return np.clip(p, eps, 1 - eps)
        rows = p.min(axis=1) < eps
        p[rows] = np.maximum(p[rows], eps)
        p[rows] /= p[rows].sum(axis=1, keepdims=True)
        return p

    def log_probabilities(self, eps: float) -> FloatArray:
        """Logarithms of class probabilities, (n, K), float64; of probabilities clipped to eps."""
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
        Index of the observed class in ``classes``.
    weights : ndarray of shape (n,)
    classes : tuple
    groups : ndarray of shape (n,) or None
        Codes of rows that depend on each other; folds keep them together.
    n_rows : float or None
        Effective number of rows, where these stand for more.
    found : dict
        Results of fits to these rows that other fits need.

    Notes
    -----
    Parametric calibrators have a weak prior (``shrinkage``): a few rows more, whose labels are what the scores
    themselves expect. With m such rows, spread over the n that were given, each row's label o becomes the target
    :math:`(n o + m p) / (n + m)`, p the probabilities that the scores stand for. The fit is pulled towards leaving the
    scores alone, by m rows whatever n is: it is finite where scores separate the classes or a class has no rows, and
    its effect vanishes as m / n. For margins, which stand for no probabilities, the rows have the shares of the
    classes.

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
    found: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, p: Predictions) -> CalibrationSample:
        """From predictions; a single column is of the second class. Relative weights add up to effective rows."""
        if p.weights is not None and not p.weights.all():
            p = p.subset(p.weights > 0)
        codes, classes = p.codes.astype(np.intp), p.classes
        if p.positive == 0:
            codes, classes = 1 - codes, classes[::-1]
        weights = ones_or(p.weights, p.n_samples)
        if not p.integral_weights:
            weights = weights * (p.effective_size / weights.sum())
        groups = None if p.groups is None else group_codes(p.groups)  # names of groups make no difference to folds
        return cls(Scores(p.probs, "probability"), codes, weights, classes, groups)

    @property
    def n_classes(self) -> int:
        """Classes K."""
        return len(self.classes)

    @property
    def total(self) -> float:
        """Sum of weights."""
        return float(self.weights.sum())

    def effective_rows(self, shrinkage: float | str = 0.0) -> float:
        """Effective number of relative weights (Kish), or sum of whole ones; plus the prior's rows."""
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
        """Labels of the prior's rows where scores are margins: the shares of the classes, (K,), none of them 0."""
        count = np.bincount(self.codes, weights=self.weights, minlength=self.n_classes)
        return np.asarray((count + 1) / (count.sum() + self.n_classes))

    def shrunk(self, targets: FloatArray, shrinkage: float | str, eps: float) -> FloatArray:
        """Targets of the second of two classes, with the prior's rows among them."""
        share = self.prior_share(shrinkage)
        if share == 0:
            return targets
        likely = self.class_shares()[1] if self.scores.kind == "margin" else expit(self.scores.log_odds(eps))
        return np.asarray(targets + share * (likely - targets))

    @classmethod
    def together(cls, parts: Sequence[CalibrationSample]) -> CalibrationSample:
        """Rows of several samples of the same classes and kind of scores."""
        scores = Scores(np.concatenate([one.scores.values for one in parts]), parts[0].scores.kind)
        codes, weights = (np.concatenate([getattr(one, name) for one in parts]) for name in ("codes", "weights"))
        known = [one.groups for one in parts if one.groups is not None]
        groups = np.concatenate(known) if len(known) == len(parts) else None
        return cls(scores, codes, weights, parts[0].classes, groups)

    def part(self, rows: AnyArray | slice) -> CalibrationSample:
        """Some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        return CalibrationSample(self.scores.part(rows), self.codes[rows], self.weights[rows], self.classes, groups)

    def outcomes(self) -> FloatArray:
        """1.0 where the second class was observed."""
        return np.asarray(self.codes == 1, dtype=np.float64)


def read_sample(owner: Any, scores: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> CalibrationSample:
    """Judge the arguments of ``fit``, and set the attributes of features that scikit-learn needs.

    The owner, a calibrator, gives the kind of scores (``input``) and their classes (``labels``).
    """
    kind, labels = check_choice("input", owner.input, INPUTS), owner.labels
    columns = _names(scores)
    values, y = _validated(owner, scores, y, fitting=True)
    with np.errstate(invalid="ignore"):  # labels beyond integers, which are refused below
        check_classification_targets(y)
    weights = _weights(sample_weight, values)
    if values.ndim == 1 or values.shape[1] == 1:
        values = values.reshape(-1)
        order, codes, classes = _encoded(y, _two(y, labels), None, 2)
    else:
        order, codes, classes = _encoded(y, labels, columns, values.shape[1])
    owner.order_ = order
    values = _of_kind(values if order is None else values[:, order], kind)
    together = groups_of_rows(groups, len(codes), weights)
    sample = CalibrationSample(Scores(values, kind), codes, weights, classes, together)
    return sample if weights.all() else sample.part(weights > 0)


def read_scores(owner: BaseEstimator, scores: Any, kind: str) -> Scores:
    """Judge the scores that a fitted calibrator is applied to."""
    values = _validated(owner, scores, None, fitting=False)[0]
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    order = owner.order_
    return Scores(_of_kind(values if order is None else values[:, order], kind), kind)


def _validated(owner: BaseEstimator, scores: Any, y: Any, *, fitting: bool) -> tuple[AnyArray, AnyArray]:
    """Finite numbers of one or two dimensions; remembers (fitting) or compares names and number of columns."""
    scores, y = _as_array(scores, "scores"), _as_array(y, "y")
    kinds = [np.float64, np.float32]
    about: dict[str, Any] = {"ensure_2d": False, "dtype": kinds, "reset": fitting, "ensure_all_finite": False}
    if fitting:
        values, y = validate_data(owner, X=scores, y=y, **about)
    else:
        values = validate_data(owner, X=scores, **about)
    _finite(values, "scores")
    if values.ndim == 1 and not fitting and owner.n_features_in_ > 1:
        raise ValueError(
            f"scores must have {owner.n_features_in_} columns, as in fit; got a 1-D array. Reshape your data: "
            "scores.reshape(1, -1) if it is one row"
        )
    if values.ndim == 1:
        _check_n_features(owner, values[:, None], reset=fitting)
    else:
        if values.shape[1] == 0:
            raise ValueError(f"Found array with 0 feature(s) (shape={values.shape}) while a minimum of 1 is required.")
        _check_feature_names(owner, scores, reset=fitting)
        _check_n_features(owner, values, reset=fitting)
    return values, y


def _as_array(values: Any, name: str) -> Any:
    """Tensors and series that scikit-learn does not read, as arrays; others as they are."""
    foreign = hasattr(values, "detach") or type(values).__module__.startswith(("pyarrow", "polars.series"))
    return to_array(values, name)[0] if foreign else values


def _finite(values: AnyArray, name: str) -> None:
    """ValueError naming the first row with a number missing or infinite."""
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argmax(~finite.reshape(len(values), -1).all(axis=1)))
        shown = values[row].item() if values[row].size == 1 else values[row]
        raise ValueError(f"{name} must be finite numbers, without NaN or inf; row {row} is {shown!s}")


def _names(scores: Any) -> tuple[str, ...] | None:
    """Column names of a frame."""
    if isinstance(scores, np.ndarray) or not hasattr(scores, "columns"):
        return None
    return to_array(scores, "scores")[1]


def _weights(sample_weight: Any, values: AnyArray) -> FloatArray:
    if sample_weight is not None and np.asarray(sample_weight).dtype.kind == "f":
        _finite(np.asarray(sample_weight), "sample_weight")
    weights = _check_sample_weight(sample_weight, values, dtype=np.float64, ensure_non_negative=True)
    check_weight_range(np.asarray(weights))
    return np.asarray(weights)


def _two(y: AnyArray, labels: Any) -> tuple[Label, ...]:
    """Classes of 1-D scores: the sorted two; scores are of the second."""
    if labels is not None:
        return check_label_list(labels, 2)
    seen = tuple(np.unique(y).tolist())
    if len(seen) == 2:
        return seen
    if len(seen) == 1 and (isinstance(seen[0], bool) or seen[0] in (0, 1)):
        return (False, True) if isinstance(seen[0], bool) else (0, 1)
    if len(seen) == 1:
        raise ValueError(f"y has one class only ({seen[0]!r}), but two are needed: pass labels=[...] with both")
    raise ValueError(
        f"Only binary classification is possible with 1-D scores, which are of two classes; y has {len(seen)} "
        "classes: pass scores with one column per class"
    )


def _encoded(
    y: AnyArray, labels: Any, columns: tuple[str, ...] | None, k: int
) -> tuple[list[int] | None, AnyArray, tuple[Label, ...]]:
    """As the rest of the library reads labels, in the words of ``fit``."""
    try:
        return encode_columns(y, labels, columns, k)
    except (ValueError, TypeError) as error:
        raise type(error)(str(error).replace("y_true", "y").replace("y_prob", "scores")) from error


def _of_kind(values: AnyArray, kind: str) -> FloatArray:
    """Probabilities in [0, 1] whose rows sum to 1, or any real scores."""
    if kind != "probability":
        return values
    tolerance = SUM_TOLERANCE[np.dtype(values.dtype)]
    low, high = float(values.min()), float(values.max())
    if low < -1e-6 or high > 1 + 1e-6:
        row = int(np.argmax(((values < -1e-6) | (values > 1 + 1e-6)).reshape(len(values), -1).any(axis=1)))
        raise ValueError(
            f"scores must be probabilities in [0, 1]; row {row} is {values[row]!s}: pass input='logit' or "
            "input='margin' for others"
        )
    values = np.clip(values, 0, 1)
    if values.ndim == 2:
        total = values.sum(axis=1, dtype=np.float64)
        row = int(np.argmax(np.abs(total - 1)))
        if not abs(total[row] - 1) <= tolerance:
            raise ValueError(
                f"rows of scores must sum to 1; row {row} sums to {total[row]:.9g}: normalise them, or pass "
                "input='logit' or input='margin'"
            )
    return values
