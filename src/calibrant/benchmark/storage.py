"""The folder of a run: its configuration, kept predictions and pieces of results. Every file appears whole or not."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._files import replacing
from .config import Config, Distribution
from .pool import Pool, TruthBins

_CONFIG = "config.json"
_ESTIMATORS = "estimators.json"


@dataclass(frozen=True)
class Store:
    """Files of one run of one configuration.

    ``config.json``, ``estimators.json``, ``predictions/<distribution>.npz`` (stage 1),
    ``pieces/<distribution>.<estimators>.parquet`` (stage 2) and, at the end, ``results.parquet``.
    """

    folder: Path
    config: Config

    @classmethod
    def open(cls, folder: str | os.PathLike[str], config: Config) -> Store:
        """Make the folder, or go on in it; ValueError when it holds a run of another configuration."""
        store = cls(Path(folder), config)
        wanted = config.to_dict()
        path = store.folder / _CONFIG
        if path.exists():
            found = _read_config(path)
            _check_same(store.folder, wanted, found)
            return store
        if (store.folder / "predictions").exists() or (store.folder / "pieces").exists():
            raise ValueError(f"out: {store.folder} holds files of a run but no {_CONFIG}. Choose another folder")
        store._write_json(path, {"config": wanted, "digest": config.digest})
        return store

    @classmethod
    def existing(cls, folder: Path) -> Store:
        """The run that a folder holds; ValueError when it holds none."""
        path = folder / _CONFIG
        if not path.exists():
            raise ValueError(f"out: {folder} holds no benchmark run")
        return cls(folder, Config.from_dict(_read_config(path)))

    def definitions(self) -> dict[str, str]:
        """What each estimator name of this run stands for."""
        path = self.folder / _ESTIMATORS
        found: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return found

    def define(self, definitions: dict[str, str]) -> None:
        """Add estimator names; ValueError when one stands for something else already."""
        known = self.definitions()
        for name, meaning in definitions.items():
            if known.setdefault(name, meaning) != meaning:
                raise ValueError(
                    f"estimators: {name!r} is {known[name]} in {self.folder}, but {meaning} was given. Choose another "
                    f"name, or drop its results: calibrant.benchmark.forget({str(self.folder)!r}, [{name!r}])"
                )
        self._write_json(self.folder / _ESTIMATORS, known)

    def undefine(self, names: list[str]) -> None:
        """Take estimator names out."""
        self._write_json(self.folder / _ESTIMATORS, {k: v for k, v in self.definitions().items() if k not in names})

    def _write_json(self, path: Path, content: Any) -> None:
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")

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

    def pieces(self, distribution: Distribution) -> list[Path]:
        """Files of results of one distribution, sorted by name."""
        return sorted((self.folder / "pieces").glob(f"{distribution.name}.*.parquet"))

    def write(self, path: Path, action: Callable[[Path], Any]) -> None:
        """Let ``action`` write a file that appears whole or not."""
        with replacing(path) as temporary:
            action(temporary)

    def tidy(self) -> None:
        """Remove what killed processes left half-written."""
        for rest in self.folder.rglob(".*.tmp"):
            rest.unlink(missing_ok=True)


def open_folder(folder: Path, wanted: dict[str, Any]) -> None:
    """Make the folder of a run without mixtures, or go on in it; ValueError when it holds another configuration's."""
    path = folder / _CONFIG
    if path.exists():
        try:
            found = dict(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise ValueError(f"out: {path} is not the configuration of a run of tracks: {error}") from error
        _check_same(folder, wanted, found)
    elif (folder / "pieces").exists():
        raise ValueError(f"out: {folder} holds pieces of a run but no {_CONFIG}. Choose another folder")
    else:
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(wanted, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    for rest in folder.rglob(".*.tmp"):
        rest.unlink(missing_ok=True)


def unread(folder: Path, item: str, definitions: Mapping[str, str]) -> list[str]:
    """Names of the estimators whose readings of an item are in no piece; ValueError where one is another's there."""
    import polars as pl

    done: dict[str, str] = {}
    for piece in sorted((folder / "pieces").glob(f"{item}.*.parquet")):
        done |= dict(pl.read_parquet(piece, columns=["estimator", "definition"]).unique().iter_rows())
    for name, meaning in definitions.items():
        if done.get(name, meaning) != meaning:
            raise ValueError(
                f"estimators: {name!r} is {done[name]} in {folder}, and {meaning} was given. Choose another name"
            )
    return [name for name in definitions if name not in done]


def _check_same(folder: Path, wanted: dict[str, Any], found: dict[str, Any]) -> None:
    different = sorted(key for key in {*wanted, *found} if wanted.get(key) != found.get(key))
    if different:
        first = different[0]
        raise ValueError(
            f"out: {folder} holds a run of another configuration; it differs in {', '.join(different)} "
            f"({first}: {found.get(first)!r} there, {wanted.get(first)!r} asked for). Choose another folder"
        )


def _read_config(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["config"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"out: {path} is not the configuration of a benchmark run: {error}") from error
    return found
