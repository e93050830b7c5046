"""Printed text: numbers with the digits that their uncertainty allows, names from data, and words for who reads."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

#: Runs of characters that are no space of any width and no line break.
_NO_SPACE = r"[^ \t\n\xa0\u2000-\u200a\u202f\u3000]+"
#: Characters that names of a table have before columns are left out for them, and at least.
_NAME, _LEAST_NAME = 16, 8


def places(spread: float) -> int:
    """Decimals that show two digits of a spread: two to six, and four where no spread is known."""
    return 4 if not 0 < spread < np.inf else int(np.clip(1 - np.floor(np.log10(spread)), 2, 6))


def known(value: float, spread: float) -> str:
    """A number with as many decimals as its spread allows; what is above 0 is not shown as 0."""
    decimals = places(spread)
    text = f"{value:.{decimals}f}"
    if value == value and float(text) == 0:
        return f"<{10.0**-decimals:.{decimals}f}" if value > 0 else f"{0:.{decimals}f}"
    return text


def signed(value: float, spread: float) -> str:
    """A difference with as many decimals as its spread allows, and its sign unless it is 0 as printed."""
    text = f"{value:+.{places(spread)}f}"
    return text[1:] if value == value and float(text) == 0 else text


def with_ends(value: float, ends: tuple[float, float], write: Callable[[float, float], str] = known) -> str:
    """``0.084 (0.056 to 0.136)``: a number and its interval, with the digits that the interval allows."""
    spread = half_width(*ends)
    number, low, high = (write(v, spread) for v in (value, *ends))
    return number if spread != spread else f"{number} ({low} to {high})"


def half_width(low: float, high: float) -> float:
    """The spread that an interval tells of."""
    return (high - low) / 2


def pvalue_text(p: float, least: float = 0.0) -> str:
    """``0.012``, ``<0.001``; ``≤ 0.001`` of the ``least`` that draws can give; ``–`` where nothing could be seen."""
    if p != p:
        return "–"
    if least > 0 and abs(p - least) <= 1e-9:  # rounded up, so that it is so
        return f"≤ {max(np.ceil(1e4 * least - 1e-6) / 1e4, 0.001):g}"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def equals(p: float, least: float = 0.0) -> str:
    """``= 0.012``, ``< 0.001``, ``≤ 0.001``: a p-value after its letter."""
    text = pvalue_text(p, least)
    return f"< {text[1:]}" if text.startswith("<") else text if text.startswith("≤") else f"= {text}"


def printable(text: str) -> str:
    r"""Text with what does not print as the escape that Python writes for it: ``\x1b``, ``\n``, ``\u202e``.

    Labels, columns and file names come from others: as they are they could colour a terminal, forge a line of a
    report, or show its characters in another order.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Nouns(NamedTuple):
    """Words for classes or labels, one and many, and for the outcome where none of them is meant."""

    one: str
    many: str
    any: str

    def of(self, name: object) -> str:
        """``class 3``, or the outcome of no single class: ``the predicted class``."""
        return self.any if name is None else f"{self.one} {printable(str(name))}"

    def named(self, name: object) -> str:
        """A name as it is, a number as ``class 3``."""
        return name if isinstance(name, str) else self.of(name)


def nouns(*, several: bool) -> Nouns:
    """Words for the classes of which each row has one, or for labels of which it may have several."""
    if several:
        return Nouns("label", "labels", "any label")
    return Nouns("class", "classes", "the predicted class")


def nouns_of(notion: str) -> Nouns:
    """Words for the problems of a notion, by its name."""
    return nouns(several=notion.partition(":")[0] == "multilabel")


def capital(text: str) -> str:
    """The text with a capital at its start."""
    return text[:1].upper() + text[1:]


def printable_lines(text: str) -> str:
    """:func:`printable` of every line of a text."""
    return "\n".join(map(printable, text.split("\n")))


def printable_spaced(text: str) -> str:
    """:func:`printable` of a text for a page, where spaces of any width and line breaks stay."""
    return text if text.isascii() and text.isprintable() else re.sub(_NO_SPACE, lambda word: printable(word[0]), text)


def shorten(names: Sequence[Any], width: int) -> list[str]:
    """Names of at most ``width`` characters where that tells them apart, longer ones where it does not.

    What is left out of a long name stands in its middle, or at its beginning where names begin alike. Distinct names
    stay distinct; ``report.js`` has the same rule.
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
    """A text, whose middle is left out where it is too long."""
    if len(text) <= width:
        return text
    tail = max(width - 1, 0) // 2
    return f"{text[: max(width - 1, 0) - tail]}…{text[len(text) - tail :]}"


def _common(texts: Sequence[str]) -> int:
    """Characters with which all of some texts begin."""
    first, last = min(texts), max(texts)
    return next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))


def _alike(texts: Sequence[str], out: Sequence[str]) -> list[list[int]]:
    """Positions of names that differ, and whose short forms do not."""
    at = defaultdict(list)
    for i, short in enumerate(out):
        at[short].append(i)
    return [group for group in at.values() if len({texts[i] for i in group}) > 1]


def text_width() -> int:
    """Characters of a line of text: those of the terminal within reason, 100 where there is none."""
    return int(np.clip(shutil.get_terminal_size((100, 24)).columns, 60, 160))


def fitted(text: str) -> str:
    """Text whose lines fit into a terminal: sentences are wrapped so that they can be read, other lines where needed.

    What follows a word and a gap, as a value its name, stays in its column.
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
    """Columns as lines that fit into a terminal, with their heads; the first are names.

    Where there is too little room columns of ``spare`` are left out, the first of them first, and names are shortened.
    """
    told = dict(columns)
    heads = iter(spare)
    first, *names = map(printable, (next(iter(told)), *told[next(iter(told))]))  # both may be from data
    marks = [f"{mark} " for mark in marks] or [""] * len(names)

    def room() -> int:
        """Width that other columns leave to names."""
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
    """From Python, by the command, or by the command for a page, which others read too."""

    PYTHON = "python"
    COMMAND = "command"
    PAGE = "page"

    @property
    def for_page(self) -> Audience:
        """The same for an exported page."""
        return Audience.PYTHON if self is Audience.PYTHON else Audience.PAGE

    def names(self, call: str, command: str) -> str:
        """A call of Python, its command, or the command and the call."""
        return {"python": call, "command": command, "page": f"{command} (in Python {call})"}[self.value]

    def option(self, name: str) -> str:
        """``goal=`` or ``--goal``."""
        call, command = f"{name}=", f"--{name}"
        return f"{command}, in Python {call}" if self is Audience.PAGE else self.names(call, command)
