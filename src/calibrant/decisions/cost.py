"""`expected_cost`: cost of the decisions based on probabilities, compared with those of other thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np

from ..calibrators import Calibrator, named_calibrator
from ..calibrators.crossval import Folds, fit_quietly, held_out
from ..calibrators.inputs import CalibrationSample, Scores
from ..comparison.models.units import IndependentUnits
from ..data.checks import check_int, check_level, fold_seed, is_auto
from ..data.predictions import Predictions, rows_with_weight
from ..data.printing import equals, half_width, known, printable, text_table
from ..data.public_function import InputOptions, public_function
from ..data.result import Picture, Result
from ..data.types import AnyArray, FloatArray, Interval, Label, RandomState
from ..data.validation import as_predictions
from ..data.weights import ones_or
from ..measure.scoring_rules import matrix_of
from ..scores.cross_fitted import mean_of, ready_calibrator
from .thresholds import check_costs

#: Evenly spaced thresholds of a curve.
_NODES = 501


@dataclass(frozen=True, repr=False)
class MeanCost(Result):
    """A mean cost per row, with its uncertainty.

    Attributes
    ----------
    value : float
        The mean cost.
    se : float
        Standard error of the mean.
    interval : Interval
        Interval of the mean.
    total : float
        Total cost of all rows.

    See Also
    --------
    calibrant.expected_cost : Computes several.
    calibrant.results.ExpectedCost : The whole result.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.expected_cost([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4], {"fp": 1, "fn": 4}, calibrator=None)
    >>> found.realised.value, found.realised.total
    (0.5, 2.0)
    """

    _unpictured: ClassVar[str] = "No picture: the mean cost is one number; plot() of the whole result draws its curve."

    value: float
    se: float
    interval: Interval
    total: float

    def __float__(self) -> float:
        return self.value

    @property
    def summary(self) -> str:
        """The mean with its interval."""
        return f"The mean cost per row is {self}."

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.interval.low:.4g} to {self.interval.high:.4g})"


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedCost(Picture):
    """Mean cost per row under several decision rules.

    Attributes
    ----------
    realised : MeanCost
        Observed cost of the decisions that minimise the expected cost under the predicted probabilities.
    stated : MeanCost
        Expected cost of the same decisions under the predicted probabilities.
    gap : MeanCost
        ``realised - stated``, row by row: 0 on average for calibrated probabilities, above 0 for overconfident ones.
    gap_pvalue : float
        The p-value (null: the gap is 0), with the variance under calibration, or of groups; NaN if that variance is 0.
    recalibrated : MeanCost or None
        Cost of the decisions after recalibration by a calibrator fitted to other rows.
    excess : MeanCost or None
        ``realised - recalibrated``, row by row: the cost of miscalibration.
    threshold : float or None
        For two classes and two decisions: the probability of ``label`` from which acting is the cheaper decision if
        probabilities are right, ``fp / (fp + fn)``. None otherwise, and if one decision is never more expensive.
    at_half : MeanCost or None
        Cost of acting at a probability of 0.5 or more.
    half_excess : MeanCost or None
        ``at_half - realised``, row by row: the saving due to the threshold.
    recalibrated_threshold : float or None
        The predicted probability from which acting is cheaper if the recalibrated ones are right, by a fit to all rows:
        acting at it or above costs nearly as much as ``recalibrated``. Infinite if acting never pays.
    constant : MeanCost
        Cost of the best single decision for all rows.
    constant_decision : object
        The decision whose cost is ``constant``.
    saving : MeanCost
        ``constant - realised``, row by row: the cost that the probabilities save.
    clairvoyant : MeanCost
        Cost with perfect information: the best decision for each observed class.
    shares : mapping of decision to float
        Share of rows for which each decision is taken.
    classes : tuple
        Labels in the order of the rows of the costs.
    label : label
        The class whose probability the thresholds refer to.
    thresholds, costs, stated_costs : ndarray of shape (m,)
        Cost per row of acting at or above each threshold, and its expected cost under the probabilities; empty if
        ``threshold`` is None.
    calibrator : str or None
        Name of the calibrator; None without recalibration.

    See Also
    --------
    calibrant.expected_cost : Computes it.
    calibrant.results.MeanCost : One of its costs.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.expected_cost([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4], {"fp": 1, "fn": 4}, calibrator=None)
    >>> found.threshold, found.realised.value  # one false alarm in four rows
    (0.2, 0.5)
    """

    display: ClassVar[str] = "CostDisplay"

    realised: MeanCost
    stated: MeanCost
    gap: MeanCost
    gap_pvalue: float
    recalibrated: MeanCost | None
    excess: MeanCost | None
    threshold: float | None
    at_half: MeanCost | None
    half_excess: MeanCost | None
    recalibrated_threshold: float | None
    constant: MeanCost
    constant_decision: Any
    saving: MeanCost
    clairvoyant: MeanCost
    shares: Mapping[Any, float]
    classes: tuple[Label, ...]
    label: Label
    thresholds: FloatArray
    costs: FloatArray
    stated_costs: FloatArray
    calibrator: str | None
    level: float
    n_samples: int
    n_groups: int | None

    @property
    def summary(self) -> str:
        """Cost of acting on the probabilities, and of other thresholds, in one sentence."""
        by = "on the probabilities" if self.threshold is None else f"at {self.threshold:.3g} or more"
        found = [f"Acting {by} costs {self._cost(self.realised)} per row ({self._total(self.realised)} in total)"]
        if self.half_excess is not None:
            found.append(f"{_beside(self.half_excess)} acting at 0.5 or more")
        if self.excess is not None:
            found.append(f"{_beside(self.excess, of_this=True)} after recalibration")
        return ", ".join(found) + "."

    def _cost(self, cost: MeanCost) -> str:
        return known(cost.value, half_width(*self.realised.interval))

    def _total(self, cost: MeanCost) -> str:
        return f"{cost.total:,.4g}" if abs(cost.total) < 1000 else f"{cost.total:,.0f}"

    def _text(self) -> str:
        rows = f"{self.n_samples:,} rows" + ("" if self.n_groups is None else f" in {self.n_groups:,} groups")
        others: list[tuple[str, MeanCost | None]] = [
            ("decided by the probabilities" + self._at(self.threshold), self.realised),
            ("  expected by the probabilities", self.stated),
            ("  difference", self.gap),
            ("acting at 0.5 or more", self.at_half),
            ("  more than by the probabilities", self.half_excess),
            ("after recalibration" + self._at(self.recalibrated_threshold), self.recalibrated),
            ("  cost of miscalibration", self.excess),
            (f"always {printable(str(self.constant_decision))}", self.constant),
            ("  saved by the probabilities", self.saving),
            ("with perfect information", self.clairvoyant),
        ]
        shown = {name: cost for name, cost in others if cost is not None}
        ends = [[known(end, half_width(*c.interval)) for end in c.interval] for c in shown.values()]
        columns = {
            rows: list(shown),
            "per row": [known(c.value, half_width(*c.interval)) for c in shown.values()],
            f"{100 * self.level:g} % interval": [f"{low} to {high}" for low, high in ends],
            "total": list(map(self._total, shown.values())),
        }
        shares = ", ".join(f"{printable(str(name))} {100 * share:.1f} %" for name, share in self.shares.items())
        notes = [f"decisions: {shares}; difference from the expected cost: p {equals(self.gap_pvalue)}"]
        if self.calibrator is not None:
            notes.append(f"recalibrated by {self.calibrator}, cross-fitted")
        if self.threshold is not None:
            notes.append(f"thresholds: probabilities of {printable(str(self.label))}")
        return "\n".join([*text_table(columns), "", *notes])

    def _at(self, threshold: float | None) -> str:
        return "" if threshold is None else ", never acting" if threshold == np.inf else f", at {threshold:.3g} or more"

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw cost against threshold, on given axes or on a new figure; returns the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        **options
            Options of :meth:`calibrant.plot.CostDisplay.plot`.
        """
        if self.threshold is None:
            raise ValueError("cost against threshold needs two classes and two decisions, each cheaper for one class")
        return super().plot(ax, **options)


