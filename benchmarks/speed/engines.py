"""A frame's sums beside what its engine does by itself: seconds, memory, and whether they say the same.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.engines --folder DIR [--rows 10000000] [--only polars] [--write FILE]

Rows are a float32 score and an int8 label in Parquet files, made in DIR where they are missing; ten classes are ten
float32 columns. Every engine runs in a process of its own, with one thread, and takes turns with itself: (a) the plain
sums of labels, of scores, and the number of rows; (b) a plain GROUP BY of as many keys, with a number of rows and a
sum; (c) ``calibrant.from_frame``, all that a report reads. Of ten classes (b) is ten of them, one a class: what the
engine by itself would take for less than we keep. Seconds are of the processor, Java's included, and the
best of the rounds counts. Needs `pip install calibrant[engines]` and, for Spark, Java.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .. import arguments
from ..section import write_section

ENGINES = ("polars", "duckdb", "dask", "pyspark")
ROWS_A_FILE = 2_500_000
CLASSES = [f"p_{k}" for k in range(10)]
VERSIONS = ("narwhals", "polars", "duckdb", "dask", "pyspark", "pyarrow")


def make(folder: Path, rows: int, classes: bool) -> Path:
    """Parquet files of so many rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    target = folder / f"{'ten' if classes else 'one'}-{rows}"
    if target.exists():
        return target
    target.mkdir(parents=True)
    for i, start in enumerate(range(0, rows, ROWS_A_FILE)):
        rng, n = np.random.default_rng(i), min(ROWS_A_FILE, rows - start)
        if classes:
            z = rng.standard_normal((n, 10), dtype=np.float32)
            p = np.exp(2 * z)
            p /= p.sum(axis=1, keepdims=True)
            y = (p.cumsum(axis=1) > rng.random((n, 1), dtype=np.float32) * 0.9999).argmax(axis=1)
            columns = {"y": y.astype(np.int8), **{c: p[:, k] for k, c in enumerate(CLASSES)}}
        else:
            p = rng.random(n, dtype=np.float32) ** 2
            columns = {"y": (rng.random(n, dtype=np.float32) < p**1.1).astype(np.int8), "p": p}
        pq.write_table(pa.table(columns), target / f"part-{i:04d}.parquet", row_group_size=500_000)
    return target


def engine(name: str, folder: Path) -> tuple[Callable[[], Any], Callable[[], Any], Callable[[str], Any]]:
    """The frame of a folder, the plain sums of an engine, and its plain GROUP BY of a column of probabilities."""
    files = f"{folder}/*.parquet"
    if name == "polars":
        import polars as pl

        y = pl.col("y").cast(pl.Int64).sum()

        def frame():
            return pl.scan_parquet(files)

        def plain():
            p = pl.col("p").cast(pl.Float64).sum()
            return frame().select(y, p, pl.len().alias("n")).collect(engine="streaming").row(0)

        def grouped(p):
            cell = (pl.col(p) * 8192).cast(pl.Int32) + pl.col("y") * pl.lit(10_000, pl.Int32)
            total = pl.col(p).cast(pl.Float64).sum()
            return frame().group_by(cell.alias("k")).agg(pl.len(), total).collect(engine="streaming")
    elif name == "duckdb":
        import duckdb

        duckdb.sql("SET threads = 1")

        def frame():
            return duckdb.read_parquet(files)

        def plain():
            return duckdb.sql(f"SELECT sum(y), sum(p::DOUBLE), count(*) FROM '{files}'").fetchall()[0]

        def grouped(p):
            key = f"CAST(floor({p} * 8192) AS INTEGER) + y * 10000"
            return duckdb.sql(f"SELECT {key} k, count(*), sum({p}::DOUBLE) FROM '{files}' GROUP BY k").fetchall()
    elif name == "dask":
        import dask
        import dask.dataframe as dd

        dask.config.set(scheduler="synchronous")

        def frame():
            return dd.read_parquet(files)

        def plain() -> Any:
            f = frame()
            return dask.compute(f.y.astype("int64").sum(), f.p.astype("float64").sum(), f.y.size)

        def grouped(p: str) -> Any:
            f = frame()
            f = f.assign(k=(f[p] * 8192).astype("int32") + f.y.astype("int32") * 10_000, x=f[p].astype("float64"))
            return f.groupby("k").x.agg(["size", "sum"]).compute()
    else:
        from pyspark.sql import SparkSession
        from pyspark.sql import functions as f

        session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        session = session.config("spark.sql.shuffle.partitions", "1").config("spark.driver.memory", "1g").getOrCreate()
        session.sparkContext.setLogLevel("OFF")

        def frame():
            return session.read.parquet(str(folder))

        def plain():
            return tuple(frame().select(f.sum("y"), f.sum(f.col("p").cast("double")), f.count("*")).first())

        def grouped(p):
            key = (f.floor(f.col(p) * 8192) + f.col("y") * 10_000).cast("int").alias("k")
            return frame().groupBy(key).agg(f.count("*"), f.sum(f.col(p).cast("double"))).collect()

    return frame, plain, grouped


def processor() -> float:
    """Seconds that the processor worked for this process and all that it started, such as Java."""
    import psutil

    me = psutil.Process()
    times = [one.cpu_times() for one in (me, *me.children(recursive=True))]
    return sum(t.user + t.system + t.children_user + t.children_system for t in times)


