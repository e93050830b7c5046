"""Bars of long calls: on a terminal and in a notebook, and nowhere else."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import calibrant
from calibrant.data import progress

#: A call of ten steps whose bar is waited for, and one of the library that says how far it is.
SLOW = """
import sys, time
from calibrant.data import progress
progress.DELAY = progress.OFTEN = 0.0

def drawn():
    call = progress._call
    return call is not None and call.bar is not None

def wait():
    end = time.monotonic() + 60
    while not drawn() and time.monotonic() < end:
        time.sleep(0.01)

def outer(end=10):
    with progress.working("outer"):
        for i in progress.counted(range(10), "steps out"):
            with progress.working("inner"):
                for j in progress.counted(range(7), "steps in"):
                    if i == 3:
                        wait()
                    if i == end:
                        raise KeyboardInterrupt
"""

#: One that is over before anything is shown.
QUICK = (
    "progress.DELAY = 1000.0; import calibrant as cal; cal.estimate([0, 1] * 50, [i / 100 for i in range(100)]); None"
)


def _environment(**more):
    env = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    root = str(Path(calibrant.__file__).parents[1])
    return env | {"PYTHONPATH": root, "TERM": "xterm", "COLUMNS": "100"} | more


def _on_terminal(code, **more):
    """All that a program writes to a terminal that is its standard output and standard error."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    script = SLOW + textwrap.dedent(code)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=theirs, stdout=theirs, stderr=theirs, env=_environment(**more)
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # Linux says so at the end
            break
        if not piece:
            break
        said += piece
    os.close(ours)
    process.wait()
    return said.decode()


def _left(said):
    """What a terminal still shows of what was written after the last bar."""
    return said.rsplit("\x1b[2K", 1)[1].replace("\x1b[?25h", "").strip()


def test_terminal_shows_one_bar_of_nested_loops_and_is_left_clean():
    said = _on_terminal('outer(); print("end")')
    assert "outer: steps out" in said
    assert "/10" in said
    assert "inner" not in said
    assert "steps in" not in said
    assert _left(said) == "end"
    assert said.count("\x1b[?25h") == said.count("\x1b[?25l")  # the cursor is back


def test_terminal_is_left_clean_by_what_is_raised():
    said = _on_terminal("""
        try:
            outer(end=5)
        except KeyboardInterrupt:
            print("stopped", progress._call)
    """)
    assert "outer: steps out" in said
    assert _left(said) == "stopped None"
    assert said.count("\x1b[?25h") == said.count("\x1b[?25l") > 0


@pytest.mark.slow
def test_verbs_say_how_far_they_are():
    said = _on_terminal("""
        import numpy as np, calibrant as cal
        from calibrant.comparison.models.units import IndependentUnits
        draws = IndependentUnits.draws
        def slowly(self, *args):
            for one in draws(self, *args):
                wait()
                yield one
        IndependentUnits.draws = slowly
        p = np.random.default_rng(0).random(3000)
        cal.compare_models(p > 0.4, {"a": p, "b": p**2}, n_resamples=2000)
    """)
    assert "compare_models: resamples" in said


@pytest.mark.parametrize(
    ("code", "more"),
    [
        (
            QUICK,
            {},
        ),
        ("drawn = lambda: True; outer()", {"CALIBRANT_PROGRESS": "0"}),
        ("drawn = lambda: True; outer()", {"PYTEST_CURRENT_TEST": "this"}),
        ("sys.stderr = open('/dev/null', 'w'); drawn = lambda: True; outer()", {}),
        ("import threading; drawn = lambda: True; t = threading.Thread(target=outer); t.start(); t.join()", {}),
        ("drawn = lambda: not progress._call.thread.is_alive(); sys.modules['rich.progress'] = None; outer()", {}),
        ("drawn = lambda: True\nwith progress.working('x', shown=False): outer()", {}),
    ],
    ids=["quick", "switched off", "in pytest", "captured", "another thread", "without rich", "asked not to"],
)
def test_terminal_shows_nothing(code, more):
    assert _on_terminal(code, **more) == ""


@pytest.mark.slow
def test_workers_show_nothing():
    said = _on_terminal("""
        from joblib import Parallel, delayed
        def task():
            from calibrant.data import progress
            return progress._is_visible()
        print(Parallel(n_jobs=2)(delayed(task)() for _ in range(2)), progress._is_visible())
    """)
    assert "[False, False] True" in said


def test_pipes_get_nothing():
    script = SLOW + "drawn = lambda: True; outer()"
    done = subprocess.run([sys.executable, "-c", script], env=_environment(), capture_output=True, check=True)
    assert done.stdout + done.stderr == b""


def test_asked_for_it_is_drawn_anywhere_and_stays(capsys):
    with progress.progress_bar("adding", 3, shown=True) as advance:
        for _ in range(3):
            advance(1)
    said = capsys.readouterr().err
    assert "adding" in said
    assert "3/3" in said
    assert progress._call is None


def test_loops_that_are_given_up_leave_nothing():
    with progress.working("outer", shown=False):
        given_up = progress.counted(range(5), "steps")
        assert next(given_up) == 0
        assert [loop.title for loop in progress._call.loops] == ["steps"]
    assert progress._call is None
    assert list(given_up) == [1, 2, 3, 4]
    assert list(progress.counted(iter("ab"), "letters", 2)) == ["a", "b"]


@pytest.mark.slow
def test_notebook_shows_a_bar_that_vanishes(tmp_path, monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    for name, value in _environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    sources = [
        "import os; os.environ.pop('PYTEST_CURRENT_TEST', None)" + SLOW,
        "outer()",
        QUICK,
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    put_up = []

    class Client(nbclient.NotebookClient):
        def process_message(self, msg, cell, cell_index):
            if msg["msg_type"] in ("display_data", "update_display_data"):
                put_up.append((cell_index, str(msg["content"]["data"])))
            return super().process_message(msg, cell, cell_index)

    Client(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    assert {index for index, _ in put_up} == {1}
    assert "outer: steps out" in put_up[0][1]
    assert not any("inner" in text for _, text in put_up)
    first, slow, quick = notebook.cells
    assert first.outputs == quick.outputs == []
    assert [output.data for output in slow.outputs] == [{"text/plain": ""}]
