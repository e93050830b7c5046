"""Design effects of groups of a frame's rows, from two passes over batches of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ..data.dependence import (
    RANK_TABLE,
    WAVES,
    GroupedResiduals,
    effects_of,
    group_keys,
    mid_ranks,
    rank_cells_of,
    read_groups,
)
from ..data.predictions import Predictions
from ..data.problem import OneVsRestProblems, Problem
from ..data.types import AnyArray, FloatArray, IntArray, Label
from ..data.validation import as_predictions
from ..data.weights import ones_or
from ..measure.streaming import Accumulator
from ..measure.sums_by_class import aligned
from ..notions import Classwise, Notion
from .batches import added
from .frame_columns import FrameColumns


def tallied(c: FrameColumns, like: Accumulator) -> dict[Label, GroupSums]:
    """Sums of each group of rows, by the value of the column of subgroups if there is one; ``like`` has some rows."""
    label = None if like.positive is None else like.classes[like.positive]
    c = replace(c, classes=like.classes, positive=like.positive, told=True)
    ranked = added(c, partial(_no_ranks, like.notion, like.classes, label, like.several))
    found = added(c, partial(_no_sums, ranked))
    check_several(c, list(found.values()))
    return found


def _no_ranks(notion: Notion, labels: tuple[Label, ...], pos_label: Label, several: bool, value: Label) -> RankCounts:
    return RankCounts(notion, labels, pos_label, several=several)


def _no_sums(ranked: Mapping[Label, RankCounts], value: Label) -> GroupSums:
    return GroupSums(ranked[value])


def shared_codes(tallies: Sequence[GroupSums]) -> tuple[AnyArray, list[IntArray]]:
    """The sorted groups of all subgroups, and the positions of each subgroup's groups among them."""
    keys = np.unique(np.concatenate([np.asarray(one.keys) for one in tallies]))
    return keys, [np.searchsorted(keys, np.asarray(one.keys)) for one in tallies]


def design_of(tallies: Sequence[GroupSums], codes: Sequence[IntArray], *, integral: bool) -> float:
    """Design effect of the mean residual of all subgroups' rows; ``codes`` are positions of groups among all groups."""
    groups = np.concatenate([one.groups["problem_sums"][0] for one in tallies])
    score, mass = (np.bincount(np.concatenate(codes), groups[:, k]) for k in (0, WAVES))
    cells = np.sum([one.cells["problem_sums"][0].sum(axis=0) for one in tallies], axis=0)
    total, (alone, once, twice) = float(mass.sum()), cells[:3] if integral else cells[3:]
    mean = float(score.sum()) / total
    between, within = float(((score - mean * mass) ** 2).sum()), twice - 2 * mean * once + mean**2 * alone
    rows = total if integral else sum(float(one.rows["problem_sums"][0]) for one in tallies)
    sums = ([[between]], [[within]], [total], [mass @ mass], [np.count_nonzero(mass > 0)], [rows])
    return float(effects_of(GroupedResiduals(*map(np.asarray, sums)), ((1.0,),))[0, 0])


def check_several(c: FrameColumns, tallies: Sequence[GroupSums]) -> None:
    """ValueError unless rows with weight belong to several groups."""
    used = [np.asarray(one.keys)[(next(iter(one.groups.values()))[:, :, WAVES] > 0).any(axis=0)] for one in tallies]
    if len(np.unique(np.concatenate(used))) < 2:
        raise ValueError(
            f"groups must name at least 2 groups with weight; all rows of column {c.groups!r} belong to one, and "
            "one group does not show how results vary between groups"
        )


def hang_together(sums: Accumulator, c: FrameColumns) -> None:
    """Add the effects of groups to sums of a frame's rows, which treat rows as independent until then."""
    (tally,) = tallied(c, sums).values()
    tally.widen(sums, alone=c.weight is None and np.asarray(tally.keys).size == sums.n_samples)


#: Sums in cells of the score: of weights, and of weights times the residual and its square; same for squared weights.
_IN_CELLS = 6


