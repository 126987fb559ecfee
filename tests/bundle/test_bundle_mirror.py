"""A bundle laid out for pip, uv and apt, which install from it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import needs
from reprobuild.bundle.mirror import lay_out
from reprobuild.bundle.read import read_head
from reprobuild.bundle.write import write_bundle
from reprobuild.errors import FetchError, StorageError
from reprobuild.fetch.store import Store
from reprobuild.host.host import Host
from reprobuild.host.machine import architecture
from reprobuild.lock.model import Lock
from reprobuild.lock.packages import DebianPackage, SourceArchive
from support.bundles import host_in
from support.disk import tiny_disk
from support.fetching import sha256
from support.fixtures import fixtures_of
from support.locks import SMALL
from support.wheels import package, put, simple_wheel

globals().update(fixtures_of("support.bundles"))

TREE = b"the tree of a repository"


def deb(folder: Path, name: str = "python3.11", **fields: str) -> bytes:
    """Return a Debian package with one file."""
    control = folder / name / "DEBIAN/control"
    control.parent.mkdir(parents=True)
    (folder / name / "toy").write_text("toy")
    lines = {"Package": name, "Version": "1:2+3", "Architecture": architecture(), "Maintainer": "a <a@b>"}
    lines |= {"Description": "toy", **fields}
    control.write_text("".join(f"{key}: {value}\n" for key, value in lines.items()))
    subprocess.run(["dpkg-deb", "-b", str(control.parent.parent)], check=True, capture_output=True)
    return (folder / f"{name}.deb").read_bytes()


def locked_deb(data: bytes, version: str = "1:2+3") -> DebianPackage:
    plain = version.partition(":")[2]
    return DebianPackage(
        name="python3.11",
        version=version,
        architecture=architecture(),
        archive="debian",
        path=f"pool/main/p/python3.11_{plain}_{architecture()}.deb",
        sha256=sha256(data),
        size=len(data),
    )


@pytest.fixture
def lock(host: Host, tmp_path: Path) -> Lock:
    """A lock of wheels, one with a local version, of a git tree, and of a Debian package."""
    packages = [
        put(host.home, "odd-name", simple_wheel("odd-name", "1.0+cpu"), "1.0+cpu"),
        put(host.home, "plain", simple_wheel("plain")),
        *(
            put(host.home, each.name, simple_wheel(each.name, each.version), each.version)
            for each in SMALL.python
        ),
    ]
    tree = SourceArchive(
        filename="tree-1.0.tar.gz",
        url="https://git.example/tree",
        sha256=sha256(TREE),
        size=len(TREE),
        kind="vcs",
        commit="a" * 40,
    )
    debian = deb(tmp_path)
    for data in (TREE, debian):
        Store(host.home).add_document(data)
    built = package("tree", sha256(b""), 1)
    built = replace(built, wheel=replace(built.wheel, url=""), source=tree)
    request = replace(SMALL.request, name="cpu")
    return replace(SMALL, request=request, python=[*packages, built], debian=[locked_deb(debian)])


@pytest.fixture
def bundle(host: Host, lock: Lock, tmp_path: Path) -> Path:
    write_bundle({"pylock.cpu.toml": [lock]}, tmp_path / "a.tar", host)
    return tmp_path / "a.tar"


def run(*argv: str | Path, **env: str) -> str:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "UV_"))}
    done = subprocess.run(argv, env={**kept, **env}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_pip_and_uv_install_from_it_and_verify_hashes(bundle: Path, tmp_path: Path) -> None:
    mirror = tmp_path / "a mirror"
    found = lay_out(read_head(bundle), mirror, host_in(tmp_path / "empty"))
    assert found.left_out == (f"tree-{'a' * 12}.tar",)
    assert [page.parent.name for page in sorted((mirror / "simple").glob("*/*"))] == [
        *("numpy", "odd-name", "pip", "plain", "torch"),
    ]
    index = ["--index-url", (mirror / "simple").as_uri()]
    wheel = mirror / "python/odd-name/odd_name-1.0+cpu-py3-none-any.whl"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--isolated",
        "install",
        "--no-cache-dir",
        "--disable-pip-version-check",
    ]
    uv = [sys.executable, "-m", "uv", "pip", "install", "--no-config", "--no-cache"]
    for name, command in (("pip", pip), ("uv", uv)):
        run(*command, *index, "--target", tmp_path / name, "odd-name", "plain")
        assert (tmp_path / name / "odd_name/__init__.py").read_text() == "NAME = 'odd-name'\n"
    wheel.write_bytes(simple_wheel("odd-name", "1.0+cpu", other=""))
    for name, command in (("pip", pip), ("uv", uv)):
        done = subprocess.run(
            [*command, *index, "--target", tmp_path / f"{name}2", "odd-name"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0
        assert "hash" in done.stderr.lower()


def test_apt_downloads_from_it_and_verifies_hashes(bundle: Path, tmp_path: Path) -> None:
    needs("apt-get")
    mirror = tmp_path / "mirror"
    lay_out(read_head(bundle), mirror, host_in(tmp_path / "empty"))
    archive = mirror / "debian" / SMALL.suite
    apt = tmp_path / "apt"
    (apt / "lists/partial").mkdir(parents=True)
    (apt / "status").write_text("")
    (apt / "list").write_text(f"deb [trusted=yes] copy:{archive} ./\n")
    options = {
        "Dir::Etc::SourceList": apt / "list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": apt / "lists",
        "Dir::State::Status": apt / "status",
        "Dir::Cache": apt,
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
    }
    command = [
        "apt-get",
        "-q",
        *(word for key, value in options.items() for word in ("-o", f"{key}={value}")),
    ]
    run(*command, "update")
    (file,) = archive.glob("*.deb")
    (apt / "archives/partial").mkdir(parents=True)
    download = [*command, "install", "--download-only", "-y", "python3.11"]
    run(*download)
    (fetched,) = (apt / "archives").glob("*.deb")
    assert fetched.read_bytes() == file.read_bytes()
    fetched.unlink()
    file.write_bytes(file.read_bytes()[:-1] + b"!")
    done = subprocess.run(download, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert not list((apt / "archives").glob("*.deb")), (
        done.stderr
    )  # apt 2 and apt 3 name the cause in other words


def test_a_damaged_bundle_leaves_no_mirror(bundle: Path, lock: Lock, tmp_path: Path) -> None:
    plain = next(p for p in lock.python if p.name == "plain")
    data = bundle.read_bytes()
    at = data.index(simple_wheel("plain"))
    bundle.write_bytes(data[:at] + b"!" + data[at + 1 :])
    with pytest.raises(FetchError, match=f"{plain.wheel.filename}: its SHA-256 is"):
        lay_out(read_head(bundle), tmp_path / "mirror", host_in(tmp_path / "empty"))
    assert not list(tmp_path.glob("*mirror*"))


def test_a_folder_with_something_in_it_is_left_alone(bundle: Path, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    lay_out(read_head(bundle), mirror, host_in(tmp_path / "empty"))
    for taken in (mirror, bundle):
        with pytest.raises(StorageError, match="already exists"):
            lay_out(read_head(bundle), taken, host_in(tmp_path / "empty"))
    with pytest.raises(StorageError, match="no is not a folder"):
        lay_out(read_head(bundle), tmp_path / "no/mirror", host_in(tmp_path / "empty"))


def test_of_two_at_once_to_one_folder_one_is_refused(bundle: Path, tmp_path: Path) -> None:
    refused: list[StorageError] = []

    def work() -> None:
        try:
            lay_out(read_head(bundle), tmp_path / "mirror", host_in(tmp_path / "empty"))
        except StorageError as error:
            refused.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ["already exists" in str(error) for error in refused] == [True, True]
    assert len(list((tmp_path / "mirror/simple").glob("*/index.html"))) == 5


def test_two_files_of_one_name_are_refused(host: Host, lock: Lock, tmp_path: Path) -> None:
    other = put(host.home, "plain", simple_wheel("plain", other=""))
    second = replace(
        lock, request=replace(lock.request, name="two"), python=[p for p in lock.python if p.name != "plain"]
    )
    second = replace(second, python=[*second.python, other])
    write_bundle({"pylock.cpu.toml": [lock], "pylock.two.toml": [second]}, tmp_path / "b.tar", host)
    with pytest.raises(FetchError, match=r"has two files plain-1\.0-py3-none-any\.whl with different bytes"):
        lay_out(read_head(tmp_path / "b.tar"), tmp_path / "mirror", host)


def test_a_full_disk_is_named_as_it_was_and_nothing_is_left(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tiny_disk(tmp_path / "disk", 16 << 10) as disk:
        monkeypatch.setattr("reprobuild.bundle.mirror.require_free", lambda *_: 0)
        with pytest.raises(StorageError, match=r"No space left on device \(0 B free\)"):
            lay_out(read_head(bundle), disk / "mirror", host_in(tmp_path / "empty"))
        assert not list(disk.iterdir())
