"""How a case ends: with a result that holds together, with a refusal that says what is wrong, or with a fault."""

from __future__ import annotations

import json
import linecache
import math
import re
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import calibrant as cal
from calibrant.data.result import Result
from calibrant.data.types import Interval

from .drawing import Draw

#: Seconds that a case may take, and characters that a refusal may have.
LONGEST, LONGEST_MESSAGE = 20.0, 2000
RESULT, REFUSED = "result", "refused"
#: Words by which a refusal may call what is wrong, beside the parameters' names.
ARGUMENTS = re.compile(
    r"--from|does not exist|"
    r"\b(sample_weight|labels?|scores?|weights?|rows?|class(es)?|groups?|columns?|probabilit\w+|samples?|features?|calibrator|"
    r"estimator|notion|model|frame|tensor|file|sums|batch(es)?|n_bins|saved|"
    r"base rates|Accumulator|archive|bytes|data|X|y)\b"
)
_OURS = str(Path(cal.__file__).parent)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
#: Numbers that may be infinite: losses of certain scores that were wrong, statistics and ratios of nothing.
_INFINITE = (
    "log_loss|total|refinement|calibration|uncertainty|statistic|e_value|e_max|interval|edges|slope|intercept|measures|"
    "observed_expected|recalibrated_threshold|realised|iman_davenport|stated|gap|details|corrected|score|value|lower|upper|draws|df|norm|se"
)


#: Warnings by which scikit-learn's estimators keep its conventions, ours among them.
_OF_SCIKIT_LEARN = (
    "A column-vector y was passed|X has feature names|X does not have valid feature names"
    "|The least populated class in y"
)


class EndedError(Exception):
    """A case that found out itself how it ended."""


class TooLong(BaseException):
    """The case took longer than :data:`LONGEST`."""


@dataclass
class Case:
    """One call: what is done, what it is given (which must not change), and what must hold of its result."""

    words: str
    run: Callable[[], Any]
    given: list[Any] = field(default_factory=list)
    names: tuple[str, ...] = ()
    holds: Callable[[Any], str] | None = None
    again: bool = False
    page: bool = False
    longest: float = LONGEST


