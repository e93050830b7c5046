"""How commands end: complaints and warnings in one line each, exit codes, and the files that they write."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import polars as pl
import typer

from ..data.printing import Audience, printable, printable_lines
from ..data.writing import check_free, replacing, scratch_file
from ..exceptions import CalibrantWarning

R = TypeVar("R")
#: Endings of the names of pictures that matplotlib writes.
_PICTURES = (".png", ".pdf", ".svg")
#: Kind of file that an option writes.
_CONTENTS = {"html": "page", "plot": "picture"}
#: Advice of the library, and the same in terms of the command.
_OPTIONS = (
    (r"pass another `binned` to the Accumulator", "read the file whole with --load"),
    (r"on_invalid='drop'", "--on-invalid drop"),
    (r"pass labels=\[\.\.\.\] to the Accumulator", "pass --labels a,b,c"),
    (
        r"pass labels=range\(\d+\) to say so, or labels=range\(1, \d+\)",
        "pass --labels 0,1,… to say so, or --labels 1,2,…",
    ),
    (r", such as labels=range\(1, \d+\)", " (they count from 1?)"),
    (r"labels=\[\.\.\.\]", "--labels a,b,c"),
    (r"use PlattScaling\(input='margin'\)", "choose others with --calibrators, such as platt"),
    (r"input='(\w+)'", r"--input \1"),
    (r"\bpos_label=", "--pos-label "),
    (r"pass groups=", "pass --groups"),
    (r", or pass an array to go by position", ""),
)


def guarded(action: Callable[[], Any]) -> Any:
    """Run; a warning or a complaint about input becomes one line on standard error, the latter with exit code 2."""

    def tell(
        message: Warning | str, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None
    ) -> None:
        typer.echo(f"calibrant: warning: {printable(_in_options(str(message)))}", err=True)

    _end_cleanly()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", CalibrantWarning)
            warnings.showwarning = tell
            return action()
    except BrokenPipeError:
        raise
    except (ValueError, TypeError, OSError, ImportError, pl.exceptions.PolarsError) as error:
        message = _in_options(" ".join(str(error).split()))
        if isinstance(error, pl.exceptions.PolarsError):
            # Its first sentence: the rest is advice on options of polars.
            message = f"the file cannot be read: {message.split(' The current offset')[0].split(' You might want')[0]}"
        typer.echo(f"calibrant: {printable(message)}", err=True)
        raise typer.Exit(2) from None


def _end_cleanly() -> None:
    """Let SIGTERM and SIGHUP end the command as an exception does, so that temporary files go."""

    def end(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # Under nohup, or inside another program, handlers that were set stay.
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            with suppress(ValueError):  # not the main thread
                signal.signal(number, end)


@dataclass(frozen=True, kw_only=True)
class PrintOptions:
    """Printed output, and the page beside it."""

    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False
    html: Annotated[Path | None, typer.Option(help="Write an HTML page to this file; - is standard output.")] = None
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False

    def text_of(self, result: Any) -> str:
        """Text that a command prints for a result."""
        return json.dumps(result.to_dict(), allow_nan=False) if self.as_json else printable_lines(str(result))


def for_command(result: R) -> R:
    """A report or a comparison whose advice names options of the command."""
    return cast(R, replace(cast(Any, result), audience=Audience.COMMAND))


def warn(text: str) -> None:
    """Warn on standard error, as :func:`guarded` shows warnings."""
    warnings.warn(text, CalibrantWarning, stacklevel=2)


def numbers_of(option: str, text: str) -> list[float]:
    """Numbers with commas between them."""
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} must be a number, or numbers with commas between them; got {text!r}") from None


def check_option(option: str, value: str, allowed: Iterable[str]) -> str:
    """Judge an option that must be one of some words."""
    words = list(allowed)
    if value not in words:
        raise ValueError(f"{option} must be one of {', '.join(words)}; got {value!r}")
    return value


class Output:
    """A file that a command is to write, ``-`` for standard output; refused before anything is computed.

    ``taken`` are the files that it must not be, those read and those written beside it; a list where there are many.
    """

    def __init__(self, option: str, path: Path | None, taken: Mapping[str, Any], *, force: bool) -> None:
        self.path = path
        self.force = force
        if path is not None and not self.standard:
            single = {
                what: next((f for f in other if path.exists() and path.samefile(f)), None)
                if isinstance(other, (list, tuple))
                else other
                for what, other in taken.items()
            }
            try:
                check_free(path, force=force, advice="pass --force", taken=single)
            except (OSError, ValueError) as error:
                raise type(error)(f"{option} {error}") from None

    @property
    def standard(self) -> bool:
        """Whether this is standard output."""
        return str(self.path) == "-"

    @contextmanager
    def temporary(self) -> Iterator[Path]:
        """A path to write to, whose file is then given its name, or copied to standard output."""
        if not self.standard:
            with replacing(Path(str(self.path)), force=self.force) as temporary:
                yield temporary
            return
        with scratch_file() as path:
            yield path
            sys.stdout.flush()
            with path.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()

    def write(self, content: Callable[[], str | bytes]) -> None:
        """Write a text or bytes, if there is anywhere to write them to."""
        if self.path is not None:
            with self.temporary() as temporary:
                written = content()
                temporary.write_bytes(written.encode() if isinstance(written, str) else written)

    def draw(self, result: Any) -> None:
        """Draw a result without a screen, if there is anywhere to draw it."""
        if self.path is not None:
            import matplotlib

            matplotlib.use("Agg")
            figure = result.plot().figure_
            kind = "png" if self.standard else self.path.suffix.lower().removeprefix(".")
            with self.temporary() as temporary:
                figure.savefig(temporary, format=kind, dpi=150)


class Outputs:
    """All files that a command writes: each differs from the others and from those that it reads."""

    def __init__(self, read: Mapping[str, Any], *, force: bool, **paths: Path | None) -> None:
        taken = dict(read)
        self._files = {}
        for name, path in paths.items():
            if name == "plot" and path is not None and str(path) != "-" and path.suffix.lower() not in _PICTURES:
                raise ValueError(f"--plot must name a file ending in {', '.join(_PICTURES)}; got {path}")
            self._files[name] = Output(f"--{name}", path, taken, force=force)
            taken[f"the {_CONTENTS.get(name, 'file')} of --{name}"] = path
        if len(piped := [name for name, file in self._files.items() if file.standard]) > 1:
            raise ValueError(f"--{' and --'.join(piped)} cannot both be standard output")

    def __getitem__(self, name: str) -> Output:
        return self._files[name]

    def show(self, text: str) -> None:
        """Print a result, on standard error where standard output holds a file, and name the files written."""
        typer.echo(text, err=any(file.standard for file in self._files.values()))
        for file in self._files.values():
            if file.path is not None and not file.standard:
                typer.echo(f"wrote {printable(str(file.path))}", err=True)


def _in_options(message: str) -> str:
    """A message of the library in terms of the command."""
    for pattern, meant in _OPTIONS:
        message = re.sub(pattern, meant, message)
    return message
