"""Base classes of results: their representation as a line, text, HTML, dictionary, table and figure."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar, cast

import numpy as np

from . import notebook, rooms_below
from .docs import Documented
from .libraries import to_frame
from .printing import fitted, printable
from .types import Interval
from .writing import write_page

Found = TypeVar("Found")
K = TypeVar("K")
V = TypeVar("V")
#: Maximum number of characters of a ``repr``.
WIDEST = 200
_LONGEST_PART, _LONGEST_LINE, _FEW = 60, 400, 6


class Printable(Documented):
    """Base of values that print themselves: ``repr`` has at most 200 characters; text and HTML begin with the summary.

    A subclass defines the summary, and has ``plot()`` or a reason why there is no figure; the order is fixed here.
    """

    #: Reason why there is no figure.
    _unpictured: ClassVar[str] = ""

    if TYPE_CHECKING:  # a property, or a field

        @property
        def summary(self) -> str:
            """The main finding in one or two sentences."""

    @abstractmethod
    def _shown(self) -> Iterable[tuple[str, Any]]:
        """Names and values to show, the most important first."""

    def __repr__(self) -> str:
        return one_line(type(self).__name__, self._shown())

    def __str__(self) -> str:
        return fitted("\n".join(filter(None, [printable(self.summary), self._text()])))

    def _text(self) -> str:
        """Numbers as text."""
        return "\n".join(f"{name}: {short(value, _LONGEST_LINE)}" for name, value in self._shown())

    def _repr_html_(self) -> str:
        """HTML for notebooks: the summary first, without scripts or effects outside the fragment."""
        parts = notebook.paragraph(self.summary), self._figure_html(), self._words_html()
        return notebook.fragment(*parts, name=getattr(self, "_data_name", ""))

    def _figure_html(self) -> str:
        """Figure of ``plot()`` as SVG, or the reason why there is none."""
        plot = getattr(self, "plot", None)
        try:
            with notebook.for_page():
                return notebook.note(self._unpictured) if plot is None else str(plot().to_svg())
        except (ValueError, ImportError) as error:
            return notebook.note(f"No picture: {error}.")

    def _words_html(self) -> str:
        """Numbers as HTML."""
        return notebook.preformatted(self._text())


class Result(Printable):
    """Base of immutable results, with ``to_dict()`` for JSON.

    Attributes
    ----------
    n_samples : int
        Number of rows.
    n_groups : int or None
        Number of groups of dependent rows; None if rows are treated as independent.
    n_classes : int
        Number of classes.
    classes : tuple of labels
        The labels, in column order.
    label : object
        The class whose probability is evaluated; None for the confidence.
    level : float
        Level of the intervals.
    notion : str
        The notion of calibration.
    estimator : str
        The estimator of the calibration error.
    norm : float
        The power p of the error.
    score : str
        The proper score.
    title : str
        Title of the text and of the page.
    warnings : tuple of str
        Reasons why results may be inaccurate; empty if there are none.
    audience : Audience
        Whether a function or the command made the result, so that advice names calls or options.
    """

    _fields_heading: ClassVar[str] = "Attributes"

    def _shown(self) -> Iterable[tuple[str, Any]]:
        return ((f.name, getattr(self, f.name)) for f in fields(cast(Any, self)) if f.repr)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain lists, numbers and strings for JSON (NaN and infinities as None)."""
        return {name: jsonable(value) for name, value in self._shown()}


class Tabular:
    """Base of values with rows that can be returned as a data frame."""

    #: Library of the input's data frames, and name of its scores; set by :func:`with_origin`, not part of the value.
    _library: str | None = None
    _data_name: str = ""

    @abstractmethod
    def _columns(self) -> dict[str, Any]:
        """Columns of the table, by name."""

    def to_frame(self, backend: str | None = None) -> Any:
        """Return the rows as a data frame.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            Default: the library that scores or labels came in, else the first of these that is installed. ImportError
            if none is.
        """
        columns = {name: list(values) for name, values in self._columns().items()}
        return to_frame(columns, backend or self._library, f"{type(self).__name__}.to_frame()")


