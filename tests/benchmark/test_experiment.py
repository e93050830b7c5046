"""The runner of every experiment, on one that only counts."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest

import calibrant as cal
from calibrant.benchmark import forget
from calibrant.benchmark.experiment import Experiment, Store
from calibrant.benchmark.track_runner import run_tracks


class Item(NamedTuple):
    name: str


ITEMS = [Item(name) for name in "cab"]


def read(offset: int, item: Item, names: list[str]) -> pl.DataFrame:
    if item.name == "b" and "stop" in names:
        raise KeyboardInterrupt
    return pl.DataFrame([{"item": item.name, "estimator": name, "value": len(name) + offset} for name in names])


def counting(*names: str, seed: int = 0, cells: int | None = None) -> Experiment:
    definitions = {name: f"the {name}" for name in names}
    work = dict.fromkeys(ITEMS, definitions)
    return Experiment("counting", {"seed": seed}, work, partial(read, seed), ("item", "estimator"), cells)


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_what_is_missing_is_read_and_all_is_sorted(tmp_path, n_jobs):
    first = counting("one").run(tmp_path, n_jobs, progress=False)
    assert first.rows() == [("a", "one", 3), ("b", "one", 3), ("c", "one", 3)]
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "pieces").iterdir()}
    both = counting("one", "three").run(tmp_path, n_jobs, progress=False)
    assert both.equals(both.sort("item", "estimator"))
    assert both.height == 6
    assert {path: path.stat().st_mtime_ns for path in before} == before
    metadata = pl.read_parquet_metadata(tmp_path / "results.parquet")
    assert metadata["config"] == '{"seed": 0}'
    assert metadata["estimators"] == '{"one": "the one", "three": "the three"}'


def test_a_stopped_run_goes_on(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        counting("one", "stop").run(tmp_path, 1, progress=False)
    assert not (tmp_path / "results.parquet").exists()
    whole = counting("one").run(tmp_path, 1, progress=False)
    assert whole.filter(estimator="stop").height == 2
    assert counting("one", cells=3).run(tmp_path, 1, progress=False)["estimator"].unique().to_list() == ["one"]


def test_another_configuration_and_another_estimator_are_refused(tmp_path):
    counting("one").run(tmp_path, 1, progress=False)
    with pytest.raises(ValueError, match=r"differs in seed \(seed: 0 there, 1 requested\)"):
        counting("one", seed=1).run(tmp_path, 1, progress=False)
    other = Experiment("counting", {"seed": 0}, {ITEMS[0]: {"one": "another"}}, partial(read, 0), ("item", "estimator"))
    with pytest.raises(ValueError, match=r"'one' is the one in .*, but another was given"):
        other.run(tmp_path, 1, progress=False)
    with pytest.raises(ValueError, match="n_jobs must be an int >= 1"):
        counting("one").run(tmp_path / "none", 0, progress=False)
    assert not (tmp_path / "none").exists()


def test_a_cell_that_two_runs_read_counts_once(tmp_path):
    counting("one").run(tmp_path, 1, progress=False)
    Store.existing(tmp_path).add_piece("a", ["one", "three"], read(0, ITEMS[1], ["one", "three"]))
    assert counting("one").run(tmp_path, 1, progress=False).filter(item="a").height == 2


def tracks(folder: Path, n_bins: int) -> pl.DataFrame:
    options = {"sizes": (30,), "n_sets": 2, "names": ("uniform-overconfident",)}
    return run_tracks(("beta",), out=folder, estimators={"bins": cal.Binned(n_bins)}, **options)


def test_forgetting_serves_tracks_too(tmp_path):
    ten = tracks(tmp_path, 10)
    with pytest.raises(ValueError, match=r"'bins' is Binned\(n_bins=10.*forget"):
        tracks(tmp_path, 15)
    forget(tmp_path, ["bins"])
    fifteen = tracks(tmp_path, 15)
    assert fifteen["definition"].str.contains("n_bins=15").all()
    assert not fifteen["mean"].equals(ten["mean"])
    with pytest.raises(ValueError, match="is not a run of the mixtures"):
        _ = Store.existing(tmp_path).config
