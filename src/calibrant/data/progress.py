"""A progress bar with the remaining time, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(title: str, total: int, *, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """Yields what advances the bar by some steps; draws nothing unless ``shown``."""
    if not shown:
        yield lambda steps: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        job = bar.add_task(title, total=total)
        yield lambda steps: bar.advance(job, steps)


@contextmanager
def working(title: str, *, shown: bool = True) -> Iterator[None]:
    """While something goes on whose end is not known, what it is and for how long; draws nothing unless ``shown``."""
    if not shown:
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        bar.add_task(title, total=None)
        yield


def on_terminal() -> bool:
    """Whether standard error is a terminal, where a bar can be seen."""
    from rich.console import Console

    return Console(stderr=True).is_terminal
