"""`CrossFit`: gaps in the direction given by a recalibration map fitted to other samples, so noise does not add up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..data.checks import check_int, check_type, received
from ..data.problem import Problem
from ..data.types import AnyArray, FloatArray, IntArray
from ..data.weights import ones_or
from ..sums import DistinctScores, Runs
from ..sums.logistic_fit import expit, fit, logits_of
from .base import Estimator
from .isotonic import isotonic_means
from .parametric import columns_of

#: Clipping level of logits, and prior precision of the standardised deviations, of the built-in logistic map.
LOGISTIC_EPS = 1e-6
LOGISTIC_SHRINKAGE = 1.0
#: Predicts the outcome at given scores, from distinct ascending scores, their weights and their positives.
Map = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], FloatArray]


class Fold(NamedTuple):
    """Distinct scores of a fold's samples, (m,), their weights, ``Σ w o``, and ``ĝ - s`` from the other folds."""

    scores: FloatArray
    weight: FloatArray
    positive: FloatArray
    delta: FloatArray

    def terms(self, norm: float) -> FloatArray:
        """Sums of the samples' terms at each score."""
        residual = self.positive - self.weight * self.scores
        if norm == 1:
            return np.asarray(np.sign(self.delta) * residual)
        return np.asarray(2 * self.delta * residual - self.delta**2 * self.weight)


