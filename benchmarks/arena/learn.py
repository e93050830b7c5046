"""Learns the prior of the default from the choosing half of the arena and from mixtures, and prints its components.

    python -m benchmarks.arena.learn --work FOLDER --mixtures FOLDER [--cache FOLDER] [--repetitions 8]

Every sample is fitted with each of 61 components alone: the expected error and the evidence are all that a mixture of
them needs. Weights then minimise, over cases (a source, a size), the mean logarithm of the mean square relative error,
where far smaller ones than usual count alike,
plus a price on the squared mean bias of each set and size. Sets (mixtures, tabular, networks) and sizes count alike.
Components are left out one by one, the least useful first. One of a small amplitude is held at 2 %: truths below 0.005
are no part of relative errors, and great samples of nearly calibrated models need it.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant.data.writing import replacing
from calibrant.estimators import Component, Prior, laplace
from calibrant.estimators.empirical_bayes import folded, rank_cells

from .. import arguments
from .prior import CLEAR, LEAST, MIXTURES, NOTIONS
from .samples import Case, Source, arena, mixtures
from .store import CACHE

#: Amplitude, decay, intercept and slope.
DICTIONARY = [(a, d, 0.3, 0.4) for d in (4.0, 2.5, 1.5, 1.0, 0.5) for a in (0.1, 0.3, 0.65, 1.2, 2.5, 6.0)]
DICTIONARY += [(a, d, 0.1, 0.2) for d in (1.5, 1.0, 0.5) for a in (0.1, 0.3, 0.65, 1.2, 2.5)]
DICTIONARY += [(a, d, 0.8, 1.0) for d in (2.5, 1.5, 1.0, 0.5) for a in (0.15, 0.4, 0.8, 1.6)]
SMALL, HELD = DICTIONARY.index((0.1, 1.0, 0.3, 0.4)), 0.02
MANY = {"confidence": 6, "classwise": 7}
#: Price of a mean relative bias squared: of networks, which are what most ask about, more; of fewer than 100 rows less.
PRICE = {"mixtures": 6.0, "tabular": 6.0, "networks": 30.0}
#: Mean square relative error of a sample of one row; it falls like ``n^(-0.7)``. Much smaller ones count alike.
USUAL = 2.0
_LEAST_WEIGHT = -9.0


def fits(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Expected error and log evidence of every component alone, each (R, classes, components)."""
    prior = Prior(tuple(Component(a, d, 1.0, i, s) for a, d, i, s in DICTIONARY))
    errors, evidence = [], []
    for problem in case.tables():
        grids = cal.EmpiricalBayes().summarize(problem)
        found = np.full((2, len(grids.rows), len(DICTIONARY)), np.nan, np.float32)
        for some, cells in rank_cells(grids, 1 << 13):
            share = cells.count / cells.count.sum(axis=-1, keepdims=True)
            for c, posterior in enumerate(laplace.fit(cells, prior)):
                mean, sd = laplace.gaps(cells, posterior)
                found[0, some, c] = (share * folded(mean, sd)).sum(axis=-1)
                found[1, some, c] = posterior.log_evidence
        errors.append(found[0])
        evidence.append(found[1])
    return np.stack(errors, axis=1), np.stack(evidence, axis=1)


def kept(source: Source, folder: Path) -> dict[str, np.ndarray]:
    """Fits of all cases of a source, made once."""
    path = folder / f"{source.name}.npz"
    if not path.exists():
        made = {}
        for case in source.cases():
            about = f"{case.group}|{case.notion}|{case.size}|{float(case.truth)!r}|{float(case.doubt)!r}"
            made[f"{about}|V"], made[f"{about}|E"] = fits(case)
        with replacing(path) as file:
            np.savez(file, **made)
    return dict(np.load(path))


