"""Tracks beside the mixtures: the default against the best of the 15, false alarms, consistency."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import polars as pl

from calibrant.benchmark import paper_curves
from calibrant.benchmark.track_runner import TrackConfig

from .runs import DEFAULT
from .sections import BAR, SMALL, SMALL_BAR, mark
from .stats import Number, Resampler, median, spread, table

KEYS = ("track", "distribution", "notion", "size", "estimator")
WORDS = {
    "beta": "Beta-distributed scores with true maps",
    "networks": "Distributions fitted to real image classifiers",
    "dirichlet": "Probability vectors of several classes",
    "imbalance": "One positive in a hundred",
    "consistency": "Samples up to a million",
}
ALARMED = (DEFAULT, "binned15", "d-silverman")


@dataclass(frozen=True)
class Tracks:
    """Results of a run of tracks, and how much of it there is."""

    frame: pl.DataFrame
    done: int
    wanted: int
    config: TrackConfig

    @classmethod
    def read(cls, folder: str | Path) -> Tracks:
        """Read the pieces; cells that lack the default or one of the 15 are left out."""
        folder = Path(folder)
        stored = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        known = {f.name: stored[f.name] for f in fields(TrackConfig)}
        config = TrackConfig(**{k: tuple(v) if isinstance(v, list) else v for k, v in known.items()})
        paths = sorted((folder / "pieces").glob("*.parquet"))
        if not paths:
            raise ValueError(f"{folder} holds no results yet")
        frame = (
            pl.concat([pl.read_parquet(p) for p in paths]).unique(KEYS, keep="first", maintain_order=True).sort(KEYS)
        )
        needed = [*paper_curves(), DEFAULT]
        whole = pl.col("estimator").is_in(needed).sum().over(*KEYS[:-1]) == len(needed)
        frame = frame.filter(whole)
        if frame.height == 0:
            raise ValueError(f"{folder} holds no cell that was read by all of {', '.join(needed)}")
        done = sum(any((folder / "pieces").glob(f"{item.name}.*.parquet")) for item in config.items)
        return cls(frame, done, len(config.items), config)


def page(tracks: Tracks) -> str:
    """The whole section."""
    state = (
        f"all {tracks.wanted} pieces of the run"
        if tracks.done == tracks.wanted
        else f"**an unfinished run: {tracks.done} of {tracks.wanted} pieces**"
    )
    out = [
        "# How wrong is each estimator, elsewhere?\n",
        "Distributions beside the mixtures whose truth is known too. "
        f"{tracks.config.n_sets} sets a size, seed {tracks.config.seed}, {state}. Medians over the miscalibrated "
        "distributions of a track; ± a bootstrap standard error over distributions, where there are enough. Bars and "
        "marks as in [benchmark.md](benchmark.md). Of calibrated distributions the mean estimate is given: all of it "
        "is false alarm.\n",
    ]
    if tracks.done < tracks.wanted:
        out[1] += "Tracks of which nothing is there yet are left out.\n"
    for track in tracks.config.tracks:
        cells = tracks.frame.filter(pl.col("track") == track)
        if cells.height == 0:
            continue
        out.append(f"## {WORDS.get(track, track)}: `{track}`\n")
        for notion in sorted(cells["notion"].unique()):
            of_notion = cells.filter(pl.col("notion") == notion)
            wrong, right = (of_notion.filter(pl.col("calibrated") == kind) for kind in (False, True))
            if wrong.height:
                out += [_title(notion, wrong, "miscalibrated"), _against_best(wrong)]
            if right.height:
                out += [_title(notion, right, "calibrated: mean estimate"), _alarms(right)]
            if track == "consistency" and wrong.height:
                out += [_title(notion, wrong, "miscalibrated: RMSE, median over distributions"), _consistency(wrong)]
    return "\n".join(out)


def _title(notion: str, cells: pl.DataFrame, words: str) -> str:
    return f"**{notion}**, {cells['distribution'].n_unique()} {words}\n"


def _against_best(cells: pl.DataFrame) -> str:
    """Relative error and RMSE of the default against the best of the 15, by size."""
    rows = []
    for size in sorted(cells["size"].unique()):
        row = [str(size)]
        for measure in ("rel_p95", "rmse"):
            name, at_best, ours, ratio = ratio_to_best(cells.filter(pl.col("size") == size), measure)
            bar = SMALL_BAR if measure == "rel_p95" and size <= SMALL else BAR
            row += [f"{name} {at_best:.3g}", f"{ours:.3g}", f"{ratio.text()} {mark(ratio, bar)}"]
        rows.append(row)
    header = ["N", "best of 15, rel. error", "ours", "ratio", "best of 15, RMSE", "ours", "ratio"]
    return table(header, rows)


def ratio_to_best(cells: pl.DataFrame, measure: str) -> tuple[str, float, float, Number]:
    """Best of the 15 in one size's cells, its median, the default's, and the ratio."""
    names = [*paper_curves(), DEFAULT]
    wide = cells.filter(pl.col("estimator").is_in(names)).pivot(on="estimator", index="distribution", values=measure)
    values = wide.sort("distribution").select(names).to_numpy().astype(np.float64)
    found, again = Resampler(np.arange(len(values)))(median, values)
    best = int(np.nanargmin(found[:-1]))
    doubt = float(spread(again[:, -1] / again[:, :-1].min(axis=1))) if len(again) else float("nan")
    return names[best], float(found[best]), float(found[-1]), Number(float(found[-1] / found[best]), doubt)


def _alarms(cells: pl.DataFrame) -> str:
    """Mean estimate of calibrated distributions."""
    names = [name for name in ALARMED if name in cells["estimator"]]
    rows = []
    for size in sorted(cells["size"].unique()):
        here = cells.filter(pl.col("size") == size)
        mean = {name: here.filter(pl.col("estimator") == name)["mean"].mean() for name in names}
        rows.append([str(size), *(f"{mean[name]:.4f}" for name in names)])
    return table(["N", *(f"`{name}`" for name in names)], rows)


def _consistency(cells: pl.DataFrame) -> str:
    """RMSE by size, and how it falls from each size to the next."""
    names = [name for name in ALARMED if name in cells["estimator"]]
    rows = []
    for size in sorted(cells["size"].unique()):
        here = cells.filter(pl.col("size") == size)
        rmse = [here.filter(pl.col("estimator") == name)["rmse"].median() for name in names]
        best = ratio_to_best(here, "rmse")
        rows.append([str(size), *(f"{v:.5f}" for v in rmse), f"{best[0]} {best[1]:.5f}"])
    return table(["N", *(f"`{name}`" for name in names), "best of 15"], rows)
