"""How wrong is each estimator, elsewhere?

    {commands}
    python docs/examples/benchmark_page.py --tracks TRACK_RUN_FOLDER --only tracks --docs docs

Like the mixtures of [benchmark.md](benchmark.md), these distributions have a known truth: {tracks}. Each size has
{sets} samples (seed {seed}).{unfinished}{remark} The best of the 15 is chosen in hindsight for each track, notion and
size, and again in each bootstrap sample of distributions. Errors are medians over the miscalibrated distributions.

Any error given for a calibrated distribution is a false alarm.
[{estimators}](benchmark/{estimators}) has its mean, and the RMSE of large samples.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import polars as pl
from evidence_parts.pages import Kept, keep, kept, table, wrapped, write
from matplotlib import pyplot as plt
from pictures import COLORS, look, save, sizes_axis

from calibrant.benchmark import paper_curves
from calibrant.benchmark.track_runner import TrackConfig

from .runs import DEFAULT
from .stats import CLEAR, Number, Resampler, median, spread

KEYS = ("track", "distribution", "notion", "size", "estimator")
WORDS = {
    "beta": "Beta-distributed scores with true maps",
    "networks": "fitted to real image classifiers",
    "dirichlet": "probability vectors of several classes",
    "imbalance": "one positive in a hundred",
    "consistency": "samples up to a million",
}
ALARMED = (DEFAULT, "binned15", "d-silverman")
DATA = ("tracks", "tracks_estimators")
MEASURES = {"rel_p95": "relative error", "rmse": "RMSE"}


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


def against_best(tracks: Tracks) -> pl.DataFrame:
    """Relative error and RMSE of the default against the best of the 15, by track, notion and size."""
    rows = []
    for (track, notion, size), cells in _cells(tracks, calibrated=False):
        row = {"track": track, "notion": notion, "size": size, "distributions": cells["distribution"].n_unique()}
        for measure in ("rel_p95", "rmse"):
            name, at_best, ours, ratio = ratio_to_best(cells, measure)
            row |= {f"{measure}_best": name, f"{measure}_of_best": at_best, f"{measure}_ours": ours}
            row |= {f"{measure}_ratio": ratio.value, f"{measure}_ratio_se": ratio.se}
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def estimators(tracks: Tracks) -> pl.DataFrame:
    """Mean estimates of calibrated distributions, and of large samples the median RMSE of the others."""
    rows = []
    for calibrated, what in ((True, "mean"), (False, "rmse")):
        for (track, notion, size), cells in _cells(tracks, calibrated=calibrated):
            if not calibrated and track != "consistency":
                continue
            row = {"track": track, "notion": notion, "size": size, "distributions": cells["distribution"].n_unique()}
            for name in ALARMED:
                column = cells.filter(estimator=name)[what]
                value = column.mean() if calibrated else column.median()
                if column.len():
                    rows.append(row | {"measure": what, "estimator": name, "value": value})
    return pl.DataFrame(rows)


def _cells(tracks: Tracks, *, calibrated: bool) -> list[tuple[tuple[str, str, int], pl.DataFrame]]:
    frame = tracks.frame.filter(calibrated=calibrated)
    found = frame.partition_by("track", "notion", "size", as_dict=True)
    order = {name: i for i, name in enumerate(tracks.config.tracks)}
    return sorted(found.items(), key=lambda one: (order[one[0][0]], *one[0][1:]))  # type: ignore[return-value]


def ratio_to_best(cells: pl.DataFrame, measure: str) -> tuple[str, float, float, Number]:
    """Best of the 15 in one size's cells, its median, the default's, and the ratio."""
    names = [*paper_curves(), DEFAULT]
    wide = cells.filter(pl.col("estimator").is_in(names)).pivot(on="estimator", index="distribution", values=measure)
    values = wide.sort("distribution").select(names).to_numpy().astype(np.float64)
    found, again = Resampler(np.arange(len(values)))(median, values)
    best = int(np.nanargmin(found[:-1]))
    doubt = float(spread(again[:, -1] / again[:, :-1].min(axis=1))) if len(again) else float("nan")
    return names[best], float(found[best]), float(found[-1]), Number(float(found[-1] / found[best]), doubt)


def picture(rows: pl.DataFrame, path: Path) -> None:
    """The default's error as a ratio to that of the best of the 15, one colour per track."""
    look()
    figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True)
    lines = ("-", (0, (5, 1.6)), (0, (1.2, 1.2)))
    for ax, (measure, words) in zip(panels, MEASURES.items(), strict=True):
        for color, track in zip(COLORS, rows["track"].unique(maintain_order=True), strict=False):
            of_track = rows.filter(track=track)
            for line, notion in zip(lines, of_track["notion"].unique(maintain_order=True), strict=False):
                one = of_track.filter(notion=notion).sort("size")
                label = f"{track}, {notion}"
                ax.plot(one["size"], one[f"{measure}_ratio"], color=color, ls=line, marker="o", ms=3, label=label)
        ax.axhline(1, color="0.4", lw=1)
        sizes_axis(ax, sorted(rows["size"].unique()), few=(30, 120, 500, 3000, 10_000, 100_000, 1_000_000))
        ax.set(xlabel="rows", title=words)
    panels[0].set_ylabel("default / best of the 15")
    figure.tight_layout(rect=(0, 0, 0.79, 1))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="center right")
    save(figure, path)


