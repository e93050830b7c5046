"""Coverage of `estimate` of shares k / n, where the draws of a row are independent and where they are not.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.shares [--repetitions 500] [--write FILE]

Rows have scores that are uniform on (0, 1), and n draws each, with a chance that is the score, or one that lies further
from a half by a logit scale of 0.6 of the score's. Draws are independent, or each row has a chance of its own, from a
beta distribution around that of its score with a correlation of the row's draws of 0.2. The truth is the mean distance
of the chance, given the score, from the score. ``weights n``: ``sample_weight=n``; ``groups``: also
``groups=range(len(y))``; ``unweighted``: shares without weights. A sample's seed is its number.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import warnings
from typing import Any

import numpy as np
from scipy.special import expit, logit

import calibrant as cal
from calibrant.exceptions import DependenceWarning

from .. import arguments

CORRELATION = 0.2
SIZES = {
    "100 rows, n 1 to 20": (100, 1, 20),
    "400 rows, n 1 to 20": (400, 1, 20),
    "60 rows, n 50 to 150": (60, 50, 150),
}
SCALES = {"calibrated": 1.0, "logit scale 0.6": 0.6}
ARMS: dict[str, Any] = {
    "weights n": lambda n: {"sample_weight": n},
    "weights n, groups": lambda n: {"sample_weight": n, "groups": np.arange(len(n))},
    "unweighted": lambda n: {},
}


def truth(scale: float) -> float:
    """Mean distance of the chance from the score."""
    s = (np.arange(1_000_000) + 0.5) / 1_000_000
    return float(np.abs(expit(scale * logit(s)) - s).mean())


def sample(seed: list[int], size: tuple[int, int, int], scale: float, *, independent: bool) -> tuple[Any, Any, Any]:
    """Shares, scores and numbers of draws."""
    rng = np.random.default_rng(seed)
    rows, low, high = size
    s, n = rng.random(rows), rng.integers(low, high + 1, rows)
    chance = expit(scale * logit(s))
    if not independent:
        strength = 1 / CORRELATION - 1
        chance = rng.beta(chance * strength, (1 - chance) * strength)
    return rng.binomial(n, chance) / n, s, n


def main() -> None:
    options = arguments.parser(__doc__, repetitions=500, write=True).parse_args()
    lines = [
        "# Shares k / n: coverage of `estimate`",
        "",
        f"Written by `python -m benchmarks.coverage.shares --repetitions {options.repetitions}`: share of samples, in",
        "per cent, whose 95 % interval covers the true mean calibration error, with its standard error, and the median",
        f"width. Draws of a row are independent, or have a correlation of {CORRELATION}. `warned`: share of samples of",
        "which `estimate` says that draws of a row look dependent.",
    ]
    for scaled, scale in SCALES.items():
        true = truth(scale)
        lines += ["", f"## {scaled}: the truth is {true:.4f}", ""]
        lines += ["| rows | draws | " + " | ".join(f"{arm} | width" for arm in ARMS) + " | warned |"]
        lines += ["|---|---|" + "--:|" * (2 * len(ARMS) + 1)]
        for named, size in SIZES.items():
            for independent in (True, False):
                held: dict[str, list[bool]] = {arm: [] for arm in ARMS}
                width: dict[str, list[float]] = {arm: [] for arm in ARMS}
                warned = 0
                for i in range(options.repetitions):
                    y, s, n = sample([i, size[0]], size, scale, independent=independent)
                    for arm, given in ARMS.items():
                        with warnings.catch_warnings(record=True) as said:
                            warnings.simplefilter("always")
                            found = cal.estimate(y, s, **given(n)).interval
                        warned += arm == "weights n" and any(w.category is DependenceWarning for w in said)
                        held[arm].append(found.low <= true <= found.high)
                        width[arm].append(found.high - found.low)
                cells = []
                for arm in ARMS:
                    share = np.mean(held[arm])
                    se = np.sqrt(share * (1 - share) / options.repetitions)
                    cells += [f"{100 * share:.1f} ± {100 * se:.1f}", f"{np.median(width[arm]):.3f}"]
                draws = "independent" if independent else "correlated"
                lines.append(f"| {named} | {draws} | {' | '.join(cells)} | {100 * warned / options.repetitions:.1f} |")
                print(lines[-1], flush=True)
    arguments.finish(options, lines)


if __name__ == "__main__":
    main()
