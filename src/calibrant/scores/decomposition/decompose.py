"""`decompose`: what of a proper score is miscalibration, what discrimination, what nobody could know."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from ...comparison.models.units import IndependentUnits
from ...data.checks import check_choice, check_int, check_level, check_resamples
from ...data.predictions import Predictions
from ...data.public_function import InputOptions, verb
from ...data.types import AnyArray, FloatArray, RandomState
from ...data.validation import as_predictions
from ...data.weights import ones_or
from ...estimators import Binned
from ...measure.scoring_rules import Brier, ScoringRule, as_rule, matrix_of
from .observed import ESTIMATORS, observer_of
from .parts_of_sums import decompose_sums
from .resampled_parts import ScoredRows, resampled_intervals
from .result import Decomposition


@verb(grouped=True, of_sums=decompose_sums)
def decompose(
    y_true: Any,
    y_prob: Any = None,
    *,
    score: str | ScoringRule = "brier",
    estimator: str = "corp",
    calibrator: Any = None,
    posterior: Any = None,
    features: Any = None,
    cv: int = 5,
    n_bins: int | str = 10,
    strategy: str = "uniform",
    n_resamples: int = 0,
    level: float = 0.95,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> Decomposition:
    r"""Decompose a mean proper score into calibration and refinement.

    .. math:: E\,\ell(S, Y) = \underbrace{E\,d(S, C)}_{calibration} + \underbrace{E\,e(C)}_{refinement},
              \qquad e(C) = \underbrace{d(C, Q)}_{grouping} + \underbrace{e(Q)}_{irreducible}

    where C are class frequencies given S, and Q the true posterior.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sample_weight
        See :func:`calibrant.as_predictions`.
    groups : array-like of shape (n,), optional
        Rows that belong together (see :func:`calibrant.as_predictions`): whole groups are resampled, and folds keep
        them together. Values are those of the rows but for ``calibrator`` and ``features``, whose folds differ.
    score : {"brier", "log-loss", "spherical"} or a scoring rule of :mod:`calibrant.scores`, default "brier"
        ``"brier"``: ``(p - o)²`` of two classes, ``Σ_k (p_k - o_k)²`` of more.
    estimator : {"corp", "binned", "exact"}, default "corp"
        How C is found. ``"corp"``: by isotonic regression (Dimitriadis, Gneiting & Jordan 2021), without a choice of
        bins; of two classes for any score, of more for Brier's, class by class. ``"binned"``: frequencies of bins of
        the score (Murphy 1973), likewise. ``"exact"``: frequencies of rows with equal probability vectors, for scores
        that take few values; any score, any number of classes.
    calibrator : str or calibrator of :mod:`calibrant.calibrators`, optional
        In place of ``estimator``: C is what the calibrator makes of S on rows that it was not fitted to, by
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
        from the stated probabilities, as many draws again; of ``groups``, labels
        hang together as the residuals do (normal latents of one correlation).
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
        that is no sum over classes; for features with a score that is neither Brier's nor the log-loss, or together
        with a posterior; for a calibrator together with another estimator or resamples.

    Notes
    -----
    Calibration is biased upwards by the noise in C (of CORP by about ``log n / n``), refinement downwards.
    Intervals of CORP and of bins at 95 % hold the truth in 87 to 100 % of samples of 200 and 1000 rows, calibrated or
    not (``benchmarks/coverage/decomposition_coverage.py``); of many small exact groups they can lie beside the
    estimate, whose noise they take off. Infinite scores are reported: a total of ∞ is a calibration of ∞. Cost
    O(n log n) a class, and as much a resample without the sorting.

    **By a calibrator** it is the other way round: what a fit of other rows repairs is at most what there is, so
    ``calibration`` is a lower bound on average and ``refinement`` an upper one, off by what the calibrator cannot
    express and by the noise of its fit. Both are signed: a calibrator that makes things worse shows a calibration
    below 0. Intervals are means of paired differences of rows ± t standard errors (Bayle et al. 2020), free of
    resamples; where a mean is infinite there is none. ``uncertainty`` is that of the sample's own base rates. Cost
    ``cv`` fits, and O(n K): 10⁴ rows of 1000 classes and temperature take seconds.

    **With features** ``grouping`` is how much better than its level sets a model with features tells what happened.
    Small trees, boosted on the other folds from recalibrated scores (those of ``calibrator``, else ``"quadratic"`` of
    two classes and ``"temperature"`` of more), make probabilities q of features and scores; given regions take the
    place of trees. Rows that were told nearly the same, some ten or more, make a level set, and the gain is

    .. math:: \frac{1}{n} \sum_i \ell(\bar q_i, y_i) - \ell(q_i, y_i),

    where :math:`\bar q` are the recalibrated scores scaled to the mean of q in the level set. Divergences of Brier's
    score and of the log-loss are convex in both arguments, so whatever q is, its gain over its own mean is on average
    at most what level sets hide: a **lower bound** of the grouping loss, with a bias of at most what calibration
    varies within a level set. It lies below the truth by what the features lack, by what the trees do not find, and by
    up to a tenth for the size of level sets; of features that say nothing it is around or slightly below 0, and is
    shown with its sign. The grouping loss is that given all of S, for more than two classes too, where that of
    class-by-class C is larger still. ``irreducible`` is an upper bound as far as the refinement is right.
    The interval is of the gain of the trees that were found, and at least as wide as labels drawn from the level sets
    make it: its upper end bounds nothing. How often the one-sided ``grouping_lower`` is above the truth is simulated in
    ``benchmarks/coverage/grouping.md``: hardly ever where there is a grouping loss, and where there is none about as
    often as the level says, or more: of the log-loss of three classes in one of eight samples at a level of 0.95.
    Cost: ``cv`` times at most 100 trees of 2·10⁴ rows, each with O(n K): a second or so for 10⁴ rows of two classes.

    References
    ----------
    Murphy (1973), *A new vector partition of the probability score*; Bröcker (2009), *Reliability, sufficiency, and the
    decomposition of proper scores*; Kull & Flach (2015), *Novel decompositions of proper scoring rules*; Silva Filho et
    al. (2023), §3.2; Perez-Lebel, Le Morvan & Varoquaux (2023), *Beyond calibration: estimating the grouping loss of
    modern neural networks*, for a bound by regions of features within level sets; Berta, Bach & Jordan (2025),
    *Rethinking early stopping: refine, then calibrate*, for refinement as what a calibrator leaves; Bayle, Bayle,
    Janson & Mackey (2020), *Cross-validation confidence intervals for test error*.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> d = cal.decompose(rng.random(20_000) < p**2, p)  # the truth: 1/30, and E p² (1 - p²) = 2/15
    >>> bool(abs(d.calibration - 1 / 30) < 0.003 and abs(d.refinement - 2 / 15) < 0.003)
    True

    Half of the rows are told too much, half too little, and p is right on average: a grouping loss of 0.01.

    >>> p, side = 0.2 + 0.6 * rng.random(4000), rng.integers(2, size=4000)
    >>> y = rng.random(4000) < p + 0.2 * side - 0.1
    >>> d = cal.decompose(y, p, features=side, calibrator="beta")
    >>> bool(0.005 < d.grouping < 0.012 and d.grouping_lower > 0 and abs(d.calibration) < 0.001)
    True
    """
    check_choice("estimator", estimator, ESTIMATORS)
    p = as_predictions(y_true, y_prob, **inputs)
    rule = as_rule(score, half=p.n_classes == 2)
    n_resamples, level, cv = check_resamples(n_resamples, 0), check_level(level), check_int("cv", cv, 2)
    Binned(n_bins, strategy)  # judges both
    true = None if posterior is None else _posterior(posterior, p)
    if true is not None and features is not None:
        raise ValueError("posterior says what features only hint at: features must not be given with it")
    if calibrator is not None and (estimator != "corp" or n_resamples):
        raise ValueError(
            "calibrator takes the place of estimator and n_resamples, which must not be given with it; got "
            f"estimator={estimator!r}, n_resamples={n_resamples}"
        )
    name, gains = score if isinstance(score, str) else repr(score), None
    if calibrator is not None or features is not None:
        from .cross_fitted import CrossFitted  # scikit-learn, which the other ways do without

        crossed = CrossFitted(p, rule, calibrator, cv, level, random_state)
        gains = None if features is None else crossed.gains(crossed.regions(features))
        if calibrator is not None:
            return crossed.parts(true, gains, name)
    several = p.n_classes > 2 and estimator != "exact"
    if several and not isinstance(rule, Brier):
        raise ValueError(
            f"{rule!r} of {p.n_classes} classes is no sum over classes: estimator {estimator!r} needs Brier's score, "
            "or use estimator='exact' or a calibrator"
        )
    stated, codes, weights = _counted(p)
    observer = observer_of(stated, estimator, n_bins, strategy, p.eps, weights, integral=p.integral_weights)
    rows = ScoredRows(rule, stated, codes, weights, observer, true, _units(p), p.integral_weights)
    parts = rows.parts()
    intervals = {}
    if n_resamples:
        intervals = resampled_intervals(rows, parts, n_resamples, level, np.random.default_rng(random_state))
    found = Decomposition(
        **parts, score=name, estimator=estimator, n_samples=len(codes), n_classes=p.n_classes, intervals=intervals
    )
    return found if gains is None else crossed.bounded(found, gains)


def _units(p: Predictions) -> IndependentUnits | None:
    """What the rows that count belong to; None where they are independent."""
    return None if p.groups is None else IndependentUnits.of(p if p.weights is None else p.subset(p.weights > 0))


def _counted(p: Predictions) -> tuple[FloatArray, AnyArray, FloatArray]:
    """Probabilities (n, K), codes and weights of the rows that count; the class of a single column comes last."""
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
