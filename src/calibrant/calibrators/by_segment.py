"""Recalibration of segments of rows in which a common map is miscalibrated, if held-out rows improve."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self, TypeGuard

import numpy as np
from sklearn.base import clone
from sklearn.utils._indexing import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from ..comparison.segments.confirm import LEAST_VARIANCE
from ..comparison.segments.features import Condition, Feature, Features, codes_of_rows, read_features
from ..data import notebook
from ..data.checks import check_choice, check_int, fold_seed, received
from ..data.fields import Field, Number, Numbers, Plain, Several, need
from ..data.progress import working
from ..data.types import AnyArray, FloatArray
from ..exceptions import CalibrantWarning
from .base import (
    WITHOUT_FEATURES,
    Calibrator,
    Fitted,
    FittedWithScores,
    average,
    calibrator_of,
    check_calibrator,
    check_not_negative,
    check_seed,
    fitted_to,
    parameter,
)
from .boosted import BoostedTrees, Boosting, need_lightgbm
from .choosing import earned_weights
from .crossval import Folds, HeldOutEvidence, folds_of
from .inputs import CalibrationSample, Scores, read_sample, read_scores
from .segment_offsets import RepairRows, Rule, SegmentOffsets, SegmentSearch
from .select import AutoCalibrator

_LEARNERS = ("segments", "boosting")
_COMMON, _REPAIRED = "common", "repaired"
#: Factor of ``caution`` for trees, which must gain more.
_OF_TREES = 2.0
_KINDS = ("number", "date", "duration", "category")


def _check_columns(name: str, value: Any) -> None:
    listed = list(value) if isinstance(value, (list, tuple)) else [] if value is None else [value]
    if value is not None and not (listed and all(type(one) in (str, int) for one in listed)):
        raise TypeError(
            f"{name} must be names or numbers of columns of features, one or a list of them, or None for all; got "
            f"{received(value)}"
        )


@dataclass(frozen=True)
class _NoBooster(Field):
    """LightGBM trees, which are not saved."""

    def check(self, name: str, value: Any, sizes: Any) -> None:
        """Require None."""
        need(value is None, f"{name} must be null: trees are not saved")


@dataclass(eq=False, repr=False)
class SegmentCalibrator(Calibrator):
    r"""A common map, with a repair of segments in which it is miscalibrated, if the repair improves held-out rows.

    A common calibrator gives probabilities q. Segments, sets of rows that meet up to three conditions on features, are
    then searched one by one as by :func:`calibrant.find_segments`, each given the map and the earlier segments. Each
    shifts the logits of its rows:

    .. math:: & \log r_{ik} = \log q_{ik} + \beta_k + \sum_{j:\, i \in S_j} \gamma_{jk} + \text{const}, \\
        & \gamma_{jk}, \beta_k \sim N(0, \sigma^2), \; \sum_k \gamma_{jk} = 0

    All offsets are fitted jointly, with σ by empirical Bayes. The result is :math:`(1 - a)\, q + a\, r`. The weight a
    is that of a change in :class:`AutoCalibrator`, :math:`(1 - \tfrac c2 (1 + 3/m)\, \text{se}^2 / \text{gain}^2)_+`,
    with the gain of r over q on held-out rows; map, search and offsets are refitted without these rows. The factor c
    is ``caution``, or twice that for trees.

    Parameters
    ----------
    calibrator : Calibrator, optional
        The common map; by default :class:`AutoCalibrator` with this ``caution``, which keeps scores unchanged without
        evidence of a gain. Its ``input`` and ``labels`` are replaced by those given here.
    features : str, int, or list of these, optional
        Columns of a model's features to search, within :class:`CalibratedModel`; by default all. Outside of it,
        features are passed to ``fit`` and ``predict_proba`` as ``features=``.
    learner : {"segments", "boosting"}, default "segments"
        ``"boosting"``: instead of segments, r uses LightGBM trees of at most eight leaves on features and score,
        boosted from the logits of q until held-out rows no longer improve. Requires ``calibrant[boost]``; it repairs
        more if a model is wrong in many ways, but does not show where, and cannot be saved as JSON.
    max_terms : int from 1 to 4, default 3
        Maximum number of conditions per segment.
    max_segments : int, default 20
        Maximum number of segments.
    cv : int, default 5
        Number of stratified folds that evaluate the repair; fewer if a class has fewer rows.
    caution : float >= 0, default 4
        The squared gain must exceed ``caution / 2`` squared standard errors, or twice as many for trees: larger values
        avoid more harm, and forgo more gains.
    random_state : int, RandomState or None, default 0
        Seed of the folds.

    Attributes
    ----------
    common_ : fitted calibrator
        The common map.
    weight_ : float
        The weight a; 0 if no segment was found, or if the repair has no supported gain.
    segments_ : list of M str
        Conditions of the segments, such as ``"region is north and age ≥ 60"``.
    offsets_ : ndarray of shape (M + 1, K)
        :math:`\gamma_j` of the segments, then β in the last row; for two classes the offset of the log odds is the
        second minus the first.
    left_out_ : dict
        Unused features, with the reason for each.
    rules_ : list of M ndarray of shape (T, 3)
        Conditions as integers: index of the feature in ``features_``, first code, and end of the codes (exclusive).
    features_ : list of dict
        Coding of the values of each used feature.
    booster_ : lightgbm.Booster or None
        The trees; None for segments.

    See Also
    --------
    calibrant.find_segments : Where the model is wrong, with p-values.
    calibrant.calibrators.SubgroupCalibrator : The same for given subgroups.
    calibrant.CalibratedModel : Passes its features on: ``CalibratedModel(model, "segments")``.

    Notes
    -----
    Features are read as by :func:`calibrant.find_segments`; new values of a category belong to no segment with a
    condition on it. The search stops when its best segment barely exceeds the chance level of the best of as
    many independent ones; this is a rule for prediction (p-values are those of :func:`calibrant.find_segments`). For
    several classes, each is searched against the others. A segment and its complement must have a variance of outcomes,
    :math:`\sum q (1 - q)`, of at least 20; with fewer rows, or rarer outcomes, the common map remains. How often the
    log-loss on new rows increases, and how much is repaired: ``benchmarks/coverage/segment_calibrator.md``; comparison
    with MCGrad: ``segment_calibrator_data.md`` there. Cost: ``cv + 1`` fits of the common map (the choice of an
    :class:`AutoCalibrator` is made once), each with ``max_segments`` searches of O(n F) for each of twenty parents.

    References
    ----------
    Hébert-Johnson et al. (2018), *Multicalibration: calibration for the (computationally-identifiable) masses*; Tax et
    al. (2026), *MCGrad: multicalibration at web scale*; Morris (1983), *Parametric empirical Bayes inference*; Foster &
    George (1994), *The risk inflation criterion for multiple regression*; Ke et al. (2017), *LightGBM*.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import SegmentCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p, tenant, region = rng.random(8000), rng.random(8000) < 0.3, rng.choice(["north", "south"], 8000)
    >>> odds = p / (1 - p) * np.where((region == "north") & tenant, 4, 1)
    >>> y = rng.random(8000) < odds / (1 + odds)
    >>> fitted = SegmentCalibrator().fit(p, y, features={"tenant": tenant, "region": region})
    >>> fitted.segments_
    ['tenant is True and region is north']
    >>> new = {"tenant": [True, True], "region": ["north", "south"]}
    >>> fitted.predict_proba([0.5, 0.5], features=new)[:, 1].round(1).tolist()
    [0.8, 0.5]
    """

    calibrator: str | Calibrator | None = parameter(None, partial(check_calibrator, optional=True))
    features: Any = parameter(None, _check_columns)
    _: KW_ONLY
    learner: str = parameter("segments", partial(check_choice, allowed=_LEARNERS))
    max_terms: int = parameter(3, partial(check_int, least=1, most=4))
    max_segments: int = parameter(20, partial(check_int, least=1))
    cv: int = parameter(5, partial(check_int, least=2))
    caution: float = parameter(4.0, check_not_negative)
    random_state: Any = parameter(0, check_seed)

    _state: ClassVar[Mapping[str, Field]] = {
        "common_": Fitted(),
        "weight_": Number(0, 1),
        "offsets_": Numbers(("M+1", "K"), empty=True),
        "left_out_": Plain(dict),
        "rules_": Several(Numbers(("T", "3"), 0, kinds="i"), "M", empty=True),
        "features_": Several(Plain(dict), "F", empty=True),
        "booster_": _NoBooster(),
    }

    def fit(self, scores: Any, y: Any, sample_weight: Any = None, features: Any = None, groups: Any = None) -> Self:
        """Fit the common map and the repair.

        Parameters
        ----------
        features : array of shape (n, F), mapping, data frame, or list of columns, optional
            Features of each row, as ``X`` of :func:`calibrant.find_segments`; without them only the common map is used.
        groups : array-like of shape (n,), optional
            Rows of a group may be dependent. Folds keep groups together, and standard errors are clustered by group.
        """
        sample = read_sample(self, scores, y, sample_weight, groups)
        rows = slice(None) if sample.given is None else sample.given
        coded = None if features is None else _coded(features, len(y), sample, rows)
        with working("SegmentCalibrator.fit"):
            return self._fit_checked(sample, coded=coded)

    def _fit_sample(self, sample: CalibrationSample, features: Any = None, **more: Any) -> Self:
        """As :meth:`fit`, for checked rows; ``features`` are those of these rows."""
        coded = None if features is None else _coded(features, len(sample.codes), sample, slice(None))
        return super()._fit_sample(sample, coded=coded)

    def predict_proba(self, scores: Any, features: Any = None) -> FloatArray:
        """Calibrated probabilities, (n, K), float64, in the order of ``classes_``.

        Parameters
        ----------
        features : array of shape (n, F), mapping, data frame, or list of columns, optional
            Features of each row, with the same names as in ``fit``; without them the common map is used, with a
            CalibrantWarning if there is a repair.
        """
        check_is_fitted(self)
        return self._probabilities_of(read_scores(self, scores, self.input), features=features)

    def _probabilities_of(self, scores: Scores, features: Any = None, **more: Any) -> FloatArray:
        """As :meth:`predict_proba`, for checked scores."""
        return self._moved(self.common_._probabilities_of(scores), features)

    def _moved(self, p: FloatArray, features: Any) -> FloatArray:
        """Probabilities of the common map, repaired."""
        if self.weight_ == 0:
            return p
        if features is None:
            words = f"{WITHOUT_FEATURES} but got none: the common map is used; pass features="
            warnings.warn(words, CalibrantWarning, stacklevel=4)
            return p
        each = [_feature_of(one) for one in self.features_]
        codes = codes_of_rows(each, range(len(each)), features, "features")
        if codes.shape[1] != len(p):
            raise ValueError(f"features must have one row per score ({len(p)}); got {codes.shape[1]}")
        repaired = self._repair(each).repaired(p, codes)
        return np.asarray((1 - self.weight_) * p + self.weight_ * repaired)

    def predict(self, scores: Any, features: Any = None) -> AnyArray:
        """Most probable class of each row; the first in case of ties.

        Parameters
        ----------
        features : array of shape (n, F), mapping, data frame, or list of columns, optional
            Features of each row, with the same names as in ``fit``.
        """
        return np.asarray(self.classes_[self.predict_proba(scores, features).argmax(axis=1)])

    @property
    def segments_(self) -> list[str]:
        """Conditions of the segments, in words."""
        held = Features(tuple(map(_feature_of, self.features_)), np.zeros((0, 0)), {}, ())
        return [held.said(_rule_of(rule)) for rule in self.rules_]

    @property
    def _parts_rows(self) -> bool:
        """See :class:`Calibrator`."""
        return True

    @property
    def _merges(self) -> bool:
        """Whether members are merged: common maps by their own rule, before the repair."""
        return True

    @classmethod
    def _merged(cls, members: FittedWithScores, weights: FloatArray) -> FloatArray:
        """Average of the members' repairs of the average of the common maps."""
        p = average([(one.common_, scores, {}) for one, scores, _ in members], weights)
        each = zip(weights, members, strict=True)
        return np.asarray(sum(w * one._moved(p, more.get("features")) for w, (one, _, more) in each))

    def _from_features(self, X: Any) -> dict[str, Any]:
        """The features to search, from those of a model."""
        X = np.asarray(X) if isinstance(X, list) else X
        if hasattr(X, "toarray"):
            raise TypeError(f"X must be dense: its columns are searched; got a sparse {type(X).__name__}")
        if self.features is None:
            return {"features": X}
        columns = list(self.features) if isinstance(self.features, (list, tuple)) else self.features
        return {"features": _safe_indexing(X, columns, axis=1)}

    def _words_html(self) -> str:
        """The weight of the repair, and the segments."""
        lead = f"{type(self).__name__}, fitted; weight of the repair {self.weight_:.2f}"
        if not self.rules_:
            return notebook.paragraph(lead)
        columns: dict[str, Sequence[Any]] = {"segment": self.segments_}
        offsets = self.offsets_[:-1].round(3)
        columns |= {f"logit of {label}": offsets[:, c].tolist() for c, label in enumerate(self.classes_)}
        return notebook.paragraph(lead) + notebook.table(columns)

    def _fit(self, sample: CalibrationSample, coded: Features | None = None) -> None:
        one = self._common()
        self.common_ = fitted_to(one, sample)
        # Weights of an average stay: choosing again on each fold would take most of the time.
        again = clone(self.common_.calibrator_) if isinstance(self.common_, AutoCalibrator) else one
        p = self.common_._probabilities_of(sample.scores)
        self._keep_repair(None, coded, 0.0, sample.n_classes)
        if not _tells(coded, p, sample):
            return
        folds = folds_of(sample.codes, self.cv, self.random_state, sample.groups)
        parts, held = [], np.empty_like(p)
        for train, test in folds:
            part = sample.part(train)
            common = fitted_to(again, part)
            parts.append(RepairRows(common._probabilities_of(part.scores), part, coded.codes[:, train]))
            held[test] = common._probabilities_of(sample.scores.part(test))
        self._repair_where_earned(RepairRows(p, sample, coded.codes), coded, folds, parts, held)

    def _fit_each(self, samples: Sequence[CalibrationSample], more: Sequence[Mapping[str, Any]]) -> list[Calibrator]:
        """Fit one repair to the rows of all samples; each sample is evaluated by a fit to the others."""
        if len(samples) < 2:
            return super()._fit_each(samples, more)
        for sample in samples:
            self._check(sample)
        every = CalibrationSample.together(samples)
        common = clone(calibrator_of(self._common(), every.n_classes))
        common.set_params(input=every.scores.kind, labels=list(every.classes))
        commons = common._fit_each(samples, [{}] * len(samples))
        coded = _coded(_together([m["features"] for m in more]), len(every.codes), every, slice(None))
        # By a map of its own rows, and by that of the sample before, which did not see them.
        p, held = (
            np.concatenate([commons[i - back]._probabilities_of(one.scores) for i, one in enumerate(samples)])
            for back in (0, 1)
        )
        first = clone(self)
        first._keep_repair(None, coded, 0.0, every.n_classes)
        if _tells(coded, p, every):
            of = np.repeat(np.arange(len(samples)), [len(one.codes) for one in samples])
            folds = [(np.flatnonzero(of != i), np.flatnonzero(of == i)) for i in range(len(samples))]
            parts = [RepairRows(p[train], every.part(train), coded.codes[:, train]) for train, _ in folds]
            first._repair_where_earned(RepairRows(p, every, coded.codes), coded, folds, parts, held)
        out = list[Calibrator]()
        for one, fitted in zip(samples, commons, strict=True):
            each = copy(first)
            each.common_, each.classes_, each.prior_ = fitted, np.asarray(one.classes), _shares(one)
            each.order_, each.n_features_in_ = None, fitted.n_features_in_
            out.append(each)
        return out

    def _common(self) -> str | Calibrator:
        """The common calibrator, unfitted."""
        if self.learner == "boosting":
            need_lightgbm()
        auto = AutoCalibrator(caution=self.caution, random_state=self.random_state)
        return auto if self.calibrator is None else self.calibrator

    def _repair_where_earned(
        self, rows: RepairRows, coded: Features, folds: Folds, parts: Sequence[RepairRows], held: FloatArray
    ) -> None:
        """Learn a repair from all rows, and keep it with the weight that the held-out rows support."""
        found, repaired = self._learner(coded).cross_fitted(rows, folds, parts, held)
        if found is None:
            return
        tried = {_COMMON: held, _REPAIRED: repaired}
        evidence = {name: HeldOutEvidence.of(each, rows.sample) for name, each in tried.items()}
        # Trees find something in any rows, where a search for segments mostly ends with none.
        caution = self.caution * (_OF_TREES if self.learner == "boosting" else 1)
        earned = earned_weights(tried, evidence, rows.sample, base=_COMMON, goal="log-loss", caution=caution)
        self._keep_repair(found, coded, earned.get(_REPAIRED, 0.0), rows.sample.n_classes)

    def _learner(self, coded: Features) -> SegmentSearch | Boosting:
        if self.learner == "boosting":
            return Boosting(coded.each, fold_seed(self.random_state) or 0)
        return SegmentSearch(coded, self.max_terms, self.max_segments)

    def _keep_repair(
        self, found: SegmentOffsets | BoostedTrees | None, coded: Features | None, weight: float, k: int
    ) -> None:
        """Store the repair, and the features that it needs."""
        each = () if found is None or coded is None else coded.each
        self.left_out_ = {} if coded is None else dict(coded.left_out)
        self.weight_ = float(weight)
        self.offsets_: FloatArray = np.zeros((1, k))
        self.rules_: list[AnyArray] = []
        self.booster_: Any = None
        used = list(range(len(each)))
        if isinstance(found, SegmentOffsets):
            self.offsets_ = found.offsets
            used = sorted({one.feature for rule in found.rules for one in rule})
            self.rules_ = [
                np.array([(used.index(one.feature), one.low, one.high) for one in rule], dtype=np.int64)
                for rule in found.rules
            ]
        elif found is not None:
            self.booster_ = found.booster
        self.features_ = [_kept(each[at]) for at in used]

    def _repair(self, each: Sequence[Feature]) -> SegmentOffsets | BoostedTrees:
        if self.booster_ is not None:
            need_lightgbm()
            return BoostedTrees(each, self.booster_)
        return SegmentOffsets([_rule_of(rule) for rule in self.rules_], self.offsets_)

    def _check_fitted(self) -> None:
        """Check that features can be restored, and that rules refer to their codes."""
        need([isinstance(v, str) for v in self.left_out_.values()], "left_out_ must give reasons as text")
        for one in self.features_:
            need({*one} == {"name", "kind", "cuts", "values", "rare"}, "features_ need name, kind, cuts, values, rare")
            Plain(str).check("name of features_", one["name"], {})
            need(one["kind"] in _KINDS, f"kind of features_ must be one of {', '.join(_KINDS)}")
            Numbers(("C",), ascending=True, infinite=True, empty=True).check("cuts of features_", one["cuts"], {})
            Number(0, whole=True).check("rare of features_", one["rare"], {})
            Plain(list).check("values of features_", one["values"], {})
            need(_feature_of(one).missing < 255, "features_ must have codes below 255")
        for rule in map(_rule_of, self.rules_):
            need([one.feature < len(self.features_) for one in rule], "rules_ must name one of features_")
            last = [_feature_of(self.features_[one.feature]).missing for one in rule]
            bad = [not one.low < one.high <= most + 1 for one, most in zip(rule, last, strict=True)]
            need(not any(bad), "rules_ must name codes of features_")

    def _probabilities(self, scores: Scores) -> FloatArray:
        return self.common_._probabilities_of(scores)


