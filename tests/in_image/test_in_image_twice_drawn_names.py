"""Numbers that the system gives threads."""

from __future__ import annotations

import sys
from pathlib import Path

from reprobuild.twice.report import rows, verdict
from support.twice import compared

ASKED = """
import threading
threads = [threading.Thread(target=print, name=f"io-{n}") for n in range(3)]
for each in threads:
    each.start()
    each.join()
    print(f"[{each.name} tid={each.native_id}] loss 0.25")
print(threading.get_native_id())
"""
NOT_ASKED = """
import threading
threads = [threading.Thread(target=int) for _ in range(50)]
for each in threads:
    each.start()
    each.join()
print("rows", vars(threads[20])["_native_id"])  # as a result that has one of these numbers
"""


def test_a_thread_s_number_that_the_program_asks_for_is_no_result(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(ASKED)
    found = compared(sys.executable, [str(tmp_path / "program.py")], tmp_path)
    assert verdict(found) == "text", rows(found)
    assert not found.runs[0].evidence.several  # so that an order of lines is a result still
    told = [text for heading, text in rows(found) if heading == "text differs"]
    assert len(told) == 4
    assert all("(thread number)" in each for each in told)


def test_those_that_threads_ask_for_themselves_may_be_results(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(NOT_ASKED)
    assert verdict(compared(sys.executable, [str(tmp_path / "program.py")], tmp_path)) == "parts"
