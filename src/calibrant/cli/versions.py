"""The command ``calibrant env``: versions for a bug report."""

from __future__ import annotations

import json
import platform
import re
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Annotated

import typer

#: Extras that users of the package do not need.
_OURS = re.compile(r"extra == ['\"](?:test|docs)['\"]")


def installed() -> dict[str, str]:
    """Versions of this package, Python, the system, and of every package that it may use."""
    names = {re.split(r"[^\w.-]", one)[0] for one in requires("calibrant") or () if not _OURS.search(one)}
    found = {"calibrant": version("calibrant"), "Python": platform.python_version(), "system": platform.platform()}
    for name in sorted(names - {"calibrant"}, key=str.lower):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def env_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Print the versions of calibrant, Python, the system and the packages it uses, for a bug report."""
    found = installed()
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    width = max(map(len, found))
    for name, value in found.items():
        typer.echo(f"{name:<{width}}  {value}")
