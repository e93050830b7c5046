"""Names from data as a terminal may show them: no escapes, no line breaks, no marks that turn the direction of text."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""Text with what does not print as the escape that Python writes for it: ``\x1b``, ``\n``, ``\u202e``.

    Labels, columns and file names come from others: as they are they could colour a terminal, forge a line of a
    report, or show its characters in another order.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable_lines(text: str) -> str:
    """:func:`printable` of every line of a text."""
    return "\n".join(map(printable, text.split("\n")))