def _clearly_worse(rows: pl.DataFrame, measure: str) -> int:
    ratio, se = rows[f"{measure}_ratio"], rows[f"{measure}_ratio_se"]
    return int((ratio - 1 > CLEAR * se).sum())


def _span(values: pl.Series) -> str:
    return f"{values.min():.2f} to {values.max():.2f}"


def answer(rows: pl.DataFrame, others: pl.DataFrame) -> str:
    """The number of cells where the default is nearer to the truth than the best of the 15, and false alarms."""
    less = [int((rows[f"{m}_ratio"] < 1).sum()) for m in MEASURES]
    clear = sum(_clearly_worse(rows, m) for m in MEASURES)
    worst = rows.sort("rel_p95_ratio", descending=True).row(0, named=True)
    mean = others.filter(measure="mean").pivot(on="estimator", index=["track", "notion", "size"], values="value")
    rest = [name for name in ALARMED if name != DEFAULT and name in mean.columns]
    fewer = " and ".join(f"`{name}` in {int((mean[DEFAULT] < mean[name]).sum())}" for name in rest)
    return (
        f"Of {len(rows)} cells (track, notion, size), calibrant's default has a smaller relative error than the best "
        f"of 15 published estimators in {less[0]} and a smaller RMSE in {less[1]}. It is worse by more than {CLEAR:g} "
        f"standard errors in {clear}. At worst its relative error is {worst['rel_p95_ratio']:.2f} times as large "
        f"({worst['track']}, {worst['notion']}, N = {worst['size']}). In {len(mean)} calibrated cells it gives a "
        f"smaller error than {fewer}."
    )


def _rows(rows: pl.DataFrame) -> list[list[str]]:
    out = []
    for (track, notion), some in rows.group_by("track", "notion", maintain_order=True):
        spans = [_span(some[f"{m}_ratio"]) for m in MEASURES]
        above = [f"{int((some[f'{m}_ratio'] > 1).sum())}" for m in MEASURES]
        out.append([str(track), str(notion), *spans, f"{' and '.join(above)} of {len(some)}"])
    return out


def write_data(tracks: Tracks, docs: Path, command: str) -> None:
    """The data files of the page."""
    for name, one in zip(DATA, (against_best(tracks), estimators(tracks)), strict=True):
        path = docs / "benchmark" / f"{name}.csv"
        keep(one, path, command, str(tracks.config.seed))
        about = {"sets": str(tracks.config.n_sets), "pieces": f"{tracks.done} of {tracks.wanted}"}
        Kept({**(there := Kept.read(path)).header, **about}, there.columns).write(path)


def page(docs: Path) -> None:
    """The page and its picture, from the data files."""
    paths = [docs / "benchmark" / f"{name}.csv" for name in DATA]
    rows, others = map(kept, paths)
    picture(rows, docs / "images" / "benchmark_tracks.png")
    about = Kept.read(paths[0]).header
    tracks = rows["track"].unique(maintain_order=True).to_list()
    said = (
        "The table gives ratios of the default's error to that of the best of the 15, over sizes, and how many are "
        "above 1 (relative error and RMSE)."
    )
    head = ["track", "notion", "relative error", "RMSE", "above 1"]
    write(
        docs / "benchmark_tracks.md",
        __doc__,
        answer(rows, others),
        ("images/benchmark_tracks.png", "Ratio of the default's error to that of the best of 15 estimators by rows"),
        [wrapped(said), "", *table(head, _rows(rows), texts=2)],
        paths,
        commands=f"calibrant benchmark {' '.join(f'--track {name}' for name in tracks)} --out TRACK_RUN_FOLDER",
        tracks="; ".join(f"`{name}`, {WORDS.get(name, name)}" for name in tracks),
        sets=about["sets"],
        seed=about["seed"],
        unfinished="" if len({*about["pieces"].split(" of ")}) == 1 else f" Only {about['pieces']} pieces are done.",
        remark=f" {about['remark']}" if "remark" in about else "",
        estimators=paths[1].name,
    )
