"""Do intervals of calibrated probabilities cover the truth? Where it is known, in and outside a calibrator's family.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.map_intervals [--repetitions 200] [--write FILE]

Scores are Beta(0.8, 0.7) distributed, outcomes drawn from a known map of them. Per cent of 200 fixed scores (quantiles
of that distribution) whose truth lies in the 95 % interval, and the intervals' mean width.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import warnings
from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit
from scipy.stats import beta

from calibrant import calibrators as c
from calibrant.data.writing import write_text

from .. import arguments

Map = Callable[[np.ndarray], np.ndarray]
TRUTHS: dict[str, Map] = {
    "calibrated": lambda s: s,
    "over-confident": lambda s: expit(0.5 * logit(s) - 0.3),
    "asymmetric": lambda s: expit(0.6 * np.log(s) - 1.6 * np.log1p(-s) - 0.5),
    "bent": lambda s: expit(logit(s) + 0.15 * logit(s) ** 2 - 0.5),
    "wave": lambda s: expit(logit(s) + 0.8 * np.sin(logit(s))),
    "steps": lambda s: 0.1 + 0.35 * (s > 0.3) + 0.45 * (s > 0.7),
}
CALIBRATORS = {
    "PlattScaling": c.PlattScaling(),
    "PlattScaling(shrinkage=0)": c.PlattScaling(shrinkage=0),
    "BetaCalibration": c.BetaCalibration(),
    "QuadraticLogit": c.QuadraticLogit(),
    "SplineCalibrator": c.SplineCalibrator(),
    "IsotonicCalibrator": c.IsotonicCalibrator(),
    "VennAbers (no level)": c.VennAbers(),
    "AutoCalibrator": c.AutoCalibrator(),
}
#: Scores, and truths of them, on which nothing about `AutoCalibrator` was chosen.
OTHERS = {"Beta(3, 2)": (3.0, 2.0), "Beta(0.4, 0.5)": (0.4, 0.5), "Beta(0.5, 8)": (0.5, 8.0)}
OTHER_TRUTHS: dict[str, Map] = {
    "calibrated": lambda s: s,
    "under-confident": lambda s: expit(1.6 * logit(s) - 0.2),
    "shifted": lambda s: expit(logit(s) + 0.7),
    "half": lambda s: s / 2,
    "kink": lambda s: np.where(s > 0.6, 0.6 + 0.4 * (s - 0.6), s),
    "quick wave": lambda s: expit(logit(s) + 0.4 * np.sin(2 * logit(s))),
    "jump": lambda s: np.where(s > 0.5, 0.75, 0.25),
}
#: Truths inside a calibrator's family.
INSIDE = {
    "PlattScaling": ("calibrated", "over-confident"),
    "PlattScaling(shrinkage=0)": ("calibrated", "over-confident"),
    "BetaCalibration": ("calibrated", "over-confident", "asymmetric"),
    "QuadraticLogit": ("calibrated", "over-confident", "bent"),
    "IsotonicCalibrator": ("calibrated", "over-confident", "asymmetric", "wave", "steps"),
    "VennAbers (no level)": ("calibrated", "over-confident", "asymmetric", "wave", "steps"),
}
HEAD = """
# Do intervals of calibrated probabilities cover the truth?

Written by
`python -m benchmarks.coverage.map_intervals --repetitions REPETITIONS --write benchmarks/coverage/map_intervals.md`:
per cent of scores whose truth lies in the 95 % interval of `predict_interval`, with standard errors over samples, and
the mean width. **Bold**: the truth is inside the calibrator's family (of rising maps, for isotonic regression and
Venn-Abers predictors). Seeds are the numbers of the samples; scores are Beta(0.8, 0.7) distributed. Truths, of the log
odds z: *over-confident* 0.5 z - 0.3; *asymmetric* 0.6 log s - 1.6 log(1 - s) - 0.5; *bent* z + 0.15 z² - 0.5 (it falls
below z = -3.3); *wave* z + 0.8 sin z; *steps* 0.1, 0.45 and 0.9. `TemperatureScaling` and `GaussianProcessCalibrator`
give no interval: with 1000 rows theirs covered 1 % and 75 % of scores where the truth is asymmetric.
"""
TAIL = """
## AutoCalibrator, elsewhere

Other scores and truths, on which nothing about its interval was chosen: *under-confident* 1.6 z - 0.2; *shifted*
z + 0.7; *half* s / 2; *kink* has slope 0.4 above 0.6; *quick wave* z + 0.4 sin 2z; *jump* is 0.25 and 0.75 on either
side of 0.5.
"""


def main() -> None:
    options = arguments.parser(__doc__, repetitions=200, write=True).parse_args()
    warnings.simplefilter("ignore")
    lines = [HEAD.strip().replace("REPETITIONS", str(options.repetitions))]
    for n in (100, 1000):
        lines += [f"\n## n = {n}\n", f"| calibrator | {' | '.join(TRUTHS)} |", f"|---|{'---:|' * len(TRUTHS)}"]
        for name, one in CALIBRATORS.items():
            cells = (
                _cell(one, (0.8, 0.7), true, n, options.repetitions, inside=chosen in INSIDE.get(name, ()))
                for chosen, true in TRUTHS.items()
            )
            lines.append(f"| {name} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    lines += [TAIL, f"| scores | n | {' | '.join(OTHER_TRUTHS)} |", f"|---|---:|{'---:|' * len(OTHER_TRUTHS)}"]
    for law, shape in OTHERS.items():
        for n in (100, 300, 1000, 3000):
            auto = CALIBRATORS["AutoCalibrator"]
            cells = (_cell(auto, shape, true, n, options.repetitions) for true in OTHER_TRUTHS.values())
            lines.append(f"| {law} | {n} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    if options.write is not None:
        write_text(options.write, "\n".join(lines) + "\n")


def _cell(
    one: c.Calibrator, shape: tuple[float, float], true: Map, n: int, repetitions: int, *, inside: bool = False
) -> str:
    """Coverage with its standard error, and the mean width."""
    found = np.array([_covered(one, shape, true, n, i) for i in range(repetitions)])
    cell = f"{found[:, 0].mean():.1f} ± {found[:, 0].std(ddof=1) / np.sqrt(repetitions):.1f}"
    return f"{f'**{cell}**' if inside else cell}, {found[:, 1].mean():.3f}"


def _covered(one: c.Calibrator, shape: tuple[float, float], true: Map, n: int, i: int) -> tuple[float, float]:
    """Per cent of scores, and the mean width."""
    rng = np.random.default_rng([i, n])
    at = beta.ppf((np.arange(200) + 0.5) / 200, *shape).clip(1e-9, 1 - 1e-9)
    s = rng.beta(*shape, n).clip(1e-9, 1 - 1e-9)
    y = (rng.random(n) < true(s)).astype(int)
    low, high = one.set_params(labels=[0, 1]).fit(s, y).predict_interval(at).T
    truth = true(at)
    return 100 * float(np.mean((low <= truth) & (truth <= high))), float((high - low).mean())


if __name__ == "__main__":
    main()
