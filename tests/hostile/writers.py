"""Everything that writes a file, in one table, and what may happen to each of them meanwhile.

    python -m tests.hostile.writers WRITER FOLDER [KILLS]

Processes are forked from this one, which imports everything and does nothing with Polars, whose threads no fork
survives: a kill then costs some milliseconds more than the write itself.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2  # noqa: F401 - as the writers do, in each fork
import matplotlib.pyplot  # noqa: F401
import numpy as np
import polars as pl
import pyarrow.ipc
import pyarrow.parquet

import calibrant as cal
from calibrant import benchmark, reporting  # noqa: F401
from calibrant.benchmark.experiment import Store
from calibrant.calibrators import PlattScaling, load_calibrator, save_calibrator
from calibrant.cli.commands import app
from calibrant.comparison import subgroups  # noqa: F401
from calibrant.data import writing
from calibrant.plot import ReliabilityDisplay

NOBODY = 65534
OLD = b"old"


def prepare(folder: Path) -> None:
    """Two files of predictions, and a calibrator, for the writers to read."""
    for version, n in enumerate((300, 400)):
        rng = np.random.default_rng(version)
        p = rng.random(n)
        y = rng.random(n) < p
        rows = [f"{int(o)},{v!r},{i % 2}\n" for i, (o, v) in enumerate(zip(y, p.tolist(), strict=True))]
        (folder / f"{version}.csv").write_text("y_true,y_prob,half\n" + "".join(rows))
    save_calibrator(PlattScaling().fit(p, y), folder / "m.json")


def _command(*args: Any) -> int:
    try:
        app([str(a) for a in args])
    except SystemExit as ended:
        return int(ended.code or 0)
    raise AssertionError("a command ends")


def _library(write: Callable[[Path, Path, int], Any]) -> Callable[[Path, Path, int], int]:
    def run(folder: Path, out: Path, version: int) -> int:
        try:
            write(folder, out, version)
        except OSError as error:
            sys.stderr.write(f"{error}\n")
            return 2
        return 0

    return run


def _rows(version: int) -> tuple[Any, Any]:
    p = np.linspace(0.01, 0.99, 300 + 100 * version)
    return np.arange(p.size) % 2, p


def _report(*options: str) -> Callable[[Path, Path, int], int]:
    return lambda folder, out, v: _command("report", folder / f"{v}.csv", *options, out, "--force")


def _apply(folder: Path, out: Path, version: int) -> int:
    return _command("apply", folder / "m.json", folder / f"{version}.csv", "--out", out, "--force")


def _save_model(folder: Path, out: Path, version: int) -> None:
    save_calibrator(load_calibrator(folder / "m.json"), out, force=True)


def _write_piece(folder: Path, out: Path, version: int) -> None:
    frame = pl.DataFrame({"estimator": ["one"] * (100 + version), "value": np.arange(100.0 + version)})
    Store(out.parent).write(out, frame.write_parquet)


def _write_pool(folder: Path, out: Path, version: int) -> None:
    with writing.replacing(out) as file:
        np.savez(file, scores=np.arange(1000.0 + version))


#: Ending of the file, and what writes it in one of two versions: ``write(folder of input, file, version)``.
WRITERS: dict[str, tuple[str, Callable[[Path, Path, int], int]]] = {
    "report --html": (".html", _report("--html")),
    "report --sums": (".sums", _report("--sums")),
    "compare --save": (
        ".json",
        lambda folder, out, v: _command(
            *("compare", folder / f"{v}.csv", "--calibrators", "identity,platt", "--save", out, "--force")
        ),
    ),
    "fix --save": (
        ".json",
        lambda folder, out, v: _command("fix", folder / f"{v}.csv", "--calibrator", "platt", "--save", out, "--force"),
    ),
    "subgroups --plot": (
        ".png",
        lambda folder, out, v: _command(
            *("subgroups", folder / f"{v}.csv", "--by", "half", "--resamples", "50", "--plot", out, "--force")
        ),
    ),
    "apply to csv": (".csv", _apply),
    "apply to parquet": (".parquet", _apply),
    "apply to ndjson": (".ndjson", _apply),
    "apply to arrow": (".arrow", _apply),
    "save_calibrator": (".json", _library(_save_model)),
    "to_html of a result": (".html", _library(lambda folder, out, v: cal.report(*_rows(v)).to_html(out))),
    "to_html of a display": (
        ".html",
        _library(lambda folder, out, v: ReliabilityDisplay.from_predictions(*_rows(v)).to_html(out)),
    ),
    "piece of a benchmark": (".parquet", _library(_write_piece)),
    "pool of a benchmark": (".npz", _library(_write_pool)),
    "page of a benchmark": (
        ".md",
        _library(lambda folder, out, v: writing.write_text(out, f"# {v}\n" * 20_000 + "end\n")),
    ),
}


def _arrow(path: Path) -> int:
    with pyarrow.OSFile(str(path)) as file:
        return int(pyarrow.ipc.open_file(file).read_all().num_rows)


def _npz(path: Path) -> int:
    with np.load(path) as data:
        return int(data["scores"].size)


#: What reads a whole file of an ending, and fails for half of one.
WHOLE: dict[str, Callable[[Path], Any]] = {
    ".html": lambda path: path.read_text().rstrip().endswith(("</html>", "</div>")) or 1 / 0,
    ".sums": lambda path: cal.Accumulator.from_bytes(path.read_bytes()),
    ".json": lambda path: json.loads(path.read_text()),
    ".png": lambda path: path.read_bytes().endswith(b"IEND\xaeB`\x82") or 1 / 0,
    ".csv": lambda path: path.read_bytes().endswith(b"\n") and {301: 0, 401: 1}[len(path.read_text().splitlines())],
    ".ndjson": lambda path: {300: 0, 400: 1}[len([json.loads(line) for line in path.read_text().splitlines()])],
    ".parquet": lambda path: pyarrow.parquet.read_table(path, use_threads=False).num_rows,
    ".arrow": _arrow,
    ".npz": _npz,
    ".md": lambda path: path.read_text().endswith("end\n") or 1 / 0,
}


def forked(action: Callable[[], int]) -> int:
    """Start a process that says nothing, and its number; its exit code is what ``action`` returns."""
    if pid := os.fork():
        return pid
    code = 99
    try:
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (1, 2):
            os.dup2(quiet, stream)
        code = action()
    finally:
        os._exit(code)


def ended(pid: int) -> int:
    """Exit code of a process, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def check(name: str, folder: Path, kills: int) -> None:
    """Everything that may happen to a writer; AssertionError where a file is lost, or something is left behind."""
    suffix, write = WRITERS[name]
    folder.mkdir(mode=0o755)
    prepare(folder)
    place = folder / "place"
    place.mkdir(mode=0o755)
    out = place / f"out{suffix}"

    def once(version: int = 0) -> int:
        return write(folder, out, version)

    began = time.monotonic()
    assert ended(forked(once)) == 0
    spent = time.monotonic() - began
    WHOLE[suffix](out)
    _killed(out, once, suffix, spent, kills)
    _at_once(out, once, suffix)
    _modes(out, once)
    _planted(out, once)
    if os.getuid() == 0:
        _other_user(folder, once, out)
        _full_disk(place, once, out)


def _killed(out: Path, once: Callable[[int], int], suffix: str, spent: float, kills: int) -> None:
    rng, left = random.Random(0), 0

    def again() -> int:
        version = 0
        while True:
            version ^= 1
            once(version)

    for i in range(kills):
        pid = forked(again)
        if i % 2:  # while it writes, which most of the time it does not
            until = time.monotonic() + 60
            while len(os.listdir(out.parent)) == 1 and time.monotonic() < until:
                pass
            time.sleep(rng.uniform(0, 0.003))
        else:
            time.sleep(rng.uniform(0, 2.5 * spent))
        os.kill(pid, signal.SIGKILL)
        assert ended(pid) == -signal.SIGKILL
        WHOLE[suffix](out)
        left += len(os.listdir(out.parent)) > 1
        writing.remove_leftovers(out.parent)
        assert os.listdir(out.parent) == [out.name]
    sys.stdout.write(f"{kills} kills, after {left} of them a temporary file was there\n")
    assert left or kills < 10, "none came while it wrote"  # a few may all miss


def _at_once(out: Path, once: Callable[[int], int], suffix: str) -> None:
    """Processes that write one file at a time: none fails, none takes the other's temporary file."""
    each = [forked(lambda v=v: max(once(v) for _ in range(4))) for v in (0, 1, 0)]
    assert [ended(pid) for pid in each] == [0, 0, 0]
    WHOLE[suffix](out)
    assert os.listdir(out.parent) == [out.name]


