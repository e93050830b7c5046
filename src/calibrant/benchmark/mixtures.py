"""Classes that are mixtures of normal distributions, with known posterior, and the models trained on them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import numpy as np

from ..data.types import AnyArray, FloatArray, IntArray

Predict = Callable[[FloatArray], FloatArray]

#: Number of modes per class.
MODES_A_CLASS = 4
#: Fewest points of each class in a training set: the support vector machine is calibrated in five folds.
FEWEST = 5
# Rows whose posterior is computed at a time: C · modes · D numbers per row stay in the cache.
_TILE = 1 << 10


@dataclass(frozen=True, eq=False)
class ClassMixture:
    r"""C equally likely classes, each an equal-weight mixture of ``modes`` normal distributions in D dimensions.

    .. math:: x \mid c \sim \frac{1}{m} \sum_{j=1}^m N(\mu_{cj}, A_{cj}^T A_{cj})

    Parameters
    ----------
    means : ndarray of shape (C, modes, D)
    factors : ndarray of shape (C, modes, D, D)
        Square roots A of the covariances ``AᵀA``.

    References
    ----------
    Posocco & Bonnefoy (2021), §5.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.benchmark.mixtures import ClassMixture
    >>> mixture = ClassMixture.draw(3, 2, np.random.default_rng(0))
    >>> X, y = mixture.sample(5, np.random.default_rng(1))
    >>> mixture.posterior(X).sum(axis=1).round(12)
    array([1., 1., 1., 1., 1.])
    """

    means: FloatArray
    factors: FloatArray

    @classmethod
    def draw(cls, classes: int, dimensions: int, rng: np.random.Generator, *, low: float = 0.0) -> ClassMixture:
        """Draw a mixture with means uniform on [low, 1] and entries of A uniform on [-0.3, 0.3]."""
        shape = (classes, MODES_A_CLASS, dimensions)
        return cls(rng.uniform(low, 1.0, shape), rng.uniform(-0.3, 0.3, (*shape, dimensions)))

    @property
    def n_classes(self) -> int:
        """Number of classes C."""
        return int(self.means.shape[0])

    def sample(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        """Draw n points, shape (n, D), and their classes, shape (n,) of dtype uint8."""
        classes, modes, dimensions = self.means.shape
        component = rng.integers(classes * modes, size=n, dtype=np.uint16)
        X: FloatArray = rng.standard_normal((n, dimensions))
        order = np.argsort(component, kind="stable")
        ends = np.searchsorted(component[order], np.arange(classes * modes + 1))
        means = self.means.reshape(-1, dimensions)
        factors = self.factors.reshape(-1, dimensions, dimensions)
        for k, (a, b) in enumerate(pairwise(ends)):
            rows = order[a:b]
            X[rows] = means[k] + X[rows] @ factors[k]
        return X, (component // modes).astype(np.uint8)

    @cached_property
    def _whitening(self) -> tuple[AnyArray, AnyArray, AnyArray]:
        """Stacked ``A⁻¹`` of all components, (D·modes·C, D), whitened means, and ``log |det A|``."""
        dimensions = self.means.shape[2]
        inverse = np.linalg.inv(self.factors)
        centre = np.einsum("cmd,cmde->cme", self.means, inverse)
        # Rows in the order of dimension, mode, class: sums over the first two add whole rows of numbers.
        below = np.ascontiguousarray(inverse.transpose(3, 1, 0, 2).reshape(-1, dimensions))
        log_det = np.linalg.slogdet(self.factors)[1].T
        return below, centre.transpose(2, 1, 0).reshape(-1, 1), log_det.reshape(-1, 1)

    def posterior(self, X: FloatArray) -> FloatArray:
        """``P(class | x)`` of every row, shape (n, C), by log-sum-exp over components; O(n C modes D²)."""
        classes, modes, dimensions = self.means.shape
        inverse, centre, log_det = self._whitening
        out = np.empty((len(X), classes))
        for a in range(0, len(X), _TILE):
            white = inverse @ X[a : a + _TILE].T
            white -= centre
            white *= white
            log = white.reshape(dimensions, modes * classes, -1).sum(axis=0)
            log *= -0.5
            log -= log_det
            log -= log.max(axis=0)
            density = np.exp(log, out=log).reshape(modes, classes, -1).sum(axis=0)
            np.divide(density, density.sum(axis=0), out=out[a : a + _TILE].T)
        return out


def training_set(mixture: ClassMixture, n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Draw n points of the mixture, repeatedly until every class has five (at n = 300, practically at once)."""
    while True:
        X, y = mixture.sample(n, rng)
        if np.bincount(y, minlength=mixture.n_classes).min() >= FEWEST:
            return X, y


def train(model: str, X: FloatArray, y: IntArray, random_state: int) -> Predict:
    """Train a model and return its function ``X -> probabilities`` of shape (n, C), float64.

    The probabilities of ``SVC`` come from ``CalibratedClassifierCV(SVC(), ensemble=False)``, which replaces the
    deprecated ``SVC(probability=True)``.
    """
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.svm import SVC

    build: dict[str, Callable[[], Any]] = {
        "logistic": lambda: LogisticRegression(random_state=random_state),
        "bayes": GaussianNB,
        "svc": lambda: CalibratedClassifierCV(SVC(random_state=random_state), ensemble=False),
        "forest": lambda: RandomForestClassifier(random_state=random_state, n_jobs=1),
    }
    with warnings.catch_warnings():
        # The library's defaults are measured, 100 iterations of logistic regression included.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = build[model]().fit(X, y)
    return cast(Predict, fitted.predict_proba)
