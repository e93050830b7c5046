"""Expected calibration error over bins, and the squared calibration error without the bias of noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ..data.checks import is_auto
from ..data.problem import VectorProblem
from ..data.public_function import InputOptions, public_function
from ..data.validation import as_predictions
from ..estimators import Binned, Estimator
from ..estimators.norm import combine
from ..notions import Notion, as_notion
from .estimation import calibration_error, known
from .question import resolve_estimator

DEFAULT = Binned("sqrt", "quantile", debias="kumar")


@public_function(grouped=True)
def squared_calibration_error(
    y_true: Any,
    y_prob: Any = None,
    *,
    notion: str | Notion = "auto",
    estimator: str | Estimator = "auto",
    **inputs: Unpack[InputOptions],
) -> float:
    r"""Squared calibration error without the bias of noise: signed, not truncated at 0.

    .. math:: E\big[(P(o = 1 \mid s) - s)^2\big]

    as far as the estimator resolves it. A square root, or truncation at 0, would reintroduce this bias; averages over
    resamples, classes or models do not.

    Parameters
    ----------
    notion : str or Notion, default "auto"
        The notion of calibration, as in :func:`calibration_error`; the squares of classes are averaged.
    estimator : "auto" or Estimator, default "auto"
        ``"auto"``: ``Binned("sqrt", "quantile", debias="kumar")``: bins of equal counts avoid sparse bins, and a bin
        with one sample adds 0 rather than noise. Noise adds no bias here, so many bins are better than few: if scores
        are concentrated, 15 bins lose about half of the square (``benchmarks/coverage/squares.py``). For the canonical
        notion :class:`DirichletKernel` over residuals, in both orders: see there. Also with an unbiased square:
        ``Binned`` with any ``debias``, ``CrossFit``, and ``DirichletKernel`` with ``"cross"`` or ``"square"``.

    Returns
    -------
    float
        In [-1, 1]; for a calibrated model 0 on average or slightly below, and negative in about half of all samples.

    Raises
    ------
    ValueError
        For an estimator without an unbiased square (the message names those with one), and for invalid input.

    See Also
    --------
    calibrant.calibration_error : The error itself, with any estimator and norm.
    calibrant.compare_models : Differences of squared errors between models, with intervals.

    Notes
    -----
    The estimate is unbiased for the squared error of the bins, ``Σ P(bin) E[o - s | bin]²``, which is at most the
    squared error, if the scores within a bin are equal. Otherwise it is slightly too low: for a calibrated model its
    average is minus the mean of ``Var(s) / n_j`` over rows, with the variance of the scores in a bin (see
    :class:`Binned`). :class:`CrossFit` underestimates in expectation. The cost is that of the estimator.

    References
    ----------
    Bröcker (2012); Ferro & Fricker (2012); Kumar, Liang & Ma (2019).

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(3)
    >>> p = rng.random(2000)
    >>> calibrated = rng.random(2000) < p
    >>> bool(abs(cal.squared_calibration_error(calibrated, p)) < 0.002)
    True
    >>> y = rng.random(2000) < p**2  # true error: ∫(p² - p)² dp = 1/30
    >>> bool(abs(cal.squared_calibration_error(y, p) - 1 / 30) < 0.01)
    True
    """
    predictions = as_predictions(y_true, y_prob, **inputs)
    named = as_notion(notion, predictions)
    reduction = named.reduce(predictions)
    if isinstance(reduction, VectorProblem):
        reader = resolve_estimator(estimator, reduction, named.name, 2)
        return known(reader._square(reduction), reader, predictions.n_samples, named.name)
    chosen = DEFAULT if is_auto(estimator) else resolve_estimator(estimator, reduction, named.name, 2)
    squares = [chosen._square(problem) for problem in reduction]
    # The squares are the errors to be averaged here: norm 1 takes no root, and so cuts nothing.
    square = combine(squares, reduction.shares, 1, reduction.average)
    return known(square, chosen, predictions.n_samples, named.name)


@public_function(grouped=True)
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

    As reported in papers: by default 15 bins of equal width, for the positive class if ``y_prob`` is 1-D, and
    for the confidence if it is 2-D. Equivalent to
    ``calibration_error(..., estimator=Binned(n_bins, strategy), norm=norm)``; see :class:`Binned` for bias and cost.
    Works with scikit-learn's
    ``make_scorer(expected_calibration_error, response_method="predict_proba", greater_is_better=False)``.

    Parameters
    ----------
    n_bins : int, "sqrt", "cbrt" or edges, default 15
        Number of bins, rule for it (the square or cube root of n), or bin edges.
    strategy : {"uniform", "quantile", "quantile-as-published"}, default "uniform"
        Bins of equal width, or of equal counts.
    norm : float ≥ 1, default 1
        ``2``: the root mean squared error (RMSCE). ``float("inf")``: the maximum (MCE), ``max_j |mean outcome - mean
        score|`` over non-empty bins; a single sample in a bin can determine it, so its bias is large.
    notion : {"auto", "class-specific", "classwise", "confidence", "top-label"} or Notion, default "auto"
        The notion of calibration. ``"auto"``: the positive class for a 1-D ``y_prob``, otherwise the confidence.

    Returns
    -------
    float
        In [0, 1].

    See Also
    --------
    calibrant.calibration_error : The same with any estimator; the default needs no bins.
    calibrant.estimate : With an interval.
    calibrant.squared_calibration_error : The squared error without the bias of noise.

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
