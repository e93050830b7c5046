"""Write files atomically, and never replace a file by accident."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import secrets
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # stands for the module

#: Number of characters of a file's name in that of its temporary file, with room for host, process and random bytes.
_LONGEST, _RANDOM_BYTES = 30, 8
_SCRATCH = "scratch"
#: Number of tries to lock a file that another process replaces, which takes a moment, and seconds between them.
_TRIES, _MOMENT = 50, 0.01
#: Errors of full disks and missing permissions, from any library.
_FAILED = {28: errno.ENOSPC, 27: errno.EFBIG, 122: errno.EDQUOT, 30: errno.EROFS, 13: errno.EACCES, 5: errno.EIO}


def check_free(
    path: Path, *, force: bool, advice: str = "pass force=True", taken: Mapping[str, str | Path | None] | None = None
) -> None:
    """Raise OSError or ValueError if a file may not be written.

    Reasons: it exists and ``force`` is False; it is one of ``taken`` (files also read or written), under any name; it
    is a device, a pipe or a socket; or its folder does not exist.
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
def replacing(path: Path, *, force: bool = True, before: str | None = None) -> Iterator[BinaryIO]:
    """Open a new file that replaces ``path``, with its mode, when the block ends without an error.

    It has a new random name in the folder of ``path``, and is flushed to disk before it replaces the file. A symbolic
    link stays, and its target is replaced. Without ``force`` a file that appears meanwhile is not replaced; nor is one
    whose content is not that of the :func:`digest` ``before``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    target = Path(os.path.realpath(path))
    check_free(target, force=force)
    remove_leftovers(target.parent)
    temporary = target.with_name(
        f".{target.name[:_LONGEST]}.{_host()}-{os.getpid()}-{secrets.token_hex(_RANDOM_BYTES)}.tmp"
    )
    try:
        new = _new_file(temporary, target)
        try:
            with new as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if fcntl is None:  # an open file cannot be renamed on Windows; elsewhere its lock is kept until then
                    file.close()
                with _unchanged(target, before):
                    if force:
                        os.replace(temporary, target)
                    else:
                        _place(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except Exception as error:
        raise _explained(error, path) from error


def write_text(path: Path, text: str, *, force: bool = True, before: str | None = None) -> None:
    """Write a text in UTF-8; ``before`` as for :func:`replacing`."""
    with replacing(path, force=force, before=before) as file:
        file.write(text.encode())


def write_json(path: Path, content: Any, *, force: bool = True, **options: Any) -> None:
    """Write standard JSON, without NaN; ``options`` are those of :func:`json.dumps`."""
    write_text(path, json.dumps(content, allow_nan=False, **options) + "\n", force=force)


def digest(content: bytes) -> str:
    """Stands for the content of a file."""
    return hashlib.sha256(content).hexdigest()


@contextmanager
def _unchanged(path: Path, before: str | None) -> Iterator[None]:
    """Hold the lock of a file; FileExistsError if its content is not that of a digest."""
    if before is None or not path.exists():  # nothing is lost
        yield
        return
    with _opened(path) as handle:
        for _ in range(0 if handle is None else _TRIES):  # then without: flock(1) may hold it and run this program
            if _lock(handle):
                break
            time.sleep(_MOMENT)
        if digest(path.read_bytes()) != before:
            raise FileExistsError(f"{path} was changed in the meantime and is left unchanged")
        yield


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files in a folder that killed processes of this user and machine left."""
    name = rf"\..{{1,{_LONGEST}}}\.{_host()}-(\d{{1,9}})-[0-9a-f]{{{2 * _RANDOM_BYTES}}}\.tmp"
    _remove_left(folder, name, Path.unlink)


