"""Evidence: what is run is kept with its provenance, goes on where it stopped, and is seen to be out of date."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="not in a checkout: experiments are there")


@pytest.fixture
def parts(monkeypatch, tmp_path):
    """Modules of the benchmarks, whose data files are kept in a folder of the test."""
    monkeypatch.syspath_prepend(str(ROOT))
    found = {
        name: importlib.import_module(f"benchmarks.{name}") for name in ("experiment", "provenance", "quotes", "status")
    }
    monkeypatch.setattr(found["experiment"], "DATA", tmp_path / "data")
    monkeypatch.setattr(found["experiment"], "ROOT", tmp_path)
    return found


def sample(family, n, seed):
    rng = np.random.default_rng([n, seed, len(family)])
    return {"mean": float(rng.random(n).mean()), "seconds": float(np.random.default_rng().random())}


def side_by_side(family, n, seed):
    return {"mean": [float(seed), float(seed) + 0.25], "size": float(n)}


def answer(kept):
    return f"The mean is {kept.where(family='one')['mean'].mean():.3f}."


def picture(kept):
    figure = Figure()
    figure.add_subplot().plot(kept["mean"])
    return figure


def page(kept):
    yield "| one |"


def made(parts, **changes):
    one = parts["experiment"].Experiment(
        "benchmarks.coverage.means",
        {"family": ["one", "other, one"], "n": [5, 50]},
        sample,
        answer,
        page,
        timed=("seconds",),
        figures={"mean": lambda kept, family: f"{kept.where(family=family)['mean'].mean():.3f}"},
    )
    return replace(one, **changes)


def test_what_is_kept_says_where_it_comes_from(parts):
    one = made(parts)
    assert one.run(6)
    header, kept = one.kept.header, one.kept
    assert header["command"] == "python -m benchmarks.coverage.means --repetitions 6"
    assert {"commit", "calibrant", "python", "numpy", "machine", "seconds", "seed", "modules"} <= header.keys()
    assert len(kept) == 2 * 2 * 6
    some = kept.where(family="other, one", n=50)
    assert len(some) == 6
    naive = [sample("other, one", 50, seed)["mean"] for seed in range(6)]
    np.testing.assert_allclose(some["mean"], naive, rtol=1e-11)
    assert kept.distinct("family") == ["one", "other, one"]
    assert not one.data.with_suffix(".running.jsonl").exists()
    with pytest.raises(LookupError, match="no rows of"):
        kept.where(n=7)


def test_what_cannot_be_repeated_here_is_said(parts, monkeypatch):
    one = made(parts, needs=("json", "a_package_that_nobody_has"))
    assert one.run(2)
    assert one.missing == ["a_package_that_nobody_has"]
    one.page_file.parent.mkdir(parents=True, exist_ok=True)
    one.page_file.write_text(one.rendered(), encoding="utf-8")
    cells, wrong = parts["status"].line(one)
    assert cells[3] == "needs a_package_that_nobody_has"
    assert not wrong
    monkeypatch.setattr(sys, "argv", ["means", "--quick"])
    with pytest.raises(SystemExit, match=r"coverage\.means needs a_package_that_nobody_has"):
        one.main()


def test_only_cases_whose_data_are_here_are_repeated(parts):
    one = made(parts)
    assert one.run(2)
    drifted = {"sample": lambda family, n, seed: {"mean": 0.0, "seconds": 0.0}}
    some = replace(one, here=lambda family, n: n == 5, quick=100)
    assert some.check() == []
    assert {text.split(", sample")[0] for text in replace(some, **drifted).check()} == {
        f"mean of {{'family': {family!r}, 'n': 5}}" for family in ("one", "other, one")
    }
    none = replace(one, here=lambda family, n: False, **drifted)
    assert none.check() == ["no data of any case are on this machine"]
    none.page_file.parent.mkdir(parents=True, exist_ok=True)
    none.page_file.write_text(none.rendered(), encoding="utf-8")
    cells, wrong = parts["status"].line(none)
    assert cells[3] == "needs data"
    assert not wrong


def test_numbers_that_would_hide_what_tells_cases_apart_are_refused_and_nothing_is_lost(parts):
    one = made(parts, sample=lambda family, n, seed: {"n": 1.0})
    with pytest.raises(ValueError, match=r"numbers have names of cases: \['n'\]"):
        one.run(2)
    assert not one.data.exists()
    assert len(one.data.with_suffix(".running.jsonl").read_text().splitlines()) == 1 + 2 * 2 * 2


def test_what_takes_long_has_fewer_samples(parts):
    one = made(parts, portion=lambda family, n: 0.25 if n == 50 else 1.0)
    assert one.run(8)
    assert [len(one.kept.where(family="one", n=n)) for n in (5, 50)] == [8, 2]
    assert not one.check()


def test_a_stopped_run_goes_on_where_it_was(parts):
    calls = []

    def counted(family, n, seed):
        calls.append((family, n, seed))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return sample(family, n, seed)

    one = made(parts, sample=counted)
    with pytest.raises(KeyboardInterrupt):
        one.run(2)
    assert not one.data.exists()
    assert one.run(2)
    # Those of the first run are not repeated, but the one that was stopped is; and one to see what it loads.
    assert len(calls) == 3 + (8 - 2) + 1
    assert len(set(calls)) == 8


def test_samples_of_other_code_are_not_mixed(parts, monkeypatch):
    one = made(parts)
    assert not one.run(2, only="other")
    monkeypatch.setattr(parts["provenance"], "code", lambda: "other")
    with pytest.raises(SystemExit, match="begun with other code"):
        one.run(2)
    assert json.loads(one.data.with_suffix(".running.jsonl").read_text().splitlines()[0]) != "other"


@pytest.mark.parametrize("draw", [sample, side_by_side])
def test_more_samples_are_added_to_those_kept_where_these_still_agree(parts, draw):
    calls = []

    def counted(family, n, seed):
        calls.append((n, seed))
        return draw(family, n, seed)

    one = made(parts, sample=counted, cases={"family": ["one"], "n": [5]}, quick=1, timed=())
    if draw is sample:
        one = replace(one, timed=("seconds",))
    assert one.run(3)
    before = one.kept
    # More of the case, and a case that was not there.
    wider = replace(one, cases={"family": ["one"], "n": [5, 50]})
    calls.clear()
    assert wider.run(4, more=True)
    assert sorted(calls[1:-1]) == [(5, 3), (50, 0), (50, 1), (50, 2), (50, 3)]  # beside the checks
    again = wider.kept.where(n=5)
    for name in before.columns:
        assert again.columns[name][: len(before)] == before.columns[name]
    whole = replace(wider, sample=draw)
    whole.data.unlink()
    whole.__dict__.pop("kept", None)
    assert whole.run(4)
    np.testing.assert_array_equal(whole.kept["mean"], wider.kept["mean"])
    with pytest.raises(SystemExit, match="what is kept is of other code"):
        replace(wider, sample=lambda family, n, seed: {"mean": -1.0}).run(6, more=True)
    assert len(wider.kept) == len(whole.kept)
    fewer = replace(wider, cases={"family": ["one"], "n": [50]})
    assert fewer.run(4, more=True)
    assert fewer.kept.distinct("n") == ["50"]


def test_a_quick_run_repeats_what_is_kept_and_sees_what_drifts(parts):
    one = made(parts, quick=8)
    one.run(2)
    assert one.check() == []  # times differ, and are not compared

    def drifted(family, n, seed):
        found = sample(family, n, seed)
        return found | {"mean": found["mean"] * (1 + 1e-7)}

    differs = replace(one, sample=drifted).check()
    assert len(differs) == 8
    assert "is kept" in differs[0]
    assert replace(one, sample=lambda family, n, seed: {"median": 1.0}).check()


def test_samples_side_by_side_are_rows(parts):
    one = made(parts, sample=side_by_side)
    assert one.run(3)
    np.testing.assert_array_equal(one.kept.where(family="one", n=5)["mean"], [0, 0.25, 1, 1.25, 2, 2.25])
    np.testing.assert_array_equal(one.kept.where(n=50)["size"], 50)
    assert one.check() == []


def test_status_tells_a_page_that_was_edited_and_code_that_changed(parts, monkeypatch):
    one = made(parts)
    status, provenance = parts["status"], parts["provenance"]
    assert status.line(one)[0][1] == "not run"
    one.run(2)
    one.page_file.parent.mkdir(parents=True)
    one.page_file.write_text(one.rendered())
    cells, wrong = status.line(one)
    assert (wrong, cells[2], cells[4]) == ([], "none", "same")
    one.page_file.write_text(one.rendered().replace("0.", "0.9"))
    assert status.line(one)[1] == ["coverage.means: its page"]
    monkeypatch.setattr(provenance, "_hash_of", lambda name: "other")
    assert one.kept.changed == sorted(one.kept.changed)
    assert len(one.kept.changed) == len(one.kept.header["modules"].split()) > 3


def test_docstrings_and_comments_are_not_code(parts):
    hash_of_code = parts["provenance"].hash_of_code
    source = '"""One."""\n\n\ndef f(x):\n    """Two,\n    three."""\n    return "# four", x  # five\n'
    same = '"""Other."""\ndef f(x):\n    """More."""\n\n    # six\n    return "# four", x\n'
    assert hash_of_code(source) == hash_of_code(same)
    others = (source.replace("four", "4"), source.replace(", x", ", y"), source.replace('"# four"', '"""# four"""'))
    assert len({hash_of_code(source), *map(hash_of_code, others)}) == 4


