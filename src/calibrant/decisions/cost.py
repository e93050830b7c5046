"""Decisions of least expected cost, other base rates (survey, §2.1), and what decisions cost: `expected_cost`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from ..data.checks import check_int, check_level, check_number
from ..data.predictions import Predictions
from ..data.public_function import InputOptions, public_function
from ..data.result import Result
from ..data.types import AnyArray, FloatArray, Interval, Label, RandomState
from ..data.validation import as_predictions
from ..data.weights import of_variances, ones_or
from ..measure.scoring_rules import matrix_of

if TYPE_CHECKING:
    from ..calibrators import Calibrator
    from ..calibrators.inputs import CalibrationSample


@dataclass(frozen=True, repr=False)
class MeanCost(Result):
    """A mean over rows, its standard error, and a normal interval."""

    value: float
    se: float
    interval: Interval

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.interval.low:.4g} to {self.interval.high:.4g})"


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedCost(Result):
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
        p-value (null: the gap is 0), with the variance under calibration; NaN if that variance is 0.
    recalibrated : MeanCost or None
        Cost of the decisions after recalibration by a calibrator fitted to other rows.
    excess : MeanCost or None
        ``realised - recalibrated``, row by row: the cost of miscalibration.
    constant : MeanCost
        Cost of the best single decision for all rows.
    constant_decision : object
    saving : MeanCost
        ``constant - realised``, row by row: the cost that the probabilities save.
    clairvoyant : MeanCost
        Cost with perfect information: the best decision for each observed class.
    shares : mapping of decision to float
        Share of rows for which each decision is taken.
    classes : tuple
        Labels in the order of the rows of the costs.
    calibrator : str or None
    level : float
    n_samples : int
    """

    realised: MeanCost
    stated: MeanCost
    gap: MeanCost
    gap_pvalue: float
    recalibrated: MeanCost | None
    excess: MeanCost | None
    constant: MeanCost
    constant_decision: Any
    saving: MeanCost
    clairvoyant: MeanCost
    shares: Mapping[Any, float]
    classes: tuple[Label, ...]
    calibrator: str | None
    level: float
    n_samples: int

    def __str__(self) -> str:
        lines = [
            f"Cost per row, {self.n_samples:,} rows, {100 * self.level:g} % intervals",
            f"  decided by the probabilities  {self.realised}",
            f"  expected by the probabilities {self.stated}",
            f"  difference                    {self.gap}, p = {self.gap_pvalue:.3g}",
        ]
        if self.recalibrated is not None and self.excess is not None:
            lines += [
                f"  after recalibration           {self.recalibrated}   {self.calibrator}, cross-fitted",
                f"  cost of miscalibration        {self.excess}",
            ]
        lines += [
            f"  always {str(self.constant_decision) + ' ':<23}{self.constant}",
            f"  saved by the probabilities    {self.saving}",
            f"  with perfect information      {self.clairvoyant}",
            "  decisions: " + ", ".join(f"{name} {100 * share:.1f} %" for name, share in self.shares.items()),
        ]
        return "\n".join(lines)


