"""Text that commands print, and the files that they write."""

from __future__ import annotations

import json
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeVar, cast

import typer

from ..data.printing import Audience, printable, printable_lines
from ..data.writing import check_free, replacing, scratch_file
from ..exceptions import CalibrantWarning

R = TypeVar("R")
#: Endings of the names of pictures that matplotlib writes.
_PICTURES = (".png", ".pdf", ".svg")
#: Kind of file that an option writes.
_CONTENTS = {"html": "page", "plot": "picture"}


@dataclass(frozen=True, kw_only=True)
class PrintOptions:
    """Printed output, and the page beside it."""

    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False
    html: Annotated[Path | None, typer.Option(help="Write an HTML page to this file; - is standard output.")] = None
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False

    def text_of(self, result: Any) -> str:
        """Text that a command prints for a result."""
        return json.dumps(result.to_dict(), allow_nan=False) if self.as_json else printable_lines(str(result))


def for_command(result: R) -> R:
    """A report or a comparison whose advice names options of the command."""
    return cast(R, replace(cast(Any, result), audience=Audience.COMMAND))


def warn(text: str) -> None:
    """Warn on standard error, as all warnings are shown."""
    warnings.warn(text, CalibrantWarning, stacklevel=2)


def numbers_of(option: str, text: str) -> list[float]:
    """Numbers separated by commas."""
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} must be a number or numbers separated by commas; got {text!r}") from None


def check_option(option: str, value: str, allowed: Iterable[str]) -> str:
    """Check that an option is one of the allowed words."""
    words = list(allowed)
    if value not in words:
        raise ValueError(f"{option} must be one of {', '.join(words)}; got {value!r}")
    return value


class Output:
    """A file to be written by a command, ``-`` for standard output; checked before anything is computed.

    ``taken`` contains the files that it must not be: input files and other files to be written; a list for several.
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
    def opened(self) -> Iterator[BinaryIO]:
        """A file to write to, which is then given its name, or copied to standard output."""
        if not self.standard:
            with replacing(Path(str(self.path)), force=self.force) as file:
                yield file
            return
        with scratch_file() as path, path.open("x+b") as file:
            yield file
            file.seek(0)
            sys.stdout.flush()
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()

    def write(self, content: Callable[[], str | bytes]) -> None:
        """Write text or bytes, if there is a path."""
        if self.path is not None:
            with self.opened() as file:
                written = content()
                file.write(written.encode() if isinstance(written, str) else written)

    def draw(self, result: Any) -> None:
        """Draw a result without a display, if there is a path."""
        if self.path is not None:
            import matplotlib

            matplotlib.use("Agg")
            from matplotlib import pyplot as plt

            figure = result.plot().figure_
            kind = "png" if self.standard else self.path.suffix.lower().removeprefix(".")
            try:
                with self.opened() as file:
                    figure.savefig(file, format=kind, dpi=150)
            finally:
                plt.close(figure)


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
