"""Code of the pages of the guide, and of where one starts: it runs, and numbers behind it are those that it gives."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import calibrant as cal

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [*sorted((DOCS / "guide").glob("*.md")), DOCS / "index.md", DOCS / "get_started.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_of_a_page_runs(page, capsys, monkeypatch, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p = rng.random(400)
    y = (rng.random(400) < p**1.4).astype(int)
    frame = pd.DataFrame({"outcome": np.where(y == 1, "churned", "stayed"), "p_churn": p})
    names = {"cal": cal, "y": y, "p": p, "y_true": y, "y_prob": p, "frame": frame, "np": np}
    blocks = re.findall(r"```python\n(.*?)```(?:\n\n```\n(.*?)```)?", page.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for code, printed in blocks:
        for line in code.splitlines():
            if told := re.fullmatch(r"(cal\.\S.*\))  # ([\d.]+)", line):
                assert eval(told[1], names) == pytest.approx(float(told[2]))
        exec(compile(code, str(page), "exec"), names)
        said = capsys.readouterr().out
        if printed:
            assert said == printed
