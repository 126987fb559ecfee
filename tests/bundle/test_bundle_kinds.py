"""A bundle has every kind of file that a lock names, and gives each back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reprobuild.bundle import write
from reprobuild.bundle.mirror import mirror_of
from reprobuild.bundle.read import read_head, take
from reprobuild.bundle.write import write_bundle
from reprobuild.fetch.base_layers import documents_of
from reprobuild.fetch.store import Store
from reprobuild.host.host import Host
from reprobuild.lock.base_image import BaseImage, BaseLayer
from reprobuild.lock.model import Lock
from reprobuild.lock.packages import BuildFiles, CondaPackage, PythonPackage, SourceArchive, SourceKind
from reprobuild.lock.standalone_python import StandalonePython
from reprobuild.request.model import Conda
from support.bundles import contents, host_in, small_locks
from support.fetching import check, sha256
from support.fixtures import fixtures_of
from support.wheels import package

globals().update(fixtures_of("support.bundles"))

LOCK = small_locks()["pylock.cpu.toml"][0]


class Files(dict[str, bytes]):
    """What was locked, by SHA-256."""

    def add(self, data: bytes) -> str:
        digest = sha256(data)
        self[digest] = data
        return digest


def with_sources(files: Files) -> Lock:
    """A lock of packages that are built, and of what they are built with."""
    addresses: dict[SourceKind, dict[str, Any]] = {
        "sdist": {"url": "https://index.example/sdist-1.0.tar.gz", "filename": "sdist-1.0.tar.gz"},
        "archive": {"url": "https://example.com/archive-1.0.tar.gz", "filename": "archive-1.0.tar.gz"},
        "vcs": {"url": "https://git.example/vcs", "filename": f"vcs-{'a' * 12}.tar", "commit": "a" * 40},
        "directory": {"url": "../directory", "filename": "directory.tar"},
    }
    python: list[PythonPackage] = list(LOCK.python)
    for kind, keys in addresses.items():
        data = f"the source {kind}".encode()
        source = SourceArchive(
            kind=kind, sha256=files.add(data), size=len(data), requires=("setuptools==1.0",), **keys
        )
        built = package(kind, sha256(b""), 1)
        python.append(replace(built, wheel=replace(built.wheel, url=""), source=source))
    backend = package("setuptools", files.add(b"backend"), len(b"backend"))
    compiler = replace(LOCK.debian[0], name="gcc", path="pool/main/g/gcc_1_amd64.deb")
    compiler = replace(compiler, sha256=files.add(b"gcc"), size=3)
    return replace(LOCK, python=python, build=BuildFiles(python=[backend], debian=[compiler]))


def with_conda(files: Files) -> Lock:
    def conda(name: str, version: str) -> CondaPackage:
        return CondaPackage(
            name=name,
            version=version,
            build="0",
            subdir="linux-64",
            url=f"https://conda.example/forge/linux-64/{name}-{version}-0.conda",
            sha256=files.add(f"conda {name}".encode()),
            md5=None,
            size=len(f"conda {name}"),
            depends=(),
        )

    python, pip = conda("python", "3.11.9"), conda("pip", "26.0")
    request = replace(
        LOCK.request, conda=Conda(channels=("https://conda.example/forge",), packages=("python",))
    )
    python_packages = [p for p in LOCK.python if p.name != "pip"]
    return replace(LOCK, request=request, conda=[python, pip], python=python_packages)


def with_standalone(files: Files) -> Lock:
    return replace(
        LOCK,
        request=replace(LOCK.request, python="3.12"),
        standalone=StandalonePython(
            version="3.12.9", url="https://index.example/python.tar.gz", sha256=files.add(b"python"), size=6
        ),
    )


def with_base(files: Files) -> Lock:
    digests = ["sha256:" + files.add(text) for text in (b"index", b"manifest", b"config", b"lower", b"upper")]
    index, manifest, config, *layers = digests
    base = BaseImage(
        image="registry.example/team/base:1",
        index=index,
        manifests={"linux/amd64": manifest},
        config=config,
        created="2024-01-01T00:00:00Z",
        system="Debian GNU/Linux 12 (bookworm)",
        suite="bookworm",
        glibc="2.36",
        python="/usr/local/bin/python3.11",
        python_version="3.11.9",
        cuda=(),
        env={"A": "b"},
        layers=tuple(
            BaseLayer(
                digest=layer,
                size=5,
                media_type="application/vnd.oci.image.layer.v1.tar+gzip",
                diff_id="sha256:" + str(n) * 64,
            )
            for n, layer in enumerate(layers)
        ),
    )
    return replace(LOCK, base=base, debian=(), request=replace(LOCK.request, base_image=base.image))


KINDS: dict[str, Callable[[Files], Lock]] = {
    "sources": with_sources,
    "conda": with_conda,
    "a standalone Python": with_standalone,
    "a base image": with_base,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_of_a_lock_is_in_it_and_comes_back(
    kind: str, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Files()
    lock = KINDS[kind](files)
    for data in files.values():
        Store(host.home).add_document(data)
    # These are no documents of an image, which it would read.
    monkeypatch.setattr(write, "fetch", lambda *_: None)
    write_bundle({"pylock.cpu.toml": [lock]}, tmp_path / "a.tar", host)
    wanted = {artifact.sha256 for artifact in lock.artifacts}
    wanted |= set(() if lock.base is None else documents_of(lock.base))
    assert set(files) <= wanted
    found = {
        path[6:]: data for path, data in contents(tmp_path / "a.tar").items() if path.startswith("files/")
    }
    assert set(found) == wanted
    empty, head = host_in(tmp_path / "empty"), read_head(tmp_path / "a.tar")
    assert [found.digest for found in head.locks["pylock.cpu.toml"]] == [lock.digest]
    take(head, [lock], empty)
    check(Store(empty.home), *found.values())


def test_a_mirror_has_what_pip_and_apt_install_and_names_the_rest() -> None:
    files = Files()
    found = mirror_of([make(files) for make in KINDS.values()], "a.tar")
    assert "sdist-1.0.tar.gz" in found.python["sdist"]
    assert "setuptools" in found.python
    assert "gcc_1_amd64.deb" in found.debian["bookworm"]
    assert {each.partition(" ")[0].partition("-")[0] for each in found.left_out} == {
        *("archive", "vcs", "directory.tar", "python", "pip", "python.tar.gz", "layer"),
    }
