"""The training example runs as it is printed, and says what it measured."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "examples" / "train_digits.py"


@pytest.mark.slow
def test_the_example_runs(tmp_path):
    command = [sys.executable, str(SCRIPT), "--docs", str(tmp_path), "--seeds", "2", "--epochs", "4"]
    subprocess.run(command, check=True, timeout=600)
    text = (tmp_path / "training.md").read_text(encoding="utf-8")
    before, after = text.split("## Before temperature scaling")[1].split("## After temperature scaling")
    rows = {line.split(" | ")[0][2:]: line.split(" | ")[1:] for line in before.splitlines() if line.startswith("| KDE")}
    grids = {
        "": ("0.01", "0.1", "0.2", "0.5", "2"),
        ", h = 0.001": ("0.01", "0.05", "0.1"),
        ", debiased": ("0.1", "0.5", "2"),
    }
    assert list(rows) == [f"KDE-XE{name}, λ = {w}" for name, grid in grids.items() for w in grid]
    accuracy = {name: float(cells[0].split(" ± ")[0]) for name, cells in rows.items()}
    assert accuracy["KDE-XE, λ = 0.01"] > 25  # four epochs of four batches learn something
    after_rows = [line for line in after.splitlines() if line.startswith("| KDE-XE, λ = 0.01 |")]
    # A temperature changes no accuracy, and the log-loss for the better on average.
    first = after_rows[0].split(" | ")
    assert float(first[1].split(" ± ")[0]) == accuracy["KDE-XE, λ = 0.01"]
    assert float(first[2].split(" ± ")[0]) <= float(rows["KDE-XE, λ = 0.01"][1].split(" ± ")[0]) + 0.02
    assert (tmp_path / "images" / "training.png").stat().st_size > 10_000
