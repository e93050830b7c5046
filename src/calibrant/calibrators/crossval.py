"""Cross-validation of calibrators by a proper score: folds, fits, losses, and the resulting table."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaincinv, ndtri, stdtrit
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from ..data.checks import check_choice, fold_seed
from ..data.fields import need
from ..data.predictions import Predictions
from ..data.types import AnyArray, FloatArray, Interval
from ..data.weights import rest_of
from ..exceptions import ConvergenceWarning
from ..measure.estimation import estimate
from ..measure.result import Estimate
from ..notions import Notion
from .base import Calibrator
from .inputs import CalibrationSample

#: Proper scores.
SCORES = ("log-loss", "brier")
GOALS = (*SCORES, "calibration")
#: The rule that averages several candidates; the others choose one.
AVERAGE = "average"
RULES = (AVERAGE, "one-standard-error", "best")
#: Lower bound of probabilities in the log-loss, so that a single surprise does not decide.
FLOOR = 1e-6

Folds = list[tuple[AnyArray, AnyArray]]


def check_goal(goal: Any) -> str:
    """Check the ``goal`` argument."""
    return check_choice("goal", goal, GOALS)


def folds_of(codes: AnyArray, cv: int, random_state: Any, groups: AnyArray | None = None) -> Folds:
    """Stratified training and test rows; no more folds than rows of the rarest class, but at least two.

    Folds keep groups together, so that there are at most as many folds as groups.
    """
    random_state = fold_seed(random_state)
    if len(codes) < 2 or int(np.bincount(codes).max()) < 2:
        raise ValueError(
            f"cross-validation needs at least two rows of one class; got {len(codes)}, no two of the same class"
        )
    rarest = int(np.bincount(codes)[np.unique(codes)].min())
    number = max(2, min(cv, rarest))
    if len(codes) < 2 * number:
        number = 2
    with warnings.catch_warnings():
        # A class with a single row is in one fold only, which its calibrators are told of by their labels.
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        if groups is not None:
            number = min(number, int(np.unique(groups).size))
            if number < 2:
                raise ValueError(
                    "folds keep groups together, so at least two groups are needed; all rows belong to one group"
                )
            parts = StratifiedGroupKFold(number, shuffle=True, random_state=random_state)
            found = parts.split(np.zeros(len(codes)), codes, groups)
            return [(train, test) for train, test in found if train.size and test.size]
        split = StratifiedKFold(number, shuffle=True, random_state=random_state)
        return list(split.split(np.zeros(len(codes)), codes))


def fit_quietly(one: Calibrator, sample: CalibrationSample) -> Calibrator:
    """A fitted copy; the given calibrator stays unfitted."""
    with warnings.catch_warnings():
        # A candidate that cannot converge loses the comparison by its loss.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted: Calibrator = copy(one)._fit_sample(sample)
    return fitted


def held_out(one: Calibrator, sample: CalibrationSample, folds: Folds) -> tuple[FloatArray, float]:
    """Probabilities of each row by a fit that did not see it, (n, K), and the mean seconds per fit."""
    fits, seconds = fold_fits(one, (sample.part(train) for train, _ in folds))
    return predict_held_out(fits, sample, folds), seconds


def fold_fits(one: Calibrator, parts: Iterable[CalibrationSample]) -> tuple[list[Calibrator], float]:
    """A fit to each of several samples, and the mean seconds per fit."""
    start = perf_counter()
    fits = [fit_quietly(one, part) for part in parts]
    return fits, (perf_counter() - start) / len(fits)


def predict_held_out(fits: list[Calibrator], sample: CalibrationSample, folds: Folds) -> FloatArray:
    """Probabilities of each row by the fit that did not see it, (n, K)."""
    out = np.empty((sample.scores.n_rows, sample.n_classes))
    for fitted, (_, test) in zip(fits, folds, strict=True):
        out[test] = fitted._probabilities_of(sample.part(test).scores)
    return out


def losses_of(p: FloatArray, codes: AnyArray, goal: str) -> FloatArray:
    """Loss of each row: ``-log max(p_y, 1e-6)``, or ``Σ_k (p_k - o_k)²``."""
    own = p[np.arange(len(codes)), codes]
    if goal == "log-loss":
        return np.asarray(-np.log(np.maximum(own, FLOOR)))
    return np.asarray(np.einsum("ij,ij->i", p, p) - 2 * own + 1)


class MeanDifference(NamedTuple):
    """Mean of paired differences, its standard error, and the degrees of freedom of the standard error.

    ``by_mistake`` is the change of the mean by one more mistake of scores that hardly expect any, and ``mistakes`` the
    number of those in the rows (:func:`_by_mistake`).
    """

    value: float
    se: float
    df: float
    by_mistake: float = 0.0
    mistakes: int = 0

    def times(self, factor: float) -> MeanDifference:
        """Rescaled by a factor."""
        return self._replace(value=factor * self.value, se=factor * self.se, by_mistake=factor * self.by_mistake)

    def interval(self, level: float) -> Interval:
        """Student's interval; its upper end is the exact limit of a Poisson number of mistakes, if that is higher."""
        half = float(stdtrit(self.df, 0.5 + level / 2)) * self.se
        more = float(gammaincinv(self.mistakes + 1, 0.5 + level / 2)) - self.mistakes
        return Interval(self.value - half, self.value + max(half, more * self.by_mistake))


