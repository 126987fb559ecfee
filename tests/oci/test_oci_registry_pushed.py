from __future__ import annotations

from pathlib import Path

import pytest

from reprobuild.errors import StorageError
from reprobuild.host.home import Home
from reprobuild.oci.registry.client import Target
from reprobuild.oci.registry.pushed import last_push, remember_push

LOCK, OTHER, DIGEST = (f"sha256:{64 * letter}" for letter in "abc")


def test_the_last_push_of_a_lock_is_known_by_its_digest(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert last_push(home, LOCK) is None
    remember_push(home, LOCK, Target.parse("registry.example/old:1"), DIGEST)
    remember_push(home, LOCK, Target.parse("registry.example:5000/team/torch:1"), DIGEST)
    assert last_push(home, LOCK) == f"registry.example:5000/team/torch@{DIGEST}"
    assert last_push(home, OTHER) is None


@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "bytes"])
def test_a_damaged_record_is_named_and_written_anew_by_the_next_push(tmp_path: Path, harm: str) -> None:
    """Else an image of another name or digest would be rendered."""
    home, target = Home(tmp_path), Target.parse("registry.example/team/torch:1")
    remember_push(home, LOCK, target, DIGEST)
    (record,) = (tmp_path / "pushed").iterdir()
    good = record.read_bytes()
    flipped = good.replace(b"team", b"teal")
    record.write_bytes({"flip": flipped, "cut": good[:-9], "empty": b"", "bytes": b"\xff" + good}[harm])
    with pytest.raises(StorageError, match=f"{record} is damaged"):
        last_push(home, LOCK)
    remember_push(home, LOCK, target, DIGEST)
    assert last_push(home, LOCK) == f"registry.example/team/torch@{DIGEST}"
