"""Runs an adapter inside the package that it is for, and prints rows, value and version as JSON: `python in_packages.py NAME`."""

# ruff: noqa: E501
import importlib.util
import json
import os
import random
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

LOGS = Path(__file__).parents[1] / "llm" / "logs"
ESTIMATOR = "binned:5"


def _maker(name):
    spec = importlib.util.spec_from_file_location(name, LOGS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def harness():
    """A task of questions with two to four options, run by lm-evaluation-harness."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    maker = _maker("make_harness")
    import lm_eval

    from calibrant.adapters import harness_aggregation

    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "sums.jsonl")
        data.write_text("".join(json.dumps(one) + "\n" for one in maker.questions(random.Random(1))))
        task = {
            "task": "sums", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(data)}},
            "test_split": "test", "output_type": "multiple_choice", "doc_to_text": "{{question}}",
            "doc_to_choice": "{{choices}}", "doc_to_target": "right",
            "metric_list": [{"metric": "brier_score", "aggregation": harness_aggregation(estimator=ESTIMATOR), "higher_is_better": False}],
        }  # fmt: skip
        found = lm_eval.simple_evaluate(maker.StandIn(), tasks=[task], log_samples=True, bootstrap_iters=0)
    rows = [
        (int(gold), np.asarray(probs, dtype=float).tolist())
        for gold, probs in (s["brier_score"] for s in found["samples"]["sums"])
    ]
    return {
        "value": found["results"]["sums"]["brier_score,none"],
        "items": rows,
        "versions": {"lm-eval": version("lm-eval")},
    }


def inspect():
    """Two epochs of a task with stated confidences, run by inspect_ai."""
    from inspect_ai import Task
    from inspect_ai import eval as run
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import Score, accuracy, scorer

    from calibrant.adapters import inspect_metric

    rng = random.Random(0)

    def answers(messages, tools, tool_choice, config):
        output = ModelOutput.from_content("mockllm", f"{rng.random() < 0.7} {rng.randrange(50, 100)} %")
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    @scorer(metrics=[accuracy(), inspect_metric(estimator=ESTIMATOR)])
    def stated():
        async def score(state, target):
            right, _, said = state.output.completion.partition(" ")
            return Score(value="C" if right == "True" else "I", metadata={"confidence": said})

        return score

    task = Task(
        dataset=[Sample(id=i, input=f"question {i}", target="") for i in range(20)], scorer=stated(), name="stated"
    )
    model = get_model("mockllm/model", custom_outputs=answers)
    (log,) = run(task, model=model, epochs=2, display="none", log_dir=tempfile.mkdtemp())
    scores = [(s.id, s.scores["stated"]) for s in log.samples]
    metrics = {name: m for one in log.results.scores for name, m in one.metrics.items()}
    rows = [(name, float(s.metadata["confidence"].removesuffix(" %")) / 100, s.value == "C") for name, s in scores]
    return {
        "value": metrics["calibration_error"].value,
        "rows": rows,
        "versions": {"inspect-ai": version("inspect-ai")},
    }


def monai():
    """Three batches of images with four classes, with pixels to ignore."""
    import torch

    from calibrant.adapters import monai_metric

    draw = torch.Generator().manual_seed(0)
    metric = monai_metric(ignore_index=255, estimator=ESTIMATOR)
    rows = []
    for size in (4, 5, 4):
        probs = torch.rand((2, 4, size, size), generator=draw, dtype=torch.float64)
        probs = probs / probs.sum(dim=1, keepdim=True)
        y = torch.randint(4, (2, 1, size, size), generator=draw)
        y[torch.rand(y.shape, generator=draw) < 0.1] = 255
        metric(probs, y)
        flat = zip(y.flatten().tolist(), probs.permute(0, 2, 3, 1).reshape(-1, 4).tolist(), strict=True)
        rows += [row for row in flat if row[0] != 255]
    return {
        "value": metric.aggregate(),
        "items": rows,
        "versions": {"monai": version("monai"), "torch": version("torch")},
    }


def _drawn(n=40, k=3):
    """Classes of `n` rows, and probabilities of `k` classes that are bolder than they should be."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(k), n)
    y = np.array([rng.choice(k, p=np.sqrt(p) / np.sqrt(p).sum()) for p in probs])
    return y, probs


def _record(value, y, probs, *packages):
    items = list(zip(np.asarray(y).tolist(), np.asarray(probs).tolist(), strict=True))
    return {"value": float(value), "items": items, "versions": {one: version(one) for one in packages}}


def mlflow():
    """A classifier's columns, and the output of two models that return probabilities."""
    import mlflow as package
    import pandas as pd

    from calibrant import calibration_error, report
    from calibrant.adapters import mlflow_metric

    y, probs = _drawn()
    names = np.array(["cat", "dog", "owl"])
    frame = pd.DataFrame(probs, columns=names).assign(y=names[y], predicted=names[probs.argmax(axis=1)])
    frame.index += 7
    positive = pd.DataFrame({"p": probs[:, 0], "y": (y == 0).astype(int)})

    def evaluated(metric, **given):
        with package.start_run():
            found = package.models.evaluate(targets="y", extra_metrics=[metric], **given)
            run = package.active_run().info.run_id
        logged = package.get_run(run).data.metrics["calibration_error"]
        assert logged == found.metrics["calibration_error"]
        return logged

    with tempfile.TemporaryDirectory() as folder:
        package.set_tracking_uri(f"sqlite:///{folder}/runs.db")
        package.create_experiment("here", artifact_location=f"file://{folder}/artifacts")
        package.set_experiment("here")
        three = mlflow_metric(*names, estimator=ESTIMATOR)
        value = evaluated(three, data=frame, predictions="predicted", model_type="classifier")
        other = evaluated(three, model=lambda X: X[names], data=frame.drop(columns="predicted"), predictions="cat")
        assert abs(other - value) < 1e-12
        scalars = report(y, probs).scalars()
        with package.start_run() as run:
            package.log_metrics(scalars)
        assert package.get_run(run.info.run_id).data.metrics == scalars
        two = calibration_error(positive["y"], positive["p"], estimator=ESTIMATOR)
        for options in ({"predictions": "p"}, {"model": lambda X: X["p"]}):
            assert abs(evaluated(mlflow_metric(estimator=ESTIMATOR), data=positive, **options) - two) < 1e-12
    return _record(value, y, probs, "mlflow")


def evaluate():
    """Classes, texts and one column of probabilities, at once, in batches, combined, and loaded from a file."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1"}
    import evaluate as package

    from calibrant import calibration_error
    from calibrant.adapters import evaluate_metric

    y, probs = _drawn()
    metric = evaluate_metric(estimator=ESTIMATOR)
    value = metric.compute(predictions=probs, references=y)["calibration_error"]
    for rows in np.array_split(np.arange(len(y)), 3):
        metric.add_batch(predictions=probs[rows], references=y[rows])
    names = np.array(["cat", "dog", "owl"])
    both = package.combine({"l1": metric, "l2": evaluate_metric(estimator=ESTIMATOR, norm=2)})
    same = [metric.compute(), metric.compute(predictions=probs, references=names[y])]
    assert [one["calibration_error"] for one in same] == [value, value]
    found = both.compute(predictions=probs, references=y)
    assert found["l1_calibration_error"] == value
    assert found["l2_calibration_error"] == calibration_error(y, probs, estimator=ESTIMATOR, norm=2)
    cat = {"predictions": probs[:, 0], "references": (y == 0).astype(int)}
    assert metric.compute(**cat)["calibration_error"] == calibration_error(y == 0, probs[:, 0], estimator=ESTIMATOR)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "calibration.py")
        file.write_text(
            f"from calibrant.adapters import evaluate_metric\n\nError = type(evaluate_metric(estimator={ESTIMATOR!r}))\n"
        )
        assert package.load(str(file)).compute(predictions=probs, references=y) == {"calibration_error": value}
    return _record(value, y, probs, "evaluate", "datasets")


def lightning():
    """The torch metric, logged in a module that is trained for three epochs: no adapter."""
    import lightning as package
    import torch

    from calibrant import calibration_error, estimators
    from calibrant.torch import CalibrationError

    y, x = map(torch.tensor, _drawn())

    class Model(package.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 3, dtype=torch.float64)
            self.error = CalibrationError(estimators.Binned(5), num_classes=3, from_logits=True)

        def training_step(self, batch, _):
            return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])

        def validation_step(self, batch, _):
            self.error(self.layer(batch[0]), batch[1])
            self.log("val_error", self.error)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.5)

    class Watch(package.Callback):
        seen = ()

        def on_train_epoch_end(self, trainer, module):
            probs = module.layer(x).softmax(1).detach()
            self.seen += ((float(trainer.callback_metrics["val_error"]), probs),)

    package.seed_everything(0)
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=16)
    watch = Watch()
    off = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    package.Trainer(max_epochs=3, accelerator="cpu", callbacks=[watch], **off).fit(Model(), batches, batches)
    for value, probs in watch.seen:  # so the metric starts afresh at each epoch
        assert abs(value - calibration_error(y.numpy(), probs.numpy(), estimator=ESTIMATOR)) < 1e-12
    assert len({value for value, _ in watch.seen}) == 3
    return _record(value, y, probs, "lightning", "torch")


def keras():
    """A model of three classes with early stopping, and one of one probability."""
    os.environ["KERAS_BACKEND"] = "torch"
    import keras as package

    from calibrant import calibration_error
    from calibrant.adapters import keras_callback

    y, x = _drawn()
    package.utils.set_random_seed(0)

    def trained(labels, last, loss, *callbacks):
        model = package.Sequential([package.layers.Input((3,)), last])
        model.compile(optimizer="adam", loss=loss)
        shown = keras_callback(x, labels, estimator=ESTIMATOR)
        history = model.fit(x, labels, epochs=3, verbose=0, callbacks=[shown, *callbacks]).history
        return history["val_calibration_error"], model.predict(x, verbose=0)

    stop = package.callbacks.EarlyStopping(monitor="val_calibration_error", mode="min", patience=5)
    values, probs = trained(y, package.layers.Dense(3, "softmax"), "sparse_categorical_crossentropy", stop)
    assert stop.best == min(values)
    assert len(values) == 3
    cat = (y == 0).astype(int)
    two, p = trained(cat, package.layers.Dense(1, "sigmoid"), "binary_crossentropy")
    assert abs(two[-1] - calibration_error(cat, p[:, 0], estimator=ESTIMATOR)) < 1e-12
    return _record(values[-1], y, probs, "keras", "torch")


def evidently():
    """A task of three classes with a reference, and one of two."""
    import evidently as package
    import pandas as pd

    from calibrant import calibration_error
    from calibrant.adapters import evidently_metric

    y, probs = _drawn()
    names = np.array(["cat", "dog", "owl"])
    frame = pd.DataFrame(probs, columns=names).assign(y=names[y], is_cat=np.where(y == 0, "yes", "no"))
    tasks = [
        package.MulticlassClassification(target="y", prediction_probas=list(names)),
        package.BinaryClassification(name="cats", target="is_cat", prediction_probas="cat", pos_label="yes"),
    ]
    definition = package.DataDefinition(classification=tasks)
    now, before = (package.Dataset.from_pandas(one, data_definition=definition) for one in (frame, frame[:20]))
    metrics = [evidently_metric(estimator=ESTIMATOR), evidently_metric("cats", estimator=ESTIMATOR)]
    found = package.Report(metrics).run(now, before)
    value, two = (one["value"] for one in found.dict()["metrics"])
    assert abs(two - calibration_error(y == 0, probs[:, 0], estimator=ESTIMATOR)) < 1e-12
    assert "Calibration error" in found.get_html_str(as_iframe=False)
    alone = package.Report(metrics[:1]).run(before, None).dict()["metrics"]
    assert abs(alone[0]["value"] - calibration_error(names[y][:20], frame[names][:20], estimator=ESTIMATOR)) < 1e-12
    return _record(value, y, probs, "evidently", "pandas")


def skore():
    """A calibrated model in a report of skore, and the error as a metric of that report: no adapter."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.metrics import brier_score_loss, make_scorer
    from sklearn.model_selection import train_test_split
    from sklearn.naive_bayes import GaussianNB
    from skore import EstimatorReport

    from calibrant import CalibratedModel, calibration_error

    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, test_size=60)
    data = {"X_train": X_train, "y_train": y_train, "X_test": X_test, "y_test": y_test}
    report = EstimatorReport(CalibratedModel(GaussianNB(), calibrator="beta"), pos_label=1, **data)
    report.metrics.add(make_scorer(calibration_error, response_method="predict_proba", estimator=ESTIMATOR))
    probs = CalibratedModel(GaussianNB(), calibrator="beta").fit(X_train, y_train).predict_proba(X_test)[:, 1]
    assert abs(report.metrics.brier_score() - brier_score_loss(y_test, probs)) < 1e-12
    rows = [(i, p, bool(one)) for i, (p, one) in enumerate(zip(probs.tolist(), y_test, strict=True))]
    value = report.metrics.summarize(metric="calibration_error").frame().iloc[0]
    return {"value": float(value), "rows": rows, "versions": {"skore": version("skore")}}


PACKAGES = {
    "lm-eval": harness,
    "inspect-ai": inspect,
    "monai": monai,
    "mlflow": mlflow,
    "evaluate": evaluate,
    "lightning": lightning,
    "keras": keras,
    "evidently": evidently,
    "skore": skore,
}

if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(PACKAGES[sys.argv[1]]()) + "\n")
