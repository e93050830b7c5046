"""`Binned` for many samples at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np

from ..._types import AnyArray, FloatArray, IntArray
from ...binning import Edges, resolve_n_bins, uniform_edges
from ...binning.mapping import linear_shares
from ...errors.binned import Binned, debiased_power
from ...errors.norm import mean_power
from . import reads
from .batch import Batch, running

#: Of every bin, shape (R, bins): ``Σ a (o - s)``, ``Σ a``, ``Σ a o`` and ``Σ a²``, with a the share of a sample.
Sums: TypeAlias = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


@reads(Binned)
def binned(estimator: Binned, batch: Batch, norm: float) -> FloatArray:
    """``errorᵖ`` of every sample: O(R n) for a number of bins, O(R bins) for quantiles without ties."""
    plain = norm == 1 and not estimator.debias
    name = f"sums {replace(estimator, debias=False)!r}"
    if name in batch.kept:  # variants of one binning share them
        residual, weight, outcome, repeat = batch.kept[name]
    else:
        residual, weight, outcome, repeat = sums = _sums(estimator, batch, plain=plain)
        if not plain:
            batch.kept[name] = sums
    if plain:
        return np.asarray(np.abs(residual).sum(axis=1) / batch.size)
    held = weight > 0
    gap = np.divide(residual, weight, out=np.zeros_like(residual), where=held)
    if not estimator.debias:
        return mean_power(gap, weight, norm)
    observed = np.divide(outcome, weight, out=np.zeros_like(outcome), where=held)
    effective = np.divide(weight**2, repeat, out=np.zeros_like(weight), where=held)
    return debiased_power(gap, observed, effective, weight, norm, estimator.debias)


def _sums(estimator: Binned, batch: Batch, *, plain: bool) -> Sums:
    """Sums of the estimator's bins; for ``plain`` the first of them alone, four times."""
    if estimator.strategy == "quantile" and isinstance(estimator.n_bins, (int, str)):
        cuts = Cuts.of(batch, resolve_n_bins(estimator.n_bins, batch.size))
        if estimator.mapping == "hard":
            return cuts.hard_sums(batch, plain=plain)
        lower, share = cuts.shares(batch, as_printed=estimator.mapping != "linear")
        return _shared_sums(batch, lower, share, cuts.values.shape[1] + 1, plain=plain)
    edges = _common_edges(estimator, batch)
    if estimator.mapping == "hard":
        return _hard_sums(batch, edges, plain=plain)
    lower, share = _uniform_shares(edges, batch, as_printed=estimator.mapping != "linear")
    return _shared_sums(batch, lower, share, edges.n_bins, plain=plain)


def _common_edges(estimator: Binned, batch: Batch) -> Edges:
    """Edges that all samples share."""
    if isinstance(estimator.n_bins, str):
        n_bins = resolve_n_bins(estimator.n_bins, batch.size)
        return uniform_edges(n_bins, batch.domain if estimator.span == "domain" else (0.0, 1.0))
    return estimator.edges_for(batch.domain)


def _by_row(index: AnyArray, size: int) -> IntArray:
    """Flat index of an entry (row, index) among rows of ``size`` entries."""
    return (index + (size * np.arange(len(index)))[:, None]).ravel()


def _hard_sums(batch: Batch, edges: Edges, *, plain: bool) -> Sums:
    size = edges.n_bins + 2
    index = _by_row(edges.slots(batch.scores, batch.eps), size)

    def sums(values: FloatArray | None) -> FloatArray:
        flat = np.bincount(index, None if values is None else values.ravel(), minlength=batch.n_samples * size)
        return np.asarray(edges.fold(flat.reshape(-1, size)), dtype=np.float64)

    residual = sums(batch.residuals)
    if plain:
        return residual, residual, residual, residual
    weight = sums(None)
    return residual, weight, sums(batch.outcomes), weight


def _uniform_shares(edges: Edges, batch: Batch, *, as_printed: bool) -> tuple[AnyArray, FloatArray]:
    """Lower bin of each score and the share of the bin above; see :func:`calibrant.binning.mapping.linear_shares`."""
    if as_printed or not edges.uniform or edges.n_bins == 1:
        # As printed, the shares jump at the centres: only the same arithmetic puts scores on the same side of them.
        lower, share = linear_shares(edges, batch.scores.ravel(), as_printed=as_printed)
        return lower.reshape(batch.scores.shape), share.reshape(batch.scores.shape)
    centres = edges.centres
    position = np.clip((batch.scores - centres[0]) / (centres[1] - centres[0]), 0, edges.n_bins - 1)
    lower = np.minimum(position.astype(np.int32), edges.n_bins - 2)
    position -= lower
    return lower, position


def _shared_sums(batch: Batch, lower: AnyArray, share: FloatArray, n_bins: int, *, plain: bool) -> Sums:
    """Sums of bins between which samples are shared."""
    size = n_bins + 1
    index = _by_row(lower, size)
    up = share.ravel()

    def sums(below: FloatArray, above: FloatArray) -> FloatArray:
        flat = np.bincount(index, below, minlength=batch.n_samples * size)
        flat[1:] += np.bincount(index, above, minlength=batch.n_samples * size)[:-1]
        return np.asarray(flat.reshape(-1, size)[:, :n_bins], dtype=np.float64)

    r = batch.residuals.ravel()
    taken = r * up
    residual = sums(r - taken, taken)
    if plain:
        return residual, residual, residual, residual
    o = batch.outcomes.ravel()
    return residual, sums(1 - up, up), sums(o * (1 - up), o * up), sums((1 - up) ** 2, up**2)


