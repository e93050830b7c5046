"""`calibration_test`: is the calibration error larger than those of labels drawn from the probabilities?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from ..data.checks import check_norm, check_random_state, check_resamples
from ..data.dependence import warn_of_class_weights
from ..data.predictions import Predictions, rows_with_weight
from ..data.printing import number_of
from ..data.problem import Problem
from ..data.public_function import InputOptions, SumsOfRows, public_function
from ..data.types import AnyArray, FloatArray, RandomState
from ..data.validation import as_predictions
from ..data.weights import ones_or
from ..estimators import CellEstimator, Estimator, KernelCalibrationError, ResidualKernel, SimplexBinned
from ..estimators.names import as_estimator
from ..estimators.norm import combine_draws, root
from ..measure.intervals import sums_paths
from ..measure.question import Question, reader_of_sums
from ..measure.scoring_rules import RULES, ScoringRule, as_rule, matrix_of
from ..notions import Notion, Target, alone, as_notion
from .null import DrawnLabels, GroupSigns, Null, impossible, rounding_of, share_at_least
from .report_test import FEW_DRAWS, SumsTest, drawn_together
from .result import IMPOSSIBLE, TestResult

_OF_SUMS = ResidualKernel()
#: The only truth that is drawn: perfect calibration.
_CALIBRATED = np.zeros(1)


def _test_of_sums(sums: Any, estimator: Any, norm: float, n_resamples: int, rng: np.random.Generator) -> TestResult:
    """Test from sums: outcomes are drawn cell by cell, whatever the number of rows."""
    reader = reader_of_sums(estimator, _OF_SUMS)
    question = sums.question(norm)
    if reader == _OF_SUMS and norm == 1:
        problems = list(sums.problems.values())
        grids, bins = [one.grid for one in problems], [one.bins for one in problems]
        return SumsTest.of(grids, bins, question, rng, n_resamples).result
    question = question.informative
    observed, each = _drawn_in_cells(reader, sums, question, n_resamples, rng)
    statistic, draws = question.combine(observed), drawn_together(each, question)
    known = not (np.isnan(statistic) or np.isnan(draws).any())
    return TestResult(
        statistic=statistic,
        pvalue=share_at_least(draws, statistic) if known else float("nan"),
        null=f"the probabilities are calibrated ({question.notion})",
        name=f"{reader!r} from sums, {number_of(draws.size, 'draw')} of a calibrated model",
        n_samples=question.n_samples,
        details={"mean_of_draws": float(draws.mean())},
        draws=draws,
        n_groups=question.n_groups,
    )


def _rules_out(sums: Any) -> bool:
    """Whether an outcome of the notion had probability 0, as far as sums tell: in some class, or one of two."""
    every = sums.notion.name == "classwise" or (sums.notion.name == "class-specific" and len(sums.classes) == 2)
    return every and bool(np.isinf(sums.required_totals().log_loss))


def _drawn_in_cells(
    reader: CellEstimator, sums: Any, question: Question, n_resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """``errorᵖ`` of every problem, (K,), and of samples drawn from calibrated models with these scores, (K, R)."""
    n = FEW_DRAWS if question.sum_is_normal else n_resamples
    paths: list[Any] = []
    for part in sums.sums(reader):
        some = part[: max(0, len(question) - len(paths))] if len(part) + len(paths) > len(question) else part
        noise = [np.random.default_rng(seed) for seed in rng.integers(2**63, size=len(some))]
        if noise:
            paths += sums_paths(reader, some, question.norm, n, noise, counts=True, scales=_CALIBRATED)
    least = min(path.powers.shape[-1] for path in paths)
    return np.array([path.observed for path in paths]), np.stack([path.powers[0, :least] for path in paths])


@public_function(grouped=True, sums=True)
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

    It is exact for any n and any estimator: under calibration ``P(p ≤ α) ≤ α``, with equality except for ties. An
    observed outcome whose probability was 0 rules calibration out, whatever p is: a warning says so.

    Parameters
    ----------
    estimator : "auto", Estimator, "brier", "log-loss", "spherical" or ScoringRule, default "auto"
        Estimator of the statistic; its bias does not matter, since the draws share it. ``"auto"``: smoothed residuals
        over ranks, which need no bins. Or a proper score of all probabilities, tested for being worse than they
        predict: this detects overconfidence; an underconfident model scores better than predicted, and passes.
    n_resamples : int, default 999
        Number of sets of labels drawn: row by row, or in the cells of an Accumulator's sums. With ``groups``, signs of
        whole groups' residuals are drawn instead; rows with several labels are such groups, since their labels are
        dependent.
    sample_weight : array-like of shape (n,), optional
        Weights of the statistic, which must not depend on the outcome; each row draws one label.

    Returns
    -------
    TestResult
        ``details``: ``share_of_draws_above`` and ``share_of_draws_at_least``, the shares of draws above, and not below,
        the observed error (the survey's p-values), and ``mean_of_draws``, the expected error of a calibrated model.

    See Also
    --------
    calibrant.estimate : How large the error is, with an interval.
    calibrant.significance.adaptive_test : A test that adapts to the scale of miscalibration.
    calibrant.significance.evalue_test : A test that may be inspected after every row.
    calibrant.significance.TestResult : The result, field by field.

    Notes
    -----
    Cost ``n_resamples`` estimates; for :class:`Binned` with hard bins about 10 ns per row, class and draw.

    For an Accumulator, ``"auto"`` is the test of :func:`calibrant.report`, and the other choices are estimators that
    work on sums. The test is approximate: outcomes of a cell share one probability, and one-vs-rest classes are drawn
    independently, with a wider spread for their total, which costs some power. With more than ten classes ``"auto"``
    makes fewer draws per class; with 64 or more, whose sum is nearly normal, only a few.
    ``benchmarks/coverage/sums_tests.md`` compares false alarms and power with those of the test on rows. The same sums
    give the same p-value, however they were split into pieces.

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
        found = _test_of_sums(y_true, estimator, norm, n_resamples, check_random_state(random_state))
        return replace(found, warnings=(*found.warnings, IMPOSSIBLE)) if _rules_out(y_true) else found
    p = as_predictions(y_true, y_prob, **inputs)
    warn_of_class_weights(p)
    chosen = as_notion(notion, p)
    p, chosen = alone(p, chosen)
    reader: Any = estimator
    if isinstance(estimator, ScoringRule) or (isinstance(estimator, str) and estimator in RULES):
        reader = as_rule(estimator, half=p.positive is not None)
    rng = check_random_state(random_state)
    if isinstance(reader, ScoringRule):
        observed, null, statistic = _scores(reader, p)
    else:
        reader = _reader(reader, chosen)
        reader._check(chosen.reduce(p), chosen.name)
        observed, null, statistic = _errors(reader, chosen, p, norm)
    draws = null.draws(statistic, n_resamples, rng, p.n_samples)
    used = rows_with_weight(p)
    codes = used.truth if used.several else used.codes.astype(np.int64)
    everything = isinstance(reader, ScoringRule) or chosen.vector
    each = as_notion("classwise", used).targets(used) if everything and used.positive is None else chosen.targets(used)
    lost = max(impossible(target, codes) for target in each)
    near = rounding_of(observed)
    return TestResult(
        statistic=observed,
        pvalue=null.pvalue(draws, observed),
        null="the probabilities are calibrated" + ("" if isinstance(reader, ScoringRule) else f" ({chosen.name})"),
        name=f"{reader!r}, {null.described(n_resamples)}",
        n_samples=p.n_samples,
        details={
            "share_of_draws_above": float((draws > observed + near).mean()),
            "share_of_draws_at_least": float((draws >= observed - near).mean()),
            "mean_of_draws": float(draws.mean()),
        },
        warnings=(f"{IMPOSSIBLE}: {lost}",) if lost else (),
        draws=draws,
        n_groups=null.n_groups,
    )


#: The observed statistic, the null hypothesis, and the statistic as a function of draws under it.
_Drawn = tuple[float, Null, Callable[[AnyArray], FloatArray]]


def _scores(rule: ScoringRule, p: Predictions) -> _Drawn:
    """Mean scores; with groups, expected scores plus deviations with drawn signs of groups."""
    used = rows_with_weight(p)
    q = matrix_of(used)
    rule.expected(q[:1], q[:1])  # judges the number of classes
    table, weight, rows = rule.table(q), ones_or(used.weights, used.n_samples), np.arange(used.n_samples)
    weight = weight / weight.sum()
    if p.together is None:
        kept = slice(None) if used is p else np.flatnonzero(np.asarray(p.weights))

        def of_labels(sets: AnyArray) -> FloatArray:
            return np.asarray(table[rows, sets[:, kept]] @ weight)

        return float(of_labels(p.codes[None].astype(np.int64))[0]), DrawnLabels(p), of_labels
    possible = np.where(q > 0, table, 0.0)
    mean = (q * possible).sum(axis=1)
    excess = table[rows, used.codes.astype(np.intp)] - mean
    observed, expected = float(weight @ (mean + excess)), float(weight @ mean)
    if not np.isfinite(observed):  # what cannot happen has happened: no draw shows it
        excess = np.zeros(len(excess))
    signs = GroupSigns.of(
        np.asarray(used.together), excess**2, (q * (possible - mean[:, None]) ** 2).sum(axis=1), weight
    )
    each = signs.sums(weight * excess)
    return observed, signs, lambda sets: expected + sets @ each


def _reader(estimator: str | Estimator, notion: Notion) -> Estimator:
    if not notion.vector:
        return as_estimator(estimator, ResidualKernel())
    return as_estimator(estimator, SimplexBinned("cbrt") if notion.drawn else KernelCalibrationError())


def _errors(reader: Estimator, notion: Notion, p: Predictions, norm: float) -> _Drawn:
    """Calibration errors: sets of outcomes are many problems with the same scores."""
    if p.units is not None:
        if notion.vector:
            raise ValueError(
                f"notion {notion.name!r} cannot be tested with groups here: use kernel_test(), 'classwise', or one "
                "class"
            )
        if not isinstance(reader, CellEstimator):
            raise TypeError(
                f"{reader!r} cannot be tested with groups, since it needs single rows: use an estimator of bins "
                "or cells ('auto', Binned(), Density())"
            )
        p = rows_with_weight(p)
    codes = p.truth if p.several else p.codes.astype(np.int64)
    if notion.vector:
        problem: Any = notion.reducer(p)

        def of_vectors(sets: AnyArray) -> FloatArray:
            return np.array([root(reader.power(problem(one), norm), norm) for one in sets])

        return float(of_vectors(codes[None])[0]), DrawnLabels(p), of_vectors
    targets = list(notion.targets(p))
    shares = [1 / len(targets) if t.share is None else t.share for t in targets]

    def combined(outcomes: Callable[[Target], AnyArray]) -> FloatArray:
        """Errors of sets of outcomes (r, m) of each problem, (r,)."""
        powers = []
        for t in targets:
            happened = np.ascontiguousarray(outcomes(t))
            weights = p.weights if p.weights is None or t.rows is None else p.weights[t.rows]
            about = {"integral": p.integral_weights, "domain": t.domain, "eps": p.eps}
            scores = np.broadcast_to(t.scores, happened.shape)
            powers.append(reader._powers(Problem.samples(scores, happened, weights, **about), norm))
        return combine_draws(powers, shares, norm, notion.combining)

    if p.units is None:

        def of_labels(sets: AnyArray) -> FloatArray:
            return combined(lambda target: target.outcomes(sets.T).T)

        return float(of_labels(codes[None])[0]), DrawnLabels(p), of_labels
    signs = GroupSigns.of_targets(p, targets)

    def of_signs(sets: FloatArray) -> FloatArray:
        def outcomes(target: Target) -> FloatArray:
            group = signs.group if target.rows is None else signs.group[target.rows]
            return np.asarray(target.scores + sets[:, group] * (target.outcomes(codes) - target.scores))

        return combined(outcomes)

    return float(of_signs(signs.observed)[0]), signs, of_signs
