"""Kinds of archives: saved calibrators, sums and comparisons, whose bytes or fields are others than were written.

A file is refused, or it says what was saved. Mappings in memory, which have no seal, may also say something else that
makes sense: probabilities, or an error of calibration in [0, 1].
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from tests.calibrators.table import ROWS
from tests.hostile.test_saved import JUNK, REMOVED, changed, places, scores_for

import calibrant as cal
from calibrant import calibrators as c
from calibrant.data.problem import Problem
from calibrant.sums import BinMoments, GridMoments, uniform_edges

from .commands import folder
from .drawing import Draw
from .endings import Case, EndedError, probabilities
from .files import damaged

Kind = Callable[[Draw], Case]
CALIBRATORS = {" ".join(str(row).split()): row for row in ROWS}
#: Words of a refusal, beside those of arguments.
SAID = ("saved", "damaged", "serialised", "results")
MORE_JUNK = (
    *JUNK,
    REMOVED,
    float("nan"),
    float("inf"),
    10**30,
    -1e-9,
    "\ud800",
    [[]],
    {"array": [], "dtype": "float64"},
)


@cache
def calibrator(name: str) -> tuple[Any, str, Any, bytes]:
    """A fitted calibrator: its mapping, its file's text, scores to try, and what it says of them."""
    row = CALIBRATORS[name]
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.ones(3), 60) if row.many else rng.random(60)
    y = rng.integers(0, 3, 60) if row.many else (rng.random(60) < scores).astype(int)
    fitted = row.calibrator.fit(scores, y)
    path = cal.save_calibrator(fitted, folder() / f"{abs(hash(name))}.json", force=True)
    tried = scores_for(fitted, scores)
    return c.to_dict(fitted), path.read_text(), tried, fitted.predict_proba(tried).tobytes()


def _fields(draw: Draw, data: Any) -> Any:
    """JSON with one or two of its values others, gone or swapped."""
    for _ in range(draw.one((1, 1, 2))):
        every = list(places(data))
        path = draw.one(every)
        other = draw.one(every)
        how = draw.whole(0, 4)
        draw.say("field", ".".join(map(str, path)))
        if how == 0:  # a number that is nearly the same
            value = _at(data, path)
            new = value * (1 + 1e-3) + 1e-3 if isinstance(value, float) else draw.one(MORE_JUNK)
        else:
            new = _at(data, other) if how == 1 else draw.one(MORE_JUNK)
        try:
            data = changed(data, path, new)
        except (KeyError, IndexError, TypeError):
            continue
    return data


def _at(data: Any, path: Any) -> Any:
    for step in path:
        data = data[step]
    return data


def calibrator_file_case(name: str, draw: Draw) -> Case:
    """The file of a calibrator."""
    _, text, tried, says = calibrator(name)
    try:
        data = (
            damaged(draw, text.encode()) if draw.chance(0.5) else json.dumps(_fields(draw, json.loads(text))).encode()
        )
    except (UnicodeEncodeError, ValueError):
        data = b"{}"

    def run() -> Any:
        path = folder() / "spoiled.json"
        path.write_bytes(data)
        if c.load_calibrator(path).predict_proba(tried).tobytes() != says:
            raise EndedError("another answer than was saved")
        return 0.0

    return Case(f"{name}: {draw}", run, names=SAID)


def calibrator_mapping_case(name: str, draw: Draw) -> Case:
    """The mapping of a calibrator, sealed again where it has a seal."""
    mapping, _, tried, _ = calibrator(name)
    data = _fields(draw, json.loads(json.dumps(mapping)))
    seal = getattr(c.saving, "sealed", lambda given: given) if hasattr(c, "saving") else lambda given: given

    def run() -> Any:
        found = c.from_dict(seal(data))
        return found.predict_proba(tried), getattr(found, "normalisation", "sum")

    def holds(found: Any) -> str:
        return probabilities(found[0], sums=found[1] != "none")

    return Case(f"{name}: {draw}", run, names=SAID, holds=holds)


@cache
def accumulator(number: int) -> bytes:
    """Bytes of sums of several kinds."""
    rng = np.random.default_rng(number)
    p, many = rng.random(40), rng.dirichlet(np.ones(3), 40)
    y, codes = (rng.random(40) < p).astype(int), rng.integers(0, 3, 40)
    groups = rng.integers(0, 5, 40)
    made = (
        lambda: cal.Accumulator().update(y, p),
        lambda: cal.Accumulator(binned="binned:5", pos_label="b").update(np.array(["a", "b"])[y], p, rng.random(40)),
        lambda: cal.Accumulator(notion="classwise").update(codes, many),
        lambda: cal.Accumulator(estimators=["binned:7"]).update(y, p, groups=groups),
        lambda: cal.Accumulator(),
    )
    return made[number]().to_bytes()


