"""Logs written by inspect_ai: JSON and ``.eval`` archives."""

from __future__ import annotations

import json
import math
import re
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..data.checks import check_choice
from ..data.columns import some
from .answer import Answer, judged


def is_archive(path: Path) -> bool:
    """Whether a file is an archive that contains samples."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.startswith("samples/") for name in archive.namelist())


def is_inspect(log: Any) -> bool:
    """Whether a JSON object is such a log."""
    return isinstance(log, dict) and {"version", "status", "eval"} <= log.keys()


def archived_samples(path: Path) -> list[dict[str, Any]]:
    """Samples of an archive."""
    with suppress(ImportError):  # before Python 3.14 zipfile lacks the compression that inspect_ai takes
        import zipfile_zstd  # noqa: F401
    with zipfile.ZipFile(path) as archive:
        try:
            return [json.loads(archive.read(one)) for one in archive.namelist() if one.startswith("samples/")]
        except NotImplementedError as error:
            raise ImportError(
                f'{path} is compressed with Zstandard, which needs zipfile-zstd: pip install "calibrant[llm]"'
            ) from error


def inspect_answers(samples: list[dict[str, Any]], score: str | None) -> list[Answer]:
    """Answers of a log; ``score`` is the name of a scorer. Epochs of a sample are repeats of a question."""
    scorers: list[str] = list(dict.fromkeys(name for sample in samples for name in sample.get("scores") or ()))
    if score is None and len(scorers) > 1:
        raise ValueError(f"score must name one of the log's scorers: {some(scorers)}")
    if score is not None:
        check_choice("score", score, scorers)
    elif not scorers:
        raise ValueError("the log has no scores: score it first (inspect score)")
    chosen = scorers[0] if score is None else score
    return [_answer(sample, chosen) for sample in samples]


def _answer(sample: dict[str, Any], scorer: str) -> Answer:
    score = (sample.get("scores") or {}).get(scorer)
    if score is None:
        missing = "sample ended with an error" if sample.get("error") else "no score"
        return Answer(id=sample["id"], correct=None, fault=missing)
    correct, fault = judged(score.get("value"))
    output = sample.get("output") or {}
    return Answer(
        id=sample["id"],
        correct=correct,
        likelihood=_likelihood(output, score.get("answer")),
        scored=(score.get("metadata") or {}).get("confidence"),
        text=str(output.get("completion") or ""),
        fault=fault,
    )


def _likelihood(output: dict[str, Any], answer: Any) -> float | None:
    """Probability of the tokens of the last occurrence of the answer; None if they are not found."""
    choices = output.get("choices") or [{}]
    tokens = (choices[0].get("logprobs") or {}).get("content") or []
    found = list(re.finditer(rf"(?<!\w){re.escape(str(answer or ''))}(?!\w)", "".join(t["token"] for t in tokens)))
    if not answer or not found:
        return None
    start, stop = found[-1].span()
    end, total = 0, 0.0
    for token in tokens:
        begin, end = end, end + len(token["token"])
        if begin < stop and end > start:
            total += token["logprob"]
    return min(math.exp(total), 1.0)
