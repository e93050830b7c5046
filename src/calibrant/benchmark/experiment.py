"""`Experiment`: items, their estimators, and the shared runner that stores, resumes, parallelises and joins.

`Store` is the folder of a run: configuration, predictions and pieces of results. Files are written atomically.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import numpy as np

from ..data.checks import check_int
from ..data.progress import progress_bar
from ..data.writing import remove_leftovers, replacing, write_json
from .config import Config, Distribution
from .pool import Pool, TruthBins

if TYPE_CHECKING:
    import polars as pl


logger = logging.getLogger("calibrant.benchmark")

#: Work on one item; it returns nothing and writes its results to files.
Task = Callable[[Any], None]


def need_polars() -> None:
    """Raise ImportError, with advice, if polars is not installed."""
    try:
        import polars  # noqa: F401
    except ImportError as error:
        raise ImportError('the benchmark writes Parquet files with polars: pip install "calibrant[cli]"') from error


def _piece(path: Path) -> pl.DataFrame:
    """Results of a file; ValueError if it is damaged."""
    import polars as pl

    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ValueError(f"{path} is damaged and has no results: remove it, and the run recreates it") from error


@dataclass(frozen=True)
class Store:
    """Files of one run of one configuration.

    ``config.json``, ``estimators.json`` (the meaning of each name), ``pieces/<item>.<estimators>.parquet`` and, at the
    end, ``results.parquet``; for a run of the mixtures also ``predictions/<distribution>.npz``, if they are kept.
    """

    folder: Path

    @classmethod
    def open(cls, folder: str | os.PathLike[str], content: dict[str, Any]) -> Store:
        """Create the folder with ``config.json``, or resume in it; ValueError if it holds another configuration."""
        store = cls(Path(folder))
        path = store.folder / "config.json"
        if path.exists():
            store._check_same(content, store.stored())
        elif any((store.folder / name).exists() for name in ("pieces", "predictions")):
            raise ValueError(f"out: {folder} holds pieces of a run but no config.json. Choose another folder")
        else:
            store._write_json(path, content)
        store.tidy()
        return store

    @classmethod
    def existing(cls, folder: str | os.PathLike[str]) -> Store:
        """The run in a folder; ValueError if there is none."""
        if not (Path(folder) / "config.json").exists():
            raise ValueError(f"out: {folder} does not contain a benchmark run")
        return cls(Path(folder))

    def stored(self) -> dict[str, Any]:
        """Configuration as stored in ``config.json``."""
        path = self.folder / "config.json"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"out: {path} is not the configuration of a benchmark run: {error}") from error
        if not isinstance(found, dict):
            raise ValueError(f"out: {path} is not the configuration of a benchmark run: it is not a mapping")
        return found

    @property
    def config(self) -> Config:
        """Configuration of a run of the mixtures."""
        try:
            return Config.from_dict(self.stored())
        except KeyError as error:
            raise ValueError(f"out: {self.folder} is not a run of the mixtures: {error} is missing") from error

    def _check_same(self, wanted: dict[str, Any], found: dict[str, Any]) -> None:
        different = sorted(key for key in {*wanted, *found} if wanted.get(key) != found.get(key))
        if different:
            first = different[0]
            raise ValueError(
                f"out: {self.folder} holds a run of another configuration; it differs in {', '.join(different)} "
                f"({first}: {found.get(first)!r} there, {wanted.get(first)!r} requested). Choose another folder"
            )

    def definitions(self) -> dict[str, str]:
        """Meaning of each estimator name of this run."""
        path = self.folder / "estimators.json"
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}

    def define(self, definitions: Mapping[str, str]) -> None:
        """Add estimator names; ValueError if one already stands for another estimator."""
        known = self.definitions()
        for name, meaning in definitions.items():
            if known.setdefault(name, meaning) != meaning:
                raise ValueError(
                    f"estimators: {name!r} is {known[name]} in {self.folder}, but {meaning} was given. Choose another "
                    f"name, or drop its results: calibrant.benchmark.forget({str(self.folder)!r}, [{name!r}])"
                )
        self._write_json(self.folder / "estimators.json", known)

    def forget(self, names: Iterable[str]) -> None:
        """Remove estimators with their results; ValueError if one is unknown."""
        import polars as pl

        known, gone = self.definitions(), set(names)
        if unknown := sorted(gone - set(known)):
            raise ValueError(f"names must be estimators of {self.folder}; got {', '.join(unknown)}")
        for path in self.pieces():
            frame = _piece(path)
            rest = frame.filter(~pl.col("estimator").is_in(list(gone)))
            if rest.height == 0:
                path.unlink()
            elif rest.height < frame.height:
                self.write(path, rest.write_parquet)
        self._write_json(self.folder / "estimators.json", {k: v for k, v in known.items() if k not in gone})

    def pieces(self, item: str = "*") -> list[Path]:
        """Files of results, of one item or of all, sorted by name."""
        return sorted((self.folder / "pieces").glob(f"{item}.*.parquet"))

    def done(self, item: str) -> set[str]:
        """Names of the estimators that have results for an item."""
        return {name for path in self.pieces(item) for name in _piece(path)["estimator"]}

    def add_piece(self, item: str, names: Sequence[str], frame: pl.DataFrame) -> None:
        """Store the results of some estimators on an item."""
        which = hashlib.sha256("\n".join(names).encode()).hexdigest()[:10]
        self.write(self.folder / "pieces" / f"{item}.{which}.parquet", frame.write_parquet)

    def load(self, keys: Sequence[str]) -> pl.DataFrame:
        """All results so far, sorted by the columns that identify a row."""
        import polars as pl

        if not (paths := self.pieces()):
            raise ValueError(f"out: {self.folder} does not contain results yet")
        # Two runs in one folder at a time may have read the same cell; their numbers are the same.
        frame = pl.concat([_piece(path) for path in paths])
        return frame.unique(keys, keep="first", maintain_order=True).sort(keys)

    def collect(self, keys: Sequence[str], cells: int | None = None) -> pl.DataFrame:
        """All results as one frame, also written to ``results.parquet`` with configuration and versions as metadata.

        With ``cells``, estimators with another number of rows are left out: another call was stopped while it evaluated
        them.
        """
        import polars as pl

        from ..data import __version__

        frame = self.load(keys)
        if cells is not None:
            frame = frame.filter(pl.len().over("estimator") == cells)
        known = set(frame["estimator"])
        defined = {name: meaning for name, meaning in self.definitions().items() if name in known}
        about = {"config": self.stored(), "estimators": defined}
        metadata = {"calibrant": __version__} | {k: json.dumps(v, sort_keys=True) for k, v in about.items()}
        self.write(self.folder / "results.parquet", lambda file: frame.write_parquet(file, metadata=metadata))
        return frame

    def predictions(self, distribution: Distribution) -> Path:
        """File of a distribution's pool."""
        return self.folder / "predictions" / f"{distribution.name}.npz"

    def save_pool(self, distribution: Distribution, pool: Pool) -> None:
        """Write a pool."""
        with replacing(self.predictions(distribution)) as file:
            np.savez(file, scores=pool.scores, labels=pool.labels, truth=pool.truth.sums)

    def load_pool(self, distribution: Distribution) -> Pool:
        """Read a pool."""
        with np.load(self.predictions(distribution)) as data:
            return Pool(data["scores"], data["labels"], TruthBins(data["truth"]))

    def write(self, path: Path, action: Callable[[BinaryIO], Any]) -> None:
        """Let ``action`` write a file atomically."""
        with replacing(path) as file:
            action(file)

    def _write_json(self, path: Path, content: Any) -> None:
        write_json(path, content, indent=2, sort_keys=True)

    def tidy(self) -> None:
        """Remove incomplete files of killed processes."""
        for path in (self.folder, self.folder / "pieces", self.folder / "predictions"):
            remove_leftovers(path)


