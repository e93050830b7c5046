"""The candidates for the default, on score distributions of its own: `docs/development/default_trials.md`.

``python docs/examples/default_trials.py --out RUN_FOLDER --docs docs/development [--jobs 2]`` predicts 72 score
distributions that are none of the benchmark's, reads them with the paper's 15 curves and every candidate, and writes
the table. Stopped, it goes on where it was.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from benchmark_parts.runs import NOTIONS, Run
from benchmark_parts.sections import ratio_to_best
from benchmark_parts.stats import table
from benchmark_parts.trials import TRIALS, config, entries, known_sign

from calibrant.benchmark import paper_curves, run
from calibrant.benchmark.experiment import Store

_HEAD = """# Candidates for the default

The tables compare every candidate with the best of the paper's 15 curves *at that size*, on {n} score distributions
that are not in the benchmark (seed {seed}, {mixtures} mixtures, {sets} sets per size). Each cell gives the ratio of
median 95th percentiles of the relative error / the ratio of median RMSEs / the median bias as a share of the truth. The
standard error of a ratio, by a bootstrap of the mixtures, is about {relative:.2f} and {rmse:.2f} (medians over the
table).
Computed by `docs/examples/default_trials.py`; [default.md](default.md) discusses the results.
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
        rows.append(["knowing on which side every score is wrong (an oracle)", *_oracle(result, notion)])
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


def _oracle(result: Run, notion: str) -> list[str]:
    """The same cells for the oracle."""
    store = Store.existing(result.folder)
    best = {m: [at_best for _, at_best, _, _ in ratio_to_best(result, m, notion)] for m in ("rel_p95", "rmse")}
    cells = []
    for i, size in enumerate(result.sizes):
        found = known_sign(store, size)
        truth = found[f"{notion} truth"][:, None]
        error = found[f"{notion} estimate"] - truth
        relative = np.median(np.quantile(np.abs(error), 0.95, axis=1) / truth[:, 0])
        rmse = np.median(np.sqrt((error**2).mean(axis=1)))
        bias = np.median(error.mean(axis=1) / truth[:, 0])
        cells.append(f"{relative / best['rel_p95'][i]:.2f} / {rmse / best['rmse'][i]:.2f} / {100 * bias:+.0f} %")
    return [cell.replace("-", "−") for cell in cells]


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
        keep_predictions=True,
        config=config(arguments.seed),
        estimators={**paper_curves(), **entries()},
    )
    text = page(Run.read(arguments.out))
    (arguments.docs / "default_trials.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
