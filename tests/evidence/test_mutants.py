"""Mutants: which tests judge one, and what is said of those that survive."""

from __future__ import annotations

import ast
import importlib
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="not in a checkout: experiments are there")


@pytest.fixture
def mutants(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.mutants")


def test_a_mutant_is_judged_by_the_tests_that_run_its_line_the_fastest_first(mutants):
    one = mutants.Mutant("calibrant/sums/grid.py", "core/NumberReplacer", 3, 7)
    lines = {"calibrant/sums/grid.py": {7: {"slow", "fast"}, 9: {"other"}}}
    tests = mutants.Tests(lines, {"slow": 2.0, "fast": 0.1, "other": 0.5}, {"slow": 0, "fast": 0, "other": 1})
    assert mutants.tests_of(one, tests, -1) == ["fast", "slow"]
    # A line that runs at import only is judged by the tests of its file.
    assert mutants.tests_of(one._replace(line=1), tests, -1) == ["fast", "other", "slow"]
    # A survivor is judged again by tests that are new.
    assert mutants.tests_of(one._replace(line=9), tests, 0) == ["other"]
    assert mutants.tests_of(one, tests, 0) == []


@pytest.mark.slow
def test_only_tests_that_are_new_are_run_to_know_their_lines(mutants, monkeypatch, tmp_path):
    pytest.importorskip("pytest_cov")
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.setattr(mutants.provenance, "code", lambda: "code")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "src"))
    texts = {
        "src/calibrant/__init__.py": "def one():\n    return 1\n\n\ndef two():\n    return 2\n",
        "tests/test_one.py": "import calibrant\n\n\ndef test_one():\n    assert calibrant.one() == 1\n",
        "tests/test_two.py": "import calibrant\n\n\ndef test_two():\n    assert calibrant.two() == 2\n",
    }
    ran, run = [], mutants.subprocess.run
    monkeypatch.setattr(
        mutants.subprocess, "run", lambda command, **about: (ran.append(command), run(command, **about))
    )
    for names in (["src/calibrant/__init__.py", "tests/test_one.py"], ["tests/test_two.py"], []):
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(texts[name], encoding="utf-8")
        lines, seconds, of_run = mutants.covering(tmp_path, 1)
    assert [[part for part in command if part.startswith("tests/")] for command in ran] == [
        ["tests/test_one.py"], ["tests/test_two.py"],
    ]  # fmt: skip
    one, two = "tests/test_one.py::test_one", "tests/test_two.py::test_two"
    assert seconds.keys() == {one, two}
    assert of_run == {one: 0, two: 1}
    found = lines["calibrant/__init__.py"]
    assert (found[2], found[6]) == ({one}, {two})
    (tmp_path / "tests/test_one.py").unlink()  # a test that is gone judges nothing
    lines, seconds, of_run = mutants.covering(tmp_path, 1)
    assert lines["calibrant/__init__.py"][2] == set()
    assert seconds.keys() == {two}


def test_annotations_are_no_places(mutants):
    found = [
        *mutants._annotations(ast.parse("def f(x: int | None = 1) -> list[int]:\n    y: int = x or 2\n    return [y]"))
    ]
    assert sorted(found) == [((1, 9), (1, 19)), ((1, 28), (1, 37)), ((2, 7), (2, 10))]


def test_mutants_are_drawn_by_seed_and_change_the_code(mutants, monkeypatch):
    pytest.importorskip("cosmic_ray")
    monkeypatch.setattr(mutants, "FOLDERS", ("benchmark",))
    some, others = mutants.drawn(3, 2)
    assert (some, others) == mutants.drawn(3, 2)
    assert len({(one.file, one.operator, one.occurrence) for one in some + others}) == 5
    for one in some + others:
        assert one.file.startswith("calibrant/benchmark/")
        ast.parse(one.changed())
        assert {line[0] for line in one.shown()} <= {"+", "-"}
        assert len(one.shown()) >= 1
        assert len(one.key()) == 10


def test_survivors_are_listed_with_their_reason(mutants, monkeypatch, tmp_path):
    monkeypatch.setattr(mutants.Mutant, "shown", lambda self: ["- x + 1", '+ f("x", 1)'])
    files = ("sums/grid.py", "sums/runs.py", "measure/bands.py", "measure/region.py", "sums/state.py")
    killed, late, alive, told, other = (mutants.Mutant(f"calibrant/{file}", "core/X", 0, 1) for file in files)
    results = [(killed, True, 2, 0), (late, True, 9, 1), (alive, False, 5, 0), (told, False, 7, 1), (other, True, 3, 0)]
    known = {one: {"killed": noticed, "tests": n, "run": run} for one, noticed, n, run in results}
    columns = mutants.rows_of([killed, late, alive, told], [other], known)
    about = {"command": "python -m benchmarks.mutants", "calibrant": "0", "commit": "abc"}
    mutants.Kept(about, columns).write(tmp_path / "mutants.csv")
    (tmp_path / "reasons.json").write_text(json.dumps({told.key(): "Only time."}), encoding="utf-8")
    monkeypatch.setattr(mutants, "_REASONS", tmp_path / "reasons.json")
    kept = mutants.Kept.read(tmp_path / "mutants.csv")
    said = "\n".join(mutants.page(kept))
    flat = said.replace("\n", " ")
    assert "50.0 ± 25.0 % of 4 drawn mutants make a quick test fail. It was 25.0 ± 21.7 % before" in flat
    assert "unnoticed ones. 100.0 ± " in flat
    assert " % of 1 others, which nobody has looked at, do." in flat
    assert f"- `measure/bands.py` ({alive.key()}, 5 tests): no reason yet" in said
    assert f"- `measure/region.py` ({told.key()}, 7 tests): Only time." in said
    assert '  - x + 1\n  + f("x", 1)\n' in said
    assert "grid.py" not in said
    # What the others change is not said: nobody has looked at them.
    assert kept.columns["change"][-1] == kept.columns["key"][-1] == ""


def test_the_page_is_what_the_data_file_says(mutants):
    assert mutants.rendered() == (ROOT / "benchmarks" / "mutants.md").read_text(encoding="utf-8")
