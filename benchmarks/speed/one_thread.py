"""One thread for everybody. Import this before anything that loads a BLAS."""

from __future__ import annotations

import importlib.util
import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
    os.environ[_variable] = "1"


def limit_torch() -> None:
    """Torch keeps threads of its own."""
    if importlib.util.find_spec("torch") is not None:
        import torch

        torch.set_num_threads(1)
