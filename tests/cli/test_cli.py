"""The command: formats, options, exit codes, bad input, streams."""

import ast
import json
import platform
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.cli import _OPTIONS
from calibrant.estimators.names import NAMES

from ..commands import run, watched


@pytest.fixture(scope="module")
def binary():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    return pl.DataFrame({"y": (rng.random(4000) < p**1.5).astype(int), "score": p, "w": rng.integers(1, 4, 4000)})


@pytest.fixture(scope="module")
def animals():
    rng = np.random.default_rng(1)
    q = rng.dirichlet(np.ones(3), 3000)
    names = np.array(["cat", "dog", "owl"])
    y = names[np.minimum((rng.random((3000, 1)) > np.cumsum(q, axis=1)).sum(axis=1), 2)]
    return pl.DataFrame({"truth": y} | {f"p_{n}": q[:, i] for i, n in enumerate(names)})


@pytest.mark.parametrize(
    "prob", [["--prob", "p_*"], ["--prob", "p_cat", "--prob", "p_dog", "--prob", "p_owl"], [], ["--prob", "p_???"]]
)
@pytest.mark.parametrize("mode", ["--load", "--stream"])
def test_columns_name_the_labels(capsys, tmp_path, animals, prob, mode):
    animals.write_parquet(tmp_path / "a.parquet")
    code, out, err = run(capsys, "report", tmp_path / "a.parquet", "--label", "truth", *prob, "--json", mode)
    assert code == 0, err
    data = json.loads(out)
    assert data["classes"] == ["cat", "dog", "owl"]
    want = cal.calibration_error(animals["truth"], animals.select("p_cat", "p_dog", "p_owl").to_numpy())
    assert data["headline"]["value"] == pytest.approx(want, rel=1e-9)


def test_labels_option_and_integer_labels(capsys, tmp_path):
    frame = pl.DataFrame({"y": [2, 5, 5, 2], "u": [0.6, 0.2, 0.3, 0.8], "v": [0.4, 0.8, 0.7, 0.2]})
    frame.write_csv(tmp_path / "a.csv")
    common = ["report", tmp_path / "a.csv", "--label", "y", "--prob", "u", "--prob", "v", "--json"]
    code, _, err = run(capsys, *common)
    assert code == 2
    assert "--labels" in err
    code, out, _ = run(capsys, *common, "--labels", "2,5")
    assert code == 0
    assert json.loads(out)["classes"] == [2, 5]


@pytest.mark.parametrize(
    ("text", "estimator"),
    [
        ("binned:20", cal.Binned(20)),
        ("binned:sqrt:quantile", cal.Binned("sqrt", "quantile")),
        ("binned:10:linear", cal.Binned(10, mapping="linear")),
        ("binned:debias", cal.Binned(debias=True)),
        ("density", cal.estimators.Density()),
        ("density:0.05:triweight", cal.estimators.Density(0.05, "triweight")),
        ("density:scott", cal.estimators.Density("scott")),
        ("residual", cal.estimators.ResidualKernel()),
        ("residual:score", cal.estimators.ResidualKernel(space="score")),
    ],
)
def test_estimators_by_name(capsys, tmp_path, binary, text, estimator):
    binary.write_csv(tmp_path / "a.csv")
    common = ("report", tmp_path / "a.csv", "--label", "y", "--prob", "score", "--json", "--estimator", text)
    code, out, err = run(capsys, *common)
    assert code == 0, err
    want = cal.calibration_error(binary["y"], binary["score"], estimator=estimator)
    assert json.loads(out)["headline"]["value"] == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("notion", ["classwise", "confidence", "top-label", "class-specific:dog"])
def test_notions_by_name(capsys, tmp_path, animals, notion):
    animals.write_csv(tmp_path / "a.csv")
    code, out, err = run(capsys, "report", tmp_path / "a.csv", "--label", "truth", "--notion", notion, "--json")
    assert code == 0, err
    name = cal.notions.ClassSpecific("dog") if notion.endswith("dog") else notion
    P = animals.select("p_cat", "p_dog", "p_owl").to_numpy()
    assert json.loads(out)["headline"]["value"] == pytest.approx(
        cal.calibration_error(animals["truth"], P, notion=name), rel=1e-9
    )


