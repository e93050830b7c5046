"""How commands end: a code that says whose fault it is, and one line of at most 300 characters that says what."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import suppress

import numpy as np
import pytest
from typer.testing import CliRunner

import calibrant as cal
from calibrant import cli
from calibrant.cli import commands
from calibrant.cli.commands import app

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes, links and signals of POSIX")
COMMAND = (sys.executable, "-m", "calibrant")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Good rows, and files that are not."""
    path = tmp_path_factory.mktemp("boundary")
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)

    def table(head="y_true,y_prob", row="{y},{p}"):
        return head + "\n" + "\n".join(row.format(y=a, p=b) for a, b in zip(y, p.tolist(), strict=True)) + "\n"

    (path / "good.csv").write_text(table())
    (path / "huge-weights.csv").write_text(table("y_true,y_prob,w", "{y},{p},1e200"))
    (path / "tiny-weights.csv").write_text(table("y_true,y_prob,w", "{y},{p},1e-200"))
    (path / "deep.ndjson").write_text('{"y_true":1,"y_prob":' + "[" * 100_000 + "\n")
    (path / "deep-list.ndjson").write_text("[" * 100_000 + "\n")
    (path / "deep-map.ndjson").write_text('{"a":' * 100_000 + "\n")
    (path / "long-field.csv").write_text("y_true,y_prob\n1,0.5\n0," + "x" * 20_000_000 + "\n")
    (path / "long-name.csv").write_text("y_true," + "n" * 1_000_000 + "\n1,0.5\n")
    (path / "long-label.csv").write_text(
        "y_true,y_prob\n" + "".join(f"{'ab'[i % 2] * 200_000},0.5\n" for i in range(4))
    )
    (path / "control.csv").write_text("y_true,y_prob\n1,0.5\n0,\x1b[31m\u202ered\n")
    (path / "binary.csv").write_bytes(bytes(range(256)) * 64)
    (path / "cut.parquet").write_bytes(b"PAR1" + b"\0" * 64)
    (path / "half.arrow").write_bytes(b"ARROW1\0\0" + b"\1" * 64)
    (path / "empty.csv").write_text("")
    (path / "nul.csv").write_bytes(b"y_true,y_prob\n1,0.5\n\0\0\0,\0\n")
    (path / "deep.json").write_text("[" * 100_000)
    (path / "no.json").write_text("{" * 30)
    (path / "loop.csv").symlink_to("loop.csv")
    (path / "gone.csv").symlink_to("nowhere")
    (path / "model.json").write_text("{}")
    cal.save_calibrator(cal.calibrators.PlattScaling().fit(p, y), path / "platt.json")
    return path


