"""A recalibration from the first report to the last, command by command, written to docs/repair_story.md.

    python -m benchmarks.arena.build --predictions --only .given --given FOLDER
    python -m benchmarks.real.repair_story [--docs docs]

FOLDER holds `cifar10_lenet5.npz`: `y_prob` (10 000, 10) and `y_true`, softmax outputs of a public network
(EFS-OpenSource/calibration-framework, examples). Rows stay in a temporary folder; what commands print is the page.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np
import polars as pl

from calibrant.cli import main as calibrant
from calibrant.data.writing import write_text

from .. import arguments
from ..arena.reported import read
from ..experiment import wrapped

ROWS, FEW = 5000, 200


class Step(NamedTuple):
    """What is typed, below a title and above what to look at; how many paragraphs of what is printed are shown."""

    title: str
    command: str
    look: str
    paragraphs: int | None = 2


STEPS = (
    Step(
        "Is there anything to repair?",
        "report check.parquet",
        "Look at the first sentences: whether and where the probabilities are off, then by how much, and whether that "
        "matters.",
    ),
    Step(
        "Which calibrator?",
        "compare fit.parquet --save found.json",
        "Look at the error before and after, and at the interval of what the log-loss gains. The line marked `>` is "
        "the choice; `change` is the change of the accuracy.",
        None,
    ),
    Step(
        "Fit it",
        "fix fit.parquet --from found.json --save model.json",
        "The choice is fitted once to all rows. Nothing is compared again, and the verdict left out here is that of "
        "step 2.",
        1,
    ),
    Step(
        "Apply it to other rows",
        "apply model.json check.parquet --out repaired.parquet",
        "`repaired.parquet` has calibrated probabilities in place of the scores; other columns stay.",
    ),
    Step(
        "Did it help?",
        "report repaired.parquet",
        "The calibrator has not seen these rows. Look at the upper end of the interval: how large an error is still "
        "possible.",
    ),
    Step(
        "Would another repair gain more?",
        "compare repaired.parquet",
        "Compare the change of the log-loss with that of step 2: it is what is left to gain.",
    ),
    Step(
        f"With {FEW} rows only",
        "compare few.parquet",
        "Look at the interval of the error after the repair, and at how much of the original scores is kept.",
    ),
)

PAGE = """# A recalibration, from the first report to the last

This page follows one network, LeNet-5 on CIFAR-10, through the commands that find, repair and check miscalibration. A
calibrator is judged by rows that it was not fitted to: `fit.parquet` and `check.parquet` are random halves of the test
set, {rows:,} rows each with the columns `y_true` and `p_0` … `p_9`. `few.parquet` is the first {few} rows of
`fit.parquet`. `…` stands for lines that are left out here.

{steps}

How the other calibrators do on this network and on two others: [repair](repair.md). How to choose among them:
[calibrators](calibrators.md).

Written by `python -m benchmarks.real.repair_story`.
"""


def typed(command: str) -> list[str]:
    """Lines that a command prints."""
    out = io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["calibrant", *command.split()]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
        contextlib.suppress(SystemExit),
    ):
        calibrant()
    return out.getvalue().strip("\n").split("\n")


def rows(y: np.ndarray, p: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({"y_true": y} | {f"p_{k}": p[:, k] for k in range(p.shape[1])})


def told(number: int, step: Step) -> str:
    """A step and what it prints."""
    said = typed(step.command)
    ends = [i for i, line in enumerate([*said, ""]) if not line]
    if step.paragraphs is not None and len(ends) > step.paragraphs:
        said = [*said[: ends[step.paragraphs - 1]], "…", *(line for line in said[-1:] if line.startswith("wrote"))]
    lines = [
        f"## {number}. {step.title}",
        "",
        "```",
        f"$ calibrant {step.command}",
        *said,
        "```",
        "",
        wrapped(step.look),
    ]
    print(*lines, "", sep="\n", flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = arguments.parser(__doc__)
    parser.add_argument(
        "--docs", type=Path, default=Path("docs"), help="where the page is written (default %(default)s)"
    )
    options = parser.parse_args()
    os.environ["COLUMNS"] = "100"
    docs = options.docs.resolve()
    one = read("cifar10_lenet5", "given", truths=False)
    order = np.random.default_rng(0).permutation(len(one.y_true))
    y, p = one.y_true[order], one.y_prob[order]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, part in (("fit", slice(ROWS)), ("check", slice(ROWS, 2 * ROWS)), ("few", slice(FEW))):
            rows(y[part], p[part]).write_parquet(f"{name}.parquet")
        steps = [told(number, step) for number, step in enumerate(STEPS, 1)]
    write_text(docs / "repair_story.md", PAGE.format(rows=ROWS, few=FEW, steps="\n\n".join(steps)))


if __name__ == "__main__":
    main()
