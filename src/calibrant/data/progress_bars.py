"""Bars that rich draws: on a terminal, and in the cell of a notebook. They leave nothing behind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from time import perf_counter
from typing import Any


class Bar(ABC):
    """A bar that is begun when it is first drawn, and begun anew where it is about something else."""

    _about: tuple[str, int | None] | None = None
    _progress: Any = None

    def draw(self, title: str, done: int, total: int | None, began: float) -> None:
        """Show what goes on, how far it is and since when; without a ``total`` only that it goes on."""
        if self._about != (title, total):
            self.close()
            self._progress = self._begun(total)
            self._progress.add_task(title, total=total, completed=done)
            self._progress.tasks[0].start_time = began
            self._about = (title, total)
        self._progress.update(self._progress.tasks[0].id, completed=done)
        self._put()

    def close(self) -> None:
        """Take it away."""
        if self._about is not None:
            self._about = None
            self._remove()

    def _begun(self, total: int | None) -> Any:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        columns: tuple[Any, ...] = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        if total is not None:
            left = (TextColumn("left"), TimeRemainingColumn())
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), *left)
        about: dict[str, Any] = {"auto_refresh": False, "get_time": perf_counter, "speed_estimate_period": 600.0}
        return Progress(*columns, **about, **self._options(total))

    @abstractmethod
    def _options(self, total: int | None) -> dict[str, Any]:
        """What is particular to this place."""

    @abstractmethod
    def _put(self) -> None:
        """Show it as it is now."""

    @abstractmethod
    def _remove(self) -> None:
        """Leave the place as it was."""


class TerminalBar(Bar):
    """On a terminal; ``stays`` leaves the last picture of a bar, also in a file."""

    def __init__(self, stream: Any, *, stays: bool = False) -> None:
        self._stream, self._stays = stream, stays

    def _options(self, total: int | None) -> dict[str, Any]:
        from rich.console import Console

        # What others print is not caught: it would be lost where they change sys.stdout in the meantime.
        plain = {"redirect_stdout": False, "redirect_stderr": False}
        return {"console": Console(file=self._stream), "transient": not self._stays or total is None, **plain}

    def _put(self) -> None:
        if not self._progress.live.is_started:
            self._progress.start()
        self._progress.refresh()

    def _remove(self) -> None:
        self._progress.stop()


class NotebookBar(Bar):
    """In the cell of a notebook, as a display that is updated: it needs no widgets, which rich's own way does."""

    _handle: Any = None

    def _options(self, total: int | None) -> dict[str, Any]:
        return {}

    def _put(self) -> None:
        shown = self._progress.make_tasks_table(self._progress.tasks)
        if self._handle is None:
            from IPython.display import DisplayHandle

            made: Any = DisplayHandle
            self._handle = made()
            self._handle.display(shown)
        else:
            self._handle.update(shown)

    def _remove(self) -> None:
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)
