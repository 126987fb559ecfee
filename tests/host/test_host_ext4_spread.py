from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.host.ext4_spread import spread_below
from reprobuild.host.home import Home


def flags(folder: Path) -> str:
    """Return the letters of what is set for a folder; skip the test where the disk has no such letters."""
    needs("lsattr")
    kind = subprocess.run(
        ["stat", "--file-system", "--format=%T", str(folder)], capture_output=True, text=True, check=True
    )
    if kind.stdout.strip() != "ext2/ext3":  # its name for ext4 too
        pytest.skip(f"of ext4, and this is {kind.stdout.strip()}")
    done = subprocess.run(["lsattr", "-d", str(folder)], capture_output=True, text=True, check=True)
    return done.stdout.split()[0]


def test_the_folders_of_a_folder_are_spread(tmp_path: Path) -> None:
    assert "T" not in flags(tmp_path)
    before = flags(tmp_path).replace("-", "")
    for _ in range(2):
        spread_below(tmp_path)
        assert sorted(flags(tmp_path).replace("-", "")) == sorted([*before, "T"])


def test_what_is_deleted_of_one_scratch_folder_is_far_from_the_next(tmp_path: Path) -> None:
    with Home(tmp_path).scratch("one") as one:
        assert "T" in flags(one.parent)
        assert "T" not in flags(one)


@pytest.mark.parametrize("place", ["/proc", "/nothing/there", "/dev/null"])
def test_a_place_that_does_not_know_it_is_left_alone(place: str) -> None:
    spread_below(Path(place))
