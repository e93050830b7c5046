"""Numbers as they are printed, with the digits that their uncertainty allows: one rule for pages, tables and text."""

from __future__ import annotations

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


def half_width(low: float, high: float) -> float:
    """The spread that an interval tells of."""
    return (high - low) / 2


def pvalue_text(p: float) -> str:
    """``0.012``, ``<0.001``; ``–`` where nothing could be seen."""
    return "–" if p != p else "<0.001" if p < 0.001 else f"{p:.3f}"


def equals(p: float) -> str:
    """``= 0.012``, ``< 0.001``: a p-value after its letter."""
    text = pvalue_text(p)
    return f"< {text[1:]}" if text.startswith("<") else f"= {text}"
