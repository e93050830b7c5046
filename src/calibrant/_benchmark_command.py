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
#: What ``--show`` chooses on track "canonical".
_CANONICAL = {"mean": "mean reading", "bias": "bias", "rmse": "root mean squared error"}


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

        from .benchmark.track_runner import run_tracks, summarize
        from .benchmark.work import check_jobs

        if show not in _TABLES:
            raise ValueError(f"--show must be one of {', '.join(_TABLES)}; got {show!r}")
        folder = Path(f"calibrant-benchmark-{'-'.join(names)}{'-quick' if quick else ''}") if out is None else out
        size: dict[str, Any] = {"sizes": (30, 120, 500), "large_sizes": (1000, 10_000), "n_sets": 40} if quick else {}
        results = run_tracks(names, out=folder, n_jobs=check_jobs(jobs), seed=seed, progress=True, **size)
        summed = summarize(results)
        for name in names:
            print_tables(summed.filter(pl.col("track") == name), show)

    return action


def canonical(out: Path | None, quick: bool, jobs: int | None, seed: int, show: str) -> Callable[[], None]:
    """The command on track "canonical": what is read beside the truth, and the bias of sharpness at a point."""

    def action() -> None:
        from .benchmark.canonical import run_canonical, run_default, run_sharpness
        from .benchmark.work import check_jobs

        if show not in _CANONICAL:
            raise ValueError(f"--show with --track canonical must be one of {', '.join(_CANONICAL)}; got {show!r}")
        folder = Path(f"calibrant-benchmark-canonical{'-quick' if quick else ''}") if out is None else out
        size: dict[str, Any] = {"sizes": (200, 1000), "other_sizes": (200,), "most_sets": 10} if quick else {}
        few: dict[str, Any] = {"sizes": (10, 100), "repetitions": 1000} if quick else {}
        number = check_jobs(jobs)
        results = run_canonical(folder, n_jobs=number, seed=seed, progress=True, **size)
        if not quick:
            run_default(folder / "default", n_jobs=number, seed=seed, progress=True)
        sharpness = run_sharpness(folder / "sharpness", n_jobs=number, seed=seed, progress=True, **few)
        _print_canonical(results, show)
        _print_sharpness(sharpness)

    return action


def _print_canonical(results: pl.DataFrame, show: str) -> None:
    """One table a law of the paper and measure: the figure's estimators by rows, sizes by columns."""
    import polars as pl
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    from .benchmark.canonical import CURVES, MEASURES, PUBLISHED

    console = Console()
    for law in PUBLISHED:
        for measure in MEASURES:
            part = results.filter(
                (pl.col("distribution") == law.name)
                & (pl.col("measure") == measure)
                & pl.col("estimator").is_in(list(CURVES))
            )
            sizes = sorted(part["size"].unique())
            if not sizes:
                continue
            console.print(f"\n{law.name}, {measure}: {_CANONICAL[show]}; truth {part['truth'][0]:.4f}", highlight=False)
            table = Table(box=SIMPLE)
            table.add_column("estimator", no_wrap=True)
            for size in sizes:
                table.add_column(f"{size}", justify="right")
            cell = {(name, size): value for name, size, value in part.select("estimator", "size", show).iter_rows()}
            for name in CURVES:
                if (name, sizes[0]) in cell:
                    table.add_row(name, *(f"{cell[name, size]:.4f}" for size in sizes))
            console.print(table)


def _print_sharpness(found: pl.DataFrame) -> None:
    """Bias at the point by size."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    console = Console()
    limit, truth = found["limit"][0], found["truth"][0]
    console.print(
        f"\nsharpness at a point: bias against {limit:.4f}, what the kernel sees (truth {truth:.4f})", highlight=False
    )
    table = Table("samples", "estimator", "bias", "± standard error", box=SIMPLE)
    for size, name, bias, se in found.select("size", "estimator", "bias", "se").iter_rows():
        table.add_row(f"{size}", name, f"{bias:+.4f}", f"{se:.4f}")
    console.print(table)


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
