"""Other base rates: estimates from unlabelled rows, base rates after resampling, and probabilities under others."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..calibrators.label_shift import ALGORITHMS, PriorDraws, PriorRows, check_base_rates, draw_priors, shifted
from ..data.checks import (
    called,
    check_choice,
    check_level,
    check_list,
    check_number,
    check_random_state,
    check_resamples,
)
from ..data.docs import document
from ..data.predictions import Predictions, rows_with_weight
from ..data.printing import equals, half_width, known, printable, text_table
from ..data.progress import working
from ..data.result import Measure, MeasuresDrawn, Table, with_origin
from ..data.types import FloatArray, Interval, Label, RandomState
from ..data.validation import as_predictions, read_probabilities, read_scores
from ..data.weights import ones_or
from ..exceptions import PriorShiftWarning


def shift_prior(y_prob: Any, old: Any, new: Any) -> FloatArray:
    r"""Adjust probabilities to different base rates, with unchanged class-conditional distributions.

    .. math:: p'_k \propto p_k\, \frac{\pi'_k}{\pi_k}

    Parameters
    ----------
    y_prob : array-like of shape (n,) or (n, K)
        Calibrated probabilities: of the positive class, or of K classes.
    old, new : float, or array-like of shape (K,)
        Base rates where ``y_prob`` is calibrated, and where it will be used: of the positive class, or of K classes. A
        number is the base rate of the second of two classes.

    Returns
    -------
    ndarray of the shape of ``y_prob``
        The probabilities under the new base rates.

    See Also
    --------
    calibrant.estimate_prior : The new base rates, from unlabelled rows.
    calibrant.resampled_prior : The old base rates of a model that was trained on resampled rows.
    calibrant.optimal_threshold : Adjusts the threshold instead of the probabilities (``prior_shift``).
    calibrant.CalibratedModel : ``with_prior`` gives the whole model under other base rates.

    Notes
    -----
    Cost O(n K).

    References
    ----------
    Saerens, Latinne & Decaestecker (2002), *Adjusting the outputs of a classifier to new a priori probabilities*.

    Examples
    --------
    >>> from calibrant.decisions import shift_prior
    >>> shift_prior([0.5, 0.9], 0.5, 0.1).round(3).tolist()
    [0.1, 0.5]
    """
    p = read_probabilities(y_prob)
    both = p if p.ndim == 2 else np.column_stack([1 - p, p])
    out = shifted(both, *(check_base_rates(n, v, both.shape[1]) for n, v in (("old", old), ("new", new))))
    return out if p.ndim == 2 else out[:, 1]


def resampled_prior(share_kept: Any, prior: Any = None) -> float | FloatArray:
    r"""Base rates of the rows kept when classes are resampled: those that a model trained on them has learnt.

    .. math:: \pi^{s}_k \propto s_k\, \pi_k

    ``shift_prior(p, resampled_prior(s, prior), prior)`` undoes the resampling. Its result does not depend on ``prior``,
    which need not be known: ``shift_prior(p, resampled_prior(0.1), 0.5)``.

    Parameters
    ----------
    share_kept : float, or array-like of shape (K,)
        Share of the rows of each class that was kept, above 1 if rows were repeated; a number is that of the negative
        class of two, with all positives kept.
    prior : float, or array-like of shape (K,), optional
        Base rates before the rows were resampled; by default equal.

    Returns
    -------
    float, or ndarray of shape (K,)
        Base rates after resampling; that of the positive class if ``share_kept`` is a number.

    See Also
    --------
    calibrant.shift_prior : Adjusts probabilities to other base rates.

    Notes
    -----
    For two classes this is ``p = s p_s / (s p_s - p_s + 1)``. Cost O(K).

    References
    ----------
    Dal Pozzolo, Caelen, Johnson & Bontempi (2015), *Calibrating probability with undersampling for unbalanced
    classification*.

    Examples
    --------
    >>> from calibrant.decisions import resampled_prior, shift_prior
    >>> shift_prior([0.5, 0.9], resampled_prior(0.1), 0.5).round(3).tolist()  # one negative in ten was kept
    [0.091, 0.474]
    """
    if np.ndim(share_kept) == 0:
        shares = np.array([check_number("share_kept", share_kept, above=0), 1.0])
    else:
        shares = np.array(
            [check_number("share_kept", s, above=0) for s in check_list("share_kept", share_kept, "shares")]
        )
        if shares.size < 2:
            raise ValueError(f"share_kept must be a number, or one for each of two or more classes; got {shares.size}")
    k = len(shares)
    kept = shares * (np.full(k, 1 / k) if prior is None else check_base_rates("prior", prior, k))
    kept /= kept.sum()
    return kept if np.ndim(share_kept) else float(kept[1])


@dataclass(frozen=True, eq=False, repr=False)
class PriorEstimate(MeasuresDrawn, Table):
    """Base rates of unlabelled rows.

    Attributes
    ----------
    value : float, or ndarray of shape (K,)
        The base rate of ``label`` in the new rows; for more than two classes, those of all.
    interval : Interval, or ndarray of shape (K, 2)
        Interval of the base rate; for more than two classes, one row per class.
    reference : float, or ndarray of shape (K,)
        Base rate, or base rates, in the labelled rows.
    pvalue : float
        The p-value (null: prior shift, so that the new scores are a mixture of those of the classes).
    label : object
        The class whose base rate is given, for two classes; None for more.
    algorithm : str
        Name of the algorithm.
    n_samples : int
        Number of new rows.
    n_reference : int
        Number of labelled rows.

    See Also
    --------
    calibrant.estimate_prior : Computes it.
    calibrant.shift_prior : Probabilities under these base rates.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p
    >>> found = cal.estimate_prior(p[y], reference=(y, p), n_resamples=99)  # positive rows only
    >>> found.value > 0.9, round(found.reference, 1)
    (True, 0.5)
    """

    mark_name: ClassVar[str] = "before"
    axis_name: ClassVar[str] = "Base rate"

    value: float | FloatArray
    interval: Interval | FloatArray
    reference: float | FloatArray
    pvalue: float
    classes: tuple[Label, ...]
    label: Label
    algorithm: str
    level: float
    n_samples: int
    n_reference: int
    warnings: tuple[str, ...] = ()

    @property
    def _rows(self) -> list[tuple[Label, float, float, float, float]]:
        """Class, base rate before, base rate, and the ends of its interval."""
        if isinstance(self.interval, Interval):
            return [(self.label, float(self.reference), float(self.value), *self.interval)]
        columns = (np.asarray(v).tolist() for v in (self.reference, self.value, *np.transpose(self.interval)))
        return list(zip(self.classes, *columns, strict=True))

    @property
    def summary(self) -> str:
        """The base rate, or the one that changed most, and the first warning, if any."""
        return f"{self.said} {self.warnings[0]}." if self.warnings else self.said

    @property
    def said(self) -> str:
        """The base rate, or the one that changed most."""
        label, before, value, low, high = max(self._rows, key=lambda row: abs(row[2] - row[1]))
        spread = half_width(low, high)
        now = f"{known(value, spread)} ({known(low, spread)} to {known(high, spread)})"
        among = "" if self.label is not None or len(self.classes) == 2 else ", the largest change"
        whose = printable(str(label))
        return f"The base rate of {whose} is {now} in the new rows, {known(before, spread)} before{among}."

    def measured(self) -> list[Measure]:
        """Base rates, compared with those of the labelled rows."""
        return [Measure(printable(str(c)), value, (low, high), before) for c, before, value, low, high in self._rows]

    def _columns(self) -> dict[str, Sequence[Any]]:
        names = ("class", "reference", "value", "low", "high")
        return dict(zip(names, zip(*self._rows, strict=True), strict=True))

    def _text(self) -> str:
        rows = self._rows
        spreads = [half_width(low, high) for *_, low, high in rows]
        number = [[known(v, s) for v in row[1:]] for row, s in zip(rows, spreads, strict=True)]
        columns = {
            f"{self.n_samples:,} rows": [printable(str(row[0])) for row in rows],
            "before": [before for before, *_ in number],
            "base rate": [value for _, value, *_ in number],
            f"{100 * self.level:g} % interval": [f"{low} to {high}" for _, _, low, high in number],
        }
        how = f"by {self.algorithm}, with {self.n_reference:,} labelled rows; prior shift: p {equals(self.pvalue)}"
        return "\n".join([*text_table(columns), how])


@document
def estimate_prior(
    p_new: Any,
    *,
    reference: Any,
    algorithm: str = "em",
    groups: Any = None,
    level: float = 0.95,
    n_resamples: int = 400,
    random_state: RandomState = 0,
) -> PriorEstimate:
    r"""Base rates of unlabelled rows, from their scores and labelled rows with other base rates.

    Assumes prior shift: each class has the same distribution of scores as before, and only the base rates differ.

    .. math:: \hat\pi' = \arg\max_{\pi'} \sum_i \log \sum_k p_{ik} \frac{\pi'_k}{\pi_k}

    Parameters
    ----------
    p_new : array-like of shape (n,) or (n, K)
        Probabilities of the new rows, with the same columns as those of the reference.
    reference : (y, p), or Predictions
        Labels and probabilities of labelled rows that the model was not trained on. :func:`calibrant.as_predictions`
        takes weights, groups and ``pos_label``.
    algorithm : {"em", "bbse", "pacc"}, default "em"
        ``"em"``: the limit of expectation maximisation, for probabilities that are calibrated first, by bias-corrected
        temperature scaling of the reference. ``"bbse"``: black-box shift estimation, by the confusion matrix of the
        same probabilities; less precise. ``"pacc"``: probabilistic adjusted classify and count, for the probabilities
        under the base rates of ``"em"``; also less precise than ``"em"``, but correct if the calibration of the
        reference does not fit.
    groups : array-like of shape (n,), optional
        The group of each new row. Rows of one group may depend on each other.
    n_resamples : int, default 400
        Number of draws for the interval and the test.

    Returns
    -------
    PriorEstimate
        ``.value``, ``.interval`` and ``.reference``: numbers for two classes, otherwise one row per class. ``.pvalue``
        tests the assumption.

    Raises
    ------
    ValueError, TypeError
        The message names the argument, the allowed values and the value received.

    Warns
    -----
    PriorShiftWarning
        If the p-value is at most ``1 - level``: the new scores are not a mixture of those of the classes, more than
        base rates has changed, and the estimate may be far off. Also if ``"em"`` and ``"pacc"`` differ by more than
        chance, so that ``"em"`` is unreliable.

    See Also
    --------
    calibrant.shift_prior : Probabilities under the new base rates.
    calibrant.CalibratedModel : ``adapt`` adjusts a model to the base rates of new rows.
    calibrant.results.PriorEstimate : The result, field by field.

    Notes
    -----
    Intervals are quantiles of draws in which the rows of both samples, or their groups, have exponential weights (the
    Bayesian bootstrap), to which half a row per class is added; the calibration is refitted in every draw. The test
    compares means of functions of the scores between the new rows and the mixture of the classes. Cost O(R n K²) for R
    draws; for two classes, rows with the same log odds, to 0.01, are merged.

    On real data, 95 % intervals of ``"em"`` have a coverage of 93 % for two classes and 88 % for more, since no
    temperature calibrates all scores; those of ``"pacc"`` have 92 to 96 %. ``benchmarks/coverage/prior_shift.md`` gives
    the figures, and the size and power of the test.

    References
    ----------
    Saerens, Latinne & Decaestecker (2002) for EM; Alexandari, Kundaje & Shrikumar (2020), *Maximum likelihood with
    bias-corrected calibration is hard-to-beat at label shift adaptation*; Lipton, Wang & Smola (2018), *Detecting and
    correcting for label shift with black box predictors*, for BBSE; Bella, Ferri, Hernández-Orallo &
    Ramírez-Quintana (2010), *Quantification via probability estimators*, for PACC; Rubin (1981), *The Bayesian
    bootstrap*.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> def scores(y):
    ...     return 1 / (1 + np.exp(-rng.normal(4.0 * y - 2, 2)))  # calibrated where half of the rows are positive
    >>> y, y_new = rng.random(2000) < 0.5, rng.random(2000) < 0.1
    >>> found = cal.estimate_prior(scores(y_new), reference=(y, scores(y)))
    >>> bool(found.interval.low < 0.1 < found.interval.high), found.pvalue > 0.05
    (True, True)
    >>> p = cal.shift_prior([0.5], found.reference, found.value)
    >>> bool(0.05 < p[0] < 0.15)
    True
    """
    check_choice("algorithm", algorithm, ALGORITHMS)
    level, n_resamples = check_level(level), check_resamples(n_resamples)
    rng = check_random_state(random_state)
    known_rows = rows_with_weight(labelled_rows(reference))
    new = rows_like(known_rows, p_new, groups=groups)
    with working("estimate_prior"):
        result, _ = prior_with_draws(known_rows, new, algorithm, level, n_resamples, rng)
    for text in result.warnings:
        warnings.warn(text, PriorShiftWarning, stacklevel=2)
    return with_origin(new.library, result)


def prior_with_draws(
    reference: Predictions, new: Predictions, algorithm: str, level: float, n_resamples: int, rng: np.random.Generator
) -> tuple[PriorEstimate, PriorDraws]:
    """The estimate, and the draws from which its interval is computed."""
    before = PriorRows.of(reference.matrix, _counts(reference), **_about(reference), codes=reference.codes)
    shares = class_shares(reference)
    found = draw_priors(before, PriorRows.of(new.matrix, _counts(new), **_about(new)), algorithm, n_resamples, rng)
    tails = [(1 - level) / 2, (1 + level) / 2]
    ends = np.quantile(found.draws, tails, axis=0, method="weibull")  # its tails are right on average for few draws too
    low, high = np.minimum(ends[0], found.value), np.maximum(ends[1], found.value)
    second = reference.positive if reference.positive is not None else 1
    two = reference.n_classes == 2
    result = PriorEstimate(
        value=float(found.value[second]) if two else found.value,
        interval=Interval(float(low[second]), float(high[second])) if two else np.column_stack([low, high]),
        reference=float(shares[second]) if two else shares,
        pvalue=found.mixture,
        classes=reference.classes,
        label=reference.classes[second] if two else None,
        algorithm=algorithm,
        level=level,
        n_samples=new.n_samples,
        n_reference=reference.n_samples,
        warnings=_doubts(found, algorithm, 1 - level, 1 / (1 + n_resamples)),
    )
    return result, found


def class_shares(reference: Predictions) -> FloatArray:
    """Base rates of labelled rows, (K,); ValueError where a class has none."""
    shares = np.bincount(reference.codes, _counts(reference), minlength=reference.n_classes)
    if lacking := [c for c, share in zip(reference.classes, shares, strict=True) if share == 0]:
        raise ValueError(f"reference must have rows of every class; it has none of {lacking[0]!r}")
    return np.asarray(shares / shares.sum())


def _doubts(found: PriorDraws, algorithm: str, size: float, least: float) -> tuple[str, ...]:
    """Reasons why an estimate may be far off."""
    if found.mixture <= size:
        p = equals(found.mixture, least)
        return (
            f"More than base rates has changed (p {p}): the new scores are not a mixture of the scores of the "
            "reference's classes, and the estimate may be far off",
        )
    if algorithm == "em" and found.consistent <= size:
        p = equals(found.consistent, least)
        return (f"'em' needs better calibrated probabilities (p {p}): use algorithm='pacc'",)
    return ()


def labelled_rows(reference: Any) -> Predictions:
    """Labelled rows of a reference."""
    if isinstance(reference, Predictions):
        return reference
    y, p = labelled_pair(reference)
    with called(y_true="reference[0]", y_prob="reference[1]"):
        return as_predictions(y, p)


def labelled_pair(reference: Any) -> tuple[Any, Any]:
    """Labels and scores of a reference that is not Predictions."""
    if not isinstance(reference, (tuple, list)) or len(reference) != 2:
        raise TypeError(f"reference must be Predictions or a pair (y, p); got {type(reference).__name__}")
    return reference[0], reference[1]


def rows_like(reference: Predictions, p_new: Any, **about: Any) -> Predictions:
    """New rows, with the classes of the reference; their labels are not used."""
    positive = None if reference.positive is None else reference.classes[reference.positive]
    with called(y_prob="p_new"):
        values, _, _ = read_scores(p_new)
    if values.ndim != reference.probs.ndim:
        columns = "1-D" if positive is not None else f"2-D, with {reference.n_classes} columns,"
        raise ValueError(f"p_new must be {columns} like the reference; got {values.ndim} dimension(s)")
    unread = [reference.classes[0]] * len(values)
    try:
        return as_predictions(unread, p_new, labels=list(reference.classes), pos_label=positive, **about)
    except (ValueError, TypeError) as error:
        raise type(error)(str(error).replace("y_prob", "p_new").replace("y_true", "p_new")) from error


def _counts(p: Predictions) -> FloatArray:
    """Weights of rows; relative ones sum to the effective sample size."""
    weights = ones_or(p.weights, p.n_samples)
    return weights if p.integral_weights else weights * (p.effective_size / weights.sum())


def _about(p: Predictions) -> dict[str, Any]:
    """Groups of rows, and whether weights count repeats."""
    groups = None if p.together is None else np.unique(p.together, return_inverse=True)[1]
    return {"groups": groups, "counted": p.integral_weights}
