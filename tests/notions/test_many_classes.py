"""Three hundred classes: everything that people do with predictions, within memory that is a few times theirs."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal

K, N = 300, 3000

SCRIPT = """
import resource, sys
import numpy as np, polars as pl
import calibrant as cal
from calibrant import calibrators as c
from tests.notions.test_many_classes import rows

y, p = rows(int(sys.argv[1]))
many = pl.DataFrame(p, schema=[f"p_{k}" for k in range(p.shape[1])]).with_columns(y=pl.Series(y))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
exact = cal.calibration_error(y, p, notion="classwise")
sums = cal.Accumulator(notion="classwise", labels=range(p.shape[1]))
for i in range(0, len(y), 1000):
    sums.update(y[i : i + 1000], p[i : i + 1000])
names = [f"p_{k}" for k in range(p.shape[1])]
frame = cal.from_frame(many.lazy(), label="y", prob=names, notion="classwise", labels=range(p.shape[1]))
assert abs(sums.estimate(n_resamples=5).value - exact) < 1e-9
assert abs(frame.estimate(n_resamples=5).value - exact) < 1e-9
assert str(cal.report(y, p))
for calibrator in (c.TemperatureScaling(), c.VectorScaling()):
    q = calibrator.fit(p, y).predict_proba(p)
    assert np.allclose(q.sum(axis=1), 1) and (q >= 0).all()
    assert cal.scores.log_loss(y, q) < cal.scores.log_loss(y, p)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def rows(n, k=K, seed=0):
    """Overconfident predictions of many classes."""
    rng = np.random.default_rng(seed)
    z, y = rng.normal(size=(n, k)), rng.integers(0, k, n)
    z[np.arange(n), y] += 3
    z = 2 * z - 2 * z.max(axis=1, keepdims=True)
    return y, np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)


@pytest.mark.slow
def test_three_hundred_classes():
    places = [str(Path(__file__).parents[2]), str(Path(cal.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    command = [sys.executable, "-c", SCRIPT, str(N)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) * 1024 < 12 * N * K * 8 + 2**29, done.stdout


def test_their_rows_are_those_of_overconfident_predictions():
    y, p = rows(2000)
    assert np.allclose(p.sum(axis=1), 1)
    assert np.bincount(y, minlength=K).size == K
    assert cal.calibration_error(y, p) > 0.05
