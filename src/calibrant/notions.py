"""The notions of calibration of the survey, as values: what must be calibrated.

A notion says which score a row has, and what makes its outcome 1; nothing else in the package asks which notion it is.

References
----------
Silva Filho et al. (2023), *Classifier calibration: a survey*, §2; Gupta & Ramdas (2022), *Top-label
calibration and multiclass-to-binary reductions* (for top-label).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from .data.checks import check_choice
from .data.dependence import design_parts
from .data.docs import Documented
from .data.predictions import Predictions
from .data.problem import OneVsRestProblems, Problem, Reduction, VectorProblem
from .data.types import AnyArray, FloatArray, IntArray, Label

__all__ = [
    "Canonical",
    "ClassSpecific",
    "Classwise",
    "Confidence",
    "DrawnClass",
    "Notion",
    "Target",
    "TopLabel",
]


def __dir__() -> list[str]:
    return list(__all__)


_AVERAGES = ("power", "mean", "max")


@dataclass(frozen=True, eq=False)
class Target:
    """One problem before labels are known: what its rows say, and which labels make them right.

    Parameters
    ----------
    scores : ndarray of shape (m,)
        Predicted probability of the outcome for each row; for a notion of vectors (m, K), one column per class.
    wanted : int, or ndarray of shape (m,), or bool ndarray of shape (m, K)
        Labels that make the outcome 1, as positions among the predictions' classes: one for all rows, one per row, or
        any number per row. None for vectors: every class has its own column.
    rows : ndarray of shape (m,) or None
        Positions of these rows among those of the predictions; None for all of them.
    domain : (float, float), default (0, 1)
        Where scores can lie.
    label : object
        The class whose probability the scores are, if it is one.
    share : float or None
        Its weight among the notion's problems, which sum to 1; None where all count alike.

    See Also
    --------
    calibrant.notions.Notion : Yields them.

    Examples
    --------
    >>> import calibrant as cal
    >>> rows = cal.as_predictions([0, 1, 1], [0.2, 0.9, 0.6])
    >>> target = next(iter(cal.notions.ClassSpecific().targets(rows)))
    >>> target.scores.tolist(), target.wanted
    ([0.2, 0.9, 0.6], 1)
    """

    scores: FloatArray
    wanted: int | AnyArray | None
    rows: IntArray | None = None
    domain: tuple[float, float] = (0.0, 1.0)
    label: Label = None
    share: float | None = None

    def outcomes(self, codes: AnyArray) -> AnyArray:
        """Whether each row's outcome is 1, (m, …), from label codes of all rows, (n, …); of vectors (m, …, K).

        Parameters
        ----------
        codes : ndarray of shape (n, …)
            Label codes of all rows.
        """
        mine = codes if self.rows is None else codes[self.rows]
        wanted = self.wanted
        if wanted is None:
            return np.asarray(mine[..., None] == np.arange(self.scores.shape[1]))
        if isinstance(wanted, (int, np.integer)):
            return np.asarray(mine == wanted)
        if wanted.ndim == 2:
            row = np.arange(len(wanted)).reshape(-1, *(1,) * (mine.ndim - 1))
            return np.asarray(wanted[row, mine])
        return np.asarray(mine == wanted.reshape(-1, *(1,) * (mine.ndim - 1)))


class Notion(Documented, ABC):
    """Base class: a frozen value with a ``name`` and :meth:`targets`.

    Attributes
    ----------
    average : {"power", "mean", "max"}
        How errors of several problems become one number.
    dependent : bool
        Whether several problems are of the same rows (rather than splitting them).
    splits : bool
        Whether rows are split among classes, so that there are as many problems as classes that have rows.
    vector : bool
        Whether the score is a vector.
    drawn : bool
        Whether of a vector only the component of the observed class counts.

    See Also
    --------
    calibrant.notions.Target : A value that ``targets`` yields.
    calibrant.notions.ClassSpecific : A notion of one problem.

    Examples
    --------
    A notion of one's own, which all that takes ``notion=`` can use: are the two likeliest classes as likely together
    as they say?

    >>> import numpy as np, calibrant as cal
    >>> class TopTwo(cal.notions.Notion):
    ...     name = "top two"
    ...
    ...     def targets(self, predictions):
    ...         p = predictions.matrix
    ...         two = np.argsort(-p, axis=1)[:, :2]
    ...         wanted = np.zeros(p.shape, dtype=bool)
    ...         np.put_along_axis(wanted, two, True, axis=1)
    ...         yield cal.notions.Target(np.take_along_axis(p, two, axis=1).sum(axis=1).clip(0, 1), wanted)
    >>> P = [[0.5, 0.3, 0.2], [0.4, 0.1, 0.5], [0.2, 0.2, 0.6]]
    >>> round(cal.calibration_error([0, 1, 2], P, notion=TopTwo(), estimator=cal.Binned(1)), 3)
    0.167
    """

    name: ClassVar[str]
    average: str = "power"
    dependent: ClassVar[bool] = False
    splits: ClassVar[bool] = False
    vector: ClassVar[bool] = False
    drawn: ClassVar[bool] = False

    @property
    def per_class(self) -> bool:
        """Whether there is a problem per class, rather than one."""
        return self.dependent or self.splits

    @abstractmethod
    def targets(self, predictions: Predictions) -> Iterable[Target]:
        """What must be calibrated: scores of rows, and which labels make their outcomes 1.

        Parameters
        ----------
        predictions : Predictions
            The validated rows.
        """

    def reduce(self, predictions: Predictions) -> Reduction:
        """Turn predictions into the problem, or problems, that this notion asks to be calibrated.

        Parameters
        ----------
        predictions : Predictions
            The validated rows.
        """
        found: Reduction = self.designed(self.reducer(predictions)(predictions.codes), predictions)
        return found

    def designed(self, reduction: Any, predictions: Predictions) -> Any:
        """The problems, with what rows in groups say less than independent ones.

        Parameters
        ----------
        reduction : Reduction
            The problems.
        predictions : Predictions
            The validated rows.
        """
        if predictions.groups is None:
            return reduction
        if self.vector:
            every = Classwise().reduce(predictions)
            return replace(reduction, design=float(every.designs.mean()))
        groups = predictions.groups
        if isinstance(reduction, OneVsRestProblems):
            found = np.concatenate([design_parts(t, np.tile(groups, len(t))) for t in reduction.tiles()])
        else:
            rows = [groups if t.rows is None else groups[t.rows] for t in self.targets(predictions)]
            found = design_parts(reduction, np.concatenate(rows))
        return replace(reduction, design=tuple(found[:, 0].tolist()), effects=found)

    def reducer(self, predictions: Predictions) -> Callable[[IntArray], Reduction]:
        """A function from codes of labels to problems, for the same scores, which are found once.

        Parameters
        ----------
        predictions : Predictions
            The validated rows.
        """
        p, targets = predictions, tuple(self.targets(predictions))
        if self.vector:
            (only,) = targets
            logs = p.logs if only.scores is p.matrix else None
            return lambda codes: VectorProblem(
                only.scores, codes, p.weights, p.integral_weights, p.eps, p.classes, logs, self.drawn
            )
        return _problems(p, targets, self.average, self.dependent)

    def __str__(self) -> str:
        return self.name


def _problems(
    p: Predictions, targets: tuple[Target, ...], average: str, dependent: bool
) -> Callable[[IntArray], Problem]:
    """A function from codes of labels to the problems of all targets: rows of one after those of another."""

    def outcomes(target: Target, codes: IntArray) -> AnyArray:
        if target.rows is None and isinstance(target.wanted, int) and codes is p.codes:
            return p.outcome(target.wanted)  # codes themselves, where they say it
        return target.outcomes(codes)

    def joined(values: list[Any]) -> Any:
        return values[0] if len(values) == 1 else np.concatenate(values)

    weights = p.weights
    if weights is not None:
        weights = joined([weights if t.rows is None else weights[t.rows] for t in targets])
    about: dict[str, Any] = {
        "weights": weights,
        "integral": p.integral_weights,
        "domain": (min(t.domain[0] for t in targets), max(t.domain[1] for t in targets)),
        "eps": p.eps,
        "label": tuple(t.label for t in targets),
        "share": tuple(1 / len(targets) if t.share is None else t.share for t in targets),
        "starts": np.array([0, *accumulate(len(t.scores) for t in targets)]),
        "average": average,
        "dependent": dependent,
    }
    scores = joined([t.scores for t in targets])
    return lambda codes: Problem(scores, joined([outcomes(t, codes) for t in targets]), **about)


@dataclass(frozen=True)
class ClassSpecific(Notion):
    """One class: ``P(Y = label | P_label(X) = s) = s`` for every s.

    Parameters
    ----------
    label : label or None, default None
        The class; None means the positive class of a binary problem.

    See Also
    --------
    calibrant.notions.Classwise : Every class by itself.
    calibrant.notions.Confidence : The predicted class.

    Examples
    --------
    >>> import calibrant as cal
    >>> P = [[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]]
    >>> round(cal.calibration_error([0, 1, 2], P, notion=cal.notions.ClassSpecific(1), estimator=cal.Binned(5)), 3)
    0.267
    """

    label: Label = None
    name: ClassVar[str] = "class-specific"

    def targets(self, predictions: Predictions) -> Iterator[Target]:
        """One problem, scores in [0, 1]."""
        yield one_vs_rest(predictions, self.index(predictions))

    def index(self, predictions: Predictions) -> int:
        """Position of the class among the predictions' classes.

        Parameters
        ----------
        predictions : Predictions
            The validated rows.
        """
        if self.label is None:
            if predictions.positive is not None:
                return predictions.positive
            if predictions.n_classes == 2:
                return 1
            raise ValueError(
                f"notion ClassSpecific() needs a label when there are {predictions.n_classes} classes: "
                f"ClassSpecific(label), one of {list(predictions.classes[:6])!r}"
            )
        if self.label not in predictions.classes:
            raise ValueError(f"notion ClassSpecific({self.label!r}): the labels are {list(predictions.classes)!r}")
        return predictions.classes.index(self.label)

    def __str__(self) -> str:
        return self.name if self.label is None else f"{self.name}:{self.label}"


@dataclass(frozen=True)
class Classwise(Notion):
    """Every class by itself: ``P(Y = k | P_k(X) = s) = s`` for every k and s.

    Parameters
    ----------
    average : {"power", "mean", "max"}, default "power"
        How class errors e_k become one number. ``"power"`` (default): ``(mean_k e_kᵖ)^(1/p)``, the
        maximum over classes for p = inf; ``"mean"``: the plain mean of the class errors (with p = inf the
        survey's mean class-wise MCE); ``"max"``: the worst class.

    See Also
    --------
    calibrant.notions.ClassSpecific : One class.
    calibrant.notions.TopLabel : Classes where they are predicted.

    Examples
    --------
    >>> import calibrant as cal
    >>> y, p = [0, 1, 2], [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
    >>> round(cal.calibration_error(y, p, notion=cal.notions.Classwise(average="max"), estimator=cal.Binned()), 3)
    0.267
    """

    average: str = "power"
    name: ClassVar[str] = "classwise"
    dependent: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choice("average", self.average, _AVERAGES)

    def targets(self, predictions: Predictions) -> Iterator[Target]:
        """K problems that share their rows."""
        return (one_vs_rest(predictions, k) for k in range(predictions.n_classes))

    def reduce(self, predictions: Predictions) -> OneVsRestProblems:
        """See :meth:`Notion.reduce`."""
        found: OneVsRestProblems = self.designed(self.reducer(predictions)(predictions.codes), predictions)
        return found

    def reducer(self, predictions: Predictions) -> Callable[[IntArray], OneVsRestProblems]:
        """Columns are sliced out of the matrix only when they are asked for."""
        p, matrix = predictions, predictions.matrix
        return lambda codes: OneVsRestProblems(
            matrix, codes, p.weights, p.integral_weights, p.eps, p.classes, self.average, self.dependent
        )


@dataclass(frozen=True)
class Confidence(Notion):
    """Probability of the predicted class: ``P(Y = argmax P(X) | max P(X) = s) = s``. The first label wins a tie.

    See Also
    --------
    calibrant.notions.TopLabel : The same, given the predicted class.
    calibrant.notions.ClassSpecific : One class.

    Examples
    --------
    >>> import calibrant as cal
    >>> y, p = [0, 1, 2], [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
    >>> round(cal.calibration_error(y, p, notion=cal.notions.Confidence(), estimator=cal.Binned()), 3)
    0.4
    """

    name: ClassVar[str] = "confidence"

    def targets(self, predictions: Predictions) -> Iterator[Target]:
        """One problem, scores in [1/K, 1]."""
        p = predictions
        yield Target(p.confidence, p.predicted, domain=_domain(p))


@dataclass(frozen=True)
class TopLabel(Notion):
    """Probability of the predicted class, given that class: ``P(Y = k | argmax = k, max P(X) = s) = s`` for every k, s.

    Classes that are never predicted make no problem; the others count by how often they are predicted.

    Parameters
    ----------
    average : {"power", "mean", "max"}, default "power"
        How class errors become one number, as in :class:`Classwise`.

    See Also
    --------
    calibrant.notions.Confidence : All predicted classes together.
    calibrant.calibrators.TopLabelCalibrator : The calibrator for it.

    Examples
    --------
    >>> import calibrant as cal
    >>> y, p = [0, 1, 2], [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
    >>> round(cal.calibration_error(y, p, notion="top-label", estimator=cal.Binned()), 3)
    0.4
    """

    average: str = "power"
    name: ClassVar[str] = "top-label"
    splits: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choice("average", self.average, _AVERAGES)

    def targets(self, predictions: Predictions) -> Iterator[Target]:
        """One problem a predicted class; they split the rows."""
        p = predictions
        masses = np.bincount(p.predicted, p.weights, minlength=p.n_classes)
        order = np.argsort(p.predicted, kind="stable")
        ends = np.cumsum(np.bincount(p.predicted, minlength=p.n_classes))
        domain = _domain(p)
        for k in np.flatnonzero(masses > 0).tolist():
            rows = order[ends[k - 1] if k else 0 : ends[k]]
            yield Target(p.confidence[rows], k, rows, domain, p.classes[k], float(masses[k] / masses.sum()))


@dataclass(frozen=True)
class Canonical(Notion):
    """The whole probability vector: ``P(Y = k | P(X) = q) = q_k`` for every q in the simplex and every k.

    See Also
    --------
    calibrant.notions.Classwise : Every class by itself, which is weaker.
    calibrant.estimators.DirichletKernel : An estimator for it.

    Examples
    --------
    >>> import calibrant as cal
    >>> y, p = [0, 1, 2], [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
    >>> round(cal.calibration_error(y, p, notion="canonical", estimator=cal.estimators.SimplexBinned(2)), 3)
    0.8
    """

    name: ClassVar[str] = "canonical"
    vector: ClassVar[bool] = True

    def targets(self, predictions: Predictions) -> Iterator[Target]:
        """One vector problem."""
        yield Target(predictions.matrix, None)


@dataclass(frozen=True)
class DrawnClass(Canonical):
    """The probability vector, at the observed class: ``E |P(Y = c | s) - s_c|`` for ``c = Y``.

    Calibrated exactly when :class:`Canonical` is, but the error is another number: the mean gap of one class, drawn
    with its frequency, where the canonical L1 error is the sum over all classes. It is at most half of that: gaps of a
    vector add up to 0, so none is above half of the sum of their sizes. With two classes it is the error of either.

    See Also
    --------
    calibrant.notions.Canonical : The whole vector.

    References
    ----------
    Posocco & Bonnefoy (2021), *Estimating expected calibration errors*, Definition 3.

    Examples
    --------
    >>> import calibrant as cal
    >>> y, p = [0, 1, 2], [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
    >>> round(cal.calibration_error(y, p, notion="drawn-class", estimator=cal.estimators.SimplexBinned(2)), 3)
    0.4
    """

    name: ClassVar[str] = "drawn-class"
    drawn: ClassVar[bool] = True


_BY_NAME: dict[str, Notion] = {
    n.name: n for n in (ClassSpecific(), Classwise(), Confidence(), TopLabel(), Canonical(), DrawnClass())
}
_BY_NAME["class-wise"] = Classwise()


def notion_named(notion: str | Notion) -> str | Notion:
    """The notion of a name; ``"auto"``, which predictions decide, stays unchanged."""
    if isinstance(notion, Notion) or (isinstance(notion, str) and notion == "auto"):
        return notion
    name, colon, label = notion.partition(":") if isinstance(notion, str) else ("", "", "")
    if name == "class-specific" and label:
        return ClassSpecific(label)
    if name in _BY_NAME and not colon:
        return _BY_NAME[name]
    allowed = ", ".join(repr(n) for n in ("auto", *_BY_NAME, "class-specific:LABEL"))
    raise ValueError(f"notion must be one of {allowed} or a Notion object; got {notion!r}")


def as_notion(notion: str | Notion, predictions: Predictions) -> Notion:
    """Resolve a notion given as a string or an object; ``"auto"`` is decided by the shape of ``y_prob``."""
    found = notion_named(notion)
    if isinstance(found, ClassSpecific) and isinstance(notion, str) and isinstance(found.label, str):
        # A label that was typed, in the kind of the classes.
        return ClassSpecific(next((c for c in predictions.classes if str(c) == found.label), found.label))
    if isinstance(found, Notion):
        return found
    return ClassSpecific() if predictions.positive is not None else Confidence()


def _domain(p: Predictions) -> tuple[float, float]:
    """Where a confidence can lie: [1/K, 1], or further down where a loose ``sum_tolerance`` let rows sum to less."""
    lowest = float(p.confidence.min())
    floor = 1 / p.n_classes
    return (floor if lowest > floor * (1 - 1e-3) else lowest, 1.0)


def one_vs_rest(predictions: Predictions, k: int) -> Target:
    """Class ``k`` against the rest."""
    return Target(predictions.score(k), k, label=predictions.classes[k])


def only_problem(notion: Notion, predictions: Predictions) -> Problem:
    """The problem of a notion that has one, of one score; ValueError for the others."""
    problems = notion.reduce(predictions)
    if isinstance(problems, VectorProblem) or len(problems) != 1:
        raise ValueError(f"notion {notion.name!r} has several problems: take one class with ClassSpecific(label)")
    return problems[0]
