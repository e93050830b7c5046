"""How long do fits of calibrators take compared with those of other libraries?

    pip install torch==2.13.0 netcal betacal venn-abers
    pip install --no-deps probmetrics pytorch-minimize torch-uncertainty && pip install numba tqdm
    OMP_NUM_THREADS=1 python -m benchmarks.speed.calibrators [--repetitions 15] [--only TEXT]

Fits run in one thread, in turns. Our calibrators use the peer's conventions and predict the same: probabilities of the
fitted rows agree to 1e-9 (isotonic), 1e-6 (Venn-Abers) or 1e-3 (beta, where the peer penalises coefficients slightly).
Other peers stop before their optimum; there our objective, mean log-loss plus penalty, is no higher. Outcomes have 0.7
times the log odds of binary scores; scores of several classes are twice as sharp as their labels.
"""

from __future__ import annotations

from . import one_thread  # noqa: F401 - before NumPy

# isort: split
import importlib
import importlib.util
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant import calibrators as c

from . import race
from .race import Peer, Work


@dataclass(frozen=True)
class Fitted:
    """Probabilities of the fitted rows, and the objective: mean log-loss and the penalty that was minimised with it."""

    predict: Callable[[], np.ndarray]
    labels: np.ndarray
    penalty: float = 0.0

    @property
    def objective(self) -> float:
        p = np.asarray(self.predict(), dtype=np.float64)
        return -float(np.log(p[np.arange(len(p)), self.labels].clip(1e-300)).mean()) + self.penalty