def _modes(out: Path, once: Callable[[int], int]) -> None:
    for mode in (0o600, 0o640, 0o604, 0o444):
        out.chmod(mode)
        assert ended(forked(lambda: once(0))) == 0
        assert out.stat().st_mode & 0o7777 == mode, oct(out.stat().st_mode)
    out.unlink()
    before = os.umask(0o027)
    try:
        assert ended(forked(lambda: once(0))) == 0
    finally:
        os.umask(before)
    assert out.stat().st_mode & 0o7777 == 0o640


def _planted(out: Path, once: Callable[[int], int]) -> None:
    """Links under the name that the temporary file will have: what they point to is left alone, and they are too."""
    mine = out.parent.parent / "mine"
    mine.write_bytes(OLD)
    out.write_bytes(OLD)

    def planted() -> int:
        writing.secrets.token_hex = lambda n: "0" * 2 * n
        name = f".{out.name}.{writing._host()}-{os.getpid()}-{'0' * 16}.tmp"
        (out.parent / name).symlink_to(mine)
        code = once(0)
        (out.parent / name).unlink()  # it is still there
        return code

    assert ended(forked(planted)) == 2
    assert mine.read_bytes() == OLD
    assert out.read_bytes() == OLD


def _other_user(folder: Path, once: Callable[[int], int], out: Path) -> None:
    """Nobody, in a folder that is read-only and in one of its own, where a file of mode 0600 stays its own."""

    def by_nobody() -> int:
        once(0)  # what it imports may lie where nobody may read
        os.chown(out.parent, 0 if locked else NOBODY, 0)
        out.parent.chmod(0o555 if locked else 0o755)
        out.write_bytes(OLD)
        os.chown(out, NOBODY, NOBODY)
        out.chmod(0o600)
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        return once(1)

    try:
        for locked in (True, False):
            assert ended(forked(by_nobody)) == (2 if locked else 0)
            assert (out.read_bytes() == OLD) is locked
            assert os.listdir(out.parent) == [out.name]
            about = out.stat()
            assert (about.st_uid, about.st_gid, about.st_mode & 0o7777) == (NOBODY, NOBODY, 0o600)
            out.parent.chmod(0o755)
        # The superuser replaces it: it stays readable for whose it is.
        assert ended(forked(lambda: once(0))) == 0
        about = out.stat()
        assert (about.st_uid, about.st_gid, about.st_mode & 0o7777) == (NOBODY, NOBODY, 0o600)
    finally:
        os.chown(out.parent, 0, 0)
        out.parent.chmod(0o755)


def _full_disk(place: Path, once: Callable[[int], int], out: Path) -> None:
    """A file system of one page, which the old file has taken."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        sys.stdout.write("no file system can be mounted here\n")
        return
    try:
        out.write_bytes(OLD)
        assert ended(forked(lambda: once(0))) == 2
        assert out.read_bytes() == OLD
        assert os.listdir(place) == [out.name]
    finally:
        subprocess.run(["umount", str(place)], check=True)


if __name__ == "__main__":
    check(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 20)
