"""Does `calibration_over_time` see changes that are none, and do its intervals cover those that are?

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.over_time [--repetitions 200]

Streams of 4,000 rows, cut into 8 periods. Scores are uniform, U-shaped (beta 0.3, 0.3), rare (beta 0.5, 20), of a mix
that rises with time (beta 1 to 4, 2), or the confidences of ten classes (Dirichlet 0.4). Log-odds of outcomes are
those of the scores plus a shift: none; a constant -0.5; a step of 0.8 after row 2,600; a step of 0.8 that is taken
back (rows 1,400 to 2,600); a slope from 0 to 0.8. Of confidences, -0.8 instead. The search and its interval were chosen
on uniform, rare and rising scores with 60 other streams each.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator

import numpy as np
from scipy.special import expit, logit

import calibrant as cal

from ..experiment import Experiment, title
from ..markdown import share, table
from ..provenance import Kept

N, STEP, BACK = 4_000, 2_600, 1_400
FAMILIES = ("uniform", "U-shaped", "rare", "rising mix", "confidences of ten classes")
#: Changes of each kind of shift.
SHIFTS = {"none": [], "constant": [], "step": [STEP], "step and back": [BACK, STEP], "slope": []}
TESTS = ("change", "trend", "periods")


def stream(family: str, shift: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outcomes, scores and chances, in order of time."""
    rng = np.random.default_rng([seed, 43, FAMILIES.index(family), list(SHIFTS).index(shift)])
    t = np.arange(N)
    s = {
        "uniform": lambda: rng.random(N),
        "U-shaped": lambda: rng.beta(0.3, 0.3, N),
        "rare": lambda: rng.beta(0.5, 20, N),
        "rising mix": lambda: rng.beta(1 + 3 * t / N, 2),
        "confidences of ten classes": lambda: rng.dirichlet(np.full(10, 0.4), N).max(axis=1),
    }[family]()
    s = s.clip(1e-9, 1 - 1e-9)
    size = -0.8 if family.startswith("conf") else 0.8
    by = {
        "none": 0.0,
        "constant": -0.5,
        "step": size * (t >= STEP),
        "step and back": size * ((t >= BACK) & (t < STEP)),
        "slope": size * t / N,
    }[shift]
    chance = expit(logit(s) + by)
    return (rng.random(N) < chance).astype(int), s, chance


def sample(scores: str, shift: str, seed: int) -> dict[str, float]:
    """Which tests reject at 0.05 after adjustment, how many changes are found, and which intervals cover."""
    y, s, chance = stream(scores, shift, seed)
    found = cal.calibration_over_time(y, s, np.arange(N), every=N // 8, estimator=cal.Binned(5))
    out = {name: float(found.adjusted[name] <= 0.05) for name in TESTS}
    true, changes = SHIFTS[shift], found.changes
    out |= {"found": float(len(changes)), "any": max(out.values())}
    if len(changes) == len(true) > 0:
        ends = zip(true, [*true[1:], N], strict=True)
        gaps = [float((chance - s)[a:b].mean()) for a, b in ends]
        times = [one.interval.low <= at <= one.interval.high for one, at in zip(changes, true, strict=True)]
        after = [
            one.after_interval.low <= gap <= one.after_interval.high for one, gap in zip(changes, gaps, strict=True)
        ]
        wide = [(one.interval.high - one.interval.low) / N for one in changes]
        out |= {"time": float(np.mean(times)), "gap": float(np.mean(after)), "width": float(np.mean(wide))}
    return out


def page(kept: Kept) -> Iterator[str]:
    yield from title(__doc__)
    calm = np.concatenate([kept.where(shift=one)["any"] for one in ("none", "constant")])
    moved = [kept.where(shift=one) for one in ("step", "step and back")]
    times, gaps = (np.concatenate([one[name] for one in moved]) for name in ("time", "gap"))
    yield (
        f"Streams without a change are said to have one in {share(calm)} %; where as many changes are found as there"
    )
    yield f"are, intervals cover their times in {share(times)} %, and gaps after them in {share(gaps)} %."
    yield ""
    yield "Share of streams, in per cent with its standard error, in which a test rejects at 0.05 after adjustment for"
    yield "three tests, and in which as many changes are found as there are (*count*). Of these streams, *time*: times"
    yield "of changes that their intervals cover; *gap*: gaps of rows after a change that theirs cover; *width*: median"
    yield "of intervals of times as a share of the stream."
    yield ""
    yield from table(("scores", "shift", *TESTS, "any", "count", "time", "gap", "width"), _rows(kept), texts=2)


def _rows(kept: Kept) -> Iterator[list[str]]:
    for case in EXPERIMENT.every():
        some, many = kept.where(**case), len(SHIFTS[case["shift"]])
        cells = [share(some[name]) for name in (*TESTS, "any")]
        cells.append(share((some["found"] == many).astype(float)))
        width = some["width"][~np.isnan(some["width"])]
        cells += [share(some["time"]), share(some["gap"]), f"{100 * np.median(width):.0f} %" if width.size else ""]
        yield [*case.values(), *cells]


EXPERIMENT = Experiment(__spec__.name, {"scores": FAMILIES, "shift": [*SHIFTS]}, sample, page, repetitions=200, quick=3)

if __name__ == "__main__":
    EXPERIMENT.main()
