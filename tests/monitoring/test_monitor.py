"""The monitor of calibration: batches, labels, alarms, and the size of its state."""

import datetime as dt
import itertools
import json
import pickle
import re
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

import calibrant as cal
from calibrant.monitoring.awaited import Awaited
from calibrant.monitoring.row_times import RowTimes
from calibrant.monitoring.start_mixture import _A, _B
from calibrant.significance import evalue

from ..significance.test_evalue import evalue_test, several


def test_batches_do_not_matter():
    y, p = several(300, power=1.6)
    for notion in ("confidence", "classwise"):
        whole = cal.CalibrationMonitor(notion=notion, labels=[0, 1, 2]).update(y, p)
        monitor = cal.CalibrationMonitor(notion=notion, labels=[0, 1, 2])
        for start, stop in itertools.pairwise([0, 1, 2, 7, 8, 9, 100, 101, 250, 300]):
            result = monitor.update(y[start:stop], p[start:stop])
        assert result.details["log_e_value"] == pytest.approx(whole.details["log_e_value"], abs=1e-9)
        assert result.details["log_e_max"] == pytest.approx(whole.details["log_e_max"], abs=1e-9)
        assert (monitor.n_samples, result.n_samples) == (300, 300)
        assert monitor.pvalue == result.pvalue == pytest.approx(min(1, 1 / monitor.e_max))


