"""How much code there is, room by room: lines that are no blank, comment, docstring or import line, and modules.

    python -m benchmarks.code_lines [--most 15] [--write benchmarks/code_lines.md]

`tests/project/test_code_lines.py` keeps both within limits.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from pathlib import Path

from calibrant.data.writing import write_text

#: What a room is for, and why it has the lines that it has.
FEATURES = {
    "calibrators": "28 calibrators: rows of docs/papers.md, or what the arena found of use; choosing, averaging, "
    "saving. One has an objective, a gradient and an interval of its own.",
    "estimators": "15 estimators, rows of docs/papers.md; the default's posterior; bandwidths of canonical kernels.",
    "data": "The one gate: containers of seven libraries, labels, weights, groups; archives that refuse "
    "forged bytes; what results show in a terminal and a notebook.",
    "measure": "The number; its intervals: posterior, inverted test, four named assumptions; curves and bands; pieces.",
    "benchmark": "The experiment with known truth of Posocco & Bonnefoy, five tracks, and the canonical truths, "
    "convergence and sharpness of Popordanoska et al.",
    "significance": "Nine tests, belt and e-values, one file a test, for weights, groups, ties and several classes.",
    "comparison": "Models on the same rows: calibration, scores and their parts, paired. Subgroups of rows and "
    "frames: gaps, tests, heterogeneity, the largest difference.",
    "plot": "14 displays, of which the reliability diagram with its strip, bands and panels is the largest.",
    "sums": "Bins, grids, quantiles, distinct scores: what adds, with the fast paths over rows.",
    "reporting": "Verdict, evidence, gain, text and page of a report; the comparison of calibrators.",
    "cli": "Nine commands: read files and engines, ask the library, print.",
    "scores": "Proper scores, decompositions, grouping loss, Murphy and Brier curves, ranks of models.",
    "decisions": "Clinical measures, decision curves, costs, thresholds, error at decisions, risk–coverage, optimism.",
    "frames": "One GROUP BY on five engines, batches in workers, subgroups.",
    "torch": "Eight losses, a metric, two scalers, and tiles that are computed again in the backward pass.",
    "(top level)": "Notions, data sets, names, and the methods of sums.",
    "monitoring": "The monitor.",
}
PACKAGE = Path(__file__).parents[1] / "src" / "calibrant"


def code_lines(source: str) -> int:
    """Lines of a module that are no blank, comment, docstring or import line."""
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            left_out.update(range(node.lineno, node.end_lineno + 1))
        elif isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                left_out.update(range(first.lineno, first.end_lineno + 1))
    lines = enumerate(source.splitlines(), start=1)
    return sum(1 for i, line in lines if i not in left_out and line.strip() and not line.strip().startswith("#"))


def modules(package: Path = PACKAGE) -> dict[Path, int]:
    """Code lines of every module, by its path within the package."""
    return {
        path.relative_to(package): code_lines(path.read_text(encoding="utf-8"))
        for path in sorted(package.rglob("*.py"))
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=15, help="so many of the longest modules")
    parser.add_argument("--write", type=Path, help="the page")
    options = parser.parse_args()
    lines = modules()
    rooms: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for path, n in lines.items():
        room = path.parts[0] if len(path.parts) > 1 else "(top level)"
        rooms[room] += n
        files[room] += 1
    table = [
        f"{sum(lines.values()):,} code lines in {len(lines)} modules.",
        "",
        "| room | code lines | modules | what for |",
    ]
    table.append("|---|---|---|---|")
    table += [f"| {room} | {n:,} | {files[room]} | {FEATURES.get(room, '')} |" for room, n in rooms.most_common()]
    print("\n".join(table))
    if options.write:
        intro = Path(__file__).with_name("code_lines_intro.md").read_text(encoding="utf-8")
        write_text(options.write, "\n".join([intro, *table, ""]))
    print(f"\nThe {options.most} longest:")
    for path, n in sorted(lines.items(), key=lambda item: -item[1])[: options.most]:
        print(f"{n:5d}  {path}")


if __name__ == "__main__":
    main()
