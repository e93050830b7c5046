"""The commands: read, report, and an exit code. Thin: everything they do is in the library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperGroup

from . import bounded
from .benchmark_command import benchmark_command
from .comparing import compare_models_command, segments_command, subgroups_command
from .monitoring import monitor_command
from .output import Output, for_command
from .repair import apply_command, compare_command, fix_command
from .reports import merge_command, report_command
from .source import Without
from .versions import env_command


class _Bounded(TyperGroup):
    """The commands, each of which ends as :func:`bounded` says."""

    def main(self, *args: Any, **options: Any) -> Any:
        raise SystemExit(bounded(partial(super().main, *args, **{**options, "standalone_mode": False})))


app = typer.Typer(
    name="calibrant",
    cls=_Bounded,
    help="Check and improve the calibration of a classifier's probabilities.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        from ..data import __version__

        typer.echo(__version__)
        raise typer.Exit


def demo_command(
    out: Annotated[Path, typer.Option(help="Folder for the HTML pages.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
) -> None:
    """Report on two models trained on scikit-learn's handwritten digits: even or odd, and which of ten."""
    from ..datasets import load_digits_predictions, load_even_digits_predictions
    from ..reporting import report

    out.mkdir(parents=True, exist_ok=True)
    pages = [
        Output("the page", out / f"calibrant-demo-{name}.html", {}, force=force) for name in ("even-digits", "digits")
    ]
    even, digits = load_even_digits_predictions(), load_digits_predictions()
    labels: list[dict[str, Any]] = [{"pos_label": "even"}, {"labels": digits.labels}]
    for page, data, options in zip(pages, (even, digits), labels, strict=True):
        result = for_command(report(data.y_true, data.y_prob, title=data.description, **options))
        page.write(partial(result.to_html, name=data.description))
        typer.echo(f"{result}\n\nopen {page.path} in a browser for the interactive page\n")


def _add(name: str, function: Callable[..., None]) -> None:
    """Add a command; a parameter that is a dataclass stands for its fields, an option each."""
    hints = get_type_hints(function, include_extras=True)
    options: list[Parameter] = []
    values: dict[str, tuple[Any, list[str]]] = {}
    for parameter in signature(function).parameters.values():
        kind, *marks = get_args(hints[parameter.name]) or (hints[parameter.name],)
        if not is_dataclass(kind):
            options.append(parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[parameter.name]))
            continue
        without = {option for mark in marks if isinstance(mark, Without) for option in mark}
        taken = [field for field in fields(kind) if field.name not in without]
        values[parameter.name] = kind, [field.name for field in taken]
        types = get_type_hints(kind, include_extras=True)
        for field in taken:
            default = Parameter.empty if field.default is MISSING else field.default
            options.append(Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=types[field.name]))

    def run(**given: Any) -> None:
        for parameter, (kind, names) in values.items():
            given[parameter] = kind(**{option: given.pop(option) for option in names})
        function(**given)

    run.__doc__ = function.__doc__
    run.__annotations__ = {option.name: option.annotation for option in options}
    vars(run)["__signature__"] = Signature(options)
    app.command(name)(run)


for _name, _function in (
    ("report", report_command),
    ("merge", merge_command),
    ("compare", compare_command),
    ("compare-models", compare_models_command),
    ("fix", fix_command),
    ("apply", apply_command),
    ("subgroups", subgroups_command),
    ("segments", segments_command),
    ("monitor", monitor_command),
    ("demo", demo_command),
    ("benchmark", benchmark_command),
    ("env", env_command),
):
    _add(_name, _function)
