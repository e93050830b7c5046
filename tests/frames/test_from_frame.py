"""Frames say what arrays say: those in memory here, engines in `test_engines`."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calibrant as cal
from calibrant.data.lazy_rows import drawn_rows
from calibrant.frames import batches

from .cases import CASES, FOUR, N, binary_rows, matrix_rows, spoiled
from .engines import IN_MEMORY, framed, same
from .sampled import check_drawn

WHAT = {"label": "y", "prob": "p"}


@pytest.mark.parametrize("engine", IN_MEMORY)
@pytest.mark.parametrize("name", list(CASES))
def test_a_frame_says_what_arrays_say(name, engine):
    check(name, lambda rows: framed(rows, engine))


def check(name, frame_of):
    case = CASES[name]
    rows = case.rows()
    found = cal.from_frame(frame_of(rows), **{**WHAT, **case.options})
    good = rows if case.bad is None else rows.filter(case.bad(rows))
    wanted = case.wanted(good)
    if "share" not in name and "k of n" not in name:  # whose rows are of one outcome each
        assert found.dropped == len(rows) - len(good)
        assert found.n_samples == len(good)
    assert (found.n_samples, found.dropped > 0) == (wanted.n_samples, len(rows) > len(good))
    same(found, wanted)


@pytest.mark.parametrize("engine", IN_MEMORY)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_chance_of_nothing_for_what_came_is_an_infinite_loss(dtype, engine):
    for labels, scores in (([1, 0], [0, 0.5]), ([0, 1], [1, 0.5])):
        rows = pl.DataFrame({"y": labels, "p": np.array(scores, dtype), "w": [1.0, 1.0], "none": [0.0, 1.0]})
        frame = framed(rows, engine)
        assert cal.from_frame(frame, **WHAT).totals.log_loss == np.inf
        assert cal.from_frame(frame, **WHAT, weight="w").totals.log_loss == np.inf
        assert cal.from_frame(frame, **WHAT, weight="none").totals.log_loss == pytest.approx(np.log(2))


def test_pieces_of_a_frame_and_of_memory_add():
    rows = binary_rows()
    both = cal.from_frame(rows[:1000], **WHAT) + cal.Accumulator().update(rows["y"][1000:], rows["p"][1000:])
    same(both, cal.Accumulator().update(rows["y"], rows["p"]))
    assert both.problem_sums.histogram.edges.n_bins == 4096
    isotonic = both.estimate(cal.estimators.Isotonic(), n_resamples=5).value
    exact = cal.calibration_error(rows["y"], rows["p"], estimator=cal.estimators.Isotonic())
    assert isotonic == pytest.approx(exact, abs=1 / 4096)


def test_more_cells_tell_rows_finer_apart():
    rows = binary_rows(np.float32)
    exact = cal.calibration_error(rows["y"], rows["p"].to_numpy().clip(0, 1), estimator=cal.estimators.Isotonic())
    sums = [cal.from_frame(rows, **WHAT, n_cells=cells) for cells in (4096, 65536)]
    errors = [abs(s.estimate(cal.estimators.Isotonic(), n_resamples=5).value - exact) for s in sums]
    assert errors[1] < 1 / 65536
    same(sums[1], cal.Accumulator().update(rows["y"], rows["p"].to_numpy()))
    assert (
        cal.from_frame(matrix_rows(), label="y", prob=FOUR, n_cells=8192).problem_sums.histogram.edges.n_bins == 65536
    )


@pytest.mark.parametrize("engine", IN_MEMORY)
@pytest.mark.parametrize("several", [False, True])
def test_by_gives_what_every_part_says_alone(engine, several):
    rows = spoiled().with_columns(part=pl.when(pl.int_range(pl.len()) % 9 == 0).then(None).otherwise("part"))
    options = {**WHAT, "on_invalid": "drop", "notion": "confidence" if several else "auto", "labels": [0, 1]}
    found = cal.from_frame(framed(rows, engine), by="part", **options)
    assert list(found) == ["a", "b", "c", None]
    for value, sums in found.items():
        alone = cal.from_frame(rows.filter(pl.col("part").eq_missing(pl.lit(value))), **options)
        same(sums, alone)
        assert sums.dropped == alone.dropped > 0
    assert found.dropped == sum(s.dropped for s in found.values())
    assert found.n_samples + found.dropped == N


def same_report(one, other):
    """All numbers, p-values of tests among them, to 1e-9."""
    first, second = one.to_frame("polars"), other.to_frame("polars")
    assert first.columns == second.columns
    for name in first.columns:
        if first[name].dtype.is_float():
            np.testing.assert_allclose(first[name].to_numpy(), second[name].to_numpy(), rtol=1e-9, atol=1e-9)
        else:
            assert first[name].to_list() == second[name].to_list()
    for mine, yours in zip(one.columns, other.columns, strict=True):
        assert mine.heterogeneity.name == yours.heterogeneity.name
        assert mine.heterogeneity.pvalue == pytest.approx(yours.heterogeneity.pvalue, rel=1e-9, nan_ok=True)
        both = mine.largest_difference, yours.largest_difference
        assert both[0].interval == pytest.approx(both[1].interval, rel=1e-9)
        assert (both[0].first, both[0].second) == (both[1].first, both[1].second)
    about = [(r.test, r.adjust, r.notion, r.estimator, r.label, r.level, r.n_samples) for r in (one, other)]
    assert about[0] == about[1]


def subgroup_rows(n=4000, *, weights="none"):
    rng = np.random.default_rng(0)
    p, day = np.round(rng.random(n), 5), rng.choice([1, 2, 3, 30], n, p=[0.5, 0.3, 0.17, 0.03])
    site = np.where(rng.random(n) < 0.1, None, np.where(rng.random(n) < 0.5, "north", "south"))
    y = rng.random(p.size) < np.where(day == 3, p**1.5, p)
    w = {"none": np.ones(n), "whole": rng.integers(0, 3, n) * 1.0, "relative": rng.random(n)}[weights]
    return pl.DataFrame({"y": y.astype(int), "p": p, "day": day, "site": site, "w": w})


@pytest.mark.parametrize("weights", ["none", "whole", "relative"])
@pytest.mark.parametrize("estimator", ["auto", "binned", cal.Binned(7, "quantile")])
def test_a_report_on_subgroups_is_that_of_the_rows(weights, estimator):
    test = "in-the-large" if estimator == "binned" else "kuiper"
    rows = subgroup_rows(weights=weights)
    about = {"min_size": 10, "n_resamples": 199, "estimator": estimator, "test": test}
    weighted = {} if weights == "none" else {"sample_weight": rows["w"]}
    wanted = cal.subgroup_calibration(rows["y"], rows["p"], rows.select("day", "site"), **weighted, **about)
    given = {} if weights == "none" else {"weight": "w"}
    found = cal.from_frame(rows.lazy(), **WHAT, by=["day", "site"], **given)
    assert list(found) == [("day", 1), ("day", 2), ("day", 3), ("day", 30), ("site", "north"), ("site", "south"),
                           ("site", None)]  # fmt: skip
    got = found.subgroups(**about)
    if isinstance(estimator, str):
        same_report(got, wanted)
    else:  # of rows moved within a cell, where bins of relative weights hold as much and not as many
        for one, other in zip(got.subgroups, wanted.subgroups, strict=True):
            assert one.error == pytest.approx(other.error, abs=0.02 if weights == "relative" else 1e-3)
            assert one.pvalue == other.pvalue


@pytest.mark.parametrize("engine", IN_MEMORY)
def test_a_report_on_subgroups_of_several_columns_is_that_of_the_rows(engine):
    rows, day = matrix_rows(), np.arange(len(matrix_rows())) % 5
    found = cal.from_frame(framed(rows.with_columns(day=day), engine), label="y", prob=FOUR, by="day")
    probs = rows.select(FOUR).to_numpy()
    wanted = cal.subgroup_calibration(
        rows["y"], probs, pl.Series("day", day), labels=["cat", "dog", "eel", "fox"], n_resamples=199
    )
    same_report(found.subgroups(n_resamples=199), wanted)
    several = cal.from_frame(rows.with_columns(day=day), label="y", prob=FOUR, by="day", notion="classwise")
    with pytest.raises(ValueError, match="several problems"):
        several.subgroups()


def test_reports_on_subgroups_need_sums():
    found = cal.from_frame(subgroup_rows(), **WHAT, by="day")
    with pytest.raises(TypeError, match="estimator must be one that reads sums"):
        found.subgroups(cal.estimators.CrossFit())
    with pytest.raises(ValueError, match="by must name at least one column"):
        cal.from_frame(subgroup_rows(), **WHAT, by=[])
    assert "subgroups" in repr(found)
    frame = found.subgroups(n_resamples=99).to_frame()
    assert isinstance(frame, pl.DataFrame)


@pytest.mark.slow
def test_one_group_among_many_stands_out():
    rng = np.random.default_rng(0)
    p, day = rng.random(40_000), rng.integers(0, 60, 40_000)
    y = rng.random(p.size) < np.where(day == 17, p**3, p)
    found = cal.from_frame(pl.DataFrame({"y": y, "p": p, "day": day}), **WHAT, by="day")
    table = found.subgroups(cal.Binned(5))
    assert [g.value for g in table.rejected] == [17]
    assert table.rejected[0].pvalue < 0.05 / 60


def test_a_thousand_columns():
    k, n = 1000, 300
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(k, 0.01), n)
    y = rng.integers(0, k, n)
    rows = pl.DataFrame(p, schema=[f"p_{i}" for i in range(k)]).with_columns(y=pl.Series(y))
    found = cal.from_frame(rows.lazy(), label="y", prob=[f"p_{i}" for i in range(k)], labels=range(k))
    same(found, cal.Accumulator(labels=range(k)).update(y, p))
    assert found.source == "batches of rows, polars"
    with pytest.raises(ValueError, match="prob must name at most 1000 columns; got 1001"):
        cal.from_frame(rows, label="y", prob=[f"p_{i}" for i in range(k)] + ["x"])


def test_columns_are_matched_to_labels_by_name_and_by_labels():
    rows = matrix_rows()
    shuffled = [FOUR[i] for i in (2, 0, 3, 1)]
    first = cal.from_frame(rows, label="y", prob=shuffled)
    assert first.classes == ("eel", "cat", "fox", "dog")
    plain = rows.rename({f"p_{n}": f"c{i}" for i, n in enumerate(("cat", "dog", "eel", "fox"))})
    named = cal.from_frame(plain, label="y", prob=["c0", "c1", "c2", "c3"])
    assert named.classes == ("cat", "dog", "eel", "fox")
    a, b = (s.estimate(cal.Binned(), n_resamples=5).value for s in (first, named))
    assert a == pytest.approx(b, abs=5e-3)  # ties go to the first column, which differs
    categories = rows.with_columns(pl.col("y").cast(pl.Categorical))
    assert cal.from_frame(categories, label="y", prob=FOUR).classes == named.classes


BAD = binary_rows()
WRONG = {
    "no frame": (lambda: cal.from_frame([1, 2], **WHAT), TypeError, r"frame must be a frame of .*; got builtins.list"),
    "no such label": (lambda: cal.from_frame(BAD, label="yy", prob="p"), ValueError, r"label must be a column .* 'yy'"),
    "no such prob": (lambda: cal.from_frame(BAD, label="y", prob="q"), ValueError, r"prob must be a column .* got 'q'"),
    "no such weight": (lambda: cal.from_frame(BAD, **WHAT, weight="w"), ValueError, "weight must be a column"),
    "no such part": (lambda: cal.from_frame(BAD, **WHAT, by="w"), ValueError, "by must be a column"),
    "no name": (lambda: cal.from_frame(BAD, label=3, prob="p"), TypeError, "label must be the name of a column; got 3"),
    "no column": (lambda: cal.from_frame(BAD, label="y", prob=[]), ValueError, "prob must name at least one column"),
    "twice": (lambda: cal.from_frame(BAD, label="p", prob="p"), ValueError, "prob='p': this column is already used"),
    "text as scores": (lambda: cal.from_frame(BAD, label="y", prob="part"), TypeError, "prob must hold numbers"),
    "text as weights": (lambda: cal.from_frame(BAD, **WHAT, weight="part"), TypeError, "weight must hold numbers"),
    "scores as labels": (
        lambda: cal.from_frame(BAD, label="p", prob="share", on_invalid="drop", pos_label=0),
        ValueError,
        r"label \(column 'p'\) must hold class labels; row 0 is -9e-10",
    ),
    "scores as labels, counted": (lambda: cal.from_frame(BAD, label="p", prob="share"), ValueError, "bad rows of"),
    "three labels": (lambda: cal.from_frame(BAD, label="part", prob="p"), ValueError, "3 labels"),
    "which is it": (
        lambda: cal.from_frame(binary_rows(labels=("no", "yes")), **WHAT), ValueError, "pos_label must be given"
    ),
    "named after the other": (
        lambda: cal.from_frame(BAD.rename({"p": "p_0"}), label="y", prob="p_0"), ValueError, "named after 0"
    ),
    "labels of no column": (
        lambda: cal.from_frame(matrix_rows(), label="y", prob=FOUR[:3]), ValueError, "it is 'fox', columns of prob"
    ),
    "labels too few": (
        lambda: cal.from_frame(matrix_rows(), label="y", prob=FOUR, labels=["a"]), ValueError, "one label per column"
    ),
    "labels that do not match": (
        lambda: cal.from_frame(matrix_rows(), label="y", prob=FOUR, labels=["cat", "dog", "eel", "gnu"]),
        ValueError,
        "'gnu'",
    ),
    "labels of another kind": (
        lambda: cal.from_frame(BAD, **WHAT, labels=["a", "b"], pos_label="b"), (ValueError, TypeError), "kind"
    ),
    "pos_label of several": (
        lambda: cal.from_frame(matrix_rows(), label="y", prob=FOUR, pos_label="cat"), ValueError, "single column"
    ),
    "cells": (lambda: cal.from_frame(BAD, **WHAT, n_cells=5000), ValueError, "n_cells must be one of 4096, 8192"),
    "choice": (lambda: cal.from_frame(BAD, **WHAT, on_invalid="skip"), ValueError, "on_invalid must be one of"),
    "one group": (
        lambda: cal.from_frame(BAD.with_columns(part=pl.lit("a")), **WHAT, groups="part"),
        ValueError,
        "at least 2 groups with weight; all rows of column 'part'",
    ),
    "groups that are missing": (
        lambda: cal.from_frame(BAD.with_columns(part=pl.col("part").replace("a", None)), **WHAT, groups="part"),
        ValueError,
        r"bad rows of 4,000; in one of them 'part' is missing",
    ),
    "no groups at all": (
        lambda: cal.from_frame(
            BAD.with_columns(part=pl.lit(None, pl.String)), **WHAT, groups="part", on_invalid="drop"
        ),
        ValueError,
        "4,000 bad rows of 4,000",
    ),
    "canonical": (
        lambda: cal.from_frame(matrix_rows(), label="y", prob=FOUR, notion="canonical"), ValueError, "be streamed"
    ),
    "no weight": (
        lambda: cal.from_frame(BAD.with_columns(share=0.0), **WHAT, weight="share"), ValueError, "must not be all zero"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(WRONG))
def test_wrong_arguments_are_named(name):
    call, error, message = WRONG[name]
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("engine", IN_MEMORY)
def test_bad_rows_are_refused_with_their_number_and_one_of_them(engine):
    refused(lambda rows: framed(rows, engine))


def refused(frame_of):
    """Bad rows of every kind, all rows bad, and none at all."""
    rows = spoiled()
    bad = len(rows) - len(rows.filter(CASES["bad rows"].bad(rows)))
    with pytest.raises(ValueError, match=rf"{bad} bad rows of 4,000; in one of them '(y|p|share)' is .*on_invalid"):
        cal.from_frame(frame_of(rows), **WHAT, weight="share")
    with pytest.raises(ValueError, match="4,000 bad rows of 4,000"):
        cal.from_frame(frame_of(rows.with_columns(p=pl.lit(2.0))), **WHAT, on_invalid="drop")
    with pytest.raises(ValueError, match="frame must not be empty; got 0 rows"):
        cal.from_frame(frame_of(rows.clear()), **WHAT)


def test_pandas_own_kinds():
    rows = binary_rows(edges=False).to_pandas()
    wanted = cal.from_frame(rows, **WHAT)
    same(cal.from_frame(rows.convert_dtypes(), **WHAT), wanted)
    same(cal.from_frame(rows.astype({"y": "Int64", "p": "Float64"}), **WHAT), wanted)
    missing = rows.astype({"y": "Int64", "p": "Float64"})
    missing.loc[5, "y"] = pd.NA
    assert cal.from_frame(missing, **WHAT, on_invalid="drop").dropped == 1


@pytest.mark.parametrize(
    ("said", "lack"),
    [
        ("No module named 'calibrant'", "lack calibrant"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has 3.9", "run another version of Python"),
    ],
)
def test_workers_without_this_package_are_told(said, lack):
    cure = "set PYSPARK_PYTHON"
    with pytest.raises(ImportError, match=rf"Spark's workers {lack}.*{cure}"), batches._workers("Spark", cure):
        raise RuntimeError(f"org.apache.spark.SparkException: at java.base/…\n{said}")
    with pytest.raises(RuntimeError, match="disk is full"), batches._workers("Spark", cure):
        raise RuntimeError("disk is full")


def test_rows_that_polars_draws():
    check_drawn(lambda rows: rows.lazy())


def test_rows_in_memory_are_taken_as_they_are():
    rows = pl.DataFrame({"row": [1, 2, 3]})
    assert drawn_rows(rows, ["row"], 2, 0) is rows
