"""Files of a source tree and the archive made of them."""

from __future__ import annotations

import hashlib

import pytest

from reprobuild.errors import ReprobuildError
from reprobuild.sources.source_tree import TreeEntry, pack


def test_the_archive_is_of_the_files_alone() -> None:
    entries = [
        TreeEntry(b"b", "file", b"2"),
        TreeEntry(b"a/x", "executable", b"1"),
        TreeEntry(b"l", "link", b"a/x"),
    ]
    assert pack(entries, "a") == pack(list(reversed(entries)), "a")
    # By the documented rule: a change here needs another lock format.
    digest = "e91c8580e9bbdae7fdb729d219d54202a97b045f20cb8aaafccff4495246b146"
    assert hashlib.sha256(pack(entries, "a")).hexdigest() == digest


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (TreeEntry(b"l", "link", b"../../etc/passwd"), "the link l leads outside it"),
        (TreeEntry(b"l", "link", b"/etc/passwd"), "the link l leads outside it"),
        (TreeEntry(b"../x", "file", b""), "a path outside it"),
        (TreeEntry(b"\xff", "file", b""), "is not UTF-8"),
    ],
)
def test_what_a_tree_must_not_have(entry: TreeEntry, says: str) -> None:
    with pytest.raises(ReprobuildError, match=says):
        pack([entry], "a")
