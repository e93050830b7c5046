"""`compare_calibrators`: what each calibrator would make of the scores, on rows that it was not fitted to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..calibrators import Calibrator, Identity
from ..calibrators.crossval import GOALS, RULES, check_goal, chosen_of, fit_rows, folds_of, held_out, losses_of, paired
from ..calibrators.inputs import Sample
from ..calibrators.select import candidates_for, judged_sample
from ..data.checks import check_choice, check_int
from ..data.convert import to_array
from ..data.notions import Notion
from ..data.predictions import Predictions
from ..data.progress import progress_bar
from ..data.types import FloatArray
from ..data.verbs import verb
from ..measure.estimation import estimate
from ..measure.result import Estimate
from .assemble import report
from .comparison import CalibratorComparison, ComparedCalibrator
from .report import Report


@verb({"scoring": "goal", "scores": "y_prob", "y": "y_true"})
def compare_calibrators(
    y_true: Any,
    y_prob: Any = None,
    *,
    candidates: Mapping[str, Calibrator] | None = None,
    cv: int = 5,
    goal: str = "log-loss",
    rule: str = "one-standard-error",
    notion: str | Notion = "auto",
    level: float = 0.95,
    sample_weight: Any = None,
    input: str = "probability",
    labels: Sequence[Any] | None = None,
    random_state: Any = 0,
    progress: bool = False,
    title: str = "Comparison of calibrators",
) -> CalibratorComparison:
    r"""Cross-validate calibrators: scores, accuracy and calibration errors of rows that each was not fitted to.

    Parameters
    ----------
    y_true : array-like of shape (n,), or Predictions
        Observed labels; :class:`calibrant.Predictions` stand for labels, scores, weights and their order.
    y_prob : array-like of shape (n,) or (n, K)
        Scores, of the kind that ``input`` says.
    sample_weight, input, labels
        As :meth:`calibrant.calibrators.Calibrator.fit`.
    candidates : mapping of str to Calibrator, optional
        From the simplest to the most flexible; default :func:`calibrant.calibrators.default_candidates`.
    cv, goal, rule, random_state
        As :func:`calibrant.calibrators.select_calibrator`, which chooses the same with the same arguments.
    notion : str or Notion, default "auto"
        Of the calibration error: 1-D scores are judged as the second class's, others by the confidence.
    level : float, default 0.95
        Of intervals and bands.
    progress : bool, default False
        A progress bar on standard error. Needs rich (extra ``cli``).
    title : str

    Returns
    -------
    CalibratorComparison
        ``str(comparison)``, ``.to_dict()``, ``.to_frame()``, ``.to_html(path)``, ``.chosen``.

    Raises
    ------
    TypeError
        For scores where labels belong: the order was another in earlier versions.

    Notes
    -----
    Every number is of the rows of all folds together, each by the fit of the others. The log-loss counts probabilities
    below 1e-6 as 1e-6. Cost: ``cv`` fits and one estimate with its interval a candidate, and two reports.

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
    'temperature'
    >>> before, after = found.rows[0], found.row("temperature")
    >>> bool(after.log_loss < before.log_loss and after.error.value < before.error.value / 3)
    True
    """
    goal = check_goal(goal)
    check_choice("rule", rule, RULES)
    check_int("cv", cv, 2)
    if isinstance(y_true, Predictions):
        if y_prob is not None:
            raise TypeError("Predictions say everything about the rows: y_prob must not be given with them")
        sample = judged_sample(y_true, None, sample_weight, input, labels)
    else:
        _refuse_swapped(y_true, y_prob)
        sample = judged_sample(y_prob, y_true, sample_weight, input, labels)
    tried = candidates_for(sample, candidates)
    everything = np.arange(sample.scores.n_rows)
    folds = folds_of(sample.codes, cv, random_state)
    judge = _Judge(sample, notion, level)
    weights = sample.weights / sample.total
    plain = _as_they_are(sample)
    was_right = None if plain is None else _right(plain, sample)
    losses: dict[str, dict[str, FloatArray]] = {}
    found: dict[str, dict[str, Any]] = {}
    with progress_bar("fitting calibrators", len(tried), shown=progress) as advance:
        for name, one in tried.items():
            p, seconds = held_out(one, sample, folds, everything)
            losses[name] = {s: losses_of(p, sample.codes, s) for s in GOALS}
            right = _right(p, sample)
            change, se = (float("nan"),) * 2 if was_right is None else paired(right, was_right, weights)
            found[name] = {
                "accuracy": float(weights @ right),
                "accuracy_change": change,
                "accuracy_change_se": se,
                "error": judge.error(p),
                "seconds": seconds,
            }
            advance(1)
    chosen, table = chosen_of({name: each[goal] for name, each in losses.items()}, weights, rule)
    rows = tuple(
        ComparedCalibrator(
            name=row["name"],
            log_loss=float(weights @ losses[row["name"]]["log-loss"]),
            brier=float(weights @ losses[row["name"]]["brier"]),
            difference=row["difference"],
            se=row["se"],
            **found[row["name"]],
        )
        for row in table
    )
    # Left alone looks the same before and after: the best of the others shows what leaving alone is better than.
    others = [row for row in rows if not isinstance(tried[row.name], Identity)]
    shown = (
        min(others, key=lambda row: row.difference).name if isinstance(tried[chosen], Identity) and others else chosen
    )
    after, _ = held_out(tried[shown], sample, folds, everything)
    return CalibratorComparison(
        n_samples=sample.scores.n_rows,
        classes=sample.classes,
        n_folds=len(folds),
        goal=goal,
        rule=rule,
        level=level,
        chosen=chosen,
        shown=shown,
        rows=rows,
        before=None if plain is None else judge.report(plain, "before"),
        after=judge.report(after, shown),
        title=title,
    )


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


def _as_they_are(sample: Sample) -> FloatArray | None:
    """Probabilities as they came, (n, K); None where scores are no probabilities."""
    if sample.scores.kind == "margin":
        return None
    everything = np.arange(sample.scores.n_rows)
    one = Identity(input=sample.scores.kind, labels=list(sample.classes))
    return fit_rows(one, sample, everything).predict_proba(sample.scores.values)


def _right(p: FloatArray, sample: Sample) -> FloatArray:
    """1.0 where the first choice was the label."""
    return np.asarray(p.argmax(axis=1) == sample.codes, dtype=np.float64)


class _Judge:
    """Calibration error and report of probabilities of a sample's rows, in the shape that its scores have."""

    def __init__(self, sample: Sample, notion: str | Notion, level: float) -> None:
        self._sample, self._one = sample, sample.scores.values.ndim == 1
        self._weights = None if bool(np.ptp(sample.weights) == 0) else sample.weights
        self._options: dict[str, Any] = {"notion": notion, "level": level}

    def error(self, p: FloatArray) -> Estimate:
        """The default estimator's; draws are fixed, as in a report, so that the same rows give the same interval."""
        return estimate(self._predictions(p), None, random_state=0, **self._options)

    def report(self, p: FloatArray, title: str) -> Report:
        """A whole report."""
        return report(self._predictions(p), None, title=title, **self._options)

    def _predictions(self, p: FloatArray) -> Predictions:
        """What a calibrator says needs no judging."""
        said = np.ascontiguousarray(p[:, 1]) if self._one else p
        eps, positive = float(np.finfo(p.dtype).eps), 1 if self._one else None
        return Predictions(said, self._sample.codes, self._weights, self._sample.classes, positive, eps)
