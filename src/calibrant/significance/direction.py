"""`confidence_direction`: the parts of a calibration error due to over- and underconfidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np

from ..data.checks import check_level, check_type, is_auto
from ..data.problem import OneVsRestProblems, Problem
from ..data.public_function import InputOptions, public_function
from ..data.result import Table
from ..data.types import FloatArray, Interval, Label
from ..data.validation import as_predictions
from ..estimators import CrossFit
from ..measure.question import resolve_estimator
from ..notions import Notion, as_notion

_PARTS = ("over", "under", "error")


@dataclass(frozen=True, eq=False, repr=False)
class ConfidenceDirection(Table):
    """A calibration error as the sum of over- and underconfidence, each a signed lower bound.

    Attributes
    ----------
    over : float
        Overconfidence: mean over rows of ``s - o`` where the other folds indicate that scores are too high, else 0.
    under : float
        Underconfidence: mean over rows of ``o - s`` where they indicate that scores are too low, else 0.
    error : float
        ``over + under``, the cross-fitted calibration error.
    intervals, standard_errors : mapping of name to Interval, and to float
        Intervals and standard errors of these three numbers.
    per_class : mapping of label to mapping of name to float
        The same three numbers for each class, if there are several problems.

    See Also
    --------
    calibrant.significance.confidence_direction : Computes it.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> found = cal.significance.confidence_direction(rng.random(2000) < p**2, p)
    >>> found.over > found.under, abs(found.over + found.under - found.error) < 1e-12
    (True, True)
    """

    _unpictured: ClassVar[str] = "No picture: the reliability diagram shows where scores are too high and too low."

    over: float
    under: float
    error: float
    intervals: Mapping[str, Interval]
    standard_errors: Mapping[str, float]
    per_class: Mapping[Label, Mapping[str, float]]
    level: float
    notion: str
    estimator: str
    n_samples: int

    def _columns(self) -> dict[str, Any]:
        rows = [{name: getattr(self, name) for name in _PARTS}, *self.per_class.values()]
        return {
            "label": ["all", *map(str, self.per_class)],
            **{name: [row[name] for row in rows] for name in _PARTS},
        }

    @property
    def summary(self) -> str:
        """Evidence of over- and underconfidence, and their sizes, as a sentence."""
        high, low = (f"{getattr(self, name):.4f}" for name in ("over", "under"))
        sure = [name for name in ("over", "under") if self.intervals[name].low > 0]
        told = {"over": "overconfidence", "under": "underconfidence"}
        found = " and ".join(told[name] for name in sure)
        found = f"evidence of {found}" if found else "no evidence of over- or underconfidence"
        return f"There is {found}: scores are too high by {high} and too low by {low}, averaged over all rows."

    def _text(self) -> str:
        lines = [f"Direction of the calibration error ({self.notion}), {self.n_samples:,} rows"]
        for name, words in zip(_PARTS, ("stated too high", "stated too low", "together"), strict=True):
            low, high = self.intervals[name]
            lines.append(f"  {words:<16}{getattr(self, name):>9.4f}   ({low:.4f} to {high:.4f})")
        return "\n".join(lines)


@public_function()
def confidence_direction(
    y_true: Any,
    y_prob: Any = None,
    *,
    notion: str | Notion = "auto",
    estimator: str | CrossFit = "auto",
    level: float = 0.95,
    **inputs: Unpack[InputOptions],
) -> ConfidenceDirection:
    r"""Over- and underconfidence as two numbers whose sum is the calibration error.

    .. math:: \text{over} = \frac1n \sum_{i:\, \hat g(s_i) < s_i} (s_i - o_i), \qquad
              \text{under} = \frac1n \sum_{i:\, \hat g(s_i) > s_i} (o_i - s_i),

    with ĝ the recalibration map fitted to the folds that do not contain row i.

    Parameters
    ----------
    notion : str or Notion, default "auto"
        The notion of calibration: any with scalar scores. For a notion of several problems (classes) the parts are
        averaged over them, so that overconfidence in one class and underconfidence in another do not cancel.
    estimator : "auto" or CrossFit, default "auto"
        The estimator whose maps and folds are used; ``"auto"``: ``CrossFit()``. Its error with ``norm=1`` is the sum of
        the parts.

    Returns
    -------
    ConfidenceDirection
        ``over`` and ``under`` are in [-1, 1]; for calibrated scores they are about 0, and can be negative by chance.

    Raises
    ------
    ValueError, TypeError
        For a notion with vector scores, or one that takes the maximum over several problems.

    See Also
    --------
    calibrant.estimators.CrossFit : The estimator of the sum.
    calibrant.reliability_curve : At which scores the model is over- or underconfident.
    calibrant.results.ConfidenceDirection : The result, field by field.

    Notes
    -----
    Let d = P(o = 1 | s) - s. Given the other folds, a row's term has mean -d or d, according to the sign that they
    estimate, right or wrong. So in expectation neither part exceeds the mean of the negative or positive part of d, and
    both reach it once the maps have the right sign everywhere. Each is a lower bound.

    Intervals are normal intervals of means over rows, with folds treated as independent. They are for the parts given
    these maps, that is, for the lower bounds in this sample. Their lower ends exceed the true parts in fewer samples
    than the level allows; their upper ends may lie below the true parts if the maps miss much. Coverage:
    benchmarks/coverage/clinical.md. Classes that share rows count as fully dependent, which makes intervals too long
    rather than too short. Cost: ``cv`` fits of the estimator.

    References
    ----------
    Błasiok, Gopalan, Hu & Nakkiran (2023), *A unifying theory of distance from calibration* (the error as a supremum of
    means of rows).

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(20_000)
    >>> y = rng.random(20_000) < p**2  # every score is too high, by 1/6 on average
    >>> found = cal.significance.confidence_direction(y, p)
    >>> bool(abs(found.over - 1 / 6) < 0.01), bool(abs(found.under) < 0.005)
    (True, True)
    """
    level = check_level(level)
    p = as_predictions(y_true, y_prob, **inputs)
    chosen = as_notion(notion, p)
    if not is_auto(estimator):
        check_type("estimator", estimator, CrossFit, "'auto' or CrossFit(...), whose folds are needed")
    if chosen.average == "max":
        raise ValueError(f"notion {chosen.name!r} with average='max' has no parts that add up: use average='mean'")
    reduction = chosen.reduce(p)
    used = CrossFit() if isinstance(estimator, str) else estimator
    resolve_estimator(used, reduction, chosen.name, 1)
    if not isinstance(reduction, (Problem, OneVsRestProblems)):
        raise TypeError(f"notion {chosen.name!r} has vectors as scores, which have no direction")
    means, errors = (np.array(v) for v in zip(*(_parts(used, problem) for problem in reduction), strict=True))  # (R, 3)
    share = np.where(np.isnan(means[:, 2]), 0.0, np.array(reduction.shares))
    known, values, se = share > 0, np.full(3, np.nan), np.full(3, np.nan)
    if known.any():
        share = share[known] / share.sum()
        values, spread = share @ means[known], share[:, None] * errors[known]
        se = spread.sum(axis=0) if reduction.dependent else np.sqrt((spread**2).sum(axis=0))
    over, under = float(values[0]), float(values[1])
    found = {"over": over, "under": under, "error": over + under}
    each = [dict(zip(_PARTS, map(float, row), strict=True)) for row in means]
    return ConfidenceDirection(
        **found,
        intervals={name: _around(found[name], s, p.effective_size, level) for name, s in zip(_PARTS, se, strict=True)},
        standard_errors=dict(zip(_PARTS, map(float, se), strict=True)),
        per_class={} if len(each) == 1 else dict(zip(reduction.labels, each, strict=True)),
        level=level,
        notion=chosen.name,
        estimator=repr(used),
        n_samples=p.n_samples,
    )


def _parts(estimator: CrossFit, problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Over- and underconfidence of one problem and their sum, and their standard errors, (3,) each."""
    sums, squares, total = np.zeros(2), np.zeros(2), 0.0
    for s, w, k, delta in estimator._folds(problem):
        residual = k - w * s
        square = k * (1 - s) ** 2 + (w - k) * s**2
        sides = np.stack([delta < 0, delta > 0])
        sums += np.array([-1.0, 1.0]) * (sides @ residual)
        squares += sides @ square
        total += float(w.sum())
    if not total > 0:
        return np.full(3, np.nan), np.full(3, np.nan)
    mean = np.append(sums, sums.sum()) / total
    spread = np.maximum(np.append(squares, squares.sum()) / total - mean**2, 0.0)
    return mean, np.sqrt(spread / (total - 1)) if total > 1 else np.full(3, np.nan)


def _around(value: float, se: float, size: float, level: float) -> Interval:
    """Normal interval; for terms without spread, the bound for an event that was never observed."""
    from scipy.special import ndtri

    unseen = 1 - ((1 - level) / 2) ** (1 / size) if size > 0 else 1.0
    reach = float(ndtri((1 + level) / 2)) * se if se != 0 else unseen
    return Interval(max(value - reach, -1.0), min(value + reach, 1.0)) if reach == reach else Interval(reach, reach)
