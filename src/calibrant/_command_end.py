"""How commands end: complaints and warnings in one line each, and exit codes."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import polars as pl
import typer

from ._types import CalibrantWarning

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


def _in_options(message: str) -> str:
    """A refusal of the library in the words of the command."""
    for said, meant in _OPTIONS:
        message = re.sub(said, meant, message)
    return message
