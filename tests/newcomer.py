"""Runs docs/how_to.md as a newcomer types it, with a calibrant that is installed and not the checkout's.

    python newcomer.py PAGE [torch]

With ``torch`` the blocks that need it, else all others.
"""

# ruff: noqa: F401 - what is imported and made here is what the page's blocks are given
import contextlib
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np


def blocks(page: str, language: str = "python") -> dict[str, str]:
    """Code of each task, by its heading."""
    found = {}
    for part in re.split(r"^## ", page, flags=re.M)[1:]:
        for code in re.findall(rf"```{language}\n(.*?)```", part, flags=re.S):
            found[part.splitlines()[0]] = code
    return found


def names() -> dict:
    """What blocks take for granted: rows, models, their probabilities."""
    import joblib
    import matplotlib.pyplot as plt
    import pandas as pd
    import polars as pl
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    import calibrant as cal

    rng = np.random.default_rng(0)
    p = rng.random(5_000)
    churned = rng.random(5_000) < p**1.5
    frame = pd.DataFrame(
        {
            "outcome": np.where(churned, "churned", "stayed"),
            "p_churn": p,
            "region": rng.choice(["north", "south"], 5_000),
            "age": rng.integers(18, 90, 5_000),
        }
    )
    X_train, X_test, y_train, y_test = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)
    bayes = GaussianNB().fit(X_train, y_train)
    forest = RandomForestClassifier(30, random_state=0).fit(X_train, y_train)
    digits = cal.datasets.load_digits_predictions()
    p_tags = rng.random((2_000, 4))
    y_tags = rng.random((2_000, 4)) < p_tags**1.5
    died_at, left_at = -5 * rng.exponential(size=5_000) / np.log1p(-p), rng.exponential(10, 5_000)
    time, died, p_died = np.minimum(died_at, left_at), died_at <= left_at, p
    patient = np.arange(len(y_test)) // 3
    prompt = np.arange(900) // 3
    stated = rng.random(300)[prompt]
    right = rng.random(900) < stated**1.3
    relation = pl.DataFrame({name: frame[name].tolist() for name in frame}).lazy()
    when = np.datetime64("2026-01-01") + np.arange(len(y_test)).astype("m8[D]")
    n = rng.integers(1, 30, 400)
    days = pd.DataFrame({"days": n, "rain": rng.binomial(n, p[:400]), "forecast": p[:400]})
    parts = ((rng.random(100_000) < s, s) for s in (rng.random(100_000) for _ in range(50)))
    return locals() | {"y_digits": digits.y_true, "p_digits": digits.y_prob} | {
        "p_bayes": bayes.predict_proba(X_test)[:, 1], "p_forest": forest.predict_proba(X_test)[:, 1]
    }  # fmt: skip


def torch_names() -> dict:
    """The same of the torch block: logits of a small network, in batches."""
    import torch
    from torch.nn.functional import cross_entropy

    import calibrant as cal
    from calibrant.torch import CalibrationError, DirichletKernelLoss

    draw = torch.Generator().manual_seed(0)
    network = torch.nn.Linear(4, 10)
    batches = [
        (network(torch.randn(64, 4, generator=draw)), torch.randint(10, (64,), generator=draw)) for _ in range(3)
    ]
    masks, images = torch.randint(3, (30, 8, 8), generator=draw), torch.randn(30, 3, 8, 8, generator=draw)
    return locals()


def run(page: Path, which: str = "") -> list[str]:
    """Run each block by itself, and commands of the shell; the headings of those that ran."""
    given = torch_names() if which == "torch" else names()
    ran = []
    for title, code in blocks(page.read_text(encoding="utf-8")).items():
        if ("torch" in title) == (which == "torch"):
            lines = [line for line in code.splitlines() if line.strip()]
            if len(lines) > 5:
                raise SystemExit(f"{title}: {len(lines)} lines, more than five")
            exec(compile(code, title, "exec"), dict(given))
            ran.append(title)
    if which != "torch":
        given["frame"].to_csv("predictions.csv")
        for title, command in blocks(page.read_text(encoding="utf-8"), "bash").items():
            told = subprocess.run([sys.executable, "-m", "calibrant", *shlex.split(command)[1:]], check=False)
            if told.returncode != 0:
                raise SystemExit(f"{title}: exit code {told.returncode}")
            ran.append(title)
    return ran


if __name__ == "__main__":
    import calibrant

    page = Path(sys.argv[1]).resolve()
    if page.parent.parent / "src" in Path(calibrant.__file__).resolve().parents:
        raise SystemExit(f"this is the checkout's calibrant, not an installed one: {calibrant.__file__}")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        done = run(page, *sys.argv[2:])
    sys.stdout.write(f"newcomer: {len(done)} tasks ok\n")
