"""Tables of pages, and numbers with their standard errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

_LEFT = "---"
#: Characters of a line of a table: what a reader sees without scrolling.
WIDTH = 80


def table(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> Iterator[str]:
    """A table, whose first columns (``texts``) are texts and the others numbers; ValueError where it is too wide."""
    every = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) > WIDTH:
        raise ValueError(f"a table of {sum(widths) + 2 * (len(widths) - 1)} characters, more than {WIDTH}: {widths}")
    yield f"| {' | '.join(head)} |"
    yield "|" + f"{_LEFT}|" * texts + f"{_LEFT}:|" * (len(head) - texts)
    for row in every[1:]:
        yield f"| {' | '.join(row)} |"


def estimate(values: np.ndarray) -> tuple[float, float]:
    """A mean and its standard error, NaN where there is none."""
    values = values[~np.isnan(values)]
    if not values.size:
        return float("nan"), float("nan")
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else float("nan")


def mean(values: np.ndarray, digits: int = 3, sign: str = "") -> str:
    """A mean with its standard error."""
    value, error = estimate(values)
    return f"{value:{sign}.{digits}f} ± {error:.{digits}f}" if value == value else ""


def with_error(pair: tuple[float, float]) -> str:
    """A number and its standard error, where there is one."""
    value, error = pair
    return f"{value:.1f}" + (f" ± {error:.1f}" if error == error else "")


def percent(values: np.ndarray) -> tuple[float, float]:
    """A share in per cent and its standard error: that of half a hit more where there is none or nothing else."""
    values = values[~np.isnan(values)]
    if not values.size:
        return float("nan"), float("nan")
    n, p = values.size, float(values.mean())
    q = min(max(p, 0.5 / n), 1 - 0.5 / n)
    return 100 * p, 100 * float(np.sqrt(q * (1 - q) / n))


def share(values: np.ndarray) -> str:
    """A share in per cent with its standard error (:func:`percent`)."""
    value, error = percent(values)
    return f"{value:.1f} ± {error:.1f}" if value == value else ""