#: The result without a baseline.
UNKNOWN = MeanDifference(float("nan"), float("nan"), float("inf"))


def paired(losses: FloatArray, others: FloatArray, sample: CalibrationSample) -> MeanDifference:
    """Weighted mean of the differences of rows; its standard error is clustered by group, if there are groups.

    Degrees of freedom are those of the variance of heavy-tailed sums, ``2 n / (kurtosis - 1)`` for n equal ones
    (Satterthwaite): if a few rows or groups make up the difference, its standard error is accordingly uncertain.
    """
    gap = losses - others
    variance = variance_of_mean(gap, sample, sample.groups)
    share = sample.weights / sample.total
    value = float(share @ gap)
    parts = share * (gap - value)
    if sample.groups is not None:
        parts, share = (np.asarray(np.bincount(sample.groups, v), dtype=np.float64) for v in (parts, share))
    of_one = float(share @ share)
    square = float(parts @ parts)
    tails = float(parts**2 @ parts**2) / square**2 - of_one if square**2 > 0 else 0.0
    df = 1 / of_one - 1
    return MeanDifference(value, float(np.sqrt(variance)), max(1.0, min(df, 2 / tails) if tails > 0 else df))


def _by_mistake(before: FloatArray, after: FloatArray, sample: CalibrationSample, goal: str) -> tuple[float, int]:
    """Effect of one more mistake on the mean gain of a score, and the number seen, for scores that expect none.

    These scores are so close to 1 that less than one mistake is expected in as many rows. Smoothing them costs a little
    on most rows, and gains much on a mistake. With no mistake in the rows, or one, whose fold smooths nothing,
    differences of rows do not show this.
    """
    at = np.flatnonzero(before.max(axis=1) >= 1 - 1 / (len(before) + 2))
    if not at.size:
        return 0.0, 0
    p, q, top = before[at], after[at], before[at].argmax(axis=1)
    others = np.arange(p.shape[1]) != top[:, None]
    if goal == "log-loss":
        gains = np.log(np.maximum(q, FLOOR)) - np.log(np.maximum(p, FLOOR))
    else:
        gains = (p * p - q * q).sum(axis=1, keepdims=True) - 2 * (p - q)
    weight = np.where(others, np.maximum(q, np.finfo(float).tiny), 0.0)
    gain = (weight * gains).sum(axis=1) / weight.sum(axis=1)
    share, wrong = sample.weights[at] / sample.total, sample.codes[at] != top
    if sample.groups is None:
        held, mistakes = share, np.flatnonzero(wrong)
    else:
        held = np.asarray(np.bincount(sample.groups[at], share), dtype=np.float64)
        mistakes = np.unique(sample.groups[at][wrong])
    return max(0.0, float(share @ gain) * float(held @ held) / float(share.sum()) ** 2), len(mistakes)


