"""Chen's two Beta kernels beside each other, where the truth is known: root mean squared errors.

    python -m benchmarks.coverage.beta_forms [--repetitions 400]

Scores are Beta distributed, true maps are powers, logistic recalibrations and none; bandwidths are those of the rule,
and of the leave-one-out likelihood. Truths are integrals on 20,000 quantiles of the scores. Neither form's bandwidth
was chosen on these.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import numpy as np
from scipy.special import expit, logit
from scipy.stats import beta

import calibrant as cal

from .. import arguments

SCORES = {"flat": (1, 1), "U": (0.4, 0.5), "middle": (4, 3), "rare": (0.5, 6)}
MAPS = {
    "calibrated": lambda s: s,
    "power": lambda s: s**1.5,
    "overconfident": lambda s: expit(0.6 * logit(s)),
    "shifted": lambda s: expit(logit(s) + 0.5),
}


def main() -> None:
    parser = arguments.parser(__doc__)
    parser.add_argument("--repetitions", type=int, default=400)
    options = parser.parse_args()
    print("| scores | map | n | truth | bandwidth | RMSE, first | RMSE, second | second / first |")
    print("|---|---|---:|---:|---|---:|---:|---:|")
    every: dict[str, list[float]] = {}
    for name, shape in SCORES.items():
        at = beta.ppf((np.arange(20_000) + 0.5) / 20_000, *shape).clip(1e-9, 1 - 1e-9)
        for chosen, true in MAPS.items():
            truth = float(np.abs(true(at) - at).mean())
            for n in (100, 1000):
                for bandwidth in ("auto", "loo") if n == 100 else ("auto",):
                    errors = np.empty((options.repetitions, 2))
                    for i in range(options.repetitions):
                        rng = np.random.default_rng([i, n])
                        s = rng.beta(*shape, n).clip(1e-9, 1 - 1e-9)
                        y = rng.random(n) < true(s)
                        for j, form in enumerate(("first", "second")):
                            one = cal.estimators.BetaKernel(bandwidth, form=form)
                            errors[i, j] = cal.calibration_error(y, s, estimator=one, labels=[0, 1]) - truth
                    first, second = np.sqrt((errors**2).mean(axis=0))
                    share = _ratio(errors)
                    every.setdefault(f"{bandwidth}, n = {n}", []).append(second / first)
                    print(
                        f"| {name} | {chosen} | {n} | {truth:.4f} | {bandwidth} | {first:.4f} | {second:.4f} "
                        f"| {share} |"
                    )
    for bandwidth, ratios in every.items():
        print(f"\nGeometric mean of the ratios, {bandwidth}: {np.exp(np.mean(np.log(ratios))):.3f}")


def _ratio(errors: np.ndarray) -> str:
    """Ratio of root mean squares with its standard error, by a jackknife over repetitions."""
    square = errors**2
    rest = (square.sum(axis=0) - square) / (len(square) - 1)
    each = np.sqrt(rest[:, 1] / rest[:, 0])
    return f"{np.sqrt(square[:, 1].sum() / square[:, 0].sum()):.3f} ± {each.std() * np.sqrt(len(each) - 1):.3f}"


if __name__ == "__main__":
    main()
