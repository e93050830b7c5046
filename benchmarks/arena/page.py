"""`README.md` beside this file: what the arena holds, from its files."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from calibrant.data.writing import write_text

from .halves import CHOOSING, FAMILIES, GIVEN, HALVES, TABLES
from .models import MODELS, NETWORKS
from .reading import Experiment, experiments
from .store import Entry

#: A score that at least this share of the rows has is an atom.
ATOM = 0.01
SIZES = (30, 100, 300, 1000, 3000)
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


def write_page(cache: Path, page: Path) -> None:
    """Everything that the page says is counted in the cache."""
    found = [one for half in HALVES for one in experiments(half, cache=cache)]
    if not found:
        raise SystemExit(f"nothing is built in {cache}")
    intro = Path(__file__).with_name("readme_intro.md").read_text(encoding="utf-8")
    text = intro.format(
        experiments=len(found),
        counts=_counts(found),
        sets=_sets(found),
        models=_models(),
        truths=_truths(found),
        sure=_sure(found),
        missing=_missing(found),
        versions=_versions(cache, found),
    )
    write_text(page, text)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]], left: int = 1) -> str:
    names = list(head)
    lines = ["| " + " | ".join(names) + " |", "|---" * left + "|---:" * (len(names) - left) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def _counts(found: list[Experiment]) -> str:
    """Experiments by half and kind, and in how many a sample of N rows can be drawn."""
    rows = []
    for half in HALVES:
        for kind, pool in (("tabular", True), ("tabular", False), ("network", True)):
            some = [one for one in found if (one.half, one.kind, one.pool) == (half, kind, pool)]
            many = sum(one.n_classes > 2 for one in some)
            notions = sum(len(one.truths) for one in some)
            fits = [str(sum(one.largest >= n for one in some)) for n in SIZES]
            rows.append([half, kind, "pool" if pool else "redrawn", str(len(some)), str(many), str(notions), *fits])
    head = ["half", "kind", "labels", "experiments", "of more than two classes", "truths", *(f"N = {n}" for n in SIZES)]
    return _table(head, rows, left=3)


def _sets(found: list[Experiment]) -> str:
    made = Counter(one.data for one in found)
    shape = {one.data: one.y_prob.shape for one in sorted(found, key=lambda one: len(one.y_true))}
    rows = []
    for family in sorted(FAMILIES, key=lambda family: HALVES.index(family.half)):
        for name in family.names:
            n, k = shape.get(name, ("", ""))
            rows.append([name, family.half, family.kin, family.reason, str(n), str(k), str(made[name])])
    return _table(["data set", "half", "kin", "why there", "rows", "classes", "experiments"], rows, left=4)


def _models() -> str:
    rows = [[name, one.about, f"{one.rows:,}"] for name, one in MODELS.items()]
    rows += [[name, one.about, f"{one.rows:,}"] for name, one in NETWORKS.items()]
    return _table(["model", "what", "most rows trained on"], rows, left=2)


def _truths(found: list[Experiment]) -> str:
    """Quantiles of the true calibration error of the choosing half, by model, and the share of rows on atoms."""
    by_model: dict[str, list[Experiment]] = defaultdict(list)
    for one in found:
        if one.half == CHOOSING:
            by_model[one.model].append(one)
    rows = []
    for model in (*MODELS, *NETWORKS):
        some = by_model.get(model, [])
        if not some:
            continue
        cells = []
        for notion in ("confidence", "classwise"):
            values = [one.truths[notion].value for one in some if notion in one.truths]
            cells += [f"{v:.3f}" for v in np.quantile(values, QUANTILES)] if values else ["–"] * len(QUANTILES)
        atoms = np.mean([atom_share(one.y_prob.max(axis=1)) for one in some])
        rows.append([model, str(len(some)), *cells, f"{atoms:.2f}"])
    head = ["model", "experiments", *(f"confidence, {100 * q:.0f} %" for q in QUANTILES)]
    head += [*(f"class-wise, {100 * q:.0f} %" for q in QUANTILES), "rows on atoms"]
    return _table(head, rows)


def atom_share(scores: np.ndarray) -> float:
    """Share of rows whose very score at least one row in a hundred has."""
    _, counts = np.unique(scores, return_counts=True)
    return float(counts[counts >= max(2.0, ATOM * len(scores))].sum() / len(scores))


def _sure(found: list[Experiment]) -> str:
    """How well pools know their truths: standard errors, and truths that are less than two of them."""
    rows = []
    for notion in ("confidence", "classwise"):
        pairs = [one.truths[notion] for one in found if one.pool and one.half == CHOOSING]
        values, errors = np.array([[t.value, t.standard_error] for t in pairs]).T
        cells = [f"{v:.4f}" for v in np.quantile(errors, (0.1, 0.5, 0.9))]
        relative = [f"{v:.2f}" for v in np.quantile(errors / np.maximum(values, 1e-9), (0.1, 0.5, 0.9))]
        rows.append([notion, str(len(pairs)), *cells, *relative, str((values < 2 * errors).sum())])
    parts = [f"{what}, {q} %" for what in ("standard error", "of the truth") for q in (10, 50, 90)]
    return _table(["notion", "pools", *parts, "below two standard errors"], rows)


def _missing(found: list[Experiment]) -> str:
    """What the table of data sets and models has and the cache has not."""
    have = {one.name for one in found}
    wanted = [f"{data}.{model}" for data in TABLES for model in MODELS] + [f"{data}.given" for data in GIVEN]
    left = [name for name in wanted if name not in have]
    return f"Not built: {', '.join(left)}." if left else "Every data set has every model."


def _versions(cache: Path, found: list[Experiment]) -> str:
    about = [Entry(cache, one.data, one.model).about() for one in found]
    every = {name: sorted({one["versions"][name] for one in about}) for name in about[0]["versions"]}
    seconds = sum(one["seconds"] for one in about)
    parts = [f"{name} {', '.join(of)}" for name, of in every.items()]
    return f"{'; '.join(parts)}. Training took {seconds / 60:.0f} CPU minutes."
