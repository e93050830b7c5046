"""What do calls of calibrant cost, in CPU time and memory?

    OMP_NUM_THREADS=1 python -m benchmarks.speed.costs [--repetitions 1] [--only TEXT]

Each call runs in its own process, with one thread apart from Polars', after a call on a few rows. A *unit* is the time
of `np.sort` on 10⁶ doubles in the same process. Memory is the peak beyond what the process held before. Subgroups of a
frame must have the p-values of its rows, the class-wise error must be the mean over classes, and a sample must have
the same estimates alone and among others.
"""

from __future__ import annotations

from . import one_thread  # noqa: F401 - before NumPy

# isort: split
import ctypes
import gc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..charts import dots
from ..experiment import Experiment, Numbers
from ..markdown import table
from ..process import alone, forget_peak
from ..provenance import Kept
from . import cost_calls, cost_rows

MODULE = __spec__.name
CALLS = cost_calls.CALLS | cost_rows.CALLS
#: A turn lasts at least this long: a fast call is made several times in a row.
BLOCK_SECONDS = 0.02
#: Calls in the table take this many CPU seconds, or MiB, or more.
SECONDS, MEMORY = 3.0, 500.0


def measured(call: str) -> dict[str, Any]:
    """CPU seconds of each turn, and of the unit's; MiB of the first; a number of its answer."""
    one = CALLS[call]
    warnings.simplefilter("ignore")
    one.call(*one.arrays(min(one.few, one.rows)))
    given = one.arrays(one.rows)
    held = _held()
    first, found = _spent(one.call, given)
    memory = _held("VmHWM") - held
    value = one.value(found, *given)
    found = None
    sort = np.random.default_rng(0).random(10**6)
    seconds, units = [], []
    for _ in range(one.turns):
        seconds.append(first if one.turns == 1 else _block(one.call, given))
        units.append(_block(np.sort, (sort,)) if one.unit is None else _block(one.unit, given))
    return {"seconds": seconds, "unit": units, "memory": memory, "value": value}


def _held(what: str = "") -> float:
    """MiB that this process holds, after which its peak counts again; or another line of its status."""
    if not what:
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        forget_peak()
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(what or "VmRSS"))


def _spent(call: Callable[..., Any], given: tuple[Any, ...]) -> tuple[float, Any]:
    start = process_time()
    found = call(*given)
    return process_time() - start, found


def _block(call: Callable[..., Any], given: tuple[Any, ...]) -> float:
    """CPU seconds of a call, the mean of a block of them where one is short."""
    seconds, _ = _spent(call, given)
    number = round(BLOCK_SECONDS / max(seconds, 1e-6))
    return float(np.mean([_spent(call, given)[0] for _ in range(number)])) if number > 1 else seconds


def sample(call: str, seed: int) -> Numbers:
    """Numbers of a call in a process of its own."""
    return alone(MODULE, "measured", call=call)


def middle(kept: Kept, call: str) -> dict[str, float]:
    """Medians of a call: CPU seconds, units and MiB."""
    some = kept.where(call=call)
    return {
        "seconds": float(np.median(some["seconds"])),
        "units": float(np.median(some["seconds"] / some["unit"])),
        "memory": float(np.median(some["memory"])),
    }


def costly(kept: Kept) -> dict[str, dict[str, float]]:
    """Calls of the table, the longest first."""
    every = {call: middle(kept, call) for call in CALLS}
    some = {call: one for call, one in every.items() if one["seconds"] >= SECONDS or one["memory"] >= MEMORY}
    return dict(sorted(some.items(), key=lambda one: -one[1]["seconds"]))


def answer(kept: Kept) -> str:
    every = {call: middle(kept, call) for call in CALLS}
    most = {name: max(every, key=lambda call: every[call][name]) for name in ("seconds", "memory")}
    short = sum(one["seconds"] < 1 for one in every.values())
    files = {kind: [one["memory"] for call, one in every.items() if call.startswith(kind)] for kind in cost_rows.KINDS}
    grows = " and ".join(f"{large / small:.1f} ({kind})" for kind, (small, large) in files.items())
    sought = {
        name: [one["units"] for call, one in every.items() if call.startswith(f"{name}, ranges")]
        for name in ("error", "estimate")
    }
    spread = " and ".join(f"an {name} takes {min(some):.1f} to {max(some):.1f} times" for name, some in sought.items())
    update = 1e6 * every[cost_rows.UPDATES]["seconds"] / CALLS[cost_rows.UPDATES].rows
    return (
        f"{short} of {len(every)} calls take less than a second. The longest, “{most['seconds']}”, takes "
        f"{every[most['seconds']]['seconds']:,.0f} s. “{most['memory']}” takes the most memory, "
        f"{every[most['memory']]['memory']:,.0f} MiB. A streamed file of four times the rows takes {grows} times as "
        f"much. With a search for ranges of scores, {spread} as long as without. An update of a monitor takes "
        f"{update:.0f} µs."
    )


def page(kept: Kept) -> Iterator[str]:
    rows = [
        (call, f"{one['seconds']:,.1f}", f"{one['units']:,.0f}", f"{one['memory']:,.0f}")
        for call, one in costly(kept).items()
    ]
    yield from table(("call", "CPU s", "units", "MiB"), rows)
    yield ""
    yield f"The table has medians of calls that take {SECONDS:g} s or {MEMORY:g} MiB or more; the data file has all."


def picture(kept: Kept) -> Figure:
    """Units of the calls of the table."""
    some = costly(kept)
    return dots([*some], {"": [(one["units"], float("nan")) for one in some.values()]}, "units of np.sort", log=True)


EXPERIMENT = Experiment(
    module=MODULE,
    cases={"call": [*CALLS]},
    sample=sample,
    answer=answer,
    page=page,
    picture=picture,
    repetitions=1,
    here=lambda call: CALLS[call].turns > 3,
    quick=1,
    timed=("seconds", "unit", "memory"),
)

if __name__ == "__main__":
    EXPERIMENT.main()
