"""`calibrant benchmark --track`."""

from functools import partialmethod

import pytest
from typer.testing import CliRunner

from calibrant.cli.benchmark_command import BenchmarkOptions
from calibrant.cli.commands import app


def fewer(options, sized, **quick):
    """Sizes of a run that is smaller than the quick one."""
    return sized(options, **quick) | {"sizes": (30, 120), "large_sizes": (1000,), "n_sets": 8}


@pytest.mark.slow
def test_prints_a_table_and_goes_on_from_its_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(BenchmarkOptions, "sized", partialmethod(fewer, BenchmarkOptions.sized))
    arguments = ["benchmark", "--track", "imbalance", "--quick", "--jobs", "1", "--out", str(tmp_path / "run")]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 0, first.output
    assert "class-specific: 95th percentile of the relative error" in first.output
    assert "empirical-bayes" in first.output
    assert (tmp_path / "run" / "results.parquet").exists()
    pieces = {p: p.stat().st_mtime_ns for p in (tmp_path / "run" / "pieces").iterdir()}
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 0
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "run" / "pieces").iterdir()} == pieces


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--track", "nothing"], "track"),
        (["--track", "beta", "--mode", "as-published"], "apply to the mixtures only"),
        (["--track", "beta", "--keep-predictions"], "apply to the mixtures only"),
        (["--track", "beta", "--show", "all"], "--show must be one of rel, abs, bias"),
        (["--track", "beta", "--jobs", "0"], "n_jobs must be an int >= 1"),
    ],
)
def test_refuses(arguments, says, tmp_path):
    result = CliRunner().invoke(app, ["benchmark", *arguments, "--out", str(tmp_path / "run")])
    assert result.exit_code == 2
    assert says in result.output + result.stderr
