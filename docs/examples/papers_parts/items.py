"""An item of a paper: what it says, what computes it here, and a function that runs that and compares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Check = Callable[[], str]


@dataclass(frozen=True)
class Item:
    """One definition, equation, algorithm, figure or table.

    ``check`` runs what computes it here; it returns what came out, first word in bold, and raises where that is not
    what the page claims.
    """

    place: str
    says: str
    here: str
    check: Check


@dataclass
class Paper:
    """Items of one paper, in its order."""

    title: str
    source: str
    items: list[Item] = field(default_factory=list)

    def item(self, place: str, says: str, here: str) -> Callable[[Check], Check]:
        """Add an item; the function below it is its check."""

        def add(check: Check) -> Check:
            self.items.append(Item(place, says, here, check))
            return check

        return add

    def outside(self, place: str, says: str, why: str) -> None:
        """Add an item that this library leaves to others."""
        self.items.append(Item(place, says, "", lambda: f"**not here**: {why}"))


def number(x: float) -> str:
    """Four digits."""
    return f"{x:.4g}"


def agrees(ours: Any, theirs: Any, what: str, *, within: float = 1e-12) -> str:
    """Say that two computations, or a computation and a printed value, are the same; ValueError when they are not."""
    gap = float(np.max(np.abs(np.asarray(ours, dtype=float) - np.asarray(theirs, dtype=float))))
    if not gap <= within:
        raise ValueError(f"{what}: {ours} and {theirs} differ by {gap:.3g}, more than {within:g}")
    shown = f"{number(float(ours))}, " if np.ndim(ours) == 0 else ""
    return f"**agrees**: {shown}{what} (largest difference {gap:.1e})"


def differs(ours: float, theirs: float, why: str, *, by: float = 1e-3) -> str:
    """Say that two numbers are different, and why; ValueError when they are not."""
    if abs(ours - theirs) < by:
        raise ValueError(f"{why}: {ours} and {theirs} do not differ by {by:g}")
    return f"**differs**: {number(ours)} here, {number(theirs)} there; {why}"


def holds(condition: bool, words: str) -> str:
    """Say that a statement of the paper holds in what was measured; ValueError when it does not."""
    if not condition:
        raise ValueError(f"does not hold: {words}")
    return f"**holds**: {words}"


def fails(condition: bool, words: str) -> str:
    """Say that a statement of the paper does not hold in what was measured; ValueError when it does."""
    if condition:
        raise ValueError(f"holds after all: {words}")
    return f"**does not hold**: {words}"
