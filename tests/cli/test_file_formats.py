"""Formats and names of files that commands read, with an engine and without."""

import bz2
import gzip
import json
import lzma
import os

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.cli.engines import Files

from ..commands import run


@pytest.fixture(scope="module")
def binary():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    return pl.DataFrame({"y": (rng.random(4000) < p**1.5).astype(int), "score": p, "w": rng.integers(1, 4, 4000)})


WRITERS = {
    "a.csv": pl.DataFrame.write_csv,
    "a.tsv": lambda f, path: f.write_csv(path, separator="\t"),
    "a.parquet": pl.DataFrame.write_parquet,
    "a.ndjson": pl.DataFrame.write_ndjson,
    "a.jsonl": pl.DataFrame.write_ndjson,
    "a.arrow": pl.DataFrame.write_ipc,
    "stream.arrow": pl.DataFrame.write_ipc_stream,
    "noname": pl.DataFrame.write_csv,
    "noname-parquet": pl.DataFrame.write_parquet,
    "noname-ndjson": pl.DataFrame.write_ndjson,
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("mode", ["--load", "--stream"])
def test_every_format_gives_the_library_number(capsys, tmp_path, binary, name, mode):
    path = tmp_path / name
    WRITERS[name](binary, path)
    code, out, err = run(capsys, "report", path, "--label", "y", "--prob", "score", "--weight", "w", "--json", mode)
    assert code == 0, err
    data = json.loads(out)
    want = cal.calibration_error(binary["y"], binary["score"], sample_weight=binary["w"])
    assert data["headline"]["value"] == pytest.approx(want, rel=1e-9)
    assert data["streamed"] == (mode == "--stream")
    assert data["n_samples"] == 4000


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.json", '[{"y_true": 1, "y_prob": 0.5}]', "is a JSON array: write NDJSON"),
        ("a.ndjson", '{"y_true": {"a": 1}, "y_prob": 0.5}', "it holds Struct"),
        ("a.ndjson", '{"y_true": [1], "y_prob": 0.5}', "must hold labels (int, bool or text)"),
    ],
)
def test_json_that_is_no_table_of_labels(capsys, tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    code, _, err = run(capsys, "report", tmp_path / name)
    assert code == 2
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("suffix", ["csv", "parquet", "ndjson", "arrow"])
def test_a_name_is_no_pattern(capsys, tmp_path, binary, suffix):
    folder = tmp_path / "y=7"
    folder.mkdir()
    for name, rows in (("a[1]", 3000), ("a1", 50)):
        WRITERS[f"a.{suffix}"](binary.head(rows), folder / f"{name}.{suffix}")
    code, out, err = run(capsys, "report", folder / f"a[1].{suffix}", "--label", "y", "--prob", "score", "--json")
    assert code == 0, err
    assert json.loads(out)["n_samples"] == 3000


@pytest.mark.parametrize(
    ("pack", "text"),
    [
        (bz2.compress, "is compressed with bzip2: convert it first (bunzip2 -k {file})"),
        (lzma.compress, "is compressed with xz: convert it first (unxz -k {file})"),
        (
            lambda rows: rows.decode().encode("utf-16"),
            "is encoded as UTF-16: convert it first (iconv -f UTF-16 -t UTF-8",
        ),
        (lambda rows: b"\xd0\xcf\x11\xe0" + rows, "is an Excel workbook: convert it first (save the sheet as CSV)"),
        (lambda rows: b"PK\x03\x04" + rows, "is an Excel workbook or a zip archive: convert it first (save the sheet"),
    ],
    ids=["bz2", "xz", "utf-16", "xls", "xlsx"],
)
@pytest.mark.parametrize("name", ["rows.csv", "rows", "rows.xlsx"])
@pytest.mark.parametrize("how", [(), ("--engine", "polars"), ("--by", "site"), ("--by", "site", "--stream")], ids=str)
def test_files_of_other_kinds_say_how_to_convert_them(capsys, tmp_path, pack, text, name, how):
    file = tmp_path / name
    file.write_bytes(pack(b"y_true,y_prob,site\n1,0.5,a\n"))
    code, _, err = run(capsys, "report", file, *how)
    assert code == 2
    assert f"{file} {text.format(file=file)}" in err


def test_files_that_name_no_format(capsys, tmp_path, binary):
    """What is inside tells, with an engine as without: here CSV, compressed."""
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(binary.write_csv().encode()))
    values = []
    for how in ((), ("--engine", "polars")):
        code, out, err = run(capsys, "report", packed, "--label", "y", "--prob", "score", "--json", *how)
        assert code == 0, err
        values.append(json.loads(out)["headline"]["value"])
    assert values[0] == pytest.approx(values[1], rel=1e-9)


@pytest.mark.parametrize("how", [(), ("--stream",), ("--engine", "polars")], ids=str)
@pytest.mark.parametrize(("kind", "harm"), [("csv", "cut"), ("csv", "sum"), ("ndjson", "cut")])
def test_damaged_gzip_files_are_named(capsys, tmp_path, binary, kind, harm, how):
    whole = gzip.compress((binary.write_csv() if kind == "csv" else binary.write_ndjson()).encode())
    path = tmp_path / f"a.{kind}.gz"
    path.write_bytes(whole[: len(whole) // 2] if harm == "cut" else whole[:-8] + b"1234" + whole[-4:])
    code, _, err = run(capsys, "report", path, "--label", "y", "--prob", "score", *how)
    assert code == 2
    assert f"calibrant: {path} is not a complete gzip file" in err


def test_files_of_a_name(tmp_path):
    (tmp_path / "day=1" / "deep").mkdir(parents=True)
    for name in ("a.csv", "b.csv", "notes.md", "day=1/c.csv", "day=1/deep/d.csv", "day=1/_tmp.csv", "[x].csv"):
        (tmp_path / name).touch()

    def names(path, kind=None):
        found = Files.of(str(path), kind)
        assert found.kind == (kind or "csv")
        return [os.path.relpath(p, tmp_path) for p in found.paths], os.path.relpath(found.root, tmp_path)

    assert names(tmp_path) == (["[x].csv", "a.csv", "b.csv", "day=1/c.csv", "day=1/deep/d.csv"], ".")
    assert names(tmp_path / "*.csv") == (["[x].csv", "a.csv", "b.csv"], ".")
    assert names(tmp_path / "[ab].csv") == (["a.csv", "b.csv"], ".")
    assert names(tmp_path / "[x].csv") == (["[x].csv"], ".")  # a file of this name
    assert names(tmp_path / "day=1") == (["day=1/c.csv", "day=1/deep/d.csv"], ".")
    assert names(tmp_path / "day=1" / "c.csv") == (["day=1/c.csv"], ".")
    assert names(tmp_path / "**" / "*.csv")[0] == [
        "[x].csv",
        "a.csv",
        "b.csv",
        "day=1/_tmp.csv",
        "day=1/c.csv",
        "day=1/deep/d.csv",
    ]
    assert names(tmp_path / "notes.md", "csv") == (["notes.md"], ".")
    assert names(tmp_path / "notes.md") == (["notes.md"], ".")  # what is inside tells
    with pytest.raises(ValueError, match="matches no file in the formats csv, parquet"):
        Files.of(str(tmp_path / "*.md"), None)
