"""Printed text: numbers with the digits that their uncertainty justifies, names from data, words for an audience."""

from __future__ import annotations

import datetime as dt
import re
import shutil
import textwrap
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

#: Runs of characters other than spaces of any width and line breaks.
_NO_SPACE = r"[^ \t\n\xa0\u2000-\u200a\u202f\u3000]+"
#: Width of the names of a table below which columns are left out, and its minimum.
_NAME, _LEAST_NAME = 16, 8
#: Decimals from which a number is written with all its digits, and numbers from which none is written digit by digit.
_MOST_PLACES, _LONG = 16, 1e15
#: A time as results show it.
Time = int | float | dt.datetime | dt.date


def places(spread: float) -> int:
    """Number of decimals that show two digits of a spread: two to six, and four if the spread is unknown."""
    return 4 if not 0 < spread < np.inf else int(np.clip(1 - np.floor(np.log10(spread)), 2, 6))


def known(value: float, spread: float) -> str:
    """A number with the decimals that its spread justifies; positive numbers are not shown as 0."""
    decimals = places(spread)
    text = f"{value:.{decimals}f}"
    if value == value and float(text) == 0:
        return f"<{10.0**-decimals:.{decimals}f}" if value > 0 else f"{0:.{decimals}f}"
    return text


def signed(value: float, spread: float) -> str:
    """A difference with the decimals that its spread justifies, and its sign unless it is printed as 0."""
    text = f"{value:+.{places(spread)}f}"
    return text[1:] if value == value and float(text) == 0 else text


def with_ends(value: float, ends: tuple[float, float], write: Callable[[float, float], str] = known) -> str:
    """``0.084 (0.056 to 0.136)``: a number and its interval, with the digits that the interval justifies."""
    spread = half_width(*ends)
    number, low, high = (write(v, spread) for v in (value, *ends))
    return number if spread != spread else f"{number} ({low} to {high})"


def half_width(low: float, high: float) -> float:
    """Half the width of an interval, as its spread."""
    return (high - low) / 2


def pvalue_text(p: float, least: float = 0.0) -> str:
    """Format a p-value: ``0.012``, ``<0.001``; ``≤ 0.001`` at the ``least`` that draws can give; ``–`` if none."""
    if p != p:
        return "–"
    if least > 0 and abs(p - least) <= 1e-9:  # rounded up, so that it is so
        return f"≤ {max(np.ceil(1e4 * least - 1e-6) / 1e4, 0.001):g}"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def equals(p: float, least: float = 0.0) -> str:
    """Format a p-value to follow its letter: ``= 0.012``, ``< 0.001``, ``≤ 0.001``."""
    text = pvalue_text(p, least)
    return f"< {text[1:]}" if text.startswith("<") else text if text.startswith("≤") else f"= {text}"


