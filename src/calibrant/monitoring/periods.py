"""Times of rows, and the periods into which they are divided."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..data.checks import check_choice, check_int
from ..data.convert import to_array
from ..data.printing import Time, time_texts
from ..data.types import AnyArray, IntArray

#: Calendar periods, finest first: their unit in NumPy, and their length in this unit.
CALENDAR = {
    "hour": ("h", 1),
    "day": ("D", 1),
    "week": ("D", 7),
    "month": ("M", 1),
    "quarter": ("M", 3),
    "year": ("Y", 1),
}
#: Days from the Monday before 1970-01-01 to 1970-01-01.
_MONDAY = 3
#: Maximum number of periods of "auto", and minimum number of rows in the median one.
MOST_PERIODS, LEAST_ROWS = 60, 50
_SECOND, _DAY, _MOST_NAMED, _CLOSE = 1_000_000, 86_400_000_000, 10_000, 1_000_000
_TILE = 1 << 16
#: Mean length of runs of equal numbers from which run-length encoding is used.
_RUNS = 16
#: Offsets from UTC that differ by more are not those of one zone in summer and winter.
_APART = 2 * 3_600_000_000


class TimeInterval(NamedTuple):
    """An interval between two times.

    Attributes
    ----------
    low, high : date, datetime or number
        The earlier and the later time.

    See Also
    --------
    calibrant.results.Change : A change with such an interval.

    Examples
    --------
    >>> from calibrant.results import TimeInterval
    >>> TimeInterval(3, 7).high
    7
    """

    low: Time
    high: Time


@dataclass(frozen=True, eq=False)
class Times:
    """Times of rows, as numbers; dates are microseconds since 1970 in local time.

    Attributes
    ----------
    distinct : ndarray
        64-bit integers, or floats for non-integer numbers. If all times are days: each day once.
    places : ndarray of shape (r,) or None
        Index into ``distinct`` per row, or per run of rows with the same time; None: one entry per row, in order.
    runs : ndarray of shape (r,) or None
        Number of rows of each run; None: ``places`` has one entry per row.
    dated : bool
        Whether the times are dates.
    ahead : ndarray of shape (n,) or None
        Microseconds by which the local time of each row is ahead of UTC; None without time zones.
    """

    distinct: AnyArray
    places: IntArray | None
    dated: bool
    runs: IntArray | None = None
    ahead: IntArray | None = None

    @classmethod
    def read(cls, time: Any, n: int) -> Times:
        """Check the ``time`` argument: one time per row, none missing, all of one type."""
        if isinstance(time, Times):
            return time
        if time is None or isinstance(time, (str, bytes)):
            raise TypeError(f"time must be a column with one time per row; got {time!r}")
        try:
            array, ahead = _plain(time)
        except OverflowError as error:
            raise ValueError(f"time must hold dates of the years 1 to 9999; {error}") from None
        if array.ndim != 1 or len(array) != n:
            raise ValueError(f"time must have one value per row ({n}); got shape {array.shape}")
        if array.dtype.kind in "OUS":
            array, ahead = _of_objects(array.tolist())
        if array.dtype.kind == "M":
            return replace(cls._of_dates(_present(array, np.isnat(array))), ahead=ahead)
        if array.dtype.kind in "iu":
            return cls(array.astype(np.int64), None, dated=False)
        if array.dtype.kind == "f":
            return cls(_present(array, ~np.isfinite(array)).astype(np.float64), None, dated=False)
        raise TypeError(f"time must hold dates, datetimes or numbers; got values of kind {array.dtype}")

    @classmethod
    def _of_dates(cls, dates: AnyArray) -> Times:
        if np.datetime_data(dates.dtype) == ("D", 1):
            days = dates.view(np.int64)
        else:
            each = dates.astype("M8[us]").astype(np.int64)
            if _within_days(each):
                return cls(each, None, dated=True)
            days = each // _DAY
        if not days.size:
            return cls(days, None, dated=True)
        values, runs = _runs_of(days)
        found, places = compact(values)
        return cls(found * _DAY, places, dated=True, runs=runs)

    @property
    def size(self) -> int:
        """Number of rows."""
        if self.runs is not None:
            return int(self.runs.sum())
        return int((self.distinct if self.places is None else self.places).size)

    @cached_property
    def values(self) -> AnyArray:
        """Time of each row, (n,)."""
        return self.of_rows(self.distinct)

    @property
    def instants(self) -> AnyArray:
        """Time of each row in UTC, or as it is without a zone, (n,): the order of rows."""
        return self.values if self.ahead is None else self.values - self.ahead

    @property
    def kind(self) -> str:
        """Numbers, or dates with or without a time zone: only times of one kind can be compared."""
        return "numbers" if not self.dated else f"dates with{'out' if self.ahead is None else ''} a time zone"

    def of_rows(self, each: AnyArray) -> AnyArray:
        """Values per row from values ``each`` of the distinct times."""
        if self.places is None:
            return each
        return each[self.places] if self.runs is None else np.repeat(each[self.places], self.runs)

    def where(self, some: AnyArray) -> Times:
        """Times of some rows."""
        ahead = None if self.ahead is None else self.ahead[some]
        if self.places is None:
            return Times(self.distinct[some], None, self.dated, ahead=ahead)
        mine = self.of_rows(np.arange(self.distinct.size))[some]
        if not mine.size:
            return Times(self.distinct[mine], mine, self.dated, ahead=ahead)
        values, runs = _runs_of(mine)
        found, places = compact(values)
        return Times(self.distinct[found], places, self.dated, runs, ahead)

    def some(self, at_most: int) -> AnyArray:
        """Times of about ``at_most`` evenly spaced rows."""
        step = max(self.size // at_most, 1)
        if self.places is None:
            return self.distinct[::step]
        rows = np.arange(0, self.size, step)
        return self.distinct[
            self.places[rows if self.runs is None else np.searchsorted(self.runs.cumsum(), rows, "right")]
        ]

    def shown(self, value: Any) -> Time:
        """A time as it is shown in results."""
        return _shown(value, self.dated)

    def at(self, row: int) -> Time:
        """The time of a row, with the offset of its zone if it has one."""
        local = self.shown(self.values[row])
        if self.ahead is None:
            return local
        zone = dt.timezone(dt.timedelta(microseconds=int(self.ahead[row])))
        return dt.datetime.fromisoformat(str(local)).replace(tzinfo=zone)


def _shown(value: Any, dated: bool) -> Time:
    if not dated:
        return float(value) if isinstance(value, (float, np.floating)) else int(value)
    at = np.datetime64(int(value), "us").astype(dt.datetime)
    if not isinstance(at, dt.datetime):
        raise ValueError("time must hold dates of the years 1 to 9999")
    return at.date() if at.time() == dt.time() else at


def _plain(time: Any) -> tuple[AnyArray, IntArray | None]:
    """Times as an array, and how far they are ahead of UTC; dates of a column with a time zone as local time."""
    import narwhals as nw

    series = nw.from_native(time, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        if isinstance(time, (list, tuple)):
            out = np.empty(len(time), dtype=object)
            out[:] = time
            return out, None
        return to_array(time, "time")[0], None
    kind, ahead = series.dtype, None
    if series.null_count():
        row = int(np.argmax(series.is_null().to_numpy()))
        raise ValueError(f"time must have no missing values; row {row} is null")
    if kind == nw.Datetime and getattr(kind, "time_zone", None) is not None:
        utc = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        series = series.dt.replace_time_zone(None)
        ahead = (_microseconds(series) - _microseconds(utc)).astype(np.int64)
    if kind in (nw.Datetime, nw.Date):
        return _microseconds(series), ahead
    if kind.is_numeric():
        return to_array(time, "time")[0], None
    return np.array([*series.to_list(), None], dtype=object)[:-1], None


def _microseconds(series: Any) -> AnyArray:
    return np.asarray(series.to_numpy(), dtype="M8[us]")


def _of_objects(values: list[Any]) -> tuple[AnyArray, IntArray | None]:
    """Dates, datetimes, ISO 8601 strings and numbers as one array of dates or of numbers; how far ahead of UTC."""
    if all(isinstance(v, (int, float, np.integer, np.floating)) and not isinstance(v, bool) for v in values):
        return np.array(values), None
    found, ahead, zones = np.empty(len(values), "M8[us]"), np.zeros(len(values), np.int64), dict[str, tuple[int, str]]()
    known: dict[Any, Any] = {}
    for row, value in enumerate(values):
        try:
            if getattr(value, "tzinfo", None) is not None:  # datetimes of other zones, or of another fold, may be equal
                at, zone, ahead[row] = _one(value)
            else:
                at, zone, ahead[row] = known[value] if value in known else known.setdefault(value, _one(value))
        except (ValueError, TypeError, OverflowError):
            missing = value is None or value != value
            raise (ValueError if missing or isinstance(value, str) else TypeError)(
                f"time must have no missing values; row {row} is {value!r}"
                if missing
                else f"time must hold dates, datetimes or numbers, or texts such as 2026-05-09; row {row} is {value!r}"
            ) from None
        # Offsets from UTC differ in one zone, between summer and winter.
        zones.setdefault("UTC" if zone.startswith("UTC") else zone, (row, zone))
        if len(zones) > 1:
            (first, one), (other_row, other) = zones.values()
            raise ValueError(
                f"time must be in one time zone; row {first} is in {one or 'none'}, row {other_row} in "
                f"{other or 'none'}: convert them first"
            )
        found[row] = at
    if ahead.size and int(np.ptp(ahead)) > _APART:
        west, east = int(ahead.argmin()), int(ahead.argmax())
        raise ValueError(
            f"time must be in one time zone; row {west} is {_offset(ahead[west])} UTC, row {east} "
            f"{_offset(ahead[east])} UTC: convert them first"
        )
    return found, None if zones.keys() <= {""} else ahead


def _offset(microseconds: Any) -> str:
    hours = int(microseconds) / 3.6e9
    return f"{abs(hours):g} hours {'ahead of' if hours >= 0 else 'behind'}"


def _one(value: Any) -> tuple[np.datetime64, str, int]:
    """A date in local time, its time zone, and microseconds ahead of UTC."""
    if isinstance(value, str):
        value = dt.datetime.fromisoformat(value.strip())
    if isinstance(value, np.datetime64):
        return value.astype("M8[us]"), "", 0
    if not isinstance(value, dt.date) or value != value:  # NaT is a date
        raise TypeError
    if not isinstance(value, dt.datetime):
        return np.datetime64(value, "us"), "", 0
    ahead = (value.utcoffset() or dt.timedelta()) // dt.timedelta(microseconds=1)
    zone = "" if value.tzinfo is None else str(value.tzinfo)
    return np.datetime64(value.replace(tzinfo=None), "us"), zone, ahead


def _present(array: AnyArray, missing: AnyArray) -> AnyArray:
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f"time must have no missing values; row {row} is {array[row]}")
    return array


@dataclass(frozen=True, eq=False)
class Periods:
    """Periods of rows.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        Period of each row.
    every : str or int
        Length of a period: a name of :data:`CALENDAR`, or a number of rows.
    names : tuple of str
    starts, ends : tuple of times
        Times of the first and last row in each.
    left_out : tuple of str
        Calendar periods without rows between the first and the last.
    """

    codes: IntArray
    every: str | int
    names: tuple[str, ...]
    starts: tuple[Time, ...]
    ends: tuple[Time, ...]
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, times: Times, every: Any, needed: Callable[[], int]) -> Periods:
        """Divide at calendar boundaries, or after a number of rows; ``needed()`` rows are enough for "auto"."""
        if isinstance(every, str) and every == "auto":
            every = _chosen(times, needed())
        if not isinstance(every, str):
            rows = check_int("every", every, 1, instead="the name of a period, or ")
            return cls._by_rows(times, min(rows, times.size))
        check_choice("every", every, ("auto", *CALENDAR), instead="a number of rows, or ")
        if not times.dated:
            raise ValueError(f"every={every!r} needs dates, and time holds numbers: pass a number of rows")
        return cls._by_calendar(times, every)

    def of_rows(self, times: Times, rows: IntArray) -> Periods:
        """Periods of some rows, which begin and end at the times of these rows."""
        found, codes = compact(self.codes[rows])
        low, high = ends_of(times.values, codes, found.size)
        starts, ends = (tuple(map(times.shown, some)) for some in (low, high))
        absent = np.setdiff1d(np.arange(found[0], found[-1]), found)
        names, missing = ([self.names[i] for i in some.tolist()] for some in (found, absent))
        between = [name for name in self.left_out if names[0] < name < names[-1]]
        return Periods(codes, self.every, tuple(names), starts, ends, tuple(sorted([*missing, *between])))

    @classmethod
    def _by_calendar(cls, times: Times, every: str) -> Periods:
        at, codes = compact(calendar(times.distinct, every))
        names, absent = _named(at, every)
        starts, ends = (tuple(map(times.shown, some)) for some in ends_of(times.distinct, codes, at.size))
        return cls(times.of_rows(codes), every, names, starts, ends, absent)

    @classmethod
    def of_starts(cls, times: Times, every: str) -> tuple[Periods, tuple[AnyArray, AnyArray]]:
        """Calendar periods from their start times, in order; and the first and last time of each."""
        at = calendar(times.values, every)
        if not (np.diff(at) > 0).all():
            raise ValueError("time must have periods of one kind, in order")
        last = _begin(at + 1, every) - (_SECOND if every == "hour" else _DAY)
        names, absent = _named(at, every)
        starts, ends = (tuple(map(times.shown, some)) for some in (times.values, last))
        return cls(np.arange(at.size), every, names, starts, ends, absent), (times.values, last)

    @classmethod
    def _by_rows(cls, times: Times, every: int) -> Periods:
        """Periods of ``every`` rows; equal times stay together, and remaining rows go to the last period."""
        order = np.argsort(times.values, kind="stable")
        ordered = times.values[order]
        n, found, start = len(order), [], 0
        while n - start >= 2 * every:
            start = int(np.searchsorted(ordered, ordered[start + every - 1], side="right"))
            if n - start >= every:
                found.append(start)
        cuts, codes = np.array(found, dtype=np.intp), np.empty(n, dtype=np.intp)
        codes[order] = np.searchsorted(cuts, np.arange(n), side="right")
        low, high = ends_of(times.values, codes, cuts.size + 1)
        starts, ends = (tuple(map(times.shown, some)) for some in (low, high))
        texts = time_texts([*starts, *ends])
        pairs = zip(texts[: len(starts)], texts[len(starts) :], strict=True)
        names = [a if a == b else f"{a} to {b}" for a, b in pairs]
        return cls(codes, every, tuple(names), starts, ends)


def _chosen(times: Times, needed: int) -> str | int:
    """The finest calendar period with enough rows in the median and not too many periods; else a number of rows."""
    n = times.size
    if times.dated:
        for every in CALENDAR:
            counts = np.bincount(times.of_rows(compact(calendar(times.distinct, every))[1]))
            if 2 <= counts.size <= MOST_PERIODS and np.median(counts) >= needed:
                return every
    return max(needed, -(-n // MOST_PERIODS))


def compact(numbers: IntArray) -> tuple[IntArray, IntArray]:
    """Distinct integers, sorted, and the index of each among them; without sorting if their range is small."""
    values, runs = _runs_of(numbers)
    if runs is not None:
        found, places = compact(values)
        return found, np.repeat(places, runs)
    low, high = int(numbers.min()), int(numbers.max())
    if high - low > _CLOSE:
        found, places = np.unique(numbers, return_inverse=True)
        return found, places.reshape(-1)
    from_low = numbers - low
    seen = np.bincount(from_low) > 0
    return np.flatnonzero(seen) + low, (np.cumsum(seen) - 1)[from_low]


def _runs_of(numbers: IntArray) -> tuple[IntArray, IntArray | None]:
    """The number of each run of equal numbers and its length, if runs are long; otherwise all numbers and None."""
    first = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
    if first.size >= numbers.size // _RUNS:
        return numbers, None
    starts = np.concatenate([[0], first])
    return numbers[starts], np.diff(starts, append=numbers.size)


def _within_days(microseconds: IntArray) -> bool:
    """Whether any time is not at the beginning of a day."""
    parts = (microseconds[a : a + _TILE] for a in range(0, microseconds.size, _TILE))
    return any((part % _DAY).any() for part in parts)


def ends_of(values: AnyArray, codes: IntArray, size: int) -> tuple[AnyArray, AnyArray]:
    """Smallest and largest value of each code."""
    top = np.iinfo(np.int64) if values.dtype.kind == "i" else np.finfo(np.float64)
    low, high = np.full(size, top.max, values.dtype), np.full(size, top.min, values.dtype)
    np.minimum.at(low, codes, values)
    np.maximum.at(high, codes, values)
    return low, high


def calendar(microseconds: AnyArray, every: str) -> IntArray:
    """Number of the calendar period of each time, counted from 1970."""
    unit, many = CALENDAR[every]
    count = microseconds.view("M8[us]").astype(f"M8[{unit}]").astype(np.int64)
    return np.asarray((count + (_MONDAY if every == "week" else 0)) // many)


def _begin(number: IntArray, every: str) -> IntArray:
    """Microseconds at the beginning of calendar periods."""
    unit, many = CALENDAR[every]
    start = number * many - (_MONDAY if every == "week" else 0)
    return np.asarray(start.astype(f"M8[{unit}]").astype("M8[us]").astype(np.int64))


def _named(at: IntArray, every: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of periods, and of missing periods between them; none of the latter if the range is very long."""
    missing = np.setdiff1d(np.arange(at[0], at[-1] + 1), at) if at[-1] - at[0] < _MOST_NAMED else at[:0]
    names, absent = (tuple(period_name(int(v), every) for v in some) for some in (at, missing))
    return names, absent


def period_name(number: int, every: str) -> str:
    """A calendar period in words: 2026-05-09 14:00, 2026-05-09, week of 2026-05-04, 2026-05, 2026 Q2, 2026."""
    unit, many = CALENDAR[every]
    start = str(np.array(number * many - (_MONDAY if every == "week" else 0)).astype(f"M8[{unit}]"))
    if every == "quarter":
        return f"{start[:4]} Q{number % 4 + 1}"
    return f"{start.replace('T', ' ')}:00" if every == "hour" else f"week of {start}" if every == "week" else start


def written_time(time: Any) -> tuple[str, Any]:
    """A time for JSON, with its type."""
    return ("date", time.isoformat()) if isinstance(time, dt.date) else ("number", time)


def read_time(kind: str, text: Any) -> Any:
    """A time from JSON."""
    if kind != "date" or text is None:
        return text
    found = dt.datetime.fromisoformat(text)
    return found if "T" in text else found.date()
