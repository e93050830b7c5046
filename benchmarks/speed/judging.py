"""How long do tests, decompositions and scores take compared with those of other libraries?

    pip install -r benchmarks/requirements.txt
    OMP_NUM_THREADS=1 python -m benchmarks.speed.judging [--repetitions 15] [--only TEXT]

Calls run in one thread, in turns, on the same arrays, with equal conventions. Numbers agree to 1e-6 or better.
Hosmer–Lemeshow has ten groups by percentiles; the row that calzone leaves out is put back. pycalib draws in one
process; shares of larger draws agree within four standard errors. Our Cox test also tests what calzone only fits.
Scores have no ties, since scoringrules would separate them; it also resamples scores for its band, whose ends agree
with ours to 0.01 on average.
"""

from __future__ import annotations

from . import one_thread  # noqa: F401 - before NumPy

# isort: split
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import calibrant as cal

from . import race
from .race import Peer, Work

DRAWS = 1000
#: Half the width of a 95 % interval, in standard errors.
Z = 1.959963984540054


@dataclass(frozen=True)
class Rows:
    """Labels and probabilities, also as some peers want them: not part of what is timed."""

    y: np.ndarray
    p: np.ndarray

    @cached_property
    def both(self) -> np.ndarray:
        return np.column_stack([1 - self.p, self.p])

    @cached_property
    def outcome(self) -> np.ndarray:
        return self.y.astype(float)

    @cached_property
    def log_odds(self) -> np.ndarray:
        return np.log(self.p) - np.log1p(-self.p)

    @cached_property
    def least(self) -> int:
        return int(np.argmin(self.p))


