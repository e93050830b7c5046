"""The tables of trainings and the example of mixup and Laplace: their parts, and whole runs on rows as in KEEL."""

import importlib
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from scipy.stats import ttest_1samp
from sklearn.datasets import load_digits

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


@pytest.fixture
def parts(monkeypatch):
    """The package beside the scripts."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import training_parts.data
    import training_parts.networks
    import training_parts.results
    import training_parts.settings

    return training_parts


@pytest.fixture
def run(monkeypatch):
    """Run a script of the examples here, as from a command line."""

    def call(script, *arguments):
        monkeypatch.syspath_prepend(str(EXAMPLES))
        monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
        with mpl.rc_context():
            importlib.import_module(script).main()

    return call


@pytest.fixture
def keel(tmp_path):
    """Real digits in KEEL's format, under the name of its own."""
    x, y = load_digits(return_X_y=True)
    rows = [", ".join(str(int(v)) for v in (*a, b)) for a, b in zip(x, y, strict=True)]
    head = ["@relation optdigits", "@attribute a integer[0, 16]", "@data"]
    (tmp_path / "optdigits.dat").write_text("\n".join([*head, *rows]) + "\n")
    return tmp_path


def test_rows_are_read_and_split(parts, keel):
    x, y = parts.data.read(keel, "optdigits")
    digits = load_digits()
    np.testing.assert_array_equal(x, digits.data)
    np.testing.assert_array_equal(y, digits.target)
    split = parts.data.split((x, y), (400, 500, 2000), 3)
    assert [len(part.y) for part in split] == [400, 500, 897]
    seen = np.concatenate([part.x.numpy() for part in split])
    assert len(np.unique(seen, axis=0)) == len(np.unique(x, axis=0))  # no row is in two parts
    np.testing.assert_allclose(split.train.x.mean(dim=0), 0, atol=1e-5)
    again = parts.data.split((x, y), (400, 500, 2000), 3)
    assert all(torch.equal(a.x, b.x) for a, b in zip(split, again, strict=True))


def test_mixup_is_the_cross_entropy_of_mixed_outcomes(parts):
    net = torch.nn.Linear(5, 3)
    x, y = torch.randn(40, 5, generator=torch.Generator().manual_seed(0)), torch.arange(40) % 3
    torch.manual_seed(1)
    loss = parts.networks.mixup(net, x, y, 0.4)
    torch.manual_seed(1)
    share = torch.distributions.Beta(0.4, 0.4).sample()
    other = torch.randperm(40)
    outcome = torch.eye(3)[y]
    mixed = share * outcome + (1 - share) * outcome[other]
    logs = torch.log_softmax(net(share * x + (1 - share) * x[other]), dim=1)
    torch.testing.assert_close(loss, -(mixed * logs).sum(dim=1).mean())


def test_laplace_is_the_normal_posterior_of_the_last_layer(parts):
    """Beside the covariance of all weights, inverted as a whole, and draws of the weights themselves."""
    draw = torch.Generator().manual_seed(0)
    rows = parts.data.Part(torch.randn(60, 4, generator=draw), torch.arange(60) % 3)
    torch.manual_seed(2)
    net = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3))
    posterior, precision = parts.networks.LastLayerLaplace(net, rows), 5.0
    with torch.no_grad():
        h = net[1](net[0](rows.x)).double()
        h = torch.cat([h, torch.ones(60, 1, dtype=torch.float64)], dim=1)
        p = torch.softmax(net(rows.x).double(), dim=1)
        curved = sum(torch.diag(q) - torch.outer(q, q) for q in p) / 60
        outer = sum(torch.outer(one, one) for one in h) / 60
        covariance = torch.linalg.inv(60 * torch.kron(curved, outer) + precision * torch.eye(21))
        weights = torch.cat([net[2].weight, net[2].bias[:, None]], dim=1).double().flatten()
        normal = torch.distributions.MultivariateNormal(weights, covariance)
        torch.manual_seed(3)
        drawn = normal.sample((20_000,)).reshape(-1, 3, 7)
        expected = torch.softmax(torch.einsum("nf,dcf->dnc", h[:10], drawn), dim=2).mean(dim=0)
    found = posterior.log_probs(rows.x[:10], precision, draws=20_000).exp()
    torch.testing.assert_close(found, expected, atol=0.006, rtol=0)
    sure = posterior.log_probs(rows.x[:10], 1e12).exp()
    torch.testing.assert_close(sure, p[:10], atol=1e-4, rtol=0)


