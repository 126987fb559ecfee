"""What is known of a lock's files while they are fetched."""

from __future__ import annotations

import threading

import pytest

from reprobuild.fetch.arrivals import Arrivals
from reprobuild.fetch.download import Stopped


def test_with_nothing_missing_all_is_there() -> None:
    arrivals = Arrivals()
    arrivals.wait()
    assert arrivals.has("a")
    assert not arrivals.fetched("a")


def test_what_came_is_told_to_who_waits_and_who_listens() -> None:
    arrivals, heard, ended = Arrivals(["a", "b"]), list[str](), threading.Event()
    arrivals.listen(lambda: heard.append("one"))

    def work() -> None:
        arrivals.wait(["a", "c"])
        ended.set()

    threading.Thread(target=work, daemon=True).start()
    arrivals.came("a")
    assert ended.wait(60)
    assert (arrivals.has("a"), arrivals.has("b"), arrivals.fetched("a")) == (True, False, True)
    assert heard == ["one"]


def test_a_file_that_will_not_come_ends_all_waiting() -> None:
    arrivals, stopped = Arrivals(["a"]), threading.Event()

    def work() -> None:
        try:
            arrivals.wait()
        except Stopped:
            stopped.set()

    threading.Thread(target=work, daemon=True).start()
    arrivals.fail()
    assert stopped.wait(60)
    assert arrivals.failed
    with pytest.raises(Stopped):
        arrivals.has("a")
