"""Calibrators against peers from PyPI: CPU seconds of a fit, taking turns, and whether both give the same.

    OMP_NUM_THREADS=1 python -m benchmarks.speed.calibrators [--rounds 5] [--only NAME]

Needs `pip install torch==2.13.0 netcal==1.4.0 betacal==1.1.0 venn-abers==1.5.4 scikit-learn==1.9.1`, and
`pip install --no-deps probmetrics==1.3.0 pytorch-minimize torch-uncertainty==0.13.0 && pip install numba tqdm`. A case
is a peer, our calibrator set to the peer's conventions, and what is compared: the largest difference of probabilities
on the rows of the fit, or the objective reached (mean log-loss and penalty) where the peer stops before its optimum
(ours less the peer's: not above 0). `--write FILE` writes the table as Markdown.
"""

import logging
import statistics
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time

import numpy as np

from calibrant import calibrators as c
from calibrant.data.writing import write_text

from .. import arguments


@dataclass(frozen=True)
class Fitted:
    """Probabilities of the rows of the fit, and the penalty that was minimised beside the mean log-loss."""

    predict: Callable[[], np.ndarray]
    penalty: float = 0.0


Fit = Callable[[], Fitted]


@dataclass(frozen=True)
class Case:
    """Ours and a peer's: each fits, and gives what predicts."""

    name: str
    ours: Fit
    peer: Fit
    labels: np.ndarray
    #: Largest difference of probabilities, or None where log-losses are compared.
    close: float | None
    bar: float


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


def ours(calibrator: c.Calibrator, s: np.ndarray, y: np.ndarray) -> Fit:
    """A fit of ours."""

    def fit() -> Fitted:
        fitted = calibrator.fit(s, y)
        return Fitted(lambda: fitted.predict_proba(s))

    return fit


def isotonic() -> Case:
    from netcal.binning import IsotonicRegression

    s, y = binary(1_000_000)

    def peer() -> Fitted:
        fitted = IsotonicRegression().fit(s, y)
        return Fitted(lambda: np.column_stack([1 - (p := fitted.transform(s)), p]))

    return Case("isotonic 10⁶ | netcal", ours(c.IsotonicCalibrator(), s, y), peer, y, 1e-9, 1.0)


def beta() -> Case:
    from betacal import BetaCalibration

    s, y = binary(100_000)

    def peer() -> Fitted:
        fitted = BetaCalibration("abm").fit(s.reshape(-1, 1), y)
        return Fitted(lambda: np.column_stack([1 - (p := fitted.predict(s.reshape(-1, 1))), p]))

    # The peer penalises its coefficients slightly (scikit-learn's C = 99999999).
    return Case("beta 10⁵ | betacal", ours(c.BetaCalibration(), s, y), peer, y, 1e-3, 0.5)


def venn_abers() -> Case:
    from venn_abers import VennAbers

    s, y = binary(10_000)
    both = np.column_stack([1 - s, s])

    def peer() -> Fitted:
        fitted = VennAbers()
        fitted.fit(both, y)
        return Fitted(lambda: fitted.predict_proba(both)[0])

    # The peer rounds scores to a precision of its own where it is told to: here it is not.
    return Case("Venn-Abers 10⁴ | venn-abers", ours(c.VennAbers(), s, y), peer, y, 1e-6, 1.0)


def temperature(peer_name: str) -> Case:
    s, y = several(100_000, 100)
    if peer_name == "probmetrics":
        from probmetrics.calibrators import TemperatureScalingCalibrator

        def peer() -> Fitted:
            fitted = TemperatureScalingCalibrator().fit(s, y)
            return Fitted(lambda: fitted.predict_proba(s))

    else:
        from sklearn.calibration import _TemperatureScaling

        logits = np.log(s)

        def peer() -> Fitted:
            fitted = _TemperatureScaling().fit(logits, y)
            return Fitted(lambda: fitted.predict(logits))

    return Case(f"temperature 10⁵ × 100 | {peer_name}", ours(c.TemperatureScaling(), s, y), peer, y, None, 0.33)


def linear(kind: str) -> Case:
    import probmetrics.calibrators as peers

    s, y = several(10_000, 10)

    def peer() -> Fitted:
        fitted = getattr(peers, f"{kind.title()}ScalingCalibrator")().fit(s, y)
        return Fitted(lambda: fitted.predict_proba(s))

    mine = c.VectorScaling(0) if kind == "vector" else c.MatrixScaling(0)
    return Case(f"{kind} 10⁴ × 10 | probmetrics", ours(mine, s, y), peer, y, None, 0.7)


