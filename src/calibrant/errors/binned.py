"""`Binned`: the expected calibration error over bins, in all the variants of the literature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeGuard

import numpy as np

from .._types import FloatArray
from ..binning import BinMoments, Edges, fixed_edges, quantile_edges, resolve_n_bins, uniform_edges
from ..binning.mapping import MAPPINGS
from ..binning.moments import matrix_moments, residual_sums
from ..problem import OneVsRest, Problem
from .base import CellEstimator, Cells
from .norm import mean_power

STRATEGIES = ("uniform", "quantile")


@dataclass(frozen=True)
class Binned(CellEstimator):
    r"""Binned calibration error: ECE_l, ECE_a, ECE_c, ECE_ac, MCE, RMSCE, and their debiased forms.

    .. math:: \Big(\sum_j \frac{n_j}{n} \,\big|\bar o_j - \bar s_j\big|^p\Big)^{1/p}

    with n_j samples (or shares of samples) in bin j, their mean outcome and their mean score. p = 1 is the ECE,
    p = inf the maximum calibration error (MCE), p = 2 the root mean square calibration error.

    Parameters
    ----------
    n_bins : int, "sqrt", "cbrt" or sequence of float, default 15
        Number of bins; floor(√n) or floor(∛n) bins; or the edges themselves, strictly increasing.
    strategy : {"uniform", "quantile"}, default "uniform"
        Bins of equal width, or of equal numbers of samples. Ignored when edges are given.
    mapping : {"hard", "linear", "linear-as-printed"}, default "hard"
        A sample belongs to one bin, or is shared by the two whose centres are nearest (the nearer takes
        more). ``"linear-as-printed"`` exchanges the shares, as the paper's formula does; for reproduction.
    debias : bool, default False
        Subtract the bias that sampling noise causes. p = 2 (Bröcker; Kumar et al.): per bin
        ``gap² - ō(1-ō)/(n_j - 1)``, unbiased in its square given the scores. p = 1: per bin twice the absolute
        gap less the mean of a folded normal with that gap and that noise. Bins with fewer than two samples
        are left out of both. The number may fall below 0 for p = 1; for p = 2 the root of a negative is 0.
    span : {"unit", "domain"}, default "unit"
        Uniform bins over [0, 1], or over where scores can lie ([1/K, 1] for a confidence).

    Notes
    -----
    Range [0, 1] (not debiased). Bias: upward, by the noise of the bins, about ``Σ_j √(n_j ō_j(1-ō_j)) · 0.8 / n``
    for a calibrated model; downward, by what cancels within a bin. Names of the four variants: l =
    uniform + hard, a = quantile + hard, c = uniform + linear, ac = quantile + linear. Bins are right-closed.
    Cost: O(n), O(n log n) for weighted quantile bins; extra memory O(2¹⁵) for uniform bins.

    References
    ----------
    Pakdaman Naeini, Cooper & Hauskrecht (2015); Posocco & Bonnefoy (2021), §4.3; Bröcker (2012), *Estimating
    reliability and resolution of probability forecasts*; Kumar, Liang & Ma (2019), *Verified uncertainty
    calibration*.

    Examples
    --------
    >>> import calibrant as cal
    >>> y, p = [0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9]
    >>> round(cal.calibration_error(y, p, estimator=cal.Binned(2)), 3)
    0.225
    >>> round(cal.calibration_error(y, p, estimator=cal.Binned(2), norm=float("inf")), 3)
    0.25
    """

    n_bins: int | str | Sequence[float] = 15
    strategy: str = "uniform"
    mapping: str = "hard"
    debias: bool = False
    span: str = "unit"

    def __post_init__(self) -> None:
        n_bins: Any = self.n_bins
        if isinstance(n_bins, str):
            if n_bins not in ("sqrt", "cbrt"):
                raise ValueError(f"n_bins must be an int >= 1, 'sqrt', 'cbrt' or edges; got {n_bins!r}")
        elif isinstance(n_bins, (int, np.integer)) and not isinstance(n_bins, bool):
            if n_bins < 1:
                raise ValueError(f"n_bins must be an int >= 1, 'sqrt', 'cbrt' or edges; got {n_bins!r}")
            object.__setattr__(self, "n_bins", int(n_bins))
        elif hasattr(n_bins, "__iter__"):
            object.__setattr__(self, "n_bins", _check_edges(n_bins))
        else:
            raise TypeError(f"n_bins must be an int >= 1, 'sqrt', 'cbrt' or edges; got {n_bins!r}")
        for name, value, allowed in (
            ("strategy", self.strategy, STRATEGIES),
            ("mapping", self.mapping, MAPPINGS),
            ("span", self.span, ("unit", "domain")),
        ):
            if value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}")
        if not isinstance(self.debias, (bool, np.bool_)):
            raise TypeError(f"debias must be True or False; got {self.debias!r}")

    @property
    def fixed(self) -> bool:
        """Whether the edges do not depend on the data, so that summaries of any pieces merge."""
        return isinstance(self.n_bins, tuple) or (isinstance(self.n_bins, int) and self.strategy == "uniform")

    def edges(self, problem: Problem) -> Edges:
        """Edges for the problem's samples."""
        if isinstance(self.n_bins, tuple):
            return fixed_edges(self.n_bins)
        if isinstance(self.n_bins, int) and self.strategy == "uniform":
            return self.edges_for(problem.domain)
        rule = self.n_bins if isinstance(self.n_bins, (int, str)) else len(self.n_bins) - 1
        n_bins = resolve_n_bins(rule, problem.effective_size)
        if self.strategy == "uniform":
            return uniform_edges(n_bins, problem.domain if self.span == "domain" else (0.0, 1.0))
        return quantile_edges(problem.scores, problem.weights, n_bins, problem.domain, integral=problem.integral)

    def edges_for(self, domain: tuple[float, float]) -> Edges:
        """Edges that need no data: explicit ones, or a number of uniform bins."""
        if isinstance(self.n_bins, tuple):
            return fixed_edges(self.n_bins)
        if not isinstance(self.n_bins, int) or self.strategy != "uniform":
            raise ValueError(
                f"{self!r} takes its edges from the data: only a number of uniform bins or explicit edges are fixed"
            )
        return uniform_edges(self.n_bins, domain if self.span == "domain" else (0.0, 1.0))

    def summarize(self, problem: Problem) -> BinMoments:
        """Bin sums of the problem's samples."""
        return BinMoments.of(problem, self.edges(problem), self.mapping)

    def summarize_all(self, problems: Sequence[Problem]) -> Sequence[BinMoments]:
        """Bin sums of every problem; one pass over the matrix when all classes share their edges."""
        if self._one_pass(problems):
            return matrix_moments(problems, self.edges(problems[0]))
        return [self.summarize(problem) for problem in problems]

    def _one_pass(self, problems: Sequence[Problem]) -> TypeGuard[OneVsRest]:
        """Whether all classes share their edges and each sample belongs to one bin of each."""
        shared = self.fixed or self.strategy == "uniform"
        return isinstance(problems, OneVsRest) and self.mapping == "hard" and shared

    def power(self, problem: Problem, norm: float) -> float:
        """``errorᵖ`` of one problem; the plain ECE needs the residuals a bin only."""
        if norm == 1 and self.mapping == "hard" and not self.debias:
            residual, total = residual_sums(problem, self.edges(problem))
            return float(np.abs(residual).sum() / total) if total > 0 else float("nan")
        return super().power(problem, norm)

    def powers(self, problems: Sequence[Problem], norm: float) -> list[float]:
        """``errorᵖ`` of every problem."""
        if self._one_pass(problems):
            return super().powers(problems, norm)
        return [self.power(problem, norm) for problem in problems]

    def power_of(self, summary: BinMoments, norm: float) -> float:
        """``errorᵖ`` from bin sums."""
        if self.debias:
            return float(_debiased(summary.gap, summary.mean_outcome, summary.effective_size, summary.weight, norm))
        return float(mean_power(summary.gap, summary.weight, norm))

    def cells(self, summary: BinMoments) -> Cells:
        """Bins as cells, counted in units of the effective sample size."""
        scale = 1.0 if summary.integral else _scale(summary)
        return Cells(
            summary.mean_score,
            summary.weight * scale,
            summary.outcome * scale,
            None,
            np.ones(summary.edges.n_bins),
        )

    def resampled_power(self, cells: Cells, density: FloatArray, positive: FloatArray, norm: float) -> FloatArray:
        """``errorᵖ`` of resampled bins, debiased where this estimator is."""
        if not self.debias:
            return super().resampled_power(cells, density, positive, norm)
        observed = np.divide(positive, density, out=np.zeros_like(positive), where=density > 0)
        return _debiased(observed - np.nan_to_num(cells.scores), np.clip(observed, 0, 1), density, density, norm)