def with_origin(library: str | None, found: Found, name: str = "") -> Found:
    """Return the result with the library and name of its data, for ``to_frame()`` and pages.

    These are not fields: equal numbers are equal values, whatever library they came from.
    """
    for one in found.values() if isinstance(found, dict) else [found]:
        if isinstance(one, Tabular):
            object.__setattr__(one, "_library", library)
            object.__setattr__(one, "_data_name", name)
    return found


class Table(Tabular, Result):
    """A result with rows."""

    #: Columns that only :meth:`to_frame` shows, not a notebook.
    _unseen: ClassVar[tuple[str, ...]] = ()

    #: Reason why some cells have no number.
    _blank: ClassVar[str] = ""

    def _marked(self) -> Sequence[bool]:
        """Mask of the rows that a notebook marks; none by default."""
        return ()

    def _seen(self) -> Mapping[str, Sequence[Any]]:
        """Columns shown in a notebook."""
        return {name: values for name, values in self._columns().items() if name not in self._unseen}

    def _words_html(self) -> str:
        rows = notebook.table(self._seen(), self._marked())
        why = notebook.note(f"–: {self._blank}" if self._blank and ">–<" in rows else "")
        return rows + why + notebook.folded("as text", super()._words_html())


class Section(NamedTuple):
    """Part of a page: a table by columns, some rows of which may be marked, and a note below it."""

    name: str
    columns: Mapping[str, Sequence[Any]]
    marked: Sequence[bool] = ()
    note: str = ""
    folded: bool = False

    def html(self, level: int = 4) -> str:
        """Heading, table and note; collapsed under its name if folded."""
        inside = notebook.table(self.columns, self.marked) + notebook.note(self.note)
        return notebook.folded(self.name, inside) if self.folded else notebook.heading(self.name, level) + inside


class LazyMapping(Mapping[K, V]):
    """Mapping whose values are computed once, on first access; the functions hold no rows and have their own seeds."""

    def __init__(self, makers: Mapping[K, Callable[[], V]]) -> None:
        self._makers = dict(makers)
        self._made: dict[K, V] = {}

    def __getitem__(self, name: K) -> V:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[K]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self._makers)!r})"

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


class WithPage:
    """Base of values with a page."""

    def to_html(self, path: str | PathLike[str] | None = None, *, name: str | None = None) -> str:
        """Return one self-contained HTML page, and write it to a file if a path is given. Needs the extra ``html``.

        Parameters
        ----------
        path : str or path-like, optional
            File to write the page to.
        name : str, optional
            Name of the data, shown with date and version at the foot of the page; default: the name of the column of
            scores, if they came in one.

        Returns
        -------
        str
        """
        return write_page(self._page(getattr(self, "_data_name", "") if name is None else name), path)

    def _page(self, name: str) -> str:
        """Text of the page; ``name`` is that of the data."""
        return rooms_below.page(self, name)


class Paged(WithPage, Table):
    """A result with an HTML page: a summary, then tables, with the details collapsed."""

    if TYPE_CHECKING:  # a field, or the same for all

        @property
        def title(self) -> str:
            """Title of the page."""

    @abstractmethod
    def _sections(self) -> list[Section]:
        """Tables of the page, the most important first."""

    def _words_html(self, level: int = 4) -> str:
        text = notebook.folded("as text", notebook.preformatted(self._text()))
        return "".join(section.html(level) for section in self._sections()) + text


