"""How commands end: complaints and warnings in one line each, exit codes, and the files that they write."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import typer

from ..data.types import CalibrantWarning
from ..data.writing import check_free, replacing

#: Endings of the names of pictures that matplotlib writes.
_PICTURES = (".png", ".pdf", ".svg")
#: What the library calls things, and what the command calls them.
_OPTIONS = (
    (r"pass another `binned` to the Accumulator", "read the file whole with --load"),
    (r"pass labels=\[\.\.\.\] to the Accumulator", "pass --labels a,b,c"),
    (
        r"pass labels=range\(\d+\) to say so, or labels=range\(1, \d+\)",
        "pass --labels 0,1,… to say so, or --labels 1,2,…",
    ),
    (r", such as labels=range\(1, \d+\)", " (they count from 1?)"),
    (r"labels=\[\.\.\.\]", "--labels a,b,c"),
    (r"use PlattScaling\(input='margin'\)", "choose others with --methods, such as platt"),
    (r"input='(\w+)'", r"--input \1"),
    (r"\bpos_label=", "--pos-label "),
    (r", or pass an array to go by position", ""),
)


def guarded(action: Callable[[], Any]) -> Any:
    """Run; a warning or a complaint about input becomes one line on standard error, the latter with exit code 2."""

    def tell(
        message: Warning | str, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None
    ) -> None:
        typer.echo(f"calibrant: warning: {_in_options(str(message))}", err=True)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", CalibrantWarning)
            warnings.showwarning = tell
            return action()
    except (ValueError, TypeError, OSError, ImportError, pl.exceptions.PolarsError) as error:
        message = _in_options(" ".join(str(error).split()))
        if isinstance(error, pl.exceptions.PolarsError):
            # Its first sentence: the rest is advice on options of polars.
            message = f"the file cannot be read: {message.split(' The current offset')[0].split(' You might want')[0]}"
        typer.echo(f"calibrant: {message}", err=True)
        raise typer.Exit(2) from None


def as_text(result: Any, as_json: bool) -> str:
    """What a command prints of a result."""
    return json.dumps(result.to_dict(), allow_nan=False) if as_json else str(result)


def check_option(option: str, value: str, allowed: Iterable[str]) -> str:
    """Judge an option that must be one of some words."""
    words = list(allowed)
    if value not in words:
        raise ValueError(f"{option} must be one of {', '.join(words)}; got {value!r}")
    return value


def check_output(option: str, path: Path | None, taken: Mapping[str, Any], *, force: bool) -> None:
    """Refuse an output that would replace what the command reads or writes beside it, or without --force any file."""
    if path is None:
        return
    for what, other in taken.items():
        if other is not None and Path(other).resolve() == path.resolve():
            raise ValueError(f"{option} {path} is {what}: choose another name")
    check_free(path, force=force, advice="pass --force")


def check_picture(path: Path | None, file: str, *, force: bool) -> None:
    """Refuse a picture that cannot be written."""
    if path is not None and path.suffix.lower() not in _PICTURES:
        raise ValueError(f"--plot must name a file ending in {', '.join(_PICTURES)}; got {path}")
    check_output("--plot", path, {"the file that is read": file}, force=force)


def draw(display: Any, path: Path) -> None:
    """Draw into a file, without a screen."""
    import matplotlib

    matplotlib.use("Agg")
    figure = display.plot().figure_
    with replacing(path) as temporary:
        figure.savefig(temporary, format=path.suffix.lower()[1:], dpi=150)


def tell_written(*paths: Path | None) -> None:
    """Say on standard error which files were written."""
    for path in paths:
        if path is not None:
            typer.echo(f"wrote {path}", err=True)


def _in_options(message: str) -> str:
    """A refusal of the library in the words of the command."""
    for said, meant in _OPTIONS:
        message = re.sub(said, meant, message)
    return message
