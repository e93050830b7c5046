"""What does the canonical calibration error cost compared with plain N × N implementations?

    pip install torch==2.13.0
    OMP_NUM_THREADS=1 python -m benchmarks.speed.canonical [--repetitions 7] [--only TEXT]

All compute the L1 error of ten classes with Dirichlet kernels of bandwidth 0.05. Each sample draws rows in its own
process, with one thread. Plain code is in torch, float64 unless named float32: *step by step* is the formula as
printed, every step a matrix, like the published code; *in place* avoids copies; *class by class* stays in logarithms.
*Ours, NumPy* is `calibration_error(…, estimator=DirichletKernel(0.05))`; *cross* has the default's kernel for squares.
*Ours, torch* is `dirichlet_kernel_error`. *Products and exponentials*, one of each per pair of rows, are an exact
program's least cost. A sample fails unless its error is that of *in place* to 1e-9, or 2e-4 in float32.
"""

from __future__ import annotations

from . import one_thread  # before NumPy

# isort: split
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal

from ..charts import dots
from ..experiment import Experiment
from ..markdown import table
from ..process import alone, beyond
from ..provenance import Kept

MODULE = __spec__.name
H, CLASSES, ROWS = 0.05, 10, 10_000
#: Calls are repeated for this many CPU seconds, and no more than this many times.
BUDGET, MOST_CALLS = 0.5, 15
#: How far errors of a number format may lie apart.
APART = {"float64": 1e-9, "float32": 2e-4}
NUMPY, CROSS = "ours, NumPy", "ours, NumPy, cross"
CLASSWISE, CONFIDENCE = "ours, NumPy, classwise", "ours, NumPy, confidence"
STEPS, IN_PLACE, CLASS_BY_CLASS = "step by step", "in place", "class by class"
FLOOR, SINGLE, GRADIENT = "products and exponentials", ", float32", ", gradient"
OURS_GRADIENT, PLAIN_GRADIENT = f"ours, torch{GRADIENT}", IN_PLACE + GRADIENT
#: Ways to the error, and what else is timed, at 10,000 rows.
WAYS = (
    "ours, torch",
    f"ours, torch{SINGLE}",
    NUMPY,
    CROSS,
    FLOOR,
    STEPS,
    IN_PLACE,
    CLASS_BY_CLASS,
    STEPS + SINGLE,
    IN_PLACE + SINGLE,
    OURS_GRADIENT,
    f"ours, torch{SINGLE}{GRADIENT}",
    PLAIN_GRADIENT,
)
#: Rows of each.
SIZES: dict[str, tuple[int, ...]] = dict.fromkeys(WAYS, (ROWS,))
SIZES |= {NUMPY: (2500, 5000, ROWS, 20_000, 50_000), CLASSWISE: (1_000_000,), CONFIDENCE: (1_000_000,)}
#: What gives another number.
OTHERS = (FLOOR, CROSS, CLASSWISE, CONFIDENCE)