def test_a_page_answers_then_shows_then_tells_how_to_run_it_again(parts):
    one = made(parts, picture=picture)
    one.run(2)
    one.page_file.parent.mkdir(parents=True)
    one.write_page()
    question, said, drawn, rows, setting, *_, source = one.page_file.read_text().strip().split("\n\n")
    assert question == f"# {__doc__.strip()}"
    assert said == one.answer(one.kept)
    assert drawn.endswith("](means.svg)")
    assert rows == "| one |"
    assert setting == "## Setting"
    assert "benchmarks.coverage.means --repetitions 2" in source
    was = one.picture_file.read_bytes()
    one.write_page()
    assert one.picture_file.read_bytes() == was


def test_a_table_that_a_reader_would_have_to_scroll_is_refused(parts):
    markdown = importlib.import_module("benchmarks.markdown")
    assert [*markdown.table(("a", "b"), [("x", "1")])] == ["| a | b |", "|---|---:|", "| x | 1 |"]
    with pytest.raises(ValueError, match="82 characters, more than 80"):
        [*markdown.table(("a", "b"), [("x" * 79, "1")])]


def test_quoted_figures_are_those_of_the_data_file(parts, monkeypatch):
    one = made(parts)
    one.run(4)
    monkeypatch.setattr(parts["quotes"], "every_experiment", lambda: {one.name: one})
    true = one.figure("mean", "other, one")
    page = parts["experiment"].ROOT / "docs" / "evidence.md"
    text = 'About <!-- figure coverage.means mean "other, one" -->7<!-- end --> of all.'
    filled = parts["quotes"].filled(text, page)
    assert filled == text.replace("-->7<!--", f"-->{true}<!--")
    assert parts["quotes"].filled(filled, page) == filled
    naive = np.mean([sample("other, one", 50, seed)["mean"] for seed in range(4)])
    assert one.figure("mean.4", "mean", "family=other, one", "n=50") == f"{naive:.4f}"
    assert one.figure("percent", "mean", "family=other, one", "n=50") == f"{100 * naive:.0f}"
    with pytest.raises(LookupError, match="no rows of"):
        one.figure("mean.1", "mean", "n=51")
    table = parts["experiment"].ROOT / "docs" / "means.csv"
    table.parent.mkdir()
    table.write_text("# commit: 1\nsize,estimator,bias\n5,smooth,-0.24\n5,isotonic,0.7\n")
    monkeypatch.setattr(parts["quotes"], "ROOT", parts["experiment"].ROOT)
    said = "Bias <!-- figure docs/means.csv percent bias size=5 estimator=smooth -->24<!-- end --> %."
    assert parts["quotes"].filled(said, page) == said.replace("-->24<", "-->−24<")
    asked = "<!-- questions coverage.means -->\nold\n<!-- end -->"
    assert parts["quotes"].filled(asked, page) == "<!-- questions coverage.means -->\n\n\n<!-- end -->"
    one.page_file.parent.mkdir(parents=True)
    one.write_page()
    said = "<!-- answers coverage.means -->\n<!-- end -->"
    point = f"- {one.answer(one.kept)} ([means](../benchmarks/coverage/means.md))"
    assert parts["quotes"].filled(said, page) == f"<!-- answers coverage.means -->\n\n{point}\n\n<!-- end -->"
    listed = f"- [{one.question}](../benchmarks/coverage/means.md)"
    assert parts["quotes"].filled(asked, page) == f"<!-- questions coverage.means -->\n\n{listed}\n\n<!-- end -->"


