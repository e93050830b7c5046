"""What a frame may hold: cases that every engine is driven through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

import calibrant as cal

N = 4000
NAMES = ("cat", "dog", "eel", "fox")


def edge_scores(dtype: Any) -> np.ndarray:
    """Scores on edges of bins, on nodes and cells' ends, a rounding beside them, at both ends, and within the noise."""
    on = np.concatenate([np.arange(16) / 15, np.arange(11) / 10, 1 - np.arange(11) / 10, np.arange(9) / 8])
    on = np.concatenate([on, np.arange(0, 4097, 256) / 4096]).astype(dtype)
    beside = [on, np.nextafter(on, dtype(2)), np.nextafter(on, dtype(-1))]
    noise = np.array([-1, 2], dtype) * dtype(0.9e-9 if dtype is np.float64 else 0.9e-6)
    return np.concatenate([*beside, 1 + noise[1:] / 2, noise[:1]]).astype(dtype)


def binary_rows(dtype: Any = np.float64, edges: bool = True, labels: Any = (0, 1), seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 1.5, N).astype(dtype)
    if edges:
        p[: edge_scores(dtype).size] = edge_scores(dtype)
    # Scores of 0 and 1 come true: else the logarithmic score is infinite, which has a case of its own.
    y = np.where(p <= 0, 0, np.where(p >= 1, 1, rng.random(N) < p)).astype(int)
    weights = {"share": rng.random(N), "times": rng.integers(0, 4, N)}
    return pl.DataFrame({"y": np.array(labels)[y], "p": p, **weights, "part": np.array(["a", "b", "c"])[y + (p > 0.5)]})


def matrix_rows(dtype: Any = np.float64, k: int = 4, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), N)
    p[:40] = 1 / k  # ties: the first column wins
    p[40:60] = np.array([0.5, 0.5] + [0] * (k - 2))
    y = np.argmax(p.cumsum(axis=1) > rng.random((N, 1)) * 0.999999, axis=1)
    y[40:60] = 0
    names = NAMES[:k] if k <= len(NAMES) else [f"c{i:03d}" for i in range(k)]
    columns = {f"p_{name}": p[:, i].astype(dtype) for i, name in enumerate(names)}
    return pl.DataFrame({"y": np.array(names)[y], **columns, "share": rng.random(N)})


@dataclass(frozen=True)
class Case:
    """Rows, what `from_frame` is told of them, and which of them it must leave out."""

    rows: Callable[[], pl.DataFrame]
    options: dict[str, Any] = field(default_factory=dict)
    bad: Callable[[pl.DataFrame], Any] | None = None

    def wanted(self, rows: pl.DataFrame) -> cal.Accumulator:
        """What the same rows say in memory."""
        o = dict(self.options)
        y, prob, weight = o.pop("label", "y"), o.pop("prob", "p"), o.pop("weight", None)
        groups = o.pop("groups", None)
        o.pop("on_invalid", None)
        names = [prob] if isinstance(prob, str) else prob
        if not isinstance(prob, str) and "labels" not in o:
            o["labels"] = [name.removeprefix("p_") for name in prob]
        p = rows[names].to_numpy() if len(names) > 1 else rows[names[0]].to_numpy()
        weights, hospitals = (None if name is None else rows[name].to_numpy() for name in (weight, groups))
        labels = rows[y].to_numpy() if rows[y].dtype.is_float() else rows[y].to_list()
        return cal.Accumulator(**o).update(labels, p, weights, hospitals)


def spoiled() -> pl.DataFrame:
    """Rows of which one in a hundred or so cannot be read, for every reason there is."""
    rows = binary_rows()
    i = pl.int_range(pl.len())
    return rows.with_columns(
        y=pl.when(i % 700 == 3).then(None).when(i % 700 == 5).then(7).otherwise("y"),
        p=pl.when(i % 500 == 7).then(None).when(i % 500 == 8).then(float("nan")).when(i % 500 == 9).then(1.25)
        .when(i % 500 == 10).then(float("inf")).when(i % 500 == 11).then(-0.5).otherwise("p"),
        share=pl.when(i % 600 == 20).then(None).when(i % 600 == 21).then(-1.0).when(i % 600 == 22).then(float("inf"))
        .when(i % 600 == 23).then(float("nan")).otherwise("share"),
    )  # fmt: skip


def good_of_spoiled(rows: pl.DataFrame) -> pl.Expr:
    i = pl.int_range(pl.len())
    return ~((i % 700).is_in([3, 5]) | (i % 500).is_in([7, 8, 9, 10, 11]) | (i % 600).is_in([20, 21, 22, 23]))


def spoiled_matrix() -> pl.DataFrame:
    rows = matrix_rows()
    i = pl.int_range(pl.len())
    return rows.with_columns(
        y=pl.when(i % 700 == 3).then(None).when(i % 700 == 5).then(pl.lit("gnu")).otherwise("y"),
        p_dog=pl.when(i % 500 == 7).then(None).when(i % 500 == 8).then(float("nan")).when(i % 500 == 9).then(2.0)
        .otherwise("p_dog"),
    )  # fmt: skip


def good_of_matrix(rows: pl.DataFrame) -> pl.Expr:
    i = pl.int_range(pl.len())
    return ~((i % 700).is_in([3, 5]) | (i % 500).is_in([7, 8, 9]))


