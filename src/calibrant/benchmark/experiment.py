"""`Experiment`: what is read by whom, and the one runner that stores, resumes, spreads and puts together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from .storage import Store, need_polars
from .work import check_jobs, spread

if TYPE_CHECKING:
    import polars as pl


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
