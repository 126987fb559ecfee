"""What ``twice`` says of a run beside a recording."""

from __future__ import annotations

import pytest

from reprobuild.cli.twice_output import show_agreed
from reprobuild.errors import RepeatError
from reprobuild.twice.baseline import Agreed
from reprobuild.twice.compare import Parting


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
