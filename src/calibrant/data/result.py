"""Base classes of results: one line, readable text, HTML, a dictionary, a table, a picture. Given once."""

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
#: Characters that a ``repr`` has at most.
WIDEST = 200
_LONGEST_PART, _LONGEST_LINE, _FEW = 60, 400, 6


class Printable(Documented):
    """Base of values that show themselves: ``repr`` has at most 200 characters; text and HTML begin with the finding.

    A subclass says that in a sentence, and has ``plot()`` or says why there is no picture; the order is given once.
    """

    #: Why there is no picture.
    _unpictured: ClassVar[str] = ""

    if TYPE_CHECKING:  # a property, or a field

        @property
        def summary(self) -> str:
            """The finding in one or two sentences."""

    @abstractmethod
    def _shown(self) -> Iterable[tuple[str, Any]]:
        """Names and values to show, the most telling first."""

    def __repr__(self) -> str:
        return one_line(type(self).__name__, self._shown())

    def __str__(self) -> str:
        return fitted("\n".join(filter(None, [printable(self.summary), self._text()])))

    def _text(self) -> str:
        """Numbers, as text."""
        return "\n".join(f"{name}: {short(value, _LONGEST_LINE)}" for name, value in self._shown())

    def _repr_html_(self) -> str:
        """HTML for notebooks: the summary first, without scripts; nothing around it changes."""
        parts = notebook.paragraph(self.summary), self._figure_html(), self._words_html()
        return notebook.fragment(*parts, name=getattr(self, "_data_name", ""))

    def _figure_html(self) -> str:
        """The picture of ``plot()`` as SVG, or the reason why there is none."""
        plot = getattr(self, "plot", None)
        try:
            with notebook.for_page():
                return notebook.note(self._unpictured) if plot is None else str(plot().to_svg())
        except (ValueError, ImportError) as error:
            return notebook.note(f"No picture: {error}.")

    def _words_html(self) -> str:
        """Numbers, as HTML."""
        return notebook.preformatted(self._text())


