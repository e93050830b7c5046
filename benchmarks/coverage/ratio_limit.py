"""Are the quantiles that the isotonic confidence band uses those of the likelihood ratio's limit?

    python -m benchmarks.coverage.ratio_limit [--repetitions 150]

The band tests a value at one point of an increasing curve by the log-likelihood ratio of isotonic fits with and
without it. Quantiles of twice that ratio, `LIMIT` in `calibrant.measure.bands`, are compared with draws of a line from
-5 to 5 with normal noise at 10,000 points, tested in its middle. A sample is 2,000 draws.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

from calibrant.measure.bands import LIMIT, LIMIT_LEVELS

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, mean, table
from ..provenance import Kept
from .aims import ERRORS, shown

DRAWS, SLOPE = 2000, 10.0
#: Level and quantile, without those of 0.
QUANTILES = dict(zip(LIMIT_LEVELS[1:], LIMIT[1:], strict=True))


def sample(points: int, seed: int) -> dict[str, float]:
    """For each level, the share of draws up to the quantile in the code, and the quantile of the draws."""
    rng = np.random.default_rng([seed, points])
    middle = points // 2
    line = (np.arange(points) - middle) / points * SLOPE
    found = np.empty(DRAWS)
    for r in range(DRAWS):
        y = line + rng.standard_normal(points)
        free = isotonic_regression(y).x
        before, behind = isotonic_regression(y[:middle]).x, isotonic_regression(y[middle + 1 :]).x
        bound = np.concatenate([np.minimum(before, 0), [0.0], np.maximum(behind, 0)])
        found[r] = ((y - bound) ** 2).sum() - ((y - free) ** 2).sum()
    out = {f"{level}: share": float((found <= value).mean()) for level, value in QUANTILES.items()}
    return out | {f"{level}: quantile": float(np.quantile(found, level)) for level in QUANTILES}


def _off(kept: Kept, level: float) -> tuple[float, float]:
    """Share of draws up to the quantile minus its level, in percentage points."""
    value, error = estimate(kept[f"{level}: share"])
    return 100 * (value - level), 100 * error


def answer(kept: Kept) -> str:
    off = {level: _off(kept, level) for level in QUANTILES}
    far = [level for level, (value, error) in off.items() if abs(value) > ERRORS * error]
    most = max(off, key=lambda level: abs(off[level][0]))
    return (
        f"The share of draws below a quantile differs from its level by more than two standard errors at "
        f"{len(far) or 'none'} of {len(off)} levels. The largest difference is {shown(off[most], 2)} percentage "
        f"points, at {most:g}."
    )


def picture(kept: Kept) -> Figure:
    series = {"draws": [_off(kept, level) for level in QUANTILES]}
    return dots([f"{level:g}" for level in QUANTILES], series, "share minus level, percentage points", 0.0)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives quantiles in the code and of draws, and the per cent of draws below the former."
    yield ""
    yield from table(("level, %", "quantile", "of draws", "share"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for level, value in QUANTILES.items():
        share, drawn = 100 * kept[f"{level}: share"], kept[f"{level}: quantile"]
        yield [f"{100 * level:g}", f"{value:.3f}", f"{drawn.mean():.3f}", mean(share, 2)]


EXPERIMENT = Experiment(__spec__.name, {"points": [10_000]}, sample, answer, page, picture, repetitions=150, quick=2)

if __name__ == "__main__":
    EXPERIMENT.main()
