"""Coverage of the class-wise interval of `estimate` by the default, for 10 to 1000 classes where the truth is known.

    python -m benchmarks.coverage.classwise [--repetitions 40] [--classes 10,100,1000] [--sizes 300,3000] [--rows even]

Rows are Dirichlet: "even" (all parameters 1), "sharp" (3 / K each: few classes have most of a row) or "uneven" (a
Zipf's: some classes are a thousand times as frequent as others). Labels are drawn from ``p^(1/T)``, normalised, so
T = 1 is calibrated. The truth is the mean over classes of ``E |P(o_k = 1 | s_k) - s_k|``, from 2·10⁷ probabilities of
other seeds in cells of equal mass. Nothing about intervals was chosen on these rows.

Numbers are K times the error: at most 2, the total variation between what is said and what happens, twice.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import numpy as np

import calibrant as cal

from .. import arguments

#: Probabilities from which a truth is found, cells of a symmetric one, and of each class.
POOL, CELLS, CELLS_A_CLASS = 20_000_000, 4000, 100


def parameters(rows: str, k: int) -> np.ndarray:
    if rows == "even":
        return np.ones(k)
    if rows == "sharp":
        return np.full(k, max(0.05, 3 / k))
    zipf = 1 / np.arange(1, k + 1)
    return zipf / zipf.mean()


def draw(rng: np.random.Generator, rows: str, k: int, n: int, temperature: float) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities said, and true ones."""
    gamma = rng.standard_gamma(parameters(rows, k), (n, k)) + 1e-12
    said = gamma / gamma.sum(axis=1, keepdims=True)
    true = said ** (1 / temperature)
    return said, true / true.sum(axis=1, keepdims=True)


def truth(rows: str, k: int, temperature: float) -> float:
    """K times the class-wise L1 error."""
    said, true = draw(np.random.default_rng(99), rows, k, min(200_000, POOL // k), temperature)
    residual = true - said
    if rows != "uneven":  # all classes are one
        order = np.argsort(said, axis=None)[: said.size // CELLS * CELLS]
        return float(np.abs(residual.ravel()[order].reshape(CELLS, -1).mean(axis=1)).mean() * k)
    n = len(said) // CELLS_A_CLASS * CELLS_A_CLASS
    total = 0.0
    for scores, gap in zip(said.T, residual.T, strict=True):
        total += np.abs(gap[np.argsort(scores)[:n]].reshape(CELLS_A_CLASS, -1).mean(axis=1)).mean()
    return float(total)


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=40)
    parser.add_argument("--classes", default="10,100,1000")
    parser.add_argument("--sizes", default="300,3000")
    parser.add_argument("--rows", default="even,sharp,uneven")
    options = parser.parse_args()
    print("| rows | K | n | T | truth | mean value | mean interval | coverage % |")
    print("|---|---:|---:|---:|---:|---:|---|---:|")
    for rows in options.rows.split(","):
        for k in map(int, options.classes.split(",")):
            for temperature in (0.5, 1.0, 2.0):
                true = 0.0 if temperature == 1 else truth(rows, k, temperature)
                for n in map(int, options.sizes.split(",")):
                    found = np.empty((options.repetitions, 3))
                    for r in range(options.repetitions):
                        rng = np.random.default_rng([1, r, k, n, int(10 * temperature)])
                        said, chance = draw(rng, rows, k, n, temperature)
                        y = np.minimum((chance.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), k - 1)
                        e = cal.estimate(y, said, notion="classwise", labels=range(k), random_state=r)
                        found[r] = k * e.value, k * e.interval.low, k * e.interval.high
                    value, low, high = found.mean(axis=0)
                    hit = ((found[:, 1] <= true + 1e-12) & (true <= found[:, 2])).mean()
                    se = np.sqrt(max(hit * (1 - hit), 0.25 / len(found)) / len(found))
                    cells = f"{true:.3f} | {value:.3f} | {low:.3f} to {high:.3f} | {100 * hit:.1f} ± {100 * se:.1f}"
                    print(f"| {rows} | {k} | {n} | {temperature:g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
