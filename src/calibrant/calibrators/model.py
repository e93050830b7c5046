"""`CalibratedModel`: a classifier with a calibrator fitted to scores of rows that the classifier did not see."""

from __future__ import annotations

from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedShuffleSplit, check_cv
from sklearn.svm import LinearSVC
from sklearn.utils import indexable
from sklearn.utils._indexing import _safe_indexing
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, _routing_enabled, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params, check_is_fitted, has_fit_parameter

from ..data.checks import called, check_bool, check_choice, check_int, check_type, fold_seed, is_whole, received
from ..data.dependence import read_groups
from ..data.progress import counted, working
from ..data.types import AnyArray, FloatArray
from ..data.validation import read_truth, read_weights
from .base import EPS, Calibrator, average, calibrator_of, check_parameters, check_seed, parameter
from .by_segment import SegmentCalibrator
from .combined import Mixture
from .inputs import NAMES, CalibrationSample, check_target, read_sample, read_scores
from .label_shift import check_base_rates, likeliest_prior, shifted, under_prior
from .model_scores import normalised, scores_of_labels
from .multiclass import OneVsRest, for_classes
from .select import AutoCalibrator

#: Further names of calibrators: of one that chooses among all, and of one that needs a model's features.
_OWN_NAMES = {"auto": AutoCalibrator, "segments": SegmentCalibrator}


def _check_calibrator(name: str, value: Any) -> None:
    if not (isinstance(value, str) and value in _OWN_NAMES):
        wanted = "'auto', 'segments', a calibrator such as PlattScaling() or its name"
        check_type(name, calibrator_of(value, 2), Calibrator, wanted)


def _check_cv(name: str, value: Any) -> None:
    if isinstance(value, str):
        check_choice(name, value, ("prefit", "holdout"), instead="an int, a splitter or ")


def _check_jobs(name: str, value: Any) -> None:
    if value is not None:
        check_type(name, value, int, "an int such as -1 (all cores), or None")


@dataclass(frozen=True, eq=False)
class _Given:
    """Arguments of ``fit``: rows, and arguments for the classifier and for the splitter."""

    X: Any
    y: AnyArray
    weights: Any
    to_model: dict[str, Any]
    to_splitter: dict[str, Any]

    @property
    def groups(self) -> AnyArray | None:
        """Groups of dependent rows."""
        groups = self.to_splitter.get("groups")
        return None if groups is None else np.asarray(groups)


