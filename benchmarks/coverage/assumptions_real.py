"""Do intervals of `estimate(assume=…)` cover the calibration errors of real models?

    python -m benchmarks.arena.build
    python -m benchmarks.coverage.assumptions_real [--repetitions 50]

Models and data are the reporting half of [the arena](../arena/README.md): ten models on 24 data sets, and three
networks. *Pools* have at least 5,000 held-out rows with their own labels. Their true errors are estimates, and an
interval counts as covering if it comes within two standard errors of them. For smaller data sets, labels are *redrawn*
and true errors are exact. *Forests* and *SVMs* are subsets of both. The three intervals are from the same rows. Models
of one data set are not independent, so standard errors are over data sets.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator

import numpy as np
from matplotlib.figure import Figure

from ..arena.reading import draw
from ..arena.reported import DATA, MODELS, here, read, some
from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, mean, table
from ..provenance import Kept
from .assumptions import intervals

ASSUMED, LEVEL = ("smooth", "none", "variation:1"), 95
#: Notions and rows.
READ = {"confidence, 100": ("confidence", 100), "confidence, 1,000": ("confidence", 1000)}
#: Networks only.
CLASSES = {"classwise, 2,000": ("classwise", 2000)}
#: Which models are in a group, by model and whether rows are a pool.
GROUPS: dict[str, Callable[[str, bool], bool]] = {
    "pools": lambda model, pool: model != "given" and pool,
    "redrawn": lambda model, pool: model != "given" and not pool,
    "networks": lambda model, pool: model == "given",
    "forests": lambda model, pool: model in ("forest", "extra-trees"),
    "SVMs": lambda model, pool: model in ("svc", "linear-svc"),
}


def sample(data: str, model: str, seed: int) -> dict[str, float]:
    """Of each notion and size, whether intervals cover, their widths, and whether the lower end is above 0."""
    one = read(data, model)
    out = {"pool": float(one.pool)}
    for name, (notion, n) in (READ | (CLASSES if model == "given" else {})).items():
        if n > one.largest or notion not in one.truths:
            continue
        drawn, truth = draw(one, n, seed, notion=notion), one.truths[notion]
        given = {"labels": drawn.labels, "notion": notion}
        slack, error = 2 * truth.standard_error, max(truth.value, 0.0)
        for assume, (low, high) in intervals(drawn.y_true, drawn.y_prob, ["variation:1"], given, seed).items():
            out[f"{name}, {assume}: covered"] = float(low - slack <= error <= high + slack)
            out[f"{name}, {assume}: width"] = high - low
            out[f"{name}, {assume}: above 0"] = float(low > 0)
    return out


def answer(kept: Kept) -> str:
    told = []
    for assume in ASSUMED:
        cells = {cell: _covered(kept, *cell, assume) for cell in _cells(kept)}
        less = [f"{', '.join(cell)}: {v.mean():.1f}" for cell, v in cells.items() if v.mean() < LEVEL]
        low = min(v.mean() for v in cells.values())
        told.append(f"{low:.1f} % with `{assume}`" + (f" (below {LEVEL} % for {'; '.join(less)})" if less else ""))
    wider = [_width(kept, *cell, "none")[0] / _width(kept, *cell, "smooth")[0] for cell in _cells(kept)]
    return (
        f"For every group of models, notion and number of rows, the mean coverage of 95 % intervals is at least "
        f"{', '.join(told[:-1])} and {told[-1]}. Intervals with `none` are {min(wider):.1f} to {max(wider):.1f} times "
        f"as wide as the default's (`smooth`)."
    )


def picture(kept: Kept) -> Figure:
    cells = _cells(kept)
    series = {assume: [_width(kept, *cell, assume) for cell in cells] for assume in ASSUMED}
    drawn = dots([", ".join(cell) for cell in cells], series, "mean width of intervals")
    drawn.axes[0].set_xlim(left=0)  # standard errors over three data sets reach below
    return drawn


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives coverage in per cent, the default's with standard errors over data sets. *Shown* is how many"
    yield "of the default's intervals lie above 0. The picture gives mean widths."
    yield ""
    yield from table(("models", "notion, rows", *ASSUMED, "shown"), _rows(kept), texts=2)


def _rows(kept: Kept) -> Iterator[list[str]]:
    for group, name in _cells(kept):
        default, *others = (_covered(kept, group, name, assume) for assume in ASSUMED)
        shown = f"{_covered(kept, group, name, 'smooth', 'above 0').mean():.0f} %"
        yield [group, name, mean(default, 1).removesuffix(" ± nan"), *(f"{one.mean():.1f}" for one in others), shown]


def _cells(kept: Kept) -> list[tuple[str, str]]:
    """Groups with notions and sizes that there are."""
    return [
        (group, name)
        for group in GROUPS
        for name in (*READ, *CLASSES)
        if (group == "networks" or name in READ) and _covered(kept, group, name, "none").size
    ]


def _covered(kept: Kept, group: str, name: str, assume: str, what: str = "covered") -> np.ndarray:
    """How many intervals cover, in per cent, for each data set."""
    return 100 * _of(kept, group, f"{name}, {assume}: {what}")


def _width(kept: Kept, group: str, name: str, assume: str) -> tuple[float, float]:
    return estimate(_of(kept, group, f"{name}, {assume}: width"))


def _of(kept: Kept, group: str, number: str) -> np.ndarray:
    """Means of a number over the models of a group, for each data set that has any."""
    if number not in kept.columns:
        return np.empty(0)
    values, pool = kept[number], kept["pool"] > 0
    inside = np.array([GROUPS[group](m, bool(p)) for m, p in zip(kept.columns["model"], pool, strict=True)])
    inside &= ~np.isnan(values)
    data = np.array(kept.columns["data"])
    return np.array([values[inside & (data == one)].mean() for one in DATA if (inside & (data == one)).any()])


EXPERIMENT = Experiment(
    __spec__.name,
    {"data": DATA, "model": MODELS},
    sample,
    answer,
    page,
    picture,
    repetitions=50,
    quick=1,
    some=some,
    portion=lambda data, model: 1.0 if model == "given" else 0.2,
    here=here,
)

if __name__ == "__main__":
    EXPERIMENT.main()
