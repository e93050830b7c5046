"""The package stays small: what a change adds is taken from somewhere, or the limit is raised in that change."""

import importlib
from pathlib import Path

import pytest

MOST_LINES, MOST_MODULES, MOST_IN_ONE = 27_360, 217, 540

pytestmark = pytest.mark.skipif(
    not (Path(__file__).parents[1] / "benchmarks").is_dir(), reason="not in a checkout: the count is there"
)


@pytest.fixture
def counted(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))
    return importlib.import_module("benchmarks.code_lines")


def test_what_counts_as_code(counted):
    source = """'Doc.'

import os
from os import (
    path,
)

# why
x = 1  # what

def f():
    "Doc."
    return (
        x
    )
"""
    assert counted.code_lines(source) == 5


def test_lines_and_modules_stay_within_their_limits(counted):
    lines = counted.modules()
    assert sum(lines.values()) <= MOST_LINES
    assert len(lines) <= MOST_MODULES


def test_no_file_is_too_long():
    package = Path(__file__).parents[1] / "src" / "calibrant"
    long = {
        str(p): n for p in package.rglob("*.py") if (n := len(p.read_text(encoding="utf-8").splitlines())) > MOST_IN_ONE
    }
    assert not long
