"""Which calibrators repair public networks best?

    python -m benchmarks.arena.build --predictions --only .given --given FOLDER
    python -m benchmarks.real.repair_networks [--repetitions 20]

Softmax outputs of a wide ResNet 16×4 and LeNet-5 on CIFAR-10 and of DenseNet-BC 100 on CIFAR-100, 10,000 test rows
each (examples of [calibration-framework](https://github.com/EFS-OpenSource/calibration-framework)). Calibrators are
fitted on a random half and judged on the other, with the same splits for all. FOLDER holds the outputs, which are not
in this repository, in files such as `cifar10_lenet5.npz`: `y_prob` (10,000, K) and `y_true`. Splits share rows, so ±
is a standard deviation over splits, not a standard error. `auto` is `AutoCalibrator()`, *one choice* the same with
`rule="one-standard-error"`, and *OvR* one class against the rest. DenseNet has a quarter of the splits, and there the
slowest method, Dirichlet calibration, has two.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
from collections.abc import Iterator
from functools import partial
from time import process_time

import numpy as np
from matplotlib.figure import Figure

import calibrant as cal
from calibrant import calibrators as c

from ..arena.reported import here, read
from ..charts import dots
from ..experiment import Experiment, wrapped
from ..markdown import table
from ..provenance import Kept

NETWORKS = {"ResNet": "cifar10_wideresnet16x4", "LeNet": "cifar10_lenet5", "DenseNet": "cifar100_densenet_bc100"}
METHODS = {
    "none": c.Identity,
    "temperature": c.TemperatureScaling,
    "ensemble temperature": c.EnsembleTemperatureScaling,
    "vector, as published": partial(c.VectorScaling, 0),
    "vector": c.VectorScaling,
    "matrix": c.MatrixScaling,
    "Dirichlet, ODIR 1": partial(c.DirichletCalibration, "odir", 1.0),
    "isotonic, OvR": lambda **given: c.OneVsRest(c.IsotonicCalibrator(), **given),
    "beta, OvR": lambda **given: c.OneVsRest(c.BetaCalibration(), **given),
    "histogram, OvR": lambda **given: c.OneVsRest(c.HistogramBinning(15), **given),
    "auto": c.AutoCalibrator,
    "auto, one choice": partial(c.AutoCalibrator, rule="one-standard-error"),
}
#: What takes longest with a hundred classes has fewer splits there.
SLOW, SLOW_SPLITS = ("DenseNet", "Dirichlet, ODIR 1"), 2


def sample(network: str, seed: int) -> dict[str, float]:
    """Scores of every method on one split."""
    one = read(NETWORKS[network], "given", truths=False)
    p, y = one.y_prob.astype(np.float64), one.y_true
    p /= p.sum(axis=1, keepdims=True)
    order = np.random.default_rng([seed, [*NETWORKS].index(network)]).permutation(len(y))
    fit, judged = order[: len(y) // 2], order[len(y) // 2 :]
    out = {}
    for name, make in METHODS.items():
        if (network, name) == SLOW and seed >= SLOW_SPLITS:
            continue
        start = process_time()
        fitted = make(labels=[*range(one.n_classes)]).fit(p[fit], y[fit])
        numbers = {"seconds": process_time() - start} | scores(fitted.predict_proba(p[judged]), y[judged])
        if name == "auto, one choice":
            numbers["matrix"] = float(fitted.chosen_ == "matrix")
        out |= {f"{name}: {what}": value for what, value in numbers.items()}
    return out


def scores(p: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Scores of one half."""
    own = p[np.arange(len(y)), y]
    given = {"labels": [*range(p.shape[1])]}
    return {
        "log-loss": -float(np.log(np.maximum(own, 1e-12)).mean()),
        "Brier": float(((p**2).sum(axis=1) - 2 * own + 1).mean()),
        "accuracy": float((p.argmax(axis=1) == y).mean()),
        "ECE, 15 bins": cal.expected_calibration_error(y, p, notion="confidence", **given),
        "error": cal.calibration_error(y, p, notion="confidence", **given),
        "class-wise error": cal.calibration_error(y, p, notion="classwise", **given),
    }


