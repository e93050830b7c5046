"""The four models of the experiment, trained with the library's defaults, and fast forms of their predictions.

Predicting two million rows is most of the experiment's time. A support vector machine is therefore read as matrix
products, and a forest by rows in the order of a space-filling curve; both are compared with scikit-learn's own
prediction each time a model is trained.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..data.types import AnyArray, FloatArray, IntArray
from .mixtures import ClassMixture

Predict = Callable[[FloatArray], FloatArray]

#: Largest difference allowed between a fast prediction and scikit-learn's.
TOLERANCE = 1e-9
#: Fewest points of each class in a training set: the support vector machine is calibrated in five folds.
FEWEST = 5
_CHECKED_ROWS = 512
_TILE = 1 << 9


def training_set(mixture: ClassMixture, n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Draw n points of the mixture, again until every class has five of them (at n = 300, practically at once)."""
    while True:
        X, y = mixture.sample(n, rng)
        if np.bincount(y, minlength=mixture.n_classes).min() >= FEWEST:
            return X, y


def train(model: str, X: FloatArray, y: IntArray, random_state: int) -> Predict:
    """Train a model; returns its ``X -> probabilities`` of shape (n, C), float64.

    ``SVC`` gives probabilities through ``CalibratedClassifierCV(SVC(), ensemble=False)``, which replaces the
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
        # The library's defaults are what is measured, 100 iterations of logistic regression included.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = build[model]().fit(X, y)
    own: Predict = fitted.predict_proba
    faster: dict[str, Callable[[Any, FloatArray], Predict]] = {"svc": fast_svc, "forest": fast_forest}
    if model not in faster:
        return own
    fast = faster[model](fitted, X)
    _compare(model, fast, own, X)
    return fast


def _compare(model: str, fast: Predict, own: Predict, X: FloatArray) -> None:
    """Refuse a fast prediction that is not scikit-learn's, as another version of it might make it."""
    some = np.concatenate([X, X[::-1] * 1.01 + 0.003])[:_CHECKED_ROWS]
    apart = float(np.abs(fast(some) - own(some)).max())
    if not apart <= TOLERANCE:
        import sklearn

        raise RuntimeError(
            f"the fast prediction of {model!r} differs by {apart:.2g} from that of scikit-learn {sklearn.__version__}; "
            f"at most {TOLERANCE:g} is allowed"
        )


def fast_svc(fitted: Any, X: FloatArray) -> Predict:
    """Platt-scaled support vector machine: one matrix of kernels and one of coefficients for all pairs of classes."""
    from scipy.special import expit

    calibrated = fitted.calibrated_classifiers_[0]
    svc = calibrated.estimator
    gamma = 1.0 / (X.shape[1] * X.var())  # gamma="scale"
    vectors = np.ascontiguousarray(svc.support_vectors_.T)
    scaled = 2 * gamma * vectors
    offset = gamma * (vectors**2).sum(axis=0)
    coefficients = _pair_coefficients(svc)
    slope = np.array([c.a_ for c in calibrated.calibrators])
    shift = np.array([c.b_ for c in calibrated.calibrators])

    def decision(x: FloatArray) -> FloatArray:
        kernel = x @ scaled
        kernel -= offset
        kernel -= gamma * (x * x).sum(axis=1, keepdims=True)
        np.exp(kernel, out=kernel)
        return np.asarray(kernel @ coefficients + svc.intercept_)

    def predict(x: FloatArray) -> FloatArray:
        n_classes = len(svc.classes_)
        out: FloatArray = np.empty((len(x), n_classes))
        for a in range(0, len(x), _TILE):
            value = decision(x[a : a + _TILE])
            probability = expit(-(slope * (value if n_classes == 2 else _one_vs_rest(value, n_classes)) + shift))
            if n_classes == 2:
                out[a : a + _TILE, 1] = probability[:, 0]
                continue
            total = probability.sum(axis=1, keepdims=True)
            even = np.full_like(probability, 1 / n_classes)
            out[a : a + _TILE] = np.divide(probability, total, out=even, where=total != 0)
        if n_classes == 2:
            np.subtract(1, out[:, 1], out=out[:, 0])
        return out

    return predict


def _pair_coefficients(svc: Any) -> AnyArray:
    """Coefficient of every support vector in the decision between every pair of classes, shape (vectors, pairs)."""
    n_classes = len(svc.classes_)
    if n_classes == 2:
        return np.asarray(svc.dual_coef_.T)
    ends = np.concatenate([[0], np.cumsum(svc.n_support_)])
    columns = []
    for i in range(n_classes):
        for j in range(i + 1, n_classes):
            column = np.zeros(ends[-1])
            column[ends[i] : ends[i + 1]] = svc.dual_coef_[j - 1, ends[i] : ends[i + 1]]
            column[ends[j] : ends[j + 1]] = svc.dual_coef_[i, ends[j] : ends[j + 1]]
            columns.append(column)
    return np.stack(columns, axis=1)


def _one_vs_rest(decision: FloatArray, n_classes: int) -> FloatArray:
    """Votes of the pairs and, within (-1/3, 1/3), how confident they are: scikit-learn's one-vs-rest decision."""
    votes = np.zeros((len(decision), n_classes))
    confidence = np.zeros((len(decision), n_classes))
    k = 0
    for i in range(n_classes):
        for j in range(i + 1, n_classes):
            confidence[:, i] += decision[:, k]
            confidence[:, j] -= decision[:, k]
            first = decision[:, k] >= 0  # a tie goes to the first class
            votes[:, i] += first
            votes[:, j] += ~first
            k += 1
    return np.asarray(votes + confidence / (3 * (np.abs(confidence) + 1)))


def fast_forest(fitted: Any, X: FloatArray) -> Predict:
    """Forest of pure leaves: leaves hold a vote as one byte of an integer, so that votes add up in one sum.

    Rows are walked in the order of a space-filling curve: neighbours take the same branches, which the processor then
    predicts.
    """
    trees = [tree.tree_ for tree in fitted.estimators_]
    n_classes = len(fitted.classes_)
    shares = [tree.value[:, 0, :] for tree in trees]
    leaves = [tree.children_left == -1 for tree in trees]
    pure = all((share[leaf].max(axis=1) == 1).all() for share, leaf in zip(shares, leaves, strict=True))
    if not pure or n_classes > 8 or len(trees) > 255:
        own: Predict = fitted.predict_proba
        return own
    votes = [np.left_shift(np.uint64(1), (8 * share.argmax(axis=1)).astype(np.uint64)) for share in shares]

    def predict(x: FloatArray) -> FloatArray:
        order = curve_order(x)
        walked = np.ascontiguousarray(x[order], dtype=np.float32)
        total = np.zeros(len(x), dtype="<u8")
        for tree, vote in zip(trees, votes, strict=True):
            total += vote[tree.apply(walked)]
        counts = np.empty((len(x), n_classes))
        counts[order] = total.view(np.uint8).reshape(-1, 8)[:, :n_classes]
        return counts / len(trees)

    return predict


def curve_order(X: FloatArray) -> IntArray:
    """Order of rows along a Z-shaped space-filling curve (Morton's), at up to 8 bits a dimension."""
    bits = min(8, 62 // X.shape[1])
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    cell = np.minimum((X - low) / width * 2**bits, 2**bits - 1).astype(np.uint64)
    key = np.zeros(len(X), dtype=np.uint64)
    for bit in range(bits - 1, -1, -1):
        for d in range(X.shape[1]):
            key <<= np.uint64(1)
            key |= (cell[:, d] >> np.uint64(bit)) & np.uint64(1)
    return np.argsort(key, kind="stable")