@dataclass(eq=False)
class RankCounts:
    """Numbers of rows in cells of the score, (R, cells), for the notion's problems and each class: they give ranks.

    Counts are additive, so batches may come in any order.
    """

    notion: Notion
    labels: tuple[Label, ...]
    pos_label: Label
    counts: dict[str, AnyArray] = field(default_factory=dict)
    dropped: int = 0
    several: bool = False

    def update(self, y: Any, p: Any, w: Any, groups: Any) -> None:
        """Add rows; ValueError if one is bad, and then none is added."""
        for name, first, problems, _ in self.problems(y, p, w, groups):
            table = self.counts.setdefault(name, np.zeros((self.problems_of(name), RANK_TABLE), dtype=np.int64))
            cell = rank_cells_of(problems.scores, problems.domain) + problems.row * RANK_TABLE
            found = np.bincount(cell, minlength=len(problems) * RANK_TABLE)
            table[first : first + len(problems)] += found.reshape(-1, RANK_TABLE)

    def __add__(self, other: RankCounts) -> RankCounts:
        return replace(self, counts=_summed(self.counts, other.counts))

    def problems_of(self, name: str) -> int:
        """Number of problems of the notion, or of classes."""
        return len(self.labels if name == "by_class" else self.notion.labels(self.labels))

    def problems(self, y: Any, p: Any, w: Any, groups: Any) -> Iterator[tuple[str, int, Problem, IntArray]]:
        """Rows of some problems at a time: the number of the first problem, and its rows."""
        read_groups(groups, len(y))
        about = {"labels": self.labels, "pos_label": self.pos_label, "multilabel": self.several or None}
        given = as_predictions(y, p, sample_weight=w, **about)
        reduction = self.notion.reduce(given)
        every = np.arange(given.n_samples)
        if isinstance(reduction, Problem):
            rows = [every if t.rows is None else t.rows for t in self.notion.targets(given)]
            whole = aligned(reduction, given) if self.notion.splits else reduction
            yield "problem_sums", 0, whole, np.concatenate(rows)
        classes = reduction if isinstance(reduction, OneVsRestProblems) else self._classes(given)
        first = 0
        for tile in () if classes is None else classes.tiles():
            yield "by_class", first, tile, np.tile(every, len(tile))
            first += len(tile)

    def _classes(self, given: Predictions) -> OneVsRestProblems | None:
        return None if given.positive is not None else Classwise().reduce(given)


