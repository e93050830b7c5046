"""`Calibrator`: base class of all calibrators, a scikit-learn classifier whose features are scores."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import partial
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..data import notebook, rooms_below
from ..data.checks import check_choice, check_number, check_random_state, check_type, is_real, received
from ..data.docs import Documented
from ..data.fields import Field, Number, Numbers, Plain, Sizes
from ..data.progress import working
from ..data.result import short
from ..data.types import AnyArray, FloatArray
from ..exceptions import CalibrantWarning
from .inputs import CalibrationSample, Scores, read_sample, read_scores
from .newton import Solution

#: Probabilities are clipped to [EPS, 1 - EPS] before a logarithm is taken.
EPS = 1e-12
Method = TypeVar("Method", bound=Callable[..., Any])
#: Fitted calibrators with scores and further features.
FittedWithScores: TypeAlias = "Sequence[tuple[Any, Scores, Mapping[str, Any]]]"
#: Scores of two classes from probabilities, by the kind of scores, where a map can be drawn over them.
_DRAWN = {"probability": lambda p: p, "logit": lambda p: logit(np.clip(p, EPS, 1 - EPS))}


def parameter(default: Any, check: Callable[[str, Any], Any]) -> Any:
    """A parameter of a calibrator: its default, and ``check(name, value)``, which raises if the value is invalid."""
    return field(default=default, metadata=checked_by(check))


def checked_by(check: Callable[[str, Any], Any]) -> dict[str, Any]:
    """Metadata of a required parameter: its check."""
    return {"check": check}


def check_parameters(owner: Any) -> None:
    """Check the parameters of a calibrator or a model, each by its own check."""
    for one in fields(owner):
        if check := one.metadata.get("check"):
            check(one.name, getattr(owner, one.name))


@dataclass(frozen=True)
class Fitted(Field):
    """A fitted calibrator, for the same classes or for one class against the rest."""

    binary: bool = False

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Check the type and the number of classes."""
        one = isinstance(value, ClassifierMixin) and hasattr(value, "classes_")
        if not one or (self.binary and not hasattr(value, "_map")):
            raise ValueError(f"{name} must be a fitted calibrator{' of two classes' if self.binary else ''}")
        wanted = 2 if self.binary else sizes["K"]
        if len(value.classes_) != wanted:
            raise ValueError(f"{name} must have {wanted} classes; it has {len(value.classes_)}")


@dataclass(frozen=True)
class Later(Field):
    """An attribute that earlier versions did not save: it may be None."""

    of: Field

    def check(self, name: str, value: Any, sizes: Sizes) -> None:
        """Check the value unless it is None."""
        if value is not None:
            self.of.check(name, value, sizes)


#: Attributes of an iterative fit.
STEPS = {"gradient_norm_": Number(0), "n_iter_": Number(0, whole=True)}
PROBABILITIES = (0.0, 1.0)


