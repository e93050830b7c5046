"""One thread a process: tests run side by side, and the threads of small matrix products would wait for each other."""

import os
import sys

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["COLUMNS"] = "100"  # text is as wide as the terminal, which tests must not depend on


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    """What one test drew is no other's: some assert that nothing is open before they draw."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")
