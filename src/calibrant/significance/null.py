"""Null distributions, of labels drawn from the stated probabilities or of signs of groups, and their p-values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ..data.dependence import group_codes
from ..data.predictions import Predictions
from ..data.printing import number_of
from ..data.progress import counted
from ..data.types import AnyArray, FloatArray, IntArray
from ..notions import Target
from .result import least_pvalue

#: Numbers drawn at a time: labels, and signs.
_LABELS, _SIGNS = 1 << 22, 1 << 21
#: Outcomes drawn at a time.
_IN_CACHE = 1 << 16
#: Sequential drawing stops after this many draws at least as large as the observed statistic.
ENOUGH = 10
#: Up to this many groups, all their signs are listed (at most 4096).
LISTED = 12
_ROUNDING = 1e-9


def rounding_of(observed: float) -> float:
    """Largest difference between a draw and the observed statistic that is attributed to rounding."""
    return _ROUNDING * abs(observed) if np.isfinite(observed) else 0.0


def share_at_least(draws: FloatArray, observed: float) -> float:
    """The p-value ``(1 + #{draws ≥ observed}) / (1 + R)``: the observed statistic counts as a draw; NaN for NaN."""
    if np.isnan(observed):
        return float("nan")
    return (1 + int((draws >= observed - rounding_of(observed)).sum())) / (1 + draws.size)


def impossible(target: Target, codes: AnyArray) -> int:
    """Rows whose outcome had stated probability 0."""
    hits, s = target.outcomes(codes), target.scores
    wrong = np.where(hits, s, 1 - s) <= 0
    return int((wrong.any(axis=1) if wrong.ndim == 2 else wrong).sum())


class Null(ABC):
    """The null hypothesis: draws of possible outcomes of the rows if they are calibrated.

    A statistic is a function of sets of outcomes, (r, …) → (r,). Subclasses define the draws (:meth:`sets`).
    """

    @property
    @abstractmethod
    def how(self) -> str:
        """The draws in words."""

    @property
    def n_groups(self) -> int | None:
        """Number of groups; None for independent rows."""
        return None

    @property
    def listed(self) -> bool:
        """Whether there are so few sets that all are listed, rather than drawn."""
        return False

    @property
    def least(self) -> float:
        """The smallest possible p-value."""
        return 0.0 if self.n_groups is None else least_pvalue(self.n_groups)

    def described(self, n_draws: int) -> str:
        """Number and kind of the draws, in words."""
        return f"{number_of(n_draws, 'draw')} of {self.how}"

    @abstractmethod
    def sets(self, n_draws: int, rng: np.random.Generator, size: int = 0) -> Iterator[Any]:
        """Draw sets, in blocks; ``size`` is the number of values that the statistic computes from each."""

    def draws(
        self, statistic: Callable[[Any], FloatArray], n_draws: int, rng: np.random.Generator, size: int = 0
    ) -> FloatArray:
        """The statistic of sets drawn, (n_draws, …)."""
        return np.concatenate([statistic(some) for some in self.sets(n_draws, rng, size)])

    def pvalue(self, draws: FloatArray, observed: float) -> float:
        """Probability of a statistic at least as large as observed, from :meth:`draws`."""
        return share_at_least(draws, observed)

    def sequential_pvalue(
        self,
        statistic: Callable[[Any], FloatArray],
        observed: float,
        numbers: tuple[int, int],
        rng: np.random.Generator,
        size: int = 0,
    ) -> tuple[float, int]:
        """The p-value and the number of draws: the first of ``numbers``, up to the second if fewer than ten reach it.

        Drawing stops at the tenth that does; the p-value is then ten over the number of draws (Besag & Clifford 1991).
        """
        first, most = numbers
        draws = self.draws(statistic, first, rng, size)
        reached, done, near = int((draws >= observed - rounding_of(observed)).sum()), draws.size, rounding_of(observed)
        if reached >= ENOUGH or most <= first or self.listed:
            return self.pvalue(draws, observed), done
        while done < most:
            draws = self.draws(statistic, min(done, most - done), rng, size)
            counts = reached + np.cumsum(draws >= observed - near)
            if counts[-1] >= ENOUGH:
                done += 1 + int(np.argmax(counts >= ENOUGH))
                return max(ENOUGH / done, self.least), done
            reached, done = int(counts[-1]), done + draws.size
        return max((1 + reached) / (1 + done), self.least), done


@dataclass(frozen=True)
class DrawnLabels(Null):
    """Labels of independent rows, each drawn from its stated probabilities: exact for any number of rows."""

    predictions: Predictions

    @property
    def how(self) -> str:
        """The draws in words."""
        return "labels of a calibrated model"

    def sets(self, n_draws: int, rng: np.random.Generator, size: int = 0) -> Iterator[IntArray]:
        """Label codes (r, n)."""
        p = self.predictions
        if p.positive is not None:
            running = (p.probs if p.positive == 0 else 1 - p.probs).astype(np.float64)[:, None]
        else:
            running = np.cumsum(p.probs.astype(np.float64), axis=1)[:, :-1]
        columns = np.ascontiguousarray(running.T)
        together = max(1, _LABELS // max(p.n_samples, 1))
        for start in counted(range(0, n_draws, together), "draws"):
            draw = rng.random((min(together, n_draws - start), p.n_samples))
            codes = np.zeros(draw.shape, dtype=np.int64)
            for column in columns:
                codes += draw > column
            yield codes


@dataclass(frozen=True)
class DrawnOutcomes(Null):
    """Residuals of outcomes drawn with their probabilities: of rows, or of cells of rows of equal weight."""

    chances: FloatArray
    trials: IntArray
    unit: FloatArray

    @property
    def how(self) -> str:
        """The draws in words."""
        return "outcomes"

    def sets(self, n_draws: int, rng: np.random.Generator, size: int = 0) -> Iterator[FloatArray]:
        """Sums of weighted residuals of cells (r, m)."""
        together = max(1, _IN_CACHE // self.chances.size)
        single = not (self.trials > 1).any()  # comparing is an order of magnitude faster than a binomial distribution
        for start in range(0, n_draws, together):
            shape = (min(together, n_draws - start), self.chances.size)
            drawn = rng.random(shape) < self.chances if single else rng.binomial(self.trials, self.chances, size=shape)
            yield (drawn - self.trials * self.chances) * self.unit


@lru_cache(maxsize=LISTED)
def listed_signs(n_groups: int) -> FloatArray:
    """All signs of G groups, (2^G, G); the second half are the opposites of the first."""
    return 1 - 2.0 * (np.arange(2**n_groups)[:, None] >> np.arange(n_groups)[::-1] & 1)


def scale_of(happened: AnyArray, stated: AnyArray) -> FloatArray:
    """Factor by which residuals are scaled up, from sums of their squares and of the stated variances."""
    happened, stated = np.asarray(happened, dtype=np.float64), np.asarray(stated, dtype=np.float64)
    return np.sqrt(np.maximum(np.divide(stated, happened, out=np.ones(happened.shape), where=happened > 0), 1.0))


@dataclass(frozen=True, eq=False)
class GroupSigns(Null):
    r"""Random signs of the residuals of whole groups, for any dependence within groups.

    Given the scores, a calibrated model's residuals have mean 0 in every group, and groups are independent. So signs
    ``ξ_g = ±1`` are drawn, one per group (all ``2^G`` are listed for G ≤ 12), and residuals are ``c ξ_g r_i`` with

    .. math:: c^2 = \max\Big(1, \sum_i w_i^2 \, \mathrm{Var}_i \Big/ \sum_i w_i^2 \lVert r_i \rVert^2\Big)

    so that single rows vary at least as much as the probabilities imply: if a rare outcome never happened, the
    residuals vary too little. The p-value is exact for residuals that are symmetric about 0, and close to it otherwise
    (``benchmarks/coverage/groups.md``). As c is at least 1, the p-value is never below ``2^(1 - G)`` for G groups.

    Source: Liu (1988), *Bootstrap procedures under some non-i.i.d. models* (the wild bootstrap); Cameron, Gelbach &
    Miller (2008), *Bootstrap-based improvements for inference with clustered errors*, for groups.

    Attributes
    ----------
    group : ndarray of shape (n,)
        Codes 0 … G - 1.
    scale : float
        The factor c; 1 if residuals are scaled already, cell by cell.
    """

    group: IntArray
    scale: float = 1.0

    @classmethod
    def of(cls, groups: AnyArray, squares: FloatArray, variances: FloatArray, weights: FloatArray) -> GroupSigns:
        """Signs for rows with weight, from squared residuals and their stated variances."""
        happened, stated = weights**2 @ squares, weights**2 @ variances
        return cls(group_codes(groups), float(scale_of(happened, stated)))

    @classmethod
    def of_targets(cls, p: Predictions, targets: Iterable[Target]) -> GroupSigns:
        """Signs for rows with weight whose residuals in several problems, or of a vector, change sign together."""
        squares, variances = np.zeros(p.n_samples), np.zeros(p.n_samples)
        for target in targets:
            rows = np.arange(p.n_samples) if target.rows is None else target.rows  # some may come several times
            s = target.scores.astype(np.float64).reshape(len(target.scores), -1)
            residual = target.outcomes(p.truth).reshape(s.shape) - s
            squares += np.bincount(rows, (residual**2).sum(axis=1), p.n_samples)
            variances += np.bincount(rows, (s * (1 - s)).sum(axis=1), p.n_samples)
        weights = np.ones(p.n_samples) if p.weights is None else p.weights
        return cls.of(np.asarray(p.units), squares, variances, weights)

    @cached_property
    def n_groups(self) -> int:
        """Number of groups G."""
        return int(self.group.max(initial=-1)) + 1

    @property
    def listed(self) -> bool:
        """Whether all signs are listed, rather than drawn."""
        return self.n_groups <= LISTED

    @property
    def how(self) -> str:
        """The draws in words."""
        return f"the signs of {number_of(self.n_groups, 'group')}"

    def described(self, n_draws: int) -> str:
        """Number of the signs, in words."""
        return f"all {2**self.n_groups} combinations of {self.how}" if self.listed else super().described(n_draws)

    @property
    def observed(self) -> FloatArray:
        """The observed signs, (1, G): all +1, without the factor c."""
        return np.ones((1, self.n_groups))

    def sets(self, n_draws: int, rng: np.random.Generator, size: int = 0) -> Iterator[FloatArray]:
        """Signs times c, (r, G): ``n_draws`` of them, or all."""
        together = max(1, _SIGNS // max(size, self.n_groups, 1))
        number = 2**self.n_groups if self.listed else n_draws
        for start in counted(range(0, number, together), "draws"):
            rows = np.arange(start, min(start + together, number))
            drawn = None if self.listed else rng.integers(2, size=(len(rows), self.n_groups))
            yield self.scale * (listed_signs(self.n_groups)[rows] if drawn is None else 2.0 * drawn - 1)

    def pvalue(self, draws: FloatArray, observed: float) -> float:
        """Share of all signs, or of draws and the observed ones, with a statistic as large; at least ``2^(1 - G)``."""
        if not self.listed or np.isnan(observed):
            found = share_at_least(draws, observed)
        else:
            found = float((draws >= observed - rounding_of(observed)).mean())
        return float(np.maximum(found, self.least))

    def sums(self, values: FloatArray) -> FloatArray:
        """Sums over the rows of each group, (G, …), of values (n, …)."""
        columns = values.reshape(len(values), -1).T
        found = np.stack([np.bincount(self.group, one, self.n_groups) for one in columns], axis=1)
        return np.asarray(found.reshape(self.n_groups, *values.shape[1:]))
