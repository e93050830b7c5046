"""What holds of the paper's claims: numbers over distributions with standard errors, and a word for each."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from calibrant.benchmark import Config

from .runs import DEFAULT, NOTIONS, Run
from .stats import FAILS, HOLDS, UNDECIDED, Number, both, table

#: The range of the curves of the published Figure 2 at its smallest size, read off the figure.
PUBLISHED_AT_30 = (0.13, 0.36)
#: The largest size in it.
FIGURE_ENDS = 500
BINS = ("10", "30", "sqrt")
FAMILIES = ("l", "a", "c", "ac")
SILVERMAN, FIXED = "d-silverman", ("d0.1", "d0.033")
#: (better, worse) pairs that a claim is about, by the claim.
LINEAR = [(f"{new}{b}", f"{old}{b}") for new, old in (("c", "l"), ("ac", "a")) for b in BINS]
QUANTILE = [(f"{new}{b}", f"{old}{b}") for new, old in (("a", "l"), ("ac", "c")) for b in BINS]
SQRT = {b: [(f"{f}sqrt", f"{f}{b}") for f in FAMILIES] for b in ("10", "30")}


@dataclass
class Claims:
    """Statements with their verdicts, gathered while sections are written."""

    run: Run
    rows: list[list[str]] = field(default_factory=list)

    def state(self, statement: str, verdicts: dict[str, tuple[str, str]]) -> None:
        """Note a statement with (verdict, figures) for each notion."""
        cells = [f"**{word}**: {figures}" if figures else f"**{word}**" for word, figures in verdicts.values()]
        self.rows.append([statement, *cells])

    def page(self) -> str:
        """The whole section: verdicts first, then what they rest on."""
        parts = [
            _reading(self),
            _bias(self),
            _pairs(self, LINEAR, "The linear mapping is better than the hard one", "Linear or hard mapping"),
            _pairs(self, QUANTILE, "Quantile edges are better than uniform ones", "Quantile or uniform edges"),
            _bins(self),
            _silverman(self),
            _truths(self),
        ]
        head = (
            "## What holds of the paper's claims, and what does not\n\n"
            "A ratio below is the geometric mean over distributions of the 95th percentile of one estimator's error "
            "over another's (relative or absolute error makes no difference: their truth is the same); ± its standard "
            "error. In this first table ratios are also averaged over all sizes and pairs.\n\n"
        )
        header = ["statement", *NOTIONS.values()]
        return head + table(header, self.rows).replace("---:", "---") + "\n" + "\n".join(parts)


def _reading(claims: Claims) -> str:
    """Relative error in the text, absolute error in the figure."""
    run, low, high = claims.run, *PUBLISHED_AT_30
    smallest = run.sizes[0]
    verdicts, rows = {}, []
    for notion, words in NOTIONS.items():
        columns = run.columns(run.curves)
        found = {m: run.medians(m, notion)[0][columns] for m in ("abs_p95", "rel_p95")}
        best = run.curves[int(np.nanargmin(found["rel_p95"]))]
        least = run.resampler.median(run.of("rel_p95", notion, best)[0])
        verdicts[notion] = (least.beyond(high, -1), f"the least relative one is {least.text(2)}")
        inside = int(((found["abs_p95"] >= low) & (found["abs_p95"] <= high)).sum())
        rows.append(
            [words, *(f"{v.min():.2f} to {v.max():.2f}" for v in found.values()), f"{inside} of {len(columns)}"]
        )
    claims.state(f"The published Figure 2 shows relative errors (at N = {smallest}: {low:g} to {high:g})", verdicts)
    header = [
        "notion",
        "absolute error of the 15",
        "relative error of the 15",
        "absolute ones within the published range",
    ]
    return (
        "### Relative in the text, absolute in the figure\n\n"
        f"The text describes a relative error. The figure's curves start at {low:g} to {high:g} at N = 30, the first "
        f"size, whichever notion. Here, at N = {smallest}:\n\n" + table(header, rows)
    )


def _bias(claims: Claims) -> str:
    """Every estimator is biased upward at the smallest size."""
    run = claims.run
    smallest = run.sizes[0]
    verdicts = {}
    names = [*run.curves, *([DEFAULT] if run.has_default else [])]
    rows = [[f"`{name}`"] for name in names]
    for notion in NOTIONS:
        relative = run.relative_bias(notion)[0]
        numbers = {name: run.resampler.median(relative[:, run.estimators.index(name)]) for name in names}
        words = [numbers[name].beyond(0, 1) for name in run.curves]
        verdict = HOLDS if set(words) == {HOLDS} else FAILS if FAILS in words else UNDECIDED
        values = [numbers[name].value for name in run.curves]
        verdicts[notion] = (
            verdict,
            f"median bias {100 * min(values):+.0f} % to {100 * max(values):+.0f} %".replace("-", "−"),
        )
        for row, name in zip(rows, names, strict=True):
            upward = np.nanmean(relative[:, run.estimators.index(name)] > 0)
            row += [f"{numbers[name].percent()} {numbers[name].beyond(0, 1)}", f"{100 * upward:.0f} %"]
    claims.state(f"At N = {smallest} every one of the 15 is biased upward", verdicts)
    header = ["estimator"]
    for words_of in NOTIONS.values():
        header += [f"{words_of}: bias", "upward in"]
    ours = "; the last line is our default" if run.has_default else ""
    return (
        f"### Bias at N = {smallest}\n\nMedian over distributions of bias / truth, whether it is upward, and in what "
        f"share of distributions it is{ours}.\n\n" + table(header, rows)
    )


def overall(run: Run, notion: str, pairs: list[tuple[str, str]], largest: float = np.inf) -> Number:
    """Ratio averaged over pairs, sizes up to ``largest`` and distributions."""
    sizes = np.array(run.sizes) <= largest
    logs = np.stack([run.log_ratio(notion, *pair)[sizes] for pair in pairs])
    return run.ratio(_mean_of(logs.reshape(-1, run.n_distributions)))


def _mean_of(logs: np.ndarray) -> np.ndarray:
    """Mean over the first axis, NaN left out."""
    known = ~np.isnan(logs)
    count = known.sum(axis=0)
    return np.divide(np.where(known, logs, 0).sum(axis=0), count, out=np.full(count.shape, np.nan), where=count > 0)


def _better(ratio: Number) -> str:
    """Whether a ratio is below 1."""
    return ratio.beyond(1.0, -1)


def _cell(ratio: Number) -> str:
    return f"{ratio.text()} {_better(ratio)}"


def _pairs(claims: Claims, pairs: list[tuple[str, str]], statement: str, title: str) -> str:
    """A statement about pairs of curves: overall, and for every pair at a few sizes."""
    run = claims.run
    out, verdicts = [f"### {title}\n"], {}
    for notion, words in NOTIONS.items():
        total = overall(run, notion, pairs)
        every = [_better(run.ratio(logs)) for pair in pairs for logs in run.log_ratio(notion, *pair)]
        counts = ", ".join(f"{every.count(word)} {word}" for word in (HOLDS, FAILS, UNDECIDED))
        verdicts[notion] = (_better(total), f"ratio {total.text()}")
        rows = []
        for pair in pairs:
            logs = run.log_ratio(notion, *pair)
            rows.append([f"`{pair[0]}` / `{pair[1]}`", *(_cell(run.ratio(logs[run.at(n)])) for n in run.few)])
        out.append(f"{words}: {_better(total)} on the whole; of the {len(every)} pairs at a size: {counts}.\n")
        out.append(table(["ratio", *(f"N = {n}" for n in run.few)], rows))
    claims.state(statement, verdicts)
    return "\n".join(out)


def _by_size(run: Run, columns: dict[str, list[tuple[str, str]]]) -> str:
    """Ratios at every size: for each notion, one column a group of pairs."""
    header, cells = ["N"], []
    for notion, words in NOTIONS.items():
        for title, pairs in columns.items():
            header.append(f"{words}: {title}")
            logs = np.stack([run.log_ratio(notion, *pair) for pair in pairs])
            cells.append([_cell(run.ratio(_mean_of(logs[:, i]))) for i in range(len(run.sizes))])
    rows = [[str(n), *(column[i] for column in cells)] for i, n in enumerate(run.sizes)]
    return table(header, rows)


def _bins(claims: Claims) -> str:
    """The heuristic for the number of bins."""
    run = claims.run
    for bins, pairs in SQRT.items():
        ratios = {notion: overall(run, notion, pairs) for notion in NOTIONS}
        verdicts = {notion: (_better(r), f"ratio {r.text()}") for notion, r in ratios.items()}
        claims.state(f"⌊√N⌋ bins are better than {bins}", verdicts)
    by_family = []
    for family in FAMILIES:
        row = [f"`{family}`"]
        for notion in NOTIONS:
            row += [_cell(overall(run, notion, [(f"{family}sqrt", f"{family}{bins}")])) for bins in SQRT]
        by_family.append(row)
    header = ["family", *(f"{words}: √N / {bins}" for words in NOTIONS.values() for bins in SQRT)]
    return (
        "### ⌊√N⌋ bins, 10 or 30\n\nAt every size, averaged over l, a, c and ac (⌊√N⌋ is 10 for N from 100 to 120, and "
        "30 from 900 to 960: there is no difference there):\n\n"
        + _by_size(run, {f"√N / {bins}": pairs for bins, pairs in SQRT.items()})
        + "\nBy family, averaged over sizes:\n\n"
        + table(header, by_family)
    )


def silverman_verdict(run: Run, notion: str) -> tuple[str, str]:
    """Whether Silverman's bandwidth is worse than both fixed ones, averaged over the sizes of the published figure."""
    ratios = [overall(run, notion, [(SILVERMAN, other)], FIGURE_ENDS) for other in FIXED]
    words = [r.beyond(1.0, 1) for r in ratios]
    return both(*words), ", ".join(f"{r.text()} of `{n}`" for r, n in zip(ratios, FIXED, strict=True))


