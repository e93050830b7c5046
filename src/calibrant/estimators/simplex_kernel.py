"""Dirichlet kernels between probability vectors, in row tiles: kernel means of the other samples around each sample.

Two orientations. ``"data"``: the density of Dirichlet(f_i / h + 1), read at f_j, as published. ``"query"``: the
density of Dirichlet(f_j / h + 1), read at f_i, as in Chen (1999); its normaliser is the same for all i and cancels, so
weights are ``∝ exp(-KL(f_j ‖ f_i) / h)``. Either is a matrix product, ``softmax(left @ rightᵀ)`` without its
diagonal, so that only a tile of the n × n weights is needed at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..data.problem import VectorProblem
from ..data.types import AnyArray, FloatArray

#: Amount of work (in numbers) below which threads cost more than they save.
_WORTH = 1 << 21


def in_threads(task: Callable[[int], None], starts: Sequence[int], work: int) -> None:
    """Run ``task(start)`` for every start, in as many threads as linear algebra may use in this process.

    The number is set by ``OMP_NUM_THREADS`` and ``threadpoolctl``; workers of joblib use one. Within each thread,
    linear algebra uses one thread. Tasks must be independent, and results do not depend on the number of threads.
    """
    count = min(allowed(), len(starts)) if work >= _WORTH else 1
    if count <= 1:
        for start in starts:
            task(start)
        return
    with _controller().limit(limits=1, user_api="blas"), ThreadPoolExecutor(count) as pool:
        for _ in pool.map(task, starts):
            pass


def allowed() -> int:
    """Number of threads that linear algebra may use."""
    known = [int(library["num_threads"]) for library in _controller().info() if library["user_api"] == "blas"]
    if known:
        return max(known)
    from joblib import cpu_count

    return int(cpu_count())


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


ORIENTATIONS = ("data", "query")
#: If less than this fraction of the weights is on samples other than the nearest, there is no unbiased square.
LEAST = 1e-6
#: Weights held at a time for whole rows; rows and columns of a block of weights (half a megabyte).
_TILE, _HIGH, _WIDE = 1 << 19, 64, 1024
#: Sums of weights below this, or their squares, have lost digits.
_LOST = 1e-100
#: Logarithms of weights below this are raised to it (negligible relative to ``_LOST``) or, in sums relative to the
#: largest weight, dropped: neither they nor their squares are subnormal numbers, which slow a processor down.
_LEAST = -300.0


@dataclass(frozen=True, eq=False)
class Simplex:
    """Probability vectors of a vector problem in float64, their logarithms and weights, without rows of weight 0.

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
        Whether only the observed class counts.
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
        """Take logarithms of probabilities clipped to ``eps``; those from logits are exact and not clipped."""
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
        """Number of rows."""
        return len(self.codes)

    @property
    def others_at_home(self) -> FloatArray:
        """Mass of the other samples in a sample's own row, that is, its other repeats."""
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
class LeaveOneOutMeans:
    """Weighted means over the other samples around each of m samples; weights w of a sample sum to 1.

    Attributes
    ----------
    mean : ndarray of shape (m, K)
        ``Σ w v`` of the values v.
    second : ndarray of shape (m, K) or None
        ``Σ w² v'`` of other values v'.
    concentration : ndarray of shape (m,) or None
        ``Σ w²``: one over the effective number of samples.
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
) -> LeaveOneOutMeans:
    """Average values (n, K) around some samples (all by default), excluding the sample itself.

    Cost O(m n K), memory O(n K) and a tile.
    """
    n, k = values.shape
    rows = np.arange(n) if rows is None else rows
    m = len(rows)
    sums, square_sums = _summed(sample, h, orientation, rows, values, second)
    total = sums[:, -1:]
    known = total[:, 0] > 0
    mean = np.divide(sums[:, :-1], total, out=np.zeros((m, k)), where=known[:, None])
    if second is None:
        return LeaveOneOutMeans(mean, None, None, known)
    square_sums = np.divide(square_sums, total**2, out=np.zeros((m, k + 1)), where=known[:, None])
    return LeaveOneOutMeans(mean, square_sums[:, :-1], square_sums[:, -1], known)


def log_densities(sample: Simplex, bandwidths: FloatArray, orientation: str, rows: AnyArray) -> FloatArray:
    """Logarithms of leave-one-out densities ``1/(n-1) Σ k`` at some rows, (bandwidths, rows).

    The matrix product is the same for all bandwidths up to a factor, and is computed once.
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


