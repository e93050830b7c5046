"""Calls that `costs` measures: of subgroups, segments, rows one by one, files, and many samples at once."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import calibrant as cal
from calibrant.benchmark import OURS, PAPER_CURVES
from calibrant.benchmark.read import estimates_of, samples
from calibrant.cli import main

from .cost_calls import Arrays, Call

KINDS = ("parquet", "csv")
UPDATES = "monitor, 2,000 updates"
ESTIMATORS = dict(PAPER_CURVES) | OURS


def split(number: int, columns: int = 1, named: bool = False) -> Callable[[int], Arrays]:
    """Calibrated scores, split at random by each of some columns."""

    def arrays(n: int) -> Arrays:
        rng = np.random.default_rng(0)
        p = rng.beta(1, 3, n)
        names = np.array([f"region {g}" for g in range(number)]) if named else np.arange(number)
        by = {f"column {i}": names[rng.integers(0, number, n)] for i in range(columns)}
        return (rng.random(n) < p).astype(int), p, by

    return arrays


def equal(size: int) -> Callable[[int], Arrays]:
    """Calibrated scores in subgroups of equal sizes, in order."""

    def arrays(n: int) -> Arrays:
        rng = np.random.default_rng(0)
        p = rng.random(n)
        return (rng.random(n) < p).astype(np.int8), p, np.arange(n) // size

    return arrays


def of_frame(y: np.ndarray, p: np.ndarray, by: np.ndarray) -> Any:
    """The same, from a frame that is made of them."""
    sums: Any = cal.from_frame(pl.DataFrame({"y": y, "p": p, "by": by}), label="y", prob="p", by="by")
    return sums.subgroups()


def pvalues(found: Any, *_: Any) -> float:
    """The sum of p-values."""
    return float(sum(one.pvalue for one in found.subgroups))


def same_pvalues(found: Any, *rows: Any) -> float:
    """The sum of p-values, which must be those of the rows."""
    each = ([one.pvalue for one in some.subgroups] for some in (found, cal.subgroup_calibration(*rows)))
    np.testing.assert_allclose(*each, rtol=1e-9)
    return pvalues(found)


def planted(features: int) -> Callable[[int], Arrays]:
    """Scores, features of which a fifth are texts, and the rows of a segment of 3 % whose gap is 0.12."""

    def arrays(n: int) -> Arrays:
        rng = np.random.default_rng(1)
        x: dict[str, np.ndarray] = {}
        for i in range(features):
            x[f"x{i}"] = rng.choice(list("abcdef"), n) if i % 5 == 4 else rng.normal(size=n).astype(np.float32)
        p = rng.uniform(0.05, 0.85, n)
        wrong = (x["x0"] > 0.3) & (x["x1"] < 0) & (x["x4"] == "a")
        return rng.random(n) < p + 0.12 * wrong, p, x, wrong

    return arrays


def segments(confirm: str) -> Callable[..., Any]:
    return lambda y, p, x, _: cal.find_segments(y, p, x, confirm=confirm)


def overlap(found: Any, *given: Any) -> float:
    """Jaccard overlap of the best segment with the planted one; 0 where none is found."""
    inside, wrong = [found.mask(i) for i in range(len(found.segments))], given[-1]
    return max((float((one & wrong).sum() / (one | wrong).sum()) for one in inside), default=0.0)


def stream(n: int) -> Arrays:
    """Rows of a calm stream, with their times."""
    rng = np.random.default_rng(0)
    p = rng.random(n)
    times = [datetime(2026, 1, 1) + timedelta(minutes=i) for i in range(n)]
    return (list(zip((rng.random(n) < p).astype(int).tolist(), p.tolist(), times, strict=True)),)


def updates(rows: list[Any]) -> float:
    monitor = cal.CalibrationMonitor()
    for y, p, _ in rows:
        monitor.update(y, p)
    return float(monitor.e_value)


def updates_with_times(rows: list[Any]) -> float:
    monitor = cal.CalibrationMonitor()
    for y, p, when in rows:
        monitor.update(y, p, time=when)
    return float(monitor.e_value)


def late_labels(rows: list[Any]) -> float:
    monitor = cal.CalibrationMonitor()
    for i, (y, p, _) in enumerate(rows):
        monitor.expect(i, p)
        monitor.observe(i, y)
    return float(monitor.e_value)


def filed(kind: str) -> Callable[[int], Arrays]:
    """A file of rows, in a folder that is removed when nothing refers to it."""

    def arrays(n: int) -> Arrays:
        rng = np.random.default_rng(0)
        p = rng.random(n)
        folder = tempfile.TemporaryDirectory()
        path = Path(folder.name) / f"rows.{kind}"
        frame = pl.DataFrame({"y_true": (rng.random(n) < p).astype(np.int8), "y_prob": p})
        getattr(frame, f"write_{kind}")(path)
        return folder, path

    return arrays


def streamed(_: Any, path: Path) -> float:
    """The Brier score in what `calibrant report FILE --stream` says."""
    said, before = io.StringIO(), sys.argv
    sys.argv = ["calibrant", "report", str(path), "--stream", "--json"]
    with contextlib.redirect_stdout(said):
        try:
            main()
        except SystemExit as ended:
            if ended.code:
                raise RuntimeError(f"the command ended with code {ended.code}") from ended
        finally:
            sys.argv = before
    return float(json.loads(said.getvalue())["brier"])


def known(n: int) -> Arrays:
    """200 samples of scores and outcomes side by side, and the first of them."""
    rng = np.random.default_rng(0)
    scores = rng.beta(0.5, 1.0, (200, n)).astype(np.float32)
    outcomes = rng.random(scores.shape) < scores**1.2
    return [samples(scores, outcomes, (0.0, 1.0))], outcomes[0], scores[0]


def estimates(problems: list[Any], *_: Any) -> list[np.ndarray]:
    return [estimates_of(one, problems) for one in ESTIMATORS.values()]


def of_first(found: list[np.ndarray], _: Any, y: np.ndarray, s: np.ndarray) -> float:
    """The sum of the first sample's estimates, which must be those of that sample alone."""
    alone = [cal.calibration_error(y, s, estimator=one.estimator, norm=one.norm) for one in ESTIMATORS.values()]
    np.testing.assert_allclose([each[0] for each in found], alone, rtol=0, atol=1e-12)
    return float(np.nansum(alone))


