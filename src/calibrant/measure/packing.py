r"""Accumulators as bytes: a format that is validated on loading and never executes anything.

The bytes are those of :mod:`calibrant.data.archive`, and their header is

.. code-block:: json

    {"format": "calibrant-accumulator", "version": 1, "calibrant": "0.1.0",
     "settings": {"notion": {"notion": {"name": "Classwise", "fields": {"average": "power"}}}, "labels": null,
                  "pos_label": null, "sum_tolerance": null, "from_logits": false, "binned": null,
                  "estimators": {"list": []}},
     "dropped": 0, "source": "",
     "rows": {"classes": {"list": ["ant", "bee"]}, "positive": 1, "groups": null,
              "totals": {"n_samples": {"array": "rows/totals/n_samples"}, "…": 0},
              "problem_sums": {"labels": {"list": ["bee"]}, "domain": [0.0, 1.0], "fine": [65536, 0.0, 1.0],
                       "parts": [[{"weight": {"array": "rows/problem_sums/parts/0/0/weight"}, "…": 0}]]},
              "by_class": null}}

``rows`` is null for an accumulator without rows. ``parts`` contain the sums of up to eight problems each, in the order
of the settings: ``binned``, the grid of ``EmpiricalBayes``, those of ``estimators``; then the fine histogram, unless
``fine``, its number of cells and their ends, is null. Their fields are those of the classes of
:mod:`calibrant.sums`. Values are encoded by :mod:`calibrant.data.codec`; estimators and notions by name, and only
those of :mod:`calibrant.estimators` and :mod:`calibrant.notions`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .. import estimators, notions
from ..data.archive import from_archive, to_archive
from ..data.codec import Codec, check_stamp, stamp
from ..data.fields import need, reading
from ..data.problem import Problem
from ..data.types import AnyArray
from ..sums import BinMoments, Bins, Grid
from .sums_by_class import TOGETHER, SumsByClass, Totals, fine_on

FORMAT, VERSION = "calibrant-accumulator", 1
#: Notions whose sums can be kept.
_NOTIONS = (
    notions.ClassSpecific,
    notions.Classwise,
    notions.Confidence,
    notions.Multilabel,
    notions.Ordinal,
    notions.TopLabel,
)
_CODEC = Codec(estimator=estimators, notion=notions)


def to_bytes(
    settings: Mapping[str, Any], about: Mapping[str, Any], rows: Mapping[str, Any] | None, needs: Any
) -> bytes:
    """Bytes of an accumulator's settings and sums; ``needs`` returns the sums required for a domain."""
    coded = {name: _CODEC.encode(value, name) for name, value in settings.items()}
    seen: dict[str, Any] | None = None
    if rows is not None:
        sums = {
            name: rows[name] if rows[name] is None else _tables(rows[name], needs)
            for name in ("problem_sums", "by_class")
        }
        classes = _CODEC.encode(rows["classes"], "labels")
        seen = {**rows, "classes": classes, "totals": rows["totals"].to_arrays(), **sums}
    return to_archive({**stamp(FORMAT, VERSION), "settings": coded, **about, "rows": seen})


def _tables(problem_sums: SumsByClass, needs: Any) -> dict[str, Any]:
    edges = problem_sums.histogram.edges
    names = [*needs(problem_sums.domain, fine=False), *([problem_sums.histogram] if problem_sums.fine else [])]
    return {
        "labels": _CODEC.encode(problem_sums.labels, "labels"),
        "domain": problem_sums.domain,
        "fine": [edges.n_bins, *edges.values[[0, -1]].tolist()] if problem_sums.fine else None,
        "parts": [[part[name].to_arrays() for name in names] for part in problem_sums.parts],
    }


