"""`brier_score`, `log_loss`, and the mean of any proper score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from ..data.docs import document
from ..data.public_function import InputOptions, public_function
from ..data.types import FloatArray
from ..data.validation import as_predictions
from ..data.weights import mean, ones_or
from ..measure.scoring_rules import BetaFamily as BetaFamily
from ..measure.scoring_rules import Brier as Brier
from ..measure.scoring_rules import CostWeighted as CostWeighted
from ..measure.scoring_rules import Log as Log
from ..measure.scoring_rules import RankedProbability as RankedProbability
from ..measure.scoring_rules import ScoringRule as ScoringRule
from ..measure.scoring_rules import Spherical as Spherical
from ..measure.scoring_rules import score_rows


@document
def score_samples(
    y_true: Any,
    y_prob: Any = None,
    score: str | ScoringRule = "brier",
    *,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
    sum_tolerance: float | None = None,
    from_logits: bool = False,
) -> FloatArray:
    """Score of each observation.

    Parameters
    ----------
    score : {"brier", "log-loss", "spherical"} or ScoringRule, default "brier"
        ``"brier"``: ``(p - o)²`` for a 1-D ``y_prob``, ``Σ_k (p_k - o_k)²`` for a matrix.

    Returns
    -------
    ndarray of shape (n,)
        The score of each row; lower is better.

    See Also
    --------
    calibrant.scores.mean_score : Their weighted mean.
    calibrant.scores.ScoringRule : Base class for rules of your own.

    Notes
    -----
    Cost O(n K).

    Examples
    --------
    >>> from calibrant.scores import score_samples
    >>> score_samples([0, 1], [0.25, 0.5]).tolist()
    [0.0625, 0.25]
    """
    inputs: InputOptions = {
        "labels": labels,
        "pos_label": pos_label,
        "sum_tolerance": sum_tolerance,
        "from_logits": from_logits,
    }
    p = as_predictions(y_true, y_prob, **inputs)
    found = score_rows(p, score)
    if p.given is None:
        return found
    weights = ones_or(p.weights, p.n_samples)
    with np.errstate(invalid="ignore"):
        total = np.bincount(p.given, np.where(weights > 0, weights * found, 0.0))
        return np.asarray(total / np.bincount(p.given, weights))


@public_function(grouped=True)
def mean_score(
    y_true: Any,
    y_prob: Any = None,
    score: str | ScoringRule = "brier",
    **inputs: Unpack[InputOptions],
) -> float:
    """Weighted mean of a proper score.

    Parameters
    ----------
    score : {"brier", "log-loss", "spherical"} or ScoringRule, default "brier"
        ``"brier"``: ``(p - o)²`` for a 1-D ``y_prob``, ``Σ_k (p_k - o_k)²`` for a matrix.

    Returns
    -------
    float
        The mean; lower is better.

    See Also
    --------
    calibrant.scores.score_samples : The score of each row.
    calibrant.brier_score : The Brier score, on a scale of your choice.
    calibrant.decompose : The part of the mean that is due to miscalibration.

    Notes
    -----
    Cost O(n K).

    Examples
    --------
    >>> from calibrant.scores import mean_score
    >>> mean_score([0, 1], [0.25, 0.5])
    0.15625
    """
    p = as_predictions(y_true, y_prob, **inputs)
    return mean(score_rows(p, score), p.weights)


@public_function(grouped=True)
def brier_score(
    y_true: Any,
    y_prob: Any = None,
    *,
    scale: str = "sum",
    **inputs: Unpack[InputOptions],
) -> float:
    """Brier score: the mean of ``Σ_k (p_k - o_k)²``.

    Parameters
    ----------
    scale : {"sum", "half"}, default "sum"
        ``"sum"``: Brier's definition, range 0–2, for two classes twice ``(p - o)²``. ``"half"``: range 0–1, for two
        classes ``(p - o)²``.

    Returns
    -------
    float
        The mean over rows; 0 is perfect.

    See Also
    --------
    calibrant.log_loss : A score that is infinite if the observed class had probability 0.
    calibrant.scores.mean_score : The mean of any proper score.
    calibrant.decompose : The part of the score that is due to miscalibration.

    Notes
    -----
    Cost O(n K).

    References
    ----------
    Brier (1950), *Verification of forecasts expressed in terms of probability*.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.brier_score([0, 1], [0.25, 0.5], scale="half"), cal.brier_score([0, 1], [0.25, 0.5])
    (0.15625, 0.3125)
    """
    return mean_score(y_true, y_prob, Brier(scale), **inputs)


@public_function(grouped=True)
def ranked_probability_score(
    y_true: Any,
    y_prob: Any = None,
    *,
    scale: str = "sum",
    **inputs: Unpack[InputOptions],
) -> float:
    """Ranked probability score of ordered classes: the mean of ``Σ_{k<K} (P(Y ≤ k) - [y ≤ k])²``.

    Classes are ordered as the columns are: pass ``labels`` if their sorted order is different.

    Parameters
    ----------
    scale : {"sum", "mean"}, default "sum"
        ``"sum"``: range 0 to K - 1. ``"mean"``: divided by K - 1, range 0–1.

    Returns
    -------
    float
        The mean over rows; 0 is perfect.

    See Also
    --------
    calibrant.scores.RankedProbability : The rule, for other functions, such as :func:`calibrant.decompose`.
    calibrant.brier_score : A score that ignores the order.
    calibrant.notions.Ordinal : Calibration of the same cumulative probabilities.

    Notes
    -----
    Cost O(n K).

    References
    ----------
    Epstein (1969), *A scoring system for probability forecasts of ranked categories*; Murphy (1971), *A note on the
    ranked probability score*.

    Examples
    --------
    >>> from calibrant.scores import ranked_probability_score
    >>> P = [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]
    >>> round(ranked_probability_score([0, 2], P, labels=[0, 1, 2]), 3)
    0.195
    """
    return mean_score(y_true, y_prob, RankedProbability(scale), **inputs)


@public_function(grouped=True)
def log_loss(
    y_true: Any,
    y_prob: Any = None,
    **inputs: Unpack[InputOptions],
) -> float:
    """Mean negative log-probability of the observed class, in nats; infinite for a probability of 0, never clipped.

    Returns
    -------
    float
        The mean over rows, at least 0; 0 is perfect.

    See Also
    --------
    calibrant.brier_score : A bounded score.
    calibrant.scores.mean_score : The mean of any proper score.
    calibrant.decompose : The part of the score that is due to miscalibration.

    Notes
    -----
    Cost O(n).

    Examples
    --------
    >>> import calibrant as cal
    >>> round(cal.log_loss([0, 1], [0.25, 0.5]), 6), cal.log_loss([0, 1], [1.0, 0.5])
    (0.490415, inf)
    """
    return mean_score(y_true, y_prob, "log-loss", **inputs)
