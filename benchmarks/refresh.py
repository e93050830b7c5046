"""Run what is stale again, cheapest first: `python -m benchmarks.refresh --hours 6 [--jobs 2] [--only TEXT]`.

Stale is an experiment that has not been run, or of whose modules one has changed since. It ends after the experiment
that is being run when the hours are over; what was begun goes on where it was when it is called again.
"""

from __future__ import annotations

import subprocess
import sys
import time

from . import arguments
from .experiment import Experiment, every_experiment
from .provenance import ROOT


def cost(one: Experiment) -> float:
    """CPU seconds of its last run; none, where there was none."""
    return float(one.kept.header["seconds"]) if one.data.is_file() else 0.0


def stale() -> list[Experiment]:
    """Experiments to run, cheapest first."""
    found = [one for one in every_experiment().values() if not one.data.is_file() or one.kept.changed]
    return sorted(found, key=cost)


def main() -> None:
    made = arguments.parser(__doc__, jobs=1, only="experiments")
    made.add_argument("--hours", type=float, required=True, help="no experiment begins after so many")
    options = made.parse_args()
    ends = time.monotonic() + 3600 * options.hours
    for one in stale():
        if options.only not in one.name:
            continue
        if time.monotonic() > ends:
            print(f"left for another time: {one.name}")
            continue
        print(f"{one.name}: {cost(one) / 60:.0f} CPU minutes last time", flush=True)
        # A process of its own: what an experiment loads is its own.
        subprocess.run([sys.executable, "-m", one.module, "--jobs", str(options.jobs)], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