def accumulator_case(draw: Draw) -> Case:
    """The bytes of an accumulator."""
    number = draw.whole(0, 5)
    whole = accumulator(number)
    data = (
        damaged(draw, whole) if draw.chance(0.8) else whole[: -draw.whole(1, 40)] + accumulator(draw.whole(0, 5))[-40:]
    )

    def run() -> Any:
        if cal.Accumulator.from_bytes(data).to_bytes() != whole:
            raise EndedError("other sums than were saved")
        return 0.0

    return Case(f"sums {number}: {draw}", run, names=SAID)


@cache
def moments() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    p = rng.random(50)
    problem = Problem(p, (rng.random(50) < p).astype(float))
    return BinMoments.of(problem, uniform_edges(5)), GridMoments.of(problem, 8)


def moments_case(number: int, draw: Draw) -> Case:
    """The mapping of sums."""
    sums = moments()[number]
    data = _fields(draw, json.loads(json.dumps(sums.to_dict())))
    reader = (cal.Binned(), cal.estimators.Density())[number]

    def run() -> Any:
        found = type(sums).from_dict(data)
        value = float(reader.read(found, 1))
        if not (0 <= value <= 1 or np.isnan(value)):
            raise EndedError(f"an error of {value}")
        return 0.0

    return Case(f"{type(sums).__name__}: {draw}", run, names=SAID)


def comparison_case(draw: Draw) -> Case:
    """The file of a comparison, as `calibrant fix --from` reads it."""
    from calibrant.cli.saved_comparison import read_comparison

    text = (folder() / "kept" / "compared.json").read_bytes()
    data = damaged(draw, text) if draw.chance(0.5) else json.dumps(_fields(draw, json.loads(text))).encode()

    def run() -> Any:
        path = folder() / "spoiled comparison.json"
        path.write_bytes(data)
        read_comparison(path)
        return 0.0

    return Case(f"comparison: {draw}", run, names=SAID)


def benchmark_case(draw: Draw) -> Case:
    """A folder of a benchmark's results, of which one file was damaged."""
    whole = benchmark_folder()
    spoiled = folder() / "spoiled benchmark"
    shutil.rmtree(spoiled, ignore_errors=True)
    shutil.copytree(whole, spoiled)
    files = sorted(p for p in spoiled.rglob("*") if p.is_file())
    file = draw.one(files)
    draw.say("damaged", file.name)
    data = file.read_bytes()
    if file.suffix == ".json" and draw.chance(0.5):
        file.write_text(json.dumps(_fields(draw, json.loads(data))))
    elif draw.chance(0.1):
        file.unlink()
    else:
        file.write_bytes(damaged(draw, data))

    def run() -> Any:
        if not cal.benchmark.load(spoiled).equals(cal.benchmark.load(whole)):
            raise EndedError("other results than were saved")
        return 0.0

    return Case(f"benchmark: {draw}", run, names=SAID)


@cache
def benchmark_folder() -> Path:
    """Results of the smallest run there is."""
    made = folder() / "benchmark"
    few: dict[str, Any] = {"classes": (2,), "dimensions": (2,), "models": ("bayes",), "mixtures": 1, "trainings": 1}
    tiny = cal.benchmark.Config(**few, pool=1000, rows=600, sizes=(30,), sets=20)
    cal.benchmark.run(out=made, config=tiny, estimators={"ece": cal.Binned(10)}, n_jobs=1, progress=False)
    return made


def kinds() -> dict[str, Kind]:
    """Every kind of archive."""
    found: dict[str, Kind] = {}
    for name in CALIBRATORS:
        found[f"file of {name}"] = partial(calibrator_file_case, name)
        found[f"mapping of {name}"] = partial(calibrator_mapping_case, name)
    found |= {"bytes of an Accumulator": accumulator_case, "file of a comparison": comparison_case}
    found["folder of a benchmark"] = benchmark_case
    return found | {f"mapping of {type(m).__name__}": partial(moments_case, i) for i, m in enumerate(moments())}
