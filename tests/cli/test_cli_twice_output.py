"""What ``twice`` says of a run beside a recording."""

from __future__ import annotations

import pytest

from reprobuild.cli.twice_output import show_agreed
from reprobuild.errors import RepeatError
from reprobuild.twice.baseline import Agreed
from reprobuild.twice.first_difference import Parting, TimelineRow


def agreed(parting: Parting | None) -> Agreed:
    return Agreed(kinds=(), parting=parting, distances=(), steps=3, output=())


def test_a_run_that_parts_from_a_recording_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    parting = Parting(kind="value", stream="", moment=2, label="step 2 (SGD)", part="inputs")
    with pytest.raises(RepeatError) as raised:
        show_agreed(agreed(parting), "golden.repeat", json_=False)
    assert str(raised.value) == "parts from golden.repeat at step 2 (SGD): inputs"
    assert raised.value.hint.startswith("the same command without --against says whether the program itself")
    show_agreed(agreed(None), "golden.repeat", json_=False)
    assert capsys.readouterr().out.endswith("the same bits as golden.repeat (3 moments)\n")


def test_on_another_kind_of_machine_another_end_is_told_and_has_to_come_from_other_steps(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A recording in a pull request could name another kind, and any result would pass."""
    row = TimelineRow(label="step 1 (SGD)", parted=("loss",), loss=None, ulp=1)
    kinds, output = ("threads 1, here 2",), ("standard output", "a.txt")
    parting = Parting(kind="value", stream="", moment=1, label="step 1 (SGD)", part="loss")
    show_agreed(
        Agreed(kinds=kinds, parting=parting, distances=(row,), steps=3, output=output), "a", json_=False
    )
    said = capsys.readouterr().out
    assert "1 of 3 moments differ, by 1 ULP at most; another end: standard output, a.txt" in said
    with pytest.raises(RepeatError, match=r"0 of 3 moments differ; another end: standard output, a\.txt"):
        show_agreed(Agreed(kinds=kinds, parting=None, distances=(), steps=3, output=output), "a", json_=False)
