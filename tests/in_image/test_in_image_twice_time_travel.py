"""A library that changes the clocks' functions in C works under the recorder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reprobuild import in_image

EXTENSION = """
import datetime, time, types
FUNCTIONS = ("time", "time_ns", "clock_gettime", "clock_gettime_ns", "monotonic", "monotonic_ns")
def plain():
    found = [getattr(time, name) for name in FUNCTIONS] + [datetime.datetime.now, datetime.datetime.utcnow]
    assert all(type(each) is types.BuiltinFunctionType for each in found), found
plain()
def patch():
    plain()
    return 7
def unpatch():
    plain()
    raise ValueError("not patched")
"""
PROGRAM = """
import datetime, time
datetime.datetime.now()
import _time_machine
assert _time_machine.patch() == 7
try:
    _time_machine.unpatch()
except ValueError:
    print("in C" if type(time.time) is type(len) else "recorded")
print("in C" if type(datetime.datetime.now) is type(len) else "recorded")
"""


@pytest.mark.parametrize("trace", ["", "0-0"])
def test_time_machine_gets_the_clocks_in_c_and_the_recorder_has_them_afterwards(
    trace: str, tmp_path: Path
) -> None:
    (tmp_path / "reprobuild_twice").symlink_to(Path(in_image.__file__).parent / "twice")
    (tmp_path / "sitecustomize.py").write_text("import reprobuild_twice\n")
    (tmp_path / "_time_machine.py").write_text(EXTENSION)
    (tmp_path / "records").mkdir()
    variables = {
        "PYTHONPATH": str(tmp_path),
        "REPROBUILD_TWICE": str(tmp_path / "records"),
        "REPROBUILD_TWICE_TRACE": trace,
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout.split("\n")[:2], done.stderr) == (["recorded", "recorded"], "")
