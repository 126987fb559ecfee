"""Locked files that an index on loopback has yanked, no longer has, or has with other bytes."""

from __future__ import annotations

from reprobuild.net.session import session
from reprobuild.resolve.yanked import find_withdrawn
from support.index import Index
from support.wheels import package

pytest_plugins = ["support.family"]


def test_each_is_told_by_the_hash_of_its_file(family: Index) -> None:
    files = {file.name: file for file in family.files}
    (old, new) = (files[f"filelock-{version}-py3-none-any.whl"] for version in ("1.0", "1.1"))
    new.yanked = True
    packages = [
        package("filelock", old.sha256, 1),
        package("filelock", new.sha256, 1),
        package("packaging", 64 * "0", 1),
        package("unknown", 64 * "0", 1),
    ]
    with session() as http:
        found = find_withdrawn(packages, http)
    assert [each.name for each in found] == ["filelock", "packaging", "unknown"]
    assert found[0].reason.startswith("yanked: ")
    assert found[1].reason == "not on the index, or with other bytes"
    assert found[2].reason.startswith("not known: no index has unknown")
