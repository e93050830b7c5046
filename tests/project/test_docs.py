"""Pages: their code runs, their links lead somewhere, and the index has all of them."""

import re
from pathlib import Path

import pytest

from .. import newcomer

ROOT = Path(__file__).parents[2]
#: Folders of pages that are made when the site is built, and of scripts with their parts of pages.
MADE, SCRIPTS = ("reference", "tables", "build", "auto_examples"), ("examples", "gallery_examples")
OURS = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if page.relative_to(ROOT / "docs").parts[0] not in (*MADE, *SCRIPTS)
]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *OURS]
EVIDENCE = sorted((ROOT / "benchmarks").rglob("*.md"))
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", [*PAGES, *EVIDENCE], ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    there = [link.split("#")[0] for link in LINK.findall(text) if not re.match(r"\w+:|#", link)]
    there = [link for link in there if not re.match(rf"(\.\./)*({'|'.join(MADE)})/", link)]
    assert [link for link in there if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_page_has_one_title(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    assert len(re.findall(r"^# ", text, flags=re.M)) == 1


def test_a_section_has_every_page():
    names = ["index", "get_started", "user_guide", "how_to", "reference", "evidence", "development/index"]
    sections = [ROOT / "docs" / f"{name}.md" for name in names]
    listed = {(page.parent / link).resolve() for page in sections for link in LINK.findall(page.read_text("utf-8"))}
    assert set(OURS) - listed - {ROOT / "docs" / "index.md"} == set()


def test_the_page_of_assumptions_prints_what_it_says(capsys):
    page = (ROOT / "docs" / "assumptions.md").read_text(encoding="utf-8")
    pairs = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", page, flags=re.S)
    names: dict = {}
    for code, printed in pairs:
        exec(code, names)
        assert capsys.readouterr().out == printed
    assert len(pairs) == 2


@pytest.mark.slow
def test_a_newcomer_can_do_all_tasks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(newcomer.run(ROOT / "docs" / "how_to.md")) == 26


@pytest.mark.torch
def test_a_newcomer_can_train(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    assert newcomer.run(ROOT / "docs" / "how_to.md", "torch") == ["Train and measure in torch", "Pixels in torch"]
