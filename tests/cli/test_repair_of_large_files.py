"""The commands that repair: files larger than memory, and writes that are killed."""

import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

from calibrant.calibrators import PlattScaling, save_calibrator

from ..commands import watched
from .test_repair_commands import overconfident


@pytest.mark.slow
def test_a_killed_write_leaves_what_was_there(tmp_path):
    p, y = overconfident(1000)
    model = save_calibrator(PlattScaling().fit(p, y), tmp_path / "m.json")
    source, out = tmp_path / "b.parquet", tmp_path / "o.csv"
    pl.DataFrame({"y_prob": np.random.default_rng(0).random(8_000_000)}).write_parquet(source)
    out.write_text("what was there\n")
    args = [sys.executable, "-m", "calibrant", "apply", str(model), str(source), "--out", str(out), "--force"]
    with subprocess.Popen(args, stderr=subprocess.PIPE) as process:
        end = time.monotonic() + 60
        while not any(f.suffix == ".tmp" and f.stat().st_size > 0 for f in tmp_path.iterdir()):
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < end
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    assert out.read_text() == "what was there\n"


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(("command", "sizes", "most"), [("fix", (2, 8), 60), ("apply", (3, 15), 160)])
def test_memory_does_not_grow_with_the_file(command, sizes, most, tmp_path):
    p, y = overconfident(1000)
    model = save_calibrator(PlattScaling().fit(p, y), tmp_path / "m.json")
    peaks = []
    for rows in (10**6 * millions for millions in sizes):
        path, out = tmp_path / f"{rows}.parquet", tmp_path / f"{rows}.out"
        p, y = overconfident(rows)
        pl.DataFrame({"y_true": y, "y_prob": p}).write_parquet(path)
        args = {
            "apply": ["apply", model, path, "--out", out, "--out-format", "csv"],
            "fix": ["fix", path, "--save", out, "--calibrator", "platt", "--max-rows", "100000"],
        }[command]
        peaks.append(watched(*args)[1])
    # Held whole, six million more rows would be 100 MB to fit, and twelve million 200 MB to calibrate and 200 as text;
    # how many pieces are on their way at once varies from run to run.
    assert peaks[1] - peaks[0] < most, peaks
