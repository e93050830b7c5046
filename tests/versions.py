"""Versions of packages of which tests expect different things: (major, minor)."""

from importlib.metadata import version

import pytest

MATPLOTLIB, NUMPY, SKLEARN = (
    tuple(int(part) for part in version(package).split(".")[:2]) for package in ("matplotlib", "numpy", "scikit-learn")
)
#: For a classifier of scikit-learn that is given a frame of Polars: before 1.9 it reads names by a protocol that Polars
#: deprecates. Ours does not (tests/calibrators/test_model.py).
READS_BY_PROTOCOL = pytest.mark.filterwarnings("ignore:Support for the dataframe interchange protocol")
