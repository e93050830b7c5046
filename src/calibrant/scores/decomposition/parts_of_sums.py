"""`decompose` for sums: parts of a mean score from bins that were kept, or from the cells of a fine histogram."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...data.checks import check_choice
from ...data.weights import ones_or
from ...measure.scoring_rules import Brier, Log, ScoringRule, as_rule
from ...measure.streaming import Accumulator
from ...measure.sums_by_class import ProblemSums
from ...sums import BinMoments
from .observed import ESTIMATORS, observer_of
from .resampled_parts import ScoredRows
from .result import Decomposition

_SINGLE = Brier("half")
#: Largest values of Brier's score by its scale.
_LARGEST = {"half": 1.0, "sum": 2.0}


def decompose_sums(sums: Accumulator, *, score: Any = "brier", estimator: str = "corp") -> Decomposition:
    """Of an Accumulator: by isotonic regression of the cells of two classes, or by the bins that were kept."""
    check_choice("estimator", estimator, ESTIMATORS)
    if estimator == "exact":
        raise ValueError(
            "estimator='exact' needs the rows, whose probability vectors sums do not tell apart: use 'binned'"
        )
    totals = sums.required_totals()
    k = len(sums.classes)
    rule = as_rule(score, half=k == 2)
    if k > 2 and not isinstance(rule, Brier):
        raise ValueError(
            f"{rule!r} of {k} classes is no sum over classes: sums can decompose Brier's score, or rows can"
        )
    if k > 2 and estimator == "corp":
        raise ValueError(f"estimator='corp' of {k} classes needs the rows: of sums use estimator='binned'")
    problems = _problems(sums)
    moments = [_fine(one) if estimator == "corp" else one.bins for one in problems]
    if isinstance(rule, Brier) and k > 2:  # a sum over classes
        each = [_parts(_SINGLE, m, one, estimator, first=False) for m, one in zip(moments, problems, strict=True)]
        parts: dict[str, Any] = {name: _LARGEST[rule.scale] / 2 * sum(one[name] for one in each) for name in each[0]}
    else:
        first = sums.positive is None and problems[-1].label == sums.classes[0]
        parts = _parts(rule, moments[-1], problems[-1], estimator, first=first)
    if (total := _total(rule, sums)) is not None:
        binned = parts["total"]
        parts |= {"total": total, "within": total - binned if np.isfinite(binned) else 0.0}
    name = score if isinstance(score, str) else repr(score)
    return Decomposition(**parts, score=name, estimator=estimator, n_samples=totals.n_samples, n_classes=k)


def _problems(sums: Accumulator) -> list[ProblemSums]:
    """Problems of the classes: of two the second one's, if there is a fine histogram of either; else one a class."""
    fine = [one for one in sums.problems.values() if one.fine is not None and one.label in sums.classes]
    return fine if fine and len(sums.classes) == 2 else list((sums.class_sums or sums.problems).values())


def _fine(one: ProblemSums) -> BinMoments:
    if one.fine is None:
        raise ValueError(
            "estimator='corp' needs a fine histogram, which is kept with the notion 'class-specific', or the rows: of "
            "these sums use estimator='binned'"
        )
    return one.fine


def _parts(
    rule: ScoringRule, moments: BinMoments, one: ProblemSums, estimator: str, *, first: bool
) -> dict[str, float]:
    """Parts of one class, the first or not, against the rest, as if all rows of a bin had its mean score."""
    rows = moments.as_rows(one.domain)
    weights = ones_or(rows.weights, rows.n_samples)
    used = weights > 0
    s, codes, weights = rows.scores[used].astype(np.float64), (rows.outcomes[used] > 0).astype(np.intp), weights[used]
    stated = np.column_stack([1 - s, s])
    if first:
        stated, codes = stated[:, ::-1], 1 - codes
    # Bins are told apart by their mean scores.
    observer = observer_of(
        stated, "exact" if estimator == "binned" else estimator, 1, "uniform", 0.0, weights, integral=True
    )
    return ScoredRows(rule, stated, codes, weights, observer, None).parts()


def _total(rule: ScoringRule, sums: Accumulator) -> float | None:
    """The mean score itself, where it was kept; None where it was not."""
    totals = sums.required_totals()
    if isinstance(rule, Log):
        return totals.log_loss / totals.weight
    if not isinstance(rule, Brier):
        return None
    kept = "half" if sums.positive is not None else "sum"
    return totals.brier / totals.weight * _LARGEST[rule.scale] / _LARGEST[kept]
