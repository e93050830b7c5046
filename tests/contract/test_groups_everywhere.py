"""Every public function that takes predictions accounts for their groups, or refuses them by name."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.exceptions import CalibrantWarning

from ..surface import NAMES
from .test_predictions import SEVERAL, THREE, VERBS, N, call, options_of, plain

#: Means over rows, without an interval: groups matter where each of them counts alike (``group_average="macro"``).
MEANS = {
    "SimplexDisplay.from_predictions",
    "brier_score",
    "expected_calibration_error",
    "log_loss",
    "mean_score",
    "ranked_probability_score",
}
#: What each row says by itself.
OF_ROWS = {"score_samples"}
#: Groups of unlike sizes, which labels within them agree with.
GROUPS = np.minimum(np.arange(N) // 4, 15)


def takers() -> dict[str, Callable[..., Any]]:
    """Functions and methods that take predictions: those of labels, and all others that do not refuse their type."""
    found: dict[str, Callable[..., Any]] = dict(VERBS) | {"compare_calibrators": cal.compare_calibrators}
    for name, value in NAMES.items():
        first = [] if not inspect.isfunction(value) else list(inspect.signature(value).parameters)[:1]
        if name in found or first in ([], ["y_true"]):
            continue
        try:
            value(judged(None))
        except (TypeError, ValueError, AttributeError, ImportError):  # it takes something else than predictions
            continue
        found[name] = value
    return found


def judged(groups: Any, kind: str = "two classes", average: str = "micro") -> cal.results.Predictions:
    rng = np.random.default_rng(5)
    if kind == "two classes":
        p = rng.random(N)
        y = (rng.random(N // 4 + 1)[np.arange(N) // 4] < 0.3 + 0.4 * p).astype(int)
    else:
        p = rng.dirichlet([1, 1, 2], N)
        y = (rng.random(N // 4 + 1)[np.arange(N) // 4, None] > p.cumsum(axis=1)).sum(axis=1)
    return cal.as_predictions(y, p, labels=range(p.ndim + 1), groups=groups, group_average=average)


def answer(name: str, groups: Any, average: str = "micro") -> Any:
    """What it says of the rows, or the message of the ValueError by which it refuses them."""
    rows: Any = judged(groups, "three classes" if name in THREE else "two classes", average)
    if name in SEVERAL:
        rows = {"one": rows, "other": replace(rows, probs=rows.probs**2)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrantWarning)
        try:
            return plain(call(name, rows, **options_of(name)) if name in VERBS else TAKERS[name](rows))
        except ValueError as error:
            return str(error)


TAKERS = takers()


def test_all_are_walked():
    assert {
        "compare_calibrators",
        "select_calibrator",
        "expected_cost",
        "report",
        "Accumulator.update",
    } <= TAKERS.keys()
    assert len(TAKERS) >= 40


@pytest.mark.parametrize("name", sorted(TAKERS.keys() - OF_ROWS))
def test_groups_count_or_are_refused(name):
    if "Display" in name:
        pytest.importorskip("matplotlib").use("Agg")
    plainly, grouped = answer(name, None), answer(name, GROUPS)
    assert not isinstance(plainly, str), plainly
    if isinstance(grouped, str):
        assert "have groups" in grouped
    elif name in MEANS:
        assert repr(answer(name, GROUPS, "macro")) != repr(plainly)
    else:
        assert repr(grouped) != repr(plainly)
