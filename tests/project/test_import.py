"""What importing costs and loads."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import calibrant

HEAVY = ("sklearn", "scipy", "matplotlib", "torch", "pandas", "pyarrow", "polars", "narwhals", "typer", "jinja2")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_loads_nothing_heavy():
    loaded = run(f"import calibrant, sys; print([m for m in {HEAVY!r} if m in sys.modules])")
    assert loaded.strip() == "[]"


@pytest.mark.slow
def test_binned_error_needs_no_extra_and_no_scipy_stats():
    code = (
        "import calibrant as cal, sys; cal.estimate([0, 1, 1, 0], [.2, .7, .9, .4]);"
        "print([m for m in ('matplotlib', 'torch', 'pandas', 'polars', 'scipy.stats', 'sklearn') if m in sys.modules])"
    )
    assert run(code).strip() == "[]"


def test_no_file_name_stands_twice():
    folder = Path(calibrant.__file__).parent
    names = Counter(p.name for p in folder.rglob("*.py"))
    assert [n for n, times in names.items() if times > 1 and n not in ("__init__.py", "base.py", "result.py")] == []


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = calibrant.nonsense


@pytest.mark.slow
def test_report_stays_a_function_after_its_package_is_imported():
    # A submodule of the same name would replace the function when it is imported.
    assert run("import calibrant as cal, calibrant.reporting.html; print(callable(cal.report))").strip() == "True"


@pytest.mark.parametrize("blocked", ["nothing", "extras"])
@pytest.mark.slow
def test_core_works_without_extras(blocked):
    """The same script that runs in a core-only installation, with every extra made unimportable."""
    script = Path(__file__).parents[1] / "core_only.py"
    code = f"""
import sys
sys.path.insert(0, {str(script.parent)!r})
import core_only
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in core_only.EXTRAS:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
if {blocked!r} == "extras":
    import importlib.util
    real = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *rest: None if name in core_only.EXTRAS else real(name, *rest)
    sys.meta_path.insert(0, Block())
core_only.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if blocked == "extras":
        assert done.returncode == 0, done.stderr
        assert "core only: ok" in done.stdout
    else:  # this environment has extras: the script must notice
        assert "not a core-only environment" in done.stderr
