"""Progress bars of calls on the terminal or in a notebook, shown from the third second on.

Every public function opens a call (``working``, applied by the decorator ``public_function``), and loops inside it
report their progress (``counted``, ``progress_bar``). The outermost call is shown with its first loop, so there is at
most one bar, drawn by a thread that sleeps for the first two seconds. It is shown only if standard error is a terminal
or the cell of a notebook, in the main thread of the main process, and if rich is installed; never in files, pipes,
captured output, tests and workers.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from time import perf_counter
from typing import Any, TypeVar, cast

T = TypeVar("T")

#: Seconds before anything is shown, and seconds between updates.
DELAY, OFTEN = 2.0, 0.1
#: Environment variable that disables all bars not requested explicitly, by any of these values.
VARIABLE, OFF = "CALIBRANT_PROGRESS", ("0", "off", "false", "no")


@contextmanager
def working(title: str, *, shown: bool | None = None) -> Iterator[None]:
    """Show the name and duration of a call while it runs; also a decorator.

    ``shown``: None shows it after two seconds if it is visible, True at once, False not at all. A call within another
    one is part of the outer call, to which True and False then apply.
    """
    global _call
    if not _in_main_thread() or (shown is None and (_call is not None or not _is_visible())):
        yield
        return
    outer = _call
    call = _call = _Call(title) if outer is None else outer
    call.hide()
    if shown is not False:
        call.show(at_once=bool(shown))
    try:
        yield
    finally:
        if outer is None:
            _call = None
            call.hide()


@dataclass(slots=True, eq=False)
class _Loop:
    """Progress of a loop."""

    title: str
    total: int
    done: int = 0

    def advance(self, number: int) -> None:
        self.done += number


@contextmanager
def _loop(title: str, total: int) -> Iterator[_Loop]:
    """Register a loop of the running call, if any."""
    call, loop = _call if _in_main_thread() else None, _Loop(title, total)
    if call is None:
        yield loop
        return
    call.loops.append(loop)
    try:
        yield loop
    finally:
        call.last = loop
        if loop in call.loops:
            call.loops.remove(loop)


@contextmanager
def progress_bar(title: str, total: int, *, shown: bool | None = None) -> Iterator[Callable[[int], None]]:
    """Yield a function that advances the bar by some steps; for ``shown`` see :func:`working`."""
    with working(title, shown=shown), _loop(title, total) as loop:
        yield loop.advance


def counted(items: Iterable[T], title: str, total: int | None = None) -> Iterator[T]:
    """Yield the items, each as a step of the running call; ``total`` is their number."""
    # Items without a length come with a total: who gives neither is told by len.
    with _loop(title, len(cast(Sized, items)) if total is None else total) as loop:
        for item in items:
            yield item
            loop.done += 1


class _Call:
    """The outermost call, its running loops, and the thread that draws it."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.began = perf_counter()
        self.loops: list[_Loop] = []
        self.last: _Loop | None = None
        self.bar: _Bar | None = None
        self.thread: threading.Thread | None = None
        self._ended = threading.Event()

    def show(self, *, at_once: bool) -> None:
        """Draw it at once and keep the last state, or after some seconds and until it is hidden."""
        if at_once:
            import_module("rich")  # who asks for a bar is told that it is missing
        self._ended = threading.Event()
        self.thread = threading.Thread(target=self._draw, args=(at_once,), name="calibrant progress", daemon=True)
        self.thread.start()

    def hide(self) -> None:
        """Stop drawing it; nothing is left when this returns."""
        self._ended.set()
        if self.thread is not None:
            self.thread.join()

    def _draw(self, at_once: bool) -> None:
        ended = self._ended
        if not at_once and ended.wait(DELAY):
            return
        with suppress(ImportError, OSError, ValueError):  # no rich; a terminal that went away, a file that was closed
            bar = _Bar(stays=at_once)
            try:
                self._draw_on(bar, at_once)
                self.bar = bar
                while not ended.wait(OFTEN):
                    self._draw_on(bar, at_once)
                self._draw_on(bar, at_once)  # how it ended, where that stays
            finally:
                bar.close()

    def _draw_on(self, bar: _Bar, at_once: bool) -> None:
        """The first loop that has steps to count, if any."""
        loop = next((one for one in tuple(self.loops) if one.total > 1 or at_once), self.last if at_once else None)
        if loop is None:
            bar.draw(self.title, 0, None, self.began)
        else:
            title = loop.title if loop.title == self.title else f"{self.title}: {loop.title}"
            bar.draw(title, loop.done, loop.total, self.began)


class _Bar:
    """A bar drawn by rich: on a terminal, or in the cell of a notebook by a display that is updated (without widgets).

    ``stays`` keeps the last state, also in a file; otherwise the bar is removed.
    """

    def __init__(self, *, stays: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self._title: tuple[str, int | None] | None = None
        self._handle: Any = None
        self._progress = Progress(
            *(TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[steps]}")),
            *(TimeElapsedColumn(), TextColumn("{task.fields[left]}"), TimeRemainingColumn()),
            console=Console(file=sys.stderr),
            auto_refresh=False,
            transient=not stays,
            get_time=perf_counter,
            speed_estimate_period=600.0,
            redirect_stdout=False,  # what others print is not caught: it would be lost where they change sys.stdout
            redirect_stderr=False,
        )

    def draw(self, title: str, done: int, total: int | None, began: float) -> None:
        """Show title, progress and elapsed time; without a ``total`` no progress."""
        progress = self._progress
        if self._title != (title, total):
            for task in progress.task_ids:
                progress.remove_task(task)
            progress.add_task(title, total=total, steps="", left="" if total is None else "left")
            progress.tasks[0].start_time = began
            self._title = title, total
        progress.update(progress.task_ids[0], completed=done, steps="" if total is None else f"{done}/{total}")
        if not _in_notebook():
            progress.start()
            progress.refresh()
            return
        table = progress.make_tasks_table(progress.tasks)
        if self._handle is None:
            self._handle = import_module("IPython.display").DisplayHandle()
            self._handle.display(table)
        else:
            self._handle.update(table)

    def close(self) -> None:
        """Remove the bar unless it stays."""
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)
        elif self._title is not None:
            self._progress.stop()


_call: _Call | None = None


def _in_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None and type(sys.stderr).__module__.startswith("ipykernel")


def _is_visible() -> bool:
    """Whether a call that did not request a bar would be visible."""
    if not _in_notebook() and not _is_terminal(sys.stderr):
        return False
    processes: Any = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.current_process().name != "MainProcess":
        return False
    return "PYTEST_CURRENT_TEST" not in os.environ and os.environ.get(VARIABLE, "").lower() not in OFF


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # none at all, or one that was closed
        return False
