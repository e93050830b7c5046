"""How much the ratios of docs/benchmark.md depend on which evaluation sets are drawn, and on how many.

``python docs/examples/benchmark_sets.py`` (3 CPU minutes) draws the first 100 distributions of ``calibrant benchmark``
in its order of work, with smaller pools, and prints the default's relative error for the confidence over that of the
best published estimator, from 100 sets and from each quarter of them.
"""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed

from calibrant.benchmark.config import Config, Distribution
from calibrant.benchmark.curves import OURS, paper_curves
from calibrant.benchmark.pool import draw_pool, truth_of
from calibrant.benchmark.read import estimates_of, samples

CONFIG = Config(sets=100, pool=500_000, rows=500_000)
ENTRIES = {**paper_curves(), **OURS}
#: The best of the 15 at each size.
BEST = {30: "csqrt", 5000: "ac30"}
QUARTERS = (slice(None), *(slice(a, a + 25) for a in (0, 25, 50, 75)))


def errors(distribution: Distribution) -> np.ndarray:
    """95th percentiles of relative errors, of shape (sizes, two estimators, all sets and quarters)."""
    pool = draw_pool(CONFIG, distribution)
    truth = truth_of(pool.truth, "confidence", 1.0).truth
    predicted = pool.scores.argmax(axis=1)
    confidence, correct = pool.scores[np.arange(len(predicted)), predicted], predicted == pool.labels
    out = []
    for size, best in BEST.items():
        rows = CONFIG.rows_of(size)
        parts = [
            samples(confidence[some], correct[some], (1 / distribution.classes, 1.0)) for some in np.split(rows, 10)
        ]
        for name in ("empirical-bayes", best):
            found = np.concatenate([estimates_of(ENTRIES[name], [part]) for part in parts])
            relative = np.abs(found - truth) / truth
            out.append([np.quantile(relative[sets], 0.95) for sets in QUARTERS])
    return np.reshape(out, (len(BEST), 2, len(QUARTERS)))


def main() -> None:
    """Print the ratios of medians."""
    medians = np.median(Parallel(n_jobs=-1)(delayed(errors)(d) for d in CONFIG.shuffled[:100]), axis=0)
    for size, (ours, best) in zip(BEST, medians, strict=True):
        ratio = ours / best
        print(f"N = {size}: {ratio[0]:.3f} from 100 sets; from 25: {', '.join(f'{r:.3f}' for r in ratio[1:])}")


if __name__ == "__main__":
    main()
