"""`CalibratedModel`: a classifier and a calibrator behind it, fitted to scores of rows that it never saw."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import StratifiedShuffleSplit, check_cv
from sklearn.utils import indexable
from sklearn.utils._indexing import _safe_indexing
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, _routing_enabled, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _check_y, check_is_fitted, has_fit_parameter

from ..data.checks import check_bool, check_choice, check_type
from ..data.progress import counted, working
from ..data.types import AnyArray, FloatArray
from .base import Calibrator, average, calibrator_of, check_parameters, parameter
from .combined import Mixture
from .inputs import read_sample, read_scores
from .multiclass import for_classes
from .select import AutoCalibrator


def _check_calibrator(name: str, value: Any) -> None:
    if not (isinstance(value, str) and value == "auto"):
        check_type(name, calibrator_of(value, 2), Calibrator, "'auto', a calibrator such as PlattScaling() or its name")


def _check_cv(name: str, value: Any) -> None:
    if isinstance(value, str):
        check_choice(name, value, ("prefit", "holdout"), instead="an int, a splitter or ")


@dataclass(eq=False, repr=False)
class CalibratedModel(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier whose probabilities are calibrated.

    Parameters
    ----------
    estimator : scikit-learn classifier
        The classifier, with ``predict_proba`` or ``decision_function``.
    calibrator : Calibrator, its name such as "isotonic", or "auto", default "auto"
        ``"auto"``: :class:`AutoCalibrator`, with the identity among the candidates; with several folds there is one
        choice for all, in which a fit to one fold is judged on the rows of the next. A binary calibrator is applied to
        several classes by :class:`OneVsRest`. ``SubgroupCalibrator(by=COLUMN)`` reads its subgroups from a column of X.
    cv : int, splitter, "prefit" or "holdout", default 5
        Rows for the calibrator. Folds: each is scored by a model fitted to the others. ``"holdout"``: a quarter of the
        rows, stratified; the model is fitted to the rest. ``"prefit"``: ``estimator`` is already fitted, on rows other
        than those given to ``fit``.
    ensemble : bool, default True
        With folds. True: one model and calibrator per fold, whose probabilities are averaged (Platt's scheme;
        Venn-Abers predictors by their own rule, see :class:`VennAbers`): more accurate, but k times as large and slow.
        False: one calibrator fitted to the scores of all folds, applied to a final model fitted to all rows, which is
        slightly sharper than the models whose scores were calibrated.
    response : {"auto", "predict_proba", "decision_function"}, default "auto"
        Input of the calibrator: probabilities if the classifier has them, else margins.
    random_state : int, RandomState or None, default 0
        Seed of the choice of the rows that are held out.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, in column order.
    pairs_ : list of (classifier, calibrator)
        Fitted; their probabilities are averaged.
    calibrator_ : Calibrator
        Without the classifiers, for scores of one of them: the calibrator of the only pair, or of several folds a
        fitted :class:`Mixture` of theirs (``calibrator_.calibrators_`` has them in the order of ``pairs_``). It is what
        :func:`save_calibrator` saves of the whole.
    n_features_in_, feature_names_in_ : int, ndarray
        Number and names of the classifier's features, where it has them.

    See Also
    --------
    calibrant.AutoCalibrator : The calibrator that is fitted by default.
    calibrant.compare_calibrators : Which calibrator suits the model.
    calibrant.save_calibrator : Saves the calibrator without the model.

    Notes
    -----
    ``sample_weight`` goes to the classifier, where it takes weights, and to the calibrator; other arguments of ``fit``
    go to the classifier. With scikit-learn's metadata routing enabled, the arguments that the classifier requests are
    routed to it.

    References
    ----------
    Platt (1999) for the cross-validated scheme; Silva Filho et al. (2023), §5.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from calibrant.calibrators import BetaCalibration, CalibratedModel
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CalibratedModel(GaussianNB(), BetaCalibration()).fit(X, y)
    >>> model.predict_proba(X[:2]).shape, len(model.pairs_)
    ((2, 2), 5)
    """

    estimator: Any
    calibrator: Any = parameter("auto", _check_calibrator)
    _: KW_ONLY
    cv: Any = parameter(5, _check_cv)
    ensemble: bool = parameter(True, check_bool)
    response: str = parameter("auto", partial(check_choice, allowed=("auto", "predict_proba", "decision_function")))
    random_state: Any = 0

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit classifier and calibrator.

        Parameters
        ----------
        X : array-like of shape (n, features)
            Features, as the classifier takes them.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            Weights for classifier and calibrator, where they take weights.
        **fit_params
            For the classifier.
        """
        check_parameters(self)
        X, y = indexable(X, y)
        y = _check_y(y)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise ValueError(f"y must have at least two classes; got only one class: {self.classes_.tolist()}")
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, y, ensure_non_negative=True)
        passed = self._routed(weights, fit_params)
        with working("CalibratedModel.fit"):
            if isinstance(self.cv, str) and self.cv == "prefit":
                check_is_fitted(self.estimator)
                self._same_classes(self.estimator)
                self.pairs_ = [(self.estimator, self._calibrator(self.estimator, X, y, weights))]
            elif isinstance(self.cv, str):
                split = StratifiedShuffleSplit(1, test_size=0.25, random_state=self.random_state)
                self.pairs_ = self._pairs([next(split.split(np.zeros(len(y)), y))], X, y, weights, passed)
            else:
                self._fit_folds(X, y, weights, passed)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.pairs_[0][0], name):
                setattr(self, name, getattr(self.pairs_[0][0], name))
        return self

    def _routed(self, weights: Any, fit_params: dict[str, Any]) -> dict[str, Any]:
        """Arguments of the classifier's ``fit``."""
        if _routing_enabled():
            given = fit_params | ({} if weights is None else {"sample_weight": weights})
            return dict(process_routing(self, "fit", **given).estimator.fit)
        takes = weights is not None and has_fit_parameter(self.estimator, "sample_weight")
        return fit_params | ({"sample_weight": weights} if takes else {})

    def _fit_folds(self, X: Any, y: AnyArray, weights: Any, passed: dict[str, Any]) -> None:
        splits = list(check_cv(self.cv, y, classifier=True).split(X, y))
        if self.ensemble:
            self.pairs_ = self._pairs(splits, X, y, weights, passed)
            return
        scores: Any = None
        kind = ""
        seen = np.zeros(len(y), dtype=bool)
        for train, test in counted(splits, "folds"):
            model = self._fitted(train, X, y, passed)
            part, kind = self._scores(model, _safe_indexing(X, test))
            scores = np.empty((len(y), *part.shape[1:])) if scores is None else scores
            scores[test], seen[test] = part, True
        one = self._for_kind(kind, scores)
        more = one._from_features(_safe_indexing(X, seen))
        one.fit(scores[seen], y[seen], None if weights is None else weights[seen], **more)
        self.pairs_ = [(self._fitted(np.arange(len(y)), X, y, passed), one)]

    def _pairs(self, splits: Any, X: Any, y: AnyArray, weights: Any, passed: dict[str, Any]) -> list[tuple[Any, Any]]:
        models, samples, more = [], [], []
        for train, test in counted(splits, "folds"):
            model = self._fitted(train, X, y, passed)
            scores, kind = self._scores(model, _safe_indexing(X, test))
            one = self._for_kind(kind, scores)
            held = None if weights is None else weights[test]
            models.append(model)
            samples.append(read_sample(one, scores, y[test], held))
            # Rows without weight are not in a sample.
            more.append(one._from_features(_safe_indexing(X, test if held is None else test[held > 0])))
        if np.bincount(np.concatenate([test for _, test in splits])).max() > 1:
            # Rows of several folds cannot be judged by the fit to another.
            fitted = [clone(one)._fit_sample(sample, **m) for sample, m in zip(samples, more, strict=True)]
            return list(zip(models, fitted, strict=True))
        return list(zip(models, one._fit_each(samples, more), strict=True))

    def _fitted(self, rows: AnyArray, X: Any, y: AnyArray, passed: dict[str, Any]) -> Any:
        """The classifier, fitted to some rows."""
        n = len(y)
        part = {k: _safe_indexing(v, rows) if hasattr(v, "__len__") and len(v) == n else v for k, v in passed.items()}
        model = clone(self.estimator).fit(_safe_indexing(X, rows), y[rows], **part)
        self._same_classes(model)
        return model

    def _same_classes(self, model: Any) -> None:
        if not np.array_equal(model.classes_, self.classes_):
            raise ValueError(
                f"the classifier saw classes {list(model.classes_)!r}, and y has {self.classes_.tolist()}: every fold "
                "must have rows of every class; use fewer folds, or leave out classes with too few rows"
            )

    def _calibrator(self, model: Any, X: Any, y: AnyArray, weights: Any) -> Any:
        scores, kind = self._scores(model, X)
        one = self._for_kind(kind, scores)
        return one.fit(scores, y, weights, **one._from_features(X))

    def _for_kind(self, kind: str, scores: FloatArray) -> Calibrator:
        """The calibrator, with the kind of scores and the labels of columns set."""
        k = 2 if scores.ndim == 1 else scores.shape[1]
        auto = isinstance(self.calibrator, str) and self.calibrator == "auto"
        one = for_classes(AutoCalibrator() if auto else clone(calibrator_of(self.calibrator, k)), k)
        settings: dict[str, Any] = {"labels": self.classes_.tolist()}
        # A calibrator that was told to read probabilities as logits, or so, is left to it.
        if one.input == "probability":
            settings["input"] = kind
        one.set_params(**settings)
        return one

    def _scores(self, model: Any, X: Any) -> tuple[FloatArray, str]:
        """Scores of rows, and their kind."""
        method = self.response
        if method == "auto":
            method = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
        scores = np.asarray(getattr(model, method)(X), dtype=np.float64)
        return scores, "probability" if method == "predict_proba" else "margin"

    @property
    def calibrator_(self) -> Calibrator:
        """Calibrator of one classifier's scores; see the attributes of the class."""
        check_is_fitted(self)
        fitted = [one for _, one in self.pairs_]
        return fitted[0] if len(fitted) == 1 else Mixture._from_fitted(fitted)

    def predict_proba(self, X: Any) -> FloatArray:
        """Calibrated probabilities, (n, K).

        Parameters
        ----------
        X : array-like of shape (n, features)
            Features, as the classifier takes them.
        """
        check_is_fitted(self)
        members = [
            (one, read_scores(one, self._scores(model, X)[0], one.input), one._from_features(X))
            for model, one in self.pairs_
        ]
        return average(members, np.full(len(members), 1 / len(members)))

    def predict(self, X: Any) -> AnyArray:
        """Most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n, features)
            Features, as the classifier takes them.
        """
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def get_metadata_routing(self) -> Any:
        """Metadata that ``fit`` passes on to the classifier."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return (
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(self)
            .add(estimator=self.estimator, method_mapping=mapping)
        )

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags
