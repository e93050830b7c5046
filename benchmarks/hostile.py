"""Every hostile value of three arguments to every public function, and how each call ends.

    python -m benchmarks.hostile [--seconds 7200] [--seed 0] [--write FILE]

Every combination of the tables of `tests/hostile/values.py` is called once (about 800,000), in a random order, so that
a run which ends early is a sample of them. A call should end in a finite result or an error of ours that names
an argument; anything else (another exception, a leaked warning, NaN) is printed with the call that repeats it.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from itertools import product

import numpy as np
from tests.hostile.values import FUNCTIONS, SCORES, TRUTHS, WEIGHTS, outcome

import calibrant as cal

from . import arguments


def main() -> None:
    parser = arguments.parser(__doc__, write=True)
    parser.add_argument("--seconds", type=float, default=7200, help="end after so long, with the calls made by then")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    cases = list(product(FUNCTIONS, TRUTHS, SCORES, WEIGHTS))
    calls: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    start, made = time.monotonic(), 0
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", cal.exceptions.CalibrantWarning)
    for case in np.random.default_rng(options.seed).permutation(len(cases)):
        if time.monotonic() - start > options.seconds:
            break
        name, y, p, w = cases[case]
        given = {} if WEIGHTS[w] is None else {"sample_weight": WEIGHTS[w]}
        said = outcome(FUNCTIONS[name], TRUTHS[y], SCORES[p], given)
        made += 1
        calls[name] += 1
        if said is not None:
            wrong[name] += 1
            print(f"{name}({y!r}, {p!r}, sample_weight={w!r}): {said[:200]}", flush=True)
    lines = [
        f"{made:,} of {len(cases):,} calls in {time.monotonic() - start:.0f} s (seed {options.seed}): "
        f"{wrong.total()} ended wrongly",
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
