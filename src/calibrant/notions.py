"""Notions of calibration, following the survey of Silva Filho et al.

A notion defines the score of a row, and when its outcome is 1; the rest of the package does not depend on the notion.

References
----------
Silva Filho et al. (2023), *Classifier calibration: a survey*, §2; Gupta & Ramdas (2022), *Top-label
calibration and multiclass-to-binary reductions* (for top-label).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from .data.checks import check_choice, received
from .data.columns import some
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
    "Multilabel",
    "Notion",
    "Ordinal",
    "Target",
    "TopLabel",
]


def __dir__() -> list[str]:
    return list(__all__)


_AVERAGES = ("power", "mean", "max")
_OF_LABELS = ("macro", "micro", "weighted")


@dataclass(frozen=True, eq=False)
class Target:
    """One problem before labels are known: the scores of its rows, and the labels that make their outcomes 1.

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
        Range of the scores.
    label : object
        The class whose probability the scores are, if there is one.
    share : float or None
        Weight among the notion's problems, with sum 1; None for equal weights.
    column : int, ndarray of shape (m,) or None
        If rows have several labels, the position of the label that makes the outcome 1, in place of ``wanted``.

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
    column: int | IntArray | None = None

    def outcomes(self, codes: AnyArray) -> AnyArray:
        """Whether each row's outcome is 1, (m, …), from label codes of all rows, (n, …); for vectors (m, …, K).

        Parameters
        ----------
        codes : ndarray of shape (n, …)
            Label codes of all rows; for several labels, whether rows have each of them, (n, L, …).
        """
        if self.column is not None:
            return np.asarray(codes[slice(None) if self.rows is None else self.rows, self.column])
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
    """Base class of notions of calibration: frozen values with a ``name`` and :meth:`targets`.

    Attributes
    ----------
    average : {"power", "mean", "max"}
        How errors of several problems are combined.
    dependent : bool
        Whether several problems share the same rows (rather than splitting them).
    exclusive : bool
        Whether these problems are of classes, of which exactly one occurs in every row.
    splits : bool
        Whether rows are split among classes, so that there are as many problems as classes that have rows.
    vector : bool
        Whether the score is a vector.
    several : bool
        Whether rows may have several labels.
    drawn : bool
        Whether only the component of the observed class counts in a vector.

    See Also
    --------
    calibrant.notions.Target : A value that ``targets`` yields.
    calibrant.notions.ClassSpecific : A notion with one problem.

    Examples
    --------
    A custom notion, which every function with ``notion=`` accepts: is the total probability of the two most probable
    classes calibrated?

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
    dependent: bool = False
    exclusive: ClassVar[bool] = False
    splits: ClassVar[bool] = False
    vector: ClassVar[bool] = False
    drawn: ClassVar[bool] = False
    several: ClassVar[bool] = False

    @property
    def per_class(self) -> bool:
        """Whether there is a problem per class, rather than a single one."""
        return self.dependent or self.splits

    @property
    def combining(self) -> str:
        """How errors of several problems are combined: "power", "mean" or "max"."""
        return self.average

    def labels(self, classes: tuple[Label, ...]) -> tuple[Label, ...]:
        """Labels of all possible problems.

        Parameters
        ----------
        classes : tuple
            The classes, or labels.
        """
        return classes if self.per_class else (None,)

    def shares(self, mass: FloatArray, positive: FloatArray) -> tuple[float, ...]:
        """Weights of several problems, from sums: by the weight of their rows if they split them, else equal.

        Parameters
        ----------
        mass : ndarray of shape (R,)
            Weight of the rows of each problem.
        positive : ndarray of shape (R,)
            Weight of the rows where its outcome is 1.
        """
        return (1 / len(mass),) * len(mass) if self.dependent else tuple((mass / mass.sum()).tolist())

    @abstractmethod
    def targets(self, predictions: Predictions) -> Iterable[Target]:
        """Yield the problems: scores of rows, and the labels that make their outcomes 1.

        Parameters
        ----------
        predictions : Predictions
            The validated rows.
        """

    def reduce(self, predictions: Predictions) -> Reduction:
        """Reduce predictions to the problem, or problems, of this notion.

        Parameters
        ----------
        predictions : Predictions
            The validated rows.
        """
        truth = predictions.codes if self.vector else predictions.truth
        found: Reduction = self.designed(self.reducer(predictions)(truth), predictions)
        return found

    def designed(self, reduction: Any, predictions: Predictions) -> Any:
        """Add the design effects of grouped rows to problems.

        Parameters
        ----------
        reduction : Reduction
            The problems.
        predictions : Predictions
            The validated rows.
        """
        groups = self.groups(predictions)
        if groups is None:
            return reduction
        if self.vector:
            every = Classwise().reduce(predictions)
            return replace(reduction, design=float(every.designs.mean()))
        if isinstance(reduction, OneVsRestProblems):
            found = np.concatenate([design_parts(t, np.tile(groups, len(t))) for t in reduction.tiles()])
        else:
            rows = [groups if t.rows is None else groups[t.rows] for t in self.targets(predictions)]
            found = design_parts(reduction, np.concatenate(rows))
        return replace(reduction, design=tuple(found[:, 0].tolist()), effects=found)

    def groups(self, predictions: Predictions) -> IntArray | None:
        """Codes of the rows' groups; None if different rows of a problem are independent.

        Parameters
        ----------
        predictions : Predictions
            The validated rows.
        """
        return predictions.groups

    def reducer(self, predictions: Predictions) -> Callable[[AnyArray], Reduction]:
        """Return a function from label codes to problems; scores are computed only once.

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
        return _problems(p, targets, self.combining, self.dependent)

    def __str__(self) -> str:
        return self.name


