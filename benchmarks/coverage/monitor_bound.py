"""How soon a change could be found at best: the monitor beside one that knows how large the change will be.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.monitor_bound --store FILE [--repetitions 40] [--write FILE]

Streams, changes and windows are those of `benchmarks/coverage/monitor.md`, with other seeds. *Shift known*: the
likelihood ratio of the true shift against none, begun at every row with a share of 1/100,000 of the wealth, as the
monitor begins its fourteen alternatives; nobody knows the shift, and no mixture over shifts is sooner than it by more
than chance. Its alarm is an e-value of 20, as the monitor's, which bounds false alarms at 5 % for any stream; *tuned*:
its threshold is what 5 % of these calibrated streams exceed, as the thresholds of windows are, which promises nothing
for others. *Best window*: as there.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.monitoring.start_mixture import StartMixture

from .. import arguments
from ..store import lines_of
from .monitor import ALARM, FAMILIES, SHIFTS, START, WINDOWS, N, first, stream

FIRST_SEED = 10_000


def known_shift(s: NDArray[Any], y: NDArray[Any], shift: float) -> NDArray[Any]:
    """Log e-values of the likelihood ratio of a shift, begun at every row with 1/N of the wealth."""
    ratio = np.cumsum(y * shift - np.log1p(s * np.expm1(shift)))
    before = np.concatenate([[0.0], ratio[:-1]])
    log_sum = ratio + np.logaddexp.accumulate(-before) - np.log(N)
    rest = 1 - np.arange(1, N + 1) / N
    with np.errstate(divide="ignore"):
        return np.logaddexp(log_sum, np.log(np.maximum(rest, 0.0)))


def outcome(family: str, shift: float, seed: int) -> dict[str, Any]:
    """The monitor's alarm; largest log e-values of the ratio, or its passages after the change; the same of windows."""
    s, y = stream(family, shift, FIRST_SEED + seed)
    sign = -1 if family.startswith("conf") else 1
    found: dict[str, Any] = {"ours": first(StartMixture(N).path(s, y)[0] >= ALARM)}
    for size in SHIFTS[1:] if not shift else (shift,):
        path = known_shift(s, y, sign * size)
        found[f"known {size}"] = float(path.max()) if not shift else np.maximum.accumulate(path)[START::50].tolist()
    residual, spread = np.cumsum(y - s), np.cumsum(s * (1 - s))
    for w in WINDOWS:
        z = np.abs(residual[w:] - residual[:-w]) / np.sqrt(spread[w:] - spread[:-w])
        step = max(w // 20, 1)
        found[f"window {w}"] = float(z.max()) if not shift else np.maximum.accumulate(z[START - w :])[::step].tolist()
    return found


def main() -> None:
    options = arguments.parser(__doc__, repetitions=40, write=True, store=True).parse_args()
    with lines_of(options.store) as (done, add):
        known = {(row[0], row[1], row[2]) for row in done}
        for seed in range(options.repetitions):
            for family in FAMILIES:
                for shift in SHIFTS:
                    if (family, shift, seed) not in known:
                        done.append([family, shift, seed, outcome(family, shift, seed)])
                        add(done[-1])
    if options.write is not None:
        write(options, done)


def middle(paths: list[list[float]], level: float, step: int) -> float:
    """Median delay of first passages, infinite where fewer than half pass."""
    late = [first(np.array(path) > level) for path in paths]
    return float(np.median([i * step if i >= 0 else np.inf for i in late]))


def write(options: Any, done: list[Any]) -> None:
    """The page."""
    kept = [row for row in done if row[2] < options.repetitions]
    every = {f: {d: [row[3] for row in kept if row[0] == f and row[1] == d] for d in SHIFTS} for f in FAMILIES}
    lines = [
        "# The monitor: how soon a change could be found at best",
        "",
        f"Written by `python -m benchmarks.coverage.monitor_bound --store FILE --repetitions {options.repetitions}",
        "--write FILE`.",
        "",
        *(__doc__ or "").split("\n\n")[2].strip().splitlines(),
        "",
        "Median delays in rows, and in brackets their ratio to that of the best window.",
        "",
        "| scores | shift | monitor | shift known | shift known, tuned | best window |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for family in FAMILIES:
        calm = every[family][0.0]
        for shift in SHIFTS[1:]:
            rows = every[family][shift]
            best = np.inf
            for w in WINDOWS:
                level = float(np.quantile([r[f"window {w}"] for r in calm], 0.95))
                best = min(best, middle([r[f"window {w}"] for r in rows], level, max(w // 20, 1)))
            ours = float(np.median([r["ours"] - START if r["ours"] >= START else np.inf for r in rows]))
            paths = [r[f"known {shift}"] for r in rows]
            tuned = float(np.quantile([r[f"known {shift}"] for r in calm], 0.95))
            cells = [f"{v:,.0f} ({v / best:.2f})" for v in (ours, middle(paths, ALARM, 50), middle(paths, tuned, 50))]
            lines.append(f"| {family} | {shift} | " + " | ".join(cells) + f" | {best:,.0f} |")
    arguments.finish(options, lines)


if __name__ == "__main__":
    main()