@dataclass(eq=False, repr=False)
class Calibrator(Documented, ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base class of calibrators, which map a classifier's scores to probabilities.

    Subclasses define ``_fit(sample)``, which sets fitted attributes, and ``_probabilities(scores)``, of shape (n, K).
    Their parameters are fields of a dataclass, each with its check (:func:`parameter`); ``_check_parameters`` adds
    conditions that involve several of them.

    Parameters
    ----------
    input : {"probability", "logit", "margin"}, default "probability"
        The kind of scores. ``"probability"``: 1-D, for the second class, or 2-D with rows that sum to 1.
        ``"logit"``: log odds (1-D), or inputs of a softmax (2-D). ``"margin"``: any real scores, such as those of
        ``decision_function``.
    labels : sequence of K labels, optional
        The labels, in the order of the columns of the scores; 1-D scores are for the second label. Default: the column
        names of a data frame if they are the labels, else the sorted unique labels.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, in column order.
    prior_ : ndarray of shape (K,)
        Weighted share of each class among the rows passed to ``fit``.
    n_features_in_ : int
        Number of columns of the scores.
    feature_names_in_ : ndarray, of frames with names
        Names of the columns of the scores.

    See Also
    --------
    calibrant.calibrators.BinaryCalibrator : Base class for two classes.
    calibrant.CalibratedModel : A classifier together with its calibrator.
    calibrant.AutoCalibrator : The recommended first choice.

    Examples
    --------
    >>> from calibrant.calibrators import Calibrator, Identity, PlattScaling
    >>> [isinstance(one, Calibrator) for one in (Identity(), PlattScaling())]
    [True, True]
    """

    # Scores take the place of X: a pipeline must not route them as metadata.
    __metadata_request__fit: ClassVar[Mapping[str, Any]] = {"scores": UNUSED}
    __metadata_request__predict: ClassVar[Mapping[str, Any]] = {"scores": UNUSED}
    __metadata_request__predict_proba: ClassVar[Mapping[str, Any]] = {"scores": UNUSED}
    __metadata_request__transform: ClassVar[Mapping[str, Any]] = {"scores": UNUSED}
    _: KW_ONLY
    input: str = "probability"
    labels: Any = None
    #: Fitted attributes in addition to those of every calibrator, with their types: a saved calibrator must have them.
    _state: ClassVar[Mapping[str, Field]] = {}
    #: Whether plots of the map show its ``predict_interval``.
    _draws_interval: ClassVar[bool] = False

    @property
    def _several(self) -> bool:
        """Whether the map was fitted to rows with several labels each."""
        return bool(vars(self).get("several_", False))

    @property
    def _takes_labels(self) -> bool:
        """Whether ``y`` may be of shape (n, L), with several labels per row."""
        return False

    @property
    def _parts_rows(self) -> bool:
        """Whether rows are split into folds or halves, so that a weighted row cannot stand for several rows."""
        given = (getattr(self, name, ()) for name in ("calibrator", "calibrators"))
        held = [calibrator_of(one, 2) for v in given for one in (v if isinstance(v, (list, tuple)) else [v])]
        return any(one._parts_rows for one in held if isinstance(one, Calibrator))

    @property
    def _merges(self) -> bool:
        """Whether calibrators fitted to folds are merged by a rule of their own, ``_merged(members, weights)``."""
        return False

    def fit(self, scores: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the map.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, K)
            Scores for rows that the classifier was not trained on, of the kind given by ``input``.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Non-negative weights; integer weights are equivalent to repeated rows.
        """
        self._check_parameters()
        with working(f"{type(self).__name__}.fit"):
            return self._fit_checked(read_sample(self, scores, y, sample_weight))

    def _fit_sample(self, sample: CalibrationSample, **more: Any) -> Self:
        """Fit to rows that were checked already, with columns in the order of their classes.

        ``more`` is the output of :meth:`_from_features` for these rows.
        """
        self.order_ = None
        self.n_features_in_ = 1 if sample.scores.values.ndim == 1 else sample.scores.n_columns
        return self._fit_checked(sample, **more)

    def _fit_each(self, samples: Sequence[CalibrationSample], more: Sequence[Mapping[str, Any]]) -> list[Calibrator]:
        """Clones fitted to several samples, which have no row in common: scores of models trained on other rows."""
        return [clone(self)._fit_sample(sample, **m) for sample, m in zip(samples, more, strict=True)]

    def _fit_checked(self, sample: CalibrationSample, **more: Any) -> Self:
        self.classes_ = np.asarray(sample.classes)
        if self._several:
            del self.several_
        if sample.several:
            self.several_: bool = True
        else:
            mass = np.bincount(sample.codes, sample.weights, minlength=sample.n_classes)
            self.prior_: FloatArray = mass / mass.sum()
        self._check(sample)
        self._fit(sample, **more)
        return self

    def predict_proba(self, scores: Any) -> FloatArray:
        """Predict calibrated probabilities (float64), with columns in the order of ``classes_``.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, K)
            Scores, of the kind given by ``input``.

        Returns
        -------
        ndarray of shape (n, K)
            Probabilities of the K classes, one row per row of ``scores``.
        """
        check_is_fitted(self)
        return self._probabilities(read_scores(self, scores, self.input))

    def _probabilities_of(self, scores: Scores, **more: Any) -> FloatArray:
        """Predict probabilities from scores that were checked already, with columns in the order of the classes.

        ``more`` is the output of :meth:`_from_features`.
        """
        return self._probabilities(scores)

    def predict(self, scores: Any) -> AnyArray:
        """Predict the most probable class of each row; ties go to the first class.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, K)
            Scores, of the kind given by ``input``.

        Returns
        -------
        ndarray of shape (n,)
            Predicted labels.
        """
        best = self.predict_proba(scores).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def transform(self, scores: Any) -> FloatArray:
        """Return calibrated probabilities, for use in a pipeline (as a data frame with ``set_output``).

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, K)
            Scores, of the kind given by ``input``.

        Returns
        -------
        ndarray of shape (n, K)
            The probabilities that :meth:`predict_proba` returns.
        """
        return self.predict_proba(scores)

    def _keep(self, found: Solution, *, warn: bool = True) -> FloatArray:
        """Parameters at which a fit ended; stores its convergence diagnostics, and warns if it did not converge."""
        if warn:
            found.warn(type(self).__name__)
        self.gradient_norm_, self.n_iter_ = found.gradient_norm, found.n_iter
        return found.x

    def _from_features(self, X: Any) -> dict[str, Any]:
        """Features of a model that ``fit`` and ``predict_proba`` need in addition to its scores; mostly none."""
        return {}

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Return the names of the columns of :meth:`transform`: ``probability_<class>``.

        Parameters
        ----------
        input_features : sequence of str, optional
            Not used; scikit-learn passes it.

        Returns
        -------
        ndarray of shape (K,)
            One name per class.
        """
        check_is_fitted(self)
        return np.asarray([f"probability_{label}" for label in self.classes_], dtype=object)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """HTML for notebooks: scikit-learn's diagram, or once fitted the map and its fitted parameters."""
        bundle = dict(super()._repr_mimebundle_(**options))
        if "text/html" in bundle and hasattr(self, "classes_"):
            given = {name: repr(value) for name, value in self.get_params(deep=False).items()}
            table = notebook.table({"parameter": [*given], "value": [*given.values()]})
            parts = self._figure_html(), self._words_html(), notebook.folded("parameters", table)
            bundle["text/html"] = notebook.fragment(*parts)  # without script, unlike scikit-learn's diagram
        return bundle

    def _figure_html(self) -> str:
        """A plot of the map for two classes, if matplotlib is installed."""
        if len(self.classes_) != 2 or getattr(self, "input", "probability") not in _DRAWN:
            return ""
        nodes = np.linspace(0, 1, 201)
        first, second = _DRAWN[self.input](1 - nodes), _DRAWN[self.input](nodes)
        given = second if self.n_features_in_ == 1 else in_column_order(self, np.column_stack([first, second]))
        mapped = predict_unnamed(self, given)[:, 1]
        try:
            with notebook.for_page():
                drawn = rooms_below.display("CalibrationMapDisplay")(nodes, {type(self).__name__: mapped})
                return str(drawn.plot().to_svg())
        except ImportError:
            return ""

    def _words_html(self) -> str:
        """The calibrator's name and fitted numbers."""
        found = {
            name: value
            for name, value in vars(self).items()
            if name.endswith("_")
            and not name.startswith(("_", "classes_", "covariance_", "n_features_in_", "prior_"))
            and np.size(value) <= 12
        }
        numbers = {k: _shown(np.asarray(v, float)) for k, v in found.items() if _is_numeric(v)}
        rows = notebook.table({"found": list(numbers), "value": [str(v) for v in numbers.values()]}) if numbers else ""
        lead = notebook.paragraph(f"{type(self).__name__}, fitted; classes {short(self.classes_.tolist())}")
        return lead + rows

    def _check(self, sample: CalibrationSample) -> None:
        """Check parameters and scores before anything is fitted."""
        self._check_parameters()
        self._check_scores(sample)

    def _check_scores(self, sample: CalibrationSample) -> None:
        """Check the kind and the shape of scores."""

    def _check_parameters(self) -> None:
        """Check parameters."""
        if isinstance(self.labels, Iterator):
            raise TypeError(
                f"labels must be a sequence of labels, which can be read again; got {received(self.labels)}"
            )
        check_parameters(self)

    def _check_state(self) -> None:
        """Raise ValueError unless all fitted attributes are valid and consistent."""
        held, sizes = dict(vars(self)), dict[str, int]()
        _check_common(held, sizes)
        for name, meaning in self._state.items():
            meaning.check(name, held[name], sizes)
        self._check_fitted()

    def _check_fitted(self) -> None:
        """Check consistency beyond sizes."""

    @abstractmethod
    def _fit(self, sample: CalibrationSample) -> None:
        """Set fitted attributes."""

    @abstractmethod
    def _probabilities(self, scores: Scores) -> FloatArray:
        """Calibrated probabilities, (n, K)."""


class BinaryCalibrator(Calibrator):
    """Base class of calibrators for two classes, with 1-D or two-column scores.

    Subclasses define ``_map(scores)``: probabilities of the second class, (n,).

    See Also
    --------
    calibrant.calibrators.OneVsRest : Extends a binary calibrator to K classes.
    calibrant.calibrators.Calibrator : Base class for any number of classes.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import BinaryCalibrator
    >>> class Halfway(BinaryCalibrator):
    ...     def _fit(self, sample):
    ...         pass
    ...
    ...     def _map(self, scores):
    ...         return (scores.of_positive() + 0.5) / 2
    >>> Halfway().fit([0.1, 0.9], [0, 1]).predict_proba([0.8])[:, 1].round(2).tolist()
    [0.65]
    """

    def _check_scores(self, sample: CalibrationSample) -> None:
        if sample.scores.n_columns != 2:
            raise ValueError(
                f"Only binary classification is supported by {type(self).__name__}, with scores of two classes; got "
                f"{sample.scores.n_columns} columns: use OneVsRest({type(self).__name__}(...))"
            )

    @abstractmethod
    def _map(self, scores: Scores) -> FloatArray:
        """Probabilities of the second class."""

    def _probabilities(self, scores: Scores) -> FloatArray:
        p = np.clip(self._map(scores), 0.0, 1.0)
        return np.column_stack([1 - p, p])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.one_d_array = True
        return tags


def needs_fitted(attribute: str) -> Callable[[Method], Method]:
    """Make a method available unless its calibrator was saved by an earlier version, without the attribute."""
    found: Callable[[Method], Method] = available_if(lambda self: getattr(self, attribute, True) is not None)
    return found


def average(members: FittedWithScores, weights: FloatArray) -> FloatArray:
    """Probabilities (n, K) of fitted calibrators: merged by their own rule if all share one, else by weighted mean."""
    first = members[0][0]
    if all(type(one) is type(first) and one._merges for one, _, _ in members):
        return np.asarray(first._merged(members, weights))
    each = zip(weights, members, strict=True)
    return np.asarray(sum(w * one._probabilities_of(scores, **more) for w, (one, scores, more) in each))


def calibrator_of(calibrator: Any, n_classes: int) -> Any:
    """The calibrator that a name stands for, for ``n_classes`` classes; any other value unchanged."""
    return rooms_below.calibrator(calibrator, n_classes) if isinstance(calibrator, str) else calibrator


def fitted_to(calibrator: str | Calibrator, sample: CalibrationSample) -> Calibrator:
    """A clone fitted to a sample, whose labels and kind of scores replace those of the calibrator."""
    chosen = clone(calibrator_of(calibrator, sample.n_classes))
    one: Calibrator = chosen.set_params(input=sample.scores.kind, labels=list(sample.classes))
    return one._fit_sample(sample)


#: First words of the warnings for rows without the subgroups or features that a calibrator was fitted with.
WITHOUT_SUBGROUPS = "SubgroupCalibrator was fitted with subgroups"
WITHOUT_FEATURES = "SegmentCalibrator was fitted with features"


def predict_unnamed(calibrator: Calibrator, scores: FloatArray, response: str = "predict_proba") -> FloatArray:
    """Response to an array, without scikit-learn's warning that the calibrator was fitted with column names."""
    with warnings.catch_warnings():
        # An array has neither names nor subgroups to be checked, and callers know its columns.
        warnings.filterwarnings("ignore", message="X does not have valid feature names", category=UserWarning)
        for words in (WITHOUT_SUBGROUPS, WITHOUT_FEATURES):
            warnings.filterwarnings("ignore", message=words, category=CalibrantWarning)
        return np.asarray(getattr(calibrator, response)(scores))


def in_column_order(calibrator: Calibrator, p: FloatArray) -> FloatArray:
    """Reorder probabilities (n, K) from the order of ``classes_`` to that of the columns passed to ``fit``."""
    order = calibrator.order_
    if order is None:
        return p
    out = np.empty_like(p)
    out[:, order] = p
    return out


#: Check of the value at which probabilities are clipped.
check_eps = partial(check_number, above=0, below=0.5)


def check_not_negative(name: str, value: Any) -> float:
    """Check that a value is a finite number of at least 0."""
    if not is_real(value):
        raise TypeError(f"{name} must be a number >= 0; got {received(value)}")
    if not 0 <= value < np.inf:
        raise ValueError(f"{name} must be a finite number >= 0; got {received(value)}")
    return float(value)


def check_seed(name: str, value: Any) -> None:
    """Check ``random_state``."""
    check_random_state(value)


def check_shrinkage(name: str, value: Any) -> None:
    """Check ``shrinkage``: "auto", or a number of at least 0."""
    if isinstance(value, str):
        check_choice(name, value, ("auto",))
    else:
        check_number(name, check_not_negative(name, value), most=1e12)


def check_calibrator(name: str, value: Any, *, binary: bool = False, optional: bool = False) -> None:
    """Check a calibrator that is part of another."""
    wanted = "a binary calibrator such as PlattScaling()" if binary else "a calibrator such as TemperatureScaling()"
    if not (optional and value is None):
        wanted = f"{'None or ' * optional}{wanted}, or the name of one"
        check_type(name, calibrator_of(value, 2), BinaryCalibrator if binary else Calibrator, wanted)


def check_calibrators(name: str, value: Any) -> None:
    """Check a list of calibrators."""
    if not isinstance(value, (list, tuple)) or not value:
        raise TypeError(f"{name} must be a list of one or more calibrators; got {received(value)}")
    for one in value:
        check_calibrator(name, one)


def _check_common(fitted: dict[str, Any], sizes: Sizes) -> None:
    """Check the attributes that every fitted calibrator has."""
    classes = fitted["classes_"]
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or not classes.size:
        raise ValueError("classes_ must be an array of labels")
    if len(set(classes.tolist())) != classes.size:
        raise ValueError("classes_ must be distinct labels")
    k = sizes["K"] = classes.size
    columns = fitted["n_features_in_"]
    Number(1, whole=True).check("n_features_in_", columns, sizes)
    if columns not in ((1, k) if k <= 2 else (k,)):
        raise ValueError(f"n_features_in_ must match {k} classes; got {columns}")
    order = fitted["order_"]
    if order is not None:
        Numbers(("K",), 0, k - 1).check("order_", order, sizes)
        if order.dtype.kind != "i" or sorted(order.tolist()) != list(range(k)):
            raise ValueError(f"order_ must contain each of 0 … {k - 1} once")
    Plain(bool).check("several_", fitted.get("several_", False), sizes)
    if "prior_" in fitted:
        Numbers(("K",), 0, 1, total=1).check("prior_", fitted["prior_"], sizes)
    names = fitted.get("feature_names_in_")
    if names is not None and (not isinstance(names, np.ndarray) or names.shape != (columns,)):
        raise ValueError(f"feature_names_in_ must be {columns} name(s)")


def _is_numeric(value: Any) -> bool:
    return value is not None and np.asarray(value).dtype.kind in "fiu"


def _shown(values: FloatArray) -> Any:
    """Numbers with four decimals, small ones with three significant digits."""
    small = np.array([float(f"{v:.3g}") for v in values.ravel()]).reshape(values.shape)
    return np.where(np.abs(values) < 0.1, small, np.round(values, 4)).tolist()
