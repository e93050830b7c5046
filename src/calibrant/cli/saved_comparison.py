"""A comparison of calibrators as `calibrant fix` uses it: just made, or read from a file."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

#: As in ``reporting/comparison.py``, which this command need not load.
_FORMAT, _VERSION = "calibrant-comparison", 1


@dataclass(frozen=True)
class SavedComparison:
    """The choice, the comparison as JSON holds it, and what to print of it."""

    chosen: str
    found: dict[str, Any]
    text: str

    def judge(self, classes: tuple[Any, ...], kind: str, digest: str) -> None:
        """ValueError for other classes or scores than those compared; other rows of these are said."""
        if kind != self.found["input"]:
            raise ValueError(f"--from is a comparison of --input {self.found['input']}; got --input {kind}")
        if list(classes) != self.found["classes"]:
            raise ValueError(
                f"--from is a comparison for the classes {_some(self.found['classes'])}, and these rows have "
                f"{_some(list(classes))}"
            )
        if digest != self.found["digest"]:
            typer.echo("calibrant: the comparison of --from is of other rows than these, which are fitted to", err=True)


def read_comparison(path: Path) -> SavedComparison:
    """What `calibrant compare --save` or `--json` wrote; ValueError says what is wrong with anything else."""
    from ..calibrators.select import NAMED

    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"--from {path}: this is no JSON ({error})") from error
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise ValueError(f"--from {path}: this is nothing that calibrant compare --save or --json wrote")
    if found.get("version") != _VERSION:
        raise ValueError(
            f"--from {path}: version {found.get('version')!r} of the format is not known here; compare again"
        )
    kinds = {"chosen": str, "verdict": str, "title": str, "digest": str, "input": str, "classes": list}
    if bad := [name for name, kind in kinds.items() if not isinstance(found.get(name), kind)]:
        raise ValueError(f"--from {path}: {', '.join(bad)} missing or of another kind")
    if found["chosen"] not in NAMED:
        raise ValueError(f"--from {path}: the choice must be one of {', '.join(NAMED)}; got {found['chosen']!r}")
    return SavedComparison(
        found["chosen"], found, "\n".join([found["title"], "", *textwrap.wrap(found["verdict"], 98)])
    )


def _some(classes: list[Any]) -> str:
    shown = ", ".join(map(str, classes[:6]))
    return f"{shown}, … ({len(classes)})" if len(classes) > 6 else shown
