"""The default beside its rivals where only a part of the scores is wrong, on truths that played no part in its making.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.local_truths --store FILE [--repetitions 40] [--write FILE]

The track "local" of the benchmark is what ranges were developed on; these truths have other scores, places, widths and
gaps, and were fixed before any of them was read. A sample's seed is made of its truth's name, its size and its number.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import time
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit, logit

import calibrant as cal

from .. import arguments
from ..store import found_of

Scores = Callable[[np.random.Generator, int], np.ndarray]
Map = Callable[[np.ndarray], np.ndarray]
SIZES = (300, 1000, 5000, 20_000, 50_000)


def beta(a: float, b: float) -> Scores:
    return lambda rng, n: rng.beta(a, b, n)


def heaps(scores: Scores, *heaps: tuple[float, float]) -> Scores:
    """Some rows, a share each, have one score."""

    def drawn(rng: np.random.Generator, n: int) -> np.ndarray:
        s, u, low = scores(rng, n), rng.random(n), 0.0
        for at, share in heaps:
            s = np.where((u >= low) & (u < low + share), at, s)
            low += share
        return s

    return drawn


def wrong_on(*parts: tuple[float, float, float], base: Map = lambda s: s) -> Map:
    return lambda s: base(s) + sum(np.where((s >= low) & (s < high), gap, 0.0) for low, high, gap in parts)


def at(*values: tuple[float, float]) -> Map:
    """Right but at some values, where the frequency is another."""
    return lambda s: np.select([np.isclose(s, v) for v, _ in values], [f for _, f in values], s)


def twentieths(rng: np.random.Generator, n: int) -> np.ndarray:
    return 0.025 + 0.05 * rng.integers(20, size=n)


LOCAL: dict[str, tuple[Scores, Map]] = {
    "-.25 on .30-.34": (beta(1, 1), wrong_on((0.30, 0.34, -0.25))),
    "+.15 on .75-.80 of Beta(2, 1)": (beta(2, 1), wrong_on((0.75, 0.80, 0.15))),
    "-.1 on .15-.35 of Beta(1.5, 4)": (beta(1.5, 4), wrong_on((0.15, 0.35, -0.1))),
    "+.06 below .4 of Beta(3, 3)": (beta(3, 3), wrong_on((0.0, 0.4, 0.06))),
    "±.15 on .60-.72 of Beta(.7, .7)": (beta(0.7, 0.7), wrong_on((0.60, 0.66, 0.15), (0.66, 0.72, -0.15))),
    "three dips": (beta(1, 1), wrong_on((0.1, 0.14, 0.2), (0.5, 0.53, -0.3), (0.8, 0.86, -0.2))),
    "-.08 on .95-.99 of Beta(5, .8)": (beta(5, 0.8), wrong_on((0.95, 0.99, -0.08))),
    "8 % at .8, true .68": (heaps(beta(2, 2), (0.8, 0.08)), at((0.8, 0.68))),
    "6 % at .25, true .35; 12 % at .75, true .70": (
        heaps(beta(1, 1), (0.25, 0.06), (0.75, 0.12)),
        at((0.25, 0.35), (0.75, 0.70)),
    ),
    "twentieths, two of them off by .2": (twentieths, at((0.725, 0.525), (0.775, 0.575))),
    "log odds × .8, and -.2 on .60-.66": (
        beta(1, 1),
        wrong_on((0.60, 0.66, -0.2), base=lambda s: expit(0.8 * logit(s))),
    ),
}
CALIBRATED: dict[str, tuple[Scores, Map]] = {
    "Beta(.5, .5)": (beta(0.5, 0.5), wrong_on()),
    "Beta(1, 60)": (beta(1, 60), wrong_on()),
    "log odds N(0, 2.5)": (lambda rng, n: expit(2.5 * rng.standard_normal(n)), wrong_on()),
    "twentieths": (twentieths, wrong_on()),
    "8 % at .8": (heaps(beta(2, 2), (0.8, 0.08)), wrong_on()),
}
E = cal.estimators
#: Numbers beside the default's.
NUMBERS = {
    "15 bins": cal.Binned(15),
    "√n bins": cal.Binned("sqrt"),
    "Smooth": E.Smooth(),
    "Isotonic": E.Isotonic(),
    "debiased bins": cal.Binned(15, debias=True),
    "residual kernel": E.ResidualKernel(debias=True),
}
#: Intervals beside the default's.
INTERVALS: dict[str, dict[str, Any]] = {
    "15 bins": {"estimator": cal.Binned(15)},
    "debiased bins": {"estimator": cal.Binned(15, debias=True)},
    "assume='bins'": {"assume": "bins"},
}


@cache
def truth(name: str) -> float:
    scores, right = (LOCAL | CALIBRATED)[name]
    s = scores(np.random.default_rng(zlib.crc32(name.encode())), 4_000_000)
    return float(np.abs(right(s) - s).mean())


def found(name: str, n: int, number: int) -> dict[str, Any]:
    scores, right = (LOCAL | CALIBRATED)[name]
    rng = np.random.default_rng([zlib.crc32(name.encode()), n, number])
    s = scores(rng, n)
    y = (rng.random(n) < right(s)).astype(int)
    given = {"labels": [0, 1], "pos_label": 1}
    start = time.process_time()
    own = cal.estimate(y, s, random_state=number, **given)
    out: dict[str, Any] = {"own": [own.value, own.corrected, *own.interval], "cpu": time.process_time() - start}
    if name in LOCAL:
        out["numbers"] = {k: cal.calibration_error(y, s, estimator=e, **given) for k, e in NUMBERS.items()}
        out["intervals"] = {
            k: list(cal.estimate(y, s, random_state=number, n_resamples=200, **given, **how).interval)
            for k, how in INTERVALS.items()
        }
    return out


def local_rows(name: str, n: int, samples: list[dict[str, Any]]) -> str:
    """One line of the table."""
    t = truth(name)
    value, corrected, low, high = np.array([one["own"] for one in samples]).T

    def rmse(values: np.ndarray) -> float:
        return float(np.sqrt(np.mean((values - t) ** 2)))

    rivals = {k: rmse(np.array([one["numbers"][k] for one in samples])) for k in NUMBERS}
    best = min(rivals, key=rivals.__getitem__)
    widths = {}
    for k in INTERVALS:
        a, b = np.array([one["intervals"][k] for one in samples]).T
        if np.mean((a <= t) & (t <= b)) >= 0.9:
            widths[k] = float(np.mean(b - a))
    valid = min(widths, key=widths.__getitem__, default=None)
    width = f"{np.mean(high - low) / widths[valid]:.2f} ({valid})" if valid else "none is valid"
    covered = np.mean((low <= t) & (t <= high))
    se = np.sqrt(max(covered * (1 - covered), 0.5 / len(samples) * (1 - 0.5 / len(samples))) / len(samples))
    return (
        f"| {name} | {n:,} | {t:.4f} | {value.mean() / t:.2f} | {corrected.mean() / t:.2f} | "
        f"{rmse(value) / rivals[best]:.2f} ({best}) | {rmse(value) / rivals['15 bins']:.2f} | "
        f"{covered:.2f} ± {se:.2f} | {width} |"
    )


def main() -> None:
    options = arguments.parser(__doc__, repetitions=40, only="truths", write=True, store=True).parse_args()
    names = [name for name in LOCAL | CALIBRATED if options.only in name]
    number = {n: options.repetitions if n <= 20_000 else options.repetitions // 2 for n in SIZES}
    asked = [(name, n, i) for n in SIZES for name in names for i in range(number[n])]
    known = found_of(options.store, asked, found)
    lines = [
        "# Where only a part of the scores is wrong",
        "",
        f"Written by `python -m benchmarks.coverage.local_truths --repetitions {options.repetitions}`; half as many",
        "samples of 50,000 rows. Truths that played no part in the making of the default. Means are in units of the",
        "truth; RMSE is over that of the best of six rivals, which the brackets name, and over that of 15 bins; the",
        "width of the 95 % interval is over that of the narrowest rival's that covers the truth in 90 % of the samples",
        "of the row.",
        "",
        "| truth | rows | error | mean | corrected | RMSE / best rival | / 15 bins | coverage | width / valid rival |",
        "|---|--:|--:|--:|--:|---|--:|---|---|",
    ]
    ratios = []
    for name in (name for name in names if name in LOCAL):
        for n in SIZES:
            samples = [known[name, n, i] for i in range(number[n])]
            lines.append(local_rows(name, n, samples))
            if n >= 5000:
                ratios.append(float(lines[-1].split("|")[6].split()[0]))
    if ratios:
        mean = float(np.exp(np.mean(np.log(ratios))))
        lines += [
            "",
            f"From 5,000 rows on the RMSE is {mean:.2f} × the best rival's in the geometric mean over rows of",
        ]
        lines.append(f"the table, {max(ratios):.2f} × in the worst.")
    lines += ["", "Calibrated scores: samples whose interval excludes 0, in %, with a standard error.", ""]
    lines += ["| scores | " + " | ".join(f"{n:,}" for n in SIZES) + " |", "|---|" + "--:|" * len(SIZES)]
    for name in (name for name in names if name in CALIBRATED):
        cells = []
        for n in SIZES:
            hits = np.array([known[name, n, i]["own"][2] > 0 for i in range(number[n])])
            q = np.clip(hits.mean(), 0.5 / hits.size, 1 - 0.5 / hits.size)
            cells.append(f"{100 * hits.mean():.1f} ± {100 * np.sqrt(q * (1 - q) / hits.size):.1f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    arguments.finish(options, lines)


if __name__ == "__main__":
    main()
