"""Private memory of `calibrant report FILE --stream` as files grow (Linux; cached pages of the file do not count).

python -m benchmarks.speed.memory [--rows 2000000,8000000] [--formats parquet,csv]
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from .. import arguments

WATCH = """
import sys, threading, time
peak = [0]
def watch():
    while True:
        with open("/proc/self/status") as status:
            peak[0] = max(peak[0], *(int(line.split()[1]) for line in status if line.startswith("RssAnon")))
        time.sleep(0.005)
threading.Thread(target=watch, daemon=True).start()
sys.argv = ["calibrant", "report", sys.argv[1], "--stream", "--json"]
from calibrant.cli import main
try:
    main()
except SystemExit as stop:
    assert not stop.code
sys.stderr.write(str(peak[0]))
"""


def main() -> None:
    parser = arguments.parser(__doc__)
    parser.add_argument("--rows", default="2000000,8000000")
    parser.add_argument("--formats", default="parquet,csv")
    options = parser.parse_args()
    write = {"parquet": pl.DataFrame.write_parquet, "csv": pl.DataFrame.write_csv}
    with tempfile.TemporaryDirectory() as folder:
        for kind in options.formats.split(","):
            for rows in map(int, options.rows.split(",")):
                rng = np.random.default_rng(0)
                p = rng.random(rows)
                path = Path(folder) / f"rows.{kind}"
                write[kind](pl.DataFrame({"y_true": (rng.random(rows) < p).astype(np.int8), "y_prob": p}), path)
                done = subprocess.run(
                    [sys.executable, "-c", WATCH, str(path)], capture_output=True, text=True, check=True
                )
                size = path.stat().st_size / 2**20
                print(
                    f"{kind:<8} {rows:>11,} rows {size:>6.0f} MB: {int(done.stderr.split()[-1]) / 1024:.0f} MB",
                    flush=True,
                )


if __name__ == "__main__":
    main()