@public_function()
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

    .. math:: a_i = \arg\min_a \sum_k p_{ik} C_{ka}, \qquad
              \text{realised} = \frac{\sum_i w_i C_{y_i a_i}}{\sum_i w_i}, \qquad
              \text{stated} = \frac{\sum_i w_i \sum_k p_{ik} C_{k a_i}}{\sum_i w_i}

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sample_weight
        See :func:`calibrant.as_predictions`.
    costs : array-like of shape (K, A)
        Cost of decision a if class k is true, classes in the order of ``labels`` (sorted by default), also where
        ``y_prob`` is 1-D. There may be more decisions than classes, such as to ask a person, or fewer.
    decisions : sequence of A names, optional
        Default: the labels, where there are as many; else 0, 1, …
    calibrator : Calibrator or name of one, "auto" or None, default "auto"
        Recalibration method; by default beta calibration for two classes and vector scaling for more. None: no
        recalibration.
    cv : int ≥ 2, default 5
        Folds: each row is recalibrated by a fit to the others', so that the cost after recalibration is not optimistic.
    level : float, default 0.95
        Of the intervals.
    random_state : int, Generator or None, default 0
        Of the folds, which are drawn without regard to labels.

    Returns
    -------
    ExpectedCost

    Raises
    ------
    ValueError, TypeError

    Notes
    -----
    Intervals are normal (central limit theorem), of differences row by row. They treat folds as independent, which
    makes them slightly too short; they are also too short if a rare, expensive error hardly occurs in the data. The
    best constant decision is chosen on the same rows: if two are about equally good, its cost is slightly optimistic.
    Standard errors count whole-number weights as repeats, and others by Kish's effective size. Cost O(n K A) and ``cv``
    fits.

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
    >>> found = cal.expected_cost(y, p, [[0, 1], [4, 0]], decisions=["leave", "treat"])
    >>> round(found.shares["treat"], 1), found.constant_decision
    (0.8, 'treat')
    >>> bool(found.gap_pvalue < 1e-6 and found.excess.interval.low > 0)  # treat from √0.2 on instead of 0.2
    True
    """
    if costs is None:
        raise TypeError("costs must be given: one row per class, one column per decision")
    level = check_level(level)
    p = as_predictions(y_true, y_prob, **inputs)
    table = _check_costs(costs, p.n_classes)
    names = _check_decisions(decisions, table.shape[1], p.classes)
    used = slice(None) if p.weights is None else np.flatnonzero(p.weights > 0)
    matrix, codes = matrix_of(p)[used], p.codes[used].astype(np.intp)
    mean = _Mean(p, used, level)
    rows = np.arange(len(codes))
    expected = matrix @ table
    taken = expected.argmin(axis=1)
    realised, stated = table[codes, taken], expected[rows, taken]
    after, who = None, None
    if calibrator is not None:
        from ..calibrators.inputs import CalibrationSample, Scores

        values = matrix[:, 1] if p.n_classes == 2 else matrix
        sample = CalibrationSample(Scores(values, "probability"), codes, mean.weights, tuple(range(p.n_classes)))
        new, who = _cross_fitted(sample, calibrator, cv, random_state)
        after = table[codes, (new @ table).argmin(axis=1)]
    always = mean.weights @ table[codes]
    best = int(always.argmin())
    shares = np.bincount(taken, weights=mean.weights, minlength=len(names)) / mean.weights.sum()
    return ExpectedCost(
        realised=mean.of(realised),
        stated=mean.of(stated),
        gap=mean.of(realised - stated),
        gap_pvalue=mean.pvalue(realised - stated, _variance(matrix, table, taken)),
        recalibrated=None if after is None else mean.of(after),
        excess=None if after is None else mean.of(realised - after),
        constant=mean.of(table[codes, best]),
        constant_decision=names[best],
        saving=mean.of(table[codes, best] - realised),
        clairvoyant=mean.of(table.min(axis=1)[codes]),
        shares={name: float(share) for name, share in zip(names, shares, strict=True)},
        classes=p.classes,
        calibrator=who,
        level=level,
        n_samples=p.n_samples,
    )


class _Mean:
    """Weighted means of the rows that count, with standard errors."""

    def __init__(self, p: Predictions, used: Any, level: float) -> None:
        from scipy.special import ndtri

        self.weights = ones_or(p.weights, p.n_samples)[used]
        self._size = p.effective_size
        self._times = of_variances(self.weights, integral=p.integral_weights)
        self._reach = float(ndtri((1 + level) / 2))

    def of(self, values: FloatArray) -> MeanCost:
        """Mean, its standard error, and its interval; NaN where one row says nothing of its spread."""
        share = self.weights / self.weights.sum()
        value = float(share @ values)
        spread = float(share @ (values - value) ** 2)
        se = float(np.sqrt(spread / (self._size - 1))) if self._size > 1 else float("nan")
        return MeanCost(value, se, Interval(value - self._reach * se, value + self._reach * se))

    def pvalue(self, values: FloatArray, variance: FloatArray) -> float:
        """Two-sided p-value of a sum whose terms have mean 0 and known variances."""
        from scipy.special import ndtr

        whole = float(self._times @ variance)
        if not whole > 0:
            return float("nan")
        return float(2 * ndtr(-abs(float(self.weights @ values)) / np.sqrt(whole)))


def _variance(matrix: FloatArray, table: FloatArray, taken: AnyArray) -> FloatArray:
    """Variance of each row's cost if its probabilities are true."""
    costs = table.T[taken]
    mean = (matrix * costs).sum(axis=1, keepdims=True)
    return np.asarray((matrix * (costs - mean) ** 2).sum(axis=1))


def _cross_fitted(sample: CalibrationSample, calibrator: Any, cv: int, random_state: Any) -> tuple[FloatArray, str]:
    """Probabilities of each row by a calibrator fitted to other folds, and its name."""
    from sklearn.model_selection import KFold

    from ..calibrators import named_calibrator
    from ..calibrators.crossval import held_out
    from ..scores.cross_fitted import fold_seed, ready_calibrator

    k, codes = sample.n_classes, sample.codes
    if isinstance(calibrator, str):
        calibrator = named_calibrator(("beta" if k == 2 else "vector") if calibrator == "auto" else calibrator, k)
    ready = ready_calibrator(calibrator, sample, "'auto', None, a name or a calibrator such as PlattScaling()")
    number = min(check_int("cv", cv, 2), len(codes))
    if number < 2:
        raise ValueError("cross-fitting needs at least two rows: pass calibrator=None")
    # Not stratified: folds that share the sample's base rate would know it, and be flattered by that.
    folds = list(KFold(number, shuffle=True, random_state=fold_seed(random_state)).split(codes))
    return held_out(ready, sample, folds)[0], repr(calibrator)


def _check_costs(costs: Any, k: int) -> FloatArray:
    try:
        table = np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"costs must be numbers, one row for each of {k} classes, all of the same length; got {costs!r}"
        ) from None
    if table.ndim != 2 or table.shape[0] != k or table.shape[1] == 0 or not np.isfinite(table).all():
        raise ValueError(f"costs must be finite, with a row for each of {k} classes; got shape {table.shape}")
    return table


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


