"""`compare_models`: which of several models is better on the same rows, by how much, and with what uncertainty."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from ...data.checks import check_choice, check_level, check_list, check_random_state, check_resamples, check_type
from ...data.convert import models_of_frame
from ...data.predictions import Predictions
from ...data.public_function import InputOptions, public_function
from ...data.types import FloatArray, IntArray, Interval, RandomState
from ...data.validation import as_predictions
from ...data.weights import ones_or
from ...estimators import Estimator
from ...exceptions import CalibrantWarning
from ...measure.question import resolve_estimator
from ...measure.scoring_rules import ScoringRule, as_rule
from ...notions import Notion, as_notion
from ...significance.result import few_groups, holm
from .measures import Measured, Measures
from .parts import has_parts
from .result import ComparedModel, Difference, ModelComparison, higher_is_better
from .squares import problems_of
from .units import IndependentUnits

ADJUSTMENTS = ("holm", "bonferroni", "none")
#: Below this many groups (Kish's number, where their weights differ) the t distribution is doubtful.
FEW_GROUPS = 30
#: Differences up to this are rounding errors.
_ROUNDING = 1e-13


@public_function(grouped=True)
def compare_models(
    y_true: Any,
    y_probs: Any = None,
    *,
    notion: str | Notion = "auto",
    estimator: str | Estimator = "auto",
    scores: Sequence[str | ScoringRule] = ("brier", "log-loss"),
    reference: str | None = None,
    level: float = 0.95,
    n_resamples: int = 2000,
    random_state: RandomState = 0,
    adjust: str = "holm",
    **inputs: Unpack[InputOptions],
) -> ModelComparison:
    r"""Compare models on the same rows: calibration error, proper scores and their parts, with intervals and p-values.

    Parameters
    ----------
    y_true : array-like of shape (n,), or mapping of names to Predictions
        Observed labels. A mapping to :class:`Predictions` of the same rows replaces the first two arguments.
    y_probs : mapping of names to array-likes of shape (n,) or (n, K), or data frame of a column per model
        Probabilities of at least two models for the same rows, all of the same shape. Predictions have their own
        labels: ``y_true`` is then None.
    notion : str or Notion, default "auto"
        Any notion of calibration except the canonical one; see :func:`calibrant.calibration_error`.
    estimator : "auto" or Estimator, default "auto"
        Estimator of the (L1) calibration error of each model and of its interval, as in :func:`calibrant.estimate`.
        With ``groups``, an estimator that needs single rows has no interval: that of the default one is used.
    scores : sequence of {"brier", "log-loss", "spherical"} or scoring rules, default ("brier", "log-loss")
        ``"brier"`` is ``(p - o)²`` for two classes, ``Σ_k (p_k - o_k)²`` for more.
    reference : str, optional
        Compare every model to this one, instead of every pair.
    level : float, default 0.95
        Level of each interval (not simultaneous).
    n_resamples : int, default 2000
        Bootstrap resamples for the parts of scores; a fifth as many for the intervals of calibration errors.
    adjust : {"holm", "bonferroni", "none"}, default "holm"
        Adjustment of p-values for the number of pairs, within each measure.
    groups : array-like of shape (n,), optional
        Groups of dependent rows, such as those of a game, patient or event. They change standard errors and bias
        corrections, not the scores; calibration errors are those of :func:`calibrant.calibration_error` with groups.
    label : str, optional
        Name of the column of the labels, where ``y_true`` is a data frame and ``y_probs`` is omitted.
    prob : list of str, or mapping of names of models to str or list of str, optional
        Columns of that data frame: one per model; or, for each model, its column or its columns (one per class).
    weight : str, optional
        Name of the column of the weights.

    Returns
    -------
    ModelComparison
        ``str(comparison)``, ``.models``, ``.differences``, ``.difference(measure, model, other)``, ``.to_dict()``,
        ``.to_frame()``. Measures, in order: ``calibration_error``, ``squared_calibration_error``; each score, and its
        ``_miscalibration`` and ``_discrimination`` (those of :func:`calibrant.decompose`, CORP; for more than two
        classes only of the Brier score); ``accuracy``.

    Raises
    ------
    ValueError, TypeError
        For fewer than two models or two independent units, models of different shapes or classes, missing groups, or
        the canonical notion.

    Warns
    -----
    CalibrantWarning
        For fewer than 30 groups, by Kish's effective number where their weights differ.

    See Also
    --------
    calibrant.estimate : The calibration error of one model.
    calibrant.scores.rank_models : Ranks of models over many data sets.
    calibrant.subgroup_calibration : One model on several parts of the rows.
    calibrant.results.ModelComparison : The result, field by field.

    Notes
    -----
    Every interval is ``middle ± t · se``; its p-value uses the same t, so the two agree. Units are rows, or groups.

    - *Scores, accuracy*: means of paired differences; ``se`` from the sums over units, each square divided by the other
      units' share of the weight; the degrees of freedom are Kish's number of units minus one, at least 1 (the test of
      Diebold & Mariano for independent units, with the correction of Bell & McCaffrey).
    - *Squared calibration error*: over √n bins of equal counts, from products of residuals of different units, whose
      noise is uncorrelated. The middle is therefore unbiased up to the resolution of the bins, calibrated or not, and
      ``se`` includes the noise of squares, which remains where that of gaps vanishes. At most 4096 bins for all classes
      together. Prefer this as the test of calibration.
    - *Calibration error* (L1): by the estimator. The middle is the difference of the medians of
      :func:`calibrant.estimate`, corrected for the bias of noise. The two ends are combined from those of both models'
      intervals (Zou & Donner 2008), so the standard errors below and above it differ: ``se`` is their mean, and the
      p-value uses the one on the side of 0. The correlation of the two errors' noise, from the residuals of the same
      units and the signs of the gaps, is used where negative; for an interval that reaches 0, the worst dependence is
      assumed.
    - *Miscalibration, discrimination*: ``se`` by the bootstrap of units; beyond 2000 distinct scores, neighbours are
      pooled in resamples. An isotonic fit looks better on its own rows than on new ones, the more so the more distinct
      scores a model has. This bias is estimated by 100 draws of labels from a smooth map of each model's scores, and
      subtracted. It is smaller if the true map has steps, which ``se`` allows for: differences between models with many
      and with few scores need more rows to be detected. With groups, labels drawn within a group are as correlated as
      the residuals, through equicorrelated normal latents.

    Coverage is simulated in docs/comparing_models.md. A score of ∞ (probability 0 of the observed class) has no
    interval. Cost for n rows: O(n log n) per model, products of bins per pair, and O(n_resamples · n) per model and
    class for the bootstrap: 10⁵ rows of two classes take 4 s of CPU time per model, 10⁴ rows of ten classes 2 s.

    References
    ----------
    Bell & McCaffrey (2002), *Bias reduction in standard errors for linear regression with multi-stage samples*; Diebold
    & Mariano (1995), *Comparing predictive accuracy*; Efron & Stein (1981), *The jackknife estimate of
    variance*; Zou & Donner (2008), *Construction of confidence limits about effect measures: a general approach*;
    Dimitriadis, Gneiting & Jordan (2021); Holm (1979).

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p
    >>> found = cal.compare_models(y, {"right": p, "too sure": p**2 / (p**2 + (1 - p) ** 2)}, n_resamples=200)
    >>> d = found.difference("brier", "right", "too sure")
    >>> d.better, d.interval.high < 0
    ('right', True)
    """
    names, models = _models(y_true, y_probs, inputs)
    if reference is not None:
        check_choice("reference", reference, names)
    check_choice("adjust", adjust, ADJUSTMENTS)
    checked, n_resamples, rng = check_level(level), check_resamples(n_resamples), check_random_state(random_state)
    first = models[0]
    if first.weights is not None and not first.weights.all():
        held = first.weights > 0
        models = [p.subset(held) for p in models]
    group = models[0].groups
    units = IndependentUnits.of(models[0])
    if not units.size >= 2:
        what = "rows with weight" if group is None else "groups with weight"
        raise ValueError(f"a comparison needs at least two independent {what}; got {units.size:g}")
    chosen, reader = _checked_notion(notion, estimator, models[0])
    rules = _checked_rules(scores, models[0])
    found = _measured(Measures(models, units), chosen, reader, rules, n_resamples, rng)
    complaints = _complaints(units)
    for text in complaints:
        warnings.warn(text, CalibrantWarning, stacklevel=2)
    pairs = [
        (i, j)
        for i in range(len(names))
        for j in range(len(names))
        if (i < j if reference is None else names[j] == reference != names[i])
    ]
    return ModelComparison(
        models=tuple(
            ComparedModel(name, {m: float(v.values[i]) for m, v in found.items()}) for i, name in enumerate(names)
        ),
        differences=tuple(d for m, v in found.items() for d in _differences(m, v, names, pairs, checked, adjust)),
        level=checked,
        adjust=adjust,
        reference=reference,
        notion=str(chosen),
        estimator=repr(reader),
        n_samples=first.n_samples,
        n_groups=units.copies.size if units.grouped else None,
        warnings=complaints,
        n_classes=first.n_classes,
    )


def _models(y_true: Any, y_probs: Any, inputs: InputOptions) -> tuple[list[str], list[Predictions]]:
    """Names and predictions of the models, with the classes of all in the order of the first."""
    if isinstance(y_true, Mapping):
        if y_probs is not None:
            raise TypeError(
                "y_probs must not be given with a mapping of Predictions, which contain the labels and probabilities"
            )
        y_true, y_probs = None, y_true
    y_probs = models_of_frame(y_probs)
    if not isinstance(y_probs, Mapping):
        raise TypeError(
            "y_probs must map names to probabilities, or be a data frame with one column per model; got "
            f"{type(y_probs).__name__}"
        )
    names = [str(name) for name in y_probs]
    if len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(f"y_probs must contain at least two models with different names; got {names}")
    alone = [isinstance(one, Predictions) for one in y_probs.values()]
    if any(alone) and not all(alone):
        raise TypeError(f"models must all be Predictions or all be arrays; {names[alone.index(False)]!r} is an array")
    if any(alone) and y_true is not None:
        raise TypeError("y_true must not be given with Predictions, which contain the labels")
    if not any(alone) and y_true is None:
        raise TypeError("y_true must be given (the labels of the rows), unless all models are Predictions")
    models: list[Predictions] = []
    for name, one in zip(names, y_probs.values(), strict=True):
        given = (one, None) if isinstance(one, Predictions) else (y_true, one)
        try:
            p = as_predictions(*given, **inputs)
        except (ValueError, TypeError) as error:
            raise type(error)(f"model {name!r}: {error}") from error
        first = models[0] if models else p
        models.append(_alike(p, name, first, names[0]))
    return names, models


def _alike(p: Predictions, name: str, first: Predictions, first_name: str) -> Predictions:
    """Predictions with the classes in the order of the first model's; ValueError names the difference."""
    if p.probs.ndim != first.probs.ndim:
        raise ValueError(
            f"models must have probabilities of the same shape; {first_name!r} has {first.probs.shape}, {name!r} has "
            f"{p.probs.shape}"
        )
    if set(p.classes) != set(first.classes):
        raise ValueError(
            f"models must have the same classes; {first_name!r} has {list(first.classes)!r}, {name!r} has "
            f"{list(p.classes)!r}"
        )
    p = _in_order(p, first)
    mine, others = (ones_or(one.weights, one.n_samples) for one in (p, first))
    for what, same in (
        ("number of rows", p.n_samples == first.n_samples),
        ("labels", np.array_equal(p.codes, first.codes)),
        ("sample_weight", np.array_equal(mine, others)),
        ("pos_label", p.positive == first.positive),
        ("groups", _same_groups(p.together, first.together)),
    ):
        if not same:
            raise ValueError(f"models must have the same rows; {first_name!r} and {name!r} differ in their {what}")
    return p


