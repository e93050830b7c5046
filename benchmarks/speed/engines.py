"""What does `calibrant.from_frame` cost compared with the engine's own queries?

    pip install calibrant[engines] psutil && apt install openjdk-17-jre-headless
    OMP_NUM_THREADS=1 python -m benchmarks.speed.engines [--repetitions 5] [--only polars]

Each row has one or ten float32 scores and an int8 label. Parquet files are made once, in `$CALIBRANT_BENCH_FOLDER` or
`~/.cache/calibrant-bench`. A sample is a process with one thread. Each call is made on 100,000 rows and then timed,
Java included; with 10⁷ rows of one score, the faster of two counts. *sums* are of labels, scores and rows. *GROUP BY*
counts rows and sums scores by as many keys as `from_frame` has, once per score. `from_frame` keeps all that a
report needs. *MiB* is the peak of the Python process with its packages; Spark's Java had 1 GB more.

A sample fails unless rows, labels and scores agree with the engine's to 1e-9, and the calibration error with that of
arrays to 5e-13.
"""

from __future__ import annotations

from . import one_thread  # noqa: F401 - before NumPy

# isort: split
import os
import shutil
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import table
from ..process import alone
from ..provenance import Kept

MODULE = __spec__.name
FOLDER = Path(os.environ.get("CALIBRANT_BENCH_FOLDER", Path.home() / ".cache" / "calibrant-bench"))
#: How the pages name engines.
ENGINES = {"polars": "Polars", "duckdb": "DuckDB", "dask": "Dask", "pyspark": "PySpark"}
#: Columns of scores.
SCORES = {"one": ["p"], "ten": [f"p_{k}" for k in range(10)]}
FEW, MANY, WARM = 10**7, 10**8, 10**5
POWERS = {FEW: "10⁷", MANY: "10⁸"}
ROWS_A_FILE = 2_500_000
#: How far calibration errors may lie from that of arrays: those of engines then lie within 1e-12 of each other.
APART = 5e-13


def made(scores: str, rows: int) -> Path:
    """Parquet files of this many rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    target = FOLDER / f"{scores}-{rows}"
    if target.exists():
        return target
    part = target.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for i, start in enumerate(range(0, rows, ROWS_A_FILE)):
        rng, n = np.random.default_rng(i), min(ROWS_A_FILE, rows - start)
        if scores == "ten":
            z = rng.standard_normal((n, 10), dtype=np.float32)
            p = np.exp(2 * z)
            p /= p.sum(axis=1, keepdims=True)
            y = (p.cumsum(axis=1) > rng.random((n, 1), dtype=np.float32) * 0.9999).argmax(axis=1)
            columns = {"y": y.astype(np.int8), **{c: p[:, k] for k, c in enumerate(SCORES[scores])}}
        else:
            p = rng.random(n, dtype=np.float32) ** 2
            columns = {"y": (rng.random(n, dtype=np.float32) < p**1.1).astype(np.int8), "p": p}
        pq.write_table(pa.table(columns), part / f"{i:04d}.parquet", row_group_size=500_000)
    return part.rename(target)


@lru_cache(maxsize=4)
def error_of_arrays(scores: str, rows: int) -> float:
    """The calibration error of the same rows, which are added as arrays."""
    import pyarrow.parquet as pq

    names = SCORES[scores]
    sums = cal.Accumulator(labels=range(max(2, len(names))))
    for file in sorted(made(scores, rows).iterdir()):
        read = pq.read_table(file)
        p = np.column_stack([read[name].to_numpy() for name in names])
        sums.update(read["y"].to_numpy(), p if len(names) > 1 else p[:, 0])
    return float(sums.calibration_error())


def sample(engine: str, scores: str, rows: int, seed: int) -> dict[str, float]:
    """Numbers of a process of its own; RuntimeError where its calibration error is not that of the rows as arrays."""
    folders = {str(made(scores, WARM)): 1, str(made(scores, rows)): 2 if rows == FEW and scores == "one" else 1}
    # A module of its own: what this one imports takes memory.
    found = alone(
        "benchmarks.speed.engine_calls", "measured", engine=engine, names=SCORES[scores], folders=folders, seed=seed
    )
    gap = abs(found["error"] - error_of_arrays(scores, rows))
    if not gap <= APART:
        raise RuntimeError(f"{engine}: the calibration error of {rows:,} rows differs by {gap:.2g}")
    return {**found, "gap": gap}


def middle(kept: Kept, name: str, engine: str, scores: str = "one", rows: int | str = MANY) -> float:
    """The median of a column in a case."""
    return float(np.median(kept.where(engine=engine, scores=scores, rows=rows)[name]))


def ratio(kept: Kept, by: str, engine: str, scores: str = "one", rows: int | str = MANY) -> float:
    """How many times as long `from_frame` takes as what the engine does: the median of samples."""
    some = kept.where(engine=engine, scores=scores, rows=rows)
    return float(np.median(some["ours"] / some[by]))


def times(kept: Kept, by: str, scores: str = "one", rows: int | str = MANY, *engines: str) -> str:
    """The least and the largest ratio of engines."""
    return span([ratio(kept, by, engine, scores, rows) for engine in engines or ENGINES])


def classes(kept: Kept) -> str:
    """How many times as long as one score ten take, of all engines."""
    return span([middle(kept, "ours", one, "ten", FEW) / middle(kept, "ours", one, "one", FEW) for one in ENGINES])


def span(values: list[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}"


def billion(kept: Kept, engine: str, rows: int | str = MANY) -> float:
    """CPU minutes of a billion rows of one score."""
    return middle(kept, "ours", engine, rows=rows) / int(rows) * 1e9 / 60


def growth(kept: Kept) -> float:
    """By how many per cent the peaks of memory of ten times as many rows differ: the most of all engines."""
    return max(abs(100 * (middle(kept, "memory", one) / middle(kept, "memory", one, rows=FEW) - 1)) for one in ENGINES)


def version(kept: Kept, engine: str) -> str:
    """The first two numbers of an engine's version."""
    versions = dict(one.split(" ") for one in kept.header["packages"].split(", "))
    return ".".join(versions[engine].split(".")[:2])


