"""`subgroup_calibration`: the public function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from .._checks import check_level, check_resamples
from .._types import AnyArray, FloatArray, Interval, RandomState
from .._validation import as_predictions
from ..curves.build import describe
from ..errors import Estimator
from ..estimation import estimate, resolve_estimator
from ..notions import Notion, as_notion
from ..predictions import Predictions
from ..problem import VectorProblem
from .groups import Groups, read_groups
from .result import Difference, Subgroup, SubgroupColumn, SubgroupReport
from .statistics import (
    Rows,
    benjamini_hochberg,
    gap_interval,
    gap_variance,
    group_pvalue,
    heterogeneity,
    holm,
    pooled_map,
)

TESTS = {"kuiper": "Kuiper's, of residuals", "in-the-large": "of the gap"}
ADJUSTMENTS = ("holm", "bh", "none")


def subgroup_calibration(
    y_true: Any,
    y_prob: Any,
    by: Any,
    *,
    notion: str | Notion = "auto",
    estimator: str | Estimator = "auto",
    test: str = "kuiper",
    level: float = 0.95,
    adjust: str = "holm",
    min_size: int = 50,
    n_resamples: int = 1999,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    random_state: RandomState = 0,
) -> SubgroupReport:
    r"""Calibration group by group, with intervals and p-values that allow for the number of groups.

    .. math:: \text{gap}_g = \frac{\sum_{i \in g} w_i (o_i - s_i)}{\sum_{i \in g} w_i}

    is the gap in the large; the calibration error, which also sees gaps that cancel, is that of :func:`estimate`.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sample_weight
        See :func:`calibrant.as_predictions`.
    by : array-like of shape (n,), mapping, data frame, or list of columns
        Group of each row: values of any kind that compare equal. Several columns are reported one after the other.
        Missing values (None, NaN, null) are a group of their own, ``"(missing)"``.
    notion : str or Notion, default "auto"
        A notion of one problem: the positive class, the confidence, or ``ClassSpecific``.
    estimator : "auto" or Estimator, default "auto"
        Of calibration errors and their intervals; see :func:`calibrant.estimate`.
    test : {"kuiper", "in-the-large"}, default "kuiper"
        Of each group. ``"kuiper"``: the range of the running sum of residuals, which sees gaps of either sign at any
        score, against labels drawn from the scores: exact for any number of rows (beyond ten million draws by its limit
        law). ``"in-the-large"``: the gap alone, exact up to 2000 rows, normal beyond.
    level : float, default 0.95
        Of each interval (they are not simultaneous), and one minus what adjusted p-values are compared with.
    adjust : {"holm", "bh", "none"}, default "holm"
        Correction over all groups of all columns. Holm's keeps the probability of calling any calibrated group off
        below ``1 - level``, however tests depend; ``"bh"`` the expected share of such groups among those called off.
    min_size : int, default 50
        Groups with fewer rows are reported and tested as all others, with a warning, and are left out of the largest
        difference while two others remain.
    n_resamples : int, default 1999
        Draws of ``"kuiper"``. For a group that is off by more than all of them there are more draws, so that with any
        number of groups each one can be called off: see Notes.
    random_state : int, Generator or None, default 0

    Returns
    -------
    SubgroupReport
        ``str(report)``, ``.to_dict()``, ``.to_frame()``, ``.columns``, ``.groups``, ``.rejected``.

    Raises
    ------
    ValueError, TypeError
        For bad input; for a column of more than 200 groups.

    Notes
    -----
    Interval of a gap: given the scores, odds of all outcomes of the group are taken to be some multiple of the stated
    ones; it holds the multiples under which the sum of outcomes is not extreme, by its exact law up to 200 rows, else
    by the score test. So it is never empty nor of length 0, and it is defined for a group in which nothing happened.

    ``heterogeneity`` is the score test of an intercept for each group added to a polynomial logistic curve through all
    rows (degree chosen as by :func:`calibration_belt`): different mixes of scores do not count as a difference, a
    different meaning of the same score does. It is by draws where a group has little information, and is blind to
    differences of slope. The interval of the largest difference of gaps is Tukey and Kramer's for all pairs at once, so
    choosing the pair costs nothing; gaps can differ because scores do.

    Size, power and coverage: docs/clinical.md. Cost: one estimate a group and ``n_resamples`` draws a row; with G
    groups ``20 G / (1 - level)`` draws where none of the first reached what was observed, but at most 20 million
    numbers a group as long as ``2 G / (1 - level)`` draws are made.

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
    >>> [group.name for group in found.rejected]
    ['west']
    >>> bool(found.columns[0].heterogeneity.pvalue < 0.001)
    True
    """
    checked = check_level(level)
    if checked is None:
        raise ValueError("level must lie strictly between 0 and 1; got None")
    for name, value, allowed in (("test", test, TESTS), ("adjust", adjust, ADJUSTMENTS)):
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}")
    if isinstance(min_size, bool) or not isinstance(min_size, (int, np.integer)) or min_size < 0:
        raise ValueError(f"min_size must be an int >= 0; got {min_size!r}")
    draws = check_resamples(n_resamples)
    p = as_predictions(y_true, y_prob, labels=labels, pos_label=pos_label, sample_weight=sample_weight)
    chosen = as_notion(notion, p)
    reduction = chosen.reduce(p)
    if isinstance(reduction, VectorProblem) or len(reduction) != 1:
        raise ValueError(f"notion {chosen.name!r} has several problems: take one class with ClassSpecific(label)")
    reader = resolve_estimator(estimator, reduction, chosen.name)
    columns = read_groups(by, p.n_samples)
    smallest = (1 - checked) / sum(len(column.values) for column in columns)
    work = _Work(p, chosen, reader, test, checked, int(min_size), draws, smallest, np.random.default_rng(random_state))
    found = [work.column(column) for column in columns]
    pvalues = np.array([group.pvalue for column in found for group in column.groups])
    corrected = {"holm": holm(pvalues), "bh": benjamini_hochberg(pvalues), "none": pvalues}
    finished, start = [], 0
    for column in found:
        groups = []
        for group in column.groups:
            ours = {name: float(values[start]) for name, values in corrected.items()}
            groups.append(replace(group, adjusted=ours[adjust], holm=ours["holm"], bh=ours["bh"]))
            start += 1
        finished.append(replace(column, groups=tuple(groups)))
    return SubgroupReport(
        columns=tuple(finished),
        test=TESTS[test],
        adjust=adjust,
        notion=chosen.name,
        estimator=describe(reader),
        label=reduction[0].label,
        level=checked,
        n_samples=p.n_samples,
    )


class _Work:
    """What all groups have in common."""

    def __init__(
        self,
        p: Predictions,
        notion: Notion,
        reader: Estimator,
        test: str,
        level: float,
        min_size: int,
        n_resamples: int,
        smallest: float,
        rng: np.random.Generator,
    ) -> None:
        self._p, self._notion, self._reader, self._rng = p, notion, reader, rng
        self._test, self._level, self._min_size = test, level, min_size
        self._n_resamples, self._smallest = n_resamples, smallest
        problem = self._problem(p)
        self._rows = Rows.of(problem)
        self._used = np.ones(p.n_samples, dtype=bool) if p.weights is None else p.weights > 0
        self._pooled = pooled_map(problem, self._rows)

    def _problem(self, p: Predictions) -> Any:
        reduction: Any = self._notion.reduce(p)
        return reduction[0]

    def column(self, column: Groups) -> SubgroupColumn:
        """One column; p-values not yet corrected."""
        groups, held = [], []
        for code, (name, value) in enumerate(zip(column.names, column.values, strict=True)):
            rows = np.flatnonzero(column.codes == code)
            if not self._used[rows].any():
                groups.append(_weightless(name, value, rows.size))
                continue
            groups.append(self._group(name, value, rows))
            held.append(code)
        codes = np.searchsorted(held, column.codes[self._used])
        names = [column.names[code] for code in held]
        sizes = np.array([groups[code].n_samples for code in held])
        return SubgroupColumn(
            column.name,
            tuple(groups),
            heterogeneity(self._rows, codes, self._pooled, len(held), self._rng),
            self._largest(codes, names, sizes),
        )

    def _group(self, name: str, value: Any, index: AnyArray) -> Subgroup:
        p = self._p.subset(index)
        rows = Rows.of(self._problem(p))
        found = estimate(
            np.asarray(p.classes)[p.codes],
            p.probs,
            notion=self._notion,
            estimator=self._reader,
            level=self._level,
            labels=list(p.classes),
            pos_label=None if p.positive is None else p.classes[p.positive],
            sample_weight=p.weights,
            sum_tolerance=1.0,  # judged already
            random_state=self._rng,
        )
        warnings = []
        if index.size < self._min_size:
            warnings.append(f"{index.size} rows, fewer than {self._min_size}: little can be said")
        pvalue = group_pvalue(rows, self._test, self._n_resamples, self._rng, self._smallest)
        if np.isnan(pvalue):
            warnings.append("all scores are 0 or 1, and came true: there is nothing to test")
        nan = float("nan")
        return Subgroup(
            name=name,
            value=value,
            n_samples=int(index.size),
            base_rate=float(rows.weights @ rows.outcomes / rows.total),
            mean_probability=float(rows.weights @ rows.scores / rows.total),
            gap=rows.gap,
            gap_interval=gap_interval(rows, self._level),
            error=found.value,
            error_interval=found.interval,
            pvalue=pvalue,
            adjusted=nan,
            holm=nan,
            bh=nan,
            warnings=tuple(warnings),
        )

    def _largest(self, codes: AnyArray, names: list[str], sizes: AnyArray) -> Difference | None:
        """Of all pairs of groups that are large enough, or of all groups if fewer than two are."""
        chance: FloatArray | None = None if self._pooled is None else self._pooled[1]
        among = np.flatnonzero(sizes >= self._min_size)
        among = among if among.size >= 2 else np.arange(len(names))
        if among.size < 2:
            return None
        gaps, variances = [], []
        for code in among:
            mine = codes == code
            rows = self._rows.where(mine)
            gaps.append(rows.gap)
            variances.append(gap_variance(rows, None if chance is None else chance[mine]))
        high, low = int(np.argmax(gaps)), int(np.argmin(gaps))
        if high == low:
            high = 1 - low if low < 2 else 0
        value = gaps[high] - gaps[low]
        reach = _all_pairs(self._level, len(gaps)) * float(np.sqrt(variances[high] + variances[low]))
        interval = Interval(float(value - reach), float(value + reach))
        return Difference(names[among[high]], names[among[low]], float(value), interval)


@cache
def _all_pairs(level: float, number: int) -> float:
    """How many standard errors differences of all pairs of so many means stay within (Tukey)."""
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(level, number, np.inf) / np.sqrt(2))


def _weightless(name: str, value: Any, size: int) -> Subgroup:
    nan = float("nan")
    none = Interval(nan, nan)
    return Subgroup(name, value, size, nan, nan, nan, none, nan, none, nan, nan, nan, nan, ("all rows have weight 0",))
