"""What a run varies on purpose."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reprobuild.twice import known_causes
from reprobuild.twice.recorded_run import HowToRun
from reprobuild.twice.report import rows, verdict, verdict_line
from reprobuild.twice.variations import VARIATIONS
from support.twice import PROGRAMS, compared


@pytest.mark.parametrize("what", VARIATIONS)
def test_what_an_image_holds_still_is_varied_on_purpose(what: str, tmp_path: Path) -> None:
    argv = [str(PROGRAMS / "without_torch.py"), "varied", what]
    others = tuple(name for name in VARIATIONS if name != what)
    found = compared(sys.executable, argv, tmp_path, how=HowToRun(vary=(*others, what), trace=False))
    assert (verdict(found), found.varied) == ("parts", what), verdict_line(found)
    assert ("varied", f"{VARIATIONS[what][0]}, in one run; the others were equal") in rows(found)


def test_the_cause_of_a_variation_is_what_it_changes(tmp_path: Path) -> None:
    argv = [str(PROGRAMS / "without_torch.py"), "varied", "hashseed"]
    found = compared(sys.executable, argv, tmp_path, how=HowToRun(vary=("hashseed",)))
    assert found.cause is not None
    assert (found.cause.proven, found.cause.remedy) == (True, known_causes.SET)
    assert found.cause.candidates[0].place.text == "print([name.upper() for name in names])"