def test_what_validation_chooses(parts):
    def line(accuracy, error):
        return {"validation": {"accuracy": accuracy, "canonical debiased": error}}

    choose, rule = parts.results.choose, parts.results.by_canonical
    costly, fine, worse = line(80.0, 0.01), line(89.5, 0.05), line(91.0, 0.06)
    assert choose([costly, fine, worse], line(90.0, 0.1), rule) is fine
    assert choose([costly], line(90.0, 0.1), rule) is costly


def test_differences_have_students_interval(parts):
    values = np.random.default_rng(0).normal(0.3, 1, 12)
    difference = parts.results.Difference(values, larger_is_better=False, digits=3)
    np.testing.assert_allclose(difference.interval, ttest_1samp(values, 0).confidence_interval(0.95))
    assert difference.better == (values < 0).sum()
    assert parts.results.Difference(values + 5, False, 3).verdict == "worse"
    assert parts.results.Difference(values + 5, True, 3).verdict == "better"
    assert difference.verdict == ""


@pytest.mark.slow
def test_the_tables_are_made_and_resumed(run, parts, monkeypatch, keel):
    """With a third of the epochs, and fewer rows to choose by and to report on."""
    few = [replace(one, recipe=replace(one.recipe, epochs=20)) for one in parts.settings.SETTINGS]
    monkeypatch.setattr(importlib.import_module("train_tables"), "SETTINGS", few)
    monkeypatch.setitem(parts.settings.SIZES, "optdigits", (400, 200, 400))
    runs, page = keel / "runs.jsonl", keel / "page.md"
    given = ["--run", runs, "--data", keel, "--seeds", 2, "--only", "optdigits, 1"]
    run("train_tables", *given, "--page", page)
    lines = [json.loads(line) for line in runs.read_text().splitlines()]
    xe = {line["seed"]: line for line in lines if line["family"] == "XE"}
    assert sorted(xe) == [0, 1]
    assert all(line["test"]["accuracy"] > 85 for line in xe.values())
    assert all(line["scaled"]["accuracy"] == line["test"]["accuracy"] for line in lines)
    # The data files have the mean of what was run, and the page says what is missing.
    rows = pl.read_csv(keel / "training" / "settings.csv", comment_prefix="# ")
    mean = rows.filter(setting="optdigits, 1 × 64", method="XE", measure="accuracy")["mean"].item()
    assert mean == pytest.approx(np.mean([line["test"]["accuracy"] for line in xe.values()]), rel=1e-5)
    assert "Not finished, and left out" in page.read_text(encoding="utf-8")
    # What was cut off in the middle of a line is run again, and nothing else is.
    whole = runs.read_text()
    runs.write_text(whole[:-40])
    run("train_tables", *given)
    again = runs.read_text().splitlines()
    assert again[:-1] == whole.splitlines()[:-1]
    assert json.loads(again[-1])["test"] == lines[-1]["test"]


@pytest.mark.slow
def test_mixup_and_laplace_run(run, keel, capsys):
    run("mixup_laplace", "--data", keel, "--name", "optdigits", "--rows", 400, 500, 800, "--seeds", 2, "--epochs", 15)
    lines = [line for line in capsys.readouterr().out.splitlines() if re.match(r"\| (XE|mixup)", line)]
    rows = {name: cells for name, *cells in (line.strip("| ").split(" | ") for line in lines)}
    assert list(rows) == [a + b for a in ("XE", "mixup") for b in ("", ", temperature", ", Laplace")]
    assert rows["XE"][0] == rows["XE, temperature"][0]  # a temperature changes no accuracy
    assert float(rows["XE"][0].split(" ± ")[0]) > 85
