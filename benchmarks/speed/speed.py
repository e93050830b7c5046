"""Speed of calibrant beside other libraries: same arrays, one process, answers checked.

    pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu
    pip install -r benchmarks/requirements.txt
    python -m benchmarks.speed.speed --markdown benchmarks/speed/results.md

Exit status 1 when an answer differs; a ratio that misses its bar is marked in the table and does not fail the run.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

from .. import arguments
from . import one_thread

# isort: split
from calibrant.data.writing import write_text

from . import compare, data, imports, peers, rows, table, timing


def main() -> int:
    parser = arguments.parser(__doc__, only="rows")
    parser.add_argument("--quick", action="store_true", help="small sizes and few repetitions")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the results as JSON")
    parser.add_argument("--markdown", type=Path, metavar="OUT", help="write the results as Markdown")
    options = parser.parse_args()
    budget = 0.5 if options.quick else 4.0
    versions = {library: peers.version(library) for library in peers.LIBRARIES}
    for library in [name for name, found in versions.items() if found is None]:
        print(f"MISSING: {library} (see benchmarks/requirements.txt)", file=sys.stderr)
    one_thread.limit_torch()
    warnings.simplefilter("ignore")
    known: dict[str, float] = {}
    results: dict[str, Any] = {"facts": table.facts(versions), "rows": [], "own": []}
    for row in rows.rows():
        if (options.quick and not row.quick) or (options.only and options.only not in row.name):
            continue
        found = compare.run(row, versions, budget, known)
        results["rows"].append(found)
        print(_line(found), file=sys.stderr)
    if not options.only:
        results["own"] = [_growth(budget), *_imports(5 if options.quick else 21)]
    text = table.markdown(results)
    print(text)
    if options.json:
        write_text(options.json, json.dumps(results, indent=1) + "\n")
    if options.markdown:
        write_text(options.markdown, text)
    return 1 if "DIFFERS" in text else 0


def _line(row: dict[str, Any]) -> str:
    ratio = "no peer" if row["ratio"] is None else f"{row['ratio']:.2f} of {row['fastest']} (wanted {row['wanted']:g})"
    return f"{row['row']}: {1e3 * row['seconds']:.3g} ms, {ratio}"


def _growth(budget: float) -> dict[str, Any]:
    """Our curve with band at 10⁶ rows over the same at 10⁴."""
    arrays = {"small": data.binary(10**4), "large": data.binary(10**6)}
    calls = {name: (lambda pair=pair: rows.band(*pair)) for name, pair in arrays.items()}
    seconds = timing.medians(calls, budget)[1]
    ratio = seconds["large"] / seconds["small"]
    return {
        "row": "curve with a band of 1000 resamples, ours at N = 1e6 / ours at 1e4",
        "value": ratio,
        "wanted": 3.0,
        "shown": f"{1e3 * seconds['large']:.3g} / {1e3 * seconds['small']:.3g}",
        "ratio": f"{ratio:.2f}",
        "bar": "3",
    }


def _imports(rounds: int) -> list[dict[str, Any]]:
    seconds = imports.import_seconds(rounds)
    names = {"calibrant": "import calibrant", "first use": "import calibrant and look its functions up"}
    out = []
    for name, what in names.items():
        extra = seconds[name] - seconds["numpy"]
        out.append(
            {
                "row": f"{what} / import numpy, fresh interpreters",
                "value": extra,
                "wanted": imports.ALLOWED,
                "shown": f"{1e3 * seconds[name]:.0f} / {1e3 * seconds['numpy']:.0f}",
                "ratio": f"{1e3 * extra:+.0f} ms",
                "bar": f"+{1e3 * imports.ALLOWED:.0f} ms",
            }
        )
    return out


if __name__ == "__main__":
    sys.exit(main())
