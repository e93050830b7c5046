"""Track "canonical": laws of known canonical error, the runner that resumes, and sharpness at a point."""

import os
import signal
import subprocess
import sys
import time
from functools import partialmethod
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import calibrant as cal
from calibrant.benchmark import canonical
from calibrant.benchmark.canonical import (
    CURVES,
    PUBLISHED,
    TRIALS,
    CanonicalConfig,
    CanonicalEntry,
    CanonicalItem,
    estimates,
    evaluation_set,
    published,
    read,
    run_canonical,
)
from calibrant.benchmark.sharpness import POINT, run_sharpness, simulate, squares
from calibrant.cli.benchmark_command import BenchmarkOptions
from calibrant.cli.commands import app

SMALL = {"sizes": (60, 2000), "other_sizes": (40,), "most_sets": 3, "n_jobs": 1}
FEW = {"default": CURVES["default"], "query-cross-residual-1": TRIALS["query-cross-residual-1"]}
ITEMS = 4 * 2 + 12


def fewer(options, sized, **quick):
    """Sizes of a run that is smaller than the quick one."""
    smaller = {"most_sets": 2, "sizes": (10, 100), "other_sizes": (40,), "repetitions": 200}
    return sized(options, **quick) | {name: smaller[name] for name in quick}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small run, with truths from an eighth of the vectors."""
    folder = tmp_path_factory.mktemp("canonical")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canonical, "_DRAWS", canonical._BLOCK)
        return folder, run_canonical(folder, estimators=FEW, **SMALL)


@pytest.mark.slow
def test_truths_are_those_of_the_literature():
    """Popordanoska et al.'s experiment: K = 4 reads 0.2336 ± 4e-5 (L1) and 0.02237 (square) elsewhere."""
    truths = published(4).canonical_truths
    assert truths["l1"].value == pytest.approx(0.2336, abs=4 * np.hypot(4e-5, truths["l1"].standard_error))
    assert truths["squared"].value == pytest.approx(0.02237, abs=4e-5)
    assert published(8, calibrated=True).canonical_truths["l1"].value == 0


@pytest.mark.parametrize("law", [*PUBLISHED, *canonical.others()], ids=lambda law: law.name)
def test_labels_follow_the_map(law):
    """Mean of the residual against the map, and of one product, both of which vanish only for the right map."""
    rng = np.random.default_rng(1)
    p, y = law.draw(60_000, rng)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    residual = np.eye(law.n_classes)[y] - law.curve(p)
    for product in (residual, residual * p):
        se = product.std(axis=0) / np.sqrt(len(y))
        assert (np.abs(product.mean(axis=0)) < 4.5 * se).all()
    assert law.calibrated == bool(np.allclose(law.curve(p[:100]), p[:100]))


def test_the_published_law_is_two_temperatures():
    rng = np.random.default_rng(0)
    u = np.random.default_rng(0)
    got = published(4).vectors(5, rng)
    u.random(5)  # which component of the mixture: there is one
    logs = np.log(u.standard_gamma(np.ones((5, 4))))
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    for _ in range(2):
        logs = logs / 0.6
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(got, np.exp(logs), rtol=1e-10)


def test_readings_are_those_of_the_public_functions():
    item, config = CanonicalItem(PUBLISHED[0], 80), CanonicalConfig(most_sets=2)
    entries = {
        "default": CURVES["default"],
        "published": CURVES["published"],
        "simplex-2": CURVES["simplex-2"],
        "cv": CanonicalEntry(cal.estimators.DirichletKernel("cv", "query", "cross", residual=True)),
    }
    found = estimates(item, config, entries)
    for number in range(2):
        problem = evaluation_set(item, number, config.seed)
        arguments = {"notion": "canonical", "labels": range(4)}
        y, p = problem.codes, problem.probs
        for name, entry in entries.items():
            estimator = entry.estimator or "auto"
            l1 = cal.calibration_error(y, p, estimator=estimator, **arguments)
            assert max(found[name, "l1"][0][number], 0) == pytest.approx(l1, abs=1e-14)
            if name in ("default", "cv"):
                squared = cal.squared_calibration_error(y, p, estimator=estimator, **arguments)
            else:
                squared = cal.calibration_error(y, p, estimator=estimator, norm=2, **arguments) ** 2
            assert found[name, "squared"][0][number] == pytest.approx(squared, abs=1e-14)


def test_a_factor_multiplies_the_rule():
    problem = evaluation_set(CanonicalItem(PUBLISHED[0], 100), 0, 0)
    estimator = cal.estimators.DirichletKernel("auto", "query", "cross", residual=True)
    wide = read(CanonicalEntry(estimator, factor=4.0), problem, "l1", {})
    by_hand = cal.estimators.DirichletKernel(4 * 1.5 * 100 ** (-2 / 7), "query", "cross", residual=True).power(
        problem, 1
    )
    assert wide == pytest.approx(by_hand, abs=1e-14)
    assert wide != read(CanonicalEntry(estimator), problem, "l1", {})


