"""Family-wise error, power and coverages of `subgroup_calibration`, by simulation; a section of docs/clinical.md.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.subgroups [--repetitions 400] [--write docs/clinical.md]

Subgroup sizes fall geometrically, the largest ten times the smallest; scores are Beta(1, 3) in one half of the
subgroups and uniform in the other, so that subgroups differ in base rates. Where one is off, it is the second largest:
its log odds are shifted by 0.5, or have 1.6 times the stated slope.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

import calibrant as cal
from calibrant.data.problem import Problem
from calibrant.estimators.base import EstimatorWithSE, PowerAndSE

from .. import arguments
from ..section import write_section

CASES = ((2, 400), (5, 1000), (5, 5000), (20, 5000))
TRUTHS = ("calibrated", "one shifted", "one too flat")


@dataclass(frozen=True)
class InTheLarge(EstimatorWithSE):
    """Size of the mean residual: calibration errors are not looked at here (their coverage: docs/coverage.md)."""

    def _power_and_se(self, problem: Problem, norm: float) -> PowerAndSE:
        residual = problem.outcomes - problem.scores
        return PowerAndSE(abs(float(residual.mean())), float(residual.std() / np.sqrt(residual.size)))


def drawn(truth: str, subgroups: int, n: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Subgroup, scores and true probabilities."""
    share = np.geomspace(10, 1, subgroups)
    subgroup = rng.choice(subgroups, n, p=share / share.sum())
    p = np.where(subgroup % 2 == 0, rng.beta(1, 3, n), rng.random(n))
    z = logit(p)
    off = {"calibrated": z, "one shifted": z + 0.5, "one too flat": 1.6 * z}[truth]
    return subgroup, p, expit(np.where(subgroup == 1, off, z))


def cell(truth: str, subgroups: int, n: int, repetitions: int) -> dict[str, float]:
    """Shares of samples."""
    rng = np.random.default_rng([subgroups, n, *truth.encode()])
    kept = []
    for _ in range(repetitions):
        subgroup, p, right = drawn(truth, subgroups, n, rng)
        y = (rng.random(n) < right).astype(int)
        gaps = {g: float((right - p)[subgroup == g].mean()) for g in np.unique(subgroup)}
        row = []
        for test in ("kuiper", "in-the-large"):
            found = cal.subgroup_calibration(
                y, p, subgroup, test=test, estimator=InTheLarge(), n_resamples=999, random_state=rng
            )
            fine = [g.value != 1 or truth == "calibrated" for g in found.subgroups]
            wrong = any(g.holm <= 0.05 for g, ok in zip(found.subgroups, fine, strict=True) if ok)
            off = [g.holm <= 0.05 for g, ok in zip(found.subgroups, fine, strict=True) if not ok]
            row += [wrong, off[0] if off else np.nan]
        column = found.columns[0]
        inside = [g.gap_interval.low <= gaps[g.value] <= g.gap_interval.high for g in found.subgroups]
        pair = column.largest_difference
        values = {g.name: gaps[g.value] for g in found.subgroups}
        true = values[pair.first] - values[pair.second]
        row += [np.mean(inside), pair.interval.low <= true <= pair.interval.high, column.heterogeneity.pvalue <= 0.05]
        kept.append(row)
    names = ("fwer kuiper", "power kuiper", "fwer large", "power large", "gaps", "difference", "heterogeneity")
    return dict(zip(names, np.mean(np.array(kept, dtype=float), axis=0), strict=True))


NOTE = """
Written by `benchmarks/coverage/subgroups.py`: {repetitions} samples a row, in percent; standard error of an entry
of 5 or 95 is
{se:.1f}. *False* is the share of samples in which a calibrated subgroup is called off at 5 % after Holm's
correction, wanted at most 5; *found* that in which the subgroup that is off is. *Gaps covered*: share of 95 %
intervals of gaps that cover the true one, given the scores (mean over subgroups); *difference covered*: of the interval
of the largest difference. *Subgroups differ*: heterogeneity rejected at 5 %, its size where all are calibrated.
Subgroup sizes fall from the first to a tenth of it; base rates differ between subgroups.

{table}

- Holm's correction keeps its promise for both tests, within the noise of the simulation. A shift is found about as
  often by Kuiper's test as by that of the gap.
- Intervals of gaps are conservative up to 200 rows, where they are exact. The interval of the largest difference allows
  for all pairs.
- Heterogeneity is a test of intercepts: different slopes move it only as far as they move outcomes at the scores that
  the subgroup has.
- Rows that belong together (`groups=`) are simulated in
  [groups_elsewhere.md](../benchmarks/coverage/groups_elsewhere.md).
"""


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=400, write=True)
    options = parser.parse_args()
    lines = [
        "| truth | subgroups | rows | Kuiper: false | found | gap: false | found | gaps covered | difference covered | "
        "subgroups differ |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for truth in TRUTHS:
        for subgroups, n in CASES:
            found = cell(truth, subgroups, n, options.repetitions)
            shown = ["" if np.isnan(v) else f"{100 * v:.1f}" for v in found.values()]
            lines.append(f"| {truth} | {subgroups} | {n} | " + " | ".join(shown) + " |")
            print(lines[-1], flush=True)
    se = 100 * np.sqrt(0.05 * 0.95 / options.repetitions)
    text = NOTE.format(repetitions=options.repetitions, se=se, table="\n".join(lines))
    if options.write is not None:
        write_section(options.write, "Subgroups", text)


if __name__ == "__main__":
    main()
