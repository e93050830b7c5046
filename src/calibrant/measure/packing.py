r"""Accumulators as bytes: a format that is checked when it is read and never executes anything.

The bytes are those of :mod:`calibrant.data.binary_format`: ``CALSUMS\n``, a version, a header in JSON, arrays
compressed by zlib, a digest. The header is

.. code-block:: json

    {"settings": {"notion": {"name": "classwise", "fields": {"average": "power"}}, "labels": null, "pos_label": null,
                  "sum_tolerance": null, "from_logits": false, "binned": null, "estimators": {"list": []}},
     "dropped": 0, "made": "",
     "rows": {"classes": {"list": ["ant", "bee"]}, "positive": 1, "groups": null,
              "totals": {"n_samples": 3, "weight": 3.0, "class_weight": {"array": 0}, "…": 0},
              "kept": {"labels": {"list": ["bee"]}, "domain": [0.0, 1.0], "fine": [65536, 0.0, 1.0],
                       "parts": [[{"…": 0}]]},
              "by_class": null}}

``rows`` is null for an accumulator without. ``parts`` hold the sums of up to eight problems together, in the order of
what the settings say is kept: ``binned``, ``EmpiricalBayes``'s grid, those of ``estimators``; then, where ``fine`` is
not null but its number of cells and their ends, the fine histogram.
Their fields are those of the classes of :mod:`calibrant.sums`; ``{"array": 3}`` is the fourth array. Values are coded
as :mod:`calibrant.data.codec` says; estimators by name, and only those of :mod:`calibrant.estimators`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from .. import notions
from ..data.binary_format import BinaryFormat
from ..data.codec import Codec
from ..data.types import AnyArray
from ..estimators.estimator_codes import ESTIMATORS
from ..sums import BinMoments, Bins, Grid
from ..sums.field_checks import judged, need, need_shape
from ..sums.packed import pack, unpack
from .sums_by_class import TOGETHER, SumsByClass, fine_on
from .totals import Totals

SEAL = BinaryFormat(b"CALSUMS\n", 1, "an Accumulator")
#: Notions whose sums can be kept, by the names of their classes.
_NOTIONS = {
    kind.__name__: kind for kind in (notions.ClassSpecific, notions.Classwise, notions.Confidence, notions.TopLabel)
}


def _notion(value: Any) -> dict[str, Any] | None:
    """Object of a notion, or of an estimator."""
    kind = type(value)
    if _NOTIONS.get(kind.__name__) is not kind:
        return ESTIMATORS.part(value)
    held = {f.name: _CODER.encode(getattr(value, f.name), f.name) for f in fields(value)}
    return {"notion": {"name": kind.__name__, "fields": held}}


def _made(value: Mapping[str, Any], name: str) -> Any:
    match dict(value):
        case {"notion": {"name": str() as kind, "fields": Mapping() as held}} if kind in _NOTIONS:
            return _NOTIONS[kind](**_CODER.arguments(held))
    return ESTIMATORS.made(value, name)


_CODER = Codec(_notion, _made)


def to_bytes(
    settings: Mapping[str, Any], about: Mapping[str, Any], rows: Mapping[str, Any] | None, needs: Any
) -> bytes:
    """Bytes of what an accumulator was given, and of what it has seen; ``needs`` says what is kept of a domain."""
    arrays: list[AnyArray] = []

    def put(array: AnyArray) -> int:
        arrays.append(array)
        return len(arrays) - 1

    header: dict[str, Any] = {"settings": {k: _CODER.encode(v, k) for k, v in settings.items()}, **about, "rows": None}
    if rows is not None:
        by_class = rows["by_class"]
        header["rows"] = {
            "classes": _CODER.encode(rows["classes"], "labels"),
            "positive": rows["positive"],
            "groups": None if rows["groups"] is None else {"array": put(rows["groups"])},
            "totals": _totals(rows["totals"], put),
            "kept": _kept(rows["kept"], needs, put),
            "by_class": None if by_class is None else _kept(by_class, needs, put),
        }
    return SEAL.close(header, arrays)


def _totals(totals: Totals, put: Any) -> dict[str, Any]:
    values = {f.name: getattr(totals, f.name) for f in fields(totals)}
    # Sums of logarithms may be infinite, which JSON lacks: numbers are arrays.
    return {
        k: v if isinstance(v, (bool, int)) else {"array": put(np.asarray(v, np.float64))} for k, v in values.items()
    }


def _kept(kept: SumsByClass, needs: Any, put: Any) -> dict[str, Any]:
    names, edges = _names(kept, needs), kept.histogram.edges
    return {
        "labels": _CODER.encode(kept.labels, "labels"),
        "domain": [float(end) for end in kept.domain],
        "fine": [edges.n_bins, float(edges.values[0]), float(edges.values[-1])] if kept.fine else None,
        "parts": [[pack(part[name], put) for name in names] for part in kept.parts],
    }


def _names(kept: SumsByClass, needs: Any) -> list[Any]:
    """What names the sums that are kept, in order."""
    return [*needs(kept.domain, fine=False), *([kept.histogram] if kept.fine else [])]


def from_bytes(data: Any) -> tuple[dict[str, Any], dict[str, Any], Mapping[str, Any] | None, dict[int, AnyArray]]:
    """Settings, what else is known, what was seen (:func:`rows_of` reads it), and arrays; ValueError for others."""
    header, arrays = SEAL.open(data)
    with judged("Accumulator", header) as held:
        given, rows = held.data["settings"], held.data["rows"]
        need(isinstance(given, Mapping), "settings must be an object")
        need(rows is None or isinstance(rows, Mapping), "rows must be an object")
        need(isinstance(held.data["made"], str), "made must be a text")
        settings, about = _CODER.arguments(given), {"dropped": held.whole("dropped"), "made": held.data["made"]}
        need(isinstance(settings.get("labels", ()), (list, tuple, type(None))), "labels must be a list")
        numbers = sum(array.size for array in arrays)
        chosen = [settings.get("binned"), *(settings.get("estimators") or [])]
        for estimator in chosen if rows is not None else []:
            bins = getattr(estimator, "n_bins", 0)  # nothing of their number is made where there are no such sums
            need(not isinstance(bins, int) or bins <= numbers, "there must be as many numbers as bins")
    return settings, about, rows, dict(enumerate(arrays))


def rows_of(rows: Any, arrays: Mapping[int, AnyArray], notion: Any, needs: Any) -> dict[str, Any]:
    """What an accumulator has seen of a notion; ``needs`` says what is kept of scores in a domain."""
    with judged("Accumulator", rows) as held:
        classes = _labels(held.data["classes"])
        positive = None if held.data["positive"] is None else held.whole("positive")
        need(positive is None or (len(classes) == 2 and positive < 2), "positive must be one of two labels")
        groups = None if held.data["groups"] is None else _array(held.data["groups"], arrays)
        if groups is not None:
            need(groups.dtype == np.uint64 and groups.ndim == 1, "groups must be hashes")
            need(groups[1:] > groups[:-1], "groups must ascend")
        totals = _totals_of(held.data["totals"], arrays, len(classes))
        kept = _kept_of(held.data["kept"], arrays, needs)
        given = held.data["by_class"]
        by_class = None if given is None else _kept_of(given, arrays, needs)
        _agree(notion, classes, positive, kept, by_class)
        _add_up(kept, totals.weight, every=notion.dependent)
        if by_class is not None:
            _add_up(by_class, totals.weight, every=True)
    return {
        "classes": classes,
        "positive": positive,
        "totals": totals,
        "kept": kept,
        "by_class": by_class,
        "groups": groups,
    }


def _agree(
    notion: Any, classes: tuple[Any, ...], positive: int | None, kept: SumsByClass, by_class: SumsByClass | None
) -> None:
    """The problems are those of the notion."""
    need(type(notion) in _NOTIONS.values(), "notion must be that of the rows")
    if isinstance(notion, notions.ClassSpecific):
        need(len(kept.labels) == 1 and kept.labels[0] in classes, "kept must be of one of the labels")
    else:
        wanted = (None,) if isinstance(notion, notions.Confidence) else classes
        need(kept.labels == wanted, f"kept must be of {list(wanted)!r}")
    need(kept.fine == (not notion.splits and not notion.dependent), "fine must be that of the notion")
    need((by_class is None) == (positive is not None and not notion.dependent), "by_class must be there, or not")
    need(by_class is None or (by_class.labels == classes and not by_class.fine), "by_class must be of all labels")


def _add_up(kept: SumsByClass, weight: float, *, every: bool) -> None:
    """The problems have all rows: each of them, or together."""
    mass = np.concatenate([np.asarray(grid.total) for grid in kept.sums(Grid())])
    held = mass if every else mass.sum()
    need(np.isclose(held, weight, rtol=1e-6, atol=1e-9), "sums must be of all rows")
    for part in kept.parts:
        for sums in part.values():
            if isinstance(sums, BinMoments):
                need(np.isclose(sums.weight.sum(axis=-1), part[Grid()].total, rtol=1e-6), "bins must hold all rows")


def _labels(data: Any) -> tuple[Any, ...]:
    found = _CODER.decode(data, "labels")
    need(isinstance(found, list) and len(found) > 0, "labels must be a list")
    need(all(v is None or isinstance(v, (bool, int, float, str)) for v in found), "labels must be plain")
    return tuple(found)


def _array(data: Any, arrays: Mapping[int, AnyArray]) -> AnyArray:
    return arrays[data["array"]]


def _totals_of(data: Any, arrays: Mapping[int, AnyArray], k: int) -> Totals:
    with judged("Totals", data) as held:
        numbers = ("weight", "squares", "correct", "brier", "log_loss")
        values: dict[str, Any] = {f: _array(held.data[f], arrays) for f in (*numbers, "class_weight", "prob_sum")}
        need_shape((k,), class_weight=values["class_weight"], prob_sum=values["prob_sum"])
        need_shape((), **{f: values[f] for f in numbers})
        for f, array in values.items():
            need(array.dtype == np.float64 and not np.isnan(array).any(), f"{f} must be a number")
            need(f == "log_loss" or np.isfinite(array), f"{f} must be finite")
            need(array >= -1e-9 * abs(float(values["weight"])), f"{f} must not be negative")
        values |= {f: float(values[f]) for f in numbers}
        need(
            np.isclose(values["class_weight"].sum(), values["weight"], rtol=1e-6), "class_weight must add up to weight"
        )
        values |= {f: held.flag(f) for f in ("integral", "weighted")}
        return Totals(n_samples=held.whole("n_samples"), **values)


def _kept_of(data: Any, arrays: Mapping[int, AnyArray], needs: Any) -> SumsByClass:
    with judged("Kept", data) as held:
        labels, parts = _labels(held.data["labels"]), held.data["parts"]
        low, high = (float(end) for end in held.numbers("domain"))
        need(0 <= low < high <= 1, "domain must lie in [0, 1]")
        fine: list[Bins] = []
        if held.data["fine"] is not None:
            cells, *ends = held.numbers("fine").tolist()
            need(0 < cells == int(cells) <= sum(a.size for a in arrays.values()), "fine must have cells that are there")
            need(len(ends) == 2 and 0 <= ends[0] < ends[1] <= 1, "fine must lie in [0, 1]")
            fine = [fine_on((ends[0], ends[1]), int(cells))]
        sizes = [min(TOGETHER, len(labels) - a) for a in range(0, len(labels), TOGETHER)]
        need(isinstance(parts, list) and len(parts) == len(sizes), "parts must hold all problems")
        names = [*needs((low, high), fine=False), *fine]
        found = tuple(_part(part, names, (low, high), size, arrays) for part, size in zip(parts, sizes, strict=True))
        return SumsByClass(labels, (low, high), found, *fine)


def _part(
    part: Any, names: Sequence[Any], domain: tuple[float, float], size: int, arrays: Mapping[int, AnyArray]
) -> dict[Any, Any]:
    need(isinstance(part, list) and len(part) == len(names), "parts must hold what the settings say is kept")
    return {name: unpack(name, domain, size, one, arrays) for name, one in zip(names, part, strict=True)}
