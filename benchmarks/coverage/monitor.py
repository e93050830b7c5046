"""How soon does `CalibrationMonitor` notice a change, how often does it raise false alarms, and what is achievable?

    python -m benchmarks.coverage.monitor [--repetitions 200]

Streams have 100,000 rows. Scores are uniform, U-shaped (beta 0.3, 0.3), rare (beta 0.5, 20), or the confidences of ten
classes (Dirichlet 0.4). From row 30,000 on, the log-odds of outcomes are those of the scores plus 0.2 or 0.5 (minus,
for confidences). An alarm is the first row with an e-value of 20 or more. The mixture of bets was chosen on 30 other
streams each of uniform, U-shaped and rare scores. The *best window* alarms when the standardised mean residual of the
last w rows exceeds, in size, a threshold that 5 % of 400 other calibrated streams exceed. Its w, from 100 to 20,000,
has the smallest median delay. Bets in the picture know that the change is an *offset* of the log-odds, its *size*, or
also its sign (*exact*).
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import expit, logit

from calibrant.monitoring.start_mixture import OFFSETS, StartMixture

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, share, table
from ..provenance import Kept

N, START, ALARM = 100_000, 30_000, float(np.log(20))
FAMILIES = ("uniform", "U-shaped", "rare", "confidences of ten classes")
#: The same in a table.
SHORT = dict(zip(FAMILIES, ("uniform", "U-shaped", "rare", "confidences"), strict=True))
SHIFTS = (0.0, 0.2, 0.5)
WINDOWS = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)
MONITORS = ("horizon 100,000", "no horizon")
#: False alarms that an e-value of 20 allows, in per cent, and wanted ratios of delays.
MOST, AIMS = 5, (1.3, 1.6)
KNOWING = ("an offset", "the size", "the shift")
#: Calibrated streams that thresholds of windows are from, and the first of their seeds.
OTHERS, FIRST_OTHER = 400, 1_000_000


def stream(family: str, shift: float, seed: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Scores and outcomes."""
    rng = np.random.default_rng([seed, FAMILIES.index(family), SHIFTS.index(shift)])
    s = {
        "uniform": lambda: rng.random(N),
        "U-shaped": lambda: rng.beta(0.3, 0.3, N),
        "rare": lambda: rng.beta(0.5, 20, N),
        "confidences of ten classes": lambda: rng.dirichlet(np.full(10, 0.4), N).max(axis=1),
    }[family]()
    s = s.clip(1e-12, 1 - 1e-12)
    return s, rng.random(N) < expit(logit(s) + _signed(family, shift) * (np.arange(N) >= START))


def _signed(family: str, shift: float) -> float:
    return -shift if family.startswith("conf") else shift


def first(hits: NDArray[np.bool_]) -> float:
    """The first place that is true; infinity where none is."""
    return float(np.argmax(hits)) if hits.any() else np.inf


def bets(s: NDArray[np.float64], y: NDArray[np.bool_], shifts: Sequence[float]) -> NDArray[np.float64]:
    """Log e-values of some shifts of the log-odds, each begun at every row with 1/N of the wealth."""
    parts = []
    for shift in shifts:
        ratio = np.cumsum(y * shift - np.log1p(s * np.expm1(shift)))
        parts.append(ratio + np.logaddexp.accumulate(-np.concatenate([[0.0], ratio[:-1]])) - np.log(N))
    with np.errstate(divide="ignore"):
        rest = np.log(np.maximum(1 - np.arange(1, N + 1) / N, 0.0))
    return np.asarray(np.logaddexp(np.logaddexp.reduce(parts, axis=0) - np.log(len(shifts)), rest))


def residuals(s: NDArray[np.float64], y: NDArray[np.bool_]) -> Iterator[NDArray[np.float64]]:
    """The standardised sum of the last w residuals, from row w on, for each window w."""
    residual, spread = np.cumsum(y - s), np.cumsum(s * (1 - s))
    for w in WINDOWS:
        yield np.abs(residual[w:] - residual[:-w]) / np.sqrt(spread[w:] - spread[:-w])


@cache
def thresholds(family: str) -> list[float]:
    """The threshold of each window, which one in twenty other calibrated streams exceed."""
    seeds = range(FIRST_OTHER, FIRST_OTHER + OTHERS)
    most = [[float(z.max()) for z in residuals(*stream(family, 0.0, seed))] for seed in seeds]
    return [float(v) for v in np.quantile(most, 0.95, axis=0)]


def sample(scores: str, shift: float, seed: int) -> dict[str, float]:
    """Rows from the change to each first alarm (negative before it); from the start in a calibrated stream."""
    s, y = stream(scores, shift, seed)
    paths = dict(zip(MONITORS, (StartMixture(horizon).path(s, y)[0] for horizon in (N, None)), strict=True))
    if not shift:
        return {name: first(path >= ALARM) for name, path in paths.items()}
    true = _signed(scores, shift)
    paths |= dict(zip(KNOWING, (bets(s, y, some) for some in (OFFSETS, (true, -true), (true,))), strict=True))
    out = {name: first(path >= ALARM) - START for name, path in paths.items()}
    out["started at the change"] = first(StartMixture(1).path(s[START:], y[START:])[0] >= ALARM)
    for w, z, most in zip(WINDOWS, residuals(s, y), thresholds(scores), strict=True):
        out[f"window {w}"] = first(z[START - w :] > most)
    return out


