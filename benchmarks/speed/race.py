"""Tasks that calibrant and other libraries do on the same arrays, timed in turns: each sample is a turn."""

from __future__ import annotations

import gc
import importlib.util
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from time import process_time
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..charts import dots
from ..experiment import Experiment
from ..markdown import table
from ..provenance import Kept
from . import one_thread

#: A measurement lasts at least this long: a fast call is made several times in a row.
BLOCK_SECONDS = 0.02


def distance(ours: Any, theirs: Any) -> float:
    """The largest difference of two answers."""
    return float(np.abs(np.asarray(ours, dtype=float) - np.asarray(theirs, dtype=float)).max())


@dataclass(frozen=True)
class Peer:
    """How another library does a task.

    Parameters
    ----------
    call : callable
        Takes the arrays, and imports what it needs.
    apart : float
        How far its answer may lie from ours; infinity where it answers a question that is only akin.
    needs : str
        A module that it imports.
    reference : callable, optional
        What its answer is compared with, from the arrays, where that is not what ours returns.
    competes : bool
        Whether it may be the fastest peer: not where it is a loop of ours around another function of the library.
    """

    call: Callable[..., Any]
    needs: str
    apart: float = 1e-9
    reference: Callable[..., Any] | None = None
    competes: bool = True

    @property
    def installed(self) -> bool:
        """Whether this machine has it."""
        return importlib.util.find_spec(self.needs) is not None


@dataclass(frozen=True)
class Work:
    """What several libraries do.

    Parameters
    ----------
    arrays : callable
        Makes the arrays that all of them are given.
    ours : callable
        Takes the arrays.
    peers : mapping of str to Peer
        By the name of their distribution on PyPI.
    wanted : float
        The ratio of our time to that of the fastest peer that we aim at.
    gap : callable
        How far two answers lie apart, of ours and theirs; below zero where ours is the better one.
    value : callable
        A number of our answer, which a repetition must give again.
    quick : bool
        Whether it takes less than a second.
    """

    arrays: Callable[[], tuple[Any, ...]]
    ours: Callable[..., Any]
    peers: Mapping[str, Peer]
    wanted: float = 1.0
    gap: Callable[[Any, Any], float] = distance
    value: Callable[[Any], float] = float
    quick: bool = True


Works = Mapping[str, Work]


@lru_cache(maxsize=1)
def _arrays(make: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
    return make()


def turn(work: Work, name: str, seed: int) -> dict[str, float]:
    """CPU seconds of a call, ours and theirs; how far the answers lie apart; a number of our answer.

    RuntimeError where the answers differ by more than is allowed.
    """
    peer, arrays = work.peers[name], _arrays(work.arrays)
    one_thread.limit_torch()
    logging.disable(logging.WARNING)
    calls = {"ours": work.ours, "theirs": peer.call}
    # The first call imports and compiles, and is not timed; the second says how many calls are a block.
    found = {who: call(*arrays) for who, call in calls.items()}
    numbers = {who: max(1, round(BLOCK_SECONDS / max(_seconds(call, arrays, 1), 1e-6))) for who, call in calls.items()}
    gc.collect()
    order = sorted(calls, reverse=bool(seed % 2))
    seconds = {who: _seconds(calls[who], arrays, numbers[who]) for who in order}
    reference = found["ours"] if peer.reference is None else peer.reference(*arrays)
    gap = work.gap(reference, found["theirs"])
    if not gap <= peer.apart:
        raise RuntimeError(f"answers of {name} differ by {gap:.2g}, more than {peer.apart:g}")
    return {**seconds, "gap": gap, "value": work.value(found["ours"])}


def _seconds(call: Callable[..., Any], arrays: tuple[Any, ...], number: int) -> float:
    start = process_time()
    for _ in range(number):
        call(*arrays)
    return (process_time() - start) / number


def ratios(kept: Kept, work: str, peer: str) -> np.ndarray:
    """Our time by theirs, of each turn."""
    some = kept.where(work=work, peer=peer)
    return some["ours"] / some["theirs"]


def fastest(kept: Kept, works: Works, work: str) -> str:
    """The peer whose median time is the least, of those that answer the same question."""
    peers = {name: peer for name, peer in works[work].peers.items() if peer.competes}
    same = [name for name, peer in peers.items() if peer.apart < np.inf] or list(peers)
    return min(same, key=lambda name: float(np.median(kept.where(work=work, peer=name)["theirs"])))


def answer(kept: Kept, works: Works) -> str:
    """In how many tasks nobody is faster, and which are the slowest."""
    ratio = {work: float(np.median(ratios(kept, work, fastest(kept, works, work)))) for work in works}
    slower = {work: value for work, value in ratio.items() if value > 1}
    text = (
        f"calibrant is faster than the fastest peer in {len(works) - len(slower)} of {len(works)} tasks, and takes "
        f"{np.median(list(ratio.values())):.2f} of its time in the median task."
    )
    if slower:
        most = sorted(slower.items(), key=lambda one: -one[1])
        cases = (f"“{work}” ({value:.2f} × {fastest(kept, works, work)})" for work, value in most)
        text += f" It is slower in {', '.join(cases)}."
    missed = [f"“{work}”" for work, value in ratio.items() if works[work].wanted < value <= 1]
    return text + (f" It is faster, but misses our aim, in {', '.join(missed)}." if missed else "")


def page(kept: Kept, works: Works) -> Iterator[str]:
    """The table: each task compared with the fastest peer."""
    rows = []
    for work in works:
        name = fastest(kept, works, work)
        some = kept.where(work=work, peer=name)
        low, mid, high = np.quantile(some["ours"] / some["theirs"], [0.25, 0.5, 0.75])
        shown = f"{mid:.2f} ({low:.2f}–{high:.2f})"
        rows.append((work, name, _milliseconds(float(np.median(some["ours"]))), shown, f"{works[work].wanted:g}"))
    yield from table(("task", "fastest peer", "ours, ms", "ratio", "aim"), rows, texts=2)
    yield ""
    yield "*ratio* is our CPU time divided by the peer's (median, quartiles)."


def _milliseconds(seconds: float) -> str:
    value = 1e3 * seconds
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def picture(kept: Kept, works: Works) -> Figure:
    """How many times as long as calibrant the fastest and the slowest peer take."""
    series: dict[str, list[tuple[float, float]]] = {"fastest peer": [], "slowest peer": []}
    for work in works:
        first = fastest(kept, works, work)
        times = {name: float(np.median(1 / ratios(kept, work, name))) for name in works[work].peers}
        series["fastest peer"].append((times[first], float("nan")))
        slow = max(times.values())
        series["slowest peer"].append((slow if len(times) > 1 else float("nan"), float("nan")))
    return dots(list(works), series, "CPU time of the peer divided by that of calibrant", aim=1, log=True)


def experiment(module: str, works: Works, sample: Callable[..., dict[str, float]], **more: Any) -> Experiment:
    """An experiment whose cases are a task and a peer each."""
    peers = list(dict.fromkeys(name for work in works.values() for name in work.peers))
    return Experiment(
        module=module,
        cases={"work": list(works), "peer": peers},
        some=lambda work, peer: peer in works[work].peers,
        here=lambda work, peer: works[work].quick and works[work].peers[peer].installed,
        sample=sample,
        answer=lambda kept: answer(kept, works),
        page=lambda kept: page(kept, works),
        picture=lambda kept: picture(kept, works),
        repetitions=15,
        timed=("ours", "theirs", "gap"),
        packages=[name for name in peers if name != "numpy"],  # which every data file gives
        **more,
    )
