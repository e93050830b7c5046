"""Which candidate for the default band of curves and diagrams covers the truth?

    python -m benchmarks.coverage.default_band [--repetitions 80]

The default of `reliability_curve` and `ReliabilityDisplay` is the posterior of the default estimator's recalibration
map, with more cosines than the number needs, and spread by a factor of up to 1.2 below 5,000 rows. A value that many
rows share and that stands apart has an interval of its own. Before, curves had `"density"` and diagrams `"adaptive"`.

Coverage is the share of rows whose true probability lies in the 95 % band at their score. The aim is 93 % where the
model is calibrated and 90 % where it is not, at the least mean width. Constants were chosen on 13 truths. Of the 18
truths kept back, uniform and rare calibrated scores, overconfident, steps and wavy were looked at in trials that said
that a band needs more cosines than a number, and most others in a first trial.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from matplotlib.figure import Figure
from scipy.special import expit

import calibrant as cal
from calibrant.datasets import true_map
from calibrant.measure import posterior_curve

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, table
from ..provenance import Kept
from .aims import ERRORS, shown
from .bands import CASES, NEAR, RESAMPLES, Case, eleven, overconfident, rare, same, stepped, uniform, wavy

SIZES = (500, 1000, 2000, 5000, 20_000)
CHOOSING_SIZES = (500, 2000, 20_000)
#: What a band shall cover, per cent of rows, where the model is calibrated and where it is not.
WANTED = {True: 93.0, False: 90.0}


def beta(a: float, b: float) -> Any:
    return lambda rng, n: rng.beta(a, b, n)


def hundredths(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.round(rng.beta(0.7, 0.9, n), 2)


def twentieths(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.integers(1, 20, n) / 20


def piled(at: float, share: float) -> Any:
    def scores(rng: np.random.Generator, n: int) -> np.ndarray:
        s = rng.random(n)
        s[rng.random(n) < share] = at
        return s

    return scores


CHOOSING = {
    "calibrated, Beta(2, 2)": Case(beta(2, 2), same),
    "calibrated, Beta(.2, 1)": Case(beta(0.2, 1), same),
    "calibrated, hundredths": Case(hundredths, same),
    "calibrated, logit N(-2, 2)": Case(lambda rng, n: expit(-2 + 2 * rng.standard_normal(n)), same),
    "underconfident, Beta(2, 3)": Case(beta(2, 3), lambda s: true_map(s, "underconfident")),
    "shifted, fifths": Case(lambda rng, n: rng.integers(0, 6, n) / 5, lambda s: true_map(s, "shifted")),
    "one step, Beta(2, 2)": Case(beta(2, 2), lambda s: np.where(s > 0.5, 0.75, 0.3)),
    "steps, Beta(.6, .8)": Case(beta(0.6, 0.8), stepped),
    "hill, Beta(1.5, 1)": Case(beta(1.5, 1), lambda s: 0.2 + 0.6 * np.exp(-0.5 * ((s - 0.6) / 0.12) ** 2)),
    "three waves": Case(uniform, lambda s: np.clip(s + 0.12 * np.sin(6 * np.pi * s), 0, 1)),
    "-.25 on .70-.75": Case(uniform, lambda s: np.clip(s - 0.25 * ((s > 0.7) & (s < 0.75)), 0, 1)),
    "tens, up and down": Case(eleven, lambda s: np.clip(s + 0.12 * (-1) ** np.round(10 * s), 0.02, 0.98)),
    "25 % at .5, true .62": Case(piled(0.5, 0.25), lambda s: np.where(s == 0.5, 0.62, s)),
}
KEPT = {
    "calibrated, uniform": Case(uniform, same),
    "calibrated, Beta(.3, .3)": Case(beta(0.3, 0.3), same),
    "calibrated, logit N(0, 3)": Case(lambda rng, n: expit(3 * rng.standard_normal(n)), same),
    "calibrated, logit t(2)": Case(lambda rng, n: expit(rng.standard_t(2, n)), same),
    "calibrated, 11 scores": Case(eleven, same),
    "calibrated, twentieths": Case(twentieths, same),
    "calibrated, 5 % positive": Case(rare, same),
    **{name: CASES[name] for name in ("overconfident", "overconfident, 11 scores", "steps", "wavy")},
    "overconfident, logit N(0, 3)": Case(lambda rng, n: expit(3 * rng.standard_normal(n)), overconfident),
    "wavy, Beta(.3, .3)": Case(beta(0.3, 0.3), wavy),
    "valley": Case(uniform, lambda s: 0.75 - 0.5 * np.exp(-0.5 * ((s - 0.4) / 0.1) ** 2)),
    "falling": Case(beta(1, 2), lambda s: 0.8 - 0.6 * s),
    "+.2 on .30-.40": Case(uniform, lambda s: np.clip(s + 0.2 * ((s > 0.3) & (s < 0.4)), 0, 1)),
    "twentieths, up and down": Case(twentieths, lambda s: np.clip(s + 0.1 * (-1) ** np.round(20 * s), 0.02, 0.98)),
    "15 % at .7, true .55": Case(piled(0.7, 0.15), lambda s: np.where(s == 0.7, 0.55, s)),
}


class Candidate(NamedTuple):
    """A curve, and constants of the posterior's that differ from those that ship."""

    estimator: str
    constants: dict[str, float] = {}


