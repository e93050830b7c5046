"""Advice names what can be typed: a call in Python, a command on a command's output, both on a command's page."""

import numpy as np
import pytest

import calibrant as cal
from calibrant.calibrators import Identity, SplineCalibrator, TemperatureScaling
from calibrant.datasets import load_even_digits_predictions

from ..commands import run

pl = pytest.importorskip("polars")
CALL, COMMAND = "compare_calibrators(y_true, y_prob)", "calibrant compare"


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    p = rng.random(3000)
    return (rng.random(3000) < p**2).astype(int), p


@pytest.fixture(scope="module")
def file(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("asked") / "rows.csv"
    pl.DataFrame({"y_true": rows[0], "y_prob": rows[1]}).write_csv(path)
    return path


def said_by(capsys, *arguments):
    code, out, err = run(capsys, *arguments)
    assert code == 0, err
    return " ".join(out.split())


def test_python_is_told_of_python(rows):
    found = cal.report(*rows)
    sums = cal.Accumulator().update(*rows).report()
    for text in (str(found), found._repr_html_(), found.to_html(), str(sums), found.advice):
        said = " ".join(text.split())
        assert CALL in said
        assert "AutoCalibrator" in said
        assert COMMAND not in said
        assert "--groups" not in said
    assert found.verdict == " ".join([*found.findings, found.advice])
    assert "pass groups=." in " ".join(str(found).split())


def test_a_command_tells_of_commands_and_its_page_of_both(file, tmp_path, capsys):
    page = tmp_path / "page.html"
    for text in (said_by(capsys, "report", file, "--html", page), said_by(capsys, "report", file, "--stream")):
        assert f"Next: run {COMMAND} to choose" in text
        assert "pass --groups." in text
        assert "compare_calibrators" not in text
        assert "AutoCalibrator" not in text
    told = page.read_text(encoding="utf-8")
    assert f"Next: run {COMMAND} (in Python {CALL}) to choose" in told
    assert "pass --groups, in Python groups=." in told


@pytest.mark.slow
def test_a_comparison_names_the_goal_as_it_is_typed(tmp_path, capsys):
    """Of these digits the spline is better calibrated than the choice, at no price beyond noise."""
    digits = load_even_digits_predictions()
    y, p = (digits.y_true == "even").astype(int), digits.y_prob
    few = {"identity": Identity(), "temperature": TemperatureScaling(), "spline": SplineCalibrator()}
    found = cal.compare_calibrators(y, p, candidates=few, rule="one-standard-error")
    ours, theirs = "the goal calibration (goal=) weighs that", "the goal calibration (--goal) weighs that"
    assert found.verdict == " ".join(found.verdict_parts)
    for text in (found.verdict, str(found), found._repr_html_(), found.to_html()):
        assert ours in " ".join(text.split())
        assert theirs not in " ".join(text.split())
    file, page, rule = tmp_path / "rows.csv", tmp_path / "compared.html", ("--rule", "one-standard-error")
    pl.DataFrame({"y_true": y, "y_prob": p}).write_csv(file)
    assert theirs in said_by(capsys, "compare", file, "--calibrators", ",".join(few), "--html", page, *rule)
    both = "the goal calibration (--goal, in Python goal=) weighs that"
    assert both in page.read_text(encoding="utf-8")
