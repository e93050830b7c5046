"""Input of estimators: one-dimensional problems side by side, or one vector problem.

Samples of a benchmark, classes of a one-vs-rest reduction, predicted classes, subgroups, days: all are *many problems
in one dimension*. Their rows are stored in one flat column, problem after problem, and processed in tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, overload

import numpy as np

from .predictions import effective_size
from .types import AnyArray, FloatArray, IntArray, Label
from .weights import are_binary

#: Rows processed at a time: their temporaries stay in the cache.
TILE = 1 << 17
#: Probabilities of classes that are summed together: few calls per class, and temporaries of fits still fit the cache.
_CLASSES = 1 << 19
_ROWS = 512


@dataclass(frozen=True, eq=False)
class Problem(Sequence["Problem"]):
    """One calibration problem in one dimension, or many: is the mean of ``outcomes`` at score s equal to s?

    Results have the ``shape`` of the problems: () for one, (R,) for many.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores in [0, 1], float32 or float64; for many problems, one after the other.
    outcomes : ndarray of shape (n,)
        Outcomes 0 and 1, of any integer, bool or float dtype.
    weights : ndarray of shape (n,) or None
    integral : bool
        Whether the weights count repeats (see :attr:`Predictions.integral_weights`).
    domain : tuple of float
        Range of the scores: (0, 1), or (1/K, 1) for a confidence.
    eps : float
        Rounding unit of the scores as the user passed them.
    label : object
        The class whose probability the scores are, None for a confidence; for many problems, a tuple.
    share : float
        Weight of this problem among its siblings, for many problems a tuple; the shares of a set sum to 1.
    starts : ndarray of shape (R + 1,) or None
        Start of the rows of each of many problems, then the end of the last; None for one problem.
    average : {"power", "mean", "max"}
        How errors of many problems combine. ``"power"``: ``(Σ share · eᵖ)^(1/p)``, the maximum for p = inf; ``"mean"``:
        ``Σ share · e``; ``"max"``: the worst.
    dependent : bool
        Whether many problems share rows (one-vs-rest) rather than splitting them.
    exclusive : bool
        Whether exactly one of their outcomes occurs in every row, as for classes.
    design : float, tuple of float or None
        Number of rows with as much information as one independent row (see
        :func:`calibrant.data.dependence.design_effects`), for many problems a tuple; None if all are independent.
    effects : ndarray of shape (R, 5) or None
        Design effects of parts of the residuals (see :func:`calibrant.data.dependence.design_parts`).
    alternate : bool
        Whether rows of R problems alternate, row i belonging to problem i mod R, as in a matrix: for sums over rows.
    """

    scores: FloatArray
    outcomes: AnyArray
    weights: FloatArray | None = None
    integral: bool = True
    domain: tuple[float, float] = (0.0, 1.0)
    eps: float = float(np.finfo(np.float64).eps)
    label: Label = None
    share: Any = 1.0
    starts: IntArray | None = None
    average: str = "power"
    dependent: bool = False
    alternate: bool = False
    design: Any = None
    effects: FloatArray | None = None
    exclusive: bool = False

    @classmethod
    def samples(
        cls, scores: FloatArray, outcomes: AnyArray, weights: FloatArray | None = None, **about: Any
    ) -> Problem:
        """Make problems from R samples of n rows: scores (R, n), outcomes and weights (R, n) or (n,)."""
        rows, n = scores.shape
        o = np.broadcast_to(outcomes, scores.shape).reshape(-1)
        w = None if weights is None else np.broadcast_to(weights, scores.shape).reshape(-1)
        return cls(scores.reshape(-1), o, w, starts=np.arange(rows + 1) * n, **about)

    @overload
    def __getitem__(self, index: int) -> Problem: ...
    @overload
    def __getitem__(self, index: slice) -> Problem: ...
    def __getitem__(self, index: int | slice) -> Problem:
        """One problem, or a slice of problems, with views of the rows."""
        alone = not isinstance(index, slice)
        a, b = _ends(index, len(self))
        rows = slice(int(self.bounds[a]), int(self.bounds[b]))
        return replace(
            self,
            scores=self.scores[rows],
            outcomes=self.outcomes[rows],
            weights=None if self.weights is None else self.weights[rows],
            label=self.labels[a] if alone else self.labels[a:b],
            share=self.shares[a] if alone else self.shares[a:b],
            design=_some(self.design, a, b, alone),
            effects=_some(self.effects, a, b, alone=False),
            starts=None if alone else self.bounds[a : b + 1] - self.bounds[a],
        )

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __iter__(self) -> Iterator[Problem]:
        return (self[i] for i in range(len(self)))

    @property
    def shape(self) -> tuple[int, ...]:
        """() for one problem, (R,) for many."""
        return () if self.starts is None else (len(self),)

    @cached_property
    def bounds(self) -> IntArray:
        """Start of the rows of each problem, then the end of the last, (R + 1,)."""
        return np.array([0, self.scores.shape[0]]) if self.starts is None else self.starts

    @property
    def labels(self) -> tuple[Label, ...]:
        """Label of each problem."""
        if self.starts is None:
            return (self.label,)
        return (
            self.label if isinstance(self.label, tuple) and len(self.label) == len(self) else (self.label,) * len(self)
        )

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of each problem."""
        if self.starts is None:
            return (float(self.share),)
        return tuple(self.share) if isinstance(self.share, tuple) else (self.share / len(self),) * len(self)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.scores.shape[0])

    @cached_property
    def counts(self) -> IntArray:
        """Number of rows of each problem, (R,)."""
        return self.bounds[1:] - self.bounds[:-1]

    @cached_property
    def row(self) -> IntArray:
        """Index of the problem of each row, (n,)."""
        if self.alternate:
            return np.tile(np.arange(len(self)), self.n_samples // len(self))
        return np.repeat(np.arange(len(self)), self.counts)

    @cached_property
    def sizes(self) -> FloatArray:
        """Sample size of each problem, (R,); see :func:`calibrant.data.predictions.effective_size`."""
        if self.weights is None:
            return self.counts / self.designs
        return np.array([one.effective_size for one in self])

    @property
    def designs(self) -> FloatArray:
        """Design effect of each problem, (R,)."""
        return np.ones(len(self)) if self.design is None else np.atleast_1d(self.design).astype(np.float64)

    @cached_property
    def parts(self) -> FloatArray | None:
        """Weights of parts of the residuals in variances, (…, 5), for rows in groups: additive sums."""
        if self.effects is None:
            return None
        w = self.weights
        each = None if w is None else w if self.integral else w * w
        found = np.bincount(self.row, each, minlength=len(self))[:, None] * self.effects
        return found if self.shape else found[0]

    @property
    def counted(self) -> bool:
        """Whether each unit of weight is an independent row."""
        return self.integral and self.design is None

    def variances(self, squares: FloatArray, weights: FloatArray) -> FloatArray:
        """Weights in variances of weighted sums, (R, …): ``Σ w``, or ``Σ w²`` if relative, times the design effect."""
        counts = weights if self.integral else squares
        if self.design is None:
            return counts
        return counts * (self.designs.reshape(self.shape + (1,) * (np.ndim(counts) - len(self.shape))))

    @cached_property
    def effective_size(self) -> float:
        """Sample size of all rows; see :func:`calibrant.data.predictions.effective_size`."""
        size = effective_size(self.weights, self.n_samples, integral=self.integral)
        return size if self.design is None else size / float(self.designs @ self.counts / max(self.n_samples, 1))

    def tiles(self, numbers: int = TILE) -> Iterator[Problem]:
        """Yield slices of problems that fit in a table of ``numbers`` values, padded to the largest problem."""
        if len(self) <= 1 or len(self) * int(self.counts.max()) <= numbers:
            yield self
            return
        first, largest = 0, 0
        for i, n in enumerate(self.counts.tolist()):
            largest = max(largest, n)
            if i > first and (i + 1 - first) * largest > numbers:
                yield self[first:i]
                first, largest = i, n
        yield self[first:]

    def added(self, sums: Callable[[Problem], tuple[FloatArray, ...]]) -> tuple[FloatArray, ...]:
        """Sums over rows, (R, …) each, computed by ``sums`` from some problems at a time."""
        parts = [sums(tile) for tile in self.tiles()]
        return parts[0] if len(parts) == 1 else tuple(np.concatenate(each) for each in zip(*parts, strict=True))

    def sums(self, needs: Any) -> Any:
        """Sums by their name, such as ``Grid()``, computed once for all estimators that need them."""
        if needs not in self._kept:
            self._kept[needs] = needs.of(self)
        return self._kept[needs]

    @cached_property
    def _kept(self) -> dict[Any, Any]:
        return {}

    @cached_property
    def ordered(self) -> Problem:
        """The rows that count, in ascending order of score within each problem; scores and outcomes float64."""
        kept = self
        if self.weights is not None and not self.weights.all():
            used = self.weights > 0
            before = np.concatenate([[0], np.cumsum(used)])
            kept = replace(
                self,
                scores=self.scores[used],
                outcomes=self.outcomes[used],
                weights=self.weights[used],
                starts=None if self.starts is None else before[self.starts],
            )
        s, o, w = _sorted(kept)
        return replace(kept, scores=s, outcomes=o, weights=w)


def _some(values: Any, a: int, b: int, alone: bool) -> Any:
    """Value of one of many problems, or of a slice of them."""
    if values is None or isinstance(values, (int, float)):
        return values
    return values[a] if alone else values[a:b]


def _ends(index: int | slice, n: int) -> tuple[int, int]:
    """Start and end of the problems that an index selects."""
    if not isinstance(index, slice):
        return range(n)[index], range(n)[index] + 1
    a, b, step = index.indices(n)
    if step != 1:
        raise ValueError(f"slices of problems must have step 1; got {step}")
    return a, max(a, b)


def _sorted(p: Problem) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Scores, outcomes and weights in ascending order of score, problem by problem."""
    n, counts = p.n_samples, p.counts
    shape = (len(p), -1) if n and int(counts.min()) * len(p) == n else None
    o = p.outcomes
    if shape and p.weights is None and are_binary(o):
        # Scores in [0, 1] leave a bit of their pattern free, which is in their order: one integer key a row.
        kind: Any = np.uint32 if p.scores.dtype == np.float32 else np.uint64
        key = (p.scores + p.scores.dtype.type(0)).view(kind) << kind(1)  # + 0 makes -0.0 a 0.0
        key |= (o == 0).astype(kind)
        key = np.sort(key.reshape(shape), axis=-1).reshape(-1)
        s = (key >> kind(1)).view(p.scores.dtype)
        return s.astype(np.float64), ((key & kind(1)) == 0).astype(np.float64), None
    if shape:
        within = np.argsort(p.scores.reshape(shape), axis=-1, kind="stable")
        order = (within + p.bounds[:-1, None]).reshape(-1)
    else:
        order = np.lexsort((p.scores, p.row))
    w = None if p.weights is None else p.weights[order].astype(np.float64)
    return p.scores[order].astype(np.float64), o[order].astype(np.float64), w


@dataclass(frozen=True, eq=False)
class OneVsRestProblems(Sequence[Problem]):
    """One-vs-rest problems of the columns of a probability matrix, extracted some at a time.

    ``truth`` holds the class of each row, (n,), or with several labels per row indicators of the labels, (n, K).
    """

    probs: FloatArray
    truth: AnyArray
    weights: FloatArray | None
    integral: bool
    eps: float
    labels: tuple[Label, ...]
    average: str = "power"
    dependent: bool = True
    design: tuple[float, ...] | None = None
    effects: FloatArray | None = None
    weighing: tuple[float, ...] | None = None
    domain: ClassVar[tuple[float, float]] = (0.0, 1.0)

    @overload
    def __getitem__(self, index: int) -> Problem: ...
    @overload
    def __getitem__(self, index: slice) -> Problem: ...
    def __getitem__(self, index: int | slice) -> Problem:
        a, b = _ends(index, len(self))
        if not isinstance(index, slice):
            return self[a:b][0]
        return Problem.samples(
            _columns(self.probs, a, b),
            self.truth == np.arange(a, b)[:, None] if self.exclusive else self.truth.T[a:b],
            self.weights,
            integral=self.integral,
            eps=self.eps,
            label=self.labels[a:b],
            share=self.shares[a:b],
            average=self.average,
            dependent=self.dependent,
            exclusive=self.exclusive,
            design=_some(self.design, a, b, alone=False),
            effects=_some(self.effects, a, b, alone=False),
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Problem]:
        return (one for tile in self.tiles() for one in tile)

    @property
    def shape(self) -> tuple[int, ...]:
        """(K,)."""
        return (len(self),)

    @property
    def exclusive(self) -> bool:
        """Whether exactly one of the outcomes occurs in every row."""
        return self.truth.ndim == 1

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of each problem."""
        return (1 / len(self),) * len(self) if self.weighing is None else self.weighing

    @property
    def n_samples(self) -> int:
        """Number of rows, which the problems share."""
        return int(self.truth.shape[0])

    @property
    def sizes(self) -> FloatArray:
        """Sample size of each problem, (K,)."""
        return effective_size(self.weights, self.n_samples, integral=self.integral) / self.designs

    @property
    def designs(self) -> FloatArray:
        """Design effect of each problem, (K,)."""
        return np.ones(len(self)) if self.design is None else np.array(self.design)

    def tiles(self, numbers: int = _CLASSES) -> Iterator[Problem]:
        """Yield slices of classes with about ``numbers`` probabilities."""
        step = max(1, numbers // max(self.n_samples, 1))
        return (self[a : a + step] for a in range(0, len(self), step))

    def added(self, sums: Callable[[Problem], tuple[FloatArray, ...]]) -> tuple[FloatArray, ...]:
        """Sums over rows, (K, …) each, computed by ``sums`` from some rows of all classes at a time."""
        step, k = max(1, TILE // len(self)), len(self)
        total: tuple[FloatArray, ...] = ()
        for a in range(0, max(self.n_samples, 1), step):
            probs, truth = self.probs[a : a + step], self.truth[a : a + step]
            if self.exclusive:
                outcomes = np.zeros(probs.shape, dtype=bool)
                outcomes[np.arange(len(truth)), truth] = True
            else:
                outcomes = truth
            weights = None if self.weights is None else np.repeat(self.weights[a : a + step], k)
            flat = Problem(probs.reshape(-1), outcomes.reshape(-1), weights, self.integral, eps=self.eps)
            found = sums(replace(flat, starts=np.arange(k + 1) * len(truth), alternate=True))
            total = tuple(x + y for x, y in zip(total, found, strict=True)) if total else found
        return total


def _columns(probs: FloatArray, a: int, b: int) -> FloatArray:
    """Columns a … b of a matrix as rows, copied in blocks of rows for the processor's cache: twice as fast."""
    out = np.empty((b - a, len(probs)), dtype=probs.dtype)
    for i in range(0, len(probs), _ROWS):
        out[:, i : i + _ROWS] = probs[i : i + _ROWS, a:b].T
    return out


@dataclass(frozen=True, eq=False)
class VectorProblem:
    """The canonical problem: is the vector of class frequencies at probability vector q equal to q?"""

    probs: FloatArray
    codes: IntArray
    weights: FloatArray | None
    integral: bool
    eps: float
    classes: tuple[Label, ...]
    logs: FloatArray | None = None
    #: Whether only the frequency of the observed class counts.
    drawn: bool = False
    #: Number of rows with as much information as one independent row; None if all are independent.
    design: float | None = None

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[0])

    @cached_property
    def effective_size(self) -> float:
        """Sample size; see :func:`calibrant.data.predictions.effective_size`."""
        return effective_size(self.weights, self.n_samples, integral=self.integral) / (self.design or 1.0)


Reduction = Problem | OneVsRestProblems | VectorProblem
