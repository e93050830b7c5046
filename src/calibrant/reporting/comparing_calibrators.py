"""`compare_calibrators`: evaluate every candidate on rows that it was not fitted to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Unpack

import numpy as np

from ..calibrators import Calibrator, Identity
from ..calibrators.candidates import candidates_for
from ..calibrators.choosing import Choosing
from ..calibrators.crossval import (
    AVERAGE,
    RULES,
    SCORES,
    UNKNOWN,
    HeldOutEvidence,
    MeanDifference,
    as_predictions_of,
    check_goal,
    chosen_of,
    error_of,
    fit_quietly,
    paired,
    score_scale,
)
from ..calibrators.inputs import CalibrationSample
from ..calibrators.select import as_sample
from ..data.checks import check_choice, check_int, check_type
from ..data.convert import to_array
from ..data.dependence import group_codes
from ..data.predictions import Predictions
from ..data.progress import working
from ..data.public_function import ColumnOptions, public_function
from ..data.types import FloatArray
from ..measure.result import Estimate
from ..notions import Notion
from .assemble import report
from .comparison import CalibratorComparison, ComparedCalibrator
from .report import Report


@public_function(grouped=True)
def compare_calibrators(
    y_true: Any,
    y_prob: Any = None,
    *,
    candidates: Mapping[str, str | Calibrator] | Sequence[str] | None = None,
    cv: int = 5,
    goal: str = "log-loss",
    rule: str = AVERAGE,
    notion: str | Notion = "auto",
    level: float = 0.95,
    sample_weight: Any = None,
    groups: Any = None,
    input: str = "probability",
    labels: Sequence[Any] | None = None,
    pos_label: Any = None,
    random_state: Any = 0,
    progress: bool | None = None,
    title: str = "Comparison of calibrators",
    **columns: Unpack[ColumnOptions],
) -> CalibratorComparison:
    r"""Cross-validate calibrators: scores, accuracy and calibration errors on held-out rows.

    Parameters
    ----------
    y_true : array-like of shape (n,), or Predictions
        Observed labels; :class:`calibrant.Predictions` stand for labels, scores, weights and their order.
    y_prob : array-like of shape (n,) or (n, K)
        Scores, of the kind given by ``input``.
    cv : int, default 5
        Number of stratified folds; fewer where a class has fewer rows.
    notion : str or Notion, default "auto"
        The notion of the calibration error; by default the second class for 1-D scores, else the confidence.
    level : float in (0, 1), default 0.95
        Level of intervals and bands.
    sample_weight : array-like of shape (n,), optional
        Non-negative weights; whole numbers stand for repeated rows.
    groups : array-like of shape (n,), optional
        Rows of one group may depend on each other: folds keep them together, and standard errors and intervals
        account for groups.
    input : {"probability", "logit", "margin"}, default "probability"
        The kind of the scores; see :class:`calibrant.calibrators.Calibrator`.
    labels : sequence of K labels, optional
        The labels, in the order of the columns of ``y_prob``; by default the sorted unique labels.
    pos_label : label, optional
        The label that 1-D scores are for. Default: 1 for labels 0/1, -1/1 or bool; the last of ``labels``; otherwise it
        must be given.
    random_state : int, RandomState or None, default 0
        Seed of the folds. :func:`calibrant.calibrators.select_calibrator` with the same arguments chooses the same.
    progress : bool, optional
        Show a progress bar on standard error: at once (True), never (False) or by default, as in all functions, after
        two seconds on a terminal or in a notebook. Needs rich (extra ``cli``).
    title : str, default "Comparison of calibrators"
        Title of the text and of the page.

    Returns
    -------
    CalibratorComparison
        ``str(comparison)``, ``.to_dict()``, ``.to_frame()``, ``.to_html(path)``, ``.chosen``.

    Raises
    ------
    TypeError
        If scores are passed in place of labels.

    See Also
    --------
    calibrant.calibrators.select_calibrator : Choose and fit a calibrator, without the report.
    calibrant.AutoCalibrator : A calibrator that chooses when it is fitted.
    calibrant.CalibratedModel : A classifier together with its calibrator.
    calibrant.results.CalibratorComparison : The result, field by field.

    Notes
    -----
    Every number is computed on the rows of all folds together, each fold with the fit to the others; the weights of an
    average are those from all rows. The log-loss counts probabilities below 1e-6 as 1e-6. Intervals of gains are
    Student's, with the degrees of freedom of the variance of a heavy-tailed mean (Satterthwaite). Where scores of 0 and
    1 are wrong at most once, their upper ends allow for mistakes that these few rows may not show.
    ``benchmarks/arena/gains.md`` shows how often they cover the gain on new rows. Cost: ``cv`` fits and one estimate
    with its interval per candidate, and two reports.

    References
    ----------
    Silva Filho et al. (2023), *Classifier calibration: a survey*, §6 (comparison by proper scores).

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> found = cal.compare_calibrators(rng.random(4000) < 1 / (1 + (1 / p - 1) ** 0.5), p)  # log odds halved
    >>> found.chosen
    'average'
    >>> before, after = found.rows[0], found.row(found.chosen)
    >>> bool(after.log_loss < before.log_loss and after.error.value < before.error.value / 3)
    True
    """
    goal = check_goal(goal)
    check_choice("rule", rule, RULES)
    check_int("cv", cv, 2)
    check_type("title", title, str)
    if isinstance(y_true, Predictions):
        if y_prob is not None:
            raise TypeError("y_prob must not be given with Predictions, which contain the probabilities")
        sample = as_sample(y_true, None, sample_weight, input, labels, groups=groups, pos_label=pos_label)
    else:
        _refuse_swapped(y_true, y_prob)
        sample = as_sample(y_prob, y_true, sample_weight, input, labels, groups=groups, pos_label=pos_label)
    tried = candidates_for(sample, candidates)
    plain = _as_they_are(sample)
    before = None if plain is None else HeldOutEvidence.of(plain, sample)

    def judge(p: FloatArray, rows: CalibrationSample) -> Estimate:
        return error_of(p, rows, notion, level)

    with working("compare_calibrators", shown=progress):
        choice = Choosing(cv, goal, rule, random_state, whole=True).among(tried, sample, judge)
    found, held, table = dict(choice.found), dict(choice.held), choice.table
    if choice.name == AVERAGE:
        held[AVERAGE] = choice.averaged
        found[AVERAGE] = HeldOutEvidence.of(held[AVERAGE], sample, judge(held[AVERAGE], sample))
        table = chosen_of(found, sample, goal, "best", choice.identity)[1]
    seconds = {row["name"]: row["seconds"] for row in choice.table}
    seconds[AVERAGE] = sum(seconds[name] for name in choice.weights)
    alone, chosen = choice.identity, choice.name
    rows = tuple(
        _row(
            row, found[row["name"]], found[chosen], before, sample, seconds=seconds[row["name"]], goal=goal, level=level
        )
        for row in table
    )
    # Unchanged probabilities look the same before and after: the best of the other candidates is shown.
    others = [row for row in rows if row.name != alone]
    shown = min(others, key=lambda row: row.difference).name if chosen == alone and others else chosen

    def report_of(p: FloatArray, title: str) -> Report:
        return report(as_predictions_of(p, sample), None, title=title, notion=notion, level=level)

    return CalibratorComparison(
        n_samples=sample.scores.n_rows,
        classes=sample.classes,
        n_folds=choice.n_folds,
        goal=goal,
        rule=rule,
        level=level,
        chosen=chosen,
        shown=shown,
        rows=rows,
        weights=choice.weights,
        leading=choice.leading(tried) if rule == AVERAGE and goal != "calibration" and len(tried) > 1 else None,
        n_groups=None if sample.groups is None else int(np.unique(sample.groups).size),
        before=None if plain is None else report_of(plain, "before"),
        after=report_of(held[shown], shown),
        title=title,
        candidates=tried,
        digest=digest_of(sample),
    )


def _row(
    row: dict[str, Any],
    own: HeldOutEvidence,
    chosen: HeldOutEvidence,
    before: HeldOutEvidence | None,
    sample: CalibrationSample,
    *,
    seconds: float,
    goal: str,
    level: float,
) -> ComparedCalibrator:
    """Row of a candidate: means, and paired differences from the unchanged scores and from the choice."""
    weights = sample.weights / sample.total
    score, other = SCORES[::-1] if goal == "brier" else SCORES

    def gain(of: str) -> MeanDifference:
        found = own.gain_over(before, of, sample) if before is not None else UNKNOWN
        return found.times(score_scale(of, sample.n_classes))

    change = UNKNOWN if before is None else paired(own.right, before.right, sample)
    cost = paired(own.losses[score], chosen.losses[score], sample).times(score_scale(score, sample.n_classes))
    if own.error is None:
        raise RuntimeError("every candidate has a calibration error")
    return ComparedCalibrator(
        name=row["name"],
        log_loss=float(weights @ own.losses["log-loss"]),
        brier=score_scale("brier", sample.n_classes) * float(weights @ own.losses["brier"]),
        difference=row["difference"],
        se=row["se"],
        accuracy=float(weights @ own.right),
        accuracy_change=change.value,
        accuracy_change_se=change.se,
        error=own.error,
        seconds=seconds,
        gain=gain(score).value,
        gain_se=gain(score).se,
        gain_interval=gain(score).interval(level),
        other_gain=gain(other).value,
        other_gain_interval=gain(other).interval(level),
        cost=cost.value,
        cost_se=cost.se,
        cost_interval=cost.interval(level),
    )


def digest_of(sample: CalibrationSample) -> str:
    """Digest that identifies the rows of a sample by scores, labels, weights and groups."""
    parts = [sample.scores.values, sample.codes.astype(np.int64), sample.weights]
    if sample.groups is not None:
        parts.append(group_codes(sample.groups))
    state = blake2b(repr(sample.classes).encode(), digest_size=16)
    for one in parts:
        state.update(np.ascontiguousarray(one).data)
    return state.hexdigest()


def _refuse_swapped(y_true: Any, y_prob: Any) -> None:
    """Raise TypeError, naming the order, for scores first and labels second."""
    if y_prob is None or isinstance(y_prob, Predictions):
        raise TypeError("compare_calibrators(y_true, y_prob) takes labels and scores, or Predictions in place of both")
    first, second = to_array(y_true, "y_true")[0], to_array(y_prob, "y_prob")[0]

    def are_labels(values: Any) -> bool:
        if values.dtype.kind == "O" and all(isinstance(v, (float, np.floating)) for v in values.flat):
            values = values.astype(np.float64)
        whole = values.dtype.kind != "f" or bool((values == np.floor(values)).all())
        # One column, or rows with a single 1: no scores of a model.
        return whole and (values.ndim == 1 or bool((values.sum(axis=1) == 1).all()))

    if not (first.ndim == 1 and are_labels(first)) and are_labels(second):
        raise TypeError(
            "compare_calibrators(y_true, y_prob) takes labels first and scores second; y_true looks like scores, and "
            "y_prob like labels"
        )


def _as_they_are(sample: CalibrationSample) -> FloatArray | None:
    """Unchanged probabilities, (n, K); None where scores are not probabilities."""
    if sample.scores.kind == "margin":
        return None
    one = Identity(input=sample.scores.kind, labels=list(sample.classes))
    return fit_quietly(one, sample)._probabilities_of(sample.scores)