def optimal_threshold(cost_fp: float, cost_fn: float, *, prior_shift: tuple[float, float] | None = None) -> float:
    r"""Probability above which "positive" is the cheaper decision.

    .. math:: t = \frac{c_{FP}}{c_{FP} + c_{FN}}

    Parameters
    ----------
    cost_fp, cost_fn : float
        Costs of a false positive and of a false negative, beyond those of being right; not negative, not both 0.
    prior_shift : (float, float), optional
        Base rate of the positive class where probabilities are calibrated, and where decisions are made, if these
        differ: the threshold then applies to the unadjusted probabilities (see :func:`shift_prior`).

    Returns
    -------
    float
        In [0, 1]: decide "positive" where the probability is at least this.

    References
    ----------
    Elkan (2001), *The foundations of cost-sensitive learning*.

    Examples
    --------
    >>> from calibrant.decisions import optimal_threshold
    >>> optimal_threshold(1, 4)
    0.2
    >>> round(optimal_threshold(1, 1, prior_shift=(0.5, 0.1)), 3)  # rarer now: more evidence is needed
    0.9
    """
    check_number("cost_fp", cost_fp, least=0)
    check_number("cost_fn", cost_fn, least=0)
    if cost_fp + cost_fn == 0:
        raise ValueError("cost_fp and cost_fn must not both be 0: then all decisions cost the same")
    t = float(cost_fp / (cost_fp + cost_fn))
    if prior_shift is None:
        return t
    old, new = (_base_rate(v) for v in prior_shift)
    # Odds of the threshold, as they were under the old base rate.
    up, down = t * old / new, (1 - t) * (1 - old) / (1 - new)
    return float(up / (up + down))


def shift_prior(y_prob: Any, old: Any, new: Any) -> FloatArray:
    r"""Probabilities under different base rates, with unchanged class-conditional distributions.

    .. math:: p'_k \propto p_k\, \frac{\pi'_k}{\pi_k}

    Parameters
    ----------
    y_prob : array-like of shape (n,) or (n, K)
        Calibrated probabilities: of the positive class, or of K classes.
    old, new : float, or array-like of shape (K,)
        Base rates where ``y_prob`` is calibrated, and where it will be used: of the positive class, or of K classes.

    Returns
    -------
    ndarray of the shape of ``y_prob``

    Notes
    -----
    Cost O(n K).

    References
    ----------
    Saerens, Latinne & Decaestecker (2002), *Adjusting the outputs of a classifier to new a priori probabilities*.

    Examples
    --------
    >>> from calibrant.decisions import shift_prior
    >>> shift_prior([0.5, 0.9], 0.5, 0.1).round(3).tolist()
    [0.1, 0.5]
    """
    p = _probabilities(y_prob)
    if p.ndim == 1:
        before, after = _base_rate(old), _base_rate(new)
        up, down = p * after / before, (1 - p) * (1 - after) / (1 - before)
        return np.asarray(up / (up + down))
    rates = [np.asarray(v, dtype=np.float64) for v in (old, new)]
    for name, rate in zip(("old", "new"), rates, strict=True):
        if rate.shape != (p.shape[1],) or (rate <= 0).any() or abs(rate.sum() - 1) > 1e-6:
            raise ValueError(f"{name} must be {p.shape[1]} base rates above 0 that sum to 1; got {rate.tolist()!r}")
    shifted = p * (rates[1] / rates[0])
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def decide(y_prob: Any, costs: Any) -> AnyArray:
    r"""Decision of least expected cost.

    .. math:: \arg\min_a \sum_k p_k\, C_{ka}

    Parameters
    ----------
    y_prob : array-like of shape (n, K)
        Calibrated probabilities; 1-D: of the second of two classes.
    costs : array-like of shape (K, A)
        Cost of decision a where class k is true. There may be more decisions than classes, such as to ask a person.

    Returns
    -------
    ndarray of shape (n,)
        Index of the decision; ties go to the first.

    Examples
    --------
    >>> from calibrant.decisions import decide
    >>> decide([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]], [[0, 1, 0.3], [5, 0, 0.3]]).tolist()  # 2: ask
    [2, 2, 1]
    """
    p = _probabilities(y_prob)
    p = p if p.ndim == 2 else np.column_stack([1 - p, p])
    return np.asarray((p @ _check_costs(costs, p.shape[1])).argmin(axis=1))


def _probabilities(y_prob: Any) -> FloatArray:
    p = np.asarray(y_prob, dtype=np.float64)
    if p.ndim not in (1, 2) or not np.isfinite(p).all() or (p < 0).any() or (p > 1).any():
        raise ValueError("y_prob must be probabilities, (n,) or (n, K), in [0, 1]")
    if p.ndim == 2 and (np.abs(p.sum(axis=1) - 1) > 1e-4).any():
        raise ValueError("rows of y_prob must sum to 1")
    return p


def _base_rate(value: Any) -> float:
    return check_number("base rates", value, above=0, below=1)