def answer(kept: Kept) -> str:
    loss, error, classwise = (
        {network: {name: _mean(kept, network, name, what) for name in METHODS} for network in NETWORKS}
        for what in ("log-loss", "error", "class-wise error")
    )
    above = {name: max(found[name] - min(found.values()) for found in loss.values()) for name in METHODS}
    behind = ", ".join(f"{above[name]:.4f} ({name})" for name in ("auto", "matrix", "vector", "temperature"))
    gaps = {network: _beside(kept, network, "auto") for network in NETWORKS}
    told = ", ".join(f"{_signed(gap.mean())} ± {gap.std():.4f} on {network}" for network, gap in gaps.items())
    lower = sum(int((gap < 0).sum()) for gap in gaps.values())
    worse = {name: [n for n in NETWORKS if loss[n][name] > loss[n]["none"]] for name in METHODS}
    harm = "; ".join(f"{name} on {', '.join(where)}" for name, where in worse.items() if where)
    return (
        f"The mean log-loss is lowest after {_lowest(loss)}. The calibration error is lowest after {_lowest(error)}, "
        f"and the class-wise error after {_lowest(classwise)}. The mean log-loss exceeds the lowest by up to "
        f"{behind}. The log-loss of `auto` minus that of temperature scaling is {told}, and negative in {lower} of "
        f"{sum(gap.size for gap in gaps.values())} splits. Log-loss is higher than without repair after "
        f"{harm or 'no method'}."
    )


def _lowest(found: dict[str, dict[str, float]]) -> str:
    """Methods with the networks on which they are best."""
    best = {network: min(numbers, key=numbers.__getitem__) for network, numbers in found.items()}
    return ", ".join(
        f"{name} ({', '.join(n for n in NETWORKS if best[n] == name)})" for name in METHODS if name in best.values()
    )


def picture(kept: Kept) -> Figure:
    names = [name for name in METHODS if name != "temperature"]
    series = {}
    for network in NETWORKS:
        base = kept.where(network=network)["temperature: log-loss"]
        ratios = [kept.where(network=network)[f"{name}: log-loss"] / base for name in names]
        series[network] = [(float(np.nanmean(one)), float(np.nanstd(one)) / 2) for one in ratios]
    return dots(names, series, "log-loss, as a ratio to that of temperature scaling (± a standard deviation)", 1.0)


def page(kept: Kept) -> Iterator[str]:
    choices = kept["auto, one choice: matrix"]
    yield from wrapped(
        "The table gives mean log-loss and calibration error (confidence, default estimator) on the judged half, and "
        "for DenseNet's 100 classes accuracy in per cent (*right*) and CPU seconds of a fit (*s*). *One choice* takes "
        f"matrix scaling in {int(choices.sum())} of {choices.size} splits."
    ).split("\n")
    yield ""
    head = ("method", *(name for network in NETWORKS for name in (network, "error")), "right", "s")
    yield from table(head, _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for name in METHODS:
        cells = [f"{_mean(kept, network, name, what):.4f}" for network in NETWORKS for what in ("log-loss", "error")]
        right, seconds = (_mean(kept, SLOW[0], name, what) for what in ("accuracy", "seconds"))
        short = name.replace("ensemble temperature", "ensemble temp.").replace("as published", "published")
        yield [short, *cells, f"{100 * right:.1f}", f"{seconds:.1f}"]


def _mean(kept: Kept, network: str, name: str, what: str) -> float:
    return float(np.nanmean(kept.where(network=network)[f"{name}: {what}"]))


def _beside(kept: Kept, network: str, name: str) -> np.ndarray:
    """Log-loss minus that of temperature scaling, by split."""
    some = kept.where(network=network)
    return some[f"{name}: log-loss"] - some["temperature: log-loss"]


def _signed(value: float) -> str:
    return f"{value:+.4f}".replace("-", "−")


EXPERIMENT = Experiment(
    __spec__.name,
    {"network": NETWORKS},
    sample,
    answer,
    page,
    picture,
    repetitions=20,
    quick=1,
    timed=[f"{name}: seconds" for name in METHODS],
    portion=lambda network: 0.25 if network == SLOW[0] else 1.0,
    here=lambda network: here(NETWORKS[network], "given", truths=False),
    at="docs/repair.md",
)

if __name__ == "__main__":
    EXPERIMENT.main()
