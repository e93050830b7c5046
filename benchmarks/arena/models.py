"""The models, as users have them, and their probabilities of rows that they were not trained on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from .halves import POOL
from .keel import Rows


@dataclass(frozen=True)
class Model:
    """How a model is made, from a seed, and the most rows that it is trained on."""

    about: str
    build: Callable[[int], Any]
    rows: int = 5000


def scaled(model: Any) -> Any:
    """On standardised features."""
    return make_pipeline(StandardScaler(), model)


MODELS = {
    "logistic": Model("LogisticRegression", lambda seed: scaled(LogisticRegression(max_iter=500))),
    "bayes": Model("GaussianNB", lambda seed: GaussianNB()),
    "forest": Model("RandomForestClassifier", lambda seed: RandomForestClassifier(random_state=seed)),
    "extra-trees": Model("ExtraTreesClassifier", lambda seed: ExtraTreesClassifier(random_state=seed)),
    "boosting": Model("HistGradientBoostingClassifier", lambda seed: HistGradientBoostingClassifier(random_state=seed)),
    "neighbours": Model("KNeighborsClassifier, 5 neighbours", lambda seed: scaled(KNeighborsClassifier())),
    "svc": Model(
        "CalibratedClassifierCV(SVC(), ensemble=False), which replaces SVC(probability=True)",
        lambda seed: scaled(CalibratedClassifierCV(SVC(random_state=seed), ensemble=False)),
        2500,
    ),
    "linear-svc": Model(
        'CalibratedClassifierCV(LinearSVC(), method="isotonic")',
        lambda seed: scaled(CalibratedClassifierCV(LinearSVC(random_state=seed), method="isotonic")),
        2500,
    ),
    "mlp": Model("MLPClassifier", lambda seed: scaled(MLPClassifier(random_state=seed)), 2500),
    "tree": Model(
        "DecisionTreeClassifier(min_samples_leaf=5)",
        lambda seed: DecisionTreeClassifier(min_samples_leaf=5, random_state=seed),
    ),
}


@dataclass(frozen=True)
class Network:
    """A multilayer perceptron: widths of its layers, epochs, weight decay, and the most rows that it is trained on."""

    layers: tuple[int, ...]
    epochs: int
    decay: float = 1e-4
    rows: int = 4000

    @property
    def about(self) -> str:
        """In words."""
        widths = " × ".join(map(str, self.layers))
        return f"MLPClassifier, {widths}, {self.epochs} epochs, alpha {self.decay:g}, at most {self.rows} rows"

    def build(self, seed: int) -> Any:
        """Unfitted, on standardised features."""
        return scaled(
            MLPClassifier(
                self.layers,
                alpha=self.decay,
                batch_size=64,
                max_iter=self.epochs,
                n_iter_no_change=self.epochs,
                tol=0.0,
                random_state=seed,
            )
        )


#: From underfitted (and so mostly too careful) to overfitted (and so too sure).
NETWORKS = {
    "net-small-short": Network((16,), 8),
    "net-small-long": Network((32,), 100),
    "net-middle-few": Network((64, 64), 40, rows=1500),
    "net-wide-short": Network((256, 256), 4),
    "net-wide-decayed": Network((256,), 30, decay=3.0),
    "net-wide-long": Network((256, 256), 60),
    "net-widest-long": Network((512,), 150, decay=1e-5),
    "net-deep-few": Network((128, 128, 128), 100, rows=500),
}


def held_out(model: Model, rows: Rows, seed: int) -> np.ndarray:
    """Out-of-fold probabilities of every row, float32 (n, K).

    Small data sets have five folds, those of 5,000 rows and more two: there the other fold is enough to train on, and
    the pool is a mixture of two models' predictions in place of five's.
    """
    x, y = rows
    out = np.empty((len(y), int(y.max()) + 1), dtype=np.float32)
    folds = StratifiedKFold(2 if len(y) >= POOL else 5, shuffle=True, random_state=seed)
    for number, (train, test) in enumerate(folds.split(x, y)):
        some = at_most(train, y, model.rows, seed + number)
        out[test] = fitted(model.build(seed + number), x[some], y[some]).predict_proba(x[test])
    return out


def single(network: Network, rows: Rows, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities, float32, and classes of the rows that one network was not trained on: at least 5,000."""
    x, y = rows
    train, test = train_test_split(np.arange(len(y)), test_size=max(POOL, len(y) - network.rows), stratify=y,
                                   random_state=seed)  # fmt: skip
    train = at_most(train, y, network.rows, seed)
    return fitted(network.build(seed), x[train], y[train]).predict_proba(x[test]).astype(np.float32), y[test]


def at_most(rows: np.ndarray, y: np.ndarray, most: int, seed: int) -> np.ndarray:
    """So many of the rows, of every class its share."""
    if len(rows) <= most:
        return rows
    return train_test_split(rows, train_size=most, stratify=y[rows], random_state=seed)[0]


def fitted(model: Any, x: np.ndarray, y: np.ndarray) -> Any:
    """The library's defaults are what is measured, limits of iterations included."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(x, y)
