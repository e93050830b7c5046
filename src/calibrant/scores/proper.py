"""`brier_score`, `log_loss`, and the mean of any proper score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ..data.public_function import InputOptions, public_function
from ..data.types import FloatArray
from ..data.validation import as_predictions
from ..data.weights import mean
from ..measure.scoring_rules import BetaFamily as BetaFamily
from ..measure.scoring_rules import Brier as Brier
from ..measure.scoring_rules import CostWeighted as CostWeighted
from ..measure.scoring_rules import Log as Log
from ..measure.scoring_rules import ScoringRule as ScoringRule
from ..measure.scoring_rules import Spherical as Spherical
from ..measure.scoring_rules import score_rows


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
    """Score of each observation, (n,).

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sum_tolerance, from_logits
        See :func:`calibrant.as_predictions`.
    score : {"brier", "log-loss", "spherical"} or ScoringRule, default "brier"
        ``"brier"``: ``(p - o)²`` of a 1-D ``y_prob``, ``Σ_k (p_k - o_k)²`` of a matrix.

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
    return score_rows(as_predictions(y_true, y_prob, **inputs), score)


@public_function(grouped=True)
def mean_score(
    y_true: Any,
    y_prob: Any = None,
    score: str | ScoringRule = "brier",
    **inputs: Unpack[InputOptions],
) -> float:
    """Weighted mean of :func:`score_samples`; parameters as there. Cost O(n K)."""
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
    y_true, y_prob, labels, pos_label, sample_weight
        See :func:`calibrant.as_predictions`.
    scale : {"sum", "half"}, default "sum"
        ``"sum"``: Brier's own, range 0–2, of two classes twice ``(p - o)²``. ``"half"``: range 0–1, of two classes
        ``(p - o)²``.

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
def log_loss(
    y_true: Any,
    y_prob: Any = None,
    **inputs: Unpack[InputOptions],
) -> float:
    """Mean negative log-probability of the observed class, in nats; infinite where it was 0, never clipped.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sample_weight
        See :func:`calibrant.as_predictions`.

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
