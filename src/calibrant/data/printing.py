"""What is shown: numbers with the digits that their uncertainty allows, names from data, and words for who reads."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np


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


def printable_lines(text: str) -> str:
    """:func:`printable` of every line of a text."""
    return "\n".join(map(printable, text.split("\n")))


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
