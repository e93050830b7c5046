"""Do tests of calibrated rows in three to eight groups reject no more than 5 %?

    python -m benchmarks.coverage.few_groups [--repetitions 400]

With G groups no p-value should be below 2^(1 - G), so five groups or fewer can show nothing at 5 %. *Hospitals* have 50
rows and an effect that the model does not see (sd 0.5). *Events* have sixty forecasts each. *Rare outcomes* are groups
of 50 independent rows with scores from Beta(1, 30), sometimes without any positive. Pearson's test uses scores rounded
to tenths, and independent outcomes drawn from them.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, table
from ..provenance import Kept
from .grouped_rows import TESTS, Rows, clusters, forecasts


def rare(rng: np.random.Generator, n_groups: int) -> Rows:
    """Fifty independent rows per group, of which 3 % come on average."""
    scores = rng.beta(1, 30, 50 * n_groups)
    return np.repeat(np.arange(n_groups), 50), scores, rng.random(scores.size) < scores


CASES: dict[str, Callable[[np.random.Generator, int], Rows]] = {
    "hospitals": lambda rng, g: clusters(rng, np.full(g, 50), 0.5),
    "events": forecasts,
    "rare outcomes": rare,
}
GROUPS = range(3, 9)
#: Numbers of groups with which a test at 5 % cannot reject, and with which it can.
UNSEEN, SEEN = (3, 4, 5), (6, 7, 8)
ALL = TESTS | {
    "kernel": lambda p: cal.significance.kernel_test(p, n_resamples=199),
    "subgroup_calibration": lambda p: cal.subgroup_calibration(p, by=np.zeros(p.n_samples, int)).subgroups[0],
}
ALPHA = 0.05


def sample(rows: str, groups: int, seed: int) -> dict[str, float]:
    """P-values."""
    rng = np.random.default_rng([seed, [*CASES].index(rows), groups])
    group, scores, outcome = CASES[rows](rng, groups)
    coarse = np.round(scores * 10) / 10 * 0.98 + 0.01
    tenths = cal.as_predictions(rng.random(coarse.size) < coarse, coarse, groups=group, labels=[0, 1])
    p = cal.as_predictions(outcome, scores, groups=group, labels=[0, 1])
    return {name: float(test(tenths if name == "Pearson" else p).pvalue) for name, test in ALL.items()}


def of_groups(kept: Kept, name: str, numbers: tuple[int, ...], **case: str) -> np.ndarray:
    """P-values with such numbers of groups."""
    return np.concatenate([kept.where(groups=g, **case)[name] for g in numbers])


def rejected(kept: Kept, name: str, numbers: tuple[int, ...], **case: str) -> np.ndarray:
    return (of_groups(kept, name, numbers, **case) <= ALPHA).astype(float)


def below(kept: Kept, name: str) -> int:
    """How many p-values are below what so many groups can show."""
    return sum(int((of_groups(kept, name, (g,)) < 2.0 ** (1 - g) - 1e-12).sum()) for g in GROUPS)


def answer(kept: Kept) -> str:
    never = np.concatenate([rejected(kept, name, UNSEEN) for name in ALL])
    shares = {
        (name, rows, g): percent(rejected(kept, name, (g,), rows=rows)) for name in ALL for rows in CASES for g in SEEN
    }
    (name, rows, g), (most, error) = max(shares.items(), key=lambda one: one[1][0])
    average = np.mean([value for value, _ in shares.values()])
    over = sum(value - 2 * error > 100 * ALPHA for value, error in shares.values())
    return (
        f"With three to five groups, {never.sum():.0f} of {never.size:,} tests at 5 % reject. With six to eight, "
        f"{average:.1f} % reject on average and {most:.1f} ± {error:.1f} % at worst ({name}, {g} groups, {rows}); "
        f"{over} of {len(shares)} shares are above 5 % by more than two standard errors. P-values are "
        f"below 2^(1 - G) in {sum(below(kept, name) for name in ALL)} of {len(kept) * len(ALL):,} tests."
    )


def picture(kept: Kept) -> Figure:
    series = {rows: [percent(rejected(kept, name, SEEN, rows=rows)) for name in ALL] for rows in CASES}
    return dots([*ALL], series, "rejected with six to eight groups, % of calibrated samples", 100 * ALPHA, share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives the per cent of calibrated samples rejected at 5 %, with six to eight groups."
    yield ""
    yield from table(("test", *CASES), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for name in ALL:
        yield [name, *(f"{100 * rejected(kept, name, SEEN, rows=rows).mean():.1f}" for rows in CASES)]


EXPERIMENT = Experiment(
    __spec__.name, {"rows": CASES, "groups": GROUPS}, sample, answer, page, picture, repetitions=400
)

if __name__ == "__main__":
    EXPERIMENT.main()
