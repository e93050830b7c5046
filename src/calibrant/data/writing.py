"""Files that appear whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any, **options: Any) -> None:
    """Write JSON that other programs read: no NaN; ``options`` are those of :func:`json.dumps`."""
    write_text(path, json.dumps(content, allow_nan=False, **options) + "\n")


def check_free(path: Path, *, force: bool, advice: str = "pass force=True") -> None:
    """OSError where a file cannot be written: there is one that may not be replaced, or no folder for it."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {path.parent}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory: give a file")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists: choose another name, or {advice} to replace it")
