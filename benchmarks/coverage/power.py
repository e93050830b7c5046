"""Size and power of the tests of calibration, by simulation; writes docs/tests.md.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.power [--repetitions 400] [--jobs 2] [--write docs/tests.md]
        [--keep FILE]

Scores are uniform; outcomes follow the maps of `calibrant.datasets.true_map` and two more, all with an L1 calibration
error that shrinks the map towards the identity until it is 0.05, so that columns can be compared.
`--keep` names a JSON file of cells done (a distribution and a size): they are read from it, and the others are added.
"""

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import brentq

import calibrant as cal
from calibrant.data.writing import write_text
from calibrant.datasets import true_map

from .. import arguments

ERROR = 0.05
SIZES = (100, 500, 2000)
GRID = (np.arange(20_000) + 0.5) / 20_000
MAPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "overconfident": lambda s: true_map(s, "overconfident"),
    "underconfident": lambda s: true_map(s, "underconfident"),
    "shifted": lambda s: true_map(s, "shifted"),
    "wavy": lambda s: true_map(s, "wavy"),
    "local": lambda s: s + 0.5 * np.exp(-(((s - 0.3) / 0.06) ** 2)),
}
DRAWS = 99
TESTS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "Hosmer–Lemeshow, external": lambda y, p: cal.significance.hosmer_lemeshow_test(y, p, df="external").pvalue,
    "Hosmer–Lemeshow, fit": lambda y, p: cal.significance.hosmer_lemeshow_test(y, p, df="fit").pvalue,
    "Spiegelhalter": lambda y, p: cal.significance.spiegelhalter_test(y, p).pvalue,
    "Cox": lambda y, p: cal.significance.cox_test(y, p).pvalue,
    "cumulative, KS": lambda y, p: cal.significance.cumulative_test(y, p, statistic="ks").pvalue,
    "cumulative, Kuiper": lambda y, p: cal.significance.cumulative_test(y, p).pvalue,
    "resampling, residuals (default)": lambda y, p: (
        cal.calibration_test(y, p, n_resamples=DRAWS, random_state=0).pvalue
    ),
    "resampling, 15 bins": lambda y, p: (
        cal.calibration_test(y, p, estimator=cal.Binned(15), n_resamples=DRAWS, random_state=0).pvalue
    ),
    "kernel, resampling": lambda y, p: cal.significance.kernel_test(y, p, n_resamples=DRAWS, random_state=0).pvalue,
    "kernel, blocks of √n rows": lambda y, p: (
        cal.significance.kernel_test(y, p, algorithm="asymptotic", random_state=0).pvalue
    ),
    "adaptive": lambda y, p: cal.significance.adaptive_test(y, p, n_resamples=DRAWS, random_state=0).pvalue,
    "e-value, sequential": lambda y, p: cal.significance.evalue_test(y, p, random_state=0).pvalue,
    "e-value, split": lambda y, p: cal.significance.evalue_test(y, p, algorithm="split", random_state=0).pvalue,
}


def shrunk(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """The map drawn towards the identity until its mean absolute gap is ERROR."""
    if name == "calibrated":
        return lambda s: s
    gap = MAPS[name](GRID) - GRID
    whole = np.abs(gap).mean()
    if whole >= ERROR:
        return lambda s: np.clip(s + ERROR / whole * (MAPS[name](s) - s), 0, 1)

    def size(factor: float) -> float:
        return float(np.abs(np.clip(GRID + factor * gap, 0, 1) - GRID).mean()) - ERROR

    factor = brentq(size, 0, 50)
    return lambda s: np.clip(s + factor * (MAPS[name](s) - s), 0, 1)


def cell(name: str, n: int, repetitions: int) -> dict[str, float]:
    """Share of samples that each test rejects at 5 %."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([n, *name.encode()])
    law = shrunk(name)
    rejected = dict.fromkeys(TESTS, 0)
    for _ in range(repetitions):
        p = rng.random(n)
        y = (rng.random(n) < law(p)).astype(int)
        for test, run in TESTS.items():
            rejected[test] += run(y, p) <= 0.05
    return {test: count / repetitions for test, count in rejected.items()}


PAGE = """# Tests of calibration: size and power

Written by `OMP_NUM_THREADS=1 python -m benchmarks.coverage.power --repetitions {repetitions} --write
docs/tests.md`: the share
of {repetitions} samples in which each test rejects calibration at 5 %, in percent (standard error of one entry at most
{se:.1f}, at 5 % {small:.1f}). Scores are uniform. “calibrated” is the size, wanted 5; the other columns have a mean
absolute gap of {error:g}, and there more is better. Tests by resampling draw {draws} times.

{tables}

What follows from it:

- Hosmer and Lemeshow's own degrees of freedom (`df="fit"`) are for rows that the model was fitted to. On new rows they
  reject too many calibrated models; `df="external"` does not. Every other test keeps its size, within the error of the
  simulation.
- Spiegelhalter's z is best, or next to it, for over- and underconfidence, and nearly blind to a shift and to waves.
  Cox's test is close to the best where the log odds are off by a line, and blind to waves.
- The cumulative tests and the kernel test by resampling are strong where gaps have one sign (shifted), and weak for
  waves at N = 500. The kernel test by blocks of √n rows (its asymptotic form) finds far less than by resampling, for N
  up to 500 less than half.
- The default resampling test is exact for every size. Of the tests that keep their size none is better for waves, and
  it is worst in no column.
- The adaptive test is exact too. It is best, or next to it, for the narrow gap (local), and finds waves more often than
  all but the default and the tests with fixed bins.
- E-values reject fewer calibrated models than they may (sequential at most {sequential:.1f} %, splits {split:.1f} %):
  that is their price. For N = 100 they find less than half of what the best tests find. For N = 500 the sequential one
  is level with the default for over- and underconfidence, and behind it in the other columns. It is the only one of the
  table that may be looked at after every row. Splits find less.
"""


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=400, jobs=2, write=True)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    names = ["calibrated", *MAPS]
    items = [(name, n) for n in SIZES for name in names]
    kept = json.loads(options.keep.read_text()) if options.keep is not None and options.keep.exists() else {}
    keys = {item: f"{item[0]} {item[1]} {options.repetitions}" for item in items}
    left = [item for item in items if set(kept.get(keys[item], ())) != set(TESTS)]
    runs = Parallel(n_jobs=options.jobs, return_as="generator")(
        delayed(cell)(name, n, options.repetitions) for name, n in left
    )
    for item, found in zip(left, runs, strict=True):
        kept[keys[item]] = found
        if options.keep is not None:
            write_text(options.keep, json.dumps(kept))
    table = {item: kept[keys[item]] for item in items}
    blocks = []
    for n in SIZES:
        lines = [f"## N = {n}", "", "| test | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
        for test in TESTS:
            cells = [f"{100 * table[name, n][test]:.1f}" for name in names]
            lines.append(f"| {test} | " + " | ".join(cells) + " |")
        blocks.append("\n".join(lines))
    se, small = (100 * np.sqrt(q * (1 - q) / options.repetitions) for q in (0.5, 0.05))
    size = {
        kind: 100 * max(table["calibrated", n][f"e-value, {kind}"] for n in SIZES) for kind in ("sequential", "split")
    }
    page = PAGE.format(
        **size,
        repetitions=options.repetitions,
        se=se,
        small=small,
        error=ERROR,
        draws=DRAWS,
        tables="\n\n".join(blocks),
    )
    print(page)
    if options.write is not None:
        write_text(options.write, page)


if __name__ == "__main__":
    main()
