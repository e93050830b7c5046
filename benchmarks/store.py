"""Simulations that go on where they were stopped: what each sample says is a line of a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def found_of(
    store: Path, asked: Iterable[tuple[Any, ...]], found: Callable[..., dict[str, Any]]
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """What was found of every key: that in the store, and of those asked for what is missing there, which is added."""
    with lines_of(store) as (there, add):
        known = {tuple(key): result for key, result in there}
        for key in asked:
            if key not in known:
                known[key] = found(*key)
                add([key, known[key]])
    return known


@contextmanager
def lines_of(store: Path) -> Iterator[tuple[list[Any], Callable[[Any], None]]]:
    """What the lines of a file say, and what adds one. A last line that was cut off, by a kill or a full disk, goes."""
    with store.open("a+b") as file:
        file.seek(0)
        text = file.read()
        file.truncate(text.rfind(b"\n") + 1)

        def add(content: Any) -> None:
            file.write(json.dumps(content).encode() + b"\n")
            file.flush()

        yield [json.loads(line) for line in text.split(b"\n")[:-1]], add
