"""Files that are written whole or not at all, and never replace a file by accident."""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any

#: Names of temporary files: hidden, the host and the process that writes them, so that leftovers are told.
_TEMPORARY = ".{name}.{host}-{pid}.tmp"
_SCRATCH = "scratch"
#: Errors of full disks and missing rights, from any library.
_FAILED = {28: errno.ENOSPC, 27: errno.EFBIG, 122: errno.EDQUOT, 30: errno.EROFS, 13: errno.EACCES, 5: errno.EIO}


def check_free(
    path: Path, *, force: bool, advice: str = "pass force=True", taken: Mapping[str, str | Path | None] | None = None
) -> None:
    """OSError or ValueError where a file may not be written.

    There is one, and no ``force``; it is one of those ``taken`` (read, or written beside it), under whatever name; it
    is a device, a pipe or a socket; or there is no folder for it.
    """
    for what, other in (taken or {}).items():
        if other is not None and _same(path, Path(other)):
            raise ValueError(f"{path} is {what}: choose another name")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: no such folder: {path.parent}")
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(f"{path} is a directory: give a file")
    if not stat.S_ISREG(kind):
        raise FileExistsError(f"{path} is a device, a pipe or a socket, not a regular file, and is not written to")
    if not force:
        raise FileExistsError(f"{path} exists: choose another name, or {advice} to replace it")


@contextmanager
def replacing(path: Path, *, force: bool = True) -> Iterator[Path]:
    """A temporary path that takes the place of ``path`` when the block ends without an error.

    A symbolic link stays, and what it points to is replaced. Without ``force`` a file that appears meanwhile is not
    replaced. What a process that was killed left behind is removed by the next one that writes the same file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    target = Path(os.path.realpath(path))
    check_free(target, force=force)
    for entry in _left_behind(target.parent, f".{target.name}.{_host()}-", r"\.tmp"):
        with suppress(OSError):
            entry.unlink()
    temporary = target.with_name(_TEMPORARY.format(name=target.name, host=_host(), pid=os.getpid()))
    try:
        yield temporary
        if force:
            os.replace(temporary, target)
        else:
            _place(temporary, target)
    except Exception as error:
        raise _explained(error, path) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str, *, force: bool = True) -> None:
    """Write a text in UTF-8."""
    with replacing(path, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any, *, force: bool = True, **options: Any) -> None:
    """Write JSON that other programs read: no NaN; ``options`` are those of :func:`json.dumps`."""
    write_text(path, json.dumps(content, allow_nan=False, **options) + "\n", force=force)


@contextmanager
def scratch_file() -> Iterator[Path]:
    """Path of a temporary file in a hidden folder of its own, which is removed at the end.

    Folders of processes of this user and machine that were killed are removed first: those of exactly this name, with
    nothing in them but that file.
    """
    prefix = f".calibrant-{_host()}-"
    for entry in _left_behind(Path(tempfile.gettempdir()), prefix, r"-\w{8}"):
        _remove_scratch(entry)
    with tempfile.TemporaryDirectory(prefix=f"{prefix}{os.getpid()}-") as folder:
        yield Path(folder) / _SCRATCH


def _remove_scratch(folder: Path) -> None:
    with suppress(OSError):
        mine = not hasattr(os, "getuid") or folder.lstat().st_uid == os.getuid()
        if mine and stat.S_ISDIR(folder.lstat().st_mode) and {e.name for e in folder.iterdir()} <= {_SCRATCH}:
            (folder / _SCRATCH).unlink(missing_ok=True)
            folder.rmdir()


def _alive(pid: int) -> bool:
    """Whether a process of this machine runs; taken for granted where asking would interrupt it."""
    if os.name == "nt":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OSError):
        return True
    return True


def _same(one: Path, two: Path) -> bool:
    """Whether two names are of one file: the same path, a link to it, or another name of the same data."""
    try:
        return one.samefile(two)
    except OSError:  # one of them is not there
        return os.path.realpath(one) == os.path.realpath(two)


def _place(temporary: Path, target: Path) -> None:
    """Give a file its name unless something has that name."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise FileExistsError(f"{target} was created in the meantime and is left unchanged") from None
    except OSError:  # no hard links here: an empty file takes the name, and is replaced
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.replace(temporary, target)


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9]", "", platform.node())


def _left_behind(folder: Path, prefix: str, suffix: str) -> list[Path]:
    """Files left in a folder by ended processes of this machine: prefix, process number, suffix (a pattern)."""
    pattern = re.compile(re.escape(prefix) + r"(\d+)" + suffix)
    matches = ((entry, pattern.fullmatch(entry.name)) for entry in folder.iterdir())
    return [entry for entry, match in matches if match and not _alive(int(match[1]))]


def _explained(error: Exception, path: Path) -> Exception:
    """A full disk and the like as OSError, whichever library met them."""
    code: int | None = getattr(error, "errno", None)
    if code is None and (code_in_text := re.search(r"os error (\d+)", str(error))):
        code = _FAILED.get(int(code_in_text[1]))
    if code is not None and code in _FAILED.values():
        return OSError(code, f"{path} cannot be written: {os.strerror(code)}")
    return error


def write_page(page: str, path: str | PathLike[str] | None) -> str:
    """The page; first written to a path, if there is one, where it appears whole or not at all."""
    if path is not None:
        check_free(Path(path), force=True)
        write_text(Path(path), page)
    return page
