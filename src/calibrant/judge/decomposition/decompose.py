"""`decompose`: what of a proper score is miscalibration, what discrimination, what nobody could know."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from ...data.checks import check_choice, check_int, check_level, check_resamples
from ...data.predictions import Predictions
from ...data.types import AnyArray, FloatArray, RandomState
from ...data.validation import as_predictions
from ...data.verbs import Reading, verb
from ...data.weights import ones_or
from ...errors import Binned
from ...measure.scores import Brier, ScoringRule, as_rule, matrix_of, score_named
from .observed import observer_of
from .resampled_parts import Rows, resampled_intervals
from .result import Decomposition

METHODS = ("corp", "binned", "exact")


@verb()
def decompose(
    y_true: Any,
    y_prob: Any = None,
    *,
    score: str | ScoringRule = "brier",
    method: str = "corp",
    calibrator: Any = None,
    posterior: Any = None,
    features: Any = None,
    cv: int = 5,
    n_bins: int | str = 10,
    strategy: str = "uniform",
    n_resamples: int = 0,
    level: float = 0.95,
    random_state: RandomState = 0,
    **reading: Unpack[Reading],
) -> Decomposition:
    r"""Decompose a mean proper score into calibration and refinement.

    .. math:: E\,\ell(S, Y) = \underbrace{E\,d(S, C)}_{calibration} + \underbrace{E\,e(C)}_{refinement},
              \qquad e(C) = \underbrace{d(C, Q)}_{grouping} + \underbrace{e(Q)}_{irreducible}

    where C are class frequencies given S, and Q the true posterior.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sample_weight
        See :func:`calibrant.as_predictions`.
    score : {"brier", "log-loss", "spherical"} or a scoring rule of :mod:`calibrant.scores`, default "brier"
        ``"brier"``: ``(p - o)²`` of a 1-D ``y_prob``, ``Σ_k (p_k - o_k)²`` of a matrix.
    method : {"corp", "binned", "exact"}, default "corp"
        How C is found. ``"corp"``: by isotonic regression (Dimitriadis, Gneiting & Jordan 2021), without a choice of
        bins; of two classes for any score, of more for Brier's, class by class. ``"binned"``: frequencies of bins of
        the score (Murphy 1973), likewise. ``"exact"``: frequencies of rows with equal probability vectors, for scores
        that take few values; any score, any number of classes.
    calibrator : str or calibrator of :mod:`calibrant.calibrators`, optional
        In place of ``method``: C is what the calibrator makes of S on rows that it was not fitted to, by
        cross-validation. Any score, any number of classes. Names are those of
        :func:`calibrant.calibrators.named_calibrator`.
    posterior : array-like of the shape of ``y_prob``, optional
        True class probabilities Q of each row, where they are known.
    features : array-like or data frame of shape (n, d), or array-like of n region codes, optional
        Where Q is not known: what the model may have missed, for a lower bound of the grouping loss. Columns are
        numbers, which may be missing, or categories; a second model's scores may be among them. 1-D: the region of each
        row, by whole numbers or names. For Brier's score and the log-loss.
    cv : int ≥ 2, default 5
        Folds of ``calibrator`` and ``features``, stratified; fewer where a class has fewer rows, but two. A row is
        in one fold, whatever its weight.
    n_bins, strategy
        Of ``"binned"``: a number, ``"sqrt"`` or ``"cbrt"``, of equal width ("uniform") or equal mass ("quantile").
    n_resamples : int, default 0
        Bootstrap resamples of rows for ``intervals``: reflected about the estimate (the basic bootstrap), which
        corrects the bias of C's noise; percentiles for ``total``, and the wider of both for ``uncertainty``. The
        calibration's starts at 0 unless the estimate exceeds all but a share ``1 - level`` of those of labels drawn
        from the stated probabilities, as many draws again.
    level : float, default 0.95
    random_state : int, Generator or None

    Returns
    -------
    Decomposition
        The identities hold to rounding, on the sample: parts are means of realised scores.

    Raises
    ------
    ValueError
        For a score of two classes with more; for more than two classes with ``"corp"`` or ``"binned"`` and a score
        that is no sum over classes.

    Notes
    -----
    Calibration is biased upwards by the noise in C (of CORP by about ``log n / n``), refinement downwards.
    Intervals of CORP and of bins at 95 % hold the truth in 87 to 100 % of samples of 200 and 1000 rows, calibrated or
    not (``benchmarks/coverage/decomposition_coverage.py``); of many small exact groups they can lie beside the
    estimate, whose
    noise they take off. Infinite scores are reported: a total of ∞ is a calibration of ∞. Cost
    O(n log n) a class, and as much a resample
    without the sorting.

    References
    ----------
    Murphy (1973), *A new vector partition of the probability score*; Bröcker (2009), *Reliability, sufficiency, and the
    decomposition of proper scores*; Kull & Flach (2015), *Novel decompositions of proper scoring rules*; Silva Filho et
    al. (2023), §3.2.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> d = cal.decompose(rng.random(20_000) < p**2, p)  # the truth: 1/30, and E p² (1 - p²) = 2/15
    >>> bool(abs(d.calibration - 1 / 30) < 0.003 and abs(d.refinement - 2 / 15) < 0.003)
    True
    """
    check_choice("method", method, METHODS)
    p = as_predictions(y_true, y_prob, **reading)
    score = score_named(score)
    rule = as_rule(score, one_column=p.positive is not None)
    n_resamples, level, cv = check_resamples(n_resamples, 0), check_level(level), check_int("cv", cv, 2)
    Binned(n_bins, strategy)  # judges both
    true = None if posterior is None else _posterior(posterior, p)
    if true is not None and features is not None:
        raise ValueError("posterior says what features only hint at: features must not be given with it")
    if calibrator is not None and (method != "corp" or n_resamples):
        raise ValueError(
            "calibrator takes the place of method and n_resamples, which must not be given with it; got "
            f"method={method!r}, n_resamples={n_resamples}"
        )
    name, gains = score if isinstance(score, str) else repr(score), None
    if calibrator is not None or features is not None:
        from .cross_fitted import CrossFitted  # scikit-learn, which the other ways do without

        crossed = CrossFitted(p, rule, calibrator, cv, level, random_state)
        gains = None if features is None else crossed.gains(crossed.regions(features))
        if calibrator is not None:
            return crossed.parts(true, gains, name)
    several = p.n_classes > 2 and method != "exact"
    if several and not isinstance(rule, Brier):
        raise ValueError(
            f"{rule!r} of {p.n_classes} classes is no sum over classes: method {method!r} needs Brier's score, or use "
            "method='exact' or a calibrator"
        )
    stated, codes, weights = _counted(p)
    observer = observer_of(stated, method, n_bins, strategy, p.eps, weights, integral=p.integral_weights)
    rows = Rows(rule, stated, codes, weights, observer, true)
    parts = rows.parts()
    intervals = {}
    if n_resamples:
        intervals = resampled_intervals(rows, parts, n_resamples, level, np.random.default_rng(random_state))
    found = Decomposition(**parts, score=name, method=method, n_samples=len(codes), intervals=intervals)
    return found if gains is None else crossed.bounded(found, gains)


def _counted(p: Predictions) -> tuple[FloatArray, AnyArray, FloatArray]:
    """Probabilities (n, K), codes and weights of the rows that count; what a single column speaks of comes last."""
    stated, codes = matrix_of(p), p.codes.astype(np.intp)
    if p.positive == 0:
        stated, codes = stated[:, ::-1], 1 - codes
    weights = ones_or(p.weights, len(codes))
    used = weights > 0
    return (stated, codes, weights) if used.all() else (stated[used], codes[used], weights[used])


def _posterior(posterior: Any, p: Predictions) -> FloatArray:
    """True probabilities, (n, K), in the order of the stated ones, whatever that of a frame's columns."""
    shape = getattr(posterior, "shape", None) or np.shape(posterior)
    if tuple(shape) != p.probs.shape:
        raise ValueError(f"posterior must have the shape of y_prob, {p.probs.shape}; got {tuple(shape)}")
    positive = None if p.positive is None else p.classes[p.positive]
    q = as_predictions(np.asarray(p.classes)[p.codes], posterior, labels=list(p.classes), pos_label=positive)
    true = matrix_of(q)
    true = true[:, ::-1] if q.positive == 0 else true
    return true if p.weights is None else true[p.weights > 0]