@dataclass(eq=False, repr=False)
class CalibratedModel(ClassifierMixin, TransformerMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier with calibrated probabilities.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        The classifier, with ``predict_proba`` or ``decision_function``; by default ``LinearSVC(random_state=0)``, as in
        scikit-learn's ``CalibratedClassifierCV``. ``FrozenEstimator(model)`` means ``cv="prefit"``.
    calibrator : Calibrator, its name such as "isotonic", "segments" or "auto", default "auto"
        ``"auto"``: :class:`AutoCalibrator`, with the identity among the candidates; with several folds, one choice
        is made for all, with each fold's fit evaluated on the next fold. A binary calibrator is applied to several
        classes by :class:`OneVsRest`. For rows with several labels: a calibrator that takes them, such as
        ``OneVsRest("isotonic", "none")``, or a binary one for each label; ``"auto"`` uses :class:`BetaCalibration`.
        ``SubgroupCalibrator(by=COLUMN)`` takes its subgroups from a column of X. ``"segments"``, a
        :class:`SegmentCalibrator`, searches all columns; with several folds, one repair is fitted to all rows.
    cv : int, splitter, "prefit" or "holdout", default 5
        Rows for the calibrator. Folds: each is scored by a model fitted to the others. ``"holdout"``: a quarter of the
        rows, stratified; the model is fitted to the rest. ``"prefit"``: ``estimator`` is already fitted, to other rows
        than those given to ``fit``, which are all used for the calibrator. With ``groups``, an int and ``"holdout"``
        keep the rows of each group together.
    ensemble : bool, default True
        Used with folds. True: one model and calibrator per fold, whose probabilities are averaged (Platt's scheme;
        :class:`VennAbers` and :class:`AutoCalibrator` by their own rules): more accurate, but k times as large.
        False: one calibrator fitted to the scores of all folds, applied to a final model fitted to all rows, which is
        slightly sharper than the models whose scores were calibrated.
    response : {"auto", "predict_proba", "decision_function"}, default "auto"
        Input of the calibrator; ``"auto"`` uses probabilities if the classifier has them, else margins.
    n_jobs : int, optional
        Number of folds whose classifiers are fitted in parallel; -1 uses all cores.
    random_state : int, RandomState or None, default 0
        Seed of the choice of held-out rows.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, in column order.
    pairs_ : list of (classifier, calibrator)
        The fitted pairs, whose probabilities are averaged.
    calibrator_ : Calibrator
        The calibrator without classifiers, for scores of one of them: that of the only pair, or for several folds a
        fitted :class:`Mixture` (``calibrator_.calibrators_`` are in the order of ``pairs_``). It is the part that
        :func:`save_calibrator` saves.
    several_ : bool
        Whether ``fit`` was given rows with several labels. If so, these are ``classes_``, and ``predict_proba`` gives
        a probability of each; they do not sum to 1.
    prior_ : ndarray of shape (K,)
        Weighted share of each class, or label, among the rows of ``fit``.
    new_prior_ : ndarray of shape (K,), or None
        Base rates of the probabilities, if set by :meth:`with_prior` or :meth:`adapt`.
    n_features_in_, feature_names_in_ : int, ndarray
        Number and names of the classifier's features, if it has them.

    See Also
    --------
    calibrant.AutoCalibrator : The default calibrator.
    calibrant.compare_calibrators : Compares calibrators for the model.
    calibrant.save_calibrator : Saves the calibrator without the model.

    Notes
    -----
    ``sample_weight`` is passed to the classifier, if it takes weights, and to the calibrator; ``groups`` to the
    splitter, such as ``GroupKFold``; other arguments of ``fit`` to the classifier. With scikit-learn's metadata
    routing enabled, classifier and splitter receive what they request, also within ``cross_val_score(…, params=…)``.

    A class that the classifier of a fold did not see has probability 0 there, as in ``CalibratedClassifierCV``. Its
    rows are left out of that fold's calibrator; :class:`OneVsRest` counts them among the rest.

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

    estimator: Any = None
    calibrator: Any = parameter("auto", _check_calibrator)
    _: KW_ONLY
    cv: Any = parameter(5, _check_cv)
    ensemble: bool = parameter(True, check_bool)
    response: str = parameter("auto", partial(check_choice, allowed=("auto", "predict_proba", "decision_function")))
    n_jobs: int | None = parameter(None, _check_jobs)
    random_state: Any = parameter(0, check_seed)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit classifier and calibrator.

        Parameters
        ----------
        X : array-like of shape (n, features)
            Features, as the classifier takes them.
        y : array-like of shape (n,), or of several labels (n, L)
            Labels; if several, 0 or 1 for each, as for ``MultiOutputClassifier`` and scikit-learn's forests.
        sample_weight : array-like of shape (n,), optional
            Weights for classifier and calibrator, if they take weights.
        **fit_params
            ``groups``: groups of dependent rows, for the folds. Others are passed to the classifier.
        """
        check_parameters(self)
        check_target(self, y)
        with called(**NAMES):
            y, names = read_truth(y)
        self.several_ = y.ndim == 2
        try:
            framed = hasattr(X, "__dataframe__")  # before 1.9 asked for its rows by that, which Polars deprecates
            rows, y = indexable(range(len(X)) if framed else X, y)
            X = X if framed else rows
        except Exception as error:  # of the container's own conversion, whatever it raises
            if isinstance(error, ValueError):  # in words that scikit-learn's checks ask for
                raise
            raise TypeError(f"X must hold features, one row per label: {error}") from error
        seen = np.unique(y) if y.ndim == 1 else np.asarray(names or range(y.shape[1]))
        if len(seen) < 2:
            raise ValueError(
                f"y must have at least two classes; got only one class: {', '.join(map(received, seen.tolist()))}"
            )
        weights = read_weights(sample_weight, len(y))
        if fit_params.get("groups") is not None:
            fit_params["groups"] = read_groups(fit_params["groups"], len(y))
        given = _Given(X, y, weights, *self._routed(weights, fit_params))
        with working("CalibratedModel.fit"):
            self.pairs_ = self._prefit(given, seen) if self._is_prefit() else self._cross_fit(given, seen)
        hot = y if self.several_ else y[:, None] == self.classes_
        self.prior_: FloatArray = np.average(hot, axis=0, weights=weights)
        self.new_prior_: FloatArray | None = None
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.pairs_[0][0], name):
                setattr(self, name, getattr(self.pairs_[0][0], name))
        return self

    def _model(self) -> Any:
        """The classifier; by default that of scikit-learn's CalibratedClassifierCV."""
        if self.estimator is not None:
            return self.estimator
        model = LinearSVC(random_state=0)
        return model.set_fit_request(sample_weight=True) if _routing_enabled() else model

    def _is_prefit(self) -> bool:
        return isinstance(self.estimator, FrozenEstimator) or (isinstance(self.cv, str) and self.cv == "prefit")

    def _routed(self, weights: Any, fit_params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arguments of the classifier's ``fit``, and of the splitter's ``split``."""
        if _routing_enabled():
            given = fit_params | ({} if weights is None else {"sample_weight": weights})
            routed = process_routing(self, "fit", **given)
            return dict(routed.estimator.fit), dict(routed.splitter.split)
        to_model = {name: value for name, value in fit_params.items() if name != "groups"}
        if weights is not None and has_fit_parameter(self._model(), "sample_weight"):
            to_model["sample_weight"] = weights
        return to_model, {"groups": fit_params["groups"]} if fit_params.get("groups") is not None else {}

    def _splits(self, given: _Given) -> list[tuple[AnyArray, AnyArray]]:
        """Rows of the model and of the calibrator, fold by fold."""
        cv = 5 if self.cv is None else self.cv
        alone = isinstance(cv, str)
        if is_whole(cv):
            check_int("cv", cv, 2)
        if self.several_ and isinstance(cv, (int, str)):  # no split keeps the shares of all labels
            seed = fold_seed(self.random_state)
            whole = KFold if given.groups is None else GroupKFold
            cv = whole(4 if alone else cv, shuffle=True, random_state=seed)
        elif given.groups is not None and isinstance(cv, (int, str)):
            cv = StratifiedGroupKFold(4, shuffle=True, random_state=fold_seed(self.random_state)) if alone else cv
            cv = StratifiedGroupKFold(cv) if isinstance(cv, int) else cv
        elif alone:
            cv = StratifiedShuffleSplit(1, test_size=0.25, random_state=fold_seed(self.random_state))
        splits = check_cv(cv, given.y, classifier=True).split(np.zeros(len(given.y)), given.y, **given.to_splitter)
        pairs = list(splits)[: 1 if alone else None]
        if not pairs or any(not isinstance(pair, (tuple, list)) or len(pair) != 2 for pair in pairs):
            raise ValueError(
                f"cv must yield at least one pair of row indices, to fit and to calibrate with; got {received(cv)}"
            )
        return pairs

    def _prefit(self, given: _Given, seen: AnyArray) -> list[tuple[Any, Any]]:
        check_is_fitted(self.estimator)
        self.classes_ = seen if self.several_ else np.asarray(self.estimator.classes_)
        unknown = np.setdiff1d(seen, self.classes_)
        if unknown.size:
            raise ValueError(
                f"y must contain only classes of the fitted model, {self.classes_.tolist()}; got {unknown.tolist()}"
            )
        scores, kind = self._scores(self.estimator, given.X)
        return [(self.estimator, self._calibrator(given, np.arange(len(given.y)), scores, kind))]

    def _cross_fit(self, given: _Given, seen: AnyArray) -> list[tuple[Any, Any]]:
        self.classes_ = seen
        splits = self._splits(given)
        jobs = (delayed(self._fold)(given, train, test) for train, test in splits)
        folds = list(counted(Parallel(self.n_jobs, return_as="generator")(jobs), "folds", len(splits)))
        tests = [np.asarray(test) for _, test in splits]
        if not self.ensemble and not isinstance(self.cv, str):
            # Each row once, in their order.
            rows, at = np.unique(np.concatenate(tests)[::-1], return_index=True)
            scores, known = (np.concatenate([fold[i] for fold in folds])[::-1][at] for i in (1, 3))
            one = self._calibrator(given, rows, scores, folds[0][2], known)
            return [(self._fitted(given, np.arange(len(given.y))), one)]
        models = [fold[0] for fold in folds]
        samples, more = [], []
        for rows, (_, scores, kind, known) in zip(tests, folds, strict=True):
            one, sample, features = self._sample(given, rows, scores, kind, known)
            samples.append(sample)
            more.append(features)
        if np.bincount(np.concatenate(tests)).max() > 1:
            # Rows of several folds cannot be judged by the fit to another.
            fitted = [clone(one)._fit_sample(sample, **m) for sample, m in zip(samples, more, strict=True)]
            return list(zip(models, fitted, strict=True))
        return list(zip(models, one._fit_each(samples, more), strict=True))

    def _fold(self, given: _Given, train: AnyArray, test: AnyArray) -> tuple[Any, FloatArray, str, AnyArray]:
        """A classifier fitted to some rows, its scores of others, their kind, and whether it knows their classes."""
        model = self._fitted(given, train)
        scores, kind = self._scores(model, _safe_indexing(given.X, test))
        known = np.ones(len(test), dtype=bool) if self.several_ else np.isin(given.y[test], model.classes_)
        return model, scores, kind, known

    def _fitted(self, given: _Given, rows: AnyArray) -> Any:
        """The classifier, fitted to some rows."""
        passed = _check_method_params(given.y, given.to_model, rows)
        return clone(self._model()).fit(_safe_indexing(given.X, rows), given.y[rows], **passed)

    def _sample(
        self, given: _Given, rows: AnyArray, scores: FloatArray, kind: str, known: AnyArray | None = None
    ) -> tuple[Calibrator, CalibrationSample, dict[str, Any]]:
        """A calibrator for some rows, the sample that it is fitted to, and the features that it needs.

        Rows of classes that their model does not know are left out, but for one-vs-rest, which has them in the rest.
        """
        one = self._for_kind(kind, scores)
        if known is not None and not known.all() and not isinstance(one, OneVsRest):
            rows, scores = rows[known], scores[known]
            if not len(rows):
                raise ValueError("cv must give every fold rows of classes that are in other folds: use fewer folds")
        weights, groups = (None if v is None else v[rows] for v in (given.weights, given.groups))
        used = slice(None) if weights is None else weights > 0  # rows without weight are not in a sample
        if groups is not None and len(np.unique(groups[used])) < 2:
            groups = None  # nothing to keep together
        sample = read_sample(one, scores, given.y[rows], weights, groups)
        features = one._from_features(_safe_indexing(given.X, rows[used]))
        return one, sample, features

    def _calibrator(self, given: _Given, *scored: Any) -> Calibrator:
        """One calibrator, fitted to rows by :meth:`_sample`."""
        one, sample, features = self._sample(given, *scored)
        return one._fit_sample(sample, **features)

    def _for_kind(self, kind: str, scores: FloatArray) -> Calibrator:
        """The calibrator, with the kind of scores and the labels of columns set."""
        k = 2 if scores.ndim == 1 else scores.shape[1]
        own = _OWN_NAMES.get(self.calibrator) if isinstance(self.calibrator, str) else None
        if self.several_:
            named = "beta" if own is AutoCalibrator else self.calibrator if own is None else own()
            one = named if isinstance(named, Calibrator) and named._takes_labels else OneVsRest(named, "none")
            chosen: Calibrator = clone(one).set_params(labels=self.classes_.tolist(), input=kind)
            return chosen
        one = for_classes(clone(calibrator_of(self.calibrator, k)) if own is None else own(), k)
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
        if self.several_:
            return scores_of_labels(model, X, method), "probability" if method == "predict_proba" else "margin"
        scores: FloatArray = np.asarray(getattr(model, method)(X), dtype=np.float64)
        if len(model.classes_) < len(self.classes_):
            scores = self._over_all(scores, model.classes_, method)
        return scores, "probability" if method == "predict_proba" else "margin"

    def _over_all(self, scores: FloatArray, known: AnyArray, method: str) -> FloatArray:
        """Scores of some classes extended to all classes: others have probability 0, or the row's least margin."""
        columns = scores if scores.ndim > 1 else np.column_stack([-scores, scores])
        least = np.zeros(len(columns)) if method == "predict_proba" else columns.min(axis=1)
        out = np.repeat(least[:, None], len(self.classes_), axis=1)
        out[:, np.searchsorted(self.classes_, known)] = columns
        return out

    @property
    def calibrator_(self) -> Calibrator:
        """Calibrator of one classifier's scores; see the attributes of the class."""
        check_is_fitted(self)
        fitted = [one for _, one in self.pairs_]
        whole = fitted[0] if len(fitted) == 1 else Mixture._from_fitted(fitted)
        return whole if self.new_prior_ is None else under_prior(whole, self.prior_, self.new_prior_)

    def with_prior(self, prior: Any) -> Self:
        """Copy of the fitted model with probabilities under other base rates; see :func:`shift_prior`.

        Parameters
        ----------
        prior : float, or array-like of shape (K,)
            Base rates where the copy will be used, in the order of ``classes_``; for two classes, a number is that of
            the second. They replace those of ``fit`` (``prior_``) or an earlier call, and are kept as ``new_prior_``.

        Returns
        -------
        CalibratedModel
            The copy shares classifiers and calibrators with this model, which is unchanged.
        """
        check_is_fitted(self)
        if self.several_:
            raise ValueError("base rates need one class per row; the rows of this model have several labels")
        out = copy(self)
        out.new_prior_ = check_base_rates("prior", prior, len(self.classes_))
        if lacking := self.classes_[self.prior_ == 0].tolist():
            raise ValueError(f"no rows of class {lacking[0]!r} were given to fit: its probabilities cannot be shifted")
        return out

    def adapt(self, X: Any) -> Self:
        """Copy of the fitted model under base rates estimated from unlabelled rows; see :func:`estimate_prior`.

        Assumes that only base rates have changed, and that this model is calibrated under those of ``fit``;
        :func:`calibrant.estimate_prior` tests this, and gives an interval. Half a row per class is added, so that no
        class has a base rate of 0. The copy's probabilities of a row do not depend on other rows.

        Parameters
        ----------
        X : array-like of shape (n, features)
            Features of rows from the population where the copy will be used.

        Returns
        -------
        CalibratedModel
            The copy shares classifiers and calibrators with this model; ``new_prior_`` has the base rates.
        """
        check_is_fitted(self)
        p = self._under_old_prior(X)
        found = likeliest_prior(np.maximum(p, EPS), np.maximum(self.prior_, EPS), np.ones(len(p)))
        return self.with_prior((len(p) * found + 0.5) / (len(p) + 0.5 * len(found)))

    def predict_proba(self, X: Any) -> FloatArray:
        """Calibrated probabilities, (n, K).

        Parameters
        ----------
        X : array-like of shape (n, features)
            Features, as the classifier takes them.
        """
        check_is_fitted(self)
        p = self._under_old_prior(X)
        return p if self.new_prior_ is None else shifted(p, self.prior_, self.new_prior_)

    def _under_old_prior(self, X: Any) -> FloatArray:
        """Calibrated probabilities under the base rates of ``fit``."""
        members = [
            (one, read_scores(one, self._scores(model, X)[0], one.input), one._from_features(X))
            for model, one in self.pairs_
        ]
        none = np.zeros(len(self.classes_), dtype=bool)
        lacking = np.array([none if self.several_ else ~np.isin(self.classes_, m.classes_) for m, _ in self.pairs_])
        if not lacking.any():
            return average(members, np.full(len(members), 1 / len(members)))
        each = [np.where(absent, 0, average([one], np.ones(1))) for absent, one in zip(lacking, members, strict=True)]
        return np.asarray(sum(normalised(p, ~absent) for absent, p in zip(lacking, each, strict=True)) / len(each))

    def predict(self, X: Any) -> AnyArray:
        """Most probable class of each row; for several labels, 0 or 1 for each, (n, L).

        Parameters
        ----------
        X : array-like of shape (n, features)
            Features, as the classifier takes them.
        """
        check_is_fitted(self)
        if self.several_:
            return (self.predict_proba(X) > 0.5).astype(int)
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def transform(self, X: Any) -> FloatArray:
        """Calibrated probabilities, for use in a pipeline (``set_output`` returns them as a frame).

        Parameters
        ----------
        X : array-like of shape (n, features)
            Features, as the classifier takes them.
        """
        return self.predict_proba(X)

    get_feature_names_out = Calibrator.get_feature_names_out

    def get_metadata_routing(self) -> Any:
        """Metadata that ``fit`` passes on to the classifier and to the splitter."""
        ours = self.cv is None or isinstance(self.cv, (int, str))
        return (
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(self)
            .add(estimator=self._model(), method_mapping=MethodMapping().add(caller="fit", callee="fit"))
            .add(
                splitter=StratifiedGroupKFold() if ours else self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags = super().__sklearn_tags__()
        inner = get_tags(self._model())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.pairwise = inner.input_tags.pairwise
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags
