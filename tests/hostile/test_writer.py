"""The writer: nothing is lost, nothing is replaced that was not meant, nothing is left behind."""

import csv
import io
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import calibrant as cal
from calibrant.calibrators import load_calibrator
from calibrant.cli.commands import app
from calibrant.data import writing
from calibrant.data.tables import FileTable

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals, links and limits of POSIX")
COMMAND = (sys.executable, "-m", "calibrant")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    rng = np.random.default_rng(0)
    p = rng.random(400)
    lines = [f"{int(o)},{v!r},{i % 2}" for i, (o, v) in enumerate(zip(rng.random(400) < p, p.tolist(), strict=True))]
    path.write_text("y_true,y_prob,half\n" + "\n".join(lines) + "\n")
    return path


def run(*args):
    found = CliRunner().invoke(app, [str(a) for a in args])
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    return found


OUTPUTS = {
    "report": ("report", "{rows}", "--html", "{out}.html"),
    "compare": ("compare", "{rows}", "--calibrators", "identity,platt", "--html", "{out}.html"),
    "fix": ("fix", "{rows}", "--calibrator", "platt", "--save", "{out}.json"),
    "apply": ("apply", "{model}", "{rows}", "--out", "{out}.csv"),
    "subgroups": ("subgroups", "{rows}", "--by", "half", "--resamples", "50", "--plot", "{out}.png"),
}


@pytest.fixture(scope="module")
def model(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.json"
    assert run("fix", rows, "--calibrator", "platt", "--save", path).exit_code == 0
    return path


@pytest.fixture(params=OUTPUTS)
def command(request, rows, model, tmp_path):
    args = [a.format(rows=rows, model=model, out=tmp_path / "out") for a in OUTPUTS[request.param]]
    return args, Path(args[-1])


def test_there_already(command):
    args, out = command
    out.write_text("mine")
    refused = run(*args)
    assert refused.exit_code == 2
    assert "--force" in refused.stderr
    assert out.read_text() == "mine"
    assert run(*args, "--force").exit_code == 0
    assert out.read_bytes() != b"mine"
    assert os.listdir(out.parent) == [out.name]


def test_the_file_that_is_read_under_any_name(command, rows):
    args, out = command
    before = rows.read_bytes()
    for make in (out.symlink_to, out.hardlink_to):
        make(rows)
        refused = run(*args, "--force")
        assert refused.exit_code == 2
        assert "is the input file" in refused.stderr
        out.unlink()
    assert rows.read_bytes() == before


def test_nodes_are_never_written_to(command):
    args, out = command
    os.mkfifo(out)
    assert "a device, a pipe or a socket" in run(*args, "--force").stderr
    out.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        folder = os.getcwd()
        os.chdir(out.parent)  # names of sockets are short
        try:
            server.bind(out.name)
        finally:
            os.chdir(folder)
        assert "a device, a pipe or a socket" in run(*args, "--force").stderr
    out.unlink()
    out.symlink_to("/dev/null")
    assert "a device, a pipe or a socket" in run(*args, "--force").stderr
    assert out.is_symlink()


@pytest.mark.slow
def test_a_link_stays_and_what_it_points_to_is_replaced(command):
    args, out = command
    there = out.parent / "elsewhere"
    there.mkdir()
    out.symlink_to(there / "real")
    assert run(*args).exit_code == 0  # it pointed to nothing yet
    assert out.is_symlink()
    first = (there / "real").read_bytes()
    assert len(first) > 100
    (there / "real").write_text("old")
    assert run(*args).exit_code == 2
    assert run(*args, "--force").exit_code == 0
    assert out.is_symlink()
    assert abs((there / "real").stat().st_size - len(first)) < 100  # seconds of a fit are written too
    assert os.listdir(there) == ["real"]


@pytest.mark.slow
def test_standard_output(command):
    args, out = command
    done = subprocess.run([*COMMAND, *args[:-1], "-"], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not out.exists()
    start = {".html": b"<!", ".json": b"{", ".csv": b"y_true,y_prob,half\n", ".png": b"\x89PNG"}[out.suffix]
    assert done.stdout.lower().startswith(start.lower())


@pytest.mark.slow
def test_a_full_disk_is_reported_as_what_it_is(command):
    """A limit on the size of files stands for it: a write fails half way."""
    args, out = command

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))

    done = subprocess.run([*COMMAND, *args], capture_output=True, text=True, timeout=120, preexec_fn=limit)
    assert done.returncode == 2, done.stderr
    assert "cannot be written: File too large" in done.stderr
    assert done.stderr.count("\n") == 1
    assert os.listdir(out.parent) == []


def test_no_replacement_in_a_race(tmp_path):
    path = tmp_path / "one"

    def race():
        with writing.replacing(path, force=False) as file:
            file.write(b"mine")
            path.write_text("theirs")

    with pytest.raises(FileExistsError, match="was created in the meantime"):
        race()
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["one"]


