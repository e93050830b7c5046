"""Products with the Hessian that matrix and Dirichlet scaling take, with their preconditioner and with a diagonal one.

    python -m benchmarks.products [--write benchmarks/products.md]

Logits are normal (sd 2), true ones 0.6 times as far apart; "constant": all rows have the same scores. The script fails
where the diagonal one ends at a log-loss that is lower by 1e-8. A product costs about 4 n K² operations.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

import calibrant as cal
from calibrant.calibrators import DirichletCalibration, MatrixScaling, linear, newton

from . import arguments

CASES = [(k, n, kind) for k in (40, 100) for n, kind in ((2_000, "constant"), (2_000, "spread"), (20_000, "spread"))]
FITS = {"MatrixScaling()": MatrixScaling(), "DirichletCalibration()": DirichletCalibration()}


def rows(n: int, k: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores of an over-confident model."""
    rng = np.random.default_rng(k)
    z = rng.normal(size=(n, k)) * 2
    y = (z * 0.6 + rng.gumbel(size=(n, k))).argmax(axis=1)
    y[:k] = np.arange(k)
    p = np.exp(z if kind == "spread" else np.tile(z[0], (n, 1)))
    return y, p / p.sum(axis=1, keepdims=True)


def products(calibrator: Any, y: np.ndarray, p: np.ndarray) -> tuple[int, float]:
    """How many products with the Hessian a fit takes, and its log-loss."""
    count, solve = 0, newton._conjugate_gradients

    def counted(times: Callable[[np.ndarray], np.ndarray], *rest: Any) -> Any:
        def one(v: np.ndarray) -> np.ndarray:
            nonlocal count
            count += 1
            return times(v)

        return solve(one, *rest)

    with mock.patch.object(newton, "_conjugate_gradients", counted), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a diagonal one may end before the optimum: losses are compared
        loss = cal.scores.log_loss(y, calibrator.fit(p, y).predict_proba(p))
    return count, loss


def main() -> None:
    asked = arguments.parser(__doc__, write=True).parse_args()
    head = "# Products with the Hessian\n\n" + (__doc__ or "").split("\n\n", 2)[2].strip() + "\n"
    lines = [
        head,
        "| calibrator | classes | rows | scores | products | diagonal preconditioner |",
        "|---|---:|---:|---|---:|---:|",
    ]
    diagonal = linear.SoftmaxObjective._near_inverse
    for k, n, kind in CASES:
        y, p = rows(n, k, kind)
        for name, calibrator in FITS.items():
            ours, loss = products(calibrator, y, p)
            with mock.patch.object(linear.MatrixObjective, "_near_inverse", diagonal):
                theirs, other = products(calibrator, y, p)
            assert loss < other + 1e-8, (name, k, n, kind, loss, other)
            lines.append(f"| `{name}` | {k} | {n:,} | {kind} | {ours:,} | {theirs:,} |")
            print(lines[-1], flush=True)
    arguments.finish(asked, lines)


if __name__ == "__main__":
    main()
