"""`grouping_loss`: a lower bound of the grouping loss, from features that separate rows of equal score."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack

import numpy as np

from ..calibrators import Calibrator
from ..calibrators.crossval import FLOOR, fit_quietly
from ..data.checks import check_choice, check_int, check_level, check_random_state
from ..data.convert import to_array
from ..data.dependence import read_groups
from ..data.predictions import effective_size
from ..data.public_function import InputOptions, public_function
from ..data.result import Result
from ..data.types import AnyArray, FloatArray, IntArray, Interval, RandomState
from ..data.validation import as_predictions
from ..data.weights import of_variances
from ..measure.scoring_rules import Brier, Log, ScoringRule, as_rule, brier_words
from ..notions import Classwise
from .cross_fitted import CrossFitted, limits, mean_of

#: Boosting: largest number of steps, length of a step, steps without gain, and shrinkage of regions, in rows.
STEPS, LENGTH, PATIENCE, SHRINKAGE = 100, 0.2, 10, 1.0
#: One row in this many is set aside for early stopping.
STOPPING = 5
#: Tree: depth, minimum rows per leaf, and maximum number of rows to which it is fitted.
DEPTH, LEAF, ENOUGH = 3, 10, 20_000
#: Minimum rows of a level set; it has fewer than twice as many, unless all its scores are equal.
SMALLEST = 10


@dataclass(frozen=True, eq=False, repr=False)
class GroupingLoss(Result):
    """A lower bound of a model's grouping loss, from features.

    Attributes
    ----------
    value : float
        Signed estimate, whose mean is a lower bound of the grouping loss.
    interval : Interval
        Interval of the gain from the features; its upper end is not a bound of the grouping loss.
    lower : float
        Lower end of the one-sided interval: a lower confidence limit of the grouping loss.
    calibrator : str
        Calibrator of the scores.

    See Also
    --------
    calibrant.scores.grouping_loss : Computes it.
    calibrant.results.Decomposition : The parts of the mean score, of which this is one.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, side = 0.2 + 0.6 * rng.random(2000), rng.integers(2, size=2000)
    >>> y = rng.random(2000) < p + 0.4 * side - 0.2
    >>> cal.scores.grouping_loss(y, p, side, calibrator="platt").lower > 0
    True
    """

    _unpictured: ClassVar[str] = "No picture: a grouping loss is one number."

    value: float
    interval: Interval
    lower: float
    score: str
    calibrator: str
    level: float
    n_samples: int
    n_classes: int

    @property
    def summary(self) -> str:
        """Whether outcomes of rows with equal scores vary with the features."""
        if not self.lower > 0:
            return "The features show no grouping loss: outcomes of rows with equal scores do not vary with them."
        loss = f"the grouping loss is above {self.lower:.4f} at {100 * self.level:g} %"
        return f"Outcomes of rows with equal scores vary with the features: {loss}."

    def _text(self) -> str:
        scale = f" ({brier_words(self.n_classes)})" if self.score == "brier" else ""
        low, high = self.interval
        return (
            f"grouping loss of {self.n_samples:,} rows, {self.score} score{scale}, after {self.calibrator}\n"
            f"  at least {self.value:.4f} on average   {low:.4f} – {high:.4f}   (above {self.lower:.4f} at "
            f"{100 * self.level:g} %)"
        )


@public_function(grouped=True)
def grouping_loss(
    y_true: Any,
    y_prob: Any = None,
    features: Any = None,
    *,
    score: str | ScoringRule = "brier",
    calibrator: str | Calibrator = "auto",
    cv: int = 5,
    level: float = 0.95,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> GroupingLoss:
    r"""Lower bound of the grouping loss: variation of ``P(y | x)`` with features among rows of equal score.

    .. math:: \frac{1}{n} \sum_i \ell(\bar q_i, y_i) - \ell(q_i, y_i)

    with q the probabilities of a model of features and scores, and :math:`\bar q` those of the scores only, scaled to
    the mean of q in each level set.

    Parameters
    ----------
    features : array-like or data frame of shape (n, d), or array-like of n region codes
        Features that the model may have missed. Columns are numbers, which may be missing, or categories; a second
        model's scores may be among them. 1-D: the region of each row, as whole numbers or names.
    score : {"brier", "log-loss"} or a scoring rule of these kinds, default "brier"
        ``"brier"``: ``(p - o)²`` for two classes, ``Σ_k (p_k - o_k)²`` for more.
    calibrator : "auto", str or calibrator of :mod:`calibrant.calibrators`, default "auto"
        Calibrator of the scores: ``"quadratic"`` for two classes and ``"temperature"`` for more, which can express most
        smooth maps and never give 0 or 1. Names as in :func:`calibrant.calibrators.named_calibrator`.
    cv : int ≥ 2, default 5
        Stratified folds; fewer, but at least two, if a class has fewer rows. A row is in one fold, whatever its weight.
    groups : array-like of shape (n,), or name of a column, optional
        The group of each row, such as a prompt, a patient or an event: folds keep groups together, and the interval is
        based on whole groups. Default: all rows are independent.

    Returns
    -------
    GroupingLoss
        ``.value``, ``.interval`` and ``.lower``, in units of the score.

    Raises
    ------
    ValueError, TypeError
        For other scores; for features that are infinite, missing codes of regions, or not one per row.

    See Also
    --------
    calibrant.decompose : Calibration and refinement; the grouping loss is part of the latter.
    calibrant.subgroup_calibration : Calibration in subgroups of your choice.
    calibrant.results.GroupingLoss : The result, field by field.

    Notes
    -----
    Small trees, boosted on the other folds from the recalibrated scores, give q; if regions are given, they replace the
    trees. Ten or more rows with nearly equal scores form a level set. The divergences of the Brier score and the
    log-loss are convex in both arguments, so for any q its gain over its own mean is on average at most the variation
    within level sets: a **lower bound** of the grouping loss, with a bias of at most the variation of calibration
    within a level set. It is too low by the part that the features do not explain, by the part that the trees do not
    find, and by up to a tenth for the size of level sets; with uninformative features it is around or slightly below 0,
    and keeps its sign. The grouping loss is conditional on all of S, also for more than two classes, where that of
    class-by-class frequencies is larger. It splits the refinement of :func:`calibrant.decompose`: refinement minus this
    bound is an upper bound of the irreducible part, provided that the refinement is correct.

    The interval is for the gain of the fitted trees, and at least as wide as for labels drawn from the level sets. How
    often ``lower`` exceeds the true loss is simulated in ``benchmarks/coverage/grouping.md``: hardly ever if there is a
    grouping loss; if there is none, about as often as the level allows, or more: for the log-loss of three classes in
    one of eight samples at a level of 0.95. Cost: ``cv`` times at most 100 trees of 2·10⁴ rows, each with O(n K): about
    a second for 10⁴ rows of two classes.

    References
    ----------
    Kull & Flach (2015), *Novel decompositions of proper scoring rules*; Perez-Lebel, Le Morvan & Varoquaux (2023),
    *Beyond calibration: estimating the grouping loss of modern neural networks*, for a bound by regions of features
    within level sets.

    Examples
    --------
    Half of the scores are too high, half too low, and p is right on average: a grouping loss of 0.01.

    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, side = 0.2 + 0.6 * rng.random(4000), rng.integers(2, size=4000)
    >>> y = rng.random(4000) < p + 0.2 * side - 0.1
    >>> found = cal.scores.grouping_loss(y, p, side, calibrator="beta")
    >>> bool(0.005 < found.value < 0.012 and found.lower > 0)
    True
    """
    level, cv = check_level(level), check_int("cv", cv, 2)
    p = as_predictions(y_true, y_prob, **inputs)
    rule = as_rule(score, half=p.n_classes == 2)
    check_choice("score", rule, (Brier(), Brier("half"), Log()))  # of which the bound is known
    if features is None:
        raise TypeError("features must be given: columns, or a region for each row")
    regions = read_regions(features, p.n_given)
    if p.given is not None:
        regions = regions.subset(p.given)
    if p.weights is not None and not p.weights.all():
        regions = regions.subset(p.weights > 0)
    if isinstance(calibrator, str) and calibrator == "auto":
        calibrator = "quadratic" if p.n_classes == 2 else "temperature"
    fits = CrossFitted.of(p, calibrator, cv, random_state)
    w, units = fits.sample.weights, fits.units
    # How many rows say as much as one independent row, the mean over classes.
    design = 1.0 if p.groups is None else float(Classwise().reduce(p).designs.mean())
    size = effective_size(w, w.size, integral=p.integral_weights) / design
    gain, variance = FeatureGains(rule, fits, w * (size / w.sum()), regions).of_rows(check_random_state(random_state))
    squares = of_variances(w, integral=p.integral_weights) * design
    noise = float(np.sqrt(squares @ variance) / w.sum())
    both, lower = (limits(units, {"gain": gain}, level, sides=sides, least=noise)["gain"] for sides in (2, 1))
    return GroupingLoss(
        value=mean_of(units, gain),
        interval=both,
        lower=lower.low,
        score=score if isinstance(score, str) else repr(score),
        calibrator=fits.name,
        level=level,
        n_samples=w.size,
        n_classes=p.n_classes,
    )


@dataclass(frozen=True, eq=False)
class FeatureGains:
    """Gain from features, by trees or given regions, boosted from the recalibrated scores of a sample."""

    rule: ScoringRule
    fits: CrossFitted
    weights: FloatArray  # in rows
    regions: Regions

    def of_rows(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Loss of each row by its level set's probability minus that by the features', (n,), cross-fitted.

        Also its variance if the level sets' probabilities were true: a rare label that features exclude costs much, and
        a sample without it seems more certain than it is.
        """
        out, variance = np.empty((2, len(self.weights)))
        sample, stated = self.fits.sample, self.fits.stated
        cells = level_sets(stated[:, 1:] if stated.shape[1] == 2 else stated)
        for train, test in self.fits.folds:
            fitted = fit_quietly(self.fits.calibrator, sample.part(train))
            recalibrated = np.maximum(fitted._probabilities_of(sample.scores), FLOOR)
            recalibrated /= recalibrated.sum(axis=1, keepdims=True)
            found = self._boosted(recalibrated, train, rng)
            # Means over a level set need no labels, so all rows make them; those of the fold alone are judged.
            levelled = _levelled(found, recalibrated, cells, self.weights)[test]
            found = found[test]
            codes = sample.codes[test]
            gain = self.rule.table(levelled) - self.rule.table(found)
            out[test] = gain[np.arange(len(test)), codes]
            variance[test] = (levelled * (gain - (levelled * gain).sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
        return out, variance

    def _boosted(self, start: FloatArray, train: AnyArray, rng: np.random.Generator) -> FloatArray:
        """Probabilities from the features, (n, K): the start, multiplied region by region.

        Every step finds regions of the residuals, and multiplies the probability of each class by a power of its
        observed count there over the expected one. Boosting stops when rows set aside no longer gain.
        """
        codes, k = self.fits.sample.codes, start.shape[1]
        last = start[:, 1] if k == 2 else start.max(axis=1)
        regions = self.regions.beside(np.log(last) - np.log1p(-np.minimum(last, 1 - FLOOR)))
        shuffled = rng.permutation(train)
        stop, rows = shuffled[: len(train) // STOPPING], np.sort(shuffled[len(train) // STOPPING :])
        if not stop.size:
            stop = rows
        weights, seen = self.weights[rows], codes[rows]
        now = best = start
        least, since = self._mean(now, stop), 0
        for _ in range(STEPS):
            residual = -now[rows]
            residual[np.arange(len(rows)), seen] += 1
            region = regions.of(residual[:, 1] if k == 2 else residual, weights, rows, rng)
            expected = _sums(region[rows], int(region.max()) + 1, weights[:, None] * now[rows])
            counted = np.bincount(region[rows] * k + seen, weights=weights, minlength=expected.size)
            step = ((counted.reshape(expected.shape) + SHRINKAGE) / (expected + SHRINKAGE)) ** LENGTH
            now = now * step[region]
            now /= now.sum(axis=1, keepdims=True)
            reached = self._mean(now, stop)
            best, least, since = (now, reached, 0) if reached < least else (best, least, since + 1)
            if since == PATIENCE:
                break
        return best

    def _mean(self, p: FloatArray, rows: AnyArray) -> float:
        return float(np.average(self.rule.losses(p[rows], self.fits.sample.codes[rows]), weights=self.weights[rows]))


def _levelled(found: FloatArray, recalibrated: FloatArray, cells: IntArray, weights: FloatArray) -> FloatArray:
    """Recalibrated scores, scaled within level sets to the means of the features' probabilities."""
    number = int(cells.max()) + 1
    means = [_sums(cells, number, weights[:, None] * p) for p in (found, recalibrated)]
    scaled = recalibrated * (means[0] / np.where(means[1] > 0, means[1], 1.0))[cells]
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))


def _sums(cell: IntArray, n_cells: int, values: FloatArray) -> FloatArray:
    """Sums of rows (n, K) within cells, (cells, K)."""
    from scipy.sparse import csr_array

    member: Any = csr_array((np.ones(len(cell)), (cell, np.arange(len(cell)))), shape=(n_cells, len(cell)))
    return np.asarray(member @ values)


def level_sets(told: FloatArray, least: int = SMALLEST) -> IntArray:
    """Cell of each row, (n,), by repeated halving along the widest column, (n, K).

    All cells are halved together, each between the two different values that are nearest its middle row, until it has
    fewer than ``2 least`` rows or all are equal. Cost O(n (K + log n)) per halving, about ``log2(n / least)`` halvings.
    """
    cell = np.zeros(len(told), dtype=np.intp)
    rows, number = np.arange(len(told)), 1
    while rows.size:
        rows = rows[np.argsort(cell[rows], kind="stable")]
        start = np.flatnonzero(np.diff(cell[rows], prepend=-1))
        size = np.diff(start, append=rows.size)
        inside = told[rows]
        width = np.maximum.reduceat(inside, start) - np.minimum.reduceat(inside, start)
        halved = (size >= 2 * least) & (width.max(axis=1) > 0)
        value = inside[np.arange(rows.size), np.repeat(width.argmax(axis=1), size)]
        kept = np.repeat(halved, size)
        rows, value = rows[kept], value[kept]
        size = size[halved]
        if not rows.size:
            break
        start = np.cumsum(size) - size
        which = np.repeat(np.arange(size.size), size)
        order = np.lexsort((value, which))
        rows, value = rows[order], value[order]
        place = np.arange(rows.size) - start[which]
        between = (place > 0) & (np.diff(value, prepend=np.nan) != 0)
        off = np.where(between, np.abs(2 * place - size[which]), 2 * rows.size)
        best = np.flatnonzero(off == np.minimum.reduceat(off, start)[which])
        first = best[np.unique(which[best], return_index=True)[1]]
        upper = np.arange(rows.size) >= first[which]
        cell[rows[upper]] = number + which[upper]
        number += size.size
    return cell


@dataclass(frozen=True, eq=False)
class Regions:
    """A function that assigns every row to a region: given codes, or a tree of the residuals on columns of features.

    Attributes
    ----------
    columns : ndarray of shape (n, d)
        float32; NaN is a separate value.
    codes : ndarray of shape (n,) or None
        Region of each row, if given.
    """

    columns: FloatArray
    codes: IntArray | None = None

    def of(self, residual: FloatArray, weights: FloatArray, rows: AnyArray, rng: np.random.Generator) -> IntArray:
        """Region of every row of the sample, (n,): leaves of a tree, found on at most 20,000 of some rows, (r, K)."""
        if self.codes is not None:
            return self.codes
        from sklearn.tree import DecisionTreeRegressor

        some = np.arange(len(rows))
        if some.size > ENOUGH:
            some = np.sort(rng.choice(some.size, ENOUGH, replace=False))
        tree = DecisionTreeRegressor(max_depth=DEPTH, min_samples_leaf=LEAF, random_state=int(rng.integers(2**31)))
        tree.fit(self.columns[rows[some]], residual[some], sample_weight=weights[some])
        return np.asarray(tree.apply(self.columns))

    def beside(self, told: FloatArray) -> Regions:
        """With the scores, (n,), as one more column, so that the effect of features may depend on them."""
        return replace(self, columns=np.column_stack([self.columns, told]).astype(np.float32))

    def subset(self, rows: AnyArray) -> Regions:
        """Regions of some rows."""
        return Regions(self.columns[rows], None if self.codes is None else self.codes[rows])


def read_regions(features: Any, n: int) -> Regions:
    """Check the ``features`` argument: a table of columns, or the code of a region for each row."""
    if hasattr(features, "columns") and not isinstance(features, np.ndarray):
        return _of_columns(_frame_columns(features), n)
    array, _ = to_array(features, "features")
    if array.ndim == 2:
        return _of_columns(list(array.T), n)
    if array.ndim == 1 and array.dtype.kind == "f" and (array != np.floor(array)).any():
        raise ValueError(
            "features must be a 2-D table of columns, or codes of regions in 1-D; got numbers that are not codes: pass "
            "features[:, None] if they are one feature"
        )
    codes = np.asarray(read_groups(array, n, "features"))
    return Regions(np.empty((n, 0), dtype=np.float32), np.unique(codes, return_inverse=True)[1].reshape(-1))


def _frame_columns(frame: Any) -> list[AnyArray]:
    """Columns of a data frame; missing values are NaN or None."""
    import narwhals as nw

    native = nw.from_native(frame, eager_only=True)
    return [np.asarray(column.to_numpy()) for column in native.iter_columns()]


def _of_columns(columns: list[AnyArray], n: int) -> Regions:
    if not columns or len(columns[0]) != n:
        shape = (len(columns[0]), len(columns)) if columns else "no columns"
        raise ValueError(f"features must have one row per label ({n}) and at least one column; got {shape}")
    table = np.column_stack([_numbers(c) for c in columns])
    with np.errstate(over="ignore"):
        table = table.astype(np.float32)
    if np.isinf(table).any():
        row = int(np.argmax(np.isinf(table).any(axis=1)))
        raise ValueError(f"features must be finite numbers below 3e38, categories, or missing; row {row} is infinite")
    return Regions(table)


def _numbers(column: AnyArray) -> FloatArray:
    """A column as numbers: dates as their numbers, names as codes in sorted order."""
    if column.dtype.kind == "c":
        raise TypeError("features must be numbers or categories; got complex numbers")
    if column.dtype.kind in "mM":
        return np.where(np.isnat(column), np.nan, column.astype(np.int64).astype(np.float64))
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        return np.unique(column.astype(str), return_inverse=True)[1].reshape(-1).astype(np.float64)
