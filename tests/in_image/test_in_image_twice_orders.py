"""Orders, and other things from outside, at the line that takes them."""

from __future__ import annotations

import sys
from pathlib import Path

from reprobuild.in_image.twice import orders
from reprobuild.twice import known_causes
from reprobuild.twice.evidence import read_evidence
from reprobuild.twice.recorded_run import RECORDS
from reprobuild.twice.records import read_records
from support.twice import PROGRAMS, recorded

PROGRAM = str(PROGRAMS / "without_torch.py")


def test_what_comes_from_outside_is_recorded_at_the_line_that_takes_it(tmp_path: Path) -> None:
    trace = {"REPROBUILD_TWICE_TRACE": "sources", "REPROBUILD_TWICE_EVERY": "1"}
    ran = recorded(sys.executable, [PROGRAM, "outside"])(tmp_path, trace, 30)
    assert (ran.status, ran.stderr) == (0, b"")
    lines = Path(PROGRAM).read_text().splitlines()
    marked = {(n, line.partition("  # ")[2]) for n, line in enumerate(lines, 1) if "  # " in line}
    expected = {(n, mark) for n, mark in marked if mark.split(" ")[0] in known_causes.SOURCES}
    if sys.version_info >= (3, 13):
        expected = {each for each in expected if each[1] != "order asyncio.as_completed"}
    [stream] = read_records(tmp_path / RECORDS)
    assert expected <= {(each.place.line, f"{each.kind} {each.name}") for each in stream.sources}
    scripts = [each.place for each in stream.sources if each.name == "sort -R in a command"]
    assert [(Path(each.file).name, each.line) for each in scripts] == [("mixed.sh", 4)]


def test_results_are_told_apart_by_what_dictionaries_hold() -> None:
    assert orders._shown({"met": True, "of": [1, object()]}) == "{'met': True, 'of': (1, object)}"
    assert orders._shown({"met": True}) != orders._shown({"met": False})


WAITS = """
import asyncio, concurrent.futures, made
async def work():
    await asyncio.sleep(0.01)
async def main():
    tasks = []
    for _ in range(3):
        others = made.tasks(work)
        tasks.append(asyncio.create_task(work()))
        await others
    await asyncio.wait(tasks)
asyncio.run(main())
for prefix in ("model", "crunch-worker"):
    with concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix=prefix) as pool:
        pool.submit(print, prefix).result()
"""


def test_the_tasks_and_threads_of_a_program_are_told_from_others(tmp_path: Path) -> None:
    """A server in the same process makes tasks at any time, and a prefix may also be the name of a result."""
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "made.py").write_text(
        "import asyncio\ndef tasks(work):\n    return asyncio.gather(inner(work), inner(work))\n"
        "async def inner(work):\n    await asyncio.get_running_loop().create_task(later(work))\n"
        "async def later(work):\n    await asyncio.gather(*[work() for _ in range(3)])\n"
    )
    program = tmp_path / "program.py"
    program.write_text(f"import sys\nsys.path.insert(0, {str(library)!r})\n{WAITS}")
    trace = {"REPROBUILD_TWICE_TRACE": "sources", "REPROBUILD_TWICE_EVERY": "1"}
    run = recorded(sys.executable, [str(program)])
    ran = run(tmp_path, trace, 30)
    assert (ran.status, ran.stderr) == (0, b"")
    [stream] = read_records(tmp_path / RECORDS)
    waited = [int(each.shown) for each in stream.sources if each.name == "asyncio.wait"]
    assert sorted(waited) == [*range(min(waited), min(waited) + 3)]
    names = read_evidence(tmp_path / RECORDS, 0.0, 2e9).names
    assert names["pool workers"] == ("crunch-worker_0",)
