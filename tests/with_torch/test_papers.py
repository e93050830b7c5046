"""The page of the three papers: every item runs, and comes out as the page in the repository says."""

import re
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCRIPT = DOCS / "examples" / "papers_page.py"


def verdicts(text):
    """Place, statement and first word of each row."""
    rows = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in text.splitlines() if line.startswith("| ")]
    return [(place, says, found.split("**")[1]) for place, says, _, found in rows if "**" in found]


@pytest.mark.slow
def test_every_item_runs(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    monkeypatch.setattr(sys, "argv", [SCRIPT.name, "--docs", str(tmp_path)])
    with mpl.rc_context():
        import papers_page

        papers_page.main()
    made, kept = ((folder / "papers.md").read_text(encoding="utf-8") for folder in (tmp_path, DOCS))
    assert len(verdicts(made)) > 50
    assert verdicts(made) == verdicts(kept)
    assert not re.search(r"\bnan\b|(?<!=)\bNone\b", made)  # of numbers; an argument may be None


def test_what_does_not_come_out_stops_the_page(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    from papers_parts import items

    assert items.agrees([1.0, 2.0], [1.0, 2.0 + 1e-13], "sums").startswith("**agrees**: sums")
    assert items.differs(0.1, 0.2, "why") == "**differs**: 0.1 here, 0.2 there; why"
    for wrong in (
        lambda: items.agrees(1.0, 1.1, "sums"),
        lambda: items.agrees(float("nan"), 1.0, "sums"),
        lambda: items.differs(0.1, 0.1 + 1e-9, "why"),
        lambda: items.holds(False, "words"),
        lambda: items.fails(True, "words"),
    ):
        with pytest.raises(ValueError, match=r"sums|why|words"):
            wrong()