#: Arguments, {} standing for the folder, and words that the line has: the code is 2.
REFUSED = {
    "nesting": ("report {}/deep.ndjson", "line 1 is not JSON"),
    "nesting of a list": ("report {}/deep-list.ndjson", "JSON array"),
    "nesting of a list, told": ("report {}/deep-list.ndjson --format ndjson", "JSON array"),
    "nesting of a mapping": ("report {}/deep-map.ndjson", "JSON"),
    "nesting of a calibrator": ("apply {}/deep.json {}/good.csv --out {}/o.csv", "nested too deeply"),
    "nesting of a comparison": ("fix {}/good.csv --from {}/deep.json --save {}/o.json", "not a JSON file"),
    "weights": ("report {}/huge-weights.csv --weight w", "squares within range"),
    "weights, engine": ("report {}/huge-weights.csv --weight w --engine polars", "squares within range"),
    "tiny weights, engine": ("report {}/tiny-weights.csv --weight w --engine polars", "squares within range"),
    "loop": ("report {}/loop.csv", "loop.csv"),
    "loop, engine": ("report {}/loop.csv --engine polars", "loop.csv"),
    "loop as output": ("report {}/good.csv --html {}/loop.csv", "loop.csv"),
    "loop as model": ("apply {}/loop.csv {}/good.csv --out {}/o.csv", "loop.csv"),
    "loop as sums": ("merge {}/loop.csv", "loop.csv"),
    "link to nothing": ("report {}/gone.csv", "does not exist"),
    "long field": ("report {}/long-field.csv", "must hold numbers"),
    "long field, fix": ("fix {}/long-field.csv --save {}/o.json", "must hold numbers"),
    "long field, apply": ("apply {}/platt.json {}/long-field.csv --out {}/o.csv", "must hold numbers"),
    "long name": ("report {}/long-name.csv", "no column"),
    "long name, apply": ("apply {}/platt.json {}/long-name.csv --out {}/o.csv", ""),
    "long label": ("report {}/long-label.csv --pos-label z", "z"),
    "long argument": ("report {}/good.csv --prob " + "x" * 100_000, "no column"),
    "long option": ("report --" + "x" * 100_000, "No such option"),
    "long number": ("compare {}/good.csv --cv " + "x" * 100_000, "--cv"),
    "control characters": ("report {}/control.csv", r"\x1b[31m\u202ered"),
    "bytes": ("report {}/binary.csv", ""),
    "cut Parquet": ("report {}/cut.parquet", "not a complete Parquet file"),
    "cut Arrow": ("report {}/half.arrow", "cannot be read"),
    "zeros": ("report {}/nul.csv", ""),
    "empty": ("report {}/empty.csv", "is empty"),
    "a folder": ("report {}", "is a directory"),
    "no calibrator": ("apply {}/model.json {}/good.csv --out {}/o.csv", "model.json"),
    "no JSON": ("apply {}/no.json {}/good.csv --out {}/o.csv", "not a JSON file"),
    "no sums": ("merge {}/good.csv", "good.csv"),
    "no command": ("reprot {}/good.csv", "No such command"),
    "no option": ("report {}/good.csv --fail-abov 1", "No such option"),
    "no file": ("compare", "Missing argument"),
    "no value": ("report {}/good.csv --html", "requires an argument"),
    "no number": ("report {}/good.csv --fail-above lots", "--fail-above"),
    "no gate": ("report {}/good.csv --fail-above 2", "--fail-above"),
    "no folder": ("report {}/good.csv --html {}/none/o.html", "no such folder"),
    "a folder of none": ("report {}/good.csv/o.csv", "does not exist"),
    "an output in a file": ("report {}/good.csv --html {}/good.csv/o.html", "no such folder"),
}


def one_line(stderr):
    """Whether it is a line of ours that fits, and prints as it is."""
    line = stderr.removesuffix("\n")
    return stderr.endswith("\n") and line.startswith("calibrant: ") and line.isprintable() and len(stderr) <= 300


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_with_input_is_a_line_and_2(name, folder):
    args, words = REFUSED[name]
    found = CliRunner().invoke(app, args.replace("{}", str(folder)).split(" "))
    assert found.exit_code == 2, (found.stderr[-500:], found.exception)
    assert one_line(found.stderr), found.stderr[:1000]
    assert words in found.stderr
    assert not found.stdout
    assert not (folder / "o.csv").exists()


class Panic(BaseException):
    """Of Polars, whose panics are no exceptions."""


def raising(error):
    def command(file: str = "") -> None:
        raise error

    return command


#: Errors of the program, and what is said of them: the code is 70.
BUGS = [
    KeyError("x"),
    IndexError("list index out of range"),
    RecursionError("maximum recursion depth exceeded"),
    ZeroDivisionError("division by zero"),
    OverflowError(34, "Numerical result out of range"),
    AttributeError("'NoneType' object has no attribute 'x'"),
    RuntimeError("two\nlines"),
    AssertionError(),
    Exception("x" * 1_000_000),
    NotImplementedError("\x1b[31m\u202e"),
    Panic("called `Option::unwrap()` on a `None` value"),
]


@pytest.fixture
def command(monkeypatch):
    """A command that raises an error, and how it ends."""

    def run(error):
        monkeypatch.setattr(app, "registered_commands", list(app.registered_commands))
        commands._add("wrong", raising(error))
        return CliRunner().invoke(app, ["wrong"])

    return run


@pytest.mark.parametrize("error", BUGS, ids=lambda error: type(error).__name__)
def test_a_bug_is_a_line_that_says_how_to_report_it_and_70(command, error):
    found = command(error)
    assert found.exit_code == 70
    assert one_line(found.stderr), found.stderr[:1000]
    assert re.search(
        rf"calibrant \S+, Python \d[\d.]+.*, {type(error).__name__}: .*CALIBRANT_TRACEBACK=1", found.stderr
    )
    assert not found.stdout


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ValueError("x must be y; got 'z'"), 2, "calibrant: x must be y; got 'z'\n"),
        (ValueError("a" * 200 + "MIDDLE" + "b" * 200), 2, None),
        (ValueError("two\nlines\x07"), 2, "calibrant: two lines\\x07\n"),
        (TypeError("x must be a number"), 2, "calibrant: x must be a number\n"),
        (ImportError("no duckdb"), 2, "calibrant: no duckdb\n"),
        (MemoryError("1 TiB"), 2, "calibrant: out of memory: 1 TiB\n"),
        (PermissionError(13, "Permission denied", "a\nb"), 2, "calibrant: a b: Permission denied\n"),
        (FileExistsError("it is there"), 2, "calibrant: it is there\n"),
        (OSError(28, "No space left on device"), 2, None),
        (KeyboardInterrupt(), 130, "calibrant: interrupted\n"),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
        (SystemExit(143), 143, ""),
    ],
    ids=repr,
)
def test_how_each_error_ends(command, error, code, words):
    found = command(error)
    assert found.exit_code == code
    assert found.stderr == words if words is not None else one_line(found.stderr)
    assert not found.stdout