def printable(text: str) -> str:
    r"""Replace unprintable characters by their Python escapes: ``\x1b``, ``\n``, ``\u202e``.

    Labels, columns and file names are untrusted: unescaped they could colour a terminal, forge a line of a
    report, or reorder its characters.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Nouns(NamedTuple):
    """Words for one class or label, for several, and for the outcome if it is that of no single class."""

    one: str
    many: str
    any: str

    def of(self, name: object) -> str:
        """``class 3``; for the outcome of no single class ``the predicted class``."""
        return self.any if name is None else f"{self.one} {printable(str(name))}"

    def named(self, name: object) -> str:
        """A name unchanged, a number as ``class 3``."""
        return name if isinstance(name, str) else self.of(name)


def nouns(*, several: bool) -> Nouns:
    """Words for classes (one per row), or for labels (possibly several per row)."""
    if several:
        return Nouns("label", "labels", "any label")
    return Nouns("class", "classes", "the predicted class")


def nouns_of(notion: str) -> Nouns:
    """Words for the problems of a notion, by its name."""
    return nouns(several=notion.partition(":")[0] == "multilabel")


def number_of(n: int, noun: str) -> str:
    """A number of things: ``1 row``, ``2,000 rows``."""
    return f"{n:,} {noun}{'s' * (n != 1)}"


def capital(text: str) -> str:
    """Capitalise the first letter of a text."""
    return text[:1].upper() + text[1:]


def printable_lines(text: str) -> str:
    """:func:`printable` of every line of a text."""
    return "\n".join(map(printable, text.split("\n")))


def printable_spaced(text: str) -> str:
    """:func:`printable` of a text for a page, where spaces of any width and line breaks stay."""
    return text if text.isascii() and text.isprintable() else re.sub(_NO_SPACE, lambda word: printable(word[0]), text)


def shorten(names: Sequence[Any], width: int) -> list[str]:
    """Shorten names to at most ``width`` characters, or more where names would otherwise coincide.

    Long names are cut in the middle, or at the beginning if names begin alike. Distinct names stay distinct;
    ``report.js`` has the same rule.
    """
    texts = [printable(str(name)) for name in names]
    out = [without_middle(text, width) for text in texts]
    longest = max(map(len, texts), default=0)
    while alike := _alike(texts, out):
        for group in alike:
            start = _common([texts[i] for i in group])
            ends = [
                f"…{without_middle(texts[i][max(min(start, len(texts[i]) - width + 1), 0) :], width - 1)}"
                for i in group
            ]
            told = start > 0 and 1 < width < longest and len({*ends}) == len({texts[i] for i in group})
            for i, end in zip(group, ends, strict=True):
                out[i] = end if told else without_middle(texts[i], width + 1)
        width += 1
    return out


def without_middle(text: str, width: int) -> str:
    """Replace the middle of a text by an ellipsis if it is too long."""
    if len(text) <= width:
        return text
    tail = max(width - 1, 0) // 2
    return f"{text[: max(width - 1, 0) - tail]}…{text[len(text) - tail :]}"


def _common(texts: Sequence[str]) -> int:
    """Length of the common prefix of some texts."""
    first, last = min(texts), max(texts)
    return next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))


def _alike(texts: Sequence[str], out: Sequence[str]) -> list[list[int]]:
    """Positions of different names with equal short forms."""
    at = defaultdict(list)
    for i, short in enumerate(out):
        at[short].append(i)
    return [group for group in at.values() if len({texts[i] for i in group}) > 1]


def text_width() -> int:
    """Width of a line of text: that of the terminal within limits, 100 without a terminal."""
    return int(np.clip(shutil.get_terminal_size((100, 24)).columns, 60, 160))


def fitted(text: str) -> str:
    """Wrap text to the terminal: sentences at a readable width, other lines where necessary.

    Text after a word and a gap, such as a value after its name, stays in its column.
    """
    width, lines = text_width(), []
    for line in text.split("\n"):
        lead = cast(re.Match[str], re.match(r"\s*(\S+\s{2,})?", line))[0]
        most = width if "  " in line.strip() else min(width, 100) - 2
        whole = len(line) <= most or len(lead) > width / 2
        wrap = partial(textwrap.wrap, width=most, subsequent_indent=" " * len(lead), break_on_hyphens=False)
        lines += [line] if whole else wrap(line)
    return "\n".join(lines)


def text_table(columns: Mapping[str, Sequence[str]], spare: Sequence[str] = (), marks: Sequence[str] = ()) -> list[str]:
    """Format columns, with headings, as lines that fit the terminal; the first column has names.

    If there is too little room, columns in ``spare`` are left out, from the first on, and names are shortened.
    """
    told = dict(columns)
    heads = iter(spare)
    first, *names = map(printable, (next(iter(told)), *told[next(iter(told))]))  # both may be from data
    marks = [f"{mark} " for mark in marks] or [""] * len(names)

    def room() -> int:
        """Width left for names."""
        wide = (max(map(len, (head, *cells))) + 2 for head, cells in list(told.items())[1:])
        return text_width() - sum(wide) - len(marks[0] if marks else "")

    while room() < min(max(map(len, (first, *names))), _NAME) and (head := next(heads, None)) is not None:
        del told[head]
    cells = [
        shorten([first, *names], max(room(), _LEAST_NAME)),
        *([head, *column] for head, column in list(told.items())[1:]),
    ]
    wide = [max(map(len, column)) for column in cells]
    before = [" " * len(marks[0] if marks else ""), *marks]
    return [
        (mark + name.ljust(wide[0]) + "".join(f"  {v:>{w}}" for v, w in zip(row, wide[1:], strict=True))).rstrip()
        for mark, name, *row in zip(before, *cells, strict=True)
    ]


class Audience(Enum):
    """Origin of a result: Python, the command, or the command for a page, which others read too."""

    PYTHON = "python"
    COMMAND = "command"
    PAGE = "page"

    @property
    def for_page(self) -> Audience:
        """The same for an exported page."""
        return Audience.PYTHON if self is Audience.PYTHON else Audience.PAGE

    def names(self, call: str, command: str) -> str:
        """The Python call, its command, or both for a page."""
        return {"python": call, "command": command, "page": f"{command} (in Python {call})"}[self.value]

    def option(self, name: str) -> str:
        """``goal=`` or ``--goal``."""
        call, command = f"{name}=", f"--{name}"
        return f"{command}, in Python {call}" if self is Audience.PAGE else self.names(call, command)


def time_text(value: Time) -> str:
    """A time in words: dates as in ISO 8601, to the second."""
    if isinstance(value, dt.datetime):
        clock = value.replace(microsecond=0, tzinfo=None).isoformat(" ").removesuffix(":00")
        return clock if value.tzinfo is None else f"{clock} {value.tzinfo}"
    return value.isoformat() if isinstance(value, dt.date) else f"{value:,}"


def time_texts(times: Sequence[Time], more: int = 0) -> list[str]:
    """Times in words; fractions have as few decimals as keep different ones apart, and some ``more``."""
    fractions = [v for v in times if isinstance(v, float) and abs(v) < _LONG]
    span = max(fractions) - min(fractions) if fractions else 0.0
    for places in range(_MOST_PLACES * (len(fractions) == len(times))):
        near = all(abs(round(v, places + more) - v) <= 0.01 * (span or abs(v)) for v in fractions)
        if near and len({round(v, places) for v in fractions}) == len(set(times)):
            return [f"{round(v, places + more) + 0.0:,.{places + more}f}" for v in fractions]  # + 0 makes -0 a 0
    return [time_text(v) for v in times]
