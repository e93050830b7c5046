"""CPU time of several callables, interleaved; and the extra memory of one."""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

#: A measurement lasts at least this long: a fast callable is called several times in a row.
BLOCK_SECONDS = 0.01


def cpu_seconds(call: Callable[[], Any], number: int = 1) -> float:
    """CPU seconds (of all threads) a call, over ``number`` calls in a row."""
    start = time.process_time()
    for _ in range(number):
        call()
    return (time.process_time() - start) / number


def medians(calls: dict[str, Callable[[], Any]], budget: float) -> tuple[dict[str, Any], dict[str, float]]:
    """Results and median CPU seconds of every callable.

    Rounds run the callables one after the other, so that a slow spell of the machine meets all of them. ``budget``
    is about how many seconds each callable may take; a callable whose first call takes all of it is timed once.
    """
    results: dict[str, Any] = {}
    numbers: dict[str, int] = {}
    quotas: dict[str, int] = {}
    samples: dict[str, list[float]] = {}
    for name, call in calls.items():
        start = time.process_time()
        results[name] = call()
        first = time.process_time() - start
        # The first call also pays for imports and caches; it counts only where there will be no second.
        samples[name] = [] if first < budget else [first]
        again = cpu_seconds(call) if first < budget else first
        numbers[name] = max(1, round(BLOCK_SECONDS / max(again, 1e-6)))
        block = max(again * numbers[name], 1e-6)
        quotas[name] = 0 if samples[name] else max(3, min(41, int(budget / block)))
    gc.collect()
    gc.disable()
    try:
        for turn in range(max(quotas.values(), default=0)):
            for name, call in calls.items():
                if turn < quotas[name]:
                    samples[name].append(cpu_seconds(call, numbers[name]))
    finally:
        gc.enable()
    return results, {name: statistics.median(values) for name, values in samples.items()}


def extra_memory(call: Callable[[], Any]) -> float:
    """Peak of the memory allocated during the call, in MB, beyond what was there before it."""
    call()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        call()
        return (tracemalloc.get_traced_memory()[1] - before) / 1e6
    finally:
        tracemalloc.stop()
