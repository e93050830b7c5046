"""One thread a process: tests run side by side, and the threads of small matrix products would wait for each other."""

import os
import sys
import warnings

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("untimed", suppress_health_check=[HealthCheck.too_slow])  # of a busy machine
settings.load_profile("untimed")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["COLUMNS"] = "100"  # text is as wide as the terminal, which tests must not depend on


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    """What one test drew is no other's: some assert that nothing is open before they draw."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture(scope="session")
def spark():
    """One Spark session for all tests of a process, where Spark and Java are there."""
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        try:
            session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
        except Exception as error:
            pytest.skip(f"Spark does not start: {error}")
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
