"""A repair from the first report to the last, command by command, written to docs/repair_story.md.

    python -m benchmarks.real.repair_story --data FOLDER [--docs docs]

FOLDER holds `cifar10_lenet5.npz` and `cifar10_wideresnet16x4.npz`: `y_prob` (10 000, K) and `y_true`, softmax outputs
of public networks (EFS-OpenSource/calibration-framework, examples). Rows stay in a temporary folder; what commands
print is the page.
"""

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import polars as pl

from calibrant.cli import main as calibrant
from calibrant.data.writing import write_text

from .. import arguments

NETWORKS = {"cifar10_lenet5": "LeNet-5", "cifar10_wideresnet16x4": "Wide ResNet 16×4"}
ROWS = 5000
#: What is typed, and how many lines of what is printed are shown (None: all).
STEPS: list[tuple[str, int | None]] = [
    ("report check.parquet", 15),
    ("compare fit.parquet --save found.json", None),
    ("fix fit.parquet --from found.json --save model.json", None),
    ("apply model.json check.parquet --out repaired.parquet", None),
    ("report repaired.parquet", 20),
    ("compare repaired.parquet --calibrators identity,temperature,vector,matrix,isotonic", None),
    ("compare fit.parquet --calibrators identity,temperature,isotonic", 8),
    ("compare fit.parquet --goal calibration", 8),
    ("compare few.parquet", None),
]


def typed(command: str) -> str:
    """What a command prints."""
    out = io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["calibrant", *command.split()]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
        contextlib.suppress(SystemExit),
    ):
        calibrant()
    return out.getvalue().strip("\n")


def rows(y: np.ndarray, p: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({"y_true": y} | {f"p_{k}": p[:, k] for k in range(p.shape[1])})


def story(file: Path) -> str:
    """Every step and what it prints, in a folder that is removed."""
    data = np.load(file)
    order = np.random.default_rng(0).permutation(len(data["y_true"]))
    y, p = data["y_true"][order], data["y_prob"][order]
    lines = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, part in (("fit", slice(ROWS)), ("check", slice(ROWS, 2 * ROWS)), ("few", slice(200))):
            rows(y[part], p[part]).write_parquet(f"{name}.parquet")
        for command, most in STEPS:
            said = typed(command).split("\n")
            cut = [*said[:most], "…"] if most is not None and len(said) > most else said
            lines += ["```", f"$ calibrant {command}", *cut, "```", ""]
            print(*lines[-len(cut) - 4 :], sep="\n", flush=True)
    return "\n".join(lines)


PAGE = """# A repair, from the first report to the last

Written by `python -m benchmarks.real.repair_story`: what the commands print for softmax outputs of public networks on
the CIFAR-10 test set, 5,000 rows to fit (`fit.parquet`; its first 200 are `few.parquet`) and 5,000 to check.

What to look at: `compare` says what the error was and what it is after the repair on rows held out, with an interval;
whether that is still miscalibration; what the log-loss gains, and whether that is more than noise; and who would be
better calibrated at what price. `fix --from` fits the choice once and repeats nothing of the comparison. The report of
repaired rows says whether anything is left that matters; asked to repair them again, `compare` says what that would
gain. `--goal calibration` chooses by the calibration error, among those that do no harm. Of 200 rows it is said what
they leave open.

{stories}
"""


def main() -> None:
    parser = arguments.parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the networks")
    parser.add_argument(
        "--docs", type=Path, default=Path("docs"), help="where the page is written (default %(default)s)"
    )
    options = parser.parse_args()
    os.environ["COLUMNS"] = "100"
    docs = options.docs.resolve()
    stories = [f"## {name}\n\n{story((options.data / f'{file}.npz').resolve())}" for file, name in NETWORKS.items()]
    write_text(docs / "repair_story.md", PAGE.format(stories="\n".join(stories)).rstrip() + "\n")


if __name__ == "__main__":
    main()
