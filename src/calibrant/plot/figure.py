"""What is written around the panels of a grid: the overall number, the key, the classes that have no panel."""

from __future__ import annotations

from typing import Any

from .diagram import Diagram
from .grid import is_own
from .panels import key_of
from .style import Style, error_text, percent_text, plain_text

_NAMES = {"classwise": "Class-wise ECE", "top-label": "Top-label ECE"}


def finish(figure: Any, diagram: Diagram, estimate: Any, name: str | None, summary: str, *, legend: bool) -> None:
    """Write title, key and foot on a figure that calibrant made; another's figure is left alone."""
    if not is_own(figure):
        return
    number = error_text(estimate.value, estimate.interval)
    line = f"{_NAMES.get(estimate.notion, 'ECE')} {number}, {percent_text(estimate.level)} interval"
    line = line if name is None else f"{plain_text(name)}: {line}"
    before = figure.get_suptitle()
    figure.suptitle(f"{before}\n{line}" if before else line, fontsize=11)
    if summary and not figure.get_supxlabel():
        figure.supxlabel(summary, fontsize=9)
    if legend and not figure.legends:
        handles, texts = key_of(diagram, Style("0.35", "-", "o"))
        if handles:
            figure.legend(handles, texts, loc="outside lower center", ncols=len(handles), fontsize=8, frameon=False)
