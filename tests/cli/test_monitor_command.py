"""`calibrant monitor`: the table, the state that goes on, and its exit codes."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import calibrant as cal

pytest.importorskip("polars")
from calibrant.cli.commands import app


def run(*arguments):
    return CliRunner().invoke(app, ["monitor", *map(str, arguments)])


@pytest.fixture
def rows(tmp_path):
    rng = np.random.default_rng(0)
    p, day = rng.random(9000), np.arange(9000) // 50
    y = rng.random(9000) < np.where(day < 130, p, 0.8 * p)
    frame = pd.DataFrame(
        {"y_true": y.astype(int), "y_prob": p, "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(day, "D")}
    )
    return frame, tmp_path


def test_it_says_what_the_functions_say(rows):
    frame, folder = rows
    frame.to_csv(folder / "rows.csv", index=False)
    ran = run(folder / "rows.csv", "--time", "day", "--every", "month", "--json", "--html", folder / "page.html")
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    wanted = cal.calibration_over_time(frame["y_true"], frame["y_prob"], frame["day"], every="month")
    assert found["over_time"] == json.loads(json.dumps(wanted.to_dict()))
    monitor = cal.CalibrationMonitor(horizon=None)
    monitor.update(frame["y_true"], frame["y_prob"], time=frame["day"])
    assert found["monitor"]["since"] == monitor.since.isoformat()
    assert found["monitor"]["e_value"] == pytest.approx(monitor.e_value)
    page = (folder / "page.html").read_text()
    assert "2026-05" in page
    text = run(folder / "rows.csv", "--time", "day", "--every", "month").output
    assert wanted.summary[:60] in text.replace("\n", " ")
    assert "Alarm: no longer calibrated, since about 2026-05" in text


def test_subgroups_are_followed(rows):
    frame, folder = rows
    frame["site"] = np.where(np.arange(9000) % 3, "a", "b")
    frame.to_csv(folder / "rows.csv", index=False)
    ran = run(folder / "rows.csv", "--time", "day", "--every", "month", "--by", "site", "--json")
    assert ran.exit_code == 0, ran.output
    found = cal.calibration_over_time(frame, label="y_true", prob="y_prob", time="day", by="site", every="month")
    assert json.loads(ran.stdout)["over_time"] == json.loads(json.dumps(found.to_dict()))
    text = run(folder / "rows.csv", "--time", "day", "--every", "month", "--by", "site").output.replace("\n", " ")
    assert "2 of the 2 subgroups changed, most significantly site " in text
    clash = run(folder / "rows.csv", "--time", "day", "--by", "y_true")
    assert clash.exit_code == 2
    assert "--by y_true: this column is already used" in clash.output


def test_rows_of_groups_hang_together(rows):
    frame, folder = rows
    frame["visit"] = np.arange(9000) // 20
    frame.to_csv(folder / "rows.csv", index=False)
    ran = run(folder / "rows.csv", "--time", "day", "--every", "month", "--groups", "visit", "--json")
    assert ran.exit_code == 0, ran.output
    about = {"label": "y_true", "prob": "y_prob", "time": "day", "groups": "visit"}
    found = cal.calibration_over_time(frame, every="month", **about)
    assert json.loads(ran.stdout)["over_time"] == json.loads(json.dumps(found.to_dict()))


def test_the_state_goes_on_with_what_is_new(rows):
    frame, folder = rows
    state, whole = folder / "state.json", cal.CalibrationMonitor()
    frame[:5000].to_csv(folder / "one.csv", index=False)
    frame[4900:].sample(frac=1, random_state=0).to_parquet(folder / "two.parquet")  # in any order
    first = run(folder / "one.csv", "--time", "day", "--state", state, "--fail-on-alarm")
    assert (first.exit_code, state.exists()) == (0, True)
    second = run(folder / "two.parquet", "--time", "day", "--state", state, "--fail-on-alarm")
    assert second.exit_code == 1
    assert "not later than the monitor's last row: 100." in second.output
    whole.update(frame["y_true"][:5000], frame["y_prob"][:5000])
    assert cal.CalibrationMonitor.load(state).n_samples == 9000
    again = run(folder / "two.parquet", "--time", "day", "--state", state)
    assert again.exit_code == 0
    assert "not later than the monitor's last row: 4,100." in again.output
    assert cal.CalibrationMonitor.load(state).n_samples == 9000


def test_what_could_not_be_written_is_new_once_more(rows):
    frame, folder = rows
    path, state = folder / "rows.csv", folder / "state.json"
    frame.to_csv(path, index=False)
    ran = run(path, "--time", "day", "--state", state, "--html", folder / "none" / "page.html")
    assert ran.exit_code == 2
    assert not state.exists()
    assert run(path, "--time", "day", "--state", state, "--horizon", 500).exit_code == 0
    for option, value in (("--horizon", 600), ("--notion", "confidence")):
        ran = run(path, "--time", "day", "--state", state, option, value)
        assert ran.exit_code == 2
        assert f"{option} is" in ran.stderr
        assert cal.CalibrationMonitor.load(state).horizon == 500


def test_what_cannot_be_is_one_line(rows):
    frame, folder = rows
    path, state = folder / "rows.csv", folder / "state.json"
    frame.assign(n=range(9000)).to_csv(path, index=False)
    state.write_text("{}")
    for options, words in (
        (["--time", "none"], "--time: no column 'none'"),
        (["--time", "y_true"], "this column is already used"),
        (["--time", "day", "--every", "fortnight"], "every must be a number of rows, or one of"),
        (["--time", "n", "--every", "month"], "every='month' needs dates"),
        (["--time", "day", "--state", state], "is not a saved monitor"),
        (["--time", "day", "--state", path], "is the input file"),
        (["--time", "day", "--state", state, "--groups", "n"], "--state does not contain the groups of earlier files"),
        (["--time", "day", "--state", state, "--html", state, "--force"], "--html"),
    ):
        ran = run(path, *options)
        assert ran.exit_code == 2, (options, ran.output)
        assert words in ran.stderr
        assert state.read_text() == "{}"


def test_a_kept_monitor_has_no_horizon_unless_one_is_typed(rows):
    """After 100,000 calibrated rows a change is still found, and soon."""
    frame, folder = rows
    rng = np.random.default_rng(3)
    p = rng.random(100_000)
    good = pd.DataFrame({"y_true": (rng.random(p.size) < p).astype(int), "y_prob": p, "day": 1})
    bad = frame[6500:].assign(day=2)
    for name, rows_of in (("good", good), ("bad", bad)):
        rows_of.to_parquet(folder / f"{name}.parquet")
    state = folder / "state.json"
    assert run(folder / "good.parquet", "--time", "day", "--state", state, "--fail-on-alarm").exit_code == 0
    assert cal.CalibrationMonitor.load(state).horizon is None
    assert run(folder / "good.parquet", "--time", "day", "--state", state, "--horizon", "none").exit_code == 0
    ran = run(folder / "bad.parquet", "--time", "day", "--state", state, "--fail-on-alarm")
    assert (ran.exit_code, "Alarm: no longer calibrated" in ran.stdout) == (1, True)
    assert "horizon" not in ran.output


def test_the_end_of_the_horizon_is_told_and_fails_the_gate(rows):
    frame, folder = rows
    path, state, fine = folder / "rows.csv", folder / "state.json", frame[:2000]
    fine[:1500].to_csv(path, index=False)
    options = [path, "--time", "day", "--state", state, "--fail-on-alarm"]
    assert run(*options, "--horizon", 1600).exit_code == 0
    fine.to_csv(path, index=False)
    for _ in range(2):  # also where no row is new
        ran = run(*options, "--json")
        assert "warning: --state" in ran.stderr
        assert "The horizon of 1,600 rows is over: add --horizon none" in ran.stderr
        assert ran.exit_code == 1
        told = json.loads(ran.stdout)["monitor"]
        assert (told["horizon_over"], told["alarm"], told["n_samples"]) == (True, False, 2000)
        assert "with --state also --reset, to look for later changes." in told["status"]
        assert "reset()" not in told["status"]
    for more, horizon in ((["--reset"], 1600), (["--reset", "--horizon", "none"], None)):
        ran = run(*options, "--json", *more)
        assert ran.exit_code == 0
        told = json.loads(ran.stdout)["monitor"]
        assert (told["horizon"], told["horizon_over"], told["n_samples"]) == (horizon, False, 0)
    assert [one["n_samples"] for one in cal.CalibrationMonitor.load(state).past] == [2000, 0]
    frame[2000:3000].to_csv(path, index=False)
    assert run(*options).exit_code == 0
    assert cal.CalibrationMonitor.load(state).n_samples == 1000
    for more, words in (
        (["--horizon", 500], "--horizon is 500, but the monitor of --state began with none: add --reset, or use"),
        (["--horizon", "many"], "--horizon must be a number of rows, or none; got 'many'"),
        (["--horizon", 0], "horizon must be an int >= 1; got 0"),
    ):
        ran = run(*options, *more)
        assert (ran.exit_code, words in ran.stderr) == (2, True), ran.stderr
    assert "--reset is for the monitor of --state" in run(path, "--time", "day", "--reset").stderr


@pytest.mark.parametrize("exists", [True, False])
def test_rows_that_another_process_added_meanwhile_stay(rows, monkeypatch, exists):
    """Both read the state, and then both write it: the later one says that its rows are not in it."""
    frame, folder = rows
    state, others = folder / "state.json", frame[1000:1500]
    frame[:1000].to_csv(folder / "old.csv", index=False)
    frame[1500:2000].to_csv(folder / "new.csv", index=False)
    if exists:
        assert run(folder / "old.csv", "--time", "day", "--state", state).exit_code == 0

    def slow(*arguments, **options):
        monitor = cal.CalibrationMonitor.load(state) if exists else cal.CalibrationMonitor(horizon=None)
        monitor.update(others["y_true"], others["y_prob"], time=others["day"])
        monitor.save(state)
        return whole(*arguments, **options)

    whole = cal.calibration_over_time
    with monkeypatch.context() as patched:
        patched.setattr("calibrant.monitoring.over_time.calibration_over_time", slow)
        ran = run(folder / "new.csv", "--time", "day", "--state", state)
    assert (ran.exit_code, ran.stdout) == (2, "")
    said = "was written by another process in the meantime: the rows of new.csv were not added to it; run again"
    assert said in ran.stderr
    assert cal.CalibrationMonitor.load(state).n_samples == 1000 * exists + 500
    assert run(folder / "new.csv", "--time", "day", "--state", state).exit_code == 0
    assert cal.CalibrationMonitor.load(state).n_samples == 1000 * exists + 1000


#: Half hours about the end of summer time in Berlin, where 02:00 and 02:30 come twice.
HALF_HOURS = pd.date_range("2026-10-24 23:00", periods=8, freq="30min", tz="UTC").tz_convert("Europe/Berlin")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("other", ["Europe/Berlin", "America/New_York"])
def test_rows_follow_each_other_as_instants(rows, ending, other):
    """Also where clocks are set back, and where the second file is of another zone: no row is lost."""
    frame, folder = rows
    times = HALF_HOURS.repeat(100)
    state = folder / "state.json"
    for some, zone in ((slice(0, 400), "Europe/Berlin"), (slice(300, 800), other)):  # 100 rows once more
        when = times[some].tz_convert(zone)
        part = frame[some].assign(day=[t.isoformat() for t in when] if ending == "csv" else when)
        getattr(part, f"to_{ending}")(folder / f"rows.{ending}", index=False)
        ran = run(folder / f"rows.{ending}", "--time", "day", "--state", state, "--json")
        assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["left_out"] == 100
    found, whole = cal.CalibrationMonitor.load(state), cal.CalibrationMonitor(horizon=None)
    whole.update(frame["y_true"][:800], frame["y_prob"][:800])
    assert (found.n_samples, found.e_value) == (800, pytest.approx(whole.e_value))
    assert found.last_time == HALF_HOURS[-1]
    frame[:10].to_csv(folder / "plain.csv", index=False)
    ran = run(folder / "plain.csv", "--time", "day", "--state", state)
    assert ran.exit_code == 2
    assert "are dates with a time zone, and those of FILE dates without a time zone" in " ".join(ran.stderr.split())


def test_one_period_is_not_called_a_subgroup(rows):
    frame, folder = rows
    frame[:50].to_csv(folder / "rows.csv", index=False)
    text = " ".join(run(folder / "rows.csv", "--time", "day", "--every", "day").stdout.split())
    assert "no difference: there is only one period" in text
    assert "subgroup" not in text
