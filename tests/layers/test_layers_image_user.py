"""What an image has for a request's user."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import pytest

from reprobuild.errors import BuildError
from reprobuild.host.console import Console
from reprobuild.host.home import Home
from reprobuild.host.host import Host
from reprobuild.layers.cache import Cached
from reprobuild.layers.image_user import write_user
from reprobuild.layers.layer_writing import Drafts
from reprobuild.oci.tar_writer import LayerWriter, Record
from reprobuild.request.image_user import ImageUser

USER = ImageUser("app", 1000)
PASSWD = b"root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n"
GROUP = b"root:x:0:\nusers:x:100:\n"


@pytest.fixture
def drafts(tmp_path: Path) -> Drafts:
    (tmp_path / "scratch").mkdir()
    return Drafts(Host(Home(tmp_path / "home"), Console(quiet=True)), tmp_path / "scratch")


def layer(drafts: Drafts, name: str, files: Mapping[str, bytes], folders: tuple[str, ...] = ()) -> Cached:
    with drafts.open(name) as out:
        writer = LayerWriter(out)
        for folder in folders:
            writer.folder(folder, 0o750 if folder == "home" else 0o755)
        for path, content in files.items():
            writer.file(path, 0o644, len(content), [content])
        return drafts.put(64 * name[0], out, writer)


def written(drafts: Drafts, *below: Cached) -> tuple[bytes, dict[str, Record]]:
    out = io.BytesIO()
    writer = LayerWriter(out)
    write_user(USER, below, drafts.cache, writer)
    writer.close()
    return out.getvalue(), {record.path: record for record in writer.records}


def test_it_is_added_to_the_uppermost_files_and_owns_its_home_alone(drafts: Drafts) -> None:
    lower = layer(drafts, "a", {"etc/passwd": b"old:x:1:1::/:/bin/sh\n", "etc/group": GROUP}, ("etc", "home"))
    upper = layer(drafts, "b", {"etc/passwd": PASSWD})
    first, found = written(drafts, lower, upper)
    assert {path: (each.kind, each.mode, each.owner) for path, each in found.items()} == {
        "etc": ("dir", 0o755, "0:0"),
        "home": ("dir", 0o750, "0:0"),
        "etc/passwd": ("file", 0o644, "0:0"),
        "etc/group": ("file", 0o644, "0:0"),
        "home/app": ("dir", 0o755, "1000:1000"),
    }
    added = layer(drafts, "c", {"etc/passwd": PASSWD + b"app:*:1000:1000::/home/app:/bin/bash\n"})
    assert found["etc/passwd"].content == added.records[0].content
    assert written(drafts, lower, upper)[0] == first


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "/etc/passwd of the image is missing"),
        ({"etc/passwd": PASSWD}, "/etc/group of the image is missing"),
        (
            {"etc/passwd": PASSWD[:-1], "etc/group": GROUP},
            "/etc/passwd of the image is .*not a file of lines",
        ),
        ({"etc/passwd": b"", "etc/group": GROUP}, "/etc/passwd of the image is .*not a file of lines"),
        (
            {"etc/passwd": b"app:x:1:1::/:/bin/sh\n", "etc/group": GROUP},
            "has that name or number already: app",
        ),
        (
            {"etc/passwd": b"b:x:1000:1::/:/bin/sh\n", "etc/group": GROUP},
            "has that name or number already: b",
        ),
        ({"etc/passwd": PASSWD, "etc/group": GROUP + b"app:x:7:\n"}, "/etc/group has that name or number"),
        ({"home/app": b"", "etc/passwd": PASSWD, "etc/group": GROUP}, "the image has /home/app already"),
    ],
)
def test_a_system_that_has_it_or_cannot_have_it(drafts: Drafts, files: dict[str, bytes], said: str) -> None:
    with pytest.raises(BuildError, match=f"^user app:1000: .*{said}"):
        written(drafts, layer(drafts, "a", files))


def test_others_with_such_a_number_as_their_group_are_no_fault(drafts: Drafts) -> None:
    below = layer(drafts, "a", {"etc/passwd": PASSWD + b"b:x:1001:1000::/:/bin/sh\n", "etc/group": GROUP})
    assert "home/app" in written(drafts, below)[1]


def test_a_link_is_no_file_of_users(drafts: Drafts) -> None:
    with drafts.open("a") as out:
        writer = LayerWriter(out)
        writer.link("etc/passwd", "/proc/self/environ")
        below = drafts.put("a" * 64, out, writer)
    with pytest.raises(BuildError, match="/etc/passwd of the image is missing"):
        written(drafts, below)
