"""What of a model's score is miscalibration and what discrimination (CORP), for many resamples at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import AnyArray, FloatArray
from ..errors.isotonic import isotonic_means
from ..predictions import Predictions
from ..scores import Brier, ScoringRule, matrix_of
from ..scores import _samples as score_rows
from .units import Units

#: Most scores that are told apart in resamples: beyond, neighbours are pooled before the isotonic fit, which has
#: about the cube root of n steps anyway.
MOST_CELLS = 2000


def has_parts(rule: ScoringRule, n_classes: int) -> bool:
    """Whether CORP takes a score apart: any of two classes, of more a sum over classes."""
    return n_classes == 2 or isinstance(rule, Brier)


def columns_of(p: Predictions) -> Sequence[int]:
    """Classes that are fitted: the second of two, of more every one."""
    # What a single column speaks of comes last, as rules that tell their classes apart want it.
    return range(p.n_classes) if p.n_classes > 2 else [1 if p.positive is None else p.positive]


def cells_of(scores: FloatArray, units: Units, most: int | None) -> tuple[AnyArray, int]:
    """Cell of each row, ascending with the score, and how many there are: at most ``most``, of about equal weights."""
    _, cell = np.unique(scores, return_inverse=True)
    cell = cell.reshape(-1)
    number = int(cell.max()) + 1
    if most is not None and number > most:
        before = np.cumsum(np.bincount(cell, weights=units.row_mass))
        _, pool = np.unique(np.floor(before * (most / before[-1]) * (1 - 1e-12)), return_inverse=True)
        cell = pool.reshape(-1)[cell]
        number = int(cell.max()) + 1
    return cell, number


@dataclass(frozen=True, eq=False)
class Mean:
    """Mean score of saying p in cells, of which some of the weight is positive."""

    rule: ScoringRule
    n_classes: int

    def __call__(self, p: FloatArray, weight: FloatArray, positive: FloatArray) -> float:
        """Of one p, weight and positive weight a cell."""
        total = float(weight.sum())
        if isinstance(self.rule, Brier):
            # Of two classes the other one is as far off; of more, every class has its own turn.
            squares = float(positive.sum() - 2 * (positive @ p) + weight @ p**2) / total
            times = (2 if self.n_classes == 2 else 1) / (1 if self.rule.scale == "sum" else 2)
            return squares * times
        table = self.rule.table(np.column_stack([1 - p, p]))
        counts = np.column_stack([weight - positive, positive])
        # What did not happen costs nothing, also where it would cost ∞.
        costs = np.multiply(counts, table, out=np.zeros(counts.shape), where=counts > 0)
        return float(costs.sum()) / total


@dataclass(frozen=True, eq=False)
class Cells:
    """One class of one model: sums of weights and of outcomes at its scores, by units.

    Attributes
    ----------
    weight, positive : sparse arrays of shape (cells, G)
        Cells ascend with the score.
    """

    weight: Any
    positive: Any

    @classmethod
    def of(cls, scores: FloatArray, happened: AnyArray, units: Units, most: int | None) -> Cells:
        """Of a class's scores; ``most`` cells at most, None for all distinct scores."""
        cell, number = cells_of(scores, units, most)
        one = np.ones(cell.size)
        return cls(units.matrix(cell, number, one), units.matrix(cell, number, one * happened))


@dataclass(frozen=True, eq=False)
class Refinements:
    """Scores of the isotonic fits of one model, and of the base rates.

    Attributes
    ----------
    columns : tuple of Cells
        The second of two classes; of more, every class.
    rules : dict of str to ScoringRule
    n_classes : int
    """

    columns: tuple[Cells, ...]
    rules: dict[str, ScoringRule]
    n_classes: int

    @classmethod
    def of(
        cls, p: Predictions, rules: dict[str, ScoringRule], units: Units, most: int | None = MOST_CELLS
    ) -> Refinements:
        """Of predictions whose rows all have weight."""
        matrix = matrix_of(p)
        columns = tuple(Cells.of(matrix[:, k], p.codes == k, units, most) for k in columns_of(p))
        return cls(columns, rules, p.n_classes)

    def read(self, times: FloatArray) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Refinement and uncertainty by each rule, (r,) both, with units drawn so often, (G, r)."""
        out: dict[str, tuple[FloatArray, FloatArray]] = {
            name: (np.zeros(times.shape[1]), np.zeros(times.shape[1])) for name in self.rules
        }
        means = {name: Mean(rule, self.n_classes) for name, rule in self.rules.items()}
        for one in self.columns:
            weight, positive = one.weight @ times, one.positive @ times
            for r in range(times.shape[1]):
                held = weight[:, r] > 0
                w, k = weight[held, r], positive[held, r]
                fitted = isotonic_means(k, w)
                base = np.array([k.sum() / w.sum()])
                for name, mean in means.items():
                    refinement, uncertainty = out[name]
                    refinement[r] += mean(fitted, w, k)
                    uncertainty[r] += mean(base, w.sum(keepdims=True), k.sum(keepdims=True))
        return out


@dataclass(frozen=True, eq=False)
class Parts:
    """Miscalibration and discrimination of several models by several scores.

    Attributes
    ----------
    fits : tuple of Refinements
        Of each model.
    losses : ndarray of shape (S, M, G)
        Sums of each score over one copy of each unit.
    units : Units
    """

    fits: tuple[Refinements, ...]
    losses: FloatArray
    units: Units

    @classmethod
    def of(
        cls,
        models: Sequence[Predictions],
        rules: Mapping[str, ScoringRule],
        units: Units,
        most: int | None = MOST_CELLS,
    ) -> Parts:
        """Of predictions whose rows all have weight."""
        losses = np.empty((len(rules), len(models), units.copies.size))
        for i, rule in enumerate(rules.values()):
            for j, p in enumerate(models):
                losses[i, j] = units.sums(score_rows(p, rule))
        return cls(tuple(Refinements.of(p, dict(rules), units, most) for p in models), losses, units)

    def read(self, times: FloatArray) -> FloatArray:
        """Parts (S, 2, M, r) with units drawn so often, (G, r)."""
        if not len(self.losses):
            return np.empty((0, 2, len(self.fits), times.shape[1]))
        with np.errstate(invalid="ignore"):  # a loss of ∞ that a resample left out
            total = self.losses @ times / (self.units.mass @ times)
        found = [fit.read(times) for fit in self.fits]
        out = np.empty((len(self.losses), 2, len(self.fits), times.shape[1]))
        for j, one in enumerate(found):
            for i, (refinement, uncertainty) in enumerate(one.values()):
                out[i, :, j] = total[i, j] - refinement, uncertainty - refinement
        return out
