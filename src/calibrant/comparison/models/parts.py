"""What of a model's score is miscalibration and what discrimination (CORP), for many resamples at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...data.predictions import Predictions
from ...data.types import AnyArray, FloatArray
from ...data.weights import run_starts
from ...estimators.isotonic import isotonic_means
from ...measure.scoring_rules import Brier, ScoringRule, matrix_of, score_rows
from .units import IndependentUnits

#: Most scores that are told apart in resamples: beyond, neighbours are pooled before the isotonic fit, which has
#: about the cube root of n steps anyway.
MOST_CELLS = 2000
#: Cells of problems that are fitted together.
_TOGETHER = 1 << 16


def has_parts(rule: ScoringRule, n_classes: int) -> bool:
    """Whether CORP takes a score apart: any of two classes, of more a sum over classes."""
    return n_classes == 2 or isinstance(rule, Brier)


def columns_of(p: Predictions) -> Sequence[int]:
    """Classes that are fitted: the second of two; of more every one observed, for fits to the others are 0."""
    # The class of a single column comes last, as rules that tell their classes apart want it.
    return np.unique(p.codes).tolist() if p.n_classes > 2 else [1 if p.positive is None else p.positive]


def cells_of(scores: FloatArray, units: IndependentUnits, most: int | None) -> tuple[AnyArray, int]:
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

    def __call__(
        self, p: FloatArray, weight: FloatArray, positive: FloatArray, start: AnyArray | None = None
    ) -> FloatArray:
        """Of one p, weight and positive weight a cell; of problems laid end to end one mean each, from their starts."""
        start = np.zeros(1, dtype=np.intp) if start is None else start
        if isinstance(self.rule, Brier):
            # Of two classes the other one is as far off; of more, every class has its own turn.
            costs = (positive * (1 - 2 * p) + weight * p**2) * (2 if self.n_classes == 2 else 1)
            if self.rule.scale != "sum":
                costs /= 2
        else:
            counts = np.column_stack([weight - positive, positive])
            # What did not happen costs nothing, also where it would cost ∞.
            table = self.rule.table(np.column_stack([1 - p, p]))
            costs = np.multiply(counts, table, out=np.zeros(counts.shape), where=counts > 0).sum(axis=1)
        return np.asarray(np.add.reduceat(costs, start) / np.add.reduceat(weight, start))


def isotonic_fits(positive: FloatArray, weight: FloatArray, problem: AnyArray) -> FloatArray:
    """Isotonic fits of problems laid end to end: each cell's problem ascends."""
    return isotonic_means(positive, weight, 2.0 * problem)


@dataclass(frozen=True, eq=False)
class TiedCells:
    """Some classes of one model, laid end to end: sums of weights and of outcomes at their scores, by units.

    Attributes
    ----------
    weight, positive : sparse arrays of shape (cells, G)
        Cells of a class ascend with the score.
    problem : ndarray of shape (cells,)
        Place of each cell's class among these.
    """

    weight: Any
    positive: Any
    problem: AnyArray

    @classmethod
    def of(cls, columns: Sequence[tuple[AnyArray, int, AnyArray]], units: IndependentUnits) -> TiedCells:
        """Of the cell of each row, their number, and whether the class came: of every class."""
        from scipy.sparse import vstack

        weight, positive = (
            vstack([units.matrix(c, m, np.ones(c.size) * (came if second else 1)) for c, m, came in columns], "csr")
            for second in (False, True)
        )
        return cls(weight, positive, np.repeat(np.arange(len(columns)), [m for _, m, _ in columns]))

    def resampled(self, times: FloatArray) -> Iterator[tuple[int, FloatArray, FloatArray, AnyArray]]:
        """How many resamples, with their problems laid end to end: weights, positive ones, and places of problems."""
        number = int(self.problem[-1]) + 1
        together = max(1, _TOGETHER // self.problem.size)
        for first in range(0, times.shape[1], together):
            some = times[:, first : first + together]
            weight, positive = (np.ascontiguousarray((m @ some).T) for m in (self.weight, self.positive))
            held = weight > 0
            problem = self.problem + number * np.arange(some.shape[1])[:, None]
            yield some.shape[1], weight[held], positive[held], problem[held]


@dataclass(frozen=True, eq=False)
class Refinements:
    """Scores of the isotonic fits of one model, and of the base rates.

    Attributes
    ----------
    tiles : tuple of Cells
        Of all classes that are fitted.
    rules : dict of str to ScoringRule
    n_classes : int
    """

    tiles: tuple[TiedCells, ...]
    rules: dict[str, ScoringRule]
    n_classes: int

    @classmethod
    def of(
        cls, p: Predictions, rules: dict[str, ScoringRule], units: IndependentUnits, most: int | None = MOST_CELLS
    ) -> Refinements:
        """Of predictions whose rows all have weight; ``most`` cells a class at most, None for all distinct scores."""
        matrix = matrix_of(p)
        tiles: list[TiedCells] = []
        waiting: list[tuple[AnyArray, int, AnyArray]] = []
        size = 0
        for k in columns_of(p) if rules else ():
            cell, number = cells_of(matrix[:, k], units, most)
            if waiting and size + number > _TOGETHER:
                tiles.append(TiedCells.of(waiting, units))
                waiting, size = [], 0
            waiting.append((cell, number, p.codes == k))
            size += number
        if waiting:
            tiles.append(TiedCells.of(waiting, units))
        return cls(tuple(tiles), rules, p.n_classes)

    def read(self, times: FloatArray) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Refinement and uncertainty by each rule, (r,) both, with units drawn so often, (G, r)."""
        out: dict[str, tuple[FloatArray, FloatArray]] = {
            name: (np.zeros(times.shape[1]), np.zeros(times.shape[1])) for name in self.rules
        }
        means = {name: Mean(rule, self.n_classes) for name, rule in self.rules.items()}
        for tile in self.tiles:
            done = 0
            for r, weight, positive, problem in tile.resampled(times):
                start = run_starts(problem)
                fitted = isotonic_fits(positive, weight, problem)
                whole, came = np.add.reduceat(weight, start), np.add.reduceat(positive, start)
                each = np.arange(whole.size)
                for name, mean in means.items():
                    refinement, uncertainty = out[name]
                    refinement[done : done + r] += mean(fitted, weight, positive, start).reshape(r, -1).sum(axis=1)
                    uncertainty[done : done + r] += mean(came / whole, whole, came, each).reshape(r, -1).sum(axis=1)
                done += r
        return out


@dataclass(frozen=True, eq=False)
class ScoreParts:
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
    units: IndependentUnits

    @classmethod
    def of(
        cls,
        models: Sequence[Predictions],
        rules: Mapping[str, ScoringRule],
        units: IndependentUnits,
        most: int | None = MOST_CELLS,
    ) -> ScoreParts:
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
