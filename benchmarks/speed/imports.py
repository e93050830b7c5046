"""Time of ``import calibrant`` beside ``import numpy``, each in fresh interpreters."""

from __future__ import annotations

import statistics
import subprocess
import sys

#: What ``import calibrant`` may take beyond ``import numpy``, in seconds.
ALLOWED = 0.060
_PROGRAM = "import time; a = time.process_time(); {statement}; print(time.process_time() - a)"

#: The package loads its parts on first use, so the first use is shown too.
STATEMENTS = {
    "numpy": "import numpy",
    "calibrant": "import calibrant",
    "first use": "import calibrant; calibrant.calibration_error; calibrant.reliability_curve",
}


def import_seconds(rounds: int = 15) -> dict[str, float]:
    """Median CPU seconds of every statement, interleaved; a first round warms the disk cache."""
    samples: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for turn in range(rounds + 1):
        for name, values in samples.items():
            command = [sys.executable, "-c", _PROGRAM.format(statement=STATEMENTS[name])]
            seconds = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            if turn:
                values.append(seconds)
    return {name: statistics.median(values) for name, values in samples.items()}
