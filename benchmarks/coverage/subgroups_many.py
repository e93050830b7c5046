"""Size and coverage of `subgroup_calibration` with many subgroups: sequential draws, the tail, few posterior draws.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.subgroups_many [--repetitions 10000] [--write FILE]

Sizes: p-values of Kuiper's test of calibrated subgroups, as with more than fifty of them (199 draws, of which ten as
large end it, and the tail beyond) and as with fewer (1999 draws). Coverage: 95 % intervals of calibration errors of a
hundred subgroups of one sample, with 400 draws of the posterior, and of the same by fifty, with 2000.
"""

import numpy as np
from scipy.special import expit, logit

import calibrant as cal
from calibrant.comparison.subgroups.build import SubgroupsOfRows
from calibrant.comparison.subgroups.membership import Subgroups
from calibrant.comparison.subgroups.statistics import subgroup_pvalues
from calibrant.data.problem import Problem
from calibrant.data.writing import write_text

from .. import arguments

#: Parameters of the scores' Beta distribution, and rows a subgroup.
CASES = ((1.0, 1.0, 100), (1.0, 3.0, 100), (0.5, 25.0, 400), (1.0, 1.0, 1000))
LEVELS = (0.05, 0.01, 1e-3, 1e-4)
TOGETHER = 2000
SAMPLES = 10


def pvalues(a: float, b: float, rows: int, number: int, *, many: bool) -> np.ndarray:
    """Of so many calibrated subgroups."""
    rng = np.random.default_rng([int(10 * a), int(10 * b), rows, many])
    found = []
    for start in range(0, number, TOGETHER):
        codes = np.repeat(np.arange(min(TOGETHER, number - start)), rows)
        s = rng.beta(a, b, codes.size)
        column = Subgroups("subgroup", codes, tuple(range(int(codes[-1]) + 1)))
        problem = Problem(s, (rng.random(codes.size) < s).astype(int))
        cells = SubgroupsOfRows.of(problem, column, None).cells
        found.append(subgroup_pvalues(cells, "kuiper", 199 if many else 1999, rng, 0.001, many=many))
    return np.concatenate(found)


def coverage() -> dict[str, float]:
    """Shares of intervals that cover the true error, by whether subgroups are calibrated and the number of draws."""
    rng = np.random.default_rng(5)
    held: dict[str, list[bool]] = {}
    for sample in range(SAMPLES):
        codes = np.repeat(np.arange(100), 300)
        p = rng.beta(1, 3, codes.size)
        right = np.where(codes % 2 == 0, p, expit(1.6 * logit(p)))
        y = (rng.random(codes.size) < right).astype(int)
        grid = rng.beta(1, 3, 200_000)
        error = np.abs(expit(1.6 * logit(grid)) - grid).mean()
        few = np.flatnonzero(codes < 50), np.flatnonzero(codes >= 50)
        reports = {"400": [cal.subgroup_calibration(y, p, codes, n_resamples=99, random_state=sample)]}
        reports["2000"] = [
            cal.subgroup_calibration(y[i], p[i], codes[i], n_resamples=99, random_state=sample) for i in few
        ]
        for draws, each in reports.items():
            for one in (subgroup for report in each for subgroup in report.subgroups):
                calibrated = one.value % 2 == 0
                low, high = one.error_interval
                name = f"{'calibrated' if calibrated else 'too flat'}, {draws} draws"
                held.setdefault(name, []).append(low <= (0.0 if calibrated else error) <= high)
    return {name: float(np.mean(values)) for name, values in held.items()}


NOTE = """
Written by `benchmarks/coverage/subgroups_many.py`: {repetitions:,} calibrated subgroups a row. Shares of p-values of
Kuiper's test up to a level, with their standard errors; wanted at most the level. *Many*: as with more than fifty
subgroups, 199 draws at most, of which ten as large as what was observed end it, and where none is the tail of the limit
distribution by a saddlepoint (below 1/200, so at the two last levels). *Few*: 1999 draws, or more.

{sizes}

Shares of 95 % intervals of calibration errors that cover the true one: {samples} samples of a hundred subgroups of 300
rows with scores Beta(1, 3), half of them calibrated and half with log odds 1.6 times too small; each sample as one
report, whose intervals have 400 draws of the posterior, and as two reports on fifty subgroups, with 2000. Standard
error of a share of 95 %: {se:.1f} %.

{coverage}

- Sequential draws hold their size, and so does the tail: it is conservative, as running sums stop at few places, and
  holds for rare outcomes, whose sums are far from normal.
- Fewer draws of the posterior change the coverage of its intervals by nothing that can be seen.
"""


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=10_000, write=True)
    options = parser.parse_args()
    lines = ["| scores | rows | subgroups | " + " | ".join(f"{level:g}" for level in LEVELS) + " |"]
    lines.append("|---|--:|---|" + "--:|" * len(LEVELS))
    for a, b, rows in CASES:
        for many in (True, False):
            number = options.repetitions if many else options.repetitions // 10
            found = pvalues(a, b, rows, number, many=many)
            cells = []
            for level in LEVELS:
                share = np.mean(found <= level)
                cells.append(f"{share:.2g} ± {np.sqrt(max(share, level) / number):.1g}" if level * number >= 2 else "")
            lines.append(f"| Beta({a:g}, {b:g}) | {rows} | {'many' if many else 'few'} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    table = ["| subgroups | share held |", "|---|--:|"]
    table += [f"| {name} | {100 * share:.1f} % |" for name, share in coverage().items()]
    text = NOTE.format(
        repetitions=options.repetitions,
        sizes="\n".join(lines),
        samples=SAMPLES,
        se=100 * np.sqrt(0.05 * 0.95 / (50 * SAMPLES)),
        coverage="\n".join(table),
    )
    print(text)
    if options.write is not None:
        write_text(options.write, f"# Many subgroups\n\n{text.strip()}\n")


if __name__ == "__main__":
    main()