@dataclass(frozen=True, eq=False)
class Cases:
    """All cases of a notion, one below the other: rows are a class of a sample."""

    error: np.ndarray
    evidence: np.ndarray
    sample: np.ndarray
    case: np.ndarray
    truth: np.ndarray
    cell: np.ndarray
    price: np.ndarray
    weight: np.ndarray
    kin: np.ndarray
    usual: np.ndarray

    @classmethod
    def of(cls, files: dict[tuple[str, str], dict[str, np.ndarray]], notion: str) -> Cases:
        """Cases whose truth is clear."""
        errors, evidence, sample, case, about, n = [], [], [], [], [], 0
        for (_, kin), file in files.items():
            for key in (key[:-2] for key in file if key.endswith("|V")):
                group, of, size, truth, doubt = key.split("|")
                if of != notion or float(truth) < max(LEAST, CLEAR * float(doubt)):
                    continue
                v, e = (file[f"{key}|{which}"].astype(np.float64) for which in "VE")
                rows, classes, width = v.shape
                errors.append(v.reshape(-1, width))
                evidence.append(e.reshape(-1, width))
                sample.append(n + np.repeat(np.arange(rows), classes))
                case += [len(about)] * rows
                about.append((group, int(size), float(truth), kin))
                n += rows
        error, found = np.concatenate(errors), np.concatenate(evidence)
        known = np.isfinite(error).all(axis=1) & np.isfinite(found).all(axis=1)
        cells = sorted({one[:2] for one in about})
        cell = np.array([cells.index(one[:2]) for one in about])
        groups = {g: sum(c[0] == g for c in cells) for g, _ in cells}
        each = np.array([1 / groups[g] for g, _ in cells]) / np.bincount(cell)
        return cls(
            error[known],
            (found - found.max(axis=1, keepdims=True))[known],
            np.concatenate(sample)[known],
            np.array(case),
            np.array([one[2] for one in about]),
            cell,
            np.array([PRICE[g] * (1.0 if size >= 100 else 0.3) for g, size in cells]),
            each[cell],
            np.array([one[3] for one in about]),
            np.array([USUAL * size**-0.7 for _, size in cells]),
        )

    @cached_property
    def classes(self) -> np.ndarray:
        """Classes of each sample."""
        return np.bincount(self.sample, minlength=len(self.case))

    @cached_property
    def samples(self) -> np.ndarray:
        """Samples of each case."""
        return np.bincount(self.case)

    def loss(self, logs: np.ndarray, columns: np.ndarray, weight: np.ndarray) -> tuple[float, np.ndarray]:
        """What is minimised, and its slope, at log weights (c,) of some components."""
        score = self.evidence[:, columns] + logs
        z = np.exp(score - score.max(axis=1, keepdims=True))
        z /= z.sum(axis=1, keepdims=True)
        values = self.error[:, columns]
        each = (z * values).sum(axis=1)
        truth = self.truth[self.case]
        off = np.bincount(self.sample, each, len(truth)) / self.classes / truth - 1
        square = np.bincount(self.case, off**2) / self.samples + self.usual[self.cell]
        whole = np.bincount(self.cell, weight)
        bias = np.bincount(self.cell, weight * np.bincount(self.case, off) / self.samples)
        bias /= np.maximum(whole, 1e-12)
        value = 0.5 * (weight * np.log(square)).sum() + (self.price * whole * bias**2).sum()
        slope = (weight / square)[self.case] * off + (2 * self.price * bias)[self.cell[self.case]] * weight[self.case]
        slope /= self.samples[self.case] * truth * self.classes
        gradient = (slope[self.sample, None] * z * (values - each[:, None])).sum(axis=0)
        pull = logs - logs.mean()
        return float(value + 1e-4 * (pull**2).sum()), gradient + 2e-4 * pull

    def learn(self, columns: np.ndarray, start: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, float]:
        """Log weights of some components beside the small one's."""
        from scipy.optimize import minimize

        every = np.append(columns, SMALL)

        def held(x: np.ndarray) -> tuple[float, np.ndarray]:
            top = x.max()
            share = np.exp(x - top)
            total = share.sum()
            logs = np.append(x - top - np.log(total) + np.log(1 - HELD), np.log(HELD))
            value, slope = self.loss(logs, every, weight)
            return value, slope[:-1] - share / total * slope[:-1].sum()

        bounds = [(_LEAST_WEIGHT, -_LEAST_WEIGHT)] * len(columns)
        found = minimize(held, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 150})
        return found.x - np.logaddexp.reduce(found.x) + np.log(1 - HELD), float(found.fun)

    def choose(self, many: int, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Components beside the small one, ``many`` with it, their log weights and the loss."""
        columns = np.delete(np.arange(len(DICTIONARY)), SMALL)
        logs, value = self.learn(columns, np.zeros(len(columns)), weight)
        while len(columns) >= many:
            if len(columns) > 14:
                stay = np.sort(np.argsort(logs)[-max(14, len(columns) // 2) :])
            else:
                without = [np.delete(np.arange(len(columns)), i) for i in range(len(columns))]
                stay = min(without, key=lambda s: self._alone(logs[s], columns[s], weight))
            columns = columns[stay]
            logs, value = self.learn(columns, np.clip(logs[stay], _LEAST_WEIGHT, 0), weight)
        return columns, logs, value

    def _alone(self, logs: np.ndarray, columns: np.ndarray, weight: np.ndarray) -> float:
        return self.loss(np.append(logs, np.log(HELD)), np.append(columns, SMALL), weight)[0]


def sources(cache: Path, folder: Path, repetitions: int) -> Iterator[Source]:
    """The choosing half."""
    runs = [folder / name for name in MIXTURES]
    return chain(*(mixtures(run, repetitions) for run in runs), arena("choosing", cache, repetitions))


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=8)
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the arena (default %(default)s)")
    parser.add_argument("--work", type=Path, required=True, help="where fits are kept")
    parser.add_argument("--mixtures", type=Path, required=True, help="folder of the runs of mixtures")
    parser.add_argument("--fitted", action="store_true", help="only sources that are fitted already")
    options = parser.parse_args()
    os.nice(10)
    folder, files = options.work / "fits", {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cal.exceptions.CalibrantWarning)
        for one in sources(options.cache, options.mixtures, options.repetitions):
            if not options.fitted or (folder / f"{one.name}.npz").exists():
                files[one.name, one.kin] = kept(one, folder)
    print(f"{len(files)} sources")
    for notion, words in NOTIONS.items():
        cases = Cases.of(files, notion)
        columns, logs, value = cases.choose(MANY[notion], cases.weight)
        print(f"\n{words}, {len(cases.truth)} cases, loss {value:.3f}")
        print(f"  amplitude {DICTIONARY[SMALL][0]:g}, decay {DICTIONARY[SMALL][1]:g}: {HELD:.3f} (held)")
        for c, w in sorted(zip(columns, np.exp(logs), strict=True), key=lambda pair: -pair[1]):
            amplitude, decay, intercept, slope = DICTIONARY[c]
            print(f"  amplitude {amplitude:g}, decay {decay:g}, intercept {intercept:g}, slope {slope:g}: {w:.3f}")


if __name__ == "__main__":
    main()