def _coded(features: Any, n_rows: int, sample: CalibrationSample, rows: Any) -> Features:
    """Features of the rows of a sample, as codes."""
    at = np.arange(n_rows)[rows]
    happened = {str(label): (at, sample.happened(c)) for c, label in enumerate(sample.classes)}
    if sample.n_classes == 2:
        happened = {"": (at, sample.happened(1))}
    coded = read_features(features, n_rows, happened, "features")
    return replace(coded, codes=coded.codes[:, rows])


def _together(each: Sequence[Any]) -> Any:
    """Features of several samples as those of one."""
    if all(isinstance(one, np.ndarray) for one in each):
        return np.concatenate(each)
    import narwhals as nw

    frames = [nw.from_native(one, allow_series=True) for one in each]
    return nw.concat([one.to_frame() if isinstance(one, nw.Series) else one for one in frames]).to_native()


def _tells(coded: Features | None, p: FloatArray, sample: CalibrationSample) -> TypeGuard[Features]:
    """Whether there are features, and enough variance of the outcomes of a class on both sides of a segment."""
    variance = float((sample.weights @ (p * (1 - p))).max()) * sample.effective_rows() / sample.total
    return coded is not None and len(coded.each) > 0 and variance >= 2 * LEAST_VARIANCE


def _shares(sample: CalibrationSample) -> FloatArray:
    """Share of each class."""
    return np.bincount(sample.codes, sample.weights, sample.n_classes) / sample.total


def _kept(one: Feature) -> dict[str, Any]:
    """A feature's coding, as it is saved."""
    cuts = one.cuts if one.ordered else np.zeros(0)
    return {"name": one.name, "kind": one.kind, "cuts": cuts, "values": list(one.values), "rare": one.rare}


def _feature_of(kept: Mapping[str, Any]) -> Feature:
    """The feature of a saved coding."""
    values = tuple(kept["values"])
    return Feature(kept["name"], kept["kind"], kept["cuts"], values, kept["rare"], np.zeros(0, dtype=np.intp))


def _rule_of(kept: AnyArray) -> Rule:
    return tuple(Condition(*map(int, one)) for one in kept)
