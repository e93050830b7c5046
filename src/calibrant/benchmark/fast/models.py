"""`Parametric`, `CrossFit` and `BetaKernel` for many samples at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..._types import AnyArray, FloatArray, IntArray
from ...errors.base import Estimator
from ...errors.beta import AUTO, BetaKernel, log_kernel
from ...errors.crossfit import LOGISTIC_EPS, LOGISTIC_SHRINKAGE, CrossFit
from ...errors.folds import dealt_to_folds
from ...errors.isotonic import isotonic_means
from ...errors.logitmap import columns_of, expit, fit, gaps, logits_of
from ...errors.norm import mean_power
from ...errors.parametric import Parametric, edge_of
from . import reads
from .batch import Batch, Runs, node_counts

#: Cells over the logits (the public estimator takes 512), and those of a fold of the logistic cross-fit.
_LOGIT_CELLS = 256
_FOLD_CELLS = 128
#: Up to this many rows they are read as they are, and beyond on the grid of the logit.
_ROWS = 256
#: Steps of the arcsine grid to a kernel's standard deviation.
_STEPS = 10.0
#: Where the others weigh less than this beside a sample's own share, the difference is rounding.
_FAR = 1e-9
#: Kernels below this part of the largest at a node add nothing there.
_ROUNDING = 1e-18
#: Samples worked on at a time, so that they stay in the cache.
_CACHED = 1 << 15
#: Columns of kernels that are multiplied together.
_BLOCK = 128


@reads(Parametric)
def parametric(estimator: Parametric, batch: Batch, norm: float) -> FloatArray:
    """``errorᵖ`` of every sample: exact up to 256 rows, else from a coarser grid of the logit, mostly within 1e-4."""
    if np.isinf(norm):  # the largest gap is at the outermost node, which a coarser grid has elsewhere
        return _one_by_one(estimator, batch, norm, range(batch.n_samples))
    step = 0.0
    name = f"logit counts {estimator.eps!r}"
    if name not in batch.kept and batch.grouped and (found := _distinct(batch, estimator.eps)):
        batch.kept[name] = found
    if batch.size <= _ROWS and name not in batch.kept:
        logits, count, positive = logits_of(batch.scores, estimator.eps), np.ones_like(batch.scores), batch.outcomes
    else:
        if name not in batch.kept:
            nodes, count, positive = _logit_counts(batch.scores, batch.outcomes, estimator.eps, _LOGIT_CELLS)
            batch.kept[name] = nodes, count, positive, np.array(2 * edge_of(estimator.eps) / _LOGIT_CELLS)
        nodes, count, positive, width = batch.kept[name]
        logits, step = np.broadcast_to(nodes, count.shape), float(width)
    return mean_power(gaps(logits, count, positive, estimator.family, estimator.shrinkage, step), count, norm)


def _distinct(batch: Batch, eps: float) -> tuple[FloatArray, ...] | None:
    """Logits of the distinct scores of a batch, counts of samples and positives, and 0; None where they are many."""
    runs = batch.runs
    scores, at = np.unique(runs.score, return_inverse=True)
    if scores.size > min(batch.size, _LOGIT_CELLS):
        return None
    slot = runs.row * scores.size + at
    shape = (batch.n_samples, scores.size)
    count, positive = (
        np.bincount(slot, v, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
        for v in (runs.size, runs.ones)
    )
    return logits_of(scores, eps), count, positive, np.array(0.0)


def _logit_counts(
    scores: FloatArray, outcomes: FloatArray, eps: float, cells: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Nodes over the logit between which scores lie, and linear-binned counts of samples and of positives."""
    edge = edge_of(eps)
    count, positive = node_counts(logits_of(scores, eps), outcomes, (-edge, edge), cells)
    used = np.flatnonzero(count.any(axis=0))
    here = slice(int(used[0]), int(used[-1]) + 1)
    return np.linspace(-edge, edge, cells + 1)[here], count[:, here], positive[:, here]


