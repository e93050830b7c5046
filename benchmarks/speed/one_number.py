"""The plain binned ECE of one column beside ten lines of NumPy and relplot's, and the default of a hundred classes.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.one_number [--rounds 7] [--write benchmarks/speed/one_number.md]

The numbers of a hundred classes are in units: ``np.sort`` of ten million doubles in the same process.
Memory that an earlier call left behind changes what a later one costs, so each measurement is a fresh process that
warms up on the same rows; everybody takes turns. relplot counts a score that lies on an edge in the bin above it and we
in the bin below, so scores keep off the edges, and all three must then give the same number. Needs relplot (PyPI).
"""

import json
import statistics
import subprocess
import sys

import numpy as np

import calibrant as cal
from calibrant import Predictions
from calibrant.data.writing import write_text
from calibrant.estimators.empirical_bayes import WIDE, rank_cells
from calibrant.estimators.laplace import fit
from calibrant.measure.estimation import POSTERIOR
from calibrant.measure.question import Question
from calibrant.notions import as_notion
from calibrant.sums import Grid

from .. import arguments
from .timing import cpu_seconds

BINS = 15
SIZES = (1_000, 100_000, 1_000_000)
#: Calls in a row by size: some tenths of a second.
CALLS = {1_000: 2_000, 100_000: 200, 1_000_000: 20}


def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    p = rng.random(n)
    p = np.where(np.abs(p * BINS - np.round(p * BINS)) < 1e-6, p + 1e-5, p)
    return (rng.random(n) < p).astype(np.int64), p


def naive(y: np.ndarray, p: np.ndarray) -> float:
    """What a person writes."""
    place = np.minimum((p * BINS).astype(np.intp), BINS - 1)
    return float(np.abs(np.bincount(place, y - p, BINS)).sum() / len(p))


def ours(y: np.ndarray, p: np.ndarray) -> float:
    return cal.calibration_error(y, p, estimator=cal.Binned(BINS))


def checked(y: np.ndarray, p: np.ndarray) -> float:
    """The same of rows that were checked before: relplot checks nothing."""
    global _judged
    if _judged is None:
        _judged = cal.as_predictions(y, p)
    return cal.calibration_error(_judged, estimator=cal.Binned(BINS))


_judged: Predictions | None = None


def relplot(y: np.ndarray, p: np.ndarray) -> float:
    from relplot.metrics import binnedECE

    return float(binnedECE(p, y, nbins=BINS))


#: Rows and classes.
MANY = (10_000, 100)
WHO = {"calibrant": ours, "checked before": checked, "NumPy by hand": naive, "relplot": relplot}


def many(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(k, 0.5), n)
    y = np.minimum((p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), k - 1)
    y[:k] = np.arange(k)
    return y, p


def measure_units() -> None:
    """Print units of a class-wise number and of its estimate; the number must be the mean of those of the classes."""
    y, p = many(*MANY)
    judged = cal.as_predictions(y, p)
    value = cal.calibration_error(judged, notion="classwise")
    each = [cal.calibration_error(judged, notion=cal.notions.ClassSpecific(c)) for c in range(MANY[1])]
    if abs(value - np.mean(each)) > 1e-12:
        raise SystemExit(f"the number of all classes is {value}, the mean of theirs {np.mean(each)}")
    doubles = np.random.default_rng(0).random(10**7)
    unit = min(cpu_seconds(lambda: np.sort(doubles)) for _ in range(5))
    found = {
        "`calibration_error`": min(
            cpu_seconds(lambda: cal.calibration_error(y, p, notion="classwise")) for _ in range(7)
        ),
        "`estimate`": min(cpu_seconds(lambda: cal.estimate(y, p, notion="classwise")) for _ in range(3)),
    }
    found |= parts_of_estimate(judged)
    print(json.dumps({name: seconds / unit for name, seconds in found.items()}))


