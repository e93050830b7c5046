"""Line styles that also differ in grey, and the texts on the axes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import matplotlib

from ..data.printing import nouns_of, shorten
from ..data.types import Interval, Label
from .diagram import Diagram


class Style(NamedTuple):
    """Look of one model."""

    color: str
    linestyle: Any
    marker: str


#: Colours of different lightness (Okabe & Ito's, the blue darkened), each with its own dash pattern and marker.
STYLES = (
    Style("#0b4a8f", "-", "o"),
    Style("#d55e00", (0, (5, 1.6)), "s"),
    Style("#009e73", (0, (5, 1.5, 1, 1.5)), "^"),
    Style("#b0629b", (0, (1.2, 1.2)), "D"),
    Style("#3a3a3a", (0, (8, 2, 1, 2, 1, 2)), "v"),
    Style("#c99700", (0, (2.5, 1)), "P"),
)
IDENTITY_COLOR = "0.45"
GRID_COLOR = "0.92"
#: Longest class or model name that is drawn in full.
LONGEST_NAME = 40
LONGEST_IN_PANEL = 16


def style_of(index: int) -> Style:
    """Style of the ``index``-th model on an axes: after six, colours repeat with the next dash pattern."""
    color = STYLES[index % len(STYLES)].color
    other = STYLES[(index + index // len(STYLES)) % len(STYLES)]
    return Style(color, other.linestyle, other.marker)


def plain_texts(values: Iterable[Any], longest: int = LONGEST_NAME) -> list[str]:
    """Distinct texts that matplotlib draws as they are: no formula between dollar signs, one line, not too long."""
    return [text.replace("$", r"\$") for text in shorten([" ".join(str(v).split()) for v in values], longest)]


def plain_text(value: Any, longest: int = LONGEST_NAME) -> str:
    """A single text of :func:`plain_texts`."""
    return plain_texts([value], longest)[0]


def class_texts(labels: Iterable[Label], longest: int = LONGEST_NAME, notion: str = "") -> list[str]:
    """Classes in words: a name unchanged, a number as "class 3", or "label 3" for a notion of several labels."""
    return plain_texts([nouns_of(notion).named(label) for label in labels], longest)


def class_text(label: Label, longest: int = LONGEST_NAME, notion: str = "") -> str:
    """A single text of :func:`class_texts`."""
    return class_texts([label], longest, notion)[0]


def axis_texts(diagram: Diagram, *, short: bool = False) -> tuple[str, str]:
    """Labels of the x and the y axis; ``short`` for small panels."""
    if diagram.notion == "confidence":
        return "Confidence" if short else "Confidence (probability of the predicted class)", "Accuracy"
    named = class_text(diagram.label, LONGEST_IN_PANEL if short else LONGEST_NAME, diagram.notion)
    if diagram.notion == "top-label":
        return f"Confidence where {named} is predicted", "Accuracy"
    return f"Predicted probability of {named}", "Observed frequency"


def font_scale() -> float:
    """The user's font size relative to matplotlib's own."""
    return float(matplotlib.rcParams["font.size"]) / 10.0


def digits_of(*values: float) -> int:
    """Decimals that show two significant digits of the largest value, at least three and at most six."""
    largest = max((abs(v) for v in values if v == v), default=0.0)
    digits = 3
    while digits < 6 and 0 < largest < 10 ** (1 - digits):
        digits += 1
    return digits


def error_text(value: float, interval: Interval) -> str:
    """Calibration error with its interval: ``0.034 (0.021 to 0.052)``."""
    digits = digits_of(value, *interval)
    if value != value:
        return "not known"
    if interval.low != interval.low:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} ({interval.low:.{digits}f} to {interval.high:.{digits}f})"


def percent_text(level: float | None) -> str:
    """A level as text: ``95 %``; "" for None."""
    return "" if level is None else f"{100 * level:g} %"
