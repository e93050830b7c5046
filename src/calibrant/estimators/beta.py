"""`BetaKernel`: frequencies by Beta kernels, which end where probabilities end, at the cost of a grid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from ..data.checks import check_choice
from ..data.problem import Problem
from ..data.types import AnyArray, FloatArray, IntArray
from ..data.weights import ones_or
from ..sums import DistinctScores, Runs
from ..sums.field_checks import need, need_shape
from ..sums.grid import share_out
from .base import CellEstimator, Cells
from .model_cells import FittedCells, check_eps, check_width, shared_counts
from .norm import mean_power

#: Cells of the arcsine grid, and the number of samples up to which there is no grid.
ANGLE_CELLS = 2048
#: The same where a bandwidth is sought.
_LOO_CELLS = 512
_LOO_BANDWIDTHS = 2.0 ** (-np.arange(25) / 2)
#: ``h = AUTO · n^(-2/5)``; see :class:`BetaKernel`.
AUTO = 0.17
#: On a grid a lone sample's share is excluded up to the grid's error: below this part of it there is no neighbour.
_LONE = 1e-3
_TILE = 1 << 19
#: Samples below this size are read pair by pair.
_SMALL = 16
#: Steps of the arcsine grid to a kernel's standard deviation.
_STEPS = 20.0
#: Where the others weigh less than this beside a sample's own share, the difference has lost digits.
_FAR = 1e-3
#: Kernels below this part of the largest at a node add nothing there.
_ROUNDING = 1e-18
#: Numbers worked on at a time, and columns of kernels that are multiplied together.
_CACHED, _COLUMNS = 1 << 15, 128


@dataclass(frozen=True, eq=False)
class AngleCounts:
    """Distinct scores while they are few; beyond :data:`ANGLE_CELLS` samples, linear-binned counts over θ.

    With ``score = sin² θ`` a Beta kernel at z, of standard deviation ``√(h z (1-z))``, is ``√h / 2`` wide over θ
    everywhere, so a grid that is regular in θ resolves all kernels alike.

    Attributes
    ----------
    scores : ndarray of shape (…, m)
        Distinct scores, or those of the nodes.
    mass, square : ndarray of shape (…, 2, m)
        ``Σ w a`` and ``Σ w² a`` of the negatives and of the positives, with the linear share ``a``; 0 behind a
        problem's last score.
    on_grid : ndarray of shape (…)
    """

    scores: FloatArray
    mass: FloatArray
    square: FloatArray
    on_grid: AnyArray
    domain: tuple[float, float]
    n_samples: Any
    integral: bool

    @classmethod
    def of(cls, problem: Problem) -> AngleCounts:
        """Counts of the samples of one problem, or of many. Cost O(n log n)."""
        p = problem
        if p.integral:
            runs = p.sums(DistinctScores())
            values = (runs.scores, runs.weight - runs.outcome, runs.outcome)
            score, negative, positive = (v.reshape(*p.shape, -1) for v in runs.table(*values))
            mass = np.stack([negative, positive], axis=-2)
            square, size = p.variances(mass, mass), runs.totals
        else:  # a sample's own share depends on its weight: rows stay rows
            q = p.ordered
            w = ones_or(q.weights, q.n_samples)
            rows = Runs(
                q.scores, w, w * q.outcomes, w * w, q.counts, False, p.domain, p.eps, q.bounds, q.counts, p.shape
            )
            values = (rows.scores, rows.weight - rows.outcome, rows.outcome)
            score, negative, positive = (v.reshape(*p.shape, -1) for v in rows.table(*values))
            mass = np.stack([negative, positive], axis=-2)
            square, size = p.variances(mass**2, mass), q.counts
        n = p.counts if p.shape else p.n_samples
        few = cls(score, mass, square, np.zeros(p.shape, dtype=bool), p.domain, n, p.counted)
        return few.with_grids(np.reshape(size, p.shape) > ANGLE_CELLS)

    def check(self) -> None:
        """ValueError unless these can be the counts of rows."""
        shape, m = np.shape(self.n_samples), self.scores.shape[-1:]
        need_shape((*shape, *m), scores=self.scores)
        need_shape((*shape, 2, *m), mass=self.mass, square=self.square)
        need_shape(shape, on_grid=self.on_grid)
        need((self.scores >= 0) & (self.scores <= 1), "scores must lie in [0, 1]")
        need((self.mass >= 0) & (self.square >= 0), "mass and square must not be negative")

    def with_grids(self, many: AnyArray) -> AngleCounts:
        """Counts on nodes for some problems."""
        many = many & ~self.on_grid
        if not many.any():
            return self
        grid = self.binned(ANGLE_CELLS)
        if many.all():
            return grid
        wide = max(self.scores.shape[-1], grid.scores.shape[-1])
        tables: dict[str, Any] = {f: np.zeros((*getattr(self, f).shape[:-1], wide)) for f in _FIELDS}
        for f, table in tables.items():
            for some, values in ((~many, getattr(self, f)), (many, getattr(grid, f))):
                table[some, ..., : values.shape[-1]] = values[some]
        return replace(self, on_grid=self.on_grid | many, **tables)

    def __getitem__(self, index: Any) -> AngleCounts:
        """Those of one of many problems, or of some."""
        some: dict[str, Any] = {f: np.asarray(getattr(self, f))[index] for f in (*_FIELDS, "on_grid", "n_samples")}
        return replace(self, **some)

    def __add__(self, other: AngleCounts) -> AngleCounts:
        if not isinstance(other, AngleCounts):
            return NotImplemented
        if self.domain != other.domain:
            raise ValueError(f"AngleCounts of different domains cannot merge: {self.domain} and {other.domain}")
        n, integral = self.n_samples + other.n_samples, self.integral and other.integral
        if self.on_grid.any() or other.on_grid.any():
            one, two = self.binned(ANGLE_CELLS), other.binned(ANGLE_CELLS)
            added: dict[str, Any] = {f: getattr(one, f) + getattr(two, f) for f in ("mass", "square")}
            return replace(one, n_samples=n, integral=integral, **added)
        sums: dict[str, Any] = {f: np.concatenate([getattr(self, f), getattr(other, f)], axis=-1) for f in _FIELDS}
        both = replace(self, n_samples=n, integral=integral, **sums)
        size = both.total if integral else (both.mass.sum(axis=-2) > 0).sum(axis=-1)
        return both.with_grids(np.asarray(size > ANGLE_CELLS))

    @property
    def total(self) -> FloatArray:
        """``Σ w``, (…)."""
        return np.asarray(self.mass.sum(axis=(-2, -1)))

    @property
    def effective_size(self) -> FloatArray:
        """Sample size: rows, repeats, or Kish's effective size for relative weights, (…)."""
        squares = self.square.sum(axis=(-2, -1))
        if self.integral:
            return self.total
        return np.asarray(np.divide(self.total**2, squares, out=np.zeros(np.shape(squares)), where=squares > 0))

    @cached_property
    def own(self) -> FloatArray:
        """Weight of one sample among those of an outcome at a score, (…, 2, m): 1 for repeats, else ``Σ w² / Σ w``."""
        if self.integral:
            return np.ones_like(self.mass)
        return np.divide(self.square, self.mass, out=np.zeros_like(self.mass), where=self.mass > 0)

    def binned(self, cells: int) -> AngleCounts:
        """Counts on the nodes of a grid of θ, each sample shared by the two nearest."""
        theta = np.arcsin(np.sqrt(np.clip(self.scores, 0, 1)))[..., None, :]
        sums: dict[str, Any] = {
            f: shared_counts(theta, getattr(self, f), (0.0, np.pi / 2), cells) for f in ("mass", "square")
        }
        nodes = np.broadcast_to(_angle_nodes(cells), (*self.on_grid.shape, cells + 1))
        return replace(self, scores=nodes, on_grid=np.ones(self.on_grid.shape, dtype=bool), **sums)

    @property
    def used(self) -> AngleCounts:
        """One problem without the scores where no sample is."""
        used = self.mass.any(axis=-2)
        return replace(self, scores=self.scores[used], mass=self.mass[:, used], square=self.square[:, used])

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores, samples and positives of what is drawn anew, in units of the effective sample size."""
        total = self.total
        unit = np.divide(self.effective_size, total, out=np.zeros(total.shape), where=total > 0)[..., None]
        return self.scores, self.mass.sum(axis=-2) * unit, self.mass[..., 1, :] * unit

    def redrawn(self, count: FloatArray, positive: FloatArray) -> AngleCounts:
        """Those of samples with other counts (R, m) and positives (b R, m) at the same scores."""
        count = np.tile(count, (len(positive) // len(count), 1))
        positive = np.clip(positive, 0, count)
        mass = np.stack([count - positive, positive], axis=-2)
        n = np.full(len(count), self.n_samples)
        scores = np.broadcast_to(self.scores, count.shape)
        return AngleCounts(scores, mass, mass, np.full(len(count), bool(self.on_grid)), self.domain, n, True)


_FIELDS = ("scores", "mass", "square")


@dataclass(frozen=True)
class Angles:
    """Sums that an estimator may name: those over θ."""

    def of(self, problem: Problem) -> AngleCounts:
        """Sums of a problem's samples."""
        return AngleCounts.of(problem)


