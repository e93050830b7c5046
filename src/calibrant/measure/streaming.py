"""`Accumulator`: mergeable sums of fixed size from predictions in pieces, on any number of machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..data.checks import check_bool, check_level, check_list, check_norm, received
from ..data.codec import reading_saved
from ..data.dependence import group_keys, joined_groups
from ..data.fields import reading
from ..data.predictions import Predictions
from ..data.printing import number_of
from ..data.problem import OneVsRestProblems, Problem, VectorProblem
from ..data.public_function import SumsOfRows, asks_for_labels
from ..data.result import Printable
from ..data.types import AnyArray, Label
from ..data.validation import as_predictions, check_sum_tolerance
from ..data.weights import ones_or
from ..estimators import Binned, CellEstimator, EmpiricalBayes
from ..estimators.names import as_estimator
from ..notions import Classwise, Notion, as_notion, notion_named
from ..sums import Grid
from .packing import from_bytes, rows_of, to_bytes
from .question import Question
from .result import Estimate, ReliabilityCurve
from .sums_by_class import FINE, ProblemSums, SumsByClass, Totals, added, aligned

if TYPE_CHECKING:
    from ..calibrators import Calibrator
    from ..reporting import Report
    from ..scores.score_parts import Decomposition
    from ..significance.result import TestResult

#: Attributes with the state of the added rows.
_SEEN = ("classes", "positive", "several", "totals", "problem_sums", "by_class", "groups")


class Accumulator(SumsOfRows, Printable):
    """Calibration of predictions in pieces: constant memory, mergeable, same results as for all rows at once.

    Parameters
    ----------
    notion : str or Notion, default "auto"
        Any notion of calibration except the canonical one. ``"auto"`` is resolved by the first piece.
    labels : sequence of K labels, optional
        The labels, in the order of the columns of ``y_prob``. A piece may lack some labels, so pass them unless they
        are 0/1, the integers 0 … K-1, or a frame's column names.
    binned : Binned, optional
        Bins to keep, with fixed edges; by default ``Binned(15)``.
    estimators : sequence of estimators that read sums, default ()
        Further estimators whose sums are kept: those that work on a grid of scores (the default, ``Density``,
        ``ResidualKernel``, ``AdaptiveKernel``, ``Smooth``) need not be listed.

    See Also
    --------
    calibrant.from_frame : Sums of a lazy frame, computed by its engine.
    calibrant.CalibrationMonitor : A test that is valid after every piece.
    calibrant.torch.CalibrationError : Sums of tensors, as a torchmetrics metric.

    Notes
    -----
    The state is 15 bins and a grid of 4097 counts per problem and class, and one histogram of 65536 cells if the
    notion has one problem: about 70 kB per class.

    **Exact**, up to float64 rounding: all estimators whose sums were kept (the bins of ``binned``,
    those that work on a grid, those of ``estimators``), their intervals and curves, the scores, accuracy and
    class-wise table of a report, and the decomposition over ``binned``. They equal the results for all rows at once.

    **Within a cell**: other results use the cells of that histogram, as if all rows of a cell had its mean
    score. This is the result for rows whose scores differ by at most 1/65536 from the true ones (quantile bins,
    ``Isotonic``, ``Parametric`` and others, isotonic curves, ``decompose(estimator="corp")``, binary calibrators), or
    by at most 1/n_cells for sums of :func:`calibrant.from_frame`. One-vs-rest calibrators are fitted to the grid,
    which splits each row between the two nodes around its score, 1/4096 apart, and preserves its mean.

    **Not from sums**: methods that need single rows (``CrossFit``) or whole vectors (the canonical notion, temperature
    scaling of more than two classes) raise an error.

    With ``groups``, each piece has its own design effect, and variances add: all rows of a group must be in one piece.
    Hashes of the groups are kept, 8 bytes each, to reject a group that appears in a second piece.

    Merging adds the sums of both. An accumulator without rows contributes its settings: a setting given to
    either is kept, and conflicting settings raise ValueError.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000); y = rng.random(1000) < p
    >>> shards = [cal.Accumulator().update(y[a : a + 250], p[a : a + 250]) for a in range(0, 1000, 250)]
    >>> merged = sum(shards)
    >>> bool(np.isclose(merged.calibration_error(), cal.calibration_error(y, p)))
    True
    >>> merged.calibration_test().pvalue > 0.05
    True
    """

    display: ClassVar[str] = "ReliabilityDisplay"

    #: Functions of rows that also accept sums, as methods; :mod:`calibrant.accumulator` attaches them.
    calibration_error: Callable[..., float]
    estimate: Callable[..., Estimate]
    reliability_curve: Callable[..., ReliabilityCurve | dict[Label, ReliabilityCurve]]
    report: Callable[..., Report]
    calibration_test: Callable[..., TestResult]
    decompose: Callable[..., Decomposition]
    fit: Callable[..., Calibrator]
    plot: Callable[..., Any]

    def __init__(
        self,
        *,
        notion: str | Notion = "auto",
        labels: Sequence[Any] | None = None,
        pos_label: Any = None,
        sum_tolerance: float | None = None,
        from_logits: bool = False,
        binned: str | Binned | None = None,
        estimators: Sequence[str | CellEstimator] = (),
    ) -> None:
        bins = as_estimator(binned, Binned()) if isinstance(binned, str) else binned
        if bins is not None and not (isinstance(bins, Binned) and bins._fixed):
            raise ValueError(f"binned must be Binned(...) with fixed edges (uniform or explicit); got {received(bins)}")
        named = [
            as_estimator(e, EmpiricalBayes()) for e in check_list("estimators", estimators, "a list of estimators")
        ]
        readers = [e for e in named if isinstance(e, CellEstimator)]
        if wrong := [e for e in named if not isinstance(e, CellEstimator)]:
            raise TypeError(f"estimators must be estimators that read sums; got {wrong[0]!r}")
        self.notion: Any = notion
        self.labels = labels
        self.pos_label = pos_label
        self.sum_tolerance = check_sum_tolerance(sum_tolerance)
        self.from_logits = check_bool("from_logits", from_logits)
        self.given_bins = bins
        self.estimators = tuple(readers)
        self.classes: tuple[Label, ...] = ()
        self.positive: int | None = None
        #: Whether rows have several labels.
        self.several = False
        self.totals: Totals | None = None
        self.problem_sums: SumsByClass | None = None
        self.by_class: SumsByClass | None = None
        #: Hashes of the groups added so far, sorted; None if rows are independent.
        self.groups: AnyArray | None = None
        #: Number of rows dropped as invalid, and the source of the sums if it is not :meth:`update`.
        self.dropped, self.source = 0, ""

    @property
    def summary(self) -> str:
        """Number of rows and the sums that are kept."""
        n = len(self.classes or ())
        return f"Sums of {number_of(self.n_samples, 'row')} of {n:,} classes ({self.notion}); report() evaluates them."

    @property
    def binned(self) -> Binned:
        """The bins that are kept."""
        return Binned() if self.given_bins is None else self.given_bins

    def update(self, y_true: Any, y_prob: Any = None, sample_weight: Any = None, groups: Any = None) -> Accumulator:
        """Add a piece, or Predictions, and return self; an invalid piece raises and leaves the sums unchanged.

        Cost: one pass over the rows.

        ``groups`` identify dependent rows (see :func:`calibrant.as_predictions`), and no group may span pieces:
        a group seen before raises ValueError, as do pieces with groups after pieces without. The correlation
        within groups is estimated per piece, so each should contain at least some twenty groups: with fewer, intervals
        allow for the uncertainty of this estimate and are too wide, with five groups by half. Predictions contain
        codes of groups, not names: groups of two such pieces, of different rows, are treated as different.

        Parameters
        ----------
        y_true : array-like of shape (n,), one-hot (n, K) or of several labels (n, L), or Predictions
            Observed labels of the piece, or shares in [0, 1] (see :func:`calibrant.as_predictions`);
            :class:`calibrant.Predictions` replace all arguments.
        y_prob : array-like of shape (n,) or (n, K)
            Predicted probabilities. 1-D: of ``pos_label``. 2-D: one column per class, in the order of ``labels``.
        sample_weight : array-like of shape (n,), optional
            Non-negative weights. Whole numbers stand for repeated rows; other weights are relative.
        groups : array-like of shape (n,), optional
            The group of each row (see :func:`calibrant.as_predictions`). No group may span pieces: a group seen
            before raises ValueError, as do pieces with groups after pieces without.
        """
        if isinstance(y_true, Predictions):
            given = as_predictions(y_true, y_prob, sample_weight=sample_weight, groups=groups)
            return self._add(given, None if given.groups is None else _unnamed(given, self.n_samples))
        # The first piece settles the labels: a later one may lack some.
        settled = self.totals is not None
        predictions = as_predictions(
            y_true,
            y_prob,
            labels=self.classes if settled else self.labels,
            pos_label=self.classes[self.positive] if settled and self.positive is not None else self.pos_label,
            sample_weight=sample_weight,
            sum_tolerance=self.sum_tolerance,
            from_logits=self.from_logits,
            groups=groups,
            multilabel=self.several or (False if settled else asks_for_labels(self.notion) or None),
        )
        return self._add(predictions, None if groups is None else group_keys(groups))

    def _add(self, p: Predictions, keys: AnyArray | None) -> Accumulator:
        """Add predictions; ``keys`` are the hashes of their groups."""
        settled = self.classes, self.positive, self.several
        if self.totals is not None and settled != (p.classes, p.positive, p.several):
            raise ValueError(
                f"all pieces must have the same labels: {list(self.classes)!r} before, {list(p.classes)!r} now; "
                "pass labels=[...] to the Accumulator"
            )
        groups = keys if self.totals is None else joined_groups(self.groups, keys)
        notion = as_notion(self.notion, p)
        reduction = notion.reduce(p)
        if isinstance(reduction, VectorProblem):
            raise ValueError(
                f"notion {notion.name!r} cannot be streamed or reported: use estimate(..., notion={notion.name!r})"
            )
        every = reduction if isinstance(reduction, OneVsRestProblems) else self._by_class(p)
        problem_sums = by_class = None
        if every is not None:
            by_class = SumsByClass.of(every, self._needs((0.0, 1.0), fine=False))
        if every is reduction:
            problem_sums = by_class
        elif isinstance(reduction, Problem):
            whole = aligned(reduction, p) if notion.splits else reduction
            problem_sums = SumsByClass.of(
                whole, self._needs(reduction.domain, fine=len(whole) == 1 and not notion.per_class)
            )
        totals = Totals.of(p, reduction)
        if self.totals is not None:
            totals, problem_sums, by_class = (
                self.totals + totals,
                added(self.problem_sums, problem_sums),
                added(self.by_class, by_class),
            )
        # Everything that can fail has run: from here on only sums change.
        self.notion, self.classes, self.positive, self.several = notion, p.classes, p.positive, p.several
        self.totals, self.problem_sums, self.by_class, self.groups = totals, problem_sums, by_class, groups
        self._library = self._library or p.library
        return self

    def _by_class(self, p: Predictions) -> OneVsRestProblems | None:
        """One problem per class, for the tables of a report; None for two classes in one column."""
        return None if p.positive is not None else Classwise().reduce(p)

    def _needs(self, domain: tuple[float, float], *, fine: bool) -> list[Any]:
        """Sums to keep for scores in a domain."""
        named = [e._needs(domain) for e in (self.binned, EmpiricalBayes(), *self.estimators)]
        return list(dict.fromkeys([n for n in named if n is not None] + ([FINE] if fine else [])))

    def __add__(self, other: Accumulator) -> Accumulator:
        """Merge two accumulators into a new one; ``sum([…])`` merges many. Cost: the size of the sums.

        Parameters
        ----------
        other : Accumulator
            Sums of other rows.
        """
        if not isinstance(other, Accumulator):
            return NotImplemented
        both = (self, other)
        full = [a for a in both if a.totals is not None]
        has_rows = [a.totals is not None for a in both]
        out = Accumulator(**_merged_settings([a._settings for a in both], has_rows, [a.binned for a in both]))
        out.dropped = self.dropped + other.dropped
        out._library = self._library or other._library
        source = {a.source for a in full}
        out.source = source.pop() if len(source) == 1 else ""
        if len(full) == 2:
            full = [_with_labels_of(full[1], full[0]), _with_labels_of(full[0], full[1])]
        for a in full:
            for name, called in zip(_SEEN[:3], ("labels", "pos_label", "kinds of rows (several labels)"), strict=True):
                if (one := getattr(full[0], name)) != (other_one := getattr(a, name)):
                    advice = ": pass labels=[...] to each" if name == "classes" else ""
                    raise ValueError(
                        f"merged accumulators must have equal {called}; got {one!r} and {other_one!r}{advice}"
                    )
        if full:
            first = full[0]
            out.notion = first.notion
            for name in _SEEN:
                setattr(out, name, getattr(first, name))
        if len(full) == 2:
            out.groups = joined_groups(self.groups, other.groups)
            out.totals = full[0].required_totals() + full[1].required_totals()
            out.problem_sums, out.by_class = (
                added(getattr(self, f), getattr(other, f)) for f in ("problem_sums", "by_class")
            )
        return out

    merge = __add__

    def __radd__(self, other: Any) -> Accumulator:
        """``sum([…])`` begins with 0."""
        return Accumulator() + self if isinstance(other, int) and other == 0 else NotImplemented

    @property
    def _settings(self) -> dict[str, Any]:
        """Arguments of the constructor."""
        return {
            "notion": self.notion,
            "labels": None if self.labels is None else tuple(self.labels),
            "pos_label": self.pos_label,
            "sum_tolerance": self.sum_tolerance,
            "from_logits": self.from_logits,
            "binned": self.given_bins,
            "estimators": self.estimators,
        }

    def to_bytes(self) -> bytes:
        """Settings and sums as bytes, for a file or another machine; no pickle.

        The format has a version and a digest, and is described in :mod:`calibrant.measure.packing`. The accumulator
        restored by :meth:`from_bytes` gives the same results, and supports :meth:`update` and ``+``.

        Raises
        ------
        TypeError
            For a user-defined notion or estimator, which has no name known to other machines.

        Notes
        -----
        Cost: the size of the sums, about 70 kB per class and 2 MB for the fine histogram, which compresses well.

        Examples
        --------
        >>> import calibrant as cal
        >>> kept = cal.Accumulator().update([0, 1, 1], [0.2, 0.6, 0.7])
        >>> again = cal.Accumulator.from_bytes(kept.to_bytes())
        >>> again.calibration_error() == kept.calibration_error()
        True
        """
        rows = None if self.totals is None else {name: getattr(self, name) for name in _SEEN}
        return to_bytes(self._settings, {"dropped": self.dropped, "source": self.source}, rows, self._needs)

    @classmethod
    @reading_saved()
    def from_bytes(cls, data: bytes) -> Accumulator:
        """Restore an accumulator from the bytes of :meth:`to_bytes`; nothing in them is evaluated.

        Parameters
        ----------
        data : bytes
            Bytes that :meth:`to_bytes` returned.

        Raises
        ------
        ValueError
            For bytes of another format, of a later version, truncated or altered, and for sums that no rows can
            have; the message gives the reason.
        TypeError
            For types other than bytes.
        """
        settings, about, rows = from_bytes(data)
        with reading("Accumulator", settings):
            out = cls(**settings)
            out.dropped, out.source = about["dropped"], about["source"]
            if rows is not None:
                for name, value in rows_of(rows, out.notion, out._needs).items():
                    setattr(out, name, value)
        return out

    def required_totals(self) -> Totals:
        """Totals; ValueError if nothing was added."""
        if self.totals is None:
            raise ValueError("no rows were added yet")
        return self.totals

    def _shown(self) -> Iterable[tuple[str, Any]]:
        yield "n_samples", self.n_samples
        yield from {"notion": str(self.notion), "classes": self.classes, "binned": self.binned}.items()
        if self.positive is not None:
            yield "positive", self.classes[self.positive]
        yield "estimators", tuple(map(repr, self.estimators))
        if self.dropped:
            yield "dropped", self.dropped
        if self.source:
            yield "source", self.source

    @property
    def in_two_columns(self) -> bool:
        """Whether the scores are of two classes with one column each."""
        return len(self.classes) == 2 and self.positive is None and not self.several

    @property
    def n_samples(self) -> int:
        """Number of rows added so far."""
        return 0 if self.totals is None else self.totals.n_samples

    def question(self, norm: float = 1, level: float = 0.95) -> Question:
        """A question about the added rows.

        Parameters
        ----------
        norm : float, default 1
            Power p ≥ 1 of the error, or inf for the maximum.
        level : float in (0, 1), default 0.95
            Level of the intervals.
        """
        totals, problem_sums = self.required_totals(), self.required()
        notion: Any = self.notion
        mass = np.concatenate([np.asarray(g.total) for g in problem_sums.sums(Grid())])
        held = np.flatnonzero(mass > 0)
        labels = tuple(problem_sums.labels[i] for i in held)
        positive = np.concatenate([np.atleast_2d(g.positive).sum(axis=-1) for g in problem_sums.sums(Grid())])
        shares = tuple(notion.shares(mass, positive)[i] for i in held)
        size = totals.effective_size
        n_groups = None if self.groups is None else self.groups.size
        # As in memory, rows that are groups by themselves are independent.
        alone = n_groups == totals.n_samples and not totals.weighted
        return Question(
            notion.name,
            check_norm(norm),
            check_level(level),
            labels,
            shares,
            notion.combining,
            notion.dependent,
            totals.n_samples,
            size,
            n_groups=None if alone else n_groups,
            exclusive=notion.exclusive,
        )

    def keeps(self, estimator: CellEstimator) -> bool:
        """Whether the sums that an estimator reads were kept.

        Parameters
        ----------
        estimator : CellEstimator
            The estimator.
        """
        problem_sums = self.required()
        return estimator._needs(problem_sums.domain) in problem_sums.parts[0]

    def sums(self, estimator: CellEstimator, problem_sums: SumsByClass | None = None) -> Iterator[Any]:
        """Sums that an estimator reads, a few problems at a time; ValueError if they were not kept.

        They are the sums of the notion's problems, or ``problem_sums``.

        Parameters
        ----------
        estimator : CellEstimator
            The estimator.
        problem_sums : SumsByClass, optional
            Sums of problems other than the notion's, such as those of the classes.
        """
        held = self.required() if problem_sums is None else problem_sums
        need = estimator._needs(held.domain)
        for part in held.parts:
            if need in part:
                found = part[need]
            elif held.histogram in part:
                found = estimator.summarize(part[held.histogram].as_rows(held.domain))
            else:
                raise ValueError(
                    f"{estimator!r} needs sums that were not kept, or the rows: pass estimators=[{estimator!r}] to the "
                    "Accumulator, if it has fixed edges, or binned="
                )
            mass = np.asarray(part[Grid()].total)
            if mass.any():
                yield found if mass.all() else found[np.flatnonzero(mass)]

    def required(self) -> SumsByClass:
        """Sums of the notion's problems; ValueError if nothing was added."""
        if self.problem_sums is None:
            raise ValueError("no rows were added yet")
        return self.problem_sums

    @property
    def problems(self) -> dict[Label, ProblemSums]:
        """Sums of each problem that has rows, in class order."""
        return {} if self.problem_sums is None else self._ones(self.problem_sums)

    @property
    def class_sums(self) -> dict[Label, ProblemSums]:
        """One-vs-rest sums of each class, in class order; empty for two classes in one column."""
        return {} if self.by_class is None else self._ones(self.by_class)

    def _ones(self, problem_sums: SumsByClass) -> dict[Label, ProblemSums]:
        bins = self.binned._needs(problem_sums.domain)
        every = (problem_sums.one(i, bins) for i in range(len(problem_sums.labels)))
        return {one.label: one for one in every if one.grid.total > 0}

    def to_frame(self, backend: str | None = None) -> Any:
        """Data frame with one row per class and kept bin; cost: its number of rows.

        Columns: ``notion``; ``label`` (``"all"`` for the confidence); ``low`` and ``high``, the edges of the bin;
        ``weight``; ``size``, the effective sample size; the mean ``score`` and the ``observed`` frequency, NaN in
        an empty bin; and their ``gap``. Rows of the notion's problems are followed by those of every class if
        these were kept too.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            Default: the library of the scores or labels of :meth:`update`, or of the frame of
            :func:`calibrant.from_frame`, else the first of these that is installed. ImportError if none is.
        """
        return super().to_frame(backend)

    def _columns(self) -> dict[str, Any]:
        tables = {str(self.notion): self.problems}
        if self.by_class is not None and self.by_class.labels != self.required().labels:
            tables["classwise"] = self.class_sums
        columns: dict[str, list[Any]] = {
            name: [] for name in ("notion", "label", "low", "high", "weight", "size", "score", "observed", "gap")
        }
        for notion, problems in tables.items():
            for one in problems.values():
                m, edges = one.bins, one.bins.edges.values
                label = "all" if one.label is None else str(one.label)
                values = (edges[:-1], edges[1:], m.weight, m.effective_size, m.mean_score, m.mean_outcome, m.gap)
                constants = ([notion] * m.edges.n_bins, [label] * m.edges.n_bins)
                for column, found in zip(columns.values(), (*constants, *(v.tolist() for v in values)), strict=True):
                    column += found
        return columns


