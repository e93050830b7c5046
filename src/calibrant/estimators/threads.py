"""Work on arrays that several threads share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

#: Numbers to work on below which threads cost more than they save.
_WORTH = 1 << 21


def in_threads(task: Callable[[int], None], starts: Sequence[int], work: int) -> None:
    """Do ``task(start)`` for every start, in as many threads as linear algebra may use in this process.

    So ``OMP_NUM_THREADS`` and ``threadpoolctl`` rule it, and workers of joblib use one. Inside, linear algebra is kept
    to one thread each. Tasks must not depend on each other, and what they compute does not depend on the threads.
    """
    count = min(allowed(), len(starts)) if work >= _WORTH else 1
    if count <= 1:
        for start in starts:
            task(start)
        return
    with _controller().limit(limits=1, user_api="blas"), ThreadPoolExecutor(count) as pool:
        for _ in pool.map(task, starts):
            pass


def allowed() -> int:
    """Threads that linear algebra may use."""
    known = [int(library["num_threads"]) for library in _controller().info() if library["user_api"] == "blas"]
    if known:
        return max(known)
    from joblib import cpu_count

    return int(cpu_count())


@lru_cache(maxsize=1)
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
