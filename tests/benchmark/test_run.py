"""A tiny run, end to end: stopped, resumed, spread over processes, extended; its rows, its summary, its command."""

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.benchmark import OURS, PAPER_CURVES, Config, Entry, forget, load, paper_curves, predict, run, summary
from calibrant.benchmark.pool import draw_pool, truth_of
from calibrant.benchmark.read import read_pool, statistics
from calibrant.benchmark.runner import COLUMNS, KEYS, MEASURES

TINY = Config(
    classes=(2, 3),
    dimensions=(2,),
    mixtures=1,
    trainings=1,
    train_size=60,
    pool=9000,
    rows=6000,
    sizes=(30, 100),
    sets=20,
    seed=3,
)
SOME = {
    "binned": cal.Binned(10),
    "linear": cal.Binned("sqrt", "quantile", "linear"),
    "density": cal.estimators.Density(kernel="triweight"),
    "residual": cal.estimators.ResidualKernel(),
    "l2": Entry(cal.Binned(10, debias=True), norm=2),
}
#: The same in a process of its own.
SCRIPT = """
import os, signal, sys
import polars as pl
import calibrant as cal
from calibrant.benchmark import Config, Entry, run
from calibrant.benchmark.experiment import Store

TINY = Config(classes=(2, 3), dimensions=(2,), mixtures=1, trainings=1, train_size=60, pool=9000, rows=6000,
              sizes=(30, 100), sets=20, seed=3)
SOME = {
    "binned": cal.Binned(10),
    "linear": cal.Binned("sqrt", "quantile", "linear"),
    "density": cal.estimators.Density(kernel="triweight"),
    "residual": cal.estimators.ResidualKernel(),
    "l2": Entry(cal.Binned(10, debias=True), norm=2),
}
whole, done = Store.write, []

def killed_in_the_fourth(store, path, action):
    def half(temporary):
        action(temporary)
        if len(done) == 3:
            temporary.flush()
            os.truncate(temporary.fileno(), 100)
            os.kill(os.getpid(), signal.SIGKILL)
    whole(store, path, half)
    done.append(path)

Store.write = killed_in_the_fourth
run(out=sys.argv[1], config=TINY, n_jobs=1, estimators=SOME, progress=False)
"""


def numbers(frame):
    """All that must not depend on processes and stops."""
    return frame.drop("seconds")


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference") / "run"
    frame = run(out=folder, config=TINY, n_jobs=1, estimators=SOME, progress=False)
    return folder, frame


def test_rows(reference):
    folder, frame = reference
    assert frame.columns == list(COLUMNS)
    assert frame.height == 8 * 2 * 2 * 5
    assert not frame.select(KEYS).is_duplicated().any()
    assert frame.equals(frame.sort(KEYS))
    assert frame.equals(pl.read_parquet(folder / "results.parquet"))
    assert not frame.select(pl.selectors.float().is_nan().any()).row(0).count(True)
    assert (frame["seconds"] > 0).all()
    metadata = pl.read_parquet_metadata(folder / "results.parquet")
    assert json.loads(metadata["config"]) == TINY.to_dict() == json.loads((folder / "config.json").read_text())
    assert metadata["calibrant"] == cal.__version__
    assert json.loads(metadata["estimators"])["l2"] == f"{cal.Binned(10, debias=True)!r}, norm 2"