def answer(kept: Kept) -> str:
    minutes = {engine: billion(kept, engine) for engine in ENGINES}
    least, most = min(minutes, key=lambda one: minutes[one]), max(minutes, key=lambda one: minutes[one])
    return (
        f"On 10⁸ rows with one score, `from_frame` takes {times(kept, 'grouped')} times as long as a `GROUP BY` of the "
        f"engine and {times(kept, 'sums')} times as long as its sums. On 10⁷ rows with ten scores, it takes "
        f"{times(kept, 'grouped', 'ten', FEW)} times as long as ten `GROUP BY`. A billion rows take "
        f"{minutes[least]:.1f} CPU minutes with {ENGINES[least]} and {minutes[most]:.1f} with {ENGINES[most]}. "
        f"Calibration errors agree with those of the rows as arrays to {kept['gap'].max():.1g}."
    )


def picture(kept: Kept) -> Figure:
    cases = EXPERIMENT.every()
    series = {
        name: [(ratio(kept, by, **case), float("nan")) for case in cases]
        for name, by in (("GROUP BY", "grouped"), ("sums", "sums"))
    }
    lines = [f"{ENGINES[case['engine']]}, {case['scores']}, {POWERS[case['rows']]}" for case in cases]
    return dots(lines, series, "CPU time of from_frame divided by that of the engine's own", aim=1, log=True)


def page(kept: Kept) -> Iterator[str]:
    yield from table(
        ("engine", "scores", "rows", "sums", "GROUP BY", "from_frame", "ratio", "10⁹", "MiB"), _rows(kept), 3
    )
    yield ""
    yield "The table gives median CPU seconds, the *ratio* of `from_frame` to `GROUP BY`, and CPU minutes of *10⁹*"
    yield "rows."


def _rows(kept: Kept) -> Iterator[list[str]]:
    for case in EXPERIMENT.every():
        one = case["scores"] == "one"
        seconds = [middle(kept, name, **case) for name in ("sums", "grouped", "ours")]
        shown = [f"{value:.2f}" if value == value else "" for value in seconds]
        minutes = f"{billion(kept, case['engine'], case['rows']):.1f}" if one else ""
        first = [ENGINES[case["engine"]], case["scores"], POWERS[case["rows"]]]
        yield [
            *first,
            *shown,
            f"{ratio(kept, 'grouped', **case):.2f}",
            minutes,
            f"{middle(kept, 'memory', **case):,.0f}",
        ]


EXPERIMENT = Experiment(
    MODULE,
    {"engine": [*ENGINES], "scores": [*SCORES], "rows": [*POWERS]},
    sample,
    answer,
    page,
    picture,
    repetitions=5,
    quick=1,
    timed=("sums", "grouped", "ours", "memory", "gap"),
    figures={
        "seconds": lambda kept, name, *case: f"{middle(kept, name, *case):.1f}",
        "memory": lambda kept, *case: f"{middle(kept, 'memory', *case):,.0f}",
        "billion": lambda kept, engine: f"{billion(kept, engine):.1f}",
        "times": times,
        "classes": classes,
        "growth": lambda kept: f"{growth(kept):.0f}",
        "version": version,
    },
    some=lambda engine, scores, rows: scores == "one" or rows == FEW,
    portion=lambda engine, scores, rows: (
        0.2 if rows == MANY else 0.6 if scores == "ten" or engine == "pyspark" else 1.0
    ),
    here=lambda engine, scores, rows: (
        engine == "polars" and scores == "one" and rows == FEW and find_spec("pyarrow") is not None
    ),
    packages=("narwhals", *ENGINES, "pyarrow"),
)

if __name__ == "__main__":
    EXPERIMENT.main()
