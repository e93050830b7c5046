"""The one writer: an old file or a new one, its own temporary file, the mode that was there, and no other way to write.

What may happen to each writer, a command or a function, is in :mod:`.writers`, each in processes of its own.
"""

import ast
import os
import secrets
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import calibrant as cal
from calibrant.calibrators import PlattScaling, load_calibrator, save_calibrator
from calibrant.data import writing

from .writers import WRITERS

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="locks, links and modes of POSIX")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*WRITERS][::4])  # all of them, and more kills: python -m tests.hostile.writers
def test_whatever_happens_there_is_the_old_file_or_the_new_one(name, tmp_path):
    # Nobody must be able to reach it, which no folder of pytest lets him.
    folder = Path(writing.tempfile.mkdtemp(prefix="calibrant-writers-"))
    folder.chmod(0o755)
    try:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
        args = [sys.executable, "-m", "tests.hostile.writers", name, str(folder / "all"), "2"]
        done = subprocess.run(args, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
    finally:
        writing.tempfile._shutil.rmtree(folder)


@pytest.fixture(scope="module")
def fitted():
    return PlattScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])


def test_a_planted_link_is_not_followed(tmp_path, fitted, monkeypatch):
    monkeypatch.setattr(secrets, "token_hex", lambda n: "0" * 2 * n)
    mine, host = tmp_path / "mine", writing._host()
    mine.write_text("mine")
    planted = [tmp_path / f".m.json.{host}-{os.getpid()}{end}.tmp" for end in ("", f"-{'0' * 16}")]
    for name in planted:
        name.symlink_to(mine)
    with pytest.raises(FileExistsError):
        save_calibrator(fitted, tmp_path / "m.json")
    assert mine.read_text() == "mine"
    assert all(name.is_symlink() for name in planted)
    assert not (tmp_path / "m.json").exists()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o604, 0o444, 0o700])
def test_a_file_that_is_replaced_keeps_its_mode(mode, tmp_path, fitted):
    path = save_calibrator(fitted, tmp_path / "m.json")
    path.chmod(mode)
    before = path.stat().st_ino
    save_calibrator(fitted, path, force=True)
    assert path.stat().st_ino != before
    assert path.stat().st_mode & 0o7777 == mode


def test_a_new_file_has_the_mode_of_the_umask(tmp_path, fitted):
    for umask in (0o022, 0o077, 0o002):
        before = os.umask(umask)
        try:
            path = save_calibrator(fitted, tmp_path / f"{umask}.json")
        finally:
            os.umask(before)
        assert path.stat().st_mode & 0o7777 == 0o666 & ~umask


def test_where_the_group_cannot_be_kept_it_may_do_no_more_than_others(tmp_path, fitted, monkeypatch):
    path = save_calibrator(fitted, tmp_path / "m.json")
    path.chmod(0o664)
    monkeypatch.setattr(os, "fchown", lambda *_: (_ for _ in ()).throw(PermissionError("not yours")))
    save_calibrator(fitted, path, force=True)
    assert path.stat().st_mode & 0o7777 == 0o644


def test_threads_that_save_to_one_path_all_succeed(tmp_path):
    ones = [PlattScaling().fit([0.1, 0.4, 0.6, 0.9], y) for y in ([0, 1, 0, 1], [0, 0, 1, 1])]
    path, failed = tmp_path / "m.json", []

    def save(one):
        try:
            for _ in range(30):
                save_calibrator(one, path, force=True)
                assert load_calibrator(path).coef_ in {each.coef_ for each in ones}
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=save, args=(one,)) for one in ones * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert os.listdir(tmp_path) == ["m.json"]


def test_of_threads_that_replace_what_they_read_none_undoes_another(tmp_path):
    """Each adds 1 to the number that it read, until it has added 20: no addition is lost, and each failure is told."""
    path = tmp_path / "number"
    path.write_text("0")
    refused = []

    def add():
        for _ in range(20):
            while True:
                old = path.read_bytes()
                try:
                    writing.write_text(path, str(int(old) + 1), before=writing.digest(old))
                    break
                except FileExistsError as error:
                    refused.append(str(error))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() == "80"
    assert all("was changed in the meantime and is left unchanged" in text for text in refused)
    assert [p.name for p in tmp_path.iterdir()] == ["number"]