@pytest.mark.slow
def test_rows(small):
    _, frame = small
    assert frame.height == ITEMS * 2 * 2
    assert set(frame["measure"]) == {"l1", "squared"}
    row = frame.filter(
        (pl.col("distribution") == "k4-sharpened")
        & (pl.col("size") == 60)
        & (pl.col("estimator") == "default")
        & (pl.col("measure") == "l1")
    ).to_dicts()[0]
    item = CanonicalItem(PUBLISHED[0], 60)
    by_hand = [read(CURVES["default"], evaluation_set(item, i, 0), "l1", {}) for i in range(3)]
    assert row["mean"] == pytest.approx(np.mean(by_hand))
    truth = published(4).canonical_truths["l1"]
    assert row["truth"] == pytest.approx(truth.value, abs=4 * row["truth_se"])
    assert truth.standard_error < row["truth_se"] < 1e-3
    assert row["bias"] == pytest.approx(np.mean(by_hand) - row["truth"])
    assert row["rmse"] == pytest.approx(np.sqrt(np.mean((np.array(by_hand) - row["truth"]) ** 2)))
    calibrated = frame.filter(pl.col("calibrated"))
    assert (calibrated["truth"] == 0).all()
    assert calibrated["rel_p95"].is_nan().all()


@pytest.mark.slow
def test_two_processes_give_the_same(small, tmp_path):
    _, frame = small
    again = run_canonical(tmp_path, estimators=FEW, **{**SMALL, "n_jobs": 2})
    read = [*frame.columns[: frame.columns.index("truth")], "sets", "nan_share", "mean", "sd"]
    assert again.select(read).equals(frame.select(read))  # the others also read the truths, which `small` has of few


def test_estimators_can_be_added_and_none_is_read_twice(small):
    folder, frame = small
    pieces = {p: p.stat().st_mtime_ns for p in (folder / "pieces").iterdir()}
    more = {**FEW, "simplex-3": cal.estimators.SimplexBinned(3)}
    added = run_canonical(folder, estimators=more, **SMALL)
    assert {p: p.stat().st_mtime_ns for p in pieces} == pieces
    assert added.filter(pl.col("estimator") != "simplex-3").equals(frame)
    assert added.filter(pl.col("estimator") == "simplex-3").height == 2 * ITEMS


@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_results(small, tmp_path):
    _, frame = small
    code = (
        "import itertools, time\n"
        "from calibrant.benchmark.canonical import *\n"
        "from calibrant.benchmark import canonical\n"
        "from calibrant.benchmark.experiment import Store\n"
        "add, calls = Store.add_piece, itertools.count()\n"
        "Store.add_piece = lambda *piece: time.sleep(600) if next(calls) == 2 else add(*piece)\n"
        "canonical._DRAWS = canonical._BLOCK\n"
        "few = {'default': CURVES['default'], 'query-cross-residual-1': TRIALS['query-cross-residual-1']}\n"
        f"run_canonical({str(tmp_path)!r}, estimators=few, **{SMALL!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    pieces = tmp_path / "pieces"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None and len(list(pieces.glob("*.parquet"))) < 2:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert len(list(pieces.glob("*.parquet"))) == 2
    assert run_canonical(tmp_path, estimators=FEW, **SMALL).drop("seconds").equals(frame.drop("seconds"))


def test_another_configuration_is_refused(small):
    folder, _ = small
    with pytest.raises(ValueError, match="differs in seed"):
        run_canonical(folder, estimators=FEW, **SMALL, seed=1)
    with pytest.raises(ValueError, match="'default' is auto"):
        run_canonical(folder, estimators={"default": cal.estimators.SimplexBinned(4)}, **SMALL)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: CanonicalEntry(cal.Binned(15)), ValueError, "must support the canonical notion"),
        (lambda: CanonicalEntry(cal.estimators.SimplexBinned(2), ("l3",)), ValueError, "measures must be some of"),
        (lambda: CanonicalEntry(cal.estimators.SimplexBinned(2), factor=2.0), ValueError, "factor"),
        (lambda: run_canonical("x", estimators={}), TypeError, "not empty"),
        (lambda: run_canonical("x", estimators={"": cal.estimators.SimplexBinned(2)}), TypeError, "names"),
        (lambda: run_canonical("x", estimators={"a": 3}), TypeError, "such as Binned\\(15\\), or entries; 'a' is 3"),
        (lambda: run_canonical("x", sizes=()), ValueError, "sizes"),
        (lambda: run_canonical("x", most_sets=0), ValueError, "most_sets"),
        (lambda: run_canonical("x", seed=-1), ValueError, "seed"),
        (lambda: run_sharpness("x", sizes=(1,)), ValueError, "sizes"),
        (lambda: run_sharpness("x", repetitions=1), ValueError, "repetitions"),
    ],
)
def test_refuses(make, error, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=words):
        make()
    assert not Path("x").exists()


def test_trials_hold_the_default():
    """The default for L1 is one of the candidates that it was chosen from."""
    from calibrant.measure.question import canonical_default

    assert canonical_default(1) in [entry.estimator for entry in TRIALS.values() if entry.factor == 1]