@reads(CrossFit)
def crossfit(estimator: CrossFit, batch: Batch, norm: float) -> FloatArray:
    """``errorᵖ`` of every sample, with isotonic maps; with logistic ones those of samples without ties.

    Logistic maps of more than 256 rows are fitted on a coarser grid of the logit, which turns signs of gaps near 0: a
    reading may be off by 0.015, a mean over samples by 3e-4. The others, and other regressors, are the public
    estimator's, sample by sample.
    """
    if norm not in (1, 2) or estimator.regressor not in ("isotonic", "logistic") or batch.size < 2:
        return _one_by_one(estimator, batch, norm, range(batch.n_samples))
    if estimator.regressor == "isotonic":
        if batch.grouped:
            return _signed_by_runs(batch, estimator.cv, estimator.random_state, norm)
        outcomes, mixed = _dealt(batch, estimator.cv, estimator.random_state)
        delta = np.empty(batch.scores.shape)
        together = max(1, _CACHED // batch.size)
        for start in range(0, batch.n_samples, together):
            part = slice(start, start + together)
            delta[part] = _isotonic(batch.scores[part], outcomes[part], mixed.of(start, start + together), estimator.cv)
        return _signed_terms(delta, outcomes - batch.scores, norm)
    alone = np.asarray(batch.first.all(axis=1))  # without ties folds are dealt in turn
    out = np.empty(batch.n_samples)
    tied, rows = np.flatnonzero(~alone), np.flatnonzero(alone)
    out[tied] = _one_by_one(estimator, batch, norm, tied)
    if rows.size:
        s, o = batch.scores[rows], batch.outcomes[rows]
        out[rows] = _signed_terms(_logistic(s, o, estimator.cv), o - s, norm)
    return out


def _one_by_one(estimator: Estimator, batch: Batch, norm: float, rows: Iterable[int]) -> FloatArray:
    return np.array([estimator.power(batch.problem(int(i)), norm) for i in rows])


def _signed_terms(delta: FloatArray, residual: FloatArray, norm: float) -> FloatArray:
    terms = np.sign(delta) * residual if norm == 1 else 2 * delta * residual - delta**2
    return np.asarray(terms.mean(axis=1))


class _Mixed(NamedTuple):
    """Rows whose score others share that have another outcome.

    Attributes
    ----------
    row, place, run : ndarray of shape (m,)
        Their sample, where they are in it, and the number of their run of equal scores.
    rest : ndarray of shape (F, m)
        Positives of that run that are not in each fold.
    """

    row: IntArray
    place: IntArray
    run: IntArray
    rest: IntArray

    def of(self, start: int, end: int) -> _Mixed:
        """Those of some samples."""
        a, b = np.searchsorted(self.row, [start, end])
        return _Mixed(self.row[a:b] - start, self.place[a:b], self.run[a:b], self.rest[:, a:b])

    def fall(self, outcomes: FloatArray, fold: int, n_folds: int) -> None:
        """Order outcomes (R, n - held) of the rows outside a fold, in place: in every run the positives come first."""
        kept = self.place % n_folds != fold
        place, run = self.place[kept], self.run[kept]
        rank = np.arange(run.size) - np.searchsorted(run, run)
        outcomes[self.row[kept], place - _places_below(place, fold, n_folds)] = rank < self.rest[fold, kept]


def _dealt(batch: Batch, cv: int, seed: int) -> tuple[FloatArray, _Mixed]:
    """Outcomes in an order in which row i belongs to fold i modulo ``cv``: those of equal scores are at random."""
    none = np.empty(0, dtype=np.int64)
    if not batch.tied:
        return batch.outcomes, _Mixed(none, none, none, np.empty((cv, 0), dtype=np.int64))
    runs = batch.runs
    several = np.flatnonzero((runs.ones > 0) & (runs.ones < runs.size))
    runs = runs.of(several)
    _, drawn = _dealt_runs(runs, cv, seed, batch.n_samples)
    run, row = (np.repeat(values, runs.size) for values in (np.arange(several.size), runs.row))
    place = np.arange(run.size) + np.repeat(runs.place - np.cumsum(runs.size) + runs.size, runs.size)
    fold = place % cv
    out = batch.outcomes.copy()
    out[row, place] = _places_below(place, fold, cv) - _places_below(runs.place[run], fold, cv) < drawn[fold, run]
    return out, _Mixed(row, place, run, (runs.ones - drawn)[:, run])


def _dealt_runs(runs: Runs, cv: int, seed: int, samples: int) -> tuple[IntArray, IntArray]:
    """Rows and positives of runs that every fold gets, each (F, m); the draws are those of ``folds.split``."""
    fold = np.arange(cv)[:, None]
    places = _places_below(runs.place + runs.size, fold, cv) - _places_below(runs.place, fold, cv)
    drawn = np.where(runs.ones > 0, places, 0)
    mixed = np.flatnonzero((runs.ones > 0) & (runs.ones < runs.size))
    ones, zeros = runs.ones[mixed], (runs.size - runs.ones)[mixed]
    bounds = np.searchsorted(runs.row[mixed], np.arange(samples + 1))
    for a, b in itertools.pairwise(bounds):
        if a < b:
            here = mixed[a:b]
            drawn[:, here] = dealt_to_folds(ones[a:b], zeros[a:b], places[:, here], np.random.default_rng(seed))
    return places, drawn


def _signed_by_runs(batch: Batch, cv: int, seed: int, norm: float) -> FloatArray:
    """What :func:`_isotonic` and :func:`_signed_terms` make, from what each fold has of every run of equal scores."""
    runs = batch.runs
    places, drawn = _dealt_runs(runs, cv, seed, batch.n_samples)
    total = np.zeros(batch.n_samples)
    for held, ones in zip(places, drawn, strict=True):
        weight = runs.size - held
        rest, mine = np.flatnonzero(weight), np.flatnonzero(held)
        if not mine.size or not rest.size:
            continue
        row = runs.row[rest]
        fitted = isotonic_means((runs.ones - ones)[rest].astype(np.float64), weight[rest].astype(np.float64), 2.0 * row)
        # Linear between the nearest scores of the other folds, and constant beyond them.
        right = np.searchsorted(rest, mine)
        left, right = np.maximum(right - 1, 0), np.minimum(right, rest.size - 1)
        own = runs.row[mine]
        left, right = np.where(row[left] == own, left, right), np.where(row[right] == own, right, left)
        low, score = runs.score[rest[left]], runs.score[mine]
        width = runs.score[rest[right]] - low
        share = np.divide(score - low, width, out=np.zeros_like(width), where=width > 0)
        delta = np.where(share < 1, fitted[left] + share * (fitted[right] - fitted[left]), fitted[right]) - score
        residual = ones[mine] - held[mine] * score
        terms = np.sign(delta) * residual if norm == 1 else 2 * delta * residual - delta**2 * held[mine]
        total += np.bincount(own, terms, minlength=batch.n_samples)
    return total / batch.size


def _places_below(end: IntArray, fold: IntArray | int, cv: int) -> IntArray:
    """How many of the places 0 … end - 1 belong to a fold."""
    return np.asarray((end + (cv - 1 - fold)) // cv)


def _isotonic(scores: FloatArray, outcomes: FloatArray, mixed: _Mixed, cv: int) -> FloatArray:
    """Held-out recalibrated minus stated score, (R, n), by isotonic fits of all samples in one pass.

    Each sample's outcomes are raised above those of the sample before, so that no pool reaches across. Equal scores
    are in one pool, for their outcomes are made to fall.
    """
    n_rows, n = scores.shape
    delta = np.empty(scores.shape)
    for f in range(min(cv, n)):
        held, rest = np.flatnonzero(np.arange(n) % cv == f), np.flatnonzero(np.arange(n) % cv != f)
        o = outcomes.take(rest, axis=1)
        mixed.fall(o, f, cv)
        level = np.repeat(2.0 * np.arange(n_rows), rest.size)
        fitted = isotonic_means(o.ravel(), np.ones(o.size), level).reshape(o.shape)
        # Linear between the nearest scores of the other folds, and constant beyond them.
        behind = np.searchsorted(rest, held)
        left, right = np.maximum(behind - 1, 0), np.minimum(behind, rest.size - 1)
        at_low, at_high = fitted.take(left, axis=1), fitted.take(right, axis=1)
        low = scores.take(rest[left], axis=1)
        width = scores.take(rest[right], axis=1) - low
        share = np.divide(scores[:, f::cv] - low, width, out=np.zeros_like(width), where=width > 0)
        delta[:, f::cv] = np.where(share < 1, at_low + share * (at_high - at_low), at_high)
    return delta - scores


def _logistic(scores: FloatArray, outcomes: FloatArray, cv: int) -> FloatArray:
    """The same by shrunk logistic maps, all folds of all samples fitted together."""
    rows, n = scores.shape
    logits = logits_of(scores, LOGISTIC_EPS)
    delta = np.empty(scores.shape)
    place = np.arange(n) % cv
    for f in range(min(cv, n)):
        held = place == f
        if n > _ROWS:
            nodes, count, positive = _logit_counts(scores[:, ~held], outcomes[:, ~held], LOGISTIC_EPS, _FOLD_CELLS)
            x = np.broadcast_to(nodes, count.shape)
        else:
            x, positive = logits[:, ~held], outcomes[:, ~held]
            count = np.ones(positive.shape)
        columns = columns_of(x, count, "logistic")
        theta = fit(columns, x, count, positive, LOGISTIC_SHRINKAGE)
        change = (theta[:, None, :] @ columns)[:, 0]
        low, high = x.argmin(axis=1)[:, None], x.argmax(axis=1)[:, None]
        first, last = (np.take_along_axis(x, i, 1) for i in (low, high))
        at_first, at_last = (np.take_along_axis(change, i, 1) for i in (low, high))
        width = last - first
        slope = np.divide(at_last - at_first, width, out=np.zeros((rows, 1)), where=width > 0)
        new = logits[:, held]
        delta[:, held] = expit(new + at_first + slope * (new - first)) - scores[:, held]
    return delta


@reads(BetaKernel)
def beta_kernel(estimator: BetaKernel, batch: Batch, norm: float) -> FloatArray:
    """``errorᵖ`` of every sample: one product with the kernels of a grid of θ, read between its nodes.

    A sample's own share is what the grid makes of it, so it is excluded exactly. Samples with scores that no other
    reaches are read one by one.
    """
    h = float(AUTO * float(batch.size) ** -0.4) if estimator.bandwidth == "auto" else estimator.bandwidth
    if isinstance(h, str) or batch.size < 8:
        return _one_by_one(estimator, batch, norm, range(batch.n_samples))
    cells = 64
    while cells < min(_STEPS * np.pi / np.sqrt(h), 2048):
        cells *= 2
    kernel = _kernel(h, cells, estimator.eps)
    out: FloatArray = np.empty(batch.n_samples)
    together = max(1, _CACHED // batch.size)
    for start in range(0, batch.n_samples, together):
        rows = slice(start, start + together)
        gap, known = _left_out_gaps(kernel, batch.scores[rows], batch.outcomes[rows])
        out[rows] = mean_power(gap, np.ones_like(gap), norm)
        for i in np.flatnonzero(~known):
            out[start + i] = estimator.power(batch.problem(start + int(i)), norm)
    return out


def _left_out_gaps(kernel: _Kernels, scores: FloatArray, outcomes: FloatArray) -> tuple[FloatArray, AnyArray]:
    """Frequency among the other samples minus score, (R, n), and whether every score of a row has others near it."""
    size = len(kernel.matrix)
    theta = np.arcsin(np.sqrt(scores))
    count, positive = node_counts(theta, outcomes, (0.0, np.pi / 2), size - 1)
    around, ones = kernel.spread(count).ravel(), kernel.spread(positive).ravel()
    share = theta * ((size - 1) / (np.pi / 2))
    cell = np.minimum(share.astype(np.int64), size - 2)
    share -= cell
    keep = 1 - share
    own = keep**2 * kernel.own[cell] + share**2 * kernel.own[cell + 1] + share * keep * kernel.beside[cell]
    cell += size * np.arange(len(scores))[:, None]
    density = around[cell] * keep + around[cell + 1] * share - own
    hits = ones[cell] * keep + ones[cell + 1] * share - own * outcomes
    near = density > _FAR * own
    found = np.divide(hits, density, out=np.zeros_like(hits), where=near)
    return np.clip(found, 0, 1) - scores, near.all(axis=1)


@dataclass(frozen=True, eq=False)
class _Kernels:
    """Kernels of every node at every node, and which nodes reach each block of them: a narrow band."""

    matrix: FloatArray
    blocks: tuple[tuple[slice, slice], ...]
    own: FloatArray
    beside: FloatArray

    @classmethod
    def of(cls, matrix: FloatArray) -> _Kernels:
        """Find the band: beyond it, kernels are below rounding of their column's largest."""
        reached = matrix > _ROUNDING * matrix.max(axis=0)
        blocks = []
        for start in range(0, len(matrix), _BLOCK):
            columns = slice(start, min(start + _BLOCK, len(matrix)))
            rows = np.flatnonzero(reached[:, columns].any(axis=1))
            blocks.append((slice(int(rows[0]), int(rows[-1]) + 1), columns))
        return cls(matrix, tuple(blocks), matrix.diagonal().copy(), matrix.diagonal(1) + matrix.diagonal(-1))

    def spread(self, counts: FloatArray) -> FloatArray:
        """``counts @ matrix``."""
        out = np.empty(counts.shape)
        for rows, columns in self.blocks:
            out[:, columns] = counts[:, rows] @ self.matrix[rows, columns]
        return out


@lru_cache(maxsize=8)
def _kernel(h: float, cells: int, eps: float) -> _Kernels:
    nodes = np.sin(np.arange(cells + 1) * (np.pi / 2 / cells)) ** 2
    return _Kernels.of(np.exp(log_kernel(nodes, nodes, h, eps)))
