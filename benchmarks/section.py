"""Sections of a page that several scripts write: each replaces its own."""

import re
from pathlib import Path

from calibrant.data.writing import write_text

HEAD = """# Clinical and decision measures: sizes, coverages, power

What `calibration_belt`, `expected_cost`, `decision_calibration_error` and `subgroup_calibration` promise, simulated
where the truth is known. Every section is written by the script that it names.
"""


def write_section(page: Path, title: str, text: str) -> None:
    """Replace the section of a title, or add it at the end; a new page starts with its head."""
    whole = page.read_text(encoding="utf-8") if page.exists() else HEAD
    section = f"\n## {title}\n\n{text.strip()}\n"
    pattern = re.compile(rf"\n## {re.escape(title)}\n.*?(?=\n## |\Z)", re.DOTALL)
    whole = pattern.sub(lambda _: section, whole) if pattern.search(whole) else whole.rstrip("\n") + "\n" + section
    write_text(page, whole)
