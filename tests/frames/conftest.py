"""One Spark session for all tests of a process, where Spark and Java are there."""

import os
import sys
import warnings

import pytest


@pytest.fixture(scope="session")
def spark():
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        try:
            session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
        except Exception as error:
            pytest.skip(f"Spark does not start: {error}")
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
