"""The literature's binned calibration errors by their usual names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ..data.verbs import InputOptions, verb
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
    notion: str | Notion = "auto",
    **inputs: Unpack[InputOptions],
) -> float:
    """Expected calibration error (ECE) over bins: ``Σ_j n_j/n · |mean outcome - mean score|``.

    The number that papers report under this name: by default 15 bins of equal width, of the positive class for a
    1-D ``y_prob`` and of the confidence for a 2-D one. Same as
    ``calibration_error(..., estimator=Binned(n_bins, strategy))``; see :class:`Binned` for bias and cost. Works with
    scikit-learn's
    ``make_scorer(expected_calibration_error, response_method="predict_proba", greater_is_better=False)``.

    Examples
    --------
    >>> import calibrant as cal
    >>> round(cal.expected_calibration_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], n_bins=2), 3)
    0.225
    """
    return calibration_error(
        y_true,
        y_prob,
        notion=notion,
        estimator=Binned(n_bins, strategy),
        **inputs,
    )


@verb(grouped=True)
def maximum_calibration_error(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_bins: int | str | Sequence[float] = 15,
    strategy: str = "uniform",
    notion: str | Notion = "auto",
    **inputs: Unpack[InputOptions],
) -> float:
    """Maximum calibration error (MCE) over bins: ``max_j |mean outcome - mean score|``, empty bins left out.

    Parameters as :func:`expected_calibration_error`. A single sample in a bin can decide it: with uniform bins its
    bias is large.

    Notes
    -----
    Cost O(n) for uniform bins, O(n log n) for quantile bins.

    Examples
    --------
    >>> import calibrant as cal
    >>> round(cal.maximum_calibration_error([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], n_bins=2), 3)
    0.25
    """
    return calibration_error(
        y_true,
        y_prob,
        notion=notion,
        estimator=Binned(n_bins, strategy),
        norm=float("inf"),
        **inputs,
    )
