"""`subgroup_calibration`: the public function, and the engine of reports on subgroups, from rows or from sums."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Unpack

import numpy as np

from ...data.checks import check_choice, check_int, check_level, check_random_state, check_resamples
from ...data.dependence import design_effects, design_parts
from ...data.printing import number_of
from ...data.problem import Problem
from ...data.progress import progress_bar
from ...data.public_function import InputOptions, public_function
from ...data.types import AnyArray, FloatArray, IntArray, Interval, Label, RandomState
from ...data.validation import as_predictions
from ...estimators import CellEstimator, Estimator
from ...estimators.base import ErrorDraws, FittedPosterior
from ...exceptions import UndefinedErrorWarning
from ...measure.estimation import POSTERIOR, answered
from ...measure.intervals import invert, sums_paths
from ...measure.posterior import credible
from ...measure.question import Question, resolve_estimator
from ...notions import Notion, as_notion, only_problem
from ...significance.result import benjamini_hochberg, few_groups, holm, least_pvalue
from .cells import SubgroupCells
from .heterogeneity import GroupScores, PooledMap, SubgroupTotals, difference_variance, heterogeneity
from .membership import Subgroups, intersections_of, names_of, read_subgroups
from .result import Subgroup, SubgroupColumn, SubgroupDifference, SubgroupReport
from .statistics import gap_intervals, subgroup_pvalues

#: Subgroups up to which intervals of errors use as many draws as those of :func:`estimate`, this number of draws, and
#: the number for more subgroups.
FEW_SUBGROUPS, N_DRAWS, FEW_DRAWS = 50, 400, 80
#: Cells beyond which neighbours are pooled if the column is one of many, and pooled cells per unit of the log-odds.
_SMALL = 1 << 9, 8
TESTS = {"kuiper": "Kuiper's, of residuals", "in-the-large": "of the gap"}
ADJUSTMENTS = ("holm", "bh", "none")


@public_function(grouped=True)
def subgroup_calibration(
    y_true: Any,
    y_prob: Any = None,
    by: Any = None,
    *,
    notion: str | Notion = "auto",
    estimator: str | Estimator = "auto",
    test: str = "kuiper",
    level: float = 0.95,
    adjust: str = "holm",
    min_size: int = 50,
    n_resamples: int = 1999,
    intersections: int = 1,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> SubgroupReport:
    r"""Calibration of each subgroup, with intervals, and p-values corrected for the number of subgroups.

    .. math:: \text{gap}_g = \frac{\sum_{i \in g} w_i (o_i - s_i)}{\sum_{i \in g} w_i}

    is the gap in the large; the calibration error, which also detects gaps that cancel, is that of :func:`estimate`.

    Parameters
    ----------
    by : array-like of shape (n,), mapping, data frame, or list of columns
        Subgroup of each row: rows with equal values, of any kind, form one. Several columns are reported one after the
        other. Missing values (None, NaN, null) form their own subgroup, ``"(missing)"``. If ``y_true`` is Predictions,
        pass ``by`` as a keyword.
    notion : str or Notion, default "auto"
        A notion of calibration with one problem: the positive class, the confidence, or ``ClassSpecific``.
    estimator : "auto" or Estimator, default "auto"
        Estimator of calibration errors and their intervals; see :func:`calibrant.estimate`.
    test : {"kuiper", "in-the-large"}, default "kuiper"
        Test of each subgroup. ``"kuiper"``: the range of the running sum of residuals, which detects gaps of either
        sign at any score, compared with labels drawn from the scores; exact for any number of rows and scores at least
        1/65536 apart (beyond ten million drawn numbers, by the limiting distribution). ``"in-the-large"``: only the
        gap, exact up to 2000 rows, normal beyond.
    level : float, default 0.95
        Level of each interval (not simultaneous); adjusted p-values are compared with ``1 - level``.
    adjust : {"holm", "bh", "none"}, default "holm"
        Correction over all subgroups of all columns. ``"holm"`` keeps the probability of rejecting any calibrated
        subgroup below ``1 - level``, whatever the dependence of the tests; ``"bh"`` does so for the expected share of
        calibrated subgroups among those rejected.
    min_size : int, default 50
        Subgroups with fewer rows are reported, tested and counted by the correction like all others, with a warning,
        but left out of the largest difference if at least two others remain.
    n_resamples : int, default 1999
        Draws for ``"kuiper"``: fewer for a subgroup whose statistic many draws reach, and more, or a tail probability,
        for one that few reach, so that each subgroup can be rejected however many there are; see Notes. Also the draws
        for ``heterogeneity`` where it needs some.
    intersections : int, default 1
        Number of columns whose values are combined: 2 adds a column of subgroups for each pair (``"f and north"``), 3
        also for each triple, with one correction for all. :func:`find_segments` searches for such subgroups.
    groups : array-like of shape (n,), optional
        Groups of dependent rows, such as visits of a patient, within subgroups or across them (see
        :func:`calibrant.as_predictions`). Intervals then allow for the dependence, and p-values are based on draws of
        the signs of whole groups' residuals: with G groups in a subgroup, none is below ``2^(1 - G)``.

    Returns
    -------
    SubgroupReport
        ``str(report)``, ``.to_dict()``, ``.to_frame()``, ``.columns``, ``.subgroups``, ``.rejected``.

    Raises
    ------
    ValueError, TypeError
        For invalid input; for a column that has more than 50 values, and fewer than two rows per value on average.

    See Also
    --------
    calibrant.find_segments : Searches for subgroups that are not given in advance.
    calibrant.calibrators.SubgroupCalibrator : A calibrator for each subgroup.
    calibrant.from_frame : Subgroups of a lazy frame, computed by its own engine (``by``).
    calibrant.results.SubgroupReport : The result, field by field.

    Notes
    -----
    Interval of a gap: given the scores, the odds of all outcomes of the subgroup are assumed to be a common multiple of
    the predicted ones. The interval contains the multiples under which the sum of outcomes is not extreme, by its exact
    distribution up to 200 rows, else by the score test. It is therefore never empty or of length 0, and defined for a
    subgroup without positive outcomes.

    ``heterogeneity`` is the score test of one intercept per subgroup added to a polynomial logistic curve through all
    rows (degree chosen as by :func:`calibration_belt`): different distributions of scores do not count as a difference,
    different frequencies at the same score do. It uses draws where a subgroup has little information, and does not
    detect differences of slope. The interval of the largest difference of gaps is Tukey and Kramer's for all pairs at
    once, which allows for the choice of the pair; gaps may also differ because scores do.

    With ``groups``, the interval of a gap is that of the score test, with the design effect of the subgroup's mean
    residual; p-values and heterogeneity use draws of signs (for heterogeneity, of residuals about the common curve, its
    fit linearised); and the largest difference allows for groups in both subgroups, whose gaps are then correlated.

    Drawing ends for a subgroup with the h-th draw that reaches the observed statistic, h a twentieth of
    ``n_resamples``, and the p-value is h over the number of draws (Besag & Clifford). With G subgroups there are at
    most ``20 G / (1 - level)`` draws, or as many as 20 million numbers per subgroup allow, if these are
    ``2 G / (1 - level)`` or more. Beyond 50 subgroups, h is 10, there are at most ``n_resamples`` draws, and a subgroup
    whose statistic none of them reaches gets the tail of the limiting distribution, with a saddlepoint approximation
    for the sum of its labels; intervals of errors use 400 draws of the posterior instead of 2000.

    Size, power and coverage: benchmarks/coverage/subgroups.md, and for many subgroups
    benchmarks/coverage/subgroups_many.md. Cost: sorting the rows by subgroup, then one estimate and draws on at most
    65536 cells per subgroup; linear in the number of subgroups.

    References
    ----------
    Holm (1979), *A simple sequentially rejective multiple test procedure*; Besag & Clifford (1991), *Sequential Monte
    Carlo p-values*; Lugannani & Rice (1980), *Saddle point approximation for the distribution of the sum of independent
    random variables*; Benjamini & Hochberg (1995), *Controlling
    the false discovery rate*; Hayter (1984), *A proof of the conjecture that the Tukey-Kramer multiple comparisons
    procedure is conservative*; Pleiss et al. (2017), *On fairness and calibration*.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, region = rng.random(6000), rng.choice(["north", "south", "west"], 6000)
    >>> y = rng.random(6000) < np.where(region == "west", p**1.4, p)
    >>> found = cal.subgroup_calibration(y, p, region)
    >>> [subgroup.name for subgroup in found.rejected]
    ['west']
    >>> bool(found.columns[0].heterogeneity.pvalue < 0.001)
    True
    """
    check = SubgroupOptions.checked(test, level, adjust, min_size, n_resamples)
    check_int("intersections", intersections, 1)
    p = as_predictions(y_true, y_prob, **inputs)
    chosen = as_notion(notion, p)
    problem = only_problem(chosen, p)
    reader = resolve_estimator(estimator, problem, chosen.name)
    named = read_subgroups(by, p.n_given, few=True)
    named += intersections_of(named, min(intersections, len(named)))
    columns = [replace(c, codes=p.of_given(c.codes)) for c in named]
    (target,) = chosen.targets(p)
    groups = p.groups
    if target.rows is not None:
        columns = [replace(column, codes=column.codes[target.rows]) for column in columns]
        groups = None if groups is None else groups[target.rows]
    rows = (SubgroupsOfRows.of(problem, column, groups) for column in columns)
    about = (chosen.name, problem.label, p.n_samples)
    return assess(list(rows), reader, about, check, check_random_state(random_state))


@dataclass(frozen=True)
class SubgroupOptions:
    """Options of a subgroup report; see :func:`subgroup_calibration`."""

    test: str
    level: float
    adjust: str
    min_size: int
    n_resamples: int

    @classmethod
    def checked(cls, test: Any, level: Any, adjust: Any, min_size: Any, n_resamples: Any) -> SubgroupOptions:
        """The options, checked."""
        check_choice("test", test, TESTS)
        check_choice("adjust", adjust, ADJUSTMENTS)
        size = check_int("min_size", min_size, 0)
        return cls(test, check_level(level), adjust, size, check_resamples(n_resamples))


@dataclass(frozen=True, eq=False)
class SubgroupProblems(ABC):
    """The subgroups of one column as problems side by side: the input of a report on them.

    Attributes
    ----------
    name : str
        Name of the column.
    values : tuple
        Values of the subgroups, sorted.
    n_samples : ndarray of shape (G,)
        Number of rows of each subgroup.
    held : ndarray of int
        The subgroups with weight: only these have cells and sums.
    cells : SubgroupCells
    design : float
        Design effect of the mean residual of all rows.
    """

    name: str
    values: tuple[Label, ...]
    n_samples: IntArray
    held: IntArray
    cells: SubgroupCells
    design: float

    @property
    def of_groups(self) -> SubgroupCells:
        """Cells for statistics that depend on groups of rows: each of one group at most."""
        return self.cells

    def group_scores(self, cells: SubgroupCells, pooled: PooledMap | None) -> GroupScores | None:
        """Scores of groups of rows; None for independent rows."""
        return GroupScores.of(cells, pooled)

    @abstractmethod
    def sums(self, estimator: CellEstimator, some: slice) -> Any:
        """Sums that an estimator needs of some subgroups, side by side."""

    @abstractmethod
    def each(self) -> Iterator[Problem]:
        """Rows of each subgroup, for estimators that do not use sums."""


@dataclass(frozen=True, eq=False)
class SubgroupsOfRows(SubgroupProblems):
    """Subgroups of rows, sorted by subgroup once, so that each subgroup is a slice."""

    problem: Problem

    @classmethod
    def of(cls, problem: Problem, column: Subgroups, groups: IntArray | None) -> SubgroupsOfRows:
        """Rows by the subgroups of a column; those without weight do not count."""
        n_samples = number = np.bincount(column.codes, minlength=len(column.values))
        codes, p = column.codes, replace(problem, design=None, effects=None, starts=None)
        if p.weights is not None and not p.weights.all():
            used = p.weights > 0
            p = replace(p, scores=p.scores[used], outcomes=p.outcomes[used], weights=p.weights[used])
            codes, groups = codes[used], None if groups is None else groups[used]
            number = np.bincount(codes, minlength=len(column.values))
        held = np.flatnonzero(number)
        # Sixteen bits at most are sorted by counting.
        order: Any = slice(None)
        if (codes[1:] < codes[:-1]).any():
            order = np.argsort(codes.astype(np.uint16) if number.size <= 1 << 16 else codes, kind="stable")
        weights = None if p.weights is None else p.weights[order]
        starts = np.concatenate([[0], np.cumsum(number[held])])
        p = replace(p, scores=p.scores[order], outcomes=p.outcomes[order], weights=weights, starts=starts)
        mean, design = None, 1.0
        if groups is not None:
            groups = groups[order]
            mean = design_effects(p, groups, (1.0,))
            design = float(design_effects(replace(p, starts=None), groups, (1.0,))[0])
            effects = design_parts(p, groups)
            p = replace(p, design=tuple(effects[:, 0].tolist()), effects=effects)
        cells = SubgroupCells.of_rows(p, groups, mean)
        return cls(column.name, column.values, n_samples, held, cells, design, p)

    def sums(self, estimator: CellEstimator, some: slice) -> Any:
        """Sums of their rows."""
        return estimator.summarize(self.problem[some])

    def each(self) -> Iterator[Problem]:
        """One subgroup after the other."""
        return iter(self.problem)


def assess(
    columns: Sequence[SubgroupProblems],
    reader: Estimator,
    about: tuple[str, Label, int],
    options: SubgroupOptions,
    rng: np.random.Generator,
    among: int = 0,
) -> SubgroupReport:
    """Report on the subgroups of some columns; ``about`` are the notion, the class, and the number of rows.

    ``among``: number of subgroups that p-values will be corrected for, if others are reported elsewhere.
    """
    notion, label, n_samples = about
    own = sum(len(column.values) for column in columns)
    total = max(own, among)
    smallest = (1 - options.level) / max(total, 1)
    many = total > FEW_SUBGROUPS
    n_draws = FEW_DRAWS if many else N_DRAWS
    found: list[SubgroupColumn] = []
    with progress_bar("subgroups", total) as advance:
        for column in columns:
            question = Question(notion, 1.0, options.level, (label,), (1.0,), "power", False, 0, 0.0)
            errors = _errors(column, reader, question, n_draws, rng)
            pvalues = subgroup_pvalues(column.of_groups, options.test, options.n_resamples, rng, smallest, many=many)
            found.append(_column(column, errors, pvalues, options, smallest, rng, many=many, others=own < total))
            advance(len(column.values))
    every = np.array([subgroup.pvalue for column in found for subgroup in column.subgroups])
    corrected = {"holm": holm(every), "bh": benjamini_hochberg(every), "none": every}
    each = iter(zip(*(corrected[name].tolist() for name in (options.adjust, "holm", "bh")), strict=True))
    finished = []
    for one in found:
        subgroups = [
            replace(subgroup, adjusted=adjusted, holm=by_holm, bh=bh)
            for subgroup, (adjusted, by_holm, bh) in zip(one.subgroups, each, strict=False)
        ]
        finished.append(replace(one, subgroups=tuple(subgroups)))
    return SubgroupReport(
        columns=tuple(finished),
        test=TESTS[options.test],
        adjust=options.adjust,
        notion=notion,
        estimator=repr(reader),
        label=label,
        level=options.level,
        n_samples=n_samples,
    )


def _errors(
    column: SubgroupProblems, reader: Estimator, question: Question, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """Calibration error of each subgroup with weight, and the ends of its interval, (H, 3)."""
    sizes = (column.cells.size / column.cells.design).tolist()
    questions = [
        replace(question, n_samples=n, size=size)
        for n, size in zip(column.n_samples[column.held].tolist(), sizes, strict=True)
    ]
    if isinstance(reader, CellEstimator):
        found = _errors_of_sums(column, reader, questions, n_draws, rng)
    else:
        each = (replace(own, estimator=reader, rows=one) for one, own in zip(column.each(), questions, strict=True))
        estimates = (answered(own, n_draws, rng) for own in each)
        found = np.array([(e.value, *e.interval) for e in estimates])
    if np.isnan(found[:, 0]).any():
        none = int(np.isnan(found[:, 0]).sum())
        text = f"{reader!r} gives no number for {none} of {len(found)} subgroups of {column.name}: it needs more rows"
        warnings.warn(text, UndefinedErrorWarning, stacklevel=5)
    return found


def _errors_of_sums(
    column: SubgroupProblems,
    reader: CellEstimator,
    questions: Sequence[Question],
    n_draws: int,
    rng: np.random.Generator,
) -> FloatArray:
    powers: list[float] = []
    intervals: list[Interval] = []
    for part in column.cells.slices():
        sums, some = column.sums(reader, part), questions[part]
        fit = reader.fit(sums)
        powers += fit.powers(1.0).tolist()
        if isinstance(fit, FittedPosterior):
            drawn = fit.draws(1.0, POSTERIOR * n_draws, rng)
            each = (
                ErrorDraws(v[None], o[None], drawn.corrected) for v, o in zip(drawn.powers, drawn.log_odds, strict=True)
            )
            intervals += [credible(one, own).interval for one, own in zip(each, some, strict=True)]
        else:
            noise = [np.random.default_rng(seed) for seed in rng.integers(2**63, size=len(some))]
            paths = sums_paths(reader, sums, 1.0, n_draws, noise)
            intervals += [invert([path], own, 1.0)[0] for path, own in zip(paths, some, strict=True)]
    value, (low, high) = np.array(powers), np.array(intervals).T
    # The reported error lies within its interval: see `estimate`.
    shown = np.maximum(value, 0.0)
    return np.stack([value, np.fmin(low, shown), np.fmax(high, shown)], axis=-1)


def _column(
    column: SubgroupProblems,
    errors: FloatArray,
    pvalues: FloatArray,
    options: SubgroupOptions,
    smallest: float,
    rng: np.random.Generator,
    *,
    many: bool,
    others: bool,
) -> SubgroupColumn:
    """The subgroups of a column, p-values not yet corrected; ``others``: whether more are reported elsewhere."""
    some = many and others
    cells = column.cells.coarser(*_SMALL) if some else column.cells.coarse
    pooled = PooledMap.of(cells, column.design)
    totals = SubgroupTotals.of(cells, pooled)
    groups_of, names, nan = _groups_per_subgroup(column.of_groups), names_of(column.values), float("nan")
    intervals = gap_intervals(cells, options.level, dependent=groups_of is not None)
    spread = cells.added(cells.times * cells.scores * (1 - cells.scores))
    off = cells.added(cells.weights * np.abs(cells.outcomes - cells.scores))
    nothing = Interval(nan, nan)
    subgroups = [
        Subgroup(name, value, n, nan, nan, nan, nothing, nan, nothing, nan, nan, nan, nan, ("all rows have weight 0",))
        for name, value, n in zip(names, column.values, column.n_samples.tolist(), strict=True)
    ]
    numbers = (totals.weight, cells.added(cells.weights * cells.outcomes), cells.added(cells.weights * cells.scores))
    rows = zip(column.held.tolist(), *(v.tolist() for v in (*numbers, intervals, errors, pvalues)), strict=True)
    for i, (place, weight, outcomes, scores, gap_interval, error, pvalue) in enumerate(rows):
        notes = []
        if (n := int(column.n_samples[place])) < options.min_size:
            notes.append(f"{number_of(n, 'row')}, fewer than {options.min_size}: results are imprecise")
        if groups_of is not None and (least := float(least_pvalue(few := int(groups_of[i])))) > smallest:
            notes += few_groups(few) or [f"rows of {few} groups: no p-value can be below {least:.2g}"]
        if not spread[i] > 0 and not off[i] > 0:
            notes.append("all scores are 0 or 1, and all are correct: there is nothing to test")
        subgroups[place] = replace(
            subgroups[place],
            base_rate=outcomes / weight,
            mean_probability=scores / weight,
            gap=float(totals.gap[i]),
            gap_interval=Interval(*gap_interval),
            error=error[0],
            error_interval=Interval(*error[1:]),
            pvalue=pvalue,
            warnings=tuple(notes),
        )
    return SubgroupColumn(
        column.name,
        tuple(subgroups),
        heterogeneity(
            cells,
            pooled,
            totals,
            int(column.n_samples[column.held].sum()),
            rng,
            column.group_scores(cells, pooled),
            n_resamples=options.n_resamples,
            least=smallest if others else 1.0,
            many=some,
        ),
        _largest(column, totals, [subgroups[place] for place in column.held], options),
    )


def _groups_per_subgroup(cells: SubgroupCells) -> AnyArray | None:
    """Groups of dependent rows in each subgroup."""
    if cells.groups is None:
        return None
    number = int(cells.groups.max(initial=0)) + 1
    pairs = np.unique(cells.subgroup * number + cells.groups)
    return np.bincount(pairs // number, minlength=cells.n_subgroups)


def _largest(
    column: SubgroupProblems, totals: SubgroupTotals, subgroups: Sequence[Subgroup], options: SubgroupOptions
) -> SubgroupDifference | None:
    """The largest difference among subgroups that are large enough, or among all if fewer than two are."""
    among = np.flatnonzero(column.n_samples[column.held] >= options.min_size)
    among = among if among.size >= 2 else np.arange(len(subgroups))
    if among.size < 2:
        return None
    gaps = totals.gap[among]
    high, low = int(np.argmax(gaps)), int(np.argmin(gaps))
    if high == low:
        high = 1 - low if low < 2 else 0
    first, second = int(among[high]), int(among[low])
    value = float(gaps[high] - gaps[low])
    variance = difference_variance(column.of_groups, totals, first, second)
    reach = _all_pairs(options.level, gaps.size) * float(np.sqrt(variance))
    return SubgroupDifference(
        subgroups[first].name, subgroups[second].name, value, Interval(value - reach, value + reach)
    )


@cache
def _all_pairs(level: float, number: int) -> float:
    """Half-width, in standard errors, of simultaneous intervals of the differences of ``number`` means (Tukey)."""
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(level, number, np.inf) / np.sqrt(2))
