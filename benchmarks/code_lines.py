"""How much code there is, room by room: lines that are no blank, comment, docstring or import line, and modules.

    python -m benchmarks.code_lines [--most 15]

`tests/test_code_lines.py` keeps both within limits.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from pathlib import Path

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
    options = parser.parse_args()
    lines = modules()
    rooms, files = Counter(), Counter()
    for path, n in lines.items():
        room = path.parts[0] if len(path.parts) > 1 else "(top level)"
        rooms[room] += n
        files[room] += 1
    print(f"{sum(lines.values()):,} code lines in {len(lines)} modules\n")
    print("| room | code lines | modules |\n|---|---|---|")
    for room, n in rooms.most_common():
        print(f"| {room} | {n:,} | {files[room]} |")
    print(f"\nThe {options.most} longest:")
    for path, n in sorted(lines.items(), key=lambda item: -item[1])[: options.most]:
        print(f"{n:5d}  {path}")


if __name__ == "__main__":
    main()
