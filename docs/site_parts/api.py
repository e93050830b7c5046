"""Pages of the API, from the lists of public names: those of the top by task, then every module's."""

import inspect
from importlib import import_module

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import calibrant as cal
from site_parts.outside import DOCS, keep

API = DOCS / "reference" / "api"
#: Names of the top by what a user wants to do.
TASKS = {
    "Measure": "report calibration_error estimate reliability_curve expected_calibration_error "
    "squared_calibration_error brier_score log_loss ReliabilityDisplay",
    "Test and compare": "calibration_test decompose compare_models subgroup_calibration find_segments",
    "Decide": "calibration_measures decision_curve expected_cost optimal_threshold",
    "Repair": "CalibratedModel AutoCalibrator TemperatureScaling compare_calibrators save_calibrator load_calibrator",
    "Base rates that changed": "estimate_prior shift_prior resampled_prior",
    "Over time": "CalibrationMonitor calibration_over_time expected_performance",
    "Many rows, frames, censored follow-up": "Accumulator from_frame as_predictions Predictions censoring_weights",
    "Choose an estimator": "EmpiricalBayes Binned",
}
MODULES = {
    "notions": "What must be calibrated",
    "estimators": "How the error is computed from a sample",
    "significance": "Tests",
    "scores": "Proper scores and their parts",
    "calibrators": "Maps from scores to calibrated probabilities",
    "decisions": "Costs, thresholds, priors, clinical measures",
    "plot": "Displays",
    "torch": "Losses, metrics and scalers in PyTorch (extra `torch`)",
    "adapters": "Inside other packages",
    "llm": "Evaluations of language models",
    "datasets": "Samples and simulated scores",
    "benchmark": "Estimators against known truth",
    "results": "What functions return",
    "exceptions": "Warnings, to filter or to turn into errors",
}


def places() -> dict[str, str]:
    """The full name under which the site documents each public name: at the top where it is there."""
    found = {name: f"calibrant.{name}" for name in " ".join(TASKS.values()).split()}
    for module in MODULES:
        for name in import_module(f"calibrant.{module}").__all__:
            found.setdefault(name, f"calibrant.{module}.{name}")
    return found


def summary(full: str) -> str:
    """First sentence of what a name says of itself."""
    value = _value(full)
    text = (inspect.getdoc(value) if callable(value) or inspect.ismodule(value) else "") or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", r"\|").replace(":class:", "").replace(":func:", "")


def _value(full: str) -> object:
    module, _, name = full.rpartition(".")
    return getattr(import_module(module), name)


def _directive(full: str) -> str:
    value = _value(full)
    if inspect.isclass(value):
        return "autoexception" if issubclass(value, BaseException) else "autoclass"
    return "autofunction" if callable(value) else "automodule" if inspect.ismodule(value) else "autodata"


def _page(name: str, full: str) -> None:
    module = full.rpartition(".")[0]
    keep(
        API / f"{full}.md",
        f"# {name}\n\n```{{eval-rst}}\n.. currentmodule:: {module}\n\n.. {_directive(full)}:: {full}\n```\n",
    )


def _table(names: list[str], at: dict[str, str]) -> str:
    rows = [f"| [`{name}`](api/{at[name]}.md) | {summary(at[name])} |" for name in names]
    return "\n".join(["| name | |", "|---|---|", *rows])


def _hidden(names: list[str], at: dict[str, str]) -> str:
    entries = "\n".join(f"{name} <api/{at[name]}>" for name in names)
    return f"```{{toctree}}\n:hidden:\n\n{entries}\n```\n"


def write(app: Sphinx) -> None:
    """Write a page for each name, one for each module, and that of names by task."""
    at = places()
    for name, full in at.items():
        _page(name, full)
    tasks = [f"## {task}\n\n{_table(names.split(), at)}\n" for task, names in TASKS.items()]
    names = " ".join(TASKS.values()).split()
    start = "After `import calibrant as cal`, each is `cal.NAME`. The others are in [modules](../reference.md).\n"
    keep(DOCS / "reference" / "tasks.md", f"# The API by task\n\n{start}\n" + "\n".join(tasks) + _hidden(names, at))
    for module, title in MODULES.items():
        public = sorted(import_module(f"calibrant.{module}").__all__, key=str.lower)
        own = [name for name in public if at[name] == f"calibrant.{module}.{name}"]
        text = f"# calibrant.{module}\n\n{title}.\n\n{_table(public, at)}\n\n{_hidden(own, at)}"
        keep(DOCS / "reference" / f"{module}.md", text)


def _without_fields(app: Sphinx, what: str, name: str, value: object, *_: object) -> tuple[str, None] | None:
    """Results are made by functions: nobody passes their fields, so signatures do not list them."""
    results = vars(cal.results)
    return ("", None) if what == "class" and results.get(name.rpartition(".")[2]) is value else None


def _ours(app: Sphinx, what: str, name: str, value: object, skip: bool, options: object) -> bool | None:
    """Members that come from scikit-learn, torch or dataclasses are documented there."""
    function = inspect.unwrap(value) if callable(value) else getattr(value, "fget", None)
    module = getattr(function, "__module__", None) or "calibrant"
    return True if what == "class" and not module.startswith("calibrant") else None


def _resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, inner: nodes.Element) -> nodes.Element | None:
    """A name without its module, as docstrings have it, is the public name."""
    if node.get("refdomain") != "py" or app.builder.format != "html":
        return None
    name = node["reftarget"].lstrip("~.").removesuffix("()")
    head, _, member = name.partition(".") if not name.startswith("calibrant.") else ("", "", "")
    at = places()
    full = at.get(name.rpartition(".")[2]) or at.get(head)
    if full is None:
        return None
    domain = env.domains["py"]
    target = f"{full}.{member}" if member and f"{full}.{member}" in domain.objects else full
    if target not in domain.objects:
        return None
    entry = domain.objects[target]
    uri = app.builder.get_relative_uri(node["refdoc"], entry.docname) + f"#{entry.node_id}"
    return nodes.reference("", "", inner, internal=True, refuri=uri)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write)
    app.connect("autodoc-process-signature", _without_fields)
    app.connect("autodoc-skip-member", _ours)
    app.connect("missing-reference", _resolve)
    return {"parallel_read_safe": True}
