"""How often does a report call calibrated classes miscalibrated?

    python -m benchmarks.coverage.verdict_size [--repetitions 250]

Rows of probabilities are Dirichlet distributed (0.3 for each class), or softmaxes of normal logits with some rare
classes. Labels are drawn from them. A report tests all rows at 4 % and each class at a share of the other 1 % (Holm).
Both notions are judged on the same rows. A thousand classes have a fifth as many samples.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal
from calibrant.reporting.assemble import tests_of

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, share, table
from ..provenance import Kept

#: Classes and rows.
SIZES = {
    f"{k:,} classes, {n:,} rows": (k, n)
    for k, n in ((3, 300), (3, 3000), (20, 1000), (20, 6000), (1000, 5000), (1000, 20_000))
}
SCORES = ("Dirichlet", "softmax")
NOTIONS, LEVEL = ("confidence", "classwise"), 0.95
#: What may reject, with its share of calibrated samples in per cent.
MAY = {"rows": 4, "a class": 1, "either": 5}


def drawn(k: int, n: int, scores: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and calibrated probabilities."""
    rng = np.random.default_rng([36, k, n, SCORES.index(scores), seed])
    if scores == "softmax":
        p = np.exp(2 * rng.normal(size=(n, k)) - rng.exponential(size=k))
        p /= p.sum(axis=1, keepdims=True)
    else:
        p = rng.dirichlet(np.full(k, 0.3), n) * (1 - 1e-9) + 1e-9 / k
    return np.minimum((rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1), k - 1), p


def sample(size: str, scores: str, seed: int) -> dict[str, float]:
    """What rejects, of each notion: the tests of a report, without all else that it says."""
    k, n = SIZES[size]
    y, p = drawn(k, n, scores, seed)
    out = {}
    for notion in NOTIONS:
        sums = cal.Accumulator(notion=notion, labels=range(k)).update(y, p)
        _, judged, draw_test = tests_of(sums, sums.question(1, LEVEL), seed)
        rows, one = float(draw_test().rejects), float(any(row.significant for row in judged))
        out |= {f"{notion}: rows": rows, f"{notion}: a class": one, f"{notion}: either": max(rows, one)}
    return out


def answer(kept: Kept) -> str:
    pooled = [share(kept[f"{notion}: either"]) for notion in NOTIONS]
    cells = {f"{size}, {notion}": kept.where(size=size)[f"{notion}: either"] for size in SIZES for notion in NOTIONS}
    over = {name: (percent(values)[0] - MAY["either"], percent(values)[1]) for name, values in cells.items()}
    far = [f"{name}: {share(cells[name])}" for name, (by, error) in over.items() if by > 2 * error]
    return (
        f"{NOTIONS[0].capitalize()} reports call {pooled[0]} % of calibrated samples miscalibrated, and {NOTIONS[1]} "
        f"reports {pooled[1]} %; {MAY['either']} % are allowed. The share exceeds {MAY['either']} % in "
        f"{sum(by > 0 for by, _ in over.values())} of {len(cells)} cases of size and notion, and by more than two "
        f"standard errors in {'; '.join(far) or 'none'}."
    )


def picture(kept: Kept) -> Figure:
    series = {
        f"{notion}, {scores}": [percent(kept.where(size=size, scores=scores)[f"{notion}: either"]) for size in SIZES]
        for notion in NOTIONS
        for scores in SCORES
    }
    return dots([*SIZES], series, "calibrated samples called miscalibrated, %", float(MAY["either"]), share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives the percentage of calibrated samples in which the test of all rows rejects (4 % are"
    yield "allowed), the test of any class (1 %), or either (5 %, with standard errors). It pools both kinds of scores."
    yield ""
    yield from table(("samples", "notion", *MAY), _rows(kept), texts=2)


def _rows(kept: Kept) -> Iterator[list[str]]:
    for size in SIZES:
        some = kept.where(size=size)
        for notion in NOTIONS:
            *parts, either = (some[f"{notion}: {what}"] for what in MAY)
            yield [size, notion, *(f"{percent(one)[0]:.1f}" for one in parts), share(either)]


EXPERIMENT = Experiment(
    __spec__.name,
    {"size": [*SIZES], "scores": SCORES},
    sample,
    answer,
    page,
    picture,
    repetitions=250,
    portion=lambda size, scores: 0.2 if SIZES[size][0] == 1000 else 1.0,
)

if __name__ == "__main__":
    EXPERIMENT.main()