def test_a_traceback_for_who_asks(command, monkeypatch):
    assert "Traceback" not in command(KeyError("x")).stderr
    monkeypatch.setenv("CALIBRANT_TRACEBACK", "1")
    found = command(KeyError("x"))
    assert found.exit_code == 70
    assert "Traceback" in found.stderr
    assert "raise error" in found.stderr
    assert found.stderr.splitlines()[-1].startswith("calibrant: this is a bug")


def test_warnings_are_lines_that_fit(monkeypatch):
    def command() -> None:
        warnings.warn("two\nlines \u202e" + "x" * 1000, cal.exceptions.CalibrantWarning, stacklevel=1)
        warnings.warn("pass groups=", cal.exceptions.CalibrantWarning, stacklevel=1)

    monkeypatch.setattr(app, "registered_commands", list(app.registered_commands))
    commands._add("warns", command)
    found = CliRunner().invoke(app, ["warns"])
    assert found.exit_code == 0
    first, second = found.stderr.splitlines(keepends=True)
    assert one_line(first)
    assert first.startswith("calibrant: warning: two lines \\u202exxx")
    assert second == "calibrant: warning: pass --groups\n"


def test_1_means_that_a_gate_failed(folder):
    good = str(folder / "good.csv")
    for args, code in (
        (("report", good, "--fail-above", "0"), 1),
        (("report", good, "--fail-above", "1"), 0),
        (("report", good), 0),
    ):
        assert CliRunner().invoke(app, args).exit_code == code


def command_line(*args, **options):
    return subprocess.run(
        [*COMMAND, *map(str, args)],
        **{"capture_output": "stdout" not in options, "timeout": 120, "check": False, **options},
    )


PRINTED = [("--version",), ("report", "good.csv"), ("report", "good.csv", "--json")]
PRINTED += [("report", "good.csv", "--html", "-"), ("apply", "platt.json", "good.csv", "--out", "-")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "unbuffered"), [*((args, "") for args in PRINTED), (PRINTED[0], "1"), (PRINTED[-1], "1")], ids=str
)
def test_output_that_cannot_be_written(args, unbuffered, folder):
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    about = {"cwd": folder, "env": environment, "stderr": subprocess.PIPE, "text": True}
    with open("/dev/full", "w") as full:
        done = command_line(*args, stdout=full, **about)
    assert (done.returncode, one_line(done.stderr)) == (2, True), done.stderr
    assert "cannot be written: No space left on device" in done.stderr
    done = command_line(*args, stdout=None, preexec_fn=lambda: os.close(1), **about)
    assert (done.returncode, one_line(done.stderr)) == (2, True), done.stderr
    assert "cannot be written: Bad file descriptor" in done.stderr
    reader, writer = os.pipe()
    os.close(reader)
    done = command_line(*args, stdout=writer, **about)
    os.close(writer)
    assert (done.returncode, done.stderr.replace("wrote standard output: 300 rows\n", "")) == (141, "")


@pytest.mark.slow
def test_errors_that_cannot_be_written_have_their_code(folder):
    with open("/dev/full", "w") as full:
        assert command_line("report", "none.csv", cwd=folder, stdout=subprocess.PIPE, stderr=full).returncode == 2
    done = command_line("report", "none.csv", cwd=folder, stdout=subprocess.PIPE, preexec_fn=lambda: os.close(2))
    assert done.returncode == 2
    assert not done.stdout