@dataclass(frozen=True)
class CrossFit(Estimator):
    r"""Cross-fitted calibration error: a lower bound in expectation, with any scikit-learn recalibration map.

    .. math:: & p = 1: \quad \frac1n \sum_i \operatorname{sign}\big(\hat g_{-f(i)}(s_i) - s_i\big)\,(o_i - s_i), \\
        & p = 2: \quad \frac1n \sum_i \big[2 \delta_i (o_i - s_i) - \delta_i^2\big], \quad
        \delta_i = \hat g_{-f(i)}(s_i) - s_i

    where ĝ estimates P(o = 1 | s) from the folds that do not contain sample i.

    Parameters
    ----------
    regressor : {"isotonic", "logistic", "histogram"} or scikit-learn estimator, default "isotonic"
        Model that fits ĝ. ``"isotonic"``: pool adjacent violators, linear between scores. ``"logistic"``:
        ``a + b·logit s``, shrunk to the identity like ``Parametric(shrinkage=1)``. ``"histogram"``: means of
        ``floor(∛n)`` bins with equal counts. Or an unfitted regressor or classifier of one feature, the score; a
        classifier's ``predict_proba`` is used. It is cloned for every fold.
    cv : int ≥ 2, default 5
        Number of folds.
    random_state : int, default 0
        Seed of the folds. The result does not depend on the order of the rows.

    See Also
    --------
    calibrant.significance.confidence_direction : Its components, over- and underconfidence.
    calibrant.estimators.Parametric : A parametric map without folds.

    Notes
    -----
    With ``d = P(o=1|s) - s`` the mean of a term, given the scores and the other folds, is ``sign(δ)·d ≤ |d|`` for p = 1
    and ``2δd - δ² = d² - (δ - d)² ≤ d²`` for p = 2: whatever ĝ, the expectation never exceeds the
    truth, and reaches it where ĝ lies on the right side of s (p = 1) or is exact (p = 2). So the estimate is
    **signed**: around 0 for a calibrated model, and negative by chance (p = 1; for p = 2 the root of a negative is 0,
    and :func:`squared_calibration_error` gives the signed square). Other p have no such form. Range [-1, 1].

    Folds are balanced over the scores: equal scores are assigned at random (never by outcome, which would make folds
    dependent), distinct ones in turn. Whole-number weights equal repeats exactly: a row of weight 3 may lie in three
    folds. Relative weights keep a row in one fold. Samples whose fold leaves no others to fit are omitted; NaN if none
    remain (one sample). Cost: ``cv`` fits; ``"isotonic"`` O(cv · n log n), ``"logistic"`` O(cv · n).

    References
    ----------
    Błasiok, Gopalan, Hu & Nakkiran (2023), *A unifying theory of distance from calibration*, for calibration errors as
    ``max_h E[h(s)(o - s)]``: over all h with values in [-1, 1] this is E|d|, and cross-fitting evaluates it at one h.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> y = rng.random(20_000) < p**2  # true error: ∫|p² - p| dp = 1/6
    >>> bool(abs(cal.calibration_error(y, p, estimator=cal.estimators.CrossFit()) - 1 / 6) < 0.01)
    True
    """

    regressor: Any = "isotonic"
    cv: int = 5
    random_state: int = 0

    def __post_init__(self) -> None:
        names = ", ".join(map(repr, BUILT_IN))
        allowed = f"regressor must be one of {names} or an unfitted scikit-learn regressor or classifier"
        if isinstance(self.regressor, str):
            if self.regressor not in BUILT_IN:
                raise ValueError(f"{allowed}; got {received(self.regressor)}")
        elif isinstance(self.regressor, type) or not all(
            hasattr(self.regressor, name) for name in ("fit", "get_params", "predict")
        ):
            raise TypeError(f"{allowed}; got {received(self.regressor)}")
        for name, least in (("cv", 2), ("random_state", 0)):
            check_type(name, getattr(self, name), (int, np.integer), f"an int >= {least}")
            check_int(name, getattr(self, name), least)

    def power(self, problem: Problem, norm: float) -> float:
        """Signed mean of the terms: the error itself for p = 1, its square for p = 2."""
        if norm not in (1, 2):
            raise ValueError(f"CrossFit is defined for norm 1 and 2; got norm={norm:g}")
        value = total = 0.0
        for fold in self._folds(problem):
            value += float(fold.terms(norm).sum())
            total += float(fold.weight.sum())
        return value / total if total > 0 else float("nan")

    def _folds(self, problem: Problem) -> Iterator[Fold]:
        """Rows of each fold, with the map fitted to the others; folds that leave no other rows are omitted."""
        parts = split(problem, self.cv, self.random_state)
        for fold in np.flatnonzero(parts.known()):
            here = parts.weight[fold] > 0
            if here.any():
                s = parts.scores[here]
                delta = self._fitted(parts, int(fold), s) - s
                yield Fold(s, parts.weight[fold][here], parts.positive[fold][here], delta)

    def _square(self, problem: Problem) -> float:
        """Signed square: in expectation at most the squared error."""
        return self.power(problem, 2)

    def _fitted(self, parts: FoldParts, fold: int, at: FloatArray) -> FloatArray:
        """ĝ fitted to the samples outside a fold, evaluated at given scores."""
        weight, positive = parts.without(fold)
        used = weight > 0
        s, w, k = parts.scores[used], weight[used], positive[used]
        if isinstance(self.regressor, str):
            return BUILT_IN[self.regressor](s, w, k, at)
        return _by_estimator(self.regressor, s, w, k, at, whole=parts.whole)


def isotonic_map(scores: FloatArray, weight: FloatArray, positive: FloatArray, at: FloatArray) -> FloatArray:
    """Isotonic fit, linear between scores and constant beyond them."""
    return np.interp(at, scores, isotonic_means(positive, weight))


def logistic_map(scores: FloatArray, weight: FloatArray, positive: FloatArray, at: FloatArray) -> FloatArray:
    """``a + b·logit s``, shrunk to the identity."""
    logits = logits_of(scores, LOGISTIC_EPS)[None]
    columns = columns_of(logits, weight[None], "logistic")
    theta = fit(columns, logits, weight[None], positive[None], LOGISTIC_SHRINKAGE)
    change = (theta[:, None, :] @ columns)[0, 0]
    new = logits_of(at, LOGISTIC_EPS)
    # The change is a line over the logit: two of its points, the ends, say all.
    low, high = int(np.argmin(logits[0])), int(np.argmax(logits[0]))
    width = logits[0, high] - logits[0, low]
    slope = (change[high] - change[low]) / width if width > 0 else 0.0
    return expit(new + change[low] + slope * (new - logits[0, low]))


