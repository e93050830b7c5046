"""Runner of the tracks: its numbers from public functions, pairing, workers, resuming after kill -9, errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.benchmark.curves import OURS, Entry, as_entries, paper_curves
from calibrant.benchmark.track_runner import (
    TrackConfig,
    collect,
    estimates,
    evaluation_sets,
    run_tracks,
    summarize,
)
from calibrant.benchmark.tracks import distributions
from calibrant.data import writing

ESTIMATORS = {"l-15": cal.Binned(15), "rank": cal.estimators.ResidualKernel()}
NAMES = ("uniform-overconfident", "bell-calibrated", "lenet5-raw-confidence", "k3-flat-tilted", "k3-sharp-calibrated")
TINY = TrackConfig(("beta", "networks", "dirichlet"), (30, 60), n_sets=8, seed=3, names=NAMES)


def tiny(out: Path, estimators: dict = ESTIMATORS, **changes) -> pl.DataFrame:
    options = {"tracks": TINY.tracks, "sizes": TINY.sizes, "n_sets": TINY.n_sets, "seed": 3, "names": NAMES}
    return run_tracks(**options | changes, out=out, estimators=estimators)


KEYS = ["track", "distribution", "notion", "size", "estimator"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pl.DataFrame]:
    folder = tmp_path_factory.mktemp("tracks") / "run"
    return folder, tiny(folder)


def test_one_row_a_cell(run):
    folder, frame = run
    # Two notions for the beta and Dirichlet members, one for the network; two sizes and two estimators.
    assert frame.height == (2 * 2 + 1 + 2 * 2) * 2 * 2
    assert frame.select(KEYS).n_unique() == frame.height
    assert frame.equals(frame.sort(KEYS))
    assert pl.read_parquet(folder / "results.parquet").equals(frame)
    assert (frame["sets"] == 8).all()
    assert (frame["nan_share"] == 0).all()
    assert (frame["seconds"] > 0).all()
    config = json.loads((folder / "config.json").read_text())
    assert config["seed"] == 3
    assert config["versions"]["numpy"] == np.__version__


@pytest.mark.parametrize(
    ("track", "name", "notion"),
    [
        ("beta", "uniform-overconfident", "class-specific"),
        ("beta", "uniform-overconfident", "confidence"),
        ("networks", "lenet5-raw-confidence", "confidence"),
        ("dirichlet", "k3-flat-tilted", "classwise"),
        ("dirichlet", "k3-flat-tilted", "confidence"),
    ],
)
def test_cells_from_public_functions(run, track, name, notion):
    """Every figure of a row again, from the samples themselves and `calibration_error`."""
    d = next(d for d in distributions(track) if d.name == name)
    truth = d.truth(notion).value
    ((n_sets, rng),) = evaluation_sets(d, 60, TINY)
    scores, labels = d.sample(n_sets, 60, rng)
    estimator = ESTIMATORS["l-15"]
    read = []
    for s, y in zip(scores, labels, strict=True):
        if notion == "class-specific" or track == "networks":
            read.append(cal.calibration_error(y, s, estimator=estimator, labels=[0, 1], pos_label=1))
        else:
            p = s if s.ndim == 2 else np.stack([1 - s, s], axis=1)
            labels_of = list(range(p.shape[1]))
            read.append(cal.calibration_error(y, p, notion=notion, estimator=estimator, labels=labels_of))
    gap = np.abs(np.array(read) - truth)
    row = run[1].filter(distribution=name, notion=notion, size=60, estimator="l-15").row(0, named=True)
    expected = {
        "truth": truth,
        "mean": np.mean(read),
        "bias": np.mean(read) - truth,
        "rmse": np.sqrt(np.mean(gap**2)),
        "abs_p95": np.quantile(gap, 0.95),
        "abs_median": np.median(gap),
        "rel_p95": np.quantile(gap, 0.95) / truth,
        "rel_median": np.median(gap) / truth,
        "reading_p95": np.quantile(read, 0.95),
        "alarm_0.01": np.mean(np.array(read) > 0.01),
        "alarm_0.02": np.mean(np.array(read) > 0.02),
    }
    for key, value in expected.items():
        assert row[key] == pytest.approx(value, abs=1e-9), key
    assert row["definition"] == f"{estimator!r}, norm 1"
    assert not row["calibrated"]


def test_calibrated_rows_have_alarms_and_no_relative_error(run):
    frame = run[1].filter(pl.col("calibrated"))
    assert set(frame["distribution"]) == {"bell-calibrated", "k3-sharp-calibrated"}
    assert frame["rel_p95"].is_nan().all()
    assert frame["rel_median"].is_nan().all()
    assert (frame["bias"] == frame["mean"]).all()
    assert (frame["alarm_0.01"] >= frame["alarm_0.02"]).all()
    assert (frame["reading_p95"] > 0).all()


def test_norm_2_averages_powers_over_classes():
    d = next(d for d in distributions("dirichlet") if d.name == "k3-flat-tilted")
    config = TrackConfig(("dirichlet",), (40,), n_sets=3, names=(d.name,))
    ((n_sets, rng),) = evaluation_sets(d, 40, config)
    scores, labels = d.sample(n_sets, 40, rng)
    entries = as_entries({"l-15": Entry(ESTIMATORS["l-15"], norm=2)})
    values, _ = estimates(d, 40, config, entries)["classwise", "l-15"]
    for i in range(3):
        options = {"notion": "classwise", "estimator": ESTIMATORS["l-15"], "labels": [0, 1, 2], "norm": 2}
        assert values[i] == pytest.approx(cal.calibration_error(labels[i], scores[i], **options), abs=1e-12)


def test_truths_are_of_the_entrys_norm(tmp_path):
    d = next(d for d in distributions("dirichlet") if d.name == "k3-flat-tilted")
    both = {"one": Entry(cal.Binned(15)), "two": Entry(cal.Binned(15), norm=2)}
    frame = tiny(tmp_path, both, tracks=("dirichlet",), names=(d.name,))
    for norm, name in ((1, "one"), (2, "two")):
        for notion in d.notions:
            rows = frame.filter(estimator=name, notion=notion)
            assert set(rows["truth"]) == {d.truth(notion, norm).value}
            assert set(rows["truth_se"]) == {d.truth(notion, norm).standard_error}
            assert set(rows["norm"]) == {float(norm)}


def test_every_estimator_is_read_unless_some_are_named(tmp_path):
    frame = run_tracks(("beta",), out=tmp_path, sizes=(30,), n_sets=2, names=("uniform-overconfident",))
    assert set(frame["estimator"]) == {*paper_curves(), *OURS}
    assert np.isfinite(frame["rmse"].to_numpy()).all()


def test_evaluation_sets_depend_on_the_cell_and_the_seed_only():
    d, other = distributions("beta")[1], distributions("beta")[2]

    def draw(distribution, size, config):
        ((n_sets, rng),) = evaluation_sets(distribution, size, config)
        return distribution.sample(n_sets, 30, rng)[0]

    same = draw(d, 30, TrackConfig(("beta",), (30, 90), n_sets=8, seed=3))
    np.testing.assert_array_equal(draw(d, 30, TINY), same)
    assert (draw(d, 30, TrackConfig(("beta",), (30,), n_sets=8, seed=4)) != same).any()
    assert (draw(d, 60, TINY) != same).any()
    assert (draw(other, 30, TINY) != same).any()


def test_large_cells_are_drawn_in_chunks_of_their_own():
    d = distributions("consistency")[0]
    config = TrackConfig(("consistency",), n_sets=200)
    chunks = evaluation_sets(d, 1_000_000, config)
    assert [n for n, _ in chunks] == [2] * 10
    assert len({rng.random() for _, rng in chunks}) == 10
    assert [config.sets_of(n) for n in (1_000, 100_000, 1_000_000, 10**8)] == [200, 200, 20, 10]
    assert len(config.items) == 4 * len(distributions("consistency"))


@pytest.mark.slow
def test_workers_change_nothing(run, tmp_path):
    two = tiny(tmp_path / "two", n_jobs=2)
    assert two.drop("seconds").equals(run[1].drop("seconds"))


def test_estimators_added_later_are_read_on_the_same_sets(run, tmp_path):
    folder = tmp_path / "run"
    tiny(folder, {"l-15": cal.Binned(15)})
    before = {p: p.stat().st_mtime_ns for p in (folder / "pieces").iterdir()}
    later = tiny(folder)
    assert later.drop("seconds").equals(run[1].drop("seconds"))
    assert all(p.stat().st_mtime_ns == t for p, t in before.items())
    assert tiny(folder).equals(later)
    with pytest.raises(ValueError, match=r"estimators: 'l-15' is Binned\(n_bins=15.*Choose another name"):
        tiny(folder, {"l-15": cal.Binned(10)})


SCRIPT = """
import sys, time
import calibrant as cal
from calibrant.benchmark import track_runner
whole = track_runner.estimates_of
def slow(*arguments):
    time.sleep(0.05)
    return whole(*arguments)
