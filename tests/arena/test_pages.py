"""The pages count what was built; the baseline reads the choosing half and says what its samples say."""

import importlib
import json

import numpy as np
import pytest

import calibrant as cal


@pytest.fixture
def written(arena, tmp_path):
    """Predictions and truths of three data sets, one of them a pool to choose on."""
    rng = np.random.default_rng(0)
    for data, n, kind, model in (("pima", 700, "tabular", "bayes"), ("ring", 5400, "network", "net-wide-long"),
                                 ("wdbc", 500, "tabular", "tree")):  # fmt: skip
        p = np.round(rng.random(n), 2) if model == "tree" else rng.random(n)
        y = (rng.random(n) < p**2).astype(int)
        both = np.column_stack([1 - p, p]).astype(np.float32)
        entry = arena.store.Entry(tmp_path, data, model)
        about = {"recipe": "drawn", "kind": kind, "versions": {"numpy": "2.0"}, "seconds": 60.0}
        entry.write_predictions(both, y, about)
        entry.write_truths(*((arena.truth.of_pool(both, y), {}) if n > 5000 else arena.truth.of_maps(both, y)))
    return tmp_path


def test_what_was_built_is_counted(arena, written):
    page = written / "page.md"
    arena.page.write_page(written, page)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# The arena")
    assert "3 experiments, a data set × a model each" in text
    cells = {tuple(line.strip("| ").split(" | ")[:4]) for line in text.splitlines()}
    assert ("choosing", "network", "pool", "1") in cells
    assert ("choosing", "tabular", "redrawn", "1") in cells
    assert ("reporting", "tabular", "pool", "0") in cells
    assert "ring | choosing | breiman" in text
    assert "Training took 3 CPU minutes" in text
    assert "Not built: magic.logistic" in text
    # What the reporting half's truths are is not to be seen.
    truths = text.split("## True calibration errors")[1].split("## Left out")[0]
    assert "| net-wide-long | 1 |" in truths
    assert "| tree |" not in truths


def test_an_empty_cache_is_told(arena, tmp_path):
    with pytest.raises(SystemExit, match="nothing is built"):
        arena.page.write_page(tmp_path, tmp_path / "page.md")


def test_atoms_are_shared_scores(arena):
    s = np.concatenate([np.full(30, 0.5), np.linspace(0.6, 0.9, 170)])
    assert arena.page.atom_share(s) == pytest.approx(30 / 200)


def test_the_baseline_reads_the_choosing_half(arena, written):
    baseline = importlib.import_module("benchmarks.arena.baseline")
    lines = baseline.run(written, 3, "")
    assert [one["name"] for one in lines] == ["pima.bayes", "ring.net-wide-long"]
    assert [list(one["read"]) for one in lines] == [["100", "300"], ["100", "300", "1000"]]
    (pool,) = arena.experiments("choosing", cache=written, kind="network")
    sample = arena.draw(pool, 300, 2)
    top = sample.y_prob.max(axis=1)
    right = sample.y_prob.argmax(axis=1) == sample.y_true
    expected = cal.expected_calibration_error(
        np.where(right, sample.y_prob.argmax(axis=1), 1 - sample.y_prob.argmax(axis=1)),
        sample.y_prob, notion="confidence", labels=[0, 1],
    )  # fmt: skip
    assert lines[1]["read"]["300"]["Binned(15)"][2] == pytest.approx(expected)
    edges = np.linspace(0, 1, 16)
    cell = np.digitize(top, edges[1:-1], right=True)
    by_hand = sum(abs((right - top)[cell == b].sum()) for b in range(15)) / 300
    assert expected == pytest.approx(by_hand, abs=1e-6)
    # Kept lines are taken as they are; other repetitions are read anew.
    kept = written / "baseline" / "pima.bayes.json"
    changed = json.loads(kept.read_text()) | {"truth": 9.0}
    kept.write_text(json.dumps(changed))
    assert baseline.run(written, 3, "pima")[0]["truth"] == 9.0
    assert baseline.run(written, 2, "pima")[0]["truth"] != 9.0


def test_coverage_and_errors_are_counted(arena):
    baseline = importlib.import_module("benchmarks.arena.baseline")

    def one(kin, intervals, numbers):
        read = dict.fromkeys(baseline.ESTIMATORS, numbers) | {"interval": intervals}
        return {"name": f"{kin}.x", "kind": "tabular", "pool": True, "kin": kin, "truth": 0.1, "standard_error": 0.02,
                "read": {"100": read}}  # fmt: skip

    lines = [one("a", [[0, 0.2], [0.13, 0.2]], [0.1, 0.2]), one("b", [[0, 0.05], [0.05, 0.3]], [0.05, 0.15])]
    said = baseline.coverage(lines).splitlines()[-1].strip("| ").split(" | ")
    assert said == ["tabular, pools", "100", "2", "0.500 ± 0.000", "0.750", "2", "0.143"]
    rows = [line.strip("| ").split(" | ") for line in baseline.errors(lines).splitlines()[2:]]
    assert rows[1][:6] == ["tabular, pools", "100", "2", "2", "RMSE", f"{np.mean([np.sqrt(0.5), 0.5]):.2f}"]
    assert rows[2][5] == "+0.25"
