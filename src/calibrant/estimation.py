"""The number: `calibration_error`, `estimate`, and the literature's names for the binned ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from ._types import Interval, RandomState
from ._validation import as_predictions
from .curves.build import curve_from, describe
from .curves.reliability import check_level, check_resamples
from .errors import CellEstimator, DirichletKernel, EmpiricalBayes, Estimator, SimplexBinned
from .errors.base import PosteriorEstimator, ReadingEstimator, shares_of
from .errors.norm import check_norm, combine, root, to_power
from .errors.path import Path
from .inference.intervals import cell_path, invert, row_path
from .inference.posterior import Credible, credible
from .notions import Notion, as_notion
from .predictions import Predictions
from .problem import Problem, Reduction, VectorProblem
from .results import Estimate, ReliabilityCurve

#: Draws from a posterior for every resample that other intervals take: they cost less.
_POSTERIOR = 5


def calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    notion: str | Notion = "auto",
    estimator: str | Estimator = "auto",
    norm: float = 1,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    sum_tolerance: float | None = None,
    from_logits: bool = False,
) -> float:
    r"""Calibration error: how far stated probabilities are from observed frequencies.

    .. math:: \big(E\,|P(o = 1 \mid s) - s|^p\big)^{1/p}

    for the score s and outcome o that the notion names, as the estimator estimates it.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Observed labels.
    y_prob : array-like of shape (n,) or (n, K)
        Probability of ``pos_label``, or one column a class in ``labels`` order.
    notion : {"auto", "class-specific", "classwise", "confidence", "top-label", "canonical"} or Notion
        What must be calibrated. ``"auto"``: the positive class for a 1-D ``y_prob``, else the confidence.
    estimator : "auto" or Estimator, default "auto"
        ``"auto"``: ``EmpiricalBayes()``; for the canonical notion :class:`DirichletKernel` over residuals, debiased.
    norm : float, default 1
        p ≥ 1, or inf for the maximum. Classes combine as ``(mean of p-th powers)^(1/p)``.
    labels, pos_label, sample_weight, sum_tolerance, from_logits
        See :func:`as_predictions`.

    Returns
    -------
    float
        In [0, 1]; 0 is perfect. Debiased estimators may read below 0.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, what is allowed, and what was received.

    References
    ----------
    Silva Filho et al. (2023), §2 and §4; Posocco & Bonnefoy (2021), §4.

    Examples
    --------
    >>> import calibrant as cal
    >>> round(cal.calibration_error([0, 1, 1, 0], [0.5, 0.5, 0.5, 0.5], estimator=cal.Binned()), 3)
    0.0
    >>> ece_a = cal.Binned(n_bins="sqrt", strategy="quantile")
    >>> cal.calibration_error([0, 1], [[1, 0], [0, 1]], notion="classwise", estimator=ece_a)
    0.0
    """
    p = check_norm(norm)
    _, reduction, chosen = _reduced(
        y_true, y_prob, notion, estimator, labels, pos_label, sample_weight, sum_tolerance, from_logits, p
    )
    if isinstance(reduction, VectorProblem):
        return root(chosen.power(reduction, p), p)
    return combine(chosen.powers(reduction, p), shares_of(reduction), p, reduction.average)


def estimate(
    y_true: Any,
    y_prob: Any,
    *,
    notion: str | Notion = "auto",
    estimator: str | Estimator = "auto",
    norm: float = 1,
    level: float = 0.95,
    n_resamples: int = 400,
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    sum_tolerance: float | None = None,
    from_logits: bool = False,
    random_state: RandomState = None,
) -> Estimate:
    """Calibration error with a confidence interval, per-class values and the curve behind it.

    Parameters are those of :func:`calibration_error`, and

    Parameters
    ----------
    level : float in (0, 1), default 0.95
        Level of the interval.
    n_resamples : int, default 400
        Draws at each of the simulated truths; of a posterior five times as many.
    random_state : int, Generator or None

    Returns
    -------
    Estimate
        ``.value`` (what :func:`calibration_error` returns), ``.interval``, ``.corrected`` (a median), ``.calibrated``,
        ``.per_class``, ``.curve``, ``.to_dict()``.

    Notes
    -----
    ``EmpiricalBayes``, the default, has a posterior: the interval holds ``level`` of it, starts at exactly 0 when the
    model may well be calibrated, and ``.calibrated`` is the probability of that (see
    :mod:`calibrant.inference.posterior`). Cost: ``5 n_resamples`` draws on rank cells.

    For all others the interval inverts a test along the path from perfect calibration to the gaps found, so it accounts
    for the estimator's noise and leaks: it starts at exactly 0 when the data are compatible with calibration, and may
    lie below the value. What the estimator blurs is not put back, and classes are treated as exchangeable: see
    :mod:`calibrant.inference.intervals`. Cost: 11 scales × ``n_resamples`` draws on bins or grid cells a problem (fewer
    draws beyond 8 problems), independent of n; on occupied cells × K for the canonical notion. Estimators without
    cells draw outcomes for every row, at most 100 times a scale. Coverage of both is simulated in docs/coverage.md.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> calibrated = rng.random(2000) < p
    >>> cal.estimate(calibrated, p, random_state=0).interval.low
    0.0
    """
    p = check_norm(norm)
    checked = check_level(level)
    if checked is None:
        raise ValueError("level must lie strictly between 0 and 1; got None")
    n_resamples = check_resamples(n_resamples)
    rng = np.random.default_rng(random_state)
    predictions, reduction, chosen = _reduced(
        y_true, y_prob, notion, estimator, labels, pos_label, sample_weight, sum_tolerance, from_logits, p
    )
    name = as_notion(notion, predictions).name
    if isinstance(reduction, VectorProblem):
        return _vector_estimate(reduction, chosen, predictions, name, p, checked, n_resamples, rng)
    problems = list(reduction) if not reduction.dependent else reduction
    about: dict[str, Any] = {
        "labels": [_label(problems, i) for i in range(len(problems))],
        "shares": shares_of(problems),
        "average": reduction.average,
        "dependent": reduction.dependent,
        "notion": name,
        "norm": p,
        "level": checked,
        "n_samples": predictions.n_samples,
        "size": predictions.effective_size,
    }
    if isinstance(chosen, ReadingEstimator):
        return _read(
            chosen,
            problems,
            about["labels"],
            about["shares"],
            reduction.average,
            name,
            p,
            checked,
            predictions.n_samples,
        )
    if isinstance(chosen, CellEstimator):
        summaries = list(chosen.summarize_all(problems))
        return estimate_from_summaries(chosen, summaries, n_resamples=n_resamples, rng=rng, **about)
    paths = (row_path(chosen, problem, p, min(n_resamples, 100), rng) for problem in problems)
    return _estimated(chosen, chosen.powers(problems, p), paths, None, **about)


def estimate_from_summaries(
    estimator: CellEstimator,
    summaries: Sequence[Any],
    *,
    labels: Sequence[Any],
    shares: Sequence[float],
    average: str,
    dependent: bool,
    notion: str,
    norm: float,
    level: float,
    n_resamples: int,
    n_samples: int,
    size: float,
    rng: np.random.Generator,
) -> Estimate:
    """:func:`estimate` from mergeable summaries: the same numbers in memory and out of core."""
    curve = None
    if len(summaries) == 1:
        curve = curve_from(
            estimator, summaries[0], label=labels[0], notion=notion, level=level, n_resamples=n_resamples, rng=rng
        )
    draws = n_resamples
    if len(summaries) > 8:  # a mean over many problems needs few draws of each, a maximum some more
        mean = average != "max" and not np.isinf(norm)
        draws = max(32 if mean else 100, n_resamples // len(summaries))
    powers = [estimator.power_of(s, norm) for s in summaries]
    if isinstance(estimator, PosteriorEstimator):
        # The two classes of a one-vs-rest pair are mirror images: one of them carries all the information.
        mirrored = dependent and len(powers) == 2
        used = summaries[:1] if mirrored else summaries
        posterior = credible(
            [estimator.draws(s, norm, _POSTERIOR * draws, rng) for s in used],
            [1.0] if mirrored else shares,
            norm=norm,
            average=average,
            level=level,
            size=size,
            dependent=dependent and not mirrored,
        )
        return _result(estimator, powers, posterior, curve, labels, shares, average, notion, norm, level, n_samples)
    return _estimated(
        estimator,
        powers,
        (cell_path(estimator, estimator.cells(s), norm, draws, rng) for s in summaries),
        curve,
        labels=labels,
        shares=shares,
        average=average,
        dependent=dependent,
        notion=notion,
        norm=norm,
        level=level,
        n_samples=n_samples,
        size=size,
    )


def _estimated(
    estimator: Estimator,
    powers: Sequence[float],
    paths: Iterable[Path],
    curve: ReliabilityCurve | None,
    *,
    labels: Sequence[Any],
    shares: Sequence[float],
    average: str,
    dependent: bool,
    notion: str,
    norm: float,
    level: float,
    n_samples: int,
    size: float,
    largest: float = 1.0,
) -> Estimate:
    """Value, interval and per-class values from the p-th powers of every problem and their simulated paths."""
    # The two classes of a one-vs-rest pair are mirror images: one of them carries all the information.
    mirrored = dependent and len(powers) == 2
    interval, corrected = invert(
        list(islice(paths, 1) if mirrored else paths),
        [1.0] if mirrored else shares,
        norm=norm,
        average=average,
        level=level,
        n=size,
        dependent=dependent and not mirrored,
        largest=largest,
    )
    found = Credible(interval, corrected, None)
    return _result(estimator, powers, found, curve, labels, shares, average, notion, norm, level, n_samples)


def _result(
    estimator: Estimator,
    powers: Sequence[float],
    found: Credible,
    curve: ReliabilityCurve | None,
    labels: Sequence[Any],
    shares: Sequence[float],
    average: str,
    notion: str,
    norm: float,
    level: float,
    n_samples: int,
) -> Estimate:
    """Value and per-class values, with what is known of their uncertainty."""
    value = combine(powers, shares, norm, average)
    per_class = {} if len(powers) == 1 else {k: root(v, norm) for k, v in zip(labels, powers, strict=True)}
    return Estimate(
        value,
        found.interval,
        found.median,
        level,
        notion,
        describe(estimator),
        norm,
        n_samples,
        per_class,
        curve,
        found.calibrated,
    )


def _read(
    estimator: ReadingEstimator,
    problems: Sequence[Any],
    labels: Sequence[Any],
    shares: Sequence[float],
    average: str,
    notion: str,
    norm: float,
    level: float,
    n_samples: int,
) -> Estimate:
    """Normal intervals of powers; problems that share rows are taken for wholly dependent."""
    from scipy.special import ndtri

    inner = estimator.inner(norm)
    readings = [estimator.reading(problem, inner) for problem in problems]
    if any(np.isnan(r.se) and not np.isnan(r.power) for r in readings):
        raise TypeError(
            f"estimate() cannot give an interval for {estimator!r} with norm={norm:g}: its bias is not known; use "
            "debias='cross' and norm 1 or 2, or calibration_error()"
        )
    z = float(ndtri((1 + level) / 2))
    powers = [_from(r.power, inner, norm) for r in readings]
    low = combine([_from(r.power - z * r.se, inner, norm) for r in readings], shares, norm, average)
    # Below 0 by chance, a power still does not exclude what its noise hides.
    high = combine([_from(max(r.power, 0.0) + z * r.se, inner, norm) for r in readings], shares, norm, average)
    value = combine(powers, shares, norm, average)
    interval = Interval(max(low, 0.0), high)
    found = Credible(interval, min(max(value, interval.low), interval.high), None)
    result = _result(estimator, powers, found, None, labels, shares, average, notion, norm, level, n_samples)
    details = estimator.details(problems[0], norm) if len(problems) == 1 else {}
    return replace(result, details=details)


def _from(power: float, inner: float, norm: float) -> float:
    """A power of one norm as that of another."""
    return power if inner == norm else to_power(root(power, inner), norm)


def _vector_estimate(
    problem: VectorProblem,
    estimator: Estimator,
    predictions: Predictions,
    notion: str,
    norm: float,
    level: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> Estimate:
    if isinstance(estimator, ReadingEstimator):
        return _read(estimator, [problem], [None], [1.0], "power", notion, norm, level, predictions.n_samples)
    if not isinstance(estimator, SimplexBinned):
        raise TypeError(f"estimate() cannot give an interval for {estimator!r} on the notion {notion!r}")
    return _estimated(
        estimator,
        [estimator.power(problem, norm)],
        [estimator.path(problem, norm, n_resamples, rng)],
        None,
        labels=[None],
        shares=[1.0],
        average="power",
        dependent=False,
        notion=notion,
        norm=norm,
        level=level,
        n_samples=predictions.n_samples,
        size=predictions.effective_size,
        largest=1.0 if np.isinf(norm) else 2 ** (1 / norm),
    )


def canonical_default(norm: float) -> DirichletKernel:
    """What ``estimator="auto"`` takes for the canonical notion: what did best where the truth is known."""
    orientation = "data" if norm == 1 else "query"
    return DirichletKernel("auto", orientation, "cross" if norm in (1, 2) else "ratio", residual=True)


def resolve_estimator(estimator: str | Estimator, reduction: Reduction, notion: str, norm: float = 1) -> Estimator:
    """Judge the ``estimator`` argument and check that it serves the notion."""
    if isinstance(estimator, str):
        if estimator != "auto":
            raise ValueError(f"estimator must be 'auto' or an estimator such as Binned(15); got {estimator!r}")
        if not isinstance(reduction, VectorProblem):
            return EmpiricalBayes()
        return canonical_default(norm)
    if not isinstance(estimator, Estimator):
        hint = f": {estimator.__name__}()?" if isinstance(estimator, type) and issubclass(estimator, Estimator) else ""
        raise TypeError(f"estimator must be 'auto' or an estimator such as Binned(15); got {estimator!r}{hint}")
    estimator.check(reduction, notion)
    return estimator


def _reduced(
    y_true: Any,
    y_prob: Any,
    notion: str | Notion,
    estimator: str | Estimator,
    labels: Sequence[Any] | None,
    pos_label: Any,
    sample_weight: Any,
    sum_tolerance: float | None,
    from_logits: bool,
    norm: float,
) -> tuple[Predictions, Reduction, Estimator]:
    predictions = as_predictions(
        y_true,
        y_prob,
        labels=labels,
        pos_label=pos_label,
        sample_weight=sample_weight,
        sum_tolerance=sum_tolerance,
        from_logits=from_logits,
    )
    chosen = as_notion(notion, predictions)
    reduction = chosen.reduce(predictions)
    return predictions, reduction, resolve_estimator(estimator, reduction, chosen.name, norm)


def _label(problems: Sequence[Problem], i: int) -> Any:
    classes = getattr(problems, "classes", None)
    return classes[i] if classes is not None else problems[i].label
