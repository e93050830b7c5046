"""The candidates for the default, on score distributions that are none of the benchmark's: `docs/default_trials.md`.

``python docs/examples/default_trials.py --out RUN_FOLDER --docs docs [--jobs 2]`` predicts 72 score distributions,
reads them with the paper's 15 curves and every candidate, and writes the table. Stopped, it goes on where it was.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from benchmark_parts.runs import NOTIONS, Run
from benchmark_parts.sections import ratio_to_best
from benchmark_parts.stats import table
from benchmark_parts.trials import TRIALS, config, entries

from calibrant.benchmark import paper_curves, run

_HEAD = """# Candidates for the default

Every candidate against the best of the paper's 15 curves *at that size*, on {n} score distributions that are none of
the benchmark's (seed {seed}, {mixtures} mixtures, {sets} sets a size). In each cell: ratio of the median 95th
percentile of the relative error / ratio of the median RMSE / median bias as a share of the truth. The standard error of
a ratio, by a bootstrap of the mixtures, is about {relative:.2f} and {rmse:.2f} (medians over the table).
Computed by `docs/examples/default_trials.py`; what to make of it is in [default.md](default.md).
"""


def page(result: Run) -> str:
    """The tables."""
    doubts: dict[str, list[float]] = {"rel_p95": [], "rmse": []}
    parts = []
    for notion, words in NOTIONS.items():
        bias = result.relative_bias(notion)
        rows = []
        for name, (what, _) in TRIALS.items():
            ratios = {measure: ratio_to_best(result, measure, notion, name) for measure in doubts}
            for measure, found in ratios.items():
                doubts[measure] += [number.se for *_, number in found if name != "zero"]
            column = bias[:, :, result.estimators.index(name)]
            cells = [
                f"{ratios['rel_p95'][i][3].value:.2f} / {ratios['rmse'][i][3].value:.2f} / "
                f"{100 * np.nanmedian(column[i]):+.0f} %".replace("-", "−")
                for i in range(len(result.sizes))
            ]
            rows.append([what, *cells])
        parts.append(f"## {words}\n\n" + table(["candidate", *(f"N = {size}" for size in result.sizes)], rows))
    head = _HEAD.format(
        n=result.n_distributions,
        seed=result.config.seed,
        mixtures=result.clusters.max() + 1,
        sets=result.config.sets,
        relative=np.nanmedian(doubts["rel_p95"]),
        rmse=np.nanmedian(doubts["rmse"]),
    )
    return "\n".join([head, *parts])


def main() -> None:
    """Read the arguments, run, and write."""
    parser = argparse.ArgumentParser(description="Compare candidates for the default estimator.")
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--docs", type=Path, required=True, help="where default_trials.md is written")
    parser.add_argument("--jobs", type=int, default=None, help="processes; default one for each processor")
    parser.add_argument("--seed", type=int, default=2027)
    arguments = parser.parse_args()
    run(
        out=arguments.out,
        n_jobs=arguments.jobs,
        config=config(arguments.seed),
        estimators={**paper_curves(), **entries()},
    )
    text = page(Run.read(arguments.out))
    (arguments.docs / "default_trials.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
