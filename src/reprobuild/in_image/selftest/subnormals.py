"""Subnormal numbers are kept.

A library that is built with -ffast-math turns them into zero for the whole process when it is loaded
(llvm/llvm-project#57589).
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

from .libraries import np, torch
from .outcomes import Failed, Results, note
from .registry import SETTING, check

SMALLEST = 2.2250738585072014e-308  # of the normal float64 numbers
IMPORTER = f"""
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
        said = "kept" if float("{SMALLEST}") / 2 > 0 else "zero"
    except BaseException as error:
        said = "not imported: " + type(error).__name__
    print(name, said, sep="\\t", flush=True)
    if said == "zero":
        break
"""


def compiled_packages() -> list[str]:
    """Return the importable names of installed packages with compiled code, but for torch and NumPy."""
    found = set()
    metadata = importlib.import_module("importlib.metadata")
    for distribution in metadata.distributions():
        for file in distribution.files or ():
            top = file.parts[0].partition(".")[0]
            if ".so" in file.suffixes and top.isidentifier() and file.parts[0] in (top, file.name):
                found.add(top)
    # NVIDIA's packages hold libraries alone, which torch loads.
    return sorted(found - {"torch", "numpy", "nvidia"})


def import_each(names: list[str]) -> dict[str, str]:
    """Import packages one after the other in one process; return what became of a subnormal, by package."""
    command = [sys.executable, "-c", IMPORTER, *names]
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60, check=False
        )
        text, ending = done.stdout, f"the import ended the process with status {done.returncode}"
    except subprocess.TimeoutExpired as error:
        said: Any = error.stdout
        text, ending = (said or b"").decode(), "the import took more than 60 s"
    lines = [line.split("\t") for line in text.splitlines() if line.count("\t") == 1]
    found = {name: said for name, said in lines if name in names}
    if len(found) < len(names) and "zero" not in found.values():
        found[next(name for name in names if name not in found)] = f"not imported: {ending}"
    return found


def flushed(where: str, what: str) -> Failed:
    """Return the failure to raise where half of the smallest normal number is zero."""
    line = {"what": f"{SMALLEST} / 2 {where}", "expected": "1.1125369292536007e-308", "got": "0.0"}
    return Failed(what, [line])


@check(SETTING, order=900)
def subnormals(_: str) -> Results:
    """Subnormal numbers are not turned into zero, also after importing each package with compiled code."""
    halves = {
        "Python": float(str(SMALLEST)) / 2,
        "NumPy": float((np.array([SMALLEST]) / 2)[0]),
        "torch": float((torch.tensor([SMALLEST], dtype=torch.float64) / 2)[0]),
    }
    for where, value in halves.items():
        if value == 0:
            raise flushed(f"in {where}", "this process turns subnormal numbers into zero")
    names = compiled_packages()
    while names:
        found = import_each(names)
        for name, said in found.items():
            if said == "zero":
                reason = f"once {name} is imported, the process turns subnormal numbers into zero"
                raise flushed(f"after import {name}", reason)
            if said != "kept":
                note(f"{name}: {said}")
        names = [name for name in names if name not in found]
    return None
