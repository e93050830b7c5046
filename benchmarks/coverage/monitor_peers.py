"""How soon do ADWIN and probcal notice a change, and how often do they alarm of none?

    python -m benchmarks.coverage.monitor_peers [--repetitions 10]

The streams of `benchmarks/coverage/monitor.md`, with the same seeds: 100,000 rows, of which log-odds of outcomes are
shifted from row 30,000 on. *calibrant* is `CalibrationMonitor` with a horizon of 100,000 rows. *ADWIN* (river) looks at
residuals, with its default delta of 0.002. *probcal* is its monitor, with batches of 100 rows. An alarm before the
change is a false one; delays leave out its stream.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from calibrant.monitoring.start_mixture import StartMixture
from calibrant.plot.style import style_of

from ..experiment import Experiment
from ..markdown import share, table
from ..pictures import dots
from ..provenance import Kept
from .monitor import ALARM, FAMILIES, SHIFTS, SHORT, START, N, first, middle, shown, stream

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


def answer(kept: Kept) -> str:
    cells, calm = _cells(kept), kept.where(shift=0.0)
    sooner = [sum(middle(some[NAMES[0]]) <= middle(some[name]) for some in cells.values()) for name in NAMES[1:]]
    alarms = [int(np.isfinite(calm[name]).sum()) for name in NAMES]
    return (
        f"`CalibrationMonitor` has a median delay no longer than ADWIN's in {sooner[0]} of {len(cells)} cells, and no "
        f"longer than probcal's in {sooner[1]}, of {_streams(kept)} streams each. Of {len(calm)} calibrated streams it "
        f"alarms in {alarms[0]}, ADWIN in {alarms[1]} and probcal in {alarms[2]}."
    )


def picture(kept: Kept) -> Figure:
    cells = _cells(kept)
    series = {name: [(_finite(middle(some[name])), 0.0) for some in cells.values()] for name in NAMES}
    figure = dots([*cells], series, "median delay after the change, in rows; each stream by a stroke", log=True)
    for j, name in enumerate(NAMES):
        for i, some in enumerate(cells.values()):
            late = np.array([_finite(v) for v in some[name] if v >= 0])
            at = np.full(late.size, i + 0.7 * ((j + 0.5) / len(NAMES) - 0.5))
            figure.axes[0].plot(late, at, "|", color=style_of(j).color, markersize=6)
    return figure


def page(kept: Kept) -> Iterator[str]:
    yield "Shift *none*: calibrated streams that alarm, in per cent with standard errors. Shift *later*: the same of"
    yield f"the rows before a change. Others: median delay after the change, in rows, of {_streams(kept)} streams each."
    yield ""
    yield from table(("scores", "shift", *NAMES), _rows(kept), texts=2)


def _rows(kept: Kept) -> Iterator[list[str]]:
    moved = {name: np.concatenate([kept.where(shift=d)[name] for d in SHIFTS[1:]]) for name in NAMES}
    yield ["all", "none", *(f"{share(np.isfinite(kept.where(shift=0.0)[name]).astype(float))} %" for name in NAMES)]
    yield ["all", "later", *(f"{share((moved[name] < 0).astype(float))} %" for name in NAMES)]
    for told, some in _cells(kept).items():
        delays = [some[name] for name in NAMES]
        yield [*told.split(", "), *(shown(middle(v)) if (v >= 0).any() else "" for v in delays)]


def _cells(kept: Kept) -> dict[str, Kept]:
    return {f"{SHORT[s]}, {d}": kept.where(scores=s, shift=d) for s in FAMILIES for d in SHIFTS[1:]}


def _streams(kept: Kept) -> int:
    return len(next(iter(_cells(kept).values())))


def _finite(delay: float) -> float:
    return delay if np.isfinite(delay) else float("nan")


EXPERIMENT = Experiment(
    __spec__.name,
    {"scores": FAMILIES, "shift": SHIFTS},
    sample,
    answer,
    page,
    picture,
    repetitions=10,
    quick=1,
    needs=("river", "probcal"),
)

if __name__ == "__main__":
    EXPERIMENT.main()