def test_pieces_of_long_batches(monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = rng.random(500) < p**1.2
    whole = evalue_test(y, p)
    monkeypatch.setattr(evalue, "TOGETHER", 13)
    assert evalue_test(y, p).details["log_e_max"] == pytest.approx(whole.details["log_e_max"], abs=1e-9)


def test_monitor_raises_an_alarm_and_keeps_it():
    rng = np.random.default_rng(0)
    monitor = cal.CalibrationMonitor()
    for _ in range(10):
        p = rng.random(200)
        monitor.update(rng.random(200) < 0.2 + 0.6 * p, p)
    alarm = monitor.pvalue
    assert alarm < 1e-6
    for _ in range(30):
        p = rng.random(200)
        monitor.update(rng.random(200) < p, p)
    assert monitor.pvalue <= alarm
    assert monitor.e_value < monitor.e_max
    kept = pickle.loads(pickle.dumps(monitor))
    p = rng.random(50)
    y = rng.random(50) < p
    assert kept.update(y, p) == monitor.update(y, p)


def test_state_does_not_grow():
    rng = np.random.default_rng(0)
    monitor = cal.CalibrationMonitor()
    sizes = []
    for _ in range(2):
        p = rng.random(5000)
        monitor.update(rng.random(5000) < p, p)
        sizes.append(len(pickle.dumps(monitor)))
    assert sizes[1] <= sizes[0] + 16


def test_labels_of_the_first_batch_hold():
    monitor = cal.CalibrationMonitor(labels=["no", "yes"], pos_label="yes")
    monitor.update(["yes"], [0.7])
    monitor.update(["no", "no"], [0.2, 0.4])
    assert monitor.n_samples == 3
    with pytest.raises(ValueError, match="maybe"):
        monitor.update(["maybe"], [0.5])
    assert monitor.n_samples == 3
    plain = cal.CalibrationMonitor()
    plain.update([1, 1], [0.7, 0.8])
    plain.update([0], [0.3])
    with pytest.raises(ValueError, match="pos_label is for a 1-D y_prob"):
        plain.update([0, 1], [[0.5, 0.5], [0.4, 0.6]])
    columns = cal.CalibrationMonitor()
    columns.update([0, 1], [[0.5, 0.5], [0.4, 0.6]])
    with pytest.raises(ValueError, match="one column per class, as in the first batch; got one column"):
        columns.update([0, 1], [0.5, 0.6])
    y, p = several(60, power=2.0)
    names = np.array(["b", "c", "a"])[y]
    found = cal.CalibrationMonitor(notion="classwise")
    found.update(np.array(["a", "b", "c"])[y], p)
    found.update(["c"], p[[0]])  # one label alone does not say which columns there are: the first batch did
    assert found.n_samples == 61
    monitor = cal.CalibrationMonitor(notion="classwise", labels=["b", "c", "a"])
    for row in range(60):
        found = monitor.update(names[[row]], p[[row]])
    whole = cal.CalibrationMonitor(notion="classwise").update(y, p)
    assert found.details["log_e_value"] == pytest.approx(whole.details["log_e_value"], abs=1e-9)


def wealth(y, p, horizon):
    """The mixture as its formula is written, row by row, in plain numbers."""
    parts, used, path = np.zeros(len(_A)), 0.0, []
    for n, (o, s) in enumerate(zip(y, p, strict=True), 1):
        w = 1 / (1 + np.log(1 + (n - 1) / 1000)) - 1 / (1 + np.log(1 + n / 1000))
        w = w if horizon is None else 1 / horizon if n <= horizon else 0.0
        used += w
        q = expit(_A + _B * logit(s))
        parts = (parts + w) * np.where(o, q / s, (1 - q) / (1 - s))
        path.append(parts.mean() + 1 - used)
    return np.array(path)


@pytest.mark.parametrize("horizon", [None, 300, 1000])
def test_the_mixture_is_its_formula(horizon):
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = rng.random(500) < np.where(np.arange(500) < 200, p, p**2)
    want = wealth(y, p, horizon)
    monitor, rows = (cal.CalibrationMonitor(horizon=horizon) for _ in range(2))
    found = monitor.update(y.astype(int), p)
    assert found.details["log_e_value"] == pytest.approx(np.log(want[-1]), abs=1e-9)
    assert found.details["log_e_max"] == pytest.approx(np.log(want.max()), abs=1e-9)
    for o, s in zip(y.astype(int).tolist(), p.tolist(), strict=True):  # one by one, without arrays after the first
        rows.update(o, s)
    assert rows.e_value == pytest.approx(monitor.e_value)
    assert (rows.e_max, rows.since) == (pytest.approx(monitor.e_max), monitor.since)


def test_lone_rows_take_the_short_way_only_where_it_says_the_same():
    for options, scores in (
        ({}, [0.0, 1.0, 0.3, 1e-300]),
        ({"from_logits": True}, [-3.0, 0.2, 9.0, 0.1]),
        ({"notion": "confidence"}, [0.2, 0.9, 0.7, 0.4]),
        ({"labels": [0, 1], "pos_label": 0}, [0.2, 0.9, 0.7, 0.4]),
    ):
        one, many = cal.CalibrationMonitor(**options), cal.CalibrationMonitor(**options)
        for o, s in zip([0, 1, 1, 0], scores, strict=True):
            one.update(o, s)
            many.update([o], [s])
        assert one.e_value == pytest.approx(many.e_value)
        assert one.n_samples == 4


def test_a_change_is_found_soon_however_long_it_was_calibrated():
    rng = np.random.default_rng(3)
    day = np.arange(40_000) // 400
    p = rng.random(40_000)
    y = rng.random(40_000) < np.where(day < 75, p, 0.8 * p)
    monitor = cal.CalibrationMonitor()
    for today in range(100):
        monitor.update(
            y[day == today], p[day == today], time=np.datetime64("2026-01-01") + day[day == today].astype("m8[D]")
        )
        if monitor.alarm:
            break
    assert 75 <= today <= 79
    assert dt.date(2026, 3, 12) <= monitor.since <= dt.date(2026, 3, 20)
    assert monitor.status.startswith(f"Alarm: no longer calibrated, since about {monitor.since}.")
    monitor.reset(cal.calibrators.PlattScaling().fit(p[day >= 75], y[day >= 75]))
    later = day > today
    monitor.update(y[later], p[later])
    assert not monitor.alarm
    assert "This is monitor 2: chances of a false alarm add up to 0.1 at most." in monitor.status
    assert monitor.past[0]["alarm"]


def test_a_saved_monitor_goes_on(tmp_path):
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(3), 200)
    k = (q.cumsum(axis=1) > rng.random((200, 1))).argmax(axis=1)
    path = tmp_path / "monitor.json"
    for options, y, p in (
        ({}, (rng.random(200) < 0.4).astype(int), rng.random(200)),
        ({"notion": "classwise", "horizon": None, "labels": [0, 1, 2]}, k, q),
        ({"notion": cal.notions.ClassSpecific(2)}, k, q),
    ):
        monitor = cal.CalibrationMonitor(**options)
        monitor.update(y[:100], p[:100], time=np.arange(100))
        monitor.reset(cal.TemperatureScaling().fit(p, y) if p.ndim == 2 else None)
        monitor.expect("a", p[0])
        monitor.update(y[:100], p[:100], time=np.arange(100, 200))
        monitor.save(path)
        again = cal.CalibrationMonitor.load(path)
        for one in (monitor, again):
            one.update(y[100:], p[100:], time=np.arange(200, 300))
            one.observe("a", y[0])
        assert again.report() == monitor.report()
        assert again.history == monitor.history


