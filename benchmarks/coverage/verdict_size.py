"""How often a report calls calibrated classes miscalibrated: by the test of all rows, by those of classes, by either.

    python -m benchmarks.coverage.verdict_size --store FILE [--repetitions 1000] [--only TEXT] [--write FILE]

Every report is a line of the store: a run that was stopped goes on. Rows of probabilities are Dirichlet distributed or
softmaxes of normal logits, and labels are drawn from them. A thousand classes are reported a fifth as often.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.reporting.assemble import tests_of

from .. import arguments
from ..store import found_of, share

#: Classes and rows; the notions, the level, and how many times fewer samples of a thousand classes are drawn.
CELLS = [(3, 300), (3, 3000), (20, 1000), (20, 6000), (1000, 5000), (1000, 20_000)]
NOTIONS, LEVEL, FEWER = ("confidence", "classwise"), 0.95, 5


def drawn(k: int, n: int, repetition: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and calibrated probabilities: of even repetitions Dirichlet rows, of odd ones softmaxes."""
    rng = np.random.default_rng([36, k, n, repetition])
    if repetition % 2:
        p = np.exp(2 * rng.normal(size=(n, k)) - rng.exponential(size=k))
        p /= p.sum(axis=1, keepdims=True)
    else:
        p = rng.dirichlet(np.full(k, 0.3), n) * (1 - 1e-9) + 1e-9 / k
    return np.minimum((rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1), k - 1), p


def found(k: int, n: int, notion: str, repetition: int) -> dict[str, Any]:
    """What rejects: the tests of a report, without all else that it says."""
    y, p = drawn(k, n, repetition)
    sums = cal.Accumulator(notion=notion, labels=range(k)).update(y, p)
    _, judged, draw_test = tests_of(sums, sums.question(1, LEVEL), repetition)
    return {"rows": draw_test().rejects, "classes": any(row.significant for row in judged)}


def page(every: dict[tuple[Any, ...], dict[str, Any]]) -> Iterator[str]:
    """The page, as lines."""
    yield "# Calibrated classes called miscalibrated\n"
    yield "Written by `python -m benchmarks.coverage.verdict_size`, which says how samples are drawn; % with its"
    yield "standard error, at a level of 95 %. The test of all rows has 4 % of the 5 %, the tests of"
    yield "classes (Holm) the other 1 %.\n"
    yield "| classes | rows | notion | reports | test of all rows | a class | either |"
    yield "|---:|---:|---|---:|---:|---:|---:|"
    for k, n in CELLS:
        for notion in NOTIONS:
            some = [r for key, r in every.items() if key[:3] == (k, n, notion)]
            if some:
                cells = [share([bool(r[name]) for r in some]) for name in ("rows", "classes")]
                either = share([r["rows"] or r["classes"] for r in some])
                yield f"| {k:,} | {n:,} | {notion} | {len(some):,} | {cells[0]} | {cells[1]} | {either} |"


def main() -> None:
    parser = arguments.parser(
        __doc__, repetitions=1000, only="cells such as 'K=20 n=6000 classwise'", write=True, store=True
    )
    options = parser.parse_args()
    asked = [
        (k, n, notion, repetition)
        for repetition in range(options.repetitions)
        for k, n in CELLS
        for notion in NOTIONS
        if options.only in f"K={k} n={n} {notion}" and not (k == 1000 and repetition % FEWER)
    ]
    arguments.finish(options, page(found_of(options.store, asked, found)))


if __name__ == "__main__":
    main()