def _beside(cost: MeanCost, *, of_this: bool = False) -> str:
    """How much less or more a rule costs than another; ``cost``: other minus this, or the reverse (``of_this``)."""
    if cost.value == 0:
        return "as much as"
    noise = "" if cost.interval.low > 0 or cost.interval.high < 0 else " (within noise)"
    more = "more" if (cost.value > 0) == of_this else "less"
    return f"{known(abs(cost.value), half_width(*cost.interval))}{noise} {more} than"


@public_function(grouped=True)
def expected_cost(
    y_true: Any,
    y_prob: Any = None,
    costs: Any = None,
    *,
    decisions: Sequence[Any] | None = None,
    calibrator: Calibrator | str | None = "auto",
    cv: int = 5,
    level: float = 0.95,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> ExpectedCost:
    r"""Cost of the decisions based on the probabilities, compared with alternatives.

    .. math:: & a_i = \arg\min_a \sum_k p_{ik} C_{ka}, \\
              & \text{realised} = \frac{\sum_i w_i C_{y_i a_i}}{\sum_i w_i}, \\
              & \text{stated} = \frac{\sum_i w_i \sum_k p_{ik} C_{k a_i}}{\sum_i w_i}

    Parameters
    ----------
    groups : array-like of shape (n,), or name of a column, optional
        The group of each row, such as a prompt, a patient or an event: folds keep groups together, and standard errors
        allow for them. By default, all rows are independent.
    costs : array-like of shape (K, A), or mapping with the keys "fp" and "fn"
        Cost of decision a if class k is true, classes in the order of ``labels`` (sorted by default), also if
        ``y_prob`` is 1-D. There may be more decisions than classes, such as deferring to a person, or fewer. With two
        classes, ``{"fp": 10, "fn": 200}`` gives the costs of a false positive and of a false negative (and of "tp" and
        "tn", 0 by default), with the labels as decisions.
    decisions : sequence of A names, optional
        Names of the decisions; by default the labels if there are as many, else 0, 1, and so on.
    calibrator : Calibrator or name of one, "auto" or None, default "auto"
        Recalibration method; by default beta calibration for two classes and vector scaling for more. None: no
        recalibration.
    cv : int ≥ 2, default 5
        Number of folds: each row is recalibrated by a fit to the other folds, so that this cost is not optimistic.
    level : float in (0, 1), default 0.95
        Level of the intervals.
    random_state : int, Generator or None, default 0
        Seed of the folds, which are drawn without regard to labels.

    Returns
    -------
    ExpectedCost
        ``.realised``, ``.stated``, ``.recalibrated``, ``.excess`` and the thresholds; ``.plot()`` draws the cost of
        every threshold.

    Raises
    ------
    ValueError, TypeError
        The message names the argument, the allowed values and the value received.

    See Also
    --------
    calibrant.decisions.decide : The decisions themselves.
    calibrant.optimal_threshold : The threshold for the costs of two errors.
    calibrant.decision_curve : The net benefit at every threshold.
    calibrant.results.ExpectedCost : The result, field by field.

    Notes
    -----
    Intervals are Student's, for differences by row or by group, with Kish's number of rows or groups minus one as
    degrees of freedom; benchmarks/coverage/groups_comparisons.md gives their coverage. They treat folds as independent,
    which makes them slightly too short; they are also too short if a rare, expensive error hardly occurs in the data.
    The best constant decision is chosen on the same rows: if two are about equally good, its cost is slightly
    optimistic.
    Standard errors count whole-number weights as repeats. With two decisions, the one for the positive class is taken
    where its probability is at least the threshold. Cost O(n K A + n log n) and ``cv + 1`` fits.

    References
    ----------
    Elkan (2001), *The foundations of cost-sensitive learning*; Zadrozny & Elkan (2001), *Learning and making decisions
    when costs and probabilities are both unknown*.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> y = rng.random(20_000) < p**2  # overstated
    >>> found = cal.expected_cost(y, p, {"fp": 1, "fn": 4}, decisions=["leave", "treat"])
    >>> round(found.shares["treat"], 1), found.constant_decision
    (0.8, 'treat')
    >>> found.threshold, bool(0.4 < found.recalibrated_threshold < 0.5)  # the truth is √0.2
    (0.2, True)
    >>> bool(found.gap_pvalue < 1e-6 and found.excess.interval.low > 0)  # treat from √0.2 on instead of 0.2
    True
    """
    if costs is None:
        raise TypeError("costs must be given: one row per class, one column per decision, or {'fp': 10, 'fn': 200}")
    level = check_level(level)
    p = as_predictions(y_true, y_prob, **inputs)
    positive = p.n_classes - 1 if p.positive is None else p.positive
    table = check_costs(costs, p.n_classes, positive)
    names = _check_decisions(decisions, table.shape[1], p.classes)
    p = rows_with_weight(p)
    matrix, codes = matrix_of(p), p.codes.astype(np.intp)
    mean = _Mean(p, level)
    rows, expected = np.arange(len(codes)), matrix @ table
    acting = _Acting.of(table, positive)
    taken = cheapest(matrix, table, positive)
    realised, stated = table[codes, taken], expected[rows, taken]
    half = None if acting is None else table[codes, acting.from_threshold(matrix, 0.5)]
    after, who, best_threshold = None, None, None
    if calibrator is not None:
        sample = _sample_of(p, matrix, codes)
        one, who = _ready(calibrator, sample)
        new, _ = held_out(one, sample, _folds(mean.units, cv, random_state))
        after = table[codes, cheapest(new, table, positive)]
        if acting is not None:
            best_threshold = acting.threshold_after(fit_quietly(one, sample), matrix, mean.units.row_mass)
    always = mean.units.row_mass @ table[codes]
    best = int(always.argmin())
    shares = np.bincount(taken, weights=mean.units.row_mass, minlength=len(names)) / mean.units.total
    curve = np.empty((3, 0)) if acting is None else acting.curve(matrix, table[codes], expected, mean.units.row_mass)
    return ExpectedCost(
        realised=mean.of(realised),
        stated=mean.of(stated),
        gap=mean.of(realised - stated),
        gap_pvalue=mean.pvalue(realised - stated, _variance(matrix, table, taken)),
        recalibrated=None if after is None else mean.of(after),
        excess=None if after is None else mean.of(realised - after),
        threshold=None if acting is None else acting.threshold,
        at_half=None if half is None else mean.of(half),
        half_excess=None if half is None else mean.of(half - realised),
        recalibrated_threshold=best_threshold,
        constant=mean.of(table[codes, best]),
        constant_decision=names[best],
        saving=mean.of(table[codes, best] - realised),
        clairvoyant=mean.of(table.min(axis=1)[codes]),
        shares={name: float(share) for name, share in zip(names, shares, strict=True)},
        classes=p.classes,
        label=p.classes[positive],
        thresholds=curve[0],
        costs=curve[1],
        stated_costs=curve[2],
        calibrator=who,
        level=level,
        n_samples=p.n_samples,
        n_groups=mean.units.copies.size if mean.units.grouped else None,
    )


class _Mean:
    """Weighted means of rows, with standard errors of independent rows or groups."""

    def __init__(self, p: Predictions, level: float) -> None:
        from scipy.special import stdtrit

        self.units = IndependentUnits.of(p)
        self._df = self.units.df
        self._reach = float(stdtrit(self._df, (1 + level) / 2)) if self._df > 0 else float("nan")

    def of(self, values: FloatArray) -> MeanCost:
        """Mean, its standard error, and its interval; the latter two are NaN for a single row or group."""
        units = self.units
        value = mean_of(units, values)
        variance = units.covariance(units.sums(values - value)[None] / units.total)[0, 0]
        se = float(np.sqrt(variance)) if self._df > 0 else float("nan")
        reach = self._reach * se
        return MeanCost(value, se, Interval(value - reach, value + reach), value * units.total)

    def pvalue(self, values: FloatArray, variance: FloatArray) -> float:
        """Two-sided p-value (null: the mean is 0): rows have known variances, groups those of their sums.

        With G groups, none is below 2^(1 - G), the smallest possible by their signs.
        """
        from scipy.special import ndtr, stdtr

        units = self.units
        if units.grouped:
            found = self.of(values)
            least = 2.0 ** (1 - units.size)
            return (
                max(least, float(2 * stdtr(self._df, -abs(found.value / found.se)))) if found.se > 0 else float("nan")
            )
        whole = float((units.copies[units.of_row] * units.weight**2) @ variance)
        if not whole > 0:
            return float("nan")
        return float(2 * ndtr(-abs(float(units.row_mass @ values)) / np.sqrt(whole)))


@dataclass(frozen=True)
class _Acting:
    """For two classes and two decisions: the cheaper decision from some probability of the positive class on.

    ``fp`` and ``fn`` are the extra costs of acting for a negative, and of not acting for a positive.
    """

    positive: int
    decision: int
    fp: float
    fn: float

    @classmethod
    def of(cls, table: FloatArray, positive: int) -> _Acting | None:
        """None for other tables, and if one decision is never more expensive."""
        if table.shape != (2, 2):
            return None
        gain = (table[:, 0] - table[:, 1])[[1 - positive, positive]]  # of deciding 1: where negative, where positive
        decision = int(gain[1] > gain[0])
        fp, fn = (-gain[0], gain[1]) if decision else (gain[0], -gain[1])
        return cls(positive, decision, float(fp), float(fn)) if min(fp, fn) >= 0 and fp + fn > 0 else None

    @property
    def threshold(self) -> float:
        """Probability at which both decisions have the same expected cost."""
        return self.fp / (self.fp + self.fn)

    def from_threshold(self, matrix: FloatArray, threshold: float) -> AnyArray:
        """Decisions (n,) of acting at or above a threshold."""
        return np.where(matrix[:, self.positive] >= threshold, self.decision, 1 - self.decision)

    def curve(self, matrix: FloatArray, costs: FloatArray, expected: FloatArray, weights: FloatArray) -> FloatArray:
        """Thresholds, and mean costs and expected costs of acting at or above them, (3, m)."""
        score = matrix[:, self.positive]
        order = np.argsort(score)
        even = np.linspace(0, 1, _NODES)
        nodes = np.unique(np.concatenate([even, np.quantile(score, even), [self.threshold, 0.5]]))
        spared = np.searchsorted(score[order], nodes)

        def mean(values: FloatArray) -> FloatArray:
            act, spare = (weights[order] * values[order, d] for d in (self.decision, 1 - self.decision))
            change = np.append(0.0, np.cumsum(spare - act))
            return np.asarray((act.sum() + change[spared]) / weights.sum())

        return np.stack([nodes, mean(costs), mean(expected)])

    def threshold_after(self, fitted: Calibrator, matrix: FloatArray, weights: FloatArray) -> float:
        """The score from which acting is cheapest if recalibrated probabilities are right; inf if it never pays."""
        score = matrix[:, self.positive].astype(np.float64)
        order = np.argsort(score)

        def above(scores: FloatArray) -> FloatArray:
            second = scores if self.positive == 1 else 1 - scores
            return fitted._probabilities_of(Scores(second, "probability"))[:, self.positive] - self.threshold

        # Sparing one more row costs what its recalibrated probability lies above the threshold.
        costs = np.append(0.0, np.cumsum(weights[order] * above(score[order])))
        first = int(costs.argmin())
        ends = np.concatenate([[0.0], score[order], [1.0]])
        between = np.linspace(ends[first], ends[first + 1], _NODES)[first > 0 :]
        acts = above(between) >= 0
        if acts.any():
            return float(between[acts.argmax()])
        return float(ends[first + 1]) if first < len(score) else float("inf")


def cheapest(matrix: FloatArray, table: FloatArray, positive: int) -> AnyArray:
    """Decisions (n,) of lowest expected cost, from probabilities (n, K) and costs (K, A)."""
    acting = _Acting.of(table, positive)
    return (matrix @ table).argmin(axis=1) if acting is None else acting.from_threshold(matrix, acting.threshold)


def _variance(matrix: FloatArray, table: FloatArray, taken: AnyArray) -> FloatArray:
    """Variance of each row's cost if its probabilities are true."""
    costs = table.T[taken]
    mean = (matrix * costs).sum(axis=1, keepdims=True)
    return np.asarray((matrix * (costs - mean) ** 2).sum(axis=1))


def _sample_of(p: Predictions, matrix: FloatArray, codes: AnyArray) -> CalibrationSample:
    """Rows for a calibrator, with columns in the order of the costs."""
    values = matrix[:, 1] if p.n_classes == 2 else matrix
    weights = ones_or(p.weights, p.n_samples)
    return CalibrationSample(Scores(values, "probability"), codes, weights, tuple(range(p.n_classes)), p.together)


def _ready(calibrator: Any, sample: CalibrationSample) -> tuple[Calibrator, str]:
    """A calibrator ready for a sample, and its name."""
    k = sample.n_classes
    if isinstance(calibrator, str):
        calibrator = named_calibrator(("beta" if k == 2 else "vector") if is_auto(calibrator) else calibrator, k)
    return ready_calibrator(calibrator, sample, "'auto', None, a name or a calibrator such as PlattScaling()"), repr(
        calibrator
    )


def _folds(units: IndependentUnits, cv: int, random_state: Any) -> Folds:
    """Rows to fit and rows to evaluate, of whole groups.

    Not stratified: folds with the sample's base rate would give optimistic results.
    """
    from sklearn.model_selection import KFold

    number = min(check_int("cv", cv, 2), units.copies.size)
    if number < 2:
        raise ValueError("cross-fitting needs at least two rows: pass calibrator=None")
    folds = KFold(number, shuffle=True, random_state=fold_seed(random_state)).split(units.copies)
    held = (np.isin(units.of_row, test) for _, test in folds)
    return [(np.flatnonzero(~test), np.flatnonzero(test)) for test in held]


def _check_decisions(decisions: Any, number: int, classes: tuple[Label, ...]) -> tuple[Any, ...]:
    if decisions is None:
        return classes if number == len(classes) else tuple(range(number))
    message = f"decisions must be {number} different names, one per column of costs; got {decisions!r}"
    if isinstance(decisions, (str, bytes)):
        raise ValueError(message)
    try:
        names = tuple(decisions)
        different = len(set(names))
    except TypeError:
        raise TypeError(message) from None
    if different != len(names) or len(names) != number:
        raise ValueError(message)
    return names
