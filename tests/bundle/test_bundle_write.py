from __future__ import annotations

import errno
import hashlib
import json
import os
import tarfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pytest

from reprobuild.bundle.contents import INSTALL
from reprobuild.bundle.read import read_head
from reprobuild.bundle.rehearse import rehearse
from reprobuild.bundle.write import lock_names, write_bundle
from reprobuild.errors import BuildError, LockError, StorageError
from reprobuild.fetch.store import Store
from reprobuild.host.home import write_all
from reprobuild.host.host import Host
from support.bundles import TORCH, altered, contents, host_in, small_bundle, small_files, small_locks
from support.fetching import sha256
from support.fixtures import fixtures_of

globals().update(fixtures_of("support.bundles"))


def test_the_readme_comes_first_and_the_manifest_names_every_other_member(host: Host, tmp_path: Path) -> None:
    file = tmp_path / "a.tar"
    written = small_bundle(host, file)
    found = contents(file)
    assert list(found)[:3] == ["README", "manifest.json", "install.sh"]
    assert file.read_bytes()[512:].startswith(b"reprobuild bundle, format 1\n")
    assert b"@" not in found["README"]
    assert b"frames, for linux/amd64: sha256:" in found["README"]
    listed = json.loads(found.pop("manifest.json"))["members"]
    assert [each["path"] for each in listed] == list(found)
    assert {each["path"]: each["sha256"] for each in listed} == {p: sha256(d) for p, d in found.items()}
    assert written.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert written.size == file.stat().st_size


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_files_of_many_pieces_are_hashed_beside_the_reading(
    chunk: int, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_bundle(host, tmp_path / "a.tar")
    monkeypatch.setattr("reprobuild.bundle.write.CHUNK", chunk)
    written = small_bundle(host, tmp_path / "b.tar")
    assert (data := (tmp_path / "b.tar").read_bytes()) == (tmp_path / "a.tar").read_bytes()
    assert written.sha256 == sha256(data)


def test_locks_share_their_files(host: Host, tmp_path: Path) -> None:
    small_bundle(host, tmp_path / "a.tar")
    files = [path for path in contents(tmp_path / "a.tar") if path.startswith("files/")]
    assert files == sorted(f"files/{sha256(data)}" for data in small_files())


def test_another_home_and_another_order_of_locks_give_the_same_bytes(host: Host, tmp_path: Path) -> None:
    other = host_in(tmp_path / "other")
    for data in small_files():
        Store(other.home).add_document(data)
    small_bundle(host, tmp_path / "a.tar")
    write_bundle(dict(reversed(small_locks().items())), tmp_path / "b.tar", other)
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_two_locks_of_one_name_are_refused() -> None:
    one, two = (locks[0] for locks in small_locks().values())
    assert lock_names(["a", "a"], [[one], [one]]) == {"pylock.cpu.toml": [one]}
    with pytest.raises(LockError, match="b and another lock are both of a request 'cpu'"):
        lock_names(["a", "b"], [[one], [replace(two, request=one.request)]])


def test_a_full_disk_leaves_what_was_there(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "out" / "a.tar"
    file.parent.mkdir()
    file.write_bytes(b"an earlier one")

    def full(out: IO[bytes], data: bytes) -> None:
        if out.tell() > 4096:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_all(out, data)

    monkeypatch.setattr("reprobuild.bundle.write.write_all", full)
    with pytest.raises(StorageError, match="No space left"):
        small_bundle(host, file)
    assert [path.name for path in file.parent.iterdir()] == ["a.tar"]
    assert file.read_bytes() == b"an earlier one"
    monkeypatch.setattr("reprobuild.host.home.free_bytes", lambda _: 10)
    with pytest.raises(StorageError, match=r"a\.tar: needs .*, only 10 B free"):
        small_bundle(host, file)


def test_a_folder_that_is_not_there_is_named_before_anything_is_fetched(host: Host, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no is not a folder"):
        small_bundle(host, tmp_path / "no" / "a.tar")


def test_two_at_once_to_one_file_take_turns(host: Host, tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            small_bundle(host_in(tmp_path / "home"), tmp_path / "a.tar")
        except BaseException as error:  # noqa: BLE001 -- asserted below
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    small_bundle(host, tmp_path / "b.tar")
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["a.tar", "b.tar"]


def test_a_file_that_rots_in_the_store_is_named_and_removed(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[Any] = []
    monkeypatch.setattr("reprobuild.bundle.write.fetch", lambda *given: fetched.append(given))
    path = Store(host.home).path(sha256(TORCH))
    path.chmod(0o644)
    path.write_bytes(TORCH[:-1] + b"!")
    with pytest.raises(
        StorageError,
        match=r"torch-.*\.whl: its bytes in the store are damaged",
    ):
        small_bundle(host, tmp_path / "a.tar")
    assert not path.exists()
    assert not (tmp_path / "a.tar").exists()


@pytest.mark.parametrize(
    ("script", "error", "said"),
    [
        (
            "head -c 9 /dev/zero > /dev/full",
            StorageError,
            "nothing is known of the bundle, since the disk failed",
        ),
        ("echo 'no room here' >&2; exit 11", StorageError, "no room here"),
        ("echo 'no Python' >&2; exit 3", BuildError, "does not suffice on this machine: no Python"),
    ],
)
def test_a_disk_that_is_full_says_nothing_against_a_bundle(
    script: str, error: type[Exception], said: str, host: Host, tmp_path: Path
) -> None:
    file, content = tmp_path / "a.tar", f"{script}\n".encode()
    small_bundle(host, file)

    def install(members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
        table = json.loads(members[1][1])
        listed = next(each for each in table["members"] if each["path"] == INSTALL)
        listed |= {"sha256": sha256(content), "size": len(content)}
        members[1] = (members[1][0], json.dumps(table).encode())
        members[2] = (members[2][0], content)

    altered(file, install)
    with pytest.raises(error, match=said):
        list(rehearse(read_head(file), host))
