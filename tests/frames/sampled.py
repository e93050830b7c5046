"""Rows that an engine draws for a function that needs them in memory."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.data.lazy_rows import drawn_rows


def check_drawn(frame_of) -> None:
    """As many as asked for, each once, uniformly; all where there are no more; and names of columns as ever."""
    n = 5_000
    rng = np.random.default_rng(3)
    rows = pl.DataFrame({"row": np.arange(n), "p": rng.random(n), "north": rng.random(n) < 0.5, "other": "text"})
    wrong = pl.col("p") ** pl.when(pl.col("north")).then(2.0).otherwise(1.0)
    rows = rows.with_columns(y=(pl.Series(rng.random(n)) < wrong).cast(pl.Int64))
    frame = frame_of(rows)
    places = []
    for seed in range(6):
        drawn = nw.from_native(drawn_rows(frame, ["row", "p"], 1_000, seed), eager_only=True)
        assert sorted(drawn.columns) == ["p", "row"]
        found = np.sort(drawn["row"].to_numpy())
        assert found.size == np.unique(found).size == 1_000
        places.append(found)
    # Of 6,000 uniform places: five standard errors of a mean, and of the share of a quarter.
    every = np.concatenate(places)
    assert abs(every.mean() / n - 0.5) < 5 * (1 / 12 / every.size) ** 0.5
    assert abs((every < n / 4).mean() - 0.25) < 5 * (0.1875 / every.size) ** 0.5
    assert len({tuple(one) for one in places}) == len(places)
    every_row = nw.from_native(drawn_rows(frame, ["row"], 10 * n, 0), eager_only=True)["row"]
    np.testing.assert_array_equal(np.sort(every_row.to_numpy()), np.arange(n))

    found = cal.find_segments(frame, label="y", prob="p", X=["north"], max_rows=4_000)
    assert [one.condition for one in found.segments] == ["north is True"]
    assert found.n_samples == 4_000
    with pytest.raises(ValueError, match="max_rows must be"):
        cal.find_segments(frame, label="y", prob="p", X=["north"], max_rows=0)
    with pytest.raises(ValueError, match="label must be a column of the frame"):
        cal.find_segments(frame, label="z", prob="p", X=["north"], max_rows=50)
