"""Does the test of periods keep its level, and its power, where many courses are followed?

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.period_tests [--repetitions 2000]

One of C = 60 courses over 6 periods of 40 rows each, scores of a beta distribution (1, 20): rejected beside all others
with a p-value of at most 0.05 / 180 (three tests of each). *Of many* is the test that is then used, *1999 draws* that
of one course by itself, whose p-value is 1/2000 at least. Independent rows, rows of relative weights, and rows in 40
groups that are in all periods, whose log-odds vary with a standard deviation of 0.7; calibrated, or with outcomes as
likely as 1 - (1 - p)^8 in one period.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from typing import Any

import numpy as np

from calibrant.comparison.subgroups.build import SubgroupsOfRows
from calibrant.comparison.subgroups.heterogeneity import GroupScores, PooledMap, SubgroupTotals, heterogeneity
from calibrant.comparison.subgroups.membership import Subgroups
from calibrant.data.problem import Problem

from ..experiment import Experiment, title
from ..markdown import share, table
from ..provenance import Kept

COURSES, PERIODS, ROWS, GROUPS = 60, 6, 40, 40
LEAST = 0.05 / 3 / COURSES
LEVELS = (0.05, 0.01, 0.001, LEAST)
KINDS = ("independent", "weights", "groups")
TRUTHS = ("calibrated", "one period differs")
TESTS = ("of many", "1999 draws")
#: P-values of draws are compared as fractions.
_ROUNDED = 1 + 1e-9


def sample(rows: str, truth: str, seed: int) -> dict[str, float]:
    """P-values of one course: among many, and by itself."""
    rng = np.random.default_rng(seed)
    period = np.repeat(np.arange(PERIODS), ROWS)
    p = rng.beta(1, 20, period.size)
    chance = np.where((truth != "calibrated") & (period == 3), 1 - (1 - p) ** 8, p)
    group = None
    if rows == "groups":
        group = rng.integers(GROUPS, size=period.size)
        odds = np.log(chance / (1 - chance)) + rng.normal(0, 0.7, GROUPS)[group]
        chance = 1 / (1 + np.exp(-odds))
    y = (rng.random(period.size) < chance).astype(np.float64)
    w = rng.random(period.size) if rows == "weights" else None
    named = Subgroups("period", period, tuple(range(PERIODS)))
    column = SubgroupsOfRows.of(Problem(p, y, w, w is None), named, group)
    cells = column.cells.coarse
    pooled = PooledMap.of(cells, column.design)
    if pooled is None:
        return dict.fromkeys(TESTS, 1.0)
    about: Any = (cells, pooled, SubgroupTotals.of(cells, pooled), period.size)
    groups = GroupScores.of(cells, pooled)
    among = heterogeneity(*about, np.random.default_rng(seed), groups, least=LEAST, many=True)
    alone = heterogeneity(*about, np.random.default_rng(seed), groups)
    return dict(zip(TESTS, (among.pvalue, alone.pvalue), strict=True))


def page(kept: Kept) -> Iterator[str]:
    yield from title(__doc__)
    calm = kept.where(truth="calibrated")["of many"] <= LEVELS[0]
    yield f"Of calibrated courses the test rejects {share(calm.astype(float))} % at 5 %; of those with an odd period it"
    yield f"rejects {_odd(kept, 'of many')} % at the level of a correction for all courses, draws alone"
    yield f"{_odd(kept, '1999 draws')} %."
    yield ""
    yield "Share of courses, in per cent with its standard error, whose p-value is at most a level."
    yield ""
    head = [f"{100 * level:.2g} %" for level in LEVELS[:3]] + ["0.05 / 180"]
    yield from table(("rows", "truth", "test", *head), _lines(kept), texts=3)


def _odd(kept: Kept, test: str) -> str:
    return share((kept.where(truth=TRUTHS[1])[test] <= LEAST * _ROUNDED).astype(float))


def _lines(kept: Kept) -> Iterator[list[str]]:
    for case in EXPERIMENT.every():
        some = kept.where(**case)
        for name in TESTS:
            yield [*case.values(), name, *(share((some[name] <= v * _ROUNDED).astype(float)) for v in LEVELS)]


EXPERIMENT = Experiment(__spec__.name, {"rows": KINDS, "truth": TRUTHS}, sample, page, repetitions=2000, quick=20)

if __name__ == "__main__":
    EXPERIMENT.main()
