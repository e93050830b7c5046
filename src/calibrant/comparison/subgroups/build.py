"""`subgroup_calibration`: the public function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Unpack

import numpy as np

from ...data.checks import check_choice, check_int, check_level, check_resamples
from ...data.predictions import Predictions
from ...data.problem import Problem
from ...data.progress import counted
from ...data.public_function import InputOptions, verb
from ...data.types import AnyArray, FloatArray, IntArray, Interval, Label, RandomState
from ...data.validation import as_predictions
from ...estimators import Estimator
from ...measure.curve_from_sums import describe
from ...measure.estimation import estimate, resolve_estimator
from ...notions import Notion, Target, as_notion, only_problem
from ...significance.multiple import benjamini_hochberg, holm
from .membership import Subgroups, read_subgroups
from .result import Subgroup, SubgroupColumn, SubgroupDifference, SubgroupReport
from .rows import ProblemRows
from .statistics import gap_interval, subgroup_pvalue
from .subgroup_sums import PooledMap, SubgroupSums, gap_covariance, heterogeneity

TESTS = {"kuiper": "Kuiper's, of residuals", "in-the-large": "of the gap"}
ADJUSTMENTS = ("holm", "bh", "none")


@verb(grouped=True)
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
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> SubgroupReport:
    r"""Calibration subgroup by subgroup, with intervals and p-values that allow for the number of subgroups.

    .. math:: \text{gap}_g = \frac{\sum_{i \in g} w_i (o_i - s_i)}{\sum_{i \in g} w_i}

    is the gap in the large; the calibration error, which also sees gaps that cancel, is that of :func:`estimate`.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sample_weight
        See :func:`calibrant.as_predictions`; :class:`Predictions` stand for all of them, ``by`` is then named.
    groups : array-like of shape (n,), optional
        Rows that belong together, such as visits of a patient, within subgroups or across them (see
        :func:`calibrant.as_predictions`). Intervals then allow for it, and p-values are those among draws of the signs
        of whole groups' residuals: with G groups in a subgroup none is below ``2^(1 - G)``.
    by : array-like of shape (n,), mapping, data frame, or list of columns
        Subgroup of each row: values of any kind that compare equal. Several columns are reported one after the other.
        Missing values (None, NaN, null) are a subgroup of their own, ``"(missing)"``.
    notion : str or Notion, default "auto"
        A notion of one problem: the positive class, the confidence, or ``ClassSpecific``.
    estimator : "auto" or Estimator, default "auto"
        Of calibration errors and their intervals; see :func:`calibrant.estimate`.
    test : {"kuiper", "in-the-large"}, default "kuiper"
        Of each subgroup. ``"kuiper"``: the range of the running sum of residuals, which sees gaps of either sign at any
        score, against labels drawn from the scores: exact for any number of rows (beyond ten million draws by its limit
        distribution). ``"in-the-large"``: the gap alone, exact up to 2000 rows, normal beyond.
    level : float, default 0.95
        Of each interval (they are not simultaneous), and one minus what adjusted p-values are compared with.
    adjust : {"holm", "bh", "none"}, default "holm"
        Correction over all subgroups of all columns. Holm's keeps the probability of calling any calibrated subgroup
        off below ``1 - level``, however tests depend; ``"bh"`` the expected share of such subgroups among those called
        off.
    min_size : int, default 50
        Subgroups with fewer rows are reported and tested as all others, with a warning, and are left out of the largest
        difference while two others remain.
    n_resamples : int, default 1999
        Draws of ``"kuiper"``. For a subgroup that is off by more than all of them there are more draws, so that with
        any number of subgroups each one can be called off: see Notes.
    random_state : int, Generator or None, default 0

    Returns
    -------
    SubgroupReport
        ``str(report)``, ``.to_dict()``, ``.to_frame()``, ``.columns``, ``.subgroups``, ``.rejected``.

    Raises
    ------
    ValueError, TypeError
        For bad input; for a column of more than 200 subgroups.

    Notes
    -----
    Interval of a gap: given the scores, odds of all outcomes of the subgroup are taken to be some multiple of the
    stated ones; it holds the multiples under which the sum of outcomes is not extreme, by its exact distribution up to
    200 rows, else by the score test. So it is never empty nor of length 0, and it is defined for a subgroup in which
    nothing happened.

    ``heterogeneity`` is the score test of an intercept for each subgroup added to a polynomial logistic curve through
    all rows (degree chosen as by :func:`calibration_belt`): different mixes of scores do not count as a difference, a
    different meaning of the same score does. It is by draws where a subgroup has little information, and is blind to
    differences of slope. The interval of the largest difference of gaps is Tukey and Kramer's for all pairs at once, so
    choosing the pair costs nothing; gaps can differ because scores do.

    With ``groups`` the interval of a gap is by the score test, with the design effect of the subgroup's mean residual;
    p-values and heterogeneity are by draws of signs (residuals about the common curve, its fit linearised); and the
    largest difference allows for groups that lie in both subgroups, whose gaps then vary together.

    Size, power and coverage: docs/clinical.md. Cost: one estimate a subgroup and ``n_resamples`` draws a row; with G
    subgroups ``20 G / (1 - level)`` draws where none of the first reached what was observed, but at most 20 million
    numbers a subgroup as long as ``2 G / (1 - level)`` draws are made.

    References
    ----------
    Holm (1979), *A simple sequentially rejective multiple test procedure*; Benjamini & Hochberg (1995), *Controlling
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
    check_choice("test", test, TESTS)
    check_choice("adjust", adjust, ADJUSTMENTS)
    p = as_predictions(y_true, y_prob, **inputs)
    chosen = as_notion(notion, p)
    problem = only_problem(chosen, p)
    reader = resolve_estimator(estimator, problem, chosen.name)
    columns = read_subgroups(by, p.n_samples)
    (target,) = chosen.targets(p)
    if target.rows is not None:
        columns = [replace(column, codes=column.codes[target.rows]) for column in columns]
    together = p.groups if p.groups is None or target.rows is None else p.groups[target.rows]
    work = _Work(
        p=_Alone.predictions(problem, together),
        notion=_Alone(chosen.name, problem.domain, problem.label),
        reader=reader,
        test=test,
        level=check_level(level),
        min_size=check_int("min_size", min_size, 0),
        n_resamples=check_resamples(n_resamples),
        n_subgroups=sum(len(column.values) for column in columns),
        rng=np.random.default_rng(random_state),
    )
    found = list(work.columns(columns))
    pvalues = np.array([subgroup.pvalue for column in found for subgroup in column.subgroups])
    corrected = {"holm": holm(pvalues), "bh": benjamini_hochberg(pvalues), "none": pvalues}
    finished, start = [], 0
    for column in found:
        subgroups = []
        for subgroup in column.subgroups:
            ours = {name: float(values[start]) for name, values in corrected.items()}
            subgroups.append(replace(subgroup, adjusted=ours[adjust], holm=ours["holm"], bh=ours["bh"]))
            start += 1
        finished.append(replace(column, subgroups=tuple(subgroups)))
    return SubgroupReport(
        columns=tuple(finished),
        test=TESTS[test],
        adjust=adjust,
        notion=chosen.name,
        estimator=describe(reader),
        label=problem.label,
        level=work.level,
        n_samples=p.n_samples,
    )


