"""What rooms need of those below them, which `calibrant` hands over as it is imported: displays, pages, names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: A display of :mod:`calibrant.plot`, by its name.
display: Callable[[str], Any]
#: Self-contained HTML page of a report, or of a result that has tables.
page: Callable[[Any], str]
#: A calibrator of so many classes, by its name.
calibrator: Callable[[str, int], Any]
#: A report as a part of another page.
inline: Callable[[Any], str]