def in_groups(rows: pl.DataFrame, seed: int = 0) -> pl.DataFrame:
    """Rows of 80 hospitals, over all of the frame, whose residuals have something in common."""
    rng = np.random.default_rng(seed)
    middle = rng.integers(0, 80, len(rows))
    key = "p" if "p" in rows.columns else "p_dog"
    score = np.nan_to_num(rows[key].to_numpy().astype(float))
    team = np.where(score > 0.6, middle // 2, middle)  # other hospitals at other scores
    return rows.with_columns(hospital=pl.Series(team))


def named(rows: pl.DataFrame) -> pl.DataFrame:
    """The same with names of hospitals, of which a few are missing."""
    lost = pl.int_range(pl.len()) % 300 == 30
    name = pl.lit("at ") + pl.col("hospital").cast(pl.String)
    return rows.with_columns(hospital=pl.when(lost).then(None).otherwise(name))


def alone() -> pl.DataFrame:
    return binary_rows().with_columns(hospital=pl.int_range(pl.len()))


def shares(dtype: Any = np.float64, score: Any = np.float64) -> pl.DataFrame:
    """Rows of which k of n had the outcome, in groups of hospitals; some all, some none."""
    rows, rng = in_groups(binary_rows(score, edges=False)).head(600), np.random.default_rng(3)
    n = rng.integers(1, 30, len(rows))
    k = np.where(rows["p"].is_in([0.0, 1.0]), rows["y"] * n, rng.binomial(n, rows["p"].to_numpy().clip(0, 1)))
    return rows.with_columns(y=pl.Series((k / n).astype(dtype)), n=pl.Series(n))


def shares_of_two() -> pl.DataFrame:
    return shares().with_columns(p_0=1 - pl.col("p"), p_1="p")


def spoiled_shares() -> pl.DataFrame:
    rows, wrong = spoiled().head(600), shares()
    held = pl.when(rows["y"].is_null()).then(None).when(rows["y"] == 7).then(7.0).otherwise(wrong["y"])
    return rows.with_columns(y=held)


FOUR = [f"p_{name}" for name in NAMES]

CASES = {
    "float64": Case(binary_rows),
    "float32": Case(lambda: binary_rows(np.float32)),
    "without noise": Case(lambda: binary_rows(edges=False)),
    "float32 without noise": Case(lambda: binary_rows(np.float32, edges=False)),
    "bools": Case(lambda: binary_rows(edges=False, labels=(False, True))),
    "minus one": Case(lambda: binary_rows(np.float32, labels=(-1, 1))),
    "text": Case(lambda: binary_rows(labels=("no", "yes")), {"pos_label": "yes"}),
    "first label": Case(lambda: binary_rows(labels=("no", "yes")), {"pos_label": "no", "labels": ["no", "yes"]}),
    "relative weights": Case(binary_rows, {"weight": "share"}),
    "repeats": Case(lambda: binary_rows(np.float32, edges=False), {"weight": "times"}),
    "other bins": Case(
        lambda: binary_rows(np.float32), {"binned": "binned:10", "estimators": [cal.Binned((0, 0.05, 0.2, 0.3, 1))]}
    ),
    "linear bins": Case(binary_rows, {"estimators": [cal.Binned(10, mapping="linear")]}),
    "bad rows": Case(spoiled, {"weight": "share", "on_invalid": "drop"}, good_of_spoiled),
    "confidence of one column": Case(lambda: binary_rows(edges=False), {"notion": "confidence"}),
    "confidence": Case(matrix_rows, {"prob": FOUR}),
    "confidence, float32": Case(lambda: matrix_rows(np.float32), {"prob": FOUR, "weight": "share"}),
    "class-wise": Case(matrix_rows, {"prob": FOUR, "notion": "classwise"}),
    "one of four": Case(matrix_rows, {"prob": FOUR, "notion": "class-specific:eel"}),
    "top label": Case(matrix_rows, {"prob": FOUR, "notion": "top-label"}),
    "bad rows of a matrix": Case(spoiled_matrix, {"prob": FOUR, "labels": NAMES, "on_invalid": "drop"}, good_of_matrix),
    "groups": Case(lambda: in_groups(binary_rows()), {"groups": "hospital"}),
    "groups, repeats": Case(lambda: in_groups(binary_rows(np.float32)), {"groups": "hospital", "weight": "times"}),
    "groups, linear bins": Case(
        lambda: in_groups(binary_rows()), {"groups": "hospital", "estimators": [cal.Binned(10, mapping="linear")]}
    ),
    "groups, confidence": Case(
        lambda: in_groups(matrix_rows()), {"groups": "hospital", "prob": FOUR, "weight": "share"}
    ),
    "groups, class-wise": Case(
        lambda: in_groups(matrix_rows()), {"groups": "hospital", "prob": FOUR, "notion": "classwise"}
    ),
    "groups, top label": Case(
        lambda: in_groups(matrix_rows()), {"groups": "hospital", "prob": FOUR, "notion": "top-label"}
    ),
    "groups, bad rows": Case(
        lambda: named(in_groups(spoiled())),
        {"groups": "hospital", "weight": "share", "on_invalid": "drop"},
        lambda rows: good_of_spoiled(rows) & rows["hospital"].is_not_null(),
    ),
    "k of n, float32": Case(lambda: shares(np.float32, np.float32), {"weight": "n"}),
    "k of n, groups": Case(shares, {"weight": "n", "groups": "hospital"}),
    "shares, other label": Case(shares, {"pos_label": 0}),
    "shares, columns": Case(shares_of_two, {"prob": ["p_0", "p_1"], "labels": [0, 1], "weight": "n"}),
    "shares, class-wise": Case(shares_of_two, {"prob": ["p_0", "p_1"], "labels": [0, 1], "notion": "classwise"}),
    "shares, bad rows": Case(spoiled_shares, {"weight": "share", "on_invalid": "drop"}, good_of_spoiled),
    "groups of one row": Case(alone, {"groups": "hospital"}),
    "groups of one row, weights": Case(alone, {"groups": "hospital", "weight": "share"}),
}