def test_the_file_does_not_grow(tmp_path):
    monitor, sizes = cal.CalibrationMonitor(max_open=50), []
    for start in (0, 1000, 2000):
        for row in range(start, start + 1000):
            monitor.update(row % 2, 0.5, time=row)
            monitor.expect(row, 0.25)
        monitor.save(tmp_path / "monitor.json")
        sizes.append((tmp_path / "monitor.json").stat().st_size)
    assert sizes[2] <= 1.3 * sizes[1]
    assert (monitor.report()["open"], monitor.report()["expired"]) == (50, 2950)
    monitor.observe([2950, 2999], [0, 1])  # the oldest expired
    with pytest.raises(ValueError, match="key 2949 is not open"):
        monitor.observe(2949, 0)


def test_late_labels():
    monitor, wanted = cal.CalibrationMonitor(), cal.CalibrationMonitor()
    monitor.expect(["a", "b", "c"], [0.2, 0.7, 0.4], time=1)
    assert "Labels awaited: 3 (the oldest since 1)" in monitor.status
    for bad, label, words in (
        (["a", "z"], [0, 1], "key 'z' is not open"),
        (["a", "a"], [0, 1], r"one label per key \(2\), and keys must differ"),
        ("a", 7, "7"),
    ):
        with pytest.raises(ValueError, match=words):
            monitor.observe(bad, label)
        assert monitor.report()["open"] == 3
    with pytest.raises(ValueError, match="key 'b' is already open"):
        monitor.expect(["d", "b"], [0.1, 0.2])
    with pytest.raises(ValueError, match=r"y_prob must be probabilities in \[0, 1\]"):
        monitor.expect("d", 1.5)
    assert monitor.report()["open"] == 3
    monitor.observe(["c", "a"], [1, 0])
    wanted.update([1, 0], [0.4, 0.2])
    assert monitor.e_value == wanted.e_value
    assert monitor.report()["open"] == 1


def test_times_must_not_go_back():
    monitor = cal.CalibrationMonitor()
    monitor.update([0, 1], [0.3, 0.6], time=["2026-01-02", "2026-01-03"])
    for time, words in (
        (["2026-01-05", "2026-01-04"], "time must not decrease; row 1 is before row 0: sort the rows"),
        (["2026-01-02", "2026-01-04"], "time must not decrease; got 2026-01-02 after 2026-01-03"),
        ([5, 6], "time must hold dates without a time zone, as in earlier batches; got numbers"),
        (["2026-01-04T00:00Z"] * 2, "time must hold dates without a time zone, as .*; got dates with a time zone"),
        ([None, "2026-01-04"], "time must have no missing values"),
    ):
        with pytest.raises(ValueError, match=words):
            monitor.update([0, 1], [0.3, 0.6], time=time)
        assert monitor.n_samples == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: {}, "its format is not 'calibrant monitor 1'"),
        (lambda state: state | {"format": "calibrant monitor 9"}, "its format is not"),
        (lambda state: state | {"bettors": [{}]}, "KeyError 'horizon'"),
        (lambda state: state | {"bettors": [state["bettors"][0] | {"won": [1, 2]}]}, "won must hold 14 numbers"),
        (lambda state: state | {"log_max": -1}, "its numbers contradict each other"),
        (lambda state: state | {"level": 7}, "level"),
        (lambda state: state | {"n_bets": float("inf")}, "infinity"),
        (lambda state: state | {"awaited": state["awaited"] | {"expired": -1}}, "open predictions contradict"),
    ],
)
def test_a_file_that_is_no_monitor_is_refused(tmp_path, change, words):
    monitor = cal.CalibrationMonitor()
    monitor.update([0, 1], [0.3, 0.6])
    path = tmp_path / "monitor.json"
    monitor.save(path)
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(ValueError, match=re.escape(words)):
        cal.CalibrationMonitor.load(path)


