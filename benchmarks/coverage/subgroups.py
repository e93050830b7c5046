"""Are p-values and intervals of `subgroup_calibration` right?

    python -m benchmarks.coverage.subgroups [--repetitions 200]

Subgroup sizes decrease geometrically; the largest is ten times the smallest. Scores are Beta(1, 3) in one half of
the subgroups and uniform in the other, so that base rates differ. A miscalibrated subgroup is the second largest. Its
log-odds are shifted by 0.5, or have 1.6 times the stated slope (*flat*). P-values are Holm's, from 999 draws. Gaps
are those of the subgroup's rows given their scores. `groups_elsewhere.md` covers rows in groups.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit

import calibrant as cal
from calibrant.data.problem import Problem
from calibrant.estimators.base import EstimatorWithSE, PowerAndSE

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, percent, table
from ..provenance import Kept

#: Subgroups and rows.
SIZES = {"2 of 400": (2, 400), "5 of 1,000": (5, 1_000), "5 of 5,000": (5, 5_000), "20 of 5,000": (20, 5_000)}
TRUTHS = ("calibrated", "shifted", "flat")
TESTS = {"Kuiper": "kuiper", "gap test": "in-the-large"}
#: What a sample says.
SAYS = ("Kuiper: false", "gap test: false", "Kuiper: found", "gap test: found", "gaps: covered", "largest: covered")
SAYS += ("differ: rejected",)
ALPHA, LEVEL = 5, 95


@dataclass(frozen=True)
class InTheLarge(EstimatorWithSE):
    """Size of the mean residual: calibration errors are not looked at here."""

    def _power_and_se(self, problem: Problem, norm: float) -> PowerAndSE:
        residual = problem.outcomes - problem.scores
        return PowerAndSE(abs(float(residual.mean())), float(residual.std() / np.sqrt(residual.size)))


def drawn(truth: str, subgroups: int, n: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Subgroup, scores and true probabilities."""
    share = np.geomspace(10, 1, subgroups)
    subgroup = rng.choice(subgroups, n, p=share / share.sum())
    p = np.where(subgroup % 2 == 0, rng.beta(1, 3, n), rng.random(n))
    z = logit(p)
    off = {"calibrated": z, "shifted": z + 0.5, "flat": 1.6 * z}[truth]
    return subgroup, p, expit(np.where(subgroup == 1, off, z))


def sample(truth: str, sizes: str, seed: int) -> dict[str, float]:
    """Subgroups that are rejected, rightly and wrongly, and intervals that cover."""
    rng = np.random.default_rng([seed, TRUTHS.index(truth), [*SIZES].index(sizes)])
    subgroup, p, right = drawn(truth, *SIZES[sizes], rng)
    y = (rng.random(p.size) < right).astype(int)
    gaps = {g: float((right - p)[subgroup == g].mean()) for g in np.unique(subgroup)}
    out: dict[str, float] = {}
    for name, test in TESTS.items():
        found = cal.subgroup_calibration(
            y, p, subgroup, test=test, estimator=InTheLarge(), n_resamples=999, random_state=rng
        )
        rejected = {g.value: g.holm <= ALPHA / 100 for g in found.subgroups}
        if truth != "calibrated":
            out[f"{name}: found"] = float(rejected.pop(1))
        out[f"{name}: false"] = float(any(rejected.values()))
    (column,) = found.columns
    covered = [g.gap_interval.low <= gaps[g.value] <= g.gap_interval.high for g in found.subgroups]
    pair, values = column.largest_difference, {g.name: gaps[g.value] for g in found.subgroups}
    true = values[pair.first] - values[pair.second]
    out["gaps: covered"] = float(np.mean(covered))
    out["largest: covered"] = float(pair.interval.low <= true <= pair.interval.high)
    out["differ: rejected"] = float(column.heterogeneity.pvalue <= ALPHA / 100)
    return out


def said(kept: Kept, truth: str, sizes: str, what: str) -> tuple[float, float]:
    """Per cent with a standard error, of samples or (gaps) of the subgroups of each."""
    values = kept.where(truth=truth, sizes=sizes)[what]
    if what.startswith("gaps") and np.ptp(values) > 0:
        value, error = estimate(values)
        return 100 * value, 100 * error
    return percent(values)


def answer(kept: Kept) -> str:
    false = {
        (truth, sizes, name): said(kept, truth, sizes, f"{name}: false")
        for truth in TRUTHS
        for sizes in SIZES
        for name in TESTS
    }
    over = sum(value - 2 * error > ALPHA for value, error in false.values())
    gaps, largest = (
        [said(kept, truth, sizes, what) for truth in TRUTHS for sizes in SIZES]
        for what in ("gaps: covered", "largest: covered")
    )
    under = sum(value + 2 * error < LEVEL for value, error in gaps + largest)
    power = {
        (truth, name): np.mean([said(kept, truth, sizes, f"{name}: found")[0] for sizes in SIZES])
        for truth in TRUTHS[1:]
        for name in TESTS
    }
    found = [f"{power[truth, name]:.0f}" for truth in TRUTHS[1:] for name in TESTS]
    return (
        f"A calibrated subgroup is rejected at {ALPHA} % in {_range([v for v, _ in false.values()])} % of samples "
        f"(above {ALPHA} % by more than two standard errors in {over} of {len(false)} cases). {LEVEL} % intervals "
        f"cover gaps in {_range([v for v, _ in gaps])} % and the largest difference in "
        f"{_range([v for v, _ in largest])} % (below {LEVEL} % by more than two standard errors in {under} of "
        f"{len(gaps + largest)} cases). Averaged over sizes, Kuiper's test and the gap test find a shifted subgroup in "
        f"{found[0]} and {found[1]} % of samples and a flat one in {found[2]} and {found[3]} %."
    )


def _range(values: list[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}"


def picture(kept: Kept) -> Figure:
    cases = [(truth, sizes) for truth in TRUTHS for sizes in SIZES]
    series = {f"{name}: false": [said(kept, *case, f"{name}: false") for case in cases] for name in TESTS}
    for what in ("gaps", "largest"):
        covered = [said(kept, *case, f"{what}: covered") for case in cases]
        series[f"{what}: missed"] = [(100 - value, error) for value, error in covered]
    return dots([f"{truth}, {sizes}" for truth, sizes in cases], series, "wrong, %", ALPHA, share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives the percentage of samples, lowest and highest over sizes, in which a calibrated subgroup is"
    yield "rejected at 5 % (*false*), the miscalibrated one is (*found*), 95 % intervals of gaps and of the largest"
    yield "difference cover, and the heterogeneity test rejects (*differ*)."
    yield ""
    yield from table(("what", *TRUTHS), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for what in SAYS:
        cells = []
        for truth in TRUTHS:
            every = [said(kept, truth, sizes, what)[0] for sizes in SIZES]
            cells.append("" if truth == "calibrated" and "found" in what else f"{min(every):.1f}–{max(every):.1f}")
        yield [what, *cells]


EXPERIMENT = Experiment(
    __spec__.name,
    {"truth": TRUTHS, "sizes": SIZES},
    sample,
    answer,
    page,
    picture,
    repetitions=200,
    quick=2,
)

if __name__ == "__main__":
    EXPERIMENT.main()
