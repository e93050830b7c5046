"""Does the default read real models better than before it had ranges of scores?

    python -m benchmarks.arena.build
    python -m benchmarks.coverage.earlier_default_real [--repetitions 2]

The reporting half of [the arena](../../benchmarks/arena/README.md), which played no part in the making: models whose
samples have 1,000 rows, by their confidences. The same samples are read as before (a smooth map alone whose slope turns
it about the mean of the log-odds) and now. *Pools* have standard errors of their truths: an interval within two of them
counts as covering. 25 samples are drawn side by side, and their means kept.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

from calibrant.data.problem import Problem

from ..arena.reading import draw
from ..arena.reported import DATA, MODELS, here, read, some
from ..charts import dots
from ..experiment import Experiment
from ..markdown import mean, table
from ..provenance import Kept
from .earlier_default import WHEN, both, change_of, compared, middle_of, ratio_of

ROWS, SIDE, NOTION = 1000, 25, "confidence"


def sample(data: str, model: str, seed: int) -> dict[str, float]:
    """Of samples side by side; nothing of models that have too few rows."""
    one = read(data, model)
    if one.largest < ROWS:
        return {"error": float("nan")}
    drawn = [draw(one, ROWS, SIDE * seed + i) for i in range(SIDE)]
    p = np.stack([each.y_prob for each in drawn])
    right = p.argmax(axis=-1) == np.stack([each.y_true for each in drawn])
    problem = Problem.samples(p.max(axis=-1), right, domain=(1 / p.shape[-1], 1.0))
    truth = one.truths[NOTION]
    return compared(both(problem, ROWS, seed), max(truth.value, 0.0), 2 * truth.standard_error)


def answer(kept: Kept) -> str:
    every = [one for models in _grouped(kept).values() for one in models]
    far = [change_of(one)[0] / max(change_of(one)[1], 1e-300) for one in every]
    now, before = (
        mean(np.array([100 * one[f"{when}: covered"].mean() for one in every]), 1) for when in ("now", "before")
    )
    ratio = middle_of([ratio_of(one) for one in every])[0]
    worst = max(every, key=ratio_of)
    named = f"{worst.columns['data'][0]}, {worst.columns['model'][0]}"
    return (
        f"Of {len(every)} models the RMSE is {ratio:.2f} times what it was in the geometric "
        f"mean (most for {named}: {ratio_of(worst):.2f} times); the error fell for "
        f"{sum(one < -2 for one in far)} and grew for {sum(one > 2 for one in far)}, by more than two standard errors. "
        f"95 % intervals cover in {now} % of samples, before in {before} %."
    )


def picture(kept: Kept) -> Figure:
    grouped = _grouped(kept)
    series = {"now": [middle_of([ratio_of(one) for one in models]) for models in grouped.values()]}
    return dots([*grouped], series, "RMSE, as a ratio to that of before (geometric mean over models)", 1.0)


def page(kept: Kept) -> Iterator[str]:
    yield "By data set: geometric means over models of the ratio of RMSE and of width, now to before, with a standard"
    yield "error over models; intervals that cover, in per cent; models of which the error fell (*better*) or grew"
    yield "(*worse*) by more than two standard errors."
    yield ""
    yield from table(("data", "models", "RMSE", "before", "covered", "width", "better", "worse"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for name, models in _grouped(kept).items():
        ratio, error = middle_of([ratio_of(one) for one in models])
        before, now = (np.array([100 * one[f"{when}: covered"].mean() for one in models]) for when in WHEN)
        width = middle_of([one["now: width"].mean() / one["before: width"].mean() for one in models])[0]
        many = [sum(sign * change_of(one)[0] > 2 * change_of(one)[1] for one in models) for sign in (-1, 1)]
        cells = [f"{ratio:.2f} ± {error:.2f}", f"{before.mean():.1f}", mean(now, 1), f"{width:.2f}", *map(str, many)]
        yield [name, str(len(models)), *cells]


def _grouped(kept: Kept) -> dict[str, list[Kept]]:
    """What is kept of each model that has rows enough, by data set; networks together."""
    out: dict[str, list[Kept]] = {}
    for case in EXPERIMENT.every():
        one = kept.where(**case)
        if not np.isnan(one["error"]).any():
            out.setdefault("networks" if case["model"] == "given" else case["data"], []).append(one)
    return out


EXPERIMENT = Experiment(
    __spec__.name,
    {"data": DATA, "model": MODELS},
    sample,
    answer,
    page,
    picture,
    repetitions=2,
    quick=1,
    some=some,
    here=here,
    at="docs/development/earlier_default_real.md",
)

if __name__ == "__main__":
    EXPERIMENT.main()
