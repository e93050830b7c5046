"""A column of shares in the command: each answer is that of the file whose rows have one outcome each."""

import numpy as np
import polars as pl
import pytest

import calibrant as cal

from ..commands import run

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A file of shares, and one of outcomes, each in a folder of its own, as results name the file."""
    rng = np.random.default_rng(0)
    n, p = rng.integers(1, 12, 300), rng.random(300)
    k = rng.binomial(n, p**1.3)
    where = pl.Series(np.where(np.arange(300) % 2, "north", "south"))
    soft = pl.DataFrame({"y_true": k / n, "y_prob": p, "n": n, "where": where})
    parts = [(1, k), (0, n - k)]
    hard = pl.concat([soft.with_columns(y_true=pl.lit(o), n=pl.Series(part)) for o, part in parts])
    folder = tmp_path_factory.mktemp("shares")
    for name, frame in {"soft": soft, "hard": hard.filter(pl.col("n") > 0)}.items():
        (folder / name).mkdir()
        frame.write_csv(folder / name / "rows.csv")
    return folder / "soft" / "rows.csv", folder / "hard" / "rows.csv"


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["report"], marks=pytest.mark.slow),
        ["report", "--stream"],
        pytest.param(["report", "--by", "where"], marks=pytest.mark.slow),
        ["report", "--engine", "polars"],
        pytest.param(["subgroups", "--by", "where"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_shares_say_what_outcomes_say(capsys, files, words):
    soft, hard = (run(capsys, words[0], file, "--weight", "n", *words[1:]) for file in files)
    assert soft[0] == 0
    assert soft == hard


@pytest.mark.slow
def test_a_repair_of_shares(capsys, files, tmp_path):
    model, out = tmp_path / "model.json", tmp_path / "calibrated.csv"
    assert run(capsys, "fix", files[0], "--save", model, "--weight", "n", "--calibrator", "beta", "--cv", 2)[0] == 0
    assert run(capsys, "apply", model, files[0], "--out", out)[0] == 0
    found, hard = pl.read_csv(out), pl.read_csv(files[1])
    assert found.height == 300
    wanted = cal.calibrators.BetaCalibration().fit(*(hard[c].to_numpy() for c in ("y_prob", "y_true", "n")))
    scores = pl.read_csv(files[0])["y_prob"].to_numpy()
    np.testing.assert_allclose(found["y_prob"], wanted.predict_proba(scores)[:, 1], rtol=1e-9)


def test_what_is_no_share_is_refused(capsys, files, tmp_path):
    rows = pl.read_csv(files[0])
    wrong = {
        "above": rows.with_columns(y_true=pl.when(pl.int_range(300) == 7).then(1.5).otherwise("y_true")),
        "missing": rows.with_columns(y_true=pl.when(pl.int_range(300) == 7).then(None).otherwise("y_true")),
        "three": rows.with_columns(p_a=pl.lit(0.2), p_b=pl.lit(0.3), p_c=pl.lit(0.5)).drop("y_prob"),
    }
    said = {}
    for name, frame in wrong.items():
        frame.write_csv(tmp_path / f"{name}.csv")
        code, _, said[name] = run(capsys, "report", tmp_path / f"{name}.csv")
        assert code == 2
    assert "must hold class labels" in said["above"]
    assert "missing labels; the first is in row 7" in said["missing"]
    assert "must hold class labels" in said["three"]
