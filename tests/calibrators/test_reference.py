"""Fits against second implementations: scikit-learn, slower algorithms, and numbers by hand."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression
from scipy.special import betaln, expit
from sklearn.isotonic import IsotonicRegression

from calibrant import calibrators as c

from .table import several, two
from .test_optimum import PROBLEMS, binary_problem, tight


@pytest.mark.parametrize(("n", "ties"), PROBLEMS)
def test_isotonic_is_scikit_learns(n, ties):
    s, y, w = binary_problem(n, ties)
    peer = IsotonicRegression(out_of_bounds="clip").fit(s, y, sample_weight=w)
    new = np.linspace(0, 1, 997)
    np.testing.assert_allclose(
        c.IsotonicCalibrator(clip=None).fit(s, y, w).predict_proba(new)[:, 1], peer.predict(new), atol=1e-10
    )


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.integers(2, 60), st.integers(1, 12), st.sampled_from(["none", "whole", "relative"]), st.integers(0, 2**31))
def test_the_hull_of_the_roc_curve_is_isotonic_regression(n, values, weighting, seed):
    """Fawcett & Niculescu-Mizil (2007), with ties, weights, and scores that separate the classes."""
    rng = np.random.default_rng(seed)
    s = rng.integers(0, values + 1, n) / values
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    w = {"none": None, "whole": rng.integers(1, 4, n), "relative": rng.random(n) + 0.1}[weighting]
    at = np.linspace(0, 1, 41)
    for options in ({}, {"interpolation": "step"}):
        one, two = (kind(**options).fit(s, y, w) for kind in (c.IsotonicCalibrator, c.RocHullCalibrator))
        np.testing.assert_allclose(one.predict_proba(at), two.predict_proba(at), atol=1e-10)


def test_isotonic_options():
    s, y = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), np.array([0, 1, 0, 1, 1, 1])
    step = c.IsotonicCalibrator(interpolation="step", clip=None).fit(s, y)
    assert step.predict_proba([0.05, 0.1, 0.15, 0.2, 0.25, 0.39, 0.4])[:, 1].tolist() == [0, 0, 0, 0.5, 0.5, 0.5, 1]
    centred = c.IsotonicCalibrator(centred=True, clip=None).fit(s, y)
    assert centred.scores_.tolist() == pytest.approx([0.1, 0.25, 0.4, 0.6])
    assert centred.predict_proba([0.175, 0.325, 0.45])[:, 1].tolist() == pytest.approx([0.25, 0.75, 1])
    clipped = c.IsotonicCalibrator(clip=0.1).fit(s, y)
    assert clipped.predict_proba(s)[[0, -1], 1].tolist() == [0.1, 0.9]


def test_centred_pieces_by_hand():
    """A piece at 0, one at 1/4, one at 1: Oron & Flournoy (2017) leave the first and the last as they are."""
    rows = [10, 10, 10, 10, 20, 10, 10]
    happened = [0, 0, 4, 2, 4, 10, 10]  # 4 of 10, 2 of 10, 4 of 20: one piece of 10 in 40, whose mean score is 0.5
    s = np.repeat([0.1, 0.2, 0.3, 0.5, 0.6, 0.8, 0.9], rows)
    y = np.concatenate([np.arange(n) < m for n, m in zip(rows, happened, strict=True)]).astype(int)
    for kind in (c.IsotonicCalibrator, c.RocHullCalibrator):
        fitted = kind(centred=True, clip=None).fit(s, y)
        np.testing.assert_allclose(fitted.scores_, [0.1, 0.2, 0.5, 0.8, 0.9])
        np.testing.assert_allclose(fitted.values_, [0, 0, 0.25, 1, 1])
        # 0.25 · (0.35 - 0.2) / 0.3, and 0.25 + 0.75 · (0.65 - 0.5) / 0.3.
        np.testing.assert_allclose(fitted.predict_proba([0.15, 0.35, 0.65, 0.85])[:, 1], [0, 0.125, 0.625, 1])


def centred(s, y, w, at):
    """The published pooling, pair by pair: neighbours that do not rise are pooled, but not two at 0 or two at 1."""
    x = np.unique(s)
    rows = [[float(v), float((w * y)[s == v].sum()), float(w[s == v].sum())] for v in x]
    rows = [[v, up / total, total] for v, up, total in rows]
    while True:
        falls = [
            i
            for i, ((_, a, _), (_, b, _)) in enumerate(pairwise(rows))
            if b < a - 1e-12 or (abs(a - b) <= 1e-12 and 1e-12 < a < 1 - 1e-12)
        ]
        if not falls:
            break
        i = falls[0]
        (xa, a, wa), (xb, b, wb) = rows[i : i + 2]
        rows[i : i + 2] = [[(xa * wa + xb * wb) / (wa + wb), (a * wa + b * wb) / (wa + wb), wa + wb]]
    return np.interp(at, [r[0] for r in rows], [r[1] for r in rows])


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 40), st.integers(1, 15), st.sampled_from([0.2, 1.0, 5.0]), st.integers(0, 2**31))
def test_centred_pieces_by_pooling_pairs(n, values, sharp, seed):
    rng = np.random.default_rng(seed)
    s = rng.integers(0, values + 1, n) / values
    y = (rng.random(n) < expit(sharp * (6 * s - 3))).astype(int)
    y[:2] = 0, 1
    w = rng.integers(1, 4, n).astype(float)
    at = np.linspace(0, 1, 61)
    for kind in (c.IsotonicCalibrator, c.RocHullCalibrator):
        got = kind(centred=True, clip=None).fit(s, y, w).predict_proba(at)[:, 1]
        np.testing.assert_allclose(got, centred(s, y, w, at), atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_venn_abers_by_refitting(seed):
    """Every score is added with either outcome, and isotonic regression is done again."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 40))
    s = rng.random(n) if seed % 2 else rng.integers(0, 8, n) / 8
    y = (rng.random(n) < s).astype(int)
    y[:2] = 0, 1
    w = np.ones(n) if seed < 3 else rng.integers(1, 4, n).astype(float)
    fitted = c.VennAbers().fit(s, y, w)
    new = np.concatenate([rng.random(20), s, [0.0, 1.0]])
    for score, (low, high) in zip(new, fitted.predict_interval(new), strict=True):
        for outcome, got in ((0, low), (1, high)):
            x, o, v = np.append(s, score), np.append(y, outcome), np.append(w, 1.0)
            _, where = np.unique(x, return_inverse=True)
            weight = np.bincount(where, v)
            fit = isotonic_regression(np.bincount(where, v * o) / weight, weights=weight).x
            assert got == pytest.approx(fit[where[-1]], abs=1e-12)
    p0, p1 = fitted.predict_interval(new).T
    np.testing.assert_allclose(fitted.predict_proba(new)[:, 1], p1 / (1 - p0 + p1))


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_histograms_by_hand(strategy):
    s, y, _ = two(1000, 1)
    edges = np.linspace(0, 1, 11) if strategy == "uniform" else np.quantile(s, np.linspace(0, 1, 11), method="hazen")
    edges[[0, -1]] = 0, 1
    where = np.clip(np.searchsorted(edges, s, side="left") - 1, 0, 9)
    by_hand = np.array([y[where == b].mean() for b in range(10)])
    fitted = c.HistogramBinning(10, strategy).fit(s, y)
    np.testing.assert_allclose(fitted.values_, by_hand)
    np.testing.assert_allclose(fitted.predict_proba(s)[:, 1], by_hand[where])


