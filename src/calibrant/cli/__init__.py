"""The command ``calibrant``: entry point, and how commands end. The commands themselves are in :mod:`.commands`."""

from __future__ import annotations

import errno
import os
import platform
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ..data.printing import printable, without_middle
from ..exceptions import CalibrantWarning

#: Exit codes besides 0, and 1 for failed gates only: an error in input, options or files; a bug, as in sysexits.h; and,
#: as for commands ended by a signal, Ctrl-C and a closed pipe on standard output.
INPUT, BUG, INTERRUPTED, NO_READER = 2, 70, 130, 141
#: Largest number of characters in a line that reports an error or a warning.
MOST = 300
#: Message for output without a name, and error codes of failed writes.
_UNNAMED = "standard output, or a temporary file, cannot be written"
_NOT_WRITTEN = (errno.ENOSPC, errno.EBADF, errno.EFBIG, errno.EDQUOT)
#: Environment variable that asks for a traceback.
TRACEBACK = "CALIBRANT_TRACEBACK"
#: Advice of the library, and the same in terms of the command.
_OPTIONS = (
    (r"on_invalid='drop'", "--on-invalid drop"),
    (r"pass labels=\[\.\.\.\] to the Accumulator", "pass --labels a,b,c"),
    (
        r"pass labels=range\(\d+\) to confirm this, or labels=range\(1, \d+\)",
        "pass --labels 0,1,… to confirm this, or --labels 1,2,…",
    ),
    (r", such as labels=range\(1, \d+\)", " (1,2,… if they start at 1)"),
    (r"labels=\[\.\.\.\]", "--labels a,b,c"),
    (r"use PlattScaling\(input='margin'\)", "choose others with --calibrators, such as platt"),
    (r"input='(\w+)'", r"--input \1"),
    (r"\bpos_label=", "--pos-label "),
    (r"\bpos_label\b", "--pos-label"),
    (r"estimator must be 'auto', .* \(names: (.*)\); got", r"--estimator must be auto, or one of \1; got"),
    (r"pass groups=", "pass --groups"),
    (r", or pass an array to match them by position", ""),
)


def main() -> None:
    """Entry point; says which extra to install when typer or polars is missing."""
    raise SystemExit(bounded(_run))


def _run() -> None:
    try:
        from .commands import app
    except ImportError as error:
        raise ImportError(f'the command needs more packages ({error}): pip install "calibrant[cli]"') from error
    app()


def bounded(action: Callable[[], int | None]) -> int:
    """Run a command and return its exit code; each error or warning is one line on standard error."""

    def tell(message: Warning | str, *_: Any, **__: Any) -> None:
        _say(f"warning: {message}")

    _prepare_streams()
    _end_cleanly()
    with warnings.catch_warnings():
        warnings.simplefilter("always", CalibrantWarning)
        warnings.showwarning = tell
        code: int = 0
        error: BaseException | None = None
        try:
            code = action() or 0
            if code == INTERRUPTED:  # which typer makes of it
                error = KeyboardInterrupt()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
            if isinstance(ended.__context__, BrokenPipeError):  # which typer makes 1
                error = ended.__context__
        except BaseException as raised:  # panics of Polars are no Exceptions
            error = raised
        try:
            sys.stdout.flush()
        except OSError as raised:
            error = OSError(raised.errno, f"standard output cannot be written: {raised.strerror}")
            with suppress(OSError):  # what is left is not tried again at the very end
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code if error is None else _judge(error)


def _judge(error: BaseException) -> int:
    """Report the error, and return the exit code."""
    if isinstance(error, BrokenPipeError):
        return NO_READER
    if os.environ.get(TRACEBACK):
        with suppress(OSError, ValueError):
            traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        _say("interrupted")
        return INTERRUPTED
    if (usage := getattr(error, "format_message", None)) is not None:  # of typer, or of click
        context = getattr(error, "ctx", None)
        if text := usage():  # else the help was printed
            _say(text + (f" (see {context.command_path} -h)" if context else ""))
        return INPUT
    polars: Any = sys.modules.get("polars")
    if polars is not None and isinstance(error, polars.exceptions.PolarsError):
        # Its first sentence: the rest is advice on options of polars.
        _say(f"the file cannot be read: {re.split(' (?:The current offset|You might want)', _cut(error))[0]}")
    elif isinstance(error, MemoryError):
        _say(f"out of memory: {error}")
    elif isinstance(error, OSError) and error.strerror:
        unnamed = error.errno in _NOT_WRITTEN and error.strerror == os.strerror(error.errno or 0)
        where = error.filename or (_UNNAMED if unnamed else None)
        _say(error.strerror if where is None else f"{where}: {error.strerror}")
    elif isinstance(error, (ValueError, TypeError, OSError, ImportError)):
        _say(error)
    else:
        from ..data import __version__

        _say(
            f"this is a bug: calibrant {__version__}, Python {platform.python_version()}, {type(error).__name__}: "
            f"{without_middle(_cut(error), 100)}. Please report it with the output of {TRACEBACK}=1"
        )
        return BUG
    return INPUT


def _say(what: object) -> None:
    """One line on standard error, if there is one."""
    text = _cut(what)
    for pattern, meant in _OPTIONS:
        text = re.sub(pattern, meant, text)
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(without_middle(f"calibrant: {printable(text)}", MOST - 1) + "\n")
        sys.stderr.flush()


def _cut(what: object) -> str:
    """A text without line breaks, not much longer than a message can be: it may quote a whole file."""
    return " ".join(without_middle(str(what), 10 * MOST).split())


def _prepare_streams() -> None:
    """Standard streams that are closed fail when they are used, and files that are opened do not take their numbers."""
    if os.name == "posix":
        for number, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_RDONLY)):
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, mode)  # the lowest number that is free, which is this one
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - for as long as the process lasts
    elif getattr(sys.stdout, "errors", None) == "strict" and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # what its encoding lacks


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
