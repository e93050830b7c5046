"""The page of the command, from the options that it has."""

import inspect
from typing import Any

from sphinx.application import Sphinx
from typer.main import get_command

from calibrant.cli.commands import app as command
from site_parts.outside import DOCS, keep


def _text(text: str | None) -> str:
    return " ".join(inspect.cleandoc(text or "").replace("\b", "").split()).replace("|", r"\|").replace("<", r"\<")


def _row(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    default = option.default
    told = (
        ""
        if default in (None, False, "", ()) or callable(default)
        else f" Default: `{getattr(default, 'value', default)}`."
    )
    return f"| {names} | {_text(option.help)}{told} |"


def _section(name: str, one: Any) -> str:
    arguments = [o for o in one.params if o.param_type_name == "argument"]
    options = [o for o in one.params if o.param_type_name == "option" and not o.hidden]
    usage = " ".join(["calibrant", name, *(o.name.upper() for o in arguments), "[OPTIONS]"])
    said = "\n\n".join(_text(part) for part in inspect.cleandoc(one.help or "").replace("\f", "").split("\n\n"))
    rows = [f"| `{o.name.upper()}` | {_text(o.help)} |" for o in arguments] + [_row(o) for o in options]
    table = "\n".join(["| argument or option | |", "|---|---|", *rows])
    return f"## calibrant {name}\n\n{said}\n\n```text\n{usage}\n```\n\n{table}\n"


def write(app: Sphinx) -> None:
    """Write the page."""
    parts = [_section(name, one) for name, one in get_command(command).commands.items() if not one.hidden]
    start = (
        '# The command\n\n`pip install "calibrant[cli]"` installs the command `calibrant`. It reads CSV, Parquet, '
        "NDJSON and Arrow files, patterns, folders and queries: [how files are read](../scale.md#how-files-are-read). "
        "Exit codes: 0, success; 1, a requested check (`--fail-…`) failed; 2, an error in input, options or files.\n"
    )
    keep(DOCS / "reference" / "command.md", "\n".join([start, *parts]))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}
