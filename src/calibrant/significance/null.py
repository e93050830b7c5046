"""What a calibrated model would show: labels drawn from its probabilities, or signs of groups; and p-values of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..data.dependence import group_codes
from ..data.predictions import Predictions
from ..data.progress import counted
from ..data.types import AnyArray, FloatArray, IntArray
from ..notions import Target

#: Numbers drawn at a time: labels, and signs.
_LABELS, _SIGNS = 1 << 22, 1 << 21
_ROUNDING = 1e-9


def rounding_of(observed: float) -> float:
    """What draws may differ by from an observed statistic and be the same sum in another order."""
    return _ROUNDING * abs(observed) if np.isfinite(observed) else 0.0


def share_at_least(draws: FloatArray, observed: float) -> float:
    """The p-value ``(1 + #{draws ≥ observed}) / (1 + R)``: what was observed is one of the draws. NaN of a NaN."""
    if np.isnan(observed):
        return float("nan")
    return (1 + int((draws >= observed - rounding_of(observed)).sum())) / (1 + draws.size)


class Null(ABC):
    """The null hypothesis: sets of what may have happened to the rows if they are calibrated, drawn as often as wanted.

    A statistic is a function of such sets, (r, …) → (r,). Subclasses say what is drawn (:meth:`sets`).
    """

    @property
    @abstractmethod
    def how(self) -> str:
        """What is drawn, in words."""

    @abstractmethod
    def sets(self, n_draws: int, rng: np.random.Generator, size: int = 0) -> Iterator[Any]:
        """Sets drawn, some at a time; ``size`` is how many numbers the statistic makes of each."""

    def draws(
        self, statistic: Callable[[Any], FloatArray], n_draws: int, rng: np.random.Generator, size: int = 0
    ) -> FloatArray:
        """The statistic of sets drawn, (n_draws, …)."""
        return np.concatenate([statistic(some) for some in self.sets(n_draws, rng, size)])

    def pvalue(self, draws: FloatArray, observed: float) -> float:
        """Probability of a statistic at least as large as observed, from :meth:`draws`."""
        return share_at_least(draws, observed)


@dataclass(frozen=True)
class DrawnLabels(Null):
    """Labels of independent rows, each drawn from its stated probabilities: exact for any number of rows."""

    predictions: Predictions

    @property
    def how(self) -> str:
        """What is drawn, in words."""
        return "resampling under calibration"

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


@dataclass(frozen=True, eq=False)
class GroupSigns(Null):
    r"""Signs of the residuals of whole groups, whatever hangs together within one.

    Given the scores a calibrated model's residuals have mean 0 in every group, and groups are independent. So what is
    drawn anew are signs ``ξ_g = ±1``, one a group, and residuals ``c ξ_g r_i``, with

    .. math:: c^2 = \sum_i w_i^2 \, \mathrm{Var}_i \Big/ \sum_i w_i^2 \lVert r_i \rVert^2

    so that single rows vary as the probabilities say. The p-value is exact for residuals that are symmetric about 0,
    and close to it else (``benchmarks/coverage/groups.md``). With G groups none is below ``2^(1 - G)``.

    Source: Liu (1988), *Bootstrap procedures under some non-i.i.d. models* (the wild bootstrap); Cameron, Gelbach &
    Miller (2008), *Bootstrap-based improvements for inference with clustered errors*, for groups.

    Attributes
    ----------
    group : ndarray of shape (n,)
        Codes 0 … G - 1.
    scale : float
        The factor c; 1 where residuals were scaled before, as those of cells apart.
    """

    group: IntArray
    scale: float = 1.0

    @classmethod
    def of(cls, groups: AnyArray, squares: FloatArray, variances: FloatArray, weights: FloatArray) -> GroupSigns:
        """Signs for rows with weight, from squared residuals and what the probabilities say of these."""
        happened, stated = float(weights**2 @ squares), float(weights**2 @ variances)
        return cls(group_codes(groups), float(np.sqrt(stated / happened)) if happened > 0 else 1.0)

    @classmethod
    def of_targets(cls, p: Predictions, targets: Iterable[Target]) -> GroupSigns:
        """Signs for rows, all with weight, whose residuals in several problems, or of a vector, change together."""
        squares, variances, codes = np.zeros(p.n_samples), np.zeros(p.n_samples), p.codes.astype(np.int64)
        for target in targets:
            rows = slice(None) if target.rows is None else target.rows
            s = target.scores.astype(np.float64).reshape(len(target.scores), -1)
            residual = target.outcomes(codes).reshape(s.shape) - s
            squares[rows] += (residual**2).sum(axis=1)
            variances[rows] += (s * (1 - s)).sum(axis=1)
        weights = np.ones(p.n_samples) if p.weights is None else p.weights
        return cls.of(np.asarray(p.groups), squares, variances, weights)

    @cached_property
    def n_groups(self) -> int:
        """Number of groups G."""
        return int(self.group.max(initial=-1)) + 1

    @property
    def how(self) -> str:
        """What is drawn, in words."""
        return f"signs of {self.n_groups} groups"

    @property
    def observed(self) -> FloatArray:
        """The signs that happened, (1, G): all +1, and no factor."""
        return np.ones((1, self.n_groups))

    def sets(self, n_draws: int, rng: np.random.Generator, size: int = 0) -> Iterator[FloatArray]:
        """Signs times c, (r, G)."""
        together = max(1, _SIGNS // max(size, self.n_groups, 1))
        for start in counted(range(0, n_draws, together), "draws"):
            shape = (min(together, n_draws - start), self.n_groups)
            yield self.scale * (2.0 * rng.integers(2, size=shape) - 1)

    def sums(self, values: FloatArray) -> FloatArray:
        """Sums over the rows of each group, (G, …), of values (n, …)."""
        columns = values.reshape(len(values), -1).T
        found = np.stack([np.bincount(self.group, one, self.n_groups) for one in columns], axis=1)
        return np.asarray(found.reshape(self.n_groups, *values.shape[1:]))