def test_what_json_cannot_hold_is_not_saved(tmp_path):
    groups, notion, keys = (
        cal.CalibrationMonitor(),
        cal.CalibrationMonitor(notion=cal.notions.Classwise()),
        cal.CalibrationMonitor(),
    )
    groups.update([0, 1], [0.3, 0.6], groups=["a", "b"])
    keys.expect((1, 2), 0.5)
    for monitor, words in ((groups, "groups"), (notion, "notion"), (keys, "keys")):
        with pytest.raises(ValueError, match=words):
            monitor.save(tmp_path / "monitor.json")


def test_a_calibrator_repairs_all_rows_alike():
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < p**2).astype(int)
    fitted = cal.calibrators.PlattScaling().fit(p, y)
    found = []
    for rows in ((y, p), (cal.as_predictions(y, p),)):
        monitor = cal.CalibrationMonitor()
        monitor.reset(fitted)
        monitor.update(*rows)
        found.append(monitor.e_value)
    wanted = cal.CalibrationMonitor()
    wanted.update(y, fitted.predict_proba(p)[:, 1])
    assert found == [pytest.approx(wanted.e_value)] * 2
    with pytest.raises(ValueError, match="this monitor takes logits"):
        cal.CalibrationMonitor(from_logits=True).reset(fitted)


def test_since_is_a_time_or_a_row():
    y, p = np.ones(60, int), np.full(60, 0.2)
    times, rows = cal.CalibrationMonitor(), cal.CalibrationMonitor()
    times.update(y, p, time=np.arange(1000, 1060))
    rows.update(y, p)
    assert f"since about {times.since:,}." in times.status
    assert 1000 <= times.since < 1060
    assert f"since about row {rows.since:,}." in rows.status
    assert rows.since < 60


def test_the_horizon_ends():
    monitor = cal.CalibrationMonitor(horizon=4)
    monitor.update([0, 1, 0], [0.3, 0.6, 0.2])
    assert (monitor.horizon_over, monitor.horizon_text) == (False, "")
    monitor.update([1], [0.8])
    assert "The horizon of 4 rows is over: call reset() to look for later changes." in monitor.status
    assert monitor.report()["horizon_over"]
    monitor.reset()
    assert not monitor.report()["horizon_over"]
    assert not cal.CalibrationMonitor(horizon=None).horizon_over


def test_a_state_that_another_monitor_changed_is_not_replaced(tmp_path):
    path, link = tmp_path / "monitor.json", tmp_path / "link.json"
    monitor = cal.CalibrationMonitor()
    monitor.save(path)
    link.symlink_to(path)
    one, other = cal.CalibrationMonitor.load(path), cal.CalibrationMonitor.load(link)
    for number in (1, 2):  # its own changes are none of another's
        one.update([0], [0.3])
        one.save(path)
        assert cal.CalibrationMonitor.load(path).n_samples == number
    other.update([1, 1, 1], [0.6, 0.6, 0.6])
    for late in (other, pickle.loads(pickle.dumps(other)), monitor):
        with pytest.raises(FileExistsError, match=r"monitor\.json was changed in the meantime and is left unchanged"):
            late.save(path)
    assert cal.CalibrationMonitor.load(path).n_samples == 2
    other.save(tmp_path / "elsewhere.json")
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["elsewhere.json", "link.json", "monitor.json"]


