"""Coverage where maps are rough: support vector machines of the known-truth benchmark, by the default and by `assume`.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.rough_maps [--repetitions 16] [--write FILE]

The support vector machines among the first 24 distributions of `calibrant benchmark` in its order of work, which are
those of `docs/coverage.md`, from pools of 500,000 rows. Nothing was chosen on them.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import numpy as np

import calibrant as cal
from calibrant.benchmark.config import Config
from calibrant.benchmark.pool import NOTIONS, draw_pool, truth_of
from calibrant.data.writing import write_text

from .. import arguments

FIRST, SIZES, WAYS = 24, (1000, 5000), ("smooth", "variation:1")
HEAD = """
# Where maps are rough: support vector machines

Written by
`python -m benchmarks.coverage.rough_maps --repetitions REPETITIONS --write benchmarks/coverage/rough_maps.md`: how
often 95 % intervals of `estimate` cover the true error, in percent, and their mean ends. The confidence of these
machines and the probabilities of their classes have maps with gaps of -0.3 to 0.5 that change their sign dozens of
times. *Smooth* is the default; `assume="variation:1"` takes only that the map's variation is 1 at most. The default
does not reach 90 % because of the machines of five and seven classes with two features, which no smooth map follows at
these sizes.
"""


def main() -> None:
    options = arguments.parser(__doc__, repetitions=16, write=True).parse_args()
    config = Config(pool=500_000, rows=500_000, sets=10)
    lines = [HEAD.strip().replace("REPETITIONS", str(options.repetitions)) + "\n"]
    lines.append("| classes | features | notion | n | true error | smooth | ends | variation:1 | ends |")
    lines.append("|--:|--:|---|--:|--:|--:|---|--:|---|")
    total: dict[tuple[str, int], list[list[float]]] = {}
    for d in config.shuffled[:FIRST]:
        if d.model != "svc":
            continue
        pool = draw_pool(config, d)
        for notion in NOTIONS:
            truth = truth_of(pool.truth, notion, 1.0).truth
            for n in SIZES:
                found = np.empty((options.repetitions, len(WAYS), 2))
                for i in range(options.repetitions):
                    rows = np.random.default_rng([i, n]).integers(len(pool.labels), size=n)
                    given = {"notion": notion, "labels": range(d.classes), "random_state": i}
                    for j, way in enumerate(WAYS):
                        found[i, j] = cal.estimate(pool.labels[rows], pool.scores[rows], assume=way, **given).interval
                covered = 100 * ((found[..., 0] <= truth) & (truth <= found[..., 1])).mean(axis=0)
                total.setdefault((notion, n), []).append(covered.tolist())
                ends = [f"{low:.3f} to {high:.3f}" for low, high in found.mean(axis=0)]
                shown = " | ".join(f"{share:.0f} | {end}" for share, end in zip(covered, ends, strict=True))
                lines.append(f"| {d.classes} | {d.dimensions} | {notion} | {n:,} | {truth:.4f} | {shown} |")
                print(lines[-1], flush=True)
    lines.append("\n| notion | n | smooth: mean ± standard error over distributions | lowest | variation:1 | lowest |")
    lines.append("|---|--:|--:|--:|--:|--:|")
    for (notion, n), rows in total.items():
        share = np.array(rows)
        error = share.std(axis=0, ddof=1) / np.sqrt(len(share))
        cells = " | ".join(
            f"{m:.1f} ± {e:.1f} | {least:.0f}"
            for m, e, least in zip(share.mean(axis=0), error, share.min(axis=0), strict=True)
        )
        lines.append(f"| {notion} | {n:,} | {cells} |")
    print("\n".join(lines[-5:]))
    if options.write is not None:
        write_text(options.write, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