def test_squares_at_a_point_by_pairs():
    """Sums over pairs of different samples, and what the others are."""
    rng = np.random.default_rng(3)
    w = rng.random(7)
    y = np.eye(3)[rng.integers(0, 3, 7)]
    pairs = [(i, j) for i in range(7) for j in range(7) if i != j]
    up = sum(w[i] * w[j] * y[i] @ y[j] for i, j in pairs)
    down = sum(w[i] * w[j] for i, j in pairs)
    down_printed = [sum(w[i] * w[j] for i in range(7) for j in range(7) if i != j or not y[i, c]) for c in range(3)]
    up_each = [sum(w[i] * w[j] * y[i, c] * y[j, c] for i, j in pairs) for c in range(3)]
    plug_in = ((w @ y / w.sum()) ** 2).sum()
    got = squares(np.log(w)[None], y[None])[0]
    np.testing.assert_allclose(got, [plug_in, np.divide(up_each, down_printed).sum(), up / down], rtol=1e-12)


@pytest.mark.slow
def test_sharpness_at_a_point(tmp_path):
    frame = run_sharpness(tmp_path, sizes=(10, 100), repetitions=800, n_jobs=1)
    cell = {(r["size"], r["estimator"]): r for r in frame.to_dicts()}
    truth = published(4).curve(np.asarray(POINT))
    assert cell[10, "plug-in"]["truth"] == pytest.approx(truth @ truth)
    # Noise squared is added to the plug-in; the printed correction takes too much off; pairs are nearly unbiased.
    assert cell[100, "plug-in"]["bias"] > 0.1
    assert cell[100, "as printed"]["bias"] < -0.005
    assert abs(cell[100, "square"]["bias"]) < 0.01 + 3 * cell[100, "square"]["se"]
    assert cell[100, "square"]["mean"] == pytest.approx(np.nanmean(simulate(100, 800, 0)[:, 2]))
    times = {p: p.stat().st_mtime_ns for p in (tmp_path / "pieces").iterdir()}
    assert run_sharpness(tmp_path, sizes=(10, 100), repetitions=800, n_jobs=1).equals(frame)
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "pieces").iterdir()} == times


@pytest.mark.slow
def test_command(tmp_path, monkeypatch):
    monkeypatch.setattr(canonical, "_DRAWS", canonical._BLOCK)
    monkeypatch.setattr(BenchmarkOptions, "sized", partialmethod(fewer, BenchmarkOptions.sized))
    arguments = ["benchmark", "--track", "canonical", "--quick", "--jobs", "1", "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "k8-calibrated, squared: mean estimate; truth 0.0000" in done.output
    assert "sharpness at a point" in done.output
    assert (tmp_path / "run" / "results.parquet").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--track", "beta", "--track", "canonical"], "cannot be combined with other tracks"),
        (["--track", "canonical", "--show", "rel"], "must be one of mean, bias, rmse"),
        (["--track", "canonical", "--mode", "as-published"], "apply to the mixtures only"),
    ],
)
def test_command_refuses(arguments, says, tmp_path):
    result = CliRunner().invoke(app, ["benchmark", *arguments, "--out", str(tmp_path / "run")])
    assert result.exit_code == 2
    assert says in " ".join((result.output + result.stderr).split())


@pytest.mark.slow
def test_page(small, tmp_path):
    """The page's bars and the data files, from the run's rows in another way."""
    folder, frame = small
    run_sharpness(folder / "sharpness", sizes=(10, 30, 100), repetitions=200, n_jobs=1)
    script = Path(__file__).resolve().parents[2] / "docs" / "examples" / "canonical_page.py"
    subprocess.run([sys.executable, str(script), str(folder), "--docs", str(tmp_path)], check=True, timeout=120)
    text = (tmp_path / "canonical.md").read_text(encoding="utf-8").replace("−", "-")
    cell = {(r["distribution"], r["size"], r["estimator"], r["measure"]): r for r in frame.to_dicts()}
    wrong, right = (cell[f"k4-{x}", 2000, "default", "squared"] for x in ("sharpened", "calibrated"))
    line = next(line for line in text.splitlines() if line.startswith("| 4 | 2,000 |"))
    off = (wrong["mean"] - wrong["truth"]) / wrong["truth"]
    quiet = right["mean"] / wrong["truth"]
    assert f"{100 * off:+.1f} % ±" in line
    assert f"{100 * quiet:+.1f} % ±" in line
    assert line.endswith("| yes |" if abs(off) <= 0.1 and abs(quiet) <= 0.05 else "| no |")
    assert {p.name for p in (tmp_path / "images").iterdir()} == {"canonical_l1.png"}
    written, tried = (
        pl.read_csv(tmp_path / "canonical" / f"{name}.csv", comment_prefix="# ") for name in ("results", "candidates")
    )
    written = written.filter(pl.col("estimator").is_in(list(FEW)))
    assert written.height == frame.height
    np.testing.assert_allclose(written["mean"], frame["mean"], rtol=1e-3)
    assert set(tried["estimator"]) == {"query-cross-residual-1"}
