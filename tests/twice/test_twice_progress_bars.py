"""States of a line that was drawn again and again: what they say counts, how fast they came does not."""

from __future__ import annotations

import pytest

from reprobuild.twice.derived_items import Item
from reprobuild.twice.evidence import Evidence
from reprobuild.twice.text_differences import Texts


def apart(one: str, other: str) -> bool:
    """Whether a result differs; where none does, the difference is told."""
    number, explained = Texts(Evidence(), Evidence()).compare([one], [other], "standard error", many=False)
    assert number is not None or explained
    return number is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\rstep 1 loss 0.51\rstep 2 loss 0.42\rdone", "\rstep 1 loss 0.51\rstep 2 loss 0.43\rdone"),
        ("\rloss 0.51\rloss 0.42\rdone", "\rloss 0.51\rdone"),
        ("\r0.51 nats/symbol\rdone", "\r0.52 nats/symbol\rdone"),
    ],
    ids=["states", "fewer", "per something"],
)
def test_a_result_counts_where_another_state_was_drawn_over_it(one: str, other: str) -> None:
    assert apart(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\r 25%|#  | 1/4 [00:01<00:03, 1.0it/s]\rdone", "\r 25%|#  | 1/4 [00:02<00:06, 2.0s/it]\rdone"),
        (
            "\rSave (0/1):  0%| | 0/6 [00:00<?, ?ba/s]\rSave (1/1): 100%| 6/6 [00:01<00:00, 1.2ba/s]\rdone",
            (
                "\rSave (0/1):  0%| | 0/6 [00:00<?, ?ba/s]\rSave (0/1): 100%| 6/6 [00:02<00:00, 1.34s/ ba]\r"
                "Save (1/1): 100%| 6/6 [00:02<00:00, 3.5ba/s]\rdone"
            ),
        ),
        ("\r1/4 loss=0.5\r3/4 loss=0.3\rdone", "\r1/4 loss=0.5\r2/4 loss=0.4\r3/4 loss=0.3\rdone"),
        ("\r|\r/\r-\rdone", "\r|\r/\rdone"),
        ("\rone: 5% 1/20\x1b[A", "\rone: 25% 5/20\x1b[A"),
        ("\rwaiting 1s\rwaiting 2s\rdone", "\rwaiting 1s\rdone"),
        ("\r12.5 words/sec\r9 words/s\rdone", "\r12.75 words/sec\rdone"),
    ],
    ids=["speed", "two counts", "more states", "spinner", "inner bar", "waiting", "per second"],
)
def test_how_often_and_how_fast_a_line_is_drawn_does_not_count(one: str, other: str) -> None:
    assert not apart(one, other)


@pytest.mark.parametrize(
    "other", ["\r 1/4 [loss=0.52]\r 4/4 done", "\r 1/4 [loss=0.51]\r 1/4 [x=2]\r 4/4 done"]
)
def test_what_stood_in_a_bar_that_was_drawn_over_is_listed(other: str) -> None:
    one = "\r 1/4 [loss=0.51]\r 4/4 done"
    number, [told] = Texts(Evidence(), Evidence()).compare([one], [other], "standard error", many=False)
    assert (number, told.kind, "0.51" in told.values[0]) == (None, "drawn over", True)


BAR = "\r  0%|   | 0/15 [00:00<?, ?it/s]"


@pytest.mark.parametrize(
    ("one", "other", "counts"),
    [
        ("\r 20%|#  | 3/15 [00:00<00:02,  5.9it/s]{}", "\r 33%|## | 5/15 [00:01<00:02,  4.9it/s]{}", False),
        ("\r100%|###| 15/15 [00:00<00:00, 5.9it/s]{}", "\r 93%|## | 14/15 [00:01<00:00, 4.9it/s]{}", False),
        ("\r100%|###| 16/15 [00:00<00:00, 5.9it/s]{}", "\r 93%|## | 14/15 [00:01<00:00, 4.9it/s]{}", True),
    ],
)
@pytest.mark.parametrize("score", ["0.5938", "0.5939"])
def test_text_may_follow_a_bar_on_its_line(one: str, other: str, counts: bool, score: str) -> None:
    said = "epoch 0: accuracy {}"
    lines = BAR + one.format(said.format("0.5938")), BAR + other.format(said.format(score))
    assert apart(*lines) == (counts or score == "0.5939")


@pytest.mark.parametrize(("other", "counts"), [("4.9it/s, loss=0.51", False), ("5.9it/s, loss=0.52", True)])
def test_what_stands_before_text_counts_where_it_was_as_far(other: str, counts: bool) -> None:
    lines = [f"{BAR}\r 20%|#  | 3/15 [00:00<00:02,  {each}]saved" for each in ("5.9it/s, loss=0.51", other)]
    measured = [Evidence(items=[Item(("text", "a.py", 3, 0), each, 0, 0)]) for each in ("5.9", other[:3])]
    number, _ = Texts(*measured).compare([lines[0]], [lines[1]], "standard error", many=False)
    assert (number == 0) == counts
