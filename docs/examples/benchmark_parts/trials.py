"""What could have been the default: the candidates that `default_trials.py` compares."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant import Binned, EmpiricalBayes
from calibrant.benchmark import Config, Entry
from calibrant.benchmark.experiment import Store
from calibrant.benchmark.pool import TRUTH_BINS, signs_of, truth_of
from calibrant.data.problem import Problem
from calibrant.estimators import Component, CrossFit, Density, Estimator, Parametric, Prior, ResidualKernel, laplace
from calibrant.estimators.empirical_bayes import TYPICAL, rank_cells

from .runs import DEFAULT, NOTIONS


@dataclass(frozen=True)
class Zero(Estimator):
    """Always 0: what a relative error of 1 is worth."""

    def power(self, problem: Problem, norm: float) -> float:
        """0."""
        return 0.0


@dataclass(frozen=True)
class Average(Estimator):
    """Mean of the estimates of two estimators, ``share`` of the second."""

    first: Estimator
    second: Estimator
    share: float = 0.5

    def _powers(self, problems: Problem, norm: float) -> np.ndarray:
        """The mean (of powers, which for norm 1 are the estimates)."""
        return (1 - self.share) * self.first._powers(problems, norm) + self.share * self.second._powers(problems, norm)


@dataclass(frozen=True)
class SizeOfMean(Estimator):
    """Mean size of the posterior mean gap, ``Σ |E gap|``, where the default takes ``E Σ |gap|``."""

    def _powers(self, problems: Problem, norm: float) -> np.ndarray:
        """From the posteriors of the default."""
        grids = EmpiricalBayes().summarize(problems)
        prior = EmpiricalBayes()._prior_for(grids.low)
        out = np.full(len(grids.rows), np.nan)
        for some, cells in rank_cells(grids, 1 << 12):
            posteriors = laplace.fit(cells, prior)
            weight = laplace.weights(prior, posteriors)
            mean = sum(weight[..., i, None] * laplace.gaps(cells, p)[0] for i, p in enumerate(posteriors))
            share = cells.count / cells.count.sum(axis=-1, keepdims=True)
            out[some] = (share * np.abs(mean) ** norm).sum(axis=-1)
        return out


def _with(intercept: float = 0.25, **change: float) -> EmpiricalBayes:
    """The default's prior of classes with something changed in every component."""
    components = tuple(component._replace(**change) for component in TYPICAL.components)
    return EmpiricalBayes(Prior(components, intercept=intercept, slope=TYPICAL.slope))


#: The prior before confidences had their own.
FORMER = Prior(
    (
        Component(0.08, 1.0, 0.04),
        Component(0.35, 0.4, 0.21),
        Component(0.65, 1.0, 0.40),
        Component(1.2, 1.5, 0.26),
        Component(2.5, 1.5, 0.07),
        Component(8.0, 1.5, 0.02),
    )
)


#: What a trial is, in words, and its estimator.
TRIALS: dict[str, tuple[str, Estimator]] = {
    DEFAULT: ("**the default**", EmpiricalBayes()),
    "zero": ("0, whatever the sample", Zero()),
    "residual-rank": ("residuals smoothed over ranks, a plug-in", ResidualKernel()),
    "residual-rank-debiased": ("the same, debiased pointwise", ResidualKernel(debias=True)),
    "asqrt-debiased": ("√N quantile bins, debiased", Binned("sqrt", "quantile", debias=True)),
    "parametric-logistic": ("a shrunk logistic map", Parametric()),
    "crossfit": ("unbiased in sign: isotonic cross-fitting", CrossFit()),
    "one prior": ("the prior of classes, for confidences too", EmpiricalBayes(TYPICAL)),
    "former prior": ("the former default: steeper slopes, and one prior for both", EmpiricalBayes(FORMER)),
    "wide": ("the wide prior", EmpiricalBayes("wide")),
    "one amplitude": ("one amplitude, 0.8, decay 1.2", EmpiricalBayes(Prior((Component(0.8, 1.2, 1),), intercept=0.2))),
    "equal weights": ("that of classes, its components equally likely", _with(weight=1.0)),
    "no tail": (
        "that of classes without its two largest amplitudes",
        EmpiricalBayes(Prior(TYPICAL.components[:4], intercept=TYPICAL.intercept, slope=TYPICAL.slope)),
    ),
    "smooth": ("that of classes, all smooth (decay 1.5)", _with(decay=1.5)),
    "rough": ("that of classes, all rough (decay 0.4)", _with(decay=0.4)),
    "intercept": ("that of classes, offsets twice as large (intercept 0.5)", _with(intercept=0.5)),
    "size of mean": ("the default's mean size of the posterior mean gap", SizeOfMean()),
    "half size of mean": ("half the default, half that", Average(EmpiricalBayes(), SizeOfMean())),
    "half ac10": (
        "half the default, half 10 quantile bins, linear",
        Average(EmpiricalBayes(), Binned(10, "quantile", "linear")),
    ),
    "half d-silverman": (
        "half the default, half Silverman's density",
        Average(EmpiricalBayes(), Density(kernel="triweight")),
    ),
    "half residual-score": (
        "half the default, half residuals smoothed over scores",
        Average(EmpiricalBayes(), ResidualKernel(space="score")),
    ),
    "third residual-rank-debiased": (
        "0.7 the default, 0.3 residuals over ranks, debiased",
        Average(EmpiricalBayes(), ResidualKernel(debias=True), 0.3),
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


def known_sign(store: Store, size: int) -> dict[str, np.ndarray]:
    """Errors of an oracle that knows on which side a score is wrong, by notion: (distributions, sets) and their truths.

    Its estimate is the mean of ``sign · (o - s)``: unbiased, and of the smallest variance that an estimator without a
    prior can have in large samples (it is the error's efficient influence function).
    """
    found: dict[str, list[np.ndarray]] = {
        f"{notion} {what}": [] for notion in NOTIONS for what in ("estimate", "truth")
    }
    for distribution in sorted(store.config.distributions):
        pool = store.load_pool(distribution)
        rows = store.config.rows_of(size)
        signs = [signs_of(sums) for sums in pool.truth.sums.sum(axis=0)]
        winner = pool.scores.argmax(axis=1)
        columns = {"classwise": range(distribution.classes), "confidence": [winner]}
        for notion, chosen in columns.items():
            estimates = []
            for k in chosen:
                score = np.take_along_axis(pool.scores, np.broadcast_to(k, winner.shape)[:, None], 1)[:, 0]
                cell = np.minimum((score.astype(np.float64) * TRUTH_BINS).astype(np.int64), TRUTH_BINS - 1)
                side = signs[k if notion == "classwise" else distribution.classes][cell]
                estimates.append((side * ((pool.labels == k) - score))[rows].mean(axis=1))
            found[f"{notion} estimate"].append(np.mean(estimates, axis=0))
            found[f"{notion} truth"].append(truth_of(pool.truth, notion, 1).truth)
    return {name: np.array(values) for name, values in found.items()}
