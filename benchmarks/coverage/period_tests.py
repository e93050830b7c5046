"""Does the test of periods keep its level, and its power, where many courses are followed?

    python -m benchmarks.coverage.period_tests [--repetitions 2000]

Each sample is one of 60 courses over 6 periods of 40 rows, with scores from a beta distribution (1, 20). Three tests
are made of each course, so that a course among many is rejected at a p-value up to 0.05 / 180. *Many* is the test used
for many courses. *One* is the test of a single course with 1,999 draws, whose p-value is 1/2000 or more. Rows are
independent, have relative weights, or are in 40 groups that span all periods and whose log-odds vary with a standard
deviation of 0.7. Courses are calibrated, or outcomes have probability 1 - (1 - p)^8 in one period.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from calibrant.comparison.subgroups.build import SubgroupsOfRows
from calibrant.comparison.subgroups.heterogeneity import GroupScores, PooledMap, SubgroupTotals, heterogeneity
from calibrant.comparison.subgroups.membership import Subgroups
from calibrant.data.problem import Problem

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, table
from ..provenance import Kept

COURSES, PERIODS, ROWS, GROUPS = 60, 6, 40, 40
LEAST = 0.05 / 3 / COURSES
LEVELS = (0.05, 0.01, 0.001, LEAST)
KINDS = ("independent", "weights", "groups")
TRUTHS = ("calibrated", "one period differs")
TESTS = ("of many", "1999 draws")
#: The same in a table.
NAMES = dict(zip(TESTS, ("many", "one"), strict=True))
#: P-values of draws are compared as fractions.
_ROUNDED = 1 + 1e-9


def sample(rows: str, truth: str, seed: int) -> dict[str, float]:
    """P-values of one course: among many, and alone."""
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


def answer(kept: Kept) -> str:
    many = TESTS[0]
    beyond = [
        f"{rows}, {_level(level)}: {_share(_rejected(kept, rows, TRUTHS[0], many, level))} %"
        for rows in KINDS
        for level in LEVELS
        if percent(_rejected(kept, rows, TRUTHS[0], many, level))[0] > 100 * level
    ]
    calm = [_share(_pooled(kept, TRUTHS[0], many, level)) for level in (LEVELS[0], LEAST)]
    found = [_share(_pooled(kept, TRUTHS[1], test, LEAST)) for test in TESTS]
    told = f" ({'; '.join(beyond)})" if beyond else ""
    return (
        f"The test of many courses rejects {calm[0]} % of calibrated courses at 5 % and {calm[1]} % at 0.05 / 180 "
        f"({100 * LEAST:.3f} %). It exceeds the level in {len(beyond) or 'none'} of {len(KINDS) * len(LEVELS)} cases"
        f"{told}. Where one period differs, it rejects {found[0]} % of courses at 0.05 / 180, and the test of one "
        f"course {found[1]} %."
    )


def picture(kept: Kept) -> Figure:
    told = {"calibrated, at 5 %": (TRUTHS[0], LEVELS[0]), "one differs, at 0.05 / 180": (TRUTHS[1], LEAST)}
    cases = {f"{rows}, {NAMES[test]}": (rows, test) for rows in KINDS for test in TESTS}
    series = {
        name: [percent(_rejected(kept, rows, truth, test, level)) for rows, test in cases.values()]
        for name, (truth, level) in told.items()
    }
    return dots([*cases], series, "courses that are rejected, %", 100 * LEVELS[0], share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives the per cent of courses that are rejected at each level. In those marked *differs*, one"
    yield "period differs."
    yield ""
    yield from table(("rows, truth, test", *map(_level, LEVELS)), _lines(kept))


def _lines(kept: Kept) -> Iterator[list[str]]:
    for case in EXPERIMENT.every():
        for test in TESTS:
            told = [_share(_rejected(kept, **case, test=test, level=level)).split()[0] for level in LEVELS]
            yield [f"{case['rows']}, {case['truth'].split()[-1]}, {NAMES[test]}", *told]


def _rejected(kept: Kept, rows: str, truth: str, test: str, level: float) -> np.ndarray:
    return (kept.where(rows=rows, truth=truth)[test] <= level * _ROUNDED).astype(float)


def _pooled(kept: Kept, truth: str, test: str, level: float) -> np.ndarray:
    return np.concatenate([_rejected(kept, rows, truth, test, level) for rows in KINDS])


def _share(values: np.ndarray) -> str:
    """A share, with a digit more where it is small."""
    p, error = percent(values)
    digits = 1 if p >= 1 else 2
    return f"{p:.{digits}f} ± {error:.{digits}f}"


def _level(level: float) -> str:
    return "0.05 / 180" if level == LEAST else f"{100 * level:.2g} %"


EXPERIMENT = Experiment(
    __spec__.name, {"rows": KINDS, "truth": TRUTHS}, sample, answer, page, picture, repetitions=2000, quick=20
)

if __name__ == "__main__":
    EXPERIMENT.main()
