"""Calibrators fitted to sums of scores: incrementally, by addition of parts, and with decaying weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_n_features, check_is_fitted

from ..data.checks import called, check_number
from ..data.progress import working
from ..data.types import FloatArray, IntArray
from ..data.validation import read_scores
from ..data.weights import run_starts
from .base import Calibrator
from .inputs import NAMES, CalibrationSample, Scores, read_sample

#: Maximum number of distinct scores; above it, scores are summed in cells.
MOST = 10_000
#: Cells of probabilities, a multiple of all usual numbers of bins, and cells per unit of log odds near 0.
_UNIFORM, _PER_UNIT = 5040, 256
#: Distance from the edge of a cell that counts as rounding error.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class ScoreSums:
    """Distinct scores, or means of cells of adjacent scores, with the weight of each of two classes, (m, 2)."""

    scores: FloatArray
    weights: FloatArray
    kind: str
    squares: float
    whole: bool
    coarse: bool = False

    @classmethod
    def of(cls, sample: CalibrationSample) -> ScoreSums:
        """Sums of rows."""
        weights = sample.weights[:, None] * np.eye(2)[sample.codes]
        whole = bool((sample.weights == np.round(sample.weights)).all())
        scores = sample.scores
        squares = float(sample.weights @ sample.weights)
        return cls(scores.of_positive(), weights, scores.kind, squares, whole)._gathered()

    def __add__(self, other: ScoreSums) -> ScoreSums:
        return ScoreSums(
            np.concatenate([self.scores, other.scores]),
            np.concatenate([self.weights, other.weights]),
            self.kind,
            self.squares + other.squares,
            self.whole and other.whole,
            self.coarse or other.coarse,
        )._gathered()

    def faded(self, decay: float) -> ScoreSums:
        """The same rows, with weights multiplied by ``decay``."""
        if decay == 1:
            return self
        return replace(self, weights=decay * self.weights, squares=decay**2 * self.squares, whole=False)

    def sample(self, classes: tuple[Any, ...]) -> CalibrationSample:
        """Representative rows: one for each class and score."""
        at, codes = np.nonzero(self.weights)
        weights = self.weights[at, codes]
        total = float(weights.sum())
        rows = total if self.whole else total**2 / self.squares
        return CalibrationSample(Scores(self.scores[at], self.kind), codes, weights, classes, n_rows=rows)

    def _gathered(self) -> ScoreSums:
        """Merge equal scores, or all scores of a cell if there are many."""
        order = np.argsort(self.scores, kind="stable")
        out = replace(self, scores=self.scores[order], weights=self.weights[order])
        out = out._summed(run_starts(out.scores))
        if out.coarse or len(out.scores) > MOST:
            cell = _cells(out.scores, out.kind)
            out = replace(out._summed(run_starts(cell)), coarse=True)
        return out

    def _summed(self, start: IntArray) -> ScoreSums:
        if len(start) == len(self.scores):
            return self
        weights = np.add.reduceat(self.weights, start)
        own = self.weights.sum(axis=1)
        # Differences from the first of a cell: equal scores keep every digit.
        first = np.repeat(self.scores[start], np.diff(np.append(start, len(own))))
        moved = np.add.reduceat(own * (self.scores - first), start) / np.maximum(weights.sum(axis=1), 1e-300)
        return replace(self, scores=self.scores[start] + moved, weights=weights)


def _cells(s: FloatArray, kind: str) -> FloatArray:
    """A number for each cell, increasing: the common refinement of equal widths of probability and of log odds."""
    p, z = s, s
    with np.errstate(divide="ignore", over="ignore"):
        if kind == "probability":
            z = np.log(s) - np.log1p(-s)
        else:
            p = 1 / (1 + np.exp(-s))
    uniform = np.ceil(p * _UNIFORM - _ROUNDING)
    return np.asarray(uniform + np.floor(np.arcsinh(np.clip(z, -1e300, 1e300)) * _PER_UNIT))


class Streamed(Calibrator):
    """A calibrator that can be fitted incrementally, from sums of its scores."""

    _sums: Any

    def partial_fit(
        self, scores: Any, y: Any, classes: Any = None, sample_weight: Any = None, *, decay: float = 1.0
    ) -> Self:
        """Fit the map incrementally: to these rows and all earlier ones.

        Without decay, the map depends neither on the batches nor on their order. With two classes and up to 10,000
        distinct scores it equals that of a single ``fit``; with more, scores are represented by the means of about
        7,000 cells. With more classes (temperature scaling), the log-loss is interpolated between 102 temperatures, and
        the temperature is accurate to about 1e-5 (relative). Calibrators that were fitted in this way to different rows
        can be added: ``a + b``. The sums are not part of a saved calibrator.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, K)
            Scores of rows that the classifier was not trained on, of the kind given by ``input``.
        y : array-like of shape (n,)
            Labels.
        classes : sequence of K labels, optional
            The labels, needed if the first batch may lack one; in place of ``labels``.
        sample_weight : array-like of shape (n,), optional
            Non-negative weights; whole numbers stand for repeated rows.
        decay : float in (0, 1], default 1
            Factor of the weights of all earlier rows.

        Returns
        -------
        Self
            The calibrator.
        """
        check_number("decay", decay, above=0, most=1)
        self._check_parameters()
        before = getattr(self, "_sums", None)
        if before is None and hasattr(self, "classes_"):
            raise ValueError("fit kept no sums to add to: begin with partial_fit, or clone the calibrator")
        labels = self.labels if classes is None else list(classes)
        owner = clone(self).set_params(labels=labels if before is None else self.classes_.tolist())
        with working(f"{type(self).__name__}.partial_fit"):
            if before is not None:
                with called(**NAMES):
                    values = read_scores(scores)[0]
                _check_n_features(self, values.reshape(len(values), -1), reset=False)
            sample = read_sample(owner, scores, y, sample_weight)
            self._check(sample)
            for name in ("n_features_in_", "feature_names_in_", "order_"):
                if hasattr(owner, name):
                    setattr(self, name, getattr(owner, name))
            sums = self._sums_of(sample)
            self._fit_sums(sums if before is None else before.faded(decay) + sums, sample.classes)
        return self

    def __add__(self, other: Any) -> Self:
        """The calibrator fitted to the rows of both."""
        check_is_fitted(self)
        if type(other) is not type(self):
            return NotImplemented
        check_is_fitted(other)
        same = other.get_params() == self.get_params() and np.array_equal(self.classes_, other.classes_)
        if not same or self.n_features_in_ != other.n_features_in_:
            raise ValueError("only calibrators with the same parameters, classes and number of columns can be added")
        mine, others = (getattr(one, "_sums", None) for one in (self, other))
        if mine is None or others is None:
            raise ValueError("only calibrators fitted by partial_fit can be added; fit keeps no sums")
        out: Self = clone(self)
        out.n_features_in_, out.order_ = self.n_features_in_, self.order_
        out._fit_sums(mine + others, tuple(self.classes_.tolist()))
        return out

    def _sums_of(self, sample: CalibrationSample) -> Any:
        """Sums of rows, which can be added, decayed and fitted."""
        return ScoreSums.of(sample)

    def _fit_sums(self, sums: Any, classes: tuple[Any, ...]) -> None:
        """Fit the map to sums, and keep them."""
        self._fit_checked(sums.sample(classes))
        self._sums = sums

    def _fit_checked(self, sample: CalibrationSample, **more: Any) -> Self:
        self._sums = None
        return super()._fit_checked(sample, **more)
