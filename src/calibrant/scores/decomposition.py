"""`decompose`: a proper score split into calibration, discrimination and irreducible uncertainty."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from ..comparison.models.units import IndependentUnits
from ..data.checks import check_choice, check_int, check_level, check_random_state, check_resamples
from ..data.predictions import Predictions
from ..data.public_function import InputOptions, public_function
from ..data.types import AnyArray, FloatArray, RandomState
from ..data.validation import as_predictions
from ..data.weights import ones_or
from ..estimators import Binned
from ..measure.scoring_rules import Brier, Log, RankedProbability, ScoringRule, as_rule, matrix_of
from ..measure.streaming import Accumulator
from ..measure.sums_by_class import ProblemSums
from ..notions import Ordinal
from ..sums import BinMoments
from .score_parts import Decomposition, ScoredRows, binned, equal_vectors, isotonic

#: Methods for observed frequencies.
ESTIMATORS = ("corp", "binned", "exact")
#: Largest values of Brier's score by its scale.
_LARGEST = {"half": 1.0, "sum": 2.0}


def _decomposed_sums(sums: Accumulator, score: Any, estimator: str) -> Decomposition:
    """Decompose an Accumulator, by isotonic regression of the cells of two classes or by its bins."""
    check_choice("estimator", estimator, ESTIMATORS)
    if estimator == "exact":
        raise ValueError(
            "estimator='exact' needs the rows, since sums do not distinguish probability vectors: use 'binned'"
        )
    totals = sums.required_totals()
    k = len(sums.classes)
    rule = as_rule(score, half=k == 2)
    if k > 2 and not isinstance(rule, Brier):
        raise ValueError(f"{rule!r} of {k} classes is not a sum over classes: use Brier's score, or pass the rows")
    if k > 2 and estimator == "corp":
        raise ValueError(f"estimator='corp' for {k} classes needs the rows: use estimator='binned' for sums")
    problems = _problems(sums)
    if isinstance(rule, Brier) and k > 2:  # a sum over classes
        each = [_parts_of_class(Brier("half"), one, estimator, first=False) for one in problems]
        parts: dict[str, Any] = {name: _LARGEST[rule.scale] / 2 * sum(one[name] for one in each) for name in each[0]}
    else:
        first = sums.positive is None and problems[-1].label == sums.classes[0]
        parts = _parts_of_class(rule, problems[-1], estimator, first=first)
    if (total := _total(rule, sums)) is not None:
        binned = parts["total"]
        parts |= {"total": total, "within": total - binned if np.isfinite(binned) else 0.0}
    name = score if isinstance(score, str) else repr(score)
    return Decomposition(**parts, score=name, estimator=estimator, n_samples=totals.n_samples, n_classes=k)


def _problems(sums: Accumulator) -> list[ProblemSums]:
    """Problems of the classes: for two classes those with a fine histogram, if any; otherwise one per class."""
    fine = [one for one in sums.problems.values() if one.fine is not None and one.label in sums.classes]
    return fine if fine and len(sums.classes) == 2 else list((sums.class_sums or sums.problems).values())


def _fine(one: ProblemSums) -> BinMoments:
    if one.fine is None:
        raise ValueError(
            "estimator='corp' needs a fine histogram, which is kept with the notion 'class-specific', or the rows: use "
            "estimator='binned' for these sums"
        )
    return one.fine


def _parts_of_class(rule: ScoringRule, one: ProblemSums, estimator: str, *, first: bool) -> dict[str, Any]:
    """Parts of one class, the first or not, against the rest, as if all rows of a bin had its mean score."""
    rows = (_fine(one) if estimator == "corp" else one.bins).as_rows(one.domain)
    weights = ones_or(rows.weights, rows.n_samples)
    used = weights > 0
    s, codes, weights = rows.scores[used].astype(np.float64), (rows.outcomes[used] > 0).astype(np.intp), weights[used]
    stated = np.column_stack([1 - s, s])
    if first:
        stated, codes = stated[:, ::-1], 1 - codes
    # Bins are told apart by their mean scores.
    observer = isotonic(stated) if estimator == "corp" else equal_vectors(stated)
    return ScoredRows(rule, stated, codes, weights, observer).parts()


def _total(rule: ScoringRule, sums: Accumulator) -> float | None:
    """The mean score itself; None if it was not accumulated."""
    totals = sums.required_totals()
    if isinstance(rule, Log):
        return totals.log_loss / totals.weight
    if not isinstance(rule, Brier):
        return None
    kept = "half" if sums.positive is not None else "sum"
    return totals.brier / totals.weight * _LARGEST[rule.scale] / _LARGEST[kept]


@public_function(grouped=True, sums=("score", "estimator"))
def decompose(
    y_true: Any,
    y_prob: Any = None,
    *,
    score: str | ScoringRule = "brier",
    estimator: str = "corp",
    calibrator: Any = None,
    posterior: Any = None,
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
    groups : array-like of shape (n,), optional
        Groups of dependent rows (see :func:`calibrant.as_predictions`): whole groups are resampled, and folds keep them
        together. Values do not change, except with ``calibrator``, whose folds differ.
    score : {"brier", "log-loss", "spherical"} or a scoring rule of :mod:`calibrant.scores`, default "brier"
        ``"brier"``: ``(p - o)²`` for two classes, ``Σ_k (p_k - o_k)²`` for more.
    estimator : {"corp", "binned", "exact"}, default "corp"
        How C is estimated. ``"corp"``: by isotonic regression (Dimitriadis, Gneiting & Jordan 2021), without a choice
        of bins; for two classes with any score, for more with Brier's, class by class. ``"binned"``: by frequencies in
        bins of the score (Murphy 1973), likewise. ``"exact"``: by frequencies of rows with equal probability vectors,
        for scores that take few values; any score, any number of classes.
    calibrator : str or calibrator of :mod:`calibrant.calibrators`, optional
        Used instead of ``estimator``: C are cross-validated predictions of the calibrator. Any score, any number of
        classes. Names as in :func:`calibrant.calibrators.named_calibrator`.
    posterior : array-like of the shape of ``y_prob``, optional
        True class probabilities Q of each row, if known.
    cv : int ≥ 2, default 5
        Number of stratified folds for ``calibrator``; fewer, but at least two, if a class has fewer rows. Each row is
        in one fold, whatever its weight.
    n_bins : int, "sqrt" or "cbrt", default 10
        Number of bins of ``"binned"``.
    n_resamples : int, default 0
        Number of bootstrap resamples of rows for ``intervals``. These are reflected about the estimate (the basic
        bootstrap), which corrects the bias due to noise in C; ``total`` has percentile intervals, ``uncertainty`` the
        envelope of both. The interval of calibration starts at 0 unless the estimate exceeds all but a share ``1 -
        level`` of estimates from as many draws of labels from the predicted probabilities; with ``groups``, these
        labels are correlated as the residuals are (normal latent variables with one correlation).
    strategy : {"uniform", "quantile"}, default "uniform"
        Whether the bins of ``"binned"`` have equal width or equal mass.

    Returns
    -------
    Decomposition
        The identities are exact on the sample, up to rounding: parts are means of realised scores.

    Raises
    ------
    ValueError
        For a two-class score with more classes; for more than two classes with ``"corp"`` or ``"binned"`` and a score
        that is not a sum over classes; for a ranked probability score with ``"corp"`` or ``"binned"`` and resamples or
        a posterior; for a calibrator together with another estimator or resamples.

    See Also
    --------
    calibrant.scores.grouping_loss : A lower bound on the part of the refinement that features would explain.
    calibrant.scores.mean_score : The mean that is decomposed.
    calibrant.scores.murphy_curve : The mean score at every threshold.
    calibrant.results.Decomposition : The result, field by field.

    Notes
    -----
    Calibration is biased upwards by the noise in C (with CORP by about ``log n / n``), refinement downwards. 95 %
    intervals of CORP and of bins cover the true value in 87 to 100 % of samples of 200 and 1000 rows, calibrated or not
    (``benchmarks/coverage/decomposition_coverage.py``); with many small exact groups they may exclude the estimate,
    since they subtract its noise. Infinite scores are reported: if the total is ∞, so is calibration. Cost O(n log n)
    per class; a resample costs as much without the sorting.

    **With a calibrator** the bias is reversed: a fit to other rows removes at most the true miscalibration, so
    ``calibration`` is a lower bound on average and ``refinement`` an upper one; both differ from the true value by the
    part that the calibrator cannot express and by the noise of its fit. Both are signed: a calibrator that increases
    the score gives a negative calibration. Intervals are means of paired differences of rows ± t standard errors (Bayle
    et al. 2020), without resampling; parts with infinite means have none. ``uncertainty`` is that of the sample's own
    base rates. Cost ``cv`` fits, and O(n K): 10⁴ rows of 1000 classes with temperature scaling take seconds.

    If the posterior is unknown, :func:`calibrant.scores.grouping_loss` bounds the grouping part of the refinement from
    below.

    References
    ----------
    Murphy (1973), *A new vector partition of the probability score*; Bröcker (2009), *Reliability, sufficiency, and the
    decomposition of proper scores*; Kull & Flach (2015), *Novel decompositions of proper scoring rules*; Silva Filho et
    al. (2023), §3.2; Berta, Bach & Jordan (2025), *Rethinking early stopping: refine, then calibrate*, for refinement
    as the loss after recalibration; Bayle, Bayle, Janson & Mackey (2020), *Cross-validation confidence intervals for
    test error*.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> d = cal.decompose(rng.random(20_000) < p**2, p)  # the truth: 1/30, and E p² (1 - p²) = 2/15
    >>> bool(abs(d.calibration - 1 / 30) < 0.003 and abs(d.refinement - 2 / 15) < 0.003)
    True
    """
    if isinstance(y_true, Accumulator):
        return _decomposed_sums(y_true, score, estimator)
    check_choice("estimator", estimator, ESTIMATORS)
    p = as_predictions(y_true, y_prob, **inputs)
    rule = as_rule(score, half=p.n_classes == 2)
    n_resamples, level, cv = check_resamples(n_resamples, 0), check_level(level), check_int("cv", cv, 2)
    bins = Binned(n_bins, strategy)
    true = None if posterior is None else _posterior(posterior, p)
    name = score if isinstance(score, str) else repr(score)
    if calibrator is not None:
        if estimator != "corp" or n_resamples:
            raise ValueError(
                "calibrator takes the place of estimator and n_resamples, which must not be given with it; got "
                f"estimator={estimator!r}, n_resamples={n_resamples}"
            )
        from .cross_fitted import CrossFitted  # scikit-learn, which the other ways do without

        return CrossFitted.of(p, calibrator, cv, random_state).decomposition(rule, true, level, name)
    if isinstance(rule, RankedProbability) and estimator != "exact":
        if n_resamples or true is not None:
            raise ValueError(
                f"n_resamples and posterior must not be given for a ranked probability score with {estimator=}"
            )
        return _of_cumulative(p, rule, name, estimator, bins)
    if p.n_classes > 2 and estimator != "exact" and not isinstance(rule, Brier):
        raise ValueError(
            f"{rule!r} of {p.n_classes} classes is not a sum over classes, which estimator {estimator!r} needs: "
            "use Brier's score, estimator='exact' or a calibrator"
        )
    stated, codes, weights = _counted(p)
    if estimator == "binned":
        observer = binned(stated, bins, weights, eps=p.eps, integral=p.integral_weights)
    else:
        observer = isotonic(stated) if estimator == "corp" else equal_vectors(stated)
    rows = ScoredRows(rule, stated, codes, weights, observer, true, _units(p), p.integral_weights)
    return Decomposition(
        **rows.parts(),
        score=name,
        estimator=estimator,
        n_samples=len(codes),
        n_classes=p.n_classes,
        intervals=rows.intervals(level, n_resamples, check_random_state(random_state)) if n_resamples else {},
    )


