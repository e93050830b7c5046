"""Random rows of a lazy frame, drawn by its own engine, for functions that need rows in memory (``max_rows``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .checks import check_int, check_random_state
from .types import RandomState

#: Standard deviations by which engines that draw rows independently draw more than requested.
_SPARE = 5.0


def drawn_rows(frame: Any, columns: Sequence[str], max_rows: Any, random_state: RandomState) -> Any:
    """Draw at most ``max_rows`` rows of a lazy frame as a data frame; a frame in memory is returned unchanged.

    One pass counts the rows and another draws them; only drawn rows are ever in memory. Draws are uniform without
    replacement; the same state draws the same rows of an unchanged Polars, Dask or Spark frame.
    """
    import narwhals as nw

    held: Any = nw.from_native(frame, pass_through=True)
    if not isinstance(held, nw.LazyFrame):
        return frame
    most = check_int("max_rows", max_rows, 1, instead="None or ")
    rng = np.random.default_rng(check_random_state(random_state).integers(2**63, size=2))
    known = set(held.collect_schema().names())
    held = held.select(*dict.fromkeys(name for name in columns if name in known))
    n = int(held.select(nw.len()).collect().item())
    kind = str(held.implementation).rpartition(".")[2].lower()
    share = 1.0 if n <= most else min(1.0, (most + _SPARE * most**0.5) / n)
    draw = _DRAWS.get(kind)
    if draw is None:
        raise TypeError(f"rows of a lazy frame of {kind} cannot be drawn: collect a sample first")
    some = nw.from_native(draw(held.to_native(), share, most, int(rng.integers(2**31))))
    some = some.collect() if isinstance(some, nw.LazyFrame) else some
    if len(some) <= most:
        return some.to_native()
    return some[np.sort(rng.permutation(len(some))[:most]).tolist()].to_native()


def _polars(native: Any, share: float, most: int, seed: int) -> Any:
    import polars as pl

    if share == 1.0:
        return native
    key = pl.int_range(pl.len(), dtype=pl.UInt64).hash(seed)
    return native.filter(key < int(share * 2**64))


def _duckdb(native: Any, share: float, most: int, seed: int) -> Any:
    sample = "" if share == 1.0 else f" USING SAMPLE reservoir({most} ROWS) REPEATABLE ({seed})"
    return native.query("calibrant_rows", f"SELECT * FROM calibrant_rows{sample}")


def _dask(native: Any, share: float, most: int, seed: int) -> Any:
    return (native if share == 1.0 else native.sample(frac=share, random_state=seed)).compute()


def _pyspark(native: Any, share: float, most: int, seed: int) -> Any:
    return (native if share == 1.0 else native.sample(False, share, seed)).toPandas()


#: How each engine draws a share of its rows.
_DRAWS: dict[str, Callable[[Any, float, int, int], Any]] = {
    "polars": _polars,
    "duckdb": _duckdb,
    "dask": _dask,
    "pyspark": _pyspark,
    "pyspark_connect": _pyspark,
}
