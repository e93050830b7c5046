"""Options that several scripts take, each with one name and one meaning."""

from __future__ import annotations

import argparse
from pathlib import Path


def parser(
    doc: str | None,
    *,
    repetitions: int | None = None,
    rounds: int | None = None,
    jobs: int | None = None,
    only: str | None = None,
    write: bool = False,
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
        made.add_argument("--write", type=Path, metavar="FILE", help="write the page, or its section, here")
    return made