def test_readings_are_those_of_the_library(reference):
    """Every number of some cells again, from the public function and the definition of each statistic."""
    _, frame = reference
    for distribution in TINY.distributions[::3]:
        drawn = draw_pool(TINY, distribution)
        for notion in ("confidence", "classwise"):
            for size, name in ((30, "l2"), (100, "linear"), (100, "residual"), (30, "density")):
                entry = SOME[name] if isinstance(SOME[name], Entry) else Entry(SOME[name])
                values = [
                    cal.calibration_error(
                        drawn.labels[rows],
                        drawn.scores[rows],
                        notion=notion,
                        estimator=entry.estimator,
                        norm=entry.norm,
                        labels=range(distribution.classes),
                    )
                    for rows in TINY.rows_of(size)
                ]
                truth = truth_of(drawn.truth, notion, entry.norm)
                row = frame.row(
                    by_predicate=(pl.col("classes") == distribution.classes)
                    & (pl.col("model") == distribution.model)
                    & (pl.col("notion") == notion)
                    & (pl.col("size") == size)
                    & (pl.col("estimator") == name),
                    named=True,
                )
                close = {"abs": 5e-4 if name == "density" else 1e-9}
                assert row["truth"] == pytest.approx(truth.truth)
                assert row["label_truth"] == pytest.approx(truth.label_truth)
                off = np.abs(np.array(values) - truth.truth)
                assert row["mean"] == pytest.approx(np.mean(values), **close)
                assert row["bias"] == pytest.approx(np.mean(values) - truth.truth, **close)
                assert row["rmse"] == pytest.approx(np.sqrt(np.mean(off**2)), **close)
                assert row["abs_p95"] == pytest.approx(np.percentile(off, 95), **close)
                assert row["rel_median"] == pytest.approx(np.median(off) / truth.truth, rel=1e-2)
                assert row["norm"] == entry.norm


@pytest.mark.slow
def test_killed_and_resumed_is_the_same(reference, tmp_path):
    _, frame = reference
    folder = tmp_path / "run"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder)], capture_output=True, env=environment, check=False
    )
    assert done.returncode == -9, done.stderr
    pieces = {path: path.stat().st_mtime_ns for path in (folder / "pieces").glob("*.parquet")}
    assert len(pieces) == 3
    assert len(list((folder / "pieces").glob(".*.tmp"))) == 1  # what was being written
    assert not (folder / "results.parquet").exists()
    assert numbers(load(folder)).equals(numbers(frame.join(load(folder), on=KEYS, how="semi", maintain_order="left")))
    with pytest.raises(ValueError, match="does not contain results yet"):
        load(tmp_path / "nothing")
    resumed = run(out=folder, config=TINY, n_jobs=1, estimators=SOME, progress=False)
    assert numbers(resumed).equals(numbers(frame))
    assert all(path.stat().st_mtime_ns == time for path, time in pieces.items())
    assert not list(folder.rglob("*.tmp"))


@pytest.mark.slow
def test_two_processes_give_the_same(reference, tmp_path):
    _, frame = reference
    both = run(out=tmp_path / "run", config=TINY, n_jobs=2, estimators=SOME, progress=False)
    assert numbers(both).equals(numbers(frame))


@pytest.mark.slow
def test_estimators_added_later_read_kept_predictions(reference, tmp_path, monkeypatch):
    _, frame = reference
    first = {name: SOME[name] for name in ("binned", "l2")}
    assert predict(out=tmp_path / "run", n_jobs=1, progress=False, config=TINY) == tmp_path / "run"
    files = sorted((tmp_path / "run" / "predictions").iterdir())
    assert [f.name for f in files] == sorted(f"{d.name}.npz" for d in TINY.distributions)
    monkeypatch.setattr("calibrant.benchmark.runner.draw_pool", None)  # nothing is predicted again
    part = run(out=tmp_path / "run", config=TINY, n_jobs=1, estimators=first, progress=False)
    assert set(part["estimator"]) == set(first)
    whole = run(out=tmp_path / "run", config=TINY, n_jobs=1, estimators=SOME, progress=False)
    assert numbers(whole).equals(numbers(frame))
    assert sorted((tmp_path / "run" / "predictions").iterdir()) == files
    monkeypatch.setattr("calibrant.benchmark.runner.read_pool", None)  # nor is anything read again
    again = run(out=tmp_path / "run", config=TINY, n_jobs=1, estimators=first, progress=False)
    assert again.equals(whole)


def test_predictions_are_kept_on_demand_only(reference, tmp_path):
    folder, _ = reference
    assert not (folder / "predictions").exists()
    small = {"binned": SOME["binned"]}
    one = Config(**{**vars(TINY), "models": ("bayes",)})
    run(out=tmp_path, config=one, n_jobs=1, estimators=small, progress=False, keep_predictions=True)
    assert len(list((tmp_path / "predictions").iterdir())) == 2


