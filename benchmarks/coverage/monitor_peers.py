"""How soon do ADWIN and probcal notice a change, and how often do they alarm of none?

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.monitor_peers [--repetitions 10]

The streams of `benchmarks/coverage/monitor.md`, with the same seeds: 100,000 rows, of which log-odds of outcomes are
shifted from row 30,000 on. *ADWIN* (river) looks at residuals, with its default delta of 0.002. *probcal* is its
monitor, with batches of 100 rows. An alarm before the change is a false one, of which the table of delays leaves out
the streams. *calibrant* is `CalibrationMonitor` with a horizon of 100,000 rows, of the same streams.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from calibrant.monitoring.start_mixture import StartMixture

from ..experiment import Experiment, title
from ..markdown import share, table
from ..provenance import Kept
from .monitor import ALARM, FAMILIES, SHIFTS, START, N, first, middle, shown, stream

NAMES = ("calibrant", "ADWIN", "probcal")


def adwin(s: NDArray[np.float64], y: NDArray[np.bool_]) -> float:
    """Row of river's first alarm."""
    from river.drift import ADWIN

    detector = ADWIN()
    for row, value in enumerate((y - s).tolist()):
        detector.update(value)
        if detector.drift_detected:
            return float(row)
    return np.inf


def probcal(s: NDArray[np.float64], y: NDArray[np.bool_]) -> float:
    """Row of probcal's first alarm."""
    from probcal.monitor import CalibrationMonitor

    monitor = CalibrationMonitor()
    for begin in range(0, N, 100):
        some = slice(begin, begin + 100)
        if monitor.update(y[some].astype(int), s[some], label=str(begin)).alarm:
            return float(begin + 99)
    return np.inf


def sample(scores: str, shift: float, seed: int) -> dict[str, float]:
    """Row of the first alarm of each, counted from the change where there is one."""
    s, y = stream(scores, shift, seed)
    rows = first(StartMixture(N).path(s, y)[0] >= ALARM), adwin(s, y), probcal(s, y)
    return {name: row - (START if shift else 0) for name, row in zip(NAMES, rows, strict=True)}


def page(kept: Kept) -> Iterator[str]:
    yield from title(__doc__)
    moved = [kept.where(shift=d) for d in SHIFTS[1:]]
    sooner = {
        name: sum(
            middle(some["calibrant"]) <= middle(some[name])
            for some in (one.where(scores=f) for one in moved for f in FAMILIES)
        )
        for name in NAMES[1:]
    }
    n = len(FAMILIES) * len(moved)
    yield f"`CalibrationMonitor` is no later than ADWIN in {sooner['ADWIN']} of {n} cells, and than probcal in"
    yield f"{sooner['probcal']}, of {len(moved[0]) // len(FAMILIES)} streams each."
    yield ""
    yield "## False alarms, in per cent"
    yield ""
    yield "Of calibrated streams, and of the first 30,000 rows of those with a change."
    yield ""
    rows = [("none", *(share(np.isfinite(kept.where(shift=0.0)[name]).astype(float)) for name in NAMES))]
    before = {name: np.concatenate([one[name] for one in moved]) < 0 for name in NAMES}
    rows.append(("before a change", *(share(before[name].astype(float)) for name in NAMES)))
    yield from table(("change", *NAMES), rows)
    yield ""
    yield "## Median delay after the change, in rows"
    yield ""
    lines = []
    for family in FAMILIES:
        for shift in SHIFTS[1:]:
            some = kept.where(scores=family, shift=shift)
            after = [some[name] for name in NAMES]
            lines.append([family, str(shift), *(shown(middle(v)) if (v >= 0).any() else "-" for v in after)])
    yield from table(("scores", "shift", *NAMES), lines, texts=2)


EXPERIMENT = Experiment(
    __spec__.name,
    {"scores": FAMILIES, "shift": SHIFTS},
    sample,
    page,
    repetitions=10,
    quick=1,
    needs=("river", "probcal"),
)

if __name__ == "__main__":
    EXPERIMENT.main()
