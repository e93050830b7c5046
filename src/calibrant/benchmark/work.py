"""Spreads the distributions of a run over workers, and tells how far it is."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..data.checks import check_int
from ..data.progress import progress_bar

logger = logging.getLogger("calibrant.benchmark")

#: What one worker does for one item; returns nothing, everything is in files.
Task = Callable[[Any], None]


def check_jobs(n_jobs: int | None) -> int:
    """Judge the ``n_jobs`` argument: None is one for each processor."""
    if n_jobs is not None:
        return check_int("n_jobs", n_jobs, 1)
    from joblib import cpu_count

    return int(cpu_count())


def spread(task: Task, items: Sequence[Any], n_jobs: int, title: str, *, progress: bool) -> None:
    """Do ``task(item)`` for every item with ``n_jobs`` processes, in the given order.

    Progress goes to the logger ``calibrant.benchmark`` (level INFO) and, where ``progress``, to a bar on the terminal.
    """
    if not items:
        return
    start = time.perf_counter()
    with progress_bar(title, len(items), shown=progress) as advance:
        for done, seconds in enumerate(_outcomes(task, items, n_jobs), start=1):
            advance(1)
            passed = time.perf_counter() - start
            logger.info(
                "%s: %d of %d in %.0f s, %.0f s to go (last: %.1f s)",
                title, done, len(items), passed, passed / done * (len(items) - done), seconds,
            )  # fmt: skip


def _outcomes(task: Task, items: Sequence[Any], n_jobs: int) -> Iterator[float]:
    """Seconds of every item, as they end."""
    if n_jobs == 1:
        for item in items:
            yield _timed(task, item)
        return
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)(
        delayed(_timed)(task, item) for item in items
    )


def _timed(task: Task, item: Any) -> float:
    """Seconds that an item took, on one thread: the number of threads must not change any sum's order."""
    from threadpoolctl import threadpool_limits

    start = time.perf_counter()
    with threadpool_limits(1):
        task(item)
    return time.perf_counter() - start