class Drawn(Printable):
    """Base of values that can be drawn by a display of :mod:`calibrant.plot`, which they name."""

    display: ClassVar[str]

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the result on given axes or a new figure, and return the display. Needs matplotlib (extra ``plot``).

        The options are those of the display's ``plot``.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default those of a new figure.
        **options
            Options of the display's ``plot``.
        """
        return rooms_below.display(self.display).from_result(self, ax, **options)


class Picture(Drawn, Result):
    """A result that can be drawn."""


class Measure(NamedTuple):
    """A number with its interval (NaN if there is none), and its ideal value."""

    name: str
    value: float
    interval: tuple[float, float]
    ideal: float | None = None


class MeasuresDrawn(Picture):
    """A result of several numbers that are drawn side by side."""

    display: ClassVar[str] = "IntervalDisplay"
    #: Whether all numbers have the same unit and share an axis.
    one_unit: ClassVar[bool] = True
    #: Name of the mark of each number, for a shared axis with different ideal values; and label of the axis.
    mark_name: ClassVar[str] = ""
    axis_name: ClassVar[str] = ""

    @abstractmethod
    def measured(self) -> list[Measure]:
        """Numbers to draw, in order."""


class Curve(Picture, Table):
    """A result that can be drawn, with one row per point; text and HTML show some of the rows."""

    _at_most: ClassVar[int] = 11

    def _seen(self) -> Mapping[str, Sequence[Any]]:
        columns = {name: np.asarray(values) for name, values in super()._seen().items()}
        n = min(map(len, columns.values()))
        some = np.unique(np.linspace(0, n - 1, self._at_most).round().astype(int))
        return {name: values[some].tolist() for name, values in columns.items()}

    def _text(self) -> str:
        return notebook.plain_table(self._seen())

    def _words_html(self) -> str:
        n = max(map(len, self._columns().values()))
        few = f"{self._at_most} of {n:,} points; to_frame() has all." if n > self._at_most else ""
        text = notebook.folded("as text", notebook.preformatted(self._text()))
        return notebook.table(self._seen(), self._marked()) + notebook.note(few) + text


def one_line(name: str, shown: Iterable[tuple[str, Any]]) -> str:
    """Format ``Name(first=1, …)`` with as many parts as fit; ``…`` stands for the others."""
    parts: list[str] = []
    left = WIDEST - len(name) - len("(, …)")
    for key, value in shown:
        part = f"{key}={short(value)}"
        if len(part) + 2 > left:
            parts.append("…")
            break
        left -= len(part) + 2
        parts.append(part)
    return f"{name}({', '.join(parts)})"


def short(value: Any, longest: int = _LONGEST_PART) -> str:
    """Format a value in few characters: numbers with four digits, long values by type and length."""
    value = (
        value.item()
        if isinstance(value, np.generic) or (np.ndim(value) == 0 and isinstance(value, np.ndarray))
        else value
    )
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Interval):
        return f"({_number(value.low)}, {_number(value.high)})"
    if isinstance(value, Result):
        return _number(float(value)) if hasattr(value, "__float__") else type(value).__name__
    if isinstance(value, (tuple, list)) and len(value) <= _FEW and not any(isinstance(v, Result) for v in value):
        text = f"({', '.join(map(short, value))})"
        if len(text) <= longest:
            return text
    if hasattr(value, "__len__") and not isinstance(value, str):
        return f"<{'array' if isinstance(value, np.ndarray) else type(value).__name__} of {len(value)}>"
    text = repr(value)
    if "\n" in text:  # of scikit-learn's estimators, or a frame
        text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _number(value: float) -> str:
    """Format a number with four digits, without a power of ten."""
    if 1e4 <= abs(value) < 1e12:
        return f"{value:,.0f}"
    if 0 < abs(value) < 1e-4:
        return f"{value:.6f}" if abs(value) >= 1e-6 else "<0.000001" if value > 0 else ">-0.000001"
    return f"{value:.4g}"


def plain(value: Any) -> Any:
    """Convert NumPy scalars to Python's; NaN and infinities, which JSON lacks, to None."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def jsonable(value: Any) -> Any:
    """Convert a value for JSON: results to dictionaries, dates and times to ISO 8601, other types to text."""
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(k): jsonable(v) for k, v in value.items()}
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return str(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return jsonable(value.item())
    if isinstance(value, (list, tuple, range, np.ndarray)):
        return [jsonable(v) for v in value]
    value = plain(value)
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
