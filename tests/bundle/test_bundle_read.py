from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reprobuild.bundle.read import extract, locks_named, read_head, take
from reprobuild.bundle.write import write_bundle
from reprobuild.errors import FetchError, LockError, StorageError
from reprobuild.fetch.store import Store
from reprobuild.host.host import Host
from support.bundles import (
    PANDAS,
    SCRIPT,
    TORCH,
    altered,
    contents,
    host_in,
    small_bundle,
    small_files,
    small_locks,
    with_manifest,
)
from support.fetching import check, lock_of
from support.fixtures import fixtures_of

globals().update(fixtures_of("support.bundles"))

Members = list[tuple[tarfile.TarInfo, bytes]]


@pytest.fixture
def bundle(host: Host, tmp_path: Path) -> Path:
    small_bundle(host, tmp_path / "a.tar")
    return tmp_path / "a.tar"


@pytest.fixture
def empty(tmp_path: Path) -> Host:
    """Another host, with nothing in its home."""
    return host_in(tmp_path / "empty")


def taken(file: Path, host: Host) -> None:
    head = read_head(file)
    take(head, [lock for locks in head.locks.values() for lock in locks], host)


def test_the_files_of_a_lock_come_into_the_store(bundle: Path, empty: Host) -> None:
    head = read_head(bundle)
    assert head.locks == {name: tuple(locks) for name, locks in small_locks().items()}
    take(head, locks_named(head, "cpu"), empty)
    check(Store(empty.home), *(small_files() - {PANDAS}))
    take(head, locks_named(head, "pylock.frames.toml"), empty)
    check(Store(empty.home), *small_files())


def test_a_lock_is_chosen_by_its_name(bundle: Path) -> None:
    head = read_head(bundle)
    with pytest.raises(LockError, match="has no lock 'other'") as caught:
        locks_named(head, "other")
    assert caught.value.hint == "name one of cpu, frames"
    with pytest.raises(LockError, match="has 2 locks"):
        locks_named(head, None)


def test_a_lock_of_ones_own_with_another_file_is_refused(bundle: Path, empty: Host) -> None:
    other = lock_of({"https://index.example/p0-2-py3-none-any.whl": b"new"})
    with pytest.raises(FetchError, match=r"lacks files of the lock cpu: p0-2-py3-none-any\.whl"):
        take(read_head(bundle), [other], empty)


def test_the_script_can_be_read_alone(bundle: Path, tmp_path: Path) -> None:
    assert extract(read_head(bundle), "install.sh", tmp_path).read_bytes() == SCRIPT


def _index(members: Members, data: bytes) -> int:
    return next(n for n, (_, content) in enumerate(members) if content == data)


def _change(members: Members, data: bytes, new: bytes) -> None:
    at = _index(members, data)
    members[at] = (members[at][0], new)


def _swap(members: Members) -> None:
    members[-1], members[-2] = members[-2], members[-1]


def _link(members: Members) -> None:
    info, _ = members[_index(members, TORCH)]
    info.type, info.linkname = tarfile.SYMTYPE, "/etc/shadow"


def _extra(members: Members) -> None:
    members.append((tarfile.TarInfo("files/extra"), b"more"))


MEMBERS: dict[str, tuple[Callable[[Members], object], str]] = {
    "a changed byte": (
        lambda m: _change(m, TORCH, TORCH[:-1] + b"!"),
        r"torch-.*\.whl: its SHA-256 is [0-9a-f]{64}, not ",
    ),
    "a shorter file": (
        lambda m: _change(m, TORCH, TORCH[:-1]),
        r"torch-.*\.whl: it has 1,781 bytes, not 1,782",
    ),
    "a missing file": (
        lambda m: m.pop(_index(m, TORCH)),
        r"torch-.*\.whl: ",
    ),
    "a missing last file": (lambda m: m.pop(), "the archive ends before it"),
    "files in another order": (_swap, "is in its place"),
    "a file too many": (_extra, "files/extra: the manifest does not name it"),
    "a link": (_link, r"torch-.*\.whl: it is not a regular file \(files/"),
    "another readme": (lambda m: _change(m, m[0][1], m[0][1] + b"!"), "README: its bytes are not those"),
    "another script": (lambda m: _change(m, SCRIPT, SCRIPT.replace(b"0", b"1")), r"install\.sh: its SHA-256"),
    "no manifest": (lambda m: m.pop(1), "manifest.json is not where it belongs"),
    "no readme": (lambda m: m.pop(0), "is not a bundle"),
    "a manifest of garbage": (lambda m: _change(m, m[1][1], b"\xff{"), "manifest.json: it is not a manifest"),
    "a deep manifest": (lambda m: _change(m, m[1][1], b"[" * 99999), "manifest.json: it is not a manifest"),
}


@pytest.mark.parametrize("case", MEMBERS)
def test_a_bundle_with_other_members_is_refused_by_name(case: str, bundle: Path, empty: Host) -> None:
    change, message = MEMBERS[case]
    altered(bundle, change)
    with pytest.raises(FetchError, match=message):
        taken(bundle, empty)
    assert not list(empty.home.root.glob("store/partial/*"))