def silverman_table(run: Run) -> str:
    """Silverman against fixed bandwidths at every size."""
    return _by_size(run, {f"Silverman / {name.removeprefix('d')}": [(SILVERMAN, name)] for name in FIXED})


def _silverman(claims: Claims) -> str:
    run = claims.run
    for name in FIXED:
        ratios = {notion: overall(run, notion, [(SILVERMAN, name)]) for notion in NOTIONS}
        verdicts = {notion: (_better(r), f"ratio {r.text()}") for notion, r in ratios.items()}
        claims.state(f"Silverman's bandwidth is better than {name.removeprefix('d')}", verdicts)
    word, figures = silverman_verdict(run, "classwise")
    shared = run.config.mode == "as-published"
    claims.state(
        f"Silverman's bandwidth underperforms class-wise (is worse than both fixed ones, for N ≤ {FIGURE_ENDS})",
        {"confidence": ("not claimed", ""), "classwise": (word, figures)},
    )
    how = (
        "Here every class is smoothed with the bandwidth of class 0, as in the published code."
        if shared
        else "Here every class has a bandwidth of its own; the published code reuses that of class 0 for all classes."
    )
    return f"### Silverman's or a fixed bandwidth\n\n{how} A ratio below 1 favours Silverman.\n\n" + silverman_table(
        run
    )


