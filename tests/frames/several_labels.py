"""Rows with several labels, as a frame with a column of outcomes and one of probabilities for each label."""

from __future__ import annotations

import numpy as np
import polars as pl

import calibrant as cal

from .engines import same

NAMES = ["cat", "dog", "fox"]
COLUMNS = {"label": NAMES, "prob": ["p_cat", "p_dog", "p_fox"]}


def labelled_rows(n=400, seed=0) -> pl.DataFrame:
    """Labels that depend on each other. The first rows have one each, as classes would."""
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-(rng.normal(size=(n, 3)) + rng.normal(size=(n, 1)))))
    y = rng.random((n, 1)) < p ** (1 + np.arange(3) / 2)
    y[:50] = np.eye(3, dtype=bool)[np.arange(50) % 3]
    columns = {name: y[:, k].astype(int) for k, name in enumerate(NAMES)}
    columns |= {f"p_{name}": p[:, k] for k, name in enumerate(NAMES)}
    by = np.where(np.arange(n) % 3, "a", "b")
    return pl.DataFrame(columns | {"w": rng.random(n), "g": np.arange(n) // 10, "by": by})


def arrays(rows: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    return rows.select(COLUMNS["label"]).to_numpy(), rows.select(COLUMNS["prob"]).to_numpy()


def check_labels(frame_of, notions=("auto", "multilabel:micro", "multilabel:weighted")) -> None:
    """Sums of a frame are those of arrays, and of a loop over labels."""
    rows = labelled_rows()
    y, p = arrays(rows)
    frame = frame_of(rows)
    for notion in notions:
        for weight, groups in ((None, None), ("w", None), ("w", "g")):
            if groups is not None and notion == "multilabel:micro":
                continue
            found = cal.from_frame(frame, **COLUMNS, notion=notion, weight=weight, groups=groups)
            wanted = cal.Accumulator(notion=notion if notion != "auto" else "multilabel", labels=NAMES)
            wanted.update(y, p, None if weight is None else rows["w"].to_numpy(), groups and rows["g"].to_numpy())
            if notion == "multilabel:micro":  # how much entries of a row are alike is found piece by piece
                error, other = (sums.calibration_error(estimator=cal.Binned()) for sums in (found, wanted))
                assert abs(error - other) < 1e-12
            else:
                same(found, wanted)
    each = [cal.calibration_error(y[:, k], p[:, k], estimator=cal.Binned()) for k in range(3)]
    sums = cal.from_frame(frame, **COLUMNS)
    assert np.allclose(list(sums.estimate(cal.Binned()).per_class.values()), each, rtol=0, atol=1e-9)
    parts = cal.from_frame(frame, **COLUMNS, by="by")
    for value, part in parts.items():
        some = rows.filter(pl.col("by") == value)
        same(part, cal.Accumulator(notion="multilabel", labels=NAMES).update(*arrays(some)))