@pytest.mark.parametrize("links", [True, False])
def test_of_two_writers_one_wins(tmp_path, links, monkeypatch):
    if not links:
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError("no links here")))
    for trial in range(20):
        path, barrier, done = tmp_path / str(trial), threading.Barrier(2), []

        def write(text, path=path, barrier=barrier, done=done):
            monkeypatched = path.with_name(f"{path.name}.{text}")
            monkeypatched.write_text(text)
            barrier.wait()
            try:
                writing._place(monkeypatched, path)
                done.append(text)
            except FileExistsError:
                pass

        threads = [threading.Thread(target=write, args=(t,)) for t in "ab"]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert [path.read_text()] == done


#: The command, which waits for good before its file, written whole, takes its name.
HELD = """
import os, runpy, time
os.fsync = lambda *_: time.sleep(600)
runpy.run_module("calibrant", run_name="__main__")
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_leave_nothing(tmp_path, rows, model, number):
    out = tmp_path / "out"
    out.mkdir()
    args = [sys.executable, "-c", HELD, "apply", str(model), str(rows), "--out", str(out / "o.csv")]
    # Under nohup a signal is ignored, and that is inherited.
    process = subprocess.Popen(args, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    deadline = time.monotonic() + 60
    while not os.listdir(out) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    assert os.listdir(out), "it began"
    process.send_signal(number)
    assert process.wait(60) == 128 + number
    assert os.listdir(out) == []


@pytest.mark.slow
def test_kills_at_random_moments_lose_nothing_and_are_swept(tmp_path, model):
    big, out = tmp_path / "big.csv", tmp_path / "out"
    out.mkdir()
    (out / "o.csv").write_text("old")
    with big.open("w") as file:
        file.write("y_true,y_prob\n")
        file.writelines(f"{i % 2},{(i % 997) / 997}\n" for i in range(100_000))
    args = ["apply", str(model), str(big), "--out", str(out / "o.csv"), "--force"]
    rng = np.random.default_rng(0)
    assert subprocess.run([*COMMAND, *args], capture_output=True).returncode == 0
    whole = (out / "o.csv").read_bytes()
    left = 0
    for trial in range(6):
        (out / "o.csv").write_text("old")
        command = (sys.executable, "-c", HELD) if trial == 0 else COMMAND  # of the others any may end before its kill
        process = subprocess.Popen([*command, *args], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while len(os.listdir(out)) < 2 and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.001)  # until it writes
        time.sleep(float(rng.uniform(0, 0.3)))
        process.kill()
        process.wait()
        assert (out / "o.csv").read_bytes() in (b"old", whole)
        left += len(os.listdir(out)) > 1
    assert left
    assert subprocess.run([*COMMAND, *args], capture_output=True).returncode == 0
    assert os.listdir(out) == ["o.csv"]


def test_what_another_process_writes_now_is_not_swept(tmp_path):
    path = tmp_path / "one"
    other = tmp_path / f".one.{writing._host()}-{os.getppid()}-{0:016x}.tmp"
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    dead = tmp_path / f".one.{writing._host()}-{gone.pid}-{0:016x}.tmp"
    elsewhere = tmp_path / f".one.otherhost-{gone.pid}-{0:016x}.tmp"
    for file in (other, dead, elsewhere):
        file.write_text("half")
    writing.write_text(path, "whole")
    assert sorted(os.listdir(tmp_path)) == sorted([other.name, elsewhere.name, "one"])


def test_scratch_folders_of_killed_processes_are_swept_and_nothing_else_is(tmp_path, monkeypatch):
    monkeypatch.setattr(writing.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(writing.tempfile, "tempdir", str(tmp_path))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    host = writing._host()
    left = tmp_path / f".calibrant-{host}-{gone.pid}-abcd1234"
    kept = {
        f"calibrant-{gone.pid}-results": "report.html",
        f".calibrant-{host}-{gone.pid}-abcd1235": "mine.csv",
        f".calibrant-{host}-{gone.pid}-abcd1239": "scratch",
        f".calibrant-{host}-{gone.pid}-abcd12345": "scratch",
        f".calibrant-{host}-{os.getppid()}-abcd1236": "scratch",
        f".calibrant-otherhost-{gone.pid}-abcd1237": "scratch",
    }
    for folder, name in {left.name: "scratch", **kept}.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text("half")
    (tmp_path / f".calibrant-{host}-{gone.pid}-abcd1239" / "mine.csv").write_text("half")
    elsewhere = tmp_path / f".calibrant-{host}-{gone.pid}-abcd1238"
    elsewhere.symlink_to(tmp_path / f"calibrant-{gone.pid}-results")
    with writing.scratch_file() as scratch:
        scratch.write_text("whole")
        assert scratch.parent.parent == tmp_path
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, elsewhere.name])
    assert all((tmp_path / folder / name).read_text() == "half" for folder, name in kept.items())


@pytest.mark.parametrize("text", ["", "a,a\n1,2\n"])
def test_a_table_that_cannot_be_read_leaves_no_copy(tmp_path, monkeypatch, text):
    """Whoever holds the error, and with it the table, does not keep the copy."""
    monkeypatch.setattr(writing.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    with pytest.raises(ValueError) as held:
        FileTable("-", "csv")
    assert os.listdir(tmp_path) == []
    assert held.value is not None  # alive until here


def test_a_page_in_python_replaces_files_and_nothing_else(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(100)
    found = cal.report(rng.random(100) < p, p)
    page = tmp_path / "page.html"
    page.write_text("old")
    found.to_html(page)
    assert page.read_text().startswith("<!doctype html>")
    with pytest.raises(FileExistsError, match="device"):
        found.to_html("/dev/null")
    with pytest.raises(IsADirectoryError):
        found.to_html(tmp_path)


def test_demo_asks_before_it_replaces(tmp_path):
    page = tmp_path / "calibrant-demo-digits.html"
    page.write_text("mine")
    refused = run("demo", "--out", tmp_path)
    assert refused.exit_code == 2
    assert page.read_text() == "mine"
    assert os.listdir(tmp_path) == [page.name]


APPLIED = {
    "header": '"a ""b""",x,y_prob\r\n1,2,0.5\r\n"c\r\nd","",0.25\r\n',
    "mark": "\ufeffx,y_prob\n1,0.5\n",
    "mark and quotes": '\ufeff"x, z","y_prob"\n"1, 2","0.5"\n',
    "no last line break": "x,y_prob\n1,0.5\n2,0.75",
    "mixed line breaks": "x,y_prob\n1,0.5\r\n2,0.75\n",
    "spaces": "x,y_prob\n 1 , 0.5\n",
    "umlaut": "größe,y_prob\nß,0.5\n",
    "empty": "x,y_prob\n,0.5\n",
    "long numbers": "x,y_prob\n12345678901234567890123,0.5\n1e400,0.25\n",
}


