"""Calls that `costs` measures: of classes, tests, and ranges of scores."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, softmax

import calibrant as cal
from calibrant import significance
from calibrant.estimators import ranges
from calibrant.notions import ClassSpecific

Arrays = tuple[Any, ...]


def number(found: Any, *_: Any) -> float:
    """What was found, or its value or p-value."""
    return float(getattr(found, "value", getattr(found, "pvalue", found)))


@dataclass(frozen=True)
class Call:
    """A call, and what it is given.

    Parameters
    ----------
    rows : int
        How many rows the arrays have.
    arrays : callable
        Makes the arrays, from the number of rows.
    call : callable
        Takes the arrays.
    value : callable
        A number of what was found, from that and the arrays; raises where what was found is wrong.
    turns : int
        How often it is timed; where that is once, its first call is.
    unit : callable, optional
        What its time is divided by that of, given the same arrays; by default a sort.
    few : int
        Rows that it is given before, so that what it imports does not count.
    """

    rows: int
    arrays: Callable[[int], Arrays]
    call: Callable[..., Any]
    value: Callable[..., float] = number
    turns: int = 7
    unit: Callable[..., Any] | None = None
    few: int = 1_000


def binary(n: int) -> Arrays:
    """Labels, and probabilities that are a little too low."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.9, 1.2, n).clip(1e-6, 1 - 1e-6)
    return (rng.random(n) < p**0.97).astype(int), p


def sharp(k: int) -> Callable[[int], Arrays]:
    """Labels and over-confident probabilities of k classes."""

    def arrays(n: int) -> Arrays:
        rng = np.random.default_rng(0)
        z = 2 * rng.normal(size=(n, k))
        return labels(softmax(z / 1.3, axis=1), rng), softmax(z, axis=1)

    return arrays


def right(k: int, alpha: float) -> Callable[[int], Arrays]:
    """Labels and calibrated probabilities of k classes, each of which occurs."""

    def arrays(n: int) -> Arrays:
        rng = np.random.default_rng(0)
        p = rng.dirichlet(np.full(k, alpha), n)
        y = labels(p, rng)
        y[:k] = np.arange(k)
        return y, p

    return arrays


def models(number: int) -> Callable[[int], Arrays]:
    """Labels, and probabilities of several networks, with 25 times as many classes as rows."""

    def arrays(n: int) -> Arrays:
        rng = np.random.default_rng(0)
        z = 2 * rng.standard_normal((n, 25 * n))
        noise = (0.1 * rng.standard_normal(z.shape) for _ in range(number))
        given = {f"m{i}": softmax((0.7 + 0.2 * i) * z + one, axis=1) for i, one in enumerate(noise)}
        return labels(softmax(z, axis=1), rng), given

    return arrays


