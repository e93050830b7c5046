"""Optional libraries: those of data frames that are passed or returned, and those of an extra."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Literal

from .checks import check_choice

Backend = Literal["polars", "pandas", "pyarrow"]
_BACKENDS: dict[str, Backend] = {"pandas": "pandas", "polars": "polars", "pyarrow": "pyarrow"}


def library_of(*values: Any) -> str | None:
    """Library of the first frame or column among the values; None for arrays, lists and tensors."""
    roots = (type(value).__module__.partition(".")[0] for value in values)
    return next((root for root in roots if root in _BACKENDS), None)


def name_of(value: Any) -> str:
    """Name of a column, or of the columns of a frame; empty for other values."""
    names = getattr(value, "columns", [getattr(value, "name", None)]) if library_of(value) else []
    told = [name for name in names if isinstance(name, str)]
    return f"{told[0]} … {told[-1]}" if len(told) > 2 else ", ".join(told)


def to_frame(columns: dict[str, list[Any]], backend: str | None, owner: str) -> Any:
    """Frame of the requested library, or the first installed; ImportError, naming ``owner``, if there is none."""
    import narwhals as nw

    if backend is not None:
        check_choice("backend", backend, _BACKENDS)
    chosen = backend or next((b for b in _BACKENDS if find_spec(b)), None)
    if chosen is None:
        raise ImportError(f"{owner} needs pandas, polars or pyarrow: pip install pandas")
    return nw.from_dict(columns, backend=_BACKENDS[chosen]).to_native()


def needing(load: Callable[[str], Any], what: str, extra: str, *packages: str) -> Callable[[str], Any]:
    """``__getattr__`` of a module that loads names on first use; ImportError if one of the packages is missing."""

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
