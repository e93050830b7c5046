"""Draw without a screen, and leave no figure open."""

from collections.abc import Iterator

import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    import matplotlib.pyplot as plt

    yield
    plt.close("all")
