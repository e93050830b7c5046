"""The folder of a run: its configuration, kept predictions and pieces of results. Every file appears whole or not."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.writing import replacing, write_json
from .config import Config, Distribution
from .pool import Pool, TruthBins

if TYPE_CHECKING:
    import polars as pl


def need_polars() -> None:
    """Raise ImportError, saying how to get it, where polars is missing."""
    try:
        import polars  # noqa: F401
    except ImportError as error:
        raise ImportError('the benchmark writes Parquet files with polars: pip install "calibrant[cli]"') from error


@dataclass(frozen=True)
class Store:
    """Files of one run of one configuration.

    ``config.json``, ``estimators.json`` (what each name stands for), ``pieces/<item>.<estimators>.parquet`` and, at the
    end, ``results.parquet``; of a run of the mixtures also ``predictions/<distribution>.npz``, where they are kept.
    """

    folder: Path

    @classmethod
    def open(cls, folder: str | os.PathLike[str], content: dict[str, Any]) -> Store:
        """Make the folder with ``config.json``, or go on in it; ValueError when it holds another configuration."""
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
        """The run that a folder holds; ValueError when it holds none."""
        if not (Path(folder) / "config.json").exists():
            raise ValueError(f"out: {folder} holds no benchmark run")
        return cls(Path(folder))

    def stored(self) -> dict[str, Any]:
        """The configuration, as it is in ``config.json``."""
        path = self.folder / "config.json"
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"out: {path} is not the configuration of a benchmark run: {error}") from error
        if not isinstance(found, dict):
            raise ValueError(f"out: {path} is not the configuration of a benchmark run: it holds no mapping")
        return found

    @property
    def config(self) -> Config:
        """The configuration of a run of the mixtures."""
        try:
            return Config.from_dict(self.stored())
        except KeyError as error:
            raise ValueError(f"out: {self.folder} holds no run of the mixtures: no {error}") from error

    def _check_same(self, wanted: dict[str, Any], found: dict[str, Any]) -> None:
        different = sorted(key for key in {*wanted, *found} if wanted.get(key) != found.get(key))
        if different:
            first = different[0]
            raise ValueError(
                f"out: {self.folder} holds a run of another configuration; it differs in {', '.join(different)} "
                f"({first}: {found.get(first)!r} there, {wanted.get(first)!r} asked for). Choose another folder"
            )

    def definitions(self) -> dict[str, str]:
        """What each estimator name of this run stands for."""
        path = self.folder / "estimators.json"
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}

    def define(self, definitions: Mapping[str, str]) -> None:
        """Add estimator names; ValueError when one stands for something else already."""
        known = self.definitions()
        for name, meaning in definitions.items():
            if known.setdefault(name, meaning) != meaning:
                raise ValueError(
                    f"estimators: {name!r} is {known[name]} in {self.folder}, but {meaning} was given. Choose another "
                    f"name, or drop its results: calibrant.benchmark.forget({str(self.folder)!r}, [{name!r}])"
                )
        self._write_json(self.folder / "estimators.json", known)

    def forget(self, names: Iterable[str]) -> None:
        """Take estimators out, with their results; ValueError where one is unknown."""
        import polars as pl

        known, gone = self.definitions(), set(names)
        if unknown := sorted(gone - set(known)):
            raise ValueError(f"names: {', '.join(unknown)} not among the estimators of {self.folder}")
        for path in self.pieces():
            frame = pl.read_parquet(path)
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
        """Names of estimators whose results of an item are there."""
        import polars as pl

        return {
            name for path in self.pieces(item) for name in pl.read_parquet(path, columns=["estimator"])["estimator"]
        }

    def add_piece(self, item: str, names: Sequence[str], frame: pl.DataFrame) -> None:
        """Keep the results of some estimators on an item."""
        which = hashlib.sha256("\n".join(names).encode()).hexdigest()[:10]
        self.write(self.folder / "pieces" / f"{item}.{which}.parquet", frame.write_parquet)

    def load(self, keys: Sequence[str]) -> pl.DataFrame:
        """All results so far, sorted by the columns that identify a row."""
        import polars as pl

        if not (paths := self.pieces()):
            raise ValueError(f"out: {self.folder} holds no results yet")
        # Two runs in one folder at a time may have read the same cell; their numbers are the same.
        frame = pl.concat([pl.read_parquet(path) for path in paths])
        return frame.unique(keys, keep="first", maintain_order=True).sort(keys)

    def collect(self, keys: Sequence[str], cells: int | None = None) -> pl.DataFrame:
        """All results as one frame, also written to ``results.parquet`` with configuration and versions as metadata.

        With ``cells``, estimators that have another number of rows are left out: another call was stopped while it read
        them.
        """
        import polars as pl

        from ..data.version import __version__

        frame = self.load(keys)
        if cells is not None:
            frame = frame.filter(pl.len().over("estimator") == cells)
        known = set(frame["estimator"])
        defined = {name: meaning for name, meaning in self.definitions().items() if name in known}
        about = {"config": self.stored(), "estimators": defined}
        metadata = {"calibrant": __version__} | {k: json.dumps(v, sort_keys=True) for k, v in about.items()}
        self.write(self.folder / "results.parquet", lambda path: frame.write_parquet(path, metadata=metadata))
        return frame

    def predictions(self, distribution: Distribution) -> Path:
        """File of a distribution's pool."""
        return self.folder / "predictions" / f"{distribution.name}.npz"

    def save_pool(self, distribution: Distribution, pool: Pool) -> None:
        """Write a pool."""
        with replacing(self.predictions(distribution)) as temporary, temporary.open("wb") as file:
            np.savez(file, scores=pool.scores, labels=pool.labels, truth=pool.truth.sums)

    def load_pool(self, distribution: Distribution) -> Pool:
        """Read a pool."""
        with np.load(self.predictions(distribution)) as data:
            return Pool(data["scores"], data["labels"], TruthBins(data["truth"]))

    def write(self, path: Path, action: Callable[[Path], Any]) -> None:
        """Let ``action`` write a file that appears whole or not."""
        with replacing(path) as temporary:
            action(temporary)

    def _write_json(self, path: Path, content: Any) -> None:
        write_json(path, content, indent=2, sort_keys=True)

    def tidy(self) -> None:
        """Remove what killed processes left half-written."""
        for rest in self.folder.rglob(".*.tmp"):
            rest.unlink(missing_ok=True)
