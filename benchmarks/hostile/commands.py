"""Kinds of commands: every command with hostile files, arguments and places to write to.

Most run in this process, by the function that ``python -m calibrant`` calls, with standard streams of their own; one in
eighty is a process, with streams that are closed or full, or the C locale.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import typer

import calibrant as cal
from calibrant import calibrators as c
from calibrant.cli import main
from calibrant.cli.commands import app

from .drawing import Draw
from .endings import REFUSED, Case, EndedError
from .files import damaged, file_of

Kind = Callable[[Draw], Case]
LONGEST_LINE, IN_A_PROCESS = 300, 1 / 80
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
#: Options that make exit code 1 possible.
GATES = ("--fail-above", "--fail", "--fail-on-alarm")
#: What any option may be given.
ANYTHING = (
    *(
        "",
        " ",
        "-",
        "--",
        "0",
        "1",
        "-1",
        "0.5",
        "nan",
        "inf",
        "1e400",
        "x",
        "auto",
        "a,b",
        "0,1",
        ",",
        "*",
        "p_*",
        "\x1b[2J",
    ),
    *("x" * 5000, "ä", "\udcff", "\n", "%s", "{}", "none", "None", "y_true", "y_prob", "w", "../..", "/", "/dev/null"),
    *("1e-300", "99999999999999999999", "0x10", "1_0", "١", "[", "(", "\\", "$HOME", "binned:", "binned:0", ":"),
)
SIZES = ("--resamples", "--max-rows", "--cv", "--jobs", "--sets")
FEW = ("0", "1", "2", "3", "-1", "x", "", "nan", "2.5")
#: What an option takes; those of files and folders are made for the case.
TAKES: Mapping[str, tuple[str, ...]] = {
    "--score": ("acc", "acc_norm", "exact_match", "none such"),
    "--label": ("y_true", "g", "part", "none such", "w"),
    "--prob": ("y_prob", "p_*", "p_a", "w", "none such", "y_*"),
    "--weight": ("w", "w", "g", "part", "none such"),
    "--groups": ("g", "part", "w", "none such"),
    "--by": ("part", "g", "p*", "none such", "y_true"),
    "--time": ("g", "part", "w", "y_prob", "none such"),
    "--every": ("auto", "month", "20", "day", "0"),
    "--horizon": ("100", "1", "0"),
    "--labels": ("0,1", "a,b", "a,b,c", "b,a", "a,b,c,d", "1,0"),
    "--pos-label": ("1", "0", "a", "b", "c"),
    "--format": ("csv", "parquet", "ndjson", "arrow", "json"),
    "--out-format": ("csv", "parquet", "ndjson", "arrow", "json"),
    "--engine": ("polars", "duckdb", "dask", "spark"),
    "--sql": ("select 1", "select * from x", "drop table x"),
    "--database": ("none.db",),
    "--estimator": (
        "auto",
        "binned",
        "binned:5:quantile",
        "density",
        "isotonic",
        "smooth",
        "sweep",
        "parametric",
        "kernel",
    ),
    "--level": ("0.95", "0.5", "0", "1", "0.999999"),
    "--tolerance": ("0.05", "0.2", "0", "1"),
    "--threshold": ("0.5", "0", "1", "2"),
    "--fail-above": ("0.05", "0.2", "0", "1"),
    "--fail-on": ("value", "corrected", "low", "high"),
    "--title": ("a title", "<script>alert(1)</script>", "\u202e", "x" * 3000),
    "--notion": ("auto", "classwise", "confidence", "top-label", "class-specific:1", "class-specific:", "canonical"),
    "--on-invalid": ("raise", "drop"),
    "--sum-tolerance": ("0.1", "0", "-1", "1e-9"),
    "--input": ("probability", "logit", "margin"),
    "--cv": ("2", "3", "5"),
    "--goal": ("log-loss", "brier", "calibration"),
    "--rule": ("average", "best"),
    "--max-rows": ("2", "20", "1000"),
    "--calibrators": (
        "identity,platt",
        "temperature",
        "identity,isotonic",
        "identity",
        ",",
        "platt,platt",
        "none such",
    ),
    "--calibrator": ("platt", "temperature", "isotonic", "identity", "none such"),
    "--model": ("a=y_prob", "a=p_*", "b=w", "a=p_a,p_b", "a", "=", "a=none such", "a=y_prob,w"),
    "--scores": ("brier", "brier,log-loss", "spherical", ""),
    "--reference": ("a", "b"),
    "--resamples": ("2", "20", "50"),
    "--adjust": ("holm", "bonferroni", "bh", "none"),
    "--prior": ("0.5", "0.2,0.8", "1", "0,0", "-1", "a"),
    "--suffix": ("_new", "", "\n", "/", "x" * 3000),
    "--test": ("kuiper", "in-the-large"),
    "--min-size": ("0", "5", "50"),
    "--intersections": ("1", "2", "0"),
    "--features": ("x_*", "p_*", "w", "g", "none such", "*"),
    "--confirm": ("auto", "simulate", "split", "both"),
    "--max-terms": ("1", "3", "4", "0"),
    "--min-rows": ("1", "20", "0", "-1"),
    "--show": ("rel", "abs", "bias", "mean", "rmse"),
    "--mode": ("corrected", "as-published", "x"),
    "--track": ("beta", "networks", "dirichlet", "imbalance", "consistency", "canonical", "x"),
    "--seed": ("0", "1"),
    "--jobs": ("1",),
    "--sets": ("1",),
}
#: Options that name a file or a folder to write.
WRITES = ("--html", "--sums", "--save", "--plot", "--out", "--state")
#: Options given to make a case quick, where the command has them.
QUICK = {"--resamples": "20", "--calibrators": "identity,platt", "--calibrator": "platt", "--cv": "2"}


@cache
def folder() -> Path:
    """A folder of this process for files of cases, and the files that are read but not drawn."""
    if given := os.environ.get("HOSTILE_FOLDER"):  # of the process that started this one
        return Path(given)
    made = Path(tempfile.mkdtemp(prefix="hostile-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    rng = np.random.default_rng(0)
    p, many = rng.random(60), rng.dirichlet(np.ones(3), 60)
    y, codes = (rng.random(60) < p).astype(int), rng.integers(0, 3, 60)
    kept = made / "kept"
    kept.mkdir()
    c_one = c.PlattScaling().fit(p, y)
    cal.save_calibrator(c_one, kept / "platt.json")
    cal.save_calibrator(
        c.TemperatureScaling(labels=["a", "b", "c"]).fit(many, np.array(["a", "b", "c"])[codes]), kept / "many.json"
    )
    cal.save_calibrator(c.IsotonicCalibrator().fit(p, y), kept / "isotonic.json")
    (kept / "one.sums").write_bytes(cal.Accumulator().update(y, p).to_bytes())
    (kept / "two.sums").write_bytes(cal.Accumulator().update(y[:30], p[:30]).to_bytes())
    (kept / "many.sums").write_bytes(cal.Accumulator().update(codes, many).to_bytes())
    compared = cal.compare_calibrators(y, p, candidates=["identity", "platt"], cv=2)
    (kept / "compared.json").write_text(json.dumps(compared.to_dict()))
    return made


def _written(draw: Draw, at: Path, ending: str) -> tuple[str, list[Path]]:
    """A place to write to: mostly a new file."""
    new = at / f"out.{ending}"
    how = draw.whole(0, 20)
    if how < 11:
        return str(new), []
    draw.say("place", how)
    old, link, loop = at / f"old.{ending}", at / "link", at / "loop"
    old.write_bytes(b"old")
    for name, to in ((link, old), (loop, loop)):
        if not name.is_symlink():
            name.symlink_to(to)
    places = (
        *(str(old), str(at), str(at / "none" / "x"), "-", "", "/dev/full", "/dev/null", str(link), str(loop)),
        *(
            str(at / ("x" * 300)),
            f"{at}/a\0b",
            str(at / "new\nline.html"),
            str(at / "\udcff.html"),
            "/proc/self/x",
            ".",
        ),
    )
    return draw.one(places), [old]


def _read(draw: Draw, at: Path) -> tuple[str, Path | None]:
    """A file of predictions, by a name that may not be one."""
    ending, data = file_of(draw)
    file = at / (f"rows.{ending}" if ending else "rows")
    file.write_bytes(data)
    if draw.chance(0.9):
        return str(file), file
    link = at / "link to rows"
    link.symlink_to(file)
    loop = at / "loop to itself"
    loop.symlink_to(loop)
    odd = at / os.fsdecode(
        draw.one((b"\xff.csv", b"a b.csv", b"-x.csv", b"\n.csv", "ü.csv".encode(), b"*.csv", b"x.csv.gz"))
    )
    odd.write_bytes(data)
    names = (
        str(link),
        str(loop),
        str(odd),
        str(at),
        str(at / "none.csv"),
        "",
        "/dev/null",
        str(at / "*"),
        f"{file}\0",
        "x" * 5000,
    )
    name = draw.one(names)
    draw.say("name", name[-30:])
    return name, None


def _model(draw: Draw, at: Path) -> str:
    """A saved calibrator, or what is left of it."""
    kept = folder() / "kept"
    file = kept / draw.one(("platt.json", "many.json", "isotonic.json"))
    if draw.chance(0.6):
        return str(file)
    spoiled = at / "model.json"
    spoiled.write_bytes(damaged(draw, file.read_bytes()))
    return draw.one(
        (str(spoiled), str(spoiled), str(kept / "one.sums"), str(at), "", str(at / "none.json"), "/dev/null")
    )


def _sums(draw: Draw, at: Path) -> str:
    """Saved sums, or what is left of them."""
    file = folder() / "kept" / draw.one(("one.sums", "two.sums", "many.sums", "one.sums"))
    if draw.chance(0.7):
        return str(file)
    spoiled = at / f"spoiled {draw.whole(0, 9)}.sums"
    spoiled.write_bytes(damaged(draw, file.read_bytes()))
    return draw.one(
        (str(spoiled), str(spoiled), str(at), str(folder() / "kept" / "platt.json"), "", str(at / "none.sums"))
    )


def _comparison(draw: Draw, at: Path) -> str:
    """A saved comparison, or what is left of it."""
    file = folder() / "kept" / "compared.json"
    if draw.chance(0.5):
        return str(file)
    spoiled = at / "spoiled.json"
    spoiled.write_bytes(damaged(draw, file.read_bytes()))
    return draw.one((str(spoiled), str(folder() / "kept" / "platt.json"), "", str(at)))


def arguments(draw: Draw, name: str, at: Path) -> tuple[list[str], list[Path]]:
    """Words of a command, and the files that must stay as they are."""
    words, kept, files = [name], [], []
    slow = name in ("demo", "benchmark")
    for p in COMMANDS[name].params:
        if p.param_type_name == "argument":
            if p.name == "model":
                files.append(_model(draw, at))
            elif p.name == "files":
                files += [_sums(draw, at) for _ in range(draw.whole(1, 4))]
            elif draw.chance(0.97):
                read, file = _read(draw, at)
                files.append(read)
                kept += [file] if file is not None else []
    for p in COMMANDS[name].params:
        if p.param_type_name == "argument" or p.name == "help":
            continue
        option = max(p.opts, key=len)
        if not (p.required or draw.chance(0.4 if option in QUICK else 0.06)):
            if option in QUICK and draw.chance(0.9):
                words += [option, QUICK[option]]
            continue
        if p.is_flag:
            words.append(draw.one([*p.opts, *p.secondary_opts]))
        elif option in WRITES:
            place, old = _written(
                draw, at, {"--html": "html", "--plot": draw.one(("png", "svg", "x"))}.get(option, "csv")
            )
            words += [option, place]
            kept += old
        elif option == "--from":
            words += [option, _comparison(draw, at)]
        else:
            allowed = FEW if option in SIZES else ANYTHING
            for _ in range(draw.whole(1, 3) if p.multiple else 1):
                words += [option, draw.one(allowed if draw.chance(0.25) else TAKES[option])]
    if name == "compare-models" and "--model" not in words:
        words += ["--model", "a=y_prob", "--model", "b=w"]
    if slow:  # a run takes seconds or minutes: something is wrong with it, so that it does not begin
        if "--out" not in words:
            words += ["--out", "/dev/full"]
        words += draw.one((["--none-such"], ["more"], ["--jobs", "x"], ["--force=3"], ["--track", "x"], ["--show", ""]))
    if "--force" in words:
        kept = [file for file in kept if not file.name.startswith("old")]
    return [*words[:1], *files, *words[1:]], kept


def in_this_process(words: list[str], given: bytes) -> tuple[int, bytes, bytes]:
    """Exit code, standard output and standard error of a command."""
    streams = [
        io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", errors="surrogateescape") for data in (given, b"", b"")
    ]
    before = sys.argv, sys.stdin, sys.stdout, sys.stderr
    sys.argv = ["calibrant", *words]
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        main()
        code: Any = 0
    except SystemExit as ended:
        code = ended.code
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr = before
        for stream in streams[1:]:
            stream.flush()
    out, err = (stream.buffer.getvalue() for stream in streams[1:])  # type: ignore[attr-defined]
    return (code if isinstance(code, int) else 0 if code is None else 1), out, err


def in_a_process(words: list[str], given: bytes, how: str) -> tuple[int, bytes, bytes]:
    """The same of a process, with standard streams or a locale that is hostile."""
    command: list[Any] = [sys.executable, "-m", "calibrant", *words]
    if how in ("closed", "full"):
        to = ">&-" if how == "closed" else "> /dev/full"
        command = ["sh", "-c", f'"$0" "$@" {to}', *command]
    environment = {**os.environ, **({"LC_ALL": "C", "PYTHONUTF8": "0"} if how == "C locale" else {})}
    done = subprocess.run(command, input=given, capture_output=True, timeout=120, env=environment)
    return done.returncode, done.stdout, done.stderr


def said_badly(words: list[str], code: int, out: bytes, err: bytes) -> str:
    """What is wrong with how a command ended."""
    text = err.decode("utf-8", "replace")
    lines = [line for line in text.splitlines() if line.strip()]
    if "Traceback (most recent call last)" in text:
        return f"a traceback, and code {code}: {lines[-1][:200]}"
    gate = any(word in GATES for word in words)
    if code not in ((0, 1, 2) if gate else (0, 2)):
        return f"code {code}: {text[-200:]}"
    if too_long := max(map(len, lines), default=0) > LONGEST_LINE and max(map(len, lines)):
        return f"code {code} and a line of {too_long} characters on standard error: {text[:100]!r}"
    if re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", text):
        return f"control characters on standard error: {text[:200]!r}"
    if code == 2:
        final = [
            line
            for line in lines
            if not re.match("calibrant: warning: |calibrant: using |calibrant: the calibrator is fitted|wrote ", line)
        ]
        if len(final) != 1:
            return f"code 2 and {len(final)} lines: {text[:200]!r}"
        if not final[0].startswith("calibrant: ") and not final[0].startswith("calibrant"):
            return f"code 2 and a line of another kind: {final[0]!r}"
    if code in (0, 1) and "-" not in words and not re.search(r"-h|--help", " ".join(words)):
        told = out.decode("utf-8", "replace")
        if re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", told):
            return f"control characters on standard output: {told[:200]!r}"
        if "--json" in words:
            try:
                json.loads(told, parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))
            except ValueError as error:
                return f"--json is no JSON: {error}"
    return ""


def command_case(name: str, draw: Draw) -> Case:
    """A command on files of its own, which are removed when it ended."""
    process = draw.chance(IN_A_PROCESS)
    how = draw.one(("plain", "closed", "full", "C locale", "plain")) if process else ""
    if process:
        draw.say("a process", how)
    at = Path(tempfile.mkdtemp(dir=folder()))
    words, kept = arguments(draw, name, at)
    given = kept[0].read_bytes() if "-" in words and kept else b""
    if process:
        words = [word for word in words if "\0" not in word]
    draw.say("calibrant", " ".join(word if len(word) < 40 else f"{word[:20]}…" for word in words)[:300])
    before = {file: file.read_bytes() for file in kept}

    def run() -> Any:
        here = os.getcwd()
        os.chdir(at)
        try:
            ended = in_a_process(words, given, how) if process else in_this_process(words, given)
        finally:
            os.chdir(here)
        wrong = said_badly(words, *ended) if how not in ("closed", "full") else _no_room(*ended)
        if changed := [file.name for file, data in before.items() if not file.exists() or file.read_bytes() != data]:
            wrong = f"{changed[0]} was written to"
        if left := [file.name for file in at.rglob("*.tmp")]:
            wrong = f"{left[0]} was left behind"
        shutil.rmtree(at, ignore_errors=True)
        if wrong:
            raise EndedError(wrong)
        if ended[0] == 2:
            raise EndedError(REFUSED)
        return 0.0

    return Case(f"{name}({draw})"[:900], run, longest=100 if process else 20)


def _no_room(code: int, out: bytes, err: bytes) -> str:
    """What is wrong with a command whose standard output is closed or full; if it prints nothing there, it succeeds."""
    if b"Traceback" in err or code not in (0, 1, 2, 141):
        return f"code {code}: {err[-200:]!r}"
    return ""


def kinds() -> dict[str, Kind]:
    """Every command."""
    return {name: partial(command_case, name) for name in COMMANDS}
