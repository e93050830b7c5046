r"""Stage 1: the hold-out pool of one score distribution, kept as evaluation rows and as sums that give its true errors.

A score is the model's probability rounded to float32: that rounding is part of the definition of the score, for the
truths as for the evaluation sets.

A truth is a calibration error computed from the sums of a pool. The mean gap of bin b is known up to noise: a pool of
2·10⁶ rows has about a thousand rows per bin, and among rows with one score the posterior η may range from 0 to 1. The
plain plug-in ``Σ_b |Σ (η - s)| / n`` therefore has a noise floor of its own, for a weak model hardly below that of
labels (its truth may be a half too high). Three truths are kept:

``truth``
    Norm 1: ``Σ_b sign_b · Σ (η - s) / n``, with the sign of a bin found in the other half of the pool. Its expectation
    never exceeds the error of the binned score, and equals it if the signs are right; a sign is estimated from
    the bin itself and then, while it is in doubt, from ever wider neighbourhoods. Norm 2: the unbiased square
    ``Σ_b (S_b² - Q_b) / (n_b - 1) / n`` of sums S and sums of squares Q.
``posterior_truth``
    The plain plug-in from the posterior.
``label_truth``
    The plain plug-in from labels, as published.

References
----------
Posocco & Bonnefoy (2021), §5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..data.types import AnyArray, FloatArray, IntArray
from .config import Config, Distribution
from .mixtures import ClassMixture, train, training_set

#: Number of bins over [0, 1] behind a truth, as published.
TRUTH_BINS = 2000
NOTIONS = ("confidence", "classwise")
NORMS = (1.0, 2.0)
# Standard deviations, in bins, of the neighbourhoods in which a sign is looked for, after the bin itself.
_WIDTHS = (2, 5, 15, 50)
# A sign is no longer in doubt at this many standard errors.
_CLEAR = 2.5
#: Rows of a pool drawn at a time. The draws depend on it: it is part of the experiment.
CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class TruthBins:
    """Sums over the pool in 2000 bins, for the C classes and then the confidence.

    Attributes
    ----------
    sums : ndarray of shape (2, C + 1, 2000, 4)
        For each half of the pool (alternate chunks): rows, ``Σ (η - s)``, ``Σ (η - s)²`` and ``Σ (o - s)`` of each
        bin, with η the posterior probability of the outcome, s the score and o the outcome.
    """

    sums: FloatArray

    @classmethod
    def empty(cls, n_classes: int) -> TruthBins:
        """Sums without rows."""
        return cls(np.zeros((2, n_classes + 1, TRUTH_BINS, 4)))

    def add(self, half: int, scores: FloatArray, posterior: FloatArray, labels: IntArray) -> None:
        """Add rows to one half: scores (n, C) float32, posterior (n, C), labels (n,)."""
        n, n_classes = scores.shape
        rows = np.arange(n)
        winner = scores.argmax(axis=1)
        for k in range(n_classes + 1):
            column: AnyArray = np.full(n, k) if k < n_classes else winner
            s = scores[rows, column].astype(np.float64)
            gap = posterior[rows, column] - s
            cell = np.minimum((s * TRUTH_BINS).astype(np.intp), TRUTH_BINS - 1)
            target = self.sums[half, k]
            target[:, 0] += np.bincount(cell, minlength=TRUTH_BINS)
            for i, values in enumerate((gap, gap * gap, (labels == column) - s), start=1):
                target[:, i] += np.bincount(cell, values, minlength=TRUTH_BINS)


@dataclass(frozen=True, eq=False)
class Pool:
    """The parts of a distribution's pool that later stages need.

    Attributes
    ----------
    scores : ndarray of shape (rows, C)
        Scores, float32.
    labels : ndarray of shape (rows,)
        Labels, uint8.
    truth : TruthBins
    """

    scores: FloatArray
    labels: IntArray
    truth: TruthBins


def mixture_of(config: Config, distribution: Distribution) -> ClassMixture:
    """The distribution's mixture."""
    low = 0.0 if config.mode == "corrected" else -1.0
    return ClassMixture.draw(
        distribution.classes, distribution.dimensions, config.rng_of_mixture(distribution), low=low
    )


