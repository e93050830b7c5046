"""`Accumulator`: predictions in any pieces, on any number of machines, into mergeable sums of fixed size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ._types import FloatArray, Label, RandomState
from ._validation import as_predictions
from .binning import BinMoments, Edges, resolve_n_bins, uniform_edges
from .curves.reliability import check_level, check_resamples
from .density import GridMoments
from .errors import AdaptiveKernel, Binned, CellEstimator, Density, EmpiricalBayes, ResidualKernel, Smooth
from .errors.norm import check_norm
from .estimation import estimate_from_summaries
from .notions import Canonical, Classwise, Notion, as_notion
from .predictions import Predictions
from .problem import OneVsRest, Problem, VectorProblem
from .results import Estimate
from .scores import brier_per_sample, log_loss_per_sample

#: Cells of the fine histogram from which quantile bins are made when rows are not kept.
FINE_CELLS = 65536
DEFAULT_BINS = Binned()


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over all rows that need no binning."""

    n_samples: int
    weight: float
    squares: float
    integral: bool
    class_weight: FloatArray
    prob_sum: FloatArray
    correct: float
    brier: float
    log_loss: float
    weighted: bool

    @classmethod
    def of(cls, p: Predictions) -> Totals:
        """Sums of validated predictions."""
        w = np.ones(p.n_samples) if p.weights is None else p.weights
        k = p.n_classes
        if p.positive is None:
            prob_sum = w @ p.probs
        else:
            prob_sum = np.empty(2)
            prob_sum[p.positive] = w @ p.probs
            prob_sum[1 - p.positive] = w.sum() - prob_sum[p.positive]
        return cls(
            p.n_samples,
            float(w.sum()),
            float(w @ w),
            p.integral_weights,
            np.bincount(p.codes.astype(np.intp), w, minlength=k).astype(np.float64),
            np.asarray(prob_sum, dtype=np.float64),
            float(w @ (p.predicted == p.codes)),
            float(w @ brier_per_sample(p)),
            _weighted_sum(log_loss_per_sample(p), w),
            p.weights is not None,
        )

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.n_samples + other.n_samples,
            self.weight + other.weight,
            self.squares + other.squares,
            self.integral and other.integral,
            self.class_weight + other.class_weight,
            self.prob_sum + other.prob_sum,
            self.correct + other.correct,
            self.brier + other.brier,
            self.log_loss + other.log_loss,
            self.weighted or other.weighted,
        )

    @property
    def effective_size(self) -> float:
        """Sample size: rows, repeats, or Kish's effective size for relative weights."""
        return self.weight if self.integral else self.weight**2 / self.squares


def _weighted_sum(values: FloatArray, weights: FloatArray) -> float:
    """Sum that keeps infinities but not those of rows with weight 0 (0 · inf)."""
    used = weights > 0
    return float(weights[used] @ values[used])


@dataclass(frozen=True, eq=False)
class ProblemSums:
    """Mergeable summaries of one problem: bins, grid counts and, where kept, a fine histogram."""

    label: Label
    domain: tuple[float, float]
    bins: BinMoments
    grid: GridMoments
    fine: BinMoments | None = None

    @classmethod
    def of(cls, problem: Problem, *, binned: Binned, fine: bool, bins: BinMoments | None = None) -> ProblemSums:
        """Summaries of a problem's samples; ``bins`` where they are known already."""
        return cls(
            problem.label,
            problem.domain,
            binned.summarize(problem) if bins is None else bins,
            GridMoments.of(problem),
            BinMoments.of(problem, uniform_edges(FINE_CELLS)) if fine else None,
        )

    def __add__(self, other: ProblemSums) -> ProblemSums:
        fine = None if self.fine is None or other.fine is None else self.fine + other.fine
        return ProblemSums(self.label, self.domain, self.bins + other.bins, self.grid + other.grid, fine)

    def summary(self, estimator: CellEstimator, binned: Binned) -> Any:
        """Summary that an estimator needs, from what was kept; ValueError when it cannot be had."""
        if isinstance(estimator, (AdaptiveKernel, Density, EmpiricalBayes, ResidualKernel, Smooth)):
            return self.grid
        if isinstance(estimator, Binned):
            if estimator.fixed and replace(estimator, debias=binned.debias) == binned:
                return self.bins
            if self.fine is not None and estimator.strategy == "quantile" and estimator.mapping == "hard":
                return quantile_from_fine(self.fine, estimator.n_bins, self.domain)
        raise ValueError(
            f"{estimator!r} needs the rows: sums serve kernels, quantile bins with hard mapping (one problem), "
            f"and {binned!r}; pass another `binned` to the Accumulator"
        )