def test_forgotten_estimators_are_read_anew(reference, tmp_path):
    one = Config(**{**vars(TINY), "models": ("bayes",)})
    options = {"out": tmp_path, "config": one, "n_jobs": 1, "progress": False}
    first = run(estimators={"a": cal.Binned(10), "b": cal.Binned(20)}, **options)
    with pytest.raises(ValueError, match=r"'b' is Binned\(n_bins=20.*but Binned\(n_bins=30.*forget"):
        run(estimators={"b": cal.Binned(30)}, **options)
    with pytest.raises(ValueError, match=r"names must be estimators of .*; got c"):
        forget(tmp_path, ["c"])
    forget(tmp_path, ["b"])
    assert set(load(tmp_path)["estimator"]) == {"a"}
    second = run(estimators={"b": cal.Binned(30)}, **options)
    kept = pl.col("estimator") == "a"
    assert second.filter(kept).equals(first.filter(kept))
    assert not numbers(second.filter(~kept)).equals(numbers(first.filter(~kept)))
    with pytest.raises(ValueError, match="does not contain a benchmark run"):
        forget(tmp_path / "elsewhere", ["a"])


@pytest.mark.parametrize("change", [{"seed": 4}, {"sizes": (30, 90)}, {"mode": "as-published"}])
def test_another_configuration_in_the_folder_is_refused(reference, change):
    folder, _ = reference
    name = next(iter(change))
    with pytest.raises(ValueError, match=f"another configuration; it differs in {name}"):
        run(out=folder, config=Config(**{**vars(TINY), **change}), n_jobs=1, estimators=SOME, progress=False)


def test_folders_that_are_no_run_are_refused(tmp_path):
    (tmp_path / "pieces").mkdir()
    with pytest.raises(ValueError, match=r"no config\.json"):
        run(out=tmp_path, config=TINY, progress=False)
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(ValueError, match="not the configuration of a benchmark run"):
        run(out=tmp_path, config=TINY, progress=False)


def test_unfinished_estimators_are_not_results(tmp_path, monkeypatch):
    """An estimator that some distributions lack, because a run was stopped, is not averaged over what there is."""
    one = Config(**{**vars(TINY), "models": ("bayes",)})
    options = {"out": tmp_path, "config": one, "n_jobs": 1, "progress": False}

    def stopped(config, distribution, *rest):
        if distribution == config.shuffled[1]:
            raise KeyboardInterrupt
        return read_pool(config, distribution, *rest)

    with monkeypatch.context() as patched:
        patched.setattr("calibrant.benchmark.runner.read_pool", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(estimators={"a": cal.Binned(10), "b": cal.Binned(20)}, **options)
    found = run(estimators={"a": cal.Binned(10)}, **options)
    assert set(found["estimator"]) == {"a"}
    assert found["classes"].n_unique() == 2
    assert set(load(tmp_path)["estimator"]) == {"a", "b"}
    assert json.loads(pl.read_parquet_metadata(tmp_path / "results.parquet")["estimators"]).keys() == {"a"}
    assert set(run(estimators={"b": cal.Binned(20)}, **options)["estimator"]) == {"a", "b"}


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"estimators": {}}, TypeError, "estimators must be a mapping"),
        ({"estimators": [cal.Binned()]}, TypeError, "estimators must be a mapping"),
        ({"estimators": {"a": "binned"}}, TypeError, "must be estimators such as"),
        ({"estimators": {1: cal.Binned()}}, TypeError, "names of estimators"),
        ({"estimators": {"a": cal.estimators.SimplexBinned()}}, ValueError, "confidence and classwise"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be"),
        ({"mode": "wrong"}, ValueError, "mode must be one of"),
    ],
)
def test_bad_arguments(tmp_path, options, kind, words):
    with pytest.raises(kind, match=words):
        run(**{"out": tmp_path / "run", "progress": False, **options})


