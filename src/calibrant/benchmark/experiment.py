"""`Experiment`: what is read by whom, and the one runner that stores, resumes, spreads and puts together."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from ..data.checks import check_int
from ..data.progress import progress_bar
from .storage import Store, need_polars

if TYPE_CHECKING:
    import polars as pl


logger = logging.getLogger("calibrant.benchmark")

#: What one worker does for one item; returns nothing, everything is in files.
Task = Callable[[Any], None]


class WorkItem(Protocol):
    """One unit of work: its results are stored together."""

    @property
    def name(self) -> str:
        """Stable identifier, used for file names."""


@dataclass(frozen=True)
class Experiment:
    """An experiment whose results are a function of its configuration, its items and its estimators.

    Parameters
    ----------
    title : str
        For progress.
    config : dict
        What the folder of a run must agree with, as JSON holds it.
    estimators : mapping of Item to a mapping of str to str
        Items in the order of work, and the estimators that read them: what each name stands for.
    read : callable
        ``read(item, names)`` gives the rows of the named estimators on an item, as a frame. It runs in other processes.
    keys : tuple of str
        Columns that identify a row, ``"estimator"`` among them; results are sorted by them.
    cells : int or None
        Rows of an estimator that has read all items; others are left out of the results. None keeps all.
    """

    title: str
    config: dict[str, Any]
    estimators: Mapping[Any, Mapping[str, str]]
    read: Callable[[Any, list[str]], pl.DataFrame]
    keys: tuple[str, ...]
    cells: int | None = None

    def run(self, folder: str | os.PathLike[str], n_jobs: int | None, *, progress: bool) -> pl.DataFrame:
        """Read what is not in the folder yet, and put all together; a run that was stopped goes on from its pieces."""
        need_polars()
        jobs = check_jobs(n_jobs)
        store = Store.open(folder, self.config)
        store.define({name: meaning for each in self.estimators.values() for name, meaning in each.items()})
        missing: list[tuple[Any, list[str]]] = []
        for item, wanted in self.estimators.items():
            done = store.done(item.name)
            if names := [name for name in wanted if name not in done]:
                missing.append((item, names))
        spread(partial(_read, store, self.read), missing, jobs, self.title, progress=progress)
        return store.collect(self.keys, self.cells)


def definitions_of(entries: Mapping[str, Any]) -> dict[str, str]:
    """What each name of some entries stands for."""
    return {name: entry.definition for name, entry in entries.items()}


def _read(store: Store, read: Callable[[Any, list[str]], pl.DataFrame], job: tuple[WorkItem, list[str]]) -> None:
    """Read one item with some estimators and keep the piece."""
    item, names = job
    store.add_piece(item.name, names, read(item, names))


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
