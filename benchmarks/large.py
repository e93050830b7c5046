"""Does everything that takes several classes finish on 100,000 rows of 300 classes?

    python -m benchmarks.large [--repetitions 1]

Logits are normal with standard deviation 1.5, and the true logits are 0.6 times these. Scores are float32. Each call
has its own process with one thread and at most 12 GiB. Log-losses are for the rows of the fit. They show that a
fit finished, not that it helps.
"""

from __future__ import annotations

from .speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal
from calibrant.calibrators import OneVsRest, PlattScaling, default_candidates, named_calibrator

from .charts import dots
from .experiment import Experiment
from .markdown import table
from .process import alone, peak
from .provenance import Kept

MODULE = __spec__.name
ROWS, CLASSES, MEMORY = 100_000, 300, 12 << 30
NOTIONS = ("confidence", "class-wise", "top-label", "drawn-class")
Call = Callable[[np.ndarray, np.ndarray], Any]
MEASURES: dict[str, Call] = {
    f"estimate, {notion}": lambda y, p, notion=notion: cal.estimate(y, p, notion=notion).value for notion in NOTIONS
}
MEASURES |= {
    "report": lambda y, p: len(cal.report(y, p).per_class),
    "calibration_test": lambda y, p: cal.calibration_test(y, p).pvalue,
    "decompose": lambda y, p: cal.decompose(y, p).calibration,
    "brier_score": cal.scores.brier_score,
    "log_loss": cal.scores.log_loss,
}
#: Calibrators, by what makes them.
FITS: dict[str, Callable[[], Any]] = {
    name: lambda name=name: named_calibrator(name, CLASSES)
    for name in [*default_candidates(CLASSES), "end-smoothing", "composed", "order-preserving", "dirichlet"]
}
FITS |= {
    "OneVsRest(PlattScaling())": lambda: OneVsRest(PlattScaling()),
    "AutoCalibrator()": lambda: cal.AutoCalibrator(random_state=0),
}


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores of an over-confident model."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(ROWS, CLASSES)).astype(np.float32) * 1.5
    y = (z * 0.6 + rng.gumbel(size=(ROWS, CLASSES))).argmax(axis=1)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return y, p / p.sum(axis=1, keepdims=True)


def judged(call: str, seed: int) -> dict[str, float]:
    """What comes out of a call, kinds of warnings, CPU seconds and peak memory in MiB."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY,) * 2)
    y, p = drawn(seed)
    began = time.process_time()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        if call in MEASURES:
            out = {"value": float(MEASURES[call](y, p))}
        else:
            after = FITS[call]().fit(p, y).predict_proba(p)
            out = {name: float(cal.scores.log_loss(y, q)) for name, q in (("given", p), ("fitted", after))}
    kinds = len({type(one.message).__name__ for one in seen})
    return {"ended": 1.0, **out, "warnings": float(kinds), "seconds": time.process_time() - began, "peak": peak()}


def sample(call: str, seed: int) -> dict[str, float]:
    """Numbers of a call in a process of its own, and whether it ends."""
    try:
        return alone(MODULE, "judged", call=call, seed=seed)
    except RuntimeError as error:
        print(f"{call}: {error}", file=sys.stderr)
        return {"ended": 0.0}


def answer(kept: Kept) -> str:
    calls = {call: kept.where(call=call) for call in (*MEASURES, *FITS)}
    ended = {call: some for call, some in calls.items() if some["ended"].all()}
    most = {name: max(ended, key=lambda call: ended[call][name].mean()) for name in ("seconds", "peak")}
    failed = ", ".join(call for call in calls if call not in ended)
    warned = ", ".join(call for call, some in ended.items() if some["warnings"].any())
    return (
        f"{len(ended)} of {len(calls)} calls finish (failures: {failed or 'none'}; warnings: {warned or 'none'}). The "
        f"longest, `{most['seconds']}`, takes {ended[most['seconds']]['seconds'].mean():,.0f} CPU seconds. The largest "
        f"peak memory is {ended[most['peak']]['peak'].mean():,.0f} MiB, for `{most['peak']}`."
    )


def picture(kept: Kept) -> Figure:
    calls = {call: kept.where(call=call) for call in (*MEASURES, *FITS)}
    pairs = [(float(some["seconds"].mean()), 0.0) for some in calls.values()]
    return dots([*calls], {"seconds": pairs}, "CPU seconds", log=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives CPU seconds, peak memory, and the value or, for calibrators, the log-loss after the fit"
    yield f"(before: {kept.where(call=next(iter(FITS)))['given'].mean():.4f})."
    yield ""
    yield from table(("call", "CPU s", "peak MiB", "value"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for call in (*MEASURES, *FITS):
        some = kept.where(call=call)
        if not some["ended"].all():
            yield [call, "failed", "", ""]
            continue
        out = f"{some['value'].mean():.4g}" if call in MEASURES else f"{some['fitted'].mean():.4f}"
        yield [call, f"{some['seconds'].mean():,.1f}", f"{some['peak'].mean():,.0f}", out]


EXPERIMENT = Experiment(
    MODULE,
    {"call": [*MEASURES, *FITS]},
    sample,
    answer,
    page,
    picture,
    repetitions=1,
    quick=1,
    timed=("seconds", "peak"),
)

if __name__ == "__main__":
    EXPERIMENT.main()
