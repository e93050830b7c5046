"""The monitor of calibration: batches, labels, alarms, and the size of its state."""

import itertools
import pickle

import numpy as np
import pytest

import calibrant as cal
from calibrant.significance import evalue

from .test_evalue import evalue_test, several


def test_batches_do_not_matter():
    y, p = several(300, power=1.6)
    for notion in ("confidence", "classwise"):
        whole = evalue_test(y, p, notion=notion)
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
    assert found.details["log_e_value"] == pytest.approx(
        evalue_test(y, p, notion="classwise").details["log_e_value"], abs=1e-9
    )
