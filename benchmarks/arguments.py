"""Options that several scripts take, each with one name and one meaning."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from calibrant.data.writing import write_text


def parser(
    doc: str | None,
    *,
    repetitions: int | None = None,
    rounds: int | None = None,
    jobs: int | None = None,
    only: str | None = None,
    write: bool = False,
    store: bool = False,
) -> argparse.ArgumentParser:
    """A parser that describes itself by the script's docstring and takes the shared options that have a value here."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if repetitions is not None:
        made.add_argument("--repetitions", type=int, default=repetitions, help="samples a case (default %(default)s)")
    if rounds is not None:
        made.add_argument("--rounds", type=int, default=rounds, help="turns that everybody takes (default %(default)s)")
    if jobs is not None:
        made.add_argument("--jobs", type=int, default=jobs, help="processes (default %(default)s)")
    if only is not None:
        made.add_argument("--only", metavar="TEXT", default="", help=f"only the {only} whose name contains TEXT")
    if write:
        made.add_argument("--write", type=Path, metavar="FILE", help="write the page,, here")
    if store:
        made.add_argument("--store", type=Path, required=True, metavar="FILE", help="lines of results, added to")
    return made


def finish(options: argparse.Namespace, lines: Iterable[str]) -> None:
    """Print a page, and write it where ``--write`` says."""
    text = "\n".join(lines) + "\n"
    print(text)
    if options.write is not None:
        write_text(options.write, text)