def _with_labels_of(other: Accumulator, sums: Accumulator) -> Accumulator:
    """The sums, with the other's labels if all their rows have the positive one: ``not yes`` stands for any other."""
    at, totals = sums.positive, sums.required_totals()
    if at is None or other.positive is None or sums.labels is not None or totals.class_weight[1 - at] > 0:
        return sums
    label, rest = sums.classes[at], sums.classes[1 - at]
    if rest != f"not {label}" or rest in sums.required().labels or other.classes[other.positive] != label:
        return sums
    out = copy(sums)
    out.classes, out.positive = other.classes, other.positive
    if at != other.positive:
        out.totals = replace(totals, class_weight=totals.class_weight[::-1], prob_sum=totals.prob_sum[::-1])
    return out


def _unnamed(p: Predictions, n_before: int) -> AnyArray:
    """Numbers in place of hashes for groups that are known by codes only: other ones in every piece."""
    digest = blake2b(digest_size=16)
    for each in (p.groups, p.probs, p.truth, ones_or(p.weights, p.n_samples)):
        digest.update(np.ascontiguousarray(each).reshape(-1).view(np.uint8).data)
    seed = [n_before, *digest.digest()]
    return np.unique(np.random.default_rng(seed).integers(2**64, size=p.n_groups, dtype=np.uint64))


