"""Null draws of rows in groups: the residuals of whole groups change their sign."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.dependence import group_codes
from ..data.progress import counted
from ..data.types import AnyArray, FloatArray, IntArray

#: Numbers drawn at a time.
_TOGETHER = 1 << 21


@dataclass(frozen=True, eq=False)
class Flips:
    r"""Residuals of groups under the null hypothesis, whatever hangs together within one.

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
    scale: float

    @classmethod
    def of(cls, groups: IntArray, squares: FloatArray, variances: FloatArray, weights: FloatArray) -> Flips:
        """Flips of rows with weight, from squared residuals and what the probabilities say of these."""
        happened, stated = float(weights**2 @ squares), float(weights**2 @ variances)
        return cls(group_codes(groups), float(np.sqrt(stated / happened)) if happened > 0 else 1.0)

    @property
    def n_groups(self) -> int:
        """Number of groups G."""
        return int(self.group.max(initial=-1)) + 1

    def signs(self, n_draws: int, rng: np.random.Generator, size: int) -> Iterator[FloatArray]:
        """Signs of the groups times c, some draws at a time that make ``size`` numbers each, (r, G)."""
        together = max(1, _TOGETHER // max(size, self.n_groups, 1))
        for a in counted(range(0, n_draws, together), "draws"):
            shape = (min(together, n_draws - a), self.n_groups)
            yield self.scale * (2.0 * rng.integers(2, size=shape) - 1)

    def sums(self, cell: AnyArray, n_cells: int, values: FloatArray) -> Any:
        """Sparse sums of values over the rows of each group in each cell, (G, cells)."""
        from scipy.sparse import csr_array

        return csr_array((values, (self.group, cell)), shape=(self.n_groups, n_cells))

    def drawn(self, sums: Any, n_draws: int, rng: np.random.Generator) -> Iterator[FloatArray]:
        """Sums over all groups of what :meth:`sums` gave, or of a matrix of its shape, with signs drawn, (r, cells)."""
        for signs in self.signs(n_draws, rng, sums.shape[1]):
            yield np.asarray(signs @ sums)


def share_at_least(draws: FloatArray, observed: float) -> float:
    """The p-value ``(1 + #{draws ≥ observed}) / (1 + R)``."""
    near = 1e-9 * max(abs(observed), 1e-300) if np.isfinite(observed) else 0.0
    return (1 + int((draws >= observed - near).sum())) / (1 + draws.size)
