"""Cases that miss what was aimed at: a coverage or the size of a test in per cent, by more than two standard errors."""

from __future__ import annotations

from collections.abc import Mapping

#: Standard errors of what counts as a miss, and how often chance alone is one.
ERRORS, CHANCE = 2, 0.023
#: Numbers and standard errors of cases, by name.
Cells = Mapping[str, tuple[float, float]]


def misses(pair: tuple[float, float], aim: float, above: bool = False) -> bool:
    """Whether a number with its standard error is below the aim, or above it, by more than two of them."""
    return (1 if above else -1) * (pair[0] - aim) > ERRORS * pair[1]


def missed(cells: Cells, aim: float, above: bool = False) -> dict[str, tuple[float, float]]:
    """Cases below the aim, or above it, by more than two standard errors; the farthest first."""
    sign = 1 if above else -1
    found = {name: pair for name, pair in cells.items() if misses(pair, aim, above)}
    return dict(sorted(found.items(), key=lambda one: -sign * one[1][0]))


def told(cells: Cells, aim: float, above: bool = False) -> str:
    """How many cases miss the aim, how many would by chance, and which is the farthest."""
    found, sign = missed(cells, aim, above), 1 if above else -1
    known = {name: pair for name, pair in cells.items() if pair[0] == pair[0]}
    name, pair = max(known.items(), key=lambda one: sign * one[1][0])
    many = f"{len(found) or 'none'} of {len(known)} cases ({CHANCE * len(known):.1f} by chance)"
    return f"{many}, {'highest' if above else 'lowest'} in {name} ({shown(pair)} %)"


def shown(pair: tuple[float, float], digits: int = 1) -> str:
    """A number with its standard error."""
    return f"{pair[0]:.{digits}f} ± {pair[1]:.{digits}f}"
