"""Which of Chen's two Beta kernels estimates the calibration error with the smaller error?

    python -m benchmarks.coverage.beta_forms [--repetitions 400]

Scores are Beta distributed (flat 1, 1; U 0.4, 0.5; middle 4, 3; rare 0.5, 6). The true probability at a score s is s
(*calibrated*) or s^1.5 (*power*). With log-odds z of s, true log-odds are 0.6 z (*overconfident*) or z + 0.5
(*shifted*). Bandwidths come from the rule (`"auto"`) and, for 100 rows, also from the leave-one-out likelihood
(`"loo"`). True errors are means over 20,000 quantiles of the scores. Neither form's bandwidth was chosen on these
cases. Both forms use the same rows. Standard errors of ratios come from a jackknife over samples.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from functools import cache

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit, logit
from scipy.stats import beta

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import table
from ..provenance import Kept

SCORES = {"flat": (1, 1), "U": (0.4, 0.5), "middle": (4, 3), "rare": (0.5, 6)}
MAPS = {
    "calibrated": lambda s: s,
    "power": lambda s: s**1.5,
    "overconfident": lambda s: expit(0.6 * logit(s)),
    "shifted": lambda s: expit(logit(s) + 0.5),
}
SIZES, FORMS = (100, 1000), ("first", "second")
#: Rows and bandwidth.
SETTINGS = {"100 rows": (100, "auto"), "100 rows, loo": (100, "loo"), "1,000 rows": (1000, "auto")}
Pair = tuple[float, float]


@cache
def true_error(scores: str, truth: str) -> float:
    """The true calibration error."""
    at = beta.ppf((np.arange(20_000) + 0.5) / 20_000, *SCORES[scores]).clip(1e-9, 1 - 1e-9)
    return float(np.abs(MAPS[truth](at) - at).mean())


def sample(scores: str, truth: str, n: int, seed: int) -> dict[str, float]:
    """Each estimate's difference from the true error."""
    rng = np.random.default_rng([seed, [*SCORES].index(scores), [*MAPS].index(truth), n])
    s = rng.beta(*SCORES[scores], n).clip(1e-9, 1 - 1e-9)
    y, true = rng.random(n) < MAPS[truth](s), true_error(scores, truth)
    return {
        f"{bandwidth}, {form}": cal.calibration_error(
            y, s, estimator=cal.estimators.BetaKernel(bandwidth, form=form), labels=[0, 1]
        )
        - true
        for rows, bandwidth in SETTINGS.values()
        if rows == n
        for form in FORMS
    }


def ratio(kept: Kept, scores: str, truth: str, setting: str) -> Pair:
    """Root mean squared error of the second form over that of the first, with its standard error."""
    n, bandwidth = SETTINGS[setting]
    some = kept.where(scores=scores, truth=truth, n=n)
    square = np.stack([some[f"{bandwidth}, {form}"] ** 2 for form in FORMS], axis=1)
    rest = square.sum(axis=0) - square
    each = np.sqrt(rest[:, 1] / rest[:, 0])
    value = np.sqrt(square[:, 1].sum() / square[:, 0].sum())
    return float(value), float(each.std() * np.sqrt(len(each) - 1))


def _ratios(kept: Kept, setting: str) -> dict[tuple[str, str], Pair]:
    return {(scores, truth): ratio(kept, scores, truth, setting) for scores in SCORES for truth in MAPS}


def answer(kept: Kept) -> str:
    every = {setting: _ratios(kept, setting) for setting in SETTINGS}
    means, counts = [], []
    for pairs in every.values():
        means.append(f"{np.exp(np.mean([np.log(value) for value, _ in pairs.values()])):.2f}")
        more, less = (sum(sign * (v - 1) > 2 * e for v, e in pairs.values()) for sign in (1, -1))
        counts.append(f"in {more} of {len(pairs)} cases and smaller in {less}")
    values = {f"{setting}, {', '.join(case)}": v for setting, pairs in every.items() for case, (v, _) in pairs.items()}
    least, most = min(values, key=values.get), max(values, key=values.get)  # type: ignore[arg-type]
    return (
        f"With 100 rows, the second form's root mean squared error is {means[0]} times that of the first, the default "
        f"(geometric mean). It is larger by two standard errors {counts[0]}. With the leave-one-out bandwidth the "
        f"ratio is {means[1]} (larger {counts[1]}), and with 1,000 rows {means[2]} (larger {counts[2]}). It is lowest "
        f"in *{least}* ({values[least]:.2f}) and highest in *{most}* ({values[most]:.2f})."
    )


def picture(kept: Kept) -> Figure:
    series = {setting: [*_ratios(kept, setting).values()] for setting in SETTINGS}
    names = [f"{scores}, {truth}" for scores in SCORES for truth in MAPS]
    return dots(names, series, "root mean squared error, second form / first", 1.0)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives the second form's root mean squared error divided by the first's."
    yield ""
    yield from table(("scores, true map", *SETTINGS), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for scores in SCORES:
        for truth in MAPS:
            pairs = [ratio(kept, scores, truth, setting) for setting in SETTINGS]
            yield [f"{scores}, {truth}", *(f"{v:.2f}" for v, _ in pairs)]


EXPERIMENT = Experiment(
    __spec__.name, {"scores": SCORES, "truth": MAPS, "n": SIZES}, sample, answer, page, picture, repetitions=400
)

if __name__ == "__main__":
    EXPERIMENT.main()
