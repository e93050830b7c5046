"""The literature's binned calibration error by its usual name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ..data.public_function import InputOptions, verb
from ..estimators import Binned
from ..notions import Notion
from .estimation import calibration_error


@verb(grouped=True)
def expected_calibration_error(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_bins: int | str | Sequence[float] = 15,
    strategy: str = "uniform",
    norm: float = 1,
    notion: str | Notion = "auto",
    **inputs: Unpack[InputOptions],
) -> float:
    """Expected calibration error (ECE) over bins: ``Σ_j n_j/n · |mean outcome - mean score|``.

    The number that papers report under this name: by default 15 bins of equal width, of the positive class for a
    1-D ``y_prob`` and of the confidence for a 2-D one. Same as
    ``calibration_error(..., estimator=Binned(n_bins, strategy), norm=norm)``; see :class:`Binned` for bias and cost.
    Works with scikit-learn's
    ``make_scorer(expected_calibration_error, response_method="predict_proba", greater_is_better=False)``.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sample_weight
        See :func:`calibrant.as_predictions`.
    n_bins : int, "sqrt", "cbrt" or edges, default 15
    strategy : {"uniform", "quantile", "quantile-as-published"}, default "uniform"
        Bins of equal width, or of equal counts.
    norm : float ≥ 1, default 1
        ``2``: the root mean squared error (RMSCE). ``float("inf")``: the maximum (MCE), ``max_j |mean outcome - mean
        score|``, empty bins left out; a single sample in a bin can decide it, so its bias is large.
    notion : str or Notion, default "auto"

    Returns
    -------
    float
        In [0, 1].

    Notes
    -----
    Cost O(n) for uniform bins, O(n log n) for quantile bins.

    Examples
    --------
    >>> import calibrant as cal
    >>> round(cal.expected_calibration_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], n_bins=2), 3)
    0.225
    >>> round(cal.expected_calibration_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], n_bins=2, norm=float("inf")), 3)
    0.25
    """
    return calibration_error(
        y_true,
        y_prob,
        notion=notion,
        estimator=Binned(n_bins, strategy),
        norm=norm,
        **inputs,
    )