def histogram_map(scores: FloatArray, weight: FloatArray, positive: FloatArray, at: FloatArray) -> FloatArray:
    """Mean outcomes of ``floor(∛n)`` bins with equal counts; equal scores share a bin."""
    total = float(weight.sum())
    n_bins = max(1, int(np.cbrt(total) + 1e-9))
    running = np.cumsum(weight)
    number = np.minimum(((running - weight / 2) * (n_bins / total)).astype(np.intp), n_bins - 1)
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    means = np.add.reduceat(positive, starts) / np.add.reduceat(weight, starts)
    borders = (scores[starts[1:] - 1] + scores[starts[1:]]) / 2
    return np.asarray(means[np.searchsorted(borders, at, side="left")])


BUILT_IN: dict[str, Map] = {"isotonic": isotonic_map, "logistic": logistic_map, "histogram": histogram_map}


def _by_estimator(
    regressor: Any, scores: FloatArray, weight: FloatArray, positive: FloatArray, at: FloatArray, *, whole: bool
) -> FloatArray:
    """Fit a clone of a scikit-learn estimator to one weighted row per score and outcome."""
    from sklearn.base import clone, is_classifier
    from sklearn.utils.validation import has_fit_parameter

    x = np.concatenate([scores, scores])
    y = np.repeat([1, 0], scores.size)
    w = np.concatenate([positive, weight - positive])
    used = w > 1e-12 * weight.max()
    x, y, w = x[used], y[used], w[used]
    classifier = is_classifier(regressor)
    if classifier and np.unique(y).size == 1:  # most classifiers refuse a single class
        return np.full(at.shape, float(y[0]))
    rows = x[:, None]
    weights: dict[str, AnyArray] = {}
    if has_fit_parameter(regressor, "sample_weight"):
        weights["sample_weight"] = w
    elif not np.allclose(w, w[0]):
        if not whole or not np.allclose(w, np.round(w)):
            raise ValueError(
                f"regressor {regressor!r} does not take sample_weight, and the rows have unequal weights: use a "
                "regressor that does, or whole-number weights"
            )
        repeats = np.round(w).astype(np.intp)
        rows, y = np.repeat(rows, repeats, axis=0), np.repeat(y, repeats)
    model = clone(regressor).fit(rows, y if classifier else y.astype(np.float64), **weights)
    if classifier:
        return np.asarray(model.predict_proba(at[:, None])[:, 1], dtype=np.float64)
    return np.asarray(model.predict(at[:, None]), dtype=np.float64).reshape(-1)


@dataclass(frozen=True, eq=False)
class FoldParts:
    """Weights and positives of each distinct score, fold by fold.

    Attributes
    ----------
    scores : ndarray of shape (m,)
        Distinct scores, ascending.
    weight, positive : ndarray of shape (F, m)
        ``Σ w`` and ``Σ w o`` per fold and score, in units of the effective sample size.
    whole : bool
        Whether weights count repeats.
    """

    scores: FloatArray
    weight: FloatArray
    positive: FloatArray
    whole: bool

    def without(self, fold: int) -> tuple[FloatArray, FloatArray]:
        """Weights and positives of all folds but one."""
        others = np.arange(self.weight.shape[0]) != fold
        return self.weight[others].sum(axis=0), self.positive[others].sum(axis=0)

    def known(self) -> AnyArray:
        """Folds whose complement is not empty, shape (F,)."""
        mass = self.weight.sum(axis=1)
        return np.asarray([np.delete(mass, f).sum() > 0 for f in range(mass.size)])


