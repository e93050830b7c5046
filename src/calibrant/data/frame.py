"""Columns to a data frame of whichever library is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Literal

Backend = Literal["polars", "pandas", "pyarrow"]
_BACKENDS: dict[str, Backend] = {"pandas": "pandas", "polars": "polars", "pyarrow": "pyarrow"}


def to_frame(columns: dict[str, list[Any]], backend: str | None, owner: str) -> Any:
    """A frame of the library asked for, or of the first installed; ImportError, naming ``owner``, if none is."""
    import narwhals as nw

    if backend is not None and backend not in _BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(map(repr, _BACKENDS))}; got {backend!r}")
    chosen = backend or next((b for b in _BACKENDS if find_spec(b)), None)
    if chosen is None:
        raise ImportError(f"{owner} needs pandas, polars or pyarrow: pip install pandas")
    return nw.from_dict(columns, backend=_BACKENDS[chosen]).to_native()