def test_gate(capsys, tmp_path, binary):
    binary.write_csv(tmp_path / "a.csv")
    common = ("report", tmp_path / "a.csv", "--label", "y", "--prob", "score", "--fail-above")
    code, out, err = run(capsys, *common, "0.01")
    assert code == 1
    assert "is above 0.01" in err
    assert "calibration error" in out
    assert run(capsys, *common, "0.5")[0] == 0
    assert run(capsys, *common, "5")[0] == 2


def test_gate_on_the_interval_spares_a_calibrated_model(capsys, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(400)
    pl.DataFrame({"y_true": (rng.random(400) < p).astype(int), "y_prob": p}).write_csv(tmp_path / "a.csv")
    common = ("report", tmp_path / "a.csv", "--fail-above", "0.005")
    assert run(capsys, *common)[0] == 1  # the value holds the noise of 400 rows
    assert run(capsys, *common, "--fail-on", "low")[0] == 0


@pytest.mark.parametrize("mode", ["--load", "--stream"])
def test_warning_is_one_line(capsys, tmp_path, mode):
    (tmp_path / "a.csv").write_text("y_true,f0,f1,f2\n1,0.1,0.8,0.1\n2,0.2,0.2,0.6\n")
    code, out, err = run(capsys, "report", tmp_path / "a.csv", "--prob", "f*", mode)
    assert code == 0
    assert err.startswith("calibrant: warning: y_true contains neither 0 nor all of 3 labels")
    assert "--labels 1,2,…" in err
    assert err.count("\n") == 1
    assert "rows" in out


@pytest.mark.slow
def test_html_and_text(capsys, tmp_path, animals):
    animals.write_csv(tmp_path / "a.csv")
    page = tmp_path / "out.html"
    code, out, err = run(capsys, "report", tmp_path / "a.csv", "--label", "truth", "--html", page, "--title", "Zoo")
    assert code == 0
    assert "<title>Zoo</title>" in page.read_text()
    assert "Data: a.csv. " in page.read_text()
    assert "Zoo" in out
    assert str(page) in err


def test_a_page_does_not_replace_what_is_read(capsys, tmp_path, binary):
    path = tmp_path / "a.csv"
    binary.write_csv(path)
    before = path.read_bytes()
    code, out, err = run(capsys, "report", path, "--label", "y", "--prob", "score", "--html", path)
    assert (code, out) == (2, "")
    assert "is the input file" in err
    assert path.read_bytes() == before


BAD = {
    "missing file": (None, ["nowhere.csv"], "does not exist"),
    "directory": (None, ["."], "is a directory"),
    "empty file": ("", [], "is empty"),
    "header only": ("y_true,y_prob\n", [], "no rows"),
    "no label column": ("a,y_prob\n1,0.5\n", [], "no column 'y_true'"),
    "no prob column": ("y_true,b\n1,0.5\n", [], "no column 'p_*'"),
    "percentages": ("y_true,y_prob\n1,55\n0,20\n", [], "percentages"),
    "logits": ("y_true,y_prob\n1,-3.5\n0,2.0\n", [], "logits"),
    "missing score": ("y_true,y_prob\n1,0.5\n0,\n", [], "row 1 is null"),
    "missing label": ("y_true,y_prob\n1,0.5\n,0.2\n", [], "missing labels; the first is in row 1"),
    "no reading of names": ("y_true,p_x,p_y\n1,0.5,0.5\n0,0.4,0.6\n", [], "columns of y_prob are 'p_x', 'p_y'"),
    "counted from 1": ("y_true,f0,f1,f2\n1,0,0,1\n3,1,0,0\n", ["--prob", "f*"], "pass --labels a,b,c"),
    "judge": ("y_true,y_prob\n1,0.5\n0,0.4\n", ["--fail-on", "mood"], "--fail-on must be one of value, corrected, low"),
    "judge of nothing": ("y_true,y_prob\n1,0.5\n0,0.4\n", ["--fail-on", "low"], "--fail-on low needs --fail-above"),
    "the other label": ("y_true,p_0\n1,0.5\n0,0.4\n", [], "only column 'p_0' is named after 0"),
    "three labels": ("y_true,y_prob\n1,0.5\n0,0.4\n2,0.1\n", [], "one column of probabilities"),
    "no such label": ("y_true,y_prob\n1,0.5\n0,0.4\n", ["--pos-label", "yes"], "whose labels are integers"),
    "another name": ("y true ,y_prob\n1,0.5\n", [], "its columns are 'y true', 'y_prob'"),
    "semicolons": ("y_true;y_prob\n1;0.5\n", [], "is it separated by ';'?"),
    "twice": ("y_true,p_0,p_1,p_1\n1,0.5,0.5,0.5\n", [], "two columns called 'p_1'"),
    "text scores": ("y_true,y_prob\n1,high\n0,low\n", [], "must hold numbers"),
    "row sums": ("y_true,p_0,p_1\n1,0.5,0.6\n0,0.4,0.6\n", [], "sum to 1"),
    "strings": ("y_true,y_prob\nyes,0.5\nno,0.4\n", [], "--pos-label must be given when the labels are ['no', 'yes']"),
    "estimator": (
        "y_true,y_prob\n1,0.5\n0,0.4\n",
        ["--estimator", "best"],
        f"--estimator must be auto, or one of {', '.join(map(repr, NAMES))}; got 'best'",
    ),
    "bins": ("y_true,y_prob\n1,0.5\n0,0.4\n", ["--estimator", "binned:0"], "n_bins"),
    "notion": ("y_true,y_prob\n1,0.5\n0,0.4\n", ["--notion", "best"], "notion must be one of"),
    "format": ("y_true,y_prob\n1,0.5\n0,0.4\n", ["--format", "xls"], "format must be one of"),
    "negative weight": ("y_true,y_prob,w\n1,0.5,-1\n0,0.4,1\n", ["--weight", "w"], "must not be negative"),
    "not parquet": ("y_true,y_prob\n1,0.5\n", ["--format", "parquet"], ""),
    "half an outcome": ("y_true,y_prob\n" + "1,0.5\n0,0.4\n" * 8000 + "1.5,0.3\n", [], "row 16000 is 1.5"),
    "ragged": ("y_true,y_prob\n1,0.5\n0,0.4,3,4\n", [], ""),
    "html to nowhere": ("y_true,y_prob\n1,0.5\n0,0.4\n", ["--html", "/nonexistent/x.html"], "no such folder"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("mode", ["--load", "--stream"])
def test_bad_input_is_one_clear_line(capsys, tmp_path, case, mode):
    content, extra, words = BAD[case]
    path = tmp_path / "a.csv"
    if content is not None:
        path.write_text(content)
        extra = [path, *extra]
    elif extra == ["."]:
        extra = [tmp_path]
    code, out, err = run(capsys, "report", *extra, mode)
    assert code == 2, (out, err)
    assert err.startswith("calibrant: ")
    assert err.count("\n") == 1
    assert words in err
    assert "Traceback" not in err
    assert out == ""


@pytest.mark.slow
def test_bins_that_a_stream_lacks(capsys, tmp_path, binary):
    binary.write_csv(tmp_path / "a.csv")
    common = ("report", tmp_path / "a.csv", "--label", "y", "--prob", "score", "--estimator", "binned:cbrt:linear")
    code, streamed, _ = run(capsys, *common, "--stream", "--json")
    loaded = run(capsys, *common, "--load", "--json")[1]
    assert code == 0  # read from the cells of a fine histogram
    values = [json.loads(text)["headline"]["value"] for text in (streamed, loaded)]
    assert values[0] == pytest.approx(values[1], abs=1e-3)


@pytest.mark.parametrize("mode", ["--load", "--stream"])
@pytest.mark.parametrize(
    ("columns", "extra"),
    [
        (["p_dog_cal", "p_owl_cal", "p_cat_cal"], []),
        (["p_[Dog]", "p_[Owl]", "p_[Cat]"], []),
        (["p_dog", "p_owl", "p_cat"], ["--labels", "cat,dog,owl"]),
    ],
)
def test_names_are_followed_as_by_the_library(capsys, tmp_path, animals, columns, extra, mode):
    table = animals.select("truth", *(pl.col(f"p_{c[2:].strip('[]')[:3].lower()}").alias(c) for c in columns))
    table.write_csv(tmp_path / "a.csv")
    code, out, err = run(capsys, "report", tmp_path / "a.csv", "--label", "truth", "--json", mode, *extra)
    assert code == 0, err
    want = cal.calibration_error(animals["truth"], animals.select("p_cat", "p_dog", "p_owl"))
    assert json.loads(out)["headline"]["value"] == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "extra"),
    [
        ((-1, 1), []),
        ((0.0, 1.0), []),
        ((0.0, 1.0), ["--pos-label", "1"]),
        ((False, True), ["--pos-label", "1"]),
        ((False, True), ["--pos-label", "true"]),
        (("no", "yes"), ["--pos-label", "yes"]),
    ],
)
@pytest.mark.parametrize("mode", ["--load", "--stream"])
def test_files_sorted_by_label(capsys, tmp_path, monkeypatch, binary, kind, extra, mode):
    monkeypatch.setattr("calibrant.cli.reports.PIECE_ROWS", 100)
    table = binary.sort("y").with_columns(y=pl.Series([kind[v] for v in binary["y"].sort()]))
    table.write_parquet(tmp_path / "a.parquet")
    common = ("report", tmp_path / "a.parquet", "--label", "y", "--prob", "score", "--json")
    code, out, err = run(capsys, *common, *extra, mode)
    assert code == 0, err
    want = cal.calibration_error(binary["y"], binary["score"])
    assert json.loads(out)["headline"]["value"] == pytest.approx(want, rel=1e-9)


def test_columns_of_whole_float_labels(capsys, tmp_path):
    text = "y_true,p_1,p_0\n1.0,0.9,0.1\n0.0,0.2,0.8\n1.0,0.7,0.3\n"
    (tmp_path / "a.csv").write_text(text)
    code, out, err = run(capsys, "report", tmp_path / "a.csv", "--json")
    assert code == 0, err
    assert json.loads(out)["classes"] == [1, 0]


def test_row_numbers_are_those_of_the_file(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.cli.reports.PIECE_ROWS", 100)
    p = np.full(1000, 0.5)
    p[777] = np.nan
    pl.DataFrame({"y_true": np.arange(1000) % 2, "y_prob": p}).write_parquet(tmp_path / "a.parquet")
    code, _, err = run(capsys, "report", tmp_path / "a.parquet", "--stream")
    assert code == 2
    assert "row 777" in err


@pytest.mark.slow
def test_standard_input_and_exit_codes_of_the_real_command(tmp_path, binary):
    csv = binary.write_csv().encode()
    command = [sys.executable, "-m", "calibrant", "report", "-", "--label", "y", "--prob", "score", "--json"]
    done = subprocess.run(command, input=csv, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["n_samples"] == 4000
    empty = subprocess.run(command, input=b"", capture_output=True, check=False)
    assert empty.returncode == 2
    assert empty.stderr == b"calibrant: standard input is empty\n"


def test_env_lists_what_a_bug_report_needs(capsys):
    """Versions of what is installed, as the packages themselves say them, and of no tool of ours."""
    code, out, _ = run(capsys, "env")
    assert code == 0
    told = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert told["numpy"] == np.__version__
    assert told["calibrant"] == cal.__version__
    assert told["Python"] == platform.python_version()
    assert {"scipy", "scikit-learn", "system"} <= told.keys()
    assert not {"pytest", "ruff", "sphinx", "mypy"} & told.keys()
    code, out, _ = run(capsys, "env", "--json")
    assert code == 0
    assert json.loads(out) == told


@pytest.mark.slow
def test_demo(capsys, tmp_path):
    code, out, _ = run(capsys, "demo", "--out", tmp_path / "new")
    assert code == 0
    assert "BernoulliNB on handwritten digits, even or odd" in out
    assert "10" in out
    for name in ("even-digits", "digits"):
        assert (tmp_path / "new" / f"calibrant-demo-{name}.html").stat().st_size > 10_000


def test_version_and_help(capsys):
    assert run(capsys, "--version")[1].strip() == cal.__version__
    code, out, _ = run(capsys, "report", "--help")
    assert code == 0
    assert "--fail-above" in out


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_does_not_grow_with_the_file(tmp_path):
    """Peak memory of streaming four times the rows stays within a few pieces (file pages in the cache aside)."""
    peaks = []
    for rows in (2_000_000, 8_000_000):
        rng = np.random.default_rng(0)
        p = rng.random(rows)
        path = tmp_path / f"{rows}.parquet"
        pl.DataFrame({"y_true": (rng.random(rows) < p).astype(np.int8), "y_prob": p}).write_parquet(path)
        out, peak = watched("report", path, "--stream", "--json")
        assert json.loads(out)["n_samples"] == rows
        peaks.append(peak)
    assert peaks[1] - peaks[0] < 50, peaks  # six million more rows would be 100 MB as pairs of float64


@pytest.mark.parametrize("mode", ["--load", "--stream"])
def test_what_matters_and_where_one_acts_are_options(capsys, tmp_path, binary, mode):
    binary.write_csv(tmp_path / "a.csv")
    given = ["report", tmp_path / "a.csv", "--label", "y", "--prob", "score", mode, "--json"]
    code, out, _ = run(capsys, *given, "--tolerance", 0.3, "--threshold", 0.25)
    found = json.loads(out)
    assert code == 0
    assert (found["evidence"]["tolerance"], found["evidence"]["matters"]) == (0.3, False)
    assert "too small to matter to you (below 0.300)" in found["verdict"]
    low, high = found["gain"]["changed_interval"]
    assert 0 < low <= found["gain"]["changed"] <= high < 0.3
    code, _, err = run(capsys, *given, "--tolerance", 30)
    assert code == 2
    assert "tolerance must lie strictly between 0 and 1; got 30" in err


def in_groups(n_groups=80, in_group=10):
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(n_groups), in_group)
    p = np.repeat(rng.random(n_groups), in_group)
    y = np.repeat(rng.random(n_groups), in_group) < p
    order = rng.permutation(group.size)
    return pl.DataFrame({"y": y[order].astype(int), "p": p[order], "patient": [f"no {g}" for g in group[order]]})


@pytest.mark.slow
def test_report_of_rows_in_groups(capsys, tmp_path):
    frame = in_groups()
    frame.write_csv(tmp_path / "a.csv")
    common = ("report", tmp_path / "a.csv", "--label", "y", "--prob", "p", "--json")
    code, out, err = run(capsys, *common, "--groups", "patient")
    assert code == 0, err
    found = json.loads(out)
    want = cal.report(frame["y"], frame["p"], groups=frame["patient"], title="Calibration of a.csv").to_dict()
    assert found["headline"]["interval"] == pytest.approx(want["headline"]["interval"])
    assert not found["streamed"]
    width = np.ptp(found["headline"]["interval"])
    assert width > 1.25 * np.ptp(json.loads(run(capsys, *common)[1])["headline"]["interval"])


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (("--groups", "patient", "--stream"), "--stream reads in pieces and would split groups"),
        (("--groups", "hospital"), "--groups: no column 'hospital'"),
        (("--groups", "y"), "--groups y: this column is already used for labels"),
        (("--groups", "one"), "groups must name at least 2 groups"),
    ],
)
def test_groups_that_cannot_be_read(capsys, tmp_path, extra, words):
    in_groups().with_columns(one=1).write_csv(tmp_path / "a.csv")
    code, _, err = run(capsys, "report", tmp_path / "a.csv", "--label", "y", "--prob", "p", *extra)
    assert code == 2
    assert words in err