def binary(n: int = 100_000) -> tuple[Rows]:
    """Probabilities that are a little too low."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.9, 1.2, n).clip(1e-6, 1 - 1e-6)
    return (Rows((rng.random(n) < p**0.97).astype(int), p),)


def several(n: int, k: int, power: float = 1.0) -> tuple[Rows]:
    """Probability vectors that are `power` times as sharp as their labels."""
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(k), n)
    y = (rng.random((n, 1)) > q.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    p = q**power
    return (Rows(y, p / p.sum(axis=1, keepdims=True)),)


def resampling(r: Rows) -> list[float]:
    found = cal.calibration_test(
        r.y, r.p, notion="classwise", estimator=cal.Binned(10), n_resamples=DRAWS, random_state=0
    )
    return [found.statistic, found.details["share_of_draws_above"]]


def pycalib(r: Rows) -> list[float]:
    """What its ``pECE`` does, whose workers are forked with one seed."""
    from pycalib.metrics import _score_sampling, classwise_ECE
    from scipy.stats import percentileofscore
    from sklearn.preprocessing import label_binarize

    np.random.seed(0)  # noqa: NPY002 - the peer draws from the global state
    observed = classwise_ECE(label_binarize(r.y, classes=range(3)), r.p, bins=10)
    draws = _score_sampling(r.p, DRAWS, lambda a, b: classwise_ECE(a, b, bins=10))
    return [observed, 1 - percentileofscore(draws, observed) / 100]


def statistics_and_shares(ours: list[float], theirs: list[float]) -> float:
    """As a share of what is allowed: 1e-12 for the statistic, four standard errors for the share of larger draws."""
    error = math.sqrt(2 * max(ours[1] * (1 - ours[1]), 1 / DRAWS) / DRAWS)
    return max(abs(ours[0] - theirs[0]) / 1e-12, abs(ours[1] - theirs[1]) / (4 * error))


def hosmer_lemeshow(r: Rows) -> list[float]:
    found = cal.significance.hosmer_lemeshow_test(r.y, r.p, df="external")
    return [found.statistic, found.pvalue, found.df]


def calzone_hosmer_lemeshow(r: Rows) -> list[float]:
    from calzone.metrics import hosmer_lemeshow_test
    from calzone.utils import reliability_diagram

    rate, mean, _, count = reliability_diagram(r.y, r.both, 10, class_to_plot=1, is_equal_freq=True)
    hits, sums = rate * count, mean * count
    hits[0], sums[0], count[0] = hits[0] + r.y[r.least], sums[0] + r.p[r.least], count[0] + 1
    return list(hosmer_lemeshow_test(hits / count, sums / count, count, df=len(count)))


def spiegelhalter(r: Rows) -> list[float]:
    found = cal.significance.spiegelhalter_test(r.y, r.p)
    return [found.statistic, found.pvalue]


def calzone_spiegelhalter(r: Rows) -> list[float]:
    from calzone.metrics import spiegelhalter_z_test

    return list(spiegelhalter_z_test(r.y, r.both))


def cox_line(r: Rows) -> list[float]:
    found = cal.significance.cox_test(r.y, r.p).details
    return [found["slope"], found["intercept"], found["slope_se"], found["intercept_se"]]


def calzone_cox(r: Rows) -> list[float]:
    from calzone.metrics import cox_regression_analysis

    slope, intercept, slope_ci, intercept_ci = cox_regression_analysis(r.y, r.both)
    return [slope, intercept, np.ptp(slope_ci) / (2 * Z), np.ptp(intercept_ci) / (2 * Z)]


def cox_test(r: Rows) -> list[float]:
    found = cal.significance.cox_test(r.y, r.p)
    return [found.statistic, found.pvalue, found.details["slope"], found.details["in_the_large"]]


def statsmodels_cox(r: Rows) -> list[float]:
    import statsmodels.api as sm
    from scipy.stats import chi2

    y, p, z = r.y, r.p, r.log_odds
    free = sm.GLM(y, sm.add_constant(z), family=sm.families.Binomial()).fit()
    large = sm.GLM(y, np.ones_like(z), family=sm.families.Binomial(), offset=z).fit()
    plain = float((y * np.log(p) + (1 - y) * np.log1p(-p)).sum())
    statistic = 2 * (free.llf - plain)
    return [statistic, chi2.sf(statistic, 2), free.params[1], large.params[0]]


def corp(score: str) -> Callable[[Rows], list[float]]:
    def ours(r: Rows) -> list[float]:
        found = cal.decompose(r.y, r.p, score=score)
        return [found.miscalibration, found.discrimination, found.uncertainty, found.total]

    return ours


def diagnostics_corp(score: str) -> Callable[[Rows], list[float]]:
    def theirs(r: Rows) -> list[float]:
        from model_diagnostics import scoring

        found = scoring.decompose(r.outcome, r.p, scoring_function=getattr(scoring, score)())
        return [float(found[part][0]) for part in ("miscalibration", "discrimination", "uncertainty", "score")]

    return theirs


def scoringrules_corp(r: Rows) -> list[float]:
    from scoringrules.visualization.reliability import corp_reliability, corp_score_decomposition

    best, stated, base = corp_score_decomposition(*corp_reliability(r.y, r.p))
    return [stated - best, base - best, base, stated]


def corp_curve(r: Rows) -> cal.results.ReliabilityCurve:
    return cal.reliability_curve(r.y, r.p, estimator="isotonic")


def scoringrules_curve(r: Rows) -> tuple[np.ndarray, ...]:
    from scoringrules.visualization.reliability import corp_reliability

    x, _, observed = corp_reliability(r.y, r.p)
    return x, observed


def corp_band(r: Rows) -> cal.results.ReliabilityCurve:
    return cal.reliability_curve(
        r.y, r.p, estimator="isotonic", level=0.95, band="consistency", n_resamples=DRAWS, random_state=0
    )


def scoringrules_band(r: Rows) -> tuple[np.ndarray, ...]:
    """Its level is what lies beyond each end."""
    from scoringrules.visualization.reliability import _uncertainty_band

    np.random.seed(0)  # noqa: NPY002 - the peer draws from the global state
    x, observed = scoringrules_curve(r)
    return x, *_uncertainty_band(x, observed, DRAWS, "consistency", 0.025)


def ends(ours: cal.results.ReliabilityCurve, theirs: tuple[np.ndarray, ...]) -> float:
    """Mean distance of the ends of two bands, the larger one."""
    x, low, high = theirs
    at = ours.at(x)
    known = ~np.isnan(low)
    return max(float(np.abs(a - b)[known].mean()) for a, b in ((at.lower, low), (at.upper, high)))


def murphy(r: Rows) -> np.ndarray:
    return cal.scores.murphy_curve(r.y, r.p, np.arange(1, 101) / 101).scores


def diagnostics_murphy(r: Rows) -> np.ndarray:
    """What its ``plot_murphy_diagram`` computes."""
    from model_diagnostics.scoring import ElementaryScore

    return np.array([ElementaryScore(eta)(r.outcome, r.p) for eta in np.arange(1, 101) / 101])


def scores(scale: str) -> Callable[[Rows], list[float]]:
    return lambda r: [cal.brier_score(r.y, r.p, scale=scale), cal.log_loss(r.y, r.p)]


def sklearn_scores(**more: Any) -> Callable[[Rows], list[float]]:
    def theirs(r: Rows) -> list[float]:
        from sklearn.metrics import brier_score_loss, log_loss

        return [brier_score_loss(r.y, r.p, **more), log_loss(r.y, r.p)]

    return theirs


def scoringrules_scores(r: Rows) -> list[float]:
    import scoringrules as sr

    return [sr.brier_score(r.y, r.p).mean(), sr.log_score(r.y, r.p).mean()]


#: Modules by distribution.
MODULES = {
    "pycalib": "pycalib",
    "calzone-tool": "calzone",
    "statsmodels": "statsmodels",
    "model-diagnostics": "model_diagnostics",
    "scoringrules": "scoringrules",
    "scikit-learn": "sklearn",
}


def work(
    ours: Callable[[Rows], Any],
    arrays: Callable[[], tuple[Rows]] = binary,
    apart: float = 1e-12,
    gap: Callable[[Any, Any], float] = race.distance,
    quick: bool = True,
    **peers: Callable[[Rows], Any],
) -> Work:
    named = {name.replace("_", "-"): call for name, call in peers.items()}
    return Work(
        arrays,
        ours,
        {name: Peer(call, MODULES[name], apart) for name, call in named.items()},
        gap=gap,
        value=first,
        quick=quick,
    )


def first(found: Any) -> float:
    """The first number; for a curve the mean height of its band, where it has one, or of itself."""
    if isinstance(found, cal.results.ReliabilityCurve):
        band = found.upper - found.lower
        return float(np.nanmean(found.observed if np.isnan(band).all() else band))
    return float(found[0])


WORKS = {
    "resampling test, 10⁴ × 3": work(
        resampling, lambda: several(10_000, 3, 1.02), 1, statistics_and_shares, False, pycalib=pycalib
    ),
    "Hosmer–Lemeshow, 10⁵": work(hosmer_lemeshow, apart=1e-7, calzone_tool=calzone_hosmer_lemeshow),
    "Spiegelhalter's z, 10⁵": work(spiegelhalter, apart=1e-9, calzone_tool=calzone_spiegelhalter),
    "Cox's slope, intercept, 10⁵": work(cox_line, apart=1e-6, calzone_tool=calzone_cox),
    "Cox's test, 10⁵": work(cox_test, apart=1e-6, statsmodels=statsmodels_cox),
    "CORP of Brier score, 10⁵": work(
        corp("brier"), model_diagnostics=diagnostics_corp("SquaredError"), scoringrules=scoringrules_corp
    ),
    "CORP of log score, 10⁵": work(corp("log-loss"), model_diagnostics=diagnostics_corp("LogLoss")),
    "CORP curve, 10⁵": work(
        corp_curve, gap=lambda a, b: race.distance(a.at(b[0]).observed, b[1]), scoringrules=scoringrules_curve
    ),
    "CORP consistency band, 10⁴": work(
        corp_band, lambda: binary(10_000), 0.01, ends, False, scoringrules=scoringrules_band
    ),
    "Murphy diagram, 10⁵": work(murphy, model_diagnostics=diagnostics_murphy),
    "Brier, log score, 10⁶": work(
        scores("half"), lambda: binary(1_000_000), scikit_learn=sklearn_scores(), scoringrules=scoringrules_scores
    ),
    "Brier, log score, 10⁵ × 10": work(
        scores("sum"), lambda: several(100_000, 10), scikit_learn=sklearn_scores(scale_by_half=False)
    ),
}


def portion(work: str, peer: str) -> float:
    return 1.0 if WORKS[work].quick else 0.4


def sample(work: str, peer: str, seed: int) -> dict[str, float]:
    return race.turn(WORKS[work], peer, seed)


EXPERIMENT = race.experiment(__spec__.name, WORKS, sample, portion=portion, quick=2)

if __name__ == "__main__":
    EXPERIMENT.main()
