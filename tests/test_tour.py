"""The tour, a notebook: it runs from first to last, and what is kept in it is what comes out."""

import os
from pathlib import Path

import pytest

import calibrant

TOUR = Path(__file__).parents[1] / "docs" / "tour.ipynb"

#: What a cell begins with, and words that its output has for a reader.
SHOWN = {
    'cal.estimate(y, p["naive Bayes"])': ("95 % interval", "<svg"),
    'cal.report(y, p["naive Bayes"]': ("Naive Bayes: even or odd", "miscalibration", "<svg"),
    "fig, (left, right)": ("image/png",),
    "report = cal.report(digit": ("significant", "direction"),
    "ink = pd.qcut": ("little", "medium", "much"),
    'cal.compare_calibrators(y, p["naive Bayes"])': ("temperature", "log-loss"),
    "tumours = ": ("before 0.", "repaired 0."),
    "with tempfile": ("True",),
    "scaling = ": ("TemperatureScaling",),
    "cal.compare_models(y, p)": ("naive Bayes", "logistic"),
    "sums = cal.Accumulator()": ("95 % interval", "<svg"),
}


def _outputs(notebook):
    """Outputs of each cell of code as one text, by its source."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return {cell.source: str([o.get("data", o.get("text")) for o in cell.outputs]) for cell in cells}


def _quoted(outputs):
    for begin, words in SHOWN.items():
        (text,) = [text for source, text in outputs.items() if source.startswith(begin)]
        assert [word for word in words if word not in text] == [], begin


def test_tour_is_kept_executed_and_small():
    nbformat = pytest.importorskip("nbformat")
    assert TOUR.stat().st_size <= 1_000_000
    _quoted(_outputs(nbformat.read(TOUR, as_version=4)))


@pytest.mark.slow
def test_tour_runs(tmp_path, monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    root = str(Path(calibrant.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.delenv("MPLBACKEND", raising=False)  # a kernel draws inline unless it is told otherwise
    notebook = nbformat.read(TOUR, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute()  # raises what a cell raises
    said = _outputs(notebook)
    _quoted(said)
    warned = [o.text for c in notebook.cells for o in c.get("outputs", ()) if o.get("name") == "stderr"]
    assert warned == []
