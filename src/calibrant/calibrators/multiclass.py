"""Multiclass calibration by binary calibrators: one per class against the rest, per pair or per predicted class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from ..data.checks import check_bool, check_choice
from ..data.fields import Field, Numbers, Several
from ..data.types import AnyArray, FloatArray, IntArray
from .base import (
    EPS,
    BinaryCalibrator,
    Calibrator,
    Fitted,
    FittedWithScores,
    average,
    check_calibrator,
    check_not_negative,
    checked_by,
    fitted_to,
    parameter,
)
from .inputs import CalibrationSample, Scores
from .logistic import PlattScaling
from .temperature import softmax

#: Multiple of the probability that is added to break ties of a shared map.
TELLS_APART = 1e-9
#: Probabilities of pairs are clipped to this distance from 0 and 1, so that systems of equations are not singular.
LEAST_ANSWER = 1e-7
#: Numbers processed at a time.
_TILE = 1 << 20
_STEPS, _SMALL, _LONGEST = 100, 1e-12, 2.0


@dataclass(eq=False, repr=False)
class OneVsRest(Calibrator):
    r"""Fit a binary calibrator for each class against the rest.

    Parameters
    ----------
    calibrator : binary calibrator
        Fitted once per class, to the probability of that class, to its log odds against the others, or to its margin.
        Its ``input`` and ``labels`` are replaced by those given here.
    normalisation : {"sum", "none"}, default "sum"
        How the K calibrated values become probabilities. ``"sum"``: divided by their sum, as in scikit-learn (if all
        are 0: the given probabilities, or equal ones for other scores). ``"none"``: left unchanged; rows do not sum to
        1. This is for rows with any number of labels, including none: ``y`` of shape (n, L), 0 or 1 per label, with a
        calibrator per column; ``predict`` then returns for each label whether its probability is above ½.
        (A softmax of their log odds would sharpen calibrated probabilities.)
    shared : bool, default False
        Use one calibrator for all classes, fitted to all K n scores and whether each class was observed. It has K times
        the rows, and its map is the same for every class. An increasing map preserves the order of the classes in each
        row (scores that it maps to equal values still differ by a billionth of their probability), and thus the
        accuracy. With :class:`IsotonicCalibrator` it is the multiclass isotonic regression IRM, with
        ``HistogramBinning(strategy="i-max")`` it is I-Max with shared bins.

    Attributes
    ----------
    calibrators_ : list of K fitted calibrators
        The calibrator of each class; a single one for two classes or if ``shared``.

    See Also
    --------
    calibrant.calibrators.OneVsOne : A binary calibrator for each pair of classes.
    calibrant.calibrators.TopLabelCalibrator : A binary calibrator for each predicted class.
    calibrant.calibrators.VectorScaling : Fits all classes jointly.

    Notes
    -----
    Normalisation undoes part of each class's calibration and can change the predicted class. Cost: K times that of
    the binary calibrator.

    References
    ----------
    Zadrozny & Elkan (2002), *Transforming classifier scores into accurate multiclass probability estimates*; for shared
    maps Zhang, Kailkhura & Han (2020), *Mix-n-Match*, and Patel et al. (2021).

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import IsotonicCalibrator, OneVsRest
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 1000)
    >>> y = (rng.random((1000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> OneVsRest(IsotonicCalibrator()).fit(p, y).predict_proba(p).sum(axis=1).round(6).max()
    np.float64(1.0)
    """

    calibrator: str | BinaryCalibrator = field(metadata=checked_by(partial(check_calibrator, binary=True)))
    normalisation: str = parameter("sum", partial(check_choice, allowed=("sum", "none")))
    _: KW_ONLY
    shared: bool = parameter(False, check_bool)

    _state: ClassVar[Mapping[str, Field]] = {"calibrators_": Several(Fitted(binary=True))}

    def _fit(self, sample: CalibrationSample) -> None:
        k = sample.n_classes
        each = range(k) if k > 2 or self.shared or sample.several else [1]
        self._fit_classes([_two(self._of_class(sample.scores, c), sample.happened(c), sample) for c in each])

    def _fit_classes(self, samples: Sequence[CalibrationSample]) -> None:
        """Fit to one sample per class, of that class against the rest; the samples may have different rows."""
        if self.shared:
            samples = [CalibrationSample.together(samples)]
        self.calibrators_ = [fitted_to(self.calibrator, sample) for sample in samples]

    def _check_fitted(self) -> None:
        k = len(self.classes_)
        if len(self.calibrators_) != (1 if self._alone or self.shared else k):
            raise ValueError(
                "calibrators_ must have one entry per class, or a single one for two classes or if shared; got "
                f"{len(self.calibrators_)} for {k}"
            )

    @property
    def _takes_labels(self) -> bool:
        return self.normalisation == "none"

    @property
    def _alone(self) -> bool:
        """Whether one map suffices: with two classes, the other class has the complement."""
        return len(self.classes_) == 2 and not self.shared and not self._several

    def predict(self, scores: Any) -> AnyArray:
        """Predict the most probable class of each row (ties go to the first), or 0/1 per label if there are several.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, K)
            Scores, of the kind given by ``input``.
        """
        return (self.predict_proba(scores) > 0.5).astype(int) if self._several else super().predict(scores)

    def _of_class(self, scores: Scores, c: int) -> Scores:
        """Scores of one class against the others."""
        return Scores(self._column(scores, c), scores.kind)

    def _column(self, scores: Scores, c: int) -> FloatArray:
        v = scores.values
        if self._several:
            return np.asarray(v[:, c])
        if v.ndim == 1 or v.shape[1] == 2:
            s = v if v.ndim == 1 else scores.of_positive()
            return s if c == 1 else np.asarray(1 - s if scores.kind == "probability" else -s)
        if scores.kind != "logit":
            return np.asarray(v[:, c])
        z = v.astype(np.float64)
        others = np.delete(z, c, axis=1)
        top = others.max(axis=1)
        return np.asarray(z[:, c] - top - np.log(np.exp(others - top[:, None]).sum(axis=1)))

    def _probabilities(self, scores: Scores) -> FloatArray:
        return self._merged([(self, scores, {})], np.ones(1))

    @property
    def _merges(self) -> bool:
        """Whether the binary calibrators of each class have a merging rule."""
        return all(one._merges for one in self.calibrators_)

    @classmethod
    def _merged(cls, members: FittedWithScores, weights: FloatArray) -> FloatArray:
        """Probabilities (n, K): merged per class by the binary calibrators' rule, then normalised."""
        first, scores, _ = members[0]
        k = len(first.classes_)
        alone = first._alone
        columns = []
        for c in [1] if alone else range(k):
            each: FittedWithScores = [
                (one.calibrators_[c % len(one.calibrators_)], one._of_class(s, c), {}) for one, s, _ in members
            ]
            columns.append(average(each, weights)[:, 1])
        if alone:
            return np.column_stack([1 - columns[0], columns[0]])
        return np.asarray(first._together(np.column_stack(columns), scores))

    def _together(self, each: FloatArray, scores: Scores) -> FloatArray:
        """Probabilities from the values of the calibrators of the classes."""
        if self.shared:
            each = each + TELLS_APART * softmax(scores.logs(EPS).astype(np.float64))
        if self.normalisation == "none":
            return np.asarray(np.minimum(each, 1.0))
        total = each.sum(axis=1, keepdims=True)
        nothing = total[:, 0] <= 0
        if nothing.any():
            each, total = each.copy(), total.copy()
            each[nothing] = scores.values[nothing] if scores.kind == "probability" else 1.0
            total[nothing] = each[nothing].sum(axis=1, keepdims=True)
        return np.asarray(each / total)


@dataclass(eq=False, repr=False)
class OneVsOne(Calibrator):
    r"""Fit a binary calibrator for each pair of classes, and couple their outputs to probabilities of all classes.

    Parameters
    ----------
    calibrator : binary calibrator
        Fitted to each pair's share :math:`p_i / (p_i + p_j)`, or to the difference of the two logits or margins. Its
        ``input`` and ``labels`` are replaced by those given here.
    coupling : {"quadratic", "likelihood"}, default "quadratic"
        How the pairs' outputs :math:`r_{ij}` (i against j) become probabilities. ``"quadratic"``: minimise
        :math:`\sum_{i \ne j} (r_{ji} p_i - r_{ij} p_j)^2`, a linear system (Wu, Lin & Weng's second method).
        ``"likelihood"``: minimise the Kullback-Leibler divergence of :math:`p_i / (p_i + p_j)` from :math:`r_{ij}`,
        weighted by the rows of each pair (Hastie & Tibshirani).

    Attributes
    ----------
    calibrators_ : list of M fitted calibrators
        The calibrators of the M = K (K - 1) / 2 pairs, in the order (0, 1), (0, 2), …, (1, 2), …
    weights_ : ndarray of shape (M,)
        Total weight of the rows of each pair.

    See Also
    --------
    calibrant.calibrators.OneVsRest : A binary calibrator for each class against the others.

    Notes
    -----
    Unlike :class:`OneVsRest` it models confusions of each pair of classes, and needs no normalisation; each map
    is fitted only to the rows of its two classes (if they have none, to the rows of all pairs), but is applied to rows
    of other classes too. Outputs are clipped to [1e-7, 1 - 1e-7]. If they are consistent with a vector of
    probabilities, both couplings return it. Cost: K - 1 binary calibrators for all rows, and O(n K³) for the coupling.

    References
    ----------
    Hastie & Tibshirani (1998), *Classification by pairwise coupling*; Wu, Lin & Weng (2004), *Probability estimates for
    multi-class classification by pairwise coupling*.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import OneVsOne, PlattScaling
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 1000)
    >>> y = (rng.random((1000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> bool(np.abs(OneVsOne(PlattScaling()).fit(p, y).predict_proba(p) - p).mean() < 0.03)
    True
    """

    calibrator: str | BinaryCalibrator = field(metadata=checked_by(partial(check_calibrator, binary=True)))
    coupling: str = parameter("quadratic", partial(check_choice, allowed=("quadratic", "likelihood")))

    _state: ClassVar[Mapping[str, Field]] = {
        "calibrators_": Several(Fitted(binary=True)),
        "weights_": Numbers(("M",), 0),
    }

    def _fit(self, sample: CalibrationSample) -> None:
        def of_pair(i: int, j: int) -> CalibrationSample:
            rows = (sample.codes == i) | (sample.codes == j)
            return _two(_of_pair(sample.scores, i, j), sample.codes == i, sample).part(rows)

        pairs = pairs_of(sample.n_classes)
        parts = [of_pair(i, j) for i, j in pairs]
        self.weights_ = np.array([part.total for part in parts])
        # Where neither of two classes was seen, the mean of all pairs, from both sides: that of no order of classes.
        both = CalibrationSample.together([*parts, *(of_pair(j, i) for i, j in pairs)])
        every = replace(both, weights=both.weights / 2)
        self.calibrators_ = [fitted_to(self.calibrator, part if len(part.codes) else every) for part in parts]

    def _check_fitted(self) -> None:
        k = len(self.classes_)
        if len(self.calibrators_) != k * (k - 1) // 2:
            raise ValueError(f"calibrators_ must have one entry per pair of {k} classes; got {len(self.calibrators_)}")

    def _probabilities(self, scores: Scores) -> FloatArray:
        k = len(self.classes_)
        answers = np.full((scores.n_rows, k, k), 0.5)
        weights = np.zeros((k, k))
        for (i, j), one, weight in zip(pairs_of(k), self.calibrators_, self.weights_, strict=True):
            r = np.clip(one._probabilities_of(_of_pair(scores, i, j))[:, 1], LEAST_ANSWER, 1 - LEAST_ANSWER)
            answers[:, i, j], answers[:, j, i] = r, 1 - r
            weights[i, j] = weights[j, i] = weight
        step = max(1, _TILE // k**2)
        out = np.empty((scores.n_rows, k))
        for a in range(0, scores.n_rows, step):
            out[a : a + step] = coupled(answers[a : a + step])
            if self.coupling == "likelihood":
                out[a : a + step] = likeliest(answers[a : a + step], weights / weights.max(), out[a : a + step])
        return out


@dataclass(eq=False, repr=False)
class TopLabelCalibrator(Calibrator):
    r"""Map confidence to accuracy, with one map per predicted class, for ``notion="top-label"``.

    Rows with predicted class c share one map :math:`g_c`, fitted to their confidence and whether c was observed. The
    predicted class then has probability :math:`g_c(\max_k p_k)`, and the others share the rest in their original
    ratios. Margins are treated as logits.

    Parameters
    ----------
    calibrator : binary calibrator, optional
        Fitted once per predicted class; by default ``PlattScaling()``. ``HistogramBinning()`` is the published choice.
    min_rows : float >= 0, default 50
        A class predicted in fewer rows (of weight 1) uses the map fitted to the confidence of all rows.

    Attributes
    ----------
    calibrators_ : list of K fitted calibrators
        The calibrator of each class; the one fitted to all rows if a class has too few.
    weights_ : ndarray of shape (K,)
        Total weight of the rows with each predicted class.

    See Also
    --------
    calibrant.calibrators.OneVsRest : A map for each class, whether predicted or not.
    calibrant.TemperatureScaling : One temperature for all classes.

    Notes
    -----
    Only the predicted class is recalibrated: the others keep their ratios, so the log-loss may remain above that of
    :class:`OneVsRest`. Ties go to the first class. If the recalibrated probability is below that of another class, the
    predicted class changes, and no map was fitted to the new confidence. If all other classes had probability 0, they
    share the rest equally. Cost: O(n K), and twice that of the binary calibrator.

    References
    ----------
    Gupta & Ramdas (2022), *Top-label calibration and multiclass-to-binary reductions*.

    Examples
    --------
    >>> from calibrant.calibrators import IsotonicCalibrator, TopLabelCalibrator
    >>> p = [[0.8, 0.15, 0.05]] * 4 + [[0.3, 0.6, 0.1]] * 4
    >>> fitted = TopLabelCalibrator(IsotonicCalibrator(), min_rows=4).fit(p, [0, 0, 1, 2, 1, 1, 1, 0])
    >>> fitted.predict_proba(p)[[0, 4]].round(4).tolist()
    [[0.5, 0.375, 0.125], [0.1875, 0.75, 0.0625]]
    """

    calibrator: str | BinaryCalibrator | None = parameter(None, partial(check_calibrator, binary=True, optional=True))
    min_rows: float = parameter(50, check_not_negative)

    _state: ClassVar[Mapping[str, Field]] = {
        "calibrators_": Several(Fitted(binary=True), "K"),
        "weights_": Numbers(("K",), 0),
    }

    def _fit(self, sample: CalibrationSample) -> None:
        _, top, confidence = _first(sample.scores)
        every = _two(confidence, sample.codes == top, sample)
        self.weights_ = np.bincount(top, sample.weights, sample.n_classes)
        one = PlattScaling() if self.calibrator is None else self.calibrator
        common = fitted_to(one, every)
        self.calibrators_ = [
            fitted_to(one, every.part(top == c)) if weight > 0 and weight >= self.min_rows else common
            for c, weight in enumerate(self.weights_)
        ]

    def _probabilities(self, scores: Scores) -> FloatArray:
        log_p, top, confidence = _first(scores)
        repaired = np.empty(len(top))
        for c in np.unique(top):
            rows = top == c
            repaired[rows] = self.calibrators_[c]._probabilities_of(confidence.part(rows))[:, 1]
        each = np.arange(len(top))
        log_p[each, top] = -np.inf
        out = softmax(log_p) * (1 - repaired)[:, None]
        out[each, top] = repaired
        return np.asarray(out)


def for_classes(calibrator: Calibrator, n_classes: int) -> Calibrator:
    """A calibrator for ``n_classes`` classes: a binary one is wrapped in :class:`OneVsRest` for more than two."""
    return OneVsRest(calibrator) if n_classes > 2 and isinstance(calibrator, BinaryCalibrator) else calibrator


def _two(scores: Scores, came: AnyArray, sample: CalibrationSample) -> CalibrationSample:
    """The rows of a sample with two classes: the class of the scores was observed (1) or not (0)."""
    return CalibrationSample(scores, came.astype(np.intp), sample.weights, (0, 1), sample.groups)


def coupled(answers: FloatArray) -> FloatArray:
    r"""Probabilities (n, K) that minimise :math:`\sum (r_{ji} p_i - r_{ij} p_j)^2`, for outputs r > 0, (n, K, K)."""
    k = answers.shape[1]
    turned = answers.swapaxes(1, 2)
    system = np.zeros((len(answers), k + 1, k + 1))
    system[:, :k, :k] = -answers * turned
    each = np.arange(k)
    system[:, each, each] = (turned**2).sum(axis=2) - 0.25  # of a class with itself there is none
    system[:, :k, k] = system[:, k, :k] = 1
    wanted = np.zeros((k + 1, 1))
    wanted[k] = 1
    p = np.maximum(np.linalg.solve(system, np.broadcast_to(wanted, (len(answers), k + 1, 1)))[:, :k, 0], 0)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def likeliest(answers: FloatArray, weights: FloatArray, start: FloatArray) -> FloatArray:
    r"""Probabilities (n, K) that maximise :math:`\sum_{i<j} n_{ij} (r_{ij} \log μ_{ij} + r_{ji} \log μ_{ji})`.

    Newton's method for ``log p``, where :math:`μ_{ij} = p_i / (p_i + p_j)`; step components are at most 2.
    """
    k = answers.shape[1]
    off = 1 - np.eye(k)
    u = np.log(np.maximum(start, EPS))
    for _ in range(_STEPS):
        mu = 1 / (1 + np.exp(np.clip(u[:, None, :] - u[:, :, None], -700, 700)))
        gradient = (weights * off * (answers - mu)).sum(axis=2)
        curved = weights * off * mu * (1 - mu)
        hessian = -curved
        each = np.arange(k)
        hessian[:, each, each] = curved.sum(axis=2)
        # A common shift changes nothing: it is held at 0.
        hessian += hessian[:, each, each].max(axis=1)[:, None, None] / k + _SMALL * np.eye(k)
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        step *= np.minimum(1, _LONGEST / np.maximum(np.abs(step).max(axis=1, keepdims=True), _SMALL))
        u = u + step
        if np.abs(step).max(initial=0.0) < 1e-9:
            break
    return softmax(u)


def pairs_of(k: int) -> list[tuple[int, int]]:
    """The pairs of k classes, in the order of their calibrators."""
    return [(i, j) for i in range(k) for j in range(i + 1, k)]


def _of_pair(scores: Scores, i: int, j: int) -> Scores:
    """Scores of class i against class j: conditional probabilities of i, or differences."""
    v = scores.values
    if v.ndim == 1:
        v = np.column_stack([1 - v if scores.kind == "probability" else np.zeros_like(v), v])
    if scores.kind != "probability":
        return Scores(np.asarray(v[:, i].astype(np.float64) - v[:, j]), scores.kind)
    total = v[:, i] + v[:, j]
    share = np.divide(v[:, i], total, out=np.full(len(v), 0.5, v.dtype), where=total > 0)
    return Scores(np.asarray(share), scores.kind)


def _first(scores: Scores) -> tuple[FloatArray, IntArray, Scores]:
    """Logarithms of probabilities, (n, K), the predicted class of each row, and its probability."""
    log_p = np.array(scores.log_probabilities(EPS))
    top = log_p.argmax(axis=1)
    confidence = np.exp(log_p[np.arange(len(top)), top]).clip(0, 1)
    return log_p, np.asarray(top), Scores(np.asarray(confidence), "probability")
