"""How soon do ADWIN and probcal notice a change, and how often do they raise false alarms?

    python -m benchmarks.coverage.monitor_peers [--repetitions 60]

Streams and seeds are those of `benchmarks/coverage/monitor.md`: 100,000 rows, with the log-odds of outcomes shifted
from row 30,000 on. *monitor* is `CalibrationMonitor` with a horizon of 100,000 rows. *ADWIN* (river) watches
residuals, with its default delta 0.002. *probcal* is that package's monitor, with batches of 100 rows. An alarm
before the change is false, and delays leave out its stream.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from calibrant.monitoring.start_mixture import StartMixture

from ..charts import dots
from ..experiment import Experiment
from ..markdown import share, table
from ..provenance import Kept
from .monitor import ALARM, FAMILIES, SHIFTS, SHORT, START, N, first, middle, ratio, shown, stream


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


PEERS = {"ADWIN": adwin, "probcal": probcal}


def sample(scores: str, shift: float, peer: str, seed: int) -> dict[str, float]:
    """Row of the first alarm of the monitor and of a peer, counted from the change where there is one."""
    s, y = stream(scores, shift, seed)
    rows = {"monitor": first(StartMixture(N).path(s, y)[0] >= ALARM), "other": PEERS[peer](s, y)}
    return {name: row - (START if shift else 0) for name, row in rows.items()}


def portion(scores: str, shift: float, peer: str) -> float:
    """Share of the repetitions that a case gets: probcal takes a minute and more for a stream."""
    return 1.0 if peer == "ADWIN" else 0.05


def _sooner(some: Kept) -> float:
    """Whether the monitor's median delay is the shorter by two standard errors: 1, -1 for the peer's, else 0."""
    value, error = ratio(some["monitor"], some["other"])
    return 0.0 if abs(value - 1) < 2 * error else float(np.sign(1 - value))


def answer(kept: Kept) -> str:
    told = []
    for peer in PEERS:
        cells, calm = _cells(kept, peer), kept.where(peer=peer, shift=0.0)
        no_later = sum(middle(some["monitor"]) <= middle(some["other"]) for some in cells.values())
        later = [name for name, some in cells.items() if _sooner(some) < 0]
        sure = f"in {len(later)} ({'; '.join(later)})" if later else "in none"
        alarms = [share(np.isfinite(calm[name]).astype(float)) for name in ("monitor", "other")]
        told.append(
            f"{peer} notices a change no sooner than `CalibrationMonitor` in {no_later} of {len(cells)} cases (median "
            f"of {_streams(kept, peer)} streams), and significantly sooner {sure}. It raises a false "
            f"alarm in {alarms[1]} % of {len(calm)} calibrated streams, and the monitor in {alarms[0]} %."
        )
    return " ".join(told)


def picture(kept: Kept) -> Figure:
    cells = {peer: _cells(kept, peer) for peer in PEERS}
    series = {"CalibrationMonitor": [_estimate(some["monitor"]) for some in cells["ADWIN"].values()]}
    series |= {peer: [_estimate(some["other"]) for some in cells[peer].values()] for peer in PEERS}
    return dots([*cells["ADWIN"]], series, "median delay after the change, in rows", log=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives median delays after the change, in rows, and ratios of the monitor's to the peer's on the"
    yield "same streams."
    yield ""
    yield from table(("scores", "shift", "monitor", "ADWIN", "ratio", "probcal", "ratio"), _rows(kept), texts=2)


def _rows(kept: Kept) -> Iterator[list[str]]:
    for told in _cells(kept, "ADWIN"):
        parts = [_cells(kept, peer)[told] for peer in PEERS]
        row = [*told.split(", "), shown(middle(parts[0]["monitor"]))]
        for some in parts:
            value, error = ratio(some["monitor"], some["other"])
            late = np.isfinite(middle(some["other"]))
            row += [shown(middle(some["other"])), f"{value:.2f} ± {error:.2f}" if late else ""]
        yield row


def _cells(kept: Kept, peer: str) -> dict[str, Kept]:
    return {f"{SHORT[s]}, {d}": kept.where(scores=s, shift=d, peer=peer) for s in FAMILIES for d in SHIFTS[1:]}


def _streams(kept: Kept, peer: str) -> int:
    return len(next(iter(_cells(kept, peer).values())))


def _estimate(delays: NDArray[np.float64]) -> tuple[float, float]:
    """Median delay and its standard error; NaN where it is beyond the stream."""
    rng = np.random.default_rng(0)
    value = middle(delays)
    drawn = [middle(delays[i]) for i in rng.integers(delays.size, size=(400, delays.size))]
    return (value, float(np.std(drawn))) if np.isfinite(drawn).all() else (np.nan, np.nan)


EXPERIMENT = Experiment(
    __spec__.name,
    {"scores": FAMILIES, "shift": SHIFTS, "peer": PEERS},
    sample,
    answer,
    page,
    picture,
    repetitions=60,
    quick=1,
    needs=("river", "probcal"),
    portion=portion,
)

if __name__ == "__main__":
    EXPERIMENT.main()
