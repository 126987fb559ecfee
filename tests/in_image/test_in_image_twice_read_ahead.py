"""Batches that threads read."""

from __future__ import annotations

import threading

from reprobuild.in_image.twice.read_ahead import MOST, ReadAhead

BATCH = ("batch", "0a", "")


def test_the_main_thread_s_are_in_order() -> None:
    ahead = ReadAhead()
    assert not ahead.keep(BATCH)
    assert ahead.take() == []


def test_another_thread_s_are_in_order_with_what_it_computes() -> None:
    ahead, found = ReadAhead(), list[object]()

    def trained() -> None:
        found.extend((ahead.keep(BATCH), ahead.take(), ahead.take()))
        for number in range(MOST + 5):
            ahead.keep(("batch", str(number), ""))
        found.append([digest for _, digest, _ in ahead.take()] == [str(n) for n in range(5, MOST + 5)])

    thread = threading.Thread(target=trained)
    thread.start()
    thread.join()
    assert found == [True, [BATCH], [], True]
    assert ahead.take() == []
