"""How an average of calibrators is weighed: rules beside each other on the choosing half. Writes `choosing.md`.

    python -m benchmarks.arena.choosing [--cache FOLDER] [--half choosing] [--splits 5] [--only TEXT] [--write FILE]

Candidates of `AutoCalibrator` are fitted as it fits them, once for all rules; what they say of rows held out and of
rows to judge is kept in `CACHE/held`: remove that folder after a candidate's code has changed. A rule is what ships,
with other numbers. What was chosen here is reported in `repair.md`, on the other half.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy.stats import rankdata

from calibrant.calibrators import choosing
from calibrant.calibrators.candidates import candidates_for
from calibrant.calibrators.crossval import (
    SCORES,
    HeldOutEvidence,
    fit_quietly,
    fold_fits,
    folds_of,
    losses_of,
    predict_held_out,
)
from calibrant.calibrators.inputs import CalibrationSample
from calibrant.calibrators.select import as_sample
from calibrant.data.writing import replacing, write_text

from .. import arguments
from .halves import CHOOSING, HALVES
from .reading import Experiment, experiments
from .repair import FEWEST, LEAST, MOST, SIZES
from .store import CACHE

ALONE, ENDS = "identity", "end-smoothing"


@dataclass(frozen=True)
class Rule:
    """The numbers of :mod:`calibrant.calibrators.choosing`."""

    _POWER: float = choosing._POWER
    _OF_BRIER: float = choosing._OF_BRIER
    _OWN: float = choosing._OWN
    _OTHER: float = choosing._OTHER
    _OF_ONE_ROW: float = choosing._OF_ONE_ROW
    _LIKELIER: Mapping[str, float] = field(default_factory=lambda: choosing._LIKELIER)

    def weights(self, split: Split) -> dict[str, float]:
        """Weights of candidates."""
        base = ENDS if ENDS in split.held else ALONE
        held = {name: p for name, p in split.held.items() if base == ALONE or name != ALONE}
        with mock.patch.multiple(choosing, **asdict(self)):
            return choosing.earned_weights(held, split.found, split.sample, base=base, goal="log-loss")

    def loss(self, split: Split) -> list[float]:
        """Both losses of rows to judge, of the average that this rule makes."""
        return split.losses(sum(w * split.said[name] for name, w in self.weights(split).items()))


SHIPPED = Rule()
RULES = {
    "**shipped**": SHIPPED,
    "as before": Rule(0.25, 0.0, 1.0, 0.5, 0.0, {}),
    "before, and rows that the gain rests on": Rule(0.25, 0.0, 1.0, 0.5, 3.0, {}),
    "shipped, not asking how many rows": replace(SHIPPED, _OF_ONE_ROW=0.0),
    "… 1 time more for one row": replace(SHIPPED, _OF_ONE_ROW=1.0),
    "… 10 times more": replace(SHIPPED, _OF_ONE_ROW=10.0),
    "shipped, weights by the log-loss alone": replace(SHIPPED, _POWER=0.25, _OF_BRIER=0.0),
    "shipped, all equally likely before": replace(SHIPPED, _LIKELIER={}),
    "… ensemble temperature e³ times": replace(SHIPPED, _LIKELIER={"ensemble-temperature": 3.0}),
    "shipped, a quarter of the squared error": replace(SHIPPED, _OWN=0.25),
    "… all of it": replace(SHIPPED, _OWN=1.0),
    "shipped, the other score's gain above 0": replace(SHIPPED, _OTHER=0.0),
    "… half of its squared error": replace(SHIPPED, _OTHER=0.5),
}


@dataclass(frozen=True, eq=False)
class Split:
    """One draw of rows to fit: what candidates say of them, held out, and of rows to judge, with their classes."""

    sample: CalibrationSample
    held: dict[str, np.ndarray]
    said: dict[str, np.ndarray]
    truth: np.ndarray

    @cached_property
    def found(self) -> dict[str, HeldOutEvidence]:
        """What the held-out probabilities are worth."""
        return {name: HeldOutEvidence.of(p, self.sample) for name, p in self.held.items()}

    def losses(self, p: Any) -> list[float]:
        """Log-loss and Brier score of rows to judge."""
        return [float(losses_of(p, self.truth, score).mean()) for score in SCORES]


def split_of(one: Experiment, n: int, seed: int, folder: Path) -> Split:
    """Fitted, or as it was kept."""
    p = one.y_prob.astype(np.float64)
    p /= p.sum(axis=1, keepdims=True)
    order = np.random.default_rng([seed, n]).permutation(len(p))
    used, judged = order[:n], order[n : n + MOST]
    labels = list(range(one.n_classes))
    sample = as_sample(p[used], one.y_true[used], None, "probability", labels)
    tried = candidates_for(sample, None)
    path = folder / f"{one.name}.{n}.{seed}.npz"
    if not path.exists():
        folds = folds_of(sample.codes, 5, 0)
        parts = [sample.part(train) for train, _ in folds]
        rows = as_sample(p[judged], one.y_true[judged], None, "probability", labels)
        kept = {}
        for name, each in tried.items():
            kept["held " + name] = predict_held_out(fold_fits(each, parts)[0], sample, folds).astype(np.float32)
            kept["said " + name] = fit_quietly(each, sample)._probabilities_of(rows.scores).astype(np.float32)
        with replacing(path) as file:
            np.savez(file, **kept)
    with np.load(path) as file:
        held, said = ({name: file[f"{what} {name}"].astype(float) for name in tried} for what in ("held", "said"))
    return Split(sample, held, said, one.y_true[judged])


def losses(one: Experiment, n: int, splits: int, folder: Path) -> Iterator[dict[str, list[float]]]:
    """Of each split, by candidate and by rule."""
    for seed in range(splits):
        split = split_of(one, n, seed, folder)
        yield {name: split.losses(p) for name, p in split.said.items()} | {
            name: rule.loss(split) for name, rule in RULES.items()
        }


def row(name: str, found: list[dict[str, np.ndarray]]) -> str:
    """Harm, gain and rank of a rule by either score."""
    cells = []
    for score in range(2):
        gains, best, ranks = [], [], []
        for each in found:
            single = [loss[score] for other, loss in each.items() if other not in RULES]
            alone = each[ALONE][score]
            gains.append((alone - each[name][score]) / max(alone, LEAST))
            best.append((alone - min(single)) / max(alone, LEAST))
            ranks.append(rankdata([each[name][score], *single])[0] / (len(single) + 1))
        gain = np.array(gains)
        harm = [f"{100 * (gain < -least).mean():.1f}" for least in (0.001, 0.01)]
        cells += [
            *harm,
            f"{-100 * gain.min():.1f}",
            f"{100 * gain.mean() / np.mean(best):.0f}",
            f"{np.mean(ranks):.3f}",
        ]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = arguments.parser(__doc__, only="data set × model (DATA.MODEL)", write=True)
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the arena (default %(default)s)")
    parser.add_argument("--half", choices=HALVES, default=CHOOSING, help="default %(default)s")
    parser.add_argument("--splits", type=int, default=5, help="splits an experiment (default %(default)s)")
    options = parser.parse_args()
    os.nice(10)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scores of 0 and 1, classes without rows
        for one in experiments(options.half, cache=options.cache, only=options.only, truths=False):
            for n in SIZES:
                if len(one.y_true) >= n + FEWEST:
                    each = list(losses(one, n, options.splits, options.cache / "held"))
                    found.append({name: np.mean([split[name] for split in each], axis=0) for name in each[0]})
            print(one.name, flush=True)
    if not found:
        parser.error("no experiment of that name has rows enough")
    intro = Path(__file__).with_name("choosing_intro.md").read_text(encoding="utf-8")
    table = "\n".join(row(name, found) for name in RULES)
    text = intro.format(experiments=len(found), half=options.half, splits=options.splits, table=table)
    print(text)
    if options.write:
        write_text(options.write, text)


if __name__ == "__main__":
    main()
