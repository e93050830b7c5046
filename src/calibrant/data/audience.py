"""Who asked for a result: advice then names what they can type."""

from __future__ import annotations

from enum import Enum


class Audience(Enum):
    """From Python, by the command, or by the command for a page, which others read too."""

    PYTHON = "python"
    COMMAND = "command"
    PAGE = "page"

    @property
    def for_page(self) -> Audience:
        """The same for an exported page."""
        return Audience.PYTHON if self is Audience.PYTHON else Audience.PAGE

    def names(self, call: str, command: str) -> str:
        """A call of Python, its command, or the command and the call."""
        return {"python": call, "command": command, "page": f"{command} (in Python {call})"}[self.value]

    def option(self, name: str) -> str:
        """``goal=`` or ``--goal``."""
        call, command = f"{name}=", f"--{name}"
        return f"{command}, in Python {call}" if self is Audience.PAGE else self.names(call, command)