def test_no_line_begins_with_a_quotation_which_would_end_its_paragraph(parts):
    begun = [
        f"{page.relative_to(parts['quotes'].ROOT)}:{i}"
        for page in parts["quotes"].pages()
        for i, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
        if line.lstrip().startswith("<!-- figure")
    ]
    assert not begun


def test_experiments_of_the_project_are_found_and_their_data_is_theirs(parts, monkeypatch):
    monkeypatch.undo()
    sys.path.insert(0, str(ROOT))
    try:
        found = importlib.import_module("benchmarks.experiment").every_experiment()
    finally:
        sys.path.remove(str(ROOT))
    assert "coverage.optimism" in found
    for one in found.values():
        if one.data.is_file():
            assert one.kept.header["experiment"] == one.module
            assert {*one.cases, "seed"} < set(one.kept.columns)


def test_every_experiment_is_in_the_index_of_evidence_or_of_development(parts, monkeypatch):
    monkeypatch.undo()
    sys.path.insert(0, str(ROOT))
    try:
        found = importlib.import_module("benchmarks.experiment").every_experiment()
    finally:
        sys.path.remove(str(ROOT))
    pages = {name: (ROOT / "docs" / name).read_text() for name in ("evidence.md", "development/index.md")}
    for name, one in found.items():
        listed = pages["development/index.md" if one.at.startswith("docs/development/") else "evidence.md"]
        assert f" {name} " in listed.replace("\n", " "), name


def test_evidence_stays_short(parts, monkeypatch):
    """What a page says twice goes."""
    monkeypatch.setattr(parts["status"], "ROOT", ROOT)
    found = parts["status"].words()
    assert len(found) > 40
    assert sum(found.values()) < 25_000, sorted(found.items(), key=lambda one: -one[1])[:5]


@pytest.mark.parametrize("share", [True, False])
def test_bars_of_shares_end_at_0_and_100(monkeypatch, share):
    monkeypatch.syspath_prepend(str(ROOT))
    dots = importlib.import_module("benchmarks.charts").dots
    drawn = dots(["a", "b", "c"], {"one": [(99.0, 1.0), (50.0, 2.0), (0.0, 3.0)]}, "samples, %", share=share)
    (bars,) = drawn.axes[0].collections
    ends = np.array([segment[:, 0] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, [[97, 100], [46, 54], [0, 6]] if share else [[97, 101], [46, 54], [-6, 6]])
