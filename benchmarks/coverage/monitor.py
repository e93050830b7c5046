"""How soon does `CalibrationMonitor` notice a change, how often does it alarm of none, and what could be had at best?

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.monitor [--repetitions 200]

Streams of 100,000 rows. Scores are uniform, U-shaped (beta 0.3, 0.3), rare (beta 0.5, 20), or the confidences of ten
classes (Dirichlet 0.4). From row 30,000 on, log-odds of outcomes are those of the scores plus a shift (of confidences
less): 0.2 or 0.5; or plus nothing. An alarm is the first row at which the e-value is 20 or more. Alternatives were
chosen on uniform, U-shaped and rare scores with 30 other streams each; confidences were not looked at.

Beside the monitor, with a horizon of 100,000 rows and without: *started at the change*, the same bets, begun at row
30,000 with all of the wealth. *Best window*: the largest standardised mean residual of the last w rows, whose threshold
5 % of 400 other calibrated streams exceed, for the w of 100 to 20,000 with the smallest median delay, which nobody
knows beforehand. And three that know what the monitor does not: *an offset* bets on the eight offsets of the log-odds
only, and would never notice a wrong slope; *the size* bets on the true shift and on its opposite; *the shift* on the
true one alone. Each begins at every row with 1/100,000 of the wealth, as the monitor does.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from calibrant.monitoring.start_mixture import OFFSETS, StartMixture

from ..experiment import Experiment, title
from ..markdown import share, table
from ..provenance import Kept

N, START, ALARM = 100_000, 30_000, float(np.log(20))
FAMILIES = ("uniform", "U-shaped", "rare", "confidences of ten classes")
SHIFTS = (0.0, 0.2, 0.5)
WINDOWS = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)
MONITORS = ("horizon 100,000", "no horizon")
#: Wanted ratios of delays.
AIMS = (1.3, 1.6)
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
    """Of each window, the standardised sum of the last residuals, from row w on."""
    residual, spread = np.cumsum(y - s), np.cumsum(s * (1 - s))
    for w in WINDOWS:
        yield np.abs(residual[w:] - residual[:-w]) / np.sqrt(spread[w:] - spread[:-w])


@cache
def thresholds(family: str) -> list[float]:
    """What one in twenty other calibrated streams exceed, of each window."""
    seeds = range(FIRST_OTHER, FIRST_OTHER + OTHERS)
    most = [[float(z.max()) for z in residuals(*stream(family, 0.0, seed))] for seed in seeds]
    return [float(v) for v in np.quantile(most, 0.95, axis=0)]


def sample(scores: str, shift: float, seed: int) -> dict[str, float]:
    """Rows after the change until each alarms (before it: fewer than none); of a calibrated stream, until it does."""
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


def page(kept: Kept) -> Iterator[str]:
    yield from title(__doc__)
    calm = [share(np.isfinite(kept.where(shift=0.0)[name]).astype(float)) for name in MONITORS]
    cases = [kept.where(scores=s, shift=d) for s in FAMILIES for d in SHIFTS[1:]]
    ratios = {name: [ratio(one[name], best_window(one)) for one in cases] for name in (*MONITORS, *KNOWING)}
    yield f"Of calibrated streams {calm[0]} % alarm with a horizon of 100,000 rows and {calm[1]} % without one; at most"
    yield "5 % may. The median delay after a change, as a ratio to that of the best window in hindsight:"
    yield ""
    for name, most in zip(MONITORS, AIMS, strict=True):
        beyond = [f"{r:.2f} ± {error:.2f}" for r, error in ratios[name] if r > most]
        told = f", but for {' and '.join(beyond)}" if beyond else ""
        yield f"- {name}: {_ends(ratios, name)}; at most {most} was wanted, and is had in all cells{told}"
    for name, words in zip(KNOWING, ("that it is an offset", "its size", "the shift"), strict=True):
        yield f"- of bets that know {words}: {_ends(ratios, name)}"
    yield ""
    yield "## False alarms of calibrated streams of 100,000 rows, in per cent"
    yield ""
    rows = ((one, kept.where(scores=one, shift=0.0)) for one in FAMILIES)
    cells = ([one, *(share(np.isfinite(some[name]).astype(float)) for name in MONITORS)] for one, some in rows)
    yield from table(("scores", *MONITORS), cells)
    yield ""
    yield "## Median delay after the change, in rows"
    yield ""
    names = (*MONITORS, "started at the change", *KNOWING)
    lines = [
        [s, str(d), *(shown(middle(one[name])) for name in names), shown(middle(best_window(one)))]
        for (s, d), one in zip(_cells(), cases, strict=True)
    ]
    yield from table(("scores", "shift", *names, "best window"), lines, texts=2)
    yield ""
    yield "## Ratio to the best window's, with its standard error over streams"
    yield ""
    lines = [
        [s, str(d), *(f"{ratios[name][i][0]:.2f} ± {ratios[name][i][1]:.2f}" for name in (*MONITORS, *KNOWING))]
        for i, (s, d) in enumerate(_cells())
    ]
    yield from table(("scores", "shift", *MONITORS, *KNOWING), lines, texts=2)


def _alarms(kept: Kept, name: str) -> str:
    return f"{100 * np.isfinite(kept.where(shift=0.0)[name]).mean():.1f}"


def _delays(kept: Kept, name: str) -> str:
    cases = [kept.where(scores=s, shift=d) for s, d in _cells()]
    every = [middle(one[name]) / middle(best_window(one)) for one in cases]
    return f"{min(every):.2f} to {max(every):.2f}"


def _cells() -> list[tuple[str, float]]:
    return [(family, shift) for family in FAMILIES for shift in SHIFTS[1:]]


def _ends(ratios: dict[str, list[tuple[float, float]]], name: str) -> str:
    low, high = min(r for r, _ in ratios[name]), max(r for r, _ in ratios[name])
    return f"{low:.2f} to {high:.2f}"


EXPERIMENT = Experiment(
    __spec__.name,
    {"scores": FAMILIES, "shift": SHIFTS},
    sample,
    page,
    repetitions=200,
    quick=1,
    figures={"alarms": _alarms, "delays": _delays},
)

if __name__ == "__main__":
    EXPERIMENT.main()