def split(problem: Problem, n_folds: int, seed: int) -> FoldParts:
    """Assign a problem's samples to folds.

    In ascending order of score, sample i (counting repeats, if weights are counts) goes to fold i modulo ``n_folds``.
    Samples with equal scores are ordered at random, so that the samples in a fold carry no information about the
    others. With repeats, the number of positives in a fold is drawn without replacement.
    """
    if problem.integral:
        runs = problem.sums(DistinctScores())
        whole = (problem.outcomes == 0) | (problem.outcomes == 1)
        if whole.all():
            return FoldParts(runs.scores, *_dealt(runs, n_folds, seed), True)
        # Probabilities in place of outcomes: every fold gets its expected part.
        weight = _places(runs, n_folds)
        return FoldParts(runs.scores, weight, weight * runs.mean, True)
    s, o, w = _sorted_rows(problem)
    new = np.diff(s, prepend=np.nan) != 0
    run = np.cumsum(new) - 1
    order = np.lexsort((np.random.default_rng(seed).random(s.size), run))
    fold = np.empty(s.size, dtype=np.intp)
    fold[order] = np.arange(s.size) % n_folds
    w = w * (w.sum() / (w @ w)) if w.size else w  # in units of the effective sample size
    scores = s[new]
    slot = fold * scores.size + run
    sums = [np.bincount(slot, v, minlength=n_folds * scores.size).astype(np.float64) for v in (w, w * o)]
    return FoldParts(scores, sums[0].reshape(n_folds, -1), sums[1].reshape(n_folds, -1), False)


def _places(runs: Runs, n_folds: int) -> FloatArray:
    """Number of samples per fold and distinct score, (F, m)."""
    end = np.cumsum(runs.weight)
    last = n_folds - 1 - np.arange(n_folds)[:, None]
    # Places i = fold (mod F) among [end - weight, end).
    return np.asarray(np.floor((end + last) / n_folds) - np.floor((end - runs.weight + last) / n_folds))


def _dealt(runs: Runs, n_folds: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Numbers of rows and of positives per fold and distinct score, (F, m) each."""
    weight = _places(runs, n_folds)
    positive = np.where(runs.outcome > 0, weight, 0.0)
    mixed = np.flatnonzero((runs.outcome > 0) & (runs.outcome < runs.weight))
    if mixed.size:
        good, bad = (v[mixed].astype(np.int64) for v in (runs.outcome, runs.weight - runs.outcome))
        places = weight[:, mixed].astype(np.int64)
        positive[:, mixed] = dealt_to_folds(good, bad, places, np.random.default_rng(seed))
    return weight, positive


def dealt_to_folds(good: IntArray, bad: IntArray, places: IntArray, rng: np.random.Generator) -> IntArray:
    """Number of positives that each fold draws per score, (F, m): without replacement, for ``places`` samples."""
    out = np.empty_like(places)
    for f, wanted in enumerate(places[:-1]):
        out[f] = _without_replacement(good, bad, wanted, rng)
        good, bad = good - out[f], bad - (wanted - out[f])
    out[-1:] = good  # the last fold gets the rest
    return out


def _without_replacement(good: IntArray, bad: IntArray, wanted: IntArray, rng: np.random.Generator) -> IntArray:
    """Number of good items among ``wanted`` draws, for counts of any size: NumPy's generator is limited to 10⁹.

    Beyond, each item of the rarer kind is drawn with probability ``wanted / all``, nearly independently (the relative
    error of the variance is below ``rarer / all``); if even the rarer kind is common, the normal distribution is used.
    """
    total = good + bad
    many = total >= 10**9
    if not many.any():
        return rng.hypergeometric(good, bad, wanted)
    out = np.empty_like(good)
    out[~many] = rng.hypergeometric(good[~many], bad[~many], wanted[~many])
    g, b, k = good[many], bad[many], wanted[many]
    n = (g + b).astype(np.float64)
    rare, chance = np.minimum(g, b), k / n
    scale = np.sqrt(rare * chance * (1 - chance) * (1 - rare / n))
    near = np.rint(rare * chance + scale * rng.standard_normal(rare.size)).astype(np.int64)
    drawn = np.where(rare < 10**6, rng.binomial(rare, chance), near)
    out[many] = np.clip(np.where(g <= b, drawn, k - drawn), np.maximum(0, k - b), np.minimum(g, k))
    return out


def _sorted_rows(problem: Problem) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scores, outcomes and weights of the rows with weight, in an order independent of the given one."""
    p = problem.ordered
    w = ones_or(p.weights, p.n_samples)
    order = np.lexsort((w, p.outcomes, p.scores))
    return p.scores[order], p.outcomes[order], w[order]
