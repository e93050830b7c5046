"""Settings of two accumulators as those of their merger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..notions import notion_named

#: What an accumulator has where nothing was given.
_DEFAULTS = {"notion": "auto", "labels": None, "pos_label": None, "sum_tolerance": None, "from_logits": False}


def merged_settings(both: Sequence[Mapping[str, Any]], full: Sequence[bool], bins: Sequence[Any]) -> dict[str, Any]:
    """What either of two accumulators was given; ValueError naming both values where they differ.

    ``full`` says which of them have rows, and ``bins`` what these are in.
    """
    out: dict[str, Any] = {}
    for name, default in _DEFAULTS.items():
        pair = [settings[name] for settings in both]
        if name == "notion":
            pair = [notion_named(v) for v in pair]
        if name == "labels":
            pair = [None if v is None else tuple(v) for v in pair]
        out[name] = _either(name, pair, default)
    # Rows were put into these bins, whether they were given or not.
    pair = [one if has_rows else settings["binned"] for settings, one, has_rows in zip(both, bins, full, strict=True)]
    out["binned"] = _either("binned", pair, None)
    estimators = [settings["estimators"] for settings in both]
    if all(full) and set(estimators[0]) != set(estimators[1]):
        raise ValueError(f"accumulators of different estimators cannot merge: {estimators[0]!r} and {estimators[1]!r}")
    kept = estimators[full.index(True)] if any(full) else tuple(dict.fromkeys(estimators[0] + estimators[1]))
    if missing := set(estimators[0] + estimators[1]) - set(kept):
        raise ValueError(f"accumulators of different estimators cannot merge: the rows of one lack sums of {missing!r}")
    out["estimators"] = kept
    return out


def _either(name: str, pair: list[Any], default: Any) -> Any:
    given = [v for v in pair if v != default]
    plural = {"labels": "labels", "binned": "bins"}.get(name, f"{name}s")
    if len(given) == 2 and given[0] != given[1]:
        raise ValueError(f"accumulators of different {plural} cannot merge: {given[0]!r} and {given[1]!r}")
    return given[0] if given else default
