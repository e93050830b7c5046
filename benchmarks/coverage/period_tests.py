"""The test of periods where many courses are followed: how often it rejects one course, at the levels of a correction.

    python -m benchmarks.coverage.period_tests [--repetitions 4000] [--write FILE]

One of C = 60 courses over 6 periods of 40 rows each, scores of a beta distribution (1, 20): rejected beside all others
with a p-value of at most 0.05 / 180 (three tests of each). Independent rows, rows of relative weights, and rows in 40
groups that are in all periods, whose log-odds vary with a standard deviation of 0.7; calibrated, or with outcomes as
likely as 1 - (1 - p)^8 in one period. ``1999 draws`` is the test of one course by itself, whose p-value is 1/2000 at
least.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.comparison.subgroups.build import SubgroupsOfRows
from calibrant.comparison.subgroups.heterogeneity import GroupScores, PooledMap, SubgroupTotals, heterogeneity
from calibrant.comparison.subgroups.membership import Subgroups
from calibrant.data.problem import Problem

from .. import arguments

COURSES, PERIODS, ROWS, GROUPS = 60, 6, 40, 40
LEAST = 0.05 / 3 / COURSES
LEVELS = (0.05, 0.01, 0.001, LEAST)
KINDS = ("independent", "weights", "groups")


def pvalues(kind: str, seed: int, *, odd: bool) -> list[float]:
    """Of one course: among many, and by itself."""
    rng = np.random.default_rng(seed)
    period = np.repeat(np.arange(PERIODS), ROWS)
    p = rng.beta(1, 20, period.size)
    chance = np.where(odd & (period == 3), 1 - (1 - p) ** 8, p)
    group = None
    if kind == "groups":
        group = rng.integers(GROUPS, size=period.size)
        odds = np.log(chance / (1 - chance)) + rng.normal(0, 0.7, GROUPS)[group]
        chance = 1 / (1 + np.exp(-odds))
    y = (rng.random(period.size) < chance).astype(np.float64)
    w = rng.random(period.size) if kind == "weights" else None
    named = Subgroups("period", period, tuple(range(PERIODS)))
    column = SubgroupsOfRows.of(Problem(p, y, w, w is None), named, group)
    cells = column.cells.coarse()
    pooled = PooledMap.of(cells, column.design)
    if pooled is None:
        return [1.0, 1.0]
    about: Any = (cells, pooled, SubgroupTotals.of(cells, pooled), period.size)
    groups = GroupScores.of(cells, pooled)
    among = heterogeneity(*about, np.random.default_rng(seed), groups, least=LEAST, many=True)
    return [among.pvalue, heterogeneity(*about, np.random.default_rng(seed), groups).pvalue]


def main() -> None:
    options = arguments.parser(__doc__, repetitions=4000, write=True).parse_args()
    n = options.repetitions
    title = [f"{100 * level:.2g} %" for level in LEVELS[:3]] + ["0.05 / 180"]
    lines = [
        "# The test of periods where many courses are followed",
        "",
        f"Written by `python -m benchmarks.coverage.period_tests --repetitions {n}`.",
        "",
        *str(__doc__).strip().splitlines()[4:],
        "",
        "Share of courses, in per cent ± standard error, whose p-value is at most a level.",
        "",
        "| rows | truth | test | " + " | ".join(title) + " |",
        "|---|---|---|" + "---:|" * len(LEVELS),
    ]
    for kind in KINDS:
        for odd, truth in ((False, "calibrated"), (True, "one period differs")):
            number = n // 10 if odd else n
            found = np.array([pvalues(kind, seed, odd=odd) for seed in range(number)])
            for name, each in zip(("of many", "1999 draws"), found.T, strict=True):
                shares = [float(np.mean(each <= level * (1 + 1e-9))) for level in LEVELS]
                told = [f"{100 * s:.2f} ± {100 * (s * (1 - s) / number) ** 0.5:.2f}" for s in shares]
                lines.append(f"| {kind} | {truth} | {name} | " + " | ".join(told) + " |")
                print(lines[-1], flush=True)
    arguments.finish(options, lines)


if __name__ == "__main__":
    main()
