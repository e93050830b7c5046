"""`AdaptiveKernel` for many samples at once: every step's kernel is a spectrum, and only one transform goes back."""

from __future__ import annotations

import numpy as np
from scipy.fft import dct, idct

from ..._types import AnyArray, FloatArray
from ...errors.adaptive import CELLS, STEPS, AdaptiveKernel
from . import reads
from .batch import Batch
from .residual import power_of
from .smoothing import Spread, mirrored, spectrum


@reads(AdaptiveKernel)
def adaptive(estimator: AdaptiveKernel, batch: Batch, norm: float) -> FloatArray:
    """``errorᵖ`` of every sample, equal to the public estimator's up to rounding.

    Not for the maximum, which reads single nodes, nor where the number of samples that should speak is sought.
    """
    if np.isinf(norm) or isinstance(estimator.wanted, str):
        return np.array([estimator.power(problem, norm) for problem in batch.problems()])
    count, positive = batch.counts(CELLS)
    low, high = batch.domain
    residual = positive - count * np.linspace(low, high, CELLS + 1)
    widest = estimator.widest * CELLS
    start = Spread(batch).folded_scott() * (CELLS / (high - low))
    narrowest = np.minimum(np.maximum(start, 0.5), widest)
    wanted = min(estimator.wanted, batch.size / 6)
    parts = [residual] if norm == 1 else [residual, count]
    whole = np.zeros((len(parts), *count.shape))
    spoken = dct(mirrored(count), type=1, axis=-1)
    pending: AnyArray = np.ones(count.shape, dtype=bool)
    for step in range(STEPS):
        kernel = spectrum(CELLS, narrowest * (widest / narrowest) ** (step / (STEPS - 1)), "gaussian")
        here = pending
        if step < STEPS - 1:
            # the transform back at distance 0: the weight of a sample at its own node
            peak = (2 * kernel.sum(axis=1) - kernel[:, 0] - kernel[:, -1]) / (2 * CELLS)
            short = idct(spoken * kernel, type=1, axis=-1) < wanted * peak[:, None]
            here, pending = pending & ~short, pending & short
        for part, total in zip(parts, whole, strict=True):
            total += dct(mirrored(part * here), type=1, axis=-1) * kernel
        if not pending.any():
            break
    smooth = idct(whole, type=1, axis=-1, overwrite_x=True)
    return power_of(np.maximum(smooth[-1], 0.0), smooth[0], None, norm, batch.size)
