"""What could have been the default: the candidates that `default_trials.py` compares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant import Binned, CrossFit, Density, EmpiricalBayes, Parametric, ResidualKernel
from calibrant.benchmark import Config, Entry
from calibrant.benchmark.fast import Batch, powers, reads
from calibrant.errors import Component, Estimator, Prior
from calibrant.errors.empirical_bayes import TYPICAL
from calibrant.problem import Problem

from .runs import DEFAULT


@dataclass(frozen=True)
class Zero(Estimator):
    """Always 0: what a relative error of 1 is worth."""

    def power(self, problem: Problem, norm: float) -> float:
        """0."""
        return 0.0


@dataclass(frozen=True)
class Average(Estimator):
    """Mean of the readings of two estimators."""

    first: Estimator
    second: Estimator

    def power(self, problem: Problem, norm: float) -> float:
        """The mean (of powers, which for norm 1 are the readings)."""
        return (self.first.power(problem, norm) + self.second.power(problem, norm)) / 2


@reads(Zero)
def _zero(estimator: Zero, batch: Batch, norm: float) -> np.ndarray:
    return np.zeros(batch.n_samples)


@reads(Average)
def _average(estimator: Average, batch: Batch, norm: float) -> np.ndarray:
    return (powers(estimator.first, batch, norm) + powers(estimator.second, batch, norm)) / 2


def _with(intercept: float = 0.25, **change: float) -> EmpiricalBayes:
    """The default with something changed in every component of its prior."""
    components = tuple(component._replace(**change) for component in TYPICAL.components)
    return EmpiricalBayes(Prior(components, intercept=intercept))


#: What a trial is, in words, and its estimator.
TRIALS: dict[str, tuple[str, Estimator]] = {
    DEFAULT: ("**the default**", EmpiricalBayes()),
    "zero": ("0, whatever the sample", Zero()),
    "residual-rank": ("residuals smoothed over ranks, a plug-in", ResidualKernel()),
    "residual-rank-debiased": ("the same, debiased pointwise", ResidualKernel(debias=True)),
    "asqrt-debiased": ("√N quantile bins, debiased", Binned("sqrt", "quantile", debias=True)),
    "parametric-logistic": ("a shrunk logistic map", Parametric()),
    "crossfit": ("unbiased in sign: isotonic cross-fitting", CrossFit()),
    "wide": ("the wide prior", EmpiricalBayes("wide")),
    "one amplitude": ("one amplitude, 0.8, decay 1.2", EmpiricalBayes(Prior((Component(0.8, 1.2, 1),), intercept=0.2))),
    "equal weights": ("the default's components, equally likely", _with(weight=1.0)),
    "no tail": (
        "without its two largest amplitudes",
        EmpiricalBayes(Prior(TYPICAL.components[:4], intercept=TYPICAL.intercept)),
    ),
    "smooth": ("all its components smooth (decay 1.5)", _with(decay=1.5)),
    "rough": ("all its components rough (decay 0.4)", _with(decay=0.4)),
    "intercept": ("offsets twice as likely (intercept 0.5)", _with(intercept=0.5)),
    "half ac10": (
        "half the default, half 10 quantile bins, linear",
        Average(EmpiricalBayes(), Binned(10, "quantile", "linear")),
    ),
    "half d-silverman": (
        "half the default, half Silverman's density",
        Average(EmpiricalBayes(), Density(kernel="triweight")),
    ),
}


def entries() -> dict[str, Entry]:
    """The trials as the benchmark reads them."""
    return {name: Entry(estimator) for name, (_, estimator) in TRIALS.items()}


def config(seed: int) -> Config:
    """72 score distributions of the paper's kind; with a seed above 0, none of the benchmark's."""
    return Config(
        seed=seed, mixtures=2, trainings=1, pool=1_000_000, rows=400_000, sizes=(30, 120, 500, 1000, 3000), sets=100
    )
