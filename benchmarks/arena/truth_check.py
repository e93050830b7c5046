"""How near the truths of pools are: rows with known calibration errors, `truth_check.md`.

    python -m benchmarks.arena.truth_check [--repetitions 100] [--write benchmarks/arena/truth_check.md]

Pools of 5,000 and 15,000 rows are drawn from distributions of known error (from 10⁶ scores), and their truths found
as the arena finds them. Bias is that of the mean over repetitions; the standard error that the arena states is beside
the standard deviation that truths have.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.special import expit, logit

from calibrant.data.writing import write_text

from .. import arguments
from . import truth

Draw = Callable[[np.random.Generator, int], np.ndarray]
Map = Callable[[np.ndarray], np.ndarray]


def _flat(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.random(n).clip(1e-6, 1 - 1e-6)


def _ends(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.beta(0.4, 0.4, n).clip(1e-6, 1 - 1e-6)


def _sure(rng: np.random.Generator, n: int) -> np.ndarray:
    return expit(rng.normal(4, 2, n))


def _atoms(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.binomial(10, rng.beta(0.7, 0.7, n)) / 10


LAWS: dict[str, tuple[Draw, Map]] = {
    "flat, calibrated": (_flat, lambda s: s),
    "sure, calibrated": (_sure, lambda s: s),
    "flat, logit + 0.2": (_flat, lambda s: expit(logit(s) + 0.2)),
    "ends, logit × 0.7": (_ends, lambda s: expit(0.7 * logit(s))),
    "sure, logit × 0.9": (_sure, lambda s: expit(0.9 * logit(s))),
    "sure, logit × 0.6": (_sure, lambda s: expit(0.6 * logit(s))),
    "eleven atoms, 0.1 + 0.8 s": (_atoms, lambda s: 0.1 + 0.8 * s),
    "flat, three waves of ±0.05": (_flat, lambda s: np.clip(s + 0.05 * np.sin(6 * np.pi * s), 0, 1)),
    "flat, steps of ±0.1": (_flat, lambda s: np.clip(s + 0.1 * np.sign(np.sin(8 * np.pi * s)), 0, 1)),
}


def known(law: str) -> float:
    """The distribution's calibration error."""
    draw, curve = LAWS[law]
    s = draw(np.random.default_rng(10**6), 10**6)
    return float(np.abs(curve(s) - s).mean())


def found(law: str, n: int, repetitions: int) -> Iterator[tuple[truth.Truth, float]]:
    """Truths of pools of n rows, and the plug-in of 100 bins of equal counts."""
    draw, curve = LAWS[law]
    for seed in range(repetitions):
        rng = np.random.default_rng([seed, n])
        s = draw(rng, n)
        y = (rng.random(n) < curve(s)).astype(int)
        both = np.column_stack([1 - s, s])
        order = np.argsort(s)
        plug_in = sum(abs(part.sum()) for part in np.array_split((y - s)[order], 100)) / n
        yield truth.of_pool(both, y, seed)["classwise"], plug_in


def table(repetitions: int) -> str:
    """A row a distribution and size."""
    lines = [
        "| distribution | rows | truth | mean found | bias / truth | plug-in, 100 bins | its standard deviation "
        "| as stated |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for law in LAWS:
        value = known(law)
        for n in (5000, 15_000):
            pairs = list(found(law, n, repetitions))
            v = np.array([one.value for one, _ in pairs])
            naive = float(np.mean([p for _, p in pairs]))
            stated = float(np.mean([one.standard_error for one, _ in pairs]))
            error = v.std(ddof=1) / np.sqrt(len(v))
            bias = f"{v.mean() / value - 1:+.3f} ± {error / value:.3f}" if value > 0 else "–"
            lines.append(
                f"| {law} | {n:,} | {value:.4f} | {v.mean():.4f} ± {error:.4f} | {bias} | {naive:.4f} "
                f"| {v.std(ddof=1):.4f} | {stated:.4f} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=100, write=True)
    options = parser.parse_args()
    about = str(__doc__).split("\n\n")[2].strip()
    text = (
        f"# How near the truths of pools are\n\n{about}\n\n{table(options.repetitions)}\n\n"
        f"{options.repetitions} pools a row. Made by `python -m benchmarks.arena.truth_check`.\n"
    )
    print(text)
    if options.write:
        write_text(Path(options.write), text)


if __name__ == "__main__":
    main()