def parts_of_estimate(judged: Predictions) -> dict[str, float]:
    """What an interval cannot do without, beside the number: fits of the wide prior, and the draws of its bootstrap."""
    problems = as_notion("classwise", judged).reduce(judged)
    sums = [Grid().of(tile) for tile in problems.tiles()]
    cells = [c for one in sums for _, c in rank_cells(one, 1 << 14)]
    draws = POSTERIOR * Question.of(judged, notion="classwise").n_draws(400)
    rng = np.random.default_rng(0)

    def bootstrap() -> None:
        for c in cells:
            for shape in (c.positive, c.count - c.positive):
                rng.standard_gamma(np.broadcast_to(shape[:, None, :], (len(shape), draws, shape.shape[-1])))

    return {
        "of it, sums of the rows": min(cpu_seconds(lambda: [Grid().of(t) for t in problems.tiles()]) for _ in range(3)),
        "of it, fits of the wide prior": min(cpu_seconds(lambda: [fit(c, WIDE) for c in cells]) for _ in range(3)),
        f"of it, gamma variables of {draws} draws": min(cpu_seconds(bootstrap) for _ in range(3)),
    }


def measure(name: str, n: int) -> None:
    """Print the value, and the least CPU seconds a call of several blocks; in a process of its own."""
    y, p = rows(n)
    value = WHO[name](y, p)
    number = CALLS[n]
    cpu_seconds(lambda: WHO[name](y, p), max(2, number // 10))
    best = min(cpu_seconds(lambda: WHO[name](y, p), max(1, number // 5)) for _ in range(5))
    print(json.dumps({"value": value, "seconds": best}))


def main() -> None:
    options = arguments.parser(__doc__, rounds=7, write=True)
    options.add_argument("--measure", nargs=2, metavar=("WHO", "ROWS"), help="one measurement, for the script itself")
    options.add_argument("--units", action="store_true", help="the numbers of many classes, for the script itself")
    given = options.parse_args()
    if given.units:
        measure_units()
        return
    if given.measure:
        measure(given.measure[0], int(given.measure[1]))
        return
    lines = [
        "# One number\n",
        f"Written by `python -m benchmarks.speed.one_number --rounds {given.rounds}`: medians of as many processes"
        " each, in turns.\n",
        "| rows | calibrant, µs | of `Predictions`, checked before, µs | NumPy by hand, µs | relplot, µs "
        "| calibrant / relplot (least – most of the turns) | checked before / relplot |",
        "|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for n in SIZES:
        found: dict[str, list[dict[str, float]]] = {name: [] for name in WHO}
        for _ in range(given.rounds):
            for name, results in found.items():
                command = [sys.executable, "-m", "benchmarks.speed.one_number", "--measure", name, str(n)]
                results.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
        values = {name: results[0]["value"] for name, results in found.items()}
        spread = max(values.values()) - min(values.values())
        if spread > 1e-12:
            raise SystemExit(f"they differ at {n} rows: {values}")
        mid = {name: statistics.median(r["seconds"] for r in results) * 1e6 for name, results in found.items()}
        ratios, bare = (
            [a["seconds"] / b["seconds"] for a, b in zip(found[name], found["relplot"], strict=True)]
            for name in ("calibrant", "checked before")
        )
        lines.append(
            f"| {n:,} | " + " | ".join(f"{mid[name]:,.0f}" for name in WHO) + " | "
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f} – {max(ratios):.2f}) | {statistics.median(bare):.2f} |"
        )
        print(lines[-1], flush=True)
    command = [sys.executable, "-m", "benchmarks.speed.one_number", "--units"]
    units = [
        json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        for _ in range(given.rounds)
    ]
    lines += [
        "",
        f"| class-wise, {MANY[0]:,} rows, {MANY[1]} classes, the default | units (least – most) |",
        "|--:|--:|",
    ]
    for name in units[0]:
        found_units = [result[name] for result in units]
        low, high = min(found_units), max(found_units)
        lines.append(f"| {name} | {statistics.median(found_units):.2f} ({low:.2f} – {high:.2f}) |")
        print(lines[-1], flush=True)
    if given.write is not None:
        write_text(given.write, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