#: Half hours about the end of summer time in Berlin, where 02:00 and 02:30 come twice.
HALF_HOURS = pd.date_range("2026-10-24 23:00", periods=6, freq="30min", tz="UTC").tz_convert("Europe/Berlin")
#: Columns of times with a zone, from such an index.
ZONED = {
    "index": lambda times: times,
    "pandas": pd.Series,
    "polars": lambda times: pytest.importorskip("polars").Series(pd.Series(times)),
    "datetimes": lambda times: times.to_pydatetime().tolist(),
    "zoneinfo": lambda times: [time.astimezone(ZoneInfo(str(times.tz))) for time in times.to_pydatetime()],
    "objects": lambda times: np.array(times.to_pydatetime()),
    "texts": lambda times: [time.isoformat() for time in times],
}


@pytest.mark.parametrize("kind", ZONED)
def test_times_with_a_zone_are_instants(tmp_path, kind):
    """The clock goes back from 03:00 to 02:00, and time goes on; and zones of batches may differ."""
    monitor, wanted = cal.CalibrationMonitor(), HALF_HOURS.tz_convert("UTC").to_pydatetime().tolist()
    monitor.update([1] * 6, [0.1] * 6, time=ZONED[kind](HALF_HOURS))
    assert [time for _, time in monitor._times._kept] == wanted  # compared as instants
    assert monitor.last_time.isoformat() == "2026-10-25T02:30:00+01:00"
    with pytest.raises(ValueError, match="time must not decrease; row 2 is before row 1: sort the rows"):
        monitor.update([1] * 3, [0.1] * 3, time=ZONED[kind](HALF_HOURS[[5, 5, 3]]))  # 02:30, twice
    monitor.save(tmp_path / "monitor.json")
    elsewhere = cal.CalibrationMonitor.load(tmp_path / "monitor.json")
    with pytest.raises(ValueError, match=r"got 2026-10-25 06:00 UTC\+05:30 after 2026-10-25 02:30 UTC\+01:00"):
        elsewhere.update([1], [0.1], time=ZONED[kind](HALF_HOURS[[3]].tz_convert("Asia/Kolkata")))
    elsewhere.update(
        [1], [0.1], time=ZONED[kind]((HALF_HOURS[[5]] + pd.Timedelta("1min")).tz_convert("America/New_York"))
    )
    assert elsewhere.last_time.isoformat() == "2026-10-24T21:31:00-04:00"
    lone = cal.CalibrationMonitor()
    for time in ZONED[kind](HALF_HOURS):
        lone.update(1, 0.1, time=time)
    assert (lone.last_time, lone.n_samples) == (wanted[-1], 6)


def test_since_has_the_offset_of_its_zone():
    y, p = np.ones(60, int), np.full(60, 0.2)
    monitor = cal.CalibrationMonitor()
    monitor.update(
        y, p, time=pd.date_range("2026-10-25 02:00:30", periods=60, freq="1s", tz="UTC").tz_convert("Europe/Berlin")
    )
    assert f"since about {monitor.since:%Y-%m-%d %H:%M:%S} UTC+01:00." in monitor.status
    monitor.expect("a", 0.3, time=HALF_HOURS[2].to_pydatetime())
    assert "(the oldest since 2026-10-25 02:00 UTC+02:00)" in monitor.status
    assert monitor.report()["since"].startswith("2026-10-25T03:00:")
    dates = pytest.importorskip("matplotlib.dates")
    drawn = monitor.plot().ax_.lines[0].get_xdata()
    assert [f"{dates.num2date(x):%H:%M:%S}" for x in drawn] == ["03:00:30", "03:01:29"]


