"""Do the intervals of `decision_calibration_error` and `expected_cost` cover the truth? A section of docs/clinical.md.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.decision_coverage [--repetitions 200] [--write docs/clinical.md]

Scores are uniform, outcomes follow maps of `calibrant.datasets.true_map`, and one that is right below 0.3 only.
"""

from collections.abc import Callable

import numpy as np

import calibrant as cal
from calibrant.datasets import true_map

from .. import arguments
from ..section import write_section

SIZES = (300, 1000, 5000)
REGIONS = ((0.05, 0.25), (0.4, 0.6))
COSTS = np.array([[0.0, 1.0, 0.4], [4.0, 0.0, 0.4]])
GRID = (np.arange(20_000) + 0.5) / 20_000
MAPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    **{kind: lambda s, kind=kind: true_map(s, kind) for kind in ("calibrated", "overconfident", "shifted", "wavy")},
    "right below 0.3": lambda s: np.where(s < 0.3, s, np.minimum(s**2 + 0.21, 1.0)),
}


def truth(name: str, region: tuple[float, float]) -> tuple[float, float]:
    """Error and regret: midpoints of scores, and of thresholds."""
    right = MAPS[name](GRID)
    inside = np.abs(GRID - np.mean(region)) <= (region[1] - region[0]) / 2
    error = float(np.abs(right - GRID)[inside].mean())
    thresholds = region[0] + (region[1] - region[0]) * (np.arange(400) + 0.5) / 400
    low, high = np.minimum(right, GRID), np.maximum(right, GRID)
    regret = [float((np.abs(right - c) * ((low < c) & (c < high))).mean()) for c in thresholds]
    return error, float(np.mean(regret))


def true_costs(name: str) -> tuple[float, float, float]:
    """Cost a row of decisions by the scores, what the scores say, and by the true map."""
    right = MAPS[name](GRID)
    real, said = (np.column_stack([1 - q, q]) @ COSTS for q in (right, GRID))
    taken, rows = said.argmin(axis=1), np.arange(GRID.size)
    return float(real[rows, taken].mean()), float(said[rows, taken].mean()), float(real.min(axis=1).mean())


def errors(name: str, region: tuple[float, float], n: int, repetitions: int) -> list[float]:
    """Coverage of error and regret, and their mean estimates."""
    wanted = truth(name, region)
    rng = np.random.default_rng([n, *name.encode()])
    kept = []
    for _ in range(repetitions):
        p = rng.random(n)
        found = cal.decisions.decision_calibration_error(
            rng.random(n) < MAPS[name](p), p, thresholds=region, n_resamples=100, random_state=rng
        )
        pairs = ((found.error_interval, wanted[0]), (found.regret_interval, wanted[1]))
        kept.append((*(low <= t <= high for (low, high), t in pairs), found.error, found.regret))
    return [*wanted, *np.mean(np.array(kept, dtype=float), axis=0)]


def costs(name: str, n: int, repetitions: int) -> list[float]:
    """Coverage of the realised cost, of its gap to the stated one, and of the excess; size or power of the test."""
    real, said, best = true_costs(name)
    rng = np.random.default_rng([n, *name.encode()])
    kept = []
    for _ in range(repetitions):
        p = rng.random(n)
        found = cal.expected_cost((rng.random(n) < MAPS[name](p)).astype(int), p, COSTS)
        pairs = ((found.realised, real), (found.gap, real - said), (found.excess, real - best))
        kept.append(
            (*(m.interval.low <= t <= m.interval.high for m, t in pairs), found.gap_pvalue <= 0.05, found.excess.value)
        )
    return [real, real - said, real - best, *np.mean(np.array(kept, dtype=float), axis=0)]


NOTE = """
Written by `benchmarks/coverage/decision_coverage.py`: {repetitions} samples a row, 95 % intervals, standard error
of a share
of 95 % {se:.1f} points. Scores are uniform.

`decision_calibration_error`, a range of thresholds:

{first}

The interval of the error of a range in which scores are right (calibrated, and the last map below 0.3) starts at 0
whenever the test of the range does not reject; elsewhere that makes it wide rather than short. A wave, which the prior
finds unlikely, is held less often by small samples.

`expected_cost`, two classes and three decisions (a false alarm costs 1, a miss 4, to ask 0.4), costs a row; *excess*
is the cost of deciding by the scores instead of the true map, and its interval is for deciding by a cross-fitted
beta calibration, which is a little worse than the true map: that is why its interval covers the true value less
often and lies too low.

{second}
"""


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=200, write=True)
    options = parser.parse_args()
    first = [
        "| map | thresholds | n | true error | mean estimate | holds, % | true regret | mean estimate | holds, % |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    second = [
        "| map | n | cost | holds, % | cost - stated | holds, % | p ≤ 0.05, % | excess | mean estimate | holds, % |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name in MAPS:
        for n in SIZES:
            real, gap, excess, *held, rejects, estimate = costs(name, n, options.repetitions)
            a, b, c = (f"{100 * v:.1f}" for v in held)
            second.append(
                f"| {name} | {n} | {real:.4f} | {a} | {gap:+.4f} | {b} | {100 * rejects:.1f} | {excess:.4f} | "
                f"{estimate:.4f} | {c} |"
            )
            print(second[-1], flush=True)
            for region in REGIONS:
                error, regret, held_error, held_regret, mean_error, mean_regret = errors(
                    name, region, n, options.repetitions
                )
                first.append(
                    f"| {name} | {region[0]:g} to {region[1]:g} | {n} | {error:.4f} | {mean_error:.4f} | "
                    f"{100 * held_error:.1f} | {regret:.6f} | {mean_regret:.6f} | {100 * held_regret:.1f} |"
                )
                print(first[-1], flush=True)
    se = 100 * np.sqrt(0.05 * 0.95 / options.repetitions)
    text = NOTE.format(repetitions=options.repetitions, se=se, first="\n".join(first), second="\n".join(second))
    if options.write is not None:
        write_section(options.write, "Decisions", text)


if __name__ == "__main__":
    main()
