"""The arena lies outside the library, at the project's root."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def arena(monkeypatch):
    """The package, with its parts."""
    monkeypatch.syspath_prepend(str(ROOT))
    for part in ("halves", "keel", "models", "page", "reading", "store", "truth"):
        importlib.import_module(f"benchmarks.arena.{part}")
    return sys.modules["benchmarks.arena"]
