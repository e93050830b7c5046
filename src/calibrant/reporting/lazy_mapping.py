"""`LazyMapping`: a mapping whose values are computed when they are first read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LazyMapping(Mapping[K, V]):
    """Names and what makes their values, each once. What makes them holds all it needs: no rows, and its own seed."""

    def __init__(self, makers: Mapping[K, Callable[[], V]]) -> None:
        self._makers = dict(makers)
        self._made: dict[K, V] = {}

    def __getitem__(self, name: K) -> V:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[K]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self._makers)!r})"

    def __reduce__(self) -> Any:
        return dict, (dict(self),)
