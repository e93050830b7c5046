"""What is wrong with bad rows: asked only when there are some."""

from __future__ import annotations

from typing import Any, NoReturn

import narwhals.stable.v2 as nw

from .frame_columns import FrameColumns, collected
from .keys import bad_conditions

_REASON = "_calibrant_reason"


def refuse(c: FrameColumns, n_bad: int, n: int) -> NoReturn:
    """ValueError with the number of bad rows, what is wrong with them, and one of them."""
    conditions = bad_conditions(c)
    reason: Any = nw.lit(len(conditions))
    for i, (_, wrong) in reversed(list(enumerate(conditions))):
        reason = nw.when(wrong).then(nw.lit(i)).otherwise(reason)
    marked = c.frame.with_columns(**{_REASON: reason})
    marked = marked.filter(nw.col(_REASON) < len(conditions))
    example = collected(marked.select(_REASON, *c.names).head(1))
    (row,) = example.rows(named=True)
    found = conditions[int(row.pop(_REASON))][0]
    shown = ", ".join(f"{name}={value!r}" for name, value in row.items())
    raise ValueError(
        f"frame has {n_bad:,} bad row{'s' if n_bad > 1 else ''} of {n:,}; in one of them {found}: {shown}. "
        "Mend them, or leave them out with on_invalid='drop'"
    )
