"""Kinds of writers: whatever writes a file, killed at any moment, on a disk that fills up, in a folder of others.

What is there afterwards is the old file or the new one, whole; and the next writer leaves nothing else behind.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cal
from calibrant import calibrators as c
from calibrant.data import writing

from .commands import folder, in_this_process
from .drawing import Draw
from .endings import REFUSED, Case, EndedError

Kind = Callable[[Draw], Case]
#: Seconds in which a child process must have ended.
PATIENCE = 100
NOBODY = 65534


@cache
def made() -> dict[str, Any]:
    """What is written."""
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    rows = folder() / "rows.csv"
    if "HOSTILE_FOLDER" in os.environ:
        return {"rows": str(rows), "big": str(folder() / "big.csv"), "model": str(folder() / "kept" / "platt.json")}
    rows.write_text(
        "y_true,y_prob,half\n"
        + "".join(f"{a},{b!r},{i % 2}\n" for i, (a, b) in enumerate(zip(y, p.tolist(), strict=True)))
    )
    big = folder() / "big.csv"
    big.write_text("y_true,y_prob\n" + "".join(f"{i % 2},{(i % 997) / 997}\n" for i in range(40_000)))
    folder().chmod(0o755)
    report = cal.report(y, p)
    report.to_html()
    return {
        "report": report,
        "calibrator": c.IsotonicCalibrator().fit(p, y),
        "curve": cal.reliability_curve(y, p, level=0.9),
        "rows": str(rows),
        "big": str(big),
        "model": str(folder() / "kept" / "platt.json"),
        "comparison": cal.compare_calibrators(y, p, candidates=["identity", "platt"], cv=2),
    }


def _command(*words: str) -> None:
    code, _, err = in_this_process(list(words), b"")
    if code:
        raise OSError(err.decode())


#: What writes a file: by a call in this process.
WRITERS: dict[str, Callable[[Path], Any]] = {
    "page of a report": lambda path: made()["report"].to_html(path),
    "page of a comparison": lambda path: made()["comparison"].to_html(path),
    "saved calibrator": lambda path: cal.save_calibrator(made()["calibrator"], path, force=True),
    "text": lambda path: writing.write_text(path, "0123456789" * 40_000),
    "JSON": lambda path: writing.write_json(path, list(range(40_000))),
    "picture": lambda path: _command(
        "subgroups", made()["rows"], "--by", "half", "--resamples", "9", "--plot", f"{path}", "--force"
    ),
    "sums": lambda path: _command("report", made()["rows"], "--sums", f"{path}", "--force"),
    "fitted": lambda path: _command("fix", made()["rows"], "--calibrator", "platt", "--save", f"{path}", "--force"),
    "applied": lambda path: _command("apply", made()["model"], made()["big"], "--out", f"{path}", "--force"),
}
ENDINGS = {"picture": ".png", "applied": ".csv", "fitted": ".json", "saved calibrator": ".json", "JSON": ".json"}
#: Those that use threads of polars, which a fork of this process lacks.
OF_COMMANDS = ("picture", "sums", "fitted", "applied")


@cache
def whole(name: str) -> tuple[bytes, float]:
    """What a writer writes when nothing goes wrong, and the seconds that it takes."""
    with tempfile.TemporaryDirectory(dir=folder()) as at:
        path = Path(at) / f"out{ENDINGS.get(name, '.html')}"
        WRITERS[name](path)
        start = time.monotonic()
        WRITERS[name](path)
        return path.read_bytes(), time.monotonic() - start


@cache
def _server() -> Any:
    """A process that has loaded what commands load and started no thread: writers are its children, at once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.hostile.writers", "matplotlib.pyplot", "sklearn.linear_model"])
    os.environ["HOSTILE_FOLDER"] = str(folder())
    return context


def _child(name: str, path: Path, limit: int | None = None, *, nobody: bool = False) -> Child:
    """Start a process that writes."""
    if name in OF_COMMANDS:  # polars has threads here, which a fork lacks
        child = _server().Process(target=in_child, args=(name, str(path), limit, nobody))
        child.start()
        return Child(child.pid, child)
    pid = os.fork()
    if pid == 0:
        in_child(name, str(path), limit, nobody)
    return Child(pid)