class Result(Printable):
    """Base of frozen results. A subclass says what differs; ``to_dict()`` is what JSON can hold.

    Attributes
    ----------
    n_samples : int
        Number of rows.
    n_groups : int or None
        Number of groups of dependent rows; None where rows are taken as independent.
    n_classes : int
        Number of classes.
    classes : tuple of labels
        The labels, in column order.
    label : object
        The class whose probability is judged; None for the confidence.
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
        Reasons why numbers may be inaccurate; empty if there are none.
    audience : Audience
        Whether a function or the command was asked: advice names what can be typed there.
    """

    _fields_heading: ClassVar[str] = "Attributes"

    def _shown(self) -> Iterable[tuple[str, Any]]:
        return ((f.name, getattr(self, f.name)) for f in fields(cast(Any, self)) if f.repr)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and strings, for JSON (NaN and infinities as None)."""
        return {name: jsonable(value) for name, value in self._shown()}


class Tabular:
    """Base of values with rows, which are given as a data frame."""

    #: Library of the frames of the rows, and name of their scores; set by :func:`with_origin`, not part of the value.
    _library: str | None = None
    _data_name: str = ""

    @abstractmethod
    def _columns(self) -> dict[str, Any]:
        """Columns of the table, by name."""

    def to_frame(self, backend: str | None = None) -> Any:
        """Rows as a data frame.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, optional
            Default: the one that scores or labels came in, else the first of these that is installed. ImportError if
            none is.
        """
        columns = {name: list(values) for name, values in self._columns().items()}
        return to_frame(columns, backend or self._library, f"{type(self).__name__}.to_frame()")


def with_origin(library: str | None, found: Found, name: str = "") -> Found:
    """The result, whose table is by default of the library of its rows, and whose page names them.

    These are no fields: the same numbers are the same value, whatever they came in.
    """
    for one in found.values() if isinstance(found, dict) else [found]:
        if isinstance(one, Tabular):
            object.__setattr__(one, "_library", library)
            object.__setattr__(one, "_data_name", name)
    return found


class Table(Tabular, Result):
    """A result with rows."""

    #: Columns that a notebook leaves to :meth:`to_frame`.
    _unseen: ClassVar[tuple[str, ...]] = ()

    #: Why some cells have no number.
    _blank: ClassVar[str] = ""

    def _marked(self) -> Sequence[bool]:
        """Which rows a notebook marks; none by default."""
        return ()

    def _seen(self) -> Mapping[str, Sequence[Any]]:
        """Columns of a notebook."""
        return {name: values for name, values in self._columns().items() if name not in self._unseen}

    def _words_html(self) -> str:
        rows = notebook.table(self._seen(), self._marked())
        why = notebook.note(f"–: {self._blank}" if self._blank and ">–<" in rows else "")
        return rows + why + notebook.folded("as text", super()._words_html())


class Section(NamedTuple):
    """A part of a page: a table by columns, with some rows marked, and what is to be said below it."""

    name: str
    columns: Mapping[str, Sequence[Any]]
    marked: Sequence[bool] = ()
    note: str = ""
    folded: bool = False

    def html(self, level: int = 4) -> str:
        """Heading, table and note; behind its name where it is folded."""
        inside = notebook.table(self.columns, self.marked) + notebook.note(self.note)
        return notebook.folded(self.name, inside) if self.folded else notebook.heading(self.name, level) + inside


class LazyMapping(Mapping[K, V]):
    """Names and what makes their values, each once. What makes them holds all it needs: no rows, and its own seed."""

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
        """One self-contained HTML page, as text; also written to a file if a path is given. Needs the extra ``cli``.

        Parameters
        ----------
        path : str or path-like, optional
            File to write the page to.
        name : str, optional
            Name of the data, at the foot of the page beside date and version; default: that of the column of scores,
            where they came in one.

        Returns
        -------
        str
        """
        return write_page(self._page(getattr(self, "_data_name", "") if name is None else name), path)

    def _page(self, name: str) -> str:
        """Text of the page; ``name`` is that of the data."""
        return rooms_below.page(self, name)


class Paged(WithPage, Table):
    """A result with a page of its own: a sentence first, then tables, the details folded away."""

    if TYPE_CHECKING:  # a field, or the same for all

        @property
        def title(self) -> str:
            """Above the page."""

    @abstractmethod
    def _sections(self) -> list[Section]:
        """Tables of the page, the most telling first."""

    def _words_html(self, level: int = 4) -> str:
        text = notebook.folded("as text", notebook.preformatted(self._text()))
        return "".join(section.html(level) for section in self._sections()) + text


class Drawn(Printable):
    """Base of values that can be drawn, by the display of :mod:`calibrant.plot` that it names."""

    display: ClassVar[str]

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw it, on given axes or on a new figure; returns the display. Needs matplotlib (extra ``plot``).

        The options are those of the display's ``plot``.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on a new figure.
        **options
            Options of the display's ``plot``.
        """
        return rooms_below.display(self.display).from_result(self, ax, **options)


class Picture(Drawn, Result):
    """A result that can be drawn."""


class Measure(NamedTuple):
    """A number with its interval (NaN where there is none), and what it ideally is."""

    name: str
    value: float
    interval: tuple[float, float]
    ideal: float | None = None


class MeasuresDrawn(Picture):
    """A result of several numbers, drawn side by side."""

    display: ClassVar[str] = "IntervalDisplay"
    #: Whether all are of one unit, so that they share an axis.
    one_unit: ClassVar[bool] = True
    #: Name of the mark that each has, where they share an axis and not one ideal; and what the axis shows.
    mark_name: ClassVar[str] = ""
    axis_name: ClassVar[str] = ""

    @abstractmethod
    def measured(self) -> list[Measure]:
        """Numbers that are drawn, in order."""


class Curve(Picture, Table):
    """A picture with a row per point, of which text and HTML show some."""

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
    """``Name(first=1, …)`` with as many parts as fit; ``…`` stands for the others."""
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
    """A value in few characters: numbers with four digits, and for long values their type and length."""
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
    """Four digits, without a power of ten."""
    if 1e4 <= abs(value) < 1e12:
        return f"{value:,.0f}"
    if 0 < abs(value) < 1e-4:
        return f"{value:.6f}" if abs(value) >= 1e-6 else "<0.000001" if value > 0 else ">-0.000001"
    return f"{value:.4g}"


def plain(value: Any) -> Any:
    """NumPy scalars to Python's; NaN and infinities, which JSON lacks, to None."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def jsonable(value: Any) -> Any:
    """A value as JSON can hold it: results as dictionaries, dates and times in ISO 8601, other kinds as their text."""
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
