"""Subgroups of a frame that are followed over periods, beside those of arrays."""

from __future__ import annotations

import numpy as np
import polars as pl

import calibrant as cal

from .grouped import same_parts, same_tests

WHAT = {"label": "y", "prob": "p", "time": "day", "every": "month"}


def followed_rows(n: int = 3600, seed: int = 0) -> pl.DataFrame:
    """Rows of three sites, one of which is missing from the first months, in two versions; the west changes."""
    rng = np.random.default_rng(seed)
    month = np.arange(n) * 6 // n
    p, site = rng.random(n), rng.choice(["north", "west", "late"], n)
    site[(site == "late") & (month < 2)] = "north"
    y = rng.random(n) < np.where((site == "west") & (month >= 3), p**1.8, p)
    day = np.datetime64("2026-01-01").astype("M8[M]") + month.astype("m8[M]")
    return pl.DataFrame(
        {
            "y": y.astype(int),
            "p": p,
            "day": day.astype("M8[us]"),
            "site": site,
            "version": rng.integers(1, 3, n),
            "g": rng.integers(0, 40, n),
            "w": rng.integers(0, 4, n),
        }
    )


def check_followed(framed, **columns: str) -> None:
    """What a frame says of each subgroup is what arrays say; only changes are looked for between whole periods."""
    rows = followed_rows()
    named = {"weight": "sample_weight", "groups": "groups"}
    found = cal.from_frame(framed(rows), **WHAT, by="site", **columns).over_time()
    wanted = cal.calibration_over_time(
        rows["y"].to_numpy(),
        rows["p"].to_numpy(),
        rows["day"].to_numpy(),
        by={"site": rows["site"].to_numpy()},
        every="month",
        **{named[k]: rows[v].to_numpy() for k, v in columns.items()},
    )
    assert (found.course, found.by, len(found.courses)) == (wanted.course, wanted.by, 3)
    # Of groups, draws end with the hundredth that reaches the statistic, and those of the next course begin there.
    drawn, near = (0.15, 0.01) if "groups" in columns else (0.02, 1e-5)
    for one, other in zip(found.courses, wanted.courses, strict=True):
        assert (one.course, one.n_samples) == (other.course, other.n_samples)
        assert [p.name for p in one.periods] == [p.name for p in other.periods]
        same_parts(one.periods, other.periods, drawn, rtol=near)
        same_tests(one.period_test, other.period_test, drawn)
        np.testing.assert_allclose([p.gap for p in one.periods], [p.gap for p in other.periods], atol=1e-12)
        np.testing.assert_allclose((one.gap, *one.gap_interval), (other.gap, *other.gap_interval), atol=1e-6)
