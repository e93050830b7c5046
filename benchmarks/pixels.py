"""Memory of a hundred million pixels, streamed: sums of images with unlabelled pixels, in NumPy and in torch.

    python -m benchmarks.pixels [--pixels 100_000_000] [--with torch]

Prints the peak memory of the process after a tenth of the pixels and after all. Images are made piece by piece: logits
of four classes, too sure by a factor that each image has of its own, a border of unlabelled pixels (255).
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator

import numpy as np

import calibrant as cal

SIDE, PER_PIECE, CLASSES, UNLABELLED = 256, 20, 4, 255


def pieces(pixels: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Logits (N, K, 256, 256), float32, and labels (N, 256, 256)."""
    rng = np.random.default_rng(0)
    for _ in range(round(pixels / (PER_PIECE * SIDE**2))):
        logits = rng.standard_normal((PER_PIECE, CLASSES, SIDE, SIDE), dtype=np.float32)
        logits *= 2
        noise = rng.gumbel(size=logits.shape).astype(np.float32)
        noise += logits * rng.uniform(0.4, 1.0, (PER_PIECE, 1, 1, 1)).astype(np.float32)
        label = noise.argmax(axis=1).astype(np.uint8)
        label[:, :8] = UNLABELLED
        yield logits, label


def peak() -> float:
    """Most memory that the process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pixels", type=int, default=100_000_000)
    parser.add_argument("--with", dest="kind", choices=("numpy", "torch"), default="numpy")
    options = parser.parse_args()
    sums = cal.Accumulator(labels=range(CLASSES))
    metric = None
    if options.kind == "torch":
        import torch

        from calibrant.torch import CalibrationError

        metric = CalibrationError(num_classes=CLASSES, from_logits=True, ignore_index=UNLABELLED)
    every = round(options.pixels / (PER_PIECE * SIDE**2))
    print(f"{options.kind}; {peak():,.0f} MB before the first piece")
    spent, added = 0.0, 0
    how = {"labels": range(CLASSES), "from_logits": True, "ignore_index": UNLABELLED, "groups": "first-axis"}
    for i, (logits, label) in enumerate(pieces(options.pixels), start=1):
        start = time.process_time()
        if metric is None:
            sums.update(cal.as_predictions(label, logits, **how))
        else:
            metric.update(torch.from_numpy(logits), torch.from_numpy(label))
        spent += time.process_time() - start
        added += label.size
        if i in (max(1, every // 10), every):
            print(f"{added:,} pixels: peak {peak():,.0f} MB, {spent:.0f} s of processor time in update", flush=True)
    print(sums.estimate() if metric is None else f"calibration error {metric.compute().item():.6f}")


if __name__ == "__main__":
    main()
