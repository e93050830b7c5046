"""HTML of results in notebooks: tables and small drawings, without scripts, in the notebook's own colours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import cache
from html import escape as html_escape
from importlib.resources import files
from typing import Any

import numpy as np

from . import __version__
from .printing import fitted, half_width, known, printable_spaced, pvalue_text, signed, text_table

#: Number of rows of a table that are visible before the others are collapsed, and of rows written at most.
_SEEN, _MOST = 12, 500
#: Suffix of the name of a column of drawings, which has no heading.
_DRAWN = "drawn"
#: Columns of p-values, which have three decimals.
_PVALUES = ("pvalue", "adjusted")
_FOR_PAGE: ContextVar[bool] = ContextVar("_FOR_PAGE", default=False)


def escape(text: str) -> str:
    """Escape a text for HTML; unprintable characters, such as bidirectional marks, are spelled out."""
    return html_escape(printable_spaced(text))


def fragment(*parts: str, name: str = "") -> str:
    """Join HTML parts into a fragment without effects on the rest of a page, with the name of the data and date."""
    return f'<style>\n{_rules()}</style><div class="calibrant-shown">{"".join(parts)}{note(made(name))}</div>'


def made(name: str = "") -> str:
    """Name of the data (if any), date and version, for the foot of every page."""
    when = f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}, calibrant {__version__}"
    return f"Data: {name}. {when}" if name else when


@contextmanager
def for_page() -> Iterator[None]:
    """Make new figures as narrow as a page on a phone."""
    token = _FOR_PAGE.set(True)
    try:
        yield
    finally:
        _FOR_PAGE.reset(token)


def is_for_page() -> bool:
    """Whether figures are for a page."""
    return _FOR_PAGE.get()


@cache
def _rules() -> str:
    """CSS rules for the fragment only; colours are inherited, so light and dark themes need no rules of their own."""
    return (files("calibrant.data") / "notebook.css").read_text(encoding="utf-8")


def preformatted(text: str) -> str:
    """Plain text with its columns preserved."""
    return f"<pre>{escape(fitted(text))}</pre>"


def paragraph(text: str) -> str:
    """A paragraph; empty for an empty text."""
    return f"<p>{escape(text)}</p>" if text else ""


def note(text: str) -> str:
    """Note below a table; empty for an empty text."""
    return f'<p class="note">{escape(text)}</p>' if text else ""


def heading(text: str, level: int = 4) -> str:
    """Heading of the next part, at a level."""
    return f"<h{level}>{escape(text)}</h{level}>"


def folded(name: str, inside: str) -> str:
    """Content collapsed under its name, open after a click; empty for empty content."""
    return f"<details><summary>{escape(name)}</summary>{inside}</details>" if inside else ""


def table(columns: Mapping[str, Sequence[Any]], marked: Sequence[bool] = ()) -> str:
    """Columns as a table: intervals in one column and drawn, some rows marked (*), many rows collapsed."""
    lists = {name: list(values) for name, values in columns.items()}
    n = max(map(len, lists.values()), default=0)
    marks = list(marked) or [False] * n
    shown = _with_intervals(lists)
    heads = {name: "" if name.endswith(_DRAWN) else escape(name.replace("_", " ")) for name in shown}
    kinds = {name: "class=drawn" if name.endswith(_DRAWN) else f'data-of="{head}"' for name, head in heads.items()}
    head = "".join(f'<th scope="col">{name}</th>' for name in heads.values())

    def row(i: int) -> str:
        first, *others = ((name, cells[i]) for name, cells in shown.items())
        others_html = (f"<td {kinds[name]}>{cell}</td>" for name, cell in others)
        star = ' <b class="mark">*</b>' if marks[i] else ""
        return f"<tr{' class=on' if marks[i] else ''}><td>{first[1]}{star}</td>{''.join(others_html)}</tr>"

    rows = [row(i) for i in range(min(n, _MOST))]

    def of(some: list[str]) -> str:
        return f'<table class="stacked plain"><thead><tr>{head}</tr></thead><tbody>{"".join(some)}</tbody></table>'

    left = n - len(rows)
    note = f"<p>Rows not shown: {left:,}; to_frame() returns all rows</p>" if left else ""
    more = folded(f"{n - _SEEN:,} more", of(rows[_SEEN:]) + note) if n > _SEEN else ""
    return of(rows[:_SEEN]) + more


def plain_table(columns: Mapping[str, Sequence[Any]]) -> str:
    """Columns as text."""
    return "\n".join(text_table({name.replace("_", " "): cells(name, list(v)) for name, v in columns.items()}))


def strips(
    values: Sequence[Any], lows: Sequence[Any], highs: Sequence[Any], ideals: Sequence[Any] | None = None
) -> list[str]:
    """Values with their intervals as small drawings on one scale; "" where there is none.

    The scale covers the ideal value of every row, which is marked: 0, or that in ``ideals``.
    The numbers are in the next column, so the drawings are hidden from screen readers.
    """
    width = 84
    rows = np.array([values, lows, highs, [0.0] * len(values) if ideals is None else ideals], dtype=float).T
    seen = np.append(rows[np.isfinite(rows).all(axis=1)], 0.0)
    least, most = seen.min(), seen.max()
    found = []

    def at(v: float) -> str:
        return f"{4 + (width - 8) * (v - least) / (most - least):.1f}"

    for v, low, high, ideal in rows:
        if most <= least or not np.isfinite([v, low, high]).all():
            found.append("")
            continue
        found.append(
            f'<svg viewBox="0 0 {width} 12" width="{width}" height="12" stroke="currentColor" aria-hidden="true">'
            f'<path d="M{at(ideal)} 0V12" opacity=".4"/><path d="M{at(low)} 6H{at(high)}" stroke-width="1.5"/>'
            f'<circle cx="{at(v)}" cy="6" r="2.5" fill="currentColor"/></svg>'
        )
    return found


def _with_intervals(columns: dict[str, list[Any]]) -> dict[str, list[str]]:
    """Cells as HTML; ``x_low`` and ``x_high`` become one column and, with ``x`` (or the column before), a drawing.

    A number and the ends of its interval have the digits that the width of the interval justifies.
    """
    out: dict[str, list[str]] = {}
    before = ""
    for name, values in columns.items():
        ends = name.removesuffix("low") + "high"
        if name.endswith("high") and name.removesuffix("high") + "low" in columns:
            continue
        if name.endswith("low") and ends in columns:
            of = name.removesuffix("low")
            own = of.rstrip("_") if of.rstrip("_") in columns else before
            numbers = [v for v in columns.get(own, ()) if not _nothing(v)]
            if not all(isinstance(v, (int, float, np.number)) for v in numbers):  # edges, of nothing that is a number
                out[f"{of}interval"] = [escape(_ends(*row)) for row in zip(values, columns[ends], strict=True)]
                continue
            out[own], out[f"{of}interval"] = _with_digits(columns[own], values, columns[ends])
            if len(values) > 1 and not any(column.endswith(_DRAWN) for column in out):  # one picture a table
                out[f"{of}{_DRAWN}"] = strips(columns[own], values, columns[ends], columns.get("ideal"))
        elif name not in out:
            out[name] = [escape(cell) for cell in cells(name, values)]
        before = name
    return {name: column for name, column in out.items() if {*column} - {"", "–"}}


def cells(name: str, values: Sequence[Any]) -> list[str]:
    """A column as text: numbers have the decimals for three digits of their median; p-values have three."""
    if name.split(" ")[0] in _PVALUES or name.startswith("pvalue"):
        return [pvalue_text(float(v)) if isinstance(v, (float, np.floating)) else _cell(v) for v in values]
    numbers = [abs(float(v)) for v in values if isinstance(v, (float, np.floating)) and 0 < abs(float(v)) < np.inf]
    decimals = int(np.clip(2 - np.floor(np.log10(np.median(numbers) if numbers else 1.0)), 0, 6))
    return [
        f"{v:.{decimals}f}".replace("-", "−") if isinstance(v, (float, np.floating)) and np.isfinite(v) else _cell(v)
        for v in values
    ]


def _with_digits(values: list[Any], lows: list[Any], highs: list[Any]) -> tuple[list[str], list[str]]:
    """Numbers and their intervals as text, with signs if any is below 0."""
    below = any(v < 0 for v in (*values, *lows) if not _nothing(v))
    write, to = (signed, "to") if below else (known, "–")

    def row(value: Any, low: Any, high: Any) -> tuple[str, str]:
        if _nothing(value) or _nothing(low) or _nothing(high):
            return _cell(value), "–"
        spread = half_width(low, high)
        texts = [write(float(v), spread).replace("-", "−") for v in (value, low, high)]
        return escape(texts[0]), escape(f"{texts[1]} {to} {texts[2]}")

    pairs = [row(*told) for told in zip(values, lows, highs, strict=True)]
    return [one for one, _ in pairs], [interval for _, interval in pairs]


def _ends(low: Any, high: Any) -> str:
    """An interval without its number."""
    return "–" if _nothing(low) and _nothing(high) else f"{_cell(low)} – {_cell(high)}"


def _nothing(value: Any) -> bool:
    return value is None or (isinstance(value, (float, np.floating)) and value != value)


def _cell(value: Any) -> str:
    """A number with four digits, or text."""
    if _nothing(value):
        return "–"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else ""
    if isinstance(value, (int, np.integer)):
        return f"{int(value):,}"
    return f"{float(value):.4g}".replace("-", "−") if isinstance(value, (float, np.floating)) else str(value)