def _first(key: str, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda table: table["members"][-1].update({key: value})


MANIFESTS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "newer": (
        lambda t: t.update(format=2, reprobuild="9.0"),
        "is a bundle of format 2, and this reprobuild reads format 1",
    ),
    "a format of words": (lambda t: t.update(format="1"), "it is not a manifest: format is not a number"),
    "no members": (lambda t: t.update(members=[]), "its members are not in order"),
    "a path upwards": (_first("path", "files/../../etc/passwd"), "is not the path of a member"),
    "a path of the root": (_first("path", "/etc/passwd"), "is not the path of a member"),
    "an unknown folder": (_first("path", "other/x"), "is not the path of a member"),
    "a size below zero": (_first("size", -1), "has no size"),
    "a size of words": (_first("size", True), "has no size"),
    "no hash": (_first("sha256", "x"), "has no SHA-256"),
    "a path twice": (lambda t: t["members"].append(t["members"][-1]), "its members are not in order"),
    "no lock": (
        lambda t: t.update(members=[m for m in t["members"] if "locks/" not in m["path"]]),
        "it names no lock",
    ),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_a_bundle_with_another_manifest_is_refused_by_name(case: str, bundle: Path, empty: Host) -> None:
    change, message = MANIFESTS[case]
    with_manifest(bundle, change)
    with pytest.raises(FetchError, match=message):
        taken(bundle, empty)


def test_bytes_after_the_end_are_refused(bundle: Path, empty: Host) -> None:
    """Two bundles in one file are one to some tools; zeros are what tar writes."""
    data = bundle.read_bytes()
    bundle.write_bytes(data + bytes(10240))
    taken(bundle, empty)
    for more in (data, b"x", bytes(99_999) + b"x"):
        bundle.write_bytes(data + more)
        with pytest.raises(FetchError, match="something follows the end of the archive"):
            taken(bundle, empty)


def test_a_manifest_with_a_key_twice_is_refused(bundle: Path, empty: Host) -> None:
    def twice(members: Members) -> None:
        members[1] = (members[1][0], members[1][1].replace(b'"format"', b'"format": 2, "format"', 1))

    altered(bundle, twice)
    with pytest.raises(FetchError, match="it is not a manifest: a key is listed more than once"):
        taken(bundle, empty)


def test_a_newer_bundle_says_how_to_read_it(bundle: Path) -> None:
    with_manifest(bundle, lambda table: table.update(format=7, reprobuild="3.2.1"))
    with pytest.raises(FetchError) as caught:
        read_head(bundle)
    assert caught.value.hint == f"install the reprobuild in it, 3.2.1, as its README says: head {bundle}"


def test_a_bundle_cut_short_anywhere_is_refused(bundle: Path, empty: Host) -> None:
    whole = bundle.read_bytes()
    # What follows the last file is padding.
    last = max(whole.rindex(data) + len(data) for data in small_files())
    for size in (0, 1, 511, 512, 700, 1024, 4000, *range(5120, last, 512), last - 1):
        bundle.write_bytes(whole[:size])
        with pytest.raises(FetchError, match=r"a\.tar"):
            taken(bundle, empty)


def test_a_damaged_header_is_that_of_its_member(bundle: Path, empty: Host) -> None:
    data = bundle.read_bytes()
    at = data.index(TORCH) - 512
    bundle.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(FetchError, match=r"torch-.*\.whl: a header is damaged: its checksum does not match"):
        taken(bundle, empty)
    bundle.write_bytes(data[: data.index(b"{") + 9])
    with pytest.raises(FetchError, match=r"manifest\.json: it ends in the middle of a file"):
        taken(bundle, empty)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "not a bundle"), (b"text " * 999, "not a bundle"), (b"\x1f\x8b" * 600, "not a bundle")],
    ids=["empty", "text", "gzip"],
)
def test_what_is_no_bundle_is_named(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(FetchError, match=message):
        read_head(tmp_path / "x")
    with pytest.raises(FetchError, match="no: cannot be read: No such file"):
        read_head(tmp_path / "no")
    with pytest.raises(FetchError, match="cannot be read: Is a directory"):
        read_head(tmp_path)


def test_a_home_without_room_is_named_before_it_is_filled(
    bundle: Path, empty: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reprobuild.host.home.free_bytes", lambda _: 3)
    with pytest.raises(StorageError, match=r"needs .*, only 3 B free"):
        taken(bundle, empty)


def test_a_bundle_that_is_replaced_while_it_is_read_is_refused(
    bundle: Path, empty: Host, host: Host, tmp_path: Path
) -> None:
    head = read_head(bundle)
    locks = small_locks()
    write_bundle({"pylock.cpu.toml": locks["pylock.cpu.toml"]}, bundle, host)
    with pytest.raises(FetchError, match="the bundle was replaced while it was read"):
        take(head, locks["pylock.frames.toml"], empty)


def test_a_lock_or_script_beyond_a_limit_is_not_read_into_memory(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lock,) = [len(text) for path, text in contents(bundle).items() if path == "locks/pylock.frames.toml"]
    monkeypatch.setattr("reprobuild.bundle.read._LARGEST_TEXT", lock - 1)
    with pytest.raises(FetchError, match=r"pylock\.frames\.toml: it has more than"):
        read_head(bundle)
