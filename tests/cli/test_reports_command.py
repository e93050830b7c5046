"""`calibrant report` by engines, on patterns, folders and queries; `--sums`, and `calibrant merge`."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.cli.engines import ENGINES

from ..commands import run

#: Of the engines themselves: what they will want, and files that they leave to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def there(name):
    """Marks of tests with an engine."""
    found = importlib.util.find_spec(ENGINES[name].module) is not None and (name != "spark" or shutil.which("java"))
    marks = [pytest.mark.engines, pytest.mark.skipif(not found, reason=f"{name} is not installed")]
    return marks + ([pytest.mark.slow] if name in ("dask", "spark") else [])


DUCKDB, DASK, SPARK = (pytest.param(name, marks=there(name)) for name in ("duckdb", "dask", "spark"))
EVERY = ["polars", DUCKDB, DASK, SPARK]
with_duckdb = pytest.mark.usefixtures("duckdb")


@pytest.fixture
def duckdb():
    return pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 6000
    p, region = rng.random(n), rng.choice(["north", "south"], n)
    y = (rng.random(n) < np.where(region == "south", p**1.6, p)).astype(int)
    day = np.sort(rng.integers(1, 4, n))
    return pl.DataFrame({"y": y, "p": p, "w": rng.integers(1, 4, n), "region": region, "day": day})


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(1)
    q = rng.dirichlet(np.ones(3), 3000)
    y = np.array(["ant", "bee", "cat"])[np.minimum((rng.random((3000, 1)) > q.cumsum(axis=1)).sum(axis=1), 2)]
    return pl.DataFrame({"truth": y} | {f"p_{n}": q[:, i] for i, n in enumerate(["ant", "bee", "cat"])})


@pytest.fixture(scope="module")
def folder(table, many, tmp_path_factory):
    """Files of every format, and a partitioned folder with what writers leave in it."""
    root = tmp_path_factory.mktemp("files")
    for (day, region), part in table.group_by("day", "region"):
        inside = root / "parts" / f"day={day}" / f"region={region}"
        inside.mkdir(parents=True)
        part.drop("day", "region").write_parquet(inside / "part-0.parquet")
    (root / "parts" / "_SUCCESS").touch()
    (root / "parts" / "day=1" / ".part-0.parquet.crc").write_bytes(b"checksum")
    for i in range(3):
        part = table[2000 * i : 2000 * (i + 1)]
        part.write_csv(root / f"some-{i}.csv")
        part.write_csv(root / f"tabs-{i}.tsv", separator="\t")
        part.write_ndjson(root / f"some-{i}.ndjson")
        part.write_parquet(root / f"some-{i}.parquet")
        part.write_ipc(root / f"some-{i}.arrow")
    many.write_parquet(root / "many.parquet")
    return root


@pytest.fixture
def database(folder, tmp_path, duckdb):
    with duckdb.connect(tmp_path / "rows.duckdb") as connection:
        connection.execute("CREATE TABLE scored AS SELECT * FROM read_parquet(?)", [f"{folder}/some-*.parquet"])
    return tmp_path / "rows.duckdb"


def found(capsys, *args):
    code, out, err = run(capsys, *args, "--json")
    assert code == 0, err
    return json.loads(out)


PATTERNS = [
    "parts",
    "parts/**/*.parquet",
    "parts/day=*",
    "some-*.parquet",
    "some-?.csv",
    "some-[0-2].ndjson",
    "tabs-*.tsv",
]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("engine", EVERY)
def test_patterns_and_folders_give_the_library_number(capsys, folder, table, engine, pattern):
    got = found(capsys, "report", folder / pattern, "--engine", engine, "--label", "y", "--prob", "p", "--weight", "w")
    want = cal.estimate(table["y"], table["p"], sample_weight=table["w"], random_state=0)
    assert got["n_samples"] == 6000
    assert got["headline"]["value"] == pytest.approx(want.value, rel=1e-9)
    assert got["title"] == f"Calibration of {pattern if pattern == 'parts' else folder / pattern}"
    assert got["streamed"]


@pytest.mark.slow
@pytest.mark.parametrize("engine", EVERY)
@pytest.mark.parametrize("by", ["region", "day"])
def test_partitions_are_columns_to_group_by(capsys, folder, table, engine, by):
    args = ("report", folder / "parts", "--engine", engine, "--label", "y", "--prob", "p", "--by", by)
    got = found(capsys, *args)
    values = sorted(table[by].unique().to_list())
    (column,) = got["columns"]
    assert [g["name"] for g in column["subgroups"]] == [str(v) for v in values]
    for one, value in zip(column["subgroups"], values, strict=True):
        part = table.filter(pl.col(by) == value)
        assert one["n_samples"] == len(part)
        assert one["error"] == pytest.approx(cal.calibration_error(part["y"], part["p"]), rel=1e-9)
    text = run(capsys, *args)[1]
    assert "\nCalibration of class 1 by subgroup: 6,000 rows" in text
    if by == "region":
        code, _, err = run(capsys, *args, "--fail-above", "0.05", "--fail-on", "low")
        assert code == 1
        assert "(--fail-on low) of south is above 0.05" in err
        assert "north" not in err
        assert run(capsys, *args, "--fail-above", "0.5")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("engine", EVERY)
def test_rows_in_groups(capsys, folder, table, engine):
    args = ("report", folder / "parts", "--engine", engine, "--label", "y", "--prob", "p")
    got = found(capsys, *args, "--groups", "w")
    want = cal.report(table["y"], table["p"], groups=table["w"], random_state=0)
    assert got["headline"]["value"] == pytest.approx(want.headline.value, rel=1e-9)
    assert got["headline"]["interval"] == pytest.approx(list(want.headline.interval), rel=1e-6)
    assert got["headline"]["interval"] != pytest.approx(found(capsys, *args)["headline"]["interval"], rel=1e-2)
    (column,) = found(capsys, *args, "--groups", "w", "--by", "region")["columns"]
    by_rows = cal.subgroup_calibration(table["y"], table["p"], table["region"], groups=table["w"])
    for one, other in zip(column["subgroups"], by_rows.subgroups, strict=True):
        assert one["gap_interval"] == pytest.approx(list(other.gap_interval), rel=1e-6)
        assert one["pvalue"] == pytest.approx(other.pvalue)  # three groups: all signs are listed


@pytest.mark.slow
@pytest.mark.parametrize("engine", EVERY)
@pytest.mark.parametrize("notion", ["confidence", "class-wise", "class-specific:bee"])
def test_classes(capsys, folder, many, engine, notion):
    args = ("report", folder / "many.parquet", "--engine", engine, "--label", "truth", "--notion", notion)
    got = found(capsys, *args)
    want = cal.calibration_error(many["truth"], many.select("p_ant", "p_bee", "p_cat"), notion=notion)
    assert got["classes"] == ["ant", "bee", "cat"]
    assert got["headline"]["value"] == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("engine", EVERY)
def test_arrow(capsys, folder, table, engine):
    got = found(capsys, "report", folder / "some-*.arrow", "--engine", engine, "--label", "y", "--prob", "p")
    assert got["headline"]["value"] == pytest.approx(cal.calibration_error(table["y"], table["p"]), rel=1e-9)


@pytest.mark.engines
@with_duckdb
def test_bins_and_text_labels(capsys, folder, tmp_path, table):
    table.select(pl.col("y").replace_strict({0: "well", 1: "ill"}), "p").write_parquet(tmp_path / "a.parquet")
    args = ("report", tmp_path / "a.parquet", "--engine", "duckdb", "--label", "y", "--prob", "p")
    got = found(capsys, *args, "--pos-label", "ill", "--labels", "well,ill", "--estimator", "binned:20")
    want = cal.calibration_error(table["y"], table["p"], estimator=cal.Binned(20))
    assert got["headline"]["value"] == pytest.approx(want, rel=1e-9)
    assert got["positive"] == "ill"


# --- queries


@pytest.mark.engines
def test_a_query_of_a_database(capsys, database, table):
    query = "SELECT y AS came, p AS said, region FROM scored WHERE day = 2"
    args = ("report", "--sql", query, "--engine", "duckdb", "--database", database)
    args = (*args, "--label", "came", "--prob", "said")
    some = table.filter(day=2)
    got = found(capsys, *args)
    assert got["n_samples"] == len(some)
    assert got["title"] == "Calibration of a query"
    assert got["headline"]["value"] == pytest.approx(cal.calibration_error(some["y"], some["p"]), rel=1e-9)
    assert len(found(capsys, *args, "--by", "region")["columns"][0]["subgroups"]) == 2


@pytest.mark.engines
@with_duckdb
def test_a_query_of_files(capsys, folder, table):
    query = f"SELECT y, p FROM '{folder}/some-*.csv'"
    got = found(capsys, "report", "--sql", query, "--engine", "duckdb", "--label", "y", "--prob", "p")
    assert got["headline"]["value"] == pytest.approx(cal.calibration_error(table["y"], table["p"]), rel=1e-9)


@pytest.mark.engines
def test_a_query_changes_nothing(capsys, database):
    args = ("--engine", "duckdb", "--database", database, "--label", "y", "--prob", "p")
    code, _, err = run(capsys, "report", "--sql", "DROP TABLE scored", *args)
    assert code == 2
    assert "read-only" in err
    assert found(capsys, "report", "--sql", "FROM scored", *args)["n_samples"] == 6000


# --- sums and merge


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [[], ["--stream"], ["--engine", "polars"], pytest.param(["--engine", "duckdb"], marks=there("duckdb"))],
    ids=str,
)
def test_shards_of_many_machines(capsys, folder, table, tmp_path, how):
    """Sums of three files, merged: the report of all rows, in whatever way each was read."""
    shards = [tmp_path / f"{i}.sums" for i in range(3)]
    for i, shard in enumerate(shards):
        args = ("--label", "y", "--prob", "p", "--weight", "w", "--sums", shard, *how)
        code, out, err = run(capsys, "report", folder / f"some-{i}.parquet", *args)
        assert (code, err) == (0, f"wrote {shard}\n")
        assert out.startswith("Calibration of")
    page, both = tmp_path / "all.html", tmp_path / "all.sums"
    code, out, err = run(capsys, "merge", *shards, "--html", page, "--sums", both, "--json", "--title", "All")
    assert code == 0, err
    assert err == f"wrote {page}\nwrote {both}\n"
    got = json.loads(out)
    whole = cal.report(table["y"], table["p"], sample_weight=table["w"]).to_dict()
    assert got["n_samples"] == 6000
    assert got["title"] == "All"
    assert got["headline"]["value"] == pytest.approx(whole["headline"]["value"], rel=1e-9)
    assert got["evidence"]["test"]["pvalue"] == whole["evidence"]["test"]["pvalue"]
    for name in ("brier", "log_loss", "accuracy"):
        assert got[name] == pytest.approx(whole[name], rel=1e-9)
    assert page.read_text().lstrip().startswith("<!")
    again = cal.Accumulator.from_bytes(both.read_bytes())
    assert again.calibration_error() == got["headline"]["value"]
    assert found(capsys, "merge", both)["headline"]["value"] == got["headline"]["value"]
    code, _, err = run(capsys, "merge", both, "--fail-above", "0.001")
    assert (code, "is above 0.001" in err) == (1, True)
    assert {f.name for f in tmp_path.iterdir()} == {"0.sums", "1.sums", "2.sums", "all.html", "all.sums"}


@pytest.mark.engines
@with_duckdb
def test_shards_read_in_different_ways(capsys, folder, table, tmp_path):
    """An engine keeps 4096 cells, pieces 65536: merged, there are 4096."""
    hows = [["--engine", "duckdb"], ["--stream"], ["--load"]]
    for i, how in enumerate(hows):
        args = ("--label", "y", "--prob", "p", "--sums", tmp_path / f"{i}.sums", *how)
        assert run(capsys, "report", folder / f"some-{i}.parquet", *args)[0] == 0
    code, out, err = run(capsys, "merge", *(tmp_path / f"{i}.sums" for i in range(3)))
    assert code == 0, err
    assert "rounded to 1/4096" in out
    got = found(capsys, "merge", *(tmp_path / f"{i}.sums" for i in range(3)))
    assert got["headline"]["value"] == pytest.approx(cal.calibration_error(table["y"], table["p"]), rel=1e-9)


def test_sums_of_rows_in_groups(capsys, table, tmp_path):
    table.with_columns(game=pl.int_range(pl.len()) // 5).write_parquet(tmp_path / "a.parquet")
    sums = tmp_path / "a.sums"
    args = ("report", tmp_path / "a.parquet", "--label", "y", "--prob", "p", "--groups", "game", "--sums", sums)
    code, _, err = run(capsys, *args)
    assert code == 0, err
    shutil.copy(sums, tmp_path / "b.sums")
    code, _, err = run(capsys, "merge", sums, tmp_path / "b.sums")
    assert code == 2
    assert "b.sums: groups must not span pieces" in err


@pytest.mark.slow
def test_sums_to_standard_output(folder):
    args = ["report", folder / "some-0.parquet", "--label", "y", "--prob", "p", "--sums", "-"]
    done = subprocess.run([sys.executable, "-m", "calibrant", *map(str, args)], capture_output=True, check=True)
    assert cal.Accumulator.from_bytes(done.stdout).n_samples == 2000
    assert done.stderr.startswith(b"Calibration of")


@pytest.mark.slow
def test_the_same_shard_twice_is_told(capsys, folder, tmp_path):
    one, two = tmp_path / "a.sums", tmp_path / "b.sums"
    run(capsys, "report", folder / "some-0.parquet", "--label", "y", "--prob", "p", "--sums", one)
    shutil.copy(one, two)
    code, _, err = run(capsys, "merge", one, two)
    assert (code, err.count("contain the same sums: their rows are counted twice")) == (0, 1)


# --- refusals


def refused(capsys, *args):
    code, out, err = run(capsys, *args)
    assert (code, out) == (2, ""), (code, out, err)
    assert err.count("\n") == 1
    return err


REFUSED = {
    "no such engine": (
        ["some-0.csv", "--engine", "excel"],
        "--engine must be one of polars, duckdb, dask, spark; got 'excel'",
    ),
    "a pattern without engine": (["some-*.csv"], "is a pattern: give a single file, or add --engine polars"),
    "a folder without engine": (["parts"], "is a directory: give a single file, or add --engine polars"),
    "nothing there": (["nothing-*.csv", "--engine", "polars"], "nothing-*.csv matches no file"),
    "formats mixed": (
        ["some-0.*", "--engine", "polars"],
        "matches arrow and csv and ndjson and parquet files: choose one",
    ),
    "by and tolerance": (
        ["some-0.csv", "--by", "w", "--tolerance", "0.1"],
        "--tolerance is for the verdict on all rows; subgroups are tested without it",
    ),
    "by and threshold": (["some-0.csv", "--by", "w", "--threshold", "0.1"], "over all rows, not per subgroup"),
    "by in pieces": (
        ["some-0.csv", "--by", "w", "--stream", "--sum-tolerance", "0.1"],
        "--by with --sum-tolerance needs all rows at once: add --load",
    ),
    "by of a label": (["some-0.csv", "--engine", "polars", "--by", "y"], "this column is already used as label"),
    "by of a label of rows": (["some-0.csv", "--by", "y"], "--by y: this column is already used for labels"),
    "by of nothing": (["some-0.csv", "--engine", "duckdb", "--by", "age"], "--by: no column 'age'"),
    "by of nothing in rows": (["some-0.csv", "--by", "age"], "--by: no column 'age'"),
    "groups across subgroups": (
        ["some-0.csv", "--engine", "polars", "--by", "w", "--groups", "q", "--sums", "x"],
        "--engine with --sums and --groups cannot take --by: a group may span subgroups",
    ),
    "several problems by": (["some-0.csv", "--by", "w", "--notion", "class-wise"], "several problems"),
    "corrected by": (
        ["some-0.csv", "--engine", "polars", "--by", "w", "--fail-above", "0.1", "--fail-on", "corrected"],
        "--fail-on corrected is not available for subgroups",
    ),
    "one group": (["some-0.csv", "--engine", "polars", "--groups", "q"], "--groups: no column 'q'"),
    "stream": (
        ["some-0.csv", "--engine", "polars", "--stream"],
        "--stream and --load cannot be combined with --engine",
    ),
    "sum tolerance": (
        ["some-0.csv", "--engine", "polars", "--sum-tolerance", "0.1"],
        "--sum-tolerance cannot be combined with --engine",
    ),
    "sql without engine": (["--sql", "SELECT 1"], "--sql needs --engine duckdb"),
    "sql of polars": (["--sql", "SELECT 1", "--engine", "polars"], "--sql is for --engine duckdb; got polars"),
    "file and sql": (
        ["some-0.csv", "--sql", "SELECT 1", "--engine", "duckdb"],
        "give either FILE or --sql",
    ),
    "neither": ([], "give either FILE or --sql"),
    "a database without query": (["some-0.csv", "--database", "x.db"], "--database needs --sql"),
    "no database": (["--sql", "FROM x", "--engine", "duckdb", "--database", "x.db"], "--database x.db does not exist"),
    "a wrong query": (["--sql", "SELEKT", "--engine", "duckdb"], "--sql: Parser Error"),
    "no such table": (["--sql", "FROM nowhere", "--engine", "duckdb"], "nowhere does not exist"),
    "standard input": (["-", "--engine", "polars"], "--engine cannot read standard input"),
    "drop without engine": (["some-0.csv", "--on-invalid", "drop"], "--on-invalid needs --engine"),
    "a wrong word": (
        ["some-0.csv", "--engine", "polars", "--on-invalid", "mend"],
        "--on-invalid must be one of raise, drop",
    ),
    "one file twice": (["some-0.csv", "--html", "x", "--sums", "x"], "--sums x is the page of --html"),
    "a column less": (["some-0.csv", "--engine", "duckdb", "--prob", "nope"], "--prob: no column 'nope'"),
    "a label of another kind": (
        ["some-0.csv", "--engine", "duckdb", "--pos-label", "ill"],
        "label 'ill' is not a label of the file",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_option(capsys, folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    args, words = REFUSED[name]
    if "duckdb" in args:
        pytest.importorskip("duckdb")
    columns = [] if "--prob" in args else ["--prob", "p"]
    before = sorted(os.listdir(folder))
    assert words in refused(capsys, "report", *args, "--label", "y", *columns)
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_that_is_not_installed(capsys, folder, monkeypatch, name):
    there = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda m, *a: None if m == ENGINES[name].module else there(m, *a))
    err = refused(capsys, "report", folder / "some-0.csv", "--engine", name, "--label", "y", "--prob", "p")
    assert f"--engine {name} is not installed: pip install {ENGINES[name].package}" in err


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["polars", DUCKDB])
def test_rows_that_cannot_be_read(capsys, table, tmp_path, engine):
    table.with_columns(p=pl.when(pl.int_range(pl.len()) < 3).then(1.5).otherwise("p")).write_parquet(
        tmp_path / "a.parquet"
    )
    args = ("report", tmp_path / "a.parquet", "--engine", engine, "--label", "y", "--prob", "p")
    err = refused(capsys, *args)
    assert "3 bad rows of 6,000" in err
    assert "--on-invalid drop" in err
    code, out, err = run(capsys, *args, "--on-invalid", "drop", "--json")
    assert code == 0
    assert err == "calibrant: warning: invalid rows dropped: 3\n"
    assert json.loads(out)["n_samples"] == 5997


@pytest.mark.engines
def test_a_file_that_is_read_is_not_written(capsys, folder, database):
    args = ("report", folder / "some-*.parquet", "--engine", "polars", "--label", "y", "--prob", "p", "--force")
    before = (folder / "some-1.parquet").read_bytes()
    assert "is an input file" in refused(capsys, *args, "--sums", folder / "some-1.parquet")
    assert (folder / "some-1.parquet").read_bytes() == before
    args = ("report", "--sql", "FROM scored", "--engine", "duckdb", "--database", database, "--force")
    assert "is the input database" in refused(capsys, *args, "--sums", database)


@pytest.mark.slow
def test_what_merge_refuses(capsys, folder, tmp_path):
    one = tmp_path / "a.sums"
    run(capsys, "report", folder / "some-0.parquet", "--label", "y", "--prob", "p", "--sums", one)
    assert f"{tmp_path / 'none'} does not exist" in refused(capsys, "merge", one, tmp_path / "none")
    assert "is a directory" in refused(capsys, "merge", one, tmp_path)
    assert f"{folder / 'some-0.csv'}: these are not the bytes of an Accumulator" in refused(
        capsys, "merge", folder / "some-0.csv"
    )
    broken = tmp_path / "broken.sums"
    broken.write_bytes(one.read_bytes()[:-5])
    assert "broken.sums: these bytes of an Accumulator are damaged: truncated" in refused(capsys, "merge", one, broken)
    other = tmp_path / "other.sums"
    run(capsys, "report", folder / "many.parquet", "--label", "truth", "--sums", other)
    assert "other.sums: merged accumulators must have equal notions" in refused(capsys, "merge", one, other)
    empty = tmp_path / "empty.sums"
    empty.write_bytes(cal.Accumulator().to_bytes())
    assert "these sums contain no rows" in refused(capsys, "merge", empty)
    before = one.read_bytes()
    assert "is an input file" in refused(capsys, "merge", one, "--sums", one, "--force")
    assert one.read_bytes() == before
    assert "exists: choose another name, or pass --force" in refused(capsys, "merge", other, "--sums", one)


# --- interruptions


@pytest.mark.parametrize("command", ["report", "merge"])
@with_duckdb
def test_ctrl_c_leaves_nothing_half_written(capsys, folder, tmp_path, monkeypatch, command):
    """Interrupted where the sums are made, with the temporary file there already."""
    one = tmp_path / "a.sums"
    one.write_bytes(cal.Accumulator().update([0, 1, 1], [0.2, 0.4, 0.9]).to_bytes())

    def interrupted(self):
        (temporary,) = [f for f in tmp_path.iterdir() if f.name.endswith(".tmp")] or [tmp_path / "none"]
        if temporary.exists():
            temporary.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(cal.Accumulator, "to_bytes", interrupted)
    args = (
        [one]
        if command == "merge"
        else [folder / "some-0.parquet", "--label", "y", "--prob", "p", "--engine", "duckdb"]
    )
    code, _, _ = run(capsys, command, *args, "--sums", tmp_path / "b.sums")
    assert code != 0
    assert [f.name for f in tmp_path.iterdir()] == ["a.sums"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_real_ctrl_c_while_rows_are_read(tmp_path):
    """It may come between two reads of the system: what is read is read piece by piece."""
    out = tmp_path / "a.sums"
    command = [
        sys.executable,
        "-m",
        "calibrant",
        "report",
        "-",
        "--sums",
        str(out),
        "--html",
        str(tmp_path / "a.html"),
    ]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        process.stdin.write(b"y_true,y_prob\n" + b"0,0.2\n1,0.7\n" * 20_000)
        process.stdin.flush()
        for _ in range(1200):  # until the copy of standard input is begun, on a busy machine too
            if any(f.name.startswith(".calibrant-") for f in tmp_path.iterdir()):
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) != 0
    assert list(tmp_path.iterdir()) == []
