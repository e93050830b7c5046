"""Does `calibration_over_time` report changes where there are none, and do its intervals cover those that exist?

    python -m benchmarks.coverage.over_time [--repetitions 100]

Streams of 4,000 rows are cut into 8 periods. Scores are uniform, U-shaped (beta 0.3, 0.3), rare (beta 0.5, 20), from a
mix that rises with time (beta 1 to 4, 2), or the confidences of ten classes (Dirichlet 0.4; *top*). The log-odds of
outcomes are those of the scores plus a shift: none; a constant -0.5; a step of 0.8 after row 2,600; a step of 0.8 from
row 1,400 to 2,600; or a slope from 0 to 0.8, which has no time of change. For confidences, 0.8 becomes -0.8. Three
tests (of a change, a trend, the periods) are adjusted for each other. The search and its interval were chosen on 60
other streams each of uniform, rare and rising scores.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, share, table
from ..provenance import Kept

N, STEP, BACK = 4_000, 2_600, 1_400
FAMILIES = ("uniform", "U-shaped", "rare", "rising mix", "confidences of ten classes")
#: The same in a table.
SHORT = dict(zip(FAMILIES, ("uniform", "U-shaped", "rare", "rising", "top"), strict=True))
#: Changes of each kind of shift.
SHIFTS = {"none": [], "constant": [], "step": [STEP], "step and back": [BACK, STEP], "slope": []}
CALM, STEPS = ("none", "constant"), ("step", "step and back")
TESTS = ("change", "trend", "periods")
#: Streams without a change in which one may be reported, and truths that intervals cover, in per cent.
MOST, LEVEL = 5, 95


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


def answer(kept: Kept) -> str:
    calm = {f"{SHORT[s]}, {shift}": kept.where(scores=s, shift=shift)["any"] for s in FAMILIES for shift in CALM}
    covered = {
        f"{what}, {SHORT[s]}, {shift}": kept.where(scores=s, shift=shift)[what]
        for what in ("time", "gap")
        for s in FAMILIES
        for shift in STEPS
    }
    every = [kept.where(scores=s, shift=shift) for s in FAMILIES for shift in STEPS]
    time, gap = (share(np.concatenate([one[name] for one in every])) for name in ("time", "gap"))
    counted = share(np.concatenate([_counted(kept, s, shift) for s in FAMILIES for shift in STEPS]))
    return (
        f"A change is reported in {share(np.concatenate([*calm.values()]))} % of streams without one "
        f"({_missed(calm, MOST, 1)}). In {counted} % of streams with steps, the number of changes is right. In these, "
        f"{LEVEL} % intervals cover {time} % of the times of changes and {gap} % of the gaps after them "
        f"({_missed(covered, LEVEL, -1)})."
    )


def _missed(cases: dict[str, np.ndarray], aim: float, sign: int) -> str:
    """How many cases miss an aim, and which by more than two standard errors."""
    beyond = {name: (sign * (percent(v)[0] - aim), percent(v)[1]) for name, v in cases.items()}
    far = [f"{name}: {share(cases[name])}" for name, (by, error) in beyond.items() if by > 2 * error]
    many = sum(by > 0 for by, _ in beyond.values())
    told = "above" if sign > 0 else "below"
    wrong = f"{told} {aim:g} % in {many} of {len(cases)} cases"
    return f"{wrong}, by more than two standard errors in {'; '.join(far) or 'none'}"


def picture(kept: Kept) -> Figure:
    series = {
        "reported, no change": [
            percent(np.concatenate([kept.where(scores=s, shift=c)["any"] for c in CALM])) for s in FAMILIES
        ]
    }
    for what in ("time", "gap"):
        series[f"{what} covered"] = [
            percent(np.concatenate([kept.where(scores=s, shift=shift)[what] for shift in STEPS])) for s in FAMILIES
        ]
    figure = dots([*FAMILIES], series, "streams without a change, or changes, %", float(LEVEL), share=True)
    figure.axes[0].axvline(MOST, color="0.4", linestyle="--", linewidth=1, zorder=0)
    return figure


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives the per cent of streams in which a test rejects at 0.05 (*reported*) and in which the number"
    yield "of changes is right (*count*), and of the times and gaps that intervals cover."
    yield ""
    yield from table(("streams", "reported", "count", "time", "gap"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    cases = {f"{SHORT[s]}, no change": [(s, shift) for shift in CALM] for s in FAMILIES}
    cases |= {f"{SHORT[s]}, steps": [(s, shift) for shift in STEPS] for s in FAMILIES}
    cases["slope"] = [(s, "slope") for s in FAMILIES]
    for name, some in cases.items():
        parts = [kept.where(scores=s, shift=shift) for s, shift in some]
        cells = [np.concatenate([part[what] for part in parts]) for what in ("any", "time", "gap")]
        cells.insert(1, np.concatenate([_counted(kept, s, shift) for s, shift in some]))
        yield [name, *(f"{percent(values)[0]:.1f}".replace("nan", "") for values in cells)]


def _counted(kept: Kept, scores: str, shift: str) -> np.ndarray:
    """Streams in which as many changes are found as there are."""
    return (kept.where(scores=scores, shift=shift)["found"] == len(SHIFTS[shift])).astype(float)


EXPERIMENT = Experiment(
    __spec__.name,
    {"scores": FAMILIES, "shift": [*SHIFTS]},
    sample,
    answer,
    page,
    picture,
    portion=lambda scores, shift: 0.5 if shift == "slope" else 1.0,
)

if __name__ == "__main__":
    EXPERIMENT.main()
