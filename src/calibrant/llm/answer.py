"""One answer of a log, before the source of its confidence is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.types import FloatArray, Label

#: Values of scores as text: those of inspect_ai and of tables.
_RIGHT = frozenset({"c", "correct", "right", "true", "yes", "1", "1.0"})
_WRONG = frozenset({"i", "incorrect", "wrong", "false", "no", "0", "0.0"})
_REFUSED = frozenset({"n", "noanswer", "no answer", "refused"})


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer.

    Attributes
    ----------
    id : label
        Identifier of the question, the same for repeats.
    correct : bool or None
        Whether the answer is right; None if it is neither right nor wrong (``fault`` then says why).
    likelihood : float or None
        Probability of the answer from the model's log-probabilities.
    options : ndarray of shape (K,) or None
        Probability of each option.
    target : int or None
        Position of the right option.
    scored : object
        Confidence given by a scorer or a table.
    text : str
        Text that the model wrote.
    fault : str or None
        Reason why the answer cannot be used.
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
    """Whether a score means right (True), wrong (False) or neither (None), and in that case why."""
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