@dataclass
class Child:
    """A process that writes: of this one, or of the server."""

    pid: int
    process: Any = None

    def gone(self) -> bool:
        return self.process is not None and not self.process.is_alive()

    def ended(self) -> int:
        """Exit code, or minus the signal."""
        if self.process is not None:
            self.process.join(PATIENCE)
            if (code := self.process.exitcode) is not None:
                return int(code)
        end = time.monotonic() + PATIENCE
        while self.process is None and time.monotonic() < end:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.005)
        os.kill(self.pid, signal.SIGKILL)
        raise EndedError(f"the writer did not end in {PATIENCE} s")


def in_child(name: str, path: str, limit: int | None, nobody: bool) -> None:
    """Write, and end the process: 0 where it wrote, 3 where it was refused, 4 for anything else."""
    code = 4
    try:
        made()
        if nobody:  # modules that are loaded late may lie where nobody may look
            with tempfile.TemporaryDirectory() as at:
                WRITERS[name](Path(at) / Path(path).name)
        if limit is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        if nobody:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        WRITERS[name](Path(path))
        code = 0
    except OSError:
        code = 3
    finally:
        os._exit(code)


def writer_case(name: str, how: str, draw: Draw) -> Case:
    """A writer to whom something happens."""
    made()
    new, seconds = whole(name)
    at = Path(tempfile.mkdtemp(dir=folder()))
    path = at / f"out{ENDINGS.get(name, '.html')}"
    there = draw.chance(0.7)
    draw.say("there", there)
    share = draw.rng.random()
    draw.say("share", round(share, 3))
    forked = name not in OF_COMMANDS

    def run() -> Any:
        try:
            if there:
                path.write_bytes(b"old")
                path.chmod(0o640)
            if how == "full":
                child = _child(name, path, int(share * len(new)))
            elif how == "nobody":
                at.chmod(0o755 if share < 0.7 else 0o555)
                child = _child(name, path, nobody=True)
            else:
                child = _child(name, path)
                # A process of its own loads libraries first: the moment is drawn from when it begins to write.
                end = time.monotonic() + PATIENCE
                while not (forked or _begun(at) or child.gone() or time.monotonic() > end):
                    time.sleep(0.0005)
                time.sleep(share * (1.3 * seconds if forked else 0.02))
                with suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGKILL)
            code = child.ended()
            _judge(how, code, path, new, there, name)
            at.chmod(0o755)
            WRITERS[name](path)
            left = sorted(p.name for p in at.iterdir())
            if not _same(name, path.read_bytes(), new) or left != [path.name]:
                raise EndedError(f"the next writer left {left}")
            if code == 3:
                raise EndedError(REFUSED)
            return 0.0
        finally:
            shutil.rmtree(at, ignore_errors=True)

    return Case(f"{name}, {how}: {draw}", run, longest=3 * PATIENCE)


def _begun(at: Path) -> bool:
    return any(entry.name.endswith(".tmp") or entry.name.startswith(".") for entry in at.iterdir())


def _judge(how: str, code: int, path: Path, new: bytes, there: bool, name: str) -> None:
    """Raise :class:`EndedError` unless the old file is there, or the new one."""
    held = path.read_bytes() if path.exists() else None
    old = b"old" if there else None
    written = held is not None and _same(name, held, new)
    if held != old and not written:
        raise EndedError(f"neither the old file nor the new one: {len(held or b'')} bytes of {len(new)}")
    if how != "kill -9" and code not in (0, 3):
        raise EndedError(f"the writer ended with {code}")
    if code == 0 and not written:
        raise EndedError("the writer said that it wrote, and did not")
    if code == 3 and written:
        raise EndedError("the writer said that it did not write, and did")
    left = [entry.name for entry in path.parent.iterdir() if entry != path]
    if how != "kill -9" and left:
        raise EndedError(f"{left[0]} was left behind")


def _same(name: str, held: bytes, new: bytes) -> bool:
    """Whether a file is what the writer writes: of one that holds the time of writing, the ends."""
    if name in ("saved calibrator", "text", "JSON", "applied", "sums"):
        return held == new
    return abs(len(held) - len(new)) < 200 and held[:50] == new[:50] and held[-12:] == new[-12:]


def kinds() -> dict[str, Kind]:
    """Every writer, whatever happens to it."""
    return {
        f"{name}, {how}": partial(writer_case, name, how) for name in WRITERS for how in ("kill -9", "full", "nobody")
    }
