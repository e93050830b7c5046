"""Does memory grow with the number of pixels that are streamed?

    python -m benchmarks.pixels [--repetitions 2]

Each piece of a stream has 20 images of 256 × 256 pixels. Each image has logits of four classes, overconfident by its
own factor, and a border of unlabelled pixels (255). NumPy uses `as_predictions` and an `Accumulator`, with images as
groups. Torch uses `calibrant.torch.CalibrationError`. Each stream has its own process, whose peak memory includes the
packages and a piece.
"""

from __future__ import annotations

from .speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import time
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal

from .charts import dots
from .experiment import Experiment
from .markdown import estimate, table
from .process import alone, peak
from .provenance import Kept

MODULE = __spec__.name
SIDE, PER_PIECE, CLASSES, UNLABELLED = 256, 20, 4, 255
#: Pieces by the number of pixels.
PIECES = {"10⁶": 1, "10⁷": 8, "10⁸": 76}
KINDS = ("NumPy", "torch")


def pieces(number: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Logits (N, K, 256, 256), float32, and labels (N, 256, 256)."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        logits = rng.standard_normal((PER_PIECE, CLASSES, SIDE, SIDE), dtype=np.float32)
        logits *= 2
        noise = rng.gumbel(size=logits.shape).astype(np.float32)
        noise += logits * rng.uniform(0.4, 1.0, (PER_PIECE, 1, 1, 1)).astype(np.float32)
        label = noise.argmax(axis=1).astype(np.uint8)
        label[:, :8] = UNLABELLED
        yield logits, label


def streamed(number: int, kind: str, seed: int) -> dict[str, float]:
    """The calibration error, CPU seconds of the updates, and peak memory in MiB."""
    sums, spent = cal.Accumulator(labels=range(CLASSES)), 0.0
    how = {"labels": range(CLASSES), "from_logits": True, "ignore_index": UNLABELLED, "groups": "first-axis"}
    if kind == "torch":
        import torch

        from calibrant.torch import CalibrationError

        metric = CalibrationError(num_classes=CLASSES, from_logits=True, ignore_index=UNLABELLED)
    before = peak()
    for logits, label in pieces(number, seed):
        began = time.process_time()
        if kind == "torch":
            metric.update(torch.from_numpy(logits), torch.from_numpy(label))
        else:
            sums.update(cal.as_predictions(label, logits, **how))
        spent += time.process_time() - began
    error = metric.compute().item() if kind == "torch" else sums.estimate().value
    return {"error": float(error), "seconds": spent, "before": before, "peak": peak()}


def sample(pixels: str, kind: str, seed: int) -> dict[str, float]:
    """Numbers of a stream in a process of its own."""
    return alone(MODULE, "streamed", number=PIECES[pixels], kind=kind, seed=seed)


def answer(kept: Kept) -> str:
    parts = []
    for kind in KINDS:
        few, most = (kept.where(kind=kind, pixels=pixels)["peak"].mean() for pixels in [*PIECES][1:])
        parts.append(f"{most:,.0f} MiB with {kind}, {most / few:.2f} times that after 10⁷")
    return f"Peak memory after 10⁸ pixels is {', and '.join(parts)}."


def picture(kept: Kept) -> Figure:
    series = {kind: [estimate(kept.where(kind=kind, pixels=pixels)["peak"]) for pixels in PIECES] for kind in KINDS}
    return dots([f"{pixels} pixels" for pixels in PIECES], series, "peak memory, MiB")


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives means of memory in MiB (before the first piece and at its peak), CPU seconds of the updates,"
    yield "and the calibration error."
    yield ""
    yield from table(("with", "pixels", "before", "peak", "CPU s", "error"), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for kind in KINDS:
        for pixels, number in PIECES.items():
            some = kept.where(kind=kind, pixels=pixels)
            numbers = (f"{some[name].mean():,.0f}" for name in ("before", "peak", "seconds"))
            yield [kind, f"{number * PER_PIECE * SIDE**2:,}", *numbers, f"{some['error'].mean():.4f}"]


EXPERIMENT = Experiment(
    MODULE,
    {"pixels": PIECES, "kind": KINDS},
    sample,
    answer,
    page,
    picture,
    repetitions=2,
    quick=1,
    timed=("seconds", "before", "peak"),
    needs=("torch", "torchmetrics"),
)

if __name__ == "__main__":
    EXPERIMENT.main()
