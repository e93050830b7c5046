"""Coverage of `estimate` of rows with several labels, whose outcomes depend on each other.

    OMP_NUM_THREADS=1 python -m benchmarks.coverage.several_labels [--repetitions 200] [--write FILE]

Scores of the labels of a row share half of the variance of their log odds (sd 1.5, means from -2.5 to 0.5). A label is
there with a chance of the score, or with one whose log odds are 0.6 times as large; outcomes of a row depend on each
other by a normal copula with correlation 0.5. The truth is the mean distance of the chance from the score, of labels by
quadrature, which count alike (macro), by how often they are there (weighted), or entry by entry (micro). A sample's
seed is its number.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from typing import Any

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

import calibrant as cal

from .. import arguments

SD, SHARED, COPULA = 1.5, 0.5, 0.5
LABELS, ROWS = (3, 12), (300, 2000)
#: Logit scales of the labels' chances; of an odd label out, the others are calibrated.
MAPS: dict[str, Any] = {
    "calibrated": lambda labels: np.ones(labels),
    "all by 0.6": lambda labels: np.full(labels, 0.6),
    "the last by 0.6": lambda labels: np.where(np.arange(labels) == labels - 1, 0.6, 1.0),
}


def means(labels: int) -> np.ndarray:
    """Mean log odds of the labels."""
    return np.linspace(-2.5, 0.5, labels)


def truth(scales: np.ndarray) -> dict[str, float]:
    """Mean distance of the chances from the scores, averaged in three ways; micro where all labels have one map."""
    z = norm.ppf((np.arange(20_000) + 0.5) / 20_000) * SD + means(len(scales))[:, None]
    chance = expit(scales[:, None] * z)
    gaps, often = np.abs(chance - expit(z)).mean(axis=1), chance.mean(axis=1)
    found = {"macro": float(gaps.mean()), "weighted": float(np.average(gaps, weights=often))}
    return found | ({"micro": found["macro"]} if np.ptp(scales) == 0 else {})


def sample(seed: list[int], n: int, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores, (n, L)."""
    rng, labels = np.random.default_rng(seed), len(scales)

    def correlated(share: float) -> np.ndarray:
        return np.sqrt(share) * rng.normal(size=(n, 1)) + np.sqrt(1 - share) * rng.normal(size=(n, labels))

    p = expit(SD * correlated(SHARED) + means(labels))
    return (norm.cdf(correlated(COPULA)) < expit(scales * logit(p))).astype(int), p


def main() -> None:
    options = arguments.parser(__doc__, repetitions=200, write=True).parse_args()
    lines = [
        "# Several labels: coverage of `estimate`",
        "",
        f"Written by `python -m benchmarks.coverage.several_labels --repetitions {options.repetitions}`: share of",
        "samples, in per cent, whose 95 % interval covers the true mean error of the labels, its standard error, and",
        "the median width. Scores and outcomes of the labels of a row depend on each other.",
        "",
        "| chances | labels | rows | average | truth | covered | width |",
        "|---|--:|--:|---|--:|--:|--:|",
    ]
    for named, of in MAPS.items():
        for labels in LABELS:
            scales = of(labels)
            for n in ROWS:
                drawn = [sample([i, n, labels], n, scales) for i in range(options.repetitions)]
                for average, true in truth(scales).items():
                    notion = cal.notions.Multilabel(average)
                    ends = np.array([cal.estimate(y, p, notion=notion).interval for y, p in drawn])
                    share = float(np.mean((ends[:, 0] <= true) & (true <= ends[:, 1])))
                    se = np.sqrt(share * (1 - share) / options.repetitions)
                    width = float(np.median(ends[:, 1] - ends[:, 0]))
                    covered = f"{100 * share:.1f} ± {100 * se:.1f}"
                    lines.append(f"| {named} | {labels} | {n:,} | {average} | {true:.4f} | {covered} | {width:.4f} |")
                    print(lines[-1], flush=True)
    arguments.finish(options, lines)


if __name__ == "__main__":
    main()
