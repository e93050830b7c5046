"""Recalibration maps of problems side by side: a smooth map, and where supported one with local ranges."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..data.types import AnyArray, FloatArray, IntArray
from ..sums.logistic_fit import expit
from . import laplace
from .laplace import Component, Posterior, Prior, RankCells
from .laplace_draws import DrawnMaps, draw_gaps, draw_maps
from .ranges import local_ranges

#: Share of the draws below which a model is given none.
_NONE = 1e-3
#: Amplitudes of the rest of a map outside its ranges, usually negligible, with their prior probabilities; decay 1.
_REST = ((0.01, 0.3), (0.04, 0.2))


@dataclass(frozen=True, eq=False)
class FittedMaps:
    """Posterior of the maps of cells (R, m), averaged over two models by their evidence.

    Attributes
    ----------
    cells : RankCells
    prior : Prior
    posteriors : list of Posterior
        One per component.
    at : ndarray of int, shape (r,)
        Problems with a second model: those with ranges or heavy scores, outside of which scores may be
        calibrated.
    local : FittedMaps or None
        The second model of these problems.
    log_odds : ndarray of shape (r,)
        Its prior log odds.
    """

    cells: RankCells
    prior: Prior
    posteriors: list[Posterior]
    at: IntArray
    local: FittedMaps | None
    log_odds: FloatArray

    @classmethod
    def of(cls, cells: RankCells, prior: Prior) -> FittedMaps:
        """Fit both models."""
        plain = cls(cells, prior, laplace.fit(cells, prior), np.empty(0, dtype=np.intp), None, np.empty(0))
        at, columns, odds = local_ranges(cells, plain.log_mean_evidence())
        if not at.size:
            return plain
        few = cells.of(at)
        few = replace(few, apart=np.concatenate([few.apart, columns], axis=-1))
        rest = replace(prior, components=_with_rest(prior.components))
        local = cls(few, rest, laplace.fit(few, rest), plain.at, None, plain.log_odds)
        return replace(plain, at=at, local=local, log_odds=odds)

    def some(self, part: slice) -> FittedMaps:
        """Maps of some of the problems."""
        posteriors = [posterior.of(part) for posterior in self.posteriors]
        chosen = replace(self, cells=self.cells.of(part), posteriors=posteriors)
        if self.local is None:
            return chosen
        start, stop, _ = part.indices(len(self.cells.count))
        low, high = np.searchsorted(self.at, (start, stop)).tolist()
        inner = slice(low, high)
        local = self.local.some(inner) if high > low else None
        return replace(chosen, at=self.at[inner] - start, local=local, log_odds=self.log_odds[inner])

    def _weight(self, evidence: FloatArray, of_local: FloatArray) -> FloatArray:
        """Posterior probability of the second model, (r,)."""
        return expit(of_local + self.log_odds - evidence[self.at])

    def log_mean_evidence(self) -> FloatArray:
        """Log evidence of the first model, (R,)."""
        return laplace.log_mean_evidence(self.prior, self.posteriors)

    def average(self, own: FloatArray, local: FittedMaps, of_local: FloatArray) -> FloatArray:
        """Average of the values of the first model, (R, …), and of the second, (r, …), by their weights."""
        weight = self._weight(self.log_mean_evidence(), local.log_mean_evidence())
        weight = weight.reshape(-1, *[1] * (own.ndim - 1))
        out = own.copy()
        out[self.at] = (1 - weight) * own[self.at] + weight * of_local
        return out

    def mean_gap(self) -> FloatArray:
        """Posterior mean of the gap in each cell, (R, m)."""
        weight = laplace.weights(self.prior, self.posteriors)
        gaps = np.stack([laplace.gaps(self.cells, one)[0] for one in self.posteriors], axis=-1)
        own = (gaps * weight[:, None]).sum(axis=-1)
        return own if self.local is None else self.average(own, self.local, self.local.mean_gap())

    def draw_gaps(self, n_draws: int, rng: np.random.Generator, of: int = 1) -> DrawnMaps:
        """Draw gaps from both models; see :func:`.draw_gaps`. Models of negligible weight are skipped."""
        if self.local is None:
            return draw_gaps(self.cells, self.prior, self.posteriors, n_draws, rng, of)
        local, evidence = self.local, self.log_mean_evidence()
        weight = self._weight(evidence, local.log_mean_evidence())
        first, second = weight <= 1 - _NONE, weight >= _NONE
        plain = np.ones(len(evidence), dtype=bool)
        plain[self.at] = first
        own, other = (
            maps._drawn_of(np.flatnonzero(some), n_draws, rng, of) for maps, some in ((self, plain), (local, second))
        )
        odds = other.log_odds + self.log_odds
        weight = np.where(first & second, self._weight(own.log_odds, other.log_odds), second)
        chosen = _chosen(weight, n_draws, rng)
        for mine, new in ((own.gap, other.gap), (own.share, other.share), (own.missed, other.missed)):
            mine[self.at] = np.where(chosen, new, mine[self.at])
        own.log_odds[self.at] = np.logaddexp(own.log_odds[self.at], odds)
        return own

    def _drawn_of(self, some: IntArray, n_draws: int, rng: np.random.Generator, of: int) -> DrawnMaps:
        """Draws of some problems; zeros for the others, with the evidence of the fit."""
        posteriors = [posterior.of(some) for posterior in self.posteriors]
        drawn = draw_gaps(self.cells.of(some), self.prior, posteriors, n_draws, rng, of) if some.size else None
        shape = len(self.cells.count), n_draws, self.cells.count.shape[-1]
        out = DrawnMaps(np.zeros(shape), np.zeros(shape), np.zeros(shape), self.log_mean_evidence())
        for mine, new in zip(out, drawn or (), strict=False):
            mine[some] = new
        return out

    def drawn_gap(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """Gaps (R, n_draws, m) of drawn maps; see :func:`.draw_maps`."""
        own, _, evidence = draw_maps(self.cells, self.prior, self.posteriors, n_draws, rng)
        if self.local is None:
            return own
        local = self.local
        other, _, of_local = draw_maps(local.cells, local.prior, local.posteriors, n_draws, rng)
        chosen = _chosen(self._weight(evidence, of_local), n_draws, rng)
        own[self.at] = np.where(chosen, other, own[self.at])
        return own


def _with_rest(components: tuple[Component, ...]) -> tuple[Component, ...]:
    left = 1 - sum(weight for _, weight in _REST)
    rest = (Component(amplitude, 1.0, weight) for amplitude, weight in _REST)
    return (*rest, *(c._replace(weight=left * c.weight) for c in components))


def _chosen(weight: FloatArray, n_draws: int, rng: np.random.Generator) -> AnyArray:
    """Which draws are of the second model, (r, n_draws, 1), in proportion to its weight."""
    number = np.rint(weight * n_draws)[:, None]
    return (rng.permuted(np.broadcast_to(np.arange(n_draws), (len(weight), n_draws)), axis=-1) < number)[..., None]
