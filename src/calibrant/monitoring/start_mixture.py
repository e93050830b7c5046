"""`StartMixture`: wealth of bets that begin at every row, to detect a change whenever it occurs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..data.types import AnyArray, FloatArray, IntArray
from ..significance.evalue import StatedRows

#: Alternatives: log-odds ``a + b z`` instead of the predicted z.
OFFSETS, SLOPES = (-1.2, -0.6, -0.3, -0.15, 0.15, 0.3, 0.6, 1.2), (0.5, 0.7, 0.85, 1.2, 1.45, 2.0)
_A = np.array([*OFFSETS, *(0.0 for _ in SLOPES)])
_B = np.array([*(1.0 for _ in OFFSETS), *SLOPES])
_PAIRS = tuple(zip(_A.tolist(), (_B - 1).tolist(), strict=True))
_TOGETHER = 1 << 13
#: Number of bets up to which weights of a monitor without a horizon are about equal.
_EARLY = 1000
_ARRAYS = ("log_parts", "won", "lowest", "lowest_at")


class StartMixture:
    r"""Bets on a few fixed alternatives, each begun at every row with a small part of the wealth.

    With :math:`R_\theta \leftarrow (R_\theta + w_n) \, q_\theta(y_n) / p(y_n)` the wealth after n bets is the mean of
    :math:`R_\theta` plus :math:`1 - \sum w`, a nonnegative martingale starting at 1 if outcomes follow p. Weights w are
    1/N for a horizon of N bets, else ``v(n - 1) - v(n)`` with ``v(n) = 1 / (1 + log(1 + n / 1000))``, which is about
    ``1 / (n log² n)``.

    Attributes
    ----------
    horizon : int or None
    n_bets : int
    log_parts : ndarray of shape (E,)
        Logarithm of each alternative's R; ∞ once an outcome had predicted probability 0.
    won, lowest : ndarray of shape (E,)
        Logarithm of the product of each alternative's likelihood ratios, and its minimum so far.
    lowest_at : ndarray of int, shape (E,)
        Number of bets at the minimum, from where on this alternative fits.
    largest : float
        Largest weight so far.
    """

    def __init__(self, horizon: int | None) -> None:
        self.horizon, self.n_bets, self.largest = horizon, 0, 0.0
        self.log_parts: FloatArray = np.full(_A.size, -np.inf)
        self.won: FloatArray = np.zeros(_A.size)
        self.lowest: FloatArray = np.zeros(_A.size)
        self.lowest_at: IntArray = np.zeros(_A.size, dtype=np.int64)

    def path(
        self,
        scores: FloatArray,
        happened: AnyArray,
        weights: FloatArray | None = None,
        group_starts: IntArray | None = None,
    ) -> FloatArray:
        """Bet on rows in order; return the log wealth after each bet, (1, n).

        A row's log ratio is multiplied by its weight over the largest so far: a power of at most 1 is at most 1 on
        average. Rows of one group are one bet, with the mean of their ratios.
        """
        stated = StatedRows.of(scores, happened, weights, self.largest)
        n = scores.size
        begins = np.arange(n) if group_starts is None else group_starts
        start = 0
        parts: list[FloatArray] = [np.empty(0)]
        while start < begins.size:
            stop = min(begins.size, start + _TOGETHER)
            rows = slice(int(begins[start]), int(begins[stop]) if stop < begins.size else n)
            shift = _A[:, None] + (_B - 1)[:, None] * stated.z[rows]
            inner = None if group_starts is None else begins[start:stop] - rows.start
            parts.append(self._bets(stated.log_ratios(rows, shift, inner)))
            start = stop
        self.largest = float(stated.most[-1]) if n else self.largest
        return np.concatenate(parts)[None]

    def _bets(self, ratio: FloatArray) -> FloatArray:
        """Bet with log ratios (E, n), and return the log wealth after each."""
        n = np.arange(self.n_bets + 1, self.n_bets + ratio.shape[1] + 1)
        total = np.cumsum(ratio, axis=1)
        before = np.concatenate([np.zeros((_A.size, 1)), total[:, :-1]], axis=1)
        with np.errstate(divide="ignore"):
            given, left = np.log(self._given(n)), np.log(self._left(n))
        entered = np.concatenate([self.log_parts[:, None], given - before], axis=1)
        parts = total + np.logaddexp.accumulate(entered, axis=1)[:, 1:]
        won = self.won[:, None] + total
        least = np.argmin(won, axis=1)
        low = won[np.arange(_A.size), least]
        lower = low < self.lowest
        self.lowest = np.where(lower, low, self.lowest)
        self.lowest_at = np.where(lower, n[least], self.lowest_at)
        self.log_parts, self.won, self.n_bets = parts[:, -1], won[:, -1], int(n[-1])
        with np.errstate(invalid="ignore"):
            mean = np.logaddexp.reduce(parts, axis=0) - math.log(_A.size)
        return np.asarray(np.logaddexp(mean, left))

    def one(self, score: float, *, happened: bool) -> float:
        """Bet on one row of weight 1, and return the log wealth: as :meth:`path`, without arrays."""
        n = self.n_bets = self.n_bets + 1
        self.largest = max(self.largest, 1.0)
        power = 1.0 / self.largest
        certain = score in (0.0, 1.0)
        z = 0.0 if certain else math.log(score) - math.log1p(-score)
        stated = _log1p_exp(z)
        given = float(self._given(n))
        log_given, left = (math.log(given) if given > 0 else -math.inf), float(self._left(n))
        parts, won, total = self.log_parts.tolist(), self.won.tolist(), -math.inf
        for i, (a, slope) in enumerate(_PAIRS):
            if certain:
                ratio = 0.0 if happened == (score == 1.0) else math.inf
            else:
                shift = a + slope * z
                ratio = power * ((shift if happened else 0.0) - (_log1p_exp(z + shift) - stated))
            parts[i] = _log_sum(parts[i], log_given) + ratio
            won[i] += ratio
            if won[i] < self.lowest[i]:
                self.lowest[i], self.lowest_at[i] = won[i], n
            total = _log_sum(total, parts[i])
        self.log_parts, self.won = np.array(parts), np.array(won)
        return _log_sum(total - math.log(len(parts)), math.log(left) if left > 0 else -math.inf)

    def _given(self, n: Any) -> Any:
        """Weight that enters before bet n."""
        if self.horizon is not None:
            return np.where(n <= self.horizon, 1 / self.horizon, 0.0)
        return np.maximum(self._left(n - 1) - self._left(n), 0.0)

    def _left(self, n: Any) -> Any:
        """Weight that has not entered before or at bet n."""
        return np.maximum(1 - n / self.horizon, 0.0) if self.horizon is not None else 1 / (1 + np.log1p(n / _EARLY))

    @property
    def since(self) -> int:
        """Number of bets before the change, according to the best-fitting alternative."""
        return int(self.lowest_at[np.argmax(self.won - self.lowest)])

    def to_dict(self) -> dict[str, Any]:
        """The state, for JSON."""
        arrays = {
            name: [_written(v) for v in getattr(self, name).tolist()]
            for name in ("log_parts", "won", "lowest", "lowest_at")
        }
        return {"horizon": self.horizon, "n_bets": self.n_bets, "largest": self.largest, **arrays}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> StartMixture:
        """Restore the state from a dictionary; KeyError, TypeError or ValueError if it is invalid."""
        found = cls(None if state["horizon"] is None else int(state["horizon"]))
        found.n_bets, found.largest = int(state["n_bets"]), float(state["largest"])
        for name in _ARRAYS:
            values = np.array(state[name], dtype=getattr(found, name).dtype)
            if values.shape != _A.shape or np.isnan(values.astype(float)).any():
                raise ValueError(f"{name} must hold {_A.size} numbers")
            setattr(found, name, values)
        if found.n_bets < 0 or (found.lowest > found.won).any() or (found.lowest > 0).any():
            raise ValueError("numbers of bets contradict each other")
        return found


def _written(value: float) -> float | str:
    """Convert a number to a value that JSON supports."""
    return value if math.isfinite(value) else str(value)


def _log1p_exp(value: float) -> float:
    return value + math.log1p(math.exp(-value)) if value > 0 else math.log1p(math.exp(value))


def _log_sum(one: float, other: float) -> float:
    """Logarithm of the sum of exponentials."""
    high, low = (one, other) if one > other else (other, one)
    return high if low == -math.inf or high == math.inf else high + math.log1p(math.exp(low - high))