def test_empty_bins_lie_between_their_neighbours():
    fitted = c.HistogramBinning(5, "uniform", smoothing=0).fit([0.1, 0.1, 0.9, 0.9], [0, 1, 1, 1])
    assert fitted.values_.tolist() == pytest.approx([0.5, 0.625, 0.75, 0.875, 1.0])
    assert fitted.counts_.tolist() == [2, 0, 0, 0, 2]


def test_bayesian_binning_by_hand():
    s, y, _ = two(300, 2)
    fitted = c.BayesianBinning().fit(s, y)
    evidence, predicted = [], []
    root = np.cbrt(300)
    for size in range(max(1, int(root / 10)), int(np.ceil(10 * root)) + 1):
        cuts = [0.0, *(np.sort(s)[[j * 300 // size - 1, j * 300 // size]].mean() for j in range(1, size)), 1.0]
        where = np.clip(np.searchsorted(cuts, s, side="left") - 1, 0, size - 1)
        n, m = np.bincount(where, minlength=size), np.bincount(where, y, minlength=size)
        middle = (np.array(cuts[1:]) + cuts[:-1]) / 2
        a, b = 2 / size * middle, 2 / size * (1 - middle)
        evidence.append((betaln(m + a, n - m + b) - betaln(a, b)).sum())
        predicted.append(((m + a) / (n + a + b))[where])
    weight = np.exp(np.array(evidence) - max(evidence))
    np.testing.assert_allclose(fitted.predict_proba(s)[:, 1], weight @ np.array(predicted) / weight.sum(), atol=1e-7)


def test_label_smoothing_is_what_it_says():
    p, y, _ = several(400, 3, 0, 0.6)
    amount = 0.2
    fitted = c.LabelSmoothing(c.TemperatureScaling(shrinkage=0), amount).fit(p, y)
    z = np.log(p)
    target = np.full((400, 3), amount / 3)
    target[np.arange(400), y] += 1 - amount

    def objective(t):
        logits = z * t[0]
        return -(target * (logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))).sum(axis=1).mean()

    assert objective([1 / fitted.calibrator_.temperature_]) <= tight(objective, np.ones(1)) + 1e-9


def test_one_against_the_rest_by_hand():
    p, y, _ = several(300, 3, 0, 0.6)
    each = [c.BetaCalibration().fit(p[:, k], (y == k).astype(int)).predict_proba(p[:, k])[:, 1] for k in range(3)]
    raw = np.column_stack(each)
    np.testing.assert_allclose(c.OneVsRest(c.BetaCalibration(), "none").fit(p, y).predict_proba(p), raw)
    got = c.OneVsRest(c.BetaCalibration()).fit(p, y).predict_proba(p)
    np.testing.assert_allclose(got, raw / raw.sum(axis=1, keepdims=True))


def test_one_against_the_rest_where_all_say_never():
    fitted = c.OneVsRest(c.IsotonicCalibrator())
    p = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]] * 5)
    fitted.fit(p, [0, 1, 2] * 5)
    nowhere = np.array([[0.1, 0.1, 0.8], [0.05, 0.9, 0.05]])
    assert np.isfinite(fitted.predict_proba(nowhere)).all()
    low = fitted.predict_proba([[1 / 3, 1 / 3, 1 / 3]])
    np.testing.assert_allclose(low.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("calibrator", "words"),
    [
        (c.PlattScaling(eps=0), "eps must be"),
        (c.PlattScaling(smoothing=2), "smoothing must be"),
        (c.BetaCalibration("abc"), "parameters must be one of"),
        (c.HistogramBinning(0), "n_bins must be"),
        (c.HistogramBinning([0, 0.5]), "n_bins must be"),
        (c.HistogramBinning("many"), "n_bins must be"),
        (c.HistogramBinning(strategy="equal"), "strategy must be one of"),
        (c.BayesianBinning(0), "prior_size must be"),
        (c.IsotonicCalibrator(interpolation="cubic"), "interpolation must be one of"),
        (c.IsotonicCalibrator(interpolation="step", centred=True), "needs interpolation='linear'"),
        (c.IsotonicCalibrator(clip=0.5), "clip must be"),
        (c.SplineCalibrator(-1), "n_knots must be"),
        (c.SplineCalibrator(alpha=-1), "alpha must be"),
        (c.CurveCalibrator("cubic"), "estimator must be"),
        (c.CurveCalibrator(cv=0), "cv must be"),
        (c.VectorScaling(-1), "shrinkage must be"),
        (c.MatrixScaling(np.nan), "shrinkage must be"),
        (c.VectorScaling("cv"), "shrinkage must be one of"),
        (c.DirichletCalibration("l1"), "penalty must be one of"),
        (c.DirichletCalibration(strength=-1), "strength must be"),
        (c.DirichletCalibration(intercept_strength=-1), "intercept_strength must be"),
        (c.OneVsRest(c.TemperatureScaling()), "must be a binary calibrator"),
        (c.OneVsRest(c.PlattScaling(), "softmax"), "normalisation must be one of"),
        (c.LabelSmoothing(3), "must be a calibrator"),
        (c.LabelSmoothing(c.PlattScaling(), 1.0), "amount must be"),
    ],
    ids=lambda v: repr(v)[:40],
)
def test_bad_parameters(calibrator, words):
    s, y, _ = two(40)
    with pytest.raises((ValueError, TypeError), match=words):
        calibrator.fit(s, y)
