"""The shipped default on the choosing half of the arena, beside what is usual: `baseline.md`.

    python -m benchmarks.arena.baseline [--cache FOLDER] [--repetitions 20] [--only TEXT] [--write FILE]

Confidence, norm 1. An experiment that is done is kept in the cache and not read again (remove `CACHE/baseline` to start
anew). The reporting half is not opened.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.data.writing import write_json, write_text

from .. import arguments
from .halves import CHOOSING
from .reading import Experiment, draw, experiments
from .store import CACHE

SIZES = (100, 300, 1000)
ESTIMATORS: dict[str, Any] = {
    "default": None,
    "Binned(15)": cal.Binned(15),
    "Binned(15), debiased": cal.Binned(15, debias=True),
    "Smooth": cal.estimators.Smooth(),
}
#: Relative errors are of truths of at least this, and of at least so many standard errors.
LEAST, CLEAR = 0.01, 3.0


def read(one: Experiment, n: int, repetitions: int) -> dict[str, Any]:
    """Every estimate, and the intervals, of samples of one experiment."""
    out: dict[str, Any] = {name: [] for name in (*ESTIMATORS, "interval")}
    for seed in range(repetitions):
        sample = draw(one, n, seed)
        given = {"notion": "confidence", "labels": sample.labels}
        for name, estimator in ESTIMATORS.items():
            own = {} if estimator is None else {"estimator": estimator}
            out[name].append(cal.calibration_error(sample.y_true, sample.y_prob, **own, **given))
        low, high = cal.estimate(sample.y_true, sample.y_prob, **given).interval
        out["interval"].append([low, high])
    return out


def line(one: Experiment, repetitions: int) -> dict[str, Any]:
    """All sizes of one experiment."""
    truth = one.truths["confidence"]
    return {
        "name": one.name,
        "kind": one.kind,
        "pool": one.pool,
        "kin": one.kin,
        "repetitions": repetitions,
        "truth": truth.value,
        "standard_error": truth.standard_error,
        "read": {str(n): read(one, n, repetitions) for n in SIZES if n <= one.largest},
    }


def run(cache: Path, repetitions: int, only: str) -> list[dict[str, Any]]:
    """Lines of all experiments of the choosing half."""
    lines = []
    for one in experiments(CHOOSING, cache=cache, only=only):
        path = cache / "baseline" / f"{one.name}.json"
        if not path.exists() or json.loads(path.read_text())["repetitions"] != repetitions:
            write_json(path, line(one, repetitions))
        lines.append(json.loads(path.read_text()))
    return lines


def groups(lines: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Experiments by kind, and by where their labels come from."""
    named = {"tabular, pools": [], "tabular, redrawn": [], "network, pools": []}
    for one in lines:
        named[f"{one['kind']}, {'pools' if one['pool'] else 'redrawn'}"].append(one)
    return named


def errors(lines: list[dict[str, Any]]) -> str:
    """Medians over experiments of relative RMSE, 95th percentile and bias."""
    rows = ["| experiments | N | how many | of these clear | what | " + " | ".join(ESTIMATORS) + " |"]
    rows += ["|---|---:|---:|---:|---" + "|---:" * len(ESTIMATORS) + "|"]
    for group, some in groups(lines).items():
        for n in SIZES:
            here = [one for one in some if str(n) in one["read"]]
            clear = [one for one in here if one["truth"] > max(LEAST, CLEAR * one["standard_error"])]
            if not clear:
                continue
            each = {name: np.array([_relative(one, n, name) for one in clear]) for name in ESTIMATORS}
            for at, what in enumerate(("P95", "RMSE", "bias")):
                cells = [f"{np.median(values[:, at]):{'+' if what == 'bias' else ''}.2f}" for values in each.values()]
                rows.append(f"| {group} | {n} | {len(here)} | {len(clear)} | {what} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _relative(one: dict[str, Any], n: int, name: str) -> list[float]:
    error = np.array(one["read"][str(n)][name]) / one["truth"] - 1
    return [float(np.quantile(np.abs(error), 0.95)), float(np.sqrt((error**2).mean())), float(error.mean())]


def coverage(lines: list[dict[str, Any]]) -> str:
    """How often intervals cover the truth, over all experiments; standard errors are those of families of data sets."""
    rows = ["| experiments | N | how many | held | held within two standard errors of the truth | below 80 % | width |"]
    rows += ["|---|---:|---:|---:|---:|---:|---:|"]
    for group, some in groups(lines).items():
        for n in SIZES:
            here = [one for one in some if str(n) in one["read"]]
            if not here:
                continue
            held = np.array([_held(one, n, 0.0) for one in here])
            nearly = np.array([_held(one, n, 2.0) for one in here])
            width = np.mean([np.diff(one["read"][str(n)]["interval"]).mean() for one in here])
            kin = np.array([one["kin"] for one in here])
            rows.append(
                f"| {group} | {n} | {len(here)} | {held.mean():.3f} ± {_by_kin(held, kin):.3f} | {nearly.mean():.3f} "
                f"| {(held < 0.8).sum()} | {width:.3f} |"
            )
    return "\n".join(rows)


def _held(one: dict[str, Any], n: int, slack: float) -> float:
    low, high = np.array(one["read"][str(n)]["interval"]).T
    truth, error = max(one["truth"], 0.0), slack * one["standard_error"]  # no error is below 0
    return float(((low - error <= truth) & (truth <= high + error)).mean())


def _by_kin(values: np.ndarray, kin: np.ndarray) -> float:
    """Standard error of a mean over experiments that hang together within families: a jackknife over these."""
    names = np.unique(kin)
    left = np.array([values[kin != name].mean() for name in names if (kin != name).any()])
    return float(np.sqrt((len(left) - 1) * left.var())) if len(left) > 1 else float("nan")


def worst(lines: list[dict[str, Any]], most: int = 15) -> str:
    """Experiments whose intervals miss most often."""
    cells = [(_held(one, int(n), 2.0), one, n) for one in lines for n in one["read"]]
    rows = ["| experiment | N | truth | default, mean | held within two standard errors |", "|---|---:|---:|---:|---:|"]
    for share, one, n in sorted(cells, key=lambda cell: cell[0])[:most]:
        mean = np.mean(one["read"][n]["default"])
        rows.append(f"| {one['name']} | {n} | {one['truth']:.3f} | {mean:.3f} | {share:.2f} |")
    return "\n".join(rows)


def page(lines: list[dict[str, Any]], repetitions: int) -> str:
    """`baseline.md`."""
    intro = Path(__file__).with_name("baseline_intro.md").read_text(encoding="utf-8")
    return intro.format(
        experiments=len(lines),
        repetitions=repetitions,
        least=LEAST,
        clear=CLEAR,
        errors=errors(lines),
        coverage=coverage(lines),
        worst=worst(lines),
    )


def main() -> None:
    parser = arguments.parser(__doc__, repetitions=20, only="data set × model (DATA.MODEL)", write=True)
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the arena (default %(default)s)")
    options = parser.parse_args()
    os.nice(10)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", cal.exceptions.CalibrantWarning
        )  # scores of 0 and 1, samples that are all right
        lines = run(options.cache, options.repetitions, options.only)
    text = page(lines, options.repetitions)
    print(text)
    if options.write:
        write_text(options.write, text)


if __name__ == "__main__":
    main()
