"""Run where one extra is installed, from the wheel: what the extra promises works, without any other.

python extra_alone.py EXTRA
"""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import calibrant as cal

rng = np.random.default_rng(0)
p = rng.random(600)
y = (rng.random(600) < p**1.3).astype(int)
FOLDER = Path(tempfile.mkdtemp())


def core() -> None:
    """A report, a repaired model, a monitor."""
    assert str(cal.report(y, p))
    assert cal.AutoCalibrator().fit(p, y).predict_proba(p).shape == (600, 2)
    monitor = cal.CalibrationMonitor()
    monitor.update(y[:1], p[:1])
    assert not monitor.alarm


def plot() -> None:
    """Pictures."""
    import matplotlib as mpl

    mpl.use("Agg")
    cal.report(y, p).plot().figure_.savefig(FOLDER / "report.png")
    cal.ReliabilityDisplay.from_predictions(y, p)


def html() -> None:
    """Pages."""
    plot()
    assert "<html" in cal.report(y, p).to_html()


def cli() -> None:
    """The command, on a file."""
    html()
    path = FOLDER / "rows.csv"
    path.write_text("y,p\n" + "".join(f"{a},{b}\n" for a, b in zip(y, p, strict=True)), encoding="utf-8")
    command = [sys.executable, "-m", "calibrant", "report", str(path), "--label", "y", "--prob", "p"]
    assert "600" in subprocess.run(command, check=True, capture_output=True, text=True).stdout


def torch() -> None:
    """A loss with a gradient, and a metric."""
    import torch

    from calibrant.torch import CalibrationError, DirichletKernelLoss

    logits = torch.randn(64, 3, requires_grad=True)
    target = torch.randint(3, (64,))
    DirichletKernelLoss(0.1)(logits, target).backward()
    assert torch.isfinite(logits.grad).all()
    metric = CalibrationError(cal.Binned(15), num_classes=3, from_logits=True)
    metric.update(logits.detach(), target)
    assert 0 <= float(metric.compute()) <= 1


def engines() -> None:
    """A relation of DuckDB, and a frame of Dask; Spark needs Java."""
    import dask.dataframe as dd
    import duckdb
    import pyarrow as pa

    rows = pa.table({"y": y, "p": p})
    assert rows.num_rows == 600
    found = cal.from_frame(duckdb.sql("SELECT * FROM rows"), label="y", prob="p")
    np.testing.assert_allclose(found.estimate(cal.Binned(5)).value, cal.estimate(y, p, estimator=cal.Binned(5)).value)
    assert cal.from_frame(dd.from_dict({"y": y, "p": p}, npartitions=2), label="y", prob="p").n_samples == 600


def llm() -> None:
    """A log."""
    path = FOLDER / "log.jsonl"
    path.write_text(
        "".join(f'{{"correct": {bool(a)}, "confidence": {b}}}\n'.lower() for a, b in zip(y, p, strict=True))
    )
    assert cal.llm.read(path).n_samples == 600


def boost() -> None:
    """Boosted trees on features."""
    found = cal.calibrators.SegmentCalibrator(learner="boosting").fit(p, y, features={"x": rng.random(600)})
    assert np.isfinite(found.predict_proba(p, features={"x": rng.random(600)})).all()


def onnx() -> None:
    """A saved map that ONNX Runtime reads."""
    import onnxruntime

    fitted = cal.calibrators.BetaCalibration().fit(p, y)
    session = onnxruntime.InferenceSession(cal.calibrators.to_onnx(fitted).SerializeToString())
    (given,) = session.get_inputs()
    _, found = session.run(["label", "probabilities"], {given.name: p[:, None]})
    np.testing.assert_allclose(found, fitted.predict_proba(p), atol=1e-6)


#: Packages that no other extra may bring.
ABSENT = {
    "core": ("matplotlib", "jinja2", "typer", "polars", "torch", "duckdb", "lightgbm", "onnx", "pandas"),
    "plot": ("jinja2", "typer", "polars", "torch", "duckdb", "lightgbm", "onnx"),
    "html": ("typer", "polars", "torch", "duckdb", "lightgbm", "onnx"),
    "cli": ("torch", "duckdb", "lightgbm", "onnx", "pandas"),
    "torch": ("matplotlib", "typer", "polars", "duckdb", "lightgbm", "onnx"),
    "engines": ("matplotlib", "typer", "torch", "lightgbm", "onnx"),
    "llm": ("matplotlib", "typer", "torch", "duckdb", "lightgbm", "onnx"),
    "boost": ("matplotlib", "typer", "polars", "torch", "duckdb", "onnx"),
    "onnx": ("matplotlib", "typer", "polars", "torch", "duckdb", "lightgbm"),
}

if __name__ == "__main__":
    (name,) = sys.argv[1:]
    here = [package for package in ABSENT[name] if importlib.util.find_spec(package)]
    assert not here, f"not an environment of {name} alone: it has {here}"
    globals()[name]()
    sys.stdout.write(f"{name} alone: ok (Python {sys.version.split()[0]}, NumPy {np.__version__})\n")
