"""Simulations that go on where they were stopped: what each sample says is a line of a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np


def found_of(
    store: Path, asked: Iterable[tuple[Any, ...]], found: Callable[..., dict[str, Any]]
) -> dict[tuple[Any, ...], dict[str, Any]]:
    """What was found of every key: that in the store, and of those asked for what is missing there, which is added."""
    known = {}
    if store.exists():
        for line in store.read_text(encoding="utf-8").splitlines():
            key, result = json.loads(line)
            known[tuple(key)] = result
    with store.open("a", encoding="utf-8") as file:
        for key in asked:
            if key not in known:
                known[key] = found(*key)
                file.write(json.dumps([key, known[key]]) + "\n")
                file.flush()
    return known


def share(hits: list[bool]) -> str:
    """A share in % with its standard error, that of half a hit more where there is none or nothing else."""
    if not hits:
        return "-"
    n, p = len(hits), sum(hits) / len(hits)
    q = min(max(p, 0.5 / n), 1 - 0.5 / n)
    return f"{100 * p:.1f} ± {100 * np.sqrt(q * (1 - q) / n):.1f}"
