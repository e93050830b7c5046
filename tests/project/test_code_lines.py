"""The package stays small: what a change adds is taken from somewhere, or the limit is raised in that change."""

import ast
import importlib
from pathlib import Path

import pytest

MOST_LINES, MOST_MODULES, MOST_IN_ONE = 36_237, 279, 400

pytestmark = pytest.mark.skipif(
    not (Path(__file__).parents[2] / "benchmarks").is_dir(), reason="not in a checkout: the count is there"
)


@pytest.fixture
def counted(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
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


def beside_docstrings(path):
    """Lines of a file that are not of a docstring: these are as long as what they describe needs."""
    source = path.read_text(encoding="utf-8")
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    first = [node.body[0] for node in ast.walk(ast.parse(source)) if isinstance(node, documented) and node.body]
    texts = [one for one in first if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)]
    return len(source.splitlines()) - sum(one.end_lineno - one.lineno + 1 for one in texts)


def test_no_file_is_too_long():
    package = Path(__file__).parents[2] / "src" / "calibrant"
    assert not {str(p): n for p in package.rglob("*.py") if (n := beside_docstrings(p)) > MOST_IN_ONE}
