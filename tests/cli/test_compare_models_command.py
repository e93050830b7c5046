"""The command that compares models."""

import json

import numpy as np
import polars as pl
import pytest

import calibrant as cal

from ..commands import run
from .test_file_formats import WRITERS

FAST = ("--resamples", 50)


@pytest.fixture(scope="module")
def games():
    """Three forecasters of the same games, seen twice each."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 200))[:, np.repeat(np.arange(200), 2)]
    p = 1 / (1 + np.exp(-x))
    won = (rng.random(200)[np.repeat(np.arange(200), 2)] < 1 / (1 + np.exp(-x.sum(axis=0)))).astype(int)
    return pl.DataFrame(
        {
            "game": np.repeat(np.arange(200), 2),
            "won": won,
            "p_elo": p[0],
            "p_market": p[1],
            "p_coin": np.full(400, 0.5),
            "w": rng.integers(0, 3, 400),
        }
    )


@pytest.fixture
def path(games, tmp_path):
    games.write_csv(tmp_path / "games.csv")
    return tmp_path / "games.csv"


MODELS = ("--model", "elo=p_elo", "--model", "market=p_market")


@pytest.mark.slow
def test_it_is_the_library(games, path, capsys):
    options = ("--label", "won", "--groups", "game", "--weight", "w", "--level", 0.9, "--json", *FAST)
    code, out, err = run(capsys, "compare-models", path, *MODELS, *options)
    assert (code, err) == (0, "")
    want = cal.compare_models(
        games["won"],
        {"elo": games["p_elo"], "market": games["p_market"]},
        groups=games["game"],
        sample_weight=games["w"],
        level=0.9,
        n_resamples=50,
        random_state=0,
    )
    assert json.loads(out) == json.loads(json.dumps(want.to_dict()))
    assert json.loads(out)["n_groups"] == games.filter(pl.col("w") > 0)["game"].n_unique()
    text = run(capsys, "compare-models", path, *MODELS, *options[:-3], *FAST)[1]
    assert text == f"{want}\n"


@pytest.mark.parametrize("name", [n for n in WRITERS if "noname" not in n])
def test_every_format(name, games, tmp_path, capsys):
    WRITERS[name](games, tmp_path / name)
    code, out, err = run(capsys, "compare-models", tmp_path / name, *MODELS, "--label", "won", *FAST, "--json")
    assert code == 0, err
    assert [m["name"] for m in json.loads(out)["models"]] == ["elo", "market"]


def test_columns_by_themselves_reference_and_scores(path, capsys):
    named = ("--model", "p_elo", "--model", "p_market", "--model", "p_coin")
    options = ("--label", "won", "--reference", "p_coin", "--scores", "log-loss", "--adjust", "none", "--json", *FAST)
    code, out, err = run(capsys, "compare-models", path, *named, *options)
    assert code == 0, err
    found = json.loads(out)
    assert {(d["model"], d["other"]) for d in found["differences"]} == {("p_elo", "p_coin"), ("p_market", "p_coin")}
    assert "log-loss" in found["models"][0]
    assert "brier" not in found["models"][0]
    assert all(d["pvalue"] == d["adjusted"] for d in found["differences"])


def test_several_classes_by_name_in_any_order(tmp_path, capsys):
    rng = np.random.default_rng(1)
    names = np.array(["cat", "dog", "owl"])
    p = rng.dirichlet([1, 2, 3], 300)
    q = p**2 / (p**2).sum(axis=1, keepdims=True)
    y = names[(rng.random((300, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, 2)]
    columns = {"y_true": y, "a_owl": p[:, 2], "a_cat": p[:, 0], "a_dog": p[:, 1]}
    columns |= {f"b_{n}": q[:, i] for i, n in enumerate(names)}
    pl.DataFrame(columns).write_csv(tmp_path / "a.csv")
    both = ("--model", "a=a_*", "--model", "b=b_dog,b_cat,b_owl")
    for notion in ("auto", "class-specific:owl"):
        code, out, err = run(capsys, "compare-models", tmp_path / "a.csv", *both, "--json", "--notion", notion, *FAST)
        assert code == 0, err
        want = cal.compare_models(
            y,
            {"a": p, "b": q},
            notion="auto" if notion == "auto" else cal.notions.ClassSpecific("owl"),
            n_resamples=50,
            random_state=0,
        )
        got = json.loads(out)["models"]
        for one, other in zip(got, want.models, strict=True):
            assert one == pytest.approx({"name": other.name} | dict(other.measures))


def test_positive_label(games, tmp_path, capsys):
    said = games.with_columns(won=pl.when(pl.col("won") == 1).then(pl.lit("win")).otherwise(pl.lit("loss")))
    said.write_csv(tmp_path / "s.csv")
    args = ("compare-models", tmp_path / "s.csv", *MODELS, "--label", "won", *FAST, "--json")
    code, _, err = run(capsys, *args)
    assert code == 2
    assert "--pos-label" in err
    code, out, _ = run(capsys, *args, "--pos-label", "win")
    assert code == 0
    assert json.loads(out)["models"][0]["brier"] == pytest.approx(
        cal.brier_score(games["won"], games["p_elo"], scale="half")
    )


@pytest.mark.slow
def test_plot(path, tmp_path, capsys):
    for suffix, head in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        out = tmp_path / f"models{suffix}"
        args = ("compare-models", path, *MODELS, "--label", "won", "--plot", out, *FAST)
        code, _, err = run(capsys, *args)
        assert code == 0, err
        assert f"wrote {out}" in err
        assert out.read_bytes().startswith(head)
    assert [p.name for p in tmp_path.glob(".*")] == []
    assert "--force" in run(capsys, *args)[2]
    assert run(capsys, *args, "--force")[0] == 0


def test_page(path, tmp_path, capsys):
    out = tmp_path / "models.html"
    args = ("compare-models", path, *MODELS, "--label", "won", "--html", out, *FAST)
    code, _, err = run(capsys, *args)
    assert code == 0, err
    assert f"wrote {out}" in err
    assert "<title>Models on the same rows</title>" in out.read_text(encoding="utf-8")
    assert "--force" in run(capsys, *args)[2]
    code, text, err = run(capsys, *args[:-2], "--html", "-", *FAST)
    assert text.lstrip().startswith("<!doctype html>")
    both = run(capsys, *args[:-4], "--html", "-", "--plot", "-", *FAST)
    assert both[0] == 2
    assert "--plot and --html cannot both be standard output" in both[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "give at least two models, such as --model a=p_a --model b=p_b; the columns of"),
        (("--model", "a=p_elo"), "give at least two models"),
        (("--model", "a=p_elo", "--model", "a=p_coin"), "there are two models called 'a'"),
        (("--model", "a=p_elo", "--model", "b=p_nobody"), "--model: no column 'p_nobody'"),
        (("--model", "a=p_elo", "--model", "p_nobody"), "or the name of a column; got 'p_nobody'"),
        (("--model", "a=p_elo", "--model", "=p_coin"), "--model must be NAME=COLUMN"),
        (
            ("--model", "a=p_elo", "--model", "b=p_elo,p_coin"),
            "labels are 0, 1: pass --labels a,b,c, one label",
        ),
        ((*MODELS, "--groups", "gam"), "--groups: no column 'gam'"),
        ((*MODELS, "--groups", "p_*"), "--groups 'p_*' matches 3 columns"),
        ((*MODELS, "--model", "c=game", "--groups", "game"), "--model game: already used for labels"),
        ((*MODELS, "--reference", "x"), "reference must be one of 'elo', 'market'"),
        ((*MODELS, "--scores", "auc"), "score must be a scoring rule or one of"),
        ((*MODELS, "--level", "2"), "level must lie strictly between 0 and 1"),
        ((*MODELS, "--plot", "x.gif"), "--plot must name a file ending in .png, .pdf, .svg"),
        ((*MODELS, "--plot", "nowhere/x.png"), "no such folder: nowhere"),
    ],
)
def test_complaints_are_one_line(options, message, path, capsys):
    code, out, err = run(capsys, "compare-models", path, "--label", "won", *options, *FAST)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


def test_a_result_that_is_no_json_is_a_complaint_of_one_line(path, capsys, monkeypatch):
    monkeypatch.setattr(cal.results.ModelComparison, "to_dict", lambda found: {"level": float("nan")})
    code, out, err = run(capsys, "compare-models", path, "--label", "won", *MODELS, *FAST, "--json")
    assert (code, out) == (2, "")
    assert err.startswith("calibrant: Out of range float values are not JSON compliant")
    assert err.count("\n") == 1


def test_few_groups_are_a_warning_of_one_line(games, tmp_path, capsys):
    games.with_columns(season=pl.int_range(400) // 100).write_csv(tmp_path / "g.csv")
    args = ("compare-models", tmp_path / "g.csv", *MODELS, "--label", "won", "--groups", "season", *FAST)
    code, out, err = run(capsys, *args)
    assert code == 0
    assert err.count("\n") == 1
    assert " ".join(out.split()).endswith(" ".join(err.removeprefix("calibrant: ").split()))
    assert "4 groups are few" in err


def test_models_have_as_many_columns(games, tmp_path, capsys):
    both = games.with_columns(n_0=1 - pl.col("p_elo"), n_1=pl.col("p_elo"))
    both.write_csv(tmp_path / "b.csv")
    args = ("compare-models", tmp_path / "b.csv", "--label", "won", *FAST, "--model", "a=p_elo", "--model", "b=n_*")
    assert run(capsys, *args) == (2, "", "calibrant: --model b must have as many columns as the first (1); got 2\n")