def _truths(claims: Claims) -> str:
    """Labels and posteriors in bins as a truth."""
    run = claims.run
    out = []
    names = {"label_truth": "Labels in 2000 bins", "posterior_truth": "The posterior in 2000 bins, plainly summed up,"}
    every: dict[str, dict[str, tuple[str, str]]] = {name: {} for name in names}
    for notion, words in NOTIONS.items():
        truth = run.of("truth", notion, run.curves[0])[0]
        rows = []
        for name, column in every.items():
            other = run.of(name, notion, run.curves[0])[0]
            known = (truth > 0) & (other > 0)
            logs = np.where(known, np.log(np.where(known, other, 1) / np.where(known, truth, 1)), np.nan)
            ratio, gap = run.ratio(logs), run.resampler.mean(other - truth)
            column[notion] = (ratio.beyond(1.0, 1), f"{ratio.text()} of the truth")
            above = 100 * np.nanmean(logs > np.log(1.1))
            rows.append([f"`{name}`", f"{ratio.text()} {ratio.beyond(1.0, 1)}", gap.text(5), f"{above:.0f} %"])
        header = ["", "ratio to the truth, too high?", "mean excess", "more than 10 % too high in"]
        out += [f"{words}:\n", table(header, rows)]
        out.append(_judged(run, notion))
    for name, words in names.items():
        claims.state(
            f"{words} {'give' if name == 'label_truth' else 'gives'} too high a truth",
            every[name],
        )
    return "### Truth from labels or from the posterior\n\n" + "\n".join(out)