class WorkItem(Protocol):
    """One unit of work, whose results are stored together."""

    @property
    def name(self) -> str:
        """Stable identifier, used for file names."""


@dataclass(frozen=True)
class Experiment:
    """An experiment whose results are a function of its configuration, its items and its estimators.

    Parameters
    ----------
    title : str
        Title of the progress bar.
    config : dict
        Configuration, as JSON, which must agree with that of the folder.
    estimators : mapping of Item to a mapping of str to str
        Items in the order of work, and the estimators evaluated on each, with the meaning of each name.
    read : callable
        ``read(item, names)`` returns the rows of the named estimators on an item as a frame. Runs in other processes.
    keys : tuple of str
        Columns that identify a row, ``"estimator"`` among them; results are sorted by them.
    cells : int or None
        Number of rows of a complete estimator; others are left out of the results. None keeps all.
    """

    title: str
    config: dict[str, Any]
    estimators: Mapping[Any, Mapping[str, str]]
    read: Callable[[Any, list[str]], pl.DataFrame]
    keys: tuple[str, ...]
    cells: int | None = None

    def run(self, folder: str | os.PathLike[str], n_jobs: int | None, *, progress: bool) -> pl.DataFrame:
        """Compute the results missing from the folder, and join all; a stopped run resumes from its pieces."""
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
    """Meaning of each name in some entries."""
    return {name: entry.definition for name, entry in entries.items()}


def _read(store: Store, read: Callable[[Any, list[str]], pl.DataFrame], job: tuple[WorkItem, list[str]]) -> None:
    """Evaluate some estimators on one item and store the piece."""
    item, names = job
    store.add_piece(item.name, names, read(item, names))


def check_jobs(n_jobs: int | None) -> int:
    """Check the ``n_jobs`` argument: None is one per processor."""
    if n_jobs is not None:
        return check_int("n_jobs", n_jobs, 1)
    from joblib import cpu_count

    return int(cpu_count())


def spread(task: Task, items: Sequence[Any], n_jobs: int, title: str, *, progress: bool) -> None:
    """Run ``task(item)`` for every item with ``n_jobs`` processes, in the given order.

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
    """Yield the seconds of each item as it ends."""
    if n_jobs == 1:
        for item in items:
            yield _timed(task, item)
        return
    from joblib import Parallel, delayed

    yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)(
        delayed(_timed)(task, item) for item in items
    )


def _timed(task: Task, item: Any) -> float:
    """Run one item on one thread, so that no sum changes its order, and return the seconds."""
    from threadpoolctl import threadpool_limits

    start = time.perf_counter()
    with threadpool_limits(1):
        task(item)
    return time.perf_counter() - start