def seen_from(
    points: FloatArray, sample: Simplex, values: FloatArray, h: float, orientation: str
) -> tuple[FloatArray, FloatArray]:
    """Density of the sample at points of the open simplex, (m,), and average of values (n, K) there, (m, K)."""
    density, mean = np.empty(len(points)), np.empty((len(points), values.shape[1]))
    step = max(1, _TILE // max(sample.n_rows, 1))
    for start in range(0, len(points), step):
        here = points[start : start + step]
        if orientation == "data":
            logits = np.log(here) @ (sample.probs / h).T - _normaliser(sample.probs, h)
        else:
            logits = (here / h) @ sample.logs.T - _normaliser(here, h)[:, None]
        logits += np.log(sample.mass)
        top = logits.max(axis=1, keepdims=True)
        weight = np.exp(logits - top)
        total = weight.sum(axis=1)
        density[start : start + step] = np.exp(top[:, 0]) * total / sample.mass.sum()
        mean[start : start + step] = weight @ values / total[:, None]
    return density, mean


class _Product(NamedTuple):
    """Logarithms of weights of some rows on all samples: ``left @ right``, and corrections at a row's own position.

    ``right`` consists of contiguous blocks of columns: a product with part of a wide matrix is slower. At the row's own
    position ``home`` is added, and ``factor`` converts the squared total weight of repeats to that of single samples.
    ``steep``: whether logarithms may lie below ``_LEAST``.
    """

    left: FloatArray
    right: tuple[FloatArray, ...]
    rows: AnyArray
    home: FloatArray
    factor: FloatArray
    steep: bool

    def of(self, here: AnyArray | slice) -> _Product:
        """Some of the rows."""
        return self._replace(**{name: getattr(self, name)[here] for name in ("left", "rows", "home", "factor")})


class _Values(NamedTuple):
    """Factors of weights in sums: values and a 1 for the total, (n, K + 1)."""

    first: FloatArray
    second: FloatArray | None

    def add(self, out: FloatArray, weight: FloatArray, part: slice) -> None:
        """Add ``Σ w v`` and ``Σ w`` of a block."""
        out += weight @ self.first[part]

    def add_squares(self, out: FloatArray, weight: FloatArray, part: slice) -> None:
        """The same for squared weights, with the other values."""
        if self.second is None:
            raise RuntimeError("there are no values for squares")
        out += weight @ self.second[part]


class _Classes(NamedTuple):
    """The same for one-hot values of samples sorted by class: sums of adjacent columns, without a matrix product.

    Attributes
    ----------
    codes : ndarray of shape (n,)
    second : ndarray of shape (n,) or None
        Factors of the squares.
    cuts : dict
        Starts of classes in a block, and their codes; found once.
    """

    codes: AnyArray
    second: FloatArray | None
    cuts: dict[tuple[int, int], tuple[AnyArray, Any]]

    def add(self, out: FloatArray, weight: FloatArray, part: slice) -> None:
        """Add ``Σ w`` of every class, and the total."""
        key = part.start, part.stop
        if key not in self.cuts:
            codes = self.codes[part]
            starts = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1])
            there = codes[starts]
            dense = there[-1] - there[0] == len(there) - 1
            self.cuts[key] = starts, slice(there[0], there[-1] + 1) if dense else there
        starts, there = self.cuts[key]
        each = np.add.reduceat(weight, starts, axis=1)
        out[:, there] += each
        out[:, -1] += each.sum(axis=1)

    def add_squares(self, out: FloatArray, weight: FloatArray, part: slice) -> None:
        """The same for squared weights."""
        if self.second is not None:
            weight *= self.second[part]
        self.add(out, weight, part)


def _one_hot(values: FloatArray) -> bool:
    """Whether each row has a single 1 and is 0 elsewhere."""
    return bool(((values == 0) | (values == 1)).all() and (values.sum(axis=1) == 1).all())


def _to_sum(
    sample: Simplex, values: FloatArray, second: FloatArray | None
) -> tuple[_Values | _Classes, AnyArray | slice]:
    """The terms to sum, and the required order of samples."""
    # A row's weight is that of its repeats together; squares are of single samples.
    single = 1 / sample.mass if sample.integral and (sample.mass != 1).any() else None
    if _one_hot(values) and (second is None or second is values or np.array_equal(second, values)):
        codes = values.argmax(axis=1)
        order = np.argsort(codes, kind="stable")
        return _Classes(codes[order], None if single is None else single[order], {}), order
    ones = np.ones(len(values))
    if second is not None:
        second = np.column_stack([second, ones])
        second = second if single is None else second * single[:, None]
    return _Values(np.column_stack([values, ones]), second), slice(None)


