"""What holds of the paper's claims: numbers over distributions with standard errors, and a word for each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from .runs import DEFAULT, NOTIONS, Run
from .stats import FAILS, HOLDS, UNDECIDED, Number, both

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
#: Pairs by what they differ in: a ratio is that of the first one's error to the second's.
PAIRS = {
    "linear / hard": LINEAR,
    "quantile / uniform": QUANTILE,
    "√N / 10 bins": SQRT["10"],
    "√N / 30 bins": SQRT["30"],
    "Silverman / 0.1": [(SILVERMAN, "d0.1")],
    "Silverman / 0.033": [(SILVERMAN, "d0.033")],
}
#: Statements that a ratio decides.
BETTER = {
    "The linear mapping beats the hard one": "linear / hard",
    "Quantile edges beat uniform ones": "quantile / uniform",
    "⌊√N⌋ bins beat 10": "√N / 10 bins",
    "⌊√N⌋ bins beat 30": "√N / 30 bins",
    "Silverman's bandwidth beats 0.1": "Silverman / 0.1",
    "Silverman's bandwidth beats 0.033": "Silverman / 0.033",
}
#: Truths that are published, and that is plainly summed up.
TRUTHS = {"label_truth": "Labels in bins", "posterior_truth": "Posteriors in bins"}
_NONE = Number(float("nan"), float("nan"))


def claims(run: Run) -> pl.DataFrame:
    """Statements of the paper with a verdict for each notion, and the number that it rests on."""
    rows = [
        {"statement": statement, "notion": notion, "verdict": word, "value": n.value, "se": n.se, "figures": figures}
        for notion in NOTIONS
        for statement, word, n, figures in _stated(run, notion)
    ]
    return pl.DataFrame(rows)


def _stated(run: Run, notion: str) -> Iterator[tuple[str, str, Number, str]]:
    low, high = PUBLISHED_AT_30
    smallest = run.sizes[0]
    found = {m: run.medians(m, notion)[0][run.columns(run.curves)] for m in ("abs_p95", "rel_p95")}
    best = run.curves[int(np.nanargmin(found["rel_p95"]))]
    least = run.resampler.median(run.of("rel_p95", notion, best)[0])
    inside = int(((found["abs_p95"] >= low) & (found["abs_p95"] <= high)).sum())
    told = "; ".join(f"{k.removesuffix('_p95')}: {v.min():.2f} to {v.max():.2f}" for k, v in found.items())
    said = f"published {low:g} to {high:g}; here {told}; {inside} of {len(run.curves)} abs within"
    yield f"Figure 2 shows relative errors (N = {smallest})", least.beyond(high, -1), _NONE, said
    words = [run.resampler.median(run.relative_bias(notion)[0][:, j]) for j in run.columns(run.curves)]
    verdicts = {n.beyond(0, 1) for n in words}
    verdict = HOLDS if verdicts == {HOLDS} else FAILS if FAILS in verdicts else UNDECIDED
    values = [100 * n.value for n in words]
    yield (
        f"At N = {smallest} all {len(run.curves)} are biased upward",
        verdict,
        _NONE,
        f"median bias {min(values):+.0f} % to {max(values):+.0f} %".replace("-", "−"),
    )
    for statement, kind in BETTER.items():
        ratio = overall(run, notion, PAIRS[kind])
        yield statement, _better(ratio), ratio, f"ratio {ratio.text()}"
    word, figures = ("not claimed", "") if notion == "confidence" else silverman_verdict(run, notion)
    yield f"Silverman is worse, N ≤ {FIGURE_ENDS}, class-wise", word, _NONE, figures
    for name, words_of in TRUTHS.items():
        ratio = run.ratio(_excess(run, notion, name))
        yield f"{words_of} give too high a truth", ratio.beyond(1.0, 1), ratio, f"{ratio.text()} of the truth"


def bias(run: Run) -> pl.DataFrame:
    """Bias at the smallest size as a share of the truth, of the curves and the default."""
    rows = []
    names = [*run.curves, *([DEFAULT] if run.has_default else [])]
    for notion in NOTIONS:
        relative = run.relative_bias(notion)[0]
        for name, j in zip(names, run.columns(names), strict=True):
            number = run.resampler.median(relative[:, j])
            row = {"notion": notion, "estimator": name, "size": run.sizes[0], "bias": number.value, "se": number.se}
            rows.append(row | {"upward": number.beyond(0, 1), "share_upward": float(np.nanmean(relative[:, j] > 0))})
    return pl.DataFrame(rows)


def overall(run: Run, notion: str, pairs: list[tuple[str, str]], largest: float = np.inf) -> Number:
    """Ratio averaged over pairs, sizes up to ``largest`` and distributions."""
    sizes = np.array(run.sizes) <= largest
    logs = np.stack([run.log_ratio(notion, *pair)[sizes] for pair in pairs])
    return run.ratio(_mean_of(logs.reshape(-1, run.n_distributions)))


def ratios(run: Run) -> pl.DataFrame:
    """Ratios of errors: of each pair, of all that differ in the same ("all"), at each size and over all sizes."""
    rows = []
    for kind, some in PAIRS.items():
        for notion in NOTIONS:
            logs = {" / ".join(pair): run.log_ratio(notion, *pair) for pair in some}
            logs["all"] = _mean_of(np.stack(list(logs.values())))
            for pair, of in logs.items():
                by_size = dict(zip((*map(str, run.sizes), "all"), (*of, _mean_of(of)), strict=True))
                for size, one in by_size.items():
                    ratio = run.ratio(one)
                    row = {"differ": kind, "notion": notion, "pair": pair, "size": size}
                    rows.append(row | {"ratio": ratio.value, "se": ratio.se, "better": _better(ratio)})
    return pl.DataFrame(rows)


def _mean_of(logs: np.ndarray) -> np.ndarray:
    """Mean over the first axis, NaN left out."""
    known = ~np.isnan(logs)
    count = known.sum(axis=0)
    return np.divide(np.where(known, logs, 0).sum(axis=0), count, out=np.full(count.shape, np.nan), where=count > 0)


def _better(ratio: Number) -> str:
    """Whether a ratio is below 1."""
    return ratio.beyond(1.0, -1)


def silverman_verdict(run: Run, notion: str) -> tuple[str, str]:
    """Whether Silverman's bandwidth is worse than both fixed ones, averaged over the sizes of the published figure."""
    ratios = [overall(run, notion, [(SILVERMAN, other)], FIGURE_ENDS) for other in FIXED]
    words = [r.beyond(1.0, 1) for r in ratios]
    return both(*words), ", ".join(f"{r.text()} of `{n}`" for r, n in zip(ratios, FIXED, strict=True))