#: Default settings of an accumulator.
_DEFAULTS = {"notion": "auto", "labels": None, "pos_label": None, "sum_tolerance": None, "from_logits": False}


def _merged_settings(both: Sequence[Mapping[str, Any]], full: Sequence[bool], bins: Sequence[Any]) -> dict[str, Any]:
    """Settings of two accumulators, from either; a ValueError names both values if they conflict.

    ``full`` indicates which of them have rows, and ``bins`` the bins of these rows.
    """
    out: dict[str, Any] = {}
    for name, default in _DEFAULTS.items():
        pair = [settings[name] for settings in both]
        if name == "notion":
            pair = [notion_named(v) for v in pair]
        if name == "labels":
            pair = [None if v is None else tuple(v) for v in pair]
        out[name] = _either(name, pair, default)
    # Rows were put into these bins, whether they were given or not.
    pair = [one if has_rows else settings["binned"] for settings, one, has_rows in zip(both, bins, full, strict=True)]
    out["binned"] = _either("binned", pair, None)
    estimators = [settings["estimators"] for settings in both]
    if all(full) and set(estimators[0]) != set(estimators[1]):
        raise ValueError(f"merged accumulators must have equal estimators; got {estimators[0]!r} and {estimators[1]!r}")
    problem_sums = estimators[full.index(True)] if any(full) else tuple(dict.fromkeys(estimators[0] + estimators[1]))
    if missing := set(estimators[0] + estimators[1]) - set(problem_sums):
        raise ValueError(f"merged accumulators must have equal estimators; the rows of one lack sums of {missing!r}")
    out["estimators"] = problem_sums
    return out


def _either(name: str, pair: list[Any], default: Any) -> Any:
    given = [v for v in pair if v != default]
    plural = {"labels": "labels", "binned": "bins"}.get(name, f"{name}s")
    if len(given) == 2 and given[0] != given[1]:
        raise ValueError(
            f"merged accumulators must have equal {plural}; got {received(given[0])} and {received(given[1])}"
        )
    return given[0] if given else default
