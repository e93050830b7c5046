"""Numbers with standard errors over distributions, and the word that follows from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

#: Fewer mixtures than these give no standard error.
FEWEST = 5
#: A sign is taken for known at this many standard errors.
CLEAR = 2.0
HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"


@dataclass(frozen=True)
class Number:
    """A value and its standard error, NaN where there are too few mixtures for one."""

    value: float
    se: float

    def exp(self) -> Number:
        """The exponential, with the standard error of the delta method."""
        value = float(np.exp(self.value))
        return Number(value, self.se * value)

    def text(self, digits: int = 3) -> str:
        """``0.592 ± 0.013``."""
        if not np.isfinite(self.value):
            return "–"
        doubt = f" ± {self.se:.{digits}f}" if np.isfinite(self.se) else ""
        return f"{self.value:.{digits}f}{doubt}".replace("-", "−")

    def percent(self) -> str:
        """``+12.3 % ± 0.4``."""
        if not np.isfinite(self.value):
            return "–"
        doubt = f" ± {100 * self.se:.1f}" if np.isfinite(self.se) else ""
        return f"{100 * self.value:+.1f} %{doubt}".replace("-", "−")

    def beyond(self, bound: float, sign: int) -> str:
        """Whether the value lies above (``sign`` 1) or below (−1) a bound: holds, does not hold or undecided."""
        gap = sign * (self.value - bound)
        if not np.isfinite(self.se) or not abs(gap) > CLEAR * self.se:
            return UNDECIDED
        return HOLDS if gap > 0 else FAILS


@dataclass(frozen=True)
class Resampler:
    """Bootstrap of clusters of rows: rows of one cluster (twelve distributions of a mixture) are not independent."""

    clusters: np.ndarray
    resamples: int = 400
    seed: int = 0

    def __post_init__(self) -> None:
        n = int(self.clusters.max()) + 1
        rng = np.random.default_rng(self.seed)
        drawn = rng.integers(n, size=(self.resamples, n)) if n >= FEWEST else np.empty((0, n), dtype=np.int64)
        members = [np.flatnonzero(self.clusters == c) for c in range(n)]
        object.__setattr__(self, "_rows", [np.concatenate([members[c] for c in draw]) for draw in drawn])

    def __call__(self, statistic: Callable[[np.ndarray], np.ndarray], values: np.ndarray) -> tuple[np.ndarray, ...]:
        """A statistic of all rows, and of every resample (first axis)."""
        found = statistic(values)
        again = [statistic(values[rows]) for rows in self._rows]
        return found, np.stack(again) if again else np.empty((0, *found.shape))

    def medians(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Median of every column, and those of the resamples; NaN is left out."""
        found, again = self(median, values)
        return found, again

    def median(self, column: np.ndarray) -> Number:
        """Median of one column."""
        found, again = self.medians(column[:, None])
        return Number(float(found[0]), spread(again)[0])

    def mean(self, column: np.ndarray) -> Number:
        """Mean of one column; NaN is left out."""
        found, again = self(lambda v: mean(v), column[:, None])
        return Number(float(found[0]), spread(again)[0])


def spread(again: np.ndarray) -> np.ndarray:
    """Standard deviation over resamples; NaN where there are none."""
    return again.std(axis=0, ddof=1) if len(again) else np.full(again.shape[1:], np.nan)


def median(values: np.ndarray) -> np.ndarray:
    """Median of every column, NaN left out, NaN where nothing else is."""
    if not np.isnan(values).any():
        return np.median(values, axis=0)
    columns = [column[~np.isnan(column)] for column in values.T]
    return np.array([np.median(c) if c.size else np.nan for c in columns])


def mean(values: np.ndarray) -> np.ndarray:
    """Mean of every column, NaN left out, NaN where nothing else is."""
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def both(first: str, second: str) -> str:
    """Verdict on "the one and the other"."""
    if FAILS in (first, second):
        return FAILS
    return HOLDS if first == second == HOLDS else UNDECIDED


def table(header: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown; the first column to the left, the others to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
