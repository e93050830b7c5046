"""Logistic regression on polynomials of the logit: its likelihood on few nodes, its maximum, and likelihood regions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..data.types import AnyArray, FloatArray
from ..sums.logistic_fit import DECREMENT, Counts, Point, maximum, softplus_and_expit

#: Up to this many distinct logits are kept; of more, those within a cell are replaced by two nodes.
MOST_NODES = 1024
_CELLS = 512
#: Rows processed at a time.
_TILE = 1 << 14
_ITERATIONS = 100
_HALVINGS = 60
#: Information, in outcomes, below which a direction has none: the likelihood increases indefinitely along it.
_NO_INFORMATION = 1e-6
#: Minimum information for a step of the edge search, as a share of the total.
_SOME = 1e-13


@dataclass(frozen=True, eq=False)
class LogitSums:
    """Statistics of a sample for the log-likelihood ``Σ w (o η(z) - log(1 + e^η(z)))``, with polynomials η of z.

    The first term is linear in sums of powers, which are exact. The second is an integral of a smooth function over the
    weight at each logit: where there are many distinct ones, the weight within a cell is replaced by two nodes with
    the same moments up to the third (Gauss's rule for the distribution within the cell).

    Attributes
    ----------
    nodes, mass : ndarray of shape (m,)
        Logits and their weights, which sum to the sample size.
    centre, half : float
        The logits lie within centre ± half.
    positive : ndarray of shape (degree + 1,)
        ``Σ w o T_j``, T_j the Chebyshev polynomials over that range.
    """

    nodes: FloatArray
    mass: FloatArray
    centre: float
    half: float
    positive: FloatArray

    @classmethod
    def of(cls, z: FloatArray, outcomes: AnyArray, weights: FloatArray, degree: int) -> LogitSums:
        """Sums of a sample. Cost O(n)."""
        low, high = float(z.min()), float(z.max())
        centre, half = (low + high) / 2, max((high - low) / 2, np.finfo(float).tiny)
        positive = np.zeros(degree + 1)
        for start in range(0, z.size, _TILE):
            some = slice(start, start + _TILE)
            columns = np.polynomial.chebyshev.chebvander((z[some] - centre) / half, degree)
            positive += columns.T @ (weights[some] * outcomes[some])
        nodes, mass = compressed(z, weights, _CELLS)
        return cls(nodes, mass, centre, half, positive)

    def within(self, z: FloatArray) -> FloatArray:
        """Logits rescaled to [-1, 1]."""
        return np.asarray((np.asarray(z) - self.centre) / self.half)

    @cached_property
    def _root(self) -> FloatArray:
        """R of the Chebyshev polynomials at the nodes, ``Q R`` with Q orthonormal over the weights."""
        raw = np.polynomial.chebyshev.chebvander(self.within(self.nodes), self.positive.size - 1)
        return np.asarray(np.linalg.qr(raw * np.sqrt(self.mass / self.mass.sum())[:, None], mode="r"))

    def columns(self, z: FloatArray, degree: int) -> FloatArray:
        """Polynomials up to a degree, orthonormal over the sample, at logits, (m, degree + 1)."""
        d = degree + 1
        raw = np.polynomial.chebyshev.chebvander(self.within(z), degree)
        return np.asarray(np.linalg.solve(self._root[:d, :d].T, raw.T).T)

    @cached_property
    def most(self) -> int:
        """Largest degree that the distinct logits identify."""
        size = np.abs(np.diag(self._root))
        known = size > 1e-9 * size.max()
        return int(np.argmin(known) - 1 if not known.all() else known.size - 1)

    def powers(self, theta: FloatArray) -> FloatArray:
        """Coefficients of 1, z, z², … from those of the orthonormal columns."""
        d = theta.size
        chebyshev = np.linalg.solve(self._root[:d, :d], theta)
        inner = np.polynomial.chebyshev.cheb2poly(chebyshev)
        out = np.polynomial.Polynomial(inner)(np.polynomial.Polynomial([-self.centre / self.half, 1 / self.half])).coef
        return np.concatenate([out, np.zeros(d - out.size)])

    @cached_property
    def at_identity(self) -> float:
        """Log-likelihood of the scores themselves, η(z) = z."""
        slope = np.array([self.centre, self.half])
        return float(slope @ self.positive[:2] - self.mass @ np.logaddexp(0, self.nodes))

    def model(self, degree: int) -> Likelihood:
        """The log-likelihood of polynomials of a degree."""
        d = degree + 1
        positive = np.linalg.solve(self._root[:d, :d].T, self.positive[:d])
        return Likelihood(self.columns(self.nodes, degree), self.mass, positive)


def compressed(z: FloatArray, weights: FloatArray, n_cells: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and their weights, two per cell; exact for few distinct logits. Cost O(n), in tiles."""
    distinct = z[:0]
    for start in range(0, z.size, _TILE):
        distinct = np.unique(np.concatenate([distinct, z[start : start + _TILE]]))
        if distinct.size > MOST_NODES:
            break
    else:
        return distinct, np.bincount(np.searchsorted(distinct, z), weights=weights).astype(np.float64)
    low, high = float(z.min()), float(z.max())
    width = (high - low) / n_cells

    moments = np.zeros((4, n_cells))
    for start in range(0, z.size, _TILE):
        place = (z[start : start + _TILE] - low) * (1 / width)
        cell = np.minimum(place.astype(np.intp), n_cells - 1)
        off, power = place - cell - 0.5, weights[start : start + _TILE]
        for total in moments:
            total += np.bincount(cell, power, n_cells)
            power = power * off
    held = moments[0] > 0
    total, first, second, third = moments[:, held]
    # About the middle of each cell, in widths; then about the mean.
    first, second, third = first / total, second / total, third / total
    third += first * (2 * first**2 - 3 * second)
    middle = low + (np.flatnonzero(held) + 0.5 + first) * width
    sd = np.sqrt(np.maximum(second - first**2, 0.0))
    skew = np.divide(third, sd**3, out=np.zeros_like(sd), where=sd > 1e-6)
    sd *= width
    # Gauss's two nodes of a distribution with mean 0, variance 1 and this skewness: roots of x² - skew x - 1.
    spread = np.sqrt(skew**2 + 4)
    up, down = (skew + spread) / 2, (skew - spread) / 2
    share = -down / spread
    nodes = np.concatenate([middle + sd * up, middle + sd * down])
    return nodes, np.concatenate([total * share, total * (1 - share)])


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Log-likelihood of coefficients θ of columns, at a sample's nodes."""

    columns: FloatArray
    mass: FloatArray
    positive: FloatArray

    @cached_property
    def _pairs(self) -> FloatArray:
        """Products of columns, (m, d²): information is one matrix product, for any number of θ."""
        c = self.columns
        return (c[:, :, None] * c[:, None, :]).reshape(len(c), -1)

    def value(self, theta: FloatArray) -> FloatArray:
        """Log-likelihood of each row of θ, (P, d)."""
        growth, _ = softplus_and_expit(theta @ self.columns.T)
        return np.asarray(theta @ self.positive - growth @ self.mass)

    def derivatives(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log-likelihood, gradient (P, d), and information (P, d, d), its negative curvature."""
        growth, chance = softplus_and_expit(theta @ self.columns.T)
        value = theta @ self.positive - growth @ self.mass
        gradient = self.positive - (chance * self.mass) @ self.columns
        d = theta.shape[1]
        information = ((chance * (1 - chance) * self.mass) @ self._pairs).reshape(-1, d, d)
        return np.asarray(value), np.asarray(gradient), np.asarray(information)

    def maximum(self, start: FloatArray) -> tuple[FloatArray, float] | None:
        """Maximum-likelihood θ and its log-likelihood; None if there is no maximum (outcomes are separated)."""
        # Any weights of positives at the nodes will do that have these sums: of all, those along the columns.
        weighted = self.columns * self.mass[:, None]
        happened = weighted @ np.linalg.solve(weighted.T @ self.columns, self.positive)
        counts = Counts(self.columns.T[None], self.mass[None], happened[None])
        point, decrement = maximum(counts, 0.0, Point.at(start[None], np.zeros((1, self.mass.size)), counts))
        if decrement[0] > DECREMENT or np.linalg.eigvalsh(point.information[0])[0] < _NO_INFORMATION:
            return None
        return point.theta[0], float(point.likelihood[0])

    def extremes(self, x: FloatArray, best: FloatArray, peak: float, drop: float) -> tuple[FloatArray, FloatArray]:
        r"""Least and largest ``x @ θ`` over the region ``{θ: 2 (peak - ℓ(θ)) ≤ drop}``, for each row of x.

        The region is convex and bounded, so both are where ``∇ℓ = ∓λ x``, λ > 0, on its edge. Each step goes to the
        extreme over the ellipsoid that approximates the region by the likelihood's second-order expansion at the
        current θ (Venzon & Moolgavkar 1988), for all rows and both sides at once; the first, from the maximum, to
        Wald's. Steps that end far outside, where the expansion is inaccurate, are halved.
        """
        directions = np.concatenate([-x, x])
        theta = np.broadcast_to(best, directions.shape).copy()
        going = np.arange(len(directions))
        edge = peak - drop / 2
        for _ in range(_ITERATIONS):
            now, ways = theta[going], directions[going]
            value, gradient, information = self.derivatives(now)
            # Where chances are 0 or 1 a direction may have no information: steps need some, the edge does not.
            information += _SOME * np.trace(information, axis1=1, axis2=2)[:, None, None] * np.eye(best.size)
            solved = np.linalg.solve(information, np.stack([gradient, ways], axis=-1))
            to_centre, along = solved[..., 0], solved[..., 1]
            centre = (gradient * to_centre).sum(axis=-1)
            size = np.sqrt((ways * along).sum(axis=-1))
            radius = np.sqrt(np.maximum(2 * (value - edge) + centre, 0.0))
            step = to_centre + (radius / size)[:, None] * along
            length = np.ones(len(going))
            for _ in range(_HALVINGS):
                reached = self.value(now + length[:, None] * step)
                far = reached < edge - drop / 4
                if not far.any():
                    break
                length = np.where(far, length / 2, length)
            theta[going] = now + length[:, None] * step
            # In units of the region's own width in this direction, and of its depth.
            moved = np.abs((step * ways).sum(axis=-1)) / (np.sqrt(drop) * size)
            done = (moved < 1e-9) & (np.abs(value - edge) < 1e-8 * drop)
            going = going[~done]
            if not going.size:
                break
        else:
            theta[going] = np.nan  # told by the caller
        found = (directions * theta).sum(axis=-1)
        m = len(x)
        return -found[:m], found[m:]
