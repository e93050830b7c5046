"""Do imports, memory and bands keep to their limits?

    OMP_NUM_THREADS=1 python -m benchmarks.speed.limits [--repetitions 15] [--only TEXT]

*import* is the CPU time of `import calibrant`, which loads no NumPy, minus that of `import numpy`. *first use* also
loads `calibration_error` and `reliability_curve`. *memory* is the most that `calibration_error` in 15 bins allocates
beyond its arrays. *band* is the CPU time of a `reliability_curve` with 1,000 draws on 10⁶ rows, divided by that on 10⁴.
"""

from __future__ import annotations

from . import one_thread  # noqa: F401 - before NumPy

# isort: split
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..charts import dots
from ..experiment import Experiment
from ..markdown import table
from ..provenance import Kept
from . import estimation, race
from .race import Peer, Work

#: What is measured, and what it may be.
LIMITS = {"memory, 10⁷ rows": 64.0, "band, 10⁶ rows by 10⁴": 3.0, "import": 60.0, "first use": 60.0}
STATEMENTS = {
    "numpy": "import numpy",
    "import": "import calibrant",
    "first use": "import calibrant; calibrant.calibration_error; calibrant.reliability_curve",
}


def interpreter(name: str) -> float:
    """CPU milliseconds of a statement, in an interpreter of its own."""
    program = f"import time; a = time.process_time(); {STATEMENTS[name]}; print(time.process_time() - a)"
    # As after an installation, which compiles modules.
    given = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", program]
    return 1e3 * float(subprocess.run(command, capture_output=True, text=True, check=True, env=given).stdout)


def memory() -> dict[str, float]:
    """Most that a call allocates, and its value."""
    y, p = estimation.binary(10_000_000)
    call = estimation.binned()
    call(y, p)
    tracemalloc.start()
    try:
        value = call(y, p)
        return {"found": tracemalloc.get_traced_memory()[1] / 1e6, "value": value}
    finally:
        tracemalloc.stop()


def arrays() -> tuple[Any, ...]:
    return *estimation.binary(1_000_000), *estimation.binary(10_000)


#: The same call on fewer rows takes the place of a peer.
BAND = Work(
    arrays,
    lambda y, p, *_: estimation.band(y, p),
    {"fewer rows": Peer(lambda _, __, y, p: estimation.band(y, p), "numpy", float("inf"))},
    gap=lambda ours, theirs: estimation.curves(ours, (theirs.scores, theirs.observed)),
    value=lambda curve: float(np.nanmean(curve.observed)),
)


def sample(what: str, seed: int) -> dict[str, float]:
    if what.startswith("memory"):
        return memory()
    if what.startswith("band"):
        one = race.turn(BAND, "fewer rows", seed)
        return {"found": one["ours"] / one["theirs"], "value": one["value"]}
    interpreter(what)  # compiles what is not compiled yet
    return {"found": interpreter(what) - interpreter("numpy")}


def found(kept: Kept) -> dict[str, np.ndarray]:
    """What was found, by what was measured."""
    return {what: kept.where(what=what)["found"] for what in LIMITS}


def answer(kept: Kept) -> str:
    medians = {what: float(np.median(values)) for what, values in found(kept).items()}
    over = [f"“{what}” ({value:.1f})" for what, value in medians.items() if value > LIMITS[what]]
    text = f"{len(LIMITS) - len(over)} of {len(LIMITS)} medians are within their limits."
    return text + (f" The limit is exceeded by {', '.join(over)}." if over else "")


def page(kept: Kept) -> Iterator[str]:
    units = dict(zip(LIMITS, ("MB", "times", "ms", "ms"), strict=True))
    rows = []
    for what, values in found(kept).items():
        low, mid, high = np.quantile(values, [0.25, 0.5, 0.75])
        rows.append((what, units[what], f"{mid:.1f}", f"{low:.1f} to {high:.1f}", f"{LIMITS[what]:g}"))
    yield from table(("what", "unit", "median", "quartiles", "limit"), rows, texts=2)


def picture(kept: Kept) -> Figure:
    shares = [(float(np.median(values)) / LIMITS[what], float("nan")) for what, values in found(kept).items()]
    return dots(list(LIMITS), {"median": shares}, "share of the limit", aim=1)


EXPERIMENT = Experiment(
    module=__spec__.name,
    cases={"what": list(LIMITS)},
    here=lambda what: what.startswith("band"),
    sample=sample,
    answer=answer,
    page=page,
    picture=picture,
    repetitions=15,
    quick=1,
    timed=("found",),
    packages=("scipy",),
)

if __name__ == "__main__":
    EXPERIMENT.main()
