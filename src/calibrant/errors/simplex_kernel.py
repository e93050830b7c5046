"""Dirichlet kernels between probability vectors, in row tiles: what the other samples say around each sample.

Two orientations. ``"data"``: the density of Dirichlet(f_i / h + 1), read at f_j, as published. ``"query"``: the
density of Dirichlet(f_j / h + 1), read at f_i, as in Chen (1999); its normaliser is the same for all i and cancels, so
weights are ``∝ exp(-KL(f_j ‖ f_i) / h)``. Either is one matrix product, ``softmax(left @ rightᵀ)`` without its
diagonal, and so never needs more than a tile of the n × n weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..data.problem import VectorProblem
from ..data.types import AnyArray, FloatArray
from .threads import in_threads

ORIENTATIONS = ("data", "query")
#: Without this part of the weights on others than the nearest there is no unbiased square.
LEAST = 1e-6
#: Weights held at a time where rows are seen whole; rows and columns of a block of weights: half a megabyte.
_TILE, _HIGH, _WIDE = 1 << 19, 64, 1024
#: Sums of weights below this have lost digits, or their squares have.
_LOST = 1e-100


@dataclass(frozen=True, eq=False)
class Simplex:
    """Probability vectors of a vector problem in float64, their logarithms and weights; rows of weight 0 left out.

    Attributes
    ----------
    probs, logs : ndarray of shape (n, K)
    codes : ndarray of shape (n,)
    mass : ndarray of shape (n,)
        Weights: repeats, or relative ones.
    integral : bool
    size : float
        Sample size (see :func:`calibrant.data.predictions.effective_size`).
    drawn : bool
        Whether only the class that came counts.
    """

    probs: FloatArray
    logs: FloatArray
    codes: AnyArray
    mass: FloatArray
    integral: bool
    size: float
    drawn: bool = False

    @classmethod
    def of(cls, problem: VectorProblem, eps: float) -> Simplex:
        """Take the logarithms of probabilities clipped to ``eps``; those of logits are exact and not clipped."""
        probs, codes, mass = problem.probs.astype(np.float64), problem.codes, problem.weights
        logs = np.log(np.maximum(probs, eps)) if problem.logs is None else problem.logs.astype(np.float64)
        if mass is None:
            mass = np.ones(len(codes))
        used = mass > 0
        if not used.all():
            probs, logs, codes, mass = probs[used], logs[used], codes[used], mass[used]
        return cls(probs, logs, codes, mass.astype(np.float64), problem.integral, problem.effective_size, problem.drawn)

    @property
    def n_rows(self) -> int:
        """Rows."""
        return len(self.codes)

    @property
    def others_at_home(self) -> FloatArray:
        """Mass of the other samples in a sample's own row: its repeats, without itself."""
        return np.maximum(self.mass - 1, 0.0) if self.integral else np.zeros(len(self.mass))

    def one_hot(self) -> FloatArray:
        """Outcomes, (n, K)."""
        out = np.zeros(self.probs.shape)
        out[np.arange(self.n_rows), self.codes] = 1.0
        return out

    def residuals(self) -> FloatArray:
        """Outcomes minus probabilities, (n, K)."""
        out = -self.probs
        out[np.arange(self.n_rows), self.codes] += 1.0
        return out


@dataclass(frozen=True, eq=False)
class Around:
    """Weighted means over the other samples around each of m samples; weights w of a sample sum to 1.

    Attributes
    ----------
    mean : ndarray of shape (m, K)
        ``Σ w v`` of the values v.
    second : ndarray of shape (m, K) or None
        ``Σ w² v'`` of other values v'.
    concentration : ndarray of shape (m,) or None
        ``Σ w²``: one over the number of samples that speak.
    known : ndarray of shape (m,)
        Whether there is any other sample.
    """

    mean: FloatArray
    second: FloatArray | None
    concentration: FloatArray | None
    known: AnyArray


def around(
    sample: Simplex,
    values: FloatArray,
    h: float,
    orientation: str,
    second: FloatArray | None = None,
    rows: AnyArray | None = None,
) -> Around:
    """Average values (n, K) around some samples (all by default), each without itself.

    Cost O(m n K), memory O(n K) and a tile.
    """
    n, k = values.shape
    rows = np.arange(n) if rows is None else rows
    m = len(rows)
    first = np.column_stack([values, np.ones(n)])
    if second is not None:
        # A row's weight is that of its repeats together; squares are of single samples.
        second = np.column_stack([second, np.ones(n)]) / (sample.mass[:, None] if sample.integral else 1.0)
    sums, square_sums = _summed(sample, h, orientation, rows, first, second)
    total = sums[:, -1:]
    known = total[:, 0] > 0
    mean = np.divide(sums[:, :-1], total, out=np.zeros((m, k)), where=known[:, None])
    if second is None:
        return Around(mean, None, None, known)
    square_sums = np.divide(square_sums, total**2, out=np.zeros((m, k + 1)), where=known[:, None])
    return Around(mean, square_sums[:, :-1], square_sums[:, -1], known)


