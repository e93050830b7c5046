"""Functions whose import would be circular, set by `calibrant` at import: displays, pages, names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: A display of :mod:`calibrant.plot`, by its name.
display: Callable[[str], Any]
#: Self-contained HTML page of a report, or of a result that has tables, and the name of its data.
page: Callable[[Any, str], str]
#: A calibrator for a number of classes, by its name.
calibrator: Callable[[str, int], Any]
#: A report as a part of another page.
inline: Callable[[Any], str]