def _same_groups(one: IntArray | None, other: IntArray | None) -> bool:
    """Whether the same rows belong together, whatever the groups are called."""
    if one is None or other is None:
        return one is other
    if np.array_equal(one, other):  # nearly always, and much faster
        return True
    pairs = np.unique(one * (int(other.max()) + 1) + other).size
    return pairs == np.unique(one).size == np.unique(other).size


def _in_order(p: Predictions, first: Predictions) -> Predictions:
    """Predictions with the classes in the order of the first model's."""
    if p.classes == first.classes:
        return p
    order = [p.classes.index(c) for c in first.classes]
    place = np.argsort(order)
    return replace(
        p,
        probs=p.probs if p.positive is not None else p.probs[:, order],
        truth=place[p.codes.astype(np.intp)],
        classes=first.classes,
        positive=None if p.positive is None else int(place[p.positive]),
        logs=None if p.logs is None else p.logs[:, order],
    )


def _checked_notion(notion: str | Notion, estimator: str | Estimator, p: Predictions) -> tuple[Notion, Estimator]:
    chosen = as_notion(notion, p)
    reduction = problems_of(p, chosen)
    if reduction.average == "max":
        raise ValueError(f"models cannot be compared by {chosen!r}: a maximum over classes has no standard error")
    return chosen, resolve_estimator(estimator, reduction, chosen.name, 1)


