"""`RowTimes`: arrival times of rows, thinned if there are many."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..data.printing import time_text
from .periods import Times, read_time, written_time

#: Maximum number of times kept, in total and from one batch.
_MOST, _OF_A_BATCH = 511, 255


_MIDNIGHT = dt.time()


def _comparable(time: Any) -> Any:
    """A number, or a date as the beginning of its day; None for a time with a zone, which is parsed later."""
    if isinstance(time, dt.datetime):
        return time if time.tzinfo is None else None
    return dt.datetime.combine(time, _MIDNIGHT) if isinstance(time, dt.date) else time


class RowTimes:
    """Row numbers with their arrival times, in order; times do not decrease, those with a zone as instants."""

    def __init__(self, last: Any = None) -> None:
        self._kept: list[tuple[int, Any]] = [] if last is None else [(0, last)]

    @property
    def last(self) -> Any:
        """Time of the last row with a time; None if there is none."""
        return self._kept[-1][1] if self._kept else None

    def at(self, rows: int) -> Any:
        """Time of a row, counted from 1, or of the last earlier row whose time was kept; None without times."""
        known = [time for n, time in self._kept if n <= rows]
        return known[-1] if known else self._kept[0][1] if self._kept else None

    def read(self, time: Any, n: int) -> list[tuple[int, Any]]:
        """Rows of a batch of n, counted from 1, and their times; a subset of many. ValueError if times decrease."""
        if time is None:
            return []
        before = self.last
        if before is not None and type(time) in (int, float, dt.date, dt.datetime):
            now, last_one = _comparable(time), _comparable(before)
            if now is not None and type(now) is type(last_one) and now >= last_one:  # what is said below, in less time
                return [(n, now.date() if isinstance(now, dt.datetime) and now.time() == _MIDNIGHT else time)]
        single = isinstance(time, (str, int, float, dt.date, np.generic))
        times = Times.read([time] * n if single else time, n)
        if not n:
            return []
        instants = times.instants
        if (np.diff(instants) < 0).any():
            row = int(np.argmax(np.diff(instants) < 0)) + 1
            raise ValueError(f"time must not decrease; row {row} is before row {row - 1}: sort the rows")
        if before is not None:
            last = Times.read([before], 1)
            if last.kind != times.kind:
                raise ValueError(f"time must hold {last.kind}, as in earlier batches; got {times.kind}")
            if instants[0] < last.instants[0]:
                raise ValueError(f"time must not decrease; got {time_text(times.at(0))} after {time_text(before)}")
        some = np.unique(np.linspace(0, n - 1, min(n, _OF_A_BATCH)).astype(np.intp)).tolist()
        return [(row + 1, times.at(row)) for row in some]

    def keep(self, rows: Sequence[tuple[int, Any]]) -> None:
        """Store rows and their times; if there are too many, only every other one and the last."""
        self._kept += rows
        while len(self._kept) > _MOST:
            self._kept = self._kept[(len(self._kept) - 1) % 2 :: 2]

    def to_list(self) -> list[Any]:
        """The state, for JSON."""
        return [[n, *written_time(time)] for n, time in self._kept]

    @classmethod
    def from_list(cls, state: Sequence[Any]) -> RowTimes:
        """Restore the state from a list."""
        found = cls()
        found._kept = [(int(n), read_time(*kind)) for n, *kind in state]
        return found