@pytest.mark.slow
def test_false_alarms_are_rare():
    """Looked at after each of 5,000 rows: at most 0.05 of calibrated monitors alarm, and 3 standard errors (0.038)."""
    alarms = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        p = rng.beta(0.5, [2, 0.5][seed % 2], 5000).clip(1e-9, 1 - 1e-9)
        monitor = cal.CalibrationMonitor(horizon=5000)
        monitor.update(rng.random(5000) < p, p)
        alarms += monitor.alarm
    assert alarms / 300 <= 0.05 + 0.038


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.one_of(
            st.dates(dt.date(2020, 1, 1), dt.date(2020, 1, 9)),
            st.datetimes(dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 9)),
        ),
        min_size=2,
        max_size=5,
    )
)
def test_a_lone_time_is_read_as_those_of_a_batch(times):
    """Dates and datetimes one by one take a short way: the same is kept, and the same refused."""
    lone, batch = RowTimes(), RowTimes()
    for time in times:
        found = []
        for kept, given_time in ((lone, time), (batch, np.array([time], dtype="M8[us]"))):
            try:
                rows = kept.read(given_time, 1)
                kept.keep(rows)
                found.append(rows)
            except ValueError as error:
                found.append(str(error))
        assert found[0] == found[1]
    assert lone.to_list() == batch.to_list()


def test_the_oldest_predictions_expire_one_by_one():
    awaited = Awaited(3)
    for i in range(5):
        awaited.add(i, 0.5, None, logits=False)
    assert (len(awaited), awaited.expired) == (3, 2)
    assert awaited.scores([2, 3, 4]) == [0.5] * 3
    with pytest.raises(ValueError, match="is not open"):
        awaited.scores([1])


def test_it_is_drawn_against_times_where_all_updates_have_one(tmp_path):
    """Dates on an axis of dates, also after it was saved; numbers of rows where some update has no time."""
    plt = pytest.importorskip("matplotlib.pyplot")
    dates = pytest.importorskip("matplotlib.dates")
    rng = np.random.default_rng(0)
    p = rng.random((30, 20))
    y = rng.random((30, 20)) < p
    days = np.datetime64("2026-03-01") + np.arange(30).astype("m8[D]")
    monitor = cal.CalibrationMonitor()
    for one, scores, day in zip(y, p, days, strict=True):
        monitor.update(one, scores, time=np.full(20, day))
    monitor.save(tmp_path / "monitor.json")
    for one in (monitor, cal.CalibrationMonitor.load(tmp_path / "monitor.json")):
        (line,) = [line for line in one.plot().ax_.lines if len(line.get_xdata()) == 31]
        np.testing.assert_allclose(line.get_xdata(), [dates.date2num(days[0]), *dates.date2num(days)])
        np.testing.assert_allclose(line.get_ydata()[1:], [log_e / np.log(10) for _, log_e in one.history])
        plt.close("all")
    monitor.update([0, 1], [0.2, 0.7])  # as late as the last
    assert monitor.plot().ax_.lines[0].get_xdata()[-1] == dates.date2num(days[-1])
    counted = cal.CalibrationMonitor()
    counted.update(y[0], p[0], time=np.arange(20))
    assert counted.plot().ax_.get_xlabel() == "Time"
    late = cal.CalibrationMonitor()
    late.update(y[0], p[0])
    late.update(y[1], p[1], time=np.full(20, days[0]))
    assert late.plot().ax_.get_xlabel() == "Rows seen"
    np.testing.assert_allclose(late.plot().ax_.lines[0].get_xdata(), [0, 20, 40])


def test_states_in_several_files(tmp_path):
    y, p = [0, 1] * 50, [0.4, 0.6] * 50
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    begun = cal.CalibrationMonitor()
    begun.update(y, p)
    begun.save(first)
    mine, other = cal.CalibrationMonitor.load(first), cal.CalibrationMonitor.load(first)
    other.update(y, p)
    other.save(first)
    mine.update(y, p)
    mine.save(second)
    with pytest.raises(FileExistsError, match="changed in the meantime"):
        mine.save(first)
    second.unlink()
    mine.save(second)  # nothing is lost
    assert cal.CalibrationMonitor.load(second).n_samples == 200
