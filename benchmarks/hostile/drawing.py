"""What a case is made of: a generator of random numbers of its own, and a description of each value."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


class Draw:
    """Draws of one case: the same for the same seed, kind and number, whatever was drawn before."""

    def __init__(self, seed: int, kind: str, number: int) -> None:
        self.rng = np.random.default_rng((seed, zlib.crc32(kind.encode()), number))
        self.words: list[str] = []
        self.number_is_even = number % 2 == 0

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def whole(self, low: int, high: int) -> int:
        """A whole number of ``[low, high)``."""
        return int(self.rng.integers(low, high))

    def one(self, values: Sequence[T]) -> T:
        return values[self.whole(0, len(values))]

    def named(self, what: str, table: Mapping[str, T]) -> T:
        """A value of a table; its name is part of the words of the case."""
        name = self.one(list(table))
        self.say(what, name)
        return table[name]

    def some(self, values: Sequence[T], most: int) -> list[T]:
        """Up to so many of some values, none twice."""
        size = min(self.whole(1, most + 1), len(values))
        return [values[i] for i in self.rng.permutation(len(values))[:size]]

    def say(self, what: str, value: Any) -> None:
        text = value if isinstance(value, str) else repr(value)
        self.words.append(f"{what}={text[:60]}")

    def __str__(self) -> str:
        return ", ".join(self.words)
