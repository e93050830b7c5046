"""Samples in a process of their own, whose peak memory is theirs."""

from __future__ import annotations

import importlib
import json
import resource
import subprocess
import sys
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
    found, modules = json.loads(ran.stdout.splitlines()[-1])
    for name in modules:  # so that the header of the data file has them
        importlib.import_module(name)
    return found


def peak() -> float:
    """Most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
