"""`SavedComparison`: a choice among calibrators that `calibrant compare` saved, read again by `calibrant fix`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..data.printing import fitted

if TYPE_CHECKING:
    from ..calibrators import Calibrator

#: As in ``reporting/comparison.py``, which this command need not load.
_FORMAT, _VERSION = "calibrant-comparison", 1
#: As in ``calibrators/crossval.py``: the choice of several.
AVERAGE = "average"


@dataclass(frozen=True)
class SavedComparison:
    """The choice and its weights, the name that is safe to save, the comparison as JSON, and its text."""

    chosen: str
    weights: dict[str, float]
    safe: str
    found: dict[str, Any]
    text: str

    @classmethod
    def of(cls, found: dict[str, Any], text: str) -> SavedComparison:
        """From a comparison as JSON; within noise, scores are not changed."""
        chosen = found["chosen"]
        return cls(chosen, found["weights"], "identity" if found["within_noise"] else chosen, found, text)

    def calibrator(self, name: str, n_classes: int) -> Calibrator:
        """The choice, an average with its weights, or a calibrator of any other name."""
        from ..calibrators import named_calibrator
        from ..calibrators.choosing import mixture_of

        weights = self.weights if name == self.chosen else {name: 1.0}
        return mixture_of({each: named_calibrator(each, n_classes) for each in weights}, weights)

    def check(self, classes: tuple[Any, ...], kind: str, digest: str) -> None:
        """ValueError for classes or scores that differ from those compared; a message for rows that do."""
        if kind != self.found["input"]:
            raise ValueError(f"the comparison of --from used --input {self.found['input']}; got --input {kind}")
        if list(classes) != self.found["classes"]:
            raise ValueError(
                f"the comparison of --from is for the classes {_listed(self.found['classes'])}, but these rows have "
                f"{_listed(list(classes))}"
            )
        if digest != self.found["digest"]:
            typer.echo(
                "calibrant: the calibrator is fitted to rows that differ from those compared in --from", err=True
            )


def read_comparison(path: Path) -> SavedComparison:
    """A file written by `calibrant compare --save` or `--json`; ValueError for any other, with the reason."""
    from ..calibrators.candidates import NAMED

    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"--from {path}: not a JSON file ({error})") from error
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise ValueError(f"--from {path}: not written by calibrant compare --save or --json")
    if found.get("version") != _VERSION:
        raise ValueError(f"--from {path}: unknown format version {found.get('version')!r}; run calibrant compare again")
    kinds: dict[str, type] = {
        "chosen": str,
        "verdict": str,
        "title": str,
        "digest": str,
        "input": str,
        "classes": list,
        "weights": dict,
    }
    kinds |= {"within_noise": bool}
    if bad := [name for name, kind in kinds.items() if not isinstance(found.get(name), kind)]:
        raise ValueError(f"--from {path}: {', '.join(bad)} missing or of the wrong type")
    weights = found["weights"]
    wrong = [each for each in weights if each not in NAMED]
    if wrong or found["chosen"] != (AVERAGE if len(weights) > 1 else next(iter(weights), None)):
        raise ValueError(
            f"--from {path}: the choice must be one of {', '.join(NAMED)}, or an average of them with weights; got "
            f"{found['chosen']!r}"
        )
    return SavedComparison.of(found, fitted("\n".join([found["title"], "", found["verdict"]])))


def _listed(classes: list[Any]) -> str:
    shown = ", ".join(map(str, classes[:6]))
    return f"{shown}, … ({len(classes)})" if len(classes) > 6 else shown
