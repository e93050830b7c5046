"""Calibrators by bins: histogram binning, Bayesian binning into quantiles, and binned scaling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from ..data.checks import check_choice, check_fraction, check_positive, is_whole
from ..data.types import FloatArray
from ..sums import Edges, fixed_edges, quantile_edges, resolve_n_bins, uniform_edges
from .base import BinaryCalibrator, Calibrator, check_calibrator, parameter
from .information_edges import informative_edges
from .inputs import CalibrationSample, Scores
from .logistic import PlattScaling
from .saved_state import PROBABILITIES, Field, Fitted, Numbers, Several

#: From this sample size on models have no more bins: cost follows rows, and never the size of their weights.
_LARGEST_SIZE = 1e7


def check_bins(name: str, value: Any) -> None:
    """Judge ``n_bins``: a number, a rule, or edges from 0 to 1."""
    words = f"{name} must be an int >= 1, 'sqrt', 'cbrt' or edges that ascend from 0 to 1; got {value!r}"
    if isinstance(value, str) or is_whole(value):
        good = value in ("sqrt", "cbrt") if isinstance(value, str) else value >= 1
    else:
        try:
            edges = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(words) from error
        good = edges.ndim == 1 and len(edges) > 1 and bool((np.diff(edges) > 0).all())
        good = good and (edges[0], edges[-1]) == (0.0, 1.0)
    if not good:
        raise ValueError(words)


class UnitScores:
    """Scores moved to [0, 1]: probabilities as they are, logits by the logistic function, margins by their range."""

    def __init__(self, scores: Scores, low: float, high: float) -> None:
        self.low, self.high = low, high
        s = scores.of_positive()
        if scores.kind == "logit":
            s = 0.5 + 0.5 * np.tanh(0.5 * s)
        elif scores.kind == "margin":
            s = np.clip((s - low) / (high - low), 0, 1) if high > low else np.full(s.shape, 0.5)
        self.values = s

    @classmethod
    def of(cls, scores: Scores) -> UnitScores:
        """Of the scores that a calibrator is fitted to."""
        s = scores.of_positive()
        return cls(scores, float(s.min()), float(s.max()))


@dataclass(eq=False, repr=False)
class HistogramBinning(BinaryCalibrator):
    r"""Histogram binning: the frequency of the second class in the bin of the score.

    Parameters
    ----------
    n_bins : int, "sqrt", "cbrt" or sequence of edges, default 10
        ``"sqrt"`` and ``"cbrt"``: ⌊√n⌋ and ⌊∛n⌋ bins. Edges ascend and span [0, 1] (scores as :attr:`edges_` says).
    strategy : {"quantile", "uniform", "i-max"}, default "quantile"
        Bins of equal counts, of equal width, or those (I-Max) whose number says most about the outcome: with the
        largest mutual information, were outcomes to happen with the scores as their probabilities. Fine where the
        outcome is in doubt, coarse near 0 and 1; with ``OneVsRest(…, shared=True)`` the shared bins of many classes.
    input, labels
        As :class:`PlattScaling`. Logits are binned as the probabilities that they stand for, margins between the
        least and the largest that were seen.

    Attributes
    ----------
    edges_ : ndarray of shape (B + 1,)
        On the scale on which scores are binned.
    values_ : ndarray of shape (B,)
        Frequency of each bin. A bin without data takes what lies between its nearest neighbours with data, by its
        middle.
    counts_ : ndarray of shape (B,)
        Weight of each bin.

    Notes
    -----
    Expresses any step function, also one that falls. Bins are right-closed. Edges of ``"i-max"`` use no labels; they
    are the exact optimum, by dynamic programming over at most 1024 distinct scores (of more, over so many cells of
    equal weight), where the published alternation may stop before it. Cost O(n), and for ``"i-max"`` O(n log n) and
    1024² a bin.

    References
    ----------
    Zadrozny & Elkan (2001); Gupta & Ramdas (2021) for its guarantees without assumptions; Patel et al. (2021),
    *Multi-class uncertainty calibration via mutual information maximization-based binning*.

    Examples
    --------
    >>> from calibrant.calibrators import HistogramBinning
    >>> HistogramBinning(2, strategy="uniform").fit([0.1, 0.2, 0.8, 0.9], [0, 1, 1, 1]).values_.tolist()
    [0.5, 1.0]
    """

    n_bins: int | str | Sequence[float] = parameter(10, check_bins)
    strategy: str = parameter("quantile", partial(check_choice, allowed=("uniform", "quantile", "i-max")))

    _state: ClassVar[Mapping[str, Field]] = {
        "range_": Numbers(("2",), ascending=True),
        "edges_": Numbers(("B+1",), ascending=True),
        "counts_": Numbers(("B",), 0),
        "values_": Numbers(("B",), *PROBABILITIES),
    }

    def _fit(self, sample: CalibrationSample) -> None:
        units = UnitScores.of(sample.scores)
        self.range_ = np.array([units.low, units.high])
        edges = edges_for(units.values, sample.weights, self.n_bins, self.strategy)
        count, positive = sums(edges, units.values, sample.weights, sample.outcomes())
        self.edges_ = np.array(edges.values)
        self.counts_ = count
        self.values_ = filled(self.edges_, count, positive)

    def _map(self, scores: Scores) -> FloatArray:
        units = UnitScores(scores, float(self.range_[0]), float(self.range_[1]))
        # What edges the fit made: rules make uniform or exact ones, and a user's are neither.
        made = is_whole(self.n_bins) or isinstance(self.n_bins, str)
        edges = Edges(self.edges_, made and self.strategy == "uniform", made and self.strategy != "uniform")
        return np.asarray(self.values_[bin_of(edges, units.values)])


@dataclass(eq=False, repr=False)
class BayesianBinning(BinaryCalibrator):
    r"""Bayesian binning into quantiles (BBQ): histogram binnings of many sizes, averaged by their evidence.

    .. math:: P(1 \mid s) = \sum_M w_M\, \frac{m_{M,b} + \alpha_{M,b}}{n_{M,b} + N/B_M}, \qquad
        \log w_M = \sum_b \log \frac{B(m_b + \alpha_b,\; n_b - m_b + \beta_b)}{B(\alpha_b, \beta_b)} + const.

    Model M has B quantile bins; the frequency of bin b has a Beta prior with ``α_b = N p_b / B``,
    ``β_b = N (1 - p_b) / B``, where p_b is the middle of the bin.

    Parameters
    ----------
    prior_size : float, default 2
        N, the weight of the prior in samples.
    input, labels
        As :class:`HistogramBinning`.

    Attributes
    ----------
    n_bins_ : ndarray of shape (M,)
        Bins of each model, ``∛n/10 … 10 ∛n`` as published, at most n, of n up to 10⁷.
    weights_ : ndarray of shape (M,)
        Posterior weights, which sum to 1.
    edges_, values_ : list of M ndarrays

    Notes
    -----
    Expresses averages of step functions; smoother than one histogram, and shrunk towards the score's own bin. Cost O(n)
    a model.

    References
    ----------
    Naeini, Cooper & Hauskrecht (2015), *Obtaining well calibrated probabilities using Bayesian binning*.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import BayesianBinning
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> fitted = BayesianBinning().fit(p, rng.random(2000) < p**2)
    >>> bool(abs(fitted.predict_proba([0.5])[0, 1] - 0.25) < 0.08)
    True
    """

    prior_size: float = parameter(2.0, check_positive)

    _state: ClassVar[Mapping[str, Field]] = {
        "range_": Numbers(("2",), ascending=True),
        "n_bins_": Numbers(("M",), 1),
        "weights_": Numbers(("M",), *PROBABILITIES, total=1),
        "edges_": Several(Numbers(("B+1",), ascending=True)),
        "values_": Several(Numbers(("B",), *PROBABILITIES)),
    }

    def _fit(self, sample: CalibrationSample) -> None:
        from scipy.special import betaln

        units = UnitScores.of(sample.scores)
        self.range_ = np.array([units.low, units.high])
        o, w = sample.outcomes(), sample.weights
        n = min(sample.total, _LARGEST_SIZE)
        root = np.cbrt(n)
        sizes = np.arange(max(1, int(root / 10)), max(1, min(int(np.ceil(10 * root)), int(n))) + 1)
        edges: list[FloatArray] = []
        values: list[FloatArray] = []
        evidence: list[float] = []
        n_bins: list[int] = []
        for size in sizes:
            cuts = quantile_edges(units.values, w, int(size))
            if edges and len(cuts.values) == len(edges[-1]) and np.array_equal(cuts.values, edges[-1]):
                continue  # ties leave no room for more bins
            count, positive = sums(cuts, units.values, w, o)
            middle = cuts.centres
            alpha = np.maximum(self.prior_size * middle / cuts.n_bins, 1e-12)
            beta = np.maximum(self.prior_size * (1 - middle) / cuts.n_bins, 1e-12)
            edges.append(np.array(cuts.values))
            values.append((positive + alpha) / (count + alpha + beta))
            evidence.append(float((betaln(positive + alpha, count - positive + beta) - betaln(alpha, beta)).sum()))
            n_bins.append(cuts.n_bins)
        weight = np.exp(np.array(evidence) - max(evidence))
        self.weights_ = weight / weight.sum()
        self.n_bins_, self.edges_, self.values_ = np.array(n_bins), edges, values

    def _check_fitted(self) -> None:
        for i, (n, edges, values) in enumerate(zip(self.n_bins_, self.edges_, self.values_, strict=True)):
            if not n == len(values) == len(edges) - 1:
                raise ValueError(f"model {i} must have {n} values between {n + 1} edges")

    def _map(self, scores: Scores) -> FloatArray:
        units = UnitScores(scores, float(self.range_[0]), float(self.range_[1]))
        out = np.zeros(units.values.size)
        for weight, edges, values in zip(self.weights_, self.edges_, self.values_, strict=True):
            if weight > 1e-9:
                out += weight * values[bin_of(Edges(edges, exact=True), units.values)]
        return out / float(self.weights_[self.weights_ > 1e-9].sum())


@dataclass(eq=False, repr=False)
class ScalingBinning(BinaryCalibrator):
    r"""Scaling-binning: a parametric map, discretised so that its calibration error can be known.

    The scaler g is fitted on one part of the rows; on the rest, g(s) is cut into bins of equal counts, and the
    calibrated probability is the mean of g(s) in the bin: less noisy than the bin's frequency.

    Parameters
    ----------
    scaler : binary calibrator, optional
        Default :class:`PlattScaling`.
    n_bins : int, default 10
    fit_share : float, default 0.5
        Share of the rows for the scaler.
    random_state : int, RandomState or None, default 0
        Which rows. Weights are not parted: a row with its weight is in one part.
    input, labels
        As :class:`PlattScaling`.

    Attributes
    ----------
    scaler_ : fitted calibrator
    edges_ : ndarray
        In probabilities of the scaler.
    values_ : ndarray

    Notes
    -----
    Expresses step functions with the values of the scaler's family. Cost that of the scaler.

    References
    ----------
    Kumar, Liang & Ma (2019), *Verified uncertainty calibration*.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.calibrators import ScalingBinning
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> len(ScalingBinning(n_bins=5).fit(p, rng.random(1000) < p).values_)
    5
    """

    scaler: Calibrator | None = parameter(None, partial(check_calibrator, optional=True))
    n_bins: int = parameter(10, check_bins)
    _: KW_ONLY
    fit_share: float = parameter(0.5, check_fraction)
    random_state: Any = 0

    _state: ClassVar[Mapping[str, Field]] = {
        "scaler_": Fitted(),
        "edges_": Numbers(("B+1",), ascending=True),
        "values_": Numbers(("B",), *PROBABILITIES),
    }

    @property
    def _parts_rows(self) -> bool:
        """See :class:`Calibrator`."""
        return True

    def _fit(self, sample: CalibrationSample) -> None:
        rng = check_random_state(self.random_state)
        n = sample.scores.n_rows
        first = np.zeros(n, dtype=bool)
        first[rng.permutation(n)[: min(max(1, round(self.fit_share * n)), max(n - 1, 1))]] = True
        rest = ~first if n > 1 else first
        values = sample.scores.values
        scaler = clone(self.scaler) if self.scaler is not None else PlattScaling()
        scaler.set_params(input=self.input, labels=list(sample.classes))
        labels = np.asarray(sample.classes)[sample.codes]
        self.scaler_ = scaler.fit(values[first], labels[first], sample_weight=sample.weights[first])
        g, w = self.scaler_.predict_proba(values[rest])[:, 1], sample.weights[rest]
        edges = edges_for(g, w, self.n_bins, "quantile")
        count, total = sums(edges, g, w, g)
        self.edges_ = np.array(edges.values)
        self.values_ = filled(self.edges_, count, total)

    def _map(self, scores: Scores) -> FloatArray:
        g = self.scaler_.predict_proba(scores.values)[:, 1]
        return np.asarray(self.values_[bin_of(Edges(self.edges_, exact=True), g)])


def edges_for(values: FloatArray, weights: FloatArray, n_bins: Any, strategy: str) -> Edges:
    """Edges of bins for values in [0, 1]."""
    if not is_whole(n_bins) and not isinstance(n_bins, str):
        return fixed_edges(n_bins)
    total = float(weights.sum())
    number = resolve_n_bins(cast("int | str", n_bins), total)
    if strategy == "uniform":
        return uniform_edges(number)
    if strategy == "i-max":
        return informative_edges(values, weights, number)
    integral = bool((weights == np.floor(weights)).all())
    return quantile_edges(values, weights, number, integral=integral)


def bin_of(edges: Edges, values: FloatArray) -> Any:
    """Number of the bin of each value; values beyond the ends belong to the end bins."""
    return np.clip(edges.slots(values, float(np.finfo(np.float64).eps)) - 1, 0, edges.n_bins - 1)


def sums(edges: Edges, values: FloatArray, weights: FloatArray, of: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weight and weighted sum of something in each bin."""
    b = bin_of(edges, values)
    return (
        np.bincount(b, weights, minlength=edges.n_bins).astype(np.float64),
        np.bincount(b, weights * of, minlength=edges.n_bins).astype(np.float64),
    )


def filled(edges: FloatArray, count: FloatArray, total: FloatArray) -> FloatArray:
    """Means of bins; where there are no data, what lies between the nearest bins that have some."""
    used = count > 0
    middle = (edges[:-1] + edges[1:]) / 2
    return np.asarray(np.interp(middle, middle[used], total[used] / count[used]))