def middle(delays: NDArray[np.float64]) -> float:
    """Median delay of alarms after the change; streams with an alarm before it are left out."""
    return float(np.median(delays[delays >= 0]))


def ratio(delays: NDArray[np.float64], best: NDArray[np.float64]) -> tuple[float, float]:
    """Ratio of the medians, and its standard error over resampled streams."""
    rng = np.random.default_rng(0)
    draws = rng.integers(delays.size, size=(400, delays.size))
    return middle(delays) / middle(best), float(np.std([middle(delays[i]) / middle(best[i]) for i in draws]))


def best_window(kept: Kept) -> NDArray[np.float64]:
    """Delays of the window with the smallest median."""
    return min((kept[f"window {w}"] for w in WINDOWS), key=middle)


def shown(rows: float) -> str:
    """A delay."""
    return f"{rows:,.0f}" if np.isfinite(rows) else f"> {N - START:,}"


def answer(kept: Kept) -> str:
    told = []
    for name, aim in zip(MONITORS, AIMS, strict=True):
        every = _ratios(kept, name)
        beyond = [f"{case}: {_ratio(one)}" for case, one in every.items() if one[0] > aim]
        told.append((_delays(kept, name), f"aim: ≤ {aim}, {_missed(beyond)}"))
    rows = [middle(kept.where(scores=s, shift=d)[MONITORS[0]]) for s, d in _cells()]
    beyond = [
        f"{family}, {name}: {_calm(kept, family, name)} %"
        for family in FAMILIES
        for name in MONITORS
        if percent(_alarmed(kept.where(scores=family, shift=0.0), name))[0] > MOST
    ]
    pooled = [share(_alarmed(kept.where(shift=0.0), name)) for name in MONITORS]
    return (
        f"With a horizon of 100,000 rows, `CalibrationMonitor` raises a false alarm in {pooled[0]} % of calibrated "
        f"streams, and without one in {pooled[1]} % (aim: ≤ {MOST} %, {_missed(beyond)}). With a horizon, the median "
        f"delay after a change is {shown(min(rows))} to {shown(max(rows))} rows, {told[0][0]} times the best window's "
        f"({told[0][1]}). Without one, it is {told[1][0]} times the window's ({told[1][1]}). Bets that know the change "
        f"exactly take {_delays(kept, KNOWING[-1])} times as long as the window."
    )


def _missed(beyond: Sequence[str]) -> str:
    return f"missed for {'; '.join(beyond)}" if beyond else "met in every case"


def picture(kept: Kept) -> Figure:
    names = dict(zip((*MONITORS, *KNOWING), ("horizon", "no horizon", "knows offset", "size", "exact"), strict=True))
    series = {told: [*_ratios(kept, name).values()] for name, told in names.items()}
    figure = dots([*_ratios(kept, MONITORS[0])], series, "median delay, as a ratio to the best window's")
    for aim in AIMS:
        figure.axes[0].axvline(aim, color="0.4", linestyle="--", linewidth=1, zorder=1)
    return figure


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives median delays in rows with a horizon, and ratios of median delays to the best window's."
    yield ""
    yield from table(("scores, shift", "rows", "horizon", "no horizon"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    ratios = [[*_ratios(kept, name).values()] for name in MONITORS]
    for i, (scores, shift) in enumerate(_cells()):
        rows = shown(middle(kept.where(scores=scores, shift=shift)[MONITORS[0]]))
        yield [f"{SHORT[scores]}, {shift}", rows, *(f"{some[i][0]:.2f}" for some in ratios)]


def _alarmed(some: Kept, name: str) -> NDArray[np.float64]:
    return np.isfinite(some[name]).astype(float)


def _calm(kept: Kept, family: str, name: str) -> str:
    return share(_alarmed(kept.where(scores=family, shift=0.0), name))


def _ratio(one: tuple[float, float]) -> str:
    return f"{one[0]:.2f} ± {one[1]:.2f}"


def _ratios(kept: Kept, name: str) -> dict[str, tuple[float, float]]:
    """Ratios to the best window's median delay with their errors, by scores and shift."""
    cases = {f"{SHORT[s]}, {d}": kept.where(scores=s, shift=d) for s, d in _cells()}
    return {told: ratio(one[name], best_window(one)) for told, one in cases.items()}


def _alarms(kept: Kept, name: str) -> str:
    return f"{percent(_alarmed(kept.where(shift=0.0), name))[0]:.1f}"


def _delays(kept: Kept, name: str) -> str:
    every = [r for r, _ in _ratios(kept, name).values()]
    return f"{min(every):.2f} to {max(every):.2f}"


def _cells() -> list[tuple[str, float]]:
    return [(family, shift) for family in FAMILIES for shift in SHIFTS[1:]]


EXPERIMENT = Experiment(
    __spec__.name,
    {"scores": FAMILIES, "shift": SHIFTS},
    sample,
    answer,
    page,
    picture,
    repetitions=200,
    quick=1,
    figures={"alarms": _alarms, "delays": _delays},
)

if __name__ == "__main__":
    EXPERIMENT.main()
