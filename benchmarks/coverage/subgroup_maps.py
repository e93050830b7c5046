"""Maps of subgroups where the truth is known: the common one, each one's alone, and `SubgroupCalibrator` between them.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.subgroup_maps [--repetitions 100] [--write FILE]

Scores are Beta(0.8, 0.7) distributed (three classes: softmaxes of normal logits). Subgroup g has the log odds
``0.7 exp(A_g) z + B_g``, A and B normal with the standard deviations of a column. What a map costs is its expected
log-loss on new rows above that of the truth: a mean Kullback-Leibler divergence over fixed scores, weighted by the
subgroups' sizes; probabilities count as 0.0001 at least.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import warnings

import numpy as np
from scipy.special import softmax, xlogy
from scipy.stats import beta

from calibrant import calibrators as c
from calibrant.data.writing import write_text

from .. import arguments

SUBGROUPS = {
    "2 × 500": [500] * 2,
    "5 × 100": [100] * 5,
    "20 × 50": [50] * 20,
    "60 × 5": [5] * 60,
    "2000 and 20 × 30": [2000] + [30] * 20,
}
SPREADS = ((0.0, 0.0), (0.0, 0.2), (0.2, 0.5), (0.4, 1.0))
LEAST = 1e-4


def main() -> None:
    options = arguments.parser(__doc__, repetitions=100, write=True).parse_args()
    warnings.simplefilter("ignore")
    lines = [f"{HEAD.strip()}\n".replace("REPETITIONS", str(options.repetitions))]
    for k in (2, 3):
        lines.append(f"\n## {'Two' if k == 2 else 'Three'} classes\n")
        lines.append(
            "| subgroups | sd of slopes, shifts | common | each alone | `SubgroupCalibrator` | minus the better one |"
        )
        lines.append("|---|---|---:|---:|---:|---:|")
        for name, sizes in SUBGROUPS.items():
            for spread in SPREADS:
                each = np.array([_costs(k, sizes, spread, i) for i in range(options.repetitions)]) * 1000
                cells = [_mean(each[:, j]) for j in range(3)]
                better = each[:, :2].mean(axis=0).argmin()
                cells.append(_mean(each[:, 2] - each[:, better]))
                lines.append(f"| {name} | {spread[0]}, {spread[1]} | {' | '.join(cells)} |")
                print(lines[-1], flush=True)
    if options.write is not None:
        write_text(options.write, "\n".join(lines) + "\n")


HEAD = """
# Maps of subgroups where the truth is known

Written by
`python -m benchmarks.coverage.subgroup_maps --repetitions REPETITIONS --write benchmarks/coverage/subgroup_maps.md`:
log-loss of new rows above that of the truth, in thousandths, with standard errors; seeds are the numbers of the
samples. The common map is `PlattScaling()` (three classes: `TemperatureScaling()`), fitted to all rows, or to each
subgroup's alone; scores are Beta(0.8, 0.7) distributed, or softmaxes of normal logits. Subgroup g multiplies logits by
0.7 exp(A) and shifts them by B, A and B normal. The last column is the difference, sample by sample, to the better of
the two, which nobody knows beforehand.
"""


def _costs(k: int, sizes: list[int], spread: tuple[float, float], i: int) -> list[float]:
    rng = np.random.default_rng([i, k, len(sizes)])
    n_subgroups = len(sizes)
    slopes = 0.7 * np.exp(rng.normal(0, spread[0], n_subgroups))
    shifts = rng.normal(0, spread[1], (n_subgroups, k)) * np.array([0] * (k - 1) + [1] if k == 2 else [1] * k)
    subgroups = np.repeat(np.arange(n_subgroups), sizes)
    z, at = _logits(rng, k, len(subgroups)), _logits(None, k, 400)
    true = softmax(z * slopes[subgroups, None] + shifts[subgroups], axis=1)
    y = (rng.random((len(z), 1)) > true.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    p, new = softmax(z, axis=1), softmax(at, axis=1)
    truth = softmax(at * slopes[:, None, None] + shifts[:, None], axis=2)
    one = (c.PlattScaling if k == 2 else c.TemperatureScaling)(labels=list(range(k)))
    common = np.repeat(one.fit(p, y).predict_proba(new)[None], n_subgroups, axis=0)
    alone = np.stack([one.fit(p[subgroups == g], y[subgroups == g]).predict_proba(new) for g in range(n_subgroups)])
    shrunk = c.SubgroupCalibrator(labels=list(range(k))).fit(p, y, by=subgroups)
    ours = np.stack([shrunk.predict_proba(new, by=np.full(len(new), g)) for g in range(n_subgroups)])
    return [float(np.average(_divergence(truth, q), weights=sizes)) for q in (common, alone, ours)]


def _logits(rng: np.random.Generator | None, k: int, n: int) -> np.ndarray:
    """Drawn logits, or fixed ones."""
    if k > 2:
        return (np.random.default_rng(0) if rng is None else rng).normal(0, 1.5, (n, k))
    s = beta.ppf((np.arange(n) + 0.5) / n, 0.8, 0.7) if rng is None else rng.beta(0.8, 0.7, n)
    s = s.clip(1e-9, 1 - 1e-9)
    return np.log(np.column_stack([1 - s, s]))


def _divergence(truth: np.ndarray, q: np.ndarray) -> np.ndarray:
    q = np.maximum(q, LEAST)
    q = q / q.sum(axis=2, keepdims=True)
    return np.asarray((xlogy(truth, truth) - xlogy(truth, q)).sum(axis=2).mean(axis=1))


def _mean(values: np.ndarray) -> str:
    return f"{values.mean():.2f} ± {values.std(ddof=1) / np.sqrt(len(values)):.2f}"


if __name__ == "__main__":
    main()
