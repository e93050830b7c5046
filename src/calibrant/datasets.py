"""Predictions to try things on: synthetic problems with known calibration error, and scikit-learn's own data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ._types import AnyArray, FloatArray, Label, RandomState

_MAPS = ("calibrated", "overconfident", "underconfident", "shifted", "wavy")


@dataclass(frozen=True, eq=False)
class Sample:
    """Labels and predictions; ``truth`` is the exact L1 calibration error, NaN where unknown."""

    y_true: AnyArray
    y_prob: FloatArray
    labels: tuple[Label, ...]
    truth: float
    description: str


def true_map(scores: FloatArray, kind: str) -> FloatArray:
    """``P(outcome | score)`` of :func:`make_scores`: logistic maps, a shift in logit space, or a sine."""
    from scipy.special import expit, logit

    if kind not in _MAPS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, _MAPS))}; got {kind!r}")
    if kind == "calibrated":
        return np.asarray(scores, dtype=np.float64)
    if kind == "wavy":
        return np.asarray(np.clip(scores + 0.1 * np.sin(3 * np.pi * scores) * 4 * scores * (1 - scores), 0, 1))
    slope, shift = {"overconfident": (0.5, 0.0), "underconfident": (2.0, 0.0), "shifted": (1.0, -0.7)}[kind]
    return np.asarray(expit(slope * logit(scores) + shift))


def make_scores(
    n_samples: int,
    kind: str = "overconfident",
    *,
    a: float = 1.0,
    b: float = 1.0,
    random_state: RandomState = None,
) -> Sample:
    r"""Binary predictions with Beta(a, b) scores and a known map to outcomes.

    .. math:: s \sim Beta(a, b), \quad o \sim Bernoulli(g(s)), \quad truth = E\,|g(s) - s|

    Parameters
    ----------
    n_samples : int
    kind : {"calibrated", "overconfident", "underconfident", "shifted", "wavy"}
        The map g; see :func:`true_map`.
    a, b : float
        Parameters of the Beta distribution of scores.
    random_state : int, Generator or None

    Returns
    -------
    Sample
        ``truth`` by quadrature, to about 1e-8.

    Examples
    --------
    >>> from calibrant.datasets import make_scores
    >>> round(make_scores(10, "overconfident", random_state=0).truth, 4)
    0.0966
    """
    rng = np.random.default_rng(random_state)
    scores = rng.beta(a, b, n_samples)
    outcomes = (rng.random(n_samples) < true_map(scores, kind)).astype(np.int64)
    return Sample(outcomes, scores, (0, 1), _truth(kind, a, b), f"{kind}, Beta({a:g}, {b:g}) scores")


@cache
def _truth(kind: str, a: float, b: float) -> float:
    """``E|g(s) - s|`` over the quantiles of s: midpoints of 2·10⁵ steps of equal probability."""
    from scipy.special import betaincinv

    grid = betaincinv(a, b, (np.arange(200_000) + 0.5) / 200_000)
    return float(np.abs(true_map(grid, kind) - grid).mean())


def load_breast_cancer_predictions(model: Any = None, *, random_state: int = 0) -> Sample:
    """Held-out predictions of a model (default: Gaussian naive Bayes) on scikit-learn's breast-cancer data.

    Half of the 569 rows train it; ``y_prob`` is the probability of ``"malignant"`` on the other half.
    """
    from sklearn.datasets import load_breast_cancer
    from sklearn.naive_bayes import GaussianNB

    data = load_breast_cancer()
    names = np.asarray(data.target_names)[data.target]
    y, classes, matrix, kind = _held_out(data.data, names, GaussianNB() if model is None else model, random_state)
    column = list(classes).index("malignant")
    return Sample(y, matrix[:, column], classes, float("nan"), f"{kind} on breast cancer")


def load_digits_predictions(model: Any = None, *, random_state: int = 0) -> Sample:
    """Held-out predictions of a model (default: Gaussian naive Bayes) on scikit-learn's digits, ten classes."""
    from sklearn.datasets import load_digits
    from sklearn.naive_bayes import GaussianNB

    data = load_digits()
    y, classes, matrix, kind = _held_out(data.data, data.target, GaussianNB() if model is None else model, random_state)
    return Sample(y, matrix, classes, float("nan"), f"{kind} on handwritten digits")


def _held_out(x: AnyArray, y: AnyArray, model: Any, seed: int) -> tuple[AnyArray, tuple[Label, ...], FloatArray, str]:
    from sklearn.model_selection import train_test_split

    train_x, test_x, train_y, test_y = train_test_split(x, y, test_size=0.5, stratify=y, random_state=seed)
    model.fit(train_x, train_y)
    return test_y, tuple(model.classes_.tolist()), model.predict_proba(test_x), type(model).__name__
