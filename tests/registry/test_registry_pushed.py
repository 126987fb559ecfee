from __future__ import annotations

from pathlib import Path

from reprobuild.host.home import Home
from reprobuild.registry.client import Target
from reprobuild.registry.pushed import last_push, remember_push

LOCK, OTHER, DIGEST = (f"sha256:{64 * letter}" for letter in "abc")


def test_the_last_push_of_a_lock_is_known_by_its_digest(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert last_push(home, LOCK) is None
    remember_push(home, LOCK, Target.parse("registry.example/old:1"), DIGEST)
    remember_push(home, LOCK, Target.parse("registry.example:5000/team/torch:1"), DIGEST)
    assert last_push(home, LOCK) == f"registry.example:5000/team/torch@{DIGEST}"
    assert last_push(home, OTHER) is None
