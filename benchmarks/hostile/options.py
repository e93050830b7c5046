"""Values of options, by the name of the parameter: those that it takes, and those that anything may be given."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from calibrant import calibrators as c
from calibrant import estimators as e
from calibrant import notions, scores

from .drawing import Draw

#: Logs of evaluations, as the packages wrote them.
_LOGS = tuple(map(str, sorted((Path(__file__).parents[2] / "tests" / "llm" / "logs").glob("*_*.*"))))
#: What any parameter may be given.
ANYTHING: dict[str, Any] = {
    "None": None,
    "True": True,
    "False": False,
    "-1": -1,
    "0": 0,
    "1": 1,
    "2": 2,
    "0.5": 0.5,
    "1.0": 1.0,
    "1.5": 1.5,
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "1e-320": 1e-320,
    "1e308": 1e308,
    "a word": "x",
    "empty text": "",
    "a number as text": "5",
    "a colon": "binned:",
    "long text": "x" * 5000,
    "an escape": "\x1b[31m\u202e",
    "a lone surrogate": "\ud800",
    "bytes": b"auto",
    "an empty list": [],
    "an empty mapping": {},
    "a list": [0.2, 0.5],
    "a long list": list(range(3000)),
    "a mapping": {"a": 1},
    "a tuple": (1, 2),
    "a set": {1},
    "an array": np.array([1.0, 2.0]),
    "0-D": np.array(0.5),
    "float32": np.float32(0.5),
    "int8": np.int8(3),
    "numpy bool": np.True_,
    "complex": 1j,
    "a fraction": Fraction(1, 2),
    "a decimal": Decimal("0.5"),
    "NA": pd.NA,
    "NaT": pd.NaT,
    "a date": np.datetime64("2020-01-01"),
    "an object": object(),
    "a type": int,
    "an estimator's type": e.Binned,
    "a calibrator's type": c.PlattScaling,
    "a function": len,
    "a module": np,
    "Ellipsis": ...,
    "an exception": ValueError("x"),
    "a series": pd.Series([0.5]),
    "a generator": np.random.default_rng(0),
}
#: Those whose work grows with a number: they are not given one that nobody could wait for.
SIZES = ("n_resamples", "n_samples", "n_points", "n_splits", "max_degree", "n_cells", "n_knots", "min_rows", "min_size")
BEYOND: dict[str, Any] = {"2**31": 2**31, "2**63": 2**63, "10**30": 10**30, "-2**70": -(2**70)}

ESTIMATORS = (
    *("auto", "adaptive", "beta-kernel", "binned", "binned:5", "binned:sqrt:quantile", "binned:debias", "cross-fit"),
    *("binned:15:linear", "binned:3:linear-as-printed", "cumulative", "density", "density:scott:triweight", "kernel"),
    *("dirichlet-kernel", "empirical-bayes", "isotonic", "parametric", "residual", "residual:score", "simplex-binned"),
    *("smooth", "smooth:0.1", "sweep", "parametric:beta", "density:0.001", "binned:1"),
    *(e.Binned(4, "quantile", "hard", True), e.Binned([0, 0.3, 1]), e.AdaptiveKernel()),
    e.DirichletKernel(debias="ratio"),
    *(e.KernelCalibrationError(), e.CrossFit("logistic", 2), e.Smooth(), e.Sweep("uniform"), e.Density("isj")),
    *(e.ResidualKernel(debias=True), e.EmpiricalBayes("wide"), e.SimplexBinned(2)),
)  # fmt: skip


CALIBRATORS = (
    *("auto", "platt", "beta", "isotonic", "histogram", "temperature", "vector", "dirichlet", "spline", "identity"),
    *(c.PlattScaling(), c.TemperatureScaling(), c.IsotonicCalibrator(), c.HistogramBinning(3), c.Identity()),
)
RULES = ("brier", "log-loss", "spherical", scores.Brier(), scores.Log(), scores.BetaFamily(1, 2), scores.CostWeighted())
NOTIONS = (
    *("auto", "auto", "class-specific", "classwise", "confidence", "top-label", "canonical", "drawn-class"),
    *(
        notions.Classwise("mean"),
        notions.Confidence(),
        notions.TopLabel(),
        notions.ClassSpecific(1),
        notions.Canonical(),
    ),
)
SIMPLEX = ([0.5, 0.5], [0.2, 0.3, 0.5], np.array([0.25] * 4), 0.3, 0.0, 1.0, [1.0, 0.0], {0: 0.4, 1: 0.6}, [0.5, 0.6])
NUMBERS = (0.0, 1e-300, 0.1, 0.5, 1.0, 2.0, 10, 1e6, 1e300)

#: Values that a parameter takes, or takes somewhere; those of a function alone are under "function.parameter".
OPTIONS: Mapping[str, tuple[Any, ...]] = {
    "notion": NOTIONS,
    "estimator": ESTIMATORS,
    "norm": (1, 2, 3, 0.5, 1.5, float("inf"), 1000, np.float64(2)),
    "level": (0.95, 0.5, 1e-9, 1 - 1e-12, 0.9999, np.float32(0.9), None),
    "assume": ("smooth", "none", "monotone", "variation:1", "bins:5", "calibrated"),
    "n_resamples": (2, 3, 10, 20, 50),
    "random_state": (0, 1, None, 2**32 - 1, 2**40, np.random.default_rng(0), np.random.RandomState(0), [1,
        2], np.int64(3)),
    "sum_tolerance": (None, 0, 1e-9, 0.1, 1, 10),
    "from_logits": (False, True),
    "group_average": ("micro", "macro"),
    "scale": ("sum", "half"),
    "n_bins": (1, 2, 15, 1000, "sqrt", "auto", [0, 0.5, 1], [0.2, 0.8], [0, 1e-300, 1]),
    "strategy": ("uniform", "quantile", "i-max", "mass"),
    "mapping": ("hard", "linear", "linear-as-printed"),
    "debias": (False, True, "square", "ratio", "cross", None),
    "span": ("unit", "domain"),
    "score": RULES,
    "scores": RULES,
    "compare_models.scores": (("brier",), ("log-loss", "brier"), ("spherical", scores.Brier()), ()),
    "calibrator": CALIBRATORS,
    "calibrators": (["platt"], ["temperature", "isotonic"], [c.Identity(), c.PlattScaling()], []),
    "candidates": (None, ["identity", "platt"], ["temperature"], {"a": "platt", "b": c.Identity()}, []),
    "posterior": (None, [0.5], np.full((12, 2), 0.5), np.full((30, 3), 1 / 3)),
    "cv": (2, 3, 5, 1),
    "goal": ("log-loss", "brier", "calibration"),
    "rule": ("average", "best"),
    "nested": (False, True),
    "input": ("probability", "logit", "margin"),
    "tolerance": (None, 0.05, 1e-9, 0.999),
    "threshold": (None, 0.5, 0.0, 1.0, 0.3),
    "title": ("a title", "<script>alert(1)</script>", "\x1b[2J", ""),
    "thresholds": ((0.2, 0.6), [0.5], np.linspace(0, 1, 5), [0.0, 1.0], None, [0.5, 0.5], [0.9, 0.1]),
    "costs": ([[0, 1], [1, 0]], [[0, 5], [1, 0]], np.eye(3), [[0, 1, 2], [1, 0, 1], [2, 1, 0]], [[0, 0], [0, 0]],
              [[1e300, 0], [0, 1e300]], [[-1, 0], [0, -1]], {"fp": 1, "fn": 2}, [[0, 1, 0.3], [1, 0, 0.3]]),
    "decisions": (None, ["treat", "leave"], [0, 1], ["a", "a"], ["a", "b", "c"]),
    "adjust": ("holm", "bonferroni", "none", "bh"),
    "reference": (None, "a", "b", "c"),
    "time": ([1, 2, 3, 4, 5], np.arange(5.0), np.arange(5, dtype=np.float32), [0, 1, 1, 1, 2], [3, 3, 3, 3, 3],
        [1e-300, 1, 2, 1e300, 1e308], pd.Series([1, 2, 3, 4, 5]), [1, 2, float("nan"), 4, 5], [2, 1]),
    "event": ([1, 0, 1, 0, 1], [True] * 5, [False] * 5, np.array([1, 0, 0, 0, 1.0]), [0, 1, 2, 0, 1]),
    "CalibrationMonitor.horizon": (None, 1, 50, 10**6),
    "max_open": (1, 10),
    "horizon": (1, 2.5, 3, 0, 1e-300, 1e300, -1, np.float32(1.5)),
    "left_limit": (False, True),
    "censoring_weights.reference": (None, ([1, 2, 3, 9], [0, 1, 0, 1]), ([1, 2], [1, 0]), [[5, 6], [0, 0]]),
    "estimate_prior.reference": ("rows", "rows again"),
    "algorithm": ("em", "auto", "resampling", "exact", "sequential", "split", "bbse", "asymptotic", "normal", "rlls"),
    "order": ("random", "given"),
    "n_splits": (1, 2, 20),
    "fraction": (0.5, 0.1, 0.999),
    "statistic": ("kuiper", "ks", "kolmogorov-smirnov", "unbiased", "biased", "block"),
    "levels": ((0.8, 0.95), (0.5,), (0.95, 0.8), (), (0.9, 0.9)),
    "max_degree": (1, 2, 4),
    "selection": (0.95, 0.5),
    "n_points": (2, 3, 21),
    "clip": (1e-6, 0.1, "auto", None, 0, 1e-300),
    "devel": ("external", "internal"),
    "df": ("external", "internal", 1, 8),
    "n_scales": ("auto", 1, 2, 3),
    "test": ("kuiper", "in-the-large"),
    "min_size": (0, 1, 50),
    "band": ("confidence", "consistency", "simultaneous"),
    "by": ("by",),
    "every": ("auto", "hour", "day", "week", "month", "quarter", "year", 1, 50, 10**9, np.int64(20)),
    "calibration_over_time.tolerance": (0.05, 1e-9, 0.999),
    "confidence": (None,),
    "features": (None,),
    "binned": (None, "binned", e.Binned(5), "binned:7:quantile", "binned:0"),
    "estimators": ((), ["isotonic"], ["density", e.Binned(3)], ["cross-fit"]),
    "n_cells": (1, 2, 64, 4096, 3),
    "on_invalid": ("raise", "drop"),
    "backend": (None, "pandas", "polars", "pyarrow"),
    "progress": (None, False),
    # of calibrators and estimators
    "shrinkage": ("auto", 0, 0.1, 1e6),
    "eps": (1e-12, 1e-6, 0.1, 0.4999, 1e-300),
    "smoothing": (True, False, "auto", 0, 1.0),
    "solver": ("maximum-likelihood", "closed-form"),
    "parameters": ("abm", "am", "ab", "a", "bm"),
    "penalty": ("odir", "l2"),
    "strength": NUMBERS,
    "intercept_strength": (None, *NUMBERS),
    "interpolation": ("linear", "step"),
    "centred": (False, True),
    "select": ("bic-average", "bic", 20.0, 0.0),
    "n_knots": (2, 3, 6),
    "alpha": NUMBERS,
    "beta": NUMBERS,
    "amount": (0.0, 0.05, 0.5, 0.999),
    "weights": (None, [0.5, 0.5], [1, 0], [1], [1e300, 1e300]),
    "coupling": ("quadratic", "likelihood", "pairs"),
    "normalisation": ("sum", "none", "softmax"),
    "shared": (False, True),
    "prior_size": NUMBERS,
    "prior_errors": NUMBERS,
    "max_points": (5, 10, 2000),
    "min_rows": (0, 1, 50, 2.5),
    "intercept": (True, False, 0.0, 0.25),
    "ensemble": (True, False),
    "response": ("auto", "predict_proba", "decision_function"),
    "n_jobs": (None, 1),
    "wanted": (60.0, 1.0, "auto", 1e6),
    "widest": (0.1, 1.0, 1e-9),
    "bandwidth": ("auto", "silverman", "scott", "isj", "median", "cross-validation", 0.1, 1e-3, 1e-12, 10.0, 1e300),
    "form": ("first", "second"),
    "kernel": ("gaussian", "triweight", "epanechnikov", "laplace", "uniform"),
    "regressor": ("isotonic", "logistic", "histogram"),
    "orientation": ("data", "query", "point"),
    "residual": (False, True),
    "prior": ("typical", "flat", "wide", *SIMPLEX),
    "distance": ("total-variation", "euclidean"),
    "block": (2, 3, 10),
    "family": ("logistic", "beta", "linear"),
    "space": ("rank", "score"),
    "leftovers": ("spread", "last"),
    "center": ("cell", "row"),
    "average": ("power", "mean", "max"),
    # of functions of other things
    "y_prob": SIMPLEX,
    "old": SIMPLEX,
    "new": SIMPLEX,
    "share_kept": (0.1, 1.0, [0.5, 1.0], [0.0, 1.0], {0: 0.5, 1: 1.0}),
    "cost_fp": NUMBERS,
    "cost_fn": NUMBERS,
    "prior_shift": (None, (0.1, 0.5), (0.0, 1.0), (0.5, 0.5)),
    "lower_is_better": (True, False),
    "rank_models.scores": ([[1.0, 2.0], [2.0, 1.0], [3.0, 1.0]], np.arange(20).reshape(5, 4), [[1.0, 1.0]],
        [[1, 2, 2]] * 6),
    "models": (None, ["a", "b"], ["a", "b", "c", "d"], ["a", "a"]),
    "n_classes": (2, 3, 5, 100),
    "kind": ("probability", "overconfident", "underconfident", "calibrated", "shifted", "wavy", "logit"),
    "name": ("platt", "temperature", "auto", "dirichlet-0.01", "one-vs-rest"),
    "case": ("overconfident", "underconfident", "three-class", "network"),
    "n_samples": (1, 2, 10, 100),
    "a": NUMBERS,
    "b": NUMBERS,
    "x": ([[0.0, 1.0]], [0.0, 1.0, -3.0], np.zeros((4, 2)), [1e300], [[float("inf"), 0.0]]),
    "log": (
        *_LOGS,
        "none such.jsonl",
        pd.DataFrame({"id": [1, 1, 2], "confidence": [0.5, 0.8, 1.0], "correct": [0, 1, 1]}),
    ),
    "texts": (["85 %", "8/10"], ["Confidence: 0.8", None, "very likely"], [], ["x" * 5000], "85 %", [1.0, "0.2"]),
    "outcome": ("correct", "option"),
    "words": (None, {"likely": 0.7}, {}, {"likely": 2}),
    "error": (0.0, 0.5, [0.1, 0.2], 1e-300, 2.0),
    "ignore_index": (-100, 0, -1),
    "multilabel": (None, False, True),
    "gamma": ("fl-53", 0, 0.1, 2.0, 50.0),
    "reduction": ("mean", "sum", "none"),
    "temperature": NUMBERS,
    "squared": (False, True),
    "low": (0.0,),
    "high": (1.0,),
    "weight": NUMBERS,
    "amplitude": NUMBERS,
    "decay": NUMBERS,
    "slope": NUMBERS,
    "ends": NUMBERS,
    "components": ((e.Component(1.0, 2.0, 1.0),), (), (e.Component(0.0, 1.0, 1.0), e.Component(1.0, 1.0, 0.0))),
    "edges": ([0, 0.5, 1], [0.0, 1.0], [[0, 0.2, 1], [0, 0.3, 1]], [1, 0], [0.5]),
    "label": (None, 0, 1, "a"),
    "cutoff": (0.5,),
}  # fmt: skip


def value_of(draw: Draw, function: str, name: str, *, wrong: bool) -> Any:
    """A value for a parameter: one that is taken, or anything at all."""
    if wrong:
        table = ANYTHING if name in SIZES or name.startswith("n_") or name == "cv" else {**ANYTHING, **BEYOND}
        return draw.named(name, table)
    value = draw.one(OPTIONS.get(f"{function}.{name}") or OPTIONS[name])
    draw.say(name, value)
    return value
