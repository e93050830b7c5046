"""Frames whose rows have several labels: a list of columns in place of a column of labels."""

import json
from functools import partial

import numpy as np
import polars as pl
import pytest

import calibrant as cal

from ..commands import run
from .engines import IN_MEMORY, framed
from .several_labels import COLUMNS, NAMES, arrays, check_labels, labelled_rows

ROWS = labelled_rows()


@pytest.mark.parametrize("engine", IN_MEMORY)
def test_sums_are_those_of_arrays(engine):
    check_labels(partial(framed, engine=engine))


def test_rows_that_have_one_label_each_are_no_classes():
    rows = ROWS.head(50)  # each has exactly one
    found = cal.from_frame(rows, **COLUMNS)
    assert found.several
    assert str(found.notion) == "multilabel"


def test_columns_go_by_name_and_kind():
    y, p = arrays(ROWS)
    wanted = cal.estimate(y, p, labels=NAMES, estimator=cal.Binned()).per_class
    about = {"prob": COLUMNS["prob"][::-1]}
    for kind in (pl.Boolean, pl.UInt8, pl.Float64):
        rows = ROWS.with_columns(pl.col(NAMES).cast(kind))
        found = cal.from_frame(rows, label=NAMES, **about).estimate(cal.Binned()).per_class
        assert found == pytest.approx(wanted, abs=1e-12)
    counted = ROWS.rename({name: f"f{i}" for i, name in enumerate(NAMES)} | {f"p_{n}": n for n in NAMES})
    assert cal.from_frame(counted, label=["f0", "f1", "f2"], prob=NAMES).classes == tuple(NAMES)
    one = cal.from_frame(ROWS, **COLUMNS, notion=cal.notions.ClassSpecific("dog"))
    alone = cal.calibration_error(y[:, 1], p[:, 1], estimator=cal.Binned())
    assert one.calibration_error(estimator=cal.Binned()) == pytest.approx(alone, abs=1e-12)


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"dog": None}, "'dog' is missing"),
        ({"dog": 2}, "'dog' is not one of the labels [0, 1]"),
        ({"p_fox": 1.5}, "'p_fox' is not a number in [0, 1]"),
        ({"p_fox": None}, "'p_fox' is missing"),
    ],
)
@pytest.mark.parametrize("engine", ["polars lazy", "pandas"])
def test_bad_rows_are_refused_or_dropped(engine, row, text):
    kind = ROWS.schema
    bad = pl.concat([ROWS, pl.DataFrame([ROWS.row(0, named=True) | row], schema=kind)])
    with pytest.raises(ValueError) as error:
        cal.from_frame(framed(bad, engine), **COLUMNS)
    assert text in str(error.value)
    kept = cal.from_frame(framed(bad, engine), **COLUMNS, on_invalid="drop")
    assert (kept.dropped, kept.n_samples) == (1, len(ROWS))


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"label": NAMES, "prob": "p_cat"}, ValueError, "label and prob must name equally many columns"),
        ({"label": NAMES, "prob": ["p_cat", "p_dog"]}, ValueError, "label and prob must name equally many columns"),
        ({"label": ["cat"], "prob": ["p_cat"]}, ValueError, "at least 2"),
        ({"label": [], "prob": ["p_cat"]}, TypeError, "label must"),
        ({"label": ["cat", "cat"], "prob": ["p_cat", "p_dog"]}, ValueError, "this column is already used as label"),
        ({"label": ["cat", "by"], "prob": ["p_cat", "p_dog"]}, TypeError, "label must hold 0 or 1"),
        ({**COLUMNS, "pos_label": 1}, ValueError, "pos_label is for one label per row"),
        ({**COLUMNS, "labels": ["a", "b"]}, ValueError, "labels must"),
        ({**COLUMNS, "notion": "classwise"}, ValueError, "use 'multilabel'"),
        ({**COLUMNS, "notion": "multilabel:micro", "groups": "g"}, ValueError, "groups are not supported"),
        ({"label": "cat", "prob": "p_cat", "notion": "multilabel"}, ValueError, "as lists of columns"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(given, kind, text):
    with pytest.raises(kind) as error:
        cal.from_frame(ROWS, **given)
    assert text in str(error.value)


def test_a_report_of_a_frame_is_that_of_arrays():
    y, p = arrays(ROWS)
    found, wanted = (cal.report(*given) for given in ((cal.from_frame(ROWS, **COLUMNS),), (y, p)))
    assert (found.accuracy, found.brier, found.log_loss) == pytest.approx(
        (wanted.accuracy, wanted.brier, wanted.log_loss)
    )
    assert [row.label for row in found.per_class] == [NAMES[row.label] for row in wanted.per_class]
    assert np.isclose(found.headline.value, wanted.headline.value, rtol=0, atol=1e-9)


FILE_COLUMNS = ("--label", "cat,dog,fox", "--prob", "p_cat,p_dog,p_fox")


@pytest.mark.parametrize("more", [(), ("--stream",), ("--engine", "polars"), ("--groups", "g")], ids=" ".join)
def test_the_command_reports_several_labels(more, tmp_path, capsys):
    ROWS.write_csv(tmp_path / "rows.csv")
    code, text, error = run(capsys, "report", tmp_path / "rows.csv", *FILE_COLUMNS, "--weight", "w", *more, "--json")
    assert (code, error) == (0, "")
    found = json.loads(text)
    assert "label fox" in found["verdict"]
    y, p = arrays(ROWS)
    groups = ROWS["g"].to_numpy() if "g" in more else None
    wanted = cal.report(y, p, labels=NAMES, sample_weight=ROWS["w"].to_numpy(), groups=groups)
    assert found["headline"]["value"] == pytest.approx(wanted.headline.value, abs=1e-9)
    assert found["accuracy"] == pytest.approx(wanted.accuracy, abs=1e-12)
    for ours, theirs in zip(found["per_class"], wanted.per_class, strict=True):
        assert (ours["label"], ours["ece"]) == (theirs.label, pytest.approx(theirs.ece, abs=1e-9))


@pytest.mark.parametrize(
    ("command", "given", "text"),
    [
        ("compare", FILE_COLUMNS, "only calibrant report takes several labels"),
        ("report", ("--label", "cat,dog", "--prob", "p_*"), "--label names 2 columns and --prob 3"),
        ("report", ("--label", "cat,cow", "--prob", "p_*"), "no column 'cow'"),
        ("report", (*FILE_COLUMNS, "--pos-label", "1"), "--pos-label is for one label per row"),
        ("report", (*FILE_COLUMNS, "--by", "by"), "has several problems"),
    ],
)
def test_commands_refuse_what_they_cannot_read(command, given, text, tmp_path, capsys):
    ROWS.write_csv(tmp_path / "rows.csv")
    code, _, error = run(capsys, command, tmp_path / "rows.csv", *given)
    assert code == 2
    assert text in error


def test_subgroups_take_one_label_at_a_time():
    y, p = arrays(ROWS)
    by = ROWS["by"].to_numpy()
    for notion in ("auto", "multilabel", "multilabel:micro"):
        with pytest.raises(ValueError, match=r"has several problems.*ClassSpecific"):
            cal.subgroup_calibration(y, p, by, notion=notion)
        with pytest.raises(ValueError, match=r"has several problems.*ClassSpecific"):
            cal.from_frame(ROWS, **COLUMNS, by="by", notion=notion).subgroups()
    for k, name in enumerate(NAMES):
        one = cal.notions.ClassSpecific(name)
        wanted = cal.subgroup_calibration(y[:, k], p[:, k], by).subgroups
        found = cal.subgroup_calibration(ROWS.select(NAMES), p, by, notion=one).subgroups
        summed = cal.from_frame(ROWS, **COLUMNS, by="by", notion=one).subgroups().subgroups
        for subgroup, same_one, theirs in zip(found, summed, wanted, strict=True):
            assert subgroup.gap == pytest.approx(theirs.gap, abs=1e-12)
            assert same_one.gap == pytest.approx(theirs.gap, abs=1e-9)


def test_models_are_compared_one_label_at_a_time():
    y, p = arrays(ROWS)
    for notion in ("auto", "multilabel", cal.notions.ClassSpecific(1)):
        with pytest.raises(ValueError, match="one label"):
            cal.compare_models(y, {"a": p, "b": p**1.3}, notion=notion)
