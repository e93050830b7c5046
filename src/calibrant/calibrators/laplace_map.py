"""Maps whose log odds are linear in fitted coefficients, with what the rows leave open about them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..data.checks import check_level
from ..data.types import FloatArray
from ..sums.logistic_fit import expit
from .base import EPS, BinaryCalibrator, check_eps, parameter
from .inputs import CalibrationSample, Scores, read_scores
from .prior import check_shrinkage, effective_rows
from .saved_state import Later, Numbers

#: Information that is none, and what is added to correlations: where rows say nothing the interval is all of [0, 1].
_NOTHING, _ROUNDING = 1e-100, 1e-12


def covariance_field(size: str) -> Later:
    """What ``covariance_`` is."""
    return Later(Numbers((size, size)))


@dataclass(eq=False, repr=False)
class LaplaceMap(BinaryCalibrator):
    r"""A map ``σ(v · β)`` with v the columns of a score, and a normal posterior of β around the fit.

    Subclasses define ``_design(scores)``, the columns (n, p), and ``_coefficients()``, (p,).
    """

    _: KW_ONLY
    shrinkage: float | str = parameter("auto", check_shrinkage)
    eps: float = parameter(EPS, check_eps)

    @abstractmethod
    def _design(self, scores: Scores) -> FloatArray:
        """Columns that the coefficients multiply."""

    @abstractmethod
    def _coefficients(self) -> FloatArray:
        """Coefficients of the columns."""

    def _measure(
        self,
        sample: CalibrationSample,
        *,
        free: FloatArray | None = None,
        penalty: FloatArray | float = 0.0,
        shrinkage: float | str | None = None,
    ) -> None:
        """Set ``covariance_``; of coefficients that are combinations ``free @ θ``, and with a normal prior's precision.

        The rows of the weak prior (``shrinkage``, by default the calibrator's) count among the others, and relative
        weights as their effective number.
        """
        columns, w = self._design(sample.scores), sample.weights
        p = expit(columns @ self._coefficients())
        rows = effective_rows(self.shrinkage if shrinkage is None else shrinkage, sample)
        mass = rows * (w / w.sum()) * p * (1 - p)
        precision = (columns * mass[:, None]).T @ columns + penalty
        if free is None:
            free = np.eye(len(precision))
        inner = free.T @ precision @ free + _NOTHING * np.eye(free.shape[1])
        scale = np.sqrt(np.diag(inner))
        inverse = np.linalg.inv(inner / np.outer(scale, scale) + _ROUNDING * np.eye(len(scale))) / np.outer(
            scale, scale
        )
        self.covariance_ = np.asarray(free @ inverse @ free.T)

    @available_if(lambda self: getattr(self, "covariance_", True) is not None)  # type: ignore[untyped-decorator]  # scikit-learn's
    def predict_interval(self, scores: Any, level: float = 0.95) -> FloatArray:
        """Ends of the map's central interval at each row, (n, 2): probabilities of the second class.

        The posterior of the coefficients is taken as normal around the fit, with the information of the rows there
        (Laplace's approximation): it says what the rows leave open among maps of this family, and nothing about a truth
        outside it (``benchmarks/coverage/map_intervals.md``). Not there for calibrators that earlier versions saved.
        """
        check_is_fitted(self)
        width = float(ndtri(0.5 + check_level(level) / 2))
        columns = self._design(read_scores(self, scores, self.input))
        middle = columns @ self._coefficients()
        variance = np.einsum("ij,jk,ik->i", columns, np.asarray(self.covariance_), columns)
        half = width * np.sqrt(np.maximum(variance, 0.0))
        return expit(np.column_stack([middle - half, middle + half]))