def test_bad_entries():
    with pytest.raises(ValueError, match="norm of an entry"):
        Entry(cal.Binned(), norm=3)
    with pytest.raises(ValueError, match="shared_bandwidth needs a Density"):
        Entry(cal.Binned(), shared_bandwidth=True)


def test_the_paper_s_curves():
    assert len(PAPER_CURVES) == len(paper_curves("as-published")) == 15
    assert not set(PAPER_CURVES) & set(OURS)
    corrected, published = paper_curves(), paper_curves("as-published")
    assert list(corrected) == list(published) == [
        *(f"{name}{n}" for name in ("l", "a", "c", "ac") for n in (10, 30, "sqrt")),
        "d-silverman",
        "d0.1",
        "d0.033",
    ]  # fmt: skip
    assert corrected["c30"].estimator == cal.Binned(30, mapping="linear")
    assert published["c30"].estimator == cal.Binned(30, mapping="linear-as-printed", span="domain")
    assert published["l30"] == corrected["l30"] == Entry(cal.Binned(30))
    assert published["acsqrt"].estimator == cal.Binned("sqrt", "quantile-as-published", "linear-as-printed")
    assert corrected["d0.1"].estimator == cal.estimators.Density(0.1, "triweight")
    assert [published["d-silverman"].shared_bandwidth, corrected["d-silverman"].shared_bandwidth] == [True, False]
    with pytest.raises(ValueError, match="mode must be one of"):
        paper_curves("wrong")


def test_as_published_reuses_the_bandwidth_of_class_0(tmp_path):
    config = Config(**{**vars(TINY), "mode": "as-published", "classes": (3,), "models": ("forest",), "sets": 5})
    entry = paper_curves("as-published")["d-silverman"]
    frame = run(out=tmp_path, config=config, n_jobs=1, estimators={"d": entry, "own": entry.estimator}, progress=False)
    (distribution,) = config.distributions
    drawn = draw_pool(config, distribution)
    estimates = []
    for rows in config.rows_of(100):
        s = drawn.scores[rows].astype(float)
        q = np.quantile(s[:, 0], [0.25, 0.75])
        h = min(s[:, 0].std(ddof=1), (q[1] - q[0]) / 1.34898) * 75**-0.2
        each = [
            cal.calibration_error(drawn.labels[rows] == k, s[:, k], estimator=cal.estimators.Density(h, "triweight"))
            for k in range(3)
        ]
        estimates.append(np.mean(each))
    at = (pl.col("notion") == "classwise") & (pl.col("size") == 100)
    found = {name: frame.filter(at, pl.col("estimator") == name)["mean"].item() for name in ("d", "own")}
    assert found["d"] == pytest.approx(np.mean(estimates), abs=1e-4)
    assert abs(found["own"] - found["d"]) > 5e-4
    same = frame.filter(pl.col("notion") == "confidence", pl.col("size") == 100).drop("estimator", "seconds")
    assert same[0].equals(same[1])


def test_statistics():
    found = statistics(np.array([0.1, 0.3, np.nan, 0.2]), 0.1, 0.2)
    assert found["nan_share"] == 0.25
    assert found["mean"] == pytest.approx(0.2)
    assert found["bias"] == pytest.approx(0.1)
    assert found["sd"] == pytest.approx(np.sqrt(0.02 / 3))
    assert found["rmse"] == pytest.approx(np.sqrt(0.05 / 3))
    assert found["abs_median"] == pytest.approx(0.1)
    assert found["rel_p95"] == pytest.approx(1.9)
    assert found["label_abs_p95"] == pytest.approx(0.1)
    nothing = statistics(np.array([np.nan, np.nan]), 0.1, 0.2)
    assert nothing.pop("nan_share") == 1
    assert np.isnan(list(nothing.values())).all()
    assert np.isnan(statistics(np.array([0.1]), 0.0, 0.0)["rel_p95"])