class Cuts:
    """Inner edges of quantile bins, row by row: the first ``index`` scores of a row lie below a cut.

    Rows may have fewer cuts than others, where cuts coincide: ``values`` then end with inf.
    """

    def __init__(self, index: IntArray, values: FloatArray, domain: tuple[float, float]) -> None:
        self.index = index
        self.values = values
        self.domain = domain

    @classmethod
    def of(cls, batch: Batch, n_bins: int) -> Cuts:
        """As :func:`calibrant.binning.edges.quantile_edges` cuts each row."""
        s, n = batch.scores, batch.size
        ranks = np.unique(np.arange(1, n_bins) * n // n_bins)
        ranks = ranks[ranks > 0]
        below, above = s[:, ranks - 1], s[:, ranks]
        middle = below + (above - below) / 2
        values = np.where(middle < above, middle, below)
        index: IntArray = np.broadcast_to(ranks, values.shape)
        if batch.tied and ranks.size:
            index = np.where(below == above, batch.run_end[:, ranks - 1], index)
            values, index = _off_the_ends(batch, values, index)
        low, high = batch.domain
        repeated = np.zeros(values.shape, dtype=bool)
        repeated[:, 1:] = values[:, 1:] == values[:, :-1]
        drop = repeated | (values <= low) | (values >= high)
        if drop.any():
            order = np.argsort(drop, axis=1, kind="stable")
            values = np.take_along_axis(np.where(drop, np.inf, values), order, 1)
            index = np.take_along_axis(np.where(drop, n, index), order, 1)
        return cls(index, values, batch.domain)

    def hard_sums(self, batch: Batch, *, plain: bool) -> Sums:
        """Sums of hard bins: differences of running sums."""
        ends = np.zeros((batch.n_samples, self.index.shape[1] + 2), dtype=np.intp)
        ends[:, 1:-1] = self.index
        ends[:, -1] = batch.size

        def sums(totals: FloatArray) -> FloatArray:
            return np.diff(np.take_along_axis(totals, ends, 1), axis=1)

        residual = sums(batch.residual_sums)
        if plain:
            return residual, residual, residual, residual
        weight = np.diff(ends, axis=1).astype(np.float64)
        return residual, weight, sums(running(batch.outcomes)), weight

    def shares(self, batch: Batch, *, as_printed: bool) -> tuple[AnyArray, FloatArray]:
        """Lower bin of each score and the share of the bin above."""
        s = batch.scores
        held = np.isfinite(self.values)
        last = held.sum(axis=1)  # number of the last bin of each row
        low, high = self.domain
        edges = np.full((len(s), self.values.shape[1] + 2), np.inf)
        edges[:, 0] = low
        edges[:, 1:-1] = self.values
        np.put_along_axis(edges, last[:, None] + 1, high, 1)
        centres = (edges[:, :-1] + edges[:, 1:]) / 2
        if centres.shape[1] == 1:
            return np.zeros(s.shape, dtype=np.intp), np.zeros(s.shape)
        # Scores ascend, so those between two centres are one stretch of a row: what they share is repeated.
        usable = np.isfinite(centres[:, 1:]) & (centres[:, 1:] > centres[:, :-1])
        width = np.subtract(centres[:, 1:], centres[:, :-1], out=np.ones(usable.shape), where=usable)
        slope = usable / width
        inner = np.arange(1, width.shape[1]) < last[:, None]
        counts = _between(s, np.where(inner, centres[:, 1:-1], np.inf))
        lower = np.repeat(np.tile(np.arange(width.shape[1]), len(s)), counts).reshape(s.shape)
        base, rise = (np.repeat(v.ravel(), counts).reshape(s.shape) for v in (centres[:, :-1], slope))
        share = s - base
        share *= rise
        np.clip(share, 0, 1, out=share)
        if as_printed:
            ends = np.take_along_axis(centres, last[:, None], 1)
            share = np.where((s > centres[:, :1]) & (s < ends), 1 - share, share)
        return lower, np.where((last > 0)[:, None], share, 0.0)


def _off_the_ends(batch: Batch, values: FloatArray, index: IntArray) -> tuple[FloatArray, IntArray]:
    """Cuts on the smallest score moved up, and on the largest moved down, midway to the next distinct score."""
    s, n = batch.scores, batch.size
    least, most = s[:, :1], s[:, -1:]
    varied = least < most
    first_end = batch.run_end[:, :1]
    last_start = n - (s == most).sum(axis=1, keepdims=True)
    up = (least + np.take_along_axis(s, np.minimum(first_end, n - 1), 1)) / 2
    down = (most + np.take_along_axis(s, np.maximum(last_start - 1, 0), 1)) / 2
    on_least, on_most = (values == least) & varied, (values >= most) & varied
    values = np.where(on_least, up, np.where(on_most, down, values))
    index = np.where(on_least, first_end, np.where(on_most, last_start, index))
    return values, index


def _between(scores: FloatArray, marks: FloatArray) -> IntArray:
    """How many of its row's scores lie between one mark and the next (``mark <= score``), flat; both ascend."""
    at = np.empty((len(scores), marks.shape[1] + 2), dtype=np.intp)
    at[:, 0], at[:, -1] = 0, scores.shape[1]
    for s, m, out in zip(scores, marks, at, strict=True):
        out[1:-1] = np.searchsorted(s, m, side="left")
    return np.diff(at, axis=1).ravel()
