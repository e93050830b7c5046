"""Size of the belt's test and simultaneous coverage of the belt, by simulation; writes a section of docs/clinical.md.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.belt_coverage [--repetitions 1000] [--write docs/clinical.md]

Logits of scores are normal with mean -1 and sd 1.5, or scores are uniform. The truth is a polynomial of the logit, or a
wave that no polynomial of degree 4 is. The belt covers where it covers the true curve at every score from the smallest
to the largest of the sample.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit

import calibrant as cal
from calibrant.datasets import true_map

from .. import arguments
from ..section import write_section

SIZES = (100, 300, 1000, 5000)
LAWS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal logits": lambda rng, n: expit(-1 + 1.5 * rng.standard_normal(n)),
    "uniform": lambda rng, n: rng.random(n),
}
TRUTHS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "calibrated": lambda s: s,
    "line 0.3 + 0.7 z": lambda s: expit(0.3 + 0.7 * logit(s)),
    "parabola 0.2 + 0.9 z - 0.15 z²": lambda s: expit(0.2 + 0.9 * logit(s) - 0.15 * logit(s) ** 2),
    "wave": lambda s: true_map(s, "wavy"),
}


def cell(law: str, truth: str, n: int, repetitions: int) -> dict[str, float]:
    """Shares of samples."""
    rng = np.random.default_rng([n, *law.encode(), *truth.encode()])
    kept = []
    for _ in range(repetitions):
        p = LAWS[law](rng, n)
        y = (rng.random(n) < TRUTHS[truth](p)).astype(int)
        if y.min() == y.max():
            continue
        belt = cal.significance.calibration_belt(y, p, n_points=41)
        true = TRUTHS[truth](belt.scores)
        inside = ((belt.lower <= true) & (true <= belt.upper)).all(axis=1)
        left = [bool(belt.above[v] or belt.below[v]) for v in belt.levels]
        kept.append((belt.pvalue <= 0.05, belt.pvalue <= 0.2, *inside, left[1], belt.degree))
    table = np.array(kept, dtype=float)
    names = ("rejects 5", "rejects 20", "holds 80", "holds 95", "leaves 95", "degree")
    return dict(zip(names, table.mean(axis=0), strict=True))


NOTE = """
Written by `benchmarks/coverage/belt_coverage.py`: {repetitions} samples a row, standard error of a share at most
{se:.1f}
points, {small:.1f} at 5 %. *Rejects* is the share of samples with p ≤ 0.05: for “calibrated” the size of the test,
wanted 5, else its power. *Belt leaves* is the share in which the 95 % belt leaves the diagonal somewhere; it cannot
exceed the one before, and what it lacks are samples in which the test rejects the diagonal as a whole while no single
score shows it. *Covers* is the share in which a belt covers the whole true curve over the range of the sample, wanted
80 and 95.

{table}

- The size is right from 100 rows on.
- Belts cover lines as often as they say, and parabolas that the sample shows more often. Where a parabola is missed and
  the degree stays 1 they hold it far less often, and a wave that no polynomial of degree 4 follows is held in few
  samples of any size: a belt is as good as its family of curves. Look at the reliability diagram too.
"""


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=1000, write=True)
    options = parser.parse_args()
    lines = [
        "| scores | truth | n | rejects, % | belt leaves, % | 80 % belt covers | 95 % belt covers | mean degree |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for law in LAWS:
        for truth in TRUTHS:
            for n in SIZES:
                c = cell(law, truth, n, options.repetitions)
                shown = [f"{100 * c[k]:.1f}" for k in ("rejects 5", "leaves 95", "holds 80", "holds 95")]
                lines.append(f"| {law} | {truth} | {n} | " + " | ".join(shown) + f" | {c['degree']:.2f} |")
                print(lines[-1], flush=True)
    se, small = (100 * np.sqrt(q * (1 - q) / options.repetitions) for q in (0.5, 0.05))
    text = NOTE.format(repetitions=options.repetitions, se=se, small=small, table="\n".join(lines))
    if options.write is not None:
        write_section(options.write, "Calibration belt", text)


if __name__ == "__main__":
    main()
