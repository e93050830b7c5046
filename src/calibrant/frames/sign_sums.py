"""Sums of each group in ranges of scores, from a last pass: the input of tests of subgroups by signs of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..comparison.subgroups.cells import SubgroupCells
from ..comparison.subgroups.heterogeneity import GroupScores, PooledMap
from ..data.types import AnyArray, FloatArray, IntArray, Label
from ..data.weights import ones_or
from ..measure.sums_by_class import FINE_CELLS
from ..significance.null import scale_of
from .batches import added
from .frame_columns import FrameColumns
from .group_effects import GroupSums, RankCounts, shared_codes

#: Most numbers kept for all subgroups, fewest ranges of scores; and limits of the number of bundles of groups.
_NUMBERS, _LEAST_RANGES = 1 << 23, 32
_LEAST_BUNDLES, _MOST_BUNDLES = 256, 2048


class SubgroupOfGroups(NamedTuple):
    """A subgroup: its sorted groups and their bundles, its sorted bundles, and the last cells of ranges of scores."""

    keys: AnyArray
    bundle: IntArray
    bundles: IntArray
    ends: IntArray


@dataclass(eq=False)
class SignSums:
    """Sums of a subgroup's rows by bundles of whole groups; one group per bundle unless there are very many.

    Attributes
    ----------
    ranked : RankCounts
        Turns rows into those of the problem.
    about : SubgroupOfGroups
    pooled : PooledMap or None
        Curve of all rows.
    tables : ndarray of shape (2, bundles, ranges)
        Sums of ``w`` and of ``w (o - s)``.
    scores : ndarray of shape (bundles, 1 + d)
        Sums of ``w (o - c)``, with the curve c, and of its products with the columns of the curve.
    squares : ndarray of shape (4,)
        Sums of ``w² (o - s)²`` and ``w² s (1 - s)``, and the same with the curve in place of the score.
    """

    ranked: RankCounts
    about: SubgroupOfGroups
    pooled: PooledMap | None
    tables: FloatArray = field(default_factory=lambda: np.zeros((2, 0, 0)))
    scores: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    squares: FloatArray = field(default_factory=lambda: np.zeros(4))
    dropped: int = 0

    def update(self, y: Any, p: Any, w: Any, groups: Any) -> None:
        """Add rows; ValueError if one is bad, and then none is added."""
        _, _, problem, rows = next(iter(self.ranked.problems(y, p, w, groups)))
        distinct, code = np.unique(groups, return_inverse=True)
        place = self.about.bundle[np.searchsorted(self.about.keys, distinct)]
        bundle = np.searchsorted(self.about.bundles, place)[code.reshape(-1)[rows]]
        low, high = problem.domain
        s, o = problem.scores.astype(np.float64), problem.outcomes.astype(np.float64)
        weight = ones_or(problem.weights, s.size)
        cell = np.ceil((s - low) / (high - low) * FINE_CELLS).astype(np.intp) - 1
        shape = self.about.bundles.size, self.about.ends.size
        slot = bundle * shape[1] + np.searchsorted(self.about.ends[:-1], np.maximum(cell, 0))

        def summed(at: IntArray, values: FloatArray, size: int) -> FloatArray:
            return np.asarray(np.bincount(at, values, size))

        tables = [summed(slot, v, shape[0] * shape[1]).reshape(shape) for v in (weight, weight * (o - s))]
        squares, scores = [*_squares(o, s, weight), 0.0, 0.0], np.zeros((shape[0], 0))
        if self.pooled is not None:
            columns, chance = self.pooled.at(s)
            left, squares[2:] = weight * (o - chance), _squares(o, chance, weight)
            scores = np.stack([summed(bundle, v, shape[0]) for v in (left, *(left * columns.T))], axis=1)
        found = replace(self, tables=np.stack(tables), scores=scores, squares=np.array(squares)) + self
        self.tables, self.scores, self.squares = found.tables, found.scores, found.squares

    def __add__(self, other: SignSums) -> SignSums:
        if not self.tables.size or not other.tables.size:
            return other if not self.tables.size else self
        pairs = {name: getattr(self, name) + getattr(other, name) for name in ("tables", "scores", "squares")}
        return replace(self, **pairs)


def _squares(outcomes: FloatArray, chances: FloatArray, weights: FloatArray) -> tuple[float, float]:
    squares = weights**2
    return float(squares @ (outcomes - chances) ** 2), float(squares @ (chances * (1 - chances)))


def signed(
    c: FrameColumns,
    cells: SubgroupCells,
    tallies: Mapping[Label, GroupSums],
    values: Sequence[Label],
    design: float,
    domain: tuple[float, float],
) -> tuple[SubgroupCells, GroupScores | None]:
    """Cells of one bundle each, and scores of bundles: the input of tests by signs, from one pass over the rows.

    ``cells`` are those of the subgroups of rows with weight, in the order of ``values``, the keys of ``tallies``.
    """
    coarse = cells.coarse
    pooled = PooledMap.of(coarse, design)
    keys, codes = shared_codes([tallies[value] for value in values])
    most = int(np.clip(_NUMBERS / _LEAST_RANGES / max(len(values), 1), _LEAST_BUNDLES, _MOST_BUNDLES))
    bundle = np.arange(keys.size)
    if keys.size > most:  # the same in every process, whatever groups are called
        bundle = np.random.default_rng(0).permutation(keys.size) % most
    number = sum(min(code.size, most) for code in codes)
    ranges = max(_LEAST_RANGES, _NUMBERS // max(number, 1))
    about: dict[Label, SubgroupOfGroups] = {}
    place: list[IntArray] = []
    low, high = domain
    for i, (value, code) in enumerate(zip(values, codes, strict=True)):
        some = slice(int(cells.starts[i]), int(cells.starts[i + 1]))
        share = np.cumsum(cells.weights[some])
        of_range = np.arange(share.size)
        if share.size > ranges:
            of_range = np.minimum((share / share[-1] * ranges).astype(np.intp), ranges - 1)
            of_range = np.unique(of_range, return_inverse=True)[1].reshape(-1)
        at = np.maximum(np.ceil((cells.scores[some] - low) / (high - low) * FINE_CELLS - 1e-6).astype(np.intp), 1) - 1
        ends = at[np.append(of_range[1:] != of_range[:-1], True)]
        of_rows = bundle[code]
        about[value] = SubgroupOfGroups(np.asarray(tallies[value].keys), of_rows, np.unique(of_rows), ends)
        place.append(of_range)
    ranked = next(iter(tallies.values())).ranked
    found = added(c, partial(_no_signs, ranked, about, pooled))
    each = [found[value] for value in values]
    return _cells(cells, place, each), None if pooled is None else _scores(each, min(keys.size, most), keys.size)


def _no_signs(
    ranked: RankCounts, about: Mapping[Label, SubgroupOfGroups], pooled: PooledMap | None, value: Label
) -> SignSums:
    return SignSums(ranked, about[value], pooled)


def _cells(cells: SubgroupCells, place: Sequence[IntArray], found: Sequence[SignSums]) -> SubgroupCells:
    """Each range of scores of each bundle with weight, at the mean score of the range."""
    parts: list[tuple[AnyArray, ...]] = []
    for i, (of_range, one) in enumerate(zip(place, found, strict=True)):
        some = slice(int(cells.starts[i]), int(cells.starts[i + 1]))
        weights = cells.weights[some]
        mean = np.bincount(of_range, weights * cells.scores[some]) / np.bincount(of_range, weights)
        weight, residual = one.tables
        at, bundle = np.nonzero(weight.T > 0)
        held = weight[bundle, at]
        outcome = mean[at] + residual[bundle, at] / held
        parts.append((mean[at], held, outcome, np.append(at[1:] != at[:-1], True), one.about.bundles[bundle]))
    starts = np.cumsum([0, *(len(part[0]) for part in parts)])
    fields: list[Any] = [np.concatenate([part[i] for part in parts]) for i in range(5)]
    score, weight, outcome, last, bundle = fields
    scale = scale_of(*np.array([one.squares[:2] for one in found]).T)
    return SubgroupCells(starts, score, weight, outcome, weight, last, cells.integral, bundle, cells.design, scale)


def _scores(found: Sequence[SignSums], n_bundles: int, n_groups: int) -> GroupScores:
    bent = np.zeros((n_bundles, found[0].scores.shape[1] - 1))
    for one in found:
        bent[one.about.bundles] += one.scores[:, 1:]
    score = np.concatenate([one.scores[:, 0] for one in found])
    bundle = np.concatenate([one.about.bundles for one in found])
    subgroup = np.repeat(np.arange(len(found)), [len(one.scores) for one in found])
    happened, stated = np.sum([one.squares[2:] for one in found], axis=0)
    return GroupScores(subgroup, bundle, score, bent, float(scale_of(happened, stated)), n_groups)
