"""Tables of pages, and numbers with their standard errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

_LEFT = "---"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> Iterator[str]:
    """A table, whose first columns (``texts``) are texts and the others numbers."""
    yield f"| {' | '.join(head)} |"
    yield "|" + f"{_LEFT}|" * texts + f"{_LEFT}:|" * (len(head) - texts)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def mean(values: np.ndarray, digits: int = 3, sign: str = "") -> str:
    """A mean with its standard error."""
    values = values[~np.isnan(values)]
    if not values.size:
        return ""
    error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else float("nan")
    return f"{values.mean():{sign}.{digits}f} ± {error:.{digits}f}"


def share(values: np.ndarray) -> str:
    """A share in per cent with its standard error: that of half a hit more where there is none or nothing else."""
    values = values[~np.isnan(values)]
    if not values.size:
        return ""
    n, p = values.size, float(values.mean())
    q = min(max(p, 0.5 / n), 1 - 0.5 / n)
    return f"{100 * p:.1f} ± {100 * np.sqrt(q * (1 - q) / n):.1f}"
