"""Short names: different ones stay different, and are short where that is possible."""

import json
import shutil
import subprocess
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings

import calibrant as cal
from calibrant.data.printing import shorten, text_table

NAMES = st.lists(st.text("ab12", max_size=24), min_size=1, max_size=8, unique=True)
SCRIPT = Path(cal.__file__).parent / "reporting" / "assets" / "report.js"


@given(NAMES, st.integers(2, 20))
@example(["a…b", "aaaab", "aabbb"], 3)
def test_different_names_stay_different_and_short_ones_as_they_are(names, width):
    short = shorten(names, width)
    assert len(set(short)) == len(names)
    assert all(len(after) <= max(len(before), width) for before, after in zip(names, short, strict=True))
    if all(len(name) <= width for name in names):
        assert short == names


@given(
    st.integers(5, 20), st.sampled_from(["begin", "end"]), st.lists(st.text("ab", min_size=2, max_size=2), unique=True)
)
def test_names_that_differ_at_an_end_fit_into_the_width(width, where, marks):
    names = [mark + 30 * "x" if where == "begin" else 30 * "x" + mark for mark in marks]
    assert all(len(one) == width for one in shorten(names, width))


@given(st.integers(8, 20), st.lists(st.text("ab", min_size=2, max_size=2), unique=True, min_size=2))
def test_names_that_differ_in_their_middle_fit_into_the_width(width, marks):
    names = [30 * "x" + mark + 30 * "y" for mark in marks]
    assert all(len(one) == width for one in shorten(names, width))


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
@settings(max_examples=3, deadline=None)
@given(st.lists(st.tuples(NAMES, st.integers(2, 20)), min_size=40, max_size=60))
def test_the_page_has_the_same_rule(cases):
    source = SCRIPT.read_text(encoding="utf-8")
    rule = source[source.index("  // Short names") : source.index("  // End of short names")]
    code = f"{rule}; console.log(JSON.stringify({json.dumps(cases)}.map(([names, width]) => shorten(names, width))))"
    found = subprocess.run(["node", "-e", code], check=True, capture_output=True, text=True).stdout
    assert json.loads(found) == [shorten(*case) for case in cases]


@given(st.lists(st.text("abc ", min_size=1, max_size=60), min_size=1, max_size=6, unique=True), st.integers(60, 160))
def test_a_table_fits_into_the_terminal(names, width):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        columns = {"name": names} | {head: ["0.123 (0.101 to 0.140)"] * len(names) for head in ("one", "two", "three")}
        lines = text_table(columns, ("three", "two"), ["*"] * len(names))
    assert max(map(len, lines)) <= width or len(names) > 1  # several may need more to differ
    assert ("three" in lines[0]) == (width >= 2 + min(max(map(len, ["name", *names])), 16) + 3 * 24)
