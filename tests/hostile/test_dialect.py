"""Each hostile file by every reader of the command: the same number, or a refusal that names the same thing."""

import importlib.util
import json

import pytest

from ..commands import run
from .files import FILES

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
NAMES = list(FILES)
#: All but CSV, names that mean something to an engine, and some of the rest.
SOME = [n for i, n in enumerate(NAMES) if i % 4 == 0 or FILES[n].alone or not FILES[n].name.startswith("rows.csv")]


def read(capsys, tmp_path, name, how):
    """What a reader says of a file: its fault in a word, None if it is right."""
    file = FILES[name]
    path = tmp_path / file.name
    path.write_bytes(file.content)
    code, out, err = run(capsys, "report", path, "--json", *file.options, *how)
    refused = "rename" if how[-1] in file.alone else file.refused
    if refused is None:
        assert code == 0, err
        found = json.loads(out)
        assert found["headline"]["value"] == pytest.approx(file.wanted, abs=1e-9)
        assert found["n_samples"] == file.n
        return
    assert code == 2, out
    assert refused in err
    assert err.count("\n") == 1
    assert len(err) < 1000


@pytest.mark.parametrize(
    "name", [n if i % 3 == 0 else pytest.param(n, marks=pytest.mark.slow) for i, n in enumerate(NAMES)]
)
def test_the_default_reader_and_polars(capsys, tmp_path, name):
    ways, place = (["--load"], ["--stream"], ["--engine", "polars"]), NAMES.index(name)
    for how in ways if place % 3 == 0 else ways[place // 3 % 3 :][:1]:  # of most files one way
        read(capsys, tmp_path, name, how)


@pytest.mark.engines
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_duckdb(capsys, tmp_path, name):
    pytest.importorskip("duckdb")
    read(capsys, tmp_path, name, ["--engine", "duckdb"])


@pytest.mark.engines
@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_dask(capsys, tmp_path, name):
    pytest.importorskip("dask.dataframe")
    read(capsys, tmp_path, name, ["--engine", "dask"])


@pytest.mark.engines
@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_spark(capsys, tmp_path, name, spark):
    read(capsys, tmp_path, name, ["--engine", "spark"])


ENGINES = [
    "polars",
    *(pytest.param(n, marks=[pytest.mark.engines, pytest.mark.slow]) for n in ("duckdb", "dask", "spark")),
]


@pytest.mark.parametrize("engine", ENGINES)
def test_files_of_a_partitioned_folder(capsys, tmp_path, engine, request):
    """The kind of a column is that of all files: 1 in one and 1.0 in another is one label."""
    if engine != "polars" and importlib.util.find_spec({"spark": "pyspark"}.get(engine, engine)) is None:
        pytest.skip(f"{engine} is not installed")
    if engine == "spark":
        request.getfixturevalue("spark")
    for day, (label, blank) in {"2026-01-01": ("1", "\n\n"), "2026-01-02": ("1.0", "")}.items():
        folder = tmp_path / "rows" / f"day={day}"
        folder.mkdir(parents=True)
        lines = "".join(f"{label if i % 2 else 0}, {i / 40}\n" for i in range(40))
        (folder / "part.csv").write_text(f"y_true, y_prob\n{lines}{blank}{lines}")
    code, out, err = run(capsys, "report", tmp_path / "rows", "--engine", engine, "--by", "day", "--json")
    assert code == 0, err
    (column,) = json.loads(out)["columns"]
    assert [(g["name"], g["n_samples"]) for g in column["subgroups"]] == [("2026-01-01", 80), ("2026-01-02", 80)]
    assert column["subgroups"][0]["error"] == pytest.approx(column["subgroups"][1]["error"], abs=1e-12)
    (tmp_path / "rows" / "day=2026-01-02" / "part.csv").write_text("y_prob,y_true\n0.5,1\n")
    code, _, err = run(capsys, "report", tmp_path / "rows", "--engine", engine)
    assert (code, "have different columns" in err) == (2, True)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_large_file_is_read_in_pieces(capsys, tmp_path, engine, request, monkeypatch):
    if engine != "polars" and importlib.util.find_spec({"spark": "pyspark"}.get(engine, engine)) is None:
        pytest.skip(f"{engine} is not installed")
    if engine == "spark":
        request.getfixturevalue("spark")
    monkeypatch.setattr("calibrant.cli.engines.PIECE_BYTES", 1000)
    lines = [f'{i % 2},{(i * 37) % 101 / 101:.6f},"a\n,b"\n' for i in range(997)]
    (tmp_path / "rows.csv").write_text("y_true,y_prob,note\n" + "\n".join(lines))
    code, out, err = run(capsys, "report", tmp_path / "rows.csv", "--json", "--engine", engine)
    assert code == 0, err
    found = json.loads(out)
    code, out, err = run(capsys, "report", tmp_path / "rows.csv", "--json", "--load")
    assert code == 0, err
    assert found["n_samples"] == json.loads(out)["n_samples"] == 997
    assert found["headline"]["value"] == pytest.approx(json.loads(out)["headline"]["value"], abs=1e-9)


def test_a_comparison_and_a_fix_read_the_same_way(capsys, tmp_path):
    """Other commands read by the same rule; what `apply` does not calibrate it writes as it was."""
    lines = "".join(f" {'yes' if i % 3 else 'no'} , {(i * 37 % 101) / 101:.4f} , {i:03d}\n\n" for i in range(400))
    (tmp_path / "rows.csv").write_text(f"y_true , y_prob,id \n{lines}")
    given = ("--pos-label", "yes")
    assert (
        run(capsys, "fix", tmp_path / "rows.csv", "--save", tmp_path / "m.json", *given, "--calibrator", "platt")[0]
        == 0
    )
    code, _, err = run(capsys, "apply", tmp_path / "m.json", tmp_path / "rows.csv", "--out", tmp_path / "out.csv")
    assert (code, "400 rows" in err) == (0, True)
    written = (tmp_path / "out.csv").read_text().splitlines()
    assert written[0] == "y_true,y_prob,id"
    assert len(written) == 401
    first, _, last = written[5].split(",")
    assert (first, last) == (" yes ", " 004")
    code, _, err = run(
        capsys, "compare-models", tmp_path / "rows.csv", "--model", "a=y_prob", "--model", "b=id", *given
    )
    assert code == 2
    assert "model 'b'" in err
