"""Near-isotonic regression: mostly increasing maps with penalised decreases, and their average over the whole path."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..data.checks import check_number
from ..data.fields import Field, Numbers
from ..data.types import FloatArray, IntArray
from ..data.weights import run_starts
from .base import PROBABILITIES, parameter
from .inputs import CalibrationSample
from .monotone import Knots, points

#: Merges whose penalties differ by no more than this are simultaneous.
_ROUNDING = 1e-12
#: Models with less than exp(-40) of the best one's weight are left out.
_NEGLIGIBLE = 40.0
#: Terms of log-likelihoods processed at a time.
_TILE = 1 << 15


def _check_select(name: str, value: Any) -> None:
    if not isinstance(value, str) or value not in ("bic-average", "bic"):
        check_number(name, value, least=0, instead="'bic-average', 'bic' or ")


@dataclass(eq=False, repr=False)
class NearIsotonic(Knots):
    r"""Near-isotonic regression, by default the average over its whole path (ENIR).

    It solves, with ``y_i`` the share of the second class at the i-th distinct score and ``w_i`` the weight there,

    .. math:: \min_\beta\; \tfrac12 \sum_i w_i (y_i - \beta_i)^2 + \lambda \sum_i (\beta_i - \beta_{i+1})_+ .

    λ = 0 reproduces the outcomes, and a large λ gives isotonic regression; in between, decreases that the data support
    remain.

    Parameters
    ----------
    select : {"bic-average", "bic"} or float >= 0, default "bic-average"
        Solution of the path: the average of those at which pieces merge, weighted by ``exp(-BIC / 2)`` (ENIR); the one
        with the least BIC; or the one for a penalty λ, in units of weight.
        ``BIC = -2 log-likelihood + pieces · log(Σ w)``, with the likelihood of the outcomes, not of squared errors.

    Attributes
    ----------
    scores_, values_ : ndarray of shape (m,)
        Knots of the map.
    penalties_ : ndarray of shape (M,)
        Penalties λ of the models used, ascending.
    n_pools_ : ndarray of shape (M,)
        Number of flat pieces of each model.
    weights_ : ndarray of shape (M,)
        Weights of the models, which sum to 1; models with less than exp(-40) of the best one's weight are left out.

    See Also
    --------
    calibrant.calibrators.IsotonicCalibrator : The limit without decreases.
    calibrant.calibrators.QuadraticLogit : A smooth map that may decrease.

    Notes
    -----
    Ranks may change where scores are ranked wrongly, which an increasing map cannot correct. BIC counts every flat
    piece as a parameter, so the average seldom moves far from isotonic regression (``docs/calibrators.md`` has
    numbers). A fixed penalty preserves larger decreases: two pieces of weight w, the second lower by d, merge at
    ``λ = d w / 2``. The path is exact, by modified pooling of adjacent violators: a piece of mean ȳ and weight w has
    the value ``ȳ + λ (l - r) / w`` until it merges, where l and r indicate whether the map decreases at its left and
    right end. Cost: O(n log n) for the path, with a Python step per distinct score. The likelihoods need a logarithm
    per moving piece and model not excluded by its number of pieces: much less than n² in practice, n² at worst.

    References
    ----------
    Tibshirani, Höfling & Tibshirani (2011), *Nearly-isotonic regression*; Naeini & Cooper (2016), *Binary classifier
    calibration using an ensemble of near isotonic regression models*; Silva Filho et al. (2023), §5.

    Examples
    --------
    >>> from calibrant.calibrators import NearIsotonic
    >>> s, y = [0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1]
    >>> NearIsotonic(0.25, clip=None).fit(s, y).values_.tolist()  # half of the way to isotonic regression
    [0.0, 0.75, 0.25, 1.0]
    >>> NearIsotonic(9.0, clip=None).fit(s, y).values_.tolist()
    [0.0, 0.5, 0.5, 1.0]
    """

    select: str | float = parameter("bic-average", _check_select)

    _state: ClassVar[Mapping[str, Field]] = {
        "scores_": Numbers(("m",), ascending=True),
        "values_": Numbers(("m",), *PROBABILITIES),
        "penalties_": Numbers(("M",), 0, ascending=True),
        "n_pools_": Numbers(("M",), 1),
        "weights_": Numbers(("M",), *PROBABILITIES, total=1),
    }

    def _fit(self, sample: CalibrationSample) -> None:
        s, weight, positive = points(sample.scores.of_positive(), sample.outcomes(), sample.weights)
        path = PenaltyPath.of(weight, positive)
        penalties = path.penalties
        if isinstance(self.select, str):
            behind = path.bic()
            behind = (behind - behind.min()) / 2
            if self.select == "bic":  # of equals the smoothest
                behind = np.where(np.arange(len(behind)) == np.flatnonzero(behind == 0)[-1], 0.0, np.inf)
            model_weights = np.where(behind < _NEGLIGIBLE, np.exp(-behind), 0.0)
            model_weights /= model_weights.sum()
        else:
            at = int(np.searchsorted(penalties, self.select * (1 + _ROUNDING), side="right")) - 1
            model_weights = (np.arange(len(penalties)) == at).astype(np.float64)
            penalties = np.where(model_weights > 0, float(self.select), penalties)
        used = model_weights > 0
        self.penalties_, self.n_pools_ = penalties[used], path.n_pools[used]
        self.weights_ = model_weights[used]
        value = np.clip(path.mean(penalties, model_weights), 0.0, 1.0)
        # Both ends of each flat piece.
        changes = np.flatnonzero(np.diff(value)) + 1
        keep = np.unique(np.concatenate([[0], changes - 1, changes, [len(s) - 1]]))
        self._keep_map(s[keep], value[keep], sample)


@dataclass(frozen=True, eq=False)
class PenaltyPath:
    """All near-isotonic fits, as a tree of pieces: first those of equal neighbours, then those formed by merging.

    Attributes
    ----------
    penalties : ndarray of shape (T,)
        0 and the λ at which pieces merge.
    n_pools : ndarray of shape (T,)
        Number of pieces from each penalty on.
    weight, positive, slope : ndarray of shape (P,)
        Weight and positive weight of each piece, and ``l - r``: its value is ``(positive + λ slope) / weight``.
    born, dead : ndarray of shape (P,)
        The first model that contains each piece, and the first later one that does not.
    parent : ndarray of shape (P,)
        The piece that each piece becomes part of, later in the list; -1: none.
    first : ndarray of shape (n,)
        The piece for λ = 0 that contains each distinct score.
    """

    penalties: FloatArray
    n_pools: IntArray
    weight: FloatArray
    positive: FloatArray
    slope: FloatArray
    born: IntArray
    dead: IntArray
    parent: IntArray
    first: IntArray

    @classmethod
    def of(cls, weights: FloatArray, positives: FloatArray) -> PenaltyPath:
        """Compute the path, with a heap of the penalties at which neighbours meet."""
        share = positives / weights
        start = run_starts(share)
        first = np.cumsum(np.concatenate([[False], share[1:] != share[:-1]]))
        w, y = (np.add.reduceat(v, start).tolist() for v in (weights, positives))
        m = len(w)
        falls = [0, *(share[start][:-1] > share[start][1:]).astype(int).tolist(), 0]
        # For each piece: its neighbours, and whether the map decreases at either end.
        left, right = list(range(-1, m - 1)), [*range(1, m), -1]
        down, up = falls[:-1], falls[1:]
        born, dead, parent = [0] * m, [0] * m, [-1] * m

        def meeting(a: int, now: float) -> float:
            """Penalty at which a piece meets the next one: ``now`` if they are equal already."""
            b = right[a]
            slopes = (down[a] - up[a]) / w[a], (down[b] - up[b]) / w[b]
            apart = (y[a] / w[a] + now * slopes[0]) - (y[b] / w[b] + now * slopes[1])
            if abs(apart) <= _ROUNDING:
                return now
            return now + max(apart / (slopes[1] - slopes[0]), 0.0) if slopes[1] != slopes[0] else np.inf

        heap = [(t, a, a + 1) for a in range(m - 1) if (t := meeting(a, 0.0)) < np.inf]
        heapq.heapify(heap)
        penalties, n_pools, alive = [0.0], [m], m
        while heap:
            at, a, b = heapq.heappop(heap)
            if parent[a] >= 0 or parent[b] >= 0:
                continue
            if at > penalties[-1] * (1 + _ROUNDING):
                penalties.append(at)
                n_pools.append(alive)
            c, alive = len(w), alive - 1
            n_pools[-1] = alive
            w.append(w[a] + w[b])
            y.append(y[a] + y[b])
            left.append(left[a])
            right.append(right[b])
            down.append(down[a])
            up.append(up[b])
            born.append(len(penalties) - 1)
            dead.append(0)
            parent.append(-1)
            for old in (a, b):
                parent[old], dead[old] = c, len(penalties) - 1
            if left[c] >= 0:
                right[left[c]] = c
                if (t := meeting(left[c], at)) < np.inf:
                    heapq.heappush(heap, (t, left[c], c))
            if right[c] >= 0:
                left[right[c]] = c
                if (t := meeting(c, at)) < np.inf:
                    heapq.heappush(heap, (t, c, right[c]))
        ended = np.array(parent)
        return cls(
            penalties=np.array(penalties),
            n_pools=np.array(n_pools),
            weight=np.array(w),
            positive=np.array(y),
            slope=np.array(down, dtype=np.float64) - up,
            born=np.array(born),
            dead=np.where(ended < 0, len(penalties), dead),
            parent=ended,
            first=first,
        )

    def bic(self) -> FloatArray:
        """BIC of each model, (T,); inf if its number of pieces excludes it."""
        m, size = int(self.first[-1]) + 1, np.log(max(float(self.weight[self.parent < 0].sum()), 1.0))
        # No model is nearer to the outcomes than the first, and the last is isotonic regression.
        best, last = (-2 * self._likelihood(which, 0.0).sum() for which in (slice(0, m), self.parent < 0))
        ruled_out = best + size * self.n_pools > last + size * self.n_pools[-1] + 2 * _NEGLIGIBLE
        begin = int(np.argmin(ruled_out))
        found = np.zeros(len(self.penalties) + 1)
        since = np.maximum(self.born, begin)
        still, moving = (np.flatnonzero(kind & (self.dead > since)) for kind in (self.slope == 0, self.slope != 0))
        constant = self._likelihood(still, 0.0)
        np.add.at(found, since[still], constant)
        np.add.at(found, self.dead[still], -constant)
        found = np.cumsum(found)[:-1]
        length = (self.dead - since)[moving]
        block = np.cumsum(length) // _TILE
        for part in np.split(np.arange(len(moving)), np.flatnonzero(np.diff(block)) + 1):
            piece = np.repeat(moving[part], length[part])
            before = np.cumsum(length[part]) - length[part]
            model = np.arange(len(piece)) - np.repeat(before, length[part]) + since[piece]
            terms = self._likelihood(piece, self.penalties[model])
            found += np.bincount(model, terms, minlength=len(found))
        return np.where(np.arange(len(found)) >= begin, -2 * found + size * self.n_pools, np.inf)

    def _likelihood(self, pieces: Any, penalty: FloatArray | float) -> FloatArray:
        """Log-likelihood of the outcomes in some pieces, at their values for a penalty."""
        from scipy.special import xlog1py, xlogy

        w, y = self.weight[pieces], self.positive[pieces]
        value = np.clip((y + penalty * self.slope[pieces]) / w, 0.0, 1.0)
        return np.asarray(xlogy(y, value) + xlog1py(w - y, -value))

    def mean(self, penalties: FloatArray, model_weights: FloatArray) -> FloatArray:
        """Weighted mean of the models' maps at each distinct score, (n,)."""
        once, steep = (np.concatenate([[0.0], np.cumsum(v)]) for v in (model_weights, model_weights * penalties))
        share, pull = (v[self.dead] - v[self.born] for v in (once, steep))
        value = (self.positive * share + self.slope * pull) / self.weight
        out = value.tolist()
        parent = self.parent.tolist()
        for i in range(len(out) - 1, -1, -1):  # the later and the earlier state of a piece
            if parent[i] >= 0:
                out[i] += out[parent[i]]
        return np.array(out)[self.first]