def truths(run: Run) -> pl.DataFrame:
    """How far labels and posteriors in bins lie above the truth, and the best curve at the largest size by each."""
    rows = []
    last = len(run.sizes) - 1
    for notion in NOTIONS:
        truth = run.of("truth", notion, run.curves[0])[0]
        middle = run.resampler.median(truth)
        for name, measure in (("truth", "rel_p95"), ("label_truth", "label_rel_p95"), ("posterior_truth", "")):
            other = run.of(name, notion, run.curves[0])[0]
            logs = _excess(run, notion, name)
            ratio, gap, above = (
                run.ratio(logs),
                run.resampler.mean(other - truth),
                run.resampler.median(np.exp(logs) - 1),
            )
            row = {"notion": notion, "truth": name, "median_truth": middle.value, "median_truth_se": middle.se}
            row |= {"ratio": ratio.value, "ratio_se": ratio.se, "too_high": ratio.beyond(1.0, 1)}
            row |= {"excess": gap.value, "excess_se": gap.se, "share_above": above.value, "share_above_se": above.se}
            row |= {
                "largest": float(np.nanmax(np.exp(logs) - 1)),
                "share_over_10": float(np.nanmean(logs > np.log(1.1))),
            }
            if measure:
                errors = run.medians(measure, notion)[last][run.columns(run.curves)]
                row |= {"best": run.curves[int(np.nanargmin(errors))], "best_error": float(np.nanmin(errors))}
            rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def _excess(run: Run, notion: str, name: str) -> np.ndarray:
    """Log of another truth's ratio to the truth, by distribution."""
    truth, other = (run.of(which, notion, run.curves[0])[0] for which in ("truth", name))
    known = (truth > 0) & (other > 0)
    return np.where(known, np.log(np.where(known, other, 1) / np.where(known, truth, 1)), np.nan)