def dirichlet() -> Case:
    """ODIR with λ = μ = 1e-3: the same objective in both."""
    import importlib
    import importlib.util
    import sys
    import types

    # The package imports torchvision, which has no build for this torch without CUDA: its modules are loaded alone.
    for name in (
        "torch_uncertainty",
        "torch_uncertainty.post_processing",
        "torch_uncertainty.post_processing.calibration",
    ):
        package = types.ModuleType(name)
        found = importlib.util.find_spec(name) if "." not in name else None
        parent = sys.modules.get(name.rpartition(".")[0])
        package.__path__ = (
            list(found.submodule_search_locations) if found else [f"{parent.__path__[0]}/{name.rpartition('.')[2]}"]
        )
        sys.modules[name] = package
    processing = sys.modules["torch_uncertainty.post_processing"]
    processing.PostProcessing = importlib.import_module("torch_uncertainty.post_processing.abstract").PostProcessing
    scaler = importlib.import_module("torch_uncertainty.post_processing.calibration.dirichlet_scaler").DirichletScaler
    import torch

    s, y = several(10_000, 10)
    logits, target = torch.from_numpy(np.log(s)), torch.from_numpy(y)

    def penalty(w: np.ndarray, b: np.ndarray) -> float:
        return float(1e-3 * ((w**2).sum() - (np.diag(w) ** 2).sum()) / 90 + 1e-3 * (b**2).mean())

    def peer() -> Fitted:
        one = scaler(10, lambda_reg=1e-3, mu_reg=1e-3).double()
        one.fit([(logits, target)], progress=False)
        w, b = (v.detach().numpy() for v in one.inv_temperature)
        return Fitted(lambda: torch.softmax(one(logits), dim=1).detach().numpy(), penalty(w, b))

    def mine() -> Fitted:
        one = c.DirichletCalibration("odir", 1e-3).fit(s, y)
        return Fitted(lambda: one.predict_proba(s), penalty(one.coef_, one.intercept_))

    return Case("Dirichlet, ODIR 10⁴ × 10 | torch-uncertainty", mine, peer, y, None, 0.2)


CASES: dict[str, Callable[[], Case]] = {
    "isotonic": isotonic,
    "beta": beta,
    "venn-abers": venn_abers,
    "temperature": lambda: temperature("probmetrics"),
    "temperature-sklearn": lambda: temperature("scikit-learn"),
    "vector": lambda: linear("vector"),
    "matrix": lambda: linear("matrix"),
    "dirichlet": dirichlet,
}


def log_loss(p: np.ndarray, y: np.ndarray) -> float:
    return -float(np.log(p[np.arange(len(y)), y].clip(1e-300)).mean())


def main() -> None:
    parser = arguments.parser(__doc__, rounds=5, write=True)
    parser.add_argument("--only", choices=list(CASES))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    print(f"{'case':<46} {'ours':>9} {'peer':>9} {'ratio':>6} {'bar':>5}  same?")
    rows = []
    for name in [options.only] if options.only else CASES:
        case = CASES[name]()
        times: dict[str, list[float]] = {"ours": [], "peer": []}
        fitted: dict[str, Fitted] = {}
        for _ in range(options.rounds):
            for who, fit in (("ours", case.ours), ("peer", case.peer)):
                fit()  # not timed: it imports, compiles, and takes memory back that the other one gave away
                start = process_time()
                fitted[who] = fit()
                times[who].append(process_time() - start)
        mine, theirs = (np.asarray(fitted[who].predict(), dtype=np.float64) for who in ("ours", "peer"))
        if case.close is None:
            gap = log_loss(mine, case.labels) + fitted["ours"].penalty
            gap -= log_loss(theirs, case.labels) + fitted["peer"].penalty
            assert gap < 1e-8, (case.name, gap)
            same = f"objective {gap:+.1e}"
        else:
            gap = float(np.abs(mine - theirs).max())
            assert gap < case.close, (case.name, gap)
            same = f"differ by {gap:.1e}"
        a, b = (statistics.median(times[who]) for who in ("ours", "peer"))
        print(f"{case.name:<46} {a:8.4f}s {b:8.4f}s {a / b:6.2f} {case.bar:5.2f}  {same}", flush=True)
        rows.append(
            f"| {case.name.replace(' | ', ' against ')} | {a:.4f} | {b:.4f} | {a / b:.2f} | {case.bar:g} | {same} |"
        )
    if options.write is not None:
        write_text(options.write, PAGE.format(rounds=options.rounds, rows="\n".join(rows)))


PAGE = """# Calibrators against other libraries

Written by `OMP_NUM_THREADS=1 python -m benchmarks.speed.calibrators --rounds {rounds} --write
benchmarks/speed/calibrators.md`,
which says what to install. Median CPU seconds of a fit, both in one process, taking turns (each fits once before the
fit that is timed); “same” is the largest
difference of probabilities on the rows of the fit, or our objective less the peer's where the peer stops before its
optimum.

| case | ours [s] | peer [s] | ratio | wanted | same |
|---|---|---|---|---|---|
{rows}
"""


if __name__ == "__main__":
    main()