def variance_of_mean(values: FloatArray, sample: CalibrationSample, groups: AnyArray | None) -> float:
    """Variance of a weighted mean of independent rows or groups (Liang & Zeger 1986; Bell & McCaffrey 2002)."""
    share = sample.weights / sample.total
    parts = share * (values - share @ values)
    if groups is None:
        return float(parts @ parts)
    sums, held = (np.asarray(np.bincount(groups, v), dtype=np.float64) for v in (parts, share))
    return float(sums**2 @ (1 / rest_of(held)))


def design_effect(values: FloatArray, sample: CalibrationSample) -> float:
    """Number of rows as informative about a mean as one independent row; at least 1, and 1 without groups."""
    alone, together = (variance_of_mean(values, sample, groups) for groups in (None, sample.groups))
    return max(1.0, together / alone) if alone > 0 else 1.0


@dataclass(frozen=True, eq=False)
class HeldOutEvidence:
    """Evidence of a candidate's held-out probabilities: losses of rows by each proper score, and correctness.

    ``error`` is their calibration error, if requested, and ``held`` the probabilities.
    """

    losses: Mapping[str, FloatArray]
    right: FloatArray
    error: Estimate | None = None
    held: FloatArray | None = None

    @classmethod
    def of(cls, p: FloatArray, sample: CalibrationSample, error: Estimate | None = None) -> HeldOutEvidence:
        """From probabilities (n, K) of a sample's rows."""
        losses = {score: losses_of(p, sample.codes, score) for score in SCORES}
        return cls(losses, np.asarray(p.argmax(axis=1) == sample.codes, dtype=np.float64), error, p)

    def gain_over(self, before: HeldOutEvidence, score: str, sample: CalibrationSample) -> MeanDifference:
        """Decrease of a score, compared with other probabilities of the same rows."""
        found = paired(before.losses[score], self.losses[score], sample)
        if before.held is None or self.held is None:
            return found
        by_mistake, mistakes = _by_mistake(before.held, self.held, sample, score)
        return found._replace(by_mistake=by_mistake, mistakes=mistakes)

    @property
    def calibration(self) -> tuple[float, float]:
        """The calibration error, and its standard error from its interval."""
        if self.error is None:
            raise RuntimeError("calibration errors were not computed")
        interval = self.error.interval
        return self.error.value, (interval.high - interval.low) / (2 * float(ndtri(0.5 + self.error.level / 2)))


def error_of(p: FloatArray, sample: CalibrationSample, notion: str | Notion = "auto", level: float = 0.95) -> Estimate:
    """Calibration error by the default estimator; as in a report, draws are fixed for reproducible intervals."""
    return estimate(as_predictions_of(p, sample), None, notion=notion, level=level, random_state=0)


def as_predictions_of(p: FloatArray, sample: CalibrationSample) -> Predictions:
    """Probabilities of a sample's rows, (n, K), in the shape of its scores; they are not checked."""
    one = sample.scores.values.ndim == 1
    shown = np.ascontiguousarray(p[:, 1]) if one else p
    weights = None if bool(np.ptp(sample.weights) == 0) else sample.weights
    eps = float(np.finfo(p.dtype).eps)
    return Predictions(shown, sample.codes, weights, sample.classes, 1 if one else None, eps, None, sample.groups)


def score_scale(goal: str, n_classes: int) -> float:
    """Factor of a printed loss: the Brier score of two classes is ``(p - o)²``, half the sum."""
    return 0.5 if goal == "brier" and n_classes == 2 else 1.0


