"""`calibration_test` for sums: outcomes are drawn in their cells, whatever the number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.checks import check_norm, check_resamples
from ..data.types import FloatArray, RandomState
from ..estimators import CellEstimator, ResidualKernel
from ..estimators.base import Estimator
from ..estimators.named import as_estimator
from ..measure.inference.intervals import sums_paths
from ..measure.question import Question, sums_up
from ..measure.streaming import Accumulator
from .flipped import share_at_least
from .from_sums import FEW_DRAWS, SumsTest, drawn_together
from .result import TestResult

_DEFAULT = ResidualKernel()
#: The only truth that is drawn: perfect calibration.
_CALIBRATED = np.zeros(1)


def calibration_test_of(
    sums: Accumulator,
    *,
    estimator: str | Estimator = "auto",
    norm: float = 1,
    n_resamples: int = 999,
    random_state: RandomState = 0,
) -> TestResult:
    """See :meth:`calibrant.Accumulator.calibration_test`."""
    n_resamples, norm = check_resamples(n_resamples, 1), check_norm(norm)
    reader = as_estimator(estimator, _DEFAULT)
    if not isinstance(reader, CellEstimator):
        raise TypeError(
            f"estimator must be one that reads sums, such as Binned(...) or Density(...); {reader!r} needs the rows: "
            "use calibration_test(y_true, y_prob)"
        )
    rng = np.random.default_rng(random_state)
    question = sums.question(norm)
    if reader == _DEFAULT and norm == 1:
        problems = list(sums.problems.values())
        grids, bins = [one.grid for one in problems], [one.bins for one in problems]
        return SumsTest.of(grids, bins, question, rng, n_resamples).result
    asked = question.informative
    observed, each = _drawn(reader, sums, asked, n_resamples, rng)
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


def _drawn(
    reader: CellEstimator, sums: Accumulator, asked: Question, n_resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """``errorᵖ`` of every problem, (K,), and of samples drawn from calibrated models with these scores, (K, R)."""
    n = FEW_DRAWS if sums_up(asked) else n_resamples
    paths: list[Any] = []
    for part in sums.sums(reader):
        some = part[: max(0, len(asked) - len(paths))] if len(part) + len(paths) > len(asked) else part
        noise = [np.random.default_rng(seed) for seed in rng.integers(2**63, size=len(some))]
        if noise:
            paths += sums_paths(reader, some, asked.norm, n, noise, counts=True, scales=_CALIBRATED)
    least = min(path.powers.shape[-1] for path in paths)
    return np.array([path.observed for path in paths]), np.stack([path.powers[0, :least] for path in paths])