@contextmanager
def limited(seconds: float = LONGEST) -> Iterator[None]:
    """Raise :class:`TooLong` in the block after so many seconds."""

    def end(number: int, frame: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Watch:
    """Warnings of a case: those of calibrant are kept, any other is an error."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    @contextmanager
    def on(self) -> Iterator[None]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("always", cal.exceptions.CalibrantWarning)
            warnings.filterwarnings("ignore", _OF_SCIKIT_LEARN, UserWarning)
            warnings.showwarning = lambda message, category, *_, **__: self.seen.append(message)
            yield


def ending(case: Case) -> str:
    """:data:`RESULT`, :data:`REFUSED`, or what is wrong with how the case ended."""
    before = [mark(value) for value in case.given]
    watch = Watch()
    try:
        with limited(case.longest), watch.on():
            start = time.perf_counter()
            found = case.run()
            took = time.perf_counter() - start
            if took > case.longest:
                return f"took {took:.0f} s"
            nothing = any(isinstance(value, float) and math.isnan(value) for value in case.given)
            wrong = (
                (not nothing and broken(found, watch.seen, page=case.page)) or (case.holds and case.holds(found)) or ""
            )
            if not wrong and case.again and told(case.run()) != told(found):
                wrong = "another answer the second time"
    except TooLong:
        return f"took longer than {case.longest:.0f} s"
    except EndedError as ended:
        return str(ended)
    except (ValueError, TypeError) as error:
        wrong = badly_said(error, case.names)
        if not wrong and before != [mark(value) for value in case.given]:
            return "what it was given changed, and it was refused"
        return wrong or REFUSED
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except OSError as error:
        if error.errno and error.filename is not None:  # what the system says of a file that was named
            return REFUSED
        return f"{type(error).__name__} {place(error)}: {str(error)[:200]}"
    except RuntimeError as error:
        if "Inference tensors cannot be saved for backward" in str(error):  # torch's own words, of every layer
            return REFUSED
        return f"{type(error).__name__} {place(error)}: {str(error)[:200]}"
    except BaseException as error:  # a leak: warnings that were made errors, and panics of polars, among them
        return f"{type(error).__name__} {place(error)}: {str(error)[:200]}"
    if not wrong and before != [mark(value) for value in case.given]:
        wrong = "what it was given changed"
    return wrong or RESULT


def place(error: BaseException) -> str:
    """The innermost line of calibrant in a traceback."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(_OURS)]
    return f"at {Path(ours[-1].filename).relative_to(_OURS)}:{ours[-1].lineno}" if ours else ""


def badly_said(error: Exception, names: tuple[str, ...]) -> str:
    """What is wrong with a refusal: nobody here raised it, or it names no argument, or it is too long."""
    frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    own = max(i for i, name in enumerate(frames) if name.startswith(_OURS)) if place(error) else len(frames)
    if any("sklearn" in name for name in frames[own:]):  # of a classifier that was passed, about its features
        return ""
    last = traceback.extract_tb(error.__traceback__)[-1]
    said = f"{type(error).__name__} {place(error)}: {str(error)[:160]}"
    ours = last.filename.startswith(_OURS)
    raised = linecache.getline(last.filename, last.lineno or 0).strip().startswith("raise")
    if not (ours and raised) and "sklearn" not in last.filename:
        return f"leaked {said}"
    text = str(error)
    if len(text) > LONGEST_MESSAGE:
        return f"a message of {len(text):,} characters: {said}"
    if not ARGUMENTS.search(text) and not any(re.search(rf"\b{re.escape(name)}\b", text) for name in names):
        return f"names no argument: {said}"
    if _CONTROLS.search(text.replace("\n", " ").replace("\t", " ")):
        return f"control characters in {said!r}"
    return ""


def mark(value: Any) -> Any:
    """What tells whether a value changed."""
    if isinstance(value, np.ndarray):
        # Bytes of long doubles have gaps, in which there may be anything.
        held = repr(value.tolist()) if value.dtype.kind == "O" or value.dtype.char in "gG" else value.tobytes()
        return held, value.dtype.str, value.shape
    if isinstance(value, (list, tuple)):
        return repr(value)[:10_000]
    if isinstance(value, Mapping):
        return [(key, mark(inner)) for key, inner in value.items()]
    if isinstance(value, (pd.Series, pd.DataFrame)):
        return mark(value.to_numpy()), list(map(repr, value.index[:50])), str(getattr(value, "columns", ""))
    return None


def told(found: Any) -> Any:
    """What a result says, to be compared."""
    if isinstance(found, Result):
        return re.sub(r'"seconds": [^,}]*', "", json.dumps(found.to_dict(), default=str))
    if isinstance(found, np.ndarray):
        return found.tobytes()
    if isinstance(found, (float, int, str)):
        return repr(found)
    return None


def broken(found: Any, seen: list[Any], *, page: bool) -> str:
    """What does not hold of a result; empty where all does."""
    if isinstance(found, (float, np.floating)):
        if math.isnan(found) and not seen:
            return "NaN without a warning"
        return ""
    if isinstance(found, np.ndarray):
        return "NaN in an array, without a warning" if _any_nan(found) and not seen else ""
    if isinstance(found, dict):
        return next(filter(None, (broken(inner, seen, page=page) for inner in found.values())), "")
    if not isinstance(found, Result):
        line = repr(found)
        return "" if isinstance(line, str) else "no repr"
    return _shown_badly(found, page) or _inconsistent(found)


def _any_nan(values: np.ndarray) -> bool:
    return values.dtype.kind == "f" and bool(np.isnan(values).any())


def _shown_badly(found: Result, page: bool) -> str:
    """What is wrong with how a result shows itself."""
    line, text = repr(found), str(found)
    if len(line) > 200 or "\n" in line:
        return f"a repr of {len(line)} characters: {line[:100]}"
    if _CONTROLS.search(line) or _CONTROLS.search(text):
        return f"control characters in its text: {_CONTROLS.search(line + text)!r}"
    try:
        json.dumps(found.to_dict(), allow_nan=False)
    except (ValueError, TypeError) as error:
        return f"to_dict() is not JSON: {error}"
    if page:
        html = found._repr_html_()
        if "<script>alert" in html or _CONTROLS.search(html):
            return "its HTML holds a label that is not escaped"
    return ""


def _inconsistent(found: Any) -> str:
    """What is wrong with the numbers of a result."""
    if not is_dataclass(found):
        return ""
    for name in [f.name for f in fields(found)]:
        value = getattr(found, name)
        kind = f"{type(found).__name__}.{name}"
        if isinstance(value, Interval):
            low, high = value
            if low > high or math.isnan(low) != math.isnan(high):
                return f"{kind} is {value}"
            inside = getattr(found, name.removesuffix("_interval") if name != "interval" else "value", None)
            if isinstance(inside, float) and not math.isnan(inside) and not math.isnan(low):
                slack = 1e-9 * max(1.0, abs(inside)) if math.isfinite(inside) else 0.0
                if not (low - slack <= inside <= high + slack or inside < low == 0):  # debiased
                    return f"{kind} is {value}, outside of which lies {inside}"
        elif (
            name in ("pvalue", "adjusted") and isinstance(value, float) and not (0 <= value <= 1 or math.isnan(value))
        ) or (isinstance(value, float) and math.isinf(value) and not re.fullmatch(_INFINITE, name)):
            return f"{kind} is {value}"
        elif isinstance(value, (tuple, list)) and len(value) < 50:
            for inner in value:
                if isinstance(inner, Result) and (wrong := _inconsistent(inner)):
                    return wrong
        elif isinstance(value, Result) and (wrong := _inconsistent(value)):
            return wrong
    return _curve(found)


def _curve(found: Any) -> str:
    """A curve whose band does not hold it, or that leaves the unit interval."""
    if not isinstance(found, cal.results.ReliabilityCurve):
        return ""
    observed, lower, upper = (np.asarray(getattr(found, name), dtype=float) for name in ("observed", "lower", "upper"))
    if ((observed < -1e-9) | (observed > 1 + 1e-9)).any():
        return "a curve leaves [0, 1]"
    if (lower > upper + 1e-12).any():
        return "the lower end of a band lies above its upper end"
    return ""


def probabilities(p: Any, n: int | None = None, *, sums: bool = True, near: float = 1e-6) -> str:
    """What is wrong with the rows of ``predict_proba``."""
    p = np.asarray(p, dtype=float)
    if p.ndim != 2 or (n is not None and len(p) != n):
        return f"probabilities of shape {p.shape} for {n} rows"
    if not ((p >= 0) & (p <= 1 + 1e-9)).all():
        return f"a probability of {p[~((p >= 0) & (p <= 1 + 1e-9))][0]}"
    if sums and len(p) and abs(p.sum(axis=1) - 1).max() > near:
        return f"probabilities that add up to {p.sum(axis=1)[abs(p.sum(axis=1) - 1).argmax()]}"
    return ""


def words_of(draw: Draw, name: str) -> str:
    return f"{name}: {draw}"
