"""The data file of an experiment: rows of numbers below a header that says where they come from."""

from __future__ import annotations

import ast
import csv
import hashlib
import io
import os
import platform
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.data.writing import write_text

ROOT = Path(__file__).parents[1]
DATA = ROOT / "benchmarks" / "data"
_PACKAGE = ROOT / "src" / "calibrant"
#: Digits that are kept: a run on the same machine repeats them, and so do most others.
_DIGITS = 12


@dataclass(frozen=True)
class Kept:
    """What a data file holds.

    Attributes
    ----------
    header : mapping of str
        ``experiment``, ``command``, ``seed``, ``commit``, ``calibrant``, ``python``, ``numpy``, ``machine``,
        ``seconds`` (CPU seconds of all samples), ``packages`` (other distributions with their versions, where they
        matter) and ``modules`` (those of the package that ran, with a hash of each one's code).
    columns : mapping of str to sequences
        Texts, or numbers, of each row.
    """

    header: Mapping[str, str]
    columns: Mapping[str, Sequence[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> np.ndarray:
        """Numbers of a column, NaN where there are none."""
        return np.array([float(value) if value != "" else float("nan") for value in self.columns[name]])

    def where(self, **case: Any) -> Kept:
        """The rows of a case; a LookupError where there is none."""
        held = np.ones(len(self), dtype=bool)
        for name, value in case.items():
            held &= np.array([one == str(value) for one in self.columns[name]], dtype=bool)
        if not held.any():
            raise LookupError(f"no rows of {case}")
        return replace(
            self, columns={k: [v for v, keep in zip(c, held, strict=True) if keep] for k, c in self.columns.items()}
        )

    def distinct(self, name: str) -> list[str]:
        """Values of a column, in the order in which they come."""
        return list(dict.fromkeys(map(str, self.columns[name])))

    def figure(self, name: str, column: str, *some: str) -> str:
        """A text that pages quote: ``"mean"`` or ``"percent"`` of a column in some cases.

        ``figure("percent.1", "covered", "n=1000")`` is a percentage with one digit; NaN does not count.
        """
        kind, _, digits = name.partition(".")
        values = self.where(**dict(one.split("=", 1) for one in some))[column]
        found = f"{np.nanmean(values) * {'mean': 1, 'percent': 100}[kind]:.{digits or 0}f}"
        return found.replace("-", "−")

    @property
    def changed(self) -> list[str]:
        """Modules of the package that ran and are not what they were."""
        were = dict(one.split("=") for one in self.header["modules"].split())
        return sorted(name for name, was in were.items() if _hash_of(name) != was)

    @classmethod
    def read(cls, path: Path) -> Kept:
        """From its file."""
        header, lines = {}, []
        with path.open(encoding="utf-8", newline="") as file:
            for line in file:
                if line.startswith("# "):
                    name, _, value = line[2:].partition(": ")
                    header[name] = value.rstrip("\n")
                else:
                    lines.append(line)
        names, *rows = csv.reader(lines)
        return cls(header, {name: [row[i] for row in rows] for i, name in enumerate(names)})

    def write(self, path: Path) -> None:
        """To its file, which is replaced whole."""
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"# {name}: {value}" for name, value in self.header.items()]
        lines += [",".join(map(_cell, self.columns))]
        lines += [",".join(map(_cell, row)) for row in zip(*self.columns.values(), strict=True)]
        write_text(path, "\n".join(lines) + "\n")


def header(
    experiment: str, command: str, seed: str, seconds: float, modules: Iterable[str], packages: Iterable[str] = ()
) -> dict[str, str]:
    """Where numbers come from: script, arguments, seed, commit, versions, machine, cost and code."""
    return {
        "experiment": experiment,
        "command": command,
        "seed": seed,
        "commit": commit(),
        "calibrant": version("calibrant"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}",
        "packages": ", ".join(f"{name} {_version(name)}" for name in packages),
        "seconds": f"{seconds:.1f}",
        "modules": " ".join(f"{name}={_hash_of(name)}" for name in sorted(modules)),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    found = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(found, platform.machine())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"


def commit() -> str:
    """The commit of the checkout, with a ``+`` where the package has changes beyond it; empty outside a checkout."""
    try:
        found = _git("rev-parse", "--short=10", "HEAD")
        return found + ("+" if _git("status", "--porcelain", "--", str(_PACKAGE)) else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def code() -> str:
    """A hash of the package's code: samples of one data file are all of the same."""
    whole = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        whole.update(path.read_bytes())
    return whole.hexdigest()[:12]


def loaded() -> list[str]:
    """Modules of the package that are loaded."""
    return [name for name, module in sys.modules.items() if name.startswith("calibrant.") and module is not None]


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


@cache
def _hash_of(name: str) -> str:
    path = ROOT / "src" / Path(*name.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return hash_of_code(file.read_text(encoding="utf-8"))
    return "gone"


def hash_of_code(source: str) -> str:
    """A hash of the source without docstrings, comments and empty lines, which change no answer."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            for row in range(first.lineno - 1, first.end_lineno or first.lineno):
                lines[row] = ""
    code = "\n".join(line.rstrip() for line in lines if line.strip())
    return hashlib.sha256(code.encode()).hexdigest()[:8]


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.{_DIGITS}g}"
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n') else text
