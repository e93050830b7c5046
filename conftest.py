"""For doctests: the pictures that examples draw are closed after each of them."""

import sys

import pytest


@pytest.fixture(autouse=True)
def _figures_closed(request):
    yield
    if request.node.__class__.__name__ == "DoctestItem" and "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
