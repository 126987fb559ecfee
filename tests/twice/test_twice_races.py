"""What a thread reads that another wrote: handed over, read meanwhile, or not known."""

from __future__ import annotations

from reprobuild.twice.cause_report import cause_rows
from reprobuild.twice.causes import Cause
from reprobuild.twice.records import Stream
from support.streams import backward, cause, op, stream


def of_two_threads(*, torn: bool, handed: bool, name: str = "add_.Tensor") -> Cause:
    """What the main thread reads differs; the other made it and goes on."""

    def run(x: str) -> Stream:
        made = "a" if torn else f"a{x}"
        return stream(
            op(1, made, name="lift_fresh.default", thread="Thread-1"),
            op(1, f"a{x}" if not torn else made, name=name, thread="Thread-2"),
            op(2, f"b{x}", (f"a{x}", 1), handed=(0,) if handed else ()),
            backward(f"c{x}", (f"b{x}", 2)),
            op(1, "z", name=name, thread="Thread-2"),
        )

    def ordered(x: str) -> Stream:
        """The same operations, of which the other thread's was equal in each run."""
        two = run(x)
        two.operations[0:2] = [
            op(1, "a0", name=name, thread="Thread-1"),
            op(1, "a1", name=name, thread="Thread-2"),
        ]
        number = int(x)
        two.operations[2] = op(2, f"b{x}", (f"a{x}", number), handed=(0,) if handed else ())
        return two

    return cause(*((run("0"), run("1")) if torn else (ordered("0"), ordered("1"))))


def test_what_was_handed_over_does_not_race() -> None:
    found = of_two_threads(torn=False, handed=True)
    assert (found.kind, found.place.line, found.proven) == ("outside", 2, False)
    assert found.told == "what another thread handed over differs: add_.Tensor at /code/train.py:1 made it"


def test_what_was_read_meanwhile_races() -> None:
    found = of_two_threads(torn=True, handed=False)
    assert (found.kind, found.place.line, found.proven) == ("race", 1, True)
    assert next(cause_rows(found))[0] == "race of threads"


def test_what_may_have_been_handed_over_unseen_is_a_candidate() -> None:
    for found in (
        of_two_threads(torn=False, handed=False),  # by a list, or a lock
        of_two_threads(torn=True, handed=True),  # NumPy may have written into it before
        of_two_threads(torn=True, handed=False, name="lift_fresh.default"),
    ):
        assert (found.kind, found.place.line, found.proven) == ("race", 1, False)
        assert "may have read what it writes" in found.told
        rows = dict(cause_rows(found))
        assert "may be a race" in rows
        assert "why" not in rows