def from_bytes(data: Any) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Settings, further attributes, and encoded rows (see :func:`rows_of`); ValueError for invalid bytes."""
    header = from_archive(data, "an Accumulator")
    check_stamp(header, FORMAT, VERSION, "saved Accumulator")
    with reading("Accumulator", header):
        settings, source, dropped = header["settings"], header["source"], header["dropped"]
        need(isinstance(settings, Mapping), "settings must be an object")
        need(isinstance(source, str), "source must be a string")
        need(type(dropped) is int and dropped >= 0, "dropped must be a whole number >= 0")
        settings = {name: _CODEC.decode(value, name) for name, value in settings.items()}
        need(isinstance(settings.get("labels"), (list, type(None))), "labels must be a list")
        rows = header["rows"]
        need(rows is None or isinstance(rows, dict), "rows must be an object")
        largest = max((array.size for array in _arrays(rows)), default=0)
        chosen = [settings.get("binned"), *(settings.get("estimators") or [])]
        for estimator in chosen if rows is not None else []:
            bins = getattr(estimator, "n_bins", 0)  # nothing of their number is made where there are no such sums
            need(not isinstance(bins, int) or bins <= largest, "n_bins must not exceed the size of the sums")
    return settings, {"dropped": dropped, "source": source}, rows


def _arrays(tree: Any) -> Iterator[AnyArray]:
    if isinstance(tree, np.ndarray):
        yield tree
    for inner in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _arrays(inner)


def rows_of(rows: Mapping[str, Any], notion: Any, needs: Any) -> dict[str, Any]:
    """Decode the sums of a notion; ``needs`` returns the sums required for scores in a domain."""
    with reading("Accumulator", rows):
        classes, positive, groups = _labels(rows["classes"]), rows["positive"], rows["groups"]
        need(positive is None or (len(classes) == 2 and positive in (0, 1)), "positive must be one of two labels")
        if groups is not None:
            need(isinstance(groups, np.ndarray) and groups.dtype == np.uint64 and groups.ndim == 1, "groups are hashes")
            need(groups[1:] > groups[:-1], "groups must be strictly increasing")
        with reading("Totals", rows["totals"]):
            totals = Totals.nothing(len(classes)).with_arrays(rows["totals"])
        problem_sums, by_class = (
            None if rows[f] is None else _sums_by_class_of(rows[f], needs) for f in ("problem_sums", "by_class")
        )
        need(problem_sums is not None, "problem_sums must not be null")
        several = rows["several"]
        need(isinstance(several, bool), "several must be true or false")
        need(not several or positive is None, "positive must be null if several is true")
        ones = np.isclose(totals.class_weight.sum(), totals.weight, rtol=1e-6)
        need(several or ones, "class_weight must add up to weight")
        _agree(notion, classes, positive, problem_sums, by_class, several=several)
        pooled = len(classes) if several and not notion.per_class and notion.several else 1
        _add_up(problem_sums, totals.weight * pooled, every=notion.dependent)
        if by_class is not None:
            _add_up(by_class, totals.weight, every=True)
    return {
        "classes": classes,
        "positive": positive,
        "totals": totals,
        "problem_sums": problem_sums,
        "by_class": by_class,
        "groups": groups,
        "several": several,
    }


def _agree(
    notion: Any,
    classes: tuple[Any, ...],
    positive: int | None,
    problem_sums: Any,
    by_class: SumsByClass | None,
    *,
    several: bool,
) -> None:
    """Check that the problems are those of the notion."""
    need(isinstance(notion, _NOTIONS), "notion must match the rows")
    of_labels = isinstance(notion, (notions.ClassSpecific, notions.Multilabel))
    need(of_labels if several else not isinstance(notion, notions.Multilabel), "notion must match the rows")
    if isinstance(notion, notions.ClassSpecific):
        need(
            len(problem_sums.labels) == 1 and problem_sums.labels[0] in classes,
            "problem_sums must be of one of the labels",
        )
    else:
        wanted = notion.labels(classes)
        need(problem_sums.labels == wanted, f"problem_sums must be of {list(wanted)!r}")
    need(problem_sums.fine == (not notion.splits and not notion.dependent), "fine must match the notion")
    need((by_class is None) == (positive is not None and not notion.dependent), "by_class must match the notion")
    need(by_class is None or (by_class.labels == classes and not by_class.fine), "by_class must cover all labels")


def _add_up(problem_sums: Any, weight: float, *, every: bool) -> None:
    """Check that the problems contain all rows, each of them or in total."""
    mass = np.concatenate([np.asarray(grid.total) for grid in problem_sums.sums(Grid())])
    held = mass if every else mass.sum()
    need(np.isclose(held, weight, rtol=1e-6, atol=1e-9), "sums must cover all rows")
    for part in problem_sums.parts:
        for sums in part.values():
            if isinstance(sums, BinMoments):
                need(np.isclose(sums.weight.sum(axis=-1), part[Grid()].total, rtol=1e-6), "bins must hold all rows")


def _labels(data: Any) -> tuple[Any, ...]:
    found = _CODEC.decode(data, "labels")
    need(isinstance(found, list) and len(found) > 0, "labels must be a list")
    need(all(v is None or isinstance(v, (bool, int, float, str)) for v in found), "labels must be plain values")
    return tuple(found)


def _sums_by_class_of(data: Any, needs: Any) -> SumsByClass:
    with reading("Kept", data):
        labels, parts, (low, high) = _labels(data["labels"]), data["parts"], data["domain"]
        need(0 <= low < high <= 1, "domain must lie in [0, 1]")
        sizes = [min(TOGETHER, len(labels) - a) for a in range(0, len(labels), TOGETHER)]
        need(isinstance(parts, list) and len(parts) == len(sizes), "parts must hold all problems")
        fine: list[Bins] = []
        if data["fine"] is not None:
            cells, first, last = data["fine"]
            there = max((array.size for array in _arrays(parts)), default=0)
            need(type(cells) is int and 0 < cells <= there, "fine must not have more cells than the sums")
            need(0 <= first < last <= 1, "fine must lie in [0, 1]")
            fine = [fine_on((first, last), cells)]
        names = [*needs((low, high), fine=False), *fine]
        found = tuple(_part(part, names, (low, high), size) for part, size in zip(parts, sizes, strict=True))
        return SumsByClass(labels, (low, high), found, *fine)


def _part(part: Any, names: Sequence[Any], domain: tuple[float, float], size: int) -> dict[Any, Any]:
    """Sums of some problems: the names' sums of zero rows, filled with the given arrays."""
    need(isinstance(part, list) and len(part) == len(names), "parts must hold the sums that the settings require")
    nothing, every = np.empty(0), (1 / size,) * size
    starts = np.zeros(size + 1, dtype=np.intp)
    rows = Problem(nothing, nothing, domain=domain, label=(None,) * size, share=every, starts=starts)
    out = {}
    for name, held in zip(names, part, strict=True):
        with reading(f"value of {type(name).__name__}", held):
            need(all(isinstance(v, np.ndarray) for v in held.values()), "all fields must be arrays of numbers")
            out[name] = name.of(rows).with_arrays(held)
    return out