@pytest.mark.slow
def test_files_do_not_take_the_numbers_of_closed_streams(folder, tmp_path):
    """What a library prints on standard error must not end up in a file that happened to get its number."""
    code = """
import os, sys
from calibrant.cli import bounded
def action():
    print(sorted(int(n) for n in os.listdir('/proc/self/fd') if int(n) < 3), os.open('/dev/null', os.O_RDONLY) > 2)
bounded(action)
"""
    for closed in (0, 2):
        done = subprocess.run(
            [sys.executable, "-c", code], preexec_fn=lambda n=closed: os.close(n), stdout=subprocess.PIPE, check=False
        )
        assert done.stdout == b"[0, 1, 2] True\n"


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_output_in_an_encoding_that_lacks_characters(encoding, folder):
    done = command_line("report", "good.csv", cwd=folder, env={**os.environ, "PYTHONIOENCODING": encoding})
    assert done.returncode == 0, done.stderr
    assert b"Calibration of good.csv" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}])
@pytest.mark.parametrize("name", [b"gr\xc3\xb6\xc3\x9fe.csv", b"bad\xff.csv", b"bad\xff.parquet"])
def test_names_of_files_that_are_no_ascii_in_the_locale_c(name, locale, folder, tmp_path):
    place = os.fsencode(tmp_path)
    with open(os.path.join(place, name), "wb") as file:
        if name.endswith(b"csv"):
            file.write((folder / "good.csv").read_bytes())
        else:
            import polars as pl

            pl.read_csv(folder / "good.csv").write_parquet(file)
    page = os.path.join(place, b"\xc3\xb6\xff.html")
    done = subprocess.run(
        [*map(os.fsencode, COMMAND), b"report", os.path.join(place, name), b"--html", page],
        env={**os.environ, **locale}, capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with open(page, encoding="utf-8") as file:
        assert file.read().rstrip().endswith("</html>")
    assert sorted(os.listdir(place)) == sorted([name, b"\xc3\xb6\xff.html"])


@pytest.mark.slow
def test_pipes_are_read(folder, tmp_path):
    """As ``<(cat file)`` of a shell."""
    for args, words in (
        ("report <(cat good.csv) --sums {}/a.sums", "Calibration of"),
        ("fix <(cat good.csv) --calibrator platt --save {}/m.json", "platt"),
        ("apply <(cat {}/m.json) <(cat good.csv) --out -", "y_true,y_prob"),
        ("merge <(cat {}/a.sums)", "300"),
        ("compare <(cat good.csv) --calibrators identity,platt --save {}/c.json", "identity"),
        ("fix <(cat good.csv) --from <(cat {}/c.json) --save {}/n.json", ""),
    ):
        line = f"{sys.executable} -m calibrant {args.replace('{}', str(tmp_path))}"
        done = subprocess.run(
            ["bash", "-c", line], cwd=folder, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr
        assert words in done.stdout
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m calibrant report <(cat good.csv) --engine polars"],
        cwd=folder, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2
    assert "cannot read the pipe" in done.stderr


def test_a_pipe_gives_what_its_file_gives(folder, tmp_path):
    os.mkfifo(tmp_path / "good.csv")
    rows = (folder / "good.csv").read_bytes()
    writer = threading.Thread(target=lambda: (tmp_path / "good.csv").write_bytes(rows), daemon=True)
    writer.start()
    found = CliRunner().invoke(app, ["report", str(tmp_path / "good.csv")])
    writer.join(10)
    assert found.exit_code == 0, found.stderr
    assert found.stdout == CliRunner().invoke(app, ["report", str(folder / "good.csv")]).stdout
    assert os.listdir(tmp_path) == ["good.csv"]


@pytest.mark.slow
def test_ctrl_c(folder, tmp_path):
    """While it waits for rows; its temporary folder goes."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [*COMMAND, "report", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as process:
        deadline = time.monotonic() + 60
        while not any(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
        with suppress(ProcessLookupError):
            process.kill()
    assert (process.returncode, stderr) == (130, b"calibrant: interrupted\n")
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
def test_python_m_is_the_command(folder):
    script = "from calibrant.cli import main; import sys; sys.argv[0] = 'calibrant'; main()"
    for args in (("report", "good.csv", "--json"), ("report", "none.csv"), ("report", "good.csv", "--fail-above", "0")):
        one = command_line(*args, cwd=folder)
        two = subprocess.run([sys.executable, "-c", script, *args], cwd=folder, capture_output=True, check=False)
        assert (one.returncode, one.stdout, one.stderr) == (two.returncode, two.stdout, two.stderr)


def test_missing_packages_are_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "calibrant.cli.commands", None)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert one_line(said := capsys.readouterr().err)
    assert 'pip install "calibrant[cli]"' in said
