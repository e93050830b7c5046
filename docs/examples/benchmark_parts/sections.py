"""The page's sections on what was run, the default against the 15 curves, and every estimator."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibrant.benchmark import Config

from .runs import DEFAULT, NOTIONS, Run, logged
from .stats import CLEAR, FAILS, HOLDS, UNDECIDED, Number, spread, table

#: What the default's error may be of the best curve's: at every size, and up to ``SMALL`` samples.
BAR, SMALL_BAR, SMALL = 0.95, 0.7, 120
_HOW = """
Estimates of one size are paired: all estimators see the same sets. A **relative error** is
|estimate − truth| / truth; its 95th percentile over the {sets} sets is taken for each distribution, then the median
over distributions. An estimator that always gives 0 has a relative error of 1, so **bias** (mean estimate − truth, as a
share of the truth) is given too. After ± stands one standard error over distributions: a bootstrap of the {mixtures}
mixtures, because the distributions of a mixture are not independent. A verdict is "{holds}" or "{fails}" when the sign
is clear by {clear:g} standard errors, and "{undecided}" otherwise."""
_TRUTH = """
## The truth

The posterior of a mixture is known, so the true calibration error needs no labels: {pool} points go into
2000 bins of their score, and a bin's gap is its mean of posterior − score. That alone does not remove the noise of
bins: a pool of this size leaves about {each} rows in a bin, and among rows of one score the posterior may be anything
between 0 and 1. Three truths are therefore kept:

- `truth`, the one used here: the sign of a bin's gap is found in one half of the pool, the gap in the other. It never
  exceeds the error of the binned score in expectation, and reaches it where signs are found.
- `posterior_truth`: the plain sum of absolute gaps, from the posterior.
- `label_truth`: the same from labels, as published.

How far the two plain ones lie above `truth`:

"""


def first_lines(run: Run) -> str:
    """Title, and whether the run is finished."""
    lines = ["# How wrong is each estimator?\n"]
    if not run.finished:
        lines.append(
            f"**This run is unfinished: {run.n_distributions} of {run.n_wanted} distributions, a random subset.** "
            "Everything below is computed from these.\n"
        )
    lines.append(
        "The experiment of Posocco & Bonnefoy (2021, *Estimating Expected Calibration Errors*, §5): where the "
        "calibration error of a model is known, how far from it do estimators read? Every number of this page is "
        "computed by `docs/examples/benchmark_page.py` from a run of `calibrant benchmark`.\n"
    )
    return "\n".join(lines)


def what_was_run(run: Run, log: Path | None = None) -> str:
    """Counts, sizes, time, truth."""
    c = run.config
    mixtures = len(c.classes) * len(c.dimensions) * c.mixtures
    got = run.clusters.max() + 1
    count = (
        f"{run.n_wanted} score distributions"
        if run.finished
        else f"{run.n_distributions} of {run.n_wanted} score distributions (drawn at random, from {got} mixtures)"
    )
    n, n_curves = len(run.estimators), len(run.curves)
    rows = [
        ["mode", f"`{c.mode}`, seed {c.seed}"],
        ["score distributions", count],
        [
            "mixtures",
            f"{mixtures}: {_listed(c.classes)} classes × {_listed(c.dimensions)} dimensions × {c.mixtures}",
        ],
        ["training sets", f"{c.trainings} of {c.train_size} points for each mixture"],
        ["models", _listed(c.models)],
        ["evaluation sets", f"{c.sets} of each size for each distribution"],
        ["sizes", _listed(run.sizes)],
        [
            "estimators",
            f"{n}: the paper's {n_curves}, and {n - n_curves} of ours",
        ],
        ["versions", ", ".join(f"{k} {v}" for k, v in sorted(run.versions.items()))],
    ]
    seconds = float(run.frame["seconds"].sum()) * c.sets
    rows.append(["processor time of all estimates", _duration(seconds)])
    if log is not None:
        passed, calls = logged(log)
        whole = f"{_duration(passed)}, pools and draws included"
        rows.append(["wall time, by the run's log", whole if calls == 1 else f"{whole}; in {calls} calls"])
    if run.lacking:
        rows.append(["not read everywhere, in tables of their own", _listed(tuple(f"`{n}`" for n in run.lacking))])
    how = _HOW.format(sets=c.sets, mixtures=got, holds=HOLDS, fails=FAILS, undecided=UNDECIDED, clear=CLEAR)
    truth = _TRUTH.format(pool=f"{c.pool:,}".replace(",", " "), each=max(1, c.pool // 2000))
    return "## What was run\n\n" + table(["", " "], rows).replace("---:", "---") + how + "\n" + truth + _floors(run)


def _duration(seconds: float) -> str:
    """Hours, or minutes below one."""
    return f"{seconds / 3600:.2f} h" if seconds >= 3600 else f"{seconds / 60:.2f} min"


def _floors(run: Run) -> str:
    """How far the plain truths lie above the one used."""
    rows = []
    for notion, words in NOTIONS.items():
        truth = run.of("truth", notion, run.curves[0])[0]
        row = [words, run.resampler.median(truth).text(4)]
        for name in ("posterior_truth", "label_truth"):
            other = run.of(name, notion, run.curves[0])[0]
            more = np.divide(other, truth, out=np.full(truth.shape, np.nan), where=truth > 0) - 1
            row += [run.resampler.median(more).percent(), f"{100 * np.nanmax(more):+.1f} %".replace("-", "−")]
        rows.append(row)
    header = [
        "notion",
        "median truth",
        "posterior_truth above it, median",
        "largest",
        "label_truth above it, median",
        "largest",
    ]
    return table(header, rows)


def commands(run: Run, command: str) -> str:
    """What makes a run and its page."""
    mode = "" if run.config.mode == "corrected" else f" --mode {run.config.mode}"
    sets = "" if run.config.sets == Config().sets else f" --sets {run.config.sets}"
    return f"""## How to repeat it

