"""A million hostile calls: random hostile values to random public functions, and how each call ends.

    python -m benchmarks.hostile [--calls 1000000] [--seconds 3600] [--seed 0] [--write FILE]

The tables are those of `tests/hostile/values.py`. A call should end in a finite result or an error of ours that names
an argument; anything else (another exception, a leaked warning, NaN) is printed with the call that repeats it.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter

import numpy as np
from tests.hostile.values import FUNCTIONS, SCORES, TRUTHS, WEIGHTS, outcome

import calibrant as cal

from . import arguments


def main() -> None:
    parser = arguments.parser(__doc__, write=True)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=3600, help="end after so long, with the calls made by then")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    tables = [list(table) for table in (FUNCTIONS, TRUTHS, SCORES, WEIGHTS)]
    calls: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    start, made = time.monotonic(), 0
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", cal.CalibrantWarning)
    while made < options.calls and time.monotonic() - start < options.seconds:
        name, y, p, w = (table[int(rng.integers(len(table)))] for table in tables)
        given = {} if WEIGHTS[w] is None else {"sample_weight": WEIGHTS[w]}
        said = outcome(FUNCTIONS[name], TRUTHS[y], SCORES[p], given)
        made += 1
        calls[name] += 1
        if said is not None:
            wrong[name] += 1
            print(f"{name}({y!r}, {p!r}, sample_weight={w!r}): {said[:200]}", flush=True)
    lines = [
        f"{made:,} calls, seed {options.seed}, in {time.monotonic() - start:.0f} s: {wrong.total()} ended wrongly",
        "",
    ]
    lines += ["| function | calls | wrong |", "|---|---:|---:|"]
    lines += [f"| {name} | {calls[name]:,} | {wrong[name]} |" for name in FUNCTIONS]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.write is not None:
        options.write.write_text(
            f"# Hostile calls\n\nWritten by `python -m benchmarks.hostile`.\n\n{text}", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
