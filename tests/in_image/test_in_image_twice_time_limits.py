"""What came within the time that the program allowed, and what did not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reprobuild.twice.report import rows
from support.twice import compared

WAITS = {
    "Future.result": """
from concurrent.futures import ThreadPoolExecutor, TimeoutError
def waited(seconds):
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(time.sleep, seconds)
        future.result(timeout=0.3)  # cause
""",
    "ApplyResult.get": """
from multiprocessing import TimeoutError
from multiprocessing.pool import ThreadPool
def waited(seconds):
    with ThreadPool(1) as pool:
        pool.apply_async(time.sleep, (seconds,)).get(0.3)  # cause
""",
    "subprocess.run": """
import subprocess
from subprocess import TimeoutExpired as TimeoutError
def waited(seconds):
    subprocess.run(["sleep", str(seconds)], timeout=0.3)  # cause
""",
    "asyncio.wait_for": """
import asyncio
from asyncio import TimeoutError
def waited(seconds):
    async def main():
        await asyncio.wait_for(asyncio.sleep(seconds), 0.3)  # cause
    asyncio.run(main())
""",
}
PROGRAM = """
import os, pathlib, time
{}
folder = pathlib.Path(__file__).parent
number = len(list(folder.glob("run*")))  # how busy a machine is varies
(folder / f"run{{number}}").touch()
try:
    waited(0.6 if number % 2 else 0.01)
    score = 1.5
except TimeoutError:
    score = 0.25
print("score", score)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", WAITS)
def test_a_time_limit_that_decides_is_the_cause(name: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(WAITS[name]))
    line = next(n for n, text in enumerate(program.read_text().splitlines(), 1) if "# cause" in text)
    found = compared(sys.executable, [str(program)], tmp_path)
    assert found.cause is not None
    told = rows(found)
    assert found.cause.proven, told
    assert {(each.kind, each.place.line) for each in found.cause.candidates} >= {("timeout", line)}, told
    assert "timeout" in {each.kind for each in found.cause.candidates[:2]}, told
