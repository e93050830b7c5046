"""Cross-validation of calibrators by a proper score: folds, fits, losses, and the table they make."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from ..data.checks import check_choice
from ..data.types import AnyArray, ConvergenceWarning, FloatArray
from ..measure.scores import score_named
from .base import Calibrator
from .inputs import Sample

GOALS = ("log-loss", "brier")
RULES = ("one-standard-error", "best")
#: Probabilities of labels below this count as this, so that one surprise does not decide alone.
FLOOR = 1e-6


def check_goal(goal: Any) -> str:
    """Judge the ``goal`` argument: the proper score that decides."""
    return check_choice("goal", score_named(goal), GOALS)


def folds_of(
    codes: AnyArray, cv: int, random_state: Any, groups: AnyArray | None = None
) -> list[tuple[AnyArray, AnyArray]]:
    """Stratified rows to fit and rows to judge; no more folds than rows of the rarest class, but two.

    With ``groups`` none is parted: as many folds as there are groups at most.
    """
    if len(codes) < 2 or int(np.bincount(codes).max()) < 2:
        raise ValueError(f"cross-validation needs at least two rows of one class; got {len(codes)}, all different")
    rarest = int(np.bincount(codes)[np.unique(codes)].min())
    number = max(2, min(cv, rarest))
    if len(codes) < 2 * number:
        number = 2
    with warnings.catch_warnings():
        # A class with a single row is in one fold only, which its calibrators are told of by their labels.
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        if groups is not None:
            number = min(number, int(np.unique(groups).size))
            parts = StratifiedGroupKFold(number, shuffle=True, random_state=random_state)
            found = parts.split(np.zeros(len(codes)), codes, groups)
            return [(train, test) for train, test in found if train.size and test.size]
        split = StratifiedKFold(number, shuffle=True, random_state=random_state)
        return list(split.split(np.zeros(len(codes)), codes))


def fit_rows(one: Calibrator, sample: Sample, rows: AnyArray) -> Calibrator:
    """A clone fitted to some rows of a sample."""
    names = np.asarray(sample.classes)
    with warnings.catch_warnings():
        # A candidate that cannot converge loses the comparison by its loss.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted: Calibrator = clone(one).fit(sample.scores.values[rows], names[sample.codes[rows]], sample.weights[rows])
    return fitted


def held_out(
    one: Calibrator, sample: Sample, folds: list[tuple[AnyArray, AnyArray]], rows: AnyArray
) -> tuple[FloatArray, float]:
    """Probabilities of each row by a fit that did not see it, (n, K), and the mean seconds of a fit."""
    out = np.empty((len(rows), sample.n_classes))
    seconds = 0.0
    for train, test in folds:
        start = perf_counter()
        fitted = fit_rows(one, sample, rows[train])
        seconds += perf_counter() - start
        out[test] = fitted.predict_proba(sample.scores.values[rows[test]])
    return out, seconds / len(folds)


def losses_of(p: FloatArray, codes: AnyArray, goal: str) -> FloatArray:
    """Loss of each row: ``-log max(p_y, 1e-6)``, or ``Σ_k (p_k - o_k)²``."""
    own = p[np.arange(len(codes)), codes]
    if goal == "log-loss":
        return np.asarray(-np.log(np.maximum(own, FLOOR)))
    return np.asarray(np.einsum("ij,ij->i", p, p) - 2 * own + 1)


def paired(losses: FloatArray, others: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Weighted mean of the differences of rows, and its standard error; weights sum to 1."""
    gap = losses - others
    difference = float(weights @ gap)
    return difference, float(np.sqrt((weights**2) @ (gap - difference) ** 2))


def chosen_of(losses: Mapping[str, FloatArray], weights: FloatArray, rule: str) -> tuple[str, list[dict[str, Any]]]:
    """The choice by a rule, and a row for each candidate: its mean loss, its difference to the least, and the se."""
    mean = {name: float(weights @ each) for name, each in losses.items()}
    best = min(mean, key=lambda name: mean[name])
    table: list[dict[str, Any]] = []
    for name, each in losses.items():
        difference, se = paired(each, losses[best], weights)
        table.append({"name": name, "loss": mean[name], "difference": difference, "se": se})
    within = [row["name"] for row in table if row["difference"] <= row["se"]]
    return best if rule == "best" else within[0], table