@dataclass(eq=False)
class GroupSums:
    """Sums of residuals times cosines of ranks, for every group and problem; 64 bytes each.

    Attributes
    ----------
    ranked : RankCounts
        Counts of all rows of the frame.
    keys : ndarray of shape (G,)
        The groups, ascending.
    groups : mapping of name to ndarray of shape (R, G, waves + 1)
        ``Σ w c_k r`` of each group, then its weight.
    cells : mapping of name to ndarray of shape (R, cells, 6)
    rows : mapping of name to ndarray of shape (R,)
        Numbers of rows with weight.
    """

    ranked: RankCounts
    keys: AnyArray | None = None
    groups: dict[str, FloatArray] = field(default_factory=dict)
    cells: dict[str, FloatArray] = field(default_factory=dict)
    rows: dict[str, FloatArray] = field(default_factory=dict)
    dropped: int = 0

    def update(self, y: Any, p: Any, w: Any, groups: Any) -> None:
        """Add rows; ValueError if one is bad, and then none is added."""
        try:
            keys, code = np.unique(groups, return_inverse=True)
        except TypeError as error:
            raise TypeError(f"groups must hold values of one kind, which can be sorted: {error}") from error
        some = GroupSums(self.ranked, keys)
        for name, first, problems, rows in self.ranked.problems(y, p, w, groups):
            some._take(name, first, problems, code.reshape(-1)[rows])
        found = self + some
        self.keys, self.groups, self.cells, self.rows = found.keys, found.groups, found.cells, found.rows

    def _take(self, name: str, first: int, problems: Problem, code: IntArray) -> None:
        r, size = self.ranked.problems_of(name), np.asarray(self.keys).size
        count, row = len(problems), problems.row
        some = slice(first, first + count)
        cell = rank_cells_of(problems.scores, problems.domain) + row * RANK_TABLE
        rank = mid_ranks(self.ranked.counts[name][some]).reshape(-1)[cell]
        residual = problems.outcomes.astype(np.float64) - problems.scores
        weight = ones_or(problems.weights, problems.n_samples)

        def summed(at: IntArray, values: FloatArray, cells: int) -> FloatArray:
            return np.asarray(np.bincount(at, values, minlength=count * cells).reshape(count, cells))

        groups = self.groups.setdefault(name, np.zeros((r, size, WAVES + 1)))[some]
        slot = row * size + code
        for k in range(WAVES):
            groups[:, :, k] += summed(slot, weight * (np.cos(k * np.pi * rank) * residual), size)
        groups[:, :, WAVES] += summed(slot, weight, size)
        cells = self.cells.setdefault(name, np.zeros((r, RANK_TABLE, _IN_CELLS)))[some]
        for i, mass in enumerate((weight, weight * weight)):
            for power in range(3):
                cells[:, :, 3 * i + power] += summed(cell, mass * residual**power, RANK_TABLE)
        rows = self.rows.setdefault(name, np.zeros(r))
        rows[some] += np.bincount(row, weight > 0, minlength=count)

    def __add__(self, other: GroupSums) -> GroupSums:
        if self.keys is None or other.keys is None:
            return other if self.keys is None else self
        keys = np.union1d(self.keys, other.keys)
        out = GroupSums(self.ranked, keys)
        for one in (self, other):
            at = np.searchsorted(keys, np.asarray(one.keys))
            for name, table in one.groups.items():
                out.groups.setdefault(name, np.zeros((len(table), keys.size, WAVES + 1)))[:, at] += table
        out.cells, out.rows = _summed(self.cells, other.cells), _summed(self.rows, other.rows)
        return out

    def widen(self, sums: Accumulator, *, alone: bool) -> None:
        """Add the effects of groups to sums of the same rows; none if each row is ``alone`` in its group."""
        sums.groups = group_keys(self.keys)
        totals = sums.required_totals()
        if alone:
            return
        effects = {name: self.effects(name, integral=totals.integral) for name in self.groups}
        name = "problem_sums" if "problem_sums" in effects else "by_class"
        held = self.ranked.counts[name].any(axis=1)
        sums.totals = totals.in_groups(float(effects[name][held, 0].mean()))
        sums.problem_sums = sums.required().in_groups(effects[name])
        if sums.by_class is not None:
            sums.by_class = sums.problem_sums if name == "by_class" else sums.by_class.in_groups(effects["by_class"])

    def effects(self, name: str, *, integral: bool) -> FloatArray:
        """Design effects of the problems, (R, 5): see :func:`calibrant.data.dependence.design_parts`."""
        return effects_of(self.residuals(name, integral=integral))

    def residuals(self, name: str, *, integral: bool) -> GroupedResiduals:
        """Sums that the design effects are computed from."""
        groups, cells = self.groups[name], self.cells[name]
        wave = np.cos(np.pi * np.arange(WAVES) * mid_ranks(self.ranked.counts[name])[..., None])  # (R, cells, waves)
        total = groups[:, :, WAVES].sum(axis=1)
        mean = np.einsum("rck,rc->rk", wave, cells[:, :, 1])
        mean = np.divide(mean, total[:, None], out=np.zeros_like(mean), where=total[:, None] > 0)
        between = ((groups[:, :, :WAVES] - mean[:, None] * groups[:, :, WAVES:]) ** 2).sum(axis=1)
        alone, once, twice = np.moveaxis(cells[:, :, :3] if integral else cells[:, :, 3:], -1, 0)
        within = np.einsum("rck,rc->rk", wave**2, twice) - 2 * mean * np.einsum("rck,rc->rk", wave, once)
        within += mean**2 * alone.sum(axis=1)[:, None]
        mass = groups[:, :, WAVES]
        rows = total if integral else self.rows[name]
        return GroupedResiduals(between, within, total, (mass**2).sum(axis=1), (mass > 0).sum(axis=1), rows)


def _summed(one: Mapping[str, AnyArray], other: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    return {name: np.asarray(one.get(name, 0) + other.get(name, 0)) for name in {**one, **other}}