SUBGROUPS = {
    f"subgroups, {name}": Call(
        rows, arrays, cal.subgroup_calibration, pvalues, turns=3 if rows < 10**7 else 1, few=3_000
    )
    for name, rows, arrays in (
        ("10⁶ rows: 6", 10**6, split(6)),
        ("5·10⁶ rows: 5", 5 * 10**6, split(5)),
        ("5·10⁶ rows: 5 with names", 5 * 10**6, split(5, named=True)),
        ("5·10⁶ rows: 5 in 3 columns", 5 * 10**6, split(5, columns=3)),
        ("5·10⁶ rows: 200", 5 * 10**6, split(200)),
        ("10⁷ rows: 10⁴", 10**7, equal(1_000)),
        ("2·10⁴ rows: 200", 20_000, equal(100)),
    )
}
SUBGROUPS["subgroups, 2·10⁴ rows of a frame: 200"] = Call(20_000, equal(100), of_frame, same_pvalues, turns=3)
SEGMENTS = {
    f"segments, {name}: {confirm}": Call(rows, planted(k), segments(confirm), overlap, turns=1)
    for name, rows, k, confirm in (
        ("10⁴ × 50", 10**4, 50, "simulate"),
        ("10⁵ × 20", 10**5, 20, "simulate"),
        ("10⁶ × 50", 10**6, 50, "split"),
        ("10⁶ × 50", 10**6, 50, "simulate"),
        ("10⁷ × 20", 10**7, 20, "split"),
    )
}
FILES = {
    f"{kind} file streamed, {name} rows": Call(rows, filed(kind), streamed, turns=2)
    for kind in KINDS
    for name, rows in (("2·10⁶", 2 * 10**6), ("8·10⁶", 8 * 10**6))
}
CALLS = {
    UPDATES: Call(2_000, stream, updates),
    "monitor, 2,000 updates with times": Call(2_000, stream, updates_with_times),
    "monitor, 2,000 labels that come late": Call(2_000, stream, late_labels),
    f"{len(ESTIMATORS)} estimators of 200 samples of 1,000": Call(1_000, known, estimates, of_first, turns=3, few=100),
    **SUBGROUPS,
    **SEGMENTS,
    **FILES,
}
