"""Calibrators fitted to sums: to the mean scores of cells and their weights, in place of the rows."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from ..data.types import AnyArray, FloatArray, Label
from ..data.weights import ones_or
from ..measure.streaming import Accumulator
from ..measure.sums_by_class import ProblemSums
from .base import BinaryCalibrator, Calibrator
from .inputs import read_sample
from .select import named_calibrator
from .wrappers import OneVsRest


def fit_sums(sums: Accumulator, *, calibrator: str | Calibrator) -> Calibrator:
    """See :meth:`calibrant.Accumulator.fit`."""
    sums.required()
    one = next((p for p in sums.problems.values() if p.fine is not None and p.label is not None), None)
    classes = sums.classes if one is None or len(sums.classes) == 2 else (0, 1)
    chosen = named_calibrator(calibrator, len(classes)) if isinstance(calibrator, str) else calibrator
    if not isinstance(chosen, Calibrator):
        raise TypeError(f"calibrator must be a calibrator such as PlattScaling(), or its name; got {calibrator!r}")
    if chosen.input != "probability":
        raise ValueError(f"calibrator must take probabilities, which sums are of; got input={chosen.input!r}")
    if chosen._parts_rows:
        raise TypeError(
            f"{chosen!r} parts the rows into folds or halves, and sums have none: fit(scores, y) takes rows"
        )
    if isinstance(chosen, OneVsRest) and len(sums.classes) > 2:
        return _one_vs_rest(chosen, sums)
    if len(classes) > 2 and isinstance(chosen, BinaryCalibrator):
        raise ValueError(f"{chosen!r} is for two classes, and these sums have {len(classes)}: OneVsRest({chosen!r})")
    if len(classes) > 2:
        raise TypeError(
            f"{chosen!r} of {len(classes)} classes needs the rows, whose probabilities go together: sums have each "
            "class against the rest, which OneVsRest(...) is fitted to"
        )
    return _two(chosen, sums, one or sums.class_sums[sums.classes[1]], classes)


def _two(chosen: Calibrator, sums: Accumulator, one: ProblemSums, classes: tuple[Label, ...]) -> Calibrator:
    """Fit to the scores of one of two classes, in the shape that was added."""
    score, outcome, weight = _rows(one)
    if classes != sums.classes:  # one of many classes, or not
        names, columns = classes, score
    else:
        names = classes[::-1] if sums.positive == 0 else classes
        if one.label != names[1]:
            score, outcome = 1 - score, 1 - outcome
        columns = score if sums.positive is not None else np.column_stack([1 - score, score])
    y = np.asarray(names)[outcome]
    fitted: Calibrator = clone(chosen)
    if fitted.labels is None and tuple(np.unique(y).tolist()) != names:
        fitted.set_params(labels=list(names))
    return fitted.fit(columns, y, sample_weight=weight)


def _one_vs_rest(chosen: OneVsRest, sums: Accumulator) -> OneVsRest:
    """Fit class by class to scores on the grid."""
    fitted: OneVsRest = clone(chosen)
    if fitted.labels is None and tuple(sorted(sums.classes)) != sums.classes:
        fitted.set_params(labels=list(sums.classes))
    # A row of each class says how many columns there are, and what they are called.
    sample = read_sample(fitted, np.eye(len(sums.classes)), np.asarray(sums.classes), None, fitted.input, fitted.labels)
    fitted.classes_ = np.asarray(sample.classes)
    fitted._check(sample)
    columns = [_rows(sums.class_sums[label]) for label in sample.classes]
    fitted._fit_columns([s for s, _, _ in columns], [o for _, o, _ in columns], [w for _, _, w in columns])
    return fitted


def _rows(one: ProblemSums) -> tuple[FloatArray, AnyArray, FloatArray]:
    """Scores, outcomes and weights of the cells of one problem, negatives and positives by themselves."""
    if one.fine is not None:
        rows = one.fine.as_rows(one.domain)
        score, outcome, weight = rows.scores, rows.outcomes, ones_or(rows.weights, rows.n_samples)
    else:
        node, count, positive = one.grid.atoms
        score, outcome = np.tile(node, 2), np.repeat([1, 0], node.size)
        weight = np.concatenate([positive, count - positive])
    used = weight > 0
    return score[used].astype(np.float64), outcome[used].astype(np.int64), weight[used]