def log_densities(sample: Simplex, bandwidths: FloatArray, orientation: str, rows: AnyArray) -> FloatArray:
    """Logarithms of leave-one-out densities ``1/(n-1) Σ k`` at some rows, (bandwidths, rows).

    The matrix product is the same for all bandwidths, up to a factor, and shared.
    """
    n = sample.n_rows
    out = np.full((len(bandwidths), len(rows)), -np.inf)
    if sample.mass.sum() <= 1 or n == 0:
        return out
    home = _log(sample.others_at_home)
    step = max(1, _TILE // n)
    with np.errstate(divide="ignore"):
        weigh = np.log(sample.mass)
    normaliser = [_normaliser(sample.probs, float(h)) for h in bandwidths]
    for start in range(0, len(rows), step):
        here = rows[start : start + step]
        own = np.arange(len(here))
        left, right = (sample.logs, sample.probs) if orientation == "data" else (sample.probs, sample.logs)
        product = left[here] @ right.T
        for i, h in enumerate(bandwidths):
            logits = product / h
            if orientation == "data":
                logits -= normaliser[i]
            else:
                logits -= normaliser[i][here, None]
            at_own = logits[own, here] + home[here]
            logits += weigh
            logits[own, here] = at_own
            top = logits.max(axis=1)
            safe = np.where(np.isfinite(top), top, 0.0)
            total = np.exp(logits - safe[:, None]).sum(axis=1)
            out[i, start : start + step] = _log(total) + safe
    whole = sample.mass.sum()
    rest = whole - (1.0 if sample.integral else sample.mass[rows])
    return np.asarray(out - _log(np.maximum(rest, 0.0)))


class _Product(NamedTuple):
    """Logarithms of weights of some rows on all samples: ``left @ right``, and what differs at a row's own place.

    ``home`` is added there, and ``factor`` makes single samples' squares of what repeats weigh together.
    """

    left: FloatArray
    right: FloatArray
    rows: AnyArray
    home: FloatArray
    factor: FloatArray

    def of(self, here: AnyArray | slice) -> _Product:
        """Some of the rows."""
        return _Product(self.left[here], self.right, self.rows[here], self.home[here], self.factor[here])


def _summed(
    sample: Simplex, h: float, orientation: str, rows: AnyArray, first: FloatArray, second: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """``Σ w v`` and ``Σ w² v'`` around some rows, up to a factor of each row.

    No sample can weigh much more on a row than the row itself would (Gibbs' inequality, and nearly so for ``"data"``),
    so weights are taken relative to that, in one exponential and without a look at the largest. Rows so far from all
    others that what is left is nearly 0 are summed again with care.
    """
    n = sample.n_rows
    weigh = np.log(sample.mass)
    if orientation == "data":
        normaliser = _normaliser(sample.probs, h)
        left, right = sample.logs, sample.probs / h
        weigh = weigh - normaliser
        highest = (left * right).sum(axis=1) - normaliser
    else:
        left, right = sample.probs / h, sample.logs
        highest = (left * right).sum(axis=1)
    repeated = (sample.others_at_home > 0) & sample.integral
    product = _Product(
        np.column_stack([left, np.ones(n), -highest])[rows],
        np.ascontiguousarray(np.column_stack([right, weigh, np.ones(n)]).T),
        rows,
        (_log(sample.others_at_home) - np.log(sample.mass))[rows],
        np.divide(sample.mass, sample.others_at_home, out=np.zeros(n), where=repeated)[rows],
    )
    sums, square_sums = np.zeros((len(rows), first.shape[1])), np.zeros((len(rows), first.shape[1]))

    def fill(start: int) -> None:
        here = slice(start, start + _HIGH)
        sums[here], square_sums[here] = _block_sums(product.of(here), first, second)

    in_threads(fill, range(0, len(rows), _HIGH), len(rows) * n)
    far = np.flatnonzero(~(sums[:, -1] > _LOST))
    step = max(1, min(_HIGH, _TILE // max(n, 1)))
    for a in range(0, far.size, step):
        here = far[a : a + step]
        sums[here], square_sums[here] = _careful_sums(product.of(here), first, second)
    return sums, square_sums


def _block_sums(product: _Product, first: FloatArray, second: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Sums of some rows, block by block, small enough for the cache."""
    n = product.right.shape[1]
    total, squares = (np.zeros((len(product.rows), first.shape[1])) for _ in range(2))
    memory = np.empty(len(product.rows) * min(_WIDE, n))
    for part in (slice(b, min(b + _WIDE, n)) for b in range(0, n, _WIDE)):
        weight = memory[: len(product.rows) * (part.stop - part.start)].reshape(len(product.rows), -1)
        np.matmul(product.left, product.right[:, part], out=weight)
        at = np.flatnonzero((product.rows >= part.start) & (product.rows < part.stop))
        if at.size:
            weight[at, product.rows[at] - part.start] += product.home[at]
        np.exp(weight, out=weight)
        total += weight @ first[part]
        if second is not None:
            np.square(weight, out=weight)
            if at.size:
                weight[at, product.rows[at] - part.start] *= product.factor[at]
            squares += weight @ second[part]
    return total, squares


def _careful_sums(product: _Product, first: FloatArray, second: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """The same relative to each row's largest weight, so that nothing vanishes."""
    weight = product.left @ product.right
    own = np.arange(len(product.rows))
    weight[own, product.rows] += product.home
    top = weight.max(axis=1, keepdims=True)
    weight -= np.where(np.isfinite(top), top, 0.0)
    np.exp(weight, out=weight)
    total = weight @ first
    if second is None:
        return total, np.zeros(total.shape)
    np.square(weight, out=weight)
    weight[own, product.rows] *= product.factor
    return total, weight @ second


def _normaliser(probs: FloatArray, h: float) -> FloatArray:
    """``Σ_c lnΓ(f_c/h + 1) - lnΓ(1/h + K)`` of every row: minus the logarithm of the density's factor."""
    from scipy.special import gammaln

    return np.asarray(gammaln(probs / h + 1).sum(axis=1) - gammaln(1 / h + probs.shape[1]))


def _log(values: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))