CANDIDATES = {
    "density": Candidate("density"),
    "adaptive": Candidate("adaptive"),
    "cosines as for the number": Candidate("auto", {"COSINES": 2.0, "MOST_COSINES": 32, "WIDEST": 1.0}),
    "up to 60 cosines": Candidate("auto", {"WIDEST": 1.0}),
    "the same, 1.15 times as wide": Candidate("auto", {"WIDER_FALLS": 0.0}),
    "chosen, but 60 cosines sooner": Candidate("auto", {"COSINES": 3.0}),
    "chosen": Candidate("auto"),
}
#: Those that are compared on the truths kept back.
SHOWN = ("chosen", "density", "adaptive")


def is_calibrated(truth: str) -> bool:
    return truth.startswith("calibrated")


def sample(truth: str, n: int, seed: int) -> dict[str, float]:
    """Of each candidate, the share of the rows whose truth the band covers, and the band's mean width at them."""
    every = CHOOSING | KEPT
    rng = np.random.default_rng([seed, [*every].index(truth), n])
    s = every[truth].scores(rng, n)
    right = every[truth].truth(s)
    y = (rng.random(n) < right).astype(int)
    out = {}
    for name in CANDIDATES if truth in CHOOSING else SHOWN:
        estimator, constants = CANDIDATES[name]
        with mock.patch.multiple(posterior_curve, **constants) if constants else nullcontext():
            curve = cal.reliability_curve(
                y, s, labels=[0, 1], estimator=estimator, level=0.95, n_resamples=RESAMPLES, random_state=seed
            )
        _, lower, upper = curve.at(s)
        covered = float(np.mean((lower <= right + NEAR) & (right <= upper + NEAR)))
        # Rounded, so that the data file is small.
        out |= {name: round(covered, 5), f"{name}: width": round(float(np.nanmean(upper - lower)), 5)}
    return out


def _coverage(kept: Kept, truth: str, n: int, name: str) -> tuple[float, float]:
    return estimate(100 * kept.where(truth=truth, n=n)[name])


def _missed(kept: Kept, name: str) -> dict[str, tuple[float, float]]:
    """Truths and sizes, of those kept back, at which a candidate lies below its aim."""
    cells = {(truth, n): _coverage(kept, truth, n, name) for truth in KEPT for n in SIZES}
    return {
        f"{truth}, {n:,} rows": pair
        for (truth, n), pair in sorted(cells.items(), key=lambda one: one[1])
        if pair[0] < WANTED[is_calibrated(truth)]
    }


def answer(kept: Kept) -> str:
    number = len(KEPT) * len(SIZES)
    missed = {name: _missed(kept, name) for name in SHOWN}
    first = ", ".join(f"{name} ({shown(pair)} %)" for name, pair in [*missed["chosen"].items()][:3])
    sure = sum(
        value + ERRORS * error < WANTED[is_calibrated(name)] for name, (value, error) in missed["chosen"].items()
    )
    told = f": in {sure or 'none'} by more than two standard errors, least in {first}" if first else ""
    before = " and ".join(f'{len(missed[name])} (`"{name}"`)' for name in SHOWN[1:])
    return (
        f"On the truths kept back, the chosen band covers less than its aim in {len(missed['chosen']) or 'none'} of "
        f"{number} cases{told}. The earlier defaults do in {before}."
    )


def picture(kept: Kept) -> Figure:
    series = {}
    for name in SHOWN:
        cells = ([_coverage(kept, truth, n, name) for n in SIZES] for truth in KEPT)
        series[name] = [min(sizes, key=lambda pair: pair[0]) for sizes in cells]
    return dots(
        [*KEPT], series, "covered, % of rows, at the size where it is lowest", (WANTED[False], WANTED[True]), share=True
    )


def page(kept: Kept) -> Iterator[str]:
    yield "Candidates on the truths they were chosen by: the lowest coverage over calibrated truths and over others, in"
    yield "per cent with standard errors, and the mean width over all. The picture has the truths kept back."
    yield ""
    yield from table(("candidate", "rows", "calibrated", "others", "width"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for name in CANDIDATES:
        for n in CHOOSING_SIZES:
            cells = {truth: _coverage(kept, truth, n, name) for truth in CHOOSING}
            least = (
                min((pair for truth, pair in cells.items() if is_calibrated(truth) is kind), key=lambda pair: pair[0])
                for kind in (True, False)
            )
            width = np.mean([kept.where(truth=truth, n=n)[f"{name}: width"].mean() for truth in CHOOSING])
            yield [name, f"{n:,}", *map(shown, least), f"{width:.3f}"]


EXPERIMENT = Experiment(
    __spec__.name,
    {"truth": CHOOSING | KEPT, "n": SIZES},
    sample,
    answer,
    page,
    picture,
    repetitions=80,
    some=lambda truth, n: truth in KEPT or n in CHOOSING_SIZES,
    portion=lambda truth, n: 1.0 if truth in KEPT else 0.625,
    at="docs/development/default_band.md",
)

if __name__ == "__main__":
    EXPERIMENT.main()
