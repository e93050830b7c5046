#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""Tasks of development: `nox -l` lists them. `.ci/run` does all of them, and more, without nox."""

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def tests(session: nox.Session) -> None:
    """The quick tests."""
    session.install("-e", ".[test]")
    session.run("pytest", "-n", "auto", "-m", "not slow", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Format, rules, types and layers."""
    session.install("-e", ".[test]")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("mypy")
    session.run("lint-imports")


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """The site, with warnings as errors."""
    session.install("-e", ".[docs]")
    session.run("bash", "docs/build_site.sh", "python", external=True)


if __name__ == "__main__":
    nox.main()