def fields(path):
    """Records of a CSV file: its header, and its rows."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("name", APPLIED)
@pytest.mark.parametrize("suffix", ["", "_new"])
def test_apply_keeps_the_texts_that_it_does_not_change(name, suffix, model, tmp_path):
    source, out = tmp_path / "s.csv", tmp_path / "o.csv"
    source.write_bytes(APPLIED[name].encode())
    done = run("apply", model, source, "--out", out, *(("--suffix", suffix) if suffix else ()))
    assert done.exit_code == 0, done.stderr
    old, new = fields(source), fields(out)
    if suffix:
        assert [row[:-1] for row in new] == old
        assert new[0][-1] == "y_prob_new"
        return
    assert [row[:-1] for row in new] == [row[:-1] for row in old]
    assert new[0][-1] == "y_prob"
    p = pl.DataFrame({"y_prob": [float(row[-1]) for row in old[1:]]})
    expected = load_calibrator(model).predict_proba(p)[:, 1]
    assert [float(row[-1]) for row in new[1:]] == expected.tolist()


LINES = {
    "spaces": '{ "x" : 1.50, "y_prob" : 0.5 }\r\n\n{"y_prob":2.5e-1 ,"x":null}\n',
    "nested": '{"x":{"y_prob":0.9,"a":[{"b":"}"}]},"y_prob":0.5,"z":"\\u00e9 é \\" ,"}\n',
    "long numbers": '{"x":1.23456789012345678901230,"n":12345678901234567,"y_prob":0.5}\n{"x":1e30,"y_prob":0.25}',
    "other keys": '{"a":1,"y_prob":0.5}\n{"y_prob":0.25,"b":true}\n',
    "text": '{"y_prob":"0.5"}\n',
}


@pytest.mark.parametrize("name", LINES)
def test_apply_keeps_values_of_json(name, model, tmp_path):
    source, out, more = tmp_path / "s.ndjson", tmp_path / "o.ndjson", tmp_path / "more.ndjson"
    source.write_bytes(LINES[name].encode())
    assert run("apply", model, source, "--out", out).exit_code == 0
    assert run("apply", model, source, "--out", more, "--suffix", "_new").exit_code == 0
    old, new, added = (
        [json.loads(line) for line in path.read_text().splitlines() if line] for path in (source, out, more)
    )
    names = list(dict.fromkeys(name for row in old for name in row))
    assert [list(row) for row in new] == [names] * len(old)  # what a line lacks is null
    full = [dict.fromkeys(names) | row for row in old]
    assert [dict(row, y_prob=0) for row in new] == [dict(row, y_prob=0) for row in full]
    assert added == [{**row, "y_prob_new": done["y_prob"]} for row, done in zip(full, new, strict=True)]
    p = pl.DataFrame({"y_prob": [float(row["y_prob"]) for row in old]})
    assert [row["y_prob"] for row in new] == load_calibrator(model).predict_proba(p)[:, 1].tolist()
