"""The command ``calibrant``: entry point. The commands themselves are in :mod:`.commands`."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point; says which extra to install when typer or polars is missing."""
    try:
        from .commands import app
    except ImportError as error:
        sys.stderr.write(f'calibrant: the command needs more packages ({error}): pip install "calibrant[cli]"\n')
        raise SystemExit(2) from None
    app()