def _of_cumulative(p: Predictions, rule: RankedProbability, name: str, estimator: str, bins: Binned) -> Decomposition:
    """Sum of the decompositions of the Brier scores of the cumulative probabilities."""
    total: dict[str, float] = {}
    for target in Ordinal().targets(p):
        one = replace(
            p, probs=target.scores, truth=target.outcomes(p.codes), classes=(False, True), positive=1, logs=None
        )
        stated, codes, weights = _counted(one)
        found = (
            binned(stated, bins, weights, eps=p.eps, integral=p.integral_weights)
            if estimator == "binned"
            else isotonic(stated)
        )
        parts = ScoredRows(Brier("half"), stated, codes, weights, found, None, None, p.integral_weights).parts()
        total = {part: total.get(part, 0.0) + value for part, value in parts.items()}
    share = 1.0 if rule.scale == "sum" else 1 / (p.n_classes - 1)
    parts = {part: share * value for part, value in total.items()}
    return Decomposition(
        **parts, score=name, estimator=estimator, n_samples=len(codes), n_classes=p.n_classes, intervals={}
    )


def _units(p: Predictions) -> IndependentUnits | None:
    """Groups of the rows with weight; None if rows are independent."""
    return None if p.together is None else IndependentUnits.of(p if p.weights is None else p.subset(p.weights > 0))


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