@contextmanager
def scratch_file() -> Iterator[Path]:
    """Path of a temporary file in its own hidden folder, which is removed at the end.

    Folders of killed processes of this user and machine are removed first: those with exactly this name that contain
    only that file.
    """
    prefix = f".calibrant-{_host()}-"
    _remove_left(Path(tempfile.gettempdir()), rf"{re.escape(prefix)}(\d{{1,9}})-\w{{8}}", _remove_scratch)
    with tempfile.TemporaryDirectory(prefix=f"{prefix}{os.getpid()}-") as folder, _opened(Path(folder)) as handle:
        _lock(handle)
        yield Path(folder) / _SCRATCH


def _remove_scratch(folder: Path) -> None:
    if {entry.name for entry in folder.iterdir()} <= {_SCRATCH}:
        (folder / _SCRATCH).unlink(missing_ok=True)
        folder.rmdir()


def _new_file(temporary: Path, target: Path) -> BinaryIO:
    """Create a file that did not exist, not even as a link, with the read permissions of the target."""
    try:
        old = target.stat()
    except FileNotFoundError:
        old = None
    mode = 0o666 if old is None else 0o600  # the system takes off what the user's umask says
    no_link = getattr(os, "O_NOFOLLOW", 0)
    # The caller closes it.
    file = open(temporary, "xb", opener=lambda name, flags: os.open(name, flags | no_link, mode))  # noqa: SIM115
    _lock(file.fileno())
    if old is not None and fcntl is not None:
        mode = old.st_mode & 0o777
        try:
            os.fchown(file.fileno(), old.st_uid if os.geteuid() == 0 else -1, old.st_gid)
        except OSError:  # another group: it may do no more than others
            mode = mode & 0o707 | (mode & 0o007) << 3
        with suppress(OSError):  # a file system without modes
            os.fchmod(file.fileno(), mode)
    return file


@contextmanager
def _opened(path: Path) -> Iterator[int | None]:
    """Descriptor of an opened file or folder that is not a link; None on Windows."""
    if fcntl is None:
        yield None
        return
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        yield handle
    finally:
        os.close(handle)


def _lock(handle: int | None) -> bool:
    """Lock an open file until the process ends in any way; False if another process holds the lock."""
    if fcntl is None or handle is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _alive(pid: int) -> bool:
    """Whether a process of this machine runs; assumed true where the check would interrupt it."""
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
    """Whether two paths denote one file: the same path, a link to it, or another name of the same data."""
    try:
        return one.samefile(two)
    except OSError:  # one of them is not there
        return os.path.realpath(one) == os.path.realpath(two)


def _place(temporary: Path, target: Path) -> None:
    """Rename a file unless the name exists."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise FileExistsError(f"{target} was created in the meantime and is left unchanged") from None
    except OSError:  # no hard links here: an empty file takes the name, and is replaced
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.replace(temporary, target)


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9]", "", platform.node())


def _remove_left(folder: Path, name: str, remove: Callable[[Path], None]) -> None:
    """Remove files that ended processes of this user and machine left; group 1 of the pattern is the process.

    Process numbers are reused, and differ between containers, so the lock is checked too.
    """
    with suppress(OSError):  # a folder that cannot be listed
        for entry in folder.iterdir():
            match = re.fullmatch(name, entry.name, re.DOTALL)
            if match is None or _alive(int(match[1])):
                continue
            with suppress(OSError), _opened(entry) as handle:
                if handle is not None and os.fstat(handle).st_uid == os.geteuid() and _lock(handle):
                    remove(entry)


def _explained(error: Exception, path: Path) -> Exception:
    """Convert errors such as a full disk, from any library, to OSError."""
    code: int | None = getattr(error, "errno", None)
    if code is None and (code_in_text := re.search(r"os error (\d+)", str(error))):
        code = _FAILED.get(int(code_in_text[1]))
    if code is not None and code in _FAILED.values():
        return OSError(code, f"{path} cannot be written: {os.strerror(code)}")
    return error


def write_page(page: str, path: str | PathLike[str] | None) -> str:
    """Return the page, after writing it atomically to a path if one is given."""
    if path is not None:
        check_free(Path(path), force=True)
        write_text(Path(path), page)
    return page
