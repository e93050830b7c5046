"""Two ways to distinguish segments from chance findings: the same search on drawn outcomes, or tests on other rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...data.progress import progress_bar
from ...data.types import AnyArray, FloatArray, IntArray
from ...significance.null import share_at_least
from ...significance.result import holm, least_pvalue
from .features import Condition, Features
from .offsets import OffsetModel, SegmentRows
from .search import FoundSegment, Limits, Searched, inflation_of

#: Draws of the search, and fewer where these take minutes; most segments of a class that are found; and most that are
#: tested on other rows.
DRAWS, FEW_DRAWS, MOST, MOST_SPLIT = 199, 99, 10, 5
#: Smallest variance, in outcomes, of a segment and its complement; and that in the searched half of a split.
LEAST_VARIANCE, LEAST_VARIANCE_SPLIT = 20.0, 10.0
#: Cost, in rows × features × draws, up to which all rows are searched and outcomes are drawn.
_MOST_WORK = 2e9
#: Fewest draws beyond the quantile of the level.
_ENOUGH = 2
#: Residuals drawn at a time.
_TOGETHER = 1 << 20


#: A segment, its rows, and the model without and with it.
_Link = tuple[FoundSegment, AnyArray, OffsetModel, OffsetModel]


class Tested(NamedTuple):
    """A segment that was tested: its p-values, and the half-width of the interval of its gap in standard errors.

    ``numbers`` are the means of outcomes, scores and residuals about the model, and the standard error of the gap, of
    ``n`` rows; ``gain`` is that in log-likelihood.
    """

    place: int
    conditions: tuple[Condition, ...]
    n: int
    numbers: tuple[float, float, float, float]
    pvalue: float
    adjusted: float
    reach: float
    gain: float


@dataclass(frozen=True)
class Options:
    """Options of a search; ``rows`` is the smallest number of rows of a segment."""

    terms: int
    rows: int
    level: float


def fits(features: Features, problems: Sequence[SegmentRows]) -> bool:
    """Whether drawing takes at most about a minute."""
    return sum(rows.at.size for rows in problems) * len(features.each) * DRAWS <= _MOST_WORK


def searched_for(model: OffsetModel, features: Features, options: Options, least: float) -> Searched:
    """The search in the rows of a model; ``least`` is the smallest variance of a segment."""
    at, n = model.rows.at, features.codes.shape[1]
    codes = features.codes if at.size == n and (at == np.arange(n)).all() else features.codes.take(at, axis=1)
    inflation = inflation_of(codes, model.residuals, model.rows.groups)
    return Searched(features.each, codes, model.variance, inflation, Limits(options.terms, least, options.rows))


def chain_of(model: OffsetModel, searched: Searched, penalty: FloatArray) -> Iterator[_Link]:
    """The best segment, the best one beyond it, and so on, with its rows and the model without and with it."""
    while True:
        (lengths,) = searched.best(model.refitted(model.residuals[None]))
        if not lengths:
            return
        found = max(lengths, key=lambda one: one.less(penalty))
        inside = searched.inside(found.conditions)
        # The statistic of all other rows is the same: where one condition says them, those whose scores are worse.
        other = searched.complement(found.conditions, inside)
        if other and _off(model, ~inside) > _off(model, inside):
            found, inside = found._replace(conditions=other), ~inside
        larger = model.beyond(inside)
        yield found, inside, model, larger
        model, searched = larger, replace(searched, variance=larger.variance)


def _off(model: OffsetModel, inside: AnyArray) -> float:
    """Absolute gap of the scores as given."""
    observed, stated, *_ = model.gap(inside)
    return abs(observed - stated)


def simulate(
    features: Features, problems: Sequence[SegmentRows], options: Options, rng: np.random.Generator
) -> list[Tested]:
    """Search all rows, and compare the largest rank with those on outcomes drawn from the map of all rows."""
    known = [(k, model) for k, rows in enumerate(problems) if (model := OffsetModel.of(rows)) is not None]
    tasks = [(k, model, searched_for(model, features, options, LEAST_VARIANCE)) for k, model in known]
    few = (FEW_DRAWS + 1) * (1 - options.level) >= _ENOUGH and not fits(features, problems)
    number = FEW_DRAWS if few else DRAWS
    ranks = np.full((len(tasks), number, options.terms + 1), -np.inf)
    with progress_bar("draws", number * len(tasks)) as advance:
        for of, (_, model, searched) in zip(ranks, tasks, strict=True):
            together = max(1, _TOGETHER // model.chance.size)
            for start in range(0, number, together):
                drawn = searched.best(model.draws(min(together, number - start), rng))
                for row, lengths in enumerate(drawn, start):
                    of[row, [len(one.conditions) for one in lengths]] = [one.rank for one in lengths]
                advance(len(drawn))
    # The best of each length is judged by the mean of what the best ones of this length have by chance.
    held = np.isfinite(ranks)
    penalty = np.where(held, ranks, 0.0).sum(axis=1) / np.maximum(held.sum(axis=1), 1)
    largest = (ranks - penalty[:, None]).max(axis=(0, 2), initial=-np.inf)
    bound = float(np.sort(largest)[min(int(np.ceil((number + 1) * options.level)), number) - 1])
    out = []
    for (k, model, searched), less in zip(tasks, penalty, strict=True):
        before = 0.0
        for step, (found, inside, without, larger) in enumerate(chain_of(model, searched, less)):
            adjusted = max(before, share_at_least(largest, found.less(less)))
            if model.rows.groups is not None:
                adjusted = max(adjusted, float(least_pvalue(model.rows.n_groups)))
            beyond = max(bound + float(less[len(found.conditions)]), 0.0)
            out.append(_tested(k, (found, inside, without, larger), adjusted, np.sqrt(2 * beyond), searched))
            before = adjusted
            if adjusted > 1 - options.level or step + 1 == MOST:
                break
    return out


def split(
    features: Features, problems: Sequence[SegmentRows], options: Options, rng: np.random.Generator
) -> list[Tested]:
    """Search one half of the rows, by whole groups, and test the segments found on the other half."""
    from scipy.special import stdtrit

    half = _half(problems, rng)
    found: list[tuple[int, list[FoundSegment]]] = []
    models = []
    for k, rows in enumerate(problems):
        model, other = (OffsetModel.of(rows.some(half[rows.at] == side)) for side in (True, False))
        if model is None or other is None:
            continue
        searched = searched_for(model, features, options, LEAST_VARIANCE_SPLIT)
        chain = []
        for one, *_ in chain_of(model, searched, searched.log_number):
            chain.append(one)
            if one.less(searched.log_number) <= 0 or len(chain) == MOST_SPLIT:
                break
        found.append((k, chain))
        models.append(other)
    out: list[Tested] = []
    frees: list[float] = []
    for (k, chain), model in zip(found, models, strict=True):
        for one in chain:
            inside = features.mask(one.conditions, model.rows.at)
            if not LEAST_VARIANCE_SPLIT / 2 <= float(model.variance @ inside) <= 0.95 * float(model.variance.sum()):
                continue  # these rows have too few of them to say anything
            larger = model.beyond(inside)
            frees.append(model.score(inside)[2])
            out.append(_tested(k, (one, inside, model, larger), np.nan, 0.0))
            model = larger
    adjusted = holm(np.array([one.pvalue for one in out])).tolist()
    reaches = [float(-stdtrit(min(free, 1e9), (1 - options.level) / 2 / len(out))) for free in frees]
    return [one._replace(adjusted=p, reach=r) for one, p, r in zip(out, adjusted, reaches, strict=True)]


def _half(problems: Sequence[SegmentRows], rng: np.random.Generator) -> AnyArray:
    """Mask of the rows that are searched: half of them, or of the groups."""
    unit: IntArray = np.arange(1 + max((int(rows.at.max(initial=-1)) for rows in problems), default=-1))
    for rows in problems:
        if rows.groups is not None:
            unit[rows.at] = rows.groups
    names, of = np.unique(unit, return_inverse=True)
    return np.asarray(rng.permutation(names.size)[of] < (names.size + 1) // 2)


def _tested(place: int, link: _Link, adjusted: float, reach: float, searched: Searched | None = None) -> Tested:
    found, inside, without, larger = link
    gain = larger.log_likelihood - without.log_likelihood - 0.5
    numbers = without.gap(inside, 1.0 if searched is None else searched.inflation_for(found.conditions))
    pvalue = pvalue_of(*without.score(inside))
    return Tested(place, found.conditions, int(inside.sum()), numbers, pvalue, adjusted, reach, gain)


def pvalue_of(z: float, skew: float, free: float) -> float:
    """Two-sided p-value of a score statistic; of a skewed one, by the first term of Cornish and Fisher."""
    from scipy.special import ndtr, stdtr

    if np.isfinite(free):
        return float(2 * stdtr(free, -abs(z)))
    size = abs(z)
    toward = float(np.sign(z)) * skew
    # Beyond the turning point of the correction it would order statistics the wrong way round.
    least = size - toward * (size**2 - 1) / 6 if toward > 0 else size
    return float(min(1.0, 2 * ndtr(-max(least, size / 2))))


def gains(problems: Sequence[SegmentRows]) -> FloatArray:
    """Gain in log-likelihood of the map of all rows, for each problem."""
    models = [OffsetModel.of(rows) for rows in problems]
    return np.array([0.0 if model is None else model.gain for model in models])
