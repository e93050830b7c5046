"""calibrant: tells whether a classifier's probabilities can be trusted, shows it, tests it and repairs it.

Names are listed once, in ``__init__.pyi``, and loaded when they are first used, so ``import calibrant`` costs less than
``import numpy``.
"""

from typing import Any

import lazy_loader

from .data import __version__ as __version__
from .data import rooms_below

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def _display(name: str) -> Any:
    from . import plot

    return getattr(plot, name)


def _page(result: Any, name: str) -> str:
    from .reporting.html import page_of_result

    return page_of_result(result, name)


def _inline(report: Any) -> str:
    from .reporting.html import render_inline

    return render_inline(report)


def _calibrator(name: str, n_classes: int) -> Any:
    from .calibrators import named_calibrator

    return named_calibrator(name, n_classes)


# Results stand above displays and pages, and calibrators made of others above the names of all, so they are handed
# these: each room, and each file of one, imports from those above it.
rooms_below.display, rooms_below.page, rooms_below.inline = _display, _page, _inline
rooms_below.calibrator = _calibrator