def draw_pool(config: Config, distribution: Distribution) -> Pool:
    """Train the model, draw the pool and predict it, in chunks."""
    mixture = mixture_of(config, distribution)
    X, y = training_set(mixture, config.train_size, config.rng_of_training(distribution))
    predict = train(distribution.model, X, y, config.model_seed(distribution))
    rng = config.rng_of_pool(distribution)
    truth = TruthBins.empty(mixture.n_classes)
    scores = np.empty((config.rows, mixture.n_classes), dtype=np.float32)
    labels = np.empty(config.rows, dtype=np.uint8)
    chunk = min(CHUNK, -(-config.pool // 2))  # both halves of the pool must hold rows
    for number, a in enumerate(range(0, config.pool, chunk)):
        X, y = mixture.sample(min(chunk, config.pool - a), rng)
        p = predict(X).astype(np.float32)
        truth.add(number % 2, p, mixture.posterior(X), y)
        kept = max(0, min(len(p), config.rows - a))
        scores[a : a + kept], labels[a : a + kept] = p[:kept], y[:kept]
    return Pool(scores, labels, truth)


@dataclass(frozen=True)
class BinnedTruth:
    """Calibration error of a distribution: free of the noise of bins, and the two plain plug-ins."""

    truth: float
    posterior_truth: float
    label_truth: float


def truth_of(bins: TruthBins, notion: str, norm: float) -> BinnedTruth:
    """Truth of one notion and norm; classes combine as ``(mean of p-th powers)^(1/p)``."""
    n_classes = bins.sums.shape[1] - 1
    if not bins.sums[:, :, :, 0].sum(axis=(1, 2)).all():
        raise ValueError("the true error needs rows in both halves of the pool")
    problems = [n_classes] if notion == "confidence" else range(n_classes)
    powers = np.array([_powers(bins.sums[:, k], norm) for k in problems]).mean(axis=0)
    values = np.maximum(powers, 0.0) ** (1 / norm)
    return BinnedTruth(float(values[0]), float(values[1]), float(values[2]))


def _powers(halves: FloatArray, norm: float) -> tuple[float, float, float]:
    """p-th powers of the three truths of one problem, from its sums (2, bins, 4)."""
    both = halves.sum(axis=0)
    rows, gap, square, by_label = both.T
    n = rows.sum()
    if norm == 1:
        a, b = halves[:, :, 1]
        clean = (signs_of(halves[0]) @ b + signs_of(halves[1]) @ a) / n
        return float(clean), float(np.abs(gap).sum() / n), float(np.abs(by_label).sum() / n)
    if norm == 2:
        several = rows > 1
        pairs = (gap**2 - square)[several] / (rows[several] - 1)
        held = rows > 0
        plain, labels = ((sums[held] ** 2 / rows[held]).sum() / n for sums in (gap, by_label))
        return float(pairs.sum() / n), float(plain), float(labels)
    raise ValueError(f"norm must be 1 or 2 where the true error is needed; got {norm!r}")


def signs_of(sums: AnyArray) -> FloatArray:
    """Sign of the mean gap of every bin, from one half of the pool."""
    chosen = np.zeros(len(sums))
    best = np.zeros(len(sums))
    for width in (0, *_WIDTHS):
        reach = np.arange(-4 * width, 4 * width + 1)
        kernel = np.exp(-0.5 * (reach / max(width, 1)) ** 2)
        mean = np.convolve(sums[:, 1], kernel, mode="same")
        noise = np.sqrt(np.convolve(sums[:, 2], kernel**2, mode="same"))
        z = np.divide(mean, noise, out=np.zeros_like(mean), where=noise > 0)
        chosen = np.where((chosen == 0) & (np.abs(z) > _CLEAR), z, chosen)
        best = np.where(np.abs(z) > np.abs(best), z, best)
    return np.sign(np.where(chosen == 0, best, chosen))
