"""An argument is checked by one line: what ``data/checks.py`` can say is not written out by hand elsewhere."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import calibrant

ROOT = Path(calibrant.__file__).parent

#: Calls that ask for the kind or the range of one value, which checks do.
_ASKS = {"isinstance", "is_real", "is_whole", "isfinite", "float", "callable"}


def _subjects(test: ast.expr) -> set[str] | None:
    """The values that a condition asks about by kind, range or membership alone; None where it asks anything else."""
    match test:
        case ast.BoolOp(values=parts):
            each = [_subjects(part) for part in parts]
            return None if None in each else set().union(*(e for e in each if e is not None))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _subjects(operand)
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()]):
            named = isinstance(left, ast.Name) or (isinstance(left, ast.Attribute) and left.attr != "ndim")
            return {ast.unparse(left)} if named else None
        case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
            return None  # whether it was given at all
        case ast.Compare(left=ast.Attribute(attr="ndim" | "size" | "shape" | "kind")):
            return None
        case ast.Compare(left=left, comparators=others):
            return _values([left, *others])
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[first, *_]) if name in _ASKS:
            return _values([first])
    return None


def _values(terms: list[ast.expr]) -> set[str] | None:
    """The plain values among the terms of a comparison; limits that are written as constants are none."""
    found: set[str] = set()
    for term in terms:
        match term:
            case ast.Constant() | ast.UnaryOp(operand=ast.Constant()):
                pass
            case ast.Name() | ast.Attribute() if ast.unparse(term) not in ("np.inf", "math.inf"):
                found.add(ast.unparse(term))
            case ast.Name() | ast.Attribute():
                pass
            case ast.Call(func=ast.Name(id="float" | "abs"), args=[inner]):
                found |= _values([inner]) or set()
            case _:
                return None
    return found


def by_hand(source: str) -> list[str]:
    """Conditions on one value alone whose only consequence is an error "… must be …", outside functions check_…"""
    found = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef) and node.name.lstrip("_").startswith("check_"):
            return
        if isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Raise):
            subjects = _subjects(node.test)
            said = ast.unparse(node.body[0])
            if subjects is not None and len(subjects) == 1 and (" must be " in said or " must lie " in said):
                found.append(f"{node.lineno}: if {ast.unparse(node.test)}: {said[:90]}")
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(source))
    return found


@pytest.mark.parametrize(
    "condition",
    [
        "not isinstance(x, int)",
        "x not in NAMES",
        "not 0 <= x <= 1",
        "not is_real(x) or not 0 < x < np.inf",
        "isinstance(x, bool) or not isinstance(x, str)",
        "not (np.isfinite(self.x) and self.x >= 1)",
    ],
)
def test_a_check_by_hand_is_found(condition):
    assert by_hand(f"def f(x):\n    if {condition}:\n        raise ValueError(f'x must be so; got {{x}}')")
    assert not by_hand(f"def check_f(x):\n    if {condition}:\n        raise ValueError(f'x must be so; got {{x}}')")


@pytest.mark.parametrize("condition", ["len(x) != k", "x.ndim != 2", "not low < high", "(x < 0).any()", "x is None"])
def test_a_check_of_a_shape_or_of_two_values_is_not(condition):
    assert not by_hand(f"if {condition}:\n    raise ValueError('x must be so')")


def test_every_check_of_one_argument_is_one_line():
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted(ROOT.rglob("*.py"))
        if path.name not in ("checks.py", "fields.py")  # where checks are written
        for line in by_hand(path.read_text())
    ]
    assert not found, "\n".join(found)