```bash
calibrant benchmark{mode}{sets} --out RUN_FOLDER   # the whole run; --quick has the same structure and takes minutes
{command}
```
"""


def how_to_repeat(run: Run, command: str) -> str:
    """Commands."""
    return f"""
{commands(run, command)}
A run that was stopped goes on where it was. [summary.csv](benchmark/summary.csv) holds the medians of every
estimator, size and notion with their standard errors, [config.json](benchmark/config.json) the configuration and
versions.
"""


def default_tables(run: Run, level: str = "##") -> str:
    """The default against the best of the 15 at every size."""
    out = [
        f"{level} The default against the best of the 15\n",
        f"`{DEFAULT}` (`{run.definitions[DEFAULT]}`) against whichever of the paper's {len(run.curves)} curves is the "
        "best at that very size, chosen with hindsight (and anew in every bootstrap resample), separately for the 95th "
        f"percentile of the relative error and for RMSE. Bars: RMSE ≤ {BAR:g} of the best; relative error ≤ {BAR:g} of "
        f"the best, and ≤ {SMALL_BAR:g} for N ≤ {SMALL}. ✓ met, ✗ missed; with ? where the bar is within {CLEAR:g} "
        "standard errors, or where there is no standard error.\n",
    ]
    for notion, words in NOTIONS.items():
        ratios = {m: ratio_to_best(run, m, notion) for m in ("rel_p95", "rmse")}
        bias = run.relative_bias(notion)[:, :, run.estimators.index(DEFAULT)]
        rows, missed = [], {"rel_p95": 0, "rmse": 0}
        for i, size in enumerate(run.sizes):
            bar = SMALL_BAR if size <= SMALL else BAR
            best, at_best, ours, ratio = ratios["rel_p95"][i]
            rmse_best, _, _, rmse_ratio = ratios["rmse"][i]
            missed["rel_p95"] += not ratio.value <= bar
            missed["rmse"] += not rmse_ratio.value <= BAR
            rows.append(
                [
                    str(size),
                    f"{best} {at_best:.3f}",
                    f"{ours:.3f}",
                    f"{ratio.text()} {mark(ratio, bar)}",
                    rmse_best,
                    f"{rmse_ratio.text()} {mark(rmse_ratio, BAR)}",
                    run.resampler.median(bias[i]).percent(),
                ]
            )
        header = ["N", "best of 15, rel. error", "ours", "ratio", "best of 15, RMSE", "ratio of RMSE", "our bias"]
        n = len(run.sizes)
        out.append(
            f"**{words}**: the bar for the relative error is met at {n - missed['rel_p95']} of {n} sizes, that for"
        )
        out.append(f"RMSE at {n - missed['rmse']} of {n}.\n")
        out.append(table(header, rows))
    return "\n".join(out)


def ratio_to_best(run: Run, measure: str, notion: str, name: str = DEFAULT) -> list[tuple[str, float, float, Number]]:
    """At every size: the best of the 15, its median, that of the estimator ``name``, and their ratio."""
    values = run.values(measure, notion)
    out = []
    for i in range(len(run.sizes)):
        columns = run.columns([*run.curves, name])
        found, again = run.resampler.medians(values[i][:, columns])
        best = int(np.nanargmin(found[:-1]))
        ratio = float(found[-1] / found[best])
        doubt = spread(again[:, -1] / again[:, :-1].min(axis=1)) if len(again) else np.nan
        out.append((run.curves[best], float(found[best]), float(found[-1]), Number(ratio, float(doubt))))
    return out


def mark(ratio: Number, bar: float) -> str:
    """Whether a bar is met, and whether that is clear."""
    if not np.isfinite(ratio.value):
        return ""
    clear = np.isfinite(ratio.se) and abs(ratio.value - bar) > CLEAR * ratio.se
    return ("✓" if ratio.value <= bar else "✗") + ("" if clear else "?")


def estimator_tables(run: Run) -> str:
    """Every estimator at a few sizes: relative error, bias, time."""
    sizes = run.few
    indices = [run.at(size) for size in sizes]
    out = [
        "## Every estimator\n",
        "Left: 95th percentile of the relative error; right: bias as a share of the truth. Medians over distributions; "
        "their standard errors, absolute errors and the other sizes are in summary.csv. Estimators named l2 read the "
        "error of norm 2 and are judged by the truth of norm 2. The best of norm 1 is bold, and so is our default.\n",
        _errors(run, run.estimators, "###"),
    ]
    late = run.late()
    if late is not None:
        shown = (*run.curves, DEFAULT, *run.lacking)
        out += [
            "### Estimators that were read on a part of the distributions\n",
            f"{_listed(tuple(f'`{name}`' for name in run.lacking))}: read on {late.n_distributions} of "
            f"{run.n_wanted} distributions, a random subset; so are the other lines of these two tables.\n",
            _errors(late, shown, "####"),
        ]
    out += [
        "### Time\n",
        "Microseconds an estimate in the benchmark's batches (median over distributions; what estimators share, such "
        "as sorting, is charged to the first that needs it; a class-wise estimate takes every class).\n",
    ]
    times = {notion: run.medians("seconds", notion)[indices] for notion in NOTIONS}
    rows = [
        [_name(name), *(f"{1e6 * times[notion][i, j]:.0f}" for notion in NOTIONS for i in range(len(sizes)))]
        for j, name in enumerate(run.estimators)
    ]
    header = ["estimator", *(f"{words.lower()} {n}" for words in NOTIONS.values() for n in sizes)]
    out.append(table(header, rows))
    meanings = run.definitions if late is None else run.definitions | late.definitions
    own = [[_name(name), f"`{meaning}`"] for name, meaning in meanings.items() if name not in run.curves]
    if own:
        out += ["### Names\n", table(["name", "what it is"], own).replace("---:", "---")]
    return "\n".join(out)


def _errors(run: Run, names: tuple[str, ...], level: str) -> str:
    """Errors and biases of some estimators, a table for each notion."""
    sizes, columns = run.few, run.columns(names)
    indices = [run.at(size) for size in sizes]
    squared = set(run.frame.filter(run.frame["norm"] == 2)["estimator"].unique())
    first = np.array([name not in squared for name in names])
    out = []
    for notion, words in NOTIONS.items():
        error = run.medians("rel_p95", notion)[np.ix_(indices, columns)]
        relative = run.relative_bias(notion)[indices][:, :, columns]
        bias = np.array([[np.nanmedian(c) if (~np.isnan(c)).any() else np.nan for c in v.T] for v in relative])
        least = np.nanmin(np.where(first, error, np.inf), axis=1)
        rows = []
        for j, name in enumerate(names):
            cells = [_cell(v, bold=bool(first[j] and v == low)) for v, low in zip(error[:, j], least, strict=True)]
            biases = [f"{100 * v:+.0f} %".replace("-", "−") if np.isfinite(v) else "–" for v in bias[:, j]]
            rows.append([_name(name), *cells, *biases])
        header = ["estimator", *(f"N = {n}" for n in sizes), *(f"bias {n}" for n in sizes)]
        out += [f"{level} {words}\n", table(header, rows)]
    return "\n".join(out)


def _cell(value: float, *, bold: bool) -> str:
    text = f"{value:.2f}" if np.isfinite(value) else "–"
    return f"**{text}**" if bold else text


def _name(name: str) -> str:
    return f"**`{name}`**" if name == DEFAULT else f"`{name}`"


def _listed(values: tuple[object, ...]) -> str:
    return ", ".join(map(str, values))
