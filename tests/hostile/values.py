"""Hostile values, by what they are given for, and the public functions that they are given to."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl

import calibrant as cal
from calibrant import calibrators as c

N = 30
RNG = np.random.default_rng(0)
P = RNG.random(N)
Y = (RNG.random(N) < P).astype(int)
MANY = RNG.dirichlet(np.ones(3), N)
CODES = RNG.integers(0, 3, N)


def with_one(values, value, dtype=None):
    out = np.array(values, dtype=dtype or object if isinstance(value, (str, type(None))) else dtype)
    out[N // 2] = value
    return out


#: What stands for ``y_true``, ``y_prob`` (1-D), a matrix, and ``sample_weight``.
TRUTHS = {
    "as they are": Y,
    "float16": Y.astype(np.float16),
    "bool": Y.astype(bool),
    "text": np.array(["no", "yes"])[Y],
    "bytes": np.array([b"no", b"yes"])[Y],
    "object": Y.astype(object),
    "one label": np.ones(N, dtype=int),
    "three labels": CODES,
    "nan": with_one(Y, np.nan, float),
    "None": with_one(Y, None),
    "infinite": with_one(Y, np.inf, float),
    "halves": Y / 2,
    "huge": Y * 2**62,
    "beyond floats": Y * 1e300,
    "negative": Y - 5,
    "dates": np.array(["2020-01-01"] * N, dtype="datetime64[D]"),
    "complex": Y + 0j,
    "empty": np.array([]),
    "short": Y[:-1],
    "one row": Y[:1],
    "2-D": np.eye(2)[Y],
    "a number": 1,
    "a word": "yes",
    "nothing": None,
    "a mapping": {"a": 1},
    "ragged": [[0], [0, 1]] * (N // 2),
    "polars": pl.Series(Y),
    "polars list": pl.Series([[v] for v in Y.tolist()]),
    "pandas nullable": pd.array([*Y[:-1].tolist(), None], dtype="Int64"),
    "shuffled index": pd.Series(Y, index=RNG.permutation(N)),
    "escapes": np.array(["\x1b[31m", "\u202e\n"])[Y],
}
SCORES = {
    "as they are": P,
    "float16": P.astype(np.float16),
    "float32": P.astype(np.float32),
    "all equal": np.full(N, 0.3),
    "all 0": np.zeros(N),
    "all 1": np.ones(N),
    "hard": (P > 0.5).astype(float),
    "bool": P > 0.5,
    "tiny": P * 1e-300,
    "denormal": P * 5e-324,
    "nearly 1": 1 - P * 1e-16,
    "minus zero": np.where(P > 0.5, -0.0, P),
    "nan": with_one(P, np.nan),
    "infinite": with_one(P, np.inf),
    "below": with_one(P, -1e-7),
    "above": with_one(P, 1.0000001),
    "percentages": 100 * P,
    "logits": 20 * (P - 0.5),
    "enormous": 1e308 * (2 * P - 1),
    "indices": CODES,
    "text": P.astype(str),
    "object": P.astype(object),
    "None": with_one(P.astype(object), None),
    "complex": P + 0j,
    "empty": np.array([]),
    "short": P[:-1],
    "two columns": np.column_stack([1 - P, P]),
    "three columns": MANY,
    "columns of 0": np.zeros((N, 2)),
    "no columns": np.empty((N, 0)),
    "3-D": P.reshape(N, 1, 1),
    "a number": 0.5,
    "nothing": None,
    "a word": "p",
    "ragged": [[0.1], [0.1, 0.2]] * (N // 2),
    "polars": pl.Series(P),
    "polars list": pl.Series([[v] for v in P.tolist()]),
    "doubled names": pd.DataFrame(np.column_stack([1 - P, P]), columns=["a", "a"]),
    "masked": np.ma.masked_greater(P, 0.9),
    "read-only": np.lib.stride_tricks.as_strided(P, writeable=False),
    "backwards": P[::-1],
    "other bytes": P.astype(">f8"),
}
WEIGHTS = {
    "none": None,
    "ones": np.ones(N),
    "zero but one": np.eye(N)[3],
    "tiny": np.full(N, 1e-150),
    "one tiny": with_one(np.ones(N), 1e-300),
    "huge": np.full(N, 1e150),
    "uneven": np.where(np.arange(N) % 2, 1e15, 1e-15),
    "billions": np.full(N, 10**9),
    "whole": RNG.integers(0, 3, N),
    "zeros": np.zeros(N),
    "negative": with_one(np.ones(N), -1),
    "nan": with_one(np.ones(N), np.nan),
    "text": np.full(N, "1"),
    "short": np.ones(N - 1),
    "2-D": np.ones((N, 2)),
    "overflowing": np.full(N, 1e300),
}
#: What ``groups`` may be given, and the functions that take it.
GROUPS = {
    "tens": np.arange(N) // 10,
    "two": np.arange(N) % 2,
    "one": np.zeros(N, dtype=int),
    "one, and a row": np.eye(N, dtype=int)[0],
    "each its own": np.arange(N),
    "short": np.arange(N - 1),
    "empty": np.array([]),
    "2-D": np.ones((N, 2)),
    "a column": (np.arange(N) // 3)[:, None],
    "None inside": with_one((np.arange(N) // 3).astype(object), None),
    "nan": with_one(np.arange(N) / 3, np.nan),
    "infinite": with_one(np.arange(N) / 3, np.inf),
    "huge": 1e307 * (np.arange(N) // 3 + 1),
    "text": np.array([f"patient {i // 3}" for i in range(N)]),
    "bytes": np.array([b"a", b"b"] * (N // 2)),
    "mixed": np.array([1, "1"] * (N // 2), dtype=object),
    "bool": np.arange(N) % 3 == 0,
    "complex": np.arange(N) // 3 + 1j,
    "unhashable": [{"a": 1}] * N,
    "ragged": [[1], [1, 2]] * (N // 2),
    "a number": 5,
    "a word": "patients",
    "dates": np.datetime64("2020-01-01") + (np.arange(N) // 5).astype("m8[D]"),
    "no date": with_one(np.datetime64("2020-01-01") + (np.arange(N) // 5).astype("m8[D]"), np.datetime64("NaT", "D")),
    "categories": pd.Categorical(["a", "b", "c"] * (N // 3)),
    "polars": pl.Series(np.arange(N) // 3),
}
GROUPED = (
    "as_predictions",
    "calibration_error",
    "estimate",
    "estimate binned",
    "estimate classwise",
    "calibration_test",
)
GROUPED += (
    "reliability_curve",
    "adaptive_test",
    "hosmer_lemeshow_test",
    "pearson_test",
    "cox_test",
    "spiegelhalter_test",
)
FEW = {"n_resamples": 20}
#: Name, function of (y_true, y_prob, **options), and what makes it quick.
FUNCTIONS = {
    "as_predictions": cal.as_predictions,
    "calibration_error": cal.calibration_error,
    "estimate": lambda y, p, **o: cal.estimate(y, p, **FEW, **o),
    "estimate binned": lambda y, p, **o: cal.estimate(y, p, estimator="binned", **FEW, **o),
    "estimate classwise": lambda y, p, **o: cal.estimate(y, p, notion="classwise", **FEW, **o),
    "estimate for every truth": lambda y, p, **o: cal.estimate(y, p, assume="none", **FEW, **o),
    "estimate of bounded variation": lambda y, p, **o: cal.estimate(y, p, assume="variation:1", **FEW, **o),
    "reliability_curve": lambda y, p, **o: cal.reliability_curve(y, p, **FEW, **o),
    "report": cal.report,
    "decompose": cal.decompose,
    "decompose calibrator": lambda y, p, **o: cal.decompose(y, p, calibrator="temperature", **o),
    "grouping_loss": lambda y, p, **o: cal.scores.grouping_loss(y, p, np.arange(N)[:, None] % 4, **o),
    "calibration_test": lambda y, p, **o: cal.calibration_test(y, p, **FEW, **o),
    "adaptive_test": lambda y, p, **o: cal.significance.adaptive_test(y, p, **FEW, **o),
    "evalue_test": cal.significance.evalue_test,
    "hosmer_lemeshow_test": cal.significance.hosmer_lemeshow_test,
    "pearson_test": cal.significance.pearson_test,
    "risk_coverage": cal.decisions.risk_coverage,
    "confidence_direction": cal.significance.confidence_direction,
    "cox_test": cal.significance.cox_test,
    "spiegelhalter_test": cal.significance.spiegelhalter_test,
    "decision_calibration_error": lambda y, p, **o: cal.decisions.decision_calibration_error(
        y, p, thresholds=(0.2, 0.6), **FEW, **o
    ),
    "brier_curve": lambda y, p, **o: cal.scores.brier_curve(y, p, **o).brier_score,
    "brier_score": cal.scores.brier_score,
    "log_loss": cal.scores.log_loss,
    "compare_models": lambda y, p, **o: cal.compare_models(y, {"a": p, "b": p}, **FEW, **o),
    "subgroup_calibration": lambda y, p, **o: cal.subgroup_calibration(y, p, {"half": np.arange(N) % 2}, **FEW, **o),
    "find_segments": lambda y, p, **o: cal.find_segments(y, p, {"half": np.arange(N) % 2}, **o),
    "calibration_over_time": lambda y, p, **o: cal.calibration_over_time(y, p, np.arange(N), every=N // 2, **o),
    "Accumulator": lambda y, p, **o: cal.Accumulator().update(y, p, **o).estimate(**FEW),
    "PlattScaling": lambda y, p, **o: c.PlattScaling().fit(p, y, **o).predict_proba(p),
    "IsotonicCalibrator": lambda y, p, **o: c.IsotonicCalibrator().fit(p, y, **o).predict_proba(p),
    "TemperatureScaling": lambda y, p, **o: c.TemperatureScaling().fit(p, y, **o).predict_proba(p),
    "MatrixScaling": lambda y, p, **o: c.MatrixScaling().fit(p, y, **o).predict_proba(p),
    "DirichletCalibration": lambda y, p, **o: c.DirichletCalibration().fit(p, y, **o).predict_proba(p),
    "EnsembleTemperatureScaling": lambda y, p, **o: c.EnsembleTemperatureScaling().fit(p, y, **o).predict_proba(p),
    "SplineCalibrator": lambda y, p, **o: c.SplineCalibrator().fit(p, y, **o).predict_proba(p),
    "VennAbers": lambda y, p, **o: c.VennAbers().fit(p, y, **o).predict_proba(p),
    "HistogramBinning": lambda y, p, **o: c.HistogramBinning().fit(p, y, **o).predict_proba(p),
    "BayesianBinning": lambda y, p, **o: c.BayesianBinning().fit(p, y, **o).predict_proba(p),
    "LabelSmoothing": lambda y, p, **o: c.LabelSmoothing(c.TemperatureScaling()).fit(p, y, **o).predict_proba(p),
    "AutoCalibrator": lambda y, p, **o: (
        c.AutoCalibrator({"none": c.Identity(), "temperature": c.TemperatureScaling()}, cv=2)
        .fit(p, y, **o)
        .predict_proba(p)
    ),
    "Mixture": lambda y, p, **o: c.Mixture([c.Identity(), c.TemperatureScaling()]).fit(p, y, **o).predict_proba(p),
    "TopLabelCalibrator": lambda y, p, **o: c.TopLabelCalibrator().fit(p, y, **o).predict_proba(p),
    "SubgroupCalibrator": lambda y, p, **o: (
        c.SubgroupCalibrator().fit(p, y, by=np.arange(N) % 3, **o).predict_proba(p, by=np.arange(N) % 3)
    ),
    "SegmentCalibrator": lambda y, p, **o: (
        c.SegmentCalibrator(c.TemperatureScaling(), cv=2)
        .fit(p, y, features={"half": np.arange(N) % 2}, **o)
        .predict_proba(p, features={"half": np.arange(N) % 2})
    ),
    "OneVsOne": lambda y, p, **o: c.OneVsOne(c.PlattScaling()).fit(p, y, **o).predict_proba(p),
    "OneVsRest": lambda y, p, **o: c.OneVsRest(c.BetaCalibration()).fit(p, y, **o).predict_proba(p),
}
#: Arguments by which a complaint may call what is wrong.
ARGUMENTS = ("y_true", "y_prob", "sample_weight", "label", "scores", "weight", "row", "classes", "model", "group")
#: What scikit-learn says of what its estimators are given, which its own checks ask for.
OF_SCIKIT_LEARN = ("input y ", "input x ", "y must", "x must", "requires y", "complex data", "found array with dim")
OF_SCIKIT_LEARN += ("could not convert string", "shape", "sample", "feature", "columns")


def outcome(function, y, p, options):
    """None where a call ends as it should, else what is wrong with how it ended."""
    try:
        found = function(y, p, **options)
    except (ValueError, TypeError) as error:
        said = str(error).lower()
        named = any(word in said for word in (*ARGUMENTS, *OF_SCIKIT_LEARN))
        return None if named else f"{type(error).__name__} that names no argument: {error}"
    except Exception as error:  # any other is a leak, warnings that were made errors among them
        return f"{type(error).__name__}: {error}"
    values = [found] if isinstance(found, float) else found if isinstance(found, np.ndarray) else []
    if isinstance(found, cal.results.Estimate):
        values = [found.value, *found.interval]
    bad = [v for v in np.ravel(values) if not (np.isfinite(v) or v == np.inf)]
    return f"not finite: {found}" if bad else None
