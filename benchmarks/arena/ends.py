"""How scores of exactly 0 and 1 are smoothed: numbers of prior errors on the choosing half. Writes `ends.md`.

    python -m benchmarks.arena.ends [--cache FOLDER] [--half choosing] [--splits 4] [--only TEXT] [--write FILE]

Experiments of two classes some of whose scores are 0 or 1, with 100 and 300 rows to fit. Candidates of `AutoCalibrator`
are fitted once, as `choosing.py` does, in the same cache; what differs is the base that is kept where a change earns
nothing: the scores as they are, or `EndSmoothing` with so many prior errors. `repair.md` reports on the other half.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from calibrant.calibrators import EndSmoothing
from calibrant.calibrators.crossval import fit_quietly, fold_fits, folds_of, predict_held_out
from calibrant.calibrators.select import as_sample
from calibrant.data.writing import write_text

from .. import arguments
from .choosing import ALONE, ENDS, SHIPPED, Split, split_of
from .halves import CHOOSING, HALVES
from .reading import Experiment, experiments
from .repair import CLIPPED, FEWEST, LEAST, MOST
from .store import CACHE

#: Of two classes the bar is for so few rows.
SIZES = (100, 300)
#: Of which the best for an experiment is the oracle.
OF_ENDS = ("identity", "auto", "ensemble-temperature", "platt", "beta")
PRIOR_ERRORS = (0.5, 0.1, 0.01, 0.001, 0.0001, 0.00003, 0.00001)


def with_base(split: Split, p: np.ndarray, prior_errors: float) -> Split:
    """The candidates with another base: ``EndSmoothing`` of so many prior errors; p the scores to judge."""
    one = EndSmoothing(prior_errors=prior_errors, labels=list(split.sample.classes))
    folds = folds_of(split.sample.codes, 5, 0)
    held = predict_held_out(fold_fits(one, [split.sample.part(train) for train, _ in folds])[0], split.sample, folds)
    rows = as_sample(p, split.truth, None, "probability", list(split.sample.classes))
    said = fit_quietly(one, split.sample)._probabilities_of(rows.scores)
    return replace(split, held=split.held | {ENDS: held}, said=split.said | {ENDS: said})


def _decimals(a: float) -> str:
    return f"{a:.5f}".rstrip("0")


def averaged(split: Split) -> np.ndarray:
    """What `AutoCalibrator` says of the rows to judge."""
    return np.asarray(sum(w * split.said[name] for name, w in SHIPPED.weights(split).items()))


def losses(one: Experiment, n: int, splits: int, folder: Path) -> dict[str, np.ndarray]:
    """Log-loss of probabilities of at least 1e-9 and Brier score, (2,), means of splits, by what is tried."""
    found: dict[str, list[list[float]]] = {}
    for seed in range(splits):
        split = split_of(one, n, seed, folder)
        order = np.random.default_rng([seed, n]).permutation(len(one.y_true))
        p = one.y_prob.astype(np.float64)
        p = (p / p.sum(axis=1, keepdims=True))[order[n : n + MOST]]
        plain = replace(split, held={name: q for name, q in split.held.items() if name != ENDS})
        said = {name: split.said[name] for name in OF_ENDS if name != "auto"} | {"auto": averaged(plain)}
        said |= {_decimals(a): averaged(with_base(split, p, a)) for a in PRIOR_ERRORS}
        for name, q in said.items():
            own = np.maximum(q[np.arange(len(q)), split.truth], CLIPPED)
            found.setdefault(name, []).append([float(-np.log(own).mean()), split.losses(q)[1]])
    return {name: np.mean(each, axis=0) for name, each in found.items()}


def row(n: int, name: str, found: list[dict[str, np.ndarray]]) -> str:
    """Gain, its share of the oracle's, and harm by either score."""
    alone = np.array([each[ALONE] for each in found])
    gain = (alone - np.array([each[name] for each in found])) / np.maximum(alone, LEAST)
    best = alone[:, 0] - np.array([min(each[other][0] for other in OF_ENDS) for each in found])
    oracle = (best / np.maximum(alone[:, 0], LEAST)).mean()
    harm = [
        f"{100 * (each < -0.001).mean():.1f} | {100 * (each < -0.01).mean():.1f} | {max(0.0, -100 * each.min()):.1f}"
        for each in gain.T
    ]
    shown = "the scores as they are" if name == "auto" else f"{name} prior errors"
    return (
        f"| {n} | {shown} | {100 * gain[:, 0].mean():.1f} | {gain[:, 0].mean() / oracle:.2f} | {harm[0]} "
        f"| {100 * gain[:, 1].mean():.1f} | {harm[1]} |"
    )


def main() -> None:
    parser = arguments.parser(__doc__, only="data set × model (DATA.MODEL)", write=True)
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the arena (default %(default)s)")
    parser.add_argument("--half", choices=HALVES, default=CHOOSING, help="default %(default)s")
    parser.add_argument("--splits", type=int, default=4, help="splits an experiment (default %(default)s)")
    options = parser.parse_args()
    os.nice(10)
    found: dict[int, list[dict[str, np.ndarray]]] = {n: [] for n in SIZES}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scores of 0 and 1
        for one in experiments(options.half, cache=options.cache, only=options.only, truths=False):
            if one.n_classes > 2 or one.y_prob.min() > 0:
                continue
            for n in SIZES:
                if len(one.y_true) >= n + FEWEST:
                    found[n].append(losses(one, n, options.splits, options.cache / "held"))
            print(one.name, flush=True)
    if not any(found.values()):
        parser.error("no experiment of that name has rows enough")
    names = ["auto", *(_decimals(a) for a in PRIOR_ERRORS)]
    intro = Path(__file__).with_name("ends_intro.md").read_text(encoding="utf-8")
    text = intro.format(
        half=options.half,
        splits=options.splits,
        counts=" and ".join(f"{len(found[n])} of {n} rows" for n in SIZES),
        table="\n".join(row(n, name, found[n]) for n in SIZES if found[n] for name in names),
    )
    print(text)
    if options.write:
        write_text(options.write, text)


if __name__ == "__main__":
    main()
