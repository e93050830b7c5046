"""The tour, a notebook: it runs from first to last, and what is kept in it is what comes out."""

import os
import re
from html import unescape
from pathlib import Path

import pytest

import calibrant

TOUR = Path(__file__).parents[2] / "docs" / "tour.ipynb"

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


#: What no two runs, or machines, have in common: times, and digests of numbers whose last bits differ.
_TIMES = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC|[\d.]+ (?:ms|s)\b|'[0-9a-f]{32}'")
#: Numbers below it are rounding errors.
_ROUNDING = 1e-12
#: A number as it is printed, not part of a name.
_NUMBER = re.compile(r"(?<![\w.])[-+−]?\d[\d,]*(?:\.(\d+))?(?:e([-+]\d+))?")


def _shown(text):
    """What a reader sees of HTML or text: words, with a mark for each number; and numbers, with their last digit."""
    text = re.sub(r"<style.*?</style>|<script.*?</script>|<svg.*?</svg>", "", text, flags=re.DOTALL)
    text = unescape(re.sub(r"<[^>]+>", " ", text)).replace("−", "-")
    text = _TIMES.sub("(time)", text)
    numbers = [
        (float(found[0].replace(",", "")), 10.0 ** (int(found[2] or 0) - len(found[1] or "")))
        for found in _NUMBER.finditer(text)
    ]
    return " ".join(_NUMBER.sub("#", text).split()), numbers


def _differences(kept, fresh):
    """In what two lists of outputs differ: kinds, words, or numbers by more than their last printed digit."""
    if [sorted(one) for one in kept] != [sorted(one) for one in fresh]:
        return [f"{[sorted(one) for one in kept]} is kept, {[sorted(one) for one in fresh]} comes out"]
    out = []
    pairs = [(was[kind], now[kind]) for was, now in zip(kept, fresh, strict=True) for kind in was if "text" in kind]
    for was, now in pairs:
        (words, numbers), (new_words, new_numbers) = _shown(was), _shown(now)
        if words != new_words:
            out.append(f"{words!r} is kept, {new_words!r} comes out")
        off = [
            (a, b)
            for (a, digit), (b, _) in zip(numbers, new_numbers, strict=False)
            if a != b and abs(a - b) > max(1.001 * digit, _ROUNDING if max(abs(a), abs(b)) < _ROUNDING else 0)
        ]
        out += [f"{a} is kept, {b} comes out" for a, b in off]
    return out


def _parts(cell):
    """Outputs of a cell by their kind; without a progress bar that has vanished."""
    return [
        {kind: value if isinstance(value, str) else str(value) for kind, value in output["data"].items()}
        if "data" in output
        else {"text": output["text"]}
        for output in cell.outputs
        if output.get("data") != {"text/plain": ""}
    ]


@pytest.mark.parametrize(
    ("kept", "fresh", "same"),
    [
        ("0.0956 (95 % interval 0.08 to 0.11)", "0.0957 (95 % interval 0.08 to 0.11)", True),
        ("0.0956", "0.0958", False),
        ("1,797 rows", "1,798 rows", True),
        ("1,797 rows", "1,799 rows", False),
        ("2.796938e-07", "2.796939e-07", True),
        ("2.796938e-07", "2.8e-07", False),
        ("off by 9.21e-16", "off by 8.74e-16", True),
        ("off by 9.21e-16", "off by 8.74e-06", False),
        ("digest 'e2e2cafd5936016372eb7fcd9e06aa51'", "digest '39e8d3b9d85c88e1a688ebf00bd61716'", True),
        ("<b>too high</b> 0.1", "<i>too high</i>\n0.1", True),
        ("too high 0.1", "too low 0.1", False),
        ("-0.03", "0.03", False),
        ("P10 is 3", "P11 is 3", False),
        ("fit 3 ms, 2026-11-27 13:00 UTC", "fit 4.5 ms, 2027-01-02 03:04 UTC", True),
    ],
)
def test_outputs_are_compared_by_value(kept, fresh, same):
    assert (_differences([{"text/html": kept}], [{"text/html": fresh}]) == []) is same


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
    kept = [_parts(cell) for cell in notebook.cells if cell.cell_type == "code"]
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
    fresh = [_parts(cell) for cell in notebook.cells if cell.cell_type == "code"]
    differ = [text for was, now in zip(kept, fresh, strict=True) for text in _differences(was, now)]
    assert differ == []