def test_a_file_that_someone_else_locks_is_replaced_all_the_same(tmp_path, monkeypatch):
    """As where flock(1) runs the program with the file's lock."""
    monkeypatch.setattr(writing, "_TRIES", 2)
    path = tmp_path / "file"
    path.write_text("old")
    with writing._opened(path) as handle:
        assert writing._lock(handle)
        writing.write_text(path, "new", before=writing.digest(b"old"))
    assert path.read_text() == "new"


def test_of_threads_that_replace_nothing_one_saves(tmp_path, fitted):
    path, saved, refused, barrier = tmp_path / "m.json", [], [], threading.Barrier(8)

    def save():
        barrier.wait()
        try:
            saved.append(save_calibrator(fitted, path))
        except FileExistsError as error:
            refused.append(error)

    threads = [threading.Thread(target=save) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert saved == [path]
    assert len(refused) == 7
    assert os.listdir(tmp_path) == ["m.json"]


def test_what_is_removed_is_of_a_dead_process_of_this_user_and_not_locked(tmp_path, monkeypatch):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    host, end = writing._host(), f"{'0' * 16}.tmp"
    dead, longest = tmp_path / f".a\nb.{host}-{gone.pid}-{end}", tmp_path / f".{'x' * 30}.{host}-{gone.pid}-{end}"
    locked = tmp_path / f".locked.{host}-{gone.pid}-{end}"  # its number is of another container
    kept = {
        locked,
        tmp_path / f".alive.{host}-{os.getppid()}-{end}",
        tmp_path / f".mine.{host}-{os.getpid()}-{end}",
        tmp_path / f".elsewhere.x{host}-{gone.pid}-{end}",
        tmp_path / f".short.{host}-{gone.pid}-{'0' * 15}.tmp",
        tmp_path / f".long.{host}-{'9' * 30}-{end}",
        tmp_path / f".{'x' * 31}.{host}-{gone.pid}-{end}",
        tmp_path / ".tmp",
    }
    for path in (dead, longest, *kept):
        path.write_text("half")
    link = tmp_path / f".link.{host}-{gone.pid}-{end}"
    link.symlink_to(tmp_path / ".tmp")
    with locked.open() as file:
        writing.fcntl.flock(file, writing.fcntl.LOCK_EX)
        with monkeypatch.context() as patched:
            patched.setattr(os, "geteuid", lambda: os.getuid() + 1)
            writing.remove_leftovers(tmp_path)
        assert {*tmp_path.iterdir()} == {dead, longest, link, *kept}
        writing.remove_leftovers(tmp_path)
        assert {*tmp_path.iterdir()} == {link, *kept}
    writing.remove_leftovers(tmp_path)
    assert {*tmp_path.iterdir()} == {link, *kept} - {locked}


def test_what_is_being_written_is_locked_until_it_has_its_name(tmp_path, monkeypatch):
    """Also where its process looks dead, as from another container."""
    monkeypatch.setattr(writing, "_alive", lambda pid: False)
    replace = os.replace

    def late(*names):
        writing.remove_leftovers(tmp_path)
        replace(*names)

    monkeypatch.setattr(os, "replace", late)
    writing.write_text(tmp_path / "one", "whole")
    assert (tmp_path / "one").read_text() == "whole"


def test_long_names_leave_room_for_the_temporary_one(tmp_path):
    for name in ("a" * 255, "ö" * 127, "😀" * 63):
        writing.write_text(tmp_path / name, "whole")
        assert (tmp_path / name).read_text() == "whole"


def test_folders_that_cannot_be_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "iterdir", lambda self: (_ for _ in ()).throw(PermissionError("not yours")))
    writing.write_text(tmp_path / "one", "whole")
    assert (tmp_path / "one").read_text() == "whole"


