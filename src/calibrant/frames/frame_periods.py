"""Periods of a frame's rows: each time is replaced by the start of its period."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw

from ..data.checks import check_choice
from ..data.columns import check_roles
from ..monitoring.periods import CALENDAR

_UNITS = {"hour": "1h", "day": "1d", "month": "1mo", "quarter": "1q", "year": "1y"}


def by_period(frame: Any, time: Any, every: Any, kept: str | None = None) -> Any:
    """Truncate a column of times to the start of its period, by the frame's own engine.

    ``kept``: name of a new column with the original times.
    """
    check_choice("every", every, CALENDAR)
    read = nw.from_native(frame)
    schema = read.collect_schema()
    check_roles({"time": (time,)}, schema)
    kind = schema[time]
    if kind not in (nw.Datetime, nw.Date):
        raise TypeError(f"time must hold dates or datetimes; column {time!r} holds {kind}: convert it first")
    if kind == nw.Date and every == "hour":
        raise ValueError(f"every='hour' needs datetimes; column {time!r} holds dates")
    if read.implementation.is_dask():  # which cuts to fixed lengths only
        return frame.map_partitions(by_period, time, every, kept)
    column = nw.col(time)
    begin = _monday(column) if every == "week" else column.dt.truncate(_UNITS[every])
    both = [begin.alias(time), *([] if kept is None else [column.alias(kept)])]
    return read.with_columns(*both).to_native()


def _monday(column: Any) -> Any:
    """The Monday on or before a date: engines have no common function for weeks."""
    day, weekday = column.dt.truncate("1d"), column.dt.weekday()
    found = day.dt.offset_by("-6d")
    for number in range(6, 0, -1):
        found = nw.when(weekday == number).then(day.dt.offset_by(f"-{number - 1}d")).otherwise(found)
    return found
