"""`calibrant segments`: what the function says, and its exit codes."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import calibrant as cal

pytest.importorskip("polars")
from calibrant.cli.commands import app


def run(*arguments):
    return CliRunner().invoke(app, ["segments", *map(str, arguments)])


@pytest.fixture
def rows(tmp_path):
    rng = np.random.default_rng(0)
    n = 5000
    p = rng.uniform(0.1, 0.9, n).round(6)
    frame = pd.DataFrame(
        {
            "y_true": 0,
            "y_prob": p,
            "x_age": np.where(rng.random(n) < 0.03, np.nan, rng.integers(18, 78, n)),
            "x_region": rng.choice(["north", "south"], n),
            "x_since": (np.datetime64("2020-01-01") + rng.integers(0, 40, n).astype("m8[D]")).astype(str),
            "note": [f"note {i}" for i in range(n)],
        }
    )
    frame["y_true"] = (rng.random(n) < np.where(frame["x_region"] == "north", p**2, p)).astype(int)
    return frame, tmp_path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_it_says_what_the_function_says(rows, ending):
    frame, folder = rows
    file = folder / f"rows.{ending}"
    frame.to_csv(file, index=False) if ending == "csv" else frame.to_parquet(file)
    ran = run(file, "--features", "x_*", "--json", "--html", folder / "page.html", "--plot", folder / "a.png")
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    wanted = cal.find_segments(frame["y_true"], frame["y_prob"], frame[["x_age", "x_region", "x_since"]])
    wanted = json.loads(json.dumps(wanted.to_dict()))
    assert found["tested"] == wanted["tested"]
    assert found["features"] == ["x_age", "x_region", "x_since"]
    assert found["tested"][0]["condition"] == "x_region is north"
    assert "x_region is north" in (folder / "page.html").read_text()
    assert (folder / "a.png").exists()


def test_all_other_columns_are_features(rows):
    frame, folder = rows
    frame.to_csv(folder / "rows.csv", index=False)
    ran = run(folder / "rows.csv", "--fail-if-found")
    assert ran.exit_code == 1
    assert "left out: note (it identifies single rows" in ran.output.replace("\n", " ")
    calm = frame.assign(y_true=(np.random.default_rng(1).random(len(frame)) < frame["y_prob"]).astype(int))
    calm.to_csv(folder / "calm.csv", index=False)
    assert run(folder / "calm.csv", "--fail-if-found").exit_code == 0


def test_what_is_refused(rows):
    frame, folder = rows
    frame[["y_true", "y_prob"]].to_csv(folder / "bare.csv", index=False)
    frame.to_csv(folder / "rows.csv", index=False)
    for arguments, said in (
        (("bare.csv",), "no features"),
        (("rows.csv", "--features", "z_*"), "--features"),
        (("rows.csv", "--features", "y_true"), "already used"),
        (("rows.csv", "--confirm", "both"), "confirm"),
        (("rows.csv", "--max-terms", "9"), "max_terms"),
    ):
        ran = run(folder / arguments[0], *arguments[1:])
        assert ran.exit_code != 0
        assert said in str(ran.output) + str(ran.exception)