def quantile_from_fine(
    fine: BinMoments, n_bins: int | str | Sequence[float], domain: tuple[float, float]
) -> BinMoments:
    """Quantile bins whose edges are edges of the fine histogram: exact sums, edges rounded up to 1/65536."""
    if not isinstance(n_bins, (int, str)):
        raise ValueError(f"quantile bins need a number of bins; got edges {n_bins!r}")
    cumulative = np.cumsum(fine.weight)
    total = float(cumulative[-1])
    n = total if fine.integral else total**2 / float(fine.square.sum())
    count = resolve_n_bins(n_bins, n)
    targets = np.arange(1, count) * (total / count)
    if fine.integral:
        targets = np.floor(targets + 1e-9)
    cuts = np.searchsorted(cumulative, targets[targets > 0] * (1 - 1e-12), side="left") + 1
    # A cut behind the last sample would leave nothing on its right: it moves before the last cell in use.
    last = int(np.flatnonzero(fine.weight)[-1])
    cuts = np.where(cuts > last, last, cuts)
    first = int(np.flatnonzero(fine.weight)[0])
    keep = np.unique(np.concatenate([[0], cuts[cuts > first], [len(cumulative)]]))
    moments = fine.coarsen(keep)
    edges = moments.edges.values.copy()
    edges[0], edges[-1] = domain[0] if edges[1] > domain[0] else edges[0], domain[1]
    return replace(moments, edges=Edges(edges))


