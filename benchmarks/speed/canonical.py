"""Canonical calibration error: time and memory against plain N × N implementations in torch.

    python -m benchmarks.speed.canonical [--threads 1] [--budget 10] [--write benchmarks/speed/canonical.md]

Needs `pip install torch==2.13.0`. Every case runs in a process of its own: seconds are medians of repeated calls, and
memory is the peak of private pages during a call beyond those before it. All implementations must give the same number.
"Step by step" is written as the formula is printed, every step a matrix, as the published code does; "in place" spares
every copy that it can.
"""

from __future__ import annotations

import datetime
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

from calibrant.data.writing import write_text

from .. import arguments

H = 0.05


def sample(n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logits, their softmax and labels."""
    rng = np.random.default_rng(0)
    z = 1.5 * rng.normal(size=(n, k))
    p = np.exp(z - np.logaddexp.reduce(z, axis=1)[:, None])
    return z, p, (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)


def plain(logits, target, k):
    """The estimator as published, with N × N matrices."""
    import torch

    logs = torch.log_softmax(logits, dim=1)
    f = logs.exp()
    log_k = logs @ (f / H).T - torch.lgamma(f / H + 1).sum(dim=1)
    log_k.fill_diagonal_(-torch.inf) if not log_k.requires_grad else None
    if log_k.requires_grad:
        log_k = log_k.masked_fill(torch.eye(len(f), dtype=torch.bool), -torch.inf)
    weight = torch.softmax(log_k, dim=1)
    expected = weight @ torch.nn.functional.one_hot(target, k).to(f.dtype)
    return (expected - f).abs().sum(dim=1).mean()


def step_by_step(logits, target, k):
    """The same as one writes it down, every step a matrix: what the published code does."""
    import torch

    f = torch.softmax(logits, dim=1)
    alpha = f / H + 1
    log_beta = torch.lgamma(alpha).sum(dim=1) - torch.lgamma(alpha.sum(dim=1))
    log_k = torch.log(f) @ (alpha - 1).T - log_beta
    log_k = log_k + torch.diag(torch.full((len(f),), torch.finfo(f.dtype).min, dtype=f.dtype))
    kernel = torch.exp(log_k)
    expected = kernel @ torch.nn.functional.one_hot(target, k).to(f.dtype) / kernel.sum(dim=1, keepdim=True)
    return (expected - f).abs().sum(dim=1).mean()


def by_class(logits, target, k):
    """The same with a log-sum-exp over N × N for every class, which needs no care for small kernels."""
    import torch

    logs = torch.log_softmax(logits, dim=1)
    f = logs.exp()
    log_k = logs @ (f / H).T - torch.lgamma(f / H + 1).sum(dim=1)
    log_k = log_k.masked_fill(torch.eye(len(f), dtype=torch.bool), -torch.inf)
    whole = torch.logsumexp(log_k, dim=1)
    log_y = torch.nn.functional.one_hot(target, k).to(f.dtype).log()
    total = 0.0
    for c in range(k):
        expected = (torch.logsumexp(log_k + log_y[:, c], dim=1) - whole).exp()
        total = total + (expected - f[:, c]).abs()
    return total.mean()


def floor(p: np.ndarray) -> float:
    """What no exact program can do without: product, exponential and sum for every pair, in tiles that stay cached."""
    logs, right = np.log(p), np.ascontiguousarray((p / H).T)
    rows = 1 << 6
    block = 1 << 10
    tile, total = np.empty((rows, block)), 0.0
    for a in range(0, len(p), rows):
        for b in range(0, len(p), block):
            some = tile[: min(rows, len(p) - a), : min(block, len(p) - b)]
            np.matmul(logs[a : a + rows], right[:, b : b + block], out=some)
            np.exp(some, out=some)
            total += float(some.sum())
    return total


def case(name: str, n: int, k: int):
    """What a case calls."""
    z, p, y = sample(n, k)
    kind, _, detail = name.partition(" ")
    if kind == "floor:":
        return lambda: floor(p)
    if kind == "numpy":
        import calibrant as cal

        notion, _, variant = detail.partition(" ")
        estimator = cal.estimators.DirichletKernel(H)
        if variant == "cross":
            estimator = cal.estimators.DirichletKernel(H, "query", "cross", residual=True)
        return lambda: cal.calibration_error(y, p, notion=notion, estimator=estimator)
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    dtype = torch.float64 if "float64" in detail else torch.float32
    logits, target = torch.tensor(z, dtype=dtype), torch.tensor(y)
    if kind == "torch":
        from calibrant.torch.functional import dirichlet_kernel_error

        def error(x):
            return dirichlet_kernel_error(x, target, H)
    else:

        def error(x):
            how = by_class if "class by class" in detail else step_by_step if "step by step" in detail else plain
            return how(x, target, k)

    def forward():
        with torch.no_grad():
            return error(logits).item()

    def both():
        x = logits.clone().requires_grad_()
        loss = error(x)
        loss.backward()
        return loss.item()

    return both if "backward" in detail else forward


def private_pages() -> float:
    """Private memory of this process in MB (Linux)."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024


def measure(name: str, n: int, k: int, budget: float) -> dict[str, float]:
    """Value, seconds and extra memory of a case, in this process."""
    call = case(name, n, k)
    small = case(name, 200, k)
    small()  # imports and thread pools
    before, peak, stop = private_pages(), [0.0], threading.Event()

    def watch() -> None:
        while not stop.is_set():
            peak[0] = max(peak[0], private_pages())
            time.sleep(0.002)

    thread = threading.Thread(target=watch)
    thread.start()
    value, *first = timed(call)
    stop.set()
    thread.join()
    times = [first]
    while sum(wall for wall, _ in times) < budget and len(times) < 15:
        times.append(timed(call)[1:])
    wall, cpu = (statistics.median(each) for each in zip(*times, strict=True))
    return {"value": value, "wall": wall, "cpu": cpu, "memory": peak[0] - before}


def timed(call) -> tuple[float, float, float]:
    """What a call returns, and its seconds by the wall and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = call()
    return value, time.perf_counter() - wall, time.process_time() - cpu


CASES = [
    ("N × N float64, step by step", 10_000, 10),
    ("N × N float64, in place", 10_000, 10),
    ("N × N float64, class by class", 10_000, 10),
    ("N × N float32, step by step", 10_000, 10),
    ("N × N float32, in place", 10_000, 10),
    ("numpy canonical", 10_000, 10),
    ("floor: products and exponentials alone", 10_000, 10),
    ("torch float64", 10_000, 10),
    ("torch float32", 10_000, 10),
    ("N × N float64, in place, forward+backward", 10_000, 10),
    ("torch float64, forward+backward", 10_000, 10),
    ("torch float32, forward+backward", 10_000, 10),
    ("numpy canonical cross", 10_000, 10),
    *(("numpy canonical", n, 10) for n in (2500, 5000, 20_000, 50_000)),
    ("numpy classwise", 1_000_000, 10),
    ("numpy confidence", 1_000_000, 10),
]


REMARK = """# Canonical calibration error: time and memory

Written by `python -m benchmarks.speed.canonical --threads {threads} --write benchmarks/speed/canonical.md` on
{day}: {cores} cores,
{threads} thread(s), numpy {numpy}, torch {torch}. L1 error, K = 10, h = 0.05, normal logits; medians of repeated calls,
each case in a process of its own. *Memory* is what a call needs beyond its inputs. All of one N give the same number
(1e-9 apart at most, 2e-4 in float32). "Step by step" is the formula as printed, every step a matrix, as the published
code does; "in place" spares every copy that it can; "class by class" stays in logarithms. "numpy" is
`calibration_error(..., estimator=DirichletKernel(0.05))`, "cross" the kernel of the default for squares, and "torch"
`calibrant.torch.functional.dirichlet_kernel_error`. "Floor" is one product, exponential and sum for every pair of rows,
in tiles, and no estimate: what any exact program on this core costs at least. Ratios are to "N × N float64, step by
step" at N = 10 000.

| case | N | wall, s | CPU, s | memory, MB | value | times faster |
|---|--:|--:|--:|--:|--:|--:|
"""


def main() -> None:
    parser = arguments.parser(__doc__)
    parser.add_argument("--budget", type=float, default=8.0, help="seconds a case may be repeated for")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--only", nargs=3, metavar=("NAME", "N", "K"))
    options = parser.parse_args()
    if options.only:
        name, n, k = options.only
        print(json.dumps(measure(name, int(n), int(k), options.budget)))
        return
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(options.threads))
    known: dict[tuple[int, int], float] = {}
    lines, slowest = [], 0.0
    for name, n, k in CASES:
        command = [
            sys.executable,
            "-m",
            "benchmarks.speed.canonical",
            "--budget",
            str(options.budget),
            "--only",
            name,
            str(n),
            str(k),
        ]
        done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        if "cross" not in name and not name.startswith(("numpy classwise", "numpy confidence", "floor")):
            expected = known.setdefault((n, k), found["value"])
            close = 2e-4 if "float32" in name else 1e-9
            assert abs(found["value"] - expected) < close, (name, found["value"], expected)
        slowest = slowest or found["wall"]
        times = f"{slowest / found['wall']:.1f}" if n == 10_000 and "backward" not in name else ""
        lines.append(
            f"| {name} | {n:,} | {found['wall']:.3f} | {found['cpu']:.3f} | {found['memory']:.0f} "
            f"| {found['value']:.9f} | {times} |"
        )
        print(lines[-1], flush=True)
    if options.write:
        from importlib.metadata import version

        about = {"threads": options.threads, "day": datetime.date.today(), "cores": os.cpu_count()}
        text = REMARK.format(**about, numpy=version("numpy"), torch=version("torch"))
        write_text(Path(options.write), text + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
