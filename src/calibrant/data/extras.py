"""Names that need an extra: where it is missing, an error that says how to install it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def needing(load: Callable[[str], Any], what: str, extra: str, *packages: str) -> Callable[[str], Any]:
    """``__getattr__`` of a module that loads names on first use; ImportError where one of the packages is missing."""

    def __getattr__(name: str) -> Any:  # noqa: N807 - it becomes the module's
        try:
            return load(name)
        except ModuleNotFoundError as error:
            missing = str(error.name).partition(".")[0]
            if missing not in packages:
                raise
            raise ImportError(
                f'{what} needs {missing}, which is not installed: pip install "calibrant[{extra}]"'
            ) from error

    return __getattr__
