"""Binning calibrators: histogram binning and Bayesian binning into quantiles."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
from scipy.special import betaln, softmax, xlogy

from ..data.checks import check_choice, check_positive, is_whole, received
from ..data.fields import Field, Numbers, Several
from ..data.types import FloatArray, IntArray
from ..sums import Edges, fixed_edges, quantile_edges, resolve_n_bins, uniform_edges
from .base import PROBABILITIES, BinaryCalibrator, check_not_negative, parameter
from .inputs import CalibrationSample, Scores
from .monotone import cells, kept_inside, points
from .score_sums import Streamed

#: Beyond this sample size models have no more bins: the cost depends on rows, not on the size of their weights.
_LARGEST_SIZE = 1e7
#: Distinct scores between which edges are sought; more are merged into this number of cells of equal weight.
_MOST_POINTS = 1024
_NOT_CERTAIN = 1e-12


def _check_smoothing(name: str, value: Any) -> None:
    if isinstance(value, str):
        check_choice(name, value, ("auto",), instead="a number >= 0 or ")
    else:
        check_not_negative(name, value)


def check_bins(name: str, value: Any) -> None:
    """Check ``n_bins``: a number, a rule, or edges from 0 to 1."""
    words = f"{name} must be an int >= 1, 'sqrt', 'cbrt' or increasing edges from 0 to 1; got {received(value)}"
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


class UnitMap(BinaryCalibrator):
    """A map of scores in [0, 1]: probabilities, the sigmoid of logits, or margins scaled by their range.

    Subclasses define ``_fit_units(scores, sample)`` and ``_map_units(scores)``.
    """

    _state: ClassVar[Mapping[str, Field]] = {"range_": Numbers(("2",), ascending=True)}

    def _fit(self, sample: CalibrationSample) -> None:
        s = sample.scores.of_positive()
        self.range_ = np.array([s.min(), s.max()])
        self._fit_units(self._units(sample.scores), sample)

    def _map(self, scores: Scores) -> FloatArray:
        return self._map_units(self._units(scores))

    def _units(self, scores: Scores) -> FloatArray:
        s, (low, high) = scores.of_positive(), self.range_
        if scores.kind == "logit":
            return np.asarray(0.5 + 0.5 * np.tanh(0.5 * s))
        if scores.kind == "margin":
            return np.clip((s - low) / (high - low), 0, 1) if high > low else np.full(s.shape, 0.5)
        return s

    @abstractmethod
    def _fit_units(self, u: FloatArray, sample: CalibrationSample) -> None:
        """Set fitted attributes from scores in [0, 1]."""

    @abstractmethod
    def _map_units(self, u: FloatArray) -> FloatArray:
        """Probabilities of the second class for scores in [0, 1]."""


@dataclass(eq=False, repr=False)
class HistogramBinning(Streamed, UnitMap):
    r"""Histogram binning: the frequency of the second class in the bin of the score.

    Logits are converted to probabilities before binning; margins are binned between their smallest and largest value.

    Parameters
    ----------
    n_bins : int, "sqrt", "cbrt" or sequence of edges, default 10
        ``"sqrt"`` and ``"cbrt"``: ⌊√n⌋ and ⌊∛n⌋ bins. Edges must increase from 0 to 1, on the scale of :attr:`edges_`.
    strategy : {"quantile", "uniform", "i-max"}, default "quantile"
        Bins of equal counts, of equal width, or (I-Max) with the largest mutual information with the outcome, assuming
        that the scores are the probabilities of outcomes: narrow near 0 and 1 where scores are spread evenly. With
        ``OneVsRest(…, shared=True)`` many classes share the bins.
    smoothing : float or "auto", default "auto"
        The number a ≥ 0 of rows of each class that is added to each bin: ``(positives + a) / (rows + 2 a)``. 0: the
        frequency, as published, which is exactly 0 or 1 in bins with only one class; 1: Laplace's rule, as in PyCalib.
        ``"auto"``: the frequency, clipped to [c, 1 - c] with c = ``1 / (n + 2)`` for n rows.

    Attributes
    ----------
    edges_ : ndarray of shape (B + 1,)
        Edges of the bins, on the scale on which scores are binned.
    values_ : ndarray of shape (B,)
        Value of each bin. A bin without data is interpolated at its midpoint between the nearest bins with data, or has
        the value ½ if ``smoothing`` is above 0.
    counts_ : ndarray of shape (B,)
        Total weight in each bin.

    See Also
    --------
    calibrant.calibrators.BayesianBinning : An average over binnings of many sizes.
    calibrant.calibrators.IsotonicCalibrator : Data-driven bins with increasing values.

    Notes
    -----
    Fits any step function, including decreasing ones. Bins are right-closed. Edges of ``"i-max"`` do not use labels;
    they are the exact optimum, by dynamic programming over at most 1024 distinct scores (if there are more, over 1024
    cells of equal weight), whereas the published alternation may stop before it. Cost: O(n); for ``"i-max"``,
    O(n log n) and 1024² per bin.

    References
    ----------
    Zadrozny & Elkan (2001); Gupta & Ramdas (2021) for its distribution-free guarantees; Patel et al. (2021),
    *Multi-class uncertainty calibration via mutual information maximization-based binning*.

    Examples
    --------
    >>> from calibrant.calibrators import HistogramBinning
    >>> HistogramBinning(2, strategy="uniform", smoothing=0).fit([0.1, 0.2, 0.8, 0.9], [0, 1, 1, 1]).values_.tolist()
    [0.5, 1.0]
    """

    n_bins: int | str | Sequence[float] = parameter(10, check_bins)
    strategy: str = parameter("quantile", partial(check_choice, allowed=("uniform", "quantile", "i-max")))
    _: KW_ONLY
    smoothing: float | str = parameter("auto", _check_smoothing)

    _state: ClassVar[Mapping[str, Field]] = {
        **UnitMap._state,
        "edges_": Numbers(("B+1",), ascending=True),
        "counts_": Numbers(("B",), 0),
        "values_": Numbers(("B",), *PROBABILITIES),
    }

    def _fit_units(self, u: FloatArray, sample: CalibrationSample) -> None:
        o, w = sample.outcomes(), sample.weights
        edges = edges_for(u, w, self.n_bins, self.strategy)
        self.counts_, positive = sums(edges, u, w, o)
        self.edges_ = np.array(edges.values)
        if isinstance(self.smoothing, str):
            self.values_ = kept_inside(filled(self.edges_, self.counts_, positive), sample)
        elif self.smoothing == 0:
            self.values_ = filled(self.edges_, self.counts_, positive)
        else:
            self.values_ = (positive + self.smoothing) / (self.counts_ + 2 * self.smoothing)

    def _edges(self) -> Edges:
        """Edges of the fit: those computed by rules are uniform or exact, those of a user neither."""
        computed = is_whole(self.n_bins) or isinstance(self.n_bins, str)
        return Edges(self.edges_, computed and self.strategy == "uniform", computed and self.strategy != "uniform")

    def _map_units(self, u: FloatArray) -> FloatArray:
        return np.asarray(self.values_[bin_of(self._edges(), u)])


@dataclass(eq=False, repr=False)
class BayesianBinning(UnitMap):
    r"""Bayesian binning into quantiles (BBQ): an average over histogram binnings, weighted by their evidence.

    .. math:: & P(1 \mid s) = \sum_M w_M\, \frac{m_{M,b} + \alpha_{M,b}}{n_{M,b} + N/B_M}, \\
        & \log w_M = \sum_b \log \frac{B(m_b + \alpha_b,\; n_b - m_b + \beta_b)}{B(\alpha_b, \beta_b)} + const.

    Model M has B quantile bins; the frequency of bin b has a Beta prior with ``α_b = N p_b / B``,
    ``β_b = N (1 - p_b) / B``, where p_b is the middle of the bin.

    Parameters
    ----------
    prior_size : float, default 2
        The weight N of the prior, in samples.

    Attributes
    ----------
    n_bins_ : ndarray of shape (M,)
        Number of bins of each model: ``∛n/10 … 10 ∛n`` as published, and at most n; n is capped at 10⁷.
    weights_ : ndarray of shape (M,)
        Posterior weights, which sum to 1.
    edges_, values_ : list of M ndarrays
        Edges of each model, and the estimated frequency in each of its bins.

    See Also
    --------
    calibrant.calibrators.HistogramBinning : A single binning.
    calibrant.calibrators.NearIsotonic : An average over near-isotonic fits.

    Notes
    -----
    Fits averages of step functions; smoother than one histogram, and shrunk towards the middle of the score's bin.
    Cost: O(n) per model.

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
        **UnitMap._state,
        "n_bins_": Numbers(("M",), 1),
        "weights_": Numbers(("M",), *PROBABILITIES, total=1),
        "edges_": Several(Numbers(("B+1",), ascending=True)),
        "values_": Several(Numbers(("B",), *PROBABILITIES)),
    }

    def _fit_units(self, u: FloatArray, sample: CalibrationSample) -> None:
        o, w = sample.outcomes(), sample.weights
        n = min(float(w.sum()), _LARGEST_SIZE)
        root = np.cbrt(n)
        self.edges_, self.values_, evidence = list[FloatArray](), list[FloatArray](), list[float]()
        for size in range(max(1, int(root / 10)), max(1, min(int(np.ceil(10 * root)), int(n))) + 1):
            cuts = quantile_edges(u, w, size)
            if self.edges_ and np.array_equal(cuts.values, self.edges_[-1]):
                continue  # ties leave no room for more bins
            count, positive = sums(cuts, u, w, o)
            alpha, beta = (
                np.maximum(self.prior_size * p / cuts.n_bins, 1e-12) for p in (cuts.centres, 1 - cuts.centres)
            )
            self.edges_.append(np.array(cuts.values))
            self.values_.append((positive + alpha) / (count + alpha + beta))
            evidence.append(float((betaln(positive + alpha, count - positive + beta) - betaln(alpha, beta)).sum()))
        self.weights_ = np.asarray(softmax(evidence))
        self.n_bins_ = np.array([len(values) for values in self.values_])

    def _check_fitted(self) -> None:
        for i, (n, edges, values) in enumerate(zip(self.n_bins_, self.edges_, self.values_, strict=True)):
            if not n == len(values) == len(edges) - 1:
                raise ValueError(f"model {i} must have {n} values between {n + 1} edges")

    def _map_units(self, u: FloatArray) -> FloatArray:
        out = np.zeros(u.size)
        for weight, edges, values in zip(self.weights_, self.edges_, self.values_, strict=True):
            if weight > 1e-9:
                out += weight * values[bin_of(Edges(edges, exact=True), u)]
        return out / float(self.weights_[self.weights_ > 1e-9].sum())


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
    """Index of the bin of each value; values beyond the ends belong to the end bins."""
    return np.clip(edges.slots(values, float(np.finfo(np.float64).eps)) - 1, 0, edges.n_bins - 1)


