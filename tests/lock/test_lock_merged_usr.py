from __future__ import annotations

from dataclasses import replace

import pytest

from reprobuild.lock.merged_usr import links_into_usr
from support.locks import LOCK


@pytest.mark.parametrize(
    ("names", "platform", "links"),
    [
        (["usr-is-merged"], "linux/amd64", ("bin", "sbin", "lib", "lib64")),
        (["usr-is-merged"], "linux/arm64", ("bin", "sbin", "lib")),
        (["usrmerge"], "linux/amd64", ()),
        (["usrmerge", "usr-is-merged"], "linux/amd64", ()),
        ([], "linux/amd64", ()),
    ],
)
def test_the_links_that_a_root_begins_with(names: list[str], platform: str, links: tuple[str, ...]) -> None:
    debian = [replace(LOCK.debian[0], name=name) for name in names]
    assert links_into_usr(replace(LOCK, debian=debian, platform=platform)) == links