def _checked_rules(scores: Any, p: Predictions) -> dict[str, ScoringRule]:
    """Scoring rules by name."""
    scores = check_list("scores", scores, "a sequence, such as ('brier', 'log-loss')")
    for score in scores:
        check_type("scores", score, (str, ScoringRule), "names or scoring rules")
    rules = {s if isinstance(s, str) else repr(s): as_rule(s, half=p.n_classes == 2) for s in scores}
    for name, rule in rules.items():
        if rule.binary and p.n_classes > 2:
            raise ValueError(f"scores: {name} is defined for two classes; got {p.n_classes}")
    return rules


def _measured(
    measures: Measures,
    notion: Notion,
    estimator: Estimator,
    rules: Mapping[str, ScoringRule],
    n_resamples: int,
    rng: np.random.Generator,
) -> dict[str, Measured]:
    """All measures, in the order in which they are shown."""
    n_classes = measures.models[0].n_classes
    parts = measures.parts({k: rule for k, rule in rules.items() if has_parts(rule, n_classes)}, n_resamples, rng)
    found = {
        "calibration_error": measures.calibration_error(notion, estimator, n_resamples, rng),
        "squared_calibration_error": measures.squared_error(notion),
    }
    for name, rule in rules.items():
        found[name] = measures.score(rule)
        found |= {k: v for k, v in parts.items() if k.rpartition("_")[0] == name}
    return found | {"accuracy": measures.accuracy()}


