"""Run where only the core is installed: everything public that needs no extra works, the rest names its extra."""

import importlib.util
import io
import sys
from contextlib import redirect_stderr
from functools import partial
from types import ModuleType

EXTRAS = ("matplotlib", "torch", "pandas", "pyarrow", "polars", "typer", "rich", "jinja2", "duckdb", "dask", "pyspark")


def main() -> None:
    present = [name for name in EXTRAS if importlib.util.find_spec(name)]
    if present:
        raise SystemExit(f"not a core-only environment: {present} can be imported")
    import calibrant as cal

    for name in cal.__all__:
        if name.endswith("Display"):
            check(ImportError, "calibrant[plot]", partial(getattr, cal, name))
            continue
        found = getattr(cal, name)
        for public in found.__all__ if isinstance(found, ModuleType) else ():
            if name in ("plot", "torch"):
                check(ImportError, f"calibrant[{name}]", partial(getattr, found, public))
            else:
                getattr(found, public)
    report = cal.report([0, 1, 1, 0], [0.2, 0.7, 0.9, 0.4])
    str(report)
    report.to_dict()
    comparison = cal.compare_calibrators([0, 1, 1, 0, 1, 0], [0.2, 0.7, 0.9, 0.4, 0.3, 0.6], cv=2)
    str(comparison)
    comparison.to_dict()
    check(ImportError, "calibrant[html]", comparison.to_html)
    check(ImportError, "calibrant[html]", report.to_html)
    check(ImportError, "pandas, polars or pyarrow", report.to_frame)
    from calibrant import cli

    message = io.StringIO()
    with redirect_stderr(message):
        check(SystemExit, "2", cli.main)
    if "calibrant[cli]" not in message.getvalue():
        raise SystemExit(f"the command does not name its extra: {message.getvalue()}")
    sys.stdout.write("core only: ok\n")


def check(kind, text, action) -> None:
    try:
        action()
    except kind as error:
        if text not in str(error):
            raise SystemExit(f"{error!r} does not say {text!r}") from error
    else:
        raise SystemExit(f"{action} should have raised {kind.__name__}")


if __name__ == "__main__":
    main()