def test_a_file_is_on_the_disk_before_it_takes_the_place(tmp_path, monkeypatch):
    seen, fsync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (seen.append(os.fstat(handle).st_size), fsync(handle)))
    monkeypatch.setattr(os, "replace", lambda *names: (seen.append("replaced"), replace(*names)))
    writing.write_text(tmp_path / "one", "whole")
    assert seen == [5, "replaced"]


def test_lines_that_a_kill_cut_off_are_made_again(tmp_path):
    from benchmarks.store import found_of

    store, made = tmp_path / "lines", []

    def found(*key):
        made.append(key)
        return {"is": key[0]}

    keys = [(f"a {i}",) for i in range(3)]
    whole = found_of(store, keys, found)
    text = store.read_bytes()
    for cut in range(len(text)):
        store.write_bytes(text[:cut])
        made.clear()
        assert found_of(store, keys, found) == whole
        assert store.read_bytes() == text
        assert len(made) == 3 - text[:cut].count(b"\n")


#: Methods and functions that write a file by its name; a file that is open has no name to be written to by half.
BY_NAME = {"write_text", "write_bytes"}
OPENED = {"w", "wb", "a", "ab", "x", "xb", "w+b", "x+b", "a+b", "wt", "at"}
#: Methods and functions of libraries, which in the package write to a file that is open.
THEIRS = {"savefig", "savez", "savez_compressed", "save", "write_parquet", "write_csv", "sink_csv", "sink_parquet"}
#: Who may: the writer, what is private to a process, what lines are added to, and folders that are thrown away.
MAY = {
    "src/calibrant/data/writing.py": "the writer",
    "src/calibrant/cli/output.py": "a file in a folder of its own, for standard output",
    "src/calibrant/data/tables.py": "a file in a folder of its own, of standard input",
    "src/calibrant/cli/log_table.py": "a scratch file, which is read back",
    "src/calibrant/cli/monitoring.py": "save() of a monitor, which is by the writer",
    "src/calibrant/cli/__init__.py": "standard output where it is closed",
    "benchmarks/store.py": "lines that are added",
    "benchmarks/arena/build.py": "lines that are added, for who watches",
}


def test_there_is_no_other_way_to_write():
    found = {}
    for path in sorted([*ROOT.glob("src/**/*.py"), *ROOT.glob("benchmarks/**/*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            modes = {a.value for a in [*node.args, *(k.value for k in node.keywords)] if isinstance(a, ast.Constant)}
            by_name = name in BY_NAME and isinstance(node.func, ast.Attribute)
            theirs = name in THEIRS and path.is_relative_to(ROOT / "src") and node.args
            by_name |= bool(theirs) and getattr(node.args[0], "id", "") not in ("file", "out", "raw")
            if path.is_relative_to(ROOT / "benchmarks" / "hostile"):
                continue  # what it writes by name is hostile input, which is thrown away
            if by_name or (name == "open" and modes & OPENED):
                found.setdefault(path.relative_to(ROOT).as_posix(), node.lineno)
    assert set(found) == set(MAY), found


def test_signals_while_it_waits_leave_nothing(tmp_path):
    """Ctrl-C in the block that writes; a shell's background jobs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def half():
        with writing.replacing(tmp_path / "one") as file:
            file.write(b"half")
            signal.raise_signal(signal.SIGINT)

    try:
        with pytest.raises(KeyboardInterrupt):
            half()
    finally:
        signal.signal(signal.SIGINT, before)
    assert os.listdir(tmp_path) == []


def test_a_result_saves_itself_where_its_user_may_not_write_the_old_file(tmp_path):
    page = tmp_path / "page.html"
    page.write_text("old")
    page.chmod(0o400)
    cal.report([0, 1] * 50, [0.3, 0.6] * 50, groups=list(range(50)) * 2).to_html(page)
    assert page.read_text().startswith("<!doctype html>")
    assert page.stat().st_mode & 0o7777 == 0o400
