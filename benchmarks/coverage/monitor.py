"""How often `CalibrationMonitor` alarms of calibrated streams, and how soon after a change; beside other monitors.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.monitor --store FILE [--repetitions 60] [--write FILE]

Streams of 100,000 rows. Scores are uniform, U-shaped (beta 0.3, 0.3), rare (beta 0.5, 20), or the confidences of ten
classes (Dirichlet 0.4). From row 30,000 on, log-odds of outcomes are those of the scores plus a shift (of confidences
less): 0.2 or 0.5; or plus nothing. An alarm is the first row at which the e-value is 20 or more. *Started at the
change*: the same bets, begun at row 30,000 with all of the wealth. *Best window*: the largest standardised mean
residual of the last w rows, whose threshold 5 % of calibrated streams exceed, for the w of 100 to 20,000 with the
smallest median delay, which nobody knows beforehand. *ADWIN* (river) looks at residuals, with its default delta of
0.002; *probcal*: its monitor, with batches of 100 rows; both on the first two streams. A stream's seed is its
number. Alternatives were chosen on uniform, U-shaped and rare scores with 30 other streams each; confidences were not
looked at.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from typing import Any

import numpy as np
from scipy.special import expit, logit

from calibrant.monitoring.start_mixture import StartMixture

from .. import arguments
from ..store import lines_of, share

N, START, ALARM = 100_000, 30_000, float(np.log(20))
FAMILIES = ("uniform", "U-shaped", "rare", "confidences of ten classes")
SHIFTS = (0.0, 0.2, 0.5)
WINDOWS = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)
OURS = ("horizon 100,000", "no horizon", "started at the change")
PEERS = ("ADWIN", "probcal")
#: Streams of a cell that peers see: one of probcal takes minutes.
OF_PEERS = 2


def stream(family: str, shift: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores and outcomes."""
    rng = np.random.default_rng([seed, FAMILIES.index(family), SHIFTS.index(shift)])
    s = {
        "uniform": lambda: rng.random(N),
        "U-shaped": lambda: rng.beta(0.3, 0.3, N),
        "rare": lambda: rng.beta(0.5, 20, N),
        "confidences of ten classes": lambda: rng.dirichlet(np.full(10, 0.4), N).max(axis=1),
    }[family]()
    s = s.clip(1e-12, 1 - 1e-12)
    sign = -1 if family.startswith("conf") else 1
    return s, rng.random(N) < expit(logit(s) + sign * shift * (np.arange(N) >= START))


def first(hits: np.ndarray) -> int:
    """The first place that is true; -1 where none is."""
    return int(np.argmax(hits)) if hits.any() else -1


def alarms(family: str, shift: float, seed: int) -> dict[str, Any]:
    """Row of the first alarm of each monitor, and the largest statistic of each window before and after the change."""
    s, y = stream(family, shift, seed)
    found: dict[str, Any] = {
        "horizon 100,000": first(StartMixture(N).path(s, y)[0] >= ALARM),
        "no horizon": first(StartMixture(None).path(s, y)[0] >= ALARM),
    }
    if shift:
        at_once = StartMixture(1).path(s[START:], y[START:])[0]
        found["started at the change"] = START + first(at_once >= ALARM) if (at_once >= ALARM).any() else -1
    residual, spread = np.cumsum(y - s), np.cumsum(s * (1 - s))
    for w in WINDOWS:
        z = np.abs(residual[w:] - residual[:-w]) / np.sqrt(spread[w:] - spread[:-w])
        found[f"window {w}"] = (
            float(z.max()) if not shift else np.maximum.accumulate(z[START - w :])[:: max(w // 20, 1)].tolist()
        )
    if seed < OF_PEERS:
        found |= peers(s, y)
    return found


def peers(s: np.ndarray, y: np.ndarray) -> dict[str, int]:
    """The other monitors."""
    from probcal.monitor import CalibrationMonitor
    from river.drift import ADWIN

    adwin, hit = ADWIN(), -1
    for row, value in enumerate((y - s).tolist()):
        adwin.update(value)
        if adwin.drift_detected:
            hit = row
            if row >= START:
                break
    monitor, at = CalibrationMonitor(), -1
    for begin in range(0, N, 100):
        some = slice(begin, begin + 100)
        if monitor.update(y[some].astype(int), s[some], label=str(begin)).alarm:
            at = begin + 99
            break
    return {"ADWIN": hit, "probcal": at}


def main() -> None:
    options = arguments.parser(__doc__, repetitions=60, write=True, store=True).parse_args()
    with lines_of(options.store) as (done, add):
        known = {(row[0], row[1], row[2]) for row in done}
        for seed in range(options.repetitions):
            for family in FAMILIES:
                for shift in SHIFTS:
                    if (family, shift, seed) not in known:
                        done.append([family, shift, seed, alarms(family, shift, seed)])
                        add(done[-1])
    if options.write is not None:
        write(options, done)


def delay(rows: list[int]) -> str:
    """Median delay of alarms after the change; of streams with an alarm before it, those are left out."""
    late = [row - START if row >= START else np.inf for row in rows if row < 0 or row >= START]
    if not late:
        return "-"
    middle = float(np.median(late))
    return f"{middle:,.0f}" if np.isfinite(middle) else f"> {N - START:,}"


def write(options: Any, done: list[Any]) -> None:
    """The page."""
    lines = [
        "# The monitor: false alarms and delays",
        "",
        f"Written by `python -m benchmarks.coverage.monitor --store FILE --repetitions {options.repetitions}",
        "--write FILE` with river 0.26.1 and probcal.",
        "",
        *(__doc__ or "").split("\n\n")[2].strip().splitlines(),
        "",
        "## False alarms of calibrated streams of 100,000 rows, in per cent",
        "",
        "| scores | horizon 100,000 | no horizon | ADWIN | probcal |",
        "|---|---:|---:|---:|---:|",
    ]
    kept = [row for row in done if row[2] < options.repetitions]
    every = {f: {d: [row[3] for row in kept if row[0] == f and row[1] == d] for d in SHIFTS} for f in FAMILIES}
    for family in FAMILIES:
        cells = [
            share([r[name] >= 0 for r in every[family][0.0] if name in r])
            for name in ("horizon 100,000", "no horizon", *PEERS)
        ]
        lines.append(f"| {family} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "## Median delay after the change, in rows",
        "",
        "| scores | shift | horizon 100,000 | no horizon | started at the change | best window | ADWIN | probcal |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for family in FAMILIES:
        for shift in SHIFTS[1:]:
            rows = every[family][shift]
            best = np.inf
            for w in WINDOWS:
                level = float(np.quantile([r[f"window {w}"] for r in every[family][0.0]], 0.95))
                step = max(w // 20, 1)
                late = [first(np.array(r[f"window {w}"]) > level) for r in rows]
                best = min(best, float(np.median([i * step if i >= 0 else np.inf for i in late])))
            cells = [delay([r[name] for r in rows]) for name in OURS]
            cells += [f"{best:,.0f}"] + [delay([r[name] for r in rows if name in r]) for name in PEERS]
            lines.append(f"| {family} | {shift} | " + " | ".join(cells) + " |")
    arguments.finish(options, lines)


if __name__ == "__main__":
    main()
