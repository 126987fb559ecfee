"""Archives of conda packages that mean harm are refused before anything of them is unpacked or linked."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from reprobuild.errors import BuildError
from reprobuild.fetch import conda_archive as module
from reprobuild.fetch.conda_archive import Contents, hold, read_file, refuse_detours
from reprobuild.oci import tar_reader
from support.conda_archives import conda_archive, conda_package, listed, member
from support.fuzz import for_long, quickly


def held(folder: Path, data: bytes, *, old: bool = False) -> Contents:
    archive = folder / "archive"
    archive.write_bytes(data)
    return hold(archive, conda_package(data, old=old))


@pytest.mark.parametrize("old", [False, True])
def test_what_an_honest_package_has(tmp_path: Path, old: bool) -> None:
    members = [
        member("lib/a.so.1", b"code"),
        member("lib/a.so", "a.so.1"),
        member("etc", kind=tarfile.DIRTYPE),
        member("lib/b.so.1", "lib/a.so.1", tarfile.LNKTYPE),
        member("share/a link of any kind", "/etc/passwd"),
    ]
    paths = [
        *(listed("lib/a.so.1"), listed("lib/a.so", "softlink"), listed("etc", "directory")),
        *(listed("lib/b.so.1"), listed("share/a link of any kind", "softlink")),
    ]
    found = held(tmp_path, conda_archive(members, paths, old=old), old=old)
    assert found.paths == {
        "lib/a.so.1": "file",
        "lib/a.so": "link",
        "etc": "dir",
        "lib/b.so.1": "file",
        "share/a link of any kind": "link",
    }


FILE = [member("share/a", b"a")]
BAD_PATHS = [
    *("../../outside", "a/../b", "a\nb", "a\x0bb", "a\u2028b", "\x1b[2J"),
]

ARCHIVES: dict[str, tuple[str, bytes]] = {
    "a host's file, through a link": (
        r"l/id_rsa as a file, its archive as None",
        conda_archive([member("l", "/srv/keys")], [listed("l", "softlink"), listed("l/id_rsa")]),
    ),
    "a file behind a link": (
        r"l/x leads through l, which is not a folder",
        conda_archive([member("l", "/tmp"), member("l/x", b"x")], [listed("l", "softlink"), listed("l/x")]),
    ),
    "a module that is a link": (
        r"site-packages/x.py as a file, its archive as link",
        conda_archive([member("site-packages/x.py", "/etc/shadow")], [listed("site-packages/x.py")]),
    ),
    "a hard link to a host's file": (
        r"share/h is a hard link to 'etc/shadow'",
        conda_archive([member("share/h", "/etc/shadow", tarfile.LNKTYPE)], [listed("share/h")]),
    ),
    "a hard link to a link": (
        r"share/h is a hard link to 'share/l'",
        conda_archive(
            [member("share/l", "/etc/shadow"), member("share/h", "share/l", tarfile.LNKTYPE)],
            [listed("share/h")],
        ),
    ),
    "a device": (
        r"'dev/sda' is a device node",
        conda_archive([member("dev/sda", kind=tarfile.BLKTYPE)], [listed("dev/sda")]),
    ),
    "a pipe": (
        r"share/p is not a file, folder or link",
        conda_archive([member("share/p", kind=tarfile.FIFOTYPE)], [listed("share/p")]),
    ),
    "one path twice": (
        r"its archive has share/a more than once",
        conda_archive([*FILE, member("share/a", "/etc/shadow")], [listed("share/a")]),
    ),
    "listed twice": (
        r"paths.json has share/a more than once",
        conda_archive(FILE, [listed("share/a"), listed("share/a")]),
    ),
    "an unknown kind": (r"paths.json has 'share/a'", conda_archive(FILE, [listed("share/a", "reflink")])),
    "an empty placeholder": (
        r"empty placeholder for share/a",
        conda_archive(FILE, [listed("share/a", prefix_placeholder="", file_mode="text")]),
    ),
    "an entry point elsewhere": (
        r"entry point '../../x = a:b'",
        conda_archive(
            FILE,
            [listed("share/a")],
            info={"info/link.json": json.dumps({"noarch": {"entry_points": ["../../x = a:b"]}}).encode()},
        ),
    ),
    "another package": (
        r"says that it is evil 1.0 9, and the lock has it as evil 1.0 0",
        conda_archive(FILE, [listed("share/a")], build="9"),
    ),
    "no list": (r"not a conda package", conda_archive(FILE, b"{}")),
    "a list of another kind": (r"not a conda package", conda_archive(FILE, b'{"paths": [1]}')),
    "no JSON": (r"not a conda package", conda_archive(FILE, b"\xff")),
    "deep JSON": (r"not a conda package", conda_archive(FILE, b"[" * 200_000)),
    "no archive": (r"not a conda package", b"<html>not here</html>"),
    "cut short": (r"not a conda package", conda_archive(FILE, [listed("share/a")])[:-30]),
}


@pytest.mark.parametrize("what", ARCHIVES)
def test_what_means_harm_is_refused_by_name(tmp_path: Path, what: str) -> None:
    message, data = ARCHIVES[what]
    with pytest.raises(BuildError, match=r"^evil-1.0-0.conda: .*" + message):
        held(tmp_path, data)


@pytest.mark.parametrize("path", [*BAD_PATHS, "/etc/passwd", "a//b", "./a", ""])
def test_a_listed_path_that_is_not_plain(tmp_path: Path, path: str) -> None:
    with pytest.raises(BuildError, match=r"refused: its paths\.json has "):
        held(tmp_path, conda_archive(FILE, [listed(path)]))


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_path_of_the_archive_that_is_not_plain(tmp_path: Path, path: str) -> None:
    with pytest.raises(BuildError, match=r"its archive has the path|leads out of"):
        held(tmp_path, conda_archive([member(path, b"x")], []))


def test_a_link_of_another_package_is_no_way_out() -> None:
    one = Contents({"lib/python3.11/site-packages/l": "link"})
    two = Contents({"site-packages/l/x.py": "file"}, noarch=True)
    with pytest.raises(
        BuildError, match=r"two.conda: .*leads through .*/l, which is not a folder in one.conda"
    ):
        refuse_detours({"one.conda": one, "two.conda": two}, "3.11")
    refuse_detours({"one.conda": one, "two.conda": two}, "3.12")


def test_what_unpacks_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = conda_archive([member("share/zeros", bytes(4 << 20))], [listed("share/zeros")])
    assert len(data) < 4000
    held(tmp_path, data)
    monkeypatch.setattr(tar_reader, "MOST_BYTES", 1 << 20)
    with pytest.raises(BuildError, match=r"evil-1.0-0.conda: not a conda package: .* longer than"):
        held(tmp_path, data)


def test_a_document_that_would_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_DOCUMENT", 1000)
    with pytest.raises(BuildError, match=r"info/paths\.json has 3012 bytes"):
        held(tmp_path, conda_archive(FILE, b" " * 3012))


def test_a_package_of_before_paths_json(tmp_path: Path) -> None:
    data = conda_archive(FILE, b"", info={"info/files": b"share/a\n"}, old=True)
    assert held(tmp_path, data, old=True).paths == {"share/a": "file"}
    with pytest.raises(BuildError, match=r"not a conda package: .*share/b"):
        held(tmp_path, conda_archive(FILE, b"", info={"info/files": b"share/b\n"}, old=True), old=True)


def test_one_file_is_read_by_the_end_of_its_path(tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    archive.write_bytes(conda_archive(FILE, [listed("share/a")]))
    assert read_file(archive, "evil-1.0-0.conda", "share/a") == b"a"
    assert read_file(archive, "evil-1.0-0.conda", "share/none") is None


def paths_or_refusal(folder: Path, data: bytes) -> list[str]:
    """Return what a package puts where; nothing where it is refused by its name."""
    try:
        return sorted(held(folder, data).paths)
    except BuildError as error:
        return [] if error.message.startswith("evil-1.0-0.conda: ") else [error.message]


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["_path", "path_type", "a"]), inner)
    ),
    max_leaves=6,
)


def no_archive_is_taken_that_is_not_held(
    tmp_path_factory: pytest.TempPathFactory, paths: Any, link: Any, index: Any, name: str
) -> None:
    """Whatever its documents are: refused by name, or all that it lists is plain and in it."""
    data = conda_archive(
        [*FILE, member(name or "x", b"")] if "\0" not in name else FILE,
        json.dumps({"paths": paths}).encode(),
        info={
            "info/link.json": json.dumps({"noarch": link}).encode(),
            "info/other.json": json.dumps(index).encode(),
        },
    )
    assert set(paths_or_refusal(tmp_path_factory.mktemp("held"), data)) <= {"share/a", name}


def damage_is_refused_by_name(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    whole = bytearray(conda_archive(FILE, [listed("share/a")]))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    assert set(paths_or_refusal(tmp_path_factory.mktemp("held"), bytes(whole))) <= {"share/a"}


DOCUMENTS = {"paths": JSON, "link": JSON, "index": JSON, "name": st.text(max_size=8)}
test_no_archive_is_taken_that_is_not_held = quickly(**DOCUMENTS)(no_archive_is_taken_that_is_not_held)
test_no_archive_for_long = for_long(**DOCUMENTS)(no_archive_is_taken_that_is_not_held)
test_damage_is_refused_by_name = quickly(data=st.data())(damage_is_refused_by_name)
test_damage_for_long = for_long(data=st.data())(damage_is_refused_by_name)
