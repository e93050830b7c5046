"""Candidates for the default on real models and on mixtures, choosing half: `prior.md`.

    python -m benchmarks.arena.prior --work FOLDER --mixtures FOLDER [FOLDER …] [--cache FOLDER] [--repetitions 10]
        [--share 1] [--write FILE]

A folder of mixtures is a run of `calibrant.benchmark` that kept its predictions; `--make` makes those that this page
reads. What is read is kept in the work folder, one file a source, and not read again. The reporting half is read by
`reporting.py`, with the shipped code alone.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant.benchmark import Entry, paper_curves, predict
from calibrant.benchmark.read import estimates_of
from calibrant.data.writing import replacing, write_text

from .. import arguments
from .candidates import CANDIDATES
from .halves import CHOOSING
from .samples import Case, Source, arena, mixtures, mixtures_of
from .store import CACHE

NOTIONS = {"confidence": "Confidence", "classwise": "Class-wise"}
GROUPS = ("mixtures", "tabular", "networks")
#: Relative errors are of truths of at least this, and of at least so many standard errors.
LEAST, CLEAR = 0.005, 3.0
#: Mixtures with means in [-1, 1] and in [0, 1]: mode, seed, and how many for each number of classes and dimensions.
MIXTURES = {"choosing-wide": ("as-published", 4101, 1), "choosing-narrow": ("corrected", 4102, 1)}


def make(folder: Path) -> None:
    """Predict the mixtures that are not there."""
    for name, about in MIXTURES.items():
        predict(out=folder / name, n_jobs=1, config=mixtures_of(*about), progress=False)


@dataclass(frozen=True, eq=False)
class Row:
    """Estimates of one case: relative errors by name, (R,)."""

    group: str
    notion: str
    size: int
    truth: float
    errors: dict[str, np.ndarray]

    def measures(self, name: str) -> np.ndarray:
        """95th percentile of the relative error, its root mean square times the truth, and the relative bias."""
        error = self.errors[name]
        return np.array([np.quantile(np.abs(error), 0.95), np.sqrt((error**2).mean()) * self.truth, error.mean()])


def estimates(case: Case, names: list[str]) -> Iterator[tuple[str, np.ndarray]]:
    """What curves and candidates read of all samples of a case."""
    problems = list(case.tables())
    curves = paper_curves()
    for name in names:
        if name in curves:
            yield name, estimates_of(curves[name], problems)
        elif name == "oracle":
            if case.side is not None:
                yield name, case.side
        else:
            one = CANDIDATES[name]
            with one.in_force():
                yield name, estimates_of(Entry(cal.EmpiricalBayes(one.prior(case.notion))), problems)


def read(source: Source, path: Path, names: list[str]) -> list[Row]:
    """Rows of a source; what is kept is not read again."""
    kept: dict[str, np.ndarray] = dict(np.load(path)) if path.exists() else {}
    done = {key.rpartition("|")[2] for key in kept}
    missing = [name for name in names if name not in done]
    if missing:
        for case in source.cases():
            about = f"{case.group}|{case.notion}|{case.size}|{float(case.truth)!r}|{float(case.doubt)!r}"
            for name, values in estimates(case, missing):
                kept[f"{about}|{name}"] = values
            for name in missing:  # also where there is nothing to read
                kept.setdefault(f"{about}|{name}", np.empty(0))
        with replacing(path) as file:
            np.savez(file, **kept)
    rows: dict[str, Row] = {}
    for key, values in kept.items():
        about, _, name = key.rpartition("|")
        group, notion, size, truth, doubt = about.split("|")
        if float(truth) < max(LEAST, CLEAR * float(doubt)) or name not in names:
            continue
        row = rows.setdefault(about, Row(group, notion, int(size), float(truth), {}))
        if values.size:
            row.errors[name] = values / row.truth - 1
    return list(rows.values())


def table(rows: list[Row], notion: str, names: dict[str, str]) -> str:
    """Ratios of medians to the best of the 15 curves, and the median bias."""
    lines = [f"| set | N | cases | {' | '.join(names.values())} |", f"|---|---:|---:{'|---:' * len(names)}|"]
    for group in GROUPS:
        for size in sorted({r.size for r in rows if (r.group, r.notion) == (group, notion)}):
            some = [r for r in rows if (r.group, r.notion, r.size) == (group, notion, size)]
            best = np.median([[r.measures(name)[:2] for name in paper_curves()] for r in some], axis=0).min(axis=0)
            cells = []
            for name in names:
                if not all(name in r.errors for r in some):
                    cells.append("–")
                    continue
                p95, rmse, bias = np.median([r.measures(name) for r in some], axis=0)
                cells.append(f"{p95 / best[0]:.2f} / {rmse / best[1]:.2f} / {100 * bias:+.0f} %")
            lines.append(f"| {group} | {size} | {len(some)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def chosen(sources: Iterator[Source], share: float) -> Iterator[Source]:
    """A part of the sources, the same each time."""
    for number, one in enumerate(sources):
        if np.random.default_rng(number).random() < share:
            yield one


def page(rows: list[Row], names: dict[str, str], repetitions: int, sources: int) -> str:
    """`prior.md`."""
    intro = Path(__file__).with_name("prior_intro.md").read_text(encoding="utf-8")
    tables = {notion: table(rows, notion, names) for notion in NOTIONS}
    return intro.format(sources=sources, repetitions=repetitions, least=LEAST, clear=CLEAR, **tables)


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=10, write=True)
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the arena (default %(default)s)")
    parser.add_argument("--work", type=Path, required=True, help="where estimates are kept")
    parser.add_argument("--mixtures", type=Path, required=True, help="folder of the runs of mixtures")
    parser.add_argument("--share", type=float, default=1.0, help="part of the sources that is read")
    parser.add_argument("--candidates", nargs="*", default=[], help="only these of the candidates")
    parser.add_argument("--kept", action="store_true", help="only sources that are read already")
    parser.add_argument("--make", action="store_true", help="predict the mixtures that are not there")
    options = parser.parse_args()
    os.nice(10)
    if options.make:
        make(options.mixtures)
    asked = options.candidates or list(CANDIDATES)
    names = {name: one.about for name, one in CANDIDATES.items() if name in asked}
    names["oracle"] = "knowing every sign"
    wanted = [*paper_curves(), *names]
    sources = chain(*(mixtures(options.mixtures / name, 2 * options.repetitions) for name in MIXTURES))
    sources = chain(sources, arena(CHOOSING, options.cache, options.repetitions))
    rows: list[Row] = []
    count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.exceptions.CalibrantWarning)
        for one in chosen(sources, options.share):
            path = options.work / CHOOSING / f"{one.name}.npz"
            if path.exists() or not options.kept:
                rows += read(one, path, wanted)
                count += 1
    text = page(rows, names, options.repetitions, count)
    print(text)
    if options.write:
        write_text(options.write, text)


if __name__ == "__main__":
    main()
