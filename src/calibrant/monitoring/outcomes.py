"""Outcomes of unlabelled rows: their probabilities from posterior curves of labelled rows, and draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..data.types import FloatArray
from ..measure.drawn_curve import DrawnCurves, ReadCurves
from .performance_metrics import DecidedRows, Metric, Reader

#: Number of probabilities drawn at once, and maximum number of rows used for draws.
_TOGETHER, MOST_ROWS = 1 << 20, 50_000


@dataclass(frozen=True, eq=False)
class OutcomeCurves:
    """Drawn curves of the classes, R per class.

    Attributes
    ----------
    columns : tuple of int
        The class of each curve: all, or one of two.
    curves : tuple of DrawnCurves
    n_draws : int
    ratio : ndarray of shape (K,) or None
        New base rates over old ones.
    ratios : ndarray of shape (R, K) or None
        The same for each draw, if the base rates are estimated.
    """

    columns: tuple[int, ...]
    curves: tuple[DrawnCurves, ...]
    n_draws: int
    ratio: FloatArray | None = None
    ratios: FloatArray | None = None

    def read(self, probs: FloatArray) -> ReadOutcomes:
        """Evaluate curves at rows with probabilities (n, K)."""
        places = [curve.read(probs[:, k]) for k, curve in zip(self.columns, self.curves, strict=True)]
        return ReadOutcomes(self, places)


@dataclass(frozen=True, eq=False)
class ReadOutcomes:
    """Rows on the curves of the classes."""

    by: OutcomeCurves
    places: Sequence[ReadCurves]

    def of(self, draws: slice) -> FloatArray:
        """Probabilities of outcomes (d, n, K) from some draws."""
        ratios = self.by.ratio if self.by.ratios is None else self.by.ratios[draws, None]
        return self._together([place.of(draws) for place in self.places], ratios)

    def mean(self) -> FloatArray:
        """Probabilities of outcomes (1, n, K) from the mean curve."""
        return self._together([place.mean()[None] for place in self.places], self.by.ratio)

    def _together(self, each: Sequence[FloatArray], ratio: FloatArray | None) -> FloatArray:
        if len(each) == 1:
            second = self.by.columns[0]
            out = np.empty((*each[0].shape, 2))
            out[..., second], out[..., 1 - second] = each[0], 1 - each[0]
        else:
            out = np.stack(each, axis=-1)
        if ratio is not None:
            out *= ratio
        if ratio is not None or len(each) > 1:
            total = out.sum(axis=-1, keepdims=True)
            out = np.divide(out, total, out=np.full(out.shape, 1 / out.shape[-1]), where=total > 0)
        return out


def values_drawn(
    rows: DecidedRows, by: OutcomeCurves, metrics: Sequence[Metric], design: float, most: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Expected values of metrics (M,), and draws (R, M) of the values that labels would give.

    With many rows, draws use a subset, and the dispersion of outcomes is scaled to that of all rows.
    """
    n = len(rows.weights)
    value = values_of([metric.of(rows) for metric in metrics], by.read(rows.probs).mean())[0]
    few = rows.some(np.sort(rng.choice(n, most, replace=False))) if n > most else rows
    places, read = by.read(few.probs), [metric.of(few) for metric in metrics]
    middle = values_of(read, places.mean())
    spread = np.sqrt(design * len(few.weights) / n)
    drawn = []
    for draws in _tiles(by.n_draws, few.probs.size):
        likely = places.of(draws)
        expected = values_of(read, likely)
        outcomes = values_of(read, _outcomes(likely, rng))
        # Where an outcome may cost infinitely much, whether it does is all that counts.
        known = np.isfinite(middle) & np.isfinite(expected) & np.isfinite(outcomes)
        around = (expected, np.broadcast_to(middle, expected.shape)), (outcomes, expected)
        curve, rest = (np.subtract(a, b, out=np.zeros(expected.shape), where=known) for a, b in around)
        drawn.append(np.where(known, value + curve + spread * rest, outcomes))
    return value, np.concatenate(drawn)


def _tiles(n_draws: int, size: int) -> Iterator[slice]:
    step = max(1, _TOGETHER // size)
    for a in range(0, n_draws, step):
        yield slice(a, min(a + step, n_draws))


def values_of(readers: Sequence[Reader], q: FloatArray) -> FloatArray:
    """Values (R, M) of metrics, given probabilities of outcomes (R, n, K)."""
    return np.stack([read(q) for read in readers], axis=-1)


def _outcomes(q: FloatArray, rng: np.random.Generator) -> FloatArray:
    """One outcome drawn for each row, (d, n, K)."""
    up = q.cumsum(axis=-1)
    up /= up[..., -1:]
    below = (rng.random(q.shape[:-1])[..., None] < up).astype(np.float64)
    below[..., 1:] -= below[..., :-1].copy()
    return below