track_runner.estimates_of = slow
estimators = {"l-15": cal.Binned(15), "rank": cal.estimators.ResidualKernel()}
tracks = ("beta", "networks", "dirichlet")
track_runner.run_tracks(tracks, out=sys.argv[1], sizes=(30, 60), n_sets=8, seed=3, names=%r, estimators=estimators)
"""


@pytest.mark.slow
def test_killed_run_resumes_to_the_same_results(run, tmp_path):
    folder = tmp_path / "killed"
    (tmp_path / "slow.py").write_text(SCRIPT % (NAMES,))
    process = subprocess.Popen([sys.executable, str(tmp_path / "slow.py"), str(folder)])
    try:
        deadline = time.monotonic() + 120
        while not list(folder.glob("pieces/*.parquet")):
            assert process.poll() is None, "the run ended before it was killed"
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert not (folder / "results.parquet").exists()
    kept = list(folder.glob("pieces/*.parquet"))
    assert 0 < len(kept) < len(TINY.items)
    # What a kill in the middle of a write leaves behind.
    left = f".half.parquet.{writing._host()}-{process.pid}-{'0' * 16}.tmp"
    (folder / "pieces" / left).write_bytes(b"half")
    others = folder / "pieces" / ".half.parquet.tmp"  # of somebody else
    others.write_bytes(b"half")
    resumed = tiny(folder)
    assert resumed.drop("seconds").equals(run[1].drop("seconds"))
    assert list(folder.rglob("*.tmp")) == [others]


def test_folder_of_another_run_is_refused(run, tmp_path):
    folder, _ = run
    with pytest.raises(ValueError, match=r"differs in seed \(seed: 3 there, 4 requested\)"):
        tiny(folder, seed=4)
    (tmp_path / "pieces").mkdir()
    with pytest.raises(ValueError, match=r"holds pieces of a run but no config\.json"):
        tiny(tmp_path)
    (tmp_path / "config.json").write_text("[1, 2")
    with pytest.raises(ValueError, match="is not the configuration of a benchmark run"):
        tiny(tmp_path)


def test_missing_readings_are_counted_and_left_out(monkeypatch, tmp_path):
    from calibrant.benchmark import track_runner

    values = np.array([np.nan, 0.2, 0.1, 0.3])
    monkeypatch.setattr(track_runner, "estimates_of", lambda entry, batches: values)
    options = {"tracks": ("beta",), "sizes": (30,), "n_sets": 4, "names": ("uniform-overconfident",)}
    row = tiny(tmp_path / "some", **options).row(0, named=True)
    assert row["nan_share"] == 0.25
    assert row["mean"] == pytest.approx(0.2)
    assert row["alarm_0.01"] == 1.0
    values[:] = np.nan
    row = tiny(tmp_path / "none", **options).row(0, named=True)
    assert row["nan_share"] == 1
    assert np.isnan([row[key] for key in ("rmse", "rel_p95", "reading_p95", "alarm_0.01")]).all()
    assert summarize(collect(tmp_path / "none"))["rmse"].is_nan().all()


def test_summary_is_of_medians_and_alarms(run):
    frame = run[1]
    cell = {"track": "beta", "notion": "class-specific", "size": 30, "estimator": "rank"}
    row = summarize(frame).filter(**cell).row(0, named=True)
    right = frame.filter(pl.col("calibrated"), **cell).row(0, named=True)
    wrong = frame.filter(~pl.col("calibrated"), **cell).row(0, named=True)
    assert (row["distributions"], row["calibrated"]) == (1, 1)
    assert row["rel_p95"] == wrong["rel_p95"]
    assert row["false_alarm"] == right["mean"]
    assert row["alarm_0.02"] == right["alarm_0.02"]
    only = summarize(frame.filter(~pl.col("calibrated"))).filter(**cell).row(0, named=True)
    assert only["false_alarm"] is None


@pytest.mark.slow
def test_errors_shrink_with_the_size(tmp_path):
    """Track "consistency", its sizes cut short: the rank kernel's RMSE falls from each to the next."""
    options = {"n_sets": 20, "large_sizes": (200, 3_000, 50_000)}
    frame = run_tracks(("consistency",), out=tmp_path, estimators={"rank": cal.estimators.ResidualKernel()}, **options)
    assert frame["size"].unique().sort().to_list() == [200, 3_000, 50_000]
    for _, group in frame.group_by("distribution", "notion"):
        rmse = group.sort("size")["rmse"].to_list()
        assert rmse[0] > 1.5 * rmse[1] > 2.25 * rmse[2], group["distribution"][0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tracks": ("paper",)}, "tracks must be some of 'beta'"),
        ({"tracks": ()}, "tracks must be some of"),
        ({"sizes": (30, 30)}, "sizes must be different numbers of rows"),
        ({"sizes": (0,)}, "sizes must be different numbers of rows"),
        ({"n_sets": 0}, "n_sets must be an int >= 1; got 0"),
        ({"seed": -1}, "seed must be an int >= 0; got -1"),
        ({"names": ("nobody",)}, "names must be names of distributions"),
    ],
)
def test_bad_configurations_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        TrackConfig(**change)


def test_no_estimators(tmp_path):
    with pytest.raises(TypeError, match="estimators must be a mapping"):
        tiny(tmp_path, {})


@pytest.mark.parametrize("n_jobs", [0, -1, 1.5, True])
def test_bad_workers(tmp_path, n_jobs):
    with pytest.raises(ValueError, match="n_jobs must be an int >= 1"):
        tiny(tmp_path / "none", n_jobs=n_jobs)
    assert not (tmp_path / "none").exists()


def test_tables_of_the_command_take_a_summary(run, capsys):
    from calibrant.cli.benchmark_command import print_tables

    print_tables(summarize(run[1]).filter(track="dirichlet"), "rel")
    printed = capsys.readouterr().out
    assert "classwise" in printed
    assert "l-15" in printed
