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
    monitor = cal.CalibrationMonitor()
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