class Accumulator:
    """Calibration of predictions that arrive in pieces: constant memory, mergeable, the same numbers as at once.

    Parameters
    ----------
    notion : str or Notion, default "auto"
        Any notion but canonical. ``"auto"`` is decided by the first piece.
    labels, pos_label, sum_tolerance
        See :func:`as_predictions`. A piece may lack some labels, so say ``labels`` unless they are 0/1, the
        integers 0 … K-1, or a frame's column names.
    binned : Binned, default ``Binned(15)``
        Bins to keep, of fixed edges.

    Notes
    -----
    Kept: 15 bins and a grid of 4097 counts a problem and a class, and one histogram of 65536 cells when the
    notion has one problem, from which quantile bins are made. About 70 kB a class. Sums are exact up to the
    rounding of float64 addition; only quantile edges are rounded (up, to 1/65536).

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000); y = rng.random(1000) < p
    >>> pieces = cal.Accumulator().add(y[:300], p[:300]) + cal.Accumulator().add(y[300:], p[300:])
    >>> bool(np.isclose(pieces.estimate(cal.Density()).value, cal.calibration_error(y, p, estimator=cal.Density())))
    True
    """

    def __init__(
        self,
        *,
        notion: str | Notion = "auto",
        labels: Sequence[Any] | None = None,
        pos_label: Any = None,
        sum_tolerance: float | None = None,
        binned: Binned = DEFAULT_BINS,
    ) -> None:
        if not isinstance(binned, Binned) or not binned.fixed:
            raise ValueError(f"binned must be Binned(...) with fixed edges (uniform or explicit); got {binned!r}")
        self.notion = notion
        self.labels = labels
        self.pos_label = pos_label
        self.sum_tolerance = sum_tolerance
        self.binned = binned
        self.classes: tuple[Label, ...] = ()
        self.positive: int | None = None
        self.totals: Totals | None = None
        self.problems: dict[Label, ProblemSums] = {}
        self.class_sums: dict[Label, ProblemSums] = {}

    def add(self, y_true: Any, y_prob: Any, sample_weight: Any = None) -> Accumulator:
        """Add a piece; returns self. A bad piece raises and leaves the sums as they were."""
        # The first piece settles the labels: a later one may lack some.
        settled = self.totals is not None
        predictions = as_predictions(
            y_true,
            y_prob,
            labels=self.classes if settled else self.labels,
            pos_label=self.classes[self.positive] if settled and self.positive is not None else self.pos_label,
            sample_weight=sample_weight,
            sum_tolerance=self.sum_tolerance,
        )
        return self.add_predictions(predictions)

    def add_predictions(self, predictions: Predictions) -> Accumulator:
        """Add predictions that were validated before."""
        p = predictions
        if self.totals is not None and (self.classes, self.positive) != (p.classes, p.positive):
            raise ValueError(
                f"pieces must speak of the same labels: {list(self.classes)!r} before, {list(p.classes)!r} now; "
                "pass labels=[...] to the Accumulator"
            )
        notion = as_notion(self.notion, p)
        if isinstance(notion, Canonical):
            raise ValueError("notion 'canonical' cannot be streamed or reported: use estimate(..., notion='canonical')")
        reduction = notion.reduce(p)
        problems: dict[Label, ProblemSums] = {}
        classes: dict[Label, ProblemSums] = {}
        if p.positive is None or isinstance(notion, Classwise):
            everything = reduction if isinstance(reduction, OneVsRest) else Classwise().reduce(p)
            classes = self._sums(everything, fine=False)
        if isinstance(reduction, OneVsRest):
            problems = classes
        elif not isinstance(reduction, VectorProblem):
            problems = self._sums(reduction, fine=len(reduction) == 1 and notion.name != "top-label")
        totals = Totals.of(p)
        # Everything that can fail has run: from here on only sums change.
        self.notion, self.classes, self.positive = notion, p.classes, p.positive
        self.totals = totals if self.totals is None else self.totals + totals
        self.problems = _merged(self.problems, problems)
        self.class_sums = _merged(self.class_sums, classes)
        return self

    def _sums(self, problems: Sequence[Problem], *, fine: bool) -> dict[Label, ProblemSums]:
        bins = self.binned.summarize_all(problems)
        return {
            problem.label: ProblemSums.of(problem, binned=self.binned, fine=fine, bins=b)
            for problem, b in zip(problems, bins, strict=True)
        }

    def __add__(self, other: Accumulator) -> Accumulator:
        """Merge two accumulators into a new one."""
        if not isinstance(other, Accumulator):
            return NotImplemented
        if self.binned != other.binned:
            raise ValueError(f"accumulators of different bins cannot merge: {self.binned!r} and {other.binned!r}")
        first, second = (self, other) if self.totals is not None else (other, self)
        if first.totals is not None and second.totals is not None:
            ours, theirs = ((a.classes, a.positive, a.notion) for a in (first, second))
            if ours != theirs:
                raise ValueError(
                    f"accumulators of different labels or notions cannot merge: {list(first.classes)!r} "
                    f"({first.notion!r}) and {list(second.classes)!r} ({second.notion!r})"
                )
        out = Accumulator(
            notion=first.notion,
            labels=first.labels,
            pos_label=first.pos_label,
            sum_tolerance=first.sum_tolerance,
            binned=first.binned,
        )
        out.classes, out.positive = first.classes, first.positive
        out.totals = first.totals
        if first.totals is not None and second.totals is not None:
            out.totals = first.totals + second.totals
        out.problems = _merged(self.problems, other.problems)
        out.class_sums = _merged(self.class_sums, other.class_sums)
        return out

    merge = __add__

    def required_totals(self) -> Totals:
        """Totals; ValueError when nothing was added."""
        if self.totals is None:
            raise ValueError("no rows were added yet")
        return self.totals

    @property
    def n_samples(self) -> int:
        """Rows added so far."""
        return 0 if self.totals is None else self.totals.n_samples

    def estimate(
        self,
        estimator: CellEstimator | None = None,
        *,
        norm: float = 1,
        level: float = 0.95,
        n_resamples: int = 400,
        random_state: RandomState = None,
    ) -> Estimate:
        """Calibration error of all rows added, as :func:`calibrant.estimate`; by default ``EmpiricalBayes()``."""
        chosen = EmpiricalBayes() if estimator is None else estimator
        if not isinstance(chosen, CellEstimator):
            raise TypeError(f"estimator must be Binned(...) or Density(...); got {chosen!r}")
        sums = list(self.ordered_problems().values())
        summaries = [s.summary(chosen, self.binned) for s in sums]
        return self.estimate_of(chosen, summaries, norm, level, n_resamples, np.random.default_rng(random_state))

    def estimate_of(
        self,
        estimator: CellEstimator,
        summaries: Sequence[Any],
        norm: float,
        level: float,
        n_resamples: int,
        rng: np.random.Generator,
    ) -> Estimate:
        """Estimate of this accumulator's problems from given summaries of them."""
        totals = self.required_totals()
        sums = self.ordered_problems()
        notion: Any = self.notion
        classwise = isinstance(notion, Classwise)
        mass = np.array([s.grid.total for s in sums.values()])
        checked = check_level(level)
        if checked is None:
            raise ValueError("level must lie strictly between 0 and 1; got None")
        return estimate_from_summaries(
            estimator,
            summaries,
            labels=list(sums),
            shares=[1 / len(sums)] * len(sums) if classwise else list(mass / mass.sum()),
            average=getattr(notion, "average", "power"),
            dependent=classwise,
            notion=notion.name,
            norm=check_norm(norm),
            level=checked,
            n_resamples=check_resamples(n_resamples),
            n_samples=totals.n_samples,
            size=totals.effective_size,
            rng=rng,
        )

    def ordered_problems(self) -> dict[Label, ProblemSums]:
        """Sums a problem, in class order."""
        self.required_totals()
        if len(self.problems) == 1:
            return self.problems
        return {c: self.problems[c] for c in self.classes if c in self.problems}


def _merged(a: Mapping[Label, ProblemSums], b: Mapping[Label, ProblemSums]) -> dict[Label, ProblemSums]:
    out = dict(a)
    for label, sums in b.items():
        out[label] = out[label] + sums if label in out else sums
    return out
