"""Laws that every estimator obeys, for every notion it serves, with and without weights."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

import calibrant as cal
from calibrant import calibration_error as error
from calibrant.data.problem import OneVsRestProblems
from calibrant.notions import as_notion
from calibrant.sums import BinMoments

from .naive import samples, total
from .table import CASES, NOTIONS, ROWS, SCALAR_NOTIONS, Row

NAMES = np.array(["a", "b", "c"])
pytestmark = pytest.mark.filterwarnings("ignore::calibrant.exceptions.BandwidthWarning")
WEIGHTS = ("unweighted", "whole", "relative")
MANY = 40_000
STRENGTH = 0.6


def cases_of(wanted) -> pytest.MarkDecorator:
    """Every row that is ``wanted``, with every notion it serves."""
    chosen = [
        pytest.param(row, notion, id=f"{row}-{notion}", marks=[pytest.mark.slow] if row.slow(notion) else [])
        for row, notion in CASES
        if wanted(row)
    ]
    return pytest.mark.parametrize(("row", "notion"), chosen)


cases = cases_of(lambda row: True)
weighted = pytest.mark.parametrize("kind", WEIGHTS)
#: Second implementations take their time: that whole weights are repeats is a law of its own.
briefly_weighted = pytest.mark.parametrize(
    "kind", ["unweighted", "relative", pytest.param("whole", marks=pytest.mark.slow)]
)


@cache
def data(n: int = 120) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray | None]]:
    rng = np.random.default_rng(7)
    P = rng.dirichlet([0.8, 1.2, 1.0], n)
    y = np.array([rng.choice(3, p=0.5 * p + 0.5 * np.array([0.6, 0.3, 0.1])) for p in P])
    return P, y, {"unweighted": None, "whole": rng.integers(0, 4, n), "relative": rng.random(n) + 0.05}


@cache
def many(strength: float) -> tuple[np.ndarray, np.ndarray]:
    """Scores uniform on the simplex; labels from them, or with probability ``strength`` from a fair die.

    Then ``P(Y = k | P) - P_k = strength (1/3 - P_k)``, whose mean size has a closed form for every notion.
    """
    rng = np.random.default_rng(11)
    P = rng.dirichlet([1, 1, 1], MANY)
    y = (rng.random(MANY)[:, None] > P.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    return P, np.where(rng.random(MANY) < strength, rng.integers(0, 3, MANY), y)


def value(row: Row, notion: str, P, y, w=None, norm: float = 1, order=(0, 1, 2)) -> float:
    order = list(order)
    return error(
        NAMES[y],
        P[:, order],
        notion=NOTIONS[notion][0],
        estimator=row.estimator,
        norm=norm,
        labels=NAMES[order],
        sample_weight=w,
    )


@cases
@briefly_weighted
def test_agrees_with_a_second_implementation(row, notion, kind):
    P, y, weights = data(row.twin_rows)
    w = weights[kind]
    parts = samples(notion, y.tolist(), P.tolist(), None if w is None else w.tolist())
    for norm in row.norms:
        expected = total([row.twin(s, norm) for s in parts], [s.share for s in parts], norm)
        assert value(row, notion, P, y, w, norm) == pytest.approx(expected, abs=row.close)


@cases
@weighted
def test_range(row, notion, kind):
    P, y, weights = data()
    for norm in row.norms:
        got = value(row, notion, P, y, weights[kind], norm)
        high = 2 ** (1 / norm) if notion == "canonical" else 1.0
        assert (-1 if row.signed and norm == 1 else 0) <= got <= high


@cases
def test_the_worst_model_reads_one(row, notion):
    """Certain of class b (or of c) whenever it is the other: every gap that a notion sees is 1."""
    y = np.repeat([1, 2], 50)
    P = np.eye(3)[3 - y]
    high = 2.0 if notion == "canonical" else 2 / 3 if notion == "classwise" else 1.0
    if row.cancels and notion in ("class-specific", "classwise", "canonical", "drawn-class"):
        high = 0.0  # the mean is right, and one bin sees no more
    elif notion in ("class-specific", "classwise"):
        high *= row.worst
    assert value(row, notion, P, y) == pytest.approx(high, abs=row.leak)


@cases
@weighted
def test_perfect_certainty_reads_zero(row, notion, kind):
    _, y, weights = data()
    assert value(row, notion, np.eye(3)[y], y, weights[kind]) == pytest.approx(0, abs=row.leak)


@cases
def test_near_zero_on_calibrated_samples(row, notion):
    P, y = (part[: row.many(notion)] for part in many(0.0))
    assert abs(value(row, notion, P, y)) <= row.noise


@cases
def test_known_truth(row, notion):
    truth = STRENGTH * NOTIONS[notion][1]
    P, y = (part[: row.many(notion)] for part in many(STRENGTH))
    # The error is close to a mean of ±(o - s), each of standard deviation at most 1/2 (3/2 for three classes).
    standard_error = (1.5 if notion == "canonical" else 0.5) / math.sqrt(len(y))
    assert value(row, notion, P, y) == pytest.approx(truth, abs=4 * standard_error + row.bias)


@cases
@weighted
def test_order_of_samples_is_nothing(row, notion, kind):
    P, y, weights = data()
    w = weights[kind]
    shuffled = np.random.default_rng(0).permutation(len(y))
    for norm in row.norms:
        other = value(row, notion, P[shuffled], y[shuffled], None if w is None else w[shuffled], norm)
        assert other == pytest.approx(value(row, notion, P, y, w, norm), abs=1e-11)


@cases
@weighted
def test_order_of_classes_is_nothing(row, notion, kind):
    P, y, weights = data()
    for norm in row.norms:
        one = value(row, notion, P, y, weights[kind], norm)
        assert value(row, notion, P, y, weights[kind], norm, order=(2, 0, 1)) == pytest.approx(one, abs=1e-11)


@cases
def test_whole_weights_are_repeats(row, notion):
    P, y, weights = data()
    w = weights["whole"]
    for norm in row.norms:
        repeated = value(row, notion, np.repeat(P, w, axis=0), np.repeat(y, w), None, norm)
        assert value(row, notion, P, y, w, norm) == pytest.approx(repeated, abs=1e-11)


@cases
@pytest.mark.parametrize("factor", [1e-9, 0.37, 1e6 + 0.1])
def test_scale_of_relative_weights_is_nothing(row, notion, factor):
    P, y, weights = data()
    w = weights["relative"]
    for norm in row.norms:
        one = value(row, notion, P, y, w, norm)
        assert value(row, notion, P, y, w * factor, norm) == pytest.approx(one, abs=1e-11)


@cases
def test_weight_zero_is_absence(row, notion):
    P, y, weights = data()
    w = np.where(np.arange(len(y)) % 3 == 0, 0.0, weights["relative"])
    kept = w > 0
    for norm in row.norms:
        one = value(row, notion, P[kept], y[kept], w[kept], norm)
        assert value(row, notion, P, y, w, norm) == pytest.approx(one, abs=1e-11)


@cases
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_precision_of_scores(row, notion, dtype):
    P, y, _ = data()
    rounded = P.astype(dtype)
    same = (rounded.astype(np.float64).T / rounded.astype(np.float64).sum(axis=1)).T
    # Within rounding, scores may lie on either side of an edge; a maximum shows that in full, a mean does not.
    for norm in set(row.norms) - {math.inf}:
        low = value(row, notion, rounded, y, None, norm)
        assert low == pytest.approx(value(row, notion, same, y, None, norm), abs=0.06 if dtype == np.float16 else 1e-3)


def _problems(notion: str, kind: str, rows: slice = slice(None)):
    P, y, weights = data()
    w = weights[kind]
    predictions = cal.as_predictions(
        NAMES[y][rows], P[rows], labels=NAMES, sample_weight=None if w is None else w[rows]
    )
    return as_notion(NOTIONS[notion][0], predictions).reduce(predictions)


@cases_of(lambda row: row.mergeable)
@weighted
def test_summaries_of_pieces_merge(row, notion, kind):
    whole = _problems(notion, kind)
    pieces = [_problems(notion, kind, rows) for rows in (slice(0, 40), slice(40, 41), slice(41, None))]
    for i, problem in enumerate(whole):
        label = problem.label
        parts = [row.estimator.summarize(p) for piece in pieces for p in piece if p.label == label]
        merged = parts[0]
        for part in parts[1:]:
            merged = merged + part
        assert merged.n_samples == problem.n_samples
        for norm in row.norms:
            batch = row.estimator.power(whole[i], norm)
            assert float(row.estimator.read(merged, norm)) == pytest.approx(batch, abs=1e-11)


@pytest.mark.parametrize("row", [row for row in ROWS if row.cells], ids=str)
def test_different_summaries_do_not_merge(row):
    one, other = (_problems("confidence", "unweighted", rows)[0] for rows in (slice(0, 75), slice(75, None)))
    summary = row.estimator.summarize(one)
    wrong = (
        cal.Binned(7).summarize(other)
        if isinstance(summary, BinMoments)
        else row.estimator.summarize(_problems("class-specific", "unweighted")[0])
    )
    with pytest.raises(ValueError, match="cannot be merged"):
        summary + wrong
    if not row.mergeable:  # edges found in other data are other edges
        with pytest.raises(ValueError, match="cannot be merged"):
            summary + cal.Binned("sqrt", "quantile").summarize(other)
    with pytest.raises(TypeError):
        summary + 1


@pytest.mark.parametrize(("row", "notion"), [case for case in CASES if case[1] in SCALAR_NOTIONS], ids=str)
@weighted
def test_one_pass_over_the_matrix_equals_one_class_at_a_time(row, notion, kind):
    reduction = _problems(notion, kind)
    for norm in row.norms:
        together = row.estimator._powers(reduction, norm)
        alone = [row.estimator.power(p, norm) for p in reduction]
        assert together == pytest.approx(alone, abs=1e-12)
    assert isinstance(reduction, OneVsRestProblems) == (notion == "classwise")


@pytest.mark.parametrize("row", [r for r in ROWS if not r.serves("confidence") or not r.serves("canonical")], ids=str)
def test_what_it_does_not_serve_is_refused(row):
    P, y, _ = data()
    wrong = "canonical" if row.serves("confidence") else "confidence"
    with pytest.raises(ValueError, match=f"{type(row.estimator).__name__} does not support the notion '{wrong}': use "):
        error(y, P, notion=wrong, estimator=row.estimator)


@cases_of(lambda row: row.intervals)
@weighted
def test_estimate_gives_the_same_number_and_an_interval(row, notion, kind):
    P, y, weights = data()
    kwargs = {"notion": NOTIONS[notion][0], "estimator": row.estimator, "labels": NAMES, "sample_weight": weights[kind]}
    got = cal.estimate(NAMES[y], P, n_resamples=10, random_state=3, **kwargs)
    assert got.value == pytest.approx(error(NAMES[y], P, **kwargs), abs=1e-13)
    low, high = got.interval
    assert 0 <= low <= got.corrected <= high <= (2 if notion == "canonical" else 1)
    again = cal.estimate(NAMES[y], P, n_resamples=10, random_state=3, **kwargs)
    assert (again.interval, again.corrected) == (got.interval, got.corrected)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_binary_problems(row):
    """A 1-D score, its two-column matrix, and its mirror image by the other label."""
    P, y, weights = data()
    o, p = (y == 1).astype(int), P[:, 1]
    two = np.column_stack([1 - p, p])
    if row.serves("canonical"):
        norm = row.norms[0]
        one = error(o, p, notion="canonical", estimator=row.estimator, norm=norm)
        assert one == pytest.approx(error(o, two, notion="canonical", estimator=row.estimator, norm=norm), abs=1e-12)
    if not row.serves("confidence"):
        return
    for w in weights.values():
        for norm in row.norms:
            kwargs = {"estimator": row.estimator, "norm": norm, "sample_weight": w}
            one = error(o, p, **kwargs)
            assert one == pytest.approx(error(o, two, notion=cal.notions.ClassSpecific(1), **kwargs), abs=1e-12)
            assert one == pytest.approx(error(1 - o, p, pos_label=0, **kwargs), abs=1e-12)
            assert error(o, p, notion="classwise", **kwargs) == pytest.approx(
                error(o, two, notion="classwise", **kwargs), abs=1e-12
            )
