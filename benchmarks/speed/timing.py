"""CPU time of a call."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def cpu_seconds(call: Callable[[], Any], number: int = 1) -> float:
    """CPU seconds (of all threads) a call, over ``number`` calls in a row."""
    start = time.process_time()
    for _ in range(number):
        call()
    return (time.process_time() - start) / number
