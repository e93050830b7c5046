"""How far a call is: a bar on the terminal or in the notebook, from its third second on.

Whatever a user calls opens a call (``working``, which :func:`calibrant.data.public_function.verb` does for every verb),
and loops inside of it say how far they are (``counted``, ``progress_bar``). The outermost call is shown with its first
loop, so there is one bar at most, by a thread that sleeps for the first two seconds. It is for the eyes of whoever
waits: shown where standard error is a terminal or the cell of a notebook, in the main thread of the main process, and
where rich is there; never in files, pipes, captured output, tests and workers.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter, sleep
from typing import Any, TypeVar

from .progress_bars import Bar, NotebookBar, TerminalBar

T = TypeVar("T")

#: Seconds that a call takes before anything is shown, and seconds between two pictures.
DELAY, OFTEN = 2.0, 0.1
#: Environment variable that switches all bars off that were not asked for, by any of these values.
VARIABLE, OFF = "CALIBRANT_PROGRESS", ("0", "off", "false", "no")


@contextmanager
def working(title: str, *, shown: bool | None = None) -> Iterator[None]:
    """While something goes on, what it is and for how long; also a decorator.

    ``shown``: None after two seconds where somebody can see it, True at once, False not at all. What is within another
    call is part of that one, which True and False then are about.
    """
    call = _opened(title, shown)
    try:
        yield
    finally:
        if call is not None:
            _close(call)


@contextmanager
def progress_bar(title: str, total: int, *, shown: bool | None = None) -> Iterator[Callable[[int], None]]:
    """Yields what advances the bar by some steps; ``shown`` as of :func:`working`."""
    with working(title, shown=shown):
        call = _mine()
        if call is None:
            yield lambda steps: None
            return
        loop = call.begin(title, total)
        try:
            yield loop.advance
        finally:
            call.end(loop)


def counted(items: Iterable[T], title: str, total: int | None = None) -> Iterator[T]:
    """The items, one after the other, each a step of the call that is going on; ``total`` is their number."""
    call = _mine()
    if call is None:
        yield from items
        return
    # Items without a length come with a total: who gives neither is told by len.
    loop = call.begin(title, len(items) if total is None else total)  # type: ignore[arg-type]
    try:
        for item in items:
            yield item
            loop.done += 1
    finally:
        call.end(loop)


@dataclass(slots=True, eq=False)
class _Loop:
    """How far a loop is."""

    title: str
    total: int
    done: int = 0

    def advance(self, number: int) -> None:
        self.done += number


@dataclass(slots=True, eq=False)
class _Call:
    """The outermost call, and the loops that are going on in it; ``bar`` is None where nothing is to be shown."""

    title: str
    bar: Bar | None
    forced: bool = False
    began: float = field(default_factory=perf_counter)
    loops: list[_Loop] = field(default_factory=list)

    def begin(self, title: str, total: int) -> _Loop:
        loop = _Loop(title, total)
        self.loops.append(loop)
        if self.forced:
            self.draw()
        return loop

    def end(self, loop: _Loop) -> None:
        if self.forced:
            self.draw()
        if loop in self.loops:
            self.loops.remove(loop)

    def draw(self) -> None:
        """Show the first loop that has steps to count, if any."""
        with _lock:
            if self.bar is None or self is not _call:
                return
            loop = next((one for one in tuple(self.loops) if one.total > 1 or self.forced), None)
            try:
                if loop is None:
                    self.bar.draw(self.title, 0, None, self.began)
                else:
                    about = loop.title if loop.title == self.title else f"{self.title}: {loop.title}"
                    self.bar.draw(about, loop.done, loop.total, self.began)
            except (ImportError, OSError, ValueError):  # no rich; a terminal that went away, a file that was closed
                self.bar = None
                if self.forced:
                    raise


_call: _Call | None = None
_lock = threading.RLock()
_begun = threading.Event()
_watcher: threading.Thread | None = None


def _opened(title: str, shown: bool | None) -> _Call | None:
    """The call that begins, or None where it is part of another or where there is nobody to see it."""
    global _call
    if not _in_main_thread() or (shown is None and _call is not None):
        return None
    bar = None if shown is False else _bar(shown)
    if _call is not None:
        _call.bar, _call.forced = (bar, True) if shown else (None, False)
        return None
    if bar is None and shown is None:
        return None
    _call = call = _Call(title, bar, bool(shown))
    if bar is not None:
        _watch()
    return call


def _close(call: _Call) -> None:
    global _call
    with _lock:
        _call = None
        if call.bar is not None:
            call.bar.close()


def _mine() -> _Call | None:
    """The call that is going on, where this is its thread."""
    return _call if _call is not None and _in_main_thread() else None


def _in_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def _bar(shown: bool | None) -> Bar | None:
    """Where the call can be seen, if it can."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    notebook = getattr(shell, "kernel", None) is not None and type(sys.stderr).__module__.startswith("ipykernel")
    if shown:
        return NotebookBar() if notebook else TerminalBar(sys.stderr, stays=True)
    if not notebook and not _is_terminal(sys.stderr):
        return None
    processes: Any = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.current_process().name != "MainProcess":
        return None
    if "PYTEST_CURRENT_TEST" in os.environ or os.environ.get(VARIABLE, "").lower() in OFF:
        return None
    return NotebookBar() if notebook else TerminalBar(sys.stderr)


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # none at all, or one that was closed
        return False


def _watch() -> None:
    """Wake the thread that draws, or start it: it sleeps while nothing goes on, so quick calls cost next to nothing."""
    global _watcher
    if _watcher is None:
        _watcher = threading.Thread(target=_watching, name="calibrant progress", daemon=True)
        _watcher.start()
    if not _begun.is_set():
        _begun.set()


def _watching() -> None:
    while True:
        _begun.wait()
        while (call := _call) is not None:
            left = call.began + DELAY - perf_counter()
            if left <= 0:
                call.draw()
            sleep(max(left, OFTEN))
        _begun.clear()
        if _call is not None:  # begun in between
            _begun.set()


def _forget() -> None:
    """In a process that was forked, where the thread that draws is not."""
    global _call, _watcher, _lock
    _call, _watcher, _lock = None, None, threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
