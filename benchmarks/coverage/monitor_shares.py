"""Which share of a monitor's bets should be on offsets of the log-odds, the rest being on slopes?

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.monitor_shares [--repetitions 60]

`CalibrationMonitor` bets on eight offsets and six slopes. Streams of 100,000 rows, whose scores are beta (2, 2), (5, 1)
or (1, 10), change at row 30,000: by an offset of 0.2 or -0.5, or to a slope of 0.75 or 1.35. An alarm is the first row
at which the mean wealth, begun at every row with 1/100,000 of it, is 20. None of these scores is in
`benchmarks/coverage/monitor.md`. Equal shares were kept.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit

from calibrant.monitoring.start_mixture import OFFSETS, SLOPES

from ..charts import dots
from ..experiment import Experiment
from ..markdown import table
from ..provenance import Kept

N, START, ALARM = 100_000, 30_000, float(np.log(20))
FAMILIES = {"beta (2, 2)": (2, 2), "beta (5, 1)": (5, 1), "beta (1, 10)": (1, 10)}
CHANGES = {"offset 0.2": (0.2, 1.0), "offset -0.5": (-0.5, 1.0), "slope 0.75": (0.0, 0.75), "slope 1.35": (0.0, 1.35)}
EQUAL = len(OFFSETS) / (len(OFFSETS) + len(SLOPES))
SHARES = (EQUAL, 0.7, 0.8, 0.9)
ALTERNATIVES = [*((a, 1.0) for a in OFFSETS), *((0.0, b) for b in SLOPES)]


def sample(scores: str, change: str, seed: int) -> dict[str, float]:
    """Rows after the change until the mixture with each share alarms; infinity where it never does."""
    rng = np.random.default_rng([seed, 97, [*FAMILIES].index(scores), [*CHANGES].index(change)])
    s = rng.beta(*FAMILIES[scores], N).clip(1e-12, 1 - 1e-12)
    z = logit(s)
    a, b = CHANGES[change]
    y = rng.random(N) < expit(np.where(np.arange(N) < START, z, a + b * z))
    parts = []
    for a, b in ALTERNATIVES:
        to = a + b * z
        ratio = np.cumsum(y * (to - z) - np.logaddexp(0, to) + np.logaddexp(0, z))
        parts.append(ratio + np.logaddexp.accumulate(-np.concatenate([[0.0], ratio[:-1]])) - np.log(N))
    with np.errstate(divide="ignore"):
        rest = np.log(np.maximum(1 - np.arange(1, N + 1) / N, 0.0))
    out = {}
    for share in SHARES:
        each = np.repeat([share / len(OFFSETS), (1 - share) / len(SLOPES)], [len(OFFSETS), len(SLOPES)])
        hits = np.logaddexp(np.logaddexp.reduce(np.log(each)[:, None] + parts, axis=0), rest) >= ALARM
        out[f"{share:.2f}"] = float(np.argmax(hits)) - START if hits.any() else np.inf
    return out


def middle(delays: np.ndarray) -> float:
    """Median delay of alarms after the change."""
    return float(np.median(delays[delays >= 0]))


def _ratios(kept: Kept) -> Iterator[tuple[str, str, list[tuple[float, float]]]]:
    rng = np.random.default_rng(0)
    for case in EXPERIMENT.every():
        some = kept.where(**case)
        equal, out = some[f"{EQUAL:.2f}"], []
        for share in SHARES[1:]:
            one = some[f"{share:.2f}"]
            draws = [middle(one[i]) / middle(equal[i]) for i in rng.integers(one.size, size=(400, one.size))]
            out.append((middle(one) / middle(equal), float(np.std(draws))))
        yield case["scores"], case["change"], out


def answer(kept: Kept) -> str:
    every = [*_ratios(kept)]
    told = []
    for i, share in enumerate(SHARES[1:]):
        kinds = (np.array([r[i][0] for _, change, r in every if change.startswith(kind)]) for kind in ("off", "slope"))
        offset, slope = ((v.min(), v.max()) for v in kinds)
        told.append(f"{share:.0%}: {offset[0]:.2f} to {offset[1]:.2f} and {slope[0]:.2f} to {slope[1]:.2f}")
    return (
        "Median delays after an offset and after a new slope, as ratios to those where all alternatives have the same "
        f"share ({EQUAL:.0%} on offsets): with {'; with '.join(told)}."
    )


def picture(kept: Kept) -> Figure:
    every = [*_ratios(kept)]
    series = {f"{share:.0%} on offsets": [r[i] for _, _, r in every] for i, share in enumerate(SHARES[1:])}
    return dots([f"{s}, {c}" for s, c, _ in every], series, "median delay, ratio to equal shares", 1.0)


def page(kept: Kept) -> Iterator[str]:
    yield "Median delays with equal shares, in rows, and ratios to them with standard errors over resampled streams."
    yield ""
    rows = []
    for scores, change, ratios in _ratios(kept):
        delay = middle(kept.where(scores=scores, change=change)[f"{EQUAL:.2f}"])
        rows.append([scores, change, f"{delay:,.0f}", *(f"{r:.2f} ± {e:.2f}" for r, e in ratios)])
    yield from table(("scores", "change", "equal", *(f"{share:.0%}" for share in SHARES[1:])), rows, texts=2)


EXPERIMENT = Experiment(
    __spec__.name,
    {"scores": FAMILIES, "change": CHANGES},
    sample,
    answer,
    page,
    picture,
    repetitions=60,
    quick=1,
    at="docs/development/monitor_shares.md",
)

if __name__ == "__main__":
    EXPERIMENT.main()
