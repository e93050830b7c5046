"""Columns to a data frame of the library that came in, or of whichever is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Literal

Backend = Literal["polars", "pandas", "pyarrow"]
_BACKENDS: dict[str, Backend] = {"pandas": "pandas", "polars": "polars", "pyarrow": "pyarrow"}


def library_of(*values: Any) -> str | None:
    """Library of frames and columns that the first such value is of; None for arrays, lists and tensors."""
    roots = (type(value).__module__.partition(".")[0] for value in values)
    return next((root for root in roots if root in _BACKENDS), None)


def to_frame(columns: dict[str, list[Any]], backend: str | None, owner: str) -> Any:
    """A frame of the library asked for, or of the first installed; ImportError, naming ``owner``, if none is."""
    import narwhals as nw

    if backend is not None and backend not in _BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(map(repr, _BACKENDS))}; got {backend!r}")
    chosen = backend or next((b for b in _BACKENDS if find_spec(b)), None)
    if chosen is None:
        raise ImportError(f"{owner} needs pandas, polars or pyarrow: pip install pandas")
    return nw.from_dict(columns, backend=_BACKENDS[chosen]).to_native()
