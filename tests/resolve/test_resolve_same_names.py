"""One file name with different bytes on two indexes (https://github.com/astral-sh/uv/issues/16784)."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from reprobuild.lock.packages import PythonPackage, Wheel
from reprobuild.net.session import session
from reprobuild.resolve.same_names import other_bytes
from support.index import File, Index, serve_index

pytest_plugins = ["support.family"]


def locked(index: Index, file: File) -> PythonPackage:
    url = f"{index.root}/files/{file.name}"
    wheel = Wheel(filename=file.name, url=url, sha256=file.sha256, size=len(file.body))
    return PythonPackage(name=file.project, version=file.name.split("-")[1], wheel=wheel)


def lines(*packages: PythonPackage, own: str = "") -> list[str]:
    with session(retries=0) as http:
        return other_bytes(packages, http, own)


def test_other_bytes_on_another_index_are_named(
    index: Index, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, same, own = (index.add(name, "1") for name in ("a", "b", "c"))
    packages = [locked(index, file) for file in (first, same, own)]
    assert (lines(*packages), index.log) == ([], [])  # the only index
    with serve_index() as other:
        other.files.append(same)
        theirs = other.add("a", "1", requires=["b"])
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        monkeypatch.setenv("UV_INDEX", other.url.replace("://", "://user:secret@"))
        said = (
            f"{first.name} is locked from {index.root}/files/{first.name} (SHA-256 {first.sha256[:12]}…), "
            f"and {other.url} has other bytes under that name ({theirs.sha256[:12]}…): set up only the "
            "index that you trust, or name it first"
        )
        assert lines(*packages) == [said]
        assert not index.asked("/c/")
        # Locked from the first one, the default one is the other.
        (line,) = lines(locked(other, theirs))
        assert f"and {index.url} has other bytes" in line
        theirs.hashed = False
        (line,) = lines(*packages)
        assert line == (
            f"whether {other.url} has other bytes under the name {first.name} is unknown: it gives no SHA-256"
        )
        theirs.hashed = True
        other.status = 500
        (line,) = lines(*packages)
        assert line.startswith(
            f"whether {other.url} has other bytes is unknown: the index page {other.url}a/"
        )
    monkeypatch.delenv("UV_INDEX")
    (tmp_path / first.name).write_bytes(theirs.body)
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    (line,) = lines(*packages)
    assert f"and {tmp_path.as_uri()} has other bytes under that name ({theirs.sha256[:12]}…)" in line


def test_what_is_from_an_index_of_the_request_is_compared_with_the_user_s(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`index = "pytorch"`, which has triton and torch for CPUs of Arm under the names of PyPI's."""
    monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
    theirs, _ = index.add("triton", "1", requires=["b"]), index.add("b", "1")
    with serve_index() as pytorch:
        packages = [locked(pytorch, pytorch.add(name, "1")) for name in ("triton", "torch")]
        packages.append(locked(index, index.files[1]))
        own = urlsplit(pytorch.url).netloc
        (line,) = lines(*packages, own=own)
    assert f"and {index.url} has other bytes under that name ({theirs.sha256[:12]}…)" in line
    assert (lines(*packages), index.asked("/b/")) == ([], [])