def _complaints(units: IndependentUnits) -> tuple[str, ...]:
    """Caveats about intervals and p-values."""
    if not units.grouped or units.effective_size >= FEW_GROUPS:
        return ()
    groups, effective = units.copies.size, units.effective_size
    counted = f"{groups} groups" if effective > groups - 0.5 else f"{groups} groups, worth {effective:.1f} equal ones,"
    few = f"{counted} are few: intervals and p-values rest on a t distribution that needs about {FEW_GROUPS}"
    return ("; ".join([few, *few_groups(groups)]),)


def _differences(
    measure: str,
    found: Measured,
    names: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    level: float,
    adjust: str,
) -> list[Difference]:
    """Differences of one measure, with p-values adjusted for the pairs."""
    from scipy.special import stdtr, stdtrit

    t = float(stdtrit(found.df, (1 + level) / 2))
    sign = -1 if higher_is_better(measure) else 1
    out = []
    for i, j in pairs:
        with np.errstate(invalid="ignore"):  # infinite scores, and weights beyond the range of floats
            value, middle = found.values[i] - found.values[j], found.centres[i] - found.centres[j]
            below, above = (float(se) if np.isfinite(value) else np.nan for se in (found.se[i, j], found.se[j, i]))
        towards_zero = below if middle > 0 else above
        # Without any noise every row says the same.
        far = 0.0 if abs(middle) <= _ROUNDING else abs(middle) / towards_zero if towards_zero != 0 else np.inf
        out.append(
            Difference(
                measure=measure,
                model=names[i],
                other=names[j],
                value=float(value),
                corrected=float(middle) if np.isfinite(value) else float("nan"),
                se=(below + above) / 2,
                interval=Interval(float(middle - t * below), float(middle + t * above)),
                pvalue=float(np.maximum(2 * stdtr(found.df, -far), found.least)),
            )
        )
    adjusted = adjusted_pvalues(np.array([d.pvalue for d in out]), adjust)
    return [
        replace(
            d, adjusted=float(p), better=(d.model if sign * d.corrected < 0 else d.other) if p < 1 - level else None
        )
        for d, p in zip(out, adjusted, strict=True)
    ]


def adjusted_pvalues(pvalues: FloatArray, adjust: str) -> FloatArray:
    """Adjust p-values for their number by Holm's or Bonferroni's method; NaN stays and does not count."""
    if adjust == "holm":
        return holm(pvalues)
    return np.minimum(pvalues * np.count_nonzero(~np.isnan(pvalues)), 1.0) if adjust == "bonferroni" else pvalues
