"""Everything that takes several classes, on 10⁵ rows of 300: how long, how much memory, and whether it ends well.

    python -m benchmarks.large --store large.jsonl [--rows 100000] [--classes 300] [--write benchmarks/large.md]

Each call has a process of its own with one thread and a limit on memory. Calls that the store has are not run again.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant.calibrators import OneVsRest, PlattScaling, default_candidates, named_calibrator
from calibrant.data.writing import write_text

from . import arguments
from .store import lines_of

MEMORY = 12 << 30
INTRO = """# Large: {n:,} rows of {k} classes

Logits are normal (sd 1.5), true ones 0.6 times as far apart; scores in float32. A process for each call, with one
thread and at most {memory} GiB. Log-losses are of the rows of the fit: they say that a fit ended, not that it
helps. Written by `python -m benchmarks.large --store large.jsonl --write benchmarks/large.md`.

| call | CPU s | peak MiB | what came out |
|---|---:|---:|---|
"""


def rows(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores of an over-confident model."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, k)).astype(np.float32) * 1.5
    y = (z * 0.6 + rng.gumbel(size=(n, k))).argmax(axis=1)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return y, p / p.sum(axis=1, keepdims=True)


def _calls() -> dict[str, object]:
    """Calls by name: of measures, and of calibrators that are fitted and used."""
    found: dict[str, object] = {
        f"estimate, {notion}": lambda y, p, notion=notion: cal.estimate(y, p, notion=notion).value
        for notion in ("confidence", "class-wise", "top-label", "drawn-class")
    }
    found |= {
        "report": lambda y, p: len(cal.report(y, p).per_class),
        "calibration_test": lambda y, p: cal.calibration_test(y, p).pvalue,
        "decompose": lambda y, p: cal.decompose(y, p).calibration,
        "brier_score": cal.scores.brier_score,
        "log_loss": cal.scores.log_loss,
    }
    for name in [*default_candidates(300), "end-smoothing", "composed", "order-preserving", "dirichlet"]:
        found[f"calibrators: {name}"] = lambda y, p, name=name: _gain(named_calibrator(name, 300), y, p)
    found["OneVsRest(PlattScaling())"] = lambda y, p: _gain(OneVsRest(PlattScaling()), y, p)
    found["AutoCalibrator()"] = lambda y, p: _gain(cal.AutoCalibrator(random_state=0), y, p)
    return found


def _gain(calibrator: object, y: np.ndarray, p: np.ndarray) -> str:
    fitted = calibrator.fit(p, y)  # type: ignore[attr-defined]
    after = cal.scores.log_loss(y, fitted.predict_proba(p))
    return f"log-loss {cal.scores.log_loss(y, p):.4f} → {after:.4f}"


def main() -> None:
    parser = arguments.parser(__doc__)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--classes", type=int, default=300)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--call", help=argparse.SUPPRESS)
    options = parser.parse_args()
    calls = _calls()
    if options.call:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY,) * 2)
        y, p = rows(options.rows, options.classes)
        began = time.process_time()
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            value = calls[options.call](y, p)  # type: ignore[operator]
        shown = value if isinstance(value, str) else f"{value:.4g}"
        kinds = sorted({type(w.message).__name__ for w in seen})
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(json.dumps([options.call, time.process_time() - began, peak, ", ".join([shown, *kinds])]))
        return
    with lines_of(options.store) as (done, add):
        for name in [name for name in calls if name not in {row[0] for row in done}]:
            command = [sys.executable, "-m", "benchmarks.large", *sys.argv[1:], "--call", name]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            last = ran.stderr.strip().splitlines()[-1:] or [f"code {ran.returncode}"]
            failed = [name, 0.0, 0, f"**failed**: {last[0]}"]
            done.append(failed if ran.returncode else json.loads(ran.stdout.splitlines()[-1]))
            add(done[-1])
            print(done[-1], flush=True)
    if options.write:
        table = "".join(f"| {name} | {cpu:.0f} | {peak:,} | {said} |\n" for name, cpu, peak, said in done)
        text = INTRO.format(n=options.rows, k=options.classes, memory=MEMORY >> 30)
        write_text(options.write, text + table)


if __name__ == "__main__":
    main()
