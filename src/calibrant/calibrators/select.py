"""Choose one calibrator, or the weights of an average of several, by cross-validated proper scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..data import notebook
from ..data.checks import check_choice, check_int
from ..data.fields import Field, Plain, Several
from ..data.predictions import Predictions
from ..data.progress import working
from ..data.public_function import ColumnOptions, public_function
from ..data.result import Table, one_line
from ..data.types import FloatArray
from .base import (
    EPS,
    Calibrator,
    Fitted,
    FittedWithScores,
    Later,
    check_not_negative,
    check_seed,
    fitted_to,
    needs_fitted,
    parameter,
)
from .candidates import candidates_for
from .choosing import Choosing, choice_sentence, choice_words, mixture_of
from .combined import Mixture, averaged_interval
from .crossval import AVERAGE, GOALS, RULES, check_table, fit_quietly, folds_of, predict_held_out
from .inputs import CalibrationSample, Scores, read_sample, read_scores
from .spline import SplineCalibrator
from .temperature import Identity, softmax


@dataclass(frozen=True, eq=False, repr=False)
class Selection(Table):
    """Result of :func:`select_calibrator`.

    Attributes
    ----------
    name : str
        The chosen calibrator; for an average, the candidate with the largest weight.
    calibrator : Calibrator
        The calibrator, fitted to all rows.
    table : list of dict
        One row per candidate, simplest first: ``name``, ``loss`` (cross-validated mean), ``difference`` to the best
        and its standard error ``se``, ``accuracy``, ``seconds`` per fit, ``weight`` (rule ``"average"`` only), and
        ``chosen``.
    goal, rule : str
        The loss and the rule by which the calibrator was chosen.
    nested_loss : float
        Cross-validated loss of the whole procedure, including the choice, for new rows. NaN unless ``nested``.

    See Also
    --------
    calibrant.calibrators.select_calibrator : Computes it.
    calibrant.results.CalibratorComparison : All candidates side by side.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import select_calibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> found = select_calibrator(p, rng.random(1000) < p, candidates=["identity", "temperature"])
    >>> found.name, [row["name"] for row in found.table]
    ('identity', ['identity', 'temperature'])
    """

    _unpictured: ClassVar[str] = "No picture: the chosen calibrator shows its map."

    name: str
    calibrator: Calibrator
    table: list[dict[str, Any]]
    goal: str
    rule: str
    nested_loss: float

    @property
    def summary(self) -> str:
        """The choice and its reason, in one sentence."""
        return choice_sentence(self.table, self.goal, self.rule)

    def _text(self) -> str:
        return _table_text(self.table)

    def _columns(self) -> dict[str, Any]:
        return {name: [row[name] for row in self.table] for name in self.table[0]}


def _table_text(table: list[dict[str, Any]]) -> str:
    """Candidates in lines."""
    width = max(len(row["name"]) for row in table)
    lines = [
        f"  {row['name']:<{width}}  loss {row['loss']:.4f}  +{row['difference']:.4f} (se {row['se']:.4f})"
        f"  accuracy {row['accuracy']:.4f}{_remarks(row)}"
        for row in table
    ]
    return "\n".join(lines)


def _remarks(row: Mapping[str, Any]) -> str:
    weight = f"  weight {row['weight']:.2f}" if row.get("weight") else ""
    return weight + ("  chosen" if row["chosen"] else "")


@public_function(grouped=True)
def select_calibrator(
    scores: Any,
    y: Any = None,
    *,
    candidates: Mapping[str, str | Calibrator] | Sequence[str] | None = None,
    cv: int = 5,
    goal: str = "log-loss",
    rule: str = AVERAGE,
    nested: bool = False,
    sample_weight: Any = None,
    groups: Any = None,
    input: str = "probability",
    labels: Any = None,
    pos_label: Any = None,
    random_state: Any = 0,
    **columns: Unpack[ColumnOptions],
) -> Selection:
    r"""Choose a calibrator by cross-validation; by default, average several as :class:`calibrant.AutoCalibrator` does.

    Parameters
    ----------
    scores : array-like of shape (n,) or (n, K), or Predictions
        Scores of rows that the classifier was not trained on, of the kind given by ``input``.
        A :class:`calibrant.Predictions` object replaces scores, labels, weights and groups.
    y : array-like of shape (n,)
        Observed labels.
    cv : int, default 5
        Number of stratified folds; fewer if a class has fewer rows.
    nested : bool, default False
        Also cross-validate the choice itself.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights; whole numbers stand for repeated rows.
    groups : array-like of shape (n,), optional
        The group of each row. Folds keep groups together, and standard errors are clustered by group.
    input : {"probability", "logit", "margin"}, default "probability"
        The kind of the scores; it replaces the ``input`` of the candidates.
    labels : sequence of K labels, optional
        The labels, in the order of the columns of ``scores``; by default the sorted unique labels.
    pos_label : label, optional
        The label that 1-D scores are for; the fitted calibrator has it as its second class. Default: 1 for labels
        0/1, -1/1 or bool; the last of ``labels``; otherwise it must be given.
    random_state : int, RandomState or None, default 0
        Seed of the folds.

    Returns
    -------
    Selection
        ``.name``, ``.calibrator`` (fitted to all rows) and ``.table`` (one row per candidate).

    See Also
    --------
    calibrant.AutoCalibrator : A calibrator that chooses when it is fitted.
    calibrant.compare_calibrators : All candidates side by side, with calibration errors.
    calibrant.results.Selection : The result, field by field.

    Notes
    -----
    Cost: ``cv`` fits of every candidate, and ``cv²`` more if ``nested``.

    References
    ----------
    Breiman et al. (1984), *CART*, for the one-standard-error rule; Varma & Simon (2006) for nesting.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import select_calibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> select_calibrator(p, rng.random(2000) < p).name  # calibrated: unchanged
    'identity'
    """
    check_choice("goal", goal, GOALS)
    check_choice("rule", rule, RULES)
    check_int("cv", cv, 2)
    sample = as_sample(scores, y, sample_weight, input, labels, groups=groups, pos_label=pos_label)
    return _selected(Choosing(cv, goal, rule, random_state), sample, candidates_for(sample, candidates), nested=nested)


def _selected(
    choosing: Choosing, sample: CalibrationSample, tried: Mapping[str, Calibrator], *, nested: bool
) -> Selection:
    choice = choosing.among(tried, sample)
    fitted = fit_quietly(mixture_of(tried, choice.weights), sample)
    loss = float("nan")
    if nested:
        folds = folds_of(sample.codes, choosing.cv, choosing.random_state, sample.groups)
        parts = [sample.part(train) for train, _ in folds]
        fits = [fit_quietly(mixture_of(tried, choosing.among(tried, part).weights), part) for part in parts]
        loss = choosing.loss_of(predict_held_out(fits, sample, folds), sample)
    return Selection(choice.heaviest, fitted, choice.table, choosing.goal, choosing.rule, loss)


@dataclass(eq=False, repr=False)
class AutoCalibrator(Calibrator):
    r"""Weighted average of calibrators, shrunk towards the identity by cross-validation to avoid harmful changes.

    Weights are proportional to :math:`e^{-n (\text{log-loss} + 2\,\text{Brier}) / 10}`, with losses on held-out rows;
    for two classes, ensemble temperature has a prior factor of :math:`e^2`. The average has total weight :math:`(1 -
    \tfrac12 (1 + 3/m)\, \text{se}^2 / \text{gain}^2)_+`, with its gain over the original scores, to which m rows
    effectively contribute; or, if smaller, the weight by the other proper score, with 1/20 in place of ½. The original
    scores have the rest. Changes that are not supported by both the log-loss and the Brier score, or only by a few
    rows, are not made; with many rows only the best candidates remain.

    Within :class:`CalibratedModel`, the probabilities of the folds are combined by the average of their mean and their
    geometric mean, because the mean is under-confident where classifiers differ.

    Parameters
    ----------
    candidates : mapping of str to Calibrator or its name, or list of names, optional
        Calibrators to average, from the simplest to the most flexible; by default those of :func:`default_candidates`.
        Scores can be left unchanged only if one of them is :class:`Identity`, as by default; margins cannot be.
    rule : {"average", "one-standard-error", "best"}, default "average"
        The last two choose a single candidate; see :func:`select_calibrator`.
    cv : int, default 5
        Number of stratified folds; fewer if a class has fewer rows.
    caution : float >= 0, default 1
        Factor of the squared standard error in the weight of the average. With 4, a change must gain twice as
        many standard errors: harm is rarer, and gains from few rows are smaller.
    random_state : int, RandomState or None, default 0
        Seed of the folds.

    Attributes
    ----------
    chosen_ : str
        The candidate with the largest weight.
    calibrator_ : fitted calibrator
        A :class:`Mixture`, or the candidate that has all of the weight.
    table_ : list of dict
        One row per candidate, with the columns of :class:`calibrant.results.Selection` and ``weight``.
    flexible_ : fitted SplineCalibrator or None
        The calibrator whose interval :meth:`predict_interval` uses for candidates without an interval.

    See Also
    --------
    calibrant.compare_calibrators : All candidates side by side, with calibration errors.
    calibrant.calibrators.select_calibrator : The same choice as a function.
    calibrant.calibrators.Mixture : An average with given weights.

    Notes
    -----
    ``benchmarks/arena/repair.md`` compares gains and losses on real models with those of single calibrators. Cost: one
    fit of every candidate per fold, on at most 10,000 rows per class drawn at random, and a final fit on all rows of
    each candidate that has weight; the rules that choose a single candidate use all rows throughout.

    References
    ----------
    James & Stein (1961), *Estimation with quadratic loss*, for the shrinkage.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import AutoCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> auto = AutoCalibrator().fit(p, rng.random(4000) < 1 / (1 + (1 / p - 1) ** 0.5))  # log odds halved
    >>> bool(abs(auto.predict_proba([0.9])[0, 1] - 0.75) < 0.02)  # as often as a score of 0.9 comes true
    True
    """

    candidates: Mapping[str, str | Calibrator] | Sequence[str] | None = None
    _: KW_ONLY
    cv: int = parameter(5, partial(check_int, least=2))
    goal: str = parameter("log-loss", partial(check_choice, allowed=GOALS))
    rule: str = parameter(AVERAGE, partial(check_choice, allowed=RULES))
    caution: float = parameter(1.0, check_not_negative)
    random_state: Any = parameter(0, check_seed)

    _state: ClassVar[Mapping[str, Field]] = {
        "chosen_": Plain(str),
        "calibrator_": Fitted(),
        "table_": Several(Plain(dict)),
        "flexible_": Later(Fitted(binary=True)),
    }

    def fit(self, scores: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Compute the weights of the candidates and fit those that have weight.

        Parameters
        ----------
        groups : array-like of shape (n,), optional
            Rows of a group may be dependent. Folds keep groups together, and standard errors are clustered by group.
        """
        sample = read_sample(self, scores, y, sample_weight, groups)
        with working("AutoCalibrator.fit"):
            return self._fit_checked(sample)

    @property
    def _parts_rows(self) -> bool:
        """See :class:`Calibrator`."""
        return True

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if not hasattr(self, "chosen_"):
            return str(super().__repr__(N_CHAR_MAX))
        words = choice_words(self.table_)
        about = {"choice": words, "goal": self.goal, "candidates": len(self.table_)}
        return one_line("AutoCalibrator", about.items())

    def __str__(self) -> str:
        return f"{self._summary()}\n{_table_text(self.table_)}" if hasattr(self, "chosen_") else repr(self)

    def _summary(self) -> str:
        return choice_sentence(self.table_, self.goal, self.rule)

    def _words_html(self) -> str:
        """The choice, and the candidates."""
        names = [name for name in self.table_[0] if name != "chosen"]
        rows = notebook.table(
            {name: [row.get(name) for row in self.table_] for name in names}, [row["chosen"] for row in self.table_]
        )
        return notebook.paragraph(self._summary()) + rows

    def _check_fitted(self) -> None:
        """The table is one of a choice, and of the average that is applied."""
        applied = self.calibrator_.weights_ if isinstance(self.calibrator_, Mixture) else np.ones(1)
        check_table(self.table_, self.chosen_, applied)

    def _choosing(self) -> Choosing:
        return Choosing(self.cv, self.goal, self.rule, self.random_state, caution=self.caution)

    def _fit(self, sample: CalibrationSample) -> None:
        found = _selected(self._choosing(), sample, candidates_for(sample, self.candidates), nested=False)
        self.chosen_, self.calibrator_, self.table_ = found.name, found.calibrator, found.table
        self.flexible_ = _flexible(sample)

    def _fit_each(self, samples: Sequence[CalibrationSample], more: Sequence[Mapping[str, Any]]) -> list[Calibrator]:
        """Fit all samples with one choice: each fit is made once, and evaluated on the next sample."""
        if len(samples) < 2:
            return super()._fit_each(samples, more)
        for sample in samples:
            self._check(sample)
        tried = candidates_for(samples[0], self.candidates)
        choice, fitted = self._choosing().across(tried, samples)
        out = []
        for one, sample in zip(fitted, samples, strict=True):
            auto = clone(self)
            auto.order_, auto.n_features_in_, auto.classes_ = None, one.n_features_in_, np.asarray(sample.classes)
            auto.chosen_, auto.calibrator_, auto.table_ = choice.heaviest, one, choice.table
            auto.flexible_ = _flexible(sample)
            out.append(auto)
        return out

    def _probabilities(self, scores: Scores) -> FloatArray:
        return self.calibrator_._probabilities_of(scores)

    @property
    def _merges(self) -> bool:
        """See :meth:`_merged`."""
        return True

    @classmethod
    def _merged(cls, members: FittedWithScores, weights: FloatArray) -> FloatArray:
        """Average of the mean, which is under-confident where members differ, and of the geometric mean."""
        each = np.stack([one._probabilities_of(scores, **more) for one, scores, more in members])
        if len(each) == 1:
            return np.asarray(each[0])
        logs = np.tensordot(weights, np.log(np.maximum(each, EPS)), 1)
        return np.asarray((np.tensordot(weights, each, 1) + softmax(logs)) / 2)

    @needs_fitted("flexible_")
    def predict_interval(self, scores: Any, level: float = 0.95) -> FloatArray:
        """Interval for the true probability of each row, (n, 2), for two classes; only if fitted without groups.

        It averages the candidates' own intervals and widens them by the differences between candidates; for candidates
        without an interval, that of :class:`SplineCalibrator` is used. Coverage is about nominal for smooth calibration
        maps, and lower for rapid oscillations and jumps (``benchmarks/coverage/map_intervals.md``). Pointwise, not
        simultaneous. Not available for calibrators saved by earlier versions.

        Parameters
        ----------
        scores : array-like of shape (n,)
            Scores, of the kind given by ``input``.
        level : float in (0, 1), default 0.95
            Level of the interval.
        """
        check_is_fitted(self)
        values = read_scores(self, scores, self.input).values
        return averaged_interval(self.calibrator_, self.flexible_, values, level)


def _flexible(sample: CalibrationSample) -> Calibrator | None:
    """Substitute for candidates without an interval; None for several classes, or for grouped rows."""
    return fitted_to(SplineCalibrator(), sample) if sample.n_classes == 2 and sample.groups is None else None


def as_sample(
    scores: Any, y: Any, sample_weight: Any, input: str, labels: Any, *, groups: Any = None, pos_label: Any = None
) -> CalibrationSample:
    """Read uncalibrated scores and labels; Predictions replace all arguments."""
    if not isinstance(scores, Predictions):
        return read_sample(Identity(input=input, labels=labels), scores, y, sample_weight, groups, pos_label)
    given = {
        "y": y,
        "sample_weight": sample_weight,
        "groups": groups,
        "labels": labels,
        "pos_label": pos_label,
        "input": None if input == "probability" else input,
    }
    if extra := [name for name, value in given.items() if value is not None]:
        raise TypeError(f"{', '.join(extra)} must not be given with Predictions: as_predictions() takes them")
    return CalibrationSample.of(scores)