@pytest.mark.slow
def test_a_large_file_with_groups_is_read_at_once(capsys, tmp_path, monkeypatch):
    in_groups().write_csv(tmp_path / "a.csv")
    monkeypatch.setattr("calibrant.cli.reports.STREAM_ABOVE_BYTES", 10)
    common = ("report", tmp_path / "a.csv", "--label", "y", "--prob", "p", "--json")
    assert json.loads(run(capsys, *common)[1])["streamed"]
    assert not json.loads(run(capsys, *common, "--groups", "patient")[1])["streamed"]


def test_help_lists_every_name(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    from calibrant.calibrators.candidates import NAMED
    from calibrant.estimators import CellEstimator

    estimators = {name for name, (kind, _) in NAMES.items() if issubclass(kind, CellEstimator)}
    for command, names in (("report", estimators), ("compare", set(NAMED))):
        shown = set(
            re.findall(r"[a-z]+(?:-[a-z0-9.]*[a-z0-9])*", run(capsys, command, "--help")[1].replace("-\n", "-"))
        )
        assert names <= shown, names - shown


def test_the_shell_completes(capsys):
    assert "--install-completion" in run(capsys, "--help")[1]


def messages():
    """Texts of the library that are not docstrings, with 3 for each value."""
    for path in (Path(cal.__file__).parent).rglob("*.py"):
        if "cli" not in path.parts:
            every = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
            docstrings = {id(node.value) for node in every if isinstance(node, ast.Expr)}
            for node in every:
                if id(node) in docstrings:
                    continue
                if isinstance(node, ast.JoinedStr):
                    yield "".join(str(part.value) if isinstance(part, ast.Constant) else "3" for part in node.values)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


def test_each_translated_advice_is_in_a_message():
    texts = "\n".join(messages())
    assert not [pattern for pattern, _ in _OPTIONS if not re.search(pattern, texts)]
