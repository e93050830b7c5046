"""Names from data reach a terminal with their escapes, line breaks and bidirectional marks spelled out."""

import subprocess
import sys

import numpy as np
import pytest

import calibrant as cal
from calibrant.data.printing import printable

BAD = "\x1b[31mred\x1b[0m\nforged line\u202egnidaer\r\x07\u2028"


def clean(text):
    assert all(c.isprintable() or c == "\n" for c in text), repr(text)
    assert "\nforged" not in text
    return text


def rows(n=200):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return (rng.random(n) < p).astype(int), p


def test_what_prints_stays_as_it_is():
    for text in ("plain", "größe – 90 %", "日本語", "a b", "🙂"):
        assert printable(text) == text
    assert printable(BAD) == r"\x1b[31mred\x1b[0m\nforged line\u202egnidaer\r\x07\u2028"


def test_results_spell_names_out():
    y, p = rows()
    labels = np.array(["other", BAD])[y]
    many = np.column_stack([1 - p, p])
    report = cal.report(labels, many, labels=["other", BAD], notion="classwise", title=BAD)
    subgroups = cal.subgroup_calibration(y, p, {BAD: np.where(y == 1, BAD, "b")}, n_resamples=50)
    models = cal.compare_models(y, {BAD: p, "b": p**2}, n_resamples=50)
    for found in (
        report,
        subgroups,
        models,
        cal.estimate(labels, p, pos_label=BAD),
        cal.calibration_test(labels, p, pos_label=BAD, n_resamples=50),
        cal.reliability_curve(labels, p, pos_label=BAD, n_resamples=20),
        cal.decompose(labels, p, pos_label=BAD),
        cal.as_predictions(labels, p, pos_label=BAD),
    ):
        clean(str(found))
        assert all(c.isprintable() for c in repr(found)), type(found)


@pytest.mark.parametrize(
    "command", ["report", "subgroups", pytest.param("compare", marks=pytest.mark.slow), "nothing", "missing"]
)
@pytest.mark.slow
def test_commands_spell_names_out(command, tmp_path):
    y, p = rows()
    name = "\x1b[31m\u202ename\n.csv"
    path = tmp_path / name
    column = '"\x1b[1mgroup\u202e"'
    path.write_text(
        f"y_true,y_prob,{column}\n"
        + "".join(f"{o},{s},\x1b[2mg{i % 2}\u202e\n" for i, (o, s) in enumerate(zip(y, p, strict=True)))
    )
    args = {
        "report": ["report", str(path)],
        "subgroups": ["subgroups", str(path), "--by", "*group*", "--resamples", "50"],
        "compare": ["compare", str(path), "--calibrators", "identity,platt"],
        "nothing": ["report", str(path), "--prob", "nothing"],
        "missing": ["report", str(tmp_path / ("no" + name))],
    }[command]
    done = subprocess.run([sys.executable, "-m", "calibrant", *args], capture_output=True, text=True, timeout=120)
    assert done.returncode == (2 if command in ("nothing", "missing") else 0), done.stderr
    clean(done.stdout)
    assert done.stderr.count("\n") <= 1
    clean(done.stderr)
