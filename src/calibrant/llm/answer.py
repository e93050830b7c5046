"""One answer of a log, before it is decided where its confidence comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.types import FloatArray, Label

#: Values of scores in words: those of inspect_ai, and what tables say.
_RIGHT = frozenset({"c", "correct", "right", "true", "yes", "1", "1.0"})
_WRONG = frozenset({"i", "incorrect", "wrong", "false", "no", "0", "0.0"})
_REFUSED = frozenset({"n", "noanswer", "no answer", "refused"})


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer.

    Attributes
    ----------
    id : label
        The question: repeats have the same.
    correct : bool or None
        None where it is neither right nor wrong; ``fault`` then says why.
    likelihood : float or None
        Probability of the answer, by the model's log-probabilities.
    options : ndarray of shape (K,) or None
        Probability of each option.
    target : int or None
        Position of the right option.
    scored : object
        Confidence that a scorer, or a table, has.
    text : str
        What the model wrote.
    fault : str or None
        Why this answer cannot be used.
    """

    id: Label
    correct: bool | None
    likelihood: float | None = None
    options: FloatArray | None = None
    target: int | None = None
    scored: Any = None
    text: str = ""
    fault: str | None = None


def judged(value: Any) -> tuple[bool | None, str | None]:
    """Whether a score says right or wrong; or neither, and why."""
    if isinstance(value, (bool, int, float, np.bool_, np.number)):
        if value in (0, 1):
            return bool(value), None
        return None, "score neither right nor wrong" if value == value else "no score"
    if value is None:
        return None, "no score"
    word = str(value).strip().lower()
    if word in _RIGHT or word in _WRONG:
        return word in _RIGHT, None
    return None, "no answer" if word in _REFUSED else "score neither right nor wrong"