def _judged(run: Run, notion: str) -> str:
    """What the choice of truth does to the relative error at the largest size."""
    last = len(run.sizes) - 1
    kinds = {"truth": "rel_p95", "label_truth": "label_rel_p95"}
    found = {kind: run.medians(measure, notion)[last][run.columns(run.curves)] for kind, measure in kinds.items()}
    said = [f"`{run.curves[int(np.nanargmin(v))]}` with {v.min():.3f} by `{kind}`" for kind, v in found.items()]
    return f"The best of the 15 at N = {run.sizes[last]} in relative error: {' and '.join(said)}.\n"


def published_page(run: Run, corrected: Run) -> str:
    """The run in the authors' own setting."""
    low, high = PUBLISHED_AT_30
    rows = []
    for notion, words in NOTIONS.items():
        at = {m: run.medians(m, notion)[0][run.columns(run.curves)] for m in ("abs_p95", "rel_p95")}
        inside = int(((at["abs_p95"] >= low) & (at["abs_p95"] <= high)).sum())
        word, figures = silverman_verdict(run, notion)
        own, own_figures = silverman_verdict(corrected, notion)
        rows.append(
            [
                words,
                *(f"{v.min():.2f} to {v.max():.2f}" for v in at.values()),
                f"{inside} of {len(run.curves)}",
                f"**{word}**: {figures}",
                f"**{own}**: {own_figures}",
            ]
        )
    count = (
        f"all {run.n_wanted}"
        if run.finished
        else f"**unfinished: {run.n_distributions} of {run.n_wanted}, a random subset**"
    )
    header = [
        "notion",
        f"absolute error of the 15, N = {run.sizes[0]}",
        "relative",
        f"absolute ones within {low:g} to {high:g}",
        f"Silverman worse than both fixed, N ≤ {FIGURE_ENDS}: as published",
        "the same, corrected",
    ]
    return (
        "# How wrong is each estimator, as published?\n\n"
        "The same experiment in the setting of the authors' code: means of the mixtures on [−1, 1], the linear mapping "
        "as printed, their ranges of bins, and class-wise the Silverman bandwidth of class 0 for every class. Score "
        f"distributions: {count}, {run.config.sets} sets a size (by default {Config().sets}; the 95th "
        "percentile of fewer sets is lower and noisier).\n\n"
        "![Absolute error of 15 estimators by rows, as published](images/benchmark_published.png)\n\n"
        + table(header, rows).replace("---:", "---")
        + "\nSilverman's bandwidth against the fixed ones (a ratio below 1 favours Silverman; class-wise with the "
        "bandwidth of class 0):\n\n" + silverman_table(run)
    )
