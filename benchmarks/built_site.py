"""The built site, looked at whole: its weight, pictures of its pages, and the time to a first verdict.

bash docs/build_site.sh python                       # writes docs/build/html
python -m benchmarks.built_site weight docs/build/html
python -m benchmarks.built_site pictures docs/build/html FOLDER    # needs Chromium; a sheet of pages for each width
python -m benchmarks.built_site first_verdict                      # in an empty folder, with pip's cache as it is
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from PIL import Image

from .contact_sheet import shoot
from .provenance import ROOT

WIDTHS = (390, 820, 1280)
#: Pages of the sheets, and how much of each is seen.
PAGES = (
    "index", "get_started", "user_guide", "guide/diagrams", "calibrators", "how_to", "which", "coming_from",
    "auto_examples/index", "reference", "reference/api/calibrant.report", "evidence", "tables/coverage_groups",
)  # fmt: skip
HEIGHT = 1500


def weight(site: Path) -> None:
    """Megabytes by kind of file, and the heaviest files."""
    files = {path: path.stat().st_size for path in site.rglob("*") if path.is_file()}
    kinds = Counter[str]()
    for path, size in files.items():
        kinds[path.suffix or "none"] += size
    pages = sum(path.suffix == ".html" for path in files)
    print(f"{sum(files.values()) / 1e6:.1f} MB, {len(files):,} files, {pages:,} pages")
    for kind, size in kinds.most_common(6):
        print(f"{kind:>8} {size / 1e6:8.1f} MB")
    for path in sorted(files, key=files.__getitem__)[-5:]:
        print(f"{files[path] / 1e6:8.1f} MB  {path.relative_to(site)}")


def pictures(site: Path, folder: Path) -> None:
    """A sheet of pages for each width."""
    folder.mkdir(parents=True, exist_ok=True)
    for width in WIDTHS:
        seen = []
        for name in PAGES:
            page = site / f"{name}.html"
            if not page.is_file():
                print(f"no page {name}")
                continue
            picture = folder / "page.png"
            shoot(page, picture, width, HEIGHT)
            with Image.open(picture) as one:
                seen.append(one.convert("RGB").crop((0, 0, width, HEIGHT)))
            picture.unlink()
        across = -(-len(seen) // 2)
        sheet = Image.new("RGB", (across * (width + 20), 2 * (HEIGHT + 20)), "white")
        for i, one in enumerate(seen):
            sheet.paste(one, ((i % across) * (width + 20), (i // across) * (HEIGHT + 20)))
        sheet.save(folder / f"site-{width}.png")


def first_verdict() -> None:
    """Seconds of each step of the README's main command, from an empty environment to the first verdict."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- main command -->\n```bash\n(.+?)\n```", readme, re.DOTALL)
    if found is None:
        raise SystemExit("README has no main command")
    with tempfile.TemporaryDirectory() as folder:
        # What is tracked, as in a fresh clone.
        subprocess.run(["git", "clone", "-q", str(ROOT), folder], check=True)
        whole = 0.0
        for step in found[1].split(" && "):
            began, spent = time.perf_counter(), _spent()
            subprocess.run(step, shell=True, check=True, cwd=folder, stdout=subprocess.DEVNULL)
            took = time.perf_counter() - began
            whole += took
            print(f"{took:6.1f} s ({_spent() - spent:5.1f} s of processor time)  {step}")
        print(f"{whole:6.1f} s in all")


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = made.add_subparsers(dest="kind", required=True)
    kinds.add_parser("weight").add_argument("site", type=Path)
    pictured = kinds.add_parser("pictures")
    pictured.add_argument("site", type=Path)
    pictured.add_argument("folder", type=Path)
    kinds.add_parser("first_verdict")
    options = made.parse_args()
    if options.kind == "weight":
        weight(options.site)
    elif options.kind == "pictures":
        pictures(options.site.resolve(), options.folder.resolve())
    else:
        first_verdict()


if __name__ == "__main__":
    sys.exit(main())