def chosen_of(
    found: Mapping[str, HeldOutEvidence], sample: CalibrationSample, goal: str, rule: str, identity: str | None
) -> tuple[str, list[dict[str, Any]]]:
    """The choice by a rule, and a row for each candidate: its mean loss, its difference from the least, and the se.

    If the goal is calibration, the loss is the calibration error, and the choice is among those that worsen neither
    proper score by more than its standard error, compared with ``identity``. Among errors that do not differ, the
    log-loss decides by the same rule.
    """
    table = _table(found, sample, goal)
    able = [row for row in table if goal != "calibration" or not _harms(found, row["name"], identity, sample)]
    least = min(able, key=lambda row: row["loss"])
    if goal == "calibration":
        for row in table:
            row["difference"] = row["loss"] - least["loss"]
    within = [row["name"] for row in able if not row["difference"] > row["se"]]
    if goal == "calibration" and len(within) > 1 and rule != "best":
        within = [chosen_of({name: found[name] for name in within}, sample, "log-loss", rule, identity)[0]]
    scale = score_scale(goal, sample.n_classes)
    shown = [row | {key: scale * row[key] for key in ("loss", "difference", "se")} for row in table]
    return least["name"] if rule == "best" else within[0], shown


#: Numbers of a row besides its weight.
_NUMBERS = ("loss", "difference", "se", "accuracy", "seconds")


def _table(found: Mapping[str, HeldOutEvidence], sample: CalibrationSample, goal: str) -> list[dict[str, Any]]:
    """A row for each candidate: its loss, its difference from the least, and the standard error of the difference.

    For calibration errors, differences are left at 0, and the standard error is the candidate's own. It is no less
    than that of a difference where errors of equal spread, on the same labels, correlate by at least a half.
    """
    if goal == "calibration":
        each = {name: (one.calibration[0], 0.0, one.calibration[1]) for name, one in found.items()}
    else:
        weights = sample.weights / sample.total
        mean = {name: float(weights @ one.losses[goal]) for name, one in found.items()}
        best = found[min(mean, key=lambda name: mean[name])].losses[goal]
        each = {name: (mean[name], *paired(one.losses[goal], best, sample)[:2]) for name, one in found.items()}
    return [{"name": name, "loss": loss, "difference": gap, "se": se} for name, (loss, gap, se) in each.items()]


def check_table(table: Sequence[Mapping[str, Any]], chosen: str, applied: FloatArray) -> None:
    """Raise ValueError unless rows of candidates give the choice, and the weights of the average that is applied."""
    for row in table:
        need({*row} - {"weight"} == {"name", "chosen", *_NUMBERS}, f"table_ needs name, chosen, {', '.join(_NUMBERS)}")
        need(isinstance(row["name"], str) and isinstance(row["chosen"], bool), "table_ needs str name and bool chosen")
        numbers = [row[key] for key in row if key not in ("name", "chosen")]
        need([isinstance(v, (int, float)) and not isinstance(v, bool) for v in numbers], "table_ must have numbers")
        need([0 <= row.get(key, 0) <= 1 for key in ("accuracy", "weight")], "table_ must have shares in [0, 1]")
    need([row["name"] for row in table if row["chosen"]] == [chosen], "table_ must mark only chosen_ as chosen")
    need(len({row["name"] for row in table}) == len(table), "names in table_ must differ")
    if held := np.sort([row["weight"] for row in table if row.get("weight")]).tolist():
        shares = np.sort(applied) if len(held) > 1 else np.ones(1)  # one alone may be an average itself
        same = len(held) == shares.size and np.allclose(held, shares, rtol=1e-9, atol=0)
        need(same, "weights in table_ must be those of calibrator_")


def _harms(found: Mapping[str, HeldOutEvidence], name: str, identity: str | None, sample: CalibrationSample) -> bool:
    if identity is None:
        return False
    changes = [paired(found[name].losses[score], found[identity].losses[score], sample) for score in SCORES]
    return any(change.value > change.se for change in changes)