def _angle_nodes(cells: int) -> FloatArray:
    return np.asarray(np.sin(np.arange(cells + 1) * (np.pi / 2 / cells)) ** 2)


def log_kernel(data: FloatArray, at: FloatArray, h: float, eps: float, form: str = "first") -> FloatArray:
    """Logarithm of the Beta density of each data score at each point, shape (data, points)."""
    from scipy.special import betaln

    at = np.clip(at, eps, 1 - eps)
    below, above = data / h, (1 - data) / h  # exponents of t and 1 - t: the parameters less 1
    if form == "second":
        below = np.where(data < 2 * h, _boundary(data, h), below) - 1
        above = np.where(data > 1 - 2 * h, _boundary(1 - data, h), above) - 1
    left = np.stack([below, above, -betaln(below + 1, above + 1)], axis=1)
    return np.asarray(left @ np.stack([np.log(at), np.log1p(-at), np.ones_like(at)]))


def _boundary(x: FloatArray, h: float) -> FloatArray:
    """Chen's ρ(x) for x < 2h: from 1 at the boundary to 2 = x / h at 2h."""
    return np.asarray(2 * h * h + 2.5 - np.sqrt(np.maximum(4 * h**4 + 6 * h * h + 2.25 - x * x - x / h, 0)))


@dataclass(frozen=True)
class BetaKernel(CellEstimator):
    r"""Calibration error from frequencies smoothed by Beta kernels, each sample's own share left out.

    .. math:: \Big(\frac1n \sum_j |\hat E_j - s_j|^p\Big)^{1/p}, \qquad
        \hat E_j = \frac{\sum_{i \ne j} k_i(s_j)\, o_i}{\sum_{i \ne j} k_i(s_j)}, \qquad
        k_i = \text{density of } \mathrm{Beta}\Big(\frac{s_i}{h} + 1, \frac{1 - s_i}{h} + 1\Big)

    These are the marginal and confidence versions of Popordanoska et al.'s estimator (a sum over classes there is K
    times the class-wise error here), with the parameters at the data point as in their code. Posocco & Bonnefoy call
    Beta kernels "computationally prohibitive for now"; this is the answer: over θ, ``score = sin² θ``, all kernels are
    equally wide, so linear-binned counts on 2049 nodes of θ give the sums to about 1e-6, whatever n.

    Parameters
    ----------
    bandwidth : "auto", "loo" or float, default "auto"
        h; the kernel's standard deviation is about ``√(h s (1-s))`` in score and ``√h / 2`` in θ. ``"auto"``:
        ``0.17 · n^(-2/5)``, which is half of Silverman's ``0.9 · sd · n^(-1/5)`` for θ uniform on [0, π/2]
        (sd 0.4535): ``4 (0.5 · 0.9 · 0.4535)² = 0.1666``; the half as for :class:`ResidualKernel` over ranks, since
        each sample's own outcome is left out anyway and a wide kernel blurs. ``"loo"``: the h among
        ``2^(-k/2)``, k = 0 … 24, with the largest leave-one-out likelihood of the scores,
        ``Σ_j log (1/(n-1)) Σ_{i≠j} k_i(s_j)``. Repeated scores pull that towards 0.
    eps : float, default 1e-6
        Kernels are read at scores clipped to [eps, 1 - eps]: at exactly 0 and 1 those of other scores vanish.
    form : {"first", "second"}, default "first"
        Chen's kernels. ``"first"``: that above, whose mean is drawn towards 1/2 by ``h (1 - 2s) / (1 + 2h)``.
        ``"second"``, which Posocco & Bonnefoy name: ``Beta(s/h, (1-s)/h)`` with mean s for 2h ≤ s ≤ 1 - 2h; below
        2h the first parameter, and above 1 - 2h the second, is
        ``ρ(x) = 2h² + 2.5 - √(4h⁴ + 6h² + 2.25 - x² - x/h)`` of the distance x from that end. It errs some 5 to 10 %
        more for 100 samples, and less for many rare positives (``benchmarks/coverage/beta_forms.md``).

    Notes
    -----
    Range [0, 1]. Bias: upward by noise, more than a plug-in's because a sample does not pull its own estimate; and the
    kernels average outcomes of unequal scores, which leaks (of order h) where the density of the scores changes, as
    for :class:`Density`. The leave-one-out sums are read from a grid of θ, within 1e-4 of the sums over all pairs,
    which are taken below 16 samples, for p = inf, for ``"loo"`` and around scores that no other comes near. Beyond
    2048 samples (repeats counted) the samples themselves are counts on a grid, and those without a neighbour are left
    out. NaN for a single sample. Its reliability curve is that of :class:`AdaptiveKernel`. Cost O(n + G²), about 0.1 s
    for any n; ``"loo"`` ten times that.

    References
    ----------
    Popordanoska, Sayer & Blaschko (2022), *A consistent and differentiable Lp canonical calibration error estimator*;
    Chen (1999), *Beta kernel estimators for density functions*; Posocco & Bonnefoy (2021), §6.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> y = rng.random(20_000) < p**2  # the truth is ∫|p² - p| dp = 1/6
    >>> bool(abs(cal.calibration_error(y, p, estimator=cal.estimators.BetaKernel()) - 1 / 6) < 0.01)
    True
    """

    _cells_are_atoms: ClassVar[bool] = True
    bandwidth: str | float = "auto"
    eps: float = 1e-6
    form: str = "first"

    def __post_init__(self) -> None:
        check_choice("form", self.form, ("first", "second"))
        object.__setattr__(self, "bandwidth", check_width(self.bandwidth, ("auto", "loo")))
        object.__setattr__(self, "eps", check_eps(self.eps))

    def _needs(self, domain: tuple[float, float]) -> Angles:
        """Sums over θ."""
        return Angles()

    def _h(self, sums: AngleCounts) -> FloatArray:
        """Bandwidth of every problem, (…)."""
        if self.bandwidth == "auto":
            return np.asarray(AUTO * np.maximum(sums.effective_size, 1.0) ** -0.4)
        if self.bandwidth == "loo":
            shape = np.shape(sums.on_grid)
            return np.array([self._likeliest(sums[i] if shape else sums) for i in np.ndindex(shape)]).reshape(shape)
        return np.full(np.shape(sums.on_grid), self.bandwidth)

    def _likeliest(self, sums: AngleCounts) -> float:
        counts = sums.used
        if not counts.scores.size:
            return float(_LOO_BANDWIDTHS[0])
        counts = counts.binned(_LOO_CELLS).used if counts.scores.size > _LOO_CELLS else counts
        likelihood = [self._likelihood(counts, float(h)) for h in _LOO_BANDWIDTHS]
        return float(_LOO_BANDWIDTHS[int(np.argmax(likelihood))])

    def read(self, sums: AngleCounts, norm: float) -> FloatArray:
        """``errorᵖ`` of the smoothed frequencies: from the grid of θ, for a maximum and few samples pair by pair."""
        shape = np.shape(sums.on_grid)
        rows = sums if shape else sums[None]
        widths, size = self._h(rows), rows.effective_size
        out: FloatArray = np.full(widths.shape, np.nan)
        # Pair by pair also where the bandwidth was sought so: that cost twenty-five times as much.
        alone = (size > 0) & (np.isinf(norm) | (size < _SMALL) | (self.bandwidth == "loo"))
        for h in np.unique(widths[(size > 0) & ~alone]).tolist():
            kernel = kernels_of(h, _cells_of(h), self.eps, self.form)
            some = np.flatnonzero((widths == h) & (size > 0) & ~alone)
            together = max(1, _CACHED // max(rows.scores.shape[-1], len(kernel.matrix)))
            for a in range(0, some.size, together):
                here = some[a : a + together]
                gaps, weights, lone = _from_grid(kernel, rows[here])
                for i in np.flatnonzero(lone.any(axis=-1)).tolist():  # few scores have no other near them
                    at = np.flatnonzero(lone[i])
                    observed, known, _ = self._left_out(rows[here[i]], h, at)
                    gaps[:, i, at] = np.where(known, observed - rows.scores[here[i], at], 0.0)
                    weights[:, i, at] = np.where(known, rows.mass[here[i]][:, at], 0.0)
                out[here] = mean_power(np.concatenate(gaps, axis=-1), np.concatenate(weights, axis=-1), norm)
        for i in np.flatnonzero(alone).tolist():
            one = rows[i].used
            observed, known, _ = self._left_out(one, float(widths[i]))
            gap = np.where(known, observed - one.scores, 0.0)
            out[i] = mean_power(gap.ravel(), np.where(known, one.mass, 0.0).ravel(), norm)
        return out.reshape(shape)

    def _held(self, sums: AngleCounts) -> tuple[BetaKernel, AngleCounts]:
        """The bandwidth found, and the counts of a coarse grid."""
        h = float(self._h(sums))
        return replace(self, bandwidth=h), sums.binned(_coarse_cells(h))

    def _likelihood(self, counts: AngleCounts, h: float) -> float:
        """Leave-one-out log-likelihood of the scores; the lone samples of a grid count with what a grid can tell."""
        _, _, log_density = self._left_out(counts, h)
        return float((counts.mass * np.where(counts.mass > 0, log_density, 0.0)).sum())

    def _left_out(
        self, counts: AngleCounts, h: float, at: IntArray | None = None
    ) -> tuple[FloatArray, AnyArray, FloatArray]:
        """Frequency of the outcome around each sample without it, where there is one, and the log of the kernel sum.

        All (2, m), for the negatives and the positives at each score, or at some of them. The largest kernel of
        a point is factored out, so that far neighbours do not underflow.
        """
        scores, mass, own = counts.scores, counts.mass, counts.own
        every = np.arange(scores.size) if at is None else at
        total, positive = mass.sum(axis=0), mass[1]
        m = every.size
        observed = np.zeros((2, m))
        log_density = np.full((2, m), -np.inf)
        known = np.zeros((2, m), dtype=bool)
        step = max(1, _TILE // max(scores.size, 1))
        outcome = np.array([[0.0], [1.0]])
        for a in range(0, m, step):
            here = slice(a, min(a + step, m))
            points = every[here]
            log_k = log_kernel(scores, scores[points], h, self.eps, self.form)
            columns = np.arange(points.size)
            at_own = log_k[points, columns]
            # What else lies at the sample's own score: of all, and of the positives.
            rest = _remainder(total[points], own[:, points])
            ones_rest = _remainder(positive[points], outcome * own[:, points])
            shared = (rest * (mass[:, points] > 0)).max(axis=0) > 0
            log_k[total == 0] = -np.inf
            log_k[points, columns] = np.where(shared, at_own, -np.inf)
            largest = log_k.max(axis=0)
            alone = ~np.isfinite(largest)
            largest = np.where(alone, 0.0, largest)
            log_k[points, columns] = -np.inf
            np.exp(log_k - largest, out=log_k)
            k_own = np.where(alone, 0.0, np.exp(np.minimum(at_own - largest, 600.0)))
            density = total @ log_k + k_own * rest
            ones = positive @ log_k + k_own * ones_rest
            least = _LONE * own[:, points] * k_own if bool(counts.on_grid) else np.zeros_like(density)
            there = (density > least) & (mass[:, points] > 0)
            np.divide(ones, density, out=observed[:, here], where=there)
            known[:, here] = there
            floor = np.maximum(density, np.maximum(least, np.finfo(float).tiny))
            log_density[:, here] = np.log(floor) + largest
        return np.clip(observed, 0, 1), known, log_density

    def _cells(self, sums: AngleCounts) -> Cells:
        """Nodes of a coarse grid of θ, with at least three steps to a kernel's standard deviation."""
        h = float(self._h(sums))
        scores, count, positive = sums.binned(_coarse_cells(h)).atoms
        kernel = np.exp(log_kernel(scores, scores, h, self.eps, self.form))
        around = count @ kernel
        frequency = np.divide(positive @ kernel, around, out=np.zeros_like(around), where=around > 0)
        gap = np.where(around > 0, np.clip(frequency, 0, 1) - scores, 0.0)
        return FittedCells(scores, count, positive, None, np.ones(count.size), fitted=gap)


def _coarse_cells(h: float) -> int:
    """Cells with at least three steps to a kernel's standard deviation: enough for curves and for draws."""
    return _cells_of(h, 3 * np.pi)


def _cells_of(h: float, steps: float = _STEPS * np.pi) -> int:
    size = 64
    while size < min(steps / np.sqrt(h), ANGLE_CELLS):
        size *= 2
    return size


def _remainder(whole: FloatArray, part: FloatArray) -> FloatArray:
    """``whole - part``, 0 where only rounding is left."""
    rest = whole - part
    return np.where(np.abs(rest) <= 1e-12 * whole, 0.0, rest)


def _from_grid(kernel: Kernels, sums: AngleCounts) -> tuple[FloatArray, FloatArray, AnyArray]:
    """Gaps and weights (2, R, m) of both outcomes by kernels of one width, and which scores (R, m) have no other near.

    A sample's own share is what the grid makes of it, so it is left out exactly.
    """
    size = len(kernel.matrix)
    theta = np.arcsin(np.sqrt(np.clip(sums.scores, 0, 1)))
    share = theta * ((size - 1) / (np.pi / 2))
    near = np.round(share)
    share = np.where(np.abs(share - near) < 1e-9, near, share)
    cell = np.minimum(share.astype(np.intp), size - 2)
    share -= cell
    keep = 1 - share
    total, positive = sums.mass.sum(axis=-2), sums.mass[:, 1]
    around, ones = (kernel.spread(share_out(cell, share, v, size - 1)).reshape(-1) for v in (total, positive))
    itself = keep**2 * kernel.own[cell] + share**2 * kernel.own[cell + 1] + share * keep * kernel.beside[cell]
    cell = cell + size * np.arange(len(theta))[:, None]
    all_near, ones_near = (v[cell] * keep + v[cell + 1] * share for v in (around, ones))
    gaps, weights = np.empty((2, *theta.shape)), np.empty((2, *theta.shape))
    lone = np.zeros(theta.shape, dtype=bool)
    for outcome in (0, 1):
        own = itself * sums.own[:, outcome]
        density = all_near - own
        there = density > np.where(sums.on_grid, _LONE, _FAR)[:, None] * own
        found = np.divide(ones_near - own * outcome, density, out=np.zeros_like(density), where=there)
        gaps[outcome] = np.clip(found, 0, 1) - sums.scores
        held = sums.mass[:, outcome] > 0
        lone |= ~sums.on_grid[:, None] & held & ~there
        weights[outcome] = np.where(there, sums.mass[:, outcome], 0.0)
    return gaps, weights, lone


@dataclass(frozen=True, eq=False)
class Kernels:
    """Kernels of every node at every node, and which nodes reach each block of them: a narrow band."""

    matrix: FloatArray
    blocks: tuple[tuple[slice, slice], ...]
    own: FloatArray
    beside: FloatArray

    @classmethod
    def of(cls, matrix: FloatArray) -> Kernels:
        """Find the band: beyond it, kernels are below rounding of their column's largest."""
        reached = matrix > _ROUNDING * matrix.max(axis=0)
        blocks = []
        for start in range(0, len(matrix), _COLUMNS):
            columns = slice(start, min(start + _COLUMNS, len(matrix)))
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
def kernels_of(h: float, cells: int, eps: float, form: str = "first") -> Kernels:
    """Kernels of a width at the nodes of a grid of θ."""
    nodes = _angle_nodes(cells)
    return Kernels.of(np.exp(log_kernel(nodes, nodes, h, eps, form)))
