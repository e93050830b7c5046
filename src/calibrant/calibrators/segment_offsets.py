r"""Segments found by a search given a calibrator's map, with jointly fitted offsets of their logits.

Logits of row i are :math:`z_i + \beta + \sum_{j: i \in S_j} \gamma_j`, z the logarithms of calibrated probabilities.
Offsets and the shift of all rows are normal around 0 with one standard deviation, by empirical Bayes: the likelihood is
approximated as normal around its mode, and the standard deviation is the one with the largest marginal likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..comparison.segments.confirm import LEAST_VARIANCE, Options, chain_of, searched_for
from ..comparison.segments.features import Condition, Features, within
from ..comparison.segments.offsets import OffsetModel, SegmentRows
from ..data.problem import Problem
from ..data.types import AnyArray, FloatArray
from .base import EPS
from .by_subgroup import contrasts
from .crossval import Folds
from .inputs import CalibrationSample
from .newton import Curvature, Solution, minimise
from .temperature import softmax

#: Grid of standard deviations of offsets, and maximum number of refits of the mode.
_SPREADS = np.geomspace(0.02, 4.0, 24)
_ROUNDS = 8
#: Log-likelihood by which a segment must exceed the chance level of the best segment of its length.
_BEYOND = 2.0

Rule: TypeAlias = tuple[Condition, ...]


@dataclass(frozen=True, eq=False)
class RepairRows:
    """Rows whose probabilities are to be repaired.

    Attributes
    ----------
    p : ndarray of shape (n, K)
        Probabilities by the common map.
    sample : CalibrationSample
    codes : ndarray of shape (F, n)
        Features.
    """

    p: FloatArray
    sample: CalibrationSample
    codes: AnyArray


@dataclass(frozen=True, eq=False)
class SegmentOffsets:
    """Segments, and the offsets of logits in them.

    Attributes
    ----------
    rules : sequence of M tuples of Condition
    offsets : ndarray of shape (M + 1, K)
        Offsets of the segments, then of all rows; sums over classes are 0.
    """

    rules: Sequence[Rule]
    offsets: FloatArray

    def repaired(self, p: FloatArray, codes: AnyArray) -> FloatArray:
        """Probabilities (n, K) with the offsets."""
        moved = np.log(np.maximum(p, EPS)) + self.offsets[-1]
        for rule, offset in zip(self.rules, self.offsets[:-1], strict=True):
            moved[within(codes, rule)] += offset
        return softmax(moved)


@dataclass(frozen=True)
class SegmentSearch:
    """Search for up to ``most`` segments, and fit of their offsets."""

    features: Features
    terms: int
    most: int

    def cross_fitted(
        self, rows: RepairRows, folds: Folds, parts: Sequence[RepairRows], held: FloatArray
    ) -> tuple[SegmentOffsets | None, FloatArray]:
        """Offsets fitted to all rows, and probabilities of each row by a search and fit on the other rows.

        ``parts`` are rows to fit, fold by fold, and ``held`` probabilities of all rows by common maps that did not see
        them.
        """
        out = held.copy()
        found = self._found(rows)
        if found is not None:
            for (_, test), part in zip(folds, parts, strict=True):
                if (one := self._found(part)) is not None:
                    out[test] = one.repaired(held[test], rows.codes[:, test])
        return found, out

    def _found(self, rows: RepairRows) -> SegmentOffsets | None:
        """Segments with their offsets; None if no segment exceeds chance."""
        k = rows.p.shape[1]
        best: dict[Rule, float] = {}
        for c in [1] if k == 2 else range(k):
            for rule, gain in self._of_class(rows, c, float(np.log(k - 1))):
                best[rule] = max(gain, best.get(rule, 0.0))
        rules = sorted(best, key=lambda rule: -best[rule])[: self.most]
        if not rules:
            return None
        inside = np.column_stack([*(within(rows.codes, rule) for rule in rules), np.ones(len(rows.p))])
        return SegmentOffsets(rules, fit_offsets(rows, inside.astype(np.float64)))

    def _of_class(self, rows: RepairRows, c: int, more: float) -> list[tuple[Rule, float]]:
        """Segments of a class against the others, in sequence, with the log-likelihood by which they exceed chance."""
        w = rows.sample.weights
        whole = bool((w == np.round(w)).all())
        problem = Problem(rows.p[:, c], rows.sample.happened(c), w, whole)
        model = OffsetModel.of(SegmentRows.of(problem, np.arange(len(w)), rows.sample.groups))
        if model is None or not self.features.each:
            return []
        here = Features(self.features.each, rows.codes, {}, ())
        searched = searched_for(model, here, Options(self.terms, 0, 0.95), LEAST_VARIANCE)
        penalty, out = searched.log_number + more + _BEYOND, list[tuple[Rule, float]]()
        for one, *_ in chain_of(model, searched, penalty):
            if one.less(penalty) <= 0 or len(out) == self.most:
                break
            out.append((one.conditions, one.less(penalty)))
        return out


def fit_offsets(rows: RepairRows, inside: FloatArray) -> FloatArray:
    """Posterior modes of the offsets (M, K) of columns (n, M), under the spread with the largest evidence.

    Cost: about thirty passes of O(n M² K²).
    """
    sample = rows.sample
    k, n_columns = rows.p.shape[1], inside.shape[1]
    spread_over = contrasts(k)
    z = np.log(np.maximum(rows.p, EPS))
    weights = sample.weights * (sample.effective_rows() / sample.total)
    targets = np.eye(k)[sample.codes]
    total = float(weights.sum())

    def likelihood(x: FloatArray, curved: bool) -> tuple[float, FloatArray, FloatArray | None]:
        """Log-likelihood, its gradient, and its negative Hessian."""
        logits = z + inside @ (x.reshape(n_columns, k - 1) @ spread_over)
        logits -= logits.max(axis=1, keepdims=True)
        chance = np.exp(logits)
        sums = chance.sum(axis=1, keepdims=True)
        chance /= sums
        value = float(weights @ ((targets * logits).sum(axis=1) - np.log(sums[:, 0])))
        gradient = inside.T @ (weights[:, None] * (targets - chance)) @ spread_over.T
        if not curved:
            return value, gradient.ravel(), None
        means = chance @ spread_over.T
        hessian = np.empty((n_columns, k - 1, n_columns, k - 1))
        for a in range(k - 1):
            for b in range(a + 1):
                each = weights * (chance @ (spread_over[a] * spread_over[b]) - means[:, a] * means[:, b])
                hessian[:, a, :, b] = hessian[:, b, :, a] = inside.T @ (inside * each[:, None])
        return value, gradient.ravel(), hessian.reshape(x.size, x.size)

    def mode(spread: float, start: FloatArray) -> Solution:
        def objective(x: FloatArray, curved: bool) -> tuple[float, FloatArray, Curvature | None]:
            value, gradient, hessian = likelihood(x, curved)
            lost = 0.5 * float(x @ x) / spread**2 - value
            bent = None if hessian is None else (hessian + np.eye(x.size) / spread**2) / total
            return lost / total, (x / spread**2 - gradient) / total, bent

        return minimise(objective, start)

    x, at = np.zeros(n_columns * (k - 1)), len(_SPREADS) // 2
    for _ in range(_ROUNDS):
        x = mode(float(_SPREADS[at]), x).x
        _, gradient, hessian = likelihood(x, True)
        if hessian is None:
            raise RuntimeError("the curvature is missing")
        chosen = _largest_evidence(hessian, hessian @ x + gradient)
        if chosen == at:
            break
        at = chosen
    return np.asarray(mode(float(_SPREADS[at]), x).x.reshape(n_columns, k - 1) @ spread_over)


def _largest_evidence(hessian: FloatArray, pull: FloatArray) -> int:
    """Index of the spread with the largest marginal likelihood, for a normal likelihood."""
    curved, directions = np.linalg.eigh(hessian)
    along = (directions.T @ pull) ** 2
    variance = _SPREADS[:, None] ** 2
    grown = 1 + variance * np.maximum(curved, 0.0)
    return int(np.argmax((variance * along / grown - np.log(grown)).sum(axis=1)))