def drawn(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits, their softmax and labels."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, CLASSES))
    p = np.exp(z - np.logaddexp.reduce(z, axis=1)[:, None])
    return z, p, (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, CLASSES - 1)


def in_place(logits: Any, target: Any) -> Any:
    """The estimator as published, with N × N matrices."""
    import torch

    logs = torch.log_softmax(logits, dim=1)
    f = logs.exp()
    log_k = logs @ (f / H).T - torch.lgamma(f / H + 1).sum(dim=1)
    log_k.fill_diagonal_(-torch.inf) if not log_k.requires_grad else None
    if log_k.requires_grad:
        log_k = log_k.masked_fill(torch.eye(len(f), dtype=torch.bool), -torch.inf)
    weight = torch.softmax(log_k, dim=1)
    expected = weight @ torch.nn.functional.one_hot(target, CLASSES).to(f.dtype)
    return (expected - f).abs().sum(dim=1).mean()


def step_by_step(logits: Any, target: Any) -> Any:
    """The same as one writes it down, every step a matrix: what the published code does."""
    import torch

    f = torch.softmax(logits, dim=1)
    alpha = f / H + 1
    log_beta = torch.lgamma(alpha).sum(dim=1) - torch.lgamma(alpha.sum(dim=1))
    log_k = torch.log(f) @ (alpha - 1).T - log_beta
    log_k = log_k + torch.diag(torch.full((len(f),), torch.finfo(f.dtype).min, dtype=f.dtype))
    kernel = torch.exp(log_k)
    expected = kernel @ torch.nn.functional.one_hot(target, CLASSES).to(f.dtype) / kernel.sum(dim=1, keepdim=True)
    return (expected - f).abs().sum(dim=1).mean()


def class_by_class(logits: Any, target: Any) -> Any:
    """The same with a log-sum-exp over N × N for every class, which needs no care for small kernels."""
    import torch

    logs = torch.log_softmax(logits, dim=1)
    f = logs.exp()
    log_k = logs @ (f / H).T - torch.lgamma(f / H + 1).sum(dim=1)
    log_k = log_k.masked_fill(torch.eye(len(f), dtype=torch.bool), -torch.inf)
    whole = torch.logsumexp(log_k, dim=1)
    log_y = torch.nn.functional.one_hot(target, CLASSES).to(f.dtype).log()
    total: Any = 0.0
    for c in range(CLASSES):
        expected = (torch.logsumexp(log_k + log_y[:, c], dim=1) - whole).exp()
        total = total + (expected - f[:, c]).abs()
    return total.mean()


def ours(logits: Any, target: Any) -> Any:
    """The same in tiles."""
    from calibrant.torch.functional import dirichlet_kernel_error

    return dirichlet_kernel_error(logits, target, H)


def floor(p: np.ndarray) -> float:
    """What no exact program can do without: product, exponential and sum for every pair, in tiles that stay cached."""
    logs, right = np.log(p), np.ascontiguousarray((p / H).T)
    rows, block = 1 << 6, 1 << 10
    tile, total = np.empty((rows, block)), 0.0
    for a in range(0, len(p), rows):
        for b in range(0, len(p), block):
            some = tile[: min(rows, len(p) - a), : min(block, len(p) - b)]
            np.matmul(logs[a : a + rows], right[:, b : b + block], out=some)
            np.exp(some, out=some)
            total += float(some.sum())
    return total


def call_of(way: str, n: int, seed: int) -> Callable[[], float]:
    """What is timed, on data that are drawn here."""
    z, p, y = drawn(n, seed)
    if way == FLOOR:
        return lambda: floor(p)
    if way.startswith(NUMPY):
        notion = way.rpartition(", ")[2] if way in (CLASSWISE, CONFIDENCE) else "canonical"
        kernel = cal.estimators.DirichletKernel(H)
        if way == CROSS:
            kernel = cal.estimators.DirichletKernel(H, "query", "cross", residual=True)
        return lambda: float(cal.calibration_error(y, p, notion=notion, estimator=kernel))
    import torch

    one_thread.limit_torch()
    logits, target = torch.tensor(z, dtype=getattr(torch, number_format(way))), torch.tensor(y)
    named = {STEPS: step_by_step, IN_PLACE: in_place, CLASS_BY_CLASS: class_by_class}
    error = next((one for name, one in named.items() if way.startswith(name)), ours)

    def forward() -> float:
        with torch.no_grad():
            return float(error(logits, target))

    def both() -> float:
        x = logits.clone().requires_grad_()
        loss = error(x, target)
        loss.backward()
        return float(loss)

    return both if way.endswith(GRADIENT) else forward


def number_format(way: str) -> str:
    return "float32" if SINGLE in way else "float64"


def measured(way: str, n: int, seed: int) -> dict[str, float]:
    """CPU and wall seconds of a call, memory in MiB beyond its inputs, and what it returns."""
    call = call_of(way, n, seed)
    call_of(way, 200, seed)()  # imports and thread pools
    (value, *first), memory = beyond(lambda: timed(call))
    times = [first]
    while sum(cpu for cpu, _ in times) < BUDGET and len(times) < MOST_CALLS:
        times.append(list(timed(call)[1:]))
    cpu, wall = np.median(times, axis=0).tolist()
    return {"value": value, "cpu": cpu, "wall": wall, "memory": memory}


def timed(call: Callable[[], float]) -> tuple[float, float, float]:
    """What a call returns, and its seconds of the processor and by the wall."""
    cpu, wall = time.process_time(), time.perf_counter()
    value = call()
    return value, time.process_time() - cpu, time.perf_counter() - wall


@lru_cache(maxsize=4)
def reference(n: int, seed: int) -> float:
    """The error that all ways give but others."""
    return call_of(IN_PLACE, n, seed)()


def sample(way: str, n: int, seed: int) -> dict[str, float]:
    """Numbers of a process of its own, and how far its error lies from the reference; RuntimeError where too far."""
    found = alone(MODULE, "measured", way=way, n=n, seed=seed)
    if way in OTHERS or n > ROWS:  # where a plain implementation has no memory
        return found
    gap = abs(found["value"] - reference(n, seed))
    if not gap <= APART[number_format(way)]:
        raise RuntimeError(f"{way}: the error of {n} rows is {found['value']:.12g}, which differs by {gap:.2g}")
    return {**found, "gap": gap}


def plain(way: str) -> str:
    """The implementation that a way is compared with."""
    return PLAIN_GRADIENT if way.endswith(GRADIENT) else STEPS


def times_less(kept: Kept, way: str, need: str) -> np.ndarray:
    """How many times as much the plain implementation needs, at the same number of rows: its median, by each sample."""
    return np.asarray(np.median(kept.where(way=plain(way), n=ROWS)[need]) / kept.where(way=way, n=ROWS)[need])


def answer(kept: Kept) -> str:
    def beside(way: str) -> str:
        time, memory = (100 / np.median(times_less(kept, way, need)) for need in ("cpu", "memory"))
        return f"{time:.2g} % of the CPU time and {memory:.2g} % of the memory"

    cpu = {n: float(np.median(kept.where(way=NUMPY, n=n)["cpu"])) for n in SIZES[NUMPY]}
    least = float(np.median(kept.where(way=FLOOR)["cpu"]))
    few, many = min(cpu), max(cpu)
    same = [way for way in WAYS if way not in OTHERS]
    double, single = (
        max(float(kept.where(way=way)["gap"].max()) for way in same if number_format(way) == kind) for kind in APART
    )
    return (
        f"At {ROWS:,} rows `calibration_error` needs {beside(NUMPY)} of the formula step by step. It takes "
        f"{cpu[ROWS] / least:.2f} times as long as products and exponentials alone. `dirichlet_kernel_error` with its "
        f"gradient needs {beside(OURS_GRADIENT)} of the formula in place. From {few:,} to {many:,} rows the time of "
        f"`calibration_error` grows with N to the power of {np.log(cpu[many] / cpu[few]) / np.log(many / few):.2f}. "
        f"Errors of the same rows agree to {double:.1g}, or {single:.1g} in float32."
    )


def picture(kept: Kept) -> Figure:
    series = {
        name: [(float(np.median(times_less(kept, way, need))), float("nan")) for way in WAYS]
        for need, name in (("cpu", "CPU time"), ("memory", "memory"))
    }
    return dots(WAYS, series, "needs of step by step (gradients: in place) divided by those of this", aim=1, log=True)


def page(kept: Kept) -> Iterator[str]:
    rows = []
    for way, sizes in SIZES.items():
        for n in sizes:
            cpu, memory = (float(np.median(kept.where(way=way, n=n)[need])) for need in ("cpu", "memory"))
            faster = f"{np.median(times_less(kept, way, 'cpu')):.3g}" if n == ROWS else ""
            rows.append((way, f"{n:,}", f"{cpu:.3f}", f"{memory:,.0f}", faster))
    yield from table(("way", "rows", "CPU s", "MiB", "times faster"), rows)
    yield ""
    yield "The table gives medians. *MiB* is memory beyond the inputs. *times faster* is relative to *step by step*,"
    yield "for gradients to *in place*."


EXPERIMENT = Experiment(
    MODULE,
    {"way": [*SIZES], "n": sorted({n for sizes in SIZES.values() for n in sizes})},
    sample,
    answer,
    page,
    picture,
    repetitions=7,
    quick=1,
    timed=("cpu", "wall", "memory", "gap"),
    some=lambda way, n: n in SIZES[way],
    portion=lambda way, n: 3 / 7 if way in (STEPS, CLASS_BY_CLASS, PLAIN_GRADIENT) or n == 50_000 else 1.0,
    needs=("torch",),
    here=lambda way, n: way == NUMPY and n == 2500,
    packages=("torch",),
)

if __name__ == "__main__":
    EXPERIMENT.main()
