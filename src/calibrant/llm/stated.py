"""Confidences stated in words and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..data.checks import check_list, check_names, check_number, is_real
from ..data.types import FloatArray

#: Terms of Intelligence Community Directive 203 (2015), D.6.e(2)(a), with the midpoint of the range of each.
_TERMS = {
    ("almost no chance", "remote"): 0.03,
    ("very unlikely", "highly improbable"): 0.125,
    ("unlikely", "improbable", "improbably"): 0.325,
    ("roughly even chance", "roughly even odds"): 0.5,
    ("likely", "probable", "probably"): 0.675,
    ("very likely", "highly probable"): 0.875,
    ("almost certain", "almost certainly", "nearly certain"): 0.97,
}
#: Words that carry no probability.
_FILLING = frozenset(
    (
        *("a", "about", "am", "an", "approximately", "around", "at", "chance", "confidence", "confident", "i", "i'm"),
        *("is", "it", "it's", "level", "likelihood", "my", "of", "odds", "probability", "roughly", "sure", "that"),
        *("the", "this"),
    )
)
_NUMBER = r"\d+(?:[.,]\d+)?|[.,]\d+"
_PERCENT = re.compile(rf"({_NUMBER})\s*(?:%|per\s?cent\b)", re.IGNORECASE)
_PARTS = re.compile(rf"({_NUMBER})\s*(/|out\s+of)\s*({_NUMBER})", re.IGNORECASE)
_NUMBERS = re.compile(rf"[-−]?(?:{_NUMBER})")
_REFUSAL = re.compile(
    r"\b(can(no|')t|could not|couldn't|unable|won't|will not|refuse|decline|(do not|don't) know|not sure|no answer|"
    r"none|n/?a|nan|null|unknown|sorry)\b",
    re.IGNORECASE,
)
#: The rest of the line after such a word; parentheses are removed later.
_LABELLED = re.compile(r"\b(?:confidence|probability|certainty)\b([^\n]*)", re.IGNORECASE)
_ASIDE = re.compile(r"\([^)]*\)|\[[^\]]*\]")
REFUSED, UNREADABLE, UNCLEAR = "refused", "unreadable", "on an unclear scale"


def stated_confidence(texts: Any, *, words: Mapping[str, float] | None = None) -> FloatArray:
    """Read probabilities stated as ``"85 %"``, ``"0.85"``, ``"8/10"``, ``"8 out of 10"`` or ``"very likely"``.

    Parameters
    ----------
    texts : sequence of str or numbers
        Statements, one per probability.
    words : mapping of str to float, optional
        Probabilities of further terms, or replacements. Known terms are those of Intelligence Community
        Directive 203 (*Analytic Standards*, 2015), at the midpoints of its ranges: almost no chance, remote 0.03; very
        unlikely, highly improbable 0.125; unlikely, improbable 0.325; roughly even chance, roughly even odds 0.5;
        likely, probable 0.675; very likely, highly probable 0.875; almost certain, nearly certain 0.97.

    Returns
    -------
    ndarray of shape (n,)
        Probabilities; NaN for refusals and unreadable texts. A term counts only if the text says nothing else ("It is
        very likely."), so "not likely" and "extremely likely" are NaN. The same is true of a number without a percent
        sign. Such numbers are fractions if more of them lie between 0 and 1 than above 1, else percentages; those of
        the other kind are NaN, as their scale is unclear. Two numbers that add up to 100, as in "60/40", are odds: 0.6.

    Raises
    ------
    TypeError, ValueError
        For ``words`` that are not probabilities, and for a single text in place of a sequence.

    See Also
    --------
    calibrant.llm.read : Reads confidences from logs, and counts unreadable ones.

    Notes
    -----
    Cost: O(n). Terms mean different things to different people; the ranges of the directive are a convention, and so
    are their midpoints. Verbal confidences give only a few distinct scores, and their calibration error is that of the
    model together with this table.

    Examples
    --------
    >>> from calibrant.llm import stated_confidence
    >>> stated_confidence(["85 %", "8/10", "It is very likely.", "I cannot say."]).tolist()
    [0.85, 0.8, 0.875, nan]
    >>> stated_confidence(["85", "90", "certain"], words={"certain": 1.0}).tolist()
    [0.85, 0.9, 1.0]
    """
    return read_stated(check_list("texts", texts, "a sequence of texts"), words)[0]


def read_stated(texts: Iterable[Any], words: Mapping[str, float] | None) -> tuple[FloatArray, list[str | None]]:
    """Probabilities, and the reason for each NaN."""
    table = {_bare(term): value for terms, value in _TERMS.items() for term in terms}
    for term, value in check_names("words", words, wanted="probabilities").items() if words is not None else ():
        table[_bare(term)] = check_number(f"words[{term!r}]", value, least=0, most=1)
    said = [_one(text, table) for text in texts]
    values = np.array([value for value, _ in said], dtype=np.float64)
    faults = [UNREADABLE if fault == "number" and not 0 <= v <= 100 else fault for v, fault in said]
    numbers = np.array([fault == "number" for fault in faults], dtype=bool)
    above, below = numbers & (values > 1), numbers & (values < 1) & (values != 0)
    if above.any():  # 0 and 1 may be either
        fractions = below.sum() > above.sum()
        values[numbers] /= 1 if fractions else 100
        unclear = above if fractions else below
        faults = [UNCLEAR if u else fault for u, fault in zip(unclear, faults, strict=True)]
    faults = [None if fault == "number" else fault for fault in faults]
    values[[fault is not None for fault in faults]] = np.nan
    return values, faults


def said_in(text: str) -> str:
    """Text after the last "Confidence:" of its line; empty where there is none."""
    found = _LABELLED.findall(text)
    return _ASIDE.sub(" ", found[-1]) if found else ""


def _bare(text: str) -> str:
    """A text in lower case, without punctuation and filler words."""
    return " ".join(w for w in re.sub(r"[^\w'.%/,−-]+", " ", text.lower()).split() if w.strip(".") not in _FILLING)


def _one(text: Any, table: Mapping[str, float]) -> tuple[float, str | None]:
    """Probability, or a number on a scale not yet known ("number"), or NaN; and the reason or None."""
    if is_real(text):
        return (float(text), "number") if text == text else (np.nan, REFUSED)
    text = "" if text is None else str(text)
    numbers = _NUMBERS.findall(text)
    if (parts := _PARTS.search(text)) and len(numbers) == 2:
        share, whole = _float(parts[1]), _float(parts[3])
        whole = 100.0 if parts[2] == "/" and share + whole == 100 else whole  # odds: 50/50 is even, not certain
        return (share / whole, None) if 0 <= share <= whole > 0 else (np.nan, UNREADABLE)
    if (percent := _PERCENT.search(text)) and len(numbers) == 1 and numbers[0] == percent[1]:
        value = _float(percent[1]) / 100
        return (value, None) if value <= 1 else (np.nan, UNREADABLE)
    bare = _bare(text).rstrip(".,")
    if re.fullmatch(_NUMBER, bare):
        return _float(bare), "number"
    if bare in table:
        return table[bare], None
    return np.nan, REFUSED if not text.strip() or _REFUSAL.search(text) else UNREADABLE


def _float(text: str) -> float:
    return float(text.replace(",", "."))