def measured(name: str, folder: Path, rounds: int, several: bool) -> dict[str, Any]:
    """Seconds of an engine, and what it says."""
    import calibrant as cal

    frame, plain, grouped = engine(name, folder)
    runs: dict[str, Callable[[], Any]] = {"plain": plain, "grouped": lambda: grouped("p")}
    if several:

        def ours():
            return cal.from_frame(frame(), label="y", prob=CLASSES, labels=range(10))

        runs = {"grouped": lambda: [grouped(c) for c in CLASSES]}
    else:

        def ours():
            return cal.from_frame(frame(), label="y", prob="p")

    runs["ours"] = ours
    best, said = dict.fromkeys(runs, float("inf")), {}
    for _ in range(rounds):
        for what, run in runs.items():
            start = processor()
            said[what] = run()
            best[what] = min(best[what], processor() - start)
    sums = said["ours"]
    if not several:
        y, p, n = (float(v) for v in said["plain"])
        found = sums.required_totals()
        assert found.n_samples == n
        assert found.class_weight[1] == y
        assert abs(found.prob_sum[1] / p - 1) < 1e-9, (found.prob_sum[1], p)
    estimate = sums.estimate(n_resamples=50)
    status = Path("/proc/self/status").read_text(encoding="ascii")  # getrusage tells of the parent, too
    peak = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 2**10
    return {**best, "source": sums.source, "error": estimate.value, "rows": sums.n_samples, "memory": peak}


def main() -> None:
    parser = arguments.parser(__doc__, rounds=5, only="engine", write=True)
    parser.add_argument("--folder", type=Path, required=True, help="where the Parquet files are, or are made")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000_000])
    parser.add_argument("--classes", type=int, default=0, metavar="ROWS", help="rows of ten classes")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        warnings.simplefilter("ignore")
        name, folder, several = json.loads(options.measure)
        print(json.dumps(measured(name, Path(folder), options.rounds, several)))
        return
    chosen = [name for name in ENGINES if options.only in name]
    cases = [(rows, False) for rows in options.rows] + ([(options.classes, True)] if options.classes else [])
    found: dict[tuple[str, int, bool], dict[str, Any]] = {}
    for rows, several in cases:
        folder = make(options.folder, rows, several)
        for name in chosen:
            found[name, rows, several] = one = alone(name, folder, options, several)
            print(name, rows, several, one, flush=True)
    text = page(found, options)
    print(text)
    if options.write:
        write_section(options.write, title(options), text)


def alone(name: str, folder: Path, options: argparse.Namespace, several: bool) -> dict[str, Any]:
    """An engine in a process of its own, with one thread."""
    given = json.dumps([name, str(folder), several])
    command = [sys.executable, "-m", "benchmarks.speed.engines", "--folder", str(options.folder), "--measure", given]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    done = subprocess.run(
        [*command, "--rounds", str(options.rounds)], env={**os.environ, **threads}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr[-2000:]}")
    measured_line: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return measured_line


def title(options: argparse.Namespace) -> str:
    sizes = " and ".join(f"{rows:,}" for rows in options.rows)
    return f"Frames of {sizes} rows"


def page(found: dict[tuple[str, int, bool], dict[str, Any]], options: argparse.Namespace) -> str:
    """The tables."""
    from importlib.metadata import version

    lines = [
        f"`python -m benchmarks.speed.engines --folder DIR --rows {' '.join(map(str, options.rows))}"
        f" --classes {options.classes} --rounds {options.rounds}`, processor seconds, one thread, best of the rounds. "
        + ", ".join(f"{name} {version(name)}" for name in VERSIONS)
        + ".",
        "",
        "| engine | rows | plain sums | plain GROUP BY | from_frame | of plain sums | of GROUP BY | a billion rows "
        "| resident memory |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (name, rows, several), one in found.items():
        if not several:
            minutes = one["ours"] / rows * 1e9 / 60
            lines.append(
                f"| {name} | {rows:,} | {one['plain']:.2f} s | {one['grouped']:.2f} s | {one['ours']:.2f} s "
                f"| {one['ours'] / one['plain']:.1f} × | {one['ours'] / one['grouped']:.1f} × | {minutes:.1f} min "
                f"| {one['memory']:.0f} MB |"
            )
    ten = {(name, rows): one for (name, rows, several), one in found.items() if several}
    if ten:
        lines += [
            "",
            "Ten classes, confidence and every class:",
            "",
            "| engine | rows | from_frame | one class | of it | ten plain GROUP BY | of them | resident memory |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for (name, rows), one in ten.items():
            single = found.get((name, rows, False))
            ratio = f"{single['ours']:.2f} s | {one['ours'] / single['ours']:.1f} ×" if single else "|"
            ratio += f" | {one['grouped']:.2f} s | {one['ours'] / one['grouped']:.1f} ×"
            lines.append(f"| {name} | {rows:,} | {one['ours']:.2f} s | {ratio} | {one['memory']:.0f} MB |")
    spread = {}
    for (_, rows, several), one in found.items():
        spread.setdefault((rows, several), []).append(one["error"])
    apart = max((max(v) - min(v) for v in spread.values()), default=0.0)
    lines += [
        "",
        f"Calibration errors of all engines lie within {apart:.1g} of each other. Memory of Spark is that of ",
    ]
    lines[-1] += "the driver's Python; its JVM was given 1 GB."
    return "\n".join(lines)


if __name__ == "__main__":
    main()
