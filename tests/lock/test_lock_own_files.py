"""reprobuild's own files of a lock."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reprobuild.lock.merge import agreed_pins
from reprobuild.lock.own_files import OwnFiles
from support.locks import LOCK, OTHER_FILES


@pytest.mark.parametrize("other", [None, replace(OTHER_FILES, version="0.0.8")])
def test_own_files_in_which_the_sides_differ_are_among_what_moves(other: OwnFiles | None) -> None:
    ours, theirs = (replace(LOCK, own_files=files).dump() for files in (OTHER_FILES, other))
    text = f"<<<<<<< ours\n{ours}=======\n{theirs}>>>>>>> theirs\n"
    assert agreed_pins(text, "x")[1] == {"reprobuild"}
    text = f"<<<<<<< ours\n{theirs}=======\n{ours}>>>>>>> theirs\n"
    assert agreed_pins(text, "x")[1] == {"reprobuild"}