def _summed(
    sample: Simplex, h: float, orientation: str, rows: AnyArray, values: FloatArray, second: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """``Σ w v`` and ``Σ w² v'`` around some rows, up to a factor per row; the last column is that of ones.

    The weight of a sample on a row can hardly exceed that of the row itself (Gibbs' inequality; approximately so for
    ``"data"``), so weights are taken relative to it, in one exponential, without finding the largest. Rows so far from
    all others that these sums are nearly 0 are summed again with care.
    """
    n, k = values.shape
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
    of, order = _to_sum(sample, values, second)
    turned = np.column_stack([right, weigh, np.ones(n)])[order]
    place = np.arange(n)
    place[order] = np.arange(n)
    # Rows in the order of the samples: their own places in a block lie together.
    turn = np.argsort(place[rows], kind="stable")
    rows = rows[turn]
    product = _Product(
        np.column_stack([left, np.ones(n), -highest])[rows],
        tuple(np.ascontiguousarray(turned[a : a + _WIDE].T) for a in range(0, n, _WIDE)),
        place[rows],
        (_log(sample.others_at_home) - np.log(sample.mass))[rows],
        np.divide(sample.mass, sample.others_at_home, out=np.zeros(n), where=repeated)[rows],
        bool(sample.logs.min() / h + weigh.min() - highest.max() < _LEAST),
    )
    sums = np.zeros((len(rows), k + 1))
    square_sums = None if second is None else np.zeros((len(rows), k + 1))

    def fill(start: int) -> None:
        here = slice(start, start + _HIGH)
        _block_sums(product.of(here), of, sums[here], None if square_sums is None else square_sums[here])

    in_threads(fill, range(0, len(rows), _HIGH), len(rows) * n)
    far = np.flatnonzero(~(sums[:, -1] > _LOST))
    step = max(1, min(_HIGH, _TILE // max(n, 1)))
    for a in range(0, far.size, step):
        here = far[a : a + step]
        again = np.zeros((2, len(here), k + 1))
        _careful_sums(product.of(here), of, again[0], None if square_sums is None else again[1])
        sums[here] = again[0]
        if square_sums is not None:
            square_sums[here] = again[1]
    back = np.argsort(turn, kind="stable")
    return sums[back], np.zeros(0) if square_sums is None else square_sums[back]


def _block_sums(product: _Product, of: _Values | _Classes, sums: FloatArray, squares: FloatArray | None) -> None:
    """Add sums of some rows, block by block, small enough for the cache."""
    first, last = int(product.rows[0]), int(product.rows[-1])
    memory = np.empty(len(product.rows) * product.right[0].shape[1])
    start = 0
    for right in product.right:
        part = slice(start, start + right.shape[1])
        weight = memory[: len(product.rows) * right.shape[1]].reshape(len(product.rows), -1)
        np.matmul(product.left, right, out=weight)
        own = first < part.stop and last >= start
        if own:
            at = np.flatnonzero((product.rows >= start) & (product.rows < part.stop))
            weight[at, product.rows[at] - start] += product.home[at]
        if product.steep:
            np.maximum(weight, _LEAST, out=weight)
        np.exp(weight, out=weight)
        of.add(sums, weight, part)
        if squares is not None:
            np.square(weight, out=weight)
            if own:
                weight[at, product.rows[at] - start] *= product.factor[at]
            of.add_squares(squares, weight, part)
        start = part.stop


def _careful_sums(product: _Product, of: _Values | _Classes, sums: FloatArray, squares: FloatArray | None) -> None:
    """Add the same sums relative to each row's largest weight, so that they do not underflow."""
    weight = product.left @ np.hstack(product.right)
    own = np.arange(len(product.rows))
    weight[own, product.rows] += product.home
    top = weight.max(axis=1, keepdims=True)
    weight -= np.where(np.isfinite(top), top, 0.0)
    weight[weight < _LEAST] = -np.inf
    np.exp(weight, out=weight)
    every = slice(0, weight.shape[1])
    of.add(sums, weight, every)
    if squares is not None:
        np.square(weight, out=weight)
        weight[own, product.rows] *= product.factor
        of.add_squares(squares, weight, every)


def _normaliser(probs: FloatArray, h: float) -> FloatArray:
    """``Σ_c lnΓ(f_c/h + 1) - lnΓ(1/h + K)`` per row: minus the logarithm of the normalising factor of the density."""
    from scipy.special import gammaln

    return np.asarray(gammaln(probs / h + 1).sum(axis=1) - gammaln(1 / h + probs.shape[1]))


def _log(values: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))
