"""`Binned`: the expected calibration error over bins, in all the variants of the literature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, cast

import numpy as np

from ..data.checks import check_choice, check_type, received
from ..data.problem import OneVsRestProblems, Problem
from ..data.types import FloatArray
from ..sums import BinMoments, Bins, Edges, fixed_edges, resolve_n_bins, uniform_edges
from ..sums.bins import MAPPINGS
from ..sums.quantiles import QuantileBins, joined, stacked
from .base import CellEstimator, Cells, ResampleInputs, check_n_bins
from .norm import mean_power

#: Largest number of bins whose sums fit into memory.
MOST_BINS = 10_000_000
STRATEGIES = ("uniform", "quantile", "quantile-as-published")
#: Named corrections. All subtract ``ō(1-ō)/(n_j - 1)`` per bin; they differ in how they treat bins with one sample.
DEBIASES = ("brocker", "kumar", "ferro-fricker")


@dataclass(frozen=True)
class Binned(CellEstimator):
    r"""Binned calibration error: ECE_l, ECE_a, ECE_c, ECE_ac, MCE, RMSCE, and their debiased forms.

    .. math:: \Big(\sum_j \frac{n_j}{n} \,\big|\bar o_j - \bar s_j\big|^p\Big)^{1/p}

    with n_j samples (or shares of samples) in bin j, their mean outcome and their mean score. p = 1 is the ECE,
    p = inf the maximum calibration error (MCE), p = 2 the root mean square calibration error.

    Parameters
    ----------
    n_bins : int, "sqrt", "cbrt" or sequence of float, default 15
        Number of bins; floor(√n) or floor(∛n) bins, with n capped at 10¹⁰; or the edges, strictly increasing.
    strategy : {"uniform", "quantile", "quantile-as-published"}, default "uniform"
        Bins of equal width, or with equal numbers of samples. Ignored when edges are given. ``"quantile-as-published"``
        puts ``floor(n / B)`` samples in every bin and adds the remainder to the last one, as Posocco & Bonnefoy's
        code does (59 samples in 30 bins: 30 in the last); for reproduction.
    mapping : {"hard", "linear", "linear-as-printed"}, default "hard"
        A sample belongs to one bin, or is shared by the two with the nearest centres (the nearer takes more).
        ``"linear-as-printed"`` swaps the shares, as the paper's formula does; for reproduction.
    debias : bool or {"brocker", "kumar", "ferro-fricker"}, default False
        Subtract the bias caused by sampling noise. p = 2: per bin ``D_j = gap² - ō(1-ō)/(n_j - 1)``, an unbiased
        squared gap if the scores within the bin are equal, otherwise slightly too low (see Notes). The variants differ
        in bins with one sample, whose noise cannot be estimated: ``"brocker"`` (same as True) omits them,
        ``Σ n_j D_j / Σ n_j`` over n_j ≥ 2; ``"kumar"`` counts them as 0, ``Σ_{n_j ≥ 2} n_j D_j / n``;
        ``"ferro-fricker"`` keeps their gap uncorrected, ``(Σ n_j gap² - Σ_{n_j ≥ 2} n_j ō(1-ō)/(n_j - 1)) / n``.
        They coincide when every bin has at least two. p = 1 (not with ``"ferro-fricker"``): per bin
        twice the absolute gap minus the mean of a folded normal with that gap and noise. The estimate may be negative
        for p = 1; for p = 2 the root of a negative estimate is 0, and :func:`squared_calibration_error` returns the
        signed square.
    span : {"unit", "domain"}, default "unit"
        Uniform bins over [0, 1], or over the domain of the scores ([1/K, 1] for a confidence).

    See Also
    --------
    calibrant.expected_calibration_error : The same error under its usual name.
    calibrant.estimators.Sweep : Chooses the number of bins.
    calibrant.EmpiricalBayes : The default, without bins.

    Notes
    -----
    Range [0, 1] (not debiased). Bias: upward, from the noise of the bins, about ``Σ_j √(n_j ō_j(1-ō_j)) · 0.8 / n``
    for a calibrated model; downward, from gaps that cancel within a bin. Names of the four variants: l =
    uniform + hard, a = quantile + hard, c = uniform + linear, ac = quantile + linear. Bins are right-closed.
    Cost: O(n), O(n log n) for weighted quantile bins; extra memory O(2¹⁵) for uniform bins.

    A debiased square estimates ``Σ P(bin j) E[o - s | bin j]²``, at most the squared error. For randomly drawn rows
    its expectation per bin is too low by ``(Var(η) - Var(η - s)) / n_j``, with η = P(o = 1 | s) and variances within
    the bin, because the variance of the outcomes includes that of η. This is 0 if scores within a bin are equal, and
    ``Var(s) / n_j``, at most ``width² / 4n_j``, for a calibrated model. Ferro & Fricker's further factor, which keeps
    their three components within their ranges, is omitted: it truncates, and a truncated square is biased.

    References
    ----------
    Pakdaman Naeini, Cooper & Hauskrecht (2015); Posocco & Bonnefoy (2021), §4.3; Bröcker (2012), *Estimating
    reliability and resolution of probability forecasts*; Ferro & Fricker (2012), *A bias-corrected decomposition of the
    Brier score*; Kumar, Liang & Ma (2019), *Verified uncertainty calibration*.

    Examples
    --------
    >>> import calibrant as cal
    >>> y, p = [0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9]
    >>> round(cal.calibration_error(y, p, estimator=cal.Binned(2)), 3)
    0.225
    >>> round(cal.calibration_error(y, p, estimator=cal.Binned(2), norm=float("inf")), 3)
    0.25
    """

    _cells_are_atoms: ClassVar[bool] = True
    _cells_on_scores: ClassVar[bool] = True
    n_bins: int | str | Sequence[float] = 15
    strategy: str = "uniform"
    mapping: str = "hard"
    debias: bool | str = False
    span: str = "unit"

    def __post_init__(self) -> None:
        edges = hasattr(self.n_bins, "__iter__") and not isinstance(self.n_bins, str)
        n_bins = (
            _check_edges(self.n_bins) if edges else check_n_bins(self.n_bins, "an int >= 1, 'sqrt', 'cbrt' or edges")
        )
        if isinstance(n_bins, int) and n_bins > MOST_BINS:
            raise ValueError(f"n_bins must be at most {MOST_BINS:,}; got {received(n_bins)}")
        object.__setattr__(self, "n_bins", n_bins)
        check_choice("strategy", self.strategy, STRATEGIES)
        check_choice("mapping", self.mapping, MAPPINGS)
        check_choice("span", self.span, ("unit", "domain"))
        if isinstance(self.debias, str):
            check_choice("debias", self.debias, DEBIASES, instead="True, False or ")
        else:
            names = ", ".join(map(repr, DEBIASES))
            check_type("debias", self.debias, (bool, np.bool_), f"True, False or one of {names}")

    @property
    def _fixed(self) -> bool:
        """Whether the edges are independent of the data, so that sums of any batches merge."""
        return isinstance(self.n_bins, tuple) or (isinstance(self.n_bins, int) and self.strategy == "uniform")

    def _needs(self, domain: tuple[float, float]) -> Bins | None:
        """Sums to compute for scores in a domain; None if the edges depend on the data."""
        return Bins(self._edges_for(domain), self.mapping) if self._fixed else None

    def _edges_for(self, domain: tuple[float, float]) -> Edges:
        """Edges that do not depend on the data: explicit ones, or a number of uniform bins."""
        if isinstance(self.n_bins, tuple):
            return fixed_edges(self.n_bins)
        if not isinstance(self.n_bins, int) or self.strategy != "uniform":
            raise ValueError(
                f"{self!r} takes its edges from the data: only uniform bins and explicit edges are fixed in advance"
            )
        return uniform_edges(self.n_bins, domain if self.span == "domain" else (0.0, 1.0))

    def _edges(self, problem: Problem) -> Edges:
        """Edges for the samples of one problem, or of many."""
        if self._fixed:
            return self._edges_for(problem.domain)
        if self.strategy == "uniform":
            span = problem.domain if self.span == "domain" else (0.0, 1.0)
            n_bins = {resolve_n_bins(str(self.n_bins), float(n)) for n in np.unique(problem.sizes)}
            if len(n_bins) == 1:
                return uniform_edges(n_bins.pop(), span)
            return stacked([uniform_edges(resolve_n_bins(str(self.n_bins), float(n)), span) for n in problem.sizes])
        return self.summarize(problem).edges

    def summarize(self, problem: Problem) -> BinMoments:
        """Bin sums of the samples of one problem, or of many."""
        if (sums := self._sums_of(problem)) is not None:
            return cast(BinMoments, problem.sums(sums))
        edges = self._edges(problem)
        return joined([BinMoments.of(one, edges[i], self.mapping) for i, one in enumerate(problem)])

    def _sums_of(self, problem: Problem) -> Bins | QuantileBins | None:
        """The sums that these problems need; None if each has its own number of uniform bins."""
        if self.strategy == "uniform" or self._fixed:
            edges = self._edges(problem)
            return Bins(edges, self.mapping) if edges.values.ndim == 1 else None
        n_bins = self.n_bins if isinstance(self.n_bins, (int, str)) else len(self.n_bins) - 1
        return QuantileBins(n_bins, self.mapping, "last" if self.strategy == "quantile-as-published" else "spread")

    def _powers(self, problems: Problem | OneVsRestProblems, norm: float) -> FloatArray:
        """``errorᵖ`` of every problem; the plain ECE needs only the residuals per bin."""
        if norm != 1 or self.debias:
            return super()._powers(problems, norm)
        if self._fixed:
            return _mean_size(*problems.added(Bins(self._edges_for(problems.domain), self.mapping).residuals))
        parts = []
        for tile in problems.tiles():
            sums = self._sums_of(tile)
            parts.append(self.read(self.summarize(tile), norm) if sums is None else _mean_size(*sums.residuals(tile)))
        return np.concatenate(parts)

    def read(self, sums: BinMoments, norm: float) -> FloatArray:
        """``errorᵖ`` from bin sums."""
        if self.debias:
            observed = np.clip(sums.mean_outcome, 0, 1)
            return debiased_power(sums.gap, observed, sums.effective_size, sums.weight, norm, self.debias)
        return mean_power(sums.gap, sums.weight, norm)

    def _cells(self, sums: BinMoments) -> Cells:
        """Bins as cells, counted in units of the effective sample size."""
        scores, count, positive = sums.atoms
        return Cells(scores, count, positive, None, np.ones(count.shape[-1]))

    def _held_together(self, sums: BinMoments, problems: int, most: int) -> Iterator[ResampleInputs]:
        """The estimator itself and unchanged sums: resamples keep the edges of the bins."""
        step = max(1, most // sums.weight.shape[-1])
        for a in range(0, problems, step):
            yield ResampleInputs(np.arange(a, min(a + step, problems)), self, sums[a : a + step])

    def _square(self, problem: Problem) -> float:
        """Signed debiased square; ValueError without ``debias``."""
        return self.power(problem, 2) if self.debias else super()._square(problem)


def _mean_size(residual: FloatArray, total: FloatArray) -> FloatArray:
    """Mean absolute residual over bins (R, B) of problems with total weights (R,)."""
    return np.asarray(np.abs(residual).sum(axis=-1) / np.where(total > 0, total, np.nan))


def _check_edges(values: Any) -> tuple[float, ...]:
    try:
        edges = tuple(float(v) for v in values)
    except (TypeError, ValueError) as error:
        raise TypeError(f"n_bins as edges must be numbers; got {received(values)}") from error
    if len(edges) < 2 or not all(np.isfinite(edges)) or any(b <= a for a, b in pairwise(edges)):
        raise ValueError(
            f"n_bins as edges must be at least two finite, strictly increasing numbers; got {list(edges)!r}"
        )
    if edges[0] > 0 or edges[-1] < 1:
        raise ValueError(f"n_bins as edges must cover [0, 1]; got {edges[0]} … {edges[-1]}")
    return edges


def debiased_power(
    gap: FloatArray, observed: FloatArray, n: FloatArray, weight: FloatArray, norm: float, rule: bool | str = True
) -> FloatArray:
    """Debiased ``Σ w |gap|^p / Σ w`` over bins, p = 1 or 2; ``rule`` is :class:`Binned`'s ``debias``."""
    from scipy.special import erf

    if norm not in (1, 2):
        raise ValueError(f"debias={rule!r} is defined for norm 1 and 2; got norm={norm:g}")
    if norm == 1 and rule == "ferro-fricker":
        raise ValueError("debias='ferro-fricker' estimates a square and is defined for norm 2; got norm=1")
    held = weight > 0
    several = n >= 2 - 1e-9
    size = np.where(held, np.abs(np.where(held, gap, 0.0)), 0.0)
    variance = np.where(several, observed * (1 - observed), 0.0) / np.where(several, n - 1, 1.0)
    if norm == 2:
        value = size**2 - variance
    else:
        sd = np.sqrt(np.maximum(variance, 0.0))
        z = np.divide(size, sd, out=np.full_like(size, np.inf), where=sd > 0)
        folded = sd * np.sqrt(2 / np.pi) * np.exp(-0.5 * z**2) + size * erf(z / np.sqrt(2))
        value = 2 * size - folded
    mass = np.where(held if rule == "ferro-fricker" else several, weight, 0.0)
    total = np.where(several if rule in (True, "brocker") else held, weight, 0.0).sum(axis=-1)
    with np.errstate(invalid="ignore"):
        return np.asarray((mass * value).sum(axis=-1) / np.where(total > 0, total, np.nan))
