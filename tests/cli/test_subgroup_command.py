"""The command `calibrant subgroups`, and `calibrant report --by`."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import calibrant as cal

from ..commands import run


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    p, group = rng.random(900), rng.choice(["n", "s", None], 900, p=[0.6, 0.35, 0.05])
    y = (rng.random(900) < np.where(group == "s", p**2, p)).astype(int)
    return pl.DataFrame(
        {"y_true": y, "y_prob": p, "p_region": group, "age": rng.integers(0, 2, 900), "w": rng.integers(1, 3, 900)}
    )


@pytest.fixture
def path(table, tmp_path):
    out = tmp_path / "a.csv"
    table.write_csv(out)
    return out


def told(report, by):
    """A report as JSON, with the title that the command gives."""
    return json.loads(json.dumps(report.to_dict())) | {"title": f"Calibration of a.csv by {by}"}


@pytest.mark.slow
def test_it_is_the_library(table, path, capsys):
    code, out, err = run(capsys, "subgroups", path, "--by", "p_region", "--by", "age", "--weight", "w", "--json")
    assert (code, err) == (0, "")
    want = cal.subgroup_calibration(
        table["y_true"], table["y_prob"], table.select("p_region", "age"), sample_weight=table["w"]
    )
    got = json.loads(out)
    assert [c["name"] for c in got["columns"]] == ["p_region", "age"]
    assert got == told(want, "p_region, age")
    text = run(capsys, "subgroups", path, "--by", "p_region")[1]
    assert "(missing)" in text
    assert text == str(cal.subgroup_calibration(table["y_true"], table["y_prob"], table["p_region"])) + "\n"


def test_options_reach_the_library(table, path, capsys):
    arguments = ("subgroups", path, "--by", "age", "--test", "in-the-large", "--adjust", "bh", "--level", "0.9")
    got = json.loads(run(capsys, *arguments, "--min-size", "600", "--json")[1])
    want = cal.subgroup_calibration(
        table["y_true"],
        table["y_prob"],
        {"age": table["age"]},
        test="in-the-large",
        adjust="bh",
        level=0.9,
        min_size=600,
    )
    assert got == told(want, "age")
    assert "fewer than 600" in got["columns"][0]["subgroups"][0]["warnings"][0]


def test_probabilities_by_glob_leave_groups_out(tmp_path, capsys):
    rng = np.random.default_rng(1)
    q = rng.dirichlet(np.ones(3), 300)
    names = np.array(["cat", "dog", "owl"])
    y = names[(rng.random((300, 1)) > q.cumsum(axis=1)).sum(axis=1)]
    out = tmp_path / "a.parquet"
    frame = pl.DataFrame({"y_true": y, "p_cat": q[:, 0], "p_dog": q[:, 1], "p_owl": q[:, 2]})
    frame.with_columns(p_place=pl.Series(rng.integers(0, 2, 300))).write_parquet(out)
    got = json.loads(run(capsys, "subgroups", out, "--by", "p_place", "--json")[1])
    assert got["notion"] == "confidence"
    dogs = json.loads(run(capsys, "subgroups", out, "--by", "p_place", "--notion", "class-specific:dog", "--json")[1])
    assert dogs["label"] == "dog"


@pytest.mark.slow
def test_plot_and_exit_code(path, tmp_path, capsys):
    picture = tmp_path / "a.png"
    code, out, err = run(capsys, "subgroups", path, "--by", "p_region", "--plot", picture, "--fail")
    assert code == 1
    assert "miscalibrated at 0.05: s" in err
    assert f"wrote {picture}" in err
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "* s" in out
    again = run(capsys, "subgroups", path, "--by", "p_region", "--plot", picture)
    assert again[0] == 2
    assert "exists" in again[2]
    assert run(capsys, "subgroups", path, "--by", "p_region", "--plot", picture, "--force")[0] == 0
    assert run(capsys, "subgroups", path, "--by", "age", "--level", "0.9999999", "--fail")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--by", "nope"), "no column 'nope'"),
        (("--by", "y_true"), "already used for labels"),
        (("--by", "w", "--weight", "w"), "already used for labels"),
        (("--by", "age", "--test", "z"), "test must be one of"),
        (("--by", "age", "--level", "95"), "level must lie"),
        (("--by", "age", "--plot", "x.gif"), "--plot must name a file ending in .png, .pdf, .svg"),
        (("--by", "age", "--plot", "nowhere/x.png"), "no such folder: nowhere"),
    ],
)
def test_complaints_are_one_line(path, capsys, arguments, message):
    code, out, err = run(capsys, "subgroups", path, *arguments)
    assert (code, out) == (2, "")
    (complaint,) = [line for line in err.splitlines() if "warning: every score" not in line]
    assert message in complaint


def test_resamples_reach_the_library(table, path, capsys):
    got = json.loads(run(capsys, "subgroups", path, "--by", "age", "--resamples", "99", "--json")[1])
    want = cal.subgroup_calibration(table["y_true"], table["y_prob"], {"age": table["age"]}, n_resamples=99)
    assert got == told(want, "age")
    assert run(capsys, "subgroups", path, "--by", "age", "--resamples", "1")[0] == 2


def test_groups_by_date_go_into_json(table, tmp_path, capsys):
    out = tmp_path / "a.parquet"
    day = pl.date(2020, 1, 1) + pl.duration(days="age")
    table.with_columns(day=day).write_parquet(out)
    code, text, err = run(capsys, "subgroups", out, "--by", "day", "--json")
    assert (code, err) == (0, "")
    assert [g["value"] for g in json.loads(text)["columns"][0]["subgroups"]] == ["2020-01-01", "2020-01-02"]


def test_rows_in_groups(table, path, capsys):
    frame = table.with_columns(patient=np.arange(len(table)) // 6)
    frame.write_csv(path)
    code, out, err = run(capsys, "subgroups", path, "--by", "p_region", "--groups", "patient", "--json")
    assert (code, err) == (0, "")
    want = cal.subgroup_calibration(frame["y_true"], frame["y_prob"], frame.select("p_region"), groups=frame["patient"])
    assert json.loads(out) == told(want, "p_region")
    code, _, err = run(capsys, "subgroups", path, "--by", "age", "--groups", "age")
    assert code == 2
    assert "--by age: this column is already used for labels, weights or --groups" in err


# --- calibrant report --by


@pytest.fixture
def one(table, tmp_path):
    table.with_columns(game=pl.int_range(pl.len()) // 5).write_csv(tmp_path / "one.csv")
    return ("report", tmp_path / "one.csv", "--by", "p_region")


def found(capsys, *args):
    code, out, err = run(capsys, *args, "--json")
    assert code == 0, err
    return json.loads(out)


@pytest.mark.parametrize("groups", [(), ("--groups", "game")], ids=str)
def test_subgroups_of_rows_are_those_of_the_other_command(capsys, one, tmp_path, groups):
    """Rows of a file, in groups or not: one answer, a page with a title, and sums that are those of all rows."""
    page, sums = tmp_path / "page.html", tmp_path / "all.sums"
    got = found(capsys, *one, *groups, "--html", page, "--sums", sums, "--title", "By region")
    want = found(capsys, "subgroups", *one[1:], *groups)
    assert got.pop("title") == "By region"
    assert want.pop("title") == "Calibration of one.csv by p_region"
    assert got == want
    assert "<title>By region</title>" in page.read_text(encoding="utf-8")
    whole = tmp_path / "whole.sums"
    assert run(capsys, *one[:-2], *groups, "--sums", whole)[0] == 0
    assert sums.read_bytes() == whole.read_bytes()
    err = run(capsys, *one, *groups, "--sums", sums, "--force")[2]
    assert err.endswith("calibrant: the sums written are those of all rows, not of each subgroup\n")


@pytest.mark.parametrize("how", [("--stream",), ("--engine", "polars")], ids=str)
def test_subgroups_in_one_pass(capsys, one, tmp_path, how):
    page, sums = tmp_path / "page.html", tmp_path / "all.sums"
    got = found(capsys, *one, *how, "--html", page, "--sums", sums)
    want = found(capsys, *one)
    assert got["title"] == want["title"] == "Calibration of one.csv by p_region"
    for part, other in zip(got["columns"][0]["subgroups"], want["columns"][0]["subgroups"], strict=True):
        assert (part["name"], part["n_samples"]) == (other["name"], other["n_samples"])
        assert part["error"] == pytest.approx(other["error"], rel=1e-9)
    assert "<svg" in page.read_text(encoding="utf-8")
    merged = found(capsys, "merge", sums)
    whole = found(capsys, *one[:-2])
    assert merged["n_samples"] == 900
    assert merged["headline"]["value"] == pytest.approx(whole["headline"]["value"], rel=1e-9)


def test_subgroups_of_standard_input(capsys, one, monkeypatch):
    with one[1].open("rb") as file:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(closed=False, buffer=file))
        got = found(capsys, "report", "-", *one[2:])
    assert got["columns"] == found(capsys, *one)["columns"]
