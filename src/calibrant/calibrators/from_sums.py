"""Calibrators fitted to the sums that an accumulator keeps in place of rows."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from ..data.checks import check_type
from ..data.types import Label
from ..data.weights import ones_or
from ..measure.streaming import Accumulator
from ..measure.sums_by_class import ProblemSums
from .base import BinaryCalibrator, Calibrator
from .candidates import named_calibrator
from .inputs import CalibrationSample, Scores, read_sample
from .multiclass import OneVsRest


def fit_sums(sums: Accumulator, *, calibrator: str | Calibrator) -> Calibrator:
    """See :meth:`calibrant.Accumulator.fit`."""
    sums.required()
    one = next((p for p in sums.problems.values() if p.fine is not None and p.label is not None), None)
    classes = sums.classes if one is None or len(sums.classes) == 2 else (0, 1)
    chosen = named_calibrator(calibrator, len(classes)) if isinstance(calibrator, str) else calibrator
    check_type("calibrator", chosen, Calibrator, "a calibrator such as PlattScaling(), or its name")
    if chosen.input != "probability":
        raise ValueError(
            f"calibrator must take probabilities, since the sums are of probabilities; got input={chosen.input!r}"
        )
    if chosen._parts_rows:
        raise TypeError(f"{chosen!r} splits the rows into folds or halves, and sums have no rows: use fit(scores, y)")
    if isinstance(chosen, OneVsRest) and len(sums.classes) > 2:
        return _fit_one_vs_rest(chosen, sums)
    if len(classes) > 2 and isinstance(chosen, BinaryCalibrator):
        raise ValueError(f"{chosen!r} is for two classes; the sums have {len(classes)}: use OneVsRest({chosen!r})")
    if len(classes) > 2:
        raise TypeError(
            f"{chosen!r} for {len(classes)} classes needs the rows: sums keep each class against the rest, to which "
            "OneVsRest(...) can be fitted"
        )
    if one is None and sums.classes[1] not in sums.class_sums:
        raise ValueError(
            f"calibrator needs sums of the scores of a class; those of notion {sums.notion!s} are of other scores"
        )
    return _fit_two(chosen, sums, one or sums.class_sums[sums.classes[1]], classes)


def _fit_two(chosen: Calibrator, sums: Accumulator, one: ProblemSums, classes: tuple[Label, ...]) -> Calibrator:
    """Fit to the scores of one of two classes, in the shape of the added scores."""
    rows = _rows_of(one)
    scores, outcomes = rows.scores.values, rows.codes
    if classes != sums.classes:  # one of many classes, or not
        names, columns = classes, scores
    else:
        names = classes[::-1] if sums.positive == 0 else classes
        if one.label != names[1]:
            scores, outcomes = 1 - scores, 1 - outcomes
        columns = scores if sums.positive is not None else np.column_stack([1 - scores, scores])
    y = np.asarray(names)[outcomes]
    fitted: Calibrator = clone(chosen)
    if fitted.labels is None:
        fitted.set_params(labels=list(names))
    return fitted.fit(columns, y, sample_weight=rows.weights)


def _fit_one_vs_rest(chosen: OneVsRest, sums: Accumulator) -> OneVsRest:
    """Fit class by class to scores on the grid."""
    fitted: OneVsRest = clone(chosen)
    if fitted.labels is None:
        fitted.set_params(labels=list(sums.classes))
    # A row of each class gives the number of columns and their labels.
    sample = read_sample(fitted, np.eye(len(sums.classes)), np.asarray(sums.classes))
    fitted.classes_ = np.asarray(sample.classes)
    fitted._check(sample)
    fitted._fit_classes([_rows_of(sums.class_sums[label]) for label in sample.classes])
    return fitted


def _rows_of(one: ProblemSums) -> CalibrationSample:
    """Scores, outcomes and weights of the cells of one problem, with negatives and positives separate."""
    if one.fine is not None:
        rows = one.fine.as_rows(one.domain)
        score, outcome, weight = rows.scores, rows.outcomes, ones_or(rows.weights, rows.n_samples)
    else:
        node, count, positive = one.grid.atoms
        score, outcome = np.tile(node, 2), np.repeat([1, 0], node.size)
        weight = np.concatenate([positive, count - positive])
    scores = Scores(score.astype(np.float64), "probability")
    return CalibrationSample(scores, outcome.astype(np.int64), weight, (0, 1)).part(weight > 0)