def _problems(
    p: Predictions, targets: tuple[Target, ...], average: str, dependent: bool
) -> Callable[[AnyArray], Problem]:
    """A function from label codes to the problems of all targets, with concatenated rows."""

    def outcomes(target: Target, codes: AnyArray) -> AnyArray:
        if target.rows is None and isinstance(target.wanted, int) and codes is p.truth:
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
    """Calibration of one class: ``P(Y = label | P_label(X) = s) = s`` for every s.

    Parameters
    ----------
    label : label or None, default None
        The class; None means the positive class of a binary problem.

    See Also
    --------
    calibrant.notions.Classwise : Every class separately.
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
        """Yield one problem, with scores in [0, 1]."""
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
                f"ClassSpecific(label), one of {some(predictions.classes)}"
            )
        if self.label not in predictions.classes:
            raise ValueError(
                f"notion ClassSpecific({some([self.label])}) must name one of the labels [{some(predictions.classes)}]"
            )
        return predictions.classes.index(self.label)

    def __str__(self) -> str:
        return self.name if self.label is None else f"{self.name}:{self.label}"


@dataclass(frozen=True)
class Classwise(Notion):
    """Calibration of every class separately: ``P(Y = k | P_k(X) = s) = s`` for every k and s.

    Parameters
    ----------
    average : {"power", "mean", "max"}, default "power"
        How class errors e_k are combined. ``"power"`` (default): ``(mean_k e_kᵖ)^(1/p)``, the
        maximum over classes for p = inf; ``"mean"``: the plain mean of the class errors (with p = inf the
        survey's mean class-wise MCE); ``"max"``: the worst class.

    See Also
    --------
    calibrant.notions.ClassSpecific : One class.
    calibrant.notions.TopLabel : Predicted classes, each separately.

    Examples
    --------
    >>> import calibrant as cal
    >>> y, p = [0, 1, 2], [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
    >>> round(cal.calibration_error(y, p, notion=cal.notions.Classwise(average="max"), estimator=cal.Binned()), 3)
    0.267
    """

    average: str = "power"
    name: ClassVar[str] = "classwise"
    dependent: ClassVar[bool] = True  # type: ignore[misc]  # of a value in the base class
    exclusive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choice("average", self.average, _AVERAGES)

    def targets(self, predictions: Predictions) -> Iterator[Target]:
        """Yield K problems that share their rows."""
        return (one_vs_rest(predictions, k) for k in range(predictions.n_classes))

    def reduce(self, predictions: Predictions) -> OneVsRestProblems:
        """See :meth:`Notion.reduce`."""
        found: OneVsRestProblems = self.designed(self.reducer(predictions)(predictions.truth), predictions)
        return found

    def reducer(self, predictions: Predictions) -> Callable[[AnyArray], OneVsRestProblems]:
        """Return a function from label codes to problems; columns are sliced from the matrix on demand."""
        return partial(_columns, predictions, self.average)


@dataclass(frozen=True)
class Multilabel(Notion):
    """Calibration of every label, if rows may have several or none: ``P(label k | P_k(X) = s) = s`` for every k and s.

    ``y_true`` of shape (n, L) indicates which of L labels a row has, and ``y_prob`` of the same shape the probability
    of each. The columns are L two-class problems of the same rows.

    Parameters
    ----------
    average : {"macro", "micro", "weighted"}, default "macro"
        How label errors are combined. ``"macro"``: with equal weights, ``(mean_k e_kᵖ)^(1/p)``. ``"weighted"``: by the
        weight of the rows that have the label, as in scikit-learn (equally if no row has any). ``"micro"``: all n L
        entries form one problem, in which those of one row form a group.

    See Also
    --------
    calibrant.notions.Classwise : Classes, with exactly one per row.
    calibrant.notions.ClassSpecific : One of the labels.
    calibrant.calibrators.OneVsRest : A calibrator for several labels, with ``normalisation="none"``.

    Examples
    --------
    >>> import calibrant as cal
    >>> Y, P = [[1, 1, 0], [0, 0, 0], [1, 0, 1]], [[0.8, 0.9, 0.1], [0.2, 0.3, 0.1], [0.9, 0.4, 0.6]]
    >>> round(cal.calibration_error(Y, P, notion="multilabel", estimator=cal.Binned(5)), 3)
    0.211
    >>> round(cal.calibration_error(Y, P, notion=cal.notions.Multilabel("micro"), estimator=cal.Binned(5)), 3)
    0.211
    """

    average: str = "macro"
    name: ClassVar[str] = "multilabel"
    several: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_choice("average", self.average, _OF_LABELS)

    @property
    def dependent(self) -> bool:  # type: ignore[override]  # of a value in the base class
        """Whether there is a problem per label, with the same rows."""
        return self.average != "micro"

    @property
    def combining(self) -> str:
        """See :class:`Notion`."""
        return "power"

    def targets(self, predictions: Predictions) -> Iterator[Target]:
        """Yield L problems that share their rows, or one problem of all entries, label by label."""
        p, k = predictions, predictions.n_classes
        if self.average == "micro":
            rows, column = np.tile(np.arange(p.n_samples), k), np.repeat(np.arange(k), p.n_samples)
            yield Target(p.probs.T.reshape(-1), None, rows, column=column)
            return
        for i, share in enumerate(self._shares_of(p)):
            yield replace(one_vs_rest(p, i), share=share)

    def reducer(self, predictions: Predictions) -> Callable[[AnyArray], Reduction]:
        """Return a function from label codes to problems; columns are sliced from the matrix on demand."""
        if self.average == "micro":
            return super().reducer(predictions)
        return partial(_columns, predictions, "power", weighing=self._shares_of(predictions))

    def groups(self, predictions: Predictions) -> IntArray | None:
        """Codes of the rows' groups; entries of a row in one problem also form a group.

        Parameters
        ----------
        predictions : Predictions
            The validated rows.
        """
        alone = predictions.groups is None and not self.dependent
        return np.arange(predictions.n_samples) if alone else predictions.groups

    def shares(self, mass: FloatArray, positive: FloatArray) -> tuple[float, ...]:
        """See :meth:`Notion.shares`.

        Parameters
        ----------
        mass, positive : ndarray of shape (R,)
            Weight of the rows of each problem, and of those where its outcome is 1.
        """
        if self.average != "weighted" or not positive.any():
            return (1 / len(mass),) * len(mass)
        return tuple((positive / positive.sum()).tolist())

    def _shares_of(self, p: Predictions) -> tuple[float, ...]:
        truth = p.truth
        positive = truth.sum(axis=0, dtype=np.float64) if p.weights is None else p.weights @ truth
        return self.shares(positive, positive)

    def __str__(self) -> str:
        return self.name if self.average == "macro" else f"{self.name}:{self.average}"


@dataclass(frozen=True)
class Ordinal(Notion):
    """Calibration of cumulative probabilities: ``P(Y ≤ k | F_k(X) = s) = s`` for every s and every k except the last.

    Classes are in the order of the columns (``labels=``), from the lowest to the highest; texts without ``labels`` are
    in alphabetical order, which is seldom theirs. The K - 1 problems share their rows, are labelled by k, and combine
    as ``(mean_k e_kᵖ)^(1/p)``.

    See Also
    --------
    calibrant.notions.Classwise : Every class separately, in any order.
    calibrant.scores.RankedProbability : The score for the same problems.

    Examples
    --------
    >>> import calibrant as cal
    >>> P = [[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]]
    >>> found = cal.estimate([0, 1, 2], P, notion="ordinal", estimator=cal.Binned(5))
    >>> {k: round(e, 3) for k, e in found.per_class.items()}
    {0: 0.167, 1: 0.233}
    """

    name: ClassVar[str] = "ordinal"
    dependent: ClassVar[bool] = True  # type: ignore[misc]  # of a value in the base class

    def targets(self, predictions: Predictions) -> Iterator[Target]:
        """Yield K - 1 problems that share their rows."""
        p, k = predictions, predictions.n_classes
        up_to = np.cumsum(p.matrix, axis=1, dtype=np.float64)
        for i in range(k - 1):
            scores = np.minimum(up_to[:, i], 1.0).astype(p.probs.dtype)
            wanted = np.broadcast_to(np.arange(k) <= i, (len(p.codes), k))
            yield Target(scores, wanted, label=p.classes[i])

    def labels(self, classes: tuple[Label, ...]) -> tuple[Label, ...]:
        """See :meth:`Notion.labels`.

        Parameters
        ----------
        classes : tuple
            The classes.
        """
        return classes[:-1]


def _columns(
    p: Predictions, average: str, truth: AnyArray, weighing: tuple[float, ...] | None = None
) -> OneVsRestProblems:
    """The problem of every column, with these labels."""
    about = p.weights, p.integral_weights, p.eps, p.classes, average
    return OneVsRestProblems(p.matrix, truth, *about, weighing=weighing)


@dataclass(frozen=True)
class Confidence(Notion):
    """Calibration of the predicted class, the first if tied: ``P(Y = argmax P(X) | max P(X) = s) = s`` for every s.

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
        """Yield one problem, with scores in [1/K, 1]."""
        p = predictions
        yield Target(p.confidence, p.predicted, domain=_domain(p))


@dataclass(frozen=True)
class TopLabel(Notion):
    """Calibration of the predicted class, given that class: ``P(Y = k | argmax = k, max P(X) = s) = s`` for every k, s.

    Classes that are never predicted are left out; the others are weighted by how often they are predicted.

    Parameters
    ----------
    average : {"power", "mean", "max"}, default "power"
        How class errors are combined, as in :class:`Classwise`.

    See Also
    --------
    calibrant.notions.Confidence : All predicted classes together.
    calibrant.calibrators.TopLabelCalibrator : A calibrator for this notion.

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
        """Yield one problem per predicted class; they split the rows."""
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
    """Calibration of the probability vector: ``P(Y = k | P(X) = q) = q_k`` for every q in the simplex and every k.

    See Also
    --------
    calibrant.notions.Classwise : Every class separately, which is weaker.
    calibrant.estimators.DirichletKernel : An estimator for this notion.

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
        """Yield one vector problem."""
        yield Target(predictions.matrix, None)


@dataclass(frozen=True)
class DrawnClass(Canonical):
    """Calibration of the probability vector at the observed class: ``E |P(Y = c | s) - s_c|`` for ``c = Y``.

    Equivalent to :class:`Canonical` calibration, but with a different error: the mean gap of one class, drawn with its
    frequency, whereas the canonical L1 error is the sum over all classes. It is at most half of that: gaps of a vector
    sum to 0, so none exceeds half of the sum of their absolute values. With two classes it is the error of either.

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
_BY_NAME |= {str(n): n for n in (Ordinal(), *map(Multilabel, _OF_LABELS))}
_BY_NAME["class-wise"] = Classwise()


def notion_named(notion: str | Notion) -> str | Notion:
    """Return the notion with a name; ``"auto"``, which depends on predictions, stays unchanged."""
    if isinstance(notion, Notion) or (isinstance(notion, str) and notion == "auto"):
        return notion
    name, _, label = notion.partition(":") if isinstance(notion, str) else ("", "", "")
    if name == "class-specific" and label:
        return ClassSpecific(label)
    if isinstance(notion, str) and notion in _BY_NAME:
        return _BY_NAME[notion]
    allowed = ", ".join(repr(n) for n in ("auto", *_BY_NAME, "class-specific:LABEL"))
    raise ValueError(f"notion must be one of {allowed} or a Notion object; got {received(notion)}")


def as_notion(notion: str | Notion, predictions: Predictions) -> Notion:
    """Resolve a notion given as a string or an object; ``"auto"`` is decided by the shape of ``y_prob``."""
    found = notion_named(notion)
    if isinstance(found, ClassSpecific) and isinstance(notion, str) and isinstance(found.label, str):
        # A label that was typed, in the kind of the classes.
        return ClassSpecific(next((c for c in predictions.classes if str(c) == found.label), found.label))
    if not isinstance(found, Notion):
        found = ClassSpecific() if predictions.positive is not None else Confidence()
        return Multilabel() if predictions.several else found
    if predictions.several and isinstance(found, Classwise):
        raise ValueError("notion 'classwise' needs one class per row: for several labels per row use 'multilabel'")
    if isinstance(found, Multilabel) and not predictions.several:
        raise ValueError(
            "notion 'multilabel' needs y_true and y_prob of shape (n, L), one column per label (in Predictions: "
            "as_predictions(…, multilabel=True); in from_frame: label= and prob= as lists of columns)"
        )
    return found


def _domain(p: Predictions) -> tuple[float, float]:
    """Range of confidences: [1/K, 1], or from less if a loose ``sum_tolerance`` allowed rows with smaller sums."""
    lowest = float(p.confidence.min())
    floor = 1 / p.n_classes
    return (floor if lowest > floor * (1 - 1e-3) else lowest, 1.0)


def one_vs_rest(predictions: Predictions, k: int) -> Target:
    """Class ``k`` against the rest, or one of several labels."""
    wanted = {"wanted": None, "column": k} if predictions.several else {"wanted": k}
    return Target(predictions.score(k), label=predictions.classes[k], **wanted)


def alone(predictions: Predictions, notion: Notion) -> tuple[Predictions, Notion]:
    """The label of a class-specific notion, among several, as a two-class problem; else the arguments."""
    if predictions.several and isinstance(notion, ClassSpecific):
        return predictions.one_label(notion.index(predictions)), ClassSpecific()
    return predictions, notion


def only_problem(notion: Notion, predictions: Predictions) -> Problem:
    """The problem of a notion with a single scalar one; ValueError for other notions."""
    problems = notion.reduce(predictions)
    if notion.several or isinstance(problems, VectorProblem) or len(problems) != 1:
        raise ValueError(f"notion {notion.name!r} has several problems: take one class with ClassSpecific(label)")
    return problems[0]