def synthetic(within):
    """45 mixtures × 12 distributions: a value of the mixture plus ``within`` times one of the distribution."""
    rng = np.random.default_rng(0)
    rows = []
    for mixture in range(45):
        level = rng.normal()
        for training in range(3):
            for model in ("a", "b", "c", "d"):
                value = level + within * rng.normal()
                about = {"mode": "corrected", "seed": 0, "classes": 2, "dimensions": 2, "mixture": mixture}
                about |= {"training": training, "model": model, "notion": "confidence", "size": 30, "estimator": "x"}
                rows.append(about | dict.fromkeys(MEASURES, value))
    return pl.DataFrame(rows)


def test_summary_is_a_median_whose_error_is_that_of_mixtures():
    frame = synthetic(0.1)
    found = summary(frame)
    assert found.height == 1
    assert found["distributions"].item() == 540
    for measure in MEASURES:
        assert found[measure].item() == pytest.approx(frame[measure].median())
    # the standard error of the median of 45 normal values is 1.25 / √45 = 0.19; of 540, 0.054
    assert 0.12 < found["rmse_se"].item() < 0.28
    assert found.equals(summary(frame))


def test_summary_of_a_run(reference):
    folder, frame = reference
    found = summary(folder)
    assert found.equals(summary(folder / "results.parquet"))
    assert found.equals(summary(frame))
    assert found.height == 2 * 2 * 5
    cells = frame.filter(pl.col("notion") == "classwise", pl.col("size") == 30, pl.col("estimator") == "binned")
    row = found.row(by_predicate=(pl.col("notion") == "classwise") & (pl.col("size") == 30)
                    & (pl.col("estimator") == "binned"), named=True)  # fmt: skip
    assert row["distributions"] == 8
    assert row["rel_p95"] == pytest.approx(np.median(cells["rel_p95"]))
    assert row["bias"] == pytest.approx(np.median(cells["bias"]))


def test_summary_leaves_missing_numbers_out():
    frame = synthetic(0.1).with_columns(
        rel_p95=pl.when(pl.col("mixture") < 30).then(pl.col("rel_p95")).otherwise(np.nan)
    )
    found = summary(frame)["rel_p95"].item()
    assert found == pytest.approx(frame.filter(pl.col("mixture") < 30)["rel_p95"].median())


@pytest.mark.slow
def test_command(capsys, monkeypatch, tmp_path):
    from calibrant.cli import main

    monkeypatch.setattr(Config, "quick", classmethod(lambda cls, mode="corrected", seed=0: TINY))
    monkeypatch.setattr("calibrant.benchmark.runner.OURS", {"residual": Entry(cal.estimators.ResidualKernel())})
    arguments = ["calibrant", "benchmark", "--quick", "--out", str(tmp_path / "run"), "--jobs", "1"]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit) as stop:
        main()
    told = capsys.readouterr()
    assert not stop.value.code
    assert "confidence: 95th percentile of the relative error" in told.out
    assert "classwise: 95th percentile of the relative error" in told.out
    assert "d-silverman" in told.out
    assert "residual" in told.out
    assert load(tmp_path / "run")["estimator"].n_unique() == 16
    for more, words in ((["--show", "x"], "--show must be one of"), (["--mode", "x"], "mode must be one of")):
        monkeypatch.setattr(sys, "argv", [*arguments[:2], *more, "--out", str(tmp_path / "other")])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 2
        assert words in capsys.readouterr().err


def test_progress_goes_to_the_logger_and_a_bar(capsys, caplog, tmp_path):
    one = Config(**{**vars(TINY), "models": ("bayes",)})
    with caplog.at_level("INFO", logger="calibrant.benchmark"):
        run(out=tmp_path, config=one, n_jobs=1, estimators={"a": cal.Binned()}, progress=True)
    assert [r.message.split(" in ")[0] for r in caplog.records] == ["benchmark: 1 of 2", "benchmark: 2 of 2"]
    assert "2/2" in capsys.readouterr().err


@pytest.mark.slow
def test_without_polars_the_extra_is_named():
    code = textwrap.dedent("""
        import sys
        sys.modules["polars"] = None
        from calibrant.benchmark import run
        try:
            run()
        except ImportError as error:
            print(error)
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "calibrant[cli]" in done.stdout
