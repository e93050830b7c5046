"""Examples of the gallery: each runs without a warning, and draws a picture."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "gallery_examples").glob("plot_*.py"))


def test_there_are_enough_of_them():
    assert len(EXAMPLES) >= 15


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_draws(path, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    runpy.run_path(str(path))
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    assert all(figure.axes for figure in figures)
    text = path.read_text(encoding="utf-8")
    assert ("print(" in text) == bool(capsys.readouterr().out)
