"""What threads have seen since their last records."""

from __future__ import annotations

import threading

from reprobuild.in_image.twice.pending import MOST_AHEAD, MOST_PARTS, Pending

BATCH = ["batch", "0a", ""]


def test_batches_of_the_main_thread_are_in_order() -> None:
    pending = Pending()
    pending.batch("0a", "")
    assert pending.take() == ([BATCH], [])
    assert pending.take() == ([], [])


def test_each_thread_has_its_own_in_order_with_what_it_computes() -> None:
    pending, found = Pending(), list[object]()
    pending.add("loss", "0b", "")
    pending.losses.append(0.5)

    def trained() -> None:
        pending.batch("0a", "")
        found.append(pending.take())  # it may be for another thread
        pending.add("loss", "0c", "")
        found.append(pending.take())
        for number in range(MOST_AHEAD + 5):
            pending.batch(str(number), "")
        pending.add("loss", "0c", "")
        parts, _ = pending.take()
        found.append(([digest for _, digest, _ in parts[:2]], len(parts)))

    thread = threading.Thread(target=trained)
    thread.start()
    thread.join()
    assert found == [([], []), ([BATCH, ["loss", "0c", ""]], []), (["5", "6"], MOST_AHEAD + 1)]
    assert pending.take() == ([["loss", "0b", ""]], [0.5])


def test_what_was_taken_can_be_put_back_and_a_long_record_is_folded() -> None:
    pending = Pending()
    for number in range(MOST_PARTS + 2):
        pending.add("inputs", str(number), "")
    parts, losses = pending.take()
    assert (len(parts), parts[-1][0]) == (MOST_PARTS + 1, "more")
    pending.put_back(parts[:1], losses)
    assert pending.take() == ([["inputs", "0", ""]], [])