def labels(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A label of each row."""
    return (rng.random((len(p), 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, p.shape[1] - 1)


def asked(what: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """A call of rows whose labels are the numbers of the columns."""
    return lambda y, p: what(y, p, labels=range(p.shape[1]), **options)


def read(y: np.ndarray, p: np.ndarray, **options: Any) -> Any:
    """A report, with what it computes when it is read: its text and all intervals."""
    found = cal.report(y, p, **options)
    str(found)
    for one in found.estimates.values():
        one.interval  # noqa: B018
    return found


def compared(notion: str) -> Callable[..., Any]:
    """Networks, compared."""

    def call(y: np.ndarray, given: dict[str, np.ndarray]) -> Any:
        return cal.compare_models(y, given, labels=range(given["m0"].shape[1]), notion=notion, random_state=0)

    return call


def first(report: Any, *_: Any) -> float:
    """The value of the first estimate."""
    return float(next(iter(report.estimates.values())).value)


def mean_of_classes(value: float, y: np.ndarray, p: np.ndarray) -> float:
    """The class-wise error, which must be the mean of those of the classes."""
    each = [cal.calibration_error(y, p, notion=ClassSpecific(c)) for c in range(p.shape[1])]
    np.testing.assert_allclose(value, np.mean(each), rtol=0, atol=1e-12)
    return value


MANY, HUNDRED, WISE = sharp(1000), right(100, 0.5), {"notion": "classwise"}
CLASSES = {
    "report, 1,000 rows": Call(1_000, binary, cal.report, first),
    "report, 10⁴ × 10": Call(10_000, sharp(10), asked(cal.report), first),
    "report, 2·10⁴ × 1000": Call(20_000, MANY, asked(cal.report), first, turns=3),
    "report read whole, 2·10⁴ × 1000": Call(20_000, MANY, asked(read), first, turns=1),
    "class-wise report, 2·10⁴ × 1000": Call(20_000, MANY, asked(cal.report, **WISE), first, turns=1),
    "class-wise report read whole, 2·10⁴ × 1000": Call(20_000, MANY, asked(read, **WISE), first, turns=1),
    "class-wise error, 2·10⁴ × 1000": Call(20_000, MANY, asked(cal.calibration_error, **WISE), turns=3),
    "class-wise error, 15 bins, 2·10⁴ × 1000": Call(
        20_000, MANY, asked(cal.calibration_error, estimator=cal.Binned(), **WISE), turns=3
    ),
    "class-wise error, 10⁴ × 100": Call(10_000, HUNDRED, asked(cal.calibration_error, **WISE), mean_of_classes),
    "class-wise estimate, 10⁴ × 100": Call(10_000, HUNDRED, asked(cal.estimate, random_state=0, **WISE)),
    "class-wise estimate, 10⁴ × 1000": Call(10_000, MANY, asked(cal.estimate, random_state=0, **WISE), turns=1),
    "top-label error, 10⁴ × 1000": Call(10_000, MANY, asked(cal.calibration_error, notion="top-label")),
    "compare_calibrators, 10⁴ × 10": Call(
        10_000, sharp(10), lambda y, p: cal.compare_calibrators(y, p, random_state=0),
        lambda found, *_: found.row(found.chosen).log_loss, turns=3),
}  # fmt: skip
CLASSES |= {
    f"compare_models, {name} of 40 × 1000": Call(
        40, models(k), compared(notion), lambda found, *_: sum(float(one.pvalue) for one in found.differences),
        turns=1 if notion == "classwise" else 3, few=4)
    for name, k, notion in (("2", 2, "auto"), ("3", 3, "auto"), ("3, class-wise,", 3, "classwise"))
}  # fmt: skip

TESTS = {
    f"{name}, 10⁴ rows": Call(10_000, binary, call)
    for name, call in {
        "calibration_test": lambda y, p: cal.calibration_test(y, p, random_state=0),
        "cumulative_test": significance.cumulative_test,
        "kernel_test, asymptotic": lambda y, p: significance.kernel_test(y, p, algorithm="asymptotic"),
        "adaptive_test": lambda y, p: significance.adaptive_test(y, p, random_state=0),
        "evalue_test, sequential": significance.evalue_test,
        "evalue_test, split": lambda y, p: significance.evalue_test(y, p, algorithm="split", random_state=0),
    }.items()
}
TESTS |= {
    f"adaptive_test, {notion}, 10⁴ × 3": Call(
        10_000, right(3, 1.0), asked(significance.adaptive_test, notion=notion, random_state=0), turns=3
    )
    for notion in ("classwise", "canonical")
}

TRUTHS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "calibrated": lambda s: s,
    "log odds × .8": lambda s: expit(0.8 * logit(s)),
    "s^1.2": lambda s: s**1.2,
    "waves of ±.05": lambda s: np.clip(s + 0.05 * np.sin(12 * s), 0, 1),
    "-.3 on .70-.75": lambda s: s - 0.3 * ((s > 0.7) & (s < 0.75)),
}


def sought(call: Callable[..., Any], truth: str) -> Call:
    """A call that seeks ranges of uniform scores, by the same that seeks none."""

    def arrays(n: int) -> Arrays:
        rng = np.random.default_rng(0)
        s = rng.random(n)
        return rng.random(n) < TRUTHS[truth](s), s

    def made(y: np.ndarray, s: np.ndarray) -> Any:
        return call(y, s, labels=[False, True], pos_label=True)

    def without(*given: Any) -> Any:
        least = ranges._ROWS
        ranges._ROWS = sys.maxsize
        try:
            return made(*given)
        finally:
            ranges._ROWS = least

    return Call(10**5, arrays, made, unit=without, turns=9)


RANGES = {
    f"{name}, ranges: {truth}": sought(call, truth)
    for name, call in (("error", cal.calibration_error), ("estimate", cal.estimate))
    for truth in TRUTHS
}
CALLS = CLASSES | TESTS | RANGES
