"""The command ``calibrant benchmark``: runs the known-truth benchmark and prints a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

#: What a printed table shows, and its title.
_TABLES = {
    "rel": "95th percentile of the relative error, median over distributions",
    "abs": "95th percentile of the absolute error, median over distributions",
    "bias": "bias, median over distributions",
}
_COLUMNS = {"rel": "rel_p95", "abs": "abs_p95", "bias": "bias"}
_MOST_SIZES = 6


def benchmark(
    mode: str, out: Path | None, quick: bool, jobs: int | None, seed: int, keep_predictions: bool, show: str
) -> Callable[[], None]:
    """The whole command, to be run under the guard that turns refusals into one line."""

    def action() -> None:
        from .benchmark import run, summary

        if show not in _TABLES:
            raise ValueError(f"--show must be one of {', '.join(_TABLES)}; got {show!r}")
        results = run(mode, out, quick=quick, n_jobs=jobs, seed=seed, keep_predictions=keep_predictions)
        print_tables(summary(results), show)

    return action


def tracks(
    names: list[str], out: Path | None, quick: bool, jobs: int | None, seed: int, show: str
) -> Callable[[], None]:
    """The command on tracks: one table a notion for each track, and false alarms where models are calibrated."""

    def action() -> None:
        import polars as pl

        from .benchmark.runner import check_jobs
        from .benchmark.track_runner import run_tracks, summarize

        if show not in _TABLES:
            raise ValueError(f"--show must be one of {', '.join(_TABLES)}; got {show!r}")
        folder = Path(f"calibrant-benchmark-{'-'.join(names)}{'-quick' if quick else ''}") if out is None else out
        size: dict[str, Any] = {"sizes": (30, 120, 500), "large_sizes": (1000, 10_000), "n_sets": 40} if quick else {}
        results = run_tracks(names, out=folder, n_jobs=check_jobs(jobs), seed=seed, progress=True, **size)
        summed = summarize(results)
        for name in names:
            print_tables(summed.filter(pl.col("track") == name), show)

    return action


def print_tables(summed: pl.DataFrame, show: str) -> None:
    """One table a notion: estimators by rows, sizes by columns; the best at each size has a star."""
    import polars as pl
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    console = Console()
    column = _COLUMNS[show]
    sizes = sorted(summed["size"].unique())
    shown = [sizes[round(i * (len(sizes) - 1) / (_MOST_SIZES - 1))] for i in range(_MOST_SIZES)]
    shown = sorted(set(shown)) if len(sizes) > _MOST_SIZES else sizes
    for notion in sorted(summed["notion"].unique(), reverse=True):
        part = summed.filter(pl.col("notion") == notion)
        distributions = part["distributions"].to_list()[0]
        console.print(f"\n{notion}: {_TABLES[show]} ({distributions})", highlight=False)
        table = Table(box=SIMPLE)
        table.add_column("estimator", no_wrap=True)
        for size in shown:
            table.add_column(f"{size}", justify="right")
        cell = {(name, size): value for name, size, value in part.select("estimator", "size", column).iter_rows()}
        names = sorted(part["estimator"].unique(), key=lambda name: cell[name, shown[0]])
        best = {size: min(names, key=lambda name: abs(cell[name, size])) for size in shown}
        for name in names:
            values = (f"{cell[name, size]:.3f}" + ("*" if best[size] == name else " ") for size in shown)
            table.add_row(name, *values)
        console.print(table)