@dataclass(frozen=True)
class _Alone(Notion):
    """One problem of another notion by itself, so that subgroups of its rows can be estimated."""

    name: str  # type: ignore[misc]  # of the other notion
    domain: tuple[float, float]
    label: Label

    @staticmethod
    def predictions(problem: Problem, groups: IntArray | None) -> Predictions:
        """Scores as probabilities of the outcome."""
        p = Predictions(problem.scores, problem.outcomes, problem.weights, (0, 1), 1, problem.eps)
        return replace(p, groups=groups)

    def targets(self, predictions: Predictions) -> Iterator[Target]:
        """The same scores and outcomes, where they came from."""
        yield Target(predictions.probs, 1, domain=self.domain, label=self.label)


@dataclass(frozen=True, eq=False)
class _Work:
    """What all subgroups have in common."""

    p: Predictions
    notion: _Alone
    reader: Estimator
    test: str
    level: float
    min_size: int
    n_resamples: int
    n_subgroups: int
    rng: np.random.Generator

    def columns(self, columns: Sequence[Subgroups]) -> Iterator[SubgroupColumn]:
        """One column after the other; p-values not yet corrected."""
        rows = self._rows(self.p)
        pooled = PooledMap.of(rows)
        partitions, weighty = [], []
        for column in columns:
            codes = column.codes if self.p.weights is None else column.codes[self.p.weights > 0]
            held = np.flatnonzero(np.bincount(codes, minlength=len(column.values)))
            partitions.append((codes if held.size == len(column.values) else np.searchsorted(held, codes), held.size))
            weighty.append(held)
        all_sums = SubgroupSums.of(rows, partitions, pooled)
        for column, held, (codes, _), sums in zip(columns, weighty, partitions, all_sums, strict=True):
            # Sorted by subgroups once: rows of a subgroup are a slice, in the order in which they came.
            order = np.argsort(column.codes, kind="stable")
            parts = np.split(order, np.cumsum(np.bincount(column.codes, minlength=len(column.values)))[:-1])
            each = counted(
                zip(column.names, column.values, parts, strict=True), f"subgroups of {column.name}", len(parts)
            )
            subgroups = [self._subgroup(*about) for about in each]
            yield SubgroupColumn(
                column.name,
                tuple(subgroups),
                heterogeneity(rows, codes, pooled, sums, self.rng),
                self._largest(
                    [subgroups[code] for code in held],
                    sums.gap,
                    self._gaps(rows, codes, sums, [parts[k] for k in held]),
                ),
            )

    def _rows(self, p: Predictions) -> ProblemRows:
        return ProblemRows.of(only_problem(self.notion, p), p.groups)

    def _gaps(self, rows: ProblemRows, codes: AnyArray, sums: SubgroupSums, parts: Sequence[AnyArray]) -> FloatArray:
        """Covariances of the gaps of subgroups, (S, S)."""
        if rows.groups is None:
            return np.diag(sums.gap_variance)
        found = gap_covariance(rows, codes, sums)
        designs = np.array([self._rows(self.p.subset(index)).design for index in parts])
        np.fill_diagonal(found, np.maximum(sums.gap_variance * designs, np.diag(found)))
        return found

    def _subgroup(self, name: str, value: Any, index: AnyArray) -> Subgroup:
        p = self.p.subset(index)
        if not index.size or (p.weights is not None and not p.weights.any()):
            return _weightless(name, value, index.size)
        rows = self._rows(p)
        found = estimate(p, None, notion=self.notion, estimator=self.reader, level=self.level, random_state=self.rng)
        warnings = []
        if index.size < self.min_size:
            warnings.append(f"{index.size} rows, fewer than {self.min_size}: little can be said")
        smallest = (1 - self.level) / self.n_subgroups
        pvalue = subgroup_pvalue(rows, self.test, self.n_resamples, self.rng, smallest)
        if rows.groups is not None and 2.0 ** (1 - (few := int(rows.groups.max()) + 1)) > smallest:
            warnings.append(f"rows of {few} groups: no p-value can be below {2.0 ** (1 - few):.2g}")
        if np.isnan(pvalue):
            warnings.append("all scores are 0 or 1, and all are right: there is nothing to test")
        nan = float("nan")
        return Subgroup(
            name=name,
            value=value,
            n_samples=int(index.size),
            base_rate=float(rows.weights @ rows.outcomes / rows.total),
            mean_probability=float(rows.weights @ rows.scores / rows.total),
            gap=rows.gap,
            gap_interval=gap_interval(rows, self.level),
            error=found.value,
            error_interval=found.interval,
            pvalue=pvalue,
            adjusted=nan,
            holm=nan,
            bh=nan,
            warnings=tuple(warnings),
        )

    def _largest(
        self, subgroups: Sequence[Subgroup], every_gap: FloatArray, covariance: FloatArray
    ) -> SubgroupDifference | None:
        """Of all pairs of subgroups that are large enough, or of all subgroups if fewer than two are."""
        among = np.array(
            [i for i, subgroup in enumerate(subgroups) if subgroup.n_samples >= self.min_size], dtype=np.intp
        )
        among = among if among.size >= 2 else np.arange(len(subgroups))
        if among.size < 2:
            return None
        gaps, covariance = every_gap[among], covariance[np.ix_(among, among)]
        high, low = int(np.argmax(gaps)), int(np.argmin(gaps))
        if high == low:
            high = 1 - low if low < 2 else 0
        value = float(gaps[high] - gaps[low])
        variance = covariance[high, high] + covariance[low, low] - 2 * covariance[high, low]
        reach = _all_pairs(self.level, gaps.size) * float(np.sqrt(variance))
        return SubgroupDifference(
            subgroups[among[high]].name, subgroups[among[low]].name, value, Interval(value - reach, value + reach)
        )


@cache
def _all_pairs(level: float, number: int) -> float:
    """How many standard errors differences of all pairs of so many means stay within (Tukey)."""
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(level, number, np.inf) / np.sqrt(2))


def _weightless(name: str, value: Any, size: int) -> Subgroup:
    nan = float("nan")
    none = Interval(nan, nan)
    return Subgroup(name, value, size, nan, nan, nan, none, nan, none, nan, nan, nan, nan, ("all rows have weight 0",))