def sums(edges: Edges, values: FloatArray, weights: FloatArray, of: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weight and weighted sum of ``of`` in each bin."""
    b = bin_of(edges, values)
    return (
        np.bincount(b, weights, minlength=edges.n_bins).astype(np.float64),
        np.bincount(b, weights * of, minlength=edges.n_bins).astype(np.float64),
    )


def filled(edges: FloatArray, count: FloatArray, total: FloatArray) -> FloatArray:
    """Means of bins; bins without data are interpolated between the nearest bins with data."""
    used = count > 0
    middle = (edges[:-1] + edges[1:]) / 2
    return np.asarray(np.interp(middle, middle[used], total[used] / count[used]))


def informative_edges(values: FloatArray, weights: FloatArray, n_bins: int) -> Edges:
    """Edges of at most ``n_bins`` bins that maximise the mutual information between bin and outcome.

    The given probabilities are assumed to be those of the outcomes, as in I-Max, so labels are not needed. The optimum
    is exact, by dynamic programming over distinct scores, whereas the published alternation may stop at a local one. An
    edge is at equal Kullback-Leibler divergence from the means of its two bins, as in that alternation.
    """
    score, weight, _ = points(values, np.zeros_like(values), weights)
    first = cells(weight, _MOST_POINTS)
    w, v = (np.add.reduceat(x, first) for x in (weight, weight * score))
    starts = _partition(w, v, min(n_bins, len(first)))
    mean = np.clip(np.add.reduceat(v, starts) / np.add.reduceat(w, starts), _NOT_CERTAIN, 1 - _NOT_CERTAIN)
    # The scores on either side of each edge.
    left, right = score[first[starts[1:]] - 1], score[first[starts[1:]]]
    up, down = np.diff(np.log(mean)), -np.diff(np.log1p(-mean))
    edge = down / np.maximum(up + down, _NOT_CERTAIN)
    edge = np.where((edge > left) & (edge < right), edge, (left + right) / 2)
    return Edges(np.concatenate([[0.0], edge, [1.0]]), exact=True)


def _partition(weight: FloatArray, happens: FloatArray, n_bins: int) -> IntArray:
    """First points of the bins that minimise the weighted entropy of the outcome given the bin."""
    m = len(weight)
    w, v = (np.concatenate([[0.0], np.cumsum(x)]) for x in (weight, happens))
    w = np.maximum(w - w[:, None], 0.0)
    v = np.clip(v - v[:, None], 0.0, w)
    # For the bin from point i up to point j.
    cost = xlogy(w, w) - xlogy(v, v) - xlogy(w - v, w - v)
    cost[np.tril_indices(m + 1)] = np.inf
    best, before = cost[0], []
    for _ in range(n_bins - 1):
        through = best[:, None] + cost
        before.append(through.argmin(axis=0))
        best = through.min(axis=0)
    out, end = [0], m
    for last in reversed(before):
        end = int(last[end])
        out.insert(1, end)
    return np.array(out)
