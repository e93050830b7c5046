"""Samples in a process of their own, whose peak memory is theirs."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .provenance import ROOT

_CODE = """
import importlib, json, sys
from benchmarks import provenance
module, name, given = sys.argv[1:]
found = getattr(importlib.import_module(module), name)(**json.loads(given))
print(json.dumps([found, provenance.loaded()]))
"""


def alone(module: str, function: str, **given: Any) -> dict[str, float]:
    """Numbers of a module's function; RuntimeError with the last line of what it says where it fails."""
    command = [sys.executable, "-c", _CODE, module, function, json.dumps(given)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError((ran.stderr.strip().splitlines() or [f"code {ran.returncode}"])[-1])
    found: dict[str, float]
    found, modules = json.loads(ran.stdout.splitlines()[-1])
    for name in modules:  # so that the header of the data file has them
        importlib.import_module(name)
    return found


def peak() -> float:
    """Most memory of this process in MiB (Linux), without its parent's, which `ru_maxrss` counts."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def forget_peak() -> None:
    """Let the peak count from here (Linux)."""
    file = os.open("/proc/self/clear_refs", os.O_WRONLY)
    os.write(file, b"5")
    os.close(file)


def beyond(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call returns, and the most memory in MiB during it beyond that before it (Linux)."""
    forget_peak()
    before = peak()
    found = call()
    return found, peak() - before