def _scale(summary: BinMoments) -> float:
    """From relative weights to the effective sample size."""
    total = float(summary.weight.sum())
    return float(summary.effective_size.sum()) / total if total > 0 else 0.0


def _check_edges(values: Any) -> tuple[float, ...]:
    try:
        edges = tuple(float(v) for v in values)
    except (TypeError, ValueError) as error:
        raise TypeError(f"n_bins as edges must be numbers; got {values!r}") from error
    if len(edges) < 2 or not all(np.isfinite(edges)) or any(b <= a for a, b in pairwise(edges)):
        raise ValueError(
            f"n_bins as edges must be at least two finite, strictly increasing numbers; got {list(edges)!r}"
        )
    if edges[0] > 0 or edges[-1] < 1:
        raise ValueError(f"n_bins as edges must cover [0, 1]; got {edges[0]} … {edges[-1]}")
    return edges


def _debiased(gap: FloatArray, observed: FloatArray, n: FloatArray, weight: FloatArray, norm: float) -> FloatArray:
    """Debiased ``Σ w |gap|^p / Σ w`` over bins with at least two samples, p = 1 or 2; NaN without any."""
    from scipy.special import erf

    if norm not in (1, 2):
        raise ValueError(f"debias=True is defined for norm 1 and 2; got norm={norm:g}")
    used = n >= 2 - 1e-9
    size = np.where(used, np.abs(np.where(used, gap, 0.0)), 0.0)
    variance = np.where(used, observed * (1 - observed), 0.0) / np.where(used, n - 1, 1.0)
    if norm == 2:
        value = size**2 - variance
    else:
        sd = np.sqrt(np.maximum(variance, 0.0))
        z = np.divide(size, sd, out=np.full_like(size, np.inf), where=sd > 0)
        folded = sd * np.sqrt(2 / np.pi) * np.exp(-0.5 * z**2) + size * erf(z / np.sqrt(2))
        value = 2 * size - folded
    mass = np.where(used, weight, 0.0)
    total = mass.sum(axis=-1)
    with np.errstate(invalid="ignore"):
        return np.asarray((mass * value).sum(axis=-1) / np.where(total > 0, total, np.nan))