def binary(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores and outcomes whose log odds are 0.7 times those of the scores."""
    rng = np.random.default_rng(0)
    s = rng.beta(0.9, 0.7, n).clip(1e-6, 1 - 1e-6)
    return s, (rng.random(n) < 1 / (1 + (1 / s - 1) ** 0.7)).astype(int)


def several(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Probability vectors, twice as sharp as their labels."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, k)) * 1.5
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    q = p**2
    return q / q.sum(axis=1, keepdims=True), y


def two(p: np.ndarray) -> np.ndarray:
    """Both columns of a positive class."""
    return np.column_stack([1 - p, p])


def ours(calibrator: c.Calibrator) -> Callable[..., Fitted]:
    """A fit of ours."""

    def fit(s: np.ndarray, y: np.ndarray) -> Fitted:
        fitted = calibrator.fit(s, y)
        return Fitted(lambda: fitted.predict_proba(s), y)

    return fit


def our_dirichlet(s: np.ndarray, y: np.ndarray) -> Fitted:
    one = c.DirichletCalibration("odir", 1e-3, shrinkage=0).fit(s, y)
    return Fitted(lambda: one.predict_proba(s), y, odir(one.coef_, one.intercept_))


def odir(w: np.ndarray, b: np.ndarray) -> float:
    """The penalty of off-diagonal weights and intercepts, λ = μ = 1e-3."""
    k = len(b)
    return float(1e-3 * ((w**2).sum() - (np.diag(w) ** 2).sum()) / (k * (k - 1)) + 1e-3 * (b**2).mean())


def netcal(s: np.ndarray, y: np.ndarray) -> Fitted:
    from netcal.binning import IsotonicRegression

    fitted = IsotonicRegression().fit(s, y)
    return Fitted(lambda: two(fitted.transform(s)), y)


def betacal(s: np.ndarray, y: np.ndarray) -> Fitted:
    from betacal import BetaCalibration

    fitted = BetaCalibration("abm").fit(s.reshape(-1, 1), y)
    return Fitted(lambda: two(fitted.predict(s.reshape(-1, 1))), y)


def venn_abers(s: np.ndarray, y: np.ndarray) -> Fitted:
    from venn_abers import VennAbers

    fitted = VennAbers()
    fitted.fit(two(s), y)
    return Fitted(lambda: fitted.predict_proba(two(s))[0], y)


def sklearn(s: np.ndarray, y: np.ndarray) -> Fitted:
    from sklearn.calibration import _TemperatureScaling

    logits = np.log(s)
    fitted = _TemperatureScaling().fit(logits, y)
    return Fitted(lambda: fitted.predict(logits), y)


def probmetrics(kind: str) -> Callable[..., Fitted]:
    def fit(s: np.ndarray, y: np.ndarray) -> Fitted:
        fitted = getattr(importlib.import_module("probmetrics.calibrators"), f"{kind}ScalingCalibrator")().fit(s, y)
        return Fitted(lambda: fitted.predict_proba(s), y)

    return fit


def torch_uncertainty(s: np.ndarray, y: np.ndarray) -> Fitted:
    """ODIR with λ = μ = 1e-3: our objective."""
    import torch

    logits, target = torch.from_numpy(np.log(s)), torch.from_numpy(y)
    one = dirichlet_scaler()(s.shape[1], lambda_reg=1e-3, mu_reg=1e-3).double()
    one.fit([(logits, target)], progress=False)
    w, b = (v.detach().numpy() for v in one.inv_temperature)
    return Fitted(lambda: torch.softmax(one(logits), dim=1).detach().numpy(), y, odir(w, b))


def dirichlet_scaler() -> Any:
    """The peer's module alone: the package imports torchvision, which has no build for this torch without CUDA."""
    name = "torch_uncertainty.post_processing.calibration"
    if name not in sys.modules:
        found = importlib.util.find_spec("torch_uncertainty")
        assert found is not None
        path = next(iter(found.submodule_search_locations or []))
        for depth in (1, 2, 3):
            part = ".".join(name.split(".")[:depth])
            sys.modules[part] = package = types.ModuleType(part)
            package.__path__ = ["/".join([path, *name.split(".")[1:depth]])]
        processing: Any = sys.modules["torch_uncertainty.post_processing"]
        processing.PostProcessing = importlib.import_module(f"{processing.__name__}.abstract").PostProcessing
    return importlib.import_module(f"{name}.dirichlet_scaler").DirichletScaler


def probabilities(ours: Fitted, theirs: Fitted) -> float:
    """The largest difference of predicted probabilities."""
    return race.distance(ours.predict(), theirs.predict())


def objectives(ours: Fitted, theirs: Fitted) -> float:
    """By how much our objective is the higher one."""
    return ours.objective - theirs.objective


def work(
    make: Callable[..., Any],
    size: tuple[int, ...],
    ours: Callable[..., Fitted],
    wanted: float,
    gap: Callable[[Fitted, Fitted], float],
    quick: bool = False,
    **peers: Peer,
) -> Work:
    """A fit of rows that are made in this size."""
    named = {name.replace("_", "-"): peer for name, peer in peers.items()}
    return Work(lambda: make(*size), ours, named, wanted, gap, lambda fitted: fitted.objective, quick)


#: No higher, but for rounding.
LOWER = 1e-8
PROBMETRICS = {name: Peer(probmetrics(name), "probmetrics", LOWER) for name in ("Temperature", "Vector", "Matrix")}
WORKS = {
    "isotonic, 10⁶ rows": work(
        binary, (1_000_000,), ours(c.IsotonicCalibrator(clip=None)), 1, probabilities, netcal=Peer(netcal, "netcal")),
    "beta, 10⁵ rows": work(
        binary, (100_000,), ours(c.BetaCalibration(shrinkage=0)), 0.5, probabilities,
        betacal=Peer(betacal, "betacal", 1e-3)),
    "Venn-Abers, 10⁴ rows": work(
        binary, (10_000,), ours(c.VennAbers()), 1, probabilities, venn_abers=Peer(venn_abers, "venn_abers", 1e-6)),
    "temperature, 10⁵ × 100": work(
        several, (100_000, 100), ours(c.TemperatureScaling(shrinkage=0)), 0.33, objectives,
        probmetrics=PROBMETRICS["Temperature"], scikit_learn=Peer(sklearn, "sklearn", LOWER)),
    "temperature, 10⁴ × 10": work(
        several, (10_000, 10), ours(c.TemperatureScaling(shrinkage=0)), 0.33, objectives, True,
        probmetrics=PROBMETRICS["Temperature"], scikit_learn=Peer(sklearn, "sklearn", LOWER)),
    "vector, 10⁴ × 10": work(
        several, (10_000, 10), ours(c.VectorScaling(0)), 0.7, objectives, probmetrics=PROBMETRICS["Vector"]),
    "matrix, 10⁴ × 10": work(
        several, (10_000, 10), ours(c.MatrixScaling(0)), 0.7, objectives, probmetrics=PROBMETRICS["Matrix"]),
    "Dirichlet, ODIR, 10⁴ × 10": work(
        several, (10_000, 10), our_dirichlet, 0.2, objectives,
        torch_uncertainty=Peer(torch_uncertainty, "torch_uncertainty", LOWER)),
}  # fmt: skip


def sample(work: str, peer: str, seed: int) -> dict[str, float]:
    return race.turn(WORKS[work], peer, seed)


EXPERIMENT = race.experiment(__spec__.name, WORKS, sample)

if __name__ == "__main__":
    EXPERIMENT.main()
