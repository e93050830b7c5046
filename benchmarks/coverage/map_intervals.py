"""Do intervals of calibrated probabilities hold the truth? Where it is known, inside and outside a calibrator's family.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.map_intervals [--repetitions 200] [--write FILE]

Scores are Beta(0.8, 0.7) distributed, outcomes drawn from a known map of them. Per cent of 200 fixed scores (quantiles
of that distribution) whose truth lies in the 95 % interval, and the intervals' mean width.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import warnings

import numpy as np
from scipy.special import expit, logit
from scipy.stats import beta

from calibrant import calibrators as c

from .. import arguments

TRUTHS = {
    "calibrated": lambda s: s,
    "over-confident": lambda s: expit(0.5 * logit(s) - 0.3),
    "asymmetric": lambda s: expit(0.6 * np.log(s) - 1.6 * np.log1p(-s) - 0.5),
    "bent": lambda s: expit(logit(s) + 0.15 * logit(s) ** 2 - 0.5),
    "wave": lambda s: expit(logit(s) + 0.8 * np.sin(logit(s))),
    "steps": lambda s: 0.1 + 0.35 * (s > 0.3) + 0.45 * (s > 0.7),
}
CALIBRATORS = {
    "TemperatureScaling": c.TemperatureScaling(),
    "PlattScaling": c.PlattScaling(),
    "PlattScaling(shrinkage=0)": c.PlattScaling(shrinkage=0),
    "BetaCalibration": c.BetaCalibration(),
    "QuadraticLogit": c.QuadraticLogit(),
    "SplineCalibrator": c.SplineCalibrator(),
    "GaussianProcessCalibrator": c.GaussianProcessCalibrator(),
    "IsotonicCalibrator": c.IsotonicCalibrator(),
    "VennAbers (no level)": c.VennAbers(),
}
#: Truths inside a calibrator's family.
INSIDE = {
    "TemperatureScaling": ("calibrated",),
    "PlattScaling": ("calibrated", "over-confident"),
    "PlattScaling(shrinkage=0)": ("calibrated", "over-confident"),
    "BetaCalibration": ("calibrated", "over-confident", "asymmetric"),
    "QuadraticLogit": ("calibrated", "over-confident", "bent"),
    "IsotonicCalibrator": ("calibrated", "over-confident", "asymmetric", "wave", "steps"),
    "VennAbers (no level)": ("calibrated", "over-confident", "asymmetric", "wave", "steps"),
}
HEAD = """
# Do intervals of calibrated probabilities hold the truth?

Written by
`python -m benchmarks.coverage.map_intervals --repetitions REPETITIONS --write benchmarks/coverage/map_intervals.md`:
per cent of scores whose truth lies in the 95 % interval of `predict_interval`, with standard errors over samples, and
the mean width. **Bold**: the truth is inside the calibrator's family (of rising maps, for isotonic regression and
Venn-Abers predictors). Seeds are the numbers of the samples; scores are Beta(0.8, 0.7) distributed. Truths, of the log
odds z: *over-confident* 0.5 z - 0.3; *asymmetric* 0.6 log s - 1.6 log(1 - s) - 0.5; *bent* z + 0.15 z² - 0.5 (it falls
below z = -3.3); *wave* z + 0.8 sin z; *steps* 0.1, 0.45 and 0.9.
"""


def main() -> None:
    options = arguments.parser(__doc__, repetitions=200, write=True).parse_args()
    warnings.simplefilter("ignore")
    at = beta.ppf((np.arange(200) + 0.5) / 200, 0.8, 0.7).clip(1e-9, 1 - 1e-9)
    lines = [HEAD.strip().replace("REPETITIONS", str(options.repetitions))]
    for n in (100, 1000):
        lines += [f"\n## n = {n}\n", f"| calibrator | {' | '.join(TRUTHS)} |", f"|---|{'---:|' * len(TRUTHS)}"]
        for name, one in CALIBRATORS.items():
            cells = []
            for chosen, true in TRUTHS.items():
                found = np.array([_covered(one, true, at, n, i) for i in range(options.repetitions)])
                error = found[:, 0].std(ddof=1) / np.sqrt(len(found))
                cell = f"{found[:, 0].mean():.1f} ± {error:.1f}"
                cell = f"**{cell}**" if chosen in INSIDE.get(name, ()) else cell
                cells.append(f"{cell}, {found[:, 1].mean():.3f}")
            lines.append(f"| {name} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    if options.write is not None:
        options.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _covered(one: c.Calibrator, true: object, at: np.ndarray, n: int, i: int) -> tuple[float, float]:
    """Per cent of scores, and the mean width."""
    rng = np.random.default_rng([i, n])
    s = rng.beta(0.8, 0.7, n).clip(1e-9, 1 - 1e-9)
    y = (rng.random(n) < true(s)).astype(int)
    low, high = one.set_params(labels=[0, 1]).fit(s, y).predict_interval(at).T
    truth = true(at)
    return 100 * float(np.mean((low <= truth) & (truth <= high))), float((high - low).mean())


if __name__ == "__main__":
    main()
