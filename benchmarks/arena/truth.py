r"""Calibration errors that are known: of a pool of labelled rows with a standard error, of a fitted map exactly.

**A pool.** ``E|P(o = 1 | s) - s|`` of n rows is ``(1/n) Σ_i sign_i · (o_i - s_i)`` with the true sign of the gap at
s_i. The plug-in, which takes the sign from the same rows, adds the absolute noise of every bin. Here rows are dealt
into parts at random; the sign at a row's score is found without the part that holds the row, in bins that never split
ties and over ever more neighbours while it is in doubt (`calibrant.benchmark.pool.signs_of`). So the noise has mean
0, and a sign that is not found costs twice the gap there: the expectation never exceeds the truth, and is lower where
gaps are too small or too short to be seen in the pool. Five parts, because four fifths of a few thousand rows find
more signs than halves do. Deals are repeated, and what is averaged is each row's sign. The standard error is that of
a mean of terms ``± (o - s)``.

**A map.** Labels are redrawn from ``g(s) = s + λ (ĝ(s) - s)``: ĝ is near-isotonic regression, which keeps steps,
atoms and falls that the labels insist on; λ between 0 and 1 is the share of ``ĝ - s`` that labels of other folds bear
out, by least squares. The truth is the mean of ``|g - s|`` over the rows, without error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.benchmark.pool import signs_of
from calibrant.calibrators import NearIsotonic

#: How often rows are dealt out, into how many parts, and rows a bin in which a sign is looked for first.
DEALS, PARTS, BIN = 12, 5, 20
WIDEST = 401
FOLDS = 5


@dataclass(frozen=True)
class Truth:
    """A calibration error, and how far it may be off: 0 where it is exact."""

    value: float
    standard_error: float


def bins_of(scores: np.ndarray) -> np.ndarray:
    """Number of the bin of each row, in the order of scores: about ``BIN`` rows each, equal scores in one."""
    _, code, counts = np.unique(scores, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - counts / 2
    number = np.floor(middle / BIN).astype(np.intp)
    return np.unique(number, return_inverse=True)[1][code]


def signs(scores: np.ndarray, outcomes: np.ndarray, seed: int, parts: int = PARTS, deals: int = DEALS) -> np.ndarray:
    """Mean sign of the gap at each row's score, found without the row, (n,): within [-1, 1]."""
    s, n = scores.astype(np.float64), len(scores)
    rng = np.random.default_rng(seed)
    gap = outcomes - s
    # A stretch without a single error says little: its variance is at least what its scores say.
    noise = np.maximum(gap**2, s * (1 - s))
    number = bins_of(s)
    # Neighbourhoods reach over 401 bins; empty ones say nothing.
    m = max(int(number.max()) + 1, WIDEST)
    sign = np.zeros(n)
    for _ in range(deals):
        part = rng.permutation(n) % parts
        slot = part * m + number
        sums = [np.bincount(slot, v, minlength=parts * m).reshape(parts, m) for v in (None, gap, noise)]
        for k in range(parts):
            others = np.column_stack([np.delete(v, k, axis=0).sum(axis=0) for v in sums])
            mine = part == k
            sign[mine] += signs_of(others)[number[mine]]
    return sign / deals


def of_pool(y_prob: np.ndarray, y_true: np.ndarray, seed: int = 0) -> dict[str, Truth]:
    """Truths of a pool by notion; classes are averaged row by row, so that they may depend on each other."""
    found = {}
    for notion, (s, o) in problems(y_prob, y_true).items():
        sign, gap = signs(s, o, seed), o - s.astype(np.float64)
        # A sign in doubt is as noisy as a clear one, though its mean over deals is small.
        found[notion] = np.stack([sign * gap, np.where(sign < 0, -gap, gap)])
    classes = [rows for notion, rows in found.items() if notion != "confidence"]
    found["classwise"] = np.mean(classes, axis=0)
    root = np.sqrt(len(y_true))
    return {notion: Truth(float(v.mean()), float(w.std(ddof=1) / root)) for notion, (v, w) in found.items()}


def problems(y_prob: np.ndarray, y_true: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Scores and outcomes by notion: confidence, and each class (of two the second, which says all)."""
    n_classes = y_prob.shape[1]
    top = y_prob.argmax(axis=1)
    out = {"confidence": (y_prob.max(axis=1), (top == y_true).astype(float))}
    for k in range(n_classes) if n_classes > 2 else (1,):
        out[f"class-specific:{k}"] = (y_prob[:, k], (y_true == k).astype(float))
    return out


def fitted_map(scores: np.ndarray, outcomes: np.ndarray, seed: int = 0) -> np.ndarray:
    """``g`` at the rows, (n,): a function of the score that labels are drawn from."""
    s = scores.astype(np.float64)
    fold = np.random.default_rng(seed).permutation(len(s)) % FOLDS
    guess = np.empty(len(s))
    for k in range(FOLDS):
        guess[fold == k] = _near_isotonic(s[fold != k], outcomes[fold != k], s[fold == k])
    delta = guess - s
    size = delta @ delta
    share = float(np.clip(delta @ (outcomes - s) / size, 0, 1)) if size > 0 else 0.0
    return s + share * (_near_isotonic(s, outcomes, s) - s)


def _near_isotonic(scores: np.ndarray, outcomes: np.ndarray, at: np.ndarray) -> np.ndarray:
    if np.unique(outcomes).size == 1:  # nothing to fit
        return np.full(len(at), outcomes[0])
    fitted = NearIsotonic(labels=[0, 1]).fit(scores, outcomes.astype(int))
    return np.interp(at, fitted.scores_, fitted.values_)


def of_maps(y_prob: np.ndarray, y_true: np.ndarray, seed: int = 0) -> tuple[dict[str, Truth], dict[str, np.ndarray]]:
    """Exact truths and the maps at the rows, by notion: all classes together only where there are two.

    Labels of three classes and more cannot follow a map of each class's own score at once.
    """
    given = problems(y_prob, y_true)
    maps = {notion: fitted_map(s, o, seed) for notion, (s, o) in given.items()}
    truths = {notion: Truth(float(np.abs(g - given[notion][0]).mean()), 0.0) for notion, g in maps.items()}
    if y_prob.shape[1] == 2:
        truths["classwise"] = truths["class-specific:1"]
        maps["classwise"] = maps["class-specific:1"]
    return truths, maps
