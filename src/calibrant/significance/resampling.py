"""`calibration_test`: is the calibration error larger than those of labels drawn from the probabilities?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Unpack

import numpy as np

from ..data.checks import check_norm, check_resamples
from ..data.predictions import Predictions
from ..data.problem import Problem
from ..data.progress import counted
from ..data.public_function import InputOptions, SumsOfRows, verb
from ..data.types import AnyArray, FloatArray, RandomState
from ..data.validation import as_predictions
from ..data.weights import ones_or
from ..estimators import CellEstimator, Estimator, KernelCalibrationError, ResidualKernel, SimplexBinned
from ..estimators.names import as_estimator
from ..estimators.norm import combine_draws, root
from ..measure.intervals import sums_paths
from ..measure.question import Question
from ..measure.scoring_rules import RULES, ScoringRule, as_rule, matrix_of
from ..notions import Notion, Target, as_notion
from .report_test import FEW_DRAWS, SumsTest, drawn_together
from .result import TestResult
from .sign_flips import Flips, share_at_least

#: Draws worked on at a time.
_TOGETHER = 1 << 22
_OF_SUMS = ResidualKernel()
#: The only truth that is drawn: perfect calibration.
_CALIBRATED = np.zeros(1)


def _test_of_sums(sums: Any, estimator: Any, norm: float, n_resamples: int, rng: np.random.Generator) -> TestResult:
    """Outcomes are drawn in their cells, whatever the number of rows."""
    reader = as_estimator(estimator, _OF_SUMS)
    if not isinstance(reader, CellEstimator):
        raise TypeError(
            f"estimator must be one that reads sums, such as Binned(...) or Density(...); {reader!r} needs the rows: "
            "use calibration_test(y_true, y_prob)"
        )
    question = sums.question(norm)
    if reader == _OF_SUMS and norm == 1:
        problems = list(sums.problems.values())
        grids, bins = [one.grid for one in problems], [one.bins for one in problems]
        return SumsTest.of(grids, bins, question, rng, n_resamples).result
    asked = question.informative
    observed, each = _drawn_in_cells(reader, sums, asked, n_resamples, rng)
    statistic, draws = asked.combine(observed), drawn_together(each, asked)
    known = not (np.isnan(statistic) or np.isnan(draws).any())
    return TestResult(
        statistic=statistic,
        pvalue=share_at_least(draws, statistic) if known else float("nan"),
        null=f"the probabilities are calibrated ({question.notion})",
        name=f"{reader!r} from sums, {draws.size} draws of a calibrated model",
        n_samples=question.n_samples,
        details={"expected": float(draws.mean())},
        draws=draws,
    )


def _drawn_in_cells(
    reader: CellEstimator, sums: Any, asked: Question, n_resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """``errorᵖ`` of every problem, (K,), and of samples drawn from calibrated models with these scores, (K, R)."""
    n = FEW_DRAWS if asked.sum_is_normal else n_resamples
    paths: list[Any] = []
    for part in sums.sums(reader):
        some = part[: max(0, len(asked) - len(paths))] if len(part) + len(paths) > len(asked) else part
        noise = [np.random.default_rng(seed) for seed in rng.integers(2**63, size=len(some))]
        if noise:
            paths += sums_paths(reader, some, asked.norm, n, noise, counts=True, scales=_CALIBRATED)
    least = min(path.powers.shape[-1] for path in paths)
    return np.array([path.observed for path in paths]), np.stack([path.powers[0, :least] for path in paths])


@verb(grouped=True, sums=True)
def calibration_test(
    y_true: Any,
    y_prob: Any = None,
    *,
    notion: str | Notion = "auto",
    estimator: str | Estimator | ScoringRule = "auto",
    norm: float = 1,
    n_resamples: int = 999,
    random_state: RandomState = 0,
    **inputs: Unpack[InputOptions],
) -> TestResult:
    r"""Test of calibration by resampling (Vaicenavicius et al. 2019; the survey's Algorithm 1), for any estimator.

    Labels are drawn from the stated probabilities, row by row, ``n_resamples`` times; the p-value is the share of
    calibration errors, the observed one among them, that are at least as large as the observed one:

    .. math:: p = \frac{1 + \#\{r : T_r \ge T\}}{1 + R}

    It is exact for any n and any estimator: under calibration ``P(p ≤ α) ≤ α``, with equality but for ties.

    Parameters
    ----------
    y_true, y_prob, labels, pos_label, sample_weight
        See :func:`calibrant.as_predictions`. Weights are those of the statistic; each row draws one label. Or an
        :class:`calibrant.Accumulator` in place of the rows: outcomes are then drawn in the cells of its sums.
    notion : str or Notion, default "auto"
        What is tested; see :func:`calibrant.calibration_error`.
    estimator : "auto", Estimator, "brier", "log-loss", "spherical" or ScoringRule, default "auto"
        Of the statistic; its own bias is no matter, for the draws have it too. ``"auto"``: smoothed residuals over
        ranks, which need no bins. Or a proper score of all probabilities: is it worse than these predict? That detects
        over-confidence; an under-confident model scores better than it predicts, and passes.
    norm : float ≥ 1, default 1
    n_resamples : int, default 999
    random_state : int, Generator or None

    Returns
    -------
    TestResult
        ``details``: ``p_greater`` and ``p_at_least``, the shares of draws above, and not below, the observed error (the
        survey's), and the ``expected`` error of a calibrated model.

    Notes
    -----
    Cost ``n_resamples`` estimates; for :class:`Binned` with hard bins about 10 ns a row, class and draw.

    Of an Accumulator: ``"auto"`` is the test of :func:`calibrant.report`, and others are estimators that read sums. It
    is approximate: a cell's outcomes share one probability, and classes against the rest are drawn independently, the
    spread of what they make together widened, which loses some power. With more than ten classes ``"auto"`` draws fewer
    of each; of 64 or more, whose sum is normal, a few. ``benchmarks/coverage/sums_tests.md`` has false alarms and power
    beside those of the test of rows. The same sums give the same p-value, in whatever pieces they came.

    References
    ----------
    Bröcker & Smith (2007), *Increasing the reliability of reliability diagrams*; Vaicenavicius et al. (2019),
    *Evaluating model calibration in classification*; Silva Filho et al. (2023), §6.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(300)
    >>> bool(cal.calibration_test(rng.random(300) < p**2, p, random_state=0).pvalue < 0.01)
    True
    """
    n_resamples, norm = check_resamples(n_resamples, 1), check_norm(norm)
    if isinstance(y_true, SumsOfRows):
        return _test_of_sums(y_true, estimator, norm, n_resamples, np.random.default_rng(random_state))
    p = as_predictions(y_true, y_prob, **inputs)
    chosen = as_notion(notion, p)
    reader: Any = estimator
    if isinstance(estimator, ScoringRule) or (isinstance(estimator, str) and estimator in RULES):
        reader = as_rule(estimator, half=p.positive is not None)
    rng = np.random.default_rng(random_state)
    if not isinstance(reader, ScoringRule):
        reader = _reader(reader, chosen)
        reader._check(chosen.reduce(p), chosen.name)
    if p.groups is not None:
        flipped = _flipped_score(reader, p) if isinstance(reader, ScoringRule) else _flipped(reader, chosen, p, norm)
        observed, drawn = flipped(n_resamples, rng)
        how = f"signs of {p.n_groups} groups"
    else:
        statistics = _score(reader, p) if isinstance(reader, ScoringRule) else _statistics(reader, chosen, p, norm)
        observed = float(statistics(p.codes[None].astype(np.int64))[0])
        drawn = (statistics(codes) for codes in drawn_labels(p, n_resamples, rng))
        how = "resampling under calibration"
    draws = np.concatenate(list(drawn))
    # Draws that are the same sum in another order.
    near = 1e-12 * max(abs(observed), 1e-300) if np.isfinite(observed) else 0.0
    greater, at_least = int((draws > observed + near).sum()), int((draws >= observed - near).sum())
    return TestResult(
        statistic=observed,
        pvalue=(at_least + 1) / (len(draws) + 1),
        null="the probabilities are calibrated" + ("" if isinstance(reader, ScoringRule) else f" ({chosen.name})"),
        name=f"{how}, {reader!r}, {len(draws)} draws",
        n_samples=p.n_samples,
        details={
            "p_greater": greater / len(draws),
            "p_at_least": at_least / len(draws),
            "expected": float(draws.mean()),
        },
        draws=draws,
    )


#: Calibration errors, (R,), of R sets of labels (R, n).
Statistics = Callable[[AnyArray], FloatArray]


def _score(rule: ScoringRule, p: Predictions) -> Statistics:
    """Mean scores of sets of labels."""
    q = matrix_of(p)
    rule.expected(q[:1], q[:1])  # judges the number of classes
    table = rule.table(q)
    weight = ones_or(p.weights, p.n_samples)
    weight, table = weight[weight > 0] / weight.sum(), table[weight > 0]
    used = slice(None) if p.weights is None else np.flatnonzero(p.weights > 0)
    rows = np.arange(len(table))
    return lambda sets: table[rows, sets[:, used]] @ weight


def _reader(estimator: str | Estimator, notion: Notion) -> Estimator:
    if not notion.vector:
        return as_estimator(estimator, ResidualKernel())
    return as_estimator(estimator, SimplexBinned("cbrt") if notion.drawn else KernelCalibrationError())


#: Observed statistic, and those drawn under the null hypothesis, some at a time.
Flipped = Callable[[int, np.random.Generator], tuple[float, Iterable[FloatArray]]]


def _flipped_score(rule: ScoringRule, p: Predictions) -> Flipped:
    """Mean scores of rows in groups: expected ones, and what differs from these with the signs of groups drawn."""
    if p.weights is not None:
        p = p.subset(p.weights > 0)
    q = matrix_of(p)
    rule.expected(q[:1], q[:1])
    table, weight = rule.table(q), ones_or(p.weights, p.n_samples)
    weight = weight / weight.sum()
    mean = (q * np.where(q > 0, table, 0.0)).sum(axis=1)
    excess = np.take_along_axis(table, p.codes[:, None].astype(np.intp), axis=1)[:, 0] - mean
    spread = (q * (np.where(q > 0, table, 0.0) - mean[:, None]) ** 2).sum(axis=1)
    observed = float(weight @ (mean + excess))
    if not np.isfinite(observed):  # what cannot happen has happened
        return lambda n, rng: (observed, [np.full(n, float(weight @ mean))])
    flips = Flips.of(np.asarray(p.groups), excess**2, spread, weight)
    each = np.bincount(flips.group, weight * excess)[:, None]
    return lambda n, rng: (observed, (float(weight @ mean) + d[:, 0] for d in flips.drawn(each, n, rng)))


def _flipped(reader: Estimator, notion: Notion, p: Predictions, norm: float) -> Flipped:
    """Errors of rows in groups, whose residuals change their sign together."""
    if notion.vector:
        raise ValueError(
            f"notion {notion.name!r} cannot be tested with groups here: take kernel_test(), 'classwise', or one class"
        )
    if not isinstance(reader, CellEstimator):
        raise TypeError(
            f"{reader!r} cannot be tested with groups, since it looks at rows one by one: use an estimator of bins or "
            "cells ('auto', Binned(), Density())"
        )
    if p.weights is not None:
        p = p.subset(p.weights > 0)
    targets, codes = list(notion.targets(p)), p.codes.astype(np.int64)
    shares = [1 / len(targets) if t.share is None else t.share for t in targets]
    residuals = [t.outcomes(codes) - t.scores.astype(np.float64) for t in targets]
    places = [slice(None) if t.rows is None else t.rows for t in targets]
    weights = ones_or(p.weights, p.n_samples)
    squares, variances = np.zeros(p.n_samples), np.zeros(p.n_samples)
    for t, r, at in zip(targets, residuals, places, strict=True):
        squares[at] += r**2
        variances[at] += t.scores * (1.0 - t.scores)
    flips = Flips.of(np.asarray(p.groups), squares, variances, weights)

    def errors(signs: FloatArray) -> FloatArray:
        """Errors with these signs of the groups, (r, G)."""
        powers = []
        for t, r, at in zip(targets, residuals, places, strict=True):
            about = {"integral": p.integral_weights, "domain": t.domain, "eps": p.eps}
            outcomes = t.scores + signs[:, flips.group[at]] * r
            scores, w = np.broadcast_to(t.scores, outcomes.shape), None if p.weights is None else p.weights[at]
            powers.append(reader._powers(Problem.samples(scores, outcomes, w, **about), norm))
        return combine_draws(powers, shares, norm, notion.average)

    observed = float(errors(np.ones((1, flips.n_groups)))[0])
    return lambda n, rng: (observed, (errors(signs) for signs in flips.signs(n, rng, p.n_samples)))


def drawn_labels(p: Predictions, n_resamples: int, rng: np.random.Generator) -> Any:
    """Labels drawn from the rows, some sets at a time, (r, n)."""
    if p.positive is not None:
        running = (p.probs if p.positive == 0 else 1 - p.probs).astype(np.float64)[:, None]
    else:
        running = np.cumsum(p.probs.astype(np.float64), axis=1)[:, :-1]
    columns = np.ascontiguousarray(running.T)
    together = max(1, _TOGETHER // max(p.n_samples, 1))
    for start in counted(range(0, n_resamples, together), "draws"):
        draw = rng.random((min(together, n_resamples - start), p.n_samples))
        codes = np.zeros(draw.shape, dtype=np.int64)
        for column in columns:
            codes += draw > column
        yield codes


def _statistics(reader: Estimator, notion: Notion, p: Predictions, norm: float) -> Statistics:
    """Errors of sets of labels: of each problem, the sets are many problems with the same scores."""
    if notion.vector:
        problem: Any = notion.reducer(p)
        return lambda sets: np.array([root(reader.power(problem(codes), norm), norm) for codes in sets])
    targets = list(notion.targets(p))
    shares = [1 / len(targets) if t.share is None else t.share for t in targets]

    def powers(target: Target, sets: AnyArray) -> FloatArray:
        outcomes = np.ascontiguousarray(target.outcomes(sets.T).T)
        weights = p.weights if p.weights is None or target.rows is None else p.weights[target.rows]
        scores = np.broadcast_to(target.scores, outcomes.shape)
        about = {"integral": p.integral_weights, "domain": target.domain, "eps": p.eps}
        return reader._powers(Problem.samples(scores, outcomes, weights, **about), norm)

    return lambda sets: combine_draws([powers(t, sets) for t in targets], shares, norm, notion.average)
