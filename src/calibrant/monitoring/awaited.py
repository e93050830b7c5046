"""`Awaited`: predictions whose labels arrive later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..data.printing import time_text
from .periods import Times, read_time, written_time


class Awaited:
    """Predictions by key until their label is observed; the oldest expire if there are too many.

    Attributes
    ----------
    most : int
        Maximum number of predictions kept.
    expired : int
        Number of predictions dropped before their label was observed.
    """

    def __init__(self, most: int) -> None:
        self.most, self.expired = most, 0
        self._open: dict[Any, tuple[Any, Any]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def add(self, key: Any, y_prob: Any, time: Any, *, logits: bool) -> None:
        """Store predictions; ValueError for keys already open and invalid scores: nothing is then stored."""
        names, many = names_of(key)
        scores = np.asarray(y_prob if many else [y_prob], dtype=np.float64)
        if len(scores) != len(names):
            raise ValueError(f"y_prob must have one row per key ({len(names)}); got {len(scores)}")
        if not (np.isfinite(scores).all() and (logits or ((scores >= 0) & (scores <= 1)).all())):
            raise ValueError("y_prob must be probabilities in [0, 1]; some are not")
        if (twice := next((n for n in names if n in self._open), None)) is not None or len(set(names)) < len(names):
            raise ValueError("keys must differ; one is repeated" if twice is None else f"key {twice!r} is already open")
        if time is not None:
            time = Times.read([time], 1).at(0)
        self._open |= {name: (score, time) for name, score in zip(names, scores.tolist(), strict=True)}
        while len(self._open) > self.most:
            del self._open[next(iter(self._open))]
            self.expired += 1

    def scores(self, names: Sequence[Any]) -> list[Any]:
        """Scores of keys; ValueError for a key that is not open."""
        if (unknown := next((n for n in names if n not in self._open), None)) is not None:
            raise ValueError(f"key {unknown!r} is not open: never expected, already observed, or expired")
        return [self._open[name][0] for name in names]

    def remove(self, names: Sequence[Any]) -> None:
        """Remove predictions whose labels are known."""
        for name in names:
            del self._open[name]

    @property
    def status(self) -> str:
        """Number of labels awaited, since when, and number of expired ones; empty if there never was one."""
        if not self._open and not self.expired:
            return ""
        oldest = next((time for _, time in self._open.values() if time is not None), None)
        since = "" if oldest is None else f" (the oldest since {time_text(oldest)})"
        return f" Labels awaited: {len(self):,}{since}; predictions expired without one: {self.expired:,}."

    def to_dict(self) -> dict[str, Any]:
        """The state, for JSON; ValueError for keys that JSON does not support."""
        if any(not isinstance(name, (str, int)) for name in self._open):
            raise ValueError("a monitor can be saved as JSON only if keys are strings or integers: pickle it")
        kept = [[name, score, *written_time(time)] for name, (score, time) in self._open.items()]
        return {"most": self.most, "expired": self.expired, "open": kept}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Awaited:
        """Restore the state from a dictionary."""
        found = cls(int(state["most"]))
        found.expired = int(state["expired"])
        found._open = {name: (score, read_time(*kind)) for name, score, *kind in state["open"]}
        if len(found) > found.most or found.expired < 0:
            raise ValueError("numbers of open predictions contradict each other")
        return found


def names_of(key: Any) -> tuple[list[Any], bool]:
    """Keys as a list, and whether several were given."""
    many = isinstance(key, (list, np.ndarray)) or hasattr(key, "to_list")
    return (list(np.asarray(key).tolist()) if many else [key]), many
